"""The documentation is executed: its Python runs, its commands succeed, and both print what it says."""

import importlib
import json
import re
import shlex
from pathlib import Path

import pytest
import tyro
from support.pages import EXECUTED, commands, fences

from aetdice.cli import COMMANDS, main

PRINT = re.compile(r"^print\(.*\)\n# (.*)$", re.MULTILINE)
VOLATILE = re.compile(r"\d\.\de[+-]\d+|^time .*", re.MULTILINE)
"""Rounding errors and times: true once, not everywhere."""
SOLVES = [
    pytest.param(page, command, output, id=f"{page}: {command}")
    for page in EXECUTED
    for command, output in commands(page)
    if command.startswith("aetdice solve ")
]
LONG = sorted(
    {
        (page, command)
        for page in EXECUTED
        for command, _ in commands(page)
        if command.startswith("aetdice ") and not command.startswith("aetdice solve ")
    }
)
"""Too long for a test, but not to be understood."""


def test_blocks_are_in_a_language_that_is_read():
    """A block is Python, a console with `$`, or output; none is skipped by accident."""
    for page in EXECUTED:
        for block in fences(page, "console", "sh"):
            assert block.startswith("$ "), f"{page}: a console begins with $:\n{block}"


@pytest.mark.parametrize("page", [page for page in EXECUTED if fences(page, "python")])
def test_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    """In one namespace; below each print stands what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    source = "\n".join(fences(page, "python"))
    assert ">>>" not in source
    exec(compile(source, page, "exec"), {"__name__": "docs"})
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed == PRINT.findall(source)


@pytest.mark.parametrize(("page", "command", "output"), SOLVES)
def test_command_does_what_its_page_shows(page, command, output, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    _write_shown_files(page)
    arguments = shlex.split(command, comments=True)[1:]
    if output.startswith("error: "):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert exit_.value.code == 2
        assert tidy(capsys.readouterr().err) == tidy(output)
        return
    main(arguments)
    answer = capsys.readouterr().out
    if "--json" in arguments:
        assert json.loads(answer)["gap"] <= 1e-6
    elif "…" in output:
        shown = [line for line in tidy(output) if line != "…"]
        assert shown == [line for line in tidy(answer) if line in shown]
    else:
        assert tidy(answer) == tidy(output)


@pytest.mark.parametrize(("page", "command"), LONG)
def test_long_command_is_understood(page, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _write_shown_files(page)
    name, *rest = shlex.split(command, comments=True)[1:]
    entry = COMMANDS[name]
    options = getattr(importlib.import_module(f"aetdice.cli.{entry.module}"), entry.name)
    parsed = tyro.cli(options, args=rest, config=(tyro.conf.OmitArgPrefixes,))
    if name == "train":
        parsed.training_config()
    if name == "reproduce" and parsed.part:
        from aetdice.studies import STUDIES
        from aetdice.studies.populations import parts_of

        known = [part.name for part in parts_of(STUDIES[parsed.study](parsed.quick))]
        assert [part for part in parsed.part if part not in known] == []


def tidy(text: str) -> list[str]:
    return [line.rstrip() for line in VOLATILE.sub("~", text).strip().splitlines()]


def _write_shown_files(page: str) -> None:
    for shown, content in commands(page):
        if shown.startswith("cat "):
            Path(shown.removeprefix("cat ")).write_text(content, encoding="utf-8")
