"""The command line: solve, train, evaluate, resume, behaviours, collect, reproduce, demo."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from aetdice import __version__
from aetdice.cli.behaviours import BehavioursCommand, Collect
from aetdice.cli.reproduce import Reproduce
from aetdice.cli.solve import SolveCommand
from aetdice.cli.train import Evaluate, Resume, Train
from aetdice.errors import InputError
from aetdice.report.progress import console_progress
from aetdice.studies.demo import demo


@dataclass(frozen=True)
class Demo:
    """Solve the two-step problem, learn Fair-Taxi from data; print tables, write a picture."""

    out: Path = Path("demo")
    """Where the picture and its data go."""

    def run(self) -> None:
        with console_progress() as progress:
            demo(self.out, Console(), progress)


Command: Any = Annotated[
    Annotated[
        SolveCommand, tyro.conf.subcommand("solve", description="The certified optimum of a finite problem.")
    ]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Resume, tyro.conf.subcommand("resume")]
    | Annotated[
        BehavioursCommand,
        tyro.conf.subcommand("behaviours", description="Policies of the D4MORL bodies: train and show."),
    ]
    | Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Demo, tyro.conf.subcommand("demo")],
    tyro.conf.OmitArgPrefixes,
]
DESCRIPTION = "Offline nonlinear multi-objective reinforcement learning: J = G(E[F(R)])."


def main(arguments: list[str] | None = None) -> None:
    """Run one command; a user's mistake is one line on stderr and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"aetdice {__version__}")
        return
    try:
        command: Any = tyro.cli(Command, prog="aetdice", description=DESCRIPTION, args=arguments)
        command.run()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
