"""A study from its name to its folder: its parts through an engine, then tables, figures and a summary."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Group

from aetdice.data.readers.arrow import pyarrow
from aetdice.engines import engine_for
from aetdice.engines.base import Engine
from aetdice.engines.in_process import InProcessEngine
from aetdice.engines.running import Runner
from aetdice.engines.task import Task
from aetdice.errors import InputError
from aetdice.files import write_json
from aetdice.learning.table import RESULTS
from aetdice.progress import Progress, listening, tell
from aetdice.report.progress import shown
from aetdice.studies.members import write_members
from aetdice.studies.parts import PARTS, Part, Results, do_part, part_file, read_part, read_summary
from aetdice.studies.populations import parts_of
from aetdice.studies.registry import Named
from aetdice.studies.reporting import report
from aetdice.studies.study import Study

STUDY = "study.json"
"""In a study's folder: which one it is."""


class Done(NamedTuple):
    """What came of a study's parts."""

    results: dict[str, dict[str, Any]]
    failed: dict[str, str]
    """Parts that came to nothing, and why."""

    def check(self) -> None:
        """`InputError` if a part came to nothing."""
        if self.failed:
            part, words = next(iter(self.failed.items()))
            raise InputError(f"{len(self.failed)} part(s) came to nothing, the first is {part}: {words}")


class Place(NamedTuple):
    """Where parts are done: by default in this process, one after the other."""

    engine: Literal["local", "ray"] | None = None
    workers: int | None = None
    threads: int = 1
    """Of each worker."""
    address: str | None = None
    gpus: float = 0.0
    """What a part asks of a Ray cluster."""

    @property
    def is_here(self) -> bool:
        return self.engine is None and self.workers is None

    def made(self, folder: Path, parts: Sequence[Part], progress: Progress | None) -> Engine:
        """The engine; `InputError` for options that it does not read."""
        if self.threads < 1:
            raise InputError(f"at least one thread is needed, not {self.threads}")
        if self.gpus and self.engine != "ray":
            raise InputError("gpus are what a part asks of a Ray cluster: say --engine ray")
        if not self.is_here:
            return engine_for(
                self.engine or "local",
                folder,
                workers=self.workers,
                address=self.address,
                threads=self.threads,
                gpus=self.gpus,
            )
        given = self._replace(engine=None, workers=None)
        if given != Place():
            raise InputError("threads and an address are of workers: say --workers or --engine, too")
        return in_process(folder, parts, progress)


def reproduce(
    study: str,
    out: Path | str | None = None,
    *,
    quick: bool = False,
    parts: Sequence[str] = (),
    engine: Literal["local", "ray"] | None = None,
    workers: int | None = None,
    threads: int = 1,
    address: str | None = None,
    gpus: float = 0.0,
    progress: Progress | bool = True,
) -> dict[str, Any]:
    """Run a study of the paper, or one's own as `module:function`; what `summary.json` then holds.

    Everything goes to the folder `out`, by default `reproduce/STUDY`; what is done there is not done again.
    Parts, all or those that are named, are done one after the other in this process; or with `workers=N` in
    so many processes of `threads` each, or with `engine="ray"` on the Ray cluster at `address`. `InputError`
    if a part came to nothing, after all others have been finished.
    """
    named = Named(study, quick)
    folder = folder_of(named) if out is None else Path(out)
    with shown(progress) as show:
        done = run_study(named, folder, Place(engine, workers, threads, address, gpus), parts, show)
        if done.results:
            _, remarks = write_all(named.make(), done.results, folder)
            for remark in remarks:
                tell(remark, 1, 1)
    done.check()
    return read_summary(folder)


def folder_of(named: Named) -> Path:
    """Where a study goes by default."""
    name = named.study.replace(":", ".")
    return Path("reproduce") / (f"{name}-quick" if named.quick else name)


def run_study(
    named: Named,
    folder: Path,
    place: Place = Place(),
    only: Sequence[str] = (),
    progress: Progress | None = None,
) -> Done:
    """Do what is not done yet on an engine, which ends with it."""
    parts = parts_of(named.make())
    check_parts(parts, only)
    engine = place.made(folder, parts, progress)
    try:
        begin(named, folder)
        with listening(progress):
            return run_parts(engine, folder, parts, only, named)
    finally:
        engine.cancel()


def write_all(study: Study, results: Results, folder: Path) -> tuple[Group, list[str]]:
    """Tables, figures, the summary and `results.parquet` of what is done; the tables to show, and remarks."""
    tables = report(study, results, folder)
    try:
        pyarrow()
    except InputError as error:
        return tables, [f"there is no {RESULTS}: {error}"]
    write_members(study, results, folder)
    return tables, []


def complete(
    parts: Sequence[Part], folder: Path, only: Sequence[str] = (), progress: Progress | None = None
) -> dict[str, dict[str, Any]]:
    """The results of all parts that are done, after doing the missing ones or those named in `only`, here."""
    check_parts(parts, only)
    folder.mkdir(parents=True, exist_ok=True)
    with listening(progress):
        done = run_parts(in_process(folder, parts, progress), folder, parts, only)
    done.check()
    return done.results


def run_parts(
    engine: Engine, folder: Path, parts: Sequence[Part], only: Sequence[str] = (), named: Named | None = None
) -> Done:
    """The same on an engine that is there; other processes know the parts of a study that is named."""
    results = results_in(folder, parts)
    chosen: list[Part] = []
    for part in parts:
        if not {each.name for each in chosen}.isdisjoint(part.after):  # it was made from what is made again
            results.pop(part.name, None)
            part_file(folder, part).unlink(missing_ok=True)
        if part.name not in results and (not only or part.name in only):
            chosen.append(part)
    failed: dict[str, str] = {}
    if chosen:
        runner = Runner(engine, folder, len(chosen), "parts")
        largest_first = sorted(chosen, key=lambda part: -part.members)  # so that no long one ends alone
        runner.run([task_of(part, named) for part in largest_first])
        failed = runner.failed
    for part in chosen:
        if part.name not in failed:
            try:
                results[part.name] = read_part(part_file(folder, part), part)
            except InputError as error:  # such as another version of the package has written
                failed[part.name] = str(error)
    return Done({part.name: results[part.name] for part in parts if part.name in results}, failed)


def results_in(folder: Path, parts: Sequence[Part]) -> dict[str, dict[str, Any]]:
    """What the parts that are done have found."""
    files = ((part, part_file(folder, part)) for part in parts)
    return {part.name: read_part(file, part) for part, file in files if file.is_file()}


def task_of(part: Part, named: Named | None) -> Task:
    """A part as an engine does it."""
    record = {**(named._asdict() if named else {}), "part": part.name}
    own = f"{PARTS}/{part.name}"
    return Task(part.name, f"{__name__}:do_named", record, own, f"{own}.json", after=part.after)


def do_named(record: Mapping[str, Any], own: Path) -> None:
    """Do a part of a study that is named, in any process."""
    do_part(_parts_by_name(Named(record["study"], record["quick"]))[record["part"]], own)


def in_process(folder: Path, parts: Sequence[Part], progress: Progress | None) -> InProcessEngine:
    """Does these very parts, whose study need have no name."""
    known = {part.name: part for part in parts}
    return InProcessEngine(folder, lambda record, own: do_part(known[record["part"]], own, progress))


def check_parts(parts: Sequence[Part], only: Sequence[str]) -> None:
    """`InputError` if one that is to be done is not there, or can never begin."""
    names = [part.name for part in parts]
    for name in only:
        if name not in names:
            raise InputError(f"no part is called {name!r}; parts: {', '.join(names)}")
    waiting = {part.name: part.after for part in parts}
    while ready := [name for name, after in waiting.items() if waiting.keys().isdisjoint(after)]:
        for name in ready:
            del waiting[name]
    if waiting:
        raise InputError(f"parts that wait for each other: {', '.join(waiting)}")


def begin(named: Named, folder: Path) -> None:
    """Say whose folder it is; `InputError` where it is another study's."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / STUDY).is_file():
        write_json(folder / STUDY, named._asdict())
    elif (other := study_in(folder)) != named:
        raise InputError(
            f"{folder} holds the study {other.words}, not {named.words}: choose another folder, or delete it"
        )


def study_in(folder: Path) -> Named:
    """Which study a folder holds."""
    path = folder / STUDY
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Named(str(content["study"]), bool(content["quick"]))
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(f"{path} does not say which study this is: {error!r}") from error


@lru_cache(maxsize=1)
def _parts_by_name(named: Named) -> dict[str, Part]:
    return {part.name: part for part in parts_of(named.make())}
