"""Train a population: the dual, its polish, then policies cloned from the ratios beside a twin.

Between chunks of updates the host reports progress, writes metrics and a checkpoint. Batches
depend on seed and step only, so a run killed at any moment resumes to the same bits.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

from aetdice.algorithms.algorithm import Algorithm, StepReport
from aetdice.algorithms.cloning import CloningState, Lessons, cloning_loss, draw
from aetdice.checkpoints import load_tree, save_tree
from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.data.resident import ResidentData, Steps
from aetdice.errors import InputError
from aetdice.networks import Policy
from aetdice.objectives import Objective
from aetdice.policies import ActingPolicy
from aetdice.population import (
    fit_of_policies,
    member,
    report_values,
    stack,
    start_policies,
    start_values,
    train_policies,
    train_values,
)
from aetdice.preparation import (
    algorithm_for,
    encoder_for,
    fingerprint,
    head_for,
    hyper_of,
    lessons_for,
    members_of,
    probe_of,
    split,
)
from aetdice.results import versions
from aetdice.runs import Member, Run, judge, select
from aetdice.tracking import JsonLines, Tracker

PROBE_STEPS = 8192
CHECKPOINT = "checkpoint.npz"
HELD_OUT = ("flow_violation", "effective_sample_size", "claimed_value")
"""Metrics that are also reported for held-out episodes."""


class _State(NamedTuple):
    """Everything a checkpoint holds."""

    values: Any
    policies: CloningState
    value_step: Int[jax.Array, ""]
    finished: Int[jax.Array, ""]
    cloning_step: Int[jax.Array, ""]
    fingerprint: UInt8[jax.Array, "32"]
    """Of the arguments: a checkpoint is no use to a run with others."""


Report = Callable[[str, int, int, dict[str, Any]], None]
"""Called after each chunk with the stage, the step, the total and the metrics."""


def train(
    dataset: Episodes,
    objective: Objective | Sequence[Objective],
    *,
    algorithm: str = "aetdice",
    horizon: int | None = None,
    beta: float | Sequence[float] | None = None,
    expectile: float | Sequence[float] | None = None,
    temperature: float | Sequence[float] | None = None,
    seed: int | Sequence[int] = 0,
    learning_rate: float | Sequence[float] = 1e-3,
    config: TrainingConfig | None = None,
    out: Path | str | None = None,
    report: Report | None = None,
    trackers: Sequence[Tracker] = (),
) -> Run:
    """Train on a dataset: every combination of the given values is a member.

    `algorithm` is aetdice, optidice or fairdice (which take β), esr-iql (expectile and
    temperature) or bc. Objectives must share their form and differ in parameters only, as
    `[bsr(a) for a in …]` do. With `out`, metrics and checkpoints go there, and a run that was cut
    off goes on from its last checkpoint when called again with the same arguments.
    """
    started = time.perf_counter()
    config = config or TrainingConfig()
    horizon = int(dataset.lengths.max()) if horizon is None else horizon
    learner = algorithm_for(algorithm, horizon, config)
    objectives = [objective] if isinstance(objective, Objective) else list(objective)
    sweeps = {"beta": beta, "expectile": expectile, "temperature": temperature}
    choices = members_of(dataset, objectives, learner, sweeps, learning_rate, seed)
    settings = len(choices) // (len(objectives) * len({c["seed"] for c in choices}))
    training, held_out = split(dataset, horizon, config, learner, settings)
    encoder = encoder_for(dataset, horizon, learner, config)
    hypers = stack([hyper_of(c, learner) for c in choices])
    seeds = jnp.asarray([c["seed"] for c in choices], jnp.int32)
    twin_seeds = sorted({c["seed"] for c in choices})
    rates = jnp.asarray([*(c["learning_rate"] for c in choices), *[1e-3] * len(twin_seeds)], jnp.float32)
    cloning_seeds = jnp.asarray([*(c["seed"] for c in choices), *twin_seeds], jnp.int32)

    with jax.default_matmul_precision(config.precision), _Keeper(out, report, trackers) as keeper:
        state = keeper.resume(
            _State(
                start_values(learner, encoder, hypers, seeds, training),
                start_policies(encoder, head_for(dataset, config), config.hidden, cloning_seeds),
                value_step=jnp.zeros((), jnp.int32),
                finished=jnp.zeros((), jnp.int32),
                cloning_step=jnp.zeros((), jnp.int32),
                fingerprint=fingerprint(dataset, choices, algorithm, horizon, config),
            )
        )
        probe = probe_of(dataset, horizon, learner)
        state = _value_stage(state, learner, hypers, seeds, training, probe, config, keeper)
        state = _finish_stage(state, learner, hypers, training, keeper)
        reports = _reports(state, learner, hypers, training)
        lessons = lessons_for([r.lessons for r in reports], len(twin_seeds), training, config)
        state = _cloning_stage(state, lessons, rates, cloning_seeds, training, probe, config, keeper)
        held = reports if held_out is None else _reports(state, learner, hypers, held_out)
    twins = [len(choices) + twin_seeds.index(choice["seed"]) for choice in choices]
    members = [
        _member(choice, algorithm, state, i, twins[i], reports[i], held[i], lessons, training)
        for i, choice in enumerate(choices)
    ]
    seconds = time.perf_counter() - started
    return Run(members, select(members), algorithm, config, horizon, seconds, dataset.returns)


@eqx.filter_jit
def _report(algorithm: Algorithm, state: Any, hyper: Any, data: ResidentData) -> StepReport:
    return algorithm.report(state, hyper, data)


def _reports(state: _State, algorithm: Algorithm, hypers: Any, data: ResidentData) -> list[StepReport]:
    count = _count(hypers)
    return [_report(algorithm, member(state.values, i), member(hypers, i), data) for i in range(count)]


def _count(population: Any) -> int:
    return int(jax.tree.leaves(population)[0].shape[0])


def _value_stage(
    state: _State,
    algorithm: Algorithm,
    hypers: Any,
    seeds: Int[Array, " members"],
    data: ResidentData,
    probe: ResidentData,
    config: TrainingConfig,
    keeper: "_Keeper",
) -> _State:
    while (step := int(state.value_step)) < algorithm.steps:
        steps = jnp.arange(step, min(step + config.chunk, algorithm.steps))
        values = train_values(algorithm, state.values, hypers, seeds, data, steps)
        state = state._replace(values=values, value_step=steps[-1] + 1)
        metrics = jax.tree.map(np.asarray, report_values(algorithm, values, hypers, probe))
        done = int(state.value_step)
        _check_finite(metrics, done)
        listed = {name: entries.tolist() for name, entries in metrics.items()}
        keeper.after("values", done, algorithm.steps, state, listed)
    return state


def _check_finite(metrics: dict[str, Float[np.ndarray, "members ..."]], step: int) -> None:
    for name, entries in metrics.items():
        lost = np.flatnonzero(~np.all(np.isfinite(entries.reshape(len(entries), -1)), axis=1))
        if lost.size:
            raise InputError(
                f"the {name.replace('_', ' ')} of member {lost[0]} is no longer finite after {step} updates; "
                "use a larger beta or a smaller learning rate"
            )


def _finish_stage(
    state: _State, algorithm: Algorithm, hypers: Any, data: ResidentData, keeper: "_Keeper"
) -> _State:
    if int(state.finished):
        return state
    count, done = _count(hypers), []
    for i in range(count):
        done.append(algorithm.finish(member(state.values, i), member(hypers, i), data))
        keeper.tell("polish", i + 1, count, {})
    state = state._replace(values=stack(done), finished=jnp.ones((), jnp.int32))
    keeper.save(state)
    return state


def _cloning_stage(
    state: _State,
    lessons: Lessons,
    rates: Float[Array, " policies"],
    seeds: Int[Array, " policies"],
    data: ResidentData,
    probe: ResidentData,
    config: TrainingConfig,
    keeper: "_Keeper",
) -> _State:
    while (step := int(state.cloning_step)) < config.cloning_steps:
        steps = jnp.arange(step, min(step + config.chunk, config.cloning_steps))
        policies = train_policies(
            state.policies, lessons, rates, seeds, data, steps, config.batch, config.cloning_steps
        )
        state = state._replace(policies=policies, cloning_step=steps[-1] + 1)
        fit = np.asarray(fit_of_policies(policies, probe))
        done = int(state.cloning_step)
        _check_finite({"log_likelihood": fit}, done)
        keeper.after("cloning", done, config.cloning_steps, state, {"log_likelihood": fit.tolist()})
    return state


class _Keeper:
    """Checkpoints, metrics and progress between chunks."""

    def __init__(self, out: Path | str | None, report: Report | None, trackers: Sequence[Tracker]) -> None:
        self.out = Path(out) if out else None
        self.report, self.started, self.trackers = report, time.perf_counter(), list(trackers)
        if self.out and self.out.exists() and not self.out.is_dir():
            raise InputError(f"{self.out} is a file, not a folder")
        if self.out:
            self.out.mkdir(parents=True, exist_ok=True)
            self.trackers.append(JsonLines(self.out))

    def __enter__(self) -> "_Keeper":
        return self

    def __exit__(self, *_: object) -> None:
        for tracker in self.trackers:
            tracker.close()

    def resume(self, state: _State) -> _State:
        path = self.out / CHECKPOINT if self.out else None
        if path is None or not path.exists():
            return state
        saved = load_tree(path, state)
        if not np.array_equal(saved.fingerprint, state.fingerprint):
            raise InputError(f"{path} was written by a run with other data, members or settings")
        return saved

    def after(self, stage: str, step: int, total: int, state: _State, metrics: dict[str, Any]) -> None:
        self.save(state)
        self.tell(stage, step, total, metrics)

    def save(self, state: _State) -> None:
        if self.out:
            save_tree(self.out / CHECKPOINT, state)

    def tell(self, stage: str, step: int, total: int, metrics: dict[str, Any]) -> None:
        for tracker in self.trackers:
            tracker.write(stage, step, time.perf_counter() - self.started, metrics)
        if self.report:
            self.report(stage, step, total, metrics)


def _member(
    choice: dict[str, Any],
    algorithm: str,
    state: _State,
    index: int,
    twin: int,
    report: StepReport,
    held_out: StepReport,
    lessons: Lessons,
    data: ResidentData,
) -> Member:
    policy, other = member(state.policies, index).policy, member(state.policies, twin).policy
    shown = member(lessons, index)
    rows = draw(shown.tickets, jax.random.key(0), PROBE_STEPS)
    weights = jnp.ones(PROBE_STEPS) if shown.weights is None else shown.weights[rows]
    diagnostics = {
        **{name: value.tolist() for name, value in report.metrics.items()},
        **{
            f"held_out_{name}": held_out.metrics[name].tolist()
            for name in HELD_OUT
            if name in held_out.metrics
        },
        "distance_to_twin": float(_log_likelihood_ratio(policy, other, data.steps.take(rows), weights)),
    }
    objective: Objective = choice["objective"]
    params = {
        "algorithm": algorithm,
        **{n: objective.short_name if n == "objective" else value for n, value in choice.items()},
    }
    details = {"objective": objective.name, "params": params, "versions": versions()}
    return Member(
        params=params,
        objective=objective,
        policy=ActingPolicy(policy, details),
        twin=ActingPolicy(other, {**details, "twin": True}),
        diagnostics=diagnostics,
        verdict=judge(diagnostics),
    )


@eqx.filter_jit
def _log_likelihood_ratio(
    policy: Policy, other: Policy, steps: Steps, weights: Float[Array, " steps"]
) -> Float[Array, ""]:
    """E[log π - log π_other] over a policy's lessons: 0 where the policies agree."""
    return cloning_loss(other, steps, weights) - cloning_loss(policy, steps, weights)
