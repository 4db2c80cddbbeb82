"""The policies that come with the package: their fronts reach where they must, and their cards are true."""

import numpy as np
import pytest

from aetdice.behaviours import load_behaviour
from aetdice.behaviours.behaviour import DATA
from aetdice.behaviours.card import measure

FRONTS = {
    "ant": [(2600, 150), (1900, 1900), (200, 2600)],
    "walker2d": [(1900, 1000), (1550, 2000), (500, 2450)],
    "halfcheetah": [(2400, 1900), (2400, 2000), (490, 2480)],
}
"""The least mean returns at w0 = 1, .5 and 0."""
SHIPPED = sorted(path.stem for path in DATA.glob("*.npz"))


@pytest.mark.parametrize("name", SHIPPED)
def test_front_reaches_where_it_must(name):
    policy = load_behaviour(name)
    middle = len(policy.preferences) // 2
    np.testing.assert_allclose(policy.preferences[[0, middle, -1], 0], [1, 0.5, 0])
    assert np.all(policy.returns[[0, middle, -1]] >= FRONTS.get(name, -np.inf))
    assert policy.upright[policy.front()].mean() >= 0.95
    ends = policy.returns[[0, -1]]
    assert ends[0, 0] >= 0.95 * policy.returns[:, 0].max()
    assert ends[1, 1] >= 0.95 * policy.returns[:, 1].max()
    assert (DATA / f"{name}.npz").stat().st_size < 512 * 1024


@pytest.mark.parametrize("name", SHIPPED)
def test_card_is_true_here(name):
    policy = load_behaviour(name)
    chosen = [0, len(policy.preferences) // 2, len(policy.preferences) - 1]
    returns, _ = measure(policy, policy.preferences[chosen], episodes=4, seed=1234)
    gap = np.abs(returns - policy.returns[chosen])
    assert np.all(gap <= 0.15 * np.ptp(policy.returns, axis=0) + 1)
