"""The MuJoCo studies from end to end: random behaviours, episodes of twenty steps, tiny networks."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.behaviours import tiny_behaviour
from support.refusals import complaint

from aetdice import InputError
from aetdice.behaviours import behaviour
from aetdice.behaviours.collection import collect_body
from aetdice.behaviours.stored import stored_episodes
from aetdice.cli import main
from aetdice.studies import STUDIES, mujoco
from aetdice.studies.merging import merge
from aetdice.studies.mujoco_rollouts import DIRECTIONS, STILL_EPISODES
from aetdice.studies.populations import parts_of
from aetdice.studies.running import complete
from aetdice.studies.score_tables import setting
from aetdice.studies.study import Study

NAMES = ("ant", "walker2d", "cobb-douglas")
EPISODES = STILL_EPISODES
"""The same number of episodes everywhere shares compiled programs."""
FIGURES = {
    "ant": {"behaviours-expert-1-1"},
    "walker2d": set(),
    "cobb-douglas": {"collapse-walker2d-amateur-bonus"},
}


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Random policies in place of those that come with the package."""
    folder = tmp_path / "behaviours"
    monkeypatch.setattr(behaviour, "DATA", folder)
    for body in ("ant", "walker2d", "halfcheetah"):
        tiny_behaviour(body, scale=0.3).save(folder / f"{body}.npz")
    return folder


@pytest.fixture
def small(tiny, shipped):
    """The first table of a quick study, and the last."""

    def make(name: str, **changes) -> Study:
        effort = tiny(mujoco.QUICK, episodes=EPISODES, **{"dataset": EPISODES, **changes})
        tables = mujoco.tables_of(name, True, effort, 20)
        return Study(name, tables[:1] if len(tables) == 1 else (tables[0], tables[-1]))

    return make


def with_rollouts(*names: str) -> list[str]:
    return [part for name in names for part in (name, f"{name}-rollouts")]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ant", marks=pytest.mark.slow),
        pytest.param("walker2d", marks=pytest.mark.slow),
        "cobb-douglas",
    ],
)
def test_every_part_is_measured_merged_and_shown(name, small, without_training, shown, tmp_path):
    study, folder = small(name), tmp_path / name
    results = complete(parts_of(study), folder)
    text = shown(study, results, folder)
    for table in study.tables:
        assert f"{table.title} (the paper's)" in text
        assert set(results[f"{table.name}-reference"]["references"]) >= {"data"}
    for words in ("standing still", "upright at the end"):
        assert (words in text) == (name == "cobb-douglas" or words.startswith("upright"))
    assert {path.stem for path in folder.glob("*.png")} == FIGURES[name]
    for stem in FIGURES[name]:
        assert (folder / f"{stem}.png").stat().st_size > 5000
        assert json.loads((folder / f"{stem}.json").read_text())["panels"]
    summary = json.loads((folder / "summary.json").read_text())
    assert set(summary["tables"]) == {table.name for table in study.tables}
    assert '"paths"' not in json.dumps(summary)
    documented = (folder / "tables.md").read_text(encoding="utf-8")
    assert [line for line in documented.splitlines() if line.startswith("| cloning |")]
    without_training.setattr("aetdice.studies.populations.train", None)  # nothing is done twice
    assert complete(parts_of(study), folder) == results


def test_the_ant_s_figure_shows_the_kept_paths(small, without_training, shown, tmp_path):
    study = small("ant")
    results = complete(parts_of(study), tmp_path, with_rollouts("expert-1-1-aetdice"))
    shown(study, results, tmp_path)
    row = setting(merge(study, results)["tables"]["expert-1-1"]["rows"]["AETDICE"])
    panel = json.loads((tmp_path / "behaviours-expert-1-1.json").read_text())["panels"]["AETDICE"]
    assert panel["shares"] == {kind: found["mean"] for kind, found in row["quantities"][DIRECTIONS].items()}
    assert [each["path"] for each in panel["paths"]] == row["samples"]["paths"]
    assert [len(path) for path in row["samples"]["paths"]] == [3] * EPISODES  # the start, every ten steps
    assert row["samples"]["lengths"] == [20] * EPISODES
    assert sum(panel["shares"].values()) == pytest.approx(1)


def test_rollouts_need_their_policies_and_go_on_where_they_stopped(small, without_training, tmp_path):
    study, name = small("ant", seeds=(0, 1)), "expert-1-1-optidice"
    with pytest.raises(InputError, match=f"do the part {name} first"):
        complete(parts_of(study), tmp_path, [f"{name}-rollouts"])
    results = complete(parts_of(study), tmp_path, with_rollouts(name))
    policies = results[f"{name}-rollouts"]["policies"]
    assert len(policies) == 3 * 2 * 2 + 2  # three rows with two settings, and the twins, of two seeds each
    folder = tmp_path / "parts" / f"{name}-rollouts"
    folder.with_suffix(".json").unlink()
    (folder / "twin-1.json").unlink()
    changed = {"policy": "of another training", "episodes": 7}
    other = json.loads((folder / "twin-0.json").read_text()) | changed
    (folder / "twin-0.json").write_text(json.dumps(other))
    kept = {p.name: p.stat().st_mtime_ns for p in folder.glob("*.json") if p.name != "twin-0.json"}
    assert (
        complete(parts_of(study), tmp_path, [f"{name}-rollouts"])[f"{name}-rollouts"]["policies"] == policies
    )
    assert {name: (folder / name).stat().st_mtime_ns for name in kept} == kept
    folder.with_suffix(".json").unlink()
    (tmp_path / "parts" / name / "policy-0.npz").unlink()
    with pytest.raises(InputError, match="bring the folder of the training, too"):
        complete(parts_of(study), tmp_path, [f"{name}-rollouts"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [("expert-1-1-aetdice", "expert-1-1-esr-iql"), ("expert-1-1-optidice", "expert-1-1-fairdice")]
)
def test_parts_are_trained_and_rolled_out(names, small, shown, tmp_path):
    study = small("ant")
    results = complete(parts_of(study), tmp_path, with_rollouts(*names))
    assert list(results) == with_rollouts(*names)
    assert "figures and their data" in shown(study, results, tmp_path)
    for row in merge(study, results)["tables"]["expert-1-1"]["rows"].values():
        assert all(np.isfinite(score["mean"]) for score in setting(row)["scores"].values())


def test_safety_is_studied_where_walkers_fall():
    names = [part.name for part in parts_of(STUDIES["cobb-douglas"](True))]
    assert {f"walker2d-unstable-bonus-{name}" for name in ("aetdice", "safe", "reference")} <= set(names)


# Data.


def test_without_a_shipped_policy_the_error_says_how_to_train_one(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(behaviour, "DATA", tmp_path)
    said = complaint(capsys, "reproduce", "ant", "--quick", "--out", str(tmp_path / "study"))
    assert "no behaviour policy of the ant" in said
    assert "aetdice behaviours train ant" in said
    main(["reproduce", "ant", "--quick", "--list"])
    assert "expert-1-1-aetdice\n" in capsys.readouterr().out


def test_data_is_collected_once_and_must_be_the_study_s_own(small, tmp_path):
    study, name = small("ant"), "expert-1-1-reference"
    complete(parts_of(study), tmp_path, [name])
    store = tmp_path / "parts" / "data" / "ant-expert" / "manifest.json"
    first = store.stat().st_mtime_ns
    (tmp_path / "parts" / f"{name}.json").unlink()
    complete(parts_of(study), tmp_path, [name])
    assert store.stat().st_mtime_ns == first
    (tmp_path / "parts" / f"{name}.json").unlink()
    with pytest.raises(InputError, match="holds other data than this study's"):
        complete(parts_of(small("ant", dataset=6)), tmp_path, [name])


def test_two_who_need_data_at_once_collect_it_once(shipped, tmp_path, monkeypatch):
    begun = []

    def slowly(*given, **more):
        begun.append(given)
        time.sleep(0.3)
        return collect_body(*given, **more)

    monkeypatch.setattr("aetdice.behaviours.stored.collect_body", slowly)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: stored_episodes("ant", "expert", 3, 20, tmp_path / "data"), "ab"))
    assert len(begun) == 1
    assert found[0].sha256 == found[1].sha256


@pytest.mark.parametrize("name", NAMES)
def test_names_of_parts_differ_and_a_quick_study_is_part_of_the_full_one(name):
    full, quick = ([part.name for part in parts_of(STUDIES[name](quick))] for quick in (False, True))
    assert len(set(full)) == len(full)
    assert set(quick) <= set(full)
