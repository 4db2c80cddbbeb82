"""A project outside the package, with public names only: it is typed strictly, and it runs."""

import ast
import subprocess
import sys
from pathlib import Path

from support.training import TINY

import aetdice

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = sorted((HERE / "rides").glob("*.py"))


def used_names(path: Path) -> set[str]:
    """What a file takes from `aetdice`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "aetdice"
    }


def test_project_uses_public_names_only():
    assert "from aetdice" not in "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    assert "import aetdice." not in "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    used = set().union(*map(used_names, SOURCES))
    assert used <= set(aetdice.__all__)
    assert {"load_dataset", "train", "load_run", "evaluate", "load_policy", "make_env", "solve"} <= used


def test_public_names_are_there_and_sorted():
    assert sorted(aetdice.__all__) == aetdice.__all__
    assert all(getattr(aetdice, name).__doc__ for name in aetdice.__all__)


def mypy(target: str) -> subprocess.CompletedProcess[str]:
    """What a strict type check says from outside the package's own folder."""
    cache = ROOT / ".mypy_cache" / "consumer"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), target]
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=240, check=False)


def test_project_is_typed_strictly_from_outside():
    """As mypy sees the installed package: its marker, its annotations, its overloads."""
    found = mypy("rides")
    assert found.returncode == 0, found.stdout + found.stderr


MISTAKES = {
    "aetdice.train('log.csv', aetdice.esr())": '"str"; expected "Episodes"',
    "aetdice.evaluate(aetdice.load_policy('p'), env).twin": '"Evaluation" has no attribute "twin"',
    "aetdice.evaluate(aetdice.load_run('r'), env).score": '"Comparison" has no attribute "score"',
    "aetdice.load_policy('p').act([0]).shape": 'Item "int" of',
    "aetdice.TrainingConfig(dual=3)": 'expected "DualConfig"',
}


def test_mistakes_are_found_before_anything_runs(tmp_path):
    """Types that are `Any` would let these pass."""
    path = tmp_path / "mistakes.py"
    lines = ["import aetdice", "", "env = aetdice.make_env('fair-taxi')", *MISTAKES]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    *complaints, summary = mypy(str(path)).stdout.splitlines()
    assert summary.startswith(f"Found {len(MISTAKES)} errors")
    for number, (message, complaint) in enumerate(zip(MISTAKES.values(), complaints, strict=True), start=4):
        assert f"mistakes.py:{number}: error: " in complaint
        assert message in complaint


def test_project_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(HERE)
    from rides.learn import main

    changed = {name: value for name, value in TINY.changed().items() if not name.startswith("iql.")}
    main(tmp_path, {**changed, "trainer.holdout": 0.2})
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == [
        "policy",
        "twin",
        "trusted:",
        "rides",
        "alone",
        "refused:",
    ]
    assert printed[3] == "rides (2,) (3, 2)"
    assert printed[4].endswith("(50, 2)")
    assert printed[5] == "refused: esr-iql optimises linear and ESR objectives; SER is SER: use aetdice"
