"""The parts of a study of the bodies: the reference, then two per population, its training and its walks."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from aetdice.behaviours import load_behaviour
from aetdice.config import TrainingConfig
from aetdice.data import Episodes, transform_from
from aetdice.learning.checkpointing import Report
from aetdice.learning.training import train
from aetdice.networks import PolicyNetwork
from aetdice.objectives import Objective
from aetdice.studies.bodies.datasets import behaviour_hash, reshaped_episodes
from aetdice.studies.bodies.measure import record, scores_of
from aetdice.studies.bodies.plan import CRITIC_AVERAGING, VALUE_GAIN, Plan
from aetdice.studies.bodies.scenes import Population, Scene, in_units_of_data
from aetdice.studies.bodies.walks import keep_policies, walk_policies
from aetdice.studies.bodies.watch import WatchedBody
from aetdice.studies.parts import Part, read_results

REFERENCE = "reference"
"""The part that has the scores of the data and of standing still."""
STANDING, IDLE = "standing still", "no action"
STILL_EPISODES = 8
STORES = "data"
POLICIES = "policies"


def parts_of(plan: Plan) -> list[Part]:
    """The reference of every table, then what is trained for it."""
    return [
        part
        for scene in plan.scenes
        for part in (
            _reference(scene, plan),
            *(
                part
                for population in scene.populations(plan.horizon)
                for part in _trained_and_walked(population, scene, plan)
            ),
        )
    ]


def part_name(scene: Scene, name: str) -> str:
    return f"{scene.name}-{name}"


def walks_of(trained: str) -> str:
    """The part in which the policies of a training walk."""
    return f"{trained}-walks"


def _facts(scene: Scene, plan: Plan, **more: Any) -> dict[str, Any]:
    return {
        "scene": {"kind": scene.kind, **asdict(scene)},
        "columns": {name: column.name for name, column in scene.columns(plan.horizon).items()},
        "behaviour": behaviour_hash(scene.body),
        "trajectories": plan.trajectories,
        "reference": plan.reference,
        "horizon": plan.horizon,
        **more,
    }


def _trained_and_walked(population: Population, scene: Scene, plan: Plan) -> tuple[Part, Part]:
    trained = _training(population, scene, plan)
    return trained, _walking(trained, population, scene, plan)


def _training(population: Population, scene: Scene, plan: Plan) -> Part:
    """Trains every setting; keeps diagnostics of all and the policies of those that are to walk."""
    algorithm, names = population.algorithm, list(population.rows)
    config = _config(population, plan)
    grid = _grid(population, plan)
    facts = _facts(
        scene,
        plan,
        algorithm=algorithm,
        rows={row: objective.name for row, objective in population.rows.items()},
        grid=grid,
        seeds=plan.seeds,
        config=asdict(config),
    )

    def work(folder: Path, report: Report) -> dict[str, Any]:
        dataset, transform = reshaped_episodes(scene, plan, folder.parent / STORES)
        run = train(
            dataset,
            [in_units_of_data(objective, dataset.returns) for objective in population.rows.values()],
            algorithm=algorithm,
            horizon=plan.horizon,
            beta=grid.get("beta"),
            expectile=grid.get("expectile"),
            temperature=grid.get("temperature"),
            seed=plan.seeds,
            config=config,
            out=folder,
            report=report,
        )
        return {
            "rows": keep_policies(run, names, population.clones is not None, folder / POLICIES),
            "twins": list(plan.seeds) if population.clones else [],
            "seconds": run.seconds,
            "transform": transform.record(),
            "objectives": list(dataset.objectives),
        }

    return Part(part_name(scene, population.name), facts, work)


def _walking(trained: Part, population: Population, scene: Scene, plan: Plan) -> Part:
    """Lets the kept policies walk, which needs no GPU and may be done on another machine."""

    def work(folder: Path, report: Report) -> dict[str, Any]:
        found, columns = read_results(folder.parent, trained), scene.columns(plan.horizon)
        body = WatchedBody(scene.body, transform_from(found["transform"]), plan.horizon)

        def walk(policy: PolicyNetwork, row: str | None) -> dict[str, Any]:
            own = {} if row is None else {"trained": population.rows[row]}
            return record(body.play(policy, plan.episodes), {**columns, **own}, scene.body)

        return walk_policies(found, walk, folder.parent / trained.name / POLICIES, folder, report)

    return Part(walks_of(trained.name), {**trained.facts, "episodes": plan.episodes}, work)


def _config(population: Population, plan: Plan) -> TrainingConfig:
    """Baselines learn as their own papers have it, and discount over as many steps as an episode has."""
    if population.algorithm != "aetdice":
        return replace(
            plan.config,
            value_steps=plan.baseline_steps,
            batch=plan.baseline_batch,
            critic_averaging=CRITIC_AVERAGING,
            gamma=1 - 1 / plan.horizon,
        )
    return replace(
        plan.config,
        foresight=plan.horizon,
        value_gain=VALUE_GAIN,
        terminal_reward=population.terminal_reward,
    )


def _grid(population: Population, plan: Plan) -> Mapping[str, tuple[float, ...]]:
    if population.algorithm == "esr-iql":
        return {"expectile": plan.expectiles, "temperature": plan.temperatures}
    if population.algorithm != "aetdice":
        return {"beta": plan.discounted_betas}
    return {"beta": tuple(round(population.beta_scale * beta, 12) for beta in plan.betas)}


def _reference(scene: Scene, plan: Plan) -> Part:
    """What the data scores; and for efficiency, what standing still does."""

    def work(folder: Path, report: Report) -> dict[str, Any]:
        del report
        dataset, transform = reshaped_episodes(scene, plan, folder.parent / STORES)
        columns = scene.columns(plan.horizon)
        found = {"data": _data(dataset, columns)}
        if scene.kind == "efficiency":
            body, behaviour = WatchedBody(scene.body, transform, plan.horizon), load_behaviour(scene.body)
            size, last = body.body.body.action_size, behaviour.preferences[-1]
            stills = {
                STANDING: lambda seen: behaviour.act(seen, last),
                IDLE: lambda seen: np.zeros((len(seen), size)),
            }
            for name, act in stills.items():
                found[name] = record(body.play_with(act, STILL_EPISODES), columns, scene.body)
        return {"references": found, "transform": transform.record(), "objectives": list(dataset.objectives)}

    return Part(part_name(scene, REFERENCE), _facts(scene, plan), work)


def _data(dataset: Episodes, columns: Mapping[str, Objective]) -> dict[str, Any]:
    return {
        "episodes": len(dataset),
        "scores": scores_of(dataset.returns, columns),
        "mean_returns": dataset.returns.mean(axis=0).tolist(),
        "upright": float(1 - dataset.terminated.mean()),
        "shares": None,
    }
