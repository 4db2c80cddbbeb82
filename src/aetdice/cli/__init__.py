"""The command line: one file per command, imported when it is asked for."""

import difflib
import importlib
import os
import sys
from typing import Any, NamedTuple

import tyro

from aetdice import __version__
from aetdice.errors import InputError
from aetdice_command import unwind_from_now_on


class CommandEntry(NamedTuple):
    """Where a command's options and its `run` are, and what it does."""

    module: str
    name: str
    words: str


COMMANDS: dict[str, CommandEntry] = {
    "solve": CommandEntry("solve", "SolveCommand", "The certified optimum of a finite problem."),
    "train": CommandEntry("train", "Train", "Learn a policy from a dataset."),
    "evaluate": CommandEntry("train", "Evaluate", "Sample episodes with a run's policy and its twin."),
    "estimate": CommandEntry("estimate", "EstimateCommand", "What a run's policy would attain, by a log."),
    "report": CommandEntry("report", "ReportCommand", "Runs as one HTML page."),
    "sweep": CommandEntry("sweep", "Sweep", "Train every combination that a file names."),
    "resume": CommandEntry("train", "Resume", "Go on with a run that was cut off."),
    "watch": CommandEntry("watch", "Watch", "Follow a run that trains in another process."),
    "render": CommandEntry("render", "Render", "Draw episodes of a run's policy beside its twin."),
    "export": CommandEntry("shipping", "Export", "Write a policy as one file."),
    "serve": CommandEntry("shipping", "Serve", "Answer decisions over HTTP."),
    "doctor": CommandEntry("data", "Doctor", "Look a log over before any training."),
    "convert": CommandEntry("data", "Convert", "Write a log in another format."),
    "collect": CommandEntry("behaviours", "Collect", "Write a dataset of a D4MORL body."),
    "behaviours": CommandEntry("behaviours", "BehavioursCommand", "Policies of the D4MORL bodies."),
    "reproduce": CommandEntry("reproduce", "Reproduce", "Run a study of the paper."),
    "completion": CommandEntry("completion", "Completion", "Let the shell complete commands and options."),
    "demo": CommandEntry("reproduce", "Demo", "Two-step and Fair-Taxi in a minute and a half."),
}
DESCRIPTION = "Offline nonlinear multi-objective reinforcement learning: J = G(E[F(R)])."


def main(arguments: list[str] | None = None) -> None:
    """Run one command; a user's mistake is one line on stderr and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except BaseException as error:
        if not _was_interrupted(error):
            raise
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether it comes from Ctrl-C; modules written in C turn that into errors of their own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _run(arguments: list[str]) -> None:
    if arguments == ["--version"]:
        print(f"aetdice {__version__}")
        return
    if not arguments or arguments[0] in ("-h", "--help"):
        print(overview())
        return
    name, *rest = arguments
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(COMMANDS)}"
        raise InputError(f"there is no command {name!r}; {hint}")
    entry = COMMANDS[name]
    options: Any = getattr(importlib.import_module(f"aetdice.cli.{entry.module}"), entry.name)
    command: Any = tyro.cli(options, prog=f"aetdice {name}", args=rest, config=(tyro.conf.OmitArgPrefixes,))
    unwind_from_now_on()
    command.run()


def overview() -> str:
    """What `aetdice --help` prints."""
    commands = "\n".join(f"  {name:<12}{entry.words}" for name, entry in COMMANDS.items())
    return f"usage: aetdice COMMAND …\n\n{DESCRIPTION}\n\n{commands}\n\nOptions: aetdice COMMAND --help"
