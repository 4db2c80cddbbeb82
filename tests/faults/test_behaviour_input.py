"""Policies that are missing, damaged or of another body; trainings and collections that cannot be."""

import dataclasses
import json

import numpy as np
import pytest
from support.behaviours import tiny_behaviour
from support.refusals import complaint

from aetdice.behaviours import (
    Behaviour,
    Recipe,
    behaviour,
    collect_body,
    load_behaviour,
    ppo_training,
    train_behaviour,
)
from aetdice.errors import InputError

TINY = Recipe(steps=256, environments=16, span=8, epochs=1, minibatches=2, hidden=(8,), grid=2, episodes=1)


@pytest.fixture
def file(tmp_path):
    tiny_behaviour().save(tmp_path / "policy.npz")
    return tmp_path / "policy.npz"


def refused(message, function, *arguments, **named):
    with pytest.raises(InputError, match=message):
        function(*arguments, **named)


def test_a_policy_that_is_not_there_says_how_to_train_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(behaviour, "DATA", tmp_path)
    refused("aetdice behaviours train ant --out ant.npz", load_behaviour, "d4morl-ant-v0")
    said = complaint(capsys, "collect", "ant", "--out", str(tmp_path / "store"))
    assert "aetdice behaviours train ant" in said
    assert "no such behaviour policy" in complaint(
        capsys, "behaviours", "show", "ant", "--behaviour", str(tmp_path / "nothing.npz")
    )


def test_the_policy_of_another_body(file):
    refused("a policy of the halfcheetah, not of the ant", load_behaviour, "ant", file)
    refused("of the halfcheetah, not of the ant", collect_body, "ant", behaviour=tiny_behaviour())


def test_damaged_policies(file):
    whole = file.read_bytes()
    for damaged in (b"", b"PK", whole[: len(whole) // 2], b"nonsense" * 40):
        file.write_bytes(damaged)
        refused("is not a behaviour policy", Behaviour.load, file)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("weight0", np.zeros((3, 8)), "do not fit the halfcheetah"),
        ("weight1", np.zeros((8, 5)), "do not fit"),
        ("centre", np.zeros(3), "do not fit each other"),
        ("upright", np.zeros(3), "do not fit each other"),
        ("spread", np.full(17, np.nan), "not finite"),
    ],
)
def test_arrays_that_do_not_fit(file, name, value, message, without_type_checks):
    arrays = dict(np.load(file))
    np.savez(file, **{**arrays, name: value})
    refused(message, Behaviour.load, file)


def test_a_policy_of_another_format(file):
    arrays = dict(np.load(file))
    for change in ({"version": 2}, {"format": "other"}, {"body": "dog"}, {"layers": 5}):
        description = json.loads(arrays["description"].tobytes()) | change
        text = np.frombuffer(json.dumps(description).encode(), np.uint8)
        np.savez(file, **{**arrays, "description": text})
        refused("is not a behaviour policy", Behaviour.load, file)


@pytest.mark.parametrize(
    ("observation", "preference", "message"),
    [
        (np.zeros(3), [0.5, 0.5], "17 entries"),
        (np.zeros(17), [1.0], "2 entries"),
        (np.zeros((2, 17)), np.full((3, 2), 0.5), "2 entries"),
        (np.zeros(17), [1.5, -0.5], "not negative"),
        (np.zeros(17), [0.5, 0.6], "add up to 1"),
    ],
)
def test_acting_on_nonsense(observation, preference, message, without_type_checks):
    refused(message, tiny_behaviour().act, observation, preference)


def test_collections_that_cannot_be(tmp_path, capsys):
    policy = tiny_behaviour()
    refused("unknown quality 'novice'", collect_body, "halfcheetah", "novice", behaviour=policy)
    refused("at least one trajectory", collect_body, "halfcheetah", trajectories=0, behaviour=policy)
    refused("unknown body", collect_body, "dog")
    said = complaint(capsys, "collect", "ant", "--out", str(tmp_path))
    assert "exists; delete it" in said


def test_a_policy_without_a_front():
    policy = tiny_behaviour(returns=[(500.0, 500.0)] * 4)
    with pytest.raises(InputError, match="train it longer"):
        next(collect_body("halfcheetah", behaviour=policy))


def test_a_training_does_not_overwrite(file, capsys):
    refused("exists; delete it", train_behaviour, "halfcheetah", TINY, file)
    assert "exists" in complaint(capsys, "behaviours", "train", "halfcheetah", "--out", str(file))


def test_a_checkpoint_of_another_training(tmp_path, monkeypatch):
    monkeypatch.setattr(ppo_training, "SAVE_SECONDS", -1.0)

    def stop(steps, *rest):
        if steps == TINY.steps:
            raise KeyboardInterrupt

    out = tmp_path / "policy.npz"
    with pytest.raises(KeyboardInterrupt):
        train_behaviour("swimmer", TINY, out, stop)
    refused("another training", train_behaviour, "swimmer", dataclasses.replace(TINY, seed=1), out)
    refused("another training", train_behaviour, "hopper", TINY, out)
    (tmp_path / "policy.npz.checkpoint.npz").write_bytes(b"nonsense")
    refused("is not a checkpoint", train_behaviour, "swimmer", TINY, out)
