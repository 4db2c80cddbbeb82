"""Fair-Taxi: the table of the default layout, and small layouts against their own mixtures of returns."""

import numpy as np
import pytest
from support.problems import drive
from support.programs import best_mixture, bsr_case

from aetdice import TabularMOMDP, bsr, enumerate_space, esr, ser, solve
from aetdice.envs import FairTaxi
from aetdice.exact import AugmentedSpace, Optimum

OBJECTIVES = {"ESR": esr(), "BSR": bsr(0.5), "SER": ser()}


@pytest.fixture(scope="module")
def space() -> AugmentedSpace:
    return enumerate_space(TabularMOMDP.from_environment(FairTaxi()))


@pytest.fixture(scope="module")
def optima(space) -> dict[str, Optimum]:
    return {name: solve(space, objective) for name, objective in OBJECTIVES.items()}


def deliveries(optimum: Optimum) -> dict[tuple[int, ...], float]:
    """The probability of every pair of deliveries."""
    taxi = FairTaxi()
    counts = optimum.outcomes.returns * taxi.scale / np.array(taxi.deliveries)
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    return {
        tuple(count): probability
        for count, probability in zip(
            counts.round().astype(int).tolist(), optimum.outcomes.probabilities, strict=True
        )
    }


def test_default_layout_has_594832_augmented_states(space):
    assert space.size == 594_832


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("ESR", {"ESR": (1.0986, 1.0986), "BSR": (-0.830, -0.784), "SER": (1.0986, 1.1394)}),
        ("BSR", {"ESR": (1.023, 1.023), "BSR": (-0.776, -0.776), "SER": (1.230, 1.230)}),
        ("SER", {"ESR": (0.099, 0.099), "BSR": (-0.876, -0.876), "SER": (1.812, 1.812)}),
    ],
)
def test_table_of_optimal_for_against_evaluated_under(optima, row, expected):
    for column, (low, high) in expected.items():
        score = optima[row].outcomes.score(OBJECTIVES[column])
        assert low - 1e-3 <= score <= high + 1e-3, (row, column, score)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_table_is_certified(optima, name):
    assert 0 <= optima[name].gap <= 1e-6
    assert optima[name].outcomes.score(OBJECTIVES[name]) == pytest.approx(optima[name].value, abs=1e-8)


def test_esr_serves_both_groups_in_every_episode(optima):
    assert set(deliveries(optima["ESR"])) <= {(3, 2), (2, 3)}


def test_bsr_mixes_both_kinds_of_episode(optima):
    assert deliveries(optima["BSR"]) == pytest.approx({(7, 0): 0.12, (2, 3): 0.88}, abs=5e-3)


def test_ser_serves_one_group_per_episode(optima):
    assert deliveries(optima["SER"]) == pytest.approx({(7, 0): 0.5, (0, 7): 0.5}, abs=1e-3)


# Scales that keep every reward and every sum exact in binary.
LAYOUTS = {
    "two-groups": FairTaxi(
        size=4,
        origins=((0, 0), (3, 3)),
        destinations=((0, 1), (3, 2)),
        start=(1, 1),
        horizon=14,
        scale=20.0,
    ),
    "three-groups": FairTaxi(
        size=4,
        origins=((0, 0), (2, 2), (0, 3)),
        destinations=((0, 1), (3, 2), (1, 2)),
        start=(1, 1),
        horizon=12,
        deliveries=(60.0, 90.0, 70.0),
        scale=10.0,
    ),
    "one-group": FairTaxi(
        size=5, origins=((0, 0),), destinations=((2, 1),), start=(4, 4), horizon=13, scale=20.0
    ),
    "shared-destination": FairTaxi(
        size=5,
        origins=((0, 0), (0, 4)),
        destinations=((0, 2), (0, 2)),
        start=(0, 2),
        horizon=14,
        deliveries=(60.0, 20.0),
        penalties=(15.0, -40.0),
        scale=10.0,
    ),
}


def sure_returns(taxi: FairTaxi) -> set[tuple[float, ...]]:
    """What sequences of actions bring, by the rules alone."""
    reached = {((*taxi.start, 0), tuple(0.0 for _ in taxi.origins))}
    for _ in range(taxi.horizon):
        following = set()
        for cab, accrued in reached:
            for action in range(6):
                after, reward = drive(taxi, cab, action)
                following.add((after, tuple(np.add(accrued, reward).tolist())))
        reached = following
    return {accrued for _, accrued in reached}


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request) -> tuple[AugmentedSpace, set[tuple[float, ...]]]:
    taxi = LAYOUTS[request.param]
    return enumerate_space(TabularMOMDP.from_environment(taxi)), sure_returns(taxi)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_small_layout_equals_the_best_mixture_of_sure_returns(layout, alpha):
    space, returns = layout
    case = bsr_case(alpha)
    optimum = solve(space, case.objective)
    assert optimum.value == pytest.approx(best_mixture(sorted(returns), case), abs=1e-6)
    assert 0 <= optimum.gap <= 1e-6


def test_small_layout_ends_in_the_returns_the_rules_allow(layout):
    space, returns = layout
    assert {tuple(row) for row in space.layers[-1].accrued.tolist()} == returns
