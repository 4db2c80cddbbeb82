"""Finite problems: exact optima, policies evaluated exactly, and data of ε-greedy planners."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from aetdice.data import Episodes
from aetdice.evaluation import Policy
from aetdice.evaluation.tabulation import tabulated
from aetdice.exact import TabularMOMDP, enumerate_space, solve
from aetdice.exact.tabular_policy import draw, recorded_episodes
from aetdice.objectives import Objective
from aetdice.studies.strangers.problem import Problem, World

EPISODES = 2_000
MOST_STATES = 2_000_000
"""Augmented states: beyond these an exact evaluation takes minutes."""
RATES = {"random": (1.0,), "mixed": (0.0, 0.1, 0.3, 1.0)}
"""By behaviour, the probabilities of a random action; each episode keeps one of them."""
PLANNERS = 8
"""Linear weights that the planners of a mixed behaviour have."""
SCOUTS = 200
"""Random episodes, by which returns are brought to one scale before they are weighed."""

Outcome = tuple[float, Any, tuple[float, ...], bool]
"""Probability, next state, reward vector, and whether the episode ends there."""
Step = Callable[[Any, int], Iterable[Outcome]]
Choose = Callable[[int, Int[np.ndarray, " n"]], Int[np.ndarray, " n"]]
"""The actions of n episodes, by time step and states."""


def finite_problem(
    name: str,
    family: str,
    objectives: Mapping[str, Objective],
    make: Callable[[], TabularMOMDP],
    facts: Mapping[str, Any],
    collect: Callable[[TabularMOMDP, int, int], Episodes] | str = "mixed",
    episodes: int = EPISODES,
) -> Problem:
    """A problem given by its table; `collect` is a behaviour's name, or what collects its data."""
    gather = functools.partial(collect_table, behaviour=collect) if isinstance(collect, str) else collect
    known = {**facts, "behaviour": collect} if isinstance(collect, str) else facts

    def world() -> World:
        space = enumerate_space(make(), MOST_STATES)

        def score(policy: Policy, objective: Objective) -> float:
            return tabulated(policy.network, space).outcomes().score(objective)

        return World(
            collect=functools.partial(gather, space.momdp),
            reference=lambda objective, _: solve(space, objective, check=False).value,
            score=score,
        )

    return Problem(name, family, objectives, episodes, known, world)


def table_of(step: Step, actions: int, start: Any, horizon: int) -> TabularMOMDP:
    """The table of rules whose states are tuples of whole numbers, which are what is observed."""
    momdp, states = TabularMOMDP.from_function(step, actions, {start: 1.0}, horizon)
    return TabularMOMDP(**{**vars(momdp), "observations": np.array(states)})


def collect_table(momdp: TabularMOMDP, episodes: int, seed: int, behaviour: str = "mixed") -> Episodes:
    """Episodes of planners for random linear weights that take random actions, each at a rate of its own."""
    rng = np.random.default_rng(seed)

    def wander(t: int, states: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        del t
        return rng.integers(momdp.actions, size=len(states))

    if RATES[behaviour] == (1.0,):
        return record(momdp, wander, episodes, rng)
    spread = record(momdp, wander, SCOUTS, rng).returns.std(axis=0)
    m = momdp.reward.shape[3]
    shares = np.concatenate([np.eye(m), rng.dirichlet(np.ones(m), max(0, PLANNERS - m))])
    plans = planners(momdp, shares / np.where(spread > 0, spread, 1.0))
    rate, planner = rng.choice(RATES[behaviour], episodes), rng.integers(len(shares), size=episodes)

    def choose(t: int, states: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        return np.where(rng.random(episodes) < rate, wander(t, states), plans[t, planner, states])

    return record(momdp, choose, episodes, rng)


def planners(
    momdp: TabularMOMDP, weights: Float[np.ndarray, "planners m"]
) -> Int[np.ndarray, "horizon planners s"]:
    """The best action of every time and state for w·E[R], by backward induction."""
    expected = np.einsum("sak,sakm,pm->psa", momdp.probability, momdp.reward, weights)
    plans = np.zeros((momdp.horizon, len(weights), momdp.states), dtype=np.int64)
    value = np.zeros((len(weights), momdp.states))
    for t in reversed(range(momdp.horizon)):
        follow = np.where(momdp.terminal, 0.0, value)[:, momdp.next_state]
        quality = expected + np.sum(momdp.probability * follow, axis=3)
        plans[t], value = quality.argmax(axis=2), quality.max(axis=2)
    return plans


def record(momdp: TabularMOMDP, choose: Choose, episodes: int, rng: np.random.Generator) -> Episodes:
    """Episodes in the table, all stepped together."""
    states = np.zeros((episodes, momdp.horizon + 1), dtype=np.int64)
    actions = np.zeros((episodes, momdp.horizon), dtype=np.int64)
    rewards = np.zeros((episodes, momdp.horizon, momdp.reward.shape[3]))
    lengths, going = np.full(episodes, momdp.horizon), np.ones(episodes, dtype=bool)
    states[:, 0] = draw(rng, np.broadcast_to(momdp.initial, (episodes, momdp.states)))
    for t in range(momdp.horizon):
        here = states[:, t]
        actions[:, t] = choose(t, here)
        pair = (here, actions[:, t])
        outcome = (*pair, draw(rng, momdp.probability[pair]))
        states[:, t + 1], rewards[:, t] = momdp.next_state[outcome], momdp.reward[outcome]
        ends = going & momdp.terminal[states[:, t + 1]]
        lengths[ends], going = t + 1, going & ~ends
    return recorded_episodes(momdp, states, actions, rewards, lengths)
