"""A directed graph of additive causes by greedy search over scores.

Every variable is a sum of smooth functions of its parents and an independent rest (additive noise
models: Hoyer et al. 2009; search by score: Chickering 2002; Buehlmann et al. 2014). The score of
a graph is minus the entropy of the rests, less a price for each edge. With the entropy of the rest
as it is (approximation of Hyvaerinen 1998) rather than that of a normal variable, bends and
non-normal rests both tell cause from effect, where correlations cannot.
"""

import numpy as np

from engines.causal.kci import standardise
from engines.causal.series import Floats

Parents = tuple[int, ...]
Edges = set[tuple[int, int]]

MAX_PARENTS = 5
NUM_BENDS = 4
NORMAL_ENTROPY = 0.5 * (1.0 + float(np.log(2.0 * np.pi)))
LOG_COSH_WEIGHT, LOG_COSH_NORMAL = 79.047, 0.37457
ODD_WEIGHT = 7.4129
"""Constants of the maximum entropy approximation, and the normal mean of log cosh."""
CLIP = 4.0
RIDGE = 1e-6
LEAST_GAIN = 1e-6


def bends(column: Floats) -> Floats:
    """A line and three bends of it, standardised: [n, NUM_BENDS]."""
    x = np.clip(standardise(column)[:, 0], -CLIP, CLIP)
    return standardise(np.column_stack([x, x * x, np.tanh(2.0 * x), np.maximum(x, 0.0) ** 2]))


def entropy(rest: Floats, *, normal: bool) -> float:
    """In nats per row; ``normal`` takes only the deviation into account.

    Args:
        rest: [n] with mean 0.
        normal: whether to treat it as normally distributed.
    """
    deviation = max(float(rest.std()), 1e-9)
    plain = NORMAL_ENTROPY + float(np.log(deviation))
    if normal:
        return plain
    unit = rest / deviation
    peaked = float(np.log(np.cosh(unit)).mean()) - LOG_COSH_NORMAL
    skewed = float((unit * np.exp(-0.5 * unit * unit)).mean())
    return plain - LOG_COSH_WEIGHT * peaked**2 - ODD_WEIGHT * skewed**2


class LocalScores:
    """The score of a variable given its parents; each is computed once."""

    def __init__(self, data: Floats, *, normal: bool) -> None:
        """Prepare the products of all bends.

        Args:
            data: [n, k] measurements.
            normal: whether rests are treated as normal.
        """
        self.num_variables = data.shape[1]
        self._target = standardise(data)
        self._normal = normal
        self._bends = np.hstack([bends(column) for column in data.T])
        self._gram = self._bends.T @ self._bends
        self._gram[np.diag_indices(len(self._gram))] += RIDGE * len(data)
        self._cross = self._bends.T @ self._target
        self._known: dict[tuple[int, Parents], float] = {}

    def __call__(self, variable: int, parents: frozenset[int]) -> float:
        """Minus the entropy in nats per row of what the parents leave of the variable."""
        key = variable, tuple(sorted(parents))
        if key not in self._known:
            self._known[key] = -entropy(self._rest(*key), normal=self._normal)
        return self._known[key]

    def _rest(self, variable: int, parents: Parents) -> Floats:
        target = self._target[:, variable]
        if not parents:
            return np.asarray(target)
        columns = np.concatenate([np.arange(NUM_BENDS) + p * NUM_BENDS for p in parents])
        inner = self._gram[np.ix_(columns, columns)]
        fitted = np.linalg.solve(inner, self._cross[columns, variable])
        return np.asarray(target - self._bends[:, columns] @ fitted)


class GraphSearch:
    """Hill climbing over acyclic graphs: one edge added, dropped or turned at a time."""

    def __init__(self, scores: LocalScores, price: float) -> None:
        """Start from the empty graph.

        Args:
            scores: of the variables.
            price: of an edge, in nats per row.
        """
        self._scores = scores
        self._price = price
        self._parents: list[frozenset[int]] = [frozenset()] * scores.num_variables

    def run(self) -> Edges:
        """Directed edges (cause, effect) of a graph that no single change improves."""
        while True:
            change = max(self._changes(), key=lambda c: (c[0], c[1:]), default=None)
            if change is None or change[0] <= LEAST_GAIN:
                return {(a, b) for b, parents in enumerate(self._parents) for a in parents}
            _, cause, effect, turn = change
            if cause not in self._parents[effect]:
                self._parents[effect] |= {cause}
                continue
            self._parents[effect] -= {cause}
            if turn:
                self._parents[cause] |= {effect}

    def _changes(self) -> list[tuple[float, int, int, bool]]:
        """Gain, cause, effect, and whether an edge that is there is turned rather than dropped."""
        pairs = range(len(self._parents))
        found = []
        for cause in pairs:
            for effect in pairs:
                if cause == effect or effect in self._parents[cause]:
                    continue
                if cause not in self._parents[effect]:
                    if self._may_add(cause, effect):
                        found.append((self._gain(cause, effect), cause, effect, False))
                    continue
                kept = self._parents[effect]
                self._parents[effect] = kept - {cause}
                loss = self._gain(cause, effect)
                found.append((-loss, cause, effect, False))
                if self._may_add(effect, cause):
                    found.append((self._gain(effect, cause) - loss, cause, effect, True))
                self._parents[effect] = kept
        return found

    def _gain(self, cause: int, effect: int) -> float:
        parents = self._parents[effect]
        more = self._scores(effect, parents | {cause}) - self._scores(effect, parents)
        return more - self._price

    def _may_add(self, cause: int, effect: int) -> bool:
        """Whether there is room for a parent, and no way from ``effect`` to ``cause``."""
        if len(self._parents[effect]) >= MAX_PARENTS:
            return False
        waiting, seen = [cause], set()
        while waiting:
            node = waiting.pop()
            if node == effect:
                return False
            if node not in seen:
                seen.add(node)
                waiting.extend(self._parents[node])
        return True
