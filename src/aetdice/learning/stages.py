"""The stages of training: values, their exact refit, then policies cloned with the ratios beside a twin.

Between chunks of updates the host shows progress, writes metrics and a checkpoint. Batches
depend on seed and step only, so a run killed at any moment resumes to the same bits.
"""

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, UInt8
from threadpoolctl import threadpool_limits

from aetdice.algorithms.cloning import CloningState, cloning_loss
from aetdice.data import Transform
from aetdice.data.device import DeviceData
from aetdice.errors import InputError
from aetdice.evaluation import Policy
from aetdice.files import versions
from aetdice.hardware import cores
from aetdice.learning.checkpointing import Checkpointing
from aetdice.learning.devices import gather
from aetdice.learning.draws import Draws, Sample
from aetdice.learning.inputs import encoder_of_values
from aetdice.learning.population import (
    fit_of_policies,
    member,
    stack,
    start_policies,
    start_values,
    value_metrics,
)
from aetdice.learning.run import Member
from aetdice.learning.setup import Setup
from aetdice.learning.source import Source, extract, source_of, weigh
from aetdice.learning.verdict import judge
from aetdice.networks import PolicyNetwork
from aetdice.objectives import Objective, objective_record

EXACT = "highest"
"""The precision of all but the updates: ratios are differences of nearly equal numbers, over β."""
MOST_LAYERS = 4
"""How many last layers are solved for at a time: the features at every step are gigabytes each."""
MOST_PLAYED = 16
"""How many policies are played in the data at a time: their episodes take memory."""
FLAT_UPDATES = 2_000
"""In which a dual value must hardly change for its curve to be flat."""
FLAT = 2e-3
"""What hardly is: so much of the dual value, or of 1 if that is smaller."""
HELD_OUT = ("flow_violation", "effective_sample_size", "claimed_value")
"""Metrics that are also computed on held-out episodes."""


class TrainingState(NamedTuple):
    """Everything a checkpoint holds."""

    values: Any
    policies: CloningState
    value_step: Int[jax.Array, ""]
    curve: Float[jax.Array, "chunks members"]
    """Of the dual value after the last chunks, oldest first."""
    finished: Int[jax.Array, ""]
    cloning_step: Int[jax.Array, ""]
    fingerprint: UInt8[jax.Array, "32"]
    """Of the arguments: a checkpoint is no use to a run with others."""


def start(setup: Setup, checkpointing: Checkpointing[TrainingState]) -> TrainingState:
    """A fresh state, or that of the last checkpoint; `InputError` if another run wrote it."""
    with jax.default_matmul_precision(EXACT):
        values = start_values(
            setup.algorithm,
            encoder_of_values(setup.encoder, setup.config.network),
            setup.hypers,
            setup.seeds,
            setup.training,
        )
        with contextlib.closing(source_of(setup)) as source:
            values = source.start(values)
        fresh = TrainingState(
            values,
            start_policies(
                setup.encoder, setup.head, setup.config.network.hidden, setup.policy_seeds, setup.courses
            ),
            value_step=jnp.zeros((), jnp.int32),
            curve=jnp.full((_chunks_of(FLAT_UPDATES, setup), len(setup.choices)), jnp.inf),
            finished=jnp.zeros((), jnp.int32),
            cloning_step=jnp.zeros((), jnp.int32),
            fingerprint=setup.fingerprint,
        )
    return checkpointing.resume(fresh)


def train_members(
    setup: Setup,
    state: TrainingState,
    checkpointing: Checkpointing[TrainingState],
    transform: Transform | None,
) -> list[Member]:
    """The two stages, one after the other (D1 of docs/paper.md), and what comes of them."""
    with jax.default_matmul_precision(EXACT), contextlib.closing(source_of(setup)) as source:
        state, metrics, draws = through_stages(state, setup, source, checkpointing)
        held = metrics if setup.held_out is None else _metrics(setup, state.values, setup.held_out)
        learned = [
            _learned(
                setup,
                state,
                index,
                metrics[index],
                held[index],
                source.sample(draws.samples[index]),
                transform,
            )
            for index in range(len(setup.choices))
        ]
    return _judged(setup, learned)


def through_stages(
    state: TrainingState, setup: Setup, source: Source, checkpointing: Checkpointing[TrainingState]
) -> tuple[TrainingState, list[dict[str, jax.Array]], Draws]:
    """All that is learned, every member's metrics, and what policies were shown; updates are in place."""
    with jax.default_matmul_precision(EXACT):
        state = _value_stage(state, setup, source, checkpointing)
        state = _finish_stage(state, setup, source, checkpointing)
        metrics, draws = extract(source, setup, state.values)
        state = state._replace(policies=_with_courses(state.policies, draws))
        state = _cloning_stage(state, setup, source, draws, checkpointing)
        return state._replace(policies=gather(state.policies)), metrics, draws


def _metrics(setup: Setup, values: Any, data: DeviceData) -> list[dict[str, jax.Array]]:
    """Every member's, on data on the device."""
    members = range(len(setup.choices))
    return [weigh(setup.algorithm, member(values, i), member(setup.hypers, i), data).metrics for i in members]


def _with_courses(states: CloningState, draws: Draws) -> CloningState:
    """The policies, told how likely each of their courses is."""
    if draws.chances is None:
        return states
    return eqx.tree_at(lambda s: s.policy.courses, states, jax.device_put(draws.chances))


def stages_of(setup: Setup) -> dict[str, int]:
    """How many steps each stage has, in their order."""
    totals = {"values": setup.algorithm.steps, "refit": len(setup.choices)}
    return {**totals, "cloning": setup.config.extraction.steps}


def _value_stage(
    state: TrainingState, setup: Setup, source: Source, checkpointing: Checkpointing[TrainingState]
) -> TrainingState:
    algorithm, hypers, total = setup.algorithm, setup.hypers, setup.algorithm.steps
    while (step := int(state.value_step)) < total:
        steps, reached = _steps(step, min(step + setup.config.trainer.chunk, total))
        with jax.default_matmul_precision(setup.config.trainer.precision):
            values = source.train_values(state.values, steps)
        metrics = jax.tree.map(np.asarray, value_metrics(algorithm, values, hypers, setup.probe))
        _check_finite(
            metrics, setup, int(reached), f"{algorithm.hints.closer} or " if algorithm.hints else ""
        )
        state = state._replace(values=values, value_step=reached)
        if "dual_value" in metrics:
            curve = np.concatenate([np.asarray(state.curve)[1:], metrics["dual_value"][None]])
            state = state._replace(curve=jnp.asarray(curve))
        if _is_flat(state, setup):
            state = state._replace(value_step=jnp.asarray(total, jnp.int32))
        each = {name: entries.tolist() for name, entries in metrics.items()}
        checkpointing.after("values", int(state.value_step), total, state, each)
    return state


def _chunks_of(updates: int, setup: Setup) -> int:
    return max(2, -(-updates // setup.config.trainer.chunk))


def _is_flat(state: TrainingState, setup: Setup) -> bool:
    """Whether every member's dual value has stopped falling, β being where it ends."""
    dual, curve = setup.config.dual, np.asarray(state.curve)
    since = int(state.value_step) - dual.annealing * setup.algorithm.steps
    if not dual.until_flat or since < len(curve) * setup.config.trainer.chunk:
        return False
    change = curve.max(axis=0) - curve.min(axis=0)
    return bool(np.all(change <= FLAT * np.maximum(1, np.abs(curve[-1]))))


def _steps(begin: int, end: int) -> tuple[Int[jax.Array, " chunk"], Int[jax.Array, ""]]:
    """The numbers of a chunk's updates, and how many there have been after it."""
    return jax.device_put((np.arange(begin, end, dtype=np.int32), np.int32(end)))


def _check_finite(
    metrics: dict[str, Float[np.ndarray, "members ..."]], setup: Setup, step: int, hint: str = ""
) -> None:
    """`InputError` that names who has diverged."""
    for name, entries in metrics.items():
        lost = np.flatnonzero(~np.all(np.isfinite(entries.reshape(len(entries), -1)), axis=1))
        if lost.size:
            raise InputError(
                f"the {name.replace('_', ' ')} of {_member_words(setup, int(lost[0]))} is no longer finite "
                f"after {step} updates; use {hint}a smaller learning rate, or leave that member out"
            )


def _member_words(setup: Setup, index: int) -> str:
    """What tells a member from the others; behind the members come their twins."""
    if index >= len(setup.choices):
        return f"the twin of seed {int(setup.policy_seeds[index])}"
    parts = (
        f"{name} {value.short_name if isinstance(value, Objective) else f'{value:g}'}"
        for name, value in setup.choices[index].items()
    )
    return f"the member with {', '.join(parts)}"


def _finish_stage(
    state: TrainingState, setup: Setup, source: Source, checkpointing: Checkpointing[TrainingState]
) -> TrainingState:
    if int(state.finished):
        return state
    values = gather(state.values)

    def finish(i: int) -> Any:
        with jax.default_matmul_precision(EXACT):  # a thread has its own
            # Onto the host, where finished members take no memory beside the others.
            return jax.device_get(source.finish(member(values, i), member(setup.hypers, i)))

    # A member per core: on busy cores the threads of a small matrix product wait for each other.
    count, done = len(setup.choices), []
    at_once = min(cores(), MOST_LAYERS) if setup.config.dual.refit == "layer" else cores()
    at_once = at_once if setup.stored is None else 1
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(at_once) as threads:
        for finished in threads.map(finish, range(count)):
            done.append(finished)
            checkpointing.tell("refit", len(done), count, {})
    state = state._replace(values=stack(done), finished=jnp.ones((), jnp.int32))
    checkpointing.save(state)
    return state


def _cloning_stage(
    state: TrainingState,
    setup: Setup,
    source: Source,
    draws: Draws,
    checkpointing: Checkpointing[TrainingState],
) -> TrainingState:
    twins = setup.twins
    total = setup.config.extraction.steps
    while (step := int(state.cloning_step)) < total:
        steps, reached = _steps(step, min(step + setup.config.trainer.chunk, total))
        with jax.default_matmul_precision(setup.config.trainer.precision):
            policies = source.train_policies(state.policies, draws, steps)
        state = state._replace(policies=policies, cloning_step=reached)
        fit = np.asarray(fit_of_policies(policies, setup.probe))
        done = int(state.cloning_step)
        _check_finite({"log_likelihood": fit}, setup, done)
        each = {"log_likelihood": fit[: len(twins)].tolist(), "twin_log_likelihood": fit[twins].tolist()}
        checkpointing.after("cloning", done, total, state, each)
    return state


class Learned(NamedTuple):
    """What one member's stages leave."""

    params: dict[str, Any]
    objective: Objective
    policy: Policy
    twin: Policy
    diagnostics: dict[str, Any]


def _learned(
    setup: Setup,
    state: TrainingState,
    index: int,
    metrics: dict[str, jax.Array],
    held_out: dict[str, jax.Array],
    seen: Sample,
    transform: Transform | None,
) -> Learned:
    policy, twin = (member(state.policies, i).policy for i in (index, setup.twins[index]))
    held = {f"held_out_{name}": held_out[name] for name in HELD_OUT if name in held_out}
    diagnostics: dict[str, Any] = {name: value.tolist() for name, value in (metrics | held).items()}
    diagnostics["distance_to_twin"] = float(_distance(policy, twin, seen))
    choice = setup.choices[index]
    objective: Objective = choice["objective"]
    params = {"algorithm": setup.name, **choice, "objective": objective.short_name}
    details = {
        "objective": objective.name,
        "objective_record": objective_record(objective),
        "params": params,
        "versions": versions(),
    }
    return Learned(
        params,
        objective,
        policy=Policy(policy.simplified(), details, transform),
        twin=Policy(twin.simplified(), {**details, "twin": True}, transform),
        diagnostics=diagnostics,
    )


def _judged(setup: Setup, learned: Sequence[Learned]) -> list[Member]:
    """With what the data say of them: to play policies in the data keeps a core each busy, and no device."""

    def judged(one: Learned) -> Member:
        with jax.default_matmul_precision(EXACT):  # a thread has its own
            own, evidence = one.diagnostics, setup.evidence
            own = own | evidence.of_twin(one.twin)
            own |= evidence.of_policy(one.policy, one.objective, own, setup.algorithm.ends)
        params, objective, policy, twin, _ = one
        return Member(params, objective, policy, twin, own, judge(own, setup.algorithm.hints))

    first, *others = learned
    begun = judged(first)  # alone: it compiles what all of them run
    with ThreadPoolExecutor(min(cores(), MOST_PLAYED)) as threads:
        return [begun, *threads.map(judged, others)]


@eqx.filter_jit
def _distance(policy: PolicyNetwork, twin: PolicyNetwork, seen: Sample) -> Float[jax.Array, ""]:
    """E[log π - log π_twin] over what a policy learns from: 0 where the two agree."""
    return cloning_loss(twin, seen.steps, seen.counts) - cloning_loss(policy, *seen)
