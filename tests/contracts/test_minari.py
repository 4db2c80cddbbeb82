"""Minari: episodes with vector rewards go there and come back."""

import sys

import h5py
import numpy as np
import pytest
from test_episodes import make

from aetdice.data import Episode, Episodes
from aetdice.data.minari import load_minari, load_minari_facts, save_minari
from aetdice.errors import InputError

PARTS = ("observations", "actions", "rewards", "lengths", "terminated", "truncated")


@pytest.fixture(autouse=True)
def datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("streamed", [True, False])
def test_round_trip(streamed):
    given = [make(length, seed=length, objectives=3, terminated=length % 2 == 0) for length in (3, 1, 4)]
    episodes = Episodes.from_list(given, ["a", "b", "c"])
    save_minari(
        "test/round-v0",
        iter(given) if streamed else episodes,
        objectives=("a", "b", "c") if streamed else None,
        facts={"seed": 3, "transforms": []},
    )
    found = load_minari("test/round-v0")
    assert found.objectives == ("a", "b", "c")
    assert load_minari_facts("test/round-v0") == {"seed": 3, "transforms": []}
    for part in PARTS:
        np.testing.assert_array_equal(getattr(found, part), getattr(episodes, part))
        assert getattr(found, part).dtype == getattr(episodes, part).dtype


def test_continuous_actions_images_and_bools():
    rng = np.random.default_rng(0)
    for number, observations in enumerate(
        (
            rng.integers(0, 256, (4, 32, 32, 3)).astype(np.uint8),
            rng.random((4, 5)).astype(np.float32),
            rng.random((4, 2)) > 0.5,
        )
    ):
        episode = Episode(observations, rng.random((3, 2)), rng.random((3, 2)), False, True)
        save_minari(f"test/kinds-v{number}", [episode])
        np.testing.assert_array_equal(load_minari(f"test/kinds-v{number}").observations, observations)


def test_file_is_hdf5_with_a_column_per_objective(datasets):
    save_minari("test/file-v0", [make(3)])
    with h5py.File(datasets / "test" / "file-v0" / "data" / "main_data.hdf5") as file:
        assert file["episode_0/rewards"].shape == (3, 2)


def test_scalar_rewards_are_one_objective_and_a_cut_recording_is_truncated(datasets):
    save_minari("test/scalar-v0", [make(3, objectives=1)])
    with h5py.File(datasets / "test" / "scalar-v0" / "data" / "main_data.hdf5", "a") as file:
        rewards = file["episode_0/rewards"][:, 0]
        del file["episode_0/rewards"]
        file["episode_0/rewards"] = rewards
        file["episode_0/truncations"][-1] = False
    found = load_minari("test/scalar-v0")
    np.testing.assert_array_equal(found.rewards[:, 0], rewards)
    assert (found.terminated.tolist(), found.truncated.tolist()) == ([False], [True])


def test_failed_write_leaves_no_dataset():
    spoilt = make(2)._replace(rewards=[["a", "b"]] * 2)
    with pytest.raises(InputError, match="episode 1"):
        save_minari("test/failed-v0", [make(2), spoilt])
    with pytest.raises(InputError, match="there is no local Minari dataset 'test/failed-v0'"):
        load_minari("test/failed-v0")
    save_minari("test/failed-v0", [make(2)])


def test_existing_dataset_is_not_overwritten():
    save_minari("test/twice-v0", [make(2)])
    with pytest.raises(InputError, match="'test/twice-v0' exists; delete it or choose another version"):
        save_minari("test/twice-v0", [make(3)])
    assert load_minari("test/twice-v0").steps == 2


def test_nothing_and_nonsense_are_refused():
    with pytest.raises(InputError, match="a dataset needs at least one episode"):
        save_minari("test/empty-v0", [])
    with pytest.raises(InputError, match="is not a Minari id like ant/expert-v0"):
        save_minari("no id at all!", [make(2)])


def test_missing_minari_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(InputError, match=r"pip install 'aetdice\[minari\]'"):
        load_minari("test/any-v0")


def test_full_disk_is_one_sentence_and_leaves_nothing(datasets, monkeypatch, capfd):
    """A real one would leave HDF5 broken for the other tests; this is what it says then."""

    def full(dataset_id, **_):
        (datasets / dataset_id / "data").mkdir(parents=True)
        raise ValueError(
            "file write failed: time = now\n, errno = 28, error message = 'No space left on device'"
        )

    monkeypatch.setattr("minari.create_dataset_from_buffers", full)
    with pytest.raises(InputError) as refused:
        save_minari("test/full-v0", [make(3, seed=0)])
    assert str(refused.value) == "test/full-v0 cannot be written: No space left on device"
    assert not (datasets / "test" / "full-v0").exists()
    assert capfd.readouterr() == ("", "")
