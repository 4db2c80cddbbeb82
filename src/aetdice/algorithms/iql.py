"""ESR-IQL: implicit Q-learning on the augmented problem, where the ESR return is a sum of rewards.

    L_V = E[|τ - 1(u < 0)| u²],   u = min_i Q̄_i(s̃, a) - V(s̃)
    L_Q = Σ_i E[(μ·(r̃_t + … + r̃_{t+n-1}) + V(s̃_{t+n}) - Q_i(s̃_t, a_t))²]

τ is the expectile, Q̄ a slow average of the critics, V = 0 where nothing follows, μ the weights of
the linear G, n = 1 unless values would not reach the start (I6 of docs/algorithms/esr-iql.md). A step's
sample weight is exp(temperature · (min_i Q̄_i - V)), at most 100, times d^D: advantage-weighted cloning
(paper: ESR-IQL; after Kostrikov et al.).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from aetdice.algorithms.base import Algorithm, Hints, Weighing
from aetdice.algorithms.dual import step_rewards
from aetdice.algorithms.optimiser import Moments, Pace, average, cosine, descend, no_moments, pace
from aetdice.config import IqlConfig, TrainingConfig
from aetdice.data.device import DeviceData, Steps
from aetdice.data.passes import pass_over
from aetdice.errors import InputError
from aetdice.networks import Encoder, Perceptron
from aetdice.objectives import Objective, multiplier
from aetdice.objectives.parameters import Parameter, cast, parameter

MOST_WEIGHT = 100.0
LAGS = 2.0
"""Of the slow critics, that a value takes to travel by n steps: the least n with which all arrive."""


class IqlHyper(eqx.Module):
    """What may differ between the members of a population: all traced."""

    objective: Objective
    expectile: Parameter = eqx.field(converter=parameter)
    temperature: Parameter = eqx.field(converter=parameter)
    learning_rate: Parameter = eqx.field(converter=parameter)


class Value(eqx.Module):
    """V(s, R_acc, t), with time as an input."""

    encoder: Encoder
    net: Perceptron

    def __init__(self, encoder: Encoder, hidden: tuple[int, ...], key: PRNGKeyArray) -> None:
        self.encoder = encoder
        self.net = Perceptron((encoder.features, *hidden, 1), key)

    def __call__(
        self, observation: Shaped[Array, " o"], accrued: Float[Array, " m"], time: Int[Array, ""]
    ) -> Float[Array, ""]:
        return self.of_encoded(self.encoder(observation, accrued, time))

    def of_encoded(self, encoded: Float[Array, "*rows features"]) -> Float[Array, "*rows"]:
        """V of what its encoder has made of a state."""
        return self.net(encoded)[..., 0]


class Critics(eqx.Module):
    """Two opinions of Q(s̃, a), side by side: one output per discrete action, or actions as an input."""

    nets: Perceptron
    actions: int = eqx.field(static=True)
    """How many discrete actions; 0 for continuous ones."""

    def __init__(
        self, features: int, hidden: tuple[int, ...], actions: int, action_size: int, keys: Sequence[Array]
    ) -> None:
        self.actions = actions
        sizes = (features + action_size, *hidden, max(actions, 1))
        self.nets = eqx.filter_vmap(lambda key: Perceptron(sizes, key))(jnp.stack(list(keys)))

    def __call__(
        self, encoded: Float[Array, "rows features"], action: Shaped[Array, "rows *a"]
    ) -> Float[Array, "2 rows"]:
        """Both opinions of states, as an encoder shows them, and actions."""
        if not self.actions:
            acting = action.reshape(len(action), -1).astype(encoded.dtype)
            encoded = jnp.concatenate([encoded, acting], axis=1)
        outputs = eqx.filter_vmap(lambda net: net(encoded))(self.nets)
        if not self.actions:
            return outputs[..., 0]
        return jnp.sum(outputs * jax.nn.one_hot(action, self.actions)[None], axis=-1)


class IqlState(NamedTuple):
    """V, two critics and their slow averages."""

    value: Value
    critics: Critics
    slow: Critics
    moments: Moments
    """Of the gradients of the first two."""


class IqlBatch(NamedTuple):
    """What an update needs of its rows and of its number: nothing in it changes with the networks."""

    encoded: Float[Array, "batch f"]
    action: Shaped[Array, "batch ..."]
    target: "TargetBatch"
    pace: Pace


class TargetBatch(NamedTuple):
    """Of the targets of Q: what was earned on the way, and where it led."""

    reward: Float[Array, " batch"]
    """μ·(r̃_t + … + r̃_{t+n-1})."""
    encoded: Float[Array, "batch f"]
    """s̃_{t+n}."""
    follows: Bool[Array, " batch"]


class Iql(Algorithm):
    """ESR-IQL for discrete and continuous actions, with the finite horizon of the data."""

    config: IqlConfig = eqx.field(static=True)
    reach: int = eqx.field(static=True)
    """Steps of recorded reward in a target."""
    terminal_reward: bool = eqx.field(static=True)
    hidden: tuple[int, ...] = eqx.field(static=True)
    sees_accrued: bool = eqx.field(static=True)
    sees_time: bool = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    ends: bool = eqx.field(static=True)
    n_step: int = eqx.field(static=True)
    pools: bool = eqx.field(static=True)
    ignores: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, horizon: int, config: TrainingConfig) -> None:
        self.config, self.hidden, self.steps = config.iql, config.network.hidden, config.iql.steps
        self.reach = min(config.iql.n_step or least_reach(horizon, config.iql), horizon)
        self.terminal_reward = config.reward.terminal
        self.sees_accrued, self.sees_time, self.ends = config.ablation.accrued, True, True
        self.n_step, self.pools = 1, False
        self.ignores = ("dual", "ablation.time", "ablation.offsets", "extraction.courses")

    @property
    def batch(self) -> int:
        return self.config.batch

    @property
    def sweeps(self) -> dict[str, float]:
        return {"expectile": 0.85, "temperature": 14.0}

    @property
    def hints(self) -> Hints:
        return Hints("a larger temperature or expectile", "a smaller temperature")

    def check(self, objective: Objective, objectives: int) -> None:
        regime = objective.regime(objectives)
        if regime not in ("linear", "ESR"):
            raise InputError(
                "esr-iql optimises linear and ESR objectives; "
                f"{objective.short_name} is {regime}: use aetdice"
            )

    def hyper(self, objective: Objective, learning_rate: float, **own: float) -> IqlHyper:
        if not 0 < own["expectile"] < 1:
            raise InputError(f"expectile lies between 0 and 1, not at {own['expectile']}")
        if not 0 <= own["temperature"] < math.inf:
            raise InputError(f"temperature must be finite and not negative, not {own['temperature']}")
        return IqlHyper(objective, own["expectile"], own["temperature"], learning_rate)

    def init(self, encoder: Encoder, hyper: IqlHyper, data: DeviceData, key: PRNGKeyArray) -> IqlState:
        del hyper
        value_key, *critic_keys = jax.random.split(key, 3)
        size = 0 if data.actions else data.steps.action[0].size
        critics = Critics(encoder.features, self.hidden, data.actions, size, critic_keys)
        value = Value(encoder, self.hidden, value_key)
        return IqlState(value, critics, critics, no_moments((value.net, critics.nets)))

    def draw(self, key: PRNGKeyArray, data: DeviceData) -> Int[Array, " batch"]:
        return jax.random.randint(key, (self.config.batch,), 0, data.steps.count)

    def prepare(
        self,
        state: IqlState,
        hyper: IqlHyper,
        data: DeviceData,
        rows: Int[Array, " batch"],
        step: Int[Array, ""],
    ) -> IqlBatch:
        batch, last = data.steps.take(rows), data.steps.take(data.ahead(rows, self.reach))
        target = prepare_target(state.value.encoder, hyper.objective, batch, last, self.terminal_reward)
        number = step.astype(jnp.float32)
        rate = cast(hyper.learning_rate, number) * cosine(number / self.config.steps)
        return IqlBatch(_encoded(state.value, batch), batch.action, target, pace(rate, number))

    def update(self, state: IqlState, hyper: IqlHyper, batch: IqlBatch) -> IqlState:
        nets = (state.value.net, state.critics.nets)
        target = td_target(state.value, batch.target)

        def loss(nets: tuple[Perceptron, Perceptron]) -> Float[Array, ""]:
            return iql_loss(with_nets(state, nets), state.slow, hyper, batch, target)

        nets, moments = descend(nets, jax.grad(loss)(nets), state.moments, batch.pace)
        value, critics = with_nets(state, nets)
        slow = average(state.slow.nets, critics.nets, self.config.critic_averaging)
        return IqlState(value, critics, eqx.tree_at(lambda c: c.nets, state.slow, slow), moments)

    def finish(self, state: IqlState, hyper: IqlHyper, data: DeviceData) -> IqlState:
        del hyper, data
        return state

    def weigh(self, state: IqlState, hyper: IqlHyper, data: DeviceData) -> Weighing:
        def look(
            rows: Int[Array, " block"], counted: Bool[Array, " block"]
        ) -> tuple[dict[str, Array], Array]:
            batch, last = data.steps.take(rows), data.steps.take(data.ahead(rows, self.reach))
            advantage, error = self._valued(state, hyper, batch, last)
            w = jnp.minimum(jnp.exp(cast(hyper.temperature, advantage) * advantage), MOST_WEIGHT)
            weight = jnp.where(counted, batch.weight, 0)
            mass = w * weight
            sums = {"weight": weight, "mass": mass, "square": mass * w, "error": weight * jnp.square(error)}
            return jax.tree.map(jnp.sum, sums), mass

        sums, mass = pass_over(data.steps.count, look)
        first = data.steps.take(data.initial)
        metrics = {
            "bellman_error": jnp.sqrt(sums["error"] / sums["weight"]),
            "start_value": jnp.mean(jax.vmap(state.value)(first.observation, first.accrued, first.time)),
            "effective_sample_size": sums["mass"] ** 2 / (sums["weight"] * sums["square"] + 1e-30),
        }
        return Weighing(mass, metrics)

    def _valued(
        self, state: IqlState, hyper: IqlHyper, batch: Steps, last: Steps
    ) -> tuple[Float[Array, " batch"], Float[Array, " batch"]]:
        """The advantage of every step, and its Bellman error."""
        encoded = _encoded(state.value, batch)
        lower = _lower(state.slow, encoded, batch.action)
        advantage = lower - state.value.of_encoded(encoded)
        target = prepare_target(state.value.encoder, hyper.objective, batch, last, self.terminal_reward)
        return advantage, td_target(state.value, target) - lower


def least_reach(horizon: int, config: IqlConfig) -> int:
    """The least n with which values reach the start by half of the updates: n ≥ 2 LAGS · lag · H / updates.

    What V learns at t + n arrives at t once the slow critics, whose lag is 1 / (1 - decay) updates, have
    followed; H/n such journeys lead to the start. A larger n would improve less upon the recorded actions.
    """
    lag = 1 / max(1 - config.critic_averaging, 1 / config.steps)
    return max(1, math.ceil(2 * LAGS * lag * horizon / config.steps))


def with_nets(state: IqlState, nets: tuple[Perceptron, Perceptron]) -> tuple[Value, Critics]:
    """V and the critics with other weights."""
    networks = (state.value, state.critics)
    return eqx.tree_at(lambda each: (each[0].net, each[1].nets), networks, nets)


def iql_loss(
    networks: tuple[Value, Critics],
    slow: Critics,
    hyper: IqlHyper,
    batch: IqlBatch,
    target: Float[Array, " batch"],
) -> Float[Array, ""]:
    """L_V + L_Q, each blind to the other's parameters."""
    value, critics = networks
    here = value.of_encoded(batch.encoded)
    gap = jax.lax.stop_gradient(_lower(slow, batch.encoded, batch.action)) - here
    tau = cast(hyper.expectile, gap)
    value_loss = jnp.mean(jnp.where(gap < 0, 1 - tau, tau) * jnp.square(gap))
    error = jax.lax.stop_gradient(target)[None] - critics(batch.encoded, batch.action)
    return value_loss + jnp.sum(jnp.mean(jnp.square(error), axis=1))


def _encoded(value: Value, batch: Steps) -> Float[Array, "batch features"]:
    """The states of a batch as all networks see them."""
    return jax.vmap(value.encoder)(batch.observation, batch.accrued, batch.time)


def prepare_target(
    encoder: Encoder, objective: Objective, batch: Steps, last: Steps, terminal: bool
) -> TargetBatch:
    """Of the steps t and t+n-1: the sum of r̃ telescopes."""
    span = eqx.tree_at(lambda steps: steps.accrued, last, batch.accrued)
    reward = step_rewards(objective.utility, span, terminal)
    mu = multiplier(objective.aggregation, jnp.zeros_like(reward[0]))
    there = jax.vmap(encoder)(last.next_observation, last.next_accrued, last.time + 1)
    return TargetBatch(reward @ mu, there, last.bootstraps)


def td_target(value: Value, batch: TargetBatch) -> Float[Array, " batch"]:
    """μ·(r̃_t + … + r̃_{t+n-1}) + V(s̃_{t+n})."""
    return batch.reward + jnp.where(batch.follows, value.of_encoded(batch.encoded), 0)


def _lower(
    critics: Critics, encoded: Float[Array, "batch features"], action: Shaped[Array, "batch ..."]
) -> Float[Array, " batch"]:
    """The smaller of two opinions."""
    return jnp.min(critics(encoded, action), axis=0)


def esr_iql(horizon: int, config: TrainingConfig) -> Iql:
    """Implicit Q-learning of E[F(R)] on augmented states, for linear G."""
    return Iql(horizon, config)
