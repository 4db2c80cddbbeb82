"""The command line: a user's mistake is one line and exit code 2; a right call gives its answer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.refusals import complaint

from aetdice import __version__
from aetdice.cli import main

TWO_STEP = ("solve", "two-step")
TAXI = ("solve", "fair-taxi", "--objective", "ser")
SMALL_TAXI = (
    *("solve", "fair-taxi", "--size", "4", "--origins", "0,0", "3,3", "--destinations", "0,2", "3,1"),
    *("--start", "1,1", "--horizon", "10"),
)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command line prints when all is well: nothing on stderr."""
    main(list(arguments))
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "say which objective: --objective lsr | ser | esr | bsr"),
        ("--objective nash", "unknown objective 'nash'; known objectives: lsr, ser, esr, bsr"),
        ("--objective bsr", "objective 'bsr' needs alpha, for example --alpha 0.5"),
        ("--objective bsr --alpha 2", "alpha must be between 0 and 1, not 2"),
        ("--objective bsr --alpha nan", "alpha must be between 0 and 1, not nan"),
        ("--objective esr --alpha 0.5", "objective 'esr' takes no alpha; it takes: weights"),
        ("--objective lsr --weights 1 2 3", "--weights needs 2 numbers, one per objective, not 3"),
        ("--objective ser --weights -1 1", "weights must be positive, not (-1, 1)"),
        ("--objective ser --threshold 0", "threshold must be positive, not 0"),
        ("--objective cobb-douglas --rho 1.5", "rho must be between 0 and 1, not 1.5"),
        ("--objective safe-cobb-douglas", "the objective does not fit 2 objectives"),
        ("--objective convex --aggregation mean", "unknown aggregation 'mean'; known aggregations: linear"),
        ("--objective ser --utility r0", "--utility replaces a named objective, so it takes no --objective"),
        ("--objective ser --first-reward nan 0", "first_reward needs 2 finite numbers, not (nan, 0.0)"),
    ],
)
def test_objective_is_refused(capsys, options, message):
    assert complaint(capsys, *TWO_STEP, *options.split()).startswith(message)


@pytest.mark.parametrize(
    ("utility", "message"),
    [
        ("r0 +", "malformed expression 'r0 +': not arithmetic"),
        ("log(r0", "malformed expression 'log(r0' at character 4: not arithmetic"),
        ("", "malformed expression '': not arithmetic"),
        ("max(r0, r1)", "unknown function 'max' in 'max(r0, r1)'; known functions: log, sqrt, exp"),
        ("log(r0, r1)", "log takes 1 argument(s), not 2, in 'log(r0, r1)'"),
        ("r0 + r2", "unknown name 'r2' in 'r0 + r2'; known names: r0, r1, horizon"),
        ("r0.real", "malformed expression 'r0.real': 'r0.real' is not arithmetic"),
        ("__import__('os')", "unknown function '__import__'"),
        ("r0" + " + r0" * 200, "the expression has 1002 characters; at most 500 are read"),
        ("1 / r0", "F has no finite value at R="),
        ("r0 ** 0.5", "F has no finite slope at R="),
    ],
)
def test_expression_is_refused(capsys, utility, message):
    assert complaint(capsys, *TWO_STEP, "--utility", utility).startswith(message)


@pytest.mark.parametrize(
    ("aggregation", "message"),
    [
        ("k0**2+k1**2", "G is not concave between k="),
        ("k0*k1", "G is not concave between k="),
        ("k0, k1", "an aggregation is one expression, but 'k0, k1' has commas"),
        ("k0 + k2", "unknown name 'k2' in 'k0 + k2'; known names: k0, k1, horizon"),
        ("median", "unknown aggregation 'median'; known aggregations: linear, log"),
    ],
)
def test_aggregation_is_refused(capsys, aggregation, message):
    arguments = ("--utility", "r0, r1", "--aggregation", aggregation)
    assert complaint(capsys, *TWO_STEP, *arguments).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--horizon 0", "the horizon must be at least 1, not 0"),
        ("--size 0", "size must be at least 1, not 0"),
        ("--origins 0,0 9,9", "the origin 9,9 lies outside the 9x9 grid (rows and columns 0 to 8)"),
        ("--origins 0,0 0;1", "a cell is row,column, for example 0,2; not '0;1'"),
        ("--start 1,2,3", "a cell is row,column, for example 0,2; not '1,2,3'"),
        ("--destinations 0,2", "2 origins need as many destinations, not 1"),
        ("--deliveries nan 1", "deliveries needs 2 finite numbers, one per group, not (nan, 1.0)"),
        ("--penalties 1 2 3", "penalties needs 2 finite numbers, one per group, not (1.0, 2.0, 3.0)"),
        ("--scale 0", "scale must be positive, not 0.0"),
    ],
)
def test_taxi_is_refused(capsys, options, message):
    assert complaint(capsys, *TAXI, *options.split()) == message


PROBLEM = {
    "transition": [[0, 1], [1, 0]],
    "reward": [[[1, 2], [0, 3]], [[4, 0], [2, 2]]],
    "initial": 0,
    "horizon": 3,
}


def write(folder: Path, **changes: Any) -> Path:
    """The problem above as JSON, with some keys changed; None takes a key out."""
    content = {key: value for key, value in {**PROBLEM, **changes}.items() if value is not None}
    path = folder / "problem.json"
    path.write_text(json.dumps(content))
    return path


JSON_FAULTS = {
    "unknown-key": ({"gamma": 0.9}, "problem.json: unknown key 'gamma'; keys: transition, reward, initial"),
    "missing-key": ({"reward": None}, "problem.json: key 'reward' is missing; keys: transition, reward"),
    "horizon-0": ({"horizon": 0}, "the horizon must be at least 1, not 0"),
    "horizon-text": ({"horizon": "long"}, "problem.json: ragged or non-numeric arrays"),
    "initial-beyond": ({"initial": 2}, "the initial state 2 is not one of the 2 states"),
    "initial-between": ({"initial": 0.5}, "the initial state 0.5 is not one of the 2 states"),
    "next-state-beyond": ({"transition": [[0, 1], [1, 2]]}, "state 1, action 1 leads to 2, which is not a"),
    "transition-ragged": ({"transition": [[0, 1], [1]]}, "problem.json: ragged or non-numeric arrays"),
    "probabilities": (
        {"transition": [[[1, 0], [0.5, 0.4]], [[1, 0], [0, 1]]]},
        "the probabilities of state 0, action 1 sum to 0.9, not to 1",
    ),
    "reward-nan": (
        {"reward": [[[1, 2], [0, 3]], [[4, 0], [2, float("nan")]]]},
        "the reward of state 1, action 1, objective 'r1' is not finite",
    ),
    "reward-flat": ({"reward": [[1, 2], [3, 4]]}, "reward must have shape (2, 2, objectives) or (2, 2, 2"),
    "reward-text": ({"reward": "none"}, "problem.json: ragged or non-numeric arrays"),
    "initial-terminal": ({"terminal": [True, False]}, "state 0 is both initial and terminal"),
    "names-missing": ({"objectives": ["one"]}, "2 reward columns need as many objective names"),
    "names-number": ({"objectives": 2}, "problem.json: objectives"),
    "names-text": ({"objectives": "ab"}, "problem.json: objectives"),
}


@pytest.mark.parametrize(("changes", "message"), JSON_FAULTS.values(), ids=JSON_FAULTS)
def test_json_problem_is_refused(capsys, tmp_path, changes, message):
    path = write(tmp_path, **changes)
    assert complaint(capsys, "solve", "file", str(path), "--objective", "ser").startswith(message)


def test_half_a_step_is_no_horizon(capsys, tmp_path):
    path = write(tmp_path, horizon=2.5)
    said = complaint(capsys, "solve", "file", str(path), "--objective", "ser")
    assert "horizon" in said
    assert "2.5" in said


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("broken.json", b"{'transition': ", "broken.json is not valid JSON: "),
        ("empty.json", b"", "empty.json is not valid JSON: "),
        ("bytes.json", b"\xff\xfe", "bytes.json is not valid JSON: "),
        ("nested.json", b"[" * 100_000, "nested.json is not valid JSON: "),
        ("list.json", b"[1, 2]", "list.json: a problem is one JSON object, not a list"),
        ("problem.txt", b"{}", "problem.txt: a problem is read from .json or .npz, not from .txt"),
        ("junk.npz", b"PK junk", "junk.npz is not a plain NPZ archive of arrays: "),
    ],
    ids=["broken", "empty", "bytes", "nested", "list", "suffix", "junk"],
)
def test_file_is_refused(capsys, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    assert complaint(capsys, "solve", "file", str(tmp_path / name), "--objective", "ser").startswith(message)


def test_missing_file_is_refused(capsys, tmp_path):
    path = tmp_path / "nowhere.json"
    assert complaint(capsys, "solve", "file", str(path), "--objective", "ser") == f"no such file: {path}"


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        pytest.param(np.array(PROBLEM["reward"], dtype=object), "not a plain NPZ archive", id="pickled"),
        pytest.param(np.array(PROBLEM["reward"]) * 1j, "an entry is not a number", id="complex"),
    ],
)
def test_npz_problem_is_refused(capsys, tmp_path, reward, message):
    path = tmp_path / "problem.npz"
    np.savez(path, **{**PROBLEM, "reward": reward})
    said = complaint(capsys, "solve", "file", str(path), "--objective", "ser")
    assert said.startswith("problem.npz")
    assert message in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*TWO_STEP, "--objective", "ser", "--omega", "0.9"), "Unrecognized options: --omega"),
        ((*TAXI, "--horizon", "2.5"), "Error parsing --horizon"),
        (
            (*TWO_STEP, "--objective", "lsr", "--first-reward", "1"),
            "Missing value for argument '--first-reward'",
        ),
        (("solve", "ski-rental"), "Unrecognized options: ski-rental"),
        (("solve",), "Missing subcommand"),
    ],
    ids=["unknown-option", "not-a-number", "too-few-numbers", "unknown-problem", "no-problem"],
)
def test_what_the_option_reader_refuses(capsys, arguments, words):
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    captured = capsys.readouterr()
    assert stopped.value.code == 2
    assert words in " ".join(captured.err.split())
    assert "Traceback" not in captured.err


# Right calls.


def check_record(record: dict[str, Any], objectives: int) -> None:
    assert record["gap"] <= 1e-6
    assert record["seconds"] > 0
    assert len(record["expected_returns"]) == objectives
    probabilities = np.array([outcome["probability"] for outcome in record["outcomes"]])
    returns = np.array([outcome["returns"] for outcome in record["outcomes"]])
    assert probabilities.sum() == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(probabilities @ returns, record["expected_returns"], atol=1e-9)


def test_two_step_as_json(capsys):
    record = json.loads(answer(capsys, *TWO_STEP, "--objective", "ser", "--json"))
    check_record(record, 2)
    assert record["value"] == pytest.approx(np.log(25), abs=1e-6)
    assert record["expected_utilities"] == pytest.approx([5, 5], abs=1e-6)
    assert record["objective"].startswith("SER: F = R; G = sum (log, quadratic below 1)")
    assert record["regime"] == "SER"


def test_small_taxi_as_json(capsys):
    record = json.loads(answer(capsys, *SMALL_TAXI, "--objective", "bsr", "--alpha", "0.5", "--json"))
    check_record(record, 2)
    assert record["regime"] == "AET"
    assert record["objectives"] == ["group0", "group1"]
    assert [outcome["returns"] for outcome in record["outcomes"]] == [[1.0, 0.0]]


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_file_as_json(capsys, tmp_path, suffix):
    path = write(tmp_path, objectives=["gain", "safety"])
    if suffix == "npz":
        path = tmp_path / "problem.npz"
        np.savez(path, **{**PROBLEM, "objectives": np.array(["gain", "safety"])})
    record = json.loads(answer(capsys, "solve", "file", str(path), "--objective", "lsr", "--json"))
    check_record(record, 2)
    assert record["problem"] == path.name
    assert record["objectives"] == ["gain", "safety"]
    assert record["value"] == pytest.approx(11, abs=1e-9)  # 3 to reach the other state, then 4 twice


def test_written_objective_equals_the_named_one(capsys):
    written = ("--utility", "log(r0), log(r1)", "--aggregation", "k0 + k1")
    values = [
        json.loads(answer(capsys, *TWO_STEP, *options, "--json"))["value"]
        for options in (written, ("--objective", "esr"))
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-9)
    assert values[0] == pytest.approx(np.log(16), abs=1e-9)


def test_written_objective_may_be_huge_outside_the_returns(capsys):
    """r0^110 overflows at returns that never occur; that is nobody's concern."""
    record = json.loads(answer(capsys, *TWO_STEP, "--utility", "r0**110", "--json"))
    assert record["value"] == pytest.approx(9.0**110, rel=1e-9)
    assert record["regime"] == "ESR"


def test_table_shows_the_value_and_the_outcomes(capsys):
    shown = answer(capsys, *TWO_STEP, "--objective", "esr")
    value = next(line for line in shown.splitlines() if line.startswith("value"))
    assert f"{np.log(16):.6f}" in value
    assert "what an episode brings" in shown
    assert "4.0000" in shown


def test_version(capsys):
    assert answer(capsys, "--version") == f"aetdice {__version__}\n"
