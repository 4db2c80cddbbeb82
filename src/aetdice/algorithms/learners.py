"""The algorithms by name: AETDICE, OptiDICE and FairDICE are one loss; beside it ESR-IQL and cloning."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from aetdice.algorithms.algorithm import Algorithm, Remedies, StepReport
from aetdice.algorithms.diagnostics import report_ratios
from aetdice.algorithms.dice import DiceHyper, DiceSetting, DualState, init_dual, update_dual
from aetdice.algorithms.iql import Iql
from aetdice.algorithms.polish import polish
from aetdice.config import TrainingConfig
from aetdice.data.resident import ResidentData
from aetdice.dice import Discounted, FiniteHorizon, Flow
from aetdice.errors import InputError
from aetdice.networks import Encoder, Nu
from aetdice.objectives import DIVERGENCES, Objective
from aetdice.objectives.parameters import Parameter, parameter

BETA = 1e-3
"""Where returns are sums; discounted ones take as much more as their mass is smaller."""


class Dice(Algorithm):
    """The dual loss with a flow: lessons are the ratios w d^D."""

    setting: DiceSetting
    name: str = eqx.field(static=True)
    config: TrainingConfig = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    constants: int = eqx.field(static=True)
    sees_accrued: bool = eqx.field(static=True)
    sees_time: bool = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    regimes: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self, name: str, flow: Flow, config: TrainingConfig, *, regimes: tuple[str, ...], augmented: bool
    ) -> None:
        by_head = augmented and config.time != "input" and isinstance(flow, FiniteHorizon)
        horizon = flow.horizon if isinstance(flow, FiniteHorizon) else 1
        self.name, self.config, self.regimes = name, config, regimes
        self.setting = DiceSetting(
            flow,
            DIVERGENCES[config.divergence](),
            batch=config.batch,
            window=config.window,
            steps=config.value_steps,
            annealing=config.annealing,
            time_augmented=by_head and config.time == "augmented",
            terminal_reward=augmented and config.terminal_reward,
            foresight=config.foresight if augmented else 0,
        )
        self.heads = horizon if by_head else 1
        self.constants = horizon if config.offsets else 1
        self.sees_accrued, self.sees_time = augmented and config.accrued, augmented
        self.steps = config.value_steps

    @property
    def sweeps(self) -> dict[str, float]:
        return {"beta": BETA * float(self.setting.flow.reward_scale)}

    @property
    def remedies(self) -> Remedies:
        return Remedies("a smaller beta", "a larger beta")

    def check(self, objective: Objective, objectives: int) -> None:
        regime = objective.regime(objectives)
        if regime not in self.regimes:
            raise InputError(
                f"{self.name} optimises {' and '.join(self.regimes)} objectives; {objective.short_name} "
                f"is {regime}: use {'fairdice or aetdice' if regime == 'SER' else 'aetdice'}"
            )

    def hyper(self, objective: Objective, learning_rate: float, **own: float) -> DiceHyper:
        beta = own["beta"]
        if not np.isfinite(beta) or beta <= 0:
            raise InputError(f"beta must be positive, not {beta}")
        return DiceHyper(
            objective,
            beta=beta,
            learning_rate=learning_rate,
            slack_rate=self.config.slack_rate,
            first_beta=self.config.first_beta,
            averaging=self.config.averaging,
        )

    def init(self, encoder: Encoder, hyper: DiceHyper, data: ResidentData, key: PRNGKeyArray) -> DualState:
        shown = encoder.without_time() if self.heads > 1 else encoder
        nu = Nu(shown, self.config.hidden, self.heads, self.constants, key)
        return init_dual(nu, hyper, data, self.setting)

    def draw(
        self, key: PRNGKeyArray, data: ResidentData
    ) -> tuple[Int[Array, "windows length"], Int[Array, " starts"]]:
        """Windows start anywhere and run round the end of the data, so every step is as likely."""
        batch_key, start_key = jax.random.split(key)
        length = 1 if data.breaks else math.gcd(self.setting.window, self.setting.batch)
        windows = jax.random.randint(batch_key, (self.setting.batch // length, 1), 0, data.steps.count)
        rows = (windows + jnp.arange(length)[None]) % data.steps.count
        starts = jax.random.randint(start_key, (self.setting.starts,), 0, data.initial.shape[0])
        return rows, data.initial[starts]

    def update(
        self,
        state: DualState,
        hyper: DiceHyper,
        data: ResidentData,
        rows: tuple[Int[Array, "windows length"], Int[Array, " starts"]],
        step: Int[Array, ""],
    ) -> DualState:
        return update_dual(state, hyper, data, *rows, step.astype(jnp.float32), self.setting)

    def finish(self, state: DualState, hyper: DiceHyper, data: ResidentData) -> DualState:
        if self.config.polish == "none" or self.heads > 1:
            return state
        return polish(state, hyper, data, self.setting, layer=self.config.polish == "layer")

    def report(self, state: DualState, hyper: DiceHyper, data: ResidentData) -> StepReport:
        ratios = report_ratios(state, hyper, data, self.setting)
        metrics = {
            "mass_range": jnp.stack([ratios.mass.min(), ratios.mass.max()]),
            **{name: getattr(ratios, name) for name in METRICS},
        }
        return StepReport(ratios.lessons, metrics)


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
"""Of the ratios; docs/learner.md explains each."""


class Cloning(Algorithm):
    """Nothing to value: a policy that does as the data did."""

    sees_accrued: bool = eqx.field(static=True, default=True)
    sees_time: bool = eqx.field(static=True, default=True)
    steps: int = eqx.field(static=True, default=0)

    @property
    def sweeps(self) -> dict[str, float]:
        return {}

    @property
    def remedies(self) -> None:
        return None

    def check(self, objective: Objective, objectives: int) -> None:
        del objective, objectives

    def hyper(self, objective: Objective, learning_rate: float, **own: float) -> Parameter:
        del objective, own
        return parameter(learning_rate)

    def init(self, encoder: Encoder, hyper: Any, data: ResidentData, key: PRNGKeyArray) -> Array:
        del encoder, hyper, data, key
        return jnp.zeros(0)

    def draw(self, key: PRNGKeyArray, data: ResidentData) -> tuple[()]:
        del key, data
        return ()

    def update(
        self, state: Array, hyper: Any, data: ResidentData, rows: tuple[()], step: Int[Array, ""]
    ) -> Array:
        del hyper, data, rows, step
        return state

    def finish(self, state: Array, hyper: Any, data: ResidentData) -> Array:
        del hyper, data
        return state

    def report(self, state: Array, hyper: Any, data: ResidentData) -> StepReport:
        del state, hyper
        return StepReport(data.steps.weight, {})


def aetdice(horizon: int, config: TrainingConfig) -> Dice:
    """Any F and concave G, on states augmented with accrued reward and time."""
    regimes = ("linear", "SER", "ESR", "AET")
    return Dice("aetdice", FiniteHorizon(horizon), config, regimes=regimes, augmented=True)


def fairdice(horizon: int, config: TrainingConfig) -> Dice:
    """Concave G of discounted returns, on the states as they are (FairDICE, corrected)."""
    del horizon
    regimes = ("linear", "SER")
    return Dice("fairdice", Discounted(config.gamma), config, regimes=regimes, augmented=False)


def optidice(horizon: int, config: TrainingConfig) -> Dice:
    """A weighted sum of discounted returns, on the states as they are (OptiDICE)."""
    del horizon
    return Dice("optidice", Discounted(config.gamma), config, regimes=("linear",), augmented=False)


def esr_iql(horizon: int, config: TrainingConfig) -> Iql:
    """Implicit Q-learning of E[F(R)] on augmented states, for linear G."""
    del horizon
    return Iql(config)


def cloning(horizon: int, config: TrainingConfig) -> Cloning:
    """Behaviour cloning on augmented states."""
    del horizon
    return Cloning(sees_accrued=config.accrued)


ALGORITHMS: dict[str, Callable[[int, TrainingConfig], Algorithm]] = {
    "aetdice": aetdice,
    "optidice": optidice,
    "fairdice": fairdice,
    "esr-iql": esr_iql,
    "bc": cloning,
}
"""Every algorithm by name; to be listed here is to be trained, saved and tested."""
