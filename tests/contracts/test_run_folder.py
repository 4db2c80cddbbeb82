"""The folder of a run: written by Python or the command line, read by both, and never half a run."""

import functools
import json
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import complaint
from support.training import parameters, tiny_episodes

from aetdice import (
    InputError,
    Objective,
    TrainingConfig,
    bsr,
    esr,
    evaluate,
    load_dataset,
    load_policy,
    load_run,
    lsr,
    resume,
    ser,
    train,
)
from aetdice.cli import main
from aetdice.datasets import environment_of
from aetdice.files import write_json
from aetdice.learning.run import Run
from aetdice.learning.trackers import WeightsAndBiases
from aetdice.report import progress

pytestmark = pytest.mark.trains

SMALL = {"network.hidden": (4,), "extraction.steps": 4, "extraction.batch": 8, "trainer.chunk": 4}
TAXI = {
    "size": 3,
    "origins": ((0, 0), (2, 2)),
    "destinations": ((0, 1), (2, 1)),
    "start": (1, 1),
    "horizon": 6,
}
OLD = Path(__file__).parents[1] / "support" / "version_0_1_run"
FILES = {
    *("config.json", "metrics.jsonl", "checkpoint.npz", "data_returns.npz", "result.json"),
    *("policy-0.npz", "policy-1.npz", "twin-0.npz", "twin-1.npz"),
}


def dataset(seed=0):
    return load_dataset("fair-taxi", episodes=12, seed=seed, **TAXI)


def small(data=None, objective=None, **changes) -> Run:
    """A run of cloning that learns next to nothing."""
    given = {"algorithm": "bc", "config": TrainingConfig().adapted(SMALL), "progress": False, **changes}
    return train(dataset() if data is None else data, objective or bsr(0.25), **given)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Run, Path]:
    """Two members, trained from Python on a dataset that has a name."""
    folder = tmp_path_factory.mktemp("runs") / "made"
    return small(seed=[0, 1], learning_rate=0.1, out=folder, notes={"episodes": 5}), folder


@pytest.fixture
def copied(made, tmp_path) -> Path:
    return Path(shutil.copytree(made[1], tmp_path / "copy"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_same(found: Run, expected: Run) -> None:
    for one, other in zip(parameters(found), parameters(expected), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [m.params for m in found.members] == [m.params for m in expected.members]
    assert [m.objective.name for m in found.members] == [m.objective.name for m in expected.members]
    assert [m.diagnostics for m in found.members] == [m.diagnostics for m in expected.members]
    assert [m.verdict for m in found.members] == [m.verdict for m in expected.members]
    assert (found.selections, found.algorithm, found.config, found.horizon) == (
        expected.selections,
        expected.algorithm,
        expected.config,
        expected.horizon,
    )
    np.testing.assert_array_equal(found.data_returns, expected.data_returns)


def test_training_from_python_leaves_everything_about_the_run(made):
    run, folder = made
    assert set(contents(folder)) == FILES
    assert_same(load_run(folder), run)
    assert load_run(str(folder)).request["dataset"]["sha256"] == dataset().sha256


def test_result_without_an_environment_has_no_scores(made):
    result = json.loads((made[1] / "result.json").read_text())
    for place in (result, *result["by_objective"]):
        assert place["score"] is place["twin_score"] is place["exact_score"] is place["gap_share"] is None
        assert np.isfinite(place["data_score"])
    assert [row["params"]["seed"] for row in result["members"]] == [0, 1]
    assert result["verdict"] == "This is plain cloning."


def test_run_goes_on_to_the_same_bits(made, copied):
    assert_same(resume(copied, progress=False), made[0])
    assert set(contents(copied)) == FILES


def test_run_is_saved_elsewhere(made, tmp_path):
    made[0].save(tmp_path / "else")
    assert set(contents(tmp_path / "else")) == FILES - {"metrics.jsonl", "checkpoint.npz"}
    assert_same(load_run(tmp_path / "else"), made[0])


def test_command_line_reads_what_python_wrote(made, copied, capsys):
    main(["evaluate", str(copied), "--episodes", "5", "--json"])
    before = json.loads(capsys.readouterr().out)
    main(["resume", str(copied), "--json"])
    result = json.loads(capsys.readouterr().out)
    assert np.isfinite([result["score"], result["twin_score"], result["exact_score"]]).all()
    assert before["objective"] == result["objective"] == bsr(0.25).name
    main(["evaluate", str(copied), "--episodes", "5", "--json", "--member", "1"])
    after = json.loads(capsys.readouterr().out)
    assert after["exact_score"] == result["exact_score"]
    assert after["member"] == 1
    assert_same(load_run(copied), made[0])


def test_command_line_draws_and_watches_what_python_wrote(made, tmp_path, capsys):
    strip = tmp_path / "run.png"
    main(["render", str(made[1]), "--strip", str(strip), "--member", "1", "--json"])
    assert json.loads(capsys.readouterr().out) == {"files": {str(strip): strip.stat().st_size}}
    assert strip.read_bytes().startswith(b"\x89PNG")
    assert complaint(capsys, "render", str(made[1]), "--strip", str(strip)).startswith(f"{strip} exists")
    assert complaint(capsys, "render", str(made[1])).startswith("say where to draw: --out FILE.gif")
    main(["watch", str(made[1])])
    assert "This is plain cloning." in capsys.readouterr().out


def test_numbers_of_numpy_are_numbers(tmp_path):
    run = small(seed=np.arange(1), learning_rate=np.array([0.5]), out=tmp_path / "run")
    assert load_run(tmp_path / "run").members[0].params == run.members[0].params
    assert run.members[0].params["seed"] == 0


# Data and objectives that no file can hold.


def test_data_of_ones_own_are_not_known_to_the_command_line(tmp_path, capsys):
    folder = tmp_path / "run"
    run = small(tiny_episodes(), out=folder)
    assert_same(load_run(folder), run)
    assert complaint(capsys, "evaluate", str(folder)) == (
        "the data of this run came from Python, so its environment is not known"
    )
    message = f"the data of {folder} came from Python: call aetdice.train again with the same arguments"
    assert complaint(capsys, "resume", str(folder)) == message
    assert_same(small(tiny_episodes(), out=folder), run)


def test_functions_of_ones_own_are_given_again(tmp_path, capsys):
    folder, own = tmp_path / "run", Objective(jnp.tanh, jnp.sum, "own")
    run = small(objective=own, out=folder)
    with pytest.raises(
        InputError, match=r"trained for 'own: .*', made of Python functions: pass objective=…"
    ):
        load_run(folder)
    with pytest.raises(InputError, match="the run was trained for own: "):
        load_run(folder, esr())
    assert_same(load_run(folder, own), run)
    assert complaint(capsys, "resume", str(folder)).startswith(f"the objective of {folder} came from Python")
    assert "pass objective=" in complaint(capsys, "evaluate", str(folder))
    env, policy = environment_of(run.request["dataset"]["origin"]), load_policy(folder / "policy-0.npz")
    assert policy.objective is None
    with pytest.raises(InputError, match="give evaluate its objective="):
        _ = evaluate(policy, env, 5).score
    loaded = load_run(folder, own).evaluate(env, 5).policy
    assert evaluate(policy, env, 5, objective=own).score == loaded.score


# Nothing is written that is not a run.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learning_rate": -1.0}, "learning_rate must be positive, not -1.0"),
        ({"algorithm": "td3"}, "unknown algorithm 'td3'; known algorithms: aetdice"),
        ({"algorithm": "optidice"}, "does not read network.fourier"),
        ({"beta": 0.1}, "this algorithm has no beta"),
        ({"horizon": 2}, "horizon"),
        ({"objective": [bsr(0.5), ser()]}, "must share their form and differ in parameters only"),
        ({"seed": []}, "need at least one value each"),
    ],
)
def test_refused_training_writes_nothing(change, message, tmp_path):
    config = TrainingConfig().adapted({**SMALL, "network.fourier": 2})
    with pytest.raises(InputError, match=message):
        small(out=tmp_path / "run", **{"config": config, **change})
    assert not (tmp_path / "run").exists()


OTHERS = {
    "seeds": {"seed": [0, 2]},
    "data": {"data": dataset(1)},
    "objective": {"objective": bsr(0.5)},
    "members": {"seed": 0},
    "setting": {"config": TrainingConfig().adapted({**SMALL, "extraction.dropout": 0.1})},
    "horizon": {"horizon": 7},
}


@pytest.mark.parametrize("change", OTHERS)
def test_folder_of_another_run_is_left_alone(change, copied):
    before = contents(copied)
    with pytest.raises(InputError, match=r"checkpoint.npz was written by a run with"):
        small(**{"seed": [0, 1], "learning_rate": 0.1, "out": copied, **OTHERS[change]})
    assert contents(copied) == before


def test_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(InputError, match="run is a file, not a folder"):
        small(out=tmp_path / "run")
    assert (tmp_path / "run").read_text() == "mine"


def test_only_datasets_and_objectives_are_trained_on(without_type_checks):
    with pytest.raises(InputError, match=r"a dataset is Episodes, as load_dataset, .* give.*; not str"):
        train("log.csv", esr())
    for objective in ("esr", [esr(), "ser"], esr):
        with pytest.raises(InputError, match=r"an objective is made by esr\(\), ser\(\), bsr\(0.5\)"):
            train(tiny_episodes(), objective)


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("result.json", lambda text: text[:-9], "result.json cannot be read: "),
        ("result.json", lambda text: "[]", "result.json cannot be read: it is no object"),
        ("result.json", lambda text: text.replace('"members"', '"others"'), "is not the result of a run"),
        ("result.json", lambda text: text.replace('"index": 0', '"index": 7'), "is not the result of a run"),
        ("config.json", lambda text: text[:-9], "config.json cannot be read: "),
        ("config.json", lambda text: "[]", "config.json cannot be read: "),
        (
            "config.json",
            lambda text: text.replace('"format": 2', '"format": 9'),
            "it has format 9, this version",
        ),
        ("config.json", lambda text: text.replace('"sweeps"', '"aims"'), "it has no 'sweeps'"),
        ("config.json", lambda text: text.replace('"Fair"', '"Foul"'), "there is no part 'Foul'"),
    ],
)
def test_damaged_folder_is_refused(name, damage, message, copied):
    path = copied / name
    path.write_text(damage(path.read_text()))
    with pytest.raises(InputError) as refused:
        load_run(copied)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["policy-1.npz", "data_returns.npz"])
def test_damaged_arrays_are_refused(name, copied):
    (copied / name).write_bytes((copied / name).read_bytes()[:100])
    with pytest.raises(InputError, match=r"cannot be read|is not a policy that this version can read"):
        load_run(copied)


def test_unfinished_run_says_how_to_go_on(copied):
    (copied / "result.json").unlink()
    with pytest.raises(InputError, match="the run has not ended; continue it with aetdice resume"):
        load_run(copied)


# Progress.


def test_progress_goes_to_stderr_unless_told_otherwise(capsys, monkeypatch):
    monkeypatch.setattr(progress, "lines", functools.partial(progress.lines, short=0.0))
    heard = []
    small(progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("refit 1/1, ")
    assert "\ncloning 4/4, " in shown.err
    small(progress=False)
    small(progress=lambda *told: heard.append(told[:3]))
    assert capsys.readouterr() == ("", "")
    assert heard == [("refit", 1, 1), ("cloning", 4, 4)]


# Weights & Biases.


@pytest.fixture
def opened(monkeypatch) -> list[dict]:
    """What a made-up W&B has been asked to open."""
    calls: list[dict] = []

    def init(**given):
        calls.append(given)
        return SimpleNamespace(log=lambda row: None, finish=lambda: None)

    fake = ModuleType("wandb")
    fake.init = init
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return calls


COMMAND = (
    *("train", "--size", "3", "--origins", "0,0", "2,2", "--destinations", "0,1", "2,1", "--start", "1,1"),
    *("--horizon", "6", "--dataset-episodes", "12", "--wandb", "project", "--algorithm", "bc"),
)


@pytest.mark.parametrize(
    "wrong",
    [("--objective", "nash"), ("--objective", "esr", "--set", "dual.gamma=0.5"), ("--objective", "bsr")],
)
def test_weights_and_biases_are_not_opened_for_what_is_refused(opened, wrong, tmp_path, capsys):
    complaint(capsys, *COMMAND, "--out", str(tmp_path / "run"), *wrong)
    assert opened == []


def test_weights_and_biases_are_opened_once_there_is_something_to_log(opened, tmp_path):
    tracker = WeightsAndBiases("project", {"folder": "run"})
    with pytest.raises(InputError, match="learning_rate must be positive"):
        small(learning_rate=-1.0, trackers=[tracker])
    assert opened == []
    small(trackers=[tracker], out=tmp_path / "run")
    assert opened == [{"project": "project", "config": {"folder": "run"}}]
    small(trackers=[WeightsAndBiases("again", {})], out=tmp_path / "run")  # has ended: nothing to log
    assert len(opened) == 1


def test_training_again_keeps_the_scores_of_a_run_that_has_ended(tmp_path):
    run = small(out=tmp_path / "run")
    scored = {**json.loads((tmp_path / "run" / "result.json").read_text()), "score": 1.25}
    run.save(tmp_path / "run", scored)
    small(out=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "result.json").read_text())["score"] == 1.25


# Folders of version 0.1.


def test_run_of_version_0_1_loads():
    run = load_run(OLD)
    assert run.config.changed() == {
        "network.hidden": (2,),
        "network.fourier": 1,
        "dual.n_step": 2,
        "dual.steps": 4,
        "dual.batch": 8,
        "iql.steps": 4,
        "iql.batch": 8,
        "extraction.steps": 4,
        "extraction.batch": 8,
        "trainer.holdout": 0.0,
        "trainer.chunk": 4,
    }
    assert [m.objective.name for m in run.members] == [bsr(0.25).name, bsr(0.5).name]
    assert [s.chosen for s in run.selections] == [0, 1]
    assert not run.verdict.trusted
    assert run.data_returns.shape == (12, 2)


def test_run_of_version_0_1_is_scored_as_it_was(capsys):
    """Its result file tells what the same episodes brought."""
    was = json.loads((OLD / "result.json").read_text())
    for member in (0, 1):
        main(["evaluate", str(OLD), "--episodes", "30", "--json", "--member", str(member)])
        found = json.loads(capsys.readouterr().out)
        assert found["exact_score"] == was["by_objective"][member]["exact_score"]
        for kind, key in (("policy", "scores"), ("twin", "twin_scores")):
            for name, score in was["members"][member][key].items():
                np.testing.assert_allclose(found[kind]["scores"][name]["value"], score["value"], rtol=1e-5)


def test_run_of_version_0_1_is_saved_in_the_words_of_this_one(tmp_path):
    run = load_run(OLD)
    run.save(tmp_path / "new")
    assert_same(load_run(tmp_path / "new"), run)


def test_run_of_version_0_1_does_not_go_on(capsys, tmp_path):
    folder = shutil.copytree(OLD, tmp_path / "old")
    message = f"{folder} was begun by version 0.1, whose checkpoints are not read: train again"
    assert complaint(capsys, "resume", str(folder)) == message
    assert contents(folder) == contents(OLD)


def test_objectives_of_version_0_1_come_with_their_environment(tmp_path):
    folder = shutil.copytree(OLD, tmp_path / "old")
    config = json.loads((folder / "config.json").read_text())
    config["objective"] = {"objective": "esr"}
    config["source"] |= {"env": "pointmaze-2obj", "arguments": {"horizon": 3}, "episodes": 2}
    (folder / "config.json").write_text(json.dumps(config))
    assert load_run(folder).members[0].objective.name == esr(threshold=0.01).name
    config["training"]["magic"] = 3
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"config.json cannot be read: .*magic"):
        load_run(folder)


def test_linear_objective_of_ones_own_weights_comes_back(tmp_path):
    run = small(objective=lsr((1.0, 3.0)), out=tmp_path / "run")
    assert load_run(tmp_path / "run").selected.objective.name == run.selected.objective.name


def test_content_reaches_the_disk_before_the_name(tmp_path, monkeypatch):
    """The other way round, a power cut leaves an empty file under the name."""
    reached, replace = [], os.replace
    monkeypatch.setattr("os.fsync", lambda handle: reached.append("content"))
    monkeypatch.setattr("os.replace", lambda *paths: (reached.append("name"), replace(*paths)))
    write_json(tmp_path / "rows.json", {})
    assert reached == ["content", "name"]
