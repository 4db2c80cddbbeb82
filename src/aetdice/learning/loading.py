"""`load_run`: a run as its folder has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aetdice.config import TrainingConfig
from aetdice.datasets import dataset_of
from aetdice.errors import InputError
from aetdice.learning.folder import RESULT, load_policies, load_returns, read_request, read_result
from aetdice.learning.run import Member, Run
from aetdice.learning.selection import Selection
from aetdice.learning.verdict import Verdict, trusted_by_words
from aetdice.objectives import Objective, objective_from


def load_run(folder: Path | str, objective: Objective | Sequence[Objective] | None = None) -> Run:
    """The run of a folder.

    `objective` is needed only where the run was trained for functions that no file can hold.
    """
    folder = Path(folder)
    request, result = read_request(folder), read_result(folder)
    objectives = _objectives(request, objective)
    returns = load_returns(folder)
    try:
        rows = result["members"]
        each = len(rows) // len(objectives)
        members = [
            Member(
                params=row["params"],
                objective=objectives[index // each],
                policy=policies[0],
                twin=policies[1],
                diagnostics=row["diagnostics"],
                verdict=Verdict(row.get("trusted", trusted_by_words(row["verdict"])), row["verdict"]),
            )
            for index, row in enumerate(rows)
            for policies in [load_policies(folder, index)]
        ]
        chosen = [summary["selected"] for summary in result["by_objective"]]
        return Run(
            members=members,
            selections=[Selection(range(len(rows))[each["index"]], each["rule"]) for each in chosen],
            algorithm=request["algorithm"],
            config=TrainingConfig.from_record(request["settings"]),
            horizon=request["horizon"],
            seconds=result["seconds"],
            data_returns=dataset_of(request["dataset"]["origin"]).returns if returns is None else returns,
            request=request,
            chosen=result.get("chosen", {}),
            versions=result["versions"],
            estimates=[each["estimate"] for each in result["by_objective"] if "estimate" in each],
        )
    except (LookupError, ArithmeticError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / RESULT} is not the result of a run: {error!r}") from error


def _objectives(request: Mapping[str, Any], given: Objective | Sequence[Objective] | None) -> list[Objective]:
    """The objectives of a run: from their records, or as given."""
    asked = request["objectives"]
    if given is None:
        lost = [entry["name"] for entry in asked if entry.get("record") is None]
        if lost:
            raise InputError(
                f"the run was trained for {lost[0]!r}, made of Python functions: pass objective=…"
            )
        return [objective_from(entry["record"]) for entry in asked]
    objectives = [given] if isinstance(given, Objective) else list(given)
    if [each.name for each in objectives] != [entry["name"] for entry in asked]:
        raise InputError(f"the run was trained for {', '.join(entry['name'] for entry in asked)}")
    return objectives
