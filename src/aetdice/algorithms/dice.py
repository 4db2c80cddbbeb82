"""AETDICE, OptiDICE and FairDICE: one dual loss, three flows and sets of objectives."""

import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from aetdice.algorithms.base import Algorithm, Hints, Weighing
from aetdice.algorithms.diagnostics import RatioDiagnostics, diagnose_ratios
from aetdice.algorithms.dual import (
    DiceHyper,
    DualBatch,
    DualSetting,
    DualState,
    init_dual,
    prepare_dual,
    update_dual,
)
from aetdice.algorithms.refit import refit
from aetdice.config import TrainingConfig
from aetdice.data.device import DeviceData
from aetdice.dice import Discounted, FiniteHorizon, Flow
from aetdice.errors import InputError
from aetdice.networks import Encoder, Nu
from aetdice.objectives import DIVERGENCES, Objective

BETA = 1e-3
"""Where returns are sums; discounted ones take as much more as their mass is smaller."""
METRICS = (
    "mass_violation",
    "flow_violation",
    "effective_sample_size",
    "zero_share",
    "dual_value",
    "claimed_value",
    "slack",
    "multiplier",
)
"""Of the ratios; docs/diagnostics.md explains each."""


class Dice(Algorithm):
    """The dual loss with a flow; sample weights are w d^D."""

    setting: DualSetting
    name: str = eqx.field(static=True)
    hidden: tuple[int, ...] = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    constants: int = eqx.field(static=True)
    sees_accrued: bool = eqx.field(static=True)
    sees_time: bool = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    ends: bool = eqx.field(static=True)
    n_step: int = eqx.field(static=True)
    pools: bool = eqx.field(static=True)
    regimes: tuple[str, ...] = eqx.field(static=True)
    ignores: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        flow: Flow,
        config: TrainingConfig,
        *,
        n_step: int = 1,
        regimes: tuple[str, ...],
        ignores: tuple[str, ...],
    ) -> None:
        finite = isinstance(flow, FiniteHorizon)
        # D13 of docs/paper.md: time is an input of ν; the paper's heads are an ablation.
        by_head = finite and config.ablation.time != "input"
        horizon = flow.horizon if isinstance(flow, FiniteHorizon) else 1
        augmented = by_head and config.ablation.time == "augmented"
        divergence, terminal = DIVERGENCES[config.dual.divergence](), config.reward.terminal
        self.setting = DualSetting(flow, divergence, config.dual, augmented, terminal)
        self.name, self.hidden, self.regimes, self.ignores = name, config.network.hidden, regimes, ignores
        self.heads = horizon if by_head else 1
        self.constants = horizon if config.ablation.offsets else 1
        self.sees_accrued, self.sees_time = finite and config.ablation.accrued, finite
        self.steps, self.ends = config.dual.steps, finite
        self.n_step, self.pools = n_step, n_step == 1 and not by_head

    @property
    def batch(self) -> int:
        return self.setting.config.batch

    @property
    def sweeps(self) -> dict[str, float]:
        return {"beta": BETA * float(self.setting.flow.reward_scale)}

    @property
    def hints(self) -> Hints:
        return Hints("a smaller beta", "a larger beta")

    def check(self, objective: Objective, objectives: int) -> None:
        regime = objective.regime(objectives)
        if regime not in self.regimes:
            raise InputError(
                f"{self.name} optimises {' and '.join(self.regimes)} objectives; {objective.short_name} "
                f"is {regime}: use {'fairdice or aetdice' if regime == 'SER' else 'aetdice'}"
            )

    def hyper(self, objective: Objective, learning_rate: float, **own: float) -> DiceHyper:
        beta, config = own["beta"], self.setting.config
        if not np.isfinite(beta) or beta <= 0:
            raise InputError(f"beta must be positive, not {beta}")
        return DiceHyper(
            objective,
            beta=self.n_step * beta,
            learning_rate=learning_rate,
            slack_rate=config.slack_rate,
            # β weighs a divergence against returns, which a discounted flow has in units of its small mass.
            first_beta=self.n_step * config.first_beta * float(self.setting.flow.reward_scale),
            averaging=config.averaging,
        )

    def init(self, encoder: Encoder, hyper: DiceHyper, data: DeviceData, key: PRNGKeyArray) -> DualState:
        flow = self.setting.flow
        horizon = flow.horizon if isinstance(flow, FiniteHorizon) else encoder.horizon
        coarse = replace(encoder, horizon=horizon)
        shown = coarse.without_time() if self.heads > 1 else coarse
        nu = Nu(shown, self.hidden, self.heads, self.constants, key)
        return init_dual(nu, hyper, data.segmented, self.setting)

    def draw(
        self, key: PRNGKeyArray, data: DeviceData
    ) -> tuple[Int[Array, "windows length"], Int[Array, " starts"]]:
        """Windows start anywhere and run round the end of the data, so every step is as likely."""
        config, data = self.setting.config, data.segmented
        batch_key, start_key = jax.random.split(key)
        alone = data.breaks or data.steps.successors is not None or self.setting.time_augmented
        length = 1 if alone else math.gcd(config.window, config.batch)
        windows = jax.random.randint(batch_key, (config.batch // length, 1), 0, data.count)
        rows = (windows + jnp.arange(length)[None]) % data.count
        starts = jax.random.randint(start_key, (config.starts,), 0, data.initial.shape[0])
        return rows, data.initial[starts]

    def prepare(
        self,
        state: DualState,
        hyper: DiceHyper,
        data: DeviceData,
        rows: tuple[Int[Array, "windows length"], Int[Array, " starts"]],
        step: Int[Array, ""],
    ) -> DualBatch:
        number = step.astype(jnp.float32)
        return prepare_dual(state.nu.encoder, hyper, data.segmented, *rows, number, self.setting)

    def update(self, state: DualState, hyper: DiceHyper, batch: DualBatch) -> DualState:
        return update_dual(state, hyper, batch, self.setting)

    def finish(self, state: DualState, hyper: DiceHyper, data: DeviceData) -> DualState:
        kind = self.setting.config.refit
        if kind == "none" or self.heads > 1:
            return state
        return refit(state, hyper, data.segmented, self.setting, layer=kind == "layer")

    def weigh(self, state: DualState, hyper: DiceHyper, data: DeviceData) -> Weighing:
        ratios = diagnose_ratios(state, hyper, data.segmented, self.setting)
        return Weighing(data.onto_steps(ratios.sample_weights), metrics_of(ratios))


def metrics_of(ratios: RatioDiagnostics) -> dict[str, Array]:
    """The numbers of the diagnostics."""
    spread = jnp.stack([ratios.mass.min(), ratios.mass.max()])
    return {"mass_range": spread, **{name: getattr(ratios, name) for name in METRICS}}


def aetdice(horizon: int, config: TrainingConfig) -> Dice:
    """Any F and concave G, on states augmented with accrued reward and time.

    D8 of docs/paper.md: with n-step transitions it is the same dual of ⌈H/n⌉ steps. The divergence of a
    segment counts for its n steps, so that β means the same for every n.
    """
    n_step = min(config.dual.n_step or 1, horizon)
    flow = FiniteHorizon(-(-horizon // n_step))
    regimes = ("linear", "SER", "ESR", "AET")
    return Dice("aetdice", flow, config, n_step=n_step, regimes=regimes, ignores=("iql", "dual.gamma"))


DISCOUNTED_IGNORES = (
    "iql", "dual.n_step", "reward", "network.fourier", "network.value_fourier",
    "ablation.time", "ablation.offsets", "ablation.accrued", "extraction.courses",
)  # fmt: skip
"""What the discounted flow has no use for: it has no horizon, and its states are not augmented."""


def fairdice(horizon: int, config: TrainingConfig) -> Dice:
    """Concave G of discounted returns, on the states as they are (FairDICE, corrected)."""
    del horizon
    flow = Discounted(config.dual.gamma)
    return Dice("fairdice", flow, config, regimes=("linear", "SER"), ignores=DISCOUNTED_IGNORES)


def optidice(horizon: int, config: TrainingConfig) -> Dice:
    """A weighted sum of discounted returns, on the states as they are (OptiDICE)."""
    del horizon
    flow = Discounted(config.dual.gamma)
    return Dice("optidice", flow, config, regimes=("linear",), ignores=DISCOUNTED_IGNORES)
