"""The runner: no JAX, fresh randomness, one memory per episode, and refusals in a sentence."""

import subprocess
import sys

import numpy as np
import pytest
from support.policies import POLICIES, WORDS, complaint, policy_of

import aetdice_runner
from aetdice import InputError, export_policy
from aetdice.serving import policy_model
from aetdice_runner import Runner

SECONDS = 60


@pytest.fixture
def runner():
    return Runner(policy_model(policy_of()))


def test_runner_imports_no_jax(tmp_path):
    export_policy(policy_of(coding=WORDS), tmp_path / "p.onnx")
    code = (
        "import sys, aetdice_runner, aetdice_runner.server\n"
        f"sessions = aetdice_runner.Runner.load({str(tmp_path / 'p.onnx')!r}).start(2)\n"
        "sessions.act([[1.0, 'dry'], {'queue': 2.0, 'weather': 'rain'}])\n"
        "sessions.observe([[1, 2], [3, 4]])\n"
        "found = {'jax', 'jaxlib', 'jaxtyping', 'equinox', 'aetdice', 'onnx'} & set(sys.modules)\n"
        "assert not found, found\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["words", "a mixture"])
def test_randomness_is_fresh_unless_a_seed_is_given(kind):
    policy = POLICIES[kind]()
    runner = Runner(policy_model(policy))
    seen = [[0.1, "dry"]] * 200 if kind == "words" else np.zeros((200, 3))

    def actions(**given):
        return runner.start(200, **given).act(seen).tolist()

    assert actions(seed=3) == actions(seed=3)
    assert actions(seed=3) != actions(seed=4)
    assert actions() != actions()
    assert actions(greedy=True) == actions(greedy=True)


def test_episodes_that_ended_begin_anew(runner):
    sessions = runner.start(3)
    sessions.act(np.zeros((3, 3)))
    sessions.observe(np.ones((3, 2)), ended=np.array([True, False, False]))
    assert sessions.time.tolist() == [0, 1, 1]
    assert sessions.accrued.tolist() == [[0, 0], [1, 1], [1, 1]]


def test_step_that_is_refused_has_not_happened(runner):
    sessions = runner.start(2)
    sessions.act(np.zeros((2, 3)))
    for ended in ([True], [0, 1], [[True, False]]):
        words = complaint(lambda ended=ended: sessions.observe(np.ones((2, 2)), ended=np.array(ended)))
        assert "one truth value each" in words
    assert sessions.time.tolist() == [0, 0]
    sessions.observe(np.ones((2, 2)), ended=np.array([True, False]))
    assert sessions.time.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("observations", "words"),
    [
        ([[0.0, np.nan, 0.0]], "must be finite, but entry 1 is nan"),
        ([[0.0, 1e39, 0.0]], "must be finite, but entry 1 is 1e+39"),
        ([[0.0, 10**400, 0.0]], "must be numbers"),
        ([[0.0, 1.0]], "has 3 entries, not 2"),
        ([[0.0] * 3] * 2, "1 episodes need 1 observations"),
        ([[0.0, [1.0], 2.0]], "must be numbers"),
        ([["a", "b", "c"]], "must be numbers"),
        (None, "must be numbers"),
        ([[[0.0, 1.0, 2.0]]], "a list of 3 numbers, not lists of lists"),
        ([[3e38, 3e38, 3e38]], "the policy has no finite answer"),
    ],
)
def test_runner_refuses_observations(runner, observations, words):
    assert words in complaint(lambda: runner.start().act(observations))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0.1, "snow"], "'weather' is 'snow', which the data never had; known: dry, rain"),
        ({"queue": 0.1}, "has no 'weather'"),
        (["much", "dry"], "'queue' is a number, not 'much'"),
        ([10**400, "dry"], "'queue' is too large"),
        ([np.nan, "dry"], "must be finite"),
        ([0.1], "has 2 entries (queue, weather), not 1"),
        ([0.1, np.array(["dry", "rain"])], "which the data never had"),
    ],
)
def test_runner_refuses_words_it_does_not_know(row, words):
    sessions = Runner(policy_model(policy_of(coding=WORDS))).start()
    assert words in complaint(lambda: sessions.act([row]))


def test_runner_refuses_rewards_and_turns(runner):
    sessions = runner.start()
    assert "before act" in complaint(lambda: sessions.observe([[1, 2]]))
    sessions.act(np.zeros((1, 3)))
    assert "called twice" in complaint(lambda: sessions.act(np.zeros((1, 3))))
    for wrong in ([[1, np.nan]], [[1, 2, 3]], [1, 2], [["a", "b"]], [[1e39, 0]], "ab"):
        assert complaint(lambda wrong=wrong: sessions.observe(wrong))
    sessions.observe([[3e38, 1]])
    sessions.act(np.zeros((1, 3)))
    assert "finite" in complaint(lambda: sessions.observe([[3e38, 1]]))  # the sum is not
    for wrong in (-1, 2**64, True, 1.5, "a"):
        assert "a seed is" in complaint(lambda wrong=wrong: runner.start(seed=wrong))
    assert "at least one episode" in complaint(lambda: runner.start(0))


def test_errors_are_one_kind():
    assert aetdice_runner.InputError is InputError
