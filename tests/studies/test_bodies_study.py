"""The studies of the bodies from end to end: random behaviours, episodes of twenty steps, tiny networks."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from support.refusals import complaint
from rich.console import Console
from support.behaviours import tiny_behaviour
from support.untrained import untrained

from aetdice.behaviours import behaviour
from aetdice.cli import main
from aetdice.config import TrainingConfig
from aetdice.errors import InputError
from aetdice.studies.bodies import PLANS, parts, parts_of, report
from aetdice.studies.bodies.paper import paper_rows
from aetdice.studies.parts import complete

EPISODES = parts.STILL_EPISODES
"""The same number of episodes everywhere shares compiled programs."""
TINY = {
    "trajectories": EPISODES,
    "reference": 5,
    "betas": (1.0, 0.3),
    "baseline_steps": 20,
    "episodes": EPISODES,
    "horizon": 20,
    "config": TrainingConfig(
        hidden=(4,),
        batch=8,
        value_steps=20,
        cloning_steps=20,
        chunk=20,
        holdout=0.25,
        frequencies=2,
        polish="none",
    ),
}
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


def tiny(study: str):
    """Its first table and its last."""
    quick = PLANS[study][1]
    return replace(quick, scenes=tuple(dict.fromkeys((quick.scenes[0], quick.scenes[-1]))), **TINY)


def shown(results, plan, folder) -> str:
    console = Console(width=240, record=True, file=io.StringIO())
    console.print(report(results, plan, folder))
    return console.export_text()


def with_walks(names: list[str]) -> list[str]:
    return [part for name in names for part in (name, f"{name}-walks")]


@pytest.mark.parametrize("study", PLANS)
def test_every_part_is_measured_merged_and_shown(study, shipped, monkeypatch, tmp_path):
    monkeypatch.setattr(parts, "train", untrained)
    plan, folder = tiny(study), tmp_path / study
    results = complete(parts_of(plan), folder)
    text = " ".join(shown(results, plan, folder).split())  # long titles are broken
    for scene in plan.scenes:
        assert f"{scene.title} (the paper's)" in text
        assert set(paper_rows(scene)) <= {*_rows(results, scene.name), "cloning"}
        assert results[f"{scene.name}-reference"]["references"]["data"]["episodes"] == EPISODES
    for words in ("standing still", "without and with the safety utility"):
        assert (words in text) == (study == "cobb-douglas")
    assert {path.stem for path in folder.glob("*.png")} == FIGURES[study]
    for stem in FIGURES[study]:
        assert (folder / f"{stem}.png").stat().st_size > 5000
        assert json.loads((folder / f"{stem}.json").read_text())["panels"]
    summary = json.loads((folder / "summary.json").read_text())
    assert set(summary["scenes"]) == {scene.name for scene in plan.scenes}
    assert set(summary["made"]) == set(results)
    assert all({"facts", "device", "versions"} <= set(made) for made in summary["made"].values())
    assert '"ways"' not in json.dumps(summary)
    documented = (folder / "tables.md").read_text(encoding="utf-8")
    assert [line for line in documented.splitlines() if line.startswith("| cloning |")]
    assert all(f"| {scene.title} |" in documented for scene in plan.scenes)
    monkeypatch.setattr(parts, "train", None)  # nothing is done twice
    assert complete(parts_of(plan), folder) == results


def _rows(results, scene: str) -> list[str]:
    return [row for name, part in results.items() if name.startswith(scene) for row in part.get("rows", {})]


def test_the_ant_s_figure_shows_the_kept_ways(shipped, monkeypatch, tmp_path):
    monkeypatch.setattr(parts, "train", untrained)
    plan = tiny("ant")
    results = complete(parts_of(plan), tmp_path / "ant", with_walks(["expert-1-1-aetdice"]))
    shown(results, plan, tmp_path / "ant")
    [seed] = results["expert-1-1-aetdice-walks"]["rows"]["AETDICE"]["seeds"]
    panel = json.loads((tmp_path / "ant" / "behaviours-expert-1-1.json").read_text())["panels"]["AETDICE"]
    assert panel["shares"] == seed["shares"]
    assert [path["way"] for path in panel["paths"]] == seed["ways"]
    assert [len(way) for way in seed["ways"]] == [3] * EPISODES  # the start, and every ten steps
    assert seed["lengths"] == [20] * EPISODES
    assert sum(seed["shares"].values()) == pytest.approx(1)


def test_safety_is_studied_where_walkers_fall():
    names = [part.name for part in parts_of(PLANS["cobb-douglas"][1])]
    assert {f"walker2d-unstable-bonus-{name}" for name in ("aetdice", "safe", "reference")} <= set(names)


def test_discounted_methods_look_as_far_as_an_episode_lasts():
    part = next(part for part in parts_of(PLANS["ant"][0]) if part.name == "expert-1-1-optidice")
    assert part.facts["config"]["gamma"] == 1 - 1 / part.facts["horizon"]


def test_parts_may_be_missing(shipped, tmp_path):
    assert "figures and their data" in shown({}, tiny("cobb-douglas"), tmp_path)


@pytest.mark.parametrize(
    ("study", "names"),
    [
        ("ant", ["expert-1-1-aetdice"]),
        pytest.param("ant", ["expert-1-1-aet-esr", "expert-1-1-esr-iql"], marks=pytest.mark.slow),
        pytest.param("ant", ["expert-1-1-optidice", "expert-1-1-fairdice"], marks=pytest.mark.slow),
        pytest.param(
            "cobb-douglas",
            [f"walker2d-amateur-bonus-{name}" for name in ("aetdice", "esr-iql", "safe")],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_parts_are_trained(study, names, shipped, tmp_path):
    plan = tiny(study)
    results = complete(parts_of(plan), tmp_path, with_walks(names))
    assert list(results) == with_walks(names)
    text = shown(results, plan, tmp_path)
    for name in names:
        for row, found in results[f"{name}-walks"]["rows"].items():
            assert row in text
            assert np.isfinite(found["seeds"][0]["scores"]["trained"]["value"])


def test_walks_need_their_policies_and_go_on_where_they_stopped(shipped, monkeypatch, tmp_path):
    monkeypatch.setattr(parts, "train", untrained)
    plan, name = replace(tiny("ant"), seeds=(0, 1)), "expert-1-1-optidice"
    with pytest.raises(InputError, match=f"do the part {name} first"):
        complete(parts_of(plan), tmp_path, [f"{name}-walks"])
    results = complete(parts_of(plan), tmp_path, with_walks([name]))
    walked = results[f"{name}-walks"]
    row = walked["rows"]["Lin-[1, 0]"]
    assert set(row["scores"]) == {str(i) for i in results[name]["rows"]["Lin-[1, 0]"]["walking"]}
    assert [seed["seed"] for seed in (*row["seeds"], *walked["twins"])] == [0, 1, 0, 1]
    assert all(row["scores"][str(row["setting"])] >= score for score in row["scores"].values())
    folder = tmp_path / "parts" / f"{name}-walks"
    folder.with_suffix(".json").unlink()
    (folder / "twin-1.json").unlink()
    other = json.loads((folder / "twin-0.json").read_text()) | {"policy": "of another training", "upright": 7}
    (folder / "twin-0.json").write_text(json.dumps(other))
    kept = {p.name: p.stat().st_mtime_ns for p in folder.iterdir() if p.name != "twin-0.json"}
    assert complete(parts_of(plan), tmp_path, [f"{name}-walks"])[f"{name}-walks"] == walked
    assert {name: (folder / name).stat().st_mtime_ns for name in kept} == kept


# Data.


def test_without_a_shipped_policy_the_error_says_how_to_train_one(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(behaviour, "DATA", tmp_path)
    said = complaint(capsys, "reproduce", "ant", "--quick", "--out", str(tmp_path / "study"))
    assert "no behaviour policy of the ant" in said
    assert "aetdice behaviours train ant" in said
    main(["reproduce", "ant", "--quick", "--list"])
    assert "expert-1-1-aetdice\n" in capsys.readouterr().out


def test_data_is_collected_once_and_must_be_the_study_s_own(shipped, tmp_path):
    plan, name = tiny("ant"), "expert-1-1-reference"
    complete(parts_of(plan), tmp_path, [name])
    store = tmp_path / "parts" / "data" / "ant-expert" / "manifest.json"
    first = store.stat().st_mtime_ns
    (tmp_path / "parts" / f"{name}.json").unlink()
    complete(parts_of(plan), tmp_path, [name])
    assert store.stat().st_mtime_ns == first
    (tmp_path / "parts" / f"{name}.json").unlink()
    with pytest.raises(InputError, match="holds other data than this study's"):
        complete(parts_of(replace(plan, trajectories=6)), tmp_path, [name])


@pytest.mark.parametrize("study", PLANS)
@pytest.mark.parametrize("size", [0, 1])
def test_names_of_parts_differ_and_a_quick_study_is_part_of_the_full_one(study, size):
    names = [part.name for part in parts_of(PLANS[study][size])]
    assert len(set(names)) == len(names)
    assert set(names) <= {part.name for part in parts_of(PLANS[study][0])}
