"""The documentation is executed: its Python runs, its commands succeed, and both print what it says."""

import json
import re
import shlex
from pathlib import Path

import pytest
import tyro

from aetdice.cli import Command, main
from aetdice.studies.bodies.markdown import markdown

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINT = re.compile(r"^print\(.*\)\n# (.*)$", re.MULTILINE)
VOLATILE = re.compile(r"\d\.\de[+-]\d+|^time .*", re.MULTILINE)
"""Rounding errors and times: true once, not everywhere."""


def fences(page: str, *languages: str) -> list[str]:
    """The code blocks of a page in some languages."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [body for language, body in FENCE.findall(text) if language in languages]


def commands(page: str) -> list[tuple[str, str]]:
    """What follows each `$` of the page's consoles, and what is shown to come of it."""
    entries = []
    for block in fences(page, "console", "sh"):
        for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = entry.partition("\n")
            entries.append((command, output))
    return entries


SOLVES = [
    pytest.param(page, command, output, id=f"{page}: {command}")
    for page in PAGES
    for command, output in commands(page)
    if command.startswith("aetdice solve ")
]


def tidy(text: str) -> list[str]:
    return [line.rstrip() for line in VOLATILE.sub("~", text).strip().splitlines()]


@pytest.mark.parametrize("page", [page for page in PAGES if fences(page, "python")])
def test_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    """In one namespace; below each print stands what it prints."""
    monkeypatch.chdir(tmp_path)
    source = "\n".join(fences(page, "python"))
    assert ">>>" not in source
    exec(compile(source, page, "exec"), {"__name__": "docs"})
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed == PRINT.findall(source)


@pytest.mark.parametrize(("page", "command", "output"), SOLVES)
def test_command_does_what_its_page_shows(page, command, output, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for shown, content in commands(page):
        if shown.startswith("cat "):
            Path(shown.removeprefix("cat ")).write_text(content, encoding="utf-8")
    arguments = shlex.split(command)[1:]
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


LONG = sorted(
    {
        command.split("#")[0].strip()
        for page in PAGES
        for command, _ in commands(page)
        if command.startswith("aetdice ") and not command.startswith("aetdice solve ")
    }
)
"""Too long for a test, but not to be understood."""


@pytest.mark.parametrize("command", LONG)
def test_long_command_is_understood(command):
    tyro.cli(Command, args=shlex.split(command)[1:])


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *PAGES[2:]])
def test_links_between_pages_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in target]
    assert [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()] == []


@pytest.mark.parametrize("study", ["ant", "walker2d", "cobb-douglas"])
def test_tables_of_the_bodies_are_those_of_the_kept_results(study):
    page = (ROOT / "docs" / "bodies-study.md").read_text(encoding="utf-8")
    kept = json.loads((ROOT / "experiments" / "results" / f"{study}.json").read_text(encoding="utf-8"))
    tables = [markdown(scene) for scene in kept["scenes"].values() if scene["rows"]]
    assert tables
    assert [table for table in tables if table not in page] == []
