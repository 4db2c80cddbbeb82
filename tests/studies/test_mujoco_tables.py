"""What the studies of the MuJoCo bodies score, against numbers worked out by hand."""

import math
from pathlib import Path

import numpy as np
import pytest
from support.behaviours import tiny_behaviour

from aetdice.data import Episode, Episodes, transform_episodes
from aetdice.data.transforms import Chain, MinMax, SpeedAndEffort, WithoutBonus
from aetdice.envs.mujoco import BatchedBody
from aetdice.envs.mujoco.recorder import STRIDE, RecordedBody
from aetdice.envs.transformed import TransformedBatch
from aetdice.objectives import in_float64, lsr
from aetdice.studies import STUDIES, mujoco
from aetdice.studies.mujoco_rollouts import SEED, act_returns, behaviours_of, directions
from aetdice.studies.paper import CONVEX, CONVEX_BODIES, EFFICIENCY

E = math.e
BODIES = ("ant", "walker2d", "cobb-douglas")


def convex(scale=(1.0, 1.0)):
    return mujoco.convex_table(mujoco.Source("ant", "expert", mujoco.QUICK, 500), scale)


def efficiency(body: str, bonus: bool, quality: str = "expert"):
    return mujoco.efficiency_table(mujoco.Source(body, quality, mujoco.QUICK, 500), bonus)


def transform_of(table, episodes: Episodes, monkeypatch):
    """How a table reshapes rewards, given a reference."""
    monkeypatch.setattr(mujoco, "stored_episodes", lambda *_: episodes)
    return table.dataset(Path()).transform


def score(objective, *returns) -> float:
    return float(in_float64(objective)(np.array(returns, dtype=float)))


def episodes_of(*rewards) -> Episodes:
    """Episodes of two steps at the height 1.4 and the angle .5."""
    frames = np.tile([1.4, 0.5] + [0.0] * 15, (3, 1))
    found = [Episode(frames, np.zeros((2, 6)), np.array(each, dtype=float), False, True) for each in rewards]
    return Episodes.from_list(found, ("speed", "energy"))


def test_columns_of_convex_utilities():
    columns = convex().columns
    assert tuple(columns) == CONVEX
    returns = ([50.0, 100.0], [0.0, 50.0])  # F: (e, e²) and (1, e)
    k = ((E + 1) / 2, (E**2 + E) / 2)
    assert score(columns["w=[1, 0]"], *returns) == pytest.approx(k[0])
    assert score(columns["w=[0.5, 0.5]"], *returns) == pytest.approx((k[0] + k[1]) / 2)
    assert score(columns["w=[0, 1]"], *returns) == pytest.approx(k[1])
    assert score(columns["G, F"], *returns) == pytest.approx(math.log(k[0]) + math.log(k[1]))


def test_normalisation_of_convex_utilities(monkeypatch):
    reference = episodes_of([[1, 2], [3, 4]], [[5, 6], [2, 3]])  # lows 1 and 2, highs 5 and 6
    transform = transform_of(convex((2.0, 1.0)), reference, monkeypatch)
    assert transform == MinMax((1.0, 2.0), (5.0, 6.0), (2.0, 1.0))
    np.testing.assert_allclose(
        transform_episodes(reference, transform).returns, [[0 + 1, 0 + 0.5], [2 + 0.5, 1 + 0.25]]
    )


def test_columns_of_efficiency():
    cheetah = efficiency("halfcheetah", True).columns
    assert list(cheetah) == ["CD(0.1)", "CD(0.5)"]
    assert score(cheetah["CD(0.5)"], [100.0, 25.0], [900.0, 100.0]) == pytest.approx(2.5, rel=1e-4)
    assert score(cheetah["CD(0.1)"], [100.0, 25.0]) == pytest.approx(100**0.1 / 25**0.9, rel=1e-4)
    assert score(cheetah["CD(0.5)"], [500.0, 1.0]) == pytest.approx(math.sqrt(500), rel=1e-3)  # stands still
    walker = efficiency("walker2d", True).columns
    assert list(walker) == ["CD(0.1)", "CD(0.5)", "safe-CD(0.1)", "safe-CD(0.5)"]
    returns = [100.0, 25.0, 600.0]
    assert score(walker["CD(0.5)"], returns) == pytest.approx(2, rel=1e-4)
    margin = math.log((600 - 0.8 * 500) / 500)
    assert score(walker["safe-CD(0.5)"], returns) == pytest.approx(math.log(0.2 * 2) + margin, rel=1e-4)
    efficient = math.log(10 * 100**0.1 / 25**0.9)
    assert score(walker["safe-CD(0.1)"], returns) == pytest.approx(efficient + margin, rel=1e-4)


def test_reshaping_for_efficiency(monkeypatch):
    raw = episodes_of([[3.0, 4.5], [2.0, 5.0]])
    safety = 2 * (1 + 1 - 2 * 0.5**2)  # two steps at the height 1.4 and the angle .5
    paper, distance = (
        transform_of(efficiency("walker2d", bonus), raw, monkeypatch) for bonus in (True, False)
    )
    np.testing.assert_allclose(transform_episodes(raw, paper).returns, [[5.0, 0.5, safety]])
    np.testing.assert_allclose(transform_episodes(raw, distance).returns, [[3.0, 0.5, safety]])
    assert transform_episodes(raw, distance).objectives == ("speed", "effort", "safety")
    cheetah = transform_of(efficiency("halfcheetah", False), raw, monkeypatch)
    assert cheetah == Chain((WithoutBonus((1.0, 0.0)), SpeedAndEffort()))


def test_linear_objectives_are_trained_in_units_of_the_data():
    returns = np.array([[100.0, 25.0, 7.0], [900.0, 100.0, 8.0]])
    trained = mujoco.in_units_of_data(mujoco.cobb_douglas(0.5, 0.1), returns)
    assert score(trained, *returns) == pytest.approx(1)
    assert trained.short_name == mujoco.cobb_douglas(0.5).short_name
    assert score(mujoco.in_units_of_data(lsr(np.array([0.5, 0.5])), returns[:, :2]), *returns[:, :2]) == 1
    assert mujoco.in_units_of_data(mujoco.CONCAVE, returns[:, :2]) is mujoco.CONCAVE


def test_behaviours_of_ants():
    ends = np.array([[9.0, 1.0], [9.0, -5.0], [1.0, 9.0], [-5.0, 9.0], [5.0, 4.0], [-3.0, 1.0], [0.0, 0.0]])
    assert behaviours_of(ends) == ["A", "A", "B", "B", "C", "other", "other"]
    assert directions(ends[:4]) == {"A": 0.5, "B": 0.5, "C": 0.0, "other": 0.0}


def test_a_recorder_remembers_lengths_and_paths():
    """Random actions, under which some walkers fall and then earn nothing, against plain stepping."""
    policy, horizon = tiny_behaviour("walker2d", scale=5.0), 60
    transform = MinMax((-1.0, -1.0), (9.0, 9.0), (1.0, 1.0))  # a step without reward is worth .1
    env = RecordedBody("walker2d", horizon)
    found = act_returns(TransformedBatch(env, transform), lambda seen: policy.act(seen, (0.5, 0.5)))
    recording, count = env.recording, len(found)
    plain = BatchedBody("walker2d", horizon=horizon)
    seen, returns = plain.reset(count, SEED), np.zeros((count, 2))
    lengths, up = np.zeros(count, int), np.ones(count, bool)
    heights = [plain.positions[:, 1]]
    for _ in range(horizon):
        seen, rewards, terminated = plain.step(policy.act(seen, (0.5, 0.5)))
        returns[up] += (rewards[up] + 1) / 10
        lengths += up
        up = ~terminated
        heights.append(plain.positions[:, 1])
    assert lengths.min() < horizon
    np.testing.assert_allclose(found, returns)
    np.testing.assert_array_equal(recording.lengths, lengths)
    np.testing.assert_array_equal(recording.upright, up)
    np.testing.assert_allclose(recording.ends[:, 1], heights[-1])
    for i, path in enumerate(recording.paths):
        own = np.array(heights)[[*range(0, lengths[i], STRIDE), lengths[i]], i]
        np.testing.assert_allclose(np.array(path)[:, 1], own)
    env.forget()
    env.reset(1, 0)
    assert env.recording.lengths.tolist() == [0]


# The paper's numbers, and the settings.


@pytest.mark.parametrize("study", BODIES)
def test_the_paper_s_rows_are_trained_and_its_columns_scored(study):
    for table in STUDIES[study](False).tables:
        rows = [row.name for population in table.populations for row in population.rows]
        for row, entry in table.paper.items():
            assert row in (*rows, "cloning")
            assert set(entry) <= set(table.columns)


def test_the_paper_prints_nothing_for_what_it_does_not_have():
    assert CONVEX_BODIES["ant", "expert"]["AETDICE"]["G, F"] == (13.69, 0.05)
    assert EFFICIENCY["halfcheetah"]["AETDICE CD(0.5)"] == {"CD(0.5)": (45.768, 6.580)}
    assert convex((2.0, 1.0)).paper == {}
    assert efficiency("walker2d", False).paper == {}
    assert efficiency("walker2d", True, "unstable").paper == {}


def test_settings_of_the_methods():
    table = STUDIES["cobb-douglas"](False).tables[0]
    by_name = {population.name: population for population in table.populations}
    assert list(by_name) == ["aetdice", "n-1", "n-from-data", "episodes", "esr-iql", "safe", "alone"]
    own, iql = by_name["aetdice"], by_name["esr-iql"]
    assert own.config.dual.n_step == table.horizon == 500
    assert all(population.config.reward.terminal for population in table.populations)
    values = iql.config.iql
    assert (values.steps, values.batch, values.critic_averaging) == (20_000, 1024, 0.95)
    optidice = {p.name: p for p in STUDIES["ant"](False).tables[0].populations}["optidice"]
    assert optidice.config.dual.gamma == 1 - 1 / 500
    assert not optidice.config.reward.terminal
    assert (own.evaluates, optidice.evaluates) == ("selected", "all")
