"""Environments' own datasets by name, the bodies' among them."""

import json
import re
import sys

import numpy as np
import pytest
from support.behaviours import tiny_behaviour
from support.refusals import complaint

from aetdice import InputError, TrainingConfig, load_dataset, load_run, lsr, train
from aetdice.behaviours import behaviour, collect_body
from aetdice.datasets import environment_of, space_of
from aetdice.learning.run import summarise

SHORT = {"horizon": 20}


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(behaviour, "DATA", tmp_path)
    tiny_behaviour("halfcheetah").save(tmp_path / "halfcheetah.npz")


@pytest.mark.parametrize("quality", [None, "expert", "amateur"])
def test_a_body_s_data_is_what_collect_gives(quality, shipped):
    found = load_dataset("d4morl-halfcheetah", episodes=3, seed=7, quality=quality, **SHORT)
    wanted = list(collect_body("halfcheetah", quality or "expert", 3, 7, horizon=20))
    assert (len(found), found.objectives) == (3, ("speed", "energy"))
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(own.actions, other.actions)
        np.testing.assert_array_equal(own.rewards, other.rewards)
    assert environment_of(found.origin).horizon == 20
    assert space_of(environment_of(found.origin)) is None


def test_a_body_is_trained_for_and_evaluated(shipped, tmp_path):
    settings = {"network.hidden": (4,), "dual.batch": 8, "dual.steps": 1, "extraction.steps": 1}
    data = load_dataset("d4morl-halfcheetah", episodes=4, quality="amateur", **SHORT)
    config, folder = TrainingConfig().adapted({**settings, "dual.refit": "none"}), tmp_path / "run"
    run = train(data, lsr(), algorithm="optidice", beta=0.1, config=config, out=folder, progress=False)
    env = environment_of(data.origin)
    result = summarise(run, env, space_of(env), episodes=4)
    again = load_run(folder)
    assert again.config == config
    assert json.dumps(again.request["dataset"]["origin"]) == json.dumps(data.origin)
    assert result["exact_score"] is None
    evaluation = again.evaluate(environment_of(again.request["dataset"]["origin"]), 4)
    assert evaluation.policy.score == pytest.approx(result["score"], rel=1e-5)


def test_a_policy_is_trained_for_episodes_of_the_environment_s_length(monkeypatch, tmp_path, capsys):
    """Also where every recorded episode ended before: this hopper falls at once."""
    monkeypatch.setattr(behaviour, "DATA", tmp_path)
    tiny_behaviour("hopper").save(tmp_path / "hopper.npz")

    def asked(dataset, objectives, *, horizon, **others):
        raise InputError(f"{horizon} steps, of which at most {dataset.lengths.max()} were recorded")

    monkeypatch.setattr("aetdice.cli.train.train", asked)
    command = ("train", "--env", "d4morl-hopper", "--objective", "lsr", "--dataset-episodes", "2", "--out")
    asked_for, recorded = map(int, re.findall(r"\d+", complaint(capsys, *command, str(tmp_path / "run"))))
    assert recorded < asked_for == 500


def test_what_is_missing_is_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(behaviour, "DATA", tmp_path)
    command = ("train", "--env", "d4morl-ant", "--objective", "lsr", "--out", str(tmp_path / "run"))
    assert "aetdice behaviours train ant" in complaint(capsys, *command)
    assert not (tmp_path / "run").exists()
    monkeypatch.setitem(sys.modules, "mujoco", None)
    assert "pip install 'aetdice[mujoco]'" in complaint(capsys, *command)


@pytest.mark.parametrize("env", ["fair-taxi", "pointmaze-2obj", "pointmaze-3obj"])
def test_a_body_s_quality_is_not_the_taxi_s_nor_a_maze_s(env, tmp_path, capsys):
    command = (
        "train",
        "--env",
        env,
        "--objective",
        "lsr",
        "--dataset",
        "amateur",
        "--out",
        str(tmp_path / "r"),
    )
    assert complaint(capsys, *command) == "unknown quality 'amateur'; known: mixed, shifts"


def test_a_body_has_no_shifts(shipped):
    with pytest.raises(InputError, match="unknown quality 'shifts'; known: expert, amateur, unstable"):
        load_dataset("d4morl-halfcheetah", episodes=1, quality="shifts", **SHORT)
