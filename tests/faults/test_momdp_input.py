"""Problems, policies and environments that cannot be: refused with a message that names the place."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from support.problems import random_tables, uniform_episodes

from aetdice import (
    Episodes,
    InputError,
    Objective,
    OfflineProblem,
    TabularMOMDP,
    enumerate_space,
    ser,
    solve,
    solve_dual,
    solve_program,
)
from aetdice.dice import Discounted, FiniteHorizon
from aetdice.envs import FairTaxi, TwoStep
from aetdice.exact import uniform_policy
from aetdice.objectives import Identity, Linear

TABLES = random_tables(0)
ARRAYS = {
    "transition": TABLES.transition,
    "reward": TABLES.reward,
    "initial": TABLES.initial,
    "horizon": 3,
    "terminal": TABLES.terminal,
}
NEXT = {"transition": np.array([[1, 2], [0, 0], [2, 1]]), "reward": np.ones((3, 2, 2))}


def changed(array: np.ndarray, place: Any, value: Any) -> np.ndarray:
    copy = array.copy()
    copy[place] = value
    return copy


def refused(change: dict[str, Any], message: str, name: str):
    return pytest.param(change, message, id=name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        refused(
            {"transition": changed(TABLES.transition, (0, 1), [0.5, 0.4, 0.0])},
            r"the probabilities of state 0, action 1 sum to 0\.9, not to 1",
            "probabilities-sum-to-less",
        ),
        refused(
            {"transition": changed(TABLES.transition, (2, 0), [0.5, 0.5, 0.5])},
            r"the probabilities of state 2, action 0 sum to 1\.5, not to 1",
            "probabilities-sum-to-more",
        ),
        refused(
            {"transition": changed(TABLES.transition, (1, 0), [-0.5, 1.5, 0.0])},
            "state 1, action 0 has a negative or non-finite probability",
            "probability-negative",
        ),
        refused(
            {"transition": changed(TABLES.transition, (1, 1), [np.nan, 1.0, 0.0])},
            "state 1, action 1 has a negative or non-finite probability",
            "probability-nan",
        ),
        refused(
            {"reward": changed(NEXT["reward"], (2, 1, 1), np.nan)},
            "the reward of state 2, action 1, objective 'r1' is not finite",
            "reward-nan",
        ),
        refused(
            {"reward": changed(NEXT["reward"], (0, 1, 0), -np.inf), "objectives": ("gain", "cost")},
            "the reward of state 0, action 1, objective 'gain' is not finite",
            "reward-infinite",
        ),
        refused({"horizon": 0}, "the horizon must be at least 1, not 0", "horizon-0"),
        refused({"horizon": -3}, "the horizon must be at least 1, not -3", "horizon-negative"),
        refused(
            {"transition": TABLES.transition[:, :, :2]},
            r"transition must be probabilities of shape \(states, actions, states\).*\(3, 2, 2\)",
            "transition-not-square",
        ),
        refused(
            {"transition": TABLES.transition[:, 0]},
            r"transition must be .* not float64 of shape \(3, 3\)",
            "transition-floats-without-actions",
        ),
        refused({"transition": np.zeros(3)}, r"transition must be .* of shape \(3,\)", "transition-flat"),
        refused(
            {"reward": TABLES.reward[:, :, 0, 0]},
            r"reward must have shape \(3, 2, objectives\) or \(3, 2, 3, objectives\), not \(3, 2\)",
            "reward-without-objectives",
        ),
        refused(
            {"reward": TABLES.reward[:, :1]}, r"reward must have shape .*, not \(3, 1, 3, 2\)", "reward-short"
        ),
        refused({"reward": np.zeros((3, 2, 0))}, "0 reward columns need as many", "reward-empty"),
        refused({"objectives": ("one",)}, "2 reward columns need as many objective names", "names-missing"),
        refused({"initial": np.array([1.0, 0.0])}, "one entry for each of the 3 states", "initial-short"),
        refused({"initial": np.eye(3)}, "one entry for each of the 3 states", "initial-square"),
        refused(
            {"initial": np.array([0.5, 0.2, 0.0])},
            r"the initial probabilities sum to 0\.7, not to 1",
            "initial-sums-to-less",
        ),
        refused(
            {"initial": np.array([1.5, -0.5, 0.0])},
            "the initial probabilities .* are negative",
            "initial-negative",
        ),
        refused({"initial": np.array([np.nan, 1.0, 0.0])}, "the initial probabilities", "initial-nan"),
        refused({"initial": np.array(3)}, "the initial state 3 is not one of the 3 states", "initial-beyond"),
        refused({"initial": np.array(-1)}, "the initial state -1 is not one of", "initial-before"),
        refused({"initial": np.array(0.5)}, r"initial state 0\.5", "initial-between-two-states"),
        refused(
            {"terminal": np.array([False, True, True])},
            "state 1 is both initial and terminal",
            "initial-is-terminal",
        ),
        refused({"terminal": np.array([False, True])}, "one entry for each of the 3", "terminal-short"),
        refused(
            {**NEXT, "transition": np.array([[1, 2], [0, 3], [2, 1]])},
            "state 1, action 1 leads to 3, which is not a state",
            "next-state-beyond",
        ),
        refused(
            {**NEXT, "transition": np.array([[-1, 2], [0, 0], [2, 1]])},
            "state 0, action 0 leads to -1, which is not a state",
            "next-state-before",
        ),
        refused(
            {"transition": np.zeros((3, 0), dtype=int), "reward": np.zeros((3, 0, 2))},
            "at least one action",
            "no-actions",
        ),
    ],
)
def test_arrays_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        TabularMOMDP.from_arrays(**{**ARRAYS, **change})


def go(state, action):
    return [(0.5, state, (1.0, 0.0), False), (0.5, state + 1, (0.0, 1.0), False)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        refused(
            {"step": lambda s, a: [(1.0, s + 1, (1.0,) * (1 + s), False)]},
            r"reward vectors of different lengths: \[1, 2\]",
            "ragged-rewards",
        ),
        refused(
            {"step": lambda s, a: [(0.5, s, (1.0,), False)]},
            r"the probabilities of state 0, action 0 sum to 0\.5, not to 1",
            "half-an-outcome",
        ),
        refused(
            {"step": lambda s, a: [(1.0, s, (np.nan,), False)]},
            "the reward of state 0, action 0, objective 'r0' is not finite",
            "reward-nan",
        ),
        refused({"step": lambda s, a: []}, "no outcome", "no-outcome-at-all"),
        refused({"step": lambda s, a: go(s, a) if a == 0 else []}, "no outcome", "no-outcome-of-one-action"),
        refused({"initial": {0: 0.5}}, r"the initial probabilities sum to 0\.5", "initial-sums-to-less"),
        refused({"horizon": 0}, "the horizon must be at least 1, not 0", "horizon-0"),
        refused({"objectives": ("one",)}, "2 reward columns need as many objective names", "names-missing"),
    ],
)
def test_function_is_refused(change, message):
    arguments = {"step": go, "actions": 2, "initial": {0: 1.0}, "horizon": 2, **change}
    with pytest.raises(InputError, match=message):
        TabularMOMDP.from_function(**arguments)


def test_too_many_augmented_states_are_refused():
    with pytest.raises(InputError, match="more than 10 augmented states by step 2 of 3; shorten the horizon"):
        enumerate_space(TABLES.momdp(), max_states=10)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((0, (99.0, 0.0), 1), r"state 0 with accrued \[99.0, 0.0\] cannot be reached at time 1"),
        ((2, (0.0, 0.0), 0), r"state 2 with accrued \[0.0, 0.0\] cannot be reached at time 0"),
        ((7, (0.0, 0.0), 0), "state 7 with accrued .* cannot be reached"),
        ((0, (0.0, 0.0), 3), "time 3 is not one of 0 … 2"),
        ((0, (0.0, 0.0), -1), "time -1 is not one of 0 … 2"),
    ],
    ids=["accrued", "state", "no-such-state", "after-the-end", "before-the-start"],
)
def test_place_that_cannot_be_reached_is_refused(place, message):
    policy = uniform_policy(enumerate_space(TABLES.momdp()))
    with pytest.raises(InputError, match=message):
        policy.at(*place)


@pytest.mark.parametrize("episodes", [0, -2])
def test_rollout_of_no_episode_is_refused(episodes):
    policy = uniform_policy(enumerate_space(TABLES.momdp()))
    with pytest.raises(InputError, match=f"at least one episode is needed, not {episodes}"):
        policy.rollout(episodes, seed=0)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        refused(ser((1.0, 2.0, 3.0)), "does not fit 2 objectives", "weights-of-three"),
        refused(Objective(Identity(), lambda k: jnp.sum(k**2)), "G is not concave between k=", "convex-G"),
        refused(Objective(Identity(), jnp.min), "G is not smooth at k=", "kinked-G"),
        refused(Objective(lambda r: jnp.abs(r - 1.0), Linear()), "F is not smooth at R=", "kinked-F"),
        refused(Objective(jnp.log, Linear()), "F has no finite value at R=", "log-of-negative-returns"),
        refused(Objective(jnp.outer, Linear()), "does not fit 2 objectives", "F-of-two-arguments"),
    ],
)
def test_objective_is_refused(objective, message):
    with pytest.raises(InputError, match=message):
        solve(TABLES.momdp(), objective)


@pytest.fixture(scope="module")
def episodes() -> Episodes:
    return uniform_episodes(TABLES.momdp(), 20, seed=0)


@pytest.mark.parametrize("solver", [solve_dual, solve_program])
@pytest.mark.parametrize("beta", [0.0, -1.0, np.nan, np.inf])
def test_beta_that_is_not_positive_is_refused(episodes, solver, beta):
    problem = OfflineProblem.from_episodes(episodes, ser())
    with pytest.raises(InputError, match=f"beta must be positive, not {beta}"):
        solver(problem, beta)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        refused(lambda actions: actions.astype(float), "tables need discrete actions", "continuous"),
        refused(lambda actions: actions[:, None], "tables need discrete actions", "vectors"),
        refused(lambda actions: actions - 1, "actions must be numbered from 0", "negative"),
    ],
)
def test_actions_without_a_table_are_refused(episodes, change, message):
    with pytest.raises(InputError, match=message):
        OfflineProblem.from_episodes(dataclasses.replace(episodes, actions=change(episodes.actions)), ser())


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        refused(FiniteHorizon(5), "no recorded course of actions leads .* to an end", "all-cut-off"),
        refused(FiniteHorizon(2), "episode 0 has 3 steps, more than the horizon of 2", "horizon-too-short"),
        refused(FiniteHorizon(0), "the horizon must be at least 1, not 0", "horizon-0"),
    ],
)
def test_flow_that_the_episodes_do_not_fit_is_refused(episodes, flow, message):
    with pytest.raises(InputError, match=message):
        OfflineProblem.from_episodes(episodes, ser(), flow=flow)


@pytest.mark.parametrize("gamma", [1.0, 1.5, -0.1, np.nan])
def test_discount_outside_0_to_1_is_refused(episodes, gamma):
    with pytest.raises(InputError, match="gamma"):
        OfflineProblem.from_episodes(episodes, ser(), flow=Discounted(gamma))


def test_program_without_a_known_form_names_the_way_out(episodes):
    problem = OfflineProblem.from_episodes(episodes, Objective(Identity(), lambda k: -jnp.sum(k**2)))
    with pytest.raises(
        InputError, match=r"no convex-program form is known .* solve_dual takes any concave G"
    ):
        solve_program(problem, 0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        refused({"size": 0}, "size must be at least 1, not 0", "size-0"),
        refused({"horizon": 0}, "the horizon must be at least 1, not 0", "horizon-0"),
        refused(
            {"origins": ((0, 0), (8, 9))},
            r"the origin 8,9 lies outside the 9x9 grid \(rows and columns 0 to 8\)",
            "origin-outside",
        ),
        refused(
            {"destinations": ((0, -2), (8, 6))}, "the destination 0,-2 lies outside", "destination-outside"
        ),
        refused({"start": (9, 0)}, "the start 9,0 lies outside the 9x9 grid", "start-outside"),
        refused({"origins": ((1, 1), (1, 1))}, "two groups share an origin", "origins-equal"),
        refused(
            {"destinations": ((0, 2),)}, "2 origins need as many destinations, not 1", "destinations-few"
        ),
        refused(
            {"origins": (), "destinations": ()}, "0 origins need as many destinations, not 0", "no-groups"
        ),
        refused(
            {"deliveries": (np.nan, 1.0)},
            "deliveries needs 2 finite numbers, one per group, not",
            "delivery-nan",
        ),
        refused({"penalties": (-1.0,)}, "penalties needs 2 finite numbers", "penalties-few"),
        refused({"penalties": (-np.inf, 0.0)}, "penalties needs 2 finite numbers", "penalty-infinite"),
        refused({"scale": 0.0}, r"scale must be positive, not 0\.0", "scale-0"),
        refused({"scale": np.inf}, "scale must be positive, not inf", "scale-infinite"),
    ],
)
def test_taxi_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        FairTaxi(**change)


@pytest.mark.parametrize("reward", [(np.nan, 0.0), (0.0, np.inf)])
def test_first_reward_that_is_not_finite_is_refused(reward):
    with pytest.raises(InputError, match="first_reward needs 2 finite numbers, not"):
        TwoStep(reward)
