"""Logs that look right and are easily read wrong: what a value means must survive every way in."""

import io
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv
from support.logs import COLUMNS, log_columns, log_episodes
from support.policies import OBJECTIVES, outputs_of, policy_of

from aetdice import Columns, Episode, Episodes, InputError, load_dataset
from aetdice.data import FORMATS
from aetdice.data.doctor import examine, examine_episodes
from aetdice.data.mending import mend
from aetdice.networks import Categorical
from aetdice.serving import policy_model
from aetdice_runner import Runner


def read(text, **given):
    return load_dataset(csv.read_csv(io.BytesIO(text.replace(" ", ",").encode())), **given)


def test_words_with_underscores_are_words():
    """Python's float reads 1_0 as 10."""
    found = read("episode obs action reward\n0 .5 1_0 1\n0 .6 1_1 1\n0 .3 2_0 1")
    assert found.coding.actions == (("1_0",), ("1_1",), ("2_0",))


def test_flag_beside_the_last_observation_counts():
    """Many logs set it in the row that has no action any more."""
    log = {"episode": ["a", "a", "b", "b"], "obs": [0.5, 0.6, 0.1, 0.2], "done": [False, True, False, False]}
    found = load_dataset(pa.table({**log, "action": [1, None, 0, None], "reward": [1.0, None, 1.0, None]}))
    assert (found.lengths.tolist(), found.terminated.tolist()) == ([1, 1], [True, False])


@pytest.mark.parametrize("words", [("False", "True"), ("false", "TRUE")])
def test_flags_may_be_words(words):
    found = load_dataset(pd.DataFrame({"obs": [0.1, 0.2], "action": [0, 1], "reward": 1.0, "done": words}))
    assert found.terminated.tolist() == [True]


def test_next_observations_are_matched_by_name():
    """One-step episodes have no next row that would give a mix-up away."""
    head = "episode obs_x obs_y action reward next_obs_y next_obs_x"
    found = read(f"{head}\n0 1.5 10.5 0 1 20.5 2.5\n1 1.5 10.5 1 1 30.5 3.5")
    assert found.observations.tolist() == [[1.5, 10.5], [2.5, 20.5], [1.5, 10.5], [3.5, 30.5]]
    guessed = read("episode queue next_queue action reward\n0 1.5 2.5 0 1\n0 2.5 3.5 1 1")
    assert [column.name for column in guessed.coding.observations] == ["queue"]
    assert guessed.observations[:, 0].tolist() == [1.5, 2.5, 3.5]


def test_dates_tell_episodes_apart():
    found = read(
        "shift obs action reward\n2026-01-01 .5 0 1\n2026-01-01 .5 0 1\n2026-01-02 .5 1 1", ends="shift"
    )
    assert found.lengths.tolist() == [2, 1]


def test_doctor_calls_episodes_by_their_dates(tmp_path):
    rows = "2026-01-01,0,.5,0,1\n2026-01-01,1,.5,1,1\n2026-01-02,0,.5,1,1\n2026-01-02,0,.5,,1\n"
    (tmp_path / "log.csv").write_text("shift,step,obs,action,reward\n" + rows)
    places = {each.kind: each.where for each in examine(tmp_path / "log.csv").findings}
    assert places["repeated step"].endswith("line 5 (episode 2026-01-02, step 0)")
    assert set(places) == {"repeated step", "missing"}


def many_columns(count=14, rows=50):
    """Fifty to the fourteenth is beyond any integer."""
    acted = {f"action_{i}": [f"w{(row * 7 + i * 3) % 50}" for row in range(rows)] for i in range(count)}
    return pd.DataFrame({"episode": 0, "obs": np.linspace(0, 1, rows), "reward": 1.0, **acted})


def test_combinations_of_many_columns_keep_their_meaning():
    log = many_columns()
    found = load_dataset(log)
    meant = [tuple(row) for row in log.filter(like="action_").itertuples(index=False)]
    assert found.coding.decode(found.actions).tolist() == meant


def test_actions_beyond_whole_numbers_are_classes_of_their_own():
    found = read("episode obs action reward\n0 .5 1e30 1\n0 .6 2e30 1")
    assert found.coding.actions == ((int(1e30),), (int(2e30),))


def test_multi_discrete_actions_reach_the_runner_with_their_meaning():
    """Two columns of actions, coded in the log and called by their names where the policy acts."""
    rng, rows = np.random.default_rng(0), []
    for day, step in np.ndindex(20, 3):
        seen = rng.random(), str(rng.choice(["dry", "rain"]))
        rows.append((day, step, *seen, str(rng.choice(["go", "stay"])), int(rng.choice([5, 70, 900])), 1, 2))
    names = (
        "episode",
        "step",
        "obs_queue",
        "obs_weather",
        "action_how",
        "action_much",
        "reward_a",
        "reward_b",
    )
    log = load_dataset(pd.DataFrame(rows, columns=names))
    assert log.coding.decode(log.actions).tolist() == [row[4:6] for row in rows]
    policy = policy_of(head=Categorical(len(log.coding.actions)), coding=log.coding, scale=3.0)
    seen = log.coding.encode([row[2:4] for row in rows])
    told = [{"weather": row[3], "queue": row[2]} for row in rows]
    said = Runner(policy_model(policy)).start(len(rows), greedy=True).act(told).tolist()
    logits = outputs_of(policy.network, jnp.asarray(seen, jnp.float32), *zeros(len(rows)))
    assert said == [log.coding.actions[index] for index in np.argmax(logits, axis=1)]
    assert len(set(said)) > 2


def zeros(count):
    return jnp.zeros((count, OBJECTIVES)), jnp.zeros(count, jnp.int32)


# Arrays.


def archive(tmp_path, **changes):
    arrays = {
        "observations": np.arange(10.0).reshape(5, 2) / 3,
        "actions": np.array([0, 1, 1]),
        "rewards": np.ones((3, 2)),
        "lengths": np.array([2, 1]),
        "terminated": np.array([True, False]),
        "truncated": np.array([False, True]),
    }
    np.savez(tmp_path / "log.npz", **{**arrays, **changes})
    return tmp_path / "log.npz"


def test_archives_may_have_numbers_for_flags_and_words_for_actions(tmp_path):
    flags = {"terminated": np.array([1, 0]), "truncated": np.array([0.0, 1.0])}
    found = load_dataset(archive(tmp_path, **flags, actions=np.array(["go", "stay", "go"])))
    assert found.terminated.tolist() == [True, False]
    assert found.coding.actions == (("go",), ("stay",))
    assert load_dataset(archive(tmp_path, rewards=np.ones(3))).objectives == ("r0",)
    whole = load_dataset(archive(tmp_path, actions=np.array(["1", "2", "1"])))
    assert whole.actions.tolist() == [1, 2, 1]  # as in a table


@pytest.mark.parametrize("facts", ["3", '"ends"', '{"ends": "shift", "coding": null}'])
def test_archives_with_facts_of_others_are_read(tmp_path, facts):
    found = load_dataset(archive(tmp_path, facts=np.frombuffer(facts.encode(), np.uint8)))
    assert found.ends == ("shift" if facts.startswith("{") else "recording")


def test_names_that_arrays_do_not_have_are_refused(tmp_path):
    with pytest.raises(InputError, match="there is no column 'zone'; the columns are obs_0, obs_1, action"):
        load_dataset(archive(tmp_path), columns={"categories": "zone"})
    FORMATS["npz"].write(tmp_path / "kept.npz", log_episodes())
    with pytest.raises(InputError, match=r"kept\.npz keeps its columns"):
        load_dataset(tmp_path / "kept.npz", columns={"categories": "queue"})


@pytest.mark.parametrize("name", ["npz", "store"])
def test_horizon_is_kept_with_the_file(tmp_path, name):
    """Without it the longest cut recording would pass for a whole episode."""
    log = load_dataset(pa.table(log_columns()), columns=COLUMNS, ends="recording", horizon=9)
    FORMATS[name].write(tmp_path / "log.npz", log)
    found = load_dataset(tmp_path / "log.npz", format=name)
    assert (found.horizon, found.notes[-1]) == (9, log.notes[-1])


# The doctor.


def test_category_of_one_value_is_constant():
    frame = pd.DataFrame(
        {"episode": 0, "obs_q": np.linspace(0, 1, 9), "obs_w": "dry", "action": [0, 1, 0] * 3}
    )
    frame["reward"] = frame["obs_q"]
    words = [finding.words for finding in examine_episodes(load_dataset(frame))]
    assert "always dry" in words


def test_doctor_counts_what_is_not_finite_in_arrays(tmp_path):
    seen = np.arange(10.0).reshape(5, 2)
    seen[[1, 4], 1], seen[3, 0] = np.nan, -np.inf
    path = archive(tmp_path, observations=seen, rewards=np.array([[1, 2], [np.nan, 1], [1, 1]]))
    found = [(each.kind, each.where.split("log.npz ")[1], each.words) for each in examine(path).findings]
    assert found == [
        ("missing", "(episode 0, step 1)", "column 'obs_1': 2 values are missing"),
        ("missing", "(episode 0, step 1)", "column 'r0': 1 values are missing"),
        ("infinite", "(episode 1, step 0)", "column 'obs_0': 1 values are infinite"),
    ]
    np.savez(
        tmp_path / "flat.npz", observations=seen[:3], actions=[0, 1, 0], rewards=np.ones(3), done=[0, 0, 1]
    )
    (one,) = examine(tmp_path / "flat.npz").findings
    assert one.words == (
        "column 'observations_1': 1 values are missing; fill them in, or leave the column out "
        "(--columns ignored=observations_1)"
    )


def test_doctor_counts_what_is_not_finite_in_minari(tmp_path, monkeypatch):
    import h5py

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    episode = Episode(np.arange(8.0).reshape(4, 2) / 3, np.array([0, 1, 1]), np.ones((3, 2)), True, False)
    FORMATS["minari"].write(Path("test/log-v0"), Episodes.from_list([episode, episode]))
    with h5py.File(tmp_path / "test" / "log-v0" / "data" / "main_data.hdf5", "r+") as file:
        file["episode_1"]["rewards"][1:, 1] = np.nan
    (found,) = examine("test/log-v0").findings
    assert (found.where, found.words) == (
        "test/log-v0 (episode 1, step 1)", "column 'r1': 2 values are missing"
    )  # fmt: skip


def test_mending_gives_ids_that_nobody_has(tmp_path):
    rows = [("a", 0), ("a", 1), ("a", 0), ("a#2", 0), ("b", 0), ("b", 0)]
    frame = pd.DataFrame(rows, columns=["episode", "step"]).assign(obs=[1.5, 2, 3, 4, np.nan, np.nan])
    frame.assign(action=0, reward=1.0).to_parquet(tmp_path / "log.parquet")
    done = mend(tmp_path / "log.parquet", Columns(), tmp_path / "out.csv")
    assert "1 repeated rows are left out" in done  # though a missing value never equals another
    ids = pd.read_csv(tmp_path / "out.csv")["episode"].tolist()
    assert sorted(set(ids)) == ["a", "a##2", "a#2", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "actions=send"}, "columns are a mapping from roles to names, not 'actions=send'"),
        ({"horizon": "12"}, "the horizon is a number of steps, 1 or more, not '12'"),
        ({"horizon": 2.5}, "not 2.5"),
        ({"horizon": 0}, "not 0"),
    ],
)
def test_what_is_said_in_a_wrong_form_is_refused(options, message, without_type_checks):
    with pytest.raises(InputError, match=re.escape(message)):
        load_dataset(pd.DataFrame(log_columns()), **{"columns": COLUMNS, **options})


@pytest.mark.parametrize("name", ["served", "truncated"])
def test_words_that_are_all_missing_are_missing(name):
    log = log_columns()
    nothing = pa.array([None] * len(log[name]), pa.string())
    with pytest.raises(InputError, match=f"column '{name}' is missing"):
        load_dataset(pa.table({**log, name: nothing}), columns=COLUMNS, ends="recording")
