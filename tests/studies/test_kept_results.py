"""Results that are kept in the repository: one schema, and the numbers of those who measured them."""

import io
import json
import runpy
from pathlib import Path

import pytest
from rich.console import Console

from aetdice.evaluation.estimates import estimate
from aetdice.report.sheets import drawn
from aetdice.studies import STUDIES
from aetdice.studies.score_tables import markdown, setting, sheets_of

ROOT = Path(__file__).parents[2]
KEPT = [
    *("fair_taxi", "pointmaze-2obj", "pointmaze-3obj", "ant", "walker2d"),
    *("cobb-douglas", "cobb-douglas-quick"),
]


def kept(name: str) -> dict:
    return json.loads((ROOT / "experiments" / "results" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "experiments" / "convert_results.py"))


@pytest.mark.parametrize("name", KEPT)
def test_kept_results_are_of_the_one_schema_and_can_be_shown(name):
    content = kept(name)
    assert content["format"] == 2
    assert content["study"] in STUDIES
    assert all({"facts", "commit", "date", "device", "versions"} <= set(m) for m in content["made"].values())
    assert content["converted"]["recorded_in"]
    known = {table.name for table in STUDIES[content["study"]](False).tables}
    assert set(content["tables"]) <= known
    console = Console(width=200, file=io.StringIO())
    for summary in content["tables"].values():
        for sheet in sheets_of(summary):
            console.print(drawn(sheet))
        assert not summary["rows"] or markdown(summary).count("\n") >= len(summary["rows"]) + 1


def test_numbers_are_those_that_were_measured():
    ant = kept("ant")["tables"]["expert-1-1"]["rows"]["AETDICE"]
    assert setting(ant)["scores"]["G, F"]["mean"] == pytest.approx(14.04, abs=0.005)
    assert ant["paper"]["G, F"] == [13.69, 0.05]
    maze = kept("pointmaze-2obj")["tables"]["pointmaze-2obj"]
    esr = maze["rows"]["AETDICE ESR"]
    assert setting(esr)["trained"]["mean"] == pytest.approx(8.44, abs=0.005)
    assert setting(esr)["trained"]["half"] == pytest.approx(0.07, abs=0.005)
    shares = setting(esr)["gap_shares"]
    assert sum(shares) / len(shares) == pytest.approx(0.94, abs=0.005)
    taxi = kept("fair_taxi")["tables"]["fair-taxi"]
    shares = setting(taxi["rows"]["ESR"])["gap_shares"]
    assert sum(shares) / 3 == pytest.approx(taxi["rows"]["ESR"]["gap_share"], abs=1e-3)


def test_the_script_recovers_what_version_0_1_left_out(script):
    """Error and freedom from an interval; the standard deviation from an error."""
    for values in ((1.0, 2.0, 4.0), (1.0, 1.001, 1.0)):
        found = estimate([{"value": v, "low": v - 0.2, "high": v + 0.2} for v in values]).record()
        freedom = found.pop("freedom")
        recovered = script["with_error"]({name: found[name] for name in ("mean", "sd", "half")}, 3)
        assert recovered.pop("freedom") == freedom
        assert recovered == pytest.approx(found, rel=1e-5)
        shown = {"mean": found["mean"], "error": found["error"], "freedom": freedom, "half": found["half"]}
        scores = {"BSR[alpha=0.5]": shown, "trained": shown}
        converted = script["maze_setting"]({"scores": scores, "mean_returns": [], "variances": []}, False)
        assert converted["scores"]["BSR 0.5"]["sd"] == (pytest.approx(found["sd"]) if freedom else None)


def test_a_file_that_is_converted_is_left_alone(script, tmp_path, monkeypatch, capsys):
    path = tmp_path / "ant.json"
    path.write_text('{"format": 2}')
    monkeypatch.setattr("sys.argv", ["convert_results.py", str(path)])
    script["main"]()
    assert "converted already" in capsys.readouterr().out
    assert path.read_text() == '{"format": 2}'


def test_parts_have_their_names_of_today(script):
    assert script["renamed"]("walker2d-faltering-bonus-safe-walks") == "walker2d-unstable-bonus-safe-rollouts"
    made = kept("pointmaze-3obj")["made"]
    assert {"initial-reward", "star-2-aetdice", "star-4-aetdice"} <= set(made)
