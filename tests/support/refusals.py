"""How the command line refuses: one line, exit code 2."""

import pytest

from aetdice.cli import main


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command line says when it refuses: exactly one line, nothing on stdout."""
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    captured = capsys.readouterr()
    assert stopped.value.code == 2
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("error: ").strip()
