"""`write_report`: one or several runs as one HTML file."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.errors import InputError
from aetdice.evaluation.scores import TRAINED
from aetdice.files import package_version, write_text
from aetdice.learning.run import Run
from aetdice.page.document import document
from aetdice.page.gathering import COMPARED, Gathered, gather
from aetdice.page.numbers import number
from aetdice.page.pareto import hypervolume, on_front
from aetdice.page.policies import Describing
from aetdice.page.provenance import place_of, provenance
from aetdice.page.sweep import axes_of
from aetdice.progress import Progress

POINTS = 30_000
"""Returns that all pictures show together, so that a page stays small."""
FEWEST, MOST = 60, 500
"""Of one policy."""
HEADINGS = {"BSR[alpha=0.5]": "BSR(0.5)"}


def write_report(
    runs: Run | Path | str | Sequence[Run | Path | str],
    path: Path | str,
    *,
    episodes: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write one HTML page about runs, given as folders or as they are; it needs no network to be read.

    Where the data came from an environment, every policy is sampled there, for as many episodes as
    the run was evaluated with unless `episodes` says otherwise.
    """
    several = [runs] if isinstance(runs, Run | Path | str) else list(runs)
    if not several:
        raise InputError("a report needs at least one run")
    if episodes is not None and episodes < 1:
        raise InputError(f"at least one episode is needed, not {episodes}")
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file, for example {path / 'report.html'}")
    gathered = [gather(run, episodes, progress) for run in several]
    _check_alike(gathered)
    record = record_of(gathered)
    write_text(path, document(record["title"], record))
    return path


def record_of(gathered: Sequence[Gathered]) -> dict[str, Any]:
    """All that the page shows, as JSON has it."""
    count = sum(len(each.run.members) for each in gathered)
    most = max(FEWEST, min(MOST, POINTS // (2 * count)))
    samples: list[dict[str, Any]] = []
    policies: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    for number_of_run, each in enumerate(gathered):
        describing = Describing(each, most)
        members = [describing.member(index) for index in range(len(each.run.members))]
        for index, policy in enumerate(members):
            places = {kind: place + len(samples) for kind, place in policy["samples"].items()}
            policies.append({**policy, "run": number_of_run, "member": index, "samples": places})
        samples += describing.samples
        runs.append(_run(each))
    return {
        "title": f"{_joined(_labels(gathered))} on {_joined(map(place_of, gathered))}",
        "names": _joined(each.name for each in gathered),
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": package_version("aetdice"),
        "objectives": list(gathered[0].names),
        "columns": [[TRAINED, "Trained objective"], *([name, HEADINGS.get(name, name)] for name in COMPARED)],
        "runs": runs,
        "policies": policies,
        "samples": samples,
        "front": _front(gathered, policies),
    }


def _labels(gathered: Sequence[Gathered]) -> list[str]:
    return [member.objective.label for each in gathered for member in each.run.members]


def _joined(words: Iterable[str]) -> str:
    """Each once, in order."""
    return ", ".join(dict.fromkeys(words))


def _run(gathered: Gathered) -> dict[str, Any]:
    run = gathered.run
    return {
        "name": gathered.name,
        "algorithm": run.algorithm,
        "sampled": gathered.policies is not None,
        "axes": axes_of(run),
        "selected": [each.chosen for each in run.selections],
        "curves": gathered.curves,
        "provenance": provenance(gathered),
    }


def _front(gathered: Sequence[Gathered], policies: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Which policies no other one dominates; None where fewer than two have expected returns."""
    known = [index for index, policy in enumerate(policies) if policy["mean"] is not None]
    if len(known) < 2 or len(gathered[0].names) < 2:
        return None
    means = np.array([policies[index]["mean"] for index in known])
    reference = np.min([each.run.data_returns.min(axis=0) for each in gathered], axis=0)
    volume = hypervolume(means, reference)
    return {
        "on": [index for index, best in zip(known, on_front(means), strict=True) if best],
        "hypervolume": None if volume is None else number(volume),
        "reference": [f"{value:.4g}" for value in reference],
    }


def _check_alike(gathered: Sequence[Gathered]) -> None:
    first = gathered[0]
    for other in gathered[1:]:
        if other.names != first.names:
            raise InputError(
                f"runs of one report share their objectives: {first.name} has {', '.join(first.names)}, "
                f"{other.name} has {', '.join(other.names)}; give those of one kind only"
            )
