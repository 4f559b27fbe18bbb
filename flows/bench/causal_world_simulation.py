"""Small worlds of switches, dominoes, balls and gates with exact causal truth.

A world is a set of sources and a set of mechanisms. A mechanism turns an occurrence of its cause
into an occurrence of its effect after a lag, with some probability. All chance belongs to an
occurrence and a mechanism, not to a running generator: when something is taken away and the
world is run again, everything that did not depend on it happens just as before. So the truth is
what re-simulation shows, not what the author meant.
"""

import zlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engines.contracts.causal import Event, EventSource
from engines.contracts.time import TimeSpan

LEVELS = ("pairs", "chains", "common causes", "unreliable", "crowded")
MAX_DEPTH = 8
DURATION_S = 150.0
Rhythm = Literal["random", "periodic", "bursts"]


@dataclass(frozen=True)
class Source:
    """Something that happens by itself."""

    kind: str
    rhythm: Rhythm
    period_s: float


@dataclass(frozen=True)
class Mechanism:
    """Cause makes effect happen after a lag."""

    cause: str
    effect: str
    lag_s: float
    jitter_s: float
    probability: float


@dataclass(frozen=True)
class World:
    """What may happen, and the seed of all chance in it."""

    name: str
    level: int
    seed: int
    sources: tuple[Source, ...]
    mechanisms: tuple[Mechanism, ...]
    duration_s: float = DURATION_S

    @property
    def kinds(self) -> tuple[str, ...]:
        """All event types."""
        named = {s.kind for s in self.sources}
        return tuple(sorted(named.union(m.effect for m in self.mechanisms)))


@dataclass
class Occurrences:
    """Times and identities of everything that happened, by type."""

    times: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))

    def of(self, kind: str) -> tuple[float, ...]:
        """Sorted times of one type."""
        return tuple(sorted(t for t, _ in self.times.get(kind, [])))


def _chance(*parts: int | str) -> np.random.Generator:
    return np.random.default_rng(
        [p if isinstance(p, int) else zlib.crc32(p.encode()) for p in parts]
    )


def source_times(world: World, source: Source) -> list[float]:
    """When a source acts; depends on nothing but the world's seed and the source."""
    rng = _chance(world.seed, "source", source.kind)
    period = source.period_s
    if source.rhythm == "periodic":
        return list(np.arange(rng.uniform(0, period), world.duration_s, period))
    number = int(world.duration_s / period * 3) + 5
    if source.rhythm == "bursts":
        starts = np.cumsum(rng.exponential(3 * period, number) + 2.0)
        each = rng.integers(2, 5, number)
        times = np.concatenate(
            [s + np.cumsum(rng.uniform(0.3, 0.9, n)) for s, n in zip(starts, each, strict=True)]
        )
    else:
        times = np.cumsum(rng.uniform(0.35 * period, 1.65 * period, number))
    return [float(t) for t in times if t < world.duration_s]


def simulate(
    world: World,
    *,
    without: frozenset[str] = frozenset(),
    held: Mapping[str, list[tuple[float, int]]] | None = None,
) -> Occurrences:
    """Run the world.

    Args:
        world: what to run.
        without: types that are taken away: they do not happen, whatever would cause them.
        held: types that happen just at these (time, identity), whatever else does.
    """
    held = held or {}
    happened = Occurrences()
    queue: list[tuple[str, float, int, int]] = []
    for source in world.sources:
        if source.kind not in without and source.kind not in held:
            queue += [
                (source.kind, t, zlib.crc32(f"{source.kind}#{i}".encode()), 0)
                for i, t in enumerate(source_times(world, source))
            ]
    for kind, occurrences in held.items():
        if kind not in without:
            queue += [(kind, t, identity, 0) for t, identity in occurrences]
    while queue:
        kind, time, identity, depth = queue.pop()
        if time >= world.duration_s:
            continue
        happened.times[kind].append((time, identity))
        for number, mechanism in enumerate(world.mechanisms):
            effect = mechanism.effect
            if mechanism.cause != kind or effect in without or effect in held:
                continue
            rng = _chance(world.seed, "mechanism", number, identity)
            late = float(np.clip(rng.normal(), -2.5, 2.5)) * mechanism.jitter_s
            if rng.random() < mechanism.probability and depth < MAX_DEPTH:
                child = zlib.crc32(f"{identity}>{number}".encode())
                queue.append((effect, time + max(0.06, mechanism.lag_s + late), child, depth + 1))
    return happened


def true_edges(world: World) -> tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]:
    """Direct and total causes by re-simulation: (cause, effect) pairs.

    A total cause changes the effect's times when it is taken away. A direct cause still does
    when all other types are held at what they factually did.
    """
    factual = simulate(world)
    direct, total = set(), set()
    for cause in world.kinds:
        removed = simulate(world, without=frozenset({cause}))
        for effect in world.kinds:
            if effect == cause:
                continue
            if removed.of(effect) != factual.of(effect):
                total.add((cause, effect))
            held = {k: factual.times[k] for k in world.kinds if k not in (cause, effect)}
            alone = simulate(world, without=frozenset({cause}), held=held)
            both = simulate(world, held={**held, cause: factual.times[cause]})
            if alone.of(effect) != both.of(effect):
                direct.add((cause, effect))
    return frozenset(direct), frozenset(total)


_SOURCE_OF: dict[str, EventSource] = {"lamp": "motion", "bell": "sound", "sign": "text"}


def to_events(world: World, happened: Occurrences) -> list[Event]:
    """The occurrences as a timeline ordered by start; instants, exact to a video tick."""
    events = [
        Event(
            span=TimeSpan.from_seconds(t, t, rate_hz=90_000),
            type=kind,
            subject=None,
            description=kind,
            source=_SOURCE_OF.get(kind.split("_")[0], "motion"),
            evidence=(),
        )
        for kind in world.kinds
        for t in happened.of(kind)
    ]
    return sorted(events, key=lambda e: (e.span.start_s, e.type))


def make_world(level: int, seed: int) -> World:
    """A random world of a level (0 to 4, see ``LEVELS``)."""
    rng = np.random.default_rng([seed, level])
    jitter = 0.03 if level < 3 else float(rng.uniform(0.05, 0.12))
    sure = 1.0 if level < 3 else 0.85

    def lag() -> float:
        return float(rng.uniform(0.35, 1.6))

    def rule(cause: str, effect: str) -> Mechanism:
        return Mechanism(cause, effect, lag(), jitter, sure)

    sources = [Source("switch_a", "random", float(rng.uniform(5, 8)))]
    rules: list[Mechanism] = []
    if level == 0:
        sources.append(Source("switch_b", "random", float(rng.uniform(5, 8))))
        rules += [rule("switch_a", "lamp_a"), rule("switch_b", "bell_b")]
    else:
        rules += [rule("switch_a", "domino_1"), rule("domino_1", "domino_2")]
        rules += [rule("domino_2", "bell_b")]
    if level >= 2:
        sources.append(Source("gate_opens", "random", float(rng.uniform(5, 8))))
        rules += [rule("gate_opens", "ball_1"), rule("gate_opens", "lamp_c")]
    if level >= 3:
        sources.append(Source("bell_b", "random", 25.0))
        rules += [rule("ball_1", "bell_b")]
    if level >= 4:
        sources.append(Source("switch_d", "bursts", 6.0))
        rules += [rule("switch_d", "lamp_d"), rule("lamp_c", "sign_e")]
    sources.append(Source("bird", "random", float(rng.uniform(4, 9))))
    sources.append(Source("blinker", "periodic", float(rng.uniform(3, 7))))
    if level >= 1:
        sources.append(Source("flicker", "bursts", 7.0))
    if level >= 4:
        sources.append(Source("ticker", "periodic", float(rng.uniform(1.5, 3))))
        sources.append(Source("wind", "random", float(rng.uniform(3, 6))))
    return World(LEVELS[level], level, seed, tuple(sources), tuple(rules))
