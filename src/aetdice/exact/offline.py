"""The regularised offline problem of a dataset, as tables.

max_{d≥0} G(F(0) + Σ d r̃) - β Σ d^D φ(d/d^D) over visitations d that obey the flow of the
dataset's own empirical model (paper: eq:aetdice_primal_main). `program` solves it as a convex
program, `dual` through the dual that AETDICE trains on.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Bool, Float, Int, Shaped

from aetdice.data import Episodes, augment
from aetdice.dice import FiniteHorizon, Flow
from aetdice.errors import InputError
from aetdice.exact.augmented import AugmentedSpace
from aetdice.exact.grouping import number_vectors
from aetdice.exact.tabular_policy import TabularPolicy, normalised
from aetdice.objectives import Divergence, Objective, check_objective, in_float64


@dataclass(frozen=True, eq=False)
class OfflineProblem:
    """A dataset grouped into augmented states (nodes) and state-action pairs.

    Pairs that may lead to a state the dataset never leaves have no feasible mass and are dropped.
    """

    objective: Objective
    flow: Flow
    node: Int[np.ndarray, " pairs"]
    action: Int[np.ndarray, " pairs"]
    mass: Float[np.ndarray, " pairs"]
    transformed_reward: Float[np.ndarray, "pairs n"]
    terminates: Float[np.ndarray, " pairs"]
    """The share of each pair's steps that terminate."""
    successor: sp.csr_array
    """(pairs, nodes): where a pair leads, with what is left of its probability."""
    initial: Float[np.ndarray, " nodes"]
    zero_utility: Float[np.ndarray, " n"]
    observation: Shaped[np.ndarray, "nodes o"]
    accrued: Float[np.ndarray, "nodes m"]
    time: Int[np.ndarray, " nodes"]
    augmented: bool

    @classmethod
    def from_episodes(
        cls,
        episodes: Episodes,
        objective: Objective,
        *,
        flow: Flow | None = None,
        augmented: bool = True,
        check: bool = True,
    ) -> "OfflineProblem":
        """Group a dataset with discrete actions.

        The default flow is finite, to the longest episode. States are told apart by time under
        a finite horizon, and by accrued reward unless `augmented` is false, which is exact for
        affine F only. A discounted flow is not augmented. `check` refuses an F that is not smooth
        and a G that is not concave on the returns at hand.
        """
        if check:
            check_objective(objective, episodes.returns)
        flow = flow or FiniteHorizon(int(episodes.lengths.max()))
        finite = isinstance(flow, FiniteHorizon)
        augmented = augmented and finite
        horizon = flow.horizon if isinstance(flow, FiniteHorizon) else int(episodes.lengths.max()) + 1
        steps = augment(episodes, objective.utility, horizon)
        if steps.actions.ndim != 1 or not np.issubdtype(steps.actions.dtype, np.integer):
            raise InputError("tables need discrete actions: one integer per step")

        count = episodes.steps
        frames = np.concatenate([steps.observations, steps.next_observations]).reshape(2 * count, -1)
        time = np.concatenate([steps.time, steps.time + 1]) if finite else np.zeros(2 * count, dtype=np.int64)
        accrued = np.concatenate([steps.accrued, steps.next_accrued])
        keys = np.concatenate([frames, accrued], axis=1) if augmented else frames
        first, node = number_vectors(time, keys.astype(np.float64))
        here, there = node[:count], node[count:]

        width = int(steps.actions.max()) + 1
        if steps.actions.min() < 0:
            raise InputError("actions must be numbered from 0")
        pairs, pair = np.unique(here * width + steps.actions, return_inverse=True)
        weights = in_float64(flow.transition_weights)(steps.weights, len(steps.weights))
        mass = np.bincount(pair, weights)
        reward = np.stack([np.bincount(pair, weights * r) for r in steps.transformed_rewards.T], axis=1)
        shape = (pairs.size, first.size)
        follows = sp.csr_array((weights * steps.bootstraps, (pair, there)), shape=shape)
        starts = np.bincount(here[steps.initial], minlength=first.size) / len(episodes)
        kept = _feasible(pairs // width, follows, starts)
        return cls(
            objective=objective,
            flow=flow,
            node=(pairs // width)[kept],
            action=(pairs % width)[kept],
            mass=mass[kept],
            transformed_reward=(reward / mass[:, None])[kept],
            terminates=(np.bincount(pair, weights * steps.terminated) / mass)[kept],
            successor=(sp.diags_array(1 / mass) @ follows).tocsr()[kept],
            initial=starts,
            zero_utility=steps.zero_utility,
            observation=frames[first],
            accrued=accrued[first],
            time=time[first],
            augmented=augmented,
        )

    @property
    def nodes(self) -> int:
        return self.initial.size

    def flow_matrix(self) -> sp.csr_array:
        """A with e = μ·r̃ + Aν: γ times the expected ν(s̃') less ν(s̃)."""
        leaving = sp.csr_array(
            (np.ones(self.node.size), (np.arange(self.node.size), self.node)), shape=self.successor.shape
        )
        return (float(self.flow.discount) * self.successor - leaving).tocsr()

    def utilities(self, ratio: Float[np.ndarray, " pairs"]) -> Float[np.ndarray, " n"]:
        """k = F(0) + Σ w d^D r̃, in return units."""
        scale = float(self.flow.reward_scale)
        return self.zero_utility + scale * (ratio * self.mass) @ self.transformed_reward

    def mass_violation(self, ratio: Float[np.ndarray, " pairs"]) -> float:
        """How far the ratios are from conserving mass at every time step."""
        ended = self.terminates
        both = np.concatenate([ratio * self.mass * (1 - ended), ratio * self.mass * ended])
        flags = np.repeat([False, True], ratio.size)
        time = np.tile(self.time[self.node], 2)
        return float(in_float64(_mass_violation)(self.flow, both, time, flags))

    def primal_value(self, ratio: Float[np.ndarray, " pairs"], beta: float, divergence: Divergence) -> float:
        """G(F(0) + Σ w d^D r̃) - β Σ d^D φ(w), for ratios that obey the flow."""
        gain = in_float64(self.objective.aggregation)(self.utilities(ratio))
        return float(gain - beta * self.mass @ in_float64(divergence)(ratio))


@dataclass(frozen=True, eq=False)
class RegularisedSolution:
    """The optimum of an `OfflineProblem`: the ratio w = d/d^D of every pair."""

    problem: OfflineProblem
    value: float
    ratio: Float[np.ndarray, " pairs"]
    slack: Float[np.ndarray, " n"]
    multiplier: Float[np.ndarray, " n"]
    nu: Float[np.ndarray, " nodes"]
    violation: float
    """How far the solution is from obeying the flow, and the slack from what is attained."""

    def policy_table(self) -> Float[np.ndarray, "nodes a"]:
        """π(a|s̃) = w d^D / Σ_a w d^D; the behaviour's own where no mass goes."""
        return _policy_table(self.problem, self.ratio)

    def policy(self, space: AugmentedSpace) -> TabularPolicy:
        """The policy on a MOMDP's augmented space; uniform where the dataset never was."""
        return _onto(self.problem, self.policy_table(), space)


def _mass_violation(flow: Flow, mass: Array, time: Array, terminated: Array) -> Array:
    return flow.mass_violation(mass, time, terminated.astype(mass.dtype))


def _feasible(
    node: Int[np.ndarray, " pairs"], follows: sp.csr_array, starts: Float[np.ndarray, " nodes"]
) -> Bool[np.ndarray, " pairs"]:
    """Drop pairs that may lead to a node that nothing leaves, until none is left."""
    kept = np.ones(node.size, dtype=bool)
    while True:
        leaves = np.zeros(starts.size, dtype=bool)
        leaves[node[kept]] = True
        dead = kept & (follows @ (~leaves).astype(np.float64) > 0)
        if not dead.any():
            break
        kept &= ~dead
    if np.any((starts > 0) & ~leaves):
        raise InputError(
            "no recorded course of actions leads from every initial state to an end: "
            "all episodes were cut off in states the dataset never leaves"
        )
    return kept


def _policy_table(
    problem: OfflineProblem, ratio: Float[np.ndarray, " pairs"]
) -> Float[np.ndarray, "nodes a"]:
    shape = (problem.nodes, int(problem.action.max()) + 1)
    chosen, logged = np.zeros(shape), np.zeros(shape)
    chosen[problem.node, problem.action] = ratio * problem.mass
    logged[problem.node, problem.action] = problem.mass
    uniform = np.full(shape, 1 / shape[1])
    return normalised(chosen, normalised(logged, uniform))


def _onto(
    problem: OfflineProblem, table: Float[np.ndarray, "nodes a"], space: AugmentedSpace
) -> TabularPolicy:
    actions = space.momdp.actions
    known = np.zeros((problem.nodes, actions))
    known[:, : table.shape[1]] = table
    probabilities = []
    for t, layer in enumerate(space.layers[:-1]):
        own = (
            np.flatnonzero(problem.time == t)
            if isinstance(problem.flow, FiniteHorizon)
            else np.arange(problem.nodes)
        )
        frames = np.concatenate([problem.observation[own], space.momdp.observations[layer.state[layer.live]]])
        accrued = np.concatenate([problem.accrued[own], layer.accrued[layer.live]])
        keys = np.concatenate([frames, accrued], axis=1) if problem.augmented else frames
        first, group = number_vectors(np.zeros(len(keys), dtype=np.int64), keys.astype(np.float64))
        # The dataset's nodes come first, so a group's representative is one of them if any is.
        source = first[group[own.size :]]
        found = source < own.size
        rows = np.full((layer.live.size, actions), 1 / actions)
        rows[found] = known[own[source[found]]]
        probabilities.append(rows)
    return TabularPolicy(space, probabilities)
