"""Train a population: values, their polish, then policies cloned from the ratios beside a twin.

Between chunks of updates the host reports progress, writes metrics and a checkpoint. Batches
depend on seed and step only, so a run killed at any moment resumes to the same bits.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8
from threadpoolctl import threadpool_limits

from aetdice.algorithms.algorithm import Algorithm, StepReport
from aetdice.algorithms.cloning import CloningState, Lessons, cloning_loss, draw
from aetdice.config import TrainingConfig
from aetdice.data import Episodes, Transform, transform_episodes
from aetdice.data.resident import ResidentData, Steps
from aetdice.errors import InputError
from aetdice.keeping import Keeper, Report
from aetdice.machine import cores
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
    encoder_of_values,
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
from aetdice.tracking import Tracker

EXACT = "highest"
"""The precision of all but the updates: ratios are differences of nearly equal numbers, over β."""
MOST_LAYERS = 4
"""How many last layers are solved for at a time: the features at every step are gigabytes each."""
PROBE_STEPS = 8192
TWIN_RATE = 1e-3
"""The twins' learning rate, whatever the members'."""
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
    transform: Transform | None = None,
    config: TrainingConfig | None = None,
    out: Path | str | None = None,
    report: Report | None = None,
    trackers: Sequence[Tracker] = (),
) -> Run:
    """Train on a dataset: every combination of the given values is a member.

    `algorithm` is aetdice, optidice or fairdice (which take β), esr-iql (expectile and
    temperature) or bc. Objectives must share their form and differ in parameters only, as
    `[bsr(a) for a in …]` do. A `transform` is applied to the rewards first and travels with the
    policies, which are then told raw rewards. With `out`, metrics and checkpoints go there, and a
    run that was cut off goes on from its last checkpoint when called again with the same arguments.
    """
    started = time.perf_counter()
    config = config or TrainingConfig()
    dataset = dataset if transform is None else transform_episodes(dataset, transform)
    horizon = int(dataset.lengths.max()) if horizon is None else horizon
    learner = algorithm_for(algorithm, horizon, config)
    objectives = [objective] if isinstance(objective, Objective) else list(objective)
    sweeps = {"beta": beta, "expectile": expectile, "temperature": temperature}
    choices = members_of(dataset, objectives, learner, sweeps, learning_rate, seed)
    cohort = _cohort(dataset, choices, learner, horizon, config)
    encoder, head = encoder_for(dataset, horizon, learner, config), head_for(dataset, config)
    with jax.default_matmul_precision(EXACT), Keeper[_State](out, report, trackers) as keeper:
        state = keeper.resume(
            _State(
                start_values(
                    learner, encoder_of_values(encoder, config), cohort.hypers, cohort.seeds, cohort.training
                ),
                start_policies(encoder, head, config.hidden, cohort.policy_seeds),
                value_step=jnp.zeros((), jnp.int32),
                finished=jnp.zeros((), jnp.int32),
                cloning_step=jnp.zeros((), jnp.int32),
                fingerprint=fingerprint(dataset, choices, algorithm, horizon, config),
            )
        )
        state = _value_stage(state, cohort, keeper)
        state = _finish_stage(state, cohort, keeper)
        reports = _reports(state, cohort, cohort.training)
        lessons = lessons_for([r.lessons for r in reports], cohort.twin_count, cohort.training, config)
        state = _cloning_stage(state, cohort, lessons, keeper)
        held = reports if cohort.held_out is None else _reports(state, cohort, cohort.held_out)
    members = [
        _member({"algorithm": algorithm, **choice}, cohort, state, i, reports[i], held[i], lessons, transform)
        for i, choice in enumerate(choices)
    ]
    seconds = time.perf_counter() - started
    return Run(members, select(members), algorithm, config, horizon, seconds, dataset.returns)


class _Cohort(NamedTuple):
    """All who are trained together, and on what."""

    learner: Algorithm
    hypers: Any
    seeds: Int[Array, " members"]
    policy_seeds: Int[Array, " policies"]
    """Of the members' policies, then of the twins."""
    policy_rates: Float[Array, " policies"]
    twins: list[int]
    """Which policy is each member's twin: those of one seed share it."""
    training: ResidentData
    held_out: ResidentData | None
    probe: ResidentData
    config: TrainingConfig

    @property
    def twin_count(self) -> int:
        return self.policy_seeds.shape[0] - len(self.twins)


def _cohort(
    dataset: Episodes,
    choices: list[dict[str, Any]],
    learner: Algorithm,
    horizon: int,
    config: TrainingConfig,
) -> _Cohort:
    seeds = [choice["seed"] for choice in choices]
    distinct = sorted(set(seeds))
    objectives = {choice["objective"].name for choice in choices}
    settings = len(choices) // (len(objectives) * len(distinct))
    training, held_out = split(dataset, horizon, config, learner, settings)
    rates = [*(choice["learning_rate"] for choice in choices), *[TWIN_RATE] * len(distinct)]
    return _Cohort(
        learner=learner,
        hypers=stack([hyper_of(choice, learner) for choice in choices]),
        seeds=jnp.asarray(seeds, jnp.int32),
        policy_seeds=jnp.asarray([*seeds, *distinct], jnp.int32),
        policy_rates=jnp.asarray(rates, jnp.float32),
        twins=[len(choices) + distinct.index(seed) for seed in seeds],
        training=training,
        held_out=held_out,
        probe=probe_of(dataset, horizon, learner),
        config=config,
    )


@eqx.filter_jit
def _report(algorithm: Algorithm, state: Any, hyper: Any, data: ResidentData) -> StepReport:
    return algorithm.report(state, hyper, data)


def _reports(state: _State, cohort: _Cohort, data: ResidentData) -> list[StepReport]:
    return [
        _report(cohort.learner, member(state.values, i), member(cohort.hypers, i), data)
        for i in range(len(cohort.twins))
    ]


def _value_stage(state: _State, cohort: _Cohort, keeper: Keeper[_State]) -> _State:
    learner, hypers, total = cohort.learner, cohort.hypers, cohort.learner.steps
    while (step := int(state.value_step)) < total:
        steps = jnp.arange(step, min(step + cohort.config.chunk, total))
        with jax.default_matmul_precision(cohort.config.precision):
            values = train_values(learner, state.values, hypers, cohort.seeds, cohort.training, steps)
        state = state._replace(values=values, value_step=steps[-1] + 1)
        metrics = jax.tree.map(np.asarray, report_values(learner, values, hypers, cohort.probe))
        done = int(state.value_step)
        _check_finite(metrics, done, f"{learner.remedies.closer} or " if learner.remedies else "")
        keeper.after("values", done, total, state, {name: each.tolist() for name, each in metrics.items()})
    return state


def _check_finite(metrics: dict[str, Float[np.ndarray, "members ..."]], step: int, remedy: str = "") -> None:
    for name, entries in metrics.items():
        lost = np.flatnonzero(~np.all(np.isfinite(entries.reshape(len(entries), -1)), axis=1))
        if lost.size:
            raise InputError(
                f"the {name.replace('_', ' ')} of member {lost[0]} is no longer finite after {step} updates; "
                f"use {remedy}a smaller learning rate"
            )


def _finish_stage(state: _State, cohort: _Cohort, keeper: Keeper[_State]) -> _State:
    if int(state.finished):
        return state

    def finish(i: int) -> Any:
        with jax.default_matmul_precision(EXACT):  # a thread has its own
            return cohort.learner.finish(member(state.values, i), member(cohort.hypers, i), cohort.training)

    # A member per core: on busy cores the threads of a small matrix product wait for each other.
    count, done = len(cohort.twins), []
    at_once = min(cores(), MOST_LAYERS) if cohort.config.polish == "layer" else cores()
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(at_once) as threads:
        for finished in threads.map(finish, range(count)):
            done.append(finished)
            keeper.tell("polish", len(done), count, {})
    state = state._replace(values=stack(done), finished=jnp.ones((), jnp.int32))
    keeper.save(state)
    return state


def _cloning_stage(state: _State, cohort: _Cohort, lessons: Lessons, keeper: Keeper[_State]) -> _State:
    rates, seeds, twins = cohort.policy_rates, cohort.policy_seeds, cohort.twins
    config, total = cohort.config, cohort.config.cloning_steps
    warm = round(config.warm_up * total)
    while (step := int(state.cloning_step)) < total:
        shown, until = (lessons.of_twins, warm) if step < warm else (lessons, total)
        steps = jnp.arange(step, min(step + config.chunk, until))
        with jax.default_matmul_precision(config.precision):
            policies = train_policies(state.policies, shown, rates, seeds, cohort.training, steps, config)
        state = state._replace(policies=policies, cloning_step=steps[-1] + 1)
        fit = np.asarray(fit_of_policies(policies, cohort.probe))
        done = int(state.cloning_step)
        _check_finite({"log_likelihood": fit}, done)
        each = {"log_likelihood": fit[: len(twins)].tolist(), "twin_log_likelihood": fit[twins].tolist()}
        keeper.after("cloning", done, total, state, each)
    return state


def _member(
    choice: dict[str, Any],
    cohort: _Cohort,
    state: _State,
    index: int,
    report: StepReport,
    held_out: StepReport,
    lessons: Lessons,
    transform: Transform | None,
) -> Member:
    policy, other = (member(state.policies, i).policy for i in (index, cohort.twins[index]))
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
        "distance_to_twin": float(
            _log_likelihood_ratio(policy, other, cohort.training.steps.take(rows), weights)
        ),
    }
    objective: Objective = choice["objective"]
    params = {**choice, "objective": objective.short_name}
    details = {"objective": objective.name, "params": params, "versions": versions()}
    return Member(
        params=params,
        objective=objective,
        policy=ActingPolicy(policy, details, transform),
        twin=ActingPolicy(other, {**details, "twin": True}, transform),
        diagnostics=diagnostics,
        verdict=judge(diagnostics, cohort.learner.remedies),
    )


@eqx.filter_jit
def _log_likelihood_ratio(
    policy: Policy, other: Policy, steps: Steps, weights: Float[Array, " steps"]
) -> Float[Array, ""]:
    """E[log π - log π_other] over a policy's lessons: 0 where the policies agree."""
    return cloning_loss(other, steps, weights) - cloning_loss(policy, steps, weights)
