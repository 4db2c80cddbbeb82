"""Training from a store on disk: the same draws, the same updates, the same result as in memory."""

import equinox as eqx
import jax
import numpy as np
import pytest

from aetdice import TrainingConfig, esr, ser, train
from aetdice.algorithms.dice import aetdice as aetdice_of
from aetdice.algorithms.episode_weighting import episode_weighting
from aetdice.data import Episode, Episodes, augment, load_episodes, mapping, save_episodes
from aetdice.data import stored as stored_module
from aetdice.data.device import Recorded, to_device
from aetdice.data.stored import StoredSteps
from aetdice.errors import InputError
from aetdice.learning import choice, setup, streaming
from aetdice.objectives import Identity

pytestmark = pytest.mark.trains
TINY = {
    "network.hidden": (8,),
    "network.fourier": 2,
    "network.components": 2,
    "dual.steps": 20,
    "dual.batch": 32,
    "extraction.steps": 20,
    "extraction.batch": 32,
    "extraction.floor": 0.1,
    "extraction.early_oversampling": 0.2,
    "extraction.warm_up": 0.5,
    "trainer.chunk": 10,
}
HORIZON = 6


def episodes(kind, count=60, seed=0):
    rng = np.random.default_rng(seed)
    found = []
    for index in range(count):
        length = int(rng.integers(2, HORIZON + 1))
        actions = (
            rng.normal(size=(length, 2)).astype(np.float32)
            if kind == "continuous"
            else rng.integers(0, 3, length)
        )
        found.append(
            (
                rng.normal(size=(length + 1, 3)).astype(np.float32),
                actions,
                rng.random((length, 2)),
                index % 3 > 0,
                index % 3 == 0,
            )
        )
    return found


def as_episodes(parts):
    return Episodes.from_list([Episode(*part) for part in parts])


@pytest.fixture
def small(monkeypatch):
    """Blocks and spans so small that even tiny data has many."""
    for module, name, size in (
        (mapping, "SPAN", 256),
        (stored_module, "BLOCK", 50),
        (streaming, "READ_BYTES", 40_000),
    ):
        monkeypatch.setattr(module, name, size)


def test_stored_steps_are_those_on_the_device(tmp_path, small):
    save_episodes(tmp_path / "store", as_episodes(episodes("continuous")))
    dataset = load_episodes(tmp_path / "store")
    resident = to_device(augment(dataset, Identity(), HORIZON))
    found = StoredSteps(dataset, HORIZON, 0)
    rows = np.sort(np.random.default_rng(1).integers(0, dataset.steps, 200))
    every, whole = eqx.filter_jit(Recorded.everything), resident.steps.everything()
    for part, steps in [(rows, found.take(rows)), *found.blocks()]:
        for own, other in zip(*map(jax.tree.leaves, (every(steps), whole)), strict=True):
            np.testing.assert_array_equal(own, other[part])
    assert found.breaks == resident.breaks
    np.testing.assert_array_equal(found.index().initial, resident.initial)


@pytest.mark.parametrize("kind", [pytest.param("continuous", marks=pytest.mark.slow), "discrete"])
def test_streamed_training_is_resident_training(tmp_path, small, kind):
    """Continuous actions, members of two seeds and objectives; classes, one."""
    save_episodes(tmp_path / "store", as_episodes(episodes(kind)))
    dataset = load_episodes(tmp_path / "store")
    tiny = {
        name: value for name, value in TINY.items() if kind == "continuous" or name != "network.components"
    }
    runs = [
        train(
            dataset,
            esr(),
            horizon=HORIZON,
            beta=[0.1, 0.3] if kind == "continuous" else 0.1,
            seed=[0, 1] if kind == "continuous" else 0,
            config=TrainingConfig().adapted({**tiny, "trainer.holdout": 0.0, "trainer.streaming": streamed}),
            progress=False,
        )
        for streamed in (False, True)
    ]
    for resident, streamed in zip(*(run.members for run in runs), strict=True):
        for here, there in zip(resident.acting, streamed.acting, strict=True):
            for own, other in zip(jax.tree.leaves(here.network), jax.tree.leaves(there.network), strict=True):
                np.testing.assert_allclose(own, other, rtol=1e-3, atol=2e-4)
        for name, value in resident.diagnostics.items():
            np.testing.assert_allclose(streamed.diagnostics[name], value, rtol=2e-3, atol=1e-4, err_msg=name)


def test_large_stores_stay_on_disk_by_themselves_and_say_so(tmp_path, monkeypatch):
    save_episodes(tmp_path / "store", as_episodes(episodes("discrete")))
    dataset = load_episodes(tmp_path / "store")
    learner = aetdice_of(HORIZON, TrainingConfig())

    def said(data, config=TrainingConfig(), algorithm=learner, held=0.0):
        return streaming.streams(data, data, algorithm, config, held)

    assert said(dataset) == (False, "")
    monkeypatch.setattr(streaming, "STREAMED_BYTES", 1)
    assert said(as_episodes(episodes("discrete"))) == (False, "")  # in memory already
    stays, words = said(dataset)
    assert stays
    assert "on disk, read ahead" in words
    stays, words = said(dataset, algorithm=episode_weighting(HORIZON, TrainingConfig()))
    assert not stays
    assert "into memory (whole episodes are weighed in memory; with beta given" in words
    assert said(dataset, TrainingConfig().adapted({"trainer.streaming": False})) == (False, "")


@pytest.mark.parametrize(
    ("algorithm", "given", "settings", "message"),
    [
        ("episode-weighting", {}, {}, "whole episodes are weighed in memory"),
        ("fairdice", {"beta": 0.1}, {}, "only aetdice and bc learn from data that stays on disk"),
        ("esr-iql", {}, {}, "only aetdice and bc"),
        ("aetdice", {"beta": 0.1}, {"dual.n_step": 2}, "n-step transitions are not learned"),
        ("aetdice", {"beta": 0.1}, {"dual.refit": "layer"}, "need all data in memory"),
        ("aetdice", {"beta": [0.1, 1.0]}, {}, "episodes cannot be held out"),
        ("aetdice", {"beta": 0.1}, {"ablation.weighted_loss": True}, "weighted_loss needs all data"),
    ],
)
def test_what_cannot_be_streamed_is_refused(algorithm, given, settings, message):
    config = TrainingConfig().adapted({**settings, "trainer.streaming": True})
    objective = ser() if algorithm == "fairdice" else esr()
    with pytest.raises(InputError, match=f"trainer.streaming: .*{message}"):
        train(
            as_episodes(episodes("discrete")),
            objective,
            algorithm=algorithm,
            config=config,
            progress=False,
            **given,
        )


def test_what_is_chosen_from_a_sample_of_a_large_store_is_streamed(tmp_path, monkeypatch):
    """Several starts, so single steps: with nothing said of how to learn, the data stays on disk."""
    save_episodes(tmp_path / "store", as_episodes(episodes("continuous")))
    monkeypatch.setattr(streaming, "STREAMED_BYTES", 1)
    monkeypatch.setattr(choice, "MOST_STEPS", 100)
    told, seen = [], []
    monkeypatch.setattr(
        setup, "choose", lambda data, *rest: seen.append(data.steps) or choice.choose(data, *rest)
    )
    config = TrainingConfig().adapted(TINY)
    dataset = load_episodes(tmp_path / "store")
    run = train(dataset, esr(), config=config, progress=lambda stage, *rest: told.append(stage))
    assert "on disk, read ahead of the updates" in told[0]
    assert seen[0] <= 100 + HORIZON < dataset.steps
    assert run.members[0].params["beta"] > 0
