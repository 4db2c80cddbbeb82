"""What values and ratios are linear in: a number per recorded (s, R_acc, t, a), or random features."""

import abc
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from aetdice.estimation.acting import Acting, Augmented, DiscreteActing
from aetdice.estimation.recording import Recording
from aetdice.exact.grouping import number_vectors

RIDGE = 1e-3
"""Of the features' own mean square."""
BLOCK = 1 << 15
"""Rows whose features are made at once."""


class Basis(abc.ABC):
    """Functions of (s, R_acc, t, a), one set for each t, and their means under π at what follows.

    `Fitted` are coefficients of one time step, one set for every replicate.
    """

    @abc.abstractmethod
    def fit(
        self, time: int, weights: Float[np.ndarray, "b k"], targets: Float[np.ndarray, "b k n"]
    ) -> Float[np.ndarray, "b p n"]:
        """The regression of targets on the steps at a time."""

    @abc.abstractmethod
    def values(self, time: int, fitted: Float[np.ndarray, "b p n"]) -> Float[np.ndarray, "b k n"]:
        """At the recorded actions of the steps at a time."""

    @abc.abstractmethod
    def following(self, time: int, fitted: Float[np.ndarray, "b p n"]) -> Float[np.ndarray, "b k n"]:
        """Mean under π at the states after the steps at a time; fitted at the next time."""

    @abc.abstractmethod
    def initial(self, fitted: Float[np.ndarray, "b p n"]) -> Float[np.ndarray, "b e n"]:
        """Mean under π at every episode's first state."""

    @abc.abstractmethod
    def ratios(
        self, time: int, weights: Float[np.ndarray, "b k"], mass: Float[np.ndarray, "b j"]
    ) -> Float[np.ndarray, "b k"]:
        """w of the steps at a time, given the mass of the steps before, or of first states at time 0."""


@dataclass(frozen=True, eq=False)
class Tabular(Basis):
    """A number of its own for every recorded augmented state and action: exact, where they repeat.

    An action that was not recorded in a state is worth what the others are on average, and gets no mass.
    """

    recording: Recording
    pair: Int[np.ndarray, " steps"]
    """Of every step, numbered within its time."""
    sizes: Int[np.ndarray, " horizon"]
    next_pair: Int[np.ndarray, "steps a"]
    """Of every action in the state after a step; the number after the last if it was not recorded."""
    next_chance: Float[np.ndarray, "steps a"]
    first_pair: Int[np.ndarray, "episodes a"]
    first_chance: Float[np.ndarray, "episodes a"]

    @classmethod
    def of(cls, recording: Recording, acting: DiscreteActing) -> "Tabular":
        steps, count = recording.steps, recording.episodes.steps
        states = (recording.before, recording.after)
        keys = np.concatenate([np.column_stack([each.observations, each.accrued]) for each in states])
        _, node = number_vectors(np.concatenate([steps.time, steps.time + 1]), keys.astype(float))
        chance, after = (acting.probabilities(each) for each in states)
        width = max(chance.shape[1], int(steps.actions.max()) + 1)
        chance, after = (np.pad(c, ((0, 0), (0, width - c.shape[1]))) for c in (chance, after))
        code = node[:count] * width + steps.actions
        known = np.full((int(node.max()) + 1) * width, -1)
        sizes = np.zeros(recording.horizon, int)
        pair = np.zeros(count, int)
        for t in range(recording.horizon):
            rows = recording.at(t)
            own, pair[rows] = np.unique(code[rows], return_inverse=True)
            sizes[t], known[own] = len(own), np.arange(len(own))
        table = known.reshape(-1, width)

        def numbered(nodes: np.ndarray, at: np.ndarray) -> np.ndarray:
            there = table[nodes]
            return np.where(there < 0, sizes[np.minimum(at, recording.horizon - 1)][:, None], there)

        starts = steps.initial
        return cls(
            recording=recording,
            pair=pair,
            sizes=sizes,
            next_pair=numbered(node[count:], steps.time + 1),
            next_chance=after,
            first_pair=numbered(node[starts], np.zeros(len(starts), int)),
            first_chance=chance[starts],
        )

    def fit(
        self, time: int, weights: Float[np.ndarray, "b k"], targets: Float[np.ndarray, "b k n"]
    ) -> Float[np.ndarray, "b p n"]:
        mass = self._summed(time, weights)
        totals = self._summed(time, weights[..., None] * targets)
        average = totals.sum(axis=1, keepdims=True) / np.maximum(mass.sum(axis=1), 1e-300)[:, None, None]
        means = np.where(mass[..., None] > 0, totals / np.maximum(mass, 1e-300)[..., None], average)
        return np.concatenate([means, average], axis=1)

    def values(self, time: int, fitted: Float[np.ndarray, "b p n"]) -> Float[np.ndarray, "b k n"]:
        return fitted[:, self.pair[self.recording.at(time)]]

    def following(self, time: int, fitted: Float[np.ndarray, "b p n"]) -> Float[np.ndarray, "b k n"]:
        rows = self.recording.at(time)
        return _under(self.next_chance[rows], self.next_pair[rows], fitted)

    def initial(self, fitted: Float[np.ndarray, "b p n"]) -> Float[np.ndarray, "b e n"]:
        return _under(self.first_chance, self.first_pair, fitted)

    def ratios(
        self, time: int, weights: Float[np.ndarray, "b k"], mass: Float[np.ndarray, "b j"]
    ) -> Float[np.ndarray, "b k"]:
        if time == 0:
            chance, pair = self.first_chance, self.first_pair
        else:
            before = self.recording.at(time - 1)
            chance, pair = self.next_chance[before], self.next_pair[before]
        size = int(self.sizes[time]) + 1
        flow = np.stack(
            [np.bincount(pair.ravel(), (chance * own[:, None]).ravel(), minlength=size) for own in mass]
        )
        own = self._summed(time, weights)
        ratio = np.where(own > 0, flow[:, :-1] / np.maximum(own, 1e-300), 0)
        return ratio[:, self.pair[self.recording.at(time)]]

    def unrecorded(self) -> float:
        """The share of what π would do, where the log went, that was never done there."""
        follows = self.recording.steps.bootstraps
        later = np.minimum(self.recording.steps.time + 1, self.recording.horizon - 1)
        lost = self.next_chance * (self.next_pair >= self.sizes[later][:, None])
        return float(lost[follows].sum() / max(follows.sum(), 1))

    def _summed(self, time: int, values: Float[np.ndarray, "b k *n"]) -> Float[np.ndarray, "b p *n"]:
        pair = self.pair[self.recording.at(time)]
        order = np.argsort(pair, kind="stable")
        starts = np.searchsorted(pair[order], np.arange(self.sizes[time]))
        return np.add.reduceat(values[:, order], starts, axis=1)


def _under(
    chance: Float[np.ndarray, "k a"], pair: Int[np.ndarray, "k a"], fitted: Float[np.ndarray, "b p n"]
) -> Float[np.ndarray, "b k n"]:
    return sum(
        (chance[None, :, a, None] * fitted[:, pair[:, a]] for a in range(pair.shape[1])),
        start=np.zeros((len(fitted), len(pair), fitted.shape[2])),
    )


@dataclass(frozen=True, eq=False)
class RandomFeatures(Basis):
    """Random cosines of state, accrued reward and action, the same at every time, and a constant."""

    recording: Recording
    here: Float[np.ndarray, "steps p"]
    next: Float[np.ndarray, "steps p"]
    first: Float[np.ndarray, "episodes p"]

    @classmethod
    def of(cls, recording: Recording, acting: Acting, count: int = 100, seed: int = 0) -> "RandomFeatures":
        make = _Cosines.of(recording, count, seed)
        return cls(
            recording=recording,
            here=make(recording.before, recording.steps.actions),
            next=make.under(acting, recording.after),
            first=make.under(acting, recording.before.take(recording.steps.initial)),
        )

    def fit(
        self, time: int, weights: Float[np.ndarray, "b k"], targets: Float[np.ndarray, "b k n"]
    ) -> Float[np.ndarray, "b p n"]:
        features = self.here[self.recording.at(time)]
        right = np.einsum("kp,bkn->bpn", features, weights[..., None] * targets, optimize=True)
        return np.linalg.solve(self._gram(features, weights), right)

    def values(self, time: int, fitted: Float[np.ndarray, "b p n"]) -> Float[np.ndarray, "b k n"]:
        return self.here[self.recording.at(time)] @ fitted

    def following(self, time: int, fitted: Float[np.ndarray, "b p n"]) -> Float[np.ndarray, "b k n"]:
        return self.next[self.recording.at(time)] @ fitted

    def initial(self, fitted: Float[np.ndarray, "b p n"]) -> Float[np.ndarray, "b e n"]:
        return self.first @ fitted

    def ratios(
        self, time: int, weights: Float[np.ndarray, "b k"], mass: Float[np.ndarray, "b j"]
    ) -> Float[np.ndarray, "b k"]:
        entering = self.first if time == 0 else self.next[self.recording.at(time - 1)]
        features, moments = self.here[self.recording.at(time)], mass @ entering
        slopes = np.linalg.solve(self._gram(features, weights), moments[..., None])[..., 0]
        ratio = np.maximum(slopes @ features.T, 0)  # linear ratios may be negative, which no ratio is
        total = (weights * ratio).sum(axis=1, keepdims=True)
        return ratio * mass.sum(axis=1, keepdims=True) / np.maximum(total, 1e-300)

    def _gram(
        self, features: Float[np.ndarray, "k p"], weights: Float[np.ndarray, "b k"]
    ) -> Float[np.ndarray, "b p p"]:
        gram = np.stack([features.T @ (features * own[:, None]) for own in weights])
        # A replicate may have drawn no episode that lasts so long.
        size = np.einsum("bpp->b", gram) / gram.shape[1] + 1e-6
        return gram + (RIDGE * size)[:, None, None] * np.eye(gram.shape[1])


@dataclass(frozen=True, eq=False)
class _Cosines:
    centre: Float[np.ndarray, " d"]
    spread: Float[np.ndarray, " d"]
    slopes: Float[np.ndarray, "d p"]
    shifts: Float[np.ndarray, " p"]
    actions: int
    """How many there are; 0 for continuous ones."""

    @classmethod
    def of(cls, recording: Recording, count: int, seed: int) -> "_Cosines":
        steps = recording.steps
        discrete = steps.actions.ndim == 1 and np.issubdtype(steps.actions.dtype, np.integer)
        actions = int(steps.actions.max()) + 1 if discrete else 0
        rows = _raw(recording.before, steps.actions, actions)
        spread, rng = rows.std(axis=0), np.random.default_rng(seed)
        scale = 1 / np.sqrt(rows.shape[1])
        return cls(
            centre=rows.mean(axis=0),
            spread=np.where(spread > 1e-9, spread, 1.0),
            slopes=rng.standard_normal((rows.shape[1], count)) * scale * rng.choice([0.5, 1.0, 2.0], count),
            shifts=rng.uniform(0, 2 * np.pi, count),
            actions=actions,
        )

    def __call__(self, states: Augmented, actions: Shaped[np.ndarray, "k *a"]) -> Float[np.ndarray, "k p"]:
        scaled = (_raw(states, actions, self.actions) - self.centre) / self.spread
        return np.column_stack([np.ones(len(scaled)), scaled, np.cos(scaled @ self.slopes + self.shifts)])

    def under(self, acting: Acting, states: Augmented) -> Float[np.ndarray, "k p"]:
        """Means over what π does."""
        parts = []
        for first in range(0, len(states.time), BLOCK):
            block = states.take(slice(first, first + BLOCK))
            actions, chances = acting.choices(block, seed=first)
            each = (chances[:, a, None] * self(block, actions[:, a]) for a in range(chances.shape[1]))
            parts.append(sum(each, start=np.zeros((len(block.time), 1))))
        return np.concatenate(parts)


def _raw(states: Augmented, actions: Shaped[np.ndarray, "k *a"], count: int) -> Float[np.ndarray, "k d"]:
    accrued = np.sign(states.accrued) * np.log1p(np.abs(states.accrued))
    shown = np.eye(count)[np.minimum(actions, count - 1)] if count else actions.reshape(len(accrued), -1)
    return np.column_stack([states.observations.astype(float), accrued, shown])
