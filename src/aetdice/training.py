"""Train a population: the dual, its polish, then policies cloned from the ratios beside a twin.

Between chunks of updates the host reports progress, writes metrics and a checkpoint. Batches
depend on seed and step only, so a run killed at any moment resumes to the same bits.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8, UInt32

from aetdice.algorithms.cloning import CloningState, cloning_loss, draw, lottery
from aetdice.algorithms.diagnostics import RatioReport, report_ratios
from aetdice.algorithms.dice import DiceHyper, DiceSetting, DualState
from aetdice.algorithms.polish import polish
from aetdice.checkpoints import load_tree, save_tree
from aetdice.data import Episodes
from aetdice.data.resident import ResidentData, Steps
from aetdice.errors import InputError
from aetdice.networks import Policy
from aetdice.objectives import Objective
from aetdice.policies import ActingPolicy
from aetdice.population import (
    member,
    stack,
    start_duals,
    start_policies,
    train_duals,
    train_policies,
)
from aetdice.preparation import (
    TrainingConfig,
    encoder_for,
    fingerprint,
    head_for,
    hyper_for,
    members_of,
    setting_for,
    split,
    tickets_for,
)
from aetdice.results import versions
from aetdice.runs import Member, Run, judge, select

PROBE_STEPS = 8192
CHECKPOINT, METRICS = "checkpoint.npz", "metrics.jsonl"


class _State(NamedTuple):
    """Everything a checkpoint holds."""

    duals: DualState
    policies: CloningState
    dual_step: Int[jax.Array, ""]
    polished: Int[jax.Array, ""]
    cloning_step: Int[jax.Array, ""]
    fingerprint: UInt8[jax.Array, "32"]
    """Of the arguments: a checkpoint is no use to a run with others."""


Report = Callable[[str, int, int, dict[str, Any]], None]
"""Called after each chunk with the stage, the step, the total and the metrics."""


def train(
    dataset: Episodes,
    objective: Objective | Sequence[Objective],
    *,
    horizon: int | None = None,
    beta: float | Sequence[float] = 3e-4,
    seed: int | Sequence[int] = 0,
    learning_rate: float | Sequence[float] = 1e-3,
    config: TrainingConfig | None = None,
    out: Path | str | None = None,
    report: Report | None = None,
) -> Run:
    """Train AETDICE on a dataset: every combination of the given values is a member.

    Objectives must share their form and differ in parameters only, as `[bsr(a) for a in …]`
    do. With `out`, metrics and checkpoints go there, and a run that was cut off goes on from its
    last checkpoint when called again with the same arguments.
    """
    started = time.perf_counter()
    config = config or TrainingConfig()
    horizon = int(dataset.lengths.max()) if horizon is None else horizon
    objectives = [objective] if isinstance(objective, Objective) else list(objective)
    choices = members_of(dataset, objectives, beta, learning_rate, seed)
    training, held_out = split(dataset, horizon, config, len({c["beta"] for c in choices}))
    encoder, head = encoder_for(dataset, horizon, config), head_for(dataset, config)
    setting = setting_for(horizon, config)
    heads = 1 if config.time == "input" else horizon
    timed = encoder if heads == 1 else replace(encoder, use_time=False)
    hypers = stack([hyper_for(c, config) for c in choices])
    seeds = jnp.asarray([c["seed"] for c in choices], jnp.int32)
    twin_seeds = sorted({c["seed"] for c in choices})
    rates = jnp.asarray([*(c["learning_rate"] for c in choices), *[1e-3] * len(twin_seeds)], jnp.float32)
    cloning_seeds = jnp.asarray([*(c["seed"] for c in choices), *twin_seeds], jnp.int32)

    with jax.default_matmul_precision(config.precision):
        state = _State(
            start_duals(timed, config.hidden, heads, hypers, seeds, training, setting),
            start_policies(encoder, head, config.hidden, cloning_seeds),
            dual_step=jnp.zeros((), jnp.int32),
            polished=jnp.zeros((), jnp.int32),
            cloning_step=jnp.zeros((), jnp.int32),
            fingerprint=fingerprint(dataset, choices, horizon, config),
        )
        keeper = _Keeper(Path(out) if out else None, report)
        state = keeper.resume(state)
        state = _dual_stage(state, hypers, seeds, training, setting, config, keeper)
        state = _polish_stage(state, hypers, training, setting, config, keeper)
        reports = _reports(state, hypers, training, setting)
        plain = lottery(np.asarray(training.steps.weight))
        drawn = [tickets_for(ratios, training, config.floor) for ratios in reports]
        tickets = jnp.asarray(np.stack([*drawn, *[plain] * len(twin_seeds)]))
        state = _cloning_stage(state, tickets, rates, cloning_seeds, training, config, keeper)
        held = reports if held_out is None else _reports(state, hypers, held_out, setting)
    twins = [len(choices) + twin_seeds.index(choice["seed"]) for choice in choices]
    members = [
        _member(choice, state, i, twins[i], reports[i], held[i], tickets, training)
        for i, choice in enumerate(choices)
    ]
    selected, rule = select(members)
    return Run(members, selected, rule, config, horizon, time.perf_counter() - started, dataset.returns)


def _reports(state: _State, hypers: DiceHyper, data: ResidentData, setting: DiceSetting) -> list[RatioReport]:
    count = state.duals.slack.shape[0]
    return [report_ratios(member(state.duals, i), member(hypers, i), data, setting) for i in range(count)]


def _dual_stage(
    state: _State,
    hypers: DiceHyper,
    seeds: Int[Array, " members"],
    data: ResidentData,
    setting: DiceSetting,
    config: TrainingConfig,
    keeper: "_Keeper",
) -> _State:
    while (step := int(state.dual_step)) < config.dual_steps:
        steps = jnp.arange(step, min(step + config.chunk, config.dual_steps))
        duals = train_duals(state.duals, hypers, seeds, data, steps, setting)
        state = state._replace(duals=duals, dual_step=steps[-1] + 1)
        slack = np.asarray(duals.slack)
        if not np.all(np.isfinite(slack)) or not np.all(np.isfinite(np.asarray(duals.nu.offsets))):
            lost = int(np.argwhere(~np.isfinite(slack))[0][0]) if not np.all(np.isfinite(slack)) else 0
            raise InputError(
                f"the dual of member {lost} is no longer finite after {int(steps[-1]) + 1} updates; "
                "use a larger beta or a smaller learning rate"
            )
        keeper.after("dual", int(state.dual_step), config.dual_steps, state, {"slack": slack.tolist()})
    return state


def _polish_stage(
    state: _State,
    hypers: DiceHyper,
    data: ResidentData,
    setting: DiceSetting,
    config: TrainingConfig,
    keeper: "_Keeper",
) -> _State:
    if int(state.polished) or not config.polish or config.time != "input":
        return state
    count = state.duals.slack.shape[0]
    polished = []
    for i in range(count):
        polished.append(polish(member(state.duals, i), member(hypers, i), data, setting))
        keeper.tell("polish", i + 1, count, {})
    state = state._replace(duals=stack(polished), polished=jnp.ones((), jnp.int32))
    keeper.save(state)
    return state


def _cloning_stage(
    state: _State,
    tickets: UInt32[Array, "policies steps"],
    rates: Float[Array, " policies"],
    seeds: Int[Array, " policies"],
    data: ResidentData,
    config: TrainingConfig,
    keeper: "_Keeper",
) -> _State:
    while (step := int(state.cloning_step)) < config.cloning_steps:
        steps = jnp.arange(step, min(step + config.chunk, config.cloning_steps))
        policies = train_policies(
            state.policies, tickets, rates, seeds, data, steps, config.batch, config.cloning_steps
        )
        state = state._replace(policies=policies, cloning_step=steps[-1] + 1)
        keeper.after("cloning", int(state.cloning_step), config.cloning_steps, state, {})
    return state


class _Keeper:
    """Checkpoints, metrics and progress between chunks."""

    def __init__(self, out: Path | None, report: Report | None) -> None:
        self.out, self.report, self.started = out, report, time.perf_counter()
        if out and out.exists() and not out.is_dir():
            raise InputError(f"{out} is a file, not a folder")
        if out:
            out.mkdir(parents=True, exist_ok=True)

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
        if self.out:
            row = {"stage": stage, "step": step, "seconds": time.perf_counter() - self.started, **metrics}
            with (self.out / METRICS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        if self.report:
            self.report(stage, step, total, metrics)


def _member(
    choice: dict[str, Any],
    state: _State,
    index: int,
    twin: int,
    ratios: RatioReport,
    held_out: RatioReport,
    tickets: UInt32[Array, "policies steps"],
    data: ResidentData,
) -> Member:
    policy, other = member(state.policies, index).policy, member(state.policies, twin).policy
    rows = draw(tickets[index], jax.random.key(0), PROBE_STEPS)
    distance = float(_log_likelihood_ratio(policy, other, data.steps.take(rows)))
    objective: Objective = choice["objective"]
    diagnostics = {
        "mass_range": [float(ratios.mass.min()), float(ratios.mass.max())],
        "mass_violation": float(ratios.mass_violation),
        "flow_violation": float(ratios.flow_violation),
        "held_out_flow_violation": float(held_out.flow_violation),
        "effective_sample_size": float(ratios.effective_sample_size),
        "zero_share": float(ratios.zero_share),
        "dual_value": float(ratios.dual_value),
        "claimed_value": float(ratios.claimed_value),
        "held_out_value": float(held_out.claimed_value),
        "held_out_sample_size": float(held_out.effective_sample_size),
        "distance_to_twin": distance,
        "slack": ratios.slack.tolist(),
        "multiplier": ratios.multiplier.tolist(),
    }
    params = {
        "objective": objective.short_name,
        **{name: choice[name] for name in ("beta", "learning_rate", "seed")},
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
def _log_likelihood_ratio(policy: Policy, other: Policy, steps: Steps) -> Float[Array, ""]:
    """E[log π - log π_other] over steps drawn by the ratios: 0 where the policies agree."""
    return cloning_loss(other, steps) - cloning_loss(policy, steps)
