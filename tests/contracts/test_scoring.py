"""One scoring path: the same policy has the same J under the same name, whoever asks."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from aetdice import (
    Episodes,
    InputError,
    Run,
    TrainingConfig,
    bsr,
    esr,
    evaluate,
    load_dataset,
    load_policy,
    load_run,
    make_env,
    make_objective,
    ser,
    train,
)
from aetdice.cli import main
from aetdice.datasets import environment_of
from aetdice.envs.batched import GymnasiumBatch
from aetdice.envs.gymnasium import GymnasiumEnvironment
from aetdice.evaluation import make_objectives
from aetdice.evaluation.scores import columns_of, score_returns, utility_threshold

pytestmark = pytest.mark.trains

EPISODES = 40
SMALL = {"network.hidden": (4,), "extraction.steps": 4, "extraction.batch": 8, "trainer.chunk": 4}
TAXI = (
    *("--size", "3", "--origins", "0,0", "2,2", "--destinations", "0,1", "2,1", "--start", "1,1"),
    *("--horizon", "6", "--dataset-episodes", "12"),
)


def said(*arguments: str) -> dict[str, Any]:
    """What the command line prints as JSON."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        main([*arguments, "--json"])
    return json.loads(out.getvalue())


class Scored(NamedTuple):
    folder: Path
    printed: dict[str, Any]
    threshold: float


@pytest.fixture(scope="module")
def taxi(tmp_path_factory) -> Scored:
    """Trained by the command line, hardly at all; policy and twin differ by their learning rates."""
    folder = tmp_path_factory.mktemp("runs") / "taxi"
    short = [f"{name}={value}" for name, value in SMALL.items()]
    options = ("--algorithm", "bc", "--learning-rate", "0.1", "--episodes", str(EPISODES), "--set", *short)
    printed = said("train", "--out", str(folder), "--objective", "esr", *TAXI, *options)
    return Scored(folder, printed, 1.0)


@pytest.fixture(scope="module")
def maze(tmp_path_factory) -> Scored:
    """Trained from Python, and scored by the command line."""
    folder = tmp_path_factory.mktemp("runs") / "maze"
    dataset = load_dataset("pointmaze-2obj", episodes=4, horizon=12)
    train(
        dataset,
        make_objective("esr", environment_of(dataset.origin)),
        algorithm="bc",
        learning_rate=0.1,
        config=TrainingConfig().adapted(SMALL),
        out=folder,
        progress=False,
        notes={"episodes": EPISODES},
    )
    return Scored(folder, said("resume", str(folder)), 0.01)


@pytest.fixture(params=["taxi", "maze"])
def scored(request) -> Scored:
    return request.getfixturevalue(request.param)


def env_of(run: Run):
    return environment_of(run.request["dataset"]["origin"])


def test_every_route_gives_the_same_scores(scored):
    run, result = load_run(scored.folder), json.loads((scored.folder / "result.json").read_text())
    env, row = env_of(run), result["members"][0]
    assert result == scored.printed
    asked = said("evaluate", str(scored.folder), "--episodes", str(EPISODES))
    own, loaded = run.evaluate(env, EPISODES), evaluate(load_run(scored.folder), env, EPISODES)
    for kind, in_result in (("policy", row["scores"]), ("twin", row["twin_scores"])):
        alone = evaluate(load_policy(scored.folder / f"{kind}-0.npz"), env, EPISODES)
        expected = alone.record()["scores"]
        assert set(expected) == {"ESR", "BSR[alpha=0.5]", "SER", "LSR", "trained"}
        assert in_result == expected
        assert asked[kind]["scores"] == expected
        assert getattr(own, kind).record()["scores"] == getattr(loaded, kind).record()["scores"] == expected
        assert alone.score == expected["trained"]["value"] == expected["ESR"]["value"]
    assert (row["score"], row["twin_score"]) == (own.policy.score, own.twin.score)
    assert (result["score"], result["twin_score"]) == (own.policy.score, own.twin.score)
    assert own.policy.score != own.twin.score


def test_continuation_stands_with_every_score(scored):
    below = f"quadratic below {scored.threshold:g}"
    assert make_objective("esr", env_of(load_run(scored.folder))).name == scored.printed["objective"]
    for row in scored.printed["members"]:
        texts = {name: score["objective"] for name, score in row["scores"].items()}
        assert texts == {name: score["objective"] for name, score in row["twin_scores"].items()}
        assert texts["ESR"] == texts["trained"] == f"ESR: F = log, {below}; G = sum"
        assert texts["BSR[alpha=0.5]"].startswith(f"BSR[alpha=0.5]: F = u[a=0.5], {below}; G = ")
        assert texts["SER"] == "SER: F = R; G = sum (log, quadratic below 1)"


def test_scores_of_the_data_are_those_of_the_trained_objective(scored):
    run = load_run(scored.folder)
    expected = score_returns(run.data_returns, {"trained": run.selected.objective}).score
    np.testing.assert_allclose(scored.printed["data_score"], expected, rtol=1e-6)


def test_evaluation_says_what_it_evaluated(scored, capsys):
    main(["evaluate", str(scored.folder), "--episodes", str(EPISODES)])
    printed = " ".join(capsys.readouterr().out.split())
    assert "trained for ESR: F = log, quadratic below" in printed


# Objectives by name are those of the environment, by every route.


@pytest.mark.parametrize("env", ["fair-taxi", "pointmaze-2obj", "pointmaze-3obj", "two-step"])
def test_named_objectives_are_continued_where_the_environment_says(env):
    made = make_env(env)
    threshold = 0.01 if env.startswith("pointmaze") else 1.0
    assert utility_threshold(made) == threshold
    assert make_objective("esr", made).name == esr(threshold=threshold).name
    assert make_objective("bsr", made, alpha=0.5).name == bsr(0.5, threshold=threshold).name
    assert make_objective("bsr", made, alpha=0.5, threshold=0.3).name == bsr(0.5, threshold=0.3).name
    assert make_objective("ser", made).name == ser().name
    columns = columns_of(made, None)
    assert columns["ESR"].name == make_objective("esr", made).name
    assert columns["BSR[alpha=0.5]"].name == make_objective("bsr", made, alpha=0.5).name
    assert "trained" not in columns


def test_sweep_is_an_objective_for_each_value():
    found = make_objectives({"objective": "bsr", "alpha": [0.2, 0.7]}, make_env("pointmaze-2obj"))
    assert [each.name for each in found] == [bsr(a, threshold=0.01).name for a in (0.2, 0.7)]


def test_environment_under_gymnasium_keeps_its_threshold():
    maze = make_env("pointmaze-2obj", horizon=3)
    assert utility_threshold(GymnasiumBatch(lambda: GymnasiumEnvironment(maze), horizon=3)) == 0.01


@pytest.mark.parametrize("env", ["fair-taxi", "pointmaze-2obj"])
@pytest.mark.parametrize("options", [("esr",), ("bsr", "--alpha", "0.25"), ("ser",)])
def test_command_line_trains_the_objective_that_make_objective_makes(env, options, monkeypatch, tmp_path):
    """Nothing is trained here: what the command line hands over is caught."""
    caught: list[Any] = []

    def catch(dataset: Episodes, objectives: Any, **_: Any) -> None:
        caught.extend(objectives)
        raise InputError("enough")

    tiny = load_dataset("fair-taxi", episodes=1, horizon=1)
    object.__setattr__(tiny, "origin", {"env": env, "seed": 0, "arguments": {}})
    monkeypatch.setattr("aetdice.cli.train.load_dataset", lambda *_, **__: tiny)
    monkeypatch.setattr("aetdice.cli.train.train", catch)
    with pytest.raises(SystemExit):
        main(["train", "--env", env, "--out", str(tmp_path / "run"), "--objective", *options])
    given = {"alpha": 0.25} if options[0] == "bsr" else {}
    assert [each.name for each in caught] == [make_objective(options[0], make_env(env), **given).name]
