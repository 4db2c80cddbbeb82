"""Bodies as sources of data: `aetdice train --env d4morl-…`."""

import sys

import numpy as np
import pytest
from support.refusals import complaint
from support.behaviours import tiny_behaviour
from support.untrained import untrained

from aetdice import jobs
from aetdice.behaviours import behaviour, collect_body
from aetdice.config import TrainingConfig
from aetdice.learning.job import Job, evaluate, start
from aetdice.datasets import BODY_COLLECTORS, Source

SHORT = {"horizon": 20}


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(behaviour, "DATA", tmp_path)
    tiny_behaviour("halfcheetah").save(tmp_path / "halfcheetah.npz")


@pytest.mark.parametrize("quality", [None, "expert", "amateur"])
def test_a_body_s_data_is_what_collect_gives(quality, shipped):
    source = Source("d4morl-halfcheetah", 3, 7, SHORT, quality)
    found, wanted = source.dataset(), list(collect_body("halfcheetah", quality or "expert", 3, 7, horizon=20))
    assert (len(found), found.objectives) == (3, ("speed", "energy"))
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(own.actions, other.actions)
        np.testing.assert_array_equal(own.rewards, other.rewards)
    assert source.environment().horizon == 20
    assert source.space() is None


def test_a_body_is_trained_for_and_evaluated(shipped, monkeypatch, tmp_path):
    monkeypatch.setattr(jobs, "train", untrained)
    source = Source("d4morl-halfcheetah", 4, 0, SHORT, "amateur")
    config = TrainingConfig(hidden=(4,), batch=8, value_steps=1, cloning_steps=1, frequencies=2)
    job = Job(source, {"objective": "lsr"}, "optidice", training=config, episodes=4)
    result = start(job, tmp_path / "run")
    assert Job.read(tmp_path / "run") == job
    assert result["exact_score"] is None
    again = evaluate(tmp_path / "run", 4)["policy"]
    assert again["scores"]["trained"]["value"] == pytest.approx(result["score"], rel=1e-5)


def test_what_is_missing_is_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(behaviour, "DATA", tmp_path)
    command = ("train", "--env", "d4morl-ant", "--objective", "lsr", "--out", str(tmp_path / "run"))
    assert "aetdice behaviours train ant" in complaint(capsys, *command)
    assert not (tmp_path / "run").exists()
    monkeypatch.setitem(sys.modules, "mujoco", None)
    assert "pip install 'aetdice[mujoco]'" in complaint(capsys, *command)


def test_only_bodies_have_a_quality(tmp_path, capsys):
    said = complaint(
        capsys, *("train", "--objective", "lsr", "--dataset", "amateur", "--out", str(tmp_path / "run"))
    )
    assert said == f"fair-taxi has one dataset; a choice have {', '.join(BODY_COLLECTORS)}"
