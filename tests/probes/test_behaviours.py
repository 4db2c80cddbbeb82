"""Behaviour policies: trained, cut off, resumed, saved and loaded."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from aetdice.behaviours import Behaviour, Recipe, load_behaviour, ppo_training, train_behaviour
from aetdice.behaviours.__main__ import main as train_plainly
from aetdice.behaviours.card import measure, preference_grid
from aetdice.behaviours.experience import begin, collect
from aetdice.cli import main
from aetdice.envs.mujoco import BatchedBody

TINY = Recipe(
    steps=6 * 128, environments=16, span=8, epochs=2, minibatches=2, hidden=(8, 8), grid=3, episodes=1
)


class CutOff(Exception):
    """The machine is taken away."""


def cut_off_after(updates):
    def report(steps, total, returns, upright):
        if steps >= updates * TINY.batch:
            raise CutOff

    return report


@pytest.fixture
def saving(monkeypatch):
    """A checkpoint after every update."""
    monkeypatch.setattr(ppo_training, "SAVE_SECONDS", -1.0)


@pytest.fixture(scope="module")
def uninterrupted():
    return train_behaviour("swimmer", TINY, threads=1)


def assert_same(one, other):
    assert one.sha256 == other.sha256
    np.testing.assert_array_equal(one.returns, other.returns)
    assert one.details == other.details


def test_equal_seeds_give_equal_policies(uninterrupted):
    assert_same(train_behaviour("swimmer", TINY, threads=2), uninterrupted)
    other = train_behaviour("swimmer", dataclasses.replace(TINY, seed=1), threads=1)
    assert other.sha256 != uninterrupted.sha256


def test_a_training_that_was_cut_off_goes_on_to_the_same_policy(saving, uninterrupted, tmp_path):
    out = tmp_path / "swimmer.npz"
    with pytest.raises(CutOff):
        train_behaviour("swimmer", TINY, out, cut_off_after(4))
    assert [path.name for path in tmp_path.iterdir()] == ["swimmer.npz.checkpoint.npz"]
    done = []
    resumed = train_behaviour("swimmer", TINY, out, lambda steps, *rest: done.append(steps))
    assert done == [TINY.batch * i for i in (4, 5, 6)]  # the report cut the fourth off before it was saved
    assert_same(resumed, uninterrupted)
    assert_same(Behaviour.load(out), uninterrupted)
    assert [path.name for path in tmp_path.iterdir()] == ["swimmer.npz"]


def test_policy_file_holds_everything(uninterrupted, tmp_path):
    uninterrupted.save(tmp_path / "policy.npz")
    loaded = load_behaviour("swimmer", tmp_path / "policy.npz")
    rng = np.random.default_rng(0)
    observations = rng.standard_normal((5, 8))
    actions = loaded.act(observations, [0.3, 0.7])
    np.testing.assert_array_equal(actions, uninterrupted.act(observations, [0.3, 0.7]))
    np.testing.assert_allclose(actions[2], loaded.act(observations[2], [0.3, 0.7]), atol=1e-6)
    rows = np.tile([0.3, 0.7], (5, 1))
    np.testing.assert_array_equal(actions, loaded.act(observations, rows))
    noisy = loaded.act(np.zeros((4000, 8)), [1, 0], deterministic=False, rng=rng)
    np.testing.assert_allclose(noisy.std(axis=0), loaded.std, rtol=0.05)
    assert loaded.details["steps"] == TINY.steps
    assert loaded.details["recipe"]["hidden"] == [8, 8]
    assert "mujoco" in loaded.details["versions"]


def test_the_policy_that_acts_is_the_one_that_was_trained():
    """NumPy and JAX agree on the mean action, observations far out included."""
    import jax.numpy as jnp

    from aetdice.behaviours.agent import explore

    batch = BatchedBody("swimmer", threads=1)
    state = ppo_training.start(batch, TINY)
    for _ in range(2):
        state, _ = ppo_training.iterate(batch, state, TINY)
    behaviour = ppo_training.finish(state, batch.body, TINY)
    observations = 100 * np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    preferences = preference_grid(6).astype(np.float32)
    noise = jnp.zeros((6, 2))
    arrays = (observations, preferences, behaviour.centre, behaviour.spread)
    mean, _ = explore(state.agent, *map(jnp.asarray, arrays), noise)
    np.testing.assert_allclose(behaviour.act(observations, preferences), mean, atol=1e-5)


def test_episodes_follow_each_other_without_pause():
    """Ends, resets, preferences and accrued rewards of a trip over several short episodes."""
    recipe = dataclasses.replace(TINY, environments=4, span=25, steps=1000)
    batch = BatchedBody("walker2d", horizon=10, threads=1)
    walks = begin(batch, recipe, np.random.default_rng(0))
    first = walks.remaining.copy()

    def act(observations, preferences, noise):
        return 0 * noise, noise[:, 0]

    trip = collect(batch, walks, act, recipe, 1.0, np.random.default_rng(1))
    assert not trip.terminated.any()  # it stands
    for i in range(4):
        ends = np.flatnonzero(trip.ended[:, i])
        np.testing.assert_array_equal(ends, np.arange(first[i] - 1, 25, 10))
        for t in range(24):
            same = np.array_equal(trip.following[t, i], trip.observations[t + 1, i])
            kept = np.array_equal(trip.preferences[t, i], trip.preferences[t + 1, i])
            assert same == kept == (t not in ends)
    assert len(trip.returns) == trip.ended.sum() - 4  # the first ends are of episodes begun midway
    np.testing.assert_allclose(trip.returns[:, 1], 50)  # ten steps without effort
    assert trip.upright.all()


def test_card_is_what_single_episodes_earn(uninterrupted):
    grid = preference_grid(3)
    returns, upright = measure(uninterrupted, grid, 2, seed=5, threads=1)
    batch = BatchedBody("swimmer", threads=1)
    observations, total = batch.reset(6, 5), np.zeros((6, 2))
    rows = np.repeat(grid, 2, axis=0)
    for _ in range(500):
        observations, rewards, _ = batch.step(uninterrupted.act(observations, rows))
        total += rewards
    np.testing.assert_allclose(returns, total.reshape(3, 2, 2).mean(axis=1), rtol=1e-9)
    np.testing.assert_array_equal(upright, 1)


def test_it_learns_to_swim(without_type_checks):
    """Some seconds near pure speed: it comes forward, where an untrained policy stays where it is."""
    recipe = Recipe(
        steps=30_000, environments=32, epochs=6, minibatches=4, hidden=(32, 32), grid=2, episodes=2
    )
    behaviour = train_behaviour("swimmer", recipe)
    assert behaviour.returns[0, 0] > 10


def test_both_commands_train(tmp_path, monkeypatch, capsys):
    for module in ("aetdice.behaviours.__main__", "aetdice.cli.behaviours"):
        monkeypatch.setattr(f"{module}.quick_recipe", lambda body: TINY)
    train_plainly(["swimmer", str(tmp_path / "plain.npz"), "--quick", "--seed", "3"])
    plain = capsys.readouterr()
    assert "768 of 768" in plain.err
    main(f"behaviours train swimmer --quick --seed 3 --out {tmp_path / 'rich.npz'}".split())
    assert capsys.readouterr().out == plain.out
    assert_same(Behaviour.load(tmp_path / "plain.npz"), Behaviour.load(tmp_path / "rich.npz"))
    main(f"behaviours show swimmer --behaviour {tmp_path / 'rich.npz'}".split())
    assert capsys.readouterr().out.endswith(plain.out)


def test_plain_command_needs_neither_tyro_nor_rich():
    code = "import sys, aetdice.behaviours.__main__; print({'tyro', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
