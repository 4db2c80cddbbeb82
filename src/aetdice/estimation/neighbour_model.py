"""A model of continuous data: what followed the nearest recorded steps, moved along by a local line.

Rewards often depend on where a step leads alone. Where that foretells them at least as well as state and
action do, they are those of the steps that led nearest there, whatever their action was.
"""

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.spatial import cKDTree

from aetdice.data import Episodes
from aetdice.data.successors import ending_steps, followed, frames_before
from aetdice.estimation.acting import Actor, Augmented
from aetdice.estimation.local_lines import draw_along_lines, kernel_of
from aetdice.estimation.recording import Weights
from aetdice.estimation.rollouts import Course, Rollouts, Utility

NEIGHBOURS, ARRIVALS = 10, 6
"""Steps that are looked at for how a step moves, and for what it brings."""
FAR = 3.0
"""A step is unknown if its nearest neighbour is so many median moves away, or so many times as far as
neighbours in the data are."""
SAMPLE = 4_000
"""Steps of the data whose own neighbours are looked for."""


class NeighbourModel:
    """Recorded steps of each discrete action, or of all continuous ones, by where they are."""

    def __init__(self, episodes: Episodes, horizon: int) -> None:
        self.episodes, self.horizon = episodes, horizon
        frames = episodes.observations.reshape(len(episodes.observations), -1).astype(float)
        before = frames_before(episodes)
        spread = frames.std(axis=0)
        self.spread = np.where(spread > 1e-9, spread, 1.0)
        self.state = frames[before] / self.spread
        self.arrival = frames[before + 1] / self.spread
        self.move, self.reward = self.arrival - self.state, np.asarray(episodes.rewards, float)
        self.low, self.high = self.state.min(axis=0), self.state.max(axis=0)
        self.start = self.state[episodes.starts]
        self.ends, used = ending_steps(episodes), np.flatnonzero(followed(episodes))
        self.episode = np.repeat(np.arange(len(episodes)), episodes.lengths)
        self.discrete = episodes.actions.ndim == 1 and np.issubdtype(episodes.actions.dtype, np.integer)
        if self.discrete:
            self.place = self.state
            kinds = episodes.actions[used]
            self.groups = [used[kinds == a] for a in range(int(kinds.max()) + 1)]
        else:
            actions = episodes.actions.reshape(episodes.steps, -1).astype(float)
            self.width = np.where(actions.std(axis=0) > 1e-9, actions.std(axis=0), 1.0)
            self.place = np.column_stack([self.state, actions / self.width])
            self.groups = [used]
        self.trees = [tree_of(self.place[rows]) if len(rows) else None for rows in self.groups]
        self.arrivals = tree_of(self.arrival)
        self.reach = FAR * float(np.median(np.linalg.norm(self.move, axis=1)))
        self.radius, self.pays_arrival = self._usual_distance()

    def play(self, acting: Actor, count: int, seed: int) -> Course:
        """So many episodes in the data as they are."""
        rng = np.random.default_rng(seed)
        return self.follow(acting, self.start[rng.integers(len(self.start), size=count)], seed)

    def follow(self, acting: Actor, here: Float[np.ndarray, "n d"], seed: int) -> Course:
        """An episode from each of these states."""
        weights, own = np.ones((1, len(self.episodes))), np.zeros(len(here), int)
        return self._course(acting, here, weights, own, np.random.default_rng(seed))

    def roll_out(self, acting: Actor, utility: Utility, weights: Weights, count: int, seed: int) -> Rollouts:
        """`count` episodes of the data as they are, and a few of every replicate."""
        rng, each = np.random.default_rng(seed), max(32, count // 16)
        own = np.concatenate([np.zeros(count, int), np.repeat(np.arange(1, len(weights)), each)])
        begin = np.concatenate(
            [
                rng.choice(len(self.episodes), size=count if b == 0 else each, p=row / row.sum())
                for b, row in enumerate(weights)
            ]
        )
        course = self._course(acting, self.start[begin], weights, own, rng)
        utilities = utility(course.returns)
        means = np.stack([utilities[own == b].mean(axis=0) for b in range(len(weights))])
        spread = np.atleast_2d(np.cov(utilities[own == 0], rowvar=False))
        return Rollouts(
            course=course._replace(returns=course.returns[own == 0]),
            utilities=means,
            noise=spread / count,
            replicate_noise=spread / each,
        )

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
    ) -> Course:
        """R of every rollout, and how the first replicate's went."""
        accrued = np.zeros((len(own), self.episodes.rewards.shape[1]))
        going, use = np.ones(len(own), bool), np.zeros(self.episodes.steps)
        steps = unknown = 0
        for time in range(self.horizon):
            states = Augmented(here * self.spread, accrued, np.full(len(own), time))
            action = np.asarray(acting.sample(states, rng))
            move, reward, drawn, strange = self._effects(here, action, weights, own, rng)
            first = going & (own == 0)
            steps += int(first.sum())
            unknown += int(np.sum(first & strange))
            use += np.bincount(drawn[first], minlength=len(use))
            accrued += np.where(going[:, None], reward, 0)
            here = np.clip(here + move, self.low, self.high)
            going = going & ~self.ends[drawn]
            if not going.any():
                break
        return Course(accrued, unknown / max(steps, 1), 0.0, np.bincount(self.episode, use))

    def _effects(
        self,
        here: Float[np.ndarray, "n d"],
        action: Shaped[np.ndarray, "n *a"],
        weights: Weights,
        own: Int[np.ndarray, " n"],
        rng: np.random.Generator,
    ) -> tuple[
        Float[np.ndarray, "n d"], Float[np.ndarray, "n m"], Int[np.ndarray, " n"], Bool[np.ndarray, " n"]
    ]:
        """How a step moves, what it brings, which recorded one it was drawn from; whether none is near."""
        rows, distance = self._neighbours(here, action)
        size, apart = here.shape[1], self.place[rows] - self._placed(here, action)[:, None]
        effect = np.concatenate([self.move[rows], self.reward[rows]], axis=2)
        found, chosen = draw_along_lines(apart, effect, self._kernel(distance, rows, weights, own), rng)
        move, reward, drawn = found[:, :size], found[:, size:], rows[np.arange(len(rows)), chosen]
        if self.pays_arrival:
            there = here + move
            far, near = self._arrived(there)
            kernel = self._kernel(far, near, weights, own)
            reward, _ = draw_along_lines(self.arrival[near] - there[:, None], self.reward[near], kernel, rng)
        away = np.linalg.norm(apart[:, 0, :size], axis=1)
        return move, reward, drawn, (distance[:, 0] > self.radius) | (away > self.reach)

    def _kernel(
        self,
        distance: Float[np.ndarray, "n k"],
        rows: Int[np.ndarray, "n k"],
        weights: Weights,
        own: Int[np.ndarray, " n"],
    ) -> Float[np.ndarray, "n k"]:
        """With every neighbour as often as its replicate has it; as they are if it has none of them.

        What is far counts only where nothing is near.
        """
        far = distance > np.maximum(2 * distance[:, :1], self.radius)
        kernel = kernel_of(np.where(far, np.inf, distance))
        counted = kernel * weights[own[:, None], self.episode[rows]]
        return np.where(counted.sum(axis=1, keepdims=True) > 0, counted, kernel + 1e-12)

    def _placed(
        self, here: Float[np.ndarray, "n d"], action: Shaped[np.ndarray, "n *a"]
    ) -> Float[np.ndarray, "n p"]:
        if self.discrete:
            return here
        return np.column_stack([here, action.reshape(len(here), -1) / self.width])

    def _neighbours(
        self, here: Float[np.ndarray, "n d"], action: Shaped[np.ndarray, "n *a"]
    ) -> tuple[Int[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
        """The nearest steps with the same action, or one like it, and how far they are; ∞ if none."""
        rows = np.zeros((len(here), NEIGHBOURS), int)
        distance = np.full((len(here), NEIGHBOURS), np.inf)
        place = self._placed(here, action)
        for index, (group, tree) in enumerate(zip(self.groups, self.trees, strict=True)):
            ours = np.flatnonzero(action == index) if self.discrete else np.arange(len(here))
            if not len(ours) or tree is None:
                continue
            k = min(NEIGHBOURS, len(group))
            far, near = tree.query(place[ours], k=np.arange(1, k + 1))
            rows[ours[:, None], np.arange(k)], distance[ours[:, None], np.arange(k)] = group[near], far
        return rows, distance

    def _arrived(
        self, there: Float[np.ndarray, "n d"]
    ) -> tuple[Float[np.ndarray, "n k"], Int[np.ndarray, "n k"]]:
        """How far the steps are that led nearest there, and which."""
        return self.arrivals.query(there, k=np.arange(1, min(ARRIVALS, len(self.arrival)) + 1))

    def _usual_distance(self) -> tuple[float, bool]:
        """How far is far, and whether rewards are foretold at least as well by where steps lead.

        Both are read from steps beside the nearest one of another episode: with the same action, whose
        distance has a 90 % quantile, or with the same arrival.
        """
        rows = np.random.default_rng(0).permutation(self.episodes.steps)[:SAMPLE]
        near, distance = self._neighbours(self.state[rows], self.episodes.actions[rows])
        one, apart = self._other(rows, near, distance)
        far, near = self._arrived(self.arrival[rows])
        two, further = self._other(rows, near, far)
        known = np.isfinite(apart) & np.isfinite(further)
        if not known.any():
            return 0.0, False
        misses = [np.sum((self.reward[found] - self.reward[rows])[known] ** 2) for found in (one, two)]
        return FAR * float(np.quantile(apart[known], 0.9)), bool(misses[1] <= misses[0])

    def _other(
        self, rows: Int[np.ndarray, " n"], near: Int[np.ndarray, "n k"], distance: Float[np.ndarray, "n k"]
    ) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """The nearest of another episode, and how far it is."""
        apart = np.where(self.episode[near] != self.episode[rows][:, None], distance, np.inf)
        best = apart.argmin(axis=1)
        return near[np.arange(len(near)), best], apart.min(axis=1)


def tree_of(points: Float[np.ndarray, "n d"]) -> cKDTree:
    """Split in the middle, not at the median: twice as fast where many steps are from one place."""
    return cKDTree(points, balanced_tree=False, compact_nodes=False)
