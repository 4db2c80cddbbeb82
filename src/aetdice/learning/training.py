"""`train` and `resume`: from a dataset and an objective to a run."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aetdice.config import TrainingConfig
from aetdice.data import Episodes, Transform, transform_episodes, transform_from
from aetdice.datasets import dataset_of
from aetdice.errors import InputError
from aetdice.files import versions
from aetdice.learning.budget import policies_of, within
from aetdice.learning.checkpointing import Checkpointing
from aetdice.learning.estimates import estimate_run
from aetdice.learning.folder import REQUEST, RESULT, check_folder, read_request, read_result, write_request
from aetdice.learning.inputs import set_aside
from aetdice.learning.run import Run, select_members
from aetdice.learning.setup import Seeds, Setup, Values, algorithm_for, set_up, several
from aetdice.learning.stages import TrainingState, stages_of, start, train_members
from aetdice.learning.trackers import Tracker
from aetdice.objectives import Objective, objective_from, objective_record
from aetdice.progress import Progress, listening
from aetdice.report.progress import console_progress


def train(
    dataset: Episodes,
    objective: Objective | Sequence[Objective],
    *,
    algorithm: str = "aetdice",
    horizon: int | None = None,
    beta: Values | None = None,
    expectile: Values | None = None,
    temperature: Values | None = None,
    sample_size: Values | None = None,
    seed: Seeds = 0,
    learning_rate: Values = 1e-3,
    transform: Transform | None = None,
    effort: str | None = None,
    minutes: float | None = None,
    config: TrainingConfig | None = None,
    out: Path | str | None = None,
    progress: Progress | bool = True,
    trackers: Sequence[Tracker] = (),
    notes: Mapping[str, Any] | None = None,
) -> Run:
    """Train on a dataset: every combination of the given values is a member.

    `algorithm` is aetdice, optidice or fairdice (which take β), esr-iql (expectile and
    temperature), episode-weighting (sample_size) or bc. Objectives must share their form and
    differ in parameters only, as `[bsr(a) for a in …]` do. A `transform` is applied to the rewards
    first and travels with the policies, which are then told raw rewards. `effort` is quick, standard or
    thorough: what is not set by hand is chosen from the data within it; `minutes` choose it by what
    this machine does in about so many. With `out`, everything about the run goes to that folder, and a
    run that was cut off goes on from its last checkpoint when called again with the same arguments;
    `notes` (JSON) are kept beside them. Progress is shown on stderr, unless `progress` is False or a
    function of your own.
    """
    _check_kinds(dataset, objective)
    if out is not None:
        check_folder(Path(out))
    started = time.perf_counter()
    given = config = config or TrainingConfig()
    config = config if effort is None else config.adapted({"trainer.effort": effort})
    horizon = dataset.horizon if horizon is None else horizon
    objectives = [objective] if isinstance(objective, Objective) else list(objective)
    seen = dataset.settled()  # the parts that a setup cuts off do not know how episodes end
    seen = seen if transform is None else transform_episodes(seen, transform)
    own = {"beta": beta, "expectile": expectile, "temperature": temperature, "sample_size": sample_size}
    sweeps: dict[str, Values | None] = {**own}
    with _shown(progress):
        if minutes is not None:
            if effort is not None:
                raise InputError(f"give the effort, {effort}, or minutes, not both")
            policies = policies_of(algorithm, objectives, sweeps, several(learning_rate), several(seed))
            longest = int(seen.lengths.max()) if horizon is None else horizon
            learner = algorithm_for(algorithm, longest, config)
            config = _budgeted(minutes, out) or within(
                float(minutes), seen, learner, longest, config, policies
            )
        setup = set_up(
            seen,
            objectives,
            algorithm=algorithm,
            horizon=horizon,
            sweeps=sweeps,
            learning_rate=learning_rate,
            seed=seed,
            config=config,
        )
    request = {
        "dataset": _described(dataset),
        "objectives": [{"name": each.name, "record": objective_record(each)} for each in objectives],
        "algorithm": algorithm,
        "horizon": setup.horizon,
        "split": _split(seen, setup),
        "stages": stages_of(setup),
        "sweeps": {name: several(value) for name, value in sweeps.items() if value is not None},
        "learning_rate": several(learning_rate),
        "seed": several(seed),
        "transform": None if transform is None else transform.record(),
        "settings": asdict(config),
        "minutes": minutes,
        "notes": dict(notes or {}),
        "versions": versions(),
    }
    with _shown(progress) as show, Checkpointing[TrainingState](out, show, trackers) as checkpointing:
        if setup.words and show is not None:
            show(setup.words, 1, 1, {})
        state = start(setup, checkpointing)
        if out is not None:  # not before: the folder may hold another run
            write_request(Path(out), request)
        members = train_members(setup, state, checkpointing, transform)
    for policy in (policy for member in members for policy in member.acting):
        policy.coding = dataset.coding
        policy.details["objectives"] = list(dataset.objectives)
    seconds = time.perf_counter() - started
    selections = select_members(members)
    chosen = {name: value for name, value in setup.config.changed().items() if name not in given.changed()}
    run = Run(members, selections, algorithm, config, setup.horizon, seconds, seen.returns, request, chosen)
    with _shown(progress):
        run.estimates = estimate_run(run, dataset)
    if out is not None:
        # A folder that has a result is this very run's, ended before: its scores are still true.
        run.save(out, read_result(Path(out)) if (Path(out) / RESULT).is_file() else None)
    return run


def resume(folder: Path | str, progress: Progress | bool = True, trackers: Sequence[Tracker] = ()) -> Run:
    """Go on with a run that was cut off, to the same result."""
    request = read_request(Path(folder))
    origin, records = request["dataset"]["origin"], [entry["record"] for entry in request["objectives"]]
    if request["format"] == 1:
        raise InputError(f"{folder} was begun by version 0.1, whose checkpoints are not read: train again")
    if origin is None or None in records:
        part = "data" if origin is None else "objective"
        raise InputError(
            f"the {part} of {folder} came from Python: call aetdice.train again with the same arguments"
        )
    dataset = dataset_of(origin)
    if dataset.sha256 != request["dataset"]["sha256"]:
        raise InputError(f"the data of {folder} has changed since it was begun: {_named(origin)}")
    return train(
        dataset,
        [objective_from(record) for record in records],
        algorithm=request["algorithm"],
        horizon=request["horizon"],
        **request["sweeps"],
        seed=request["seed"],
        learning_rate=request["learning_rate"],
        transform=None if request["transform"] is None else transform_from(request["transform"]),
        config=TrainingConfig.from_record(request["settings"]),
        out=folder,
        progress=progress,
        trackers=trackers,
        notes=request["notes"],
    )


def _budgeted(minutes: float, out: Path | str | None) -> TrainingConfig | None:
    """What a run that was cut off had found to fit into the same minutes: timed again it may be another."""
    if out is None or not (Path(out) / REQUEST).is_file():
        return None
    request = read_request(Path(out))
    return TrainingConfig.from_record(request["settings"]) if request.get("minutes") == minutes else None


def _check_kinds(dataset: Any, objective: Any) -> None:
    if not isinstance(dataset, Episodes):
        raise InputError(
            f"a dataset is Episodes, as load_dataset, Episodes.from_list or a reader of aetdice.data gives "
            f"them; not {type(dataset).__name__}"
        )
    for one in objective if isinstance(objective, list | tuple) else [objective]:
        if not isinstance(one, Objective):
            raise InputError(
                f"an objective is made by esr(), ser(), bsr(0.5), … or Objective(F, G); not {one!r}"
            )


def _split(dataset: Episodes, setup: Setup) -> dict[str, int]:
    """How many episodes are trained on, chosen by, and kept for estimates."""
    rest = len(set_aside(dataset, setup.config)[0])
    chosen = 0 if setup.held_out is None else len(setup.held_out.initial)
    return {"training": rest - chosen, "selection": chosen, "report": len(dataset) - rest}


def _named(origin: Mapping[str, Any]) -> str:
    return str(origin.get("file", origin.get("env")))


def _described(dataset: Episodes) -> dict[str, Any]:
    return {
        "origin": None if dataset.origin is None else dict(dataset.origin),
        "sha256": dataset.sha256,
        "episodes": len(dataset),
        "steps": dataset.steps,
        "objectives": list(dataset.objectives),
        "ends": dataset.ends,
        "coding": None if dataset.coding is None else dataset.coding.record(),
        "notes": list(dataset.notes),
    }


@contextlib.contextmanager
def _shown(progress: Progress | bool) -> Iterator[Progress | None]:
    """What is told on the way is heard by the user's function, or shown on stderr."""
    shown = console_progress() if progress is True else contextlib.nullcontext(progress or None)
    with shown as show, listening(show):
        yield show
