"""`aetdice convert` and `aetdice doctor`: logs of one's own."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console
from rich.text import Text

from aetdice.data import FORMATS, Columns, Episodes
from aetdice.data.doctor import Report, examine
from aetdice.data.mending import mend
from aetdice.data.readers.arrays import Store
from aetdice.data.store import load_episodes, load_facts
from aetdice.datasets import load_dataset
from aetdice.errors import InputError

SIGNS = {"error": "✗", "warning": "!", "note": "·"}
SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz", "": "store"}


@dataclass(frozen=True)
class LogOptions:
    """Of a log: which column is what, and how its episodes end."""

    columns: tuple[str, ...] = ()
    """Roles as role=name,name (episode, step, observations, actions, rewards, terminated, truncated,
    next_observations, categories, numbers; - is none), or one TOML file. Others are guessed by name."""
    ends: Literal["shift", "recording"] | None = None
    """What truncation before the horizon is: the end of a shift, or a cut recording (default: guessed)."""

    def given(self) -> dict[str, Any]:
        """As `load_dataset` takes it."""
        columns = Columns.read(self.columns) if self.columns else None
        return {"columns": columns, "ends": self.ends}

    def horizon_of(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Of an environment's options a log reads the horizon only."""
        if other := [name for name in arguments if name != "horizon"]:
            raise InputError(f"a log does not read --{other[0]}; it belongs to fair-taxi")
        return arguments


def show(*notes: str, to_stderr: bool = False) -> None:
    """What was found and decided, a line each."""
    console = Console(file=sys.stderr if to_stderr else sys.stdout)
    for note in notes:
        console.print(Text(note), soft_wrap=True)


@dataclass(frozen=True)
class Convert:
    """Write a log in another format."""

    source: tyro.conf.Positional[str]
    """A file or folder of logged episodes, or a Minari id on this machine."""
    target: tyro.conf.Positional[str]
    """The new file: .csv, .parquet or .npz; a name without a suffix is a native store."""
    log: LogOptions = LogOptions()
    horizon: int | None = None
    """After how many steps an episode is over at the latest (default: the longest)."""
    to: Literal[*FORMATS] | None = None  # type: ignore[valid-type]
    """The target's format, where its name does not tell; minari takes an id like shifts/log-v0."""

    append: bool = False
    """Add the episodes to a native store that is there already, in its coding."""

    def run(self) -> None:
        target = Path(self.target)
        if self.append:
            self.add_to(target)
            return
        if target.exists():
            raise InputError(f"{target} exists; delete it or choose another name, or --append to a store")
        name = self.to or SUFFIXES.get(target.suffix.lower())
        if name is None:
            raise InputError(f"{target} has no suffix that names a format; say --to {' | '.join(FORMATS)}")
        dataset = self.load(self.log.ends)
        FORMATS[name].write(target, dataset)
        show(*dataset.notes)
        print(f"written: {target} ({name})")

    def add_to(self, store: Path) -> None:
        """Append to a store; ends are read as it has them unless said otherwise."""
        dataset = self.load(self.log.ends or load_facts(store).get("ends"))
        Store().append(store, dataset)
        show(*dataset.notes)
        print(f"appended to {store}: {len(dataset):,} episodes; it has {len(load_episodes(store)):,} now")

    def load(self, ends: str | None) -> Episodes:
        arguments: dict[str, Any] = {} if self.horizon is None else {"horizon": self.horizon}
        return load_dataset(self.source, **{**self.log.given(), "ends": ends}, **arguments)


@dataclass(frozen=True)
class Doctor:
    """Look a log over before any training; exit code 1 if something is found.

    With --fix the report is on the mended file.
    """

    source: tyro.conf.Positional[str]
    """A file or folder of logged episodes, or a Minari id on this machine."""
    log: LogOptions = LogOptions()
    horizon: int | None = None
    """After how many steps an episode is over at the latest (default: the longest)."""
    fix: Path | None = None
    """Write what can be mended safely to this new CSV or Parquet file: rows in order, repeated rows
    once, an id of its own for every episode."""
    json: bool = False
    """Print one JSON object instead of a page."""

    def run(self) -> None:
        given = self.log.given()
        columns = given["columns"] or Columns()
        mended = None if self.fix is None else mend(Path(self.source), columns, self.fix)
        source = str(self.fix) if mended else self.source
        report = examine(source, columns, ends=self.log.ends, horizon=self.horizon)
        if self.json:
            print(json.dumps({**report.record(), "mended": mended}))
        else:
            if self.fix is not None:
                print(f"mended in {self.fix}: {'; '.join(mended)}" if mended else "nothing to mend")
            _show(report, Console())
        if report.found:
            raise SystemExit(1)


def _show(report: Report, console: Console) -> None:
    console.print(Text(report.source, style="bold"))
    for note in report.notes:
        console.print(Text(f"  {note}"), soft_wrap=True)
    for finding in report.findings:
        where = f" {finding.where}:" if finding.where else ""
        console.print(Text(f"{SIGNS[finding.level]}{where} {finding.words}"), soft_wrap=True)
    count = {level: sum(each.level == level for each in report.findings) for level in SIGNS}
    console.print(Text(f"{count['error']} errors, {count['warning']} warnings, {count['note']} notes"))
