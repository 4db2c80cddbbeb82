"""What the studies of the bodies score, against numbers worked out by hand."""

import math

import numpy as np
import pytest
from support.behaviours import tiny_behaviour

from aetdice.data import Episode, Episodes, transform_episodes
from aetdice.data.transforms import Chain, MinMax, SpeedAndEffort, WithoutBonus
from aetdice.envs.mujoco import BatchedBody
from aetdice.objectives import in_float64, lsr
from aetdice.studies.bodies.markdown import markdown
from aetdice.studies.bodies.measure import behaviours_of, shares
from aetdice.studies.bodies.merge import merge
from aetdice.studies.bodies.paper import CONVEX, EFFICIENCY, TABLES, paper_rows
from aetdice.studies.bodies.plan import PLANS
from aetdice.studies.bodies.scenes import Convex, Efficiency, cobb_douglas, in_units_of_data
from aetdice.studies.bodies.tables import spread, verdict
from aetdice.studies.bodies.watch import STRIDE, WatchedBody

E = math.e


def score(objective, *returns) -> float:
    return float(in_float64(objective)(np.array(returns, dtype=float)))


def walks(*rewards) -> Episodes:
    """Episodes of two steps at the height 1.4 and the angle .5."""
    frames = np.tile([1.4, 0.5] + [0.0] * 15, (3, 1))
    found = [Episode(frames, np.zeros((2, 6)), np.array(each, dtype=float), False, True) for each in rewards]
    return Episodes.from_list(found, ("speed", "energy"))


def test_columns_of_convex_utilities():
    columns = Convex("ant", "expert", (1.0, 1.0)).columns(500)
    assert tuple(columns) == CONVEX
    returns = ([50.0, 100.0], [0.0, 50.0])  # F: (e, e²) and (1, e)
    k = ((E + 1) / 2, (E**2 + E) / 2)
    assert score(columns["w=[1, 0]"], *returns) == pytest.approx(k[0])
    assert score(columns["w=[0.5, 0.5]"], *returns) == pytest.approx((k[0] + k[1]) / 2)
    assert score(columns["w=[0, 1]"], *returns) == pytest.approx(k[1])
    assert score(columns["G, F"], *returns) == pytest.approx(math.log(k[0]) + math.log(k[1]))


def test_normalisation_of_convex_utilities():
    reference = walks([[1, 2], [3, 4]], [[5, 6], [2, 3]])  # lows 1 and 2, highs 5 and 6
    transform = Convex("ant", "expert", (2.0, 1.0)).transform(reference)
    assert transform == MinMax((1.0, 2.0), (5.0, 6.0), (2.0, 1.0))
    np.testing.assert_allclose(
        transform_episodes(reference, transform).returns, [[0 + 1, 0 + 0.5], [2 + 0.5, 1 + 0.25]]
    )


def test_columns_of_efficiency():
    cheetah = Efficiency("halfcheetah", "expert", True).columns(500)
    assert list(cheetah) == ["CD(0.1)", "CD(0.5)"]
    assert score(cheetah["CD(0.5)"], [100.0, 25.0], [900.0, 100.0]) == pytest.approx(2.5, rel=1e-4)
    assert score(cheetah["CD(0.1)"], [100.0, 25.0]) == pytest.approx(100**0.1 / 25**0.9, rel=1e-4)
    assert score(cheetah["CD(0.5)"], [500.0, 1.0]) == pytest.approx(math.sqrt(500), rel=1e-3)  # stands still
    walker = Efficiency("walker2d", "expert", True).columns(500)
    assert list(walker) == ["CD(0.1)", "CD(0.5)", "safe-CD(0.1)", "safe-CD(0.5)"]
    returns = [100.0, 25.0, 600.0]
    assert score(walker["CD(0.5)"], returns) == pytest.approx(2, rel=1e-4)
    margin = math.log((600 - 0.8 * 500) / 500)
    assert score(walker["safe-CD(0.5)"], returns) == pytest.approx(math.log(0.2 * 2) + margin, rel=1e-4)
    efficiency = math.log(10 * 100**0.1 / 25**0.9)
    assert score(walker["safe-CD(0.1)"], returns) == pytest.approx(efficiency + margin, rel=1e-4)


def test_reshaping_for_efficiency():
    raw = walks([[3.0, 4.5], [2.0, 5.0]])
    safety = 2 * (1 + 1 - 2 * 0.5**2)  # two steps at the height 1.4 and the angle .5
    paper, distance = (Efficiency("walker2d", "expert", bonus).transform(raw) for bonus in (True, False))
    np.testing.assert_allclose(transform_episodes(raw, paper).returns, [[5.0, 0.5, safety]])
    np.testing.assert_allclose(transform_episodes(raw, distance).returns, [[3.0, 0.5, safety]])
    assert transform_episodes(raw, distance).objectives == ("speed", "effort", "safety")
    cheetah = Efficiency("halfcheetah", "expert", False).transform(raw)
    assert cheetah == Chain((WithoutBonus((1.0, 0.0)), SpeedAndEffort()))


def test_linear_objectives_are_trained_in_units_of_the_data():
    returns = np.array([[100.0, 25.0, 7.0], [900.0, 100.0, 8.0]])
    trained = in_units_of_data(cobb_douglas(0.5, 0.1), returns)
    assert score(trained, *returns) == pytest.approx(1)
    assert trained.short_name == cobb_douglas(0.5).short_name
    assert score(in_units_of_data(lsr(np.array([0.5, 0.5])), returns[:, :2]), *returns[:, :2]) == 1
    concave = Convex("ant", "expert", (1.0, 1.0)).columns(500)["G, F"]
    assert in_units_of_data(concave, returns[:, :2]) is concave


def test_behaviours_of_ants():
    ends = np.array([[9.0, 1.0], [9.0, -5.0], [1.0, 9.0], [-5.0, 9.0], [5.0, 4.0], [-3.0, 1.0], [0.0, 0.0]])
    assert behaviours_of(ends) == ["A", "A", "B", "B", "C", "other", "other"]
    assert shares(ends[:4]) == {"A": 0.5, "B": 0.5, "C": 0.0, "other": 0.0}


def test_a_watched_body_remembers_returns_lengths_and_ways():
    """Random actions, under which some walkers fall and then earn nothing, against plain stepping."""
    policy, horizon = tiny_behaviour("walker2d", scale=5.0), 60
    transform = MinMax((-1.0, -1.0), (9.0, 9.0), (1.0, 1.0))  # a step without reward is worth .1
    walked = WatchedBody("walker2d", transform, horizon).play_with(
        lambda seen: policy.act(seen, (0.5, 0.5)), 8
    )
    plain = BatchedBody("walker2d", horizon=horizon)
    seen, returns, lengths, up = plain.reset(8, 2026), np.zeros((8, 2)), np.zeros(8, int), np.ones(8, bool)
    heights = [plain.positions[:, 1]]
    for _ in range(horizon):
        seen, rewards, terminated = plain.step(policy.act(seen, (0.5, 0.5)))
        returns[up] += (rewards[up] + 1) / 10
        lengths += up
        up = ~terminated
        heights.append(plain.positions[:, 1])
    assert lengths.min() < horizon
    np.testing.assert_allclose(walked.returns, returns)
    np.testing.assert_array_equal(walked.lengths, lengths)
    np.testing.assert_array_equal(walked.upright, up)
    np.testing.assert_allclose(walked.ends[:, 1], heights[-1])
    for i, way in enumerate(walked.ways):
        own = np.array(heights)[[*range(0, lengths[i], STRIDE), lengths[i]], i]
        np.testing.assert_allclose(np.array(way)[:, 1], own)


# The paper's figures, and words.


def test_the_paper_s_rows_are_trained_and_its_columns_scored():
    for full, _ in PLANS.values():
        for scene in full.scenes:
            rows = [row for each in scene.populations(500) for row in each.rows]
            for row, entry in paper_rows(scene).items():
                assert row in (*rows, "cloning")
                assert set(entry) <= set(scene.columns(500))
    assert TABLES["ant", "expert"]["AETDICE"]["G, F"] == (13.69, 0.05)
    assert EFFICIENCY["halfcheetah"]["AETDICE CD(0.5)"] == {"CD(0.5)": (45.768, 6.580)}
    assert paper_rows(Convex("ant", "expert", (2.0, 1.0))) == {}
    assert paper_rows(Efficiency("walker2d", "expert", False)) == {}
    assert paper_rows(Efficiency("walker2d", "unstable", True)) == {}


def made_up(values) -> list[dict]:
    """Seeds that score the values under everything."""
    names = (*CONVEX, "trained")
    return [
        {
            "seed": i,
            "scores": {n: {"value": value, "low": value - 0.1, "high": value + 0.1} for n in names},
            "mean_returns": [1.0, 2.0],
            "upright": 1.0,
            "shares": {"A": 0.5, "B": 0.5, "C": 0.0, "other": 0.0},
        }
        for i, value in enumerate(values)
    ]


def made_up_parts(name: str, row: str, values) -> dict:
    """A training with two settings, and the walks of the second."""
    diagnosed = {"seeds": [{"seed": 0, "diagnostics": {"flow_violation": 0.1}}]}
    settings = [{"params": {"algorithm": name, "beta": beta}, **diagnosed} for beta in (1.0, 0.1)]
    trained = {"settings": settings, "selected": 1, "rule": "the rule"}
    walked = {"setting": 1, "seeds": made_up(values), "scores": {"1": float(np.mean(values))}}
    return {
        f"expert-1-1-{name}": {"objectives": ["x-speed", "y-speed"], "rows": {row: trained}},
        f"expert-1-1-{name}-walks": {"rows": {row: walked}, "twins": made_up([1.0, 1.5])},
    }


def test_spread_is_over_seeds_and_leads_are_counted_in_it():
    scene = Convex("ant", "expert", (1.0, 1.0))
    other = made_up_parts("optidice", "Lin-[1, 0]", [1.0, 2.0])
    results = made_up_parts("aetdice", "AETDICE", [3.0, 5.0]) | other
    merged = merge(results, scene, 500)
    assert list(merged["rows"]) == ["AETDICE", "Lin-[1, 0]", "cloning", "cloning, state only"]
    row = merged["rows"]["AETDICE"]
    found = row["scores"]["G, F"]
    assert (found["mean"], found["sd"]) == pytest.approx((4.0, math.sqrt(2)))
    assert row["params"] == {"beta": 0.1}
    assert [(s["score"], s["selected"]) for s in row["settings"]] == [(None, False), (4.0, True)]
    assert "G, F: AETDICE leads Lin-[1, 0] by 2.5 (1.8 s.d.)" in str(verdict(merged))
    lines = markdown(merged).splitlines()
    assert lines[0].startswith("| ant, expert, c = (1, 1) | w=[1, 0] | ")
    assert "| **4.00 ± 1.41** (13.69) |" in next(line for line in lines if line.startswith("| AETDICE |"))
    assert "| 1.50 ± " in next(line for line in lines if line.startswith("| Lin-[1, 0] |"))
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
    del results["expert-1-1-aetdice-walks"]
    assert "AETDICE" not in merge(results, scene, 500)["rows"]


def test_spreads_are_shown_to_the_place_of_their_means():
    assert spread({"mean": 1089.56, "sd": 27.6}) == "1090 ± 28"
    assert spread({"mean": 6190679.0, "sd": 299593.0}) == "(6.19 ± 0.30)e6"
    assert spread({"mean": 123456.0, "sd": None}) == "1.23e5"
    assert spread({"mean": 0.0512, "sd": None}) == "0.051"
