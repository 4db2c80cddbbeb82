"""Flows: how visitation mass enters, moves and leaves; the weights of the dual's terms."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from aetdice.errors import InputError
from aetdice.objectives.parameters import Parameter, parameter, text


class Flow(eqx.Module):
    """The constants of the one dual loss."""

    @property
    @abc.abstractmethod
    def initial_weight(self) -> Parameter:
        """The weight of E[ν(s̃_0)]."""

    @property
    @abc.abstractmethod
    def discount(self) -> Parameter:
        """The factor of ν(s̃')."""

    @property
    @abc.abstractmethod
    def reward_scale(self) -> Parameter:
        """Brings Σ d r̃ to the units of a return."""

    @abc.abstractmethod
    def transition_weights(self, per_episode: Float[Array, " steps"], stored: int) -> Float[Array, " steps"]:
        """d^D of some of the stored steps, from their weights within the episodes' mass."""

    @abc.abstractmethod
    def sums(self, values: Float[Array, "steps *v"], time: Int[Array, " steps"]) -> Float[Array, "parts *v"]:
        """Sums over the steps of each part that must conserve mass by itself."""

    @abc.abstractmethod
    def violation(self, total: Float[Array, " parts"], ended: Float[Array, " parts"]) -> Float[Array, ""]:
        """How far w·d^D is from conserving mass, from its sums and from those of what terminates."""

    @abc.abstractmethod
    def factors(self, total: Float[Array, " parts"], ended: Float[Array, " parts"]) -> Float[Array, " parts"]:
        """What every part of w·d^D is to be scaled by, so that it conserves mass."""

    @abc.abstractmethod
    def at(self, factors: Float[Array, " parts"], time: Int[Array, " steps"]) -> Float[Array, " steps"]:
        """The factor of every step."""

    def mass_violation(
        self,
        mass: Float[Array, " steps"],
        time: Int[Array, " steps"],
        terminates: Float[Array, " steps"],
    ) -> Float[Array, ""]:
        """How far w·d^D is from conserving mass: a convergence test that needs no reference."""
        return self.violation(self.sums(mass, time), self.sums(terminates * mass, time))

    def balance(
        self,
        mass: Float[Array, " steps"],
        time: Int[Array, " steps"],
        terminates: Float[Array, " steps"],
    ) -> Float[Array, " steps"]:
        """w·d^D with every part that must conserve mass scaled until it does."""
        factors = self.factors(self.sums(mass, time), self.sums(terminates * mass, time))
        return mass * self.at(factors, time)


class FiniteHorizon(Flow):
    """Mass 1 enters at t = 0, moves one step in time, and leaves by termination or at H."""

    horizon: int = eqx.field(static=True)

    @property
    def initial_weight(self) -> Parameter:
        return parameter(1.0)

    @property
    def discount(self) -> Parameter:
        return parameter(1.0)

    @property
    def reward_scale(self) -> Parameter:
        return parameter(1.0)

    def transition_weights(self, per_episode: Float[Array, " steps"], stored: int) -> Float[Array, " steps"]:
        del stored
        return per_episode

    def sums(self, values: Float[Array, "steps *v"], time: Int[Array, " steps"]) -> Float[Array, "parts *v"]:
        """By time."""
        return jax.ops.segment_sum(values, time, self.horizon)

    def violation(self, total: Float[Array, " parts"], ended: Float[Array, " parts"]) -> Float[Array, ""]:
        """max_t |c_t - expected|, c_0 = 1 and c_{t+1} = c_t - (mass that terminates at t)."""
        expected = jnp.concatenate([jnp.ones_like(total[:1]), total[:-1] - ended[:-1]])
        return jnp.max(jnp.abs(total - expected))

    def factors(self, total: Float[Array, " parts"], ended: Float[Array, " parts"]) -> Float[Array, " parts"]:
        """One factor per time step, so that c_0 = 1 and c_{t+1} = c_t - (mass that terminates at t)."""

        def step(expected: Array, sums: tuple[Array, Array]) -> tuple[Array, Array]:
            here, ends = sums
            factor = jnp.where(here > 0, expected / jnp.where(here > 0, here, 1), 0)
            return expected - factor * ends, factor

        return jax.lax.scan(step, jnp.ones((), total.dtype), (total, ended))[1]

    def at(self, factors: Float[Array, " parts"], time: Int[Array, " steps"]) -> Float[Array, " steps"]:
        return factors[time]


class Discounted(Flow):
    """Mass 1 - γ enters at initial states and each step keeps γ of it (OptiDICE, FairDICE).

    Σ d r is 1 - γ times the discounted return; `reward_scale` brings it back to return units.
    """

    gamma: Parameter = eqx.field(converter=parameter, default=0.99)

    def __check_init__(self) -> None:
        if not isinstance(self.gamma, jax.core.Tracer) and not np.all((self.gamma >= 0) & (self.gamma < 1)):
            raise InputError(f"gamma must be at least 0 and below 1, not {text(self.gamma)}")

    @property
    def initial_weight(self) -> Parameter:
        return 1 - self.gamma

    @property
    def discount(self) -> Parameter:
        return self.gamma

    @property
    def reward_scale(self) -> Parameter:
        return 1 / (1 - self.gamma)

    def transition_weights(self, per_episode: Float[Array, " steps"], stored: int) -> Float[Array, " steps"]:
        return jnp.full_like(per_episode, 1 / stored)

    def sums(self, values: Float[Array, "steps *v"], time: Int[Array, " steps"]) -> Float[Array, "parts *v"]:
        """Over all steps."""
        del time
        return jnp.sum(values, axis=0, keepdims=True)

    def violation(self, total: Float[Array, " parts"], ended: Float[Array, " parts"]) -> Float[Array, ""]:
        """|E[w] - γ E[w · not terminal] - (1 - γ)| / (1 - γ): per unit of mass that enters, as above."""
        gamma = jnp.asarray(self.gamma, total.dtype)
        return jnp.abs(self._kept(total, ended) / (1 - gamma) - 1)

    def factors(self, total: Float[Array, " parts"], ended: Float[Array, " parts"]) -> Float[Array, " parts"]:
        """One factor for all, so that E[w] - γ E[w · not terminal] = 1 - γ."""
        gamma, kept = jnp.asarray(self.gamma, total.dtype), self._kept(total, ended)
        return jnp.where(kept > 0, (1 - gamma) / jnp.where(kept > 0, kept, 1), 0)[None]

    def at(self, factors: Float[Array, " parts"], time: Int[Array, " steps"]) -> Float[Array, " steps"]:
        return jnp.broadcast_to(factors, time.shape)

    def _kept(self, total: Float[Array, " parts"], ended: Float[Array, " parts"]) -> Float[Array, ""]:
        return total[0] - jnp.asarray(self.gamma, total.dtype) * (total - ended)[0]
