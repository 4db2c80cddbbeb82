"""What commands do to a terminal: 100 columns, no codes where nobody sees them, one word for Ctrl-C."""

import importlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from aetdice.cli import COMMANDS, _was_interrupted, main
from aetdice.cli.completion import bash, fish, options_of
from aetdice.cli.options import Shown
from aetdice.progress import listening, tell
from aetdice.report import bars
from aetdice.report.progress import console_progress, duration, lines
from aetdice.report.sheets import drawn
from aetdice.report.tables import columns, evaluation_table, training_table
from aetdice.report.terminal import WIDTH, console, say
from aetdice.studies.score_tables import sheets_of

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
STUDIES = ("fair_taxi", "pointmaze-3obj", "ant", "cobb-douglas")
SPEECHLESS = {"serve": {"--json", "--quiet"}, "completion": {"--json", "--quiet"}, "demo": {"--json"}}
"""Commands that have no result or no progress."""
LONG = "an objective whose name is long enough to be wrapped, and then some, below the threshold of 0.01"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(what, width: int = WIDTH) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(what)
    return out.getvalue()


def fits(text: str) -> bool:
    """Within the columns, and nothing cut off."""
    return max(map(len, text.splitlines())) <= WIDTH and "…" not in text


# Tables.


@pytest.mark.parametrize("name", STUDIES)
def test_tables_of_studies_fit(name):
    content = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    for summary in content["tables"].values():
        for sheet in sheets_of(summary):
            assert fits(printed(drawn(sheet)))


@pytest.mark.parametrize("count", [3, 12, 40])
def test_a_wide_table_is_cut_between_columns(count):
    names = [f"objective {index}" for index in range(count)]
    table = columns("a title", "policy", *names)
    cells = [f"{index}.5 ± 0.125" for index in range(count)]
    table.add_row("learned", *cells)
    table.add_row("cloned", *cells)
    shown = printed(table)
    assert fits(shown)
    assert shown.count("a title") == 1
    assert all(shown.count(f" {cell} ") == 2 for cell in cells)
    parts = shown.count("┏")
    assert shown.count("learned") == parts
    assert (parts == 1) == (count == 3)


def test_results_of_long_names_fit():
    score = {"value": -1234.5678, "low": -1300.1234, "high": -1100.4321, "objective": LONG}
    names = [f"calls of district {index} served" for index in range(5)]
    policy = {
        "scores": {"ESR": score, "trained": score},
        "quantiles": {"0.05": [1234.5] * 5},
        "outcomes": [{"share": 0.5, "returns": [1234.567] * 5}],
        "episodes": 100,
    }
    result = {"objective": LONG, "objectives": names, "policy": policy, "twin": policy, "exact_score": 1.0}
    assert fits(printed(evaluation_table(result)))
    found = {"value": 1.0, "low": 0.5, "high": 1.5, "level": 0.95, "support": {"word": "good", "words": LONG}}
    found |= {"logged": found, "improvement": 0.5, "unseen": 10, "episodes": 100}
    estimate = {"policy": found, "twin": found, "self_check": {"words": LONG}}
    selected = {"params": {"objective": LONG, "beta": 1e-3}, "rule": LONG}
    summary = dict.fromkeys(("data_score", "score", "twin_score", "exact_score", "gap_share"), 1.0)
    summary |= {
        "objective": LONG,
        "selected": selected,
        "verdict": LONG,
        "trusted": True,
        "estimate": estimate,
    }
    shown = training_table({"by_objective": [summary], "seconds": 1.0, "chosen": {LONG: 1}}, Path("runs/log"))
    assert fits(printed(shown))


@pytest.mark.parametrize(
    ("trusted", "word", "said"),
    [
        (True, "supported", "trusted. Words"),
        (True, "do not trust", "not trusted, as its estimate is not. Words"),
        (False, "supported", "not trusted. Words"),
    ],
)
def test_a_verdict_is_not_believed_beside_an_estimate_that_is_not(trusted, word, said):
    found = {"value": 1.0, "low": 0.5, "high": 1.5, "level": 0.9, "support": {"word": word, "words": "Why"}}
    found |= {"logged": found, "improvement": 0.5, "unseen": 10, "episodes": 100}
    unknown = dict.fromkeys(("score", "twin_score", "exact_score", "gap_share"))
    summary = {
        **unknown,
        "data_score": 1.0,
        "objective": "ESR",
        "selected": {"params": {}, "rule": "by hand"},
        "verdict": "Words",
        "trusted": trusted,
        "estimate": {"policy": found, "twin": found, "self_check": {"words": "fine"}},
    }
    shown = printed(training_table({"by_objective": [summary], "seconds": 1.0}, Path("runs/log")))
    [line] = [each for each in shown.splitlines() if each.startswith("verdict")]
    assert line.split(maxsplit=1)[1].strip() == said


def test_a_solution_is_printed_within_the_columns(capsys):
    main(["solve", "two-step", "--objective", "ser"])
    assert fits(capsys.readouterr().out)


# Colours, and who sees them.


@pytest.mark.parametrize(
    ("stream", "variables", "coloured"),
    [
        (Terminal, {}, True),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"TERM": "dumb"}, False),
        (io.StringIO, {}, False),
    ],
    ids=["terminal", "no-color", "dumb", "file"],
)
def test_codes_are_for_terminals_only(monkeypatch, stream, variables, coloured):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"TERM": "xterm-256color"} | variables).items():
        monkeypatch.setenv(name, value)
    out, told = stream(), stream()
    table = columns("title", "name", "value")
    table.add_row("[bold]one", "1.0")
    console(out).print(table)
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setattr(bars, "SHORT", 0.0)
    with console_progress() as progress:
        progress("stage", 1, 2, {})
    assert ("\x1b" in out.getvalue()) == coloured
    assert ("\x1b" in told.getvalue()) == coloured


@pytest.mark.parametrize("columns_", [None, "60", "300"])
def test_width_is_the_terminals_and_at_most_a_hundred(monkeypatch, columns_):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns_ is not None:
        monkeypatch.setenv("COLUMNS", columns_)
    assert console(io.StringIO()).width == {None: 100, "60": 60, "300": 100}[columns_]


def test_sentences_are_wrapped_on_a_terminal_and_whole_in_a_file(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    seen, kept = Terminal(), io.StringIO()
    say(LONG, seen)
    say(LONG, kept)
    assert max(map(len, seen.getvalue().splitlines())) <= 40
    assert " ".join(seen.getvalue().split()) == LONG
    assert kept.getvalue() == f"{LONG}\n"


# Progress, and what is said on the way.


def test_progress_says_what_is_left(capsys, monkeypatch):
    now = iter([0.0, 10.0, 40.0, 100.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    report = lines(patience=20.0)
    for step in (1, 4, 10):
        report("cloning", step, 10, {})
    assert capsys.readouterr().err.splitlines() == [
        "cloning 4/10, 40 s, 1 min 0 s left",
        "cloning 10/10, 1 min 40 s",
    ]


def test_what_is_short_is_not_worth_a_line(capsys):
    report = lines()
    report("evaluation", 3, 3, {})
    assert capsys.readouterr().err == ""


def test_whoever_listens_is_told():
    heard = []
    tell("alone", 1, 2)
    with listening(lambda *told: heard.append(told)):
        tell("reading", 1, 2)
        with listening(None):
            tell("silence", 1, 2)
    tell("alone", 1, 2)
    assert heard == [("reading", 1, 2, {})]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (7500, "2 h 5 min")]
)
def test_durations_are_read_easily(seconds, words):
    assert duration(seconds) == words


def test_quiet_is_silent_and_json_is_alone_on_stdout(capsys):
    with Shown(quiet=True).progress() as progress:
        assert progress is None
    Shown(quiet=True).say("a remark")
    Shown(json=True).say("another remark")
    Shown(json=True).answer({"value": 1}, lambda: ["words"])
    told = capsys.readouterr()
    assert json.loads(told.out) == {"value": 1}
    assert told.err == "another remark\n"


def known() -> dict[str, dict[str, tuple[str, ...]]]:
    return {
        name: options_of(getattr(importlib.import_module(f"aetdice.cli.{entry.module}"), entry.name))
        for name, entry in COMMANDS.items()
    }


def test_every_command_can_be_quiet_and_speak_json():
    missing = {name: {"--json", "--quiet"} - set(options) for name, options in known().items()}
    assert {name: lacks for name, lacks in missing.items() if lacks} == SPEECHLESS


# Completion.


def test_bash_completes_commands_options_and_values(tmp_path):
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("there is no bash")
    script = tmp_path / "completion"
    asked = {
        "aetdice ev": "evaluate",
        "aetdice train --alg": "--algorithm",
        "aetdice train --set": "--set",
        "aetdice train --effort st": "standard",
        "aetdice solve two": "two-step",
        "aetdice watch --on": "--once",
    }
    tries = "\n".join(
        f'COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); _aetdice; echo "${{COMPREPLY[*]}}"'
        for words in asked
    )
    script.write_text(f"{bash(known())}\n{tries}\n")
    told = subprocess.run([shell, str(script)], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == list(asked.values())
    assert told.stderr == ""


def test_fish_has_a_line_per_option(capsys):
    lines_ = fish(known(), {name: entry.words for name, entry in COMMANDS.items()}).splitlines()
    within = "complete -c aetdice -n '__fish_seen_subcommand_from train'"
    assert f"{within} -l effort -x -a 'quick standard thorough'" in lines_
    assert all(line.count("'") % 2 == line.count("\\'") % 2 for line in lines_)
    main(["completion", "zsh"])
    assert "bashcompinit\n_aetdice() {" in capsys.readouterr().out


# Ctrl-C.


def child(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_an_interrupted_import_is_one_word():
    told = child(
        "import os, signal, sys, aetdice_command\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # shells may have it ignored
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        os.kill(os.getpid(), signal.SIGINT) if name == 'aetdice' else None\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "aetdice_command.main()"
    )
    assert (told.returncode, told.stdout, told.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("module", "expected"), [("aetdice", "interrupted\n"), ("other", "KeyboardInterrupt\n")]
)
def test_an_interrupted_import_of_python_m_is_one_word(module, expected, tmp_path):
    """But not where another package is run, which is to hear of it in its own way."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        os.kill(os.getpid(), signal.SIGINT) if name == 'aetdice.registration' else None\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "__init__.py").write_text("import aetdice")
    (tmp_path / "other" / "__main__.py").write_text("")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    told = subprocess.run(
        [sys.executable, "-m", module, "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert told.returncode == 130 or module == "other"
    assert told.stderr.endswith(expected)
    assert (told.stderr == expected) == (module == "aetdice")


def test_an_interrupt_that_hits_a_callback_comes_again():
    told = child(
        "import signal, time, aetdice_command\n"
        "signal.signal(signal.SIGINT, aetdice_command.stop)\n"
        "aetdice_command.unwind_from_now_on()\n"
        "class Callback:\n"
        "    def __del__(self):\n"
        "        raise KeyboardInterrupt\n"
        "try:\n"
        "    Callback()\n"
        "    time.sleep(20)\n"
        "except KeyboardInterrupt:\n"
        "    print('again')"
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "again\n", "")


def test_an_interrupt_in_disguise_is_recognised():
    disguised, plain = ImportError("initialisation failed"), ImportError("no such module")
    disguised.__cause__ = KeyboardInterrupt()
    assert _was_interrupted(disguised)
    assert not _was_interrupted(plain)
