"""`aetdice convert` and `aetdice doctor`: logs of one's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import tyro

from aetdice.cli.options import Shown
from aetdice.data import FORMATS, Columns, Episodes
from aetdice.data.conversion import Plan, parts_of, plan_of, write_store
from aetdice.data.doctor import Report, examine
from aetdice.data.mending import mend
from aetdice.data.readers import Place, TableFile
from aetdice.data.readers.arrays import Store
from aetdice.data.store import load_episodes, load_facts
from aetdice.datasets import load_dataset, name_of_environment, place_of
from aetdice.errors import InputError
from aetdice.progress import listening

SIGNS = {"error": "✗", "warning": "!", "note": "·"}
SUFFIXES = {".csv": "csv", ".npz": "npz", "": "store"}
SUFFIXES |= {suffix: name for name in ("parquet", "arrow") for suffix in FORMATS[name].suffixes}


@dataclass(frozen=True)
class LogOptions:
    """Of a log: which column is what, and how its episodes end."""

    columns: tuple[str, ...] = ()
    """Roles as role=name,name (episode, step, observations, actions, rewards, terminated, truncated,
    next_observations, categories, numbers, ignored; - is none), or one TOML file. Others are guessed by
    name."""
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


@dataclass(frozen=True)
class Convert:
    """Write a log in another format."""

    source: tyro.conf.Positional[str]
    """Logged episodes: a file, a folder or pattern of files, a URL of one, or a Minari id on this machine."""
    target: tyro.conf.Positional[str]
    """The new file: .csv, .parquet, .arrow or .npz; a name without a suffix is a native store."""
    log: LogOptions = LogOptions()
    horizon: int | None = None
    """After how many steps an episode is over at the latest (default: the longest)."""
    to: Literal[*FORMATS] | None = None  # type: ignore[valid-type]
    """The target's format, where its name does not tell; minari takes an id like shifts/log-v0."""
    append: bool = False
    """Add the episodes to a native store that is there already, in its coding."""
    shown: Shown = Shown()

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
        with self.shown.progress() as progress, listening(progress):
            place = self.table() if name == "store" else None
            if place is None:
                dataset = self.load(self.log.ends)
                FORMATS[name].write(target, dataset)
                found = Found(len(dataset), dataset.steps, dataset.notes)
            else:
                with place.named():
                    plan = self.plan(place, self.log.ends)
                    write_store(target, plan)
                found = Found(*plan.size, plan.notes)
        self.tell(found, {"written": str(target), "format": name}, f"written: {target} ({name})")

    def add_to(self, store: Path) -> None:
        """Append to a store; ends are read as it has them unless said otherwise."""
        ends = self.log.ends or load_facts(store).get("ends")
        with self.shown.progress() as progress, listening(progress):
            place = self.table()
            if place is None:
                dataset = self.load(ends)
                Store().append(store, [dataset])
                found = Found(len(dataset), dataset.steps, dataset.notes)
            else:
                with place.named():
                    plan = self.plan(place, ends)
                    Store().append(store, parts_of(plan))
                found = Found(*plan.size, plan.notes)
        now = len(load_episodes(store))
        words = f"appended to {store}: {found.episodes:,} episodes; it has {now:,} now"
        self.tell(found, {"written": str(store), "format": "store", "episodes_now": now}, words)

    def tell(self, found: "Found", record: dict[str, Any], words: str) -> None:
        self.shown.say(*found.notes)
        facts = {"episodes": found.episodes, "steps": found.steps, "notes": list(found.notes)}
        self.shown.answer({**facts, **record}, lambda: [words])

    def table(self) -> Place | None:
        """The source if it is a table, which goes to a store block by block."""
        place = None if name_of_environment(self.source) else place_of(self.source)
        return place if place is not None and isinstance(place.format, TableFile) else None

    def plan(self, place: Place, ends: str | None) -> Plan:
        stack = place.stack()
        assert stack is not None
        return plan_of(stack, self.log.given()["columns"] or Columns(), ends, self.horizon)

    def load(self, ends: str | None) -> Episodes:
        arguments: dict[str, Any] = {} if self.horizon is None else {"horizon": self.horizon}
        return load_dataset(self.source, **{**self.log.given(), "ends": ends}, **arguments)


class Found(NamedTuple):
    """What was converted."""

    episodes: int
    steps: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Doctor:
    """Look a log over before any training; exit code 1 if something is found.

    With --fix the report is on the mended file.
    """

    source: tyro.conf.Positional[str]
    """Logged episodes: a file, a folder or pattern of files, a URL of one, or a Minari id on this machine."""
    log: LogOptions = LogOptions()
    horizon: int | None = None
    """After how many steps an episode is over at the latest (default: the longest)."""
    fix: Path | None = None
    """Write what can be mended safely to this new CSV or Parquet file: rows in order, repeated rows
    once, an id of its own for every episode."""
    shown: Shown = Shown()

    def run(self) -> None:
        given = self.log.given()
        columns = given["columns"] or Columns()
        mended = None if self.fix is None else mend(self.source, columns, self.fix)
        source = str(self.fix) if mended else self.source
        with self.shown.progress() as progress, listening(progress):
            report = examine(source, columns, ends=self.log.ends, horizon=self.horizon)
        self.shown.answer({**report.record(), "mended": mended}, lambda: [*self.done(mended), *_page(report)])
        if report.found:
            raise SystemExit(1)

    def done(self, mended: list[str] | None) -> list[str]:
        """What --fix has done."""
        if self.fix is None:
            return []
        return [f"mended in {self.fix}: {'; '.join(mended)}" if mended else "nothing to mend"]


def _page(report: Report) -> list[str]:
    findings = [
        f"{SIGNS[each.level]} {f'{each.where}: ' if each.where else ''}{each.words}"
        for each in report.findings
    ]
    count = {level: sum(each.level == level for each in report.findings) for level in SIGNS}
    total = f"{count['error']} errors, {count['warning']} warnings, {count['note']} notes"
    return [report.source, *(f"  {note}" for note in report.notes), *findings, total]
