"""A model of continuous data: what followed the nearest recorded steps, moved along by a local line.

Rewards often depend on where a step leads alone, and on few of its numbers. Where these foretell them at
least as well as state and action do, they are those of the steps that led nearest there, whatever their
action was.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from aetdice.data import Episodes
from aetdice.data.successors import ending_steps, followed, frames_before
from aetdice.estimation.acting import Actor, Augmented
from aetdice.estimation.arrivals import FAR, Arrivals, nearest_of_another, tree_of
from aetdice.estimation.local_lines import draw_along_lines, kernel_of
from aetdice.estimation.recording import Weights
from aetdice.estimation.rollouts import Course, Rollouts, Utility

NEIGHBOURS = 10
"""Steps that are looked at for how a step moves."""
SAMPLE = 4_000
"""Steps of the data whose own neighbours are looked for."""


class Effects(NamedTuple):
    """What steps do, in the model's own scale."""

    move: Float[np.ndarray, "n d"]
    reward: Float[np.ndarray, "n m"]
    drawn: Int[np.ndarray, " n"]
    """The recorded steps that they were drawn from."""
    distance: Float[np.ndarray, " n"]
    """How far the nearest recorded steps are."""
    strange: Bool[np.ndarray, " n"]
    """Whether that is too far to be like them."""


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
        self.arrivals = Arrivals(self.arrival, self.reward, self.episode)
        self.reach = FAR * float(np.median(np.linalg.norm(self.move, axis=1)))
        self.radius, self.pays_arrival = self._usual_distance()

    def of(self, episodes: Episodes) -> "NeighbourModel":
        """A model of the same kind."""
        return NeighbourModel(episodes, self.horizon)

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

    def foretell(
        self, observations: Shaped[np.ndarray, "n *o"], actions: Shaped[np.ndarray, "n *a"], seed: int
    ) -> Effects:
        """What these actions do in these states."""
        weights, own = np.ones((1, len(self.episodes))), np.zeros(len(actions), int)
        return self._effects(self.scaled(observations), actions, weights, own, np.random.default_rng(seed))

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
        distances = []
        for time in range(self.horizon):
            states = Augmented(here * self.spread, accrued, np.full(len(own), time))
            action = np.asarray(acting.sample(states, rng))
            found = self._effects(here, action, weights, own, rng)
            first = going & (own == 0)
            steps += int(first.sum())
            unknown += int(np.sum(first & found.strange))
            distances.append(found.distance[first])
            use += np.bincount(found.drawn[first], minlength=len(use))
            accrued += np.where(going[:, None], found.reward, 0)
            here = np.clip(here + found.move, self.low, self.high)
            going = going & ~self.ends[found.drawn]
            if not going.any():
                break
        by_episode = np.bincount(self.episode, use)
        return Course(accrued, unknown / max(steps, 1), 0.0, by_episode, np.concatenate(distances))

    def _effects(
        self,
        here: Float[np.ndarray, "n d"],
        action: Shaped[np.ndarray, "n *a"],
        weights: Weights,
        own: Int[np.ndarray, " n"],
        rng: np.random.Generator,
    ) -> Effects:
        """What steps do in their replicates."""
        rows, distance = self._neighbours(here, action)
        size, apart = here.shape[1], self.place[rows] - self._placed(here, action)[:, None]
        effect = np.concatenate([self.move[rows], self.reward[rows]], axis=2)
        kernel = self._kernel(distance, rows, weights, own, self.radius)
        found, chosen = draw_along_lines(apart, effect, kernel, rng)
        move, reward, drawn = found[:, :size], found[:, size:], rows[np.arange(len(rows)), chosen]
        if self.pays_arrival:
            near, far, beside = self.arrivals.near(here + move)
            kernel = self._kernel(far, near, weights, own, self.arrivals.radius)
            reward, _ = draw_along_lines(beside, self.reward[near], kernel, rng)
        away = np.linalg.norm(apart[:, 0, :size], axis=1)
        strange = (distance[:, 0] > self.radius) | (away > self.reach)
        return Effects(move, reward, drawn, distance[:, 0], strange)

    def _kernel(
        self,
        distance: Float[np.ndarray, "n k"],
        rows: Int[np.ndarray, "n k"],
        weights: Weights,
        own: Int[np.ndarray, " n"],
        radius: float,
    ) -> Float[np.ndarray, "n k"]:
        """With every neighbour as often as its replicate has it; as they are if it has none of them.

        What is far counts only where nothing is near.
        """
        far = distance > np.maximum(2 * distance[:, :1], radius)
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

    def _usual_distance(self) -> tuple[float, bool]:
        """How far is far, and whether rewards are foretold at least as well by where steps lead.

        Both are read from steps beside the nearest one of another episode with the same action, whose
        distance has a 90 % quantile.
        """
        rows = np.random.default_rng(0).permutation(self.episodes.steps)[:SAMPLE]
        near, distance = self._neighbours(self.state[rows], self.episodes.actions[rows])
        found, apart = nearest_of_another(near, distance, self.episode, rows)
        known = np.isfinite(apart)
        if not known.any():
            return 0.0, False
        miss = float(((self.reward[found] - self.reward[rows])[known] ** 2).sum(axis=1).mean())
        return FAR * float(np.quantile(apart[known], 0.9)), self.arrivals.miss <= miss
