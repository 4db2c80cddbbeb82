"""Cases that are tables: policies with exact probabilities, J of which is exact or nearly so."""

from collections.abc import Iterable, Iterator

import numpy as np
import stochastic
from mo_gym import planned

from aetdice.data import Episodes
from aetdice.data.successors import frames_before
from aetdice.datasets import load_dataset, make_env
from aetdice.envs.environment import FiniteEnvironment
from aetdice.estimation.acting import Augmented, DiscreteActing
from aetdice.exact import (
    AugmentedSpace,
    OfflineProblem,
    TabularMOMDP,
    TabularPolicy,
    enumerate_space,
    solve,
    solve_dual,
    uniform_policy,
)
from aetdice.exact.tabular_policy import draw
from aetdice.objectives import bsr
from aetdice.studies.strangers.finite import collect_table, planners, record
from aetdice.studies.strangers.mo_gym import TABLES
from aetdice.studies.strangers.problem import fair_objectives
from estimation_cases.case import Candidate, Case, Truth, cases_of, parts

TRUTH_EPISODES = 80_000
OBJECTIVES = {"ESR": bsr(0.0), "BSR": bsr(0.5), "SER": bsr(1.0)}
PLANNED = ("fishwood", "resource-gathering", "fishwood-even")
GYM = (*PLANNED, "breakable-bottles", "deep-sea-treasure", "four-room-small")
"""As the strangers have them; the first have a planner."""
SEEDS = 5
"""Logs of each."""


def random_policy(space: AugmentedSpace, seed: int) -> TabularPolicy:
    rng = np.random.default_rng(seed)
    actions = space.momdp.actions
    rows = [rng.dirichlet(np.full(actions, 0.5), layer.live.size) for layer in space.layers[:-1]]
    return TabularPolicy(space, rows)


def blended(one: TabularPolicy, other: TabularPolicy) -> TabularPolicy:
    pairs = zip(one.probabilities, other.probabilities, strict=True)
    return TabularPolicy(one.space, [(a + b) / 2 for a, b in pairs])


def momdp_cases(numbers: Iterable[int]) -> Iterator[Case]:
    """Random stochastic problems: regularised solutions of the data, optima, random policies, mixtures."""
    for seed in numbers:
        space = enumerate_space(stochastic.problem(seed))
        behaviour = uniform_policy(space)
        label, objective = list(OBJECTIVES.items())[seed % 3]
        best = solve(space, objective)
        for episodes in (1_000, 4_000):
            divided = parts(behaviour.rollout(episodes, seed=seed), seed)
            problem = OfflineProblem.from_episodes(divided[0], objective)
            policies = {
                "behaviour": behaviour,
                "random": random_policy(space, seed),
                "learned": solve_dual(problem, beta=0.01).policy(space),
                "optimum": best.policy,
                "half optimum": blended(best.policy, behaviour),
            }
            yield from cases_of(
                "momdp",
                f"{seed}, {episodes} episodes",
                divided,
                [Candidate(name, policy, [label]) for name, policy in policies.items()],
                {label: objective},
                stochastic.HORIZON,
                Truth(space),
            )


def narrow_cases(numbers: Iterable[int]) -> Iterator[Case]:
    """Little data of a behaviour that hardly varies: much of what other policies do was never recorded."""
    for seed in numbers:
        space = enumerate_space(stochastic.problem(100 + seed))
        rng = np.random.default_rng([7, seed])
        usual = np.eye(stochastic.ACTIONS)[rng.integers(stochastic.ACTIONS, size=space.momdp.states)]
        shares = [0.98 * usual[layer.state[layer.live]] + 0.02 / 3 for layer in space.layers[:-1]]
        behaviour = TabularPolicy(space, shares)
        best = solve(space, OBJECTIVES["BSR"]).policy
        policies = {"behaviour": behaviour, "uniform": uniform_policy(space), "optimum": best}
        yield from cases_of(
            "narrow",
            f"{100 + seed}, 200 episodes",
            parts(behaviour.rollout(200, seed=seed), seed),
            [Candidate(name, policy, ["BSR"]) for name, policy in policies.items()],
            OBJECTIVES,
            stochastic.HORIZON,
            Truth(space),
        )


def cloned(momdp: TabularMOMDP, data: Episodes) -> np.ndarray:
    """How often each action was taken in every state; each as often where none was."""
    index = {tuple(row): state for state, row in enumerate(momdp.observations.tolist())}
    rows = data.observations[frames_before(data)].tolist()
    counts = np.zeros((momdp.states, momdp.actions))
    np.add.at(counts, ([index[tuple(row)] for row in rows], data.actions), 1)
    counts[counts.sum(axis=1) == 0] = 1
    return counts / counts.sum(axis=1, keepdims=True)


def gym_cases(numbers: Iterable[int]) -> Iterator[Case]:
    """MO-Gymnasium's problems, a log of each after another: cloning, half the optimum, and a planner in the
    data's frequencies or the regularised solution of the data."""
    for number in numbers:
        seed, index = divmod(number, len(GYM))
        name = GYM[index]
        table, units, behaviour = TABLES[name]
        space, objectives = enumerate_space(table.momdp()), fair_objectives(**units)
        label = list(objectives)[seed % 3]
        divided = parts(collect_table(space.momdp, 2_000, 50 + seed, behaviour), seed)
        shares = cloned(space.momdp, divided[0])
        clone = TabularPolicy(space, [shares[layer.state[layer.live]] for layer in space.layers[:-1]])
        best = solve(space, objectives[label], check=False).policy
        policies = {"twin": clone, "half optimum": blended(best, clone)}
        if name in PLANNED:
            policies["planned"] = planned(space, divided[0], objectives[label])[1]
        else:
            problem = OfflineProblem.from_episodes(divided[0], objectives[label])
            policies["learned"] = solve_dual(problem, beta=0.01).policy(space)
        yield from cases_of(
            "mo-gym",
            f"{name}, seed {seed}",
            divided,
            [Candidate(policy, each, [label]) for policy, each in policies.items()],
            {label: objectives[label]},
            table.horizon,
            Truth(space),
        )


class StatePolicy(DiscreteActing):
    """π(a | s, t) of a table; its returns are sampled there."""

    def __init__(self, momdp: TabularMOMDP, chances: np.ndarray) -> None:
        self.momdp, self.chances = momdp, chances
        self.index = {tuple(row): state for state, row in enumerate(momdp.observations.tolist())}

    def probabilities(self, states: Augmented) -> np.ndarray:
        rows = [self.index.get(tuple(row), 0) for row in states.observations.tolist()]
        return self.chances[states.time, rows]

    def returns(self) -> np.ndarray:
        rng = np.random.default_rng(99)
        choose = lambda t, states: draw(rng, self.chances[t][states])  # noqa: E731
        return record(self.momdp, choose, TRUTH_EPISODES, rng).returns


def dispatch_cases(numbers: Iterable[int]) -> Iterator[Case]:
    """The dispatch centre's log, recorded anew: cloning, a planner for the mean, and blends of the two."""
    env = make_env("dispatch")
    assert isinstance(env, FiniteEnvironment)
    momdp = TabularMOMDP.from_environment(env)
    plan = np.eye(momdp.actions)[planners(momdp, np.ones((1, 3)))[:, 0]]
    for seed in numbers:
        divided = parts(load_dataset("dispatch", episodes=2_000, seed=50 + seed), seed)
        clone = np.broadcast_to(cloned(momdp, divided[0]), plan.shape)
        shares = {"twin": 0.0, "planner": 1.0, "half planner": 0.5, "mostly twin": 0.2}
        label = list(OBJECTIVES)[seed % 3]
        candidates = [
            Candidate(name, StatePolicy(momdp, share * plan + (1 - share) * clone), [label])
            for name, share in shares.items()
        ]
        yield from cases_of(
            "dispatch",
            f"log {seed}",
            divided,
            candidates,
            OBJECTIVES,
            momdp.horizon,
            Truth(returns=lambda policy: policy.returns()),
        )
