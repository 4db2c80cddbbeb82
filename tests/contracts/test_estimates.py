"""Estimates from a log: intervals, models of the transitions, support, and what a run keeps of them."""

import json

import numpy as np
import pytest
from support.every_episode import random_policy
from support.logs import COLUMNS, log_columns
from support.problems import random_tables
from support.refusals import complaint
from support.training import TINY, tiny_episodes, tiny_run

from aetdice import Episode, Episodes, InputError, bsr, enumerate_space, estimate, load_dataset, load_run
from aetdice.cli import main
from aetdice.data.successors import followed
from aetdice.estimation.acting import Augmented, DiscreteActing
from aetdice.estimation.counted_model import CountedModel
from aetdice.estimation.intervals import Interval, covariance, draws_of, improvement, interval_of
from aetdice.estimation.neighbour_model import NeighbourModel
from aetdice.estimation.recording import Recording, bootstrap_weights
from aetdice.estimation.rollouts import Course
from aetdice.estimation.support import judge_support
from aetdice.estimation.tabular_acting import TabularActing
from aetdice.exact import uniform_policy
from aetdice.objectives import Aggregation, Linear

OBJECTIVE = bsr(0.5)


class Always(DiscreteActing):
    """Does the same everywhere."""

    def __init__(self, action: int, actions: int) -> None:
        self.chances = np.eye(actions)[action]

    def probabilities(self, states: Augmented):
        return np.repeat(self.chances[None], len(states.time), axis=0)


class Cubed(Aggregation):
    """Monotone, and concave on one side only: percentiles do not mind."""

    def __call__(self, k):
        return (k**3).sum()

    name = "cube"


def test_monotone_aggregations_leave_percentiles_alone():
    draws = draws_of(np.array([2.0]), np.array([[0.04]]), 1e9)
    plain = interval_of(Linear(np.ones(1)), np.array([2.0]), draws, 0.9)
    cubed = interval_of(Cubed(), np.array([2.0]), draws, 0.9)
    np.testing.assert_allclose(np.array(cubed[:3]), np.array(plain[:3]) ** 3, rtol=1e-3)
    assert (plain.low, plain.high) == pytest.approx((2 - 0.329, 2 + 0.329), abs=0.02)


class Squared(Aggregation):
    """Concave: too small on average where k is noisy."""

    def __call__(self, k):
        return -(k**2).sum()

    name = "-square"


def test_the_bias_of_a_concave_aggregation_is_corrected():
    rng, truth, found = np.random.default_rng(0), np.full(6, 0.5), []
    for seed in range(60):
        estimated = truth + 0.3 * rng.standard_normal(6)
        found.append(interval_of(Squared(), estimated, draws_of(estimated, 0.09 * np.eye(6), 1e9, seed), 0.9))
    plain = float(np.sum(truth**2) + 6 * 0.09)
    middle = float(np.median([each.value for each in found]))
    assert abs(middle + np.sum(truth**2)) < abs(middle + plain)


def test_noise_of_rollouts_is_taken_out_of_the_replicates_and_a_second_component_widens():
    replicates = np.random.default_rng(0).standard_normal((4_000, 1))
    assert covariance(replicates, np.zeros((1, 1)), np.array([[0.75]]))[0, 0] == pytest.approx(0.25, abs=0.06)
    assert covariance(replicates, np.array([[0.1]]), np.array([[5.0]]))[0, 0] == pytest.approx(0.1)
    assert Interval(1.0, 0.7, 1.3, 0.9).widened(0.4).half == pytest.approx(0.5)
    ours = draws_of(np.array([1.0]), np.array([[1e-4]]), 1e9)
    assert improvement(Linear(np.ones(1)), ours, ours - 0.5, 0.0, 0.9) == 1.0
    assert 0.5 < improvement(Linear(np.ones(1)), ours, ours - 0.5, 2.0, 0.9) < 0.9


def test_intervals_cover_on_a_small_problem():
    """Twenty logs of a hundred episodes; `experiments/estimation.py` has many more problems."""
    space = enumerate_space(random_tables(3, horizon=3, ends=True).momdp())
    policy, behaviour = random_policy(space, 1), uniform_policy(space)
    truth, acting = policy.outcomes().score(OBJECTIVE), TabularActing(policy)
    found = [
        estimate(acting, behaviour.rollout(100, seed=seed), OBJECTIVE, horizon=3).interval
        for seed in range(20)
    ]
    covered = np.mean([each.low <= truth <= each.high for each in found])
    assert 0.75 <= covered <= 0.99
    assert np.mean([each.half for each in found]) < 0.5


def test_replicates_of_the_counted_model_are_those_of_resampled_data():
    """To first order: k of the same rollouts, reweighed, against rollouts in the model of the other data."""
    space = enumerate_space(random_tables(4, horizon=3).momdp())
    data, acting = uniform_policy(space).rollout(1_000, seed=0), TabularActing(random_policy(space, 2))
    weights, utility = bootstrap_weights(len(data), 4, 0), Recording.of(data, OBJECTIVE, 3).utilities_of
    rollouts = CountedModel(data, 3).roll_out(acting, utility, weights, 40_000, 0)
    assert np.ptp(rollouts.utilities, axis=0).min() > 0.05
    for row in range(5):
        again = data.select(np.repeat(np.arange(len(data)), weights[row].astype(int)))
        direct = utility(CountedModel(again, 3).play(acting, 40_000, 1).returns).mean(axis=0)
        np.testing.assert_allclose(rollouts.utilities[row], direct, atol=0.03)


def test_what_stands_in_for_the_last_observation_is_no_transition():
    """0 → 1 → 2 → 3; a log that ends at the clock repeats the state before."""
    frames = np.array([[0], [1], [2], [2]])
    one = Episode(frames, np.zeros(3, int), np.arange(3.0)[:, None], False, True)
    known = np.flatnonzero(followed(Episodes.from_list([one] * 5)))
    assert known.tolist() == [i for i in range(15) if i % 3 != 2]
    whole = one._replace(observations=np.arange(4)[:, None])
    assert followed(Episodes.from_list([whole] * 5)).all()


def spring(count: int, actions: int = 2) -> Episodes:
    """A damped oscillator, pushed one way or the other at random: linear, so neighbours foretell it."""
    rng, episodes = np.random.default_rng(0), []
    for _ in range(count):
        state, frames, rewards = np.array([1.0, 0.0]), [], []
        pushes = rng.integers(0, actions, 10)
        for push in pushes:
            frames.append(state)
            state = np.array([[0.9, 0.3], [-0.3, 0.9]]) @ state + [0, 0.2 * push]
            rewards.append(state)
        episodes.append(Episode(np.array([*frames, state]), pushes, np.array(rewards), False, True))
    return Episodes.from_list(episodes)


def test_neighbours_foretell_a_linear_system_and_know_what_was_never_done():
    data = spring(80)
    model = NeighbourModel(data, 10)
    state, total = np.array([1.0, 0.0]), np.zeros(2)
    for _ in range(10):
        state = np.array([[0.9, 0.3], [-0.3, 0.9]]) @ state + [0, 0.2]
        total += state
    found = model.play(Always(1, 2), 100, 0)
    np.testing.assert_allclose(found.returns.mean(axis=0), total, atol=0.15)
    assert found.unknown < 0.3
    assert model.play(Always(2, 3), 100, 0).unknown == 1.0


def test_words_follow_from_what_was_recorded():
    known = Course(np.zeros((9, 1)), 0.0, 0.0, np.ones(50))
    assert judge_support(known, None, []).word == "supported"
    assert judge_support(known, None, ["they differ"]).word == "extrapolating"
    assert judge_support(known._replace(unknown=0.05), None, []).word == "extrapolating"
    assert judge_support(known._replace(use=np.ones(2)), None, []).word == "do not trust"
    space = enumerate_space(random_tables(0).momdp())
    behaviour = uniform_policy(space)
    data = behaviour.rollout(200, seed=0)
    never = data.select(np.flatnonzero(np.add.reduceat(data.actions, data.starts) == 0))
    found = estimate(Always(1, 2), never, OBJECTIVE, horizon=3)
    assert found.support.word == "do not trust"
    assert found.record()["quantiles"] is None
    assert found.support.unknown == 1.0


def test_mistakes_are_refused():
    data = tiny_episodes()
    with pytest.raises(InputError, match="level of an interval lies between 0 and 1"):
        estimate(Always(0, 2), data, OBJECTIVE, level=1.5)
    with pytest.raises(InputError, match="give estimate its objective"):
        estimate(Always(0, 2), data)


@pytest.mark.trains
def test_a_run_on_a_log_keeps_its_estimate_beside_the_scores(tmp_path, capsys):
    config = TINY.adapted({"trainer.report": 0.2})
    run = tiny_run(config=config, out=tmp_path / "run")
    (found,) = run.estimates
    assert (found["policy"]["unseen"], found["policy"]["episodes"]) == (10, 50)
    assert found["policy"]["low"] <= found["policy"]["value"] <= found["policy"]["high"]
    assert 0 <= found["policy"]["improvement"] <= 1
    assert "score" not in found["policy"]
    assert ("does not trust" in found["beside_verdict"]) != run.selected.verdict.trusted
    assert found["policy"]["support"]["word"] in found["beside_verdict"]
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["estimate"] == json.loads(json.dumps(found))
    assert result["score"] is None
    assert load_run(tmp_path / "run").estimates == [result["estimate"]]
    assert "came from Python" in complaint(capsys, "estimate", str(tmp_path / "run"))


@pytest.mark.slow
def test_a_log_is_trained_on_and_estimated_from_the_command_line(tmp_path, capsys):
    import pyarrow as pa
    import pyarrow.csv

    for name, seed in (("log", 0), ("later", 1)):
        pyarrow.csv.write_csv(pa.table(log_columns(episodes=120, seed=seed)), tmp_path / f"{name}.csv")
    data = load_dataset(tmp_path / "log.csv", columns=COLUMNS, ends="shift")
    run = tiny_run(data=data, config=TINY, out=tmp_path / "run")
    assert run.request["split"] == {"training": 108, "selection": 0, "report": 12}
    main(["estimate", str(tmp_path / "run"), "--json"])
    kept = json.loads(capsys.readouterr().out)
    assert (kept["policy"]["unseen"], kept["policy"]["episodes"]) == (12, 120)
    assert kept["policy"] == json.loads(json.dumps(run.estimates[0]["policy"]))
    main(["estimate", str(tmp_path / "run"), "--data", str(tmp_path / "later.csv")])
    shown = capsys.readouterr().out
    assert "120 of 120 episodes were kept from it" in " ".join(shown.split())
    (tmp_path / "log.csv").rename(tmp_path / "moved.csv")
    main(["estimate", str(tmp_path / "run"), "--data", str(tmp_path / "moved.csv"), "--json"])
    assert json.loads(capsys.readouterr().out)["policy"] == kept["policy"]
    (tmp_path / "moved.csv").rename(tmp_path / "log.csv")
    tiny_run(data=data, config=TINY, algorithm="bc", out=tmp_path / "other")
    main(["estimate", str(tmp_path / "run"), str(tmp_path / "other"), "--json"])
    both = json.loads(capsys.readouterr().out)
    assert both["selected_with"] == "offline"
    assert both["recommended"] in ("cloning", str(tmp_path / "run"), str(tmp_path / "other"))
    assert both["candidates"][0]["estimate"]["policy"] == kept["policy"]
    mistake = complaint(capsys, "estimate", str(tmp_path / "run"), str(tmp_path / "other"), "--member", "0")
    assert "--member names a member of one run" in mistake
