"""Train a population: the dual, its polish, then policies cloned from the ratios beside a twin.

Between chunks of updates the host reports progress, writes metrics and a checkpoint. Batches
depend on seed and step only, so a run killed at any moment resumes to the same bits.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

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
from aetdice.data import Episodes, accrue, augment
from aetdice.data.resident import ResidentData, Steps, resident
from aetdice.dice import FiniteHorizon
from aetdice.errors import InputError
from aetdice.networks import Categorical, Encoder, GaussianMixture, Policy, PolicyHead
from aetdice.objectives import DIVERGENCES, Identity, Objective, check_objective
from aetdice.policies import ActingPolicy
from aetdice.population import (
    member,
    product,
    stack,
    start_duals,
    start_policies,
    train_duals,
    train_policies,
)
from aetdice.results import versions
from aetdice.runs import Member, Run, judge, select

PROBE_STEPS = 8192
CHECKPOINT, METRICS = "checkpoint.npz", "metrics.jsonl"


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the same for every member of a population."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of ν and of the policies."""
    batch: int = 512
    """Steps per update, in both stages."""
    dual_steps: int = 15_000
    """Updates of ν."""
    cloning_steps: int = 4_000
    """Updates of the policies."""
    first_beta: float = 0.1
    """Where β starts to fall from."""
    annealing: float = 0.5
    """The share of the dual stage during which β falls."""
    averaging: float = 0.999
    """Decay of ν's average."""
    slack_rate: float = 3e-3
    """Step of the slack towards the utilities that the ratios attain."""
    polish: bool = True
    """Solve for the last layer of ν exactly before cloning."""
    floor: float = 0.01
    """Share of cloning steps drawn from the behaviour, for states the ratios leave out."""
    divergence: Literal["chi2", "soft-chi2", "kl"] = "chi2"
    """The φ of the regulariser."""
    time: Literal["input", "heads", "augmented"] = "input"
    """How ν knows the time: as an input, by one head per step, or so with the paper's augmentation."""
    accrued: bool = True
    """Let ν and the policies see the accrued reward; needless for affine F only."""
    terminal_reward: bool = False
    """Pay F(R) - F(0) at the end of an episode instead of along the way."""
    components: int = 5
    """Gaussians in the policy mixture for continuous actions."""
    holdout: float | None = None
    """Share of episodes kept for choosing β; by default a tenth if there are several, else none."""
    precision: Literal["highest", "tensorfloat32", "bfloat16"] = "highest"
    """Of matrix products, where the device offers a choice."""
    chunk: int = 500
    """Updates between reports and checkpoints."""

    def __post_init__(self) -> None:
        positive = {"batch": self.batch, "dual_steps": self.dual_steps, "cloning_steps": self.cloning_steps}
        for name, value in {**positive, "chunk": self.chunk, "components": self.components}.items():
            if value < 1:
                raise InputError(f"{name} must be at least 1, not {value}")
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(f"hidden needs at least one positive width, not {self.hidden}")
        if self.holdout is not None and not 0 <= self.holdout < 1:
            raise InputError(f"holdout is a share of the episodes below 1, not {self.holdout}")
        for name, share in {"floor": self.floor, "averaging": self.averaging}.items():
            if not 0 <= share <= 1:
                raise InputError(f"{name} is a share between 0 and 1, not {share}")
        for name, share in {"annealing": self.annealing, "slack_rate": self.slack_rate}.items():
            if not 0 < share <= 1:
                raise InputError(f"{name} is a share above 0 and at most 1, not {share}")
        if not np.isfinite(self.first_beta) or self.first_beta <= 0:
            raise InputError(f"first_beta must be positive, not {self.first_beta}")


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
    training, held_out = _split(dataset, horizon, config, len({c["beta"] for c in choices}))
    encoder, head = _encoder(dataset, horizon, config), _head(dataset, config)
    setting = _setting(horizon, config)
    heads = 1 if config.time == "input" else horizon
    timed = encoder if heads == 1 else replace(encoder, use_time=False)
    hypers = stack([_hyper(c, config) for c in choices])
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
            fingerprint=_fingerprint(dataset, choices, horizon, config),
        )
        keeper = _Keeper(Path(out) if out else None, report)
        state = keeper.resume(state)
        state = _dual_stage(state, hypers, seeds, training, setting, config, keeper)
        state = _polish_stage(state, hypers, training, setting, config, keeper)
        reports = [
            report_ratios(member(state.duals, i), member(hypers, i), training, setting)
            for i in range(len(choices))
        ]
        plain = lottery(np.asarray(training.steps.weight))
        drawn = [_tickets(ratios, training, config.floor) for ratios in reports]
        tickets = jnp.asarray(np.stack([*drawn, *[plain] * len(twin_seeds)]))
        state = _cloning_stage(state, tickets, rates, cloning_seeds, training, config, keeper)
        held = (
            reports
            if held_out is None
            else [
                report_ratios(member(state.duals, i), member(hypers, i), held_out, setting)
                for i in range(len(choices))
            ]
        )
    members = [
        _member(
            choice,
            state,
            i,
            len(choices) + twin_seeds.index(choice["seed"]),
            reports[i],
            held[i],
            tickets,
            training,
        )
        for i, choice in enumerate(choices)
    ]
    selected, rule = select(members)
    return Run(members, selected, rule, config, horizon, time.perf_counter() - started, dataset.returns)


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


def members_of(
    dataset: Episodes,
    objectives: Sequence[Objective],
    beta: float | Sequence[float],
    learning_rate: float | Sequence[float],
    seed: int | Sequence[int],
) -> list[dict[str, Any]]:
    """Every combination of the values, each checked; `InputError` names what is wrong."""
    choices = product(
        objective=objectives,
        beta=_several(beta),
        learning_rate=_several(learning_rate),
        seed=_several(seed),
    )
    if not choices:
        raise InputError("objective, beta, learning_rate and seed need at least one value each")
    for choice in choices:
        for name in ("beta", "learning_rate"):
            if not np.isfinite(choice[name]) or choice[name] <= 0:
                raise InputError(f"{name} must be positive, not {choice[name]}")
    shapes = [jax.tree.map(np.shape, objective) for objective in objectives]
    if any(not eqx.tree_equal(shape, shapes[0]) for shape in shapes):
        raise InputError(
            "the objectives of one population must share their form and differ in parameters only"
        )
    for objective in objectives:
        check_objective(objective, dataset.returns)
    return choices


def _split(
    dataset: Episodes, horizon: int, config: TrainingConfig, betas: int
) -> tuple[ResidentData, ResidentData | None]:
    """The training part and, where β has to be chosen, the part kept for it."""
    share = config.holdout if config.holdout is not None else (0.1 if betas > 1 else 0.0)
    count = round(share * len(dataset))
    if count == 0:
        return resident(augment(dataset, Identity(), horizon)), None
    if count == len(dataset):
        raise InputError(f"a holdout of {share:g} leaves none of the {len(dataset)} episodes for training")
    order = np.random.default_rng(0).permutation(len(dataset))
    parts = (sorted(order[count:].tolist()), sorted(order[:count].tolist()))
    training, kept = (Episodes.from_list([dataset[i] for i in part], dataset.objectives) for part in parts)
    return resident(augment(training, Identity(), horizon)), resident(augment(kept, Identity(), horizon))


def _encoder(dataset: Episodes, horizon: int, config: TrainingConfig) -> Encoder:
    frames = dataset.observations.reshape(len(dataset.observations), -1)
    discrete = np.issubdtype(frames.dtype, np.integer) and frames.min() >= 0
    spread = frames.std(axis=0)
    reach = np.abs(np.concatenate(accrue(dataset))).max(axis=0)
    return Encoder(
        sizes=tuple(int(size) for size in frames.max(axis=0) + 1) if discrete else None,
        horizon=horizon,
        use_accrued=config.accrued,
        use_time=True,
        centre=frames.mean(axis=0),
        spread=np.where(spread > 1e-6, spread, 1.0),
        accrued_range=np.maximum(np.log1p(reach), 1e-3),
    )


def _head(dataset: Episodes, config: TrainingConfig) -> PolicyHead:
    if dataset.actions.ndim == 1 and np.issubdtype(dataset.actions.dtype, np.integer):
        if dataset.actions.min() < 0:
            raise InputError("actions must be numbered from 0")
        return Categorical(int(dataset.actions.max()) + 1)
    actions = dataset.actions.reshape(dataset.steps, -1)
    low, high = actions.min(axis=0), actions.max(axis=0)
    return GaussianMixture(low, np.maximum(high, low + 1e-6), config.components)


def _setting(horizon: int, config: TrainingConfig) -> DiceSetting:
    return DiceSetting(
        FiniteHorizon(horizon),
        DIVERGENCES[config.divergence](),
        batch=config.batch,
        steps=config.dual_steps,
        annealing=config.annealing,
        time_augmented=config.time == "augmented",
        terminal_reward=config.terminal_reward,
    )


def _hyper(choice: dict[str, Any], config: TrainingConfig) -> DiceHyper:
    return DiceHyper(
        choice["objective"],
        beta=choice["beta"],
        learning_rate=choice["learning_rate"],
        slack_rate=config.slack_rate,
        first_beta=config.first_beta,
        averaging=config.averaging,
    )


def _fingerprint(
    dataset: Episodes, choices: Sequence[dict[str, Any]], horizon: int, config: TrainingConfig
) -> UInt8[Array, "32"]:
    """A digest of all that the result depends on."""
    digest = hashlib.sha256(repr((horizon, config)).encode())
    for choice in choices:
        described = {**choice, "objective": choice["objective"].name}
        digest.update(repr(sorted((name, str(value)) for name, value in described.items())).encode())
    leaves = jax.tree.leaves([choice["objective"] for choice in choices])
    parts = (dataset.observations, dataset.actions, dataset.rewards, dataset.lengths, dataset.terminated)
    for array in (*leaves, *parts):
        digest.update(np.ascontiguousarray(array).tobytes())
    return jnp.asarray(np.frombuffer(digest.digest(), np.uint8))


def _tickets(ratios: RatioReport, data: ResidentData, floor: float) -> UInt32[np.ndarray, " steps"]:
    """Draw by w, each time step as often as the behaviour is there, and by the behaviour for `floor`.

    π(a|s̃) is the same for any factor of w that depends on s̃ alone, so dividing by the mass of
    the time step costs nothing and keeps every step of the horizon in the lessons.
    """
    weight, w = np.asarray(data.steps.weight, np.float64), np.asarray(ratios.ratios, np.float64)
    time = np.asarray(data.steps.time)
    behaviour, mass = np.bincount(time, weight), np.bincount(time, w * weight)
    balance = np.where(mass > 0, behaviour / np.where(mass > 0, mass, 1), 0)
    return lottery((1 - floor) * w * weight * balance[time] + floor * weight)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence | np.ndarray) else [value]
