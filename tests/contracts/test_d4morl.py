"""D4MORL's files: every protocol reads the same, one trajectory in memory at a time."""

import pickle
import tracemalloc

import numpy as np
import pytest
from support.d4morl import trajectory, write

from aetdice.data.d4morl import ROWS, iterate_d4morl, read_d4morl
from aetdice.data.pickles import iterate_pickle
from aetdice.data.store import load_episodes, save_episodes
from aetdice.envs.mujoco import BODIES

ANT = BODIES["ant"]
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", BODIES)
def test_trajectories_come_out_as_they_went_in(tmp_path, name, protocol):
    body = BODIES[name]
    made = [trajectory(body, steps, seed=steps) for steps in (500, 3, 1)]
    episodes = read_d4morl(write(tmp_path / "file.pkl", made, protocol), body)
    assert episodes.objectives == body.objectives
    assert len(episodes) == 3
    for found, expected in zip(episodes, made, strict=True):
        frames = np.concatenate([expected["observations"], expected["next_observations"][-1:]])
        np.testing.assert_array_equal(found.observations, frames.astype(np.float32))
        np.testing.assert_array_equal(found.actions, expected["actions"].astype(np.float32))
        np.testing.assert_array_equal(found.rewards, expected["raw_rewards"])
    assert episodes.rewards.dtype == np.float64
    assert episodes.observations.dtype == episodes.actions.dtype == np.float32


@pytest.mark.parametrize(
    ("count", "protocol"), [*((n, p) for n in (1, 2, 1001) for p in PROTOCOLS), (1000, 4)]
)
def test_any_number_of_trajectories(tmp_path, protocol, count, without_type_checks):
    """Pickle writes lists in batches of a thousand."""
    swimmer = BODIES["swimmer"]
    made = [trajectory(swimmer, 1 + i % 3, seed=i) for i in range(count)]
    episodes = read_d4morl(write(tmp_path / "file.pkl", made, protocol), swimmer)
    np.testing.assert_array_equal(episodes.lengths, [1 + i % 3 for i in range(count)])
    np.testing.assert_array_equal(episodes.rewards, np.concatenate([each["raw_rewards"] for each in made]))


@pytest.mark.parametrize(
    ("steps", "terminal", "terminated"), [(500, True, False), (499, True, True), (7, False, False)]
)
def test_an_end_at_the_horizon_is_the_horizon(tmp_path, steps, terminal, terminated):
    path = write(tmp_path / "file.pkl", [trajectory(ANT, steps, terminal=terminal)])
    episode = read_d4morl(path, ANT)[0]
    assert (episode.terminated, episode.truncated) == (terminated, not terminated)


def test_limit_stops_early(tmp_path):
    path = write(tmp_path / "file.pkl", [trajectory(ANT, 2, seed=i) for i in range(5)])
    assert len(read_d4morl(path, ANT, limit=3)) == 3
    assert len(read_d4morl(path, ANT, limit=9)) == 5


def test_plain_dicts_fortran_order_and_other_number_types(tmp_path):
    made = dict(trajectory(ANT, 4))
    made["observations"] = np.asfortranarray(made["observations"].astype(">f4"))
    made["next_observations"] = np.concatenate([made["observations"][1:], np.zeros((1, 27))]).astype("f4")
    made["terminals"] = made["terminals"].astype(np.int64)
    made["note"] = "kept by someone"
    for protocol in PROTOCOLS:
        episode = read_d4morl(write(tmp_path / f"{protocol}.pkl", [made], protocol), ANT)[0]
        np.testing.assert_array_equal(episode.observations[:-1], made["observations"].astype("f4"))
        assert episode.terminated


def test_files_of_numpy_1_are_read(tmp_path):
    made = [trajectory(ANT, 3, seed=i) for i in range(2)]
    content = pickle.dumps(made, protocol=4)
    old = content.replace(b"\x8c\x16numpy._core.multiarray", b"\x8c\x15numpy.core.multiarray")
    assert old != content
    (tmp_path / "file.pkl").write_bytes(old)
    assert read_d4morl(tmp_path / "file.pkl", ANT).steps == 6


def test_rows_are_joined_across_blocks(tmp_path):
    swimmer = BODIES["swimmer"]
    made = [trajectory(swimmer, 499, seed=i) for i in range(ROWS // 499 + 2)]
    episodes = read_d4morl(write(tmp_path / "file.pkl", made), swimmer)
    assert episodes.steps > ROWS
    np.testing.assert_array_equal(episodes.rewards, np.concatenate([each["raw_rewards"] for each in made]))


def test_file_streams_into_a_store(tmp_path):
    path = write(tmp_path / "file.pkl", [trajectory(ANT, 5, seed=i) for i in range(4)])
    save_episodes(tmp_path / "store", iterate_d4morl(path, ANT), objectives=ANT.objectives)
    stored, read = load_episodes(tmp_path / "store"), read_d4morl(path, ANT)
    np.testing.assert_array_equal(stored.observations, read.observations)
    np.testing.assert_array_equal(stored.rewards, read.rewards)
    assert stored.objectives == ANT.objectives


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_memory_does_not_grow_with_the_file(tmp_path, protocol, without_type_checks):
    """A hundred and twenty trajectories take no more than thirty: one at a time."""

    def peak(count):
        path = write(
            tmp_path / f"{count}.pkl", [trajectory(ANT, 100, seed=i) for i in range(count)], protocol
        )
        tracemalloc.start()
        for _ in iterate_pickle(path):
            pass
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    assert peak(120) < 1.1 * peak(30) + 50_000


def test_reading_into_memory_stays_below_the_size_of_the_file(tmp_path, without_type_checks):
    path = write(tmp_path / "file.pkl", [trajectory(ANT, 500, seed=i) for i in range(100)])
    tracemalloc.start()
    episodes = read_d4morl(path, ANT)
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert episodes.steps == 50_000
    assert highest < path.stat().st_size
