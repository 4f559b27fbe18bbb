"""The direct causes of one effect among its candidates: forward and backward by attention.

Candidates enter one at a time, the one whose lag kernel explains most of the effect's timing
first (optimal causation entropy: Sun, Taylor and Bollt 2015). Timing settles what counting
cannot: a common cause, or the last link of a chain, stands closer in time to its effect than
anything that is only correlated with it, so it enters first and explains the others away. What
has entered is then tested: occurrence of the effect against the candidate's past, given the
effect's own past and the other parents' past, in a matched case-control sample. Sampling on the
effect alone leaves a conditional independence intact.
"""

import zlib
from dataclasses import dataclass

import numpy as np

from engines.causal.candidates import Scan
from engines.causal.independence import conditional_p_value
from engines.causal.influence import Attention, Kernel, Links, attend, felt, link
from engines.causal.series import EventTable, Floats
from engines.contracts.causal import MinerParams

CONTROLS_PER_CASE = 10
MATCH_LAGS = 8.0
"""Controls lie within so many longest lags of their case: slow changes cancel out."""
END_TYPES = (":off", ":stops", ":leaves")
TIE_NATS = 1.0


@dataclass(frozen=True)
class Candidate:
    """One possible cause of the effect at hand.

    Attributes:
        kind: its type.
        times: sorted, long clock.
        links: to the effect.
        initial: kernel from the scan's best band.
    """

    kind: int
    times: Floats
    links: Links
    initial: Kernel


@dataclass(frozen=True)
class Tested:
    """A candidate after selection.

    Attributes:
        kind: the cause's type.
        kernel: fitted beside the selected parents.
        p_value: of the conditional independence test, the search over lags paid for.
        test: its name.
        gain_nats: log-likelihood that the candidate adds to the other parents.
        selected: whether it is one of the parents.
        rivals: kinds of the other parents it was conditioned on.
        shares: attention of each link, for tracing instances.
        links: the links.
    """

    kind: int
    kernel: Kernel
    p_value: float
    test: str
    gain_nats: float
    margin_nats: float
    """How much worse the model gets when the best unselected candidate takes its place; small
    where two candidates tell the same story."""
    selected: bool
    rivals: tuple[int, ...]
    shares: Floats
    links: Links


@dataclass(frozen=True)
class EffectModel:
    """What was found for one effect: every candidate tested, and the fitted parents."""

    kind: int
    tested: tuple[Tested, ...]
    parents: tuple[Candidate, ...]
    attention: Attention


class EffectSearch:
    """Search of the parents of one effect."""

    def __init__(self, table: EventTable, scan: Scan, kind: int, params: MinerParams) -> None:
        """Prepare the effect's times and its own past; nothing is tested yet."""
        self.table = table
        self.scan = scan
        self.kind = kind
        self.params = params
        self.effect = table.of_type(kind)
        name = table.names[kind]
        self.rng = np.random.default_rng([params.seed, zlib.crc32(name.encode())])
        self.penalty = 2.0 + 1.5 * float(np.log(max(len(self.effect), 2)))

    def candidate(self, kind: int) -> Candidate:
        """The candidate of one type, with the scan's band as its first kernel."""
        low, high = self.scan.bands.seconds(int(self.scan.band[kind, self.kind]))
        times = self.table.of_type(kind)
        links = link(
            times,
            self.effect,
            max_lag_s=self.params.max_lag_s,
            error_s=float(self.table.error[self.kind]),
        )
        excess = self.scan.count[kind, self.kind] - self.scan.expected[kind, self.kind]
        weight = float(max(excess, 0.5)) / max(len(times), 1)
        return Candidate(kind, times, links, Kernel(weight, (low + high) / 2, (high - low) / 3))

    def fit(self, parents: list[Candidate]) -> Attention:
        """The attention model with these parents."""
        return attend(
            tuple(c.links for c in parents),
            tuple(c.initial for c in parents),
            num_effects=len(self.effect),
            total_s=self.table.total_s,
            max_lag_s=self.params.max_lag_s,
        )

    def anchors(self, reach_s: float) -> tuple[Floats, Floats]:
        """Cases and matched controls: sorted times [n] and 1.0 / 0.0 [n].

        Only instants whose history was observed back to ``reach_s`` take part.
        """
        cases = self._seen(self.effect, reach_s)
        limit = self.params.max_test_n
        each = int(np.clip(limit // max(len(cases), 1) - 1, 1, CONTROLS_PER_CASE))
        if len(cases) * (each + 1) > limit:
            cases = np.sort(self.rng.choice(cases, limit // (each + 1), replace=False))
        width = MATCH_LAGS * self.params.max_lag_s
        near = np.repeat(cases, 3 * each) + self.rng.uniform(-width, width, 3 * each * len(cases))
        video = np.repeat(self._video(cases), 3 * each)
        near = near[self._video(near) == video]
        controls = self._seen(near[self.table.is_observed(near)], reach_s)
        wanted = min(len(controls), each * len(cases))
        controls = self.rng.choice(controls, wanted, replace=False)
        time = np.concatenate([cases, controls])
        is_case = np.concatenate([np.ones(len(cases)), np.zeros(wanted)])
        order = np.argsort(time, kind="stable")
        return time[order], is_case[order]

    def _video(self, time: Floats) -> Floats:
        seg = np.maximum(np.searchsorted(self.table.seg_start, time, side="right") - 1, 0)
        return self.table.seg_video[seg].astype(np.float64)

    def _seen(self, time: Floats, reach_s: float) -> Floats:
        history = self.table.covered(time) - self.table.covered(time - reach_s)
        return time[history > reach_s - 1e-6]

    def run(self, kinds: list[int]) -> EffectModel:
        """Select among candidate types and test each of them.

        Args:
            kinds: candidate types; the effect itself stands for its own past.
        """
        pool = [self.candidate(k) for k in kinds]
        own = [c for c in pool if c.kind == self.kind]
        chosen = self._forward(own, [c for c in pool if c.kind != self.kind])
        chosen = self._backward(chosen)
        attention = self.fit(chosen)
        reach = max((self._band_end(c) for c in pool), default=self.params.max_lag_s)
        time, is_case = self.anchors(min(reach, self.params.max_lag_s))
        tested = tuple(
            self._test(c, pool, chosen, attention, time, is_case)
            for c in pool
            if c.kind != self.kind
        )
        return EffectModel(self.kind, tested, tuple(chosen), attention)

    def _band_end(self, candidate: Candidate) -> float:
        return self.scan.bands.seconds(int(self.scan.band[candidate.kind, self.kind]))[1]

    def _forward(self, own: list[Candidate], pool: list[Candidate]) -> list[Candidate]:
        chosen = list(own)
        current = self.fit(chosen).log_likelihood
        left = list(pool)
        while left and len(chosen) - len(own) < self.params.max_parents:
            gains = [self.fit([*chosen, c]).log_likelihood - current for c in left]
            top = max(gains)
            if top < self.penalty:
                break
            close = [c for c, g in zip(left, gains, strict=True) if g > top - TIE_NATS]
            best = min(close, key=self._preference)
            current += gains[left.index(best)]
            chosen.append(best)
            left.remove(best)
        return chosen

    def _preference(self, candidate: Candidate) -> tuple[bool, float, str]:
        """Among equals a beginning before an end, then what stands closest to the effect."""
        name = self.table.names[candidate.kind]
        return any(end in name for end in END_TYPES), candidate.initial.mean_s, name

    def _backward(self, chosen: list[Candidate]) -> list[Candidate]:
        for candidate in list(chosen):
            if candidate.kind == self.kind:
                continue
            without = [c for c in chosen if c is not candidate]
            loss = self.fit(chosen).log_likelihood - self.fit(without).log_likelihood
            if loss < self.penalty:
                chosen = without
        return chosen

    def _test(
        self,
        candidate: Candidate,
        pool: list[Candidate],
        chosen: list[Candidate],
        attention: Attention,
        time: Floats,
        is_case: Floats,
    ) -> Tested:
        selected = any(c is candidate for c in chosen)
        others = [c for c in chosen if c is not candidate]
        if selected:
            model, at = attention, [c is candidate for c in chosen].index(True)
        else:
            model, at = self.fit([*others, candidate]), len(others)
        kernels = [k for i, k in enumerate(model.kernels) if i != at]
        lag = self.params.max_lag_s
        own = felt(candidate.times, time, model.kernels[at], lag)
        given = [felt(c.times, time, k, lag) for c, k in zip(others, kernels, strict=True)]
        z = np.column_stack(given) if given else None
        seed = int(self.rng.integers(2**31))
        p_value, test = conditional_p_value(own, is_case, z, seed=seed)
        low, high = self.scan.bands.seconds(int(self.scan.band[candidate.kind, self.kind]))
        looks = max(1.0, lag / (high - low))
        base = self.fit(others).log_likelihood
        unselected = [c for c in pool if selected and not any(c is p for p in chosen)]
        rival = max((self.fit([*others, c]).log_likelihood for c in unselected), default=base)
        return Tested(
            kind=candidate.kind,
            kernel=model.kernels[at],
            p_value=min(1.0, p_value * looks),
            test=test,
            gain_nats=model.log_likelihood - base,
            margin_nats=model.log_likelihood - max(rival, base),
            selected=selected,
            rivals=tuple(c.kind for c in others if c.kind != self.kind),
            shares=model.shares[at],
            links=candidate.links,
        )
