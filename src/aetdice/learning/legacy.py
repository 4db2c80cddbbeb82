"""Run folders of version 0.1: their configuration in the words of this version."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from aetdice.config import TrainingConfig
from aetdice.datasets import environment_of
from aetdice.errors import InputError
from aetdice.evaluation import make_objectives
from aetdice.objectives import objective_record

NAMES: dict[str, tuple[str, ...]] = {
    "hidden": ("network.hidden",),
    "batch": ("dual.batch", "iql.batch", "extraction.batch"),
    "cloning_batch": ("extraction.batch",),
    "window": ("dual.window",),
    "value_steps": ("dual.steps", "iql.steps"),
    "cloning_steps": ("extraction.steps",),
    "first_beta": ("dual.first_beta",),
    "annealing": ("dual.annealing",),
    "averaging": ("dual.averaging",),
    "critic_averaging": ("iql.critic_averaging",),
    "slack_rate": ("dual.slack_rate",),
    "polish": ("dual.refit",),
    "floor": ("extraction.floor",),
    "warm_up": ("extraction.warm_up",),
    "early": ("extraction.early_oversampling",),
    "dropout": ("extraction.dropout",),
    "foresight": ("dual.n_step",),
    "extraction": ("ablation.weighted_loss",),
    "divergence": ("dual.divergence",),
    "gamma": ("dual.gamma",),
    "time": ("ablation.time",),
    "offsets": ("ablation.offsets",),
    "accrued": ("ablation.accrued",),
    "terminal_reward": ("reward.terminal",),
    "waves": ("network.observation_fourier",),
    "frequencies": ("network.fourier",),
    "value_frequencies": ("network.value_fourier",),
    "value_gain": ("network.value_gain",),
    "components": ("network.components",),
    "holdout": ("trainer.holdout",),
    "precision": ("trainer.precision",),
    "chunk": ("trainer.chunk",),
}
"""Version 0.1's flat settings, and where each stands now."""
CHANGED: dict[str, Callable[[Any], Any]] = {
    "foresight": lambda ahead: ahead + 1,
    "extraction": lambda kind: kind == "weighted",
}
"""Settings whose values have another meaning now: steps after the own one, and how samples were weighted."""


def converted_config(flat: Mapping[str, Any]) -> TrainingConfig:
    """Version 0.1's settings by concern."""
    settings: dict[str, Any] = {}
    for name, value in flat.items():
        if name == "cloning_batch" and value is None:
            continue
        if name not in NAMES:
            raise InputError(f"version 0.1 had no setting {name!r}")
        value = CHANGED[name](value) if name in CHANGED else value
        settings |= dict.fromkeys(NAMES[name], value)
    return TrainingConfig().adapted(settings)


def converted_request(content: Mapping[str, Any]) -> dict[str, Any]:
    """Version 0.1's config.json as this version writes it."""
    source = content["source"]
    origin = {"env": source["env"], "seed": source["dataset_seed"], "arguments": source["arguments"]}
    quality = {"faltering": "unstable"}.get(source.get("quality"), source.get("quality"))
    optional = {"episodes": source["episodes"], "quality": quality}
    origin |= {name: value for name, value in optional.items() if value is not None}
    environment = environment_of(origin)
    objectives = make_objectives(content["objective"], environment)
    return {
        "format": 1,
        "dataset": {"origin": origin},
        "objectives": [{"name": o.name, "record": objective_record(o)} for o in objectives],
        "algorithm": content["algorithm"],
        "horizon": environment.horizon,
        "sweeps": content["sweeps"],
        "learning_rate": content["learning_rate"],
        "seed": content["seed"],
        "transform": None,
        "settings": asdict(converted_config(content["training"])),
        "notes": {"episodes": content["episodes"]},
        "versions": content["versions"],
    }
