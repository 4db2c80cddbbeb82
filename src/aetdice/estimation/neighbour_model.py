"""A model of continuous data: what followed the nearest recorded steps, moved along by a local line.

s' and r are those of a neighbour drawn at random, plus the slope of a weighted regression over the
neighbours times how far it is away: exact where transitions are linear, and as noisy as the data.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.spatial import cKDTree

from aetdice.data.successors import frames_before
from aetdice.estimation.acting import Actor, Augmented
from aetdice.estimation.recording import Recording, Weights
from aetdice.estimation.rollouts import Rollouts, effective_number

NEIGHBOURS = 12
RIDGE = 1e-2
FAR = 3.0
"""A step is unknown if its nearest neighbour is so many times as far as neighbours in the data are."""
SAMPLE = 4_000
"""Steps of the data whose own neighbours are looked for."""


class Course(NamedTuple):
    """How rollouts went."""

    steps: int
    unknown: int
    use: Float[np.ndarray, " steps"]
    """Of every recorded step."""


class NeighbourModel:
    """Recorded steps of each discrete action, or of all continuous ones, by where they are."""

    def __init__(self, recording: Recording) -> None:
        data, self.recording = recording.episodes, recording
        frames = data.observations.reshape(len(data.observations), -1).astype(float)
        before = frames_before(data)
        spread = frames.std(axis=0)
        self.spread = np.where(spread > 1e-9, spread, 1.0)
        self.state = frames[before] / self.spread
        self.effect = np.column_stack([frames[before + 1] / self.spread - self.state, data.rewards])
        self.low, self.high = self.state.min(axis=0), self.state.max(axis=0)
        self.start = self.state[data.starts]
        self.ends, used = recording.ends, recording.followed
        self.discrete = data.actions.ndim == 1 and np.issubdtype(data.actions.dtype, np.integer)
        if self.discrete:
            self.place = self.state
            groups = [used[data.actions[used] == a] for a in range(int(data.actions.max()) + 1)]
        else:
            actions = data.actions.reshape(data.steps, -1).astype(float)
            width = np.where(actions.std(axis=0) > 1e-9, actions.std(axis=0), 1.0)
            self.width, self.place = width, np.column_stack([self.state, actions / width])
            groups = [used]
        self.groups = groups
        self.trees = [cKDTree(self.place[rows]) if len(rows) else None for rows in groups]
        self.radius = FAR * self._usual_distance()

    def roll_out(self, acting: Actor, weights: Weights, count: int, seed: int) -> Rollouts:
        """`count` episodes of the data as it is, and an eighth of that of every replicate."""
        rng, data = np.random.default_rng(seed), self.recording.episodes
        each = max(64, count // 8)
        own = np.concatenate([np.zeros(count, int), np.repeat(np.arange(1, len(weights)), each)])
        begin = np.concatenate(
            [
                rng.choice(len(data), size=count if b == 0 else each, p=row / row.sum())
                for b, row in enumerate(weights)
            ]
        )
        accrued, course = self._course(acting, self.start[begin], weights, own, rng)
        utilities = self.recording.utilities_of(accrued)
        means = np.stack([utilities[own == b].mean(axis=0) for b in range(len(weights))])
        spread = np.atleast_2d(np.cov(utilities[own == 0], rowvar=False))
        return Rollouts(
            returns=accrued[own == 0],
            utilities=means,
            noise=spread / count,
            replicate_noise=spread / each,
            unknown=course.unknown / max(course.steps, 1),
            thin=0.0,
            effective_episodes=effective_number(np.bincount(self.recording.episode, course.use)),
        )

    def follow(self, acting: Actor, here: Float[np.ndarray, "n d"], seed: int) -> Float[np.ndarray, "n m"]:
        """R of an episode from each of these states."""
        weights = np.ones((1, self.recording.count))
        own = np.zeros(len(here), int)
        return self._course(acting, here, weights, own, np.random.default_rng(seed))[0]

    def scaled(self, observations: Shaped[np.ndarray, "n *o"]) -> Float[np.ndarray, "n d"]:
        """As states are measured here."""
        return observations.reshape(len(observations), -1).astype(float) / self.spread

    def _course(
        self,
        acting: Actor,
        here: Float[np.ndarray, "n d"],
        weights: Weights,
        own: Int[np.ndarray, " n"],
        rng: np.random.Generator,
    ) -> tuple[Float[np.ndarray, "n m"], "Course"]:
        """R of every rollout, and how the first replicate's went."""
        data, size = self.recording.episodes, self.state.shape[1]
        accrued = np.zeros((len(own), data.rewards.shape[1]))
        going, use = np.ones(len(own), bool), np.zeros(data.steps)
        steps = unknown = 0
        for time in range(self.recording.horizon):
            states = Augmented(here * self.spread, accrued, np.full(len(own), time))
            action = acting.sample(states, rng)
            rows, distance = self._neighbours(here, np.asarray(action))
            effect, drawn = self._effects(here, action, rows, distance, weights, own, rng)
            first = going & (own == 0)
            steps += int(first.sum())
            unknown += int(np.sum(first & (distance[:, 0] > self.radius)))
            use += np.bincount(drawn[first], minlength=len(use))
            accrued += np.where(going[:, None], effect[:, size:], 0)
            here = np.clip(here + effect[:, :size], self.low, self.high)
            going = going & ~self.ends[drawn]
            if not going.any():
                break
        return accrued, Course(steps, unknown, use)

    def _neighbours(
        self, here: Float[np.ndarray, "n d"], action: Shaped[np.ndarray, "n *a"]
    ) -> tuple[Int[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
        rows = np.zeros((len(here), NEIGHBOURS), int)
        distance = np.full((len(here), NEIGHBOURS), np.inf)
        for index, (group, tree) in enumerate(zip(self.groups, self.trees, strict=True)):
            ours = np.flatnonzero(action == index) if self.discrete else np.arange(len(here))
            if not len(ours) or tree is None:
                continue
            place = here[ours] if self.discrete else np.column_stack([here, action / self.width])
            k = min(NEIGHBOURS, len(group))
            far, near = tree.query(place, k=np.arange(1, k + 1), workers=-1)
            rows[ours[:, None], np.arange(k)], distance[ours[:, None], np.arange(k)] = group[near], far
        return rows, distance

    def _effects(
        self,
        here: Float[np.ndarray, "n d"],
        action: Shaped[np.ndarray, "n *a"],
        rows: Int[np.ndarray, "n k"],
        distance: Float[np.ndarray, "n k"],
        weights: Weights,
        own: Int[np.ndarray, " n"],
        rng: np.random.Generator,
    ) -> tuple[Float[np.ndarray, "n e"], Int[np.ndarray, " n"]]:
        """What a neighbour's step did, corrected for its distance; and which neighbour it was."""
        reach = np.where(np.isfinite(distance), distance, 0).max(axis=1, keepdims=True) + 1e-12
        kernel = np.where(np.isfinite(distance), (1 - (distance / reach) ** 3).clip(1e-3) ** 3, 0)
        counted = kernel * weights[own[:, None], self.recording.episode[rows]]
        kernel = np.where(counted.sum(axis=1, keepdims=True) > 0, counted, kernel + 1e-12)
        kernel /= kernel.sum(axis=1, keepdims=True)
        place = here if self.discrete else np.column_stack([here, action / self.width])
        apart, effect = self.place[rows] - place[:, None], self.effect[rows]
        middle = np.einsum("nk,nkd->nd", kernel, apart)
        centred = (apart - middle[:, None]) * kernel[..., None]
        gram = np.einsum("nkd,nke->nde", centred, apart - middle[:, None])
        size = np.einsum("ndd->n", gram) + 1e-12
        gram += (RIDGE * size)[:, None, None] * np.eye(gram.shape[1])
        slope = np.linalg.solve(gram, np.einsum("nkd,nke->nde", centred, effect))
        chosen = np.argmax(np.cumsum(kernel, axis=1) > rng.random(len(here))[:, None], axis=1)
        each = np.arange(len(here))
        moved = effect[each, chosen] - np.einsum("nd,nde->ne", apart[each, chosen], slope)
        return np.clip(moved, effect.min(axis=1), effect.max(axis=1)), rows[each, chosen]

    def _usual_distance(self) -> float:
        """The 90 % quantile of how far the nearest step of another episode with the same action is."""
        data = self.recording.episodes
        rows = np.random.default_rng(0).permutation(data.steps)[:SAMPLE]
        action = data.actions[rows]
        near, distance = self._neighbours(self.state[rows], action)
        other: Bool[np.ndarray, "n k"] = self.recording.episode[near] != self.recording.episode[rows][:, None]
        found = np.where(other & np.isfinite(distance), distance, np.inf).min(axis=1)
        found = found[np.isfinite(found)]
        return float(np.quantile(found, 0.9)) if len(found) else 0.0
