"""Policies on an augmented space: evaluated exactly, or rolled out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from aetdice.data import Episodes
from aetdice.errors import InputError
from aetdice.exact.augmented import AugmentedSpace
from aetdice.exact.grouping import number_vectors
from aetdice.exact.momdp import TabularMOMDP
from aetdice.objectives import Objective, Utility, in_float64

Visits = list[Float[np.ndarray, "_"]]


@dataclass(frozen=True, eq=False)
class ReturnDistribution:
    """The exact distribution of the return vector."""

    returns: Float[np.ndarray, "outcomes m"]
    probabilities: Float[np.ndarray, " outcomes"]

    def score(self, objective: Objective) -> float:
        """J = G(E[F(R)]) without sampling error."""
        return float(in_float64(objective)(self.returns, self.probabilities))

    def expected_utilities(self, utility: Utility) -> Float[np.ndarray, " n"]:
        values = in_float64(eqx.filter_vmap(utility))(self.returns)
        return self.probabilities @ values

    @property
    def mean(self) -> Float[np.ndarray, " m"]:
        return self.probabilities @ self.returns

    def probability(self, behaviour: Callable[[Float[np.ndarray, " m"]], bool]) -> float:
        """The probability that an episode's return vector shows a behaviour."""
        shown = np.array([bool(behaviour(row)) for row in self.returns], dtype=bool)
        return float(self.probabilities[shown].sum())


@dataclass(frozen=True, eq=False)
class TabularPolicy:
    """π(a | s, R_acc, t) for every live augmented state."""

    space: AugmentedSpace
    probabilities: Sequence[Float[np.ndarray, "_ a"]]

    def __post_init__(self) -> None:
        expected = [(layer.live.size, self.space.momdp.actions) for layer in self.space.layers[:-1]]
        if [rows.shape for rows in self.probabilities] != expected:
            raise InputError("a policy needs one row per live augmented state and one column per action")
        for time, rows in enumerate(self.probabilities):
            if np.any(rows < 0) or np.any(np.abs(rows.sum(axis=1) - 1) > 1e-6):
                raise InputError(f"the action probabilities at time {time} are negative or do not sum to 1")

    def visits(self) -> Visits:
        """The probability of every augmented state, layer by layer."""
        space, visits = self.space, [self.space.initial]
        for t, layer in enumerate(space.layers[:-1]):
            flow = (
                visits[-1][layer.live, None, None]
                * self.probabilities[t][..., None]
                * layer.probability(space.momdp)
            )
            size = space.layers[t + 1].state.size
            visits.append(np.bincount(layer.successor.ravel(), flow.ravel(), minlength=size))
        return visits

    def outcomes(self) -> ReturnDistribution:
        """The exact distribution of returns, likeliest first; equally likely ones in their own order."""
        pieces = [
            (layer.accrued[layer.final], visited[layer.final])
            for layer, visited in zip(self.space.layers, self.visits(), strict=True)
        ]
        returns = np.concatenate([accrued for accrued, _ in pieces])
        mass = np.concatenate([visited for _, visited in pieces])
        returns, mass = returns[mass > 0], mass[mass > 0]
        first, group = number_vectors(np.zeros(mass.size, dtype=np.int64), returns)
        probabilities = np.bincount(group, mass)
        distinct = returns[first]
        order = np.lexsort((*distinct.T[::-1], -probabilities.round(9)))
        return ReturnDistribution(distinct[order], probabilities[order])

    def at(self, state: int, accrued: Sequence[float], time: int) -> Float[np.ndarray, " a"]:
        """The action probabilities in one augmented state."""
        if not 0 <= time < len(self.probabilities):
            raise InputError(f"time {time} is not one of 0 … {len(self.probabilities) - 1}")
        layer = self.space.layers[time]
        near = np.all(np.abs(layer.accrued - np.asarray(accrued)) < 1e-6, axis=1)
        found = np.flatnonzero((layer.state == state) & near & ~layer.final)
        if not found.size:
            raise InputError(f"state {state} with accrued {list(accrued)} cannot be reached at time {time}")
        return self.probabilities[time][np.searchsorted(layer.live, found[0])]

    def rollout(self, episodes: int, seed: int) -> Episodes:
        """Sampled episodes, all stepped together."""
        if episodes < 1:
            raise InputError(f"at least one episode is needed, not {episodes}")
        rng = np.random.default_rng(seed)
        momdp, space = self.space.momdp, self.space
        horizon = len(space.layers) - 1
        states = np.zeros((episodes, horizon + 1), dtype=np.int64)
        actions = np.zeros((episodes, horizon), dtype=np.int64)
        rewards = np.zeros((episodes, horizon, momdp.reward.shape[3]))
        lengths = np.zeros(episodes, dtype=np.int64)
        node = draw(rng, np.broadcast_to(space.initial, (episodes, space.initial.size)))
        running = np.arange(episodes)
        for t, layer in enumerate(space.layers):
            state = layer.state[node]
            states[running, t] = state
            live = ~layer.final[node]
            running, node, state = running[live], node[live], state[live]
            if running.size == 0:
                break
            row = np.searchsorted(layer.live, node)
            action = draw(rng, self.probabilities[t][row])
            branch = draw(rng, momdp.probability[state, action])
            actions[running, t] = action
            rewards[running, t] = momdp.reward[state, action, branch]
            lengths[running] = t + 1
            node = layer.successor[row, action, branch]
        return recorded_episodes(momdp, states, actions, rewards, lengths)


def recorded_episodes(
    momdp: TabularMOMDP,
    states: Int[np.ndarray, "n frames"],
    actions: Int[np.ndarray, "n steps"],
    rewards: Float[np.ndarray, "n steps m"],
    lengths: Int[np.ndarray, " n"],
) -> Episodes:
    """What was recorded in a table, each episode up to its length."""
    episodes, horizon = actions.shape
    terminated = momdp.terminal[states[np.arange(episodes), lengths]]
    kept = np.arange(horizon) < lengths[:, None]
    return Episodes(
        observations=momdp.observations[states[np.arange(horizon + 1) <= lengths[:, None]]],
        actions=actions[kept],
        rewards=rewards[kept],
        lengths=lengths,
        terminated=terminated,
        truncated=~terminated,
        objectives=momdp.objectives,
    )


def uniform_policy(space: AugmentedSpace) -> TabularPolicy:
    """Every action equally likely everywhere."""
    actions = space.momdp.actions
    return TabularPolicy(
        space, [np.full((layer.live.size, actions), 1 / actions) for layer in space.layers[:-1]]
    )


def mixture(
    space: AugmentedSpace,
    choices: Sequence[Sequence[Int[np.ndarray, "_"]]],
    weights: Float[np.ndarray, " j"],
) -> TabularPolicy:
    """The Markov policy with the visits of a random choice among deterministic ones.

    π(a|s̃) = Σ_j λ_j d_j(s̃, a) / Σ_j λ_j d_j(s̃); where no one goes, the likeliest choice acts.
    """
    pools = [np.zeros((layer.live.size, space.momdp.actions)) for layer in space.layers[:-1]]
    for choice, weight in zip(choices, weights, strict=True):
        for t, visited in enumerate(deterministic(space, choice).visits()[:-1]):
            rows = np.arange(pools[t].shape[0])
            pools[t][rows, choice[t]] += weight * visited[space.layers[t].live]
    leading = deterministic(space, choices[int(np.argmax(weights))])
    return TabularPolicy(
        space,
        [normalised(pool, fallback) for pool, fallback in zip(pools, leading.probabilities, strict=True)],
    )


def deterministic(space: AugmentedSpace, choice: Sequence[Int[np.ndarray, "_"]]) -> TabularPolicy:
    """The policy that takes the chosen action in every live state."""
    identity = np.eye(space.momdp.actions)
    return TabularPolicy(space, [identity[actions] for actions in choice])


def normalised(
    mass: Float[np.ndarray, "rows a"], fallback: Float[np.ndarray, "rows a"]
) -> Float[np.ndarray, "rows a"]:
    """Each row as probabilities; the fallback where a row is empty."""
    total = mass.sum(axis=1, keepdims=True)
    return np.where(total > 0, mass / np.where(total > 0, total, 1), fallback)


def draw(rng: np.random.Generator, probabilities: Float[np.ndarray, "rows c"]) -> Int[np.ndarray, " rows"]:
    """One column per row, by its probability; never one of probability 0."""
    cumulative = np.cumsum(probabilities, axis=1)
    uniform = rng.random(len(cumulative))[:, None] * cumulative[:, -1:]
    return np.argmax(cumulative > uniform, axis=1)
