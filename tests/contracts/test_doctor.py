"""The doctor: each planted defect is found and named, and a healthy log is left in peace."""

import json

import numpy as np
import pandas as pd
import pytest
from support.refusals import complaint

from aetdice import Episode, Episodes, load_dataset
from aetdice.cli import main
from aetdice.data import FORMATS, Columns
from aetdice.data.doctor import examine, examine_episodes

EPISODES, STEPS = 60, 10


def healthy(seed: int = 0, *, noise: float = 0.0) -> pd.DataFrame:
    """Sixty episodes of ten steps that end by the clock; rewards follow from state and action."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(EPISODES):
        x, y = rng.normal(size=2)
        for step in range(STEPS):
            action = int(rng.integers(0, 3))
            gains = 1 + abs(x) * (action == 0), 1 + abs(y) * (action == 1) + 0.1 * (action == 2)
            rows.append((episode, step, x, y, action, *gains, False, step == STEPS - 1))
            x, y = 0.3 * x + action - 1 + noise * rng.normal(), 0.3 * y - action + 1 + noise * rng.normal()
    names = ["episode", "step", "obs_x", "obs_y", "action", "reward_a", "reward_b", "terminated", "truncated"]
    return pd.DataFrame(rows, columns=names)


def findings(path, log: pd.DataFrame, **options):
    log.to_csv(path / "log.csv", index=False)
    return examine(path / "log.csv", **options).findings


def kinds(path, log: pd.DataFrame, level: str | None = None, **options):
    return {each.kind for each in findings(path, log, **options) if each.level != "note" or level == "note"}


def test_a_healthy_log_is_left_in_peace(tmp_path):
    assert kinds(tmp_path, healthy()) == set()


def at(log: pd.DataFrame, episode: int, step: int) -> int:
    return episode * STEPS + step


def missing(log):
    log.loc[at(log, 3, 4), "reward_b"] = np.nan


def missing_observation(log):
    log.loc[at(log, 5, 9), "obs_x"] = np.nan


def missing_step(log):
    log.loc[at(log, 5, 9), "step"] = np.nan


def infinite(log):
    log.loc[at(log, 3, 4), "obs_x"] = np.inf


def swapped(log):
    rows = [at(log, 2, 3), at(log, 2, 4)]
    log.loc[rows] = log.loc[rows[::-1]].to_numpy()


def repeated(log):
    log.loc[at(log, 2, 4), "step"] = 3


def skipped(log):
    log.loc[log.episode == 7, "step"] += log.step[log.episode == 7] > 5


def shared(log):
    log.loc[log.episode == 9, "episode"] = 8


def early_end(log):
    log.loc[at(log, 4, 4), "terminated"] = True


def early_cut(log):
    log.loc[at(log, 4, 4), "truncated"] = True


ROWS = {
    "missing": (missing, "line 36 (episode 3, step 4)", "column 'reward_b': 1 values are missing"),
    "missing ": (missing_observation, "line 61 (episode 5, step 9)", "column 'obs_x': 1 values are missing"),
    "missing  ": (missing_step, "line 61 (episode 5, step missing)", "column 'step': 1 values are missing"),
    "infinite": (infinite, "line 36 (episode 3, step 4)", "column 'obs_x': 1 values are infinite"),
    "order": (swapped, "line 25 (episode 2, step 4)", "rows are out of order at"),
    "repeated step": (repeated, "line 26 (episode 2, step 3)", "1 steps are repeated"),
    "missing step": (skipped, "line 78 (episode 7, step 7)", "steps are missing before 1 rows (here 5 to 7)"),
    "shared id": (shared, "line 92 (episode 8, step 0)", "1 episodes share the id of an earlier one"),
    "terminated early": (
        early_end,
        "line 46 (episode 4, step 4)",
        "1 rows are terminated, but their episode goes on",
    ),
    "truncated early": (
        early_cut,
        "line 46 (episode 4, step 4)",
        "1 rows are truncated, but their episode goes on",
    ),
}


@pytest.mark.parametrize("kind", ROWS)
def test_rows_are_looked_at(kind, tmp_path):
    spoil, where, words = ROWS[kind]
    log = healthy()
    spoil(log)
    found = {each.kind: each for each in findings(tmp_path, log) if each.level == "error"}
    assert where in found[kind.strip()].where
    assert words in found[kind.strip()].words


def copied(log):
    log["reward_b"] = log.reward_a


def negative(log):
    log["reward_b"] = -log.reward_a


def late(log):
    log["reward_a"] = log.reward_a.shift(1, fill_value=0)


def early(log):
    log["reward_b"] = log.reward_b.shift(-1, fill_value=0)


def constant(log):
    log["obs_y"] = 3.5


def wild(log):
    log.loc[at(log, 6, 2), "obs_y"] = 1e9


def outlier(log):
    log.loc[at(log, 6, 2), "obs_y"] = 9e4


def skipped_action(log):
    log["action"] = log.action.replace({2: 4})


def lone_action(log):
    log.loc[7, "action"] = 3


def timeouts(log):
    log["terminated"], log["truncated"] = log.truncated, log.terminated


def losses(log):
    log["reward_a"] -= 10


def counter(log):
    log["obs_y"] = np.arange(len(log)) + 0.5


VALUES = {
    "counter": (counter, "observation 'y'", "grows with every row of the log"),
    "copy": (copied, "objective 'b'", "is a copy of 'a'"),
    "copy ": (negative, "objective 'b'", "is the negative of 'a'"),
    "shifted reward": (late, "objective 'a'", "it stands one row too late, perhaps"),
    "shifted reward ": (early, "objective 'b'", "it stands one row too early, perhaps"),
    "constant": (constant, "observation 'y'", "always 3.5: it says nothing"),
    "scale": (wild, "observation 'y'", "reaches 1e+09 (episode 6, step 2)"),
    "outlier": (outlier, "observation 'y'", "reaches 90000 (episode 6, step 2), far from the rest"),
    "action never": (skipped_action, "action 'action'", "2, 3 never occur"),
    "action once": (lone_action, "action 'action'", "3 occur once"),
    "time-out": (
        timeouts,
        "terminated",
        "60 of 60 terminated episodes end exactly at the longest length, 10",
    ),
    "feasible": (losses, "objective 'a'", "log E[R] (ser) does not exist"),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_looked_at(kind, tmp_path):
    spoil, where, words = VALUES[kind]
    log = healthy()
    spoil(log)
    found = [
        each for each in findings(tmp_path, log) if each.kind == kind.strip() and each.level == "warning"
    ]
    assert [where] == [each.where for each in found]
    assert words in found[0].words


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_transitions_look_stochastic_where_they_are(noise, tmp_path):
    (found,) = (each for each in findings(tmp_path, healthy(noise=noise)) if each.kind == "stochastic")
    assert ("look stochastic" in found.words) == (noise > 0)


def test_discrete_transitions_are_counted():
    def episode(after):
        return Episode(np.array([0, after, 2]), np.array([0, 1]), np.ones((2, 1)), True, False)

    def words(*after):
        found = examine_episodes(Episodes.from_list([episode(each) for each in after]))
        return next(each.words for each in found if each.kind == "stochastic")

    assert "transitions look deterministic" in words(1, 1)
    assert "transitions are stochastic: of 1 states and actions seen more than once, 100%" in words(1, 2)


def ragged_log() -> pd.DataFrame:
    log = healthy()
    lengths = 3 + np.arange(EPISODES) % (STEPS - 2)
    log = log[log.step < lengths[log.episode]].copy()
    log["truncated"] = log.step == lengths[log.episode] - 1
    return log


def test_meaning_of_early_ends_is_asked_for(tmp_path):
    log = ragged_log()
    (found,) = (each for each in findings(tmp_path, log) if each.kind == "ends")
    assert (found.level, found.count) == ("warning", 53)
    assert (
        "taken for ends by design (shift): nothing follows them; --ends shift or --ends recording"
        in found.words
    )
    assert "ends" not in kinds(tmp_path, log, ends="shift")
    assert "ends" in kinds(tmp_path, log, ends="recording")  # 53 of 60 made up for by 7


def test_late_steps_that_few_episodes_reach_are_named(tmp_path):
    log = healthy()
    log = log[(log.step < 5) | (log.episode == 0)].copy()
    log["truncated"] = (log.step == 4) & (log.episode > 0) | (log.step == STEPS - 1)
    found = [each for each in findings(tmp_path, log, ends="shift") if each.kind == "coverage"]
    assert found[0].words.startswith("1 of 60 episodes last beyond three quarters of the longest (10 steps)")


def test_rewards_that_pay_by_the_step_and_labels_are_noted(tmp_path):
    log = ragged_log()
    log["obs_z"] = np.arange(len(log)) % 3 + 1.0
    log["obs_y"] += 0.001
    found = {each.kind: each for each in findings(tmp_path, log, ends="shift") if each.level == "note"}
    assert "every step brings at least 1, so episodes gain by lasting" in found["length"].words
    assert (
        "has few values (1, 2, 3): if they are labels, say --columns categories=z"
        in found["categorical"].words
    )


def test_mended_file_holds_the_same_episodes(tmp_path, capsys):
    log = healthy()
    log.to_csv(tmp_path / "good.csv", index=False)
    spoilt = pd.concat([log, log.iloc[[5, 17]]])  # two rows twice
    spoilt = spoilt.sort_values(["step", "episode"], kind="stable")  # as many sessions at once would log
    spoilt.to_csv(tmp_path / "bad.csv", index=False)
    main(["doctor", str(tmp_path / "bad.csv"), "--fix", str(tmp_path / "mended.parquet")])
    said = capsys.readouterr().out
    assert "rows are in order; 2 repeated rows are left out" in said
    assert load_dataset(tmp_path / "mended.parquet").sha256 == load_dataset(tmp_path / "good.csv").sha256


def test_episodes_that_share_an_id_are_told_apart(tmp_path, capsys):
    log = healthy()
    log.to_csv(tmp_path / "good.csv", index=False)
    log["episode"] //= 2
    log.to_csv(tmp_path / "bad.csv", index=False)
    main(["doctor", str(tmp_path / "bad.csv"), "--fix", str(tmp_path / "mended.csv")])
    assert "30 episodes that shared an id have one of their own" in capsys.readouterr().out
    assert load_dataset(tmp_path / "mended.csv").sha256 == load_dataset(tmp_path / "good.csv").sha256


def test_rows_without_a_step_are_not_sorted(tmp_path, capsys):
    log = healthy()
    missing_step(log)
    log.to_csv(tmp_path / "log.csv", index=False)
    said = complaint(capsys, "doctor", str(tmp_path / "log.csv"), "--fix", str(tmp_path / "out.csv"))
    assert "without whole episode and step columns nothing tells the right order" in said


def test_nothing_is_written_where_nothing_can_be_mended(tmp_path, capsys):
    log = healthy()
    missing(log)
    log.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", str(tmp_path / "log.csv"), "--fix", str(tmp_path / "out.csv")])
    assert stopped.value.code == 1
    assert "nothing to mend" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_report_as_json_and_exit_codes(tmp_path, capsys):
    healthy().to_csv(tmp_path / "log.csv", index=False)
    main(["doctor", str(tmp_path / "log.csv"), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert {each["level"] for each in report["findings"]} == {"note"}
    log = healthy()
    wild(log)
    log.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", str(tmp_path / "log.csv")])
    assert stopped.value.code == 1
    assert "0 errors, 1 warnings" in capsys.readouterr().out
    (tmp_path / "log.csv").write_text("x\n1\n")
    assert "there is no column for rewards" in complaint(capsys, "doctor", str(tmp_path / "log.csv"))


def test_every_format_is_examined(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    log = healthy()
    wild(log)
    log.to_csv(tmp_path / "log.csv", index=False)
    data = load_dataset(tmp_path / "log.csv", columns=Columns())
    wanted = examine_episodes(data, said=False)
    for name, target in {
        "npz": tmp_path / "a.npz",
        "store": tmp_path / "a",
        "parquet": tmp_path / "a.pq",
    }.items():
        FORMATS[name].write(target, data)
        assert examine(target).findings == wanted
