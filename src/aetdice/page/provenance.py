"""Where a run comes from: data, settings, versions, and the command that makes it again."""

import shlex
from pathlib import Path
from typing import Any

from aetdice.page.gathering import Gathered


def provenance(gathered: Gathered) -> dict[str, Any]:
    """Facts by name, and the command."""
    run = gathered.run
    request = run.request
    command = request["notes"].get("command")
    facts = {
        **_data(request["dataset"]),
        "episodes used": _listed(request.get("split", {})),
        "algorithm": run.algorithm,
        "horizon": f"{run.horizon} steps",
        "tried": _listed(
            {**request["sweeps"], "learning_rate": request["learning_rate"], "seed": request["seed"]}
        ),
        "settings changed": _listed(run.config.changed()) or "none",
        "chosen from the data": _listed(run.chosen),
        "selected by": run.rule,
        "trained for": f"{run.seconds:,.0f} s",
        "versions": _listed(run.versions),
        "folder": "" if gathered.folder is None else str(gathered.folder),
    }
    return {
        "facts": [[name, words] for name, words in facts.items() if words],
        "command": None if command is None else shlex.join(map(str, command)),
    }


def place_of(gathered: Gathered) -> str:
    """The file or environment that the data are of, in short."""
    origin = gathered.run.request["dataset"]["origin"] or {}
    return Path(origin["file"]).name if "file" in origin else str(origin.get("env", "data from Python"))


def _data(dataset: dict[str, Any]) -> dict[str, str]:
    origin = dataset["origin"] or {}
    arguments = {"quality": origin.get("quality"), **origin.get("arguments", {})}
    made = _listed({name: value for name, value in arguments.items() if value is not None})
    place = origin.get("file") or origin.get("env") or "given in Python"
    size = f"{dataset['episodes']:,} episodes, {dataset['steps']:,} steps" if "episodes" in dataset else ""
    return {
        "data": f"{place} ({made})" if made else str(place),
        "size": size,
        "SHA-256 of the data": dataset.get("sha256", ""),
        "read as": "\n".join(dataset.get("notes", [])),
    }


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_text(value)}" for name, value in values.items())


def _text(value: Any) -> str:
    return ", ".join(map(_text, value)) if isinstance(value, list | tuple) else str(value)
