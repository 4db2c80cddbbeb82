"""Training that cannot be is refused in one line; training at the edge of sense still works."""

import json
import re

import numpy as np
import pytest
from support.refusals import complaint
from support.training import TINY, Cut, cut_after, tiny_episodes, tiny_run

from aetdice import (
    Episode,
    Episodes,
    InputError,
    TrainingConfig,
    bsr,
    esr,
    load_dataset,
    load_run,
    lsr,
    make_env,
    ser,
)
from aetdice.datasets import dataset_of
from aetdice.evaluation import make_objectives


def refused(message):
    return pytest.raises(InputError, match=re.escape(message))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": 0.0}, "beta must be positive, not 0.0"),
        ({"beta": -1.0}, "beta must be positive, not -1.0"),
        ({"beta": [0.1, float("nan")]}, "beta must be positive, not nan"),
        ({"beta": float("inf")}, "beta must be positive, not inf"),
        ({"beta": []}, "objective, beta, learning_rate and seed need at least one value each"),
        ({"seed": []}, "objective, beta, learning_rate and seed need at least one value each"),
        ({"objective": []}, "objective, beta, learning_rate and seed need at least one value each"),
        ({"learning_rate": 0.0}, "learning_rate must be positive, not 0.0"),
        ({"horizon": 2}, "episode 0 has 3 steps, more than the horizon of 2"),
        ({"horizon": 0}, "the horizon must be at least 1, not 0"),
        ({"objective": [ser(), esr()]}, "the objectives of one population must share their form"),
        (
            {"objective": [lsr(1.0), lsr((1.0, 2.0))]},
            "the objectives of one population must share their form",
        ),
        ({"objective": lsr((1.0, 2.0, 3.0))}, "the objective does not fit 2 objectives"),
        ({"config": TINY.adapted({"trainer.holdout": 0.999})}, "leaves none of the 50 episodes for training"),
    ],
)
def test_arguments_are_refused(change, message):
    with refused(message):
        tiny_run(**change)


@pytest.mark.trains
@pytest.mark.parametrize(("algorithm", "metric"), [("aetdice", "claimed value"), ("bc", "log likelihood")])
def test_who_has_diverged_is_named(algorithm, metric):
    with refused(f"the {metric} of the member with objective BSR[alpha=0.5]") as found:
        tiny_run(algorithm=algorithm, learning_rate=[1e-3, 1e30], seed=[3])
    assert "learning_rate 1e+30, seed 3 is no longer finite" in str(found.value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("trainer.holdout", 1.0, "trainer.holdout is a share of the episodes below 1, not 1.0"),
        ("network.observation_fourier", -1, "network.observation_fourier must be at least 0, not -1"),
        ("network.fourier", 0, "network.fourier must be at least 1, not 0"),
        ("trainer.holdout", -0.1, "trainer.holdout is a share of the episodes below 1, not -0.1"),
        ("network.hidden", (), "network.hidden needs at least one positive width, not ()"),
        ("network.hidden", (8, 0), "network.hidden needs at least one positive width, not (8, 0)"),
        ("extraction.floor", 2.0, "extraction.floor is a share between 0 and 1, not 2.0"),
        ("extraction.warm_up", -0.1, "extraction.warm_up is a share between 0 and 1, not -0.1"),
        ("extraction.dropout", 1.0, "extraction.dropout must be at least 0 and below 1, not 1.0"),
        ("dual.window", 0, "dual.window must be at least 1, not 0"),
        ("dual.averaging", 1.5, "dual.averaging is a share between 0 and 1, not 1.5"),
        ("dual.annealing", 0.0, "dual.annealing is a share above 0 and at most 1, not 0.0"),
        ("dual.slack_rate", float("nan"), "dual.slack_rate is a share above 0 and at most 1, not nan"),
        ("dual.first_beta", 0.0, "dual.first_beta must be positive, not 0.0"),
        ("dual.batch", 0, "dual.batch must be at least 1, not 0"),
        ("iql.batch", 0, "iql.batch must be at least 1, not 0"),
        ("extraction.batch", 0, "extraction.batch must be at least 1, not 0"),
        ("trainer.chunk", 0, "trainer.chunk must be at least 1, not 0"),
        ("dual.steps", -3, "dual.steps must be at least 1, not -3"),
        ("iql.steps", -3, "iql.steps must be at least 1, not -3"),
        ("extraction.steps", 0, "extraction.steps must be at least 1, not 0"),
        ("network.components", 0, "network.components must be at least 1, not 0"),
    ],
)
def test_setting_is_refused(name, value, message):
    with refused(message):
        TrainingConfig().adapted({name: value})


def changed(**parts):
    """The tiny data with some of its arrays replaced."""
    data = tiny_episodes()
    names = ("observations", "actions", "rewards", "lengths", "terminated", "truncated", "objectives")
    return Episodes(**{**{name: getattr(data, name) for name in names}, **parts})


def test_actions_below_zero_are_refused():
    with refused("actions must be numbered from 0"):
        tiny_run(data=changed(actions=tiny_episodes().actions - 1))


def test_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "run").write_text("mine")
    with refused("is a file, not a folder"):
        tiny_run(out=tmp_path / "run")


def test_constant_rewards_leave_the_behaviour_as_it_is():
    run = tiny_run(data=changed(rewards=np.ones((150, 2))))
    assert run.members[0].diagnostics["effective_sample_size"] == pytest.approx(1, abs=0.02)
    assert not run.verdict.trusted
    assert "INDISTINGUISHABLE from plain cloning" in run.verdict.words


def test_one_episode_with_one_objective_is_learned():
    actions = np.array([0, 1, 0])
    data = Episodes.from_list([Episode(np.arange(4)[:, None], actions, np.ones((3, 1)), False, True)])
    run = tiny_run(data=data)
    attained = 2 * (np.sqrt(2 * (np.sqrt(3) - 1)) - 1)  # u(u(R)) with u(x) = 2√x - 2
    assert run.members[0].diagnostics["dual_value"] == pytest.approx(attained, abs=1e-3)
    assert run.members[0].diagnostics["mass_range"] == pytest.approx([1, 1], abs=1e-3)


# The command line.

TRAIN = ("train", "--dataset-episodes", "5", "--horizon", "4", "--episodes", "5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "say which objective: --objective lsr | ser | esr | bsr"),
        ("--objective nash", "unknown objective 'nash'"),
        ("--objective bsr", "objective 'bsr' needs alpha"),
        ("--objective bsr --alpha 0.5 2", "alpha must be between 0 and 1, not 2"),
        ("--objective ser --beta 0", "beta must be positive, not 0.0"),
        ("--objective ser --beta 0.1 nan", "beta must be positive, not nan"),
        ("--objective ser --dataset-episodes 0", "at least one episode is needed, not 0"),
        ("--objective ser --episodes 0", "at least one evaluation episode is needed, not 0"),
        ("--objective ser --weights 1 2 3", "--weights needs 2 numbers, one per objective, not 3"),
        ("--objective ser --horizon 0", "the horizon must be at least 1, not 0"),
        ("--objective ser --start 9,9", "the start 9,9 lies outside the 9x9 grid"),
        ("--utility r0+", "malformed expression 'r0+'"),
        (
            "--objective esr --algorithm esr-iql --expectile 1.5",
            "expectile lies between 0 and 1, not at 1.5",
        ),
        (
            "--objective ser --algorithm optidice",
            "optidice optimises linear objectives; SER is SER: use fairdice or aetdice",
        ),
    ],
)
def test_training_is_refused_and_leaves_nothing_behind(capsys, tmp_path, options, message):
    folder = tmp_path / "run"
    assert complaint(capsys, *TRAIN, "--out", str(folder), *options.split()).startswith(message)
    assert not folder.exists()


def test_training_into_a_file_is_refused(capsys, tmp_path):
    (tmp_path / "run").write_text("mine")
    said = complaint(capsys, *TRAIN, "--out", str(tmp_path / "run"), "--objective", "ser")
    assert said.endswith("is a file, not a folder")


@pytest.mark.parametrize("command", ["resume", "evaluate"])
def test_folder_without_a_run_is_refused(capsys, tmp_path, command):
    assert complaint(capsys, command, str(tmp_path)) == f"{tmp_path} is not a run: it has no config.json"


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"training": {"unknown": 1}}', "3"])
def test_folder_with_a_broken_config_is_refused(capsys, tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    assert complaint(capsys, "resume", str(tmp_path)).startswith(f"{tmp_path}/config.json cannot be read")


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """What is written of a run on Fair-Taxi that was cut off at its first chunk."""
    folder = tmp_path_factory.mktemp("begun")
    data = load_dataset("fair-taxi", episodes=5, horizon=3)
    with pytest.raises(Cut):
        tiny_run(data=data, objective=ser(), out=folder, progress=cut_after(1))
    return json.loads((folder / "config.json").read_text())


def test_evaluation_before_the_end_is_refused(begun, capsys, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(begun))
    said = complaint(capsys, "evaluate", str(tmp_path))
    assert said.endswith(f"the run has not ended; continue it with aetdice resume {tmp_path}")


def test_unknown_environment_is_refused(begun, capsys, tmp_path):
    dataset = {**begun["dataset"], "origin": {**begun["dataset"]["origin"], "env": "chess"}}
    (tmp_path / "config.json").write_text(json.dumps({**begun, "dataset": dataset}))
    expected = "there is no environment 'chess'; known: two-step, fair-taxi, dispatch, pointmaze-2obj"
    assert complaint(capsys, "resume", str(tmp_path)).startswith(expected)
    with refused("there is no environment 'chess'"):
        load_dataset("chess")


def test_environment_without_a_dataset_is_refused():
    with refused("two-step has no dataset of its own; those that have: fair-taxi, dispatch, pointmaze-2obj"):
        load_dataset("two-step")


def test_dataset_is_collected_again_from_its_origin():
    layout = {"size": 3, "origins": ((0, 0),), "destinations": ((0, 1),), "start": (1, 1), "horizon": 4}
    data = load_dataset("fair-taxi", episodes=5, seed=3, **layout, deliveries=(60.0,), penalties=(-20.0,))
    again = dataset_of(json.loads(json.dumps(data.origin)))
    assert again.sha256 == data.sha256
    assert json.dumps(again.origin) == json.dumps(data.origin)


def test_result_of_no_run_is_refused(tmp_path):
    with refused("is not a run"):
        load_run(tmp_path)


def test_sweep_over_alpha_is_one_population():
    found = make_objectives({"objective": "bsr", "alpha": [0.2, 0.8]}, make_env("fair-taxi"))
    assert [o.short_name for o in found] == [bsr(0.2).short_name, bsr(0.8).short_name]
