"""Policies of a training kept as files, and walked one by one: what one attained is not found out again."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aetdice.errors import InputError
from aetdice.evaluation.policy import Policy
from aetdice.files import write_json
from aetdice.learning.checkpointing import Report
from aetdice.learning.run import Run
from aetdice.networks import PolicyNetwork
from aetdice.studies.members import mean_score, one_of_each_seed, rows_of


def keep_policies(run: Run, names: Sequence[str], twins: bool, folder: Path) -> dict[str, Any]:
    """The rows of a training; of the settings that are to walk, perhaps of the twins, the policies as files.

    AETDICE walks with the setting that its rule selects. Of a baseline all walk, and the best counts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = rows_of(run, names, lambda index, _: {"member": index})
    for row in rows.values():
        chosen = [row["selected"]] if run.algorithm == "aetdice" else range(len(row["settings"]))
        row["walking"] = list(chosen)
        for setting in row["walking"]:
            for seed in row["settings"][setting]["seeds"]:
                run.members[seed["member"]].policy.save(folder / _policy(seed["member"]))
    for seed, member in one_of_each_seed(run).items() if twins else ():
        member.twin.save(folder / _twin(seed))
    return rows


def walk_policies(
    trained: Mapping[str, Any],
    walk: Callable[[PolicyNetwork, str | None], dict[str, Any]],
    policies: Path,
    folder: Path,
    report: Report,
) -> dict[str, Any]:
    """What every kept policy attains: for each row the setting that counts, seed by seed, and the twins.

    `walk` gives the record of a policy and of the row it was trained for, None for a twin.
    """
    every = [
        (row, setting, seed)
        for row, entry in trained["rows"].items()
        for setting in entry["walking"]
        for seed in entry["settings"][setting]["seeds"]
    ]
    total, done = len(every) + len(trained["twins"]), 0

    def walked(file: str, row: str | None) -> dict[str, Any]:
        nonlocal done
        policy, path = policies / file, (folder / file).with_suffix(".json")
        if not policy.is_file():
            raise InputError(f"{policy} is missing: bring the folder of the training, too")
        digest = hashlib.sha256(policy.read_bytes()).hexdigest()
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if found.get("policy") != digest:
            found = {"policy": digest, **walk(Policy.load(policy).policy, row)}
            write_json(path, found)
        done += 1
        report("walks", done, total, {})
        return found

    rows: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for row, setting, seed in every:
        found = walked(_policy(seed["member"]), row)
        rows.setdefault(row, {}).setdefault(setting, []).append({"seed": seed["seed"], **found})
    twins = [{"seed": seed, **walked(_twin(seed), None)} for seed in trained["twins"]]
    best = {row: max(settings, key=lambda s: mean_score(settings[s])) for row, settings in rows.items()}
    return {
        "rows": {
            row: {
                "setting": best[row],
                "seeds": settings[best[row]],
                "scores": {str(setting): mean_score(seeds) for setting, seeds in settings.items()},
            }
            for row, settings in rows.items()
        },
        "twins": twins,
    }


def _policy(member: int) -> str:
    return f"member-{member}.npz"


def _twin(seed: int) -> str:
    return f"twin-{seed}.npz"
