"""A dataset as the learner sees it: float32 arrays that live on the device."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from aetdice.data.augmentation import Transitions
from aetdice.data.segments import CUT
from aetdice.data.successors import Outcomes


class Successors(eqx.Module):
    """What may follow each step, as `pooled_outcomes` has it."""

    observation: Shaped[Array, "*b k o"]
    reward: Float[Array, "*b k m"]
    terminated: Bool[Array, "*b k"]
    follows: Bool[Array, "*b k"]
    """Whether anything does: not after termination, nor at the horizon."""
    probability: Float[Array, "*b k"]


class Steps(eqx.Module):
    """Augmented transitions; one row each, or one row alone inside `vmap`."""

    observation: Shaped[Array, "*b o"]
    accrued: Float[Array, "*b m"]
    time: Int[Array, "*b"]
    action: Shaped[Array, "..."]
    next_observation: Shaped[Array, "*b o"]
    next_accrued: Float[Array, "*b m"]
    terminated: Bool[Array, "*b"]
    bootstraps: Bool[Array, "*b"]
    weight: Float[Array, "*b"]
    """d^D of the step."""
    successors: Successors | None = None
    """Where transitions are stochastic: all that may follow, not only what did."""

    @property
    def follows(self) -> Float[Array, "*b"]:
        """How likely anything follows."""
        if self.successors is None:
            return self.bootstraps.astype(self.weight.dtype)
        return jnp.sum(jnp.where(self.successors.follows, self.successors.probability, 0), axis=-1)

    @property
    def terminates(self) -> Float[Array, "*b"]:
        """How likely the step terminates its episode."""
        if self.successors is None:
            return self.terminated.astype(self.weight.dtype)
        return jnp.sum(jnp.where(self.successors.terminated, self.successors.probability, 0), axis=-1)

    @property
    def count(self) -> int:
        return self.time.shape[0]

    def take(self, rows: Int[Array, "*r"]) -> "Steps":
        return jax.tree.map(lambda column: column[rows], self)


class Recorded(eqx.Module):
    """Augmented transitions of whole episodes, of which each state is stored once.

    An episode of k steps has k + 1 frames, and each step leads from its frame to the next.
    """

    observation: Shaped[Array, "frames o"]
    accrued: Float[Array, "frames m"]
    frame: Int[Array, " steps"]
    time: Int[Array, " steps"]
    action: Shaped[Array, "steps *a"]
    terminated: Bool[Array, " steps"]
    bootstraps: Bool[Array, " steps"]
    weight: Float[Array, " steps"]
    """d^D of the step."""
    successors: Successors | None = None

    @property
    def count(self) -> int:
        return self.time.shape[0]

    @property
    def next_accrued(self) -> Float[Array, "steps m"]:
        """After every step."""
        return self.accrued[self.frame + 1]

    def take(self, rows: Int[Array, "*r"]) -> Steps:
        """Each with where it leads."""
        frame = self.frame[rows]
        return Steps(
            observation=self.observation[frame],
            accrued=self.accrued[frame],
            time=self.time[rows],
            action=self.action[rows],
            next_observation=self.observation[frame + 1],
            next_accrued=self.accrued[frame + 1],
            terminated=self.terminated[rows],
            bootstraps=self.bootstraps[rows],
            weight=self.weight[rows],
            successors=jax.tree.map(lambda column: column[rows], self.successors),
        )

    def everything(self) -> Steps:
        """All steps at once, of small data: each state but the ends is then there twice."""
        return self.take(jnp.arange(self.count))


class DeviceData(eqx.Module):
    """What training needs of a dataset."""

    steps: Recorded
    initial: Int[Array, " episodes"]
    """The rows of the episodes' first steps."""
    actions: int = eqx.field(static=True)
    """How many discrete actions there are; 0 for continuous ones."""
    breaks: bool = eqx.field(static=True, default=True)
    """Whether some episode stops where something would follow: its successor is not the next row."""
    recorded: int = eqx.field(static=True, default=0)
    """How many of the steps were recorded; those of episodes joined from parts come after them."""
    rows: int | None = eqx.field(static=True, default=None)
    """How many steps there are, where `steps` are only some of them."""
    segments: "Segments | None" = None
    """The same data as n-step transitions, where n is more than 1."""

    @property
    def count(self) -> int:
        """How many steps there are."""
        return self.steps.count if self.rows is None else self.rows

    @property
    def behaviour(self) -> Float[Array, " steps"]:
        """d^D of the recorded behaviour."""
        return jnp.where(jnp.arange(self.steps.count) < self.recorded, self.steps.weight, 0)

    @property
    def segmented(self) -> "DeviceData":
        """The transitions that values are learned from: segments, or the steps themselves."""
        return self if self.segments is None else self.segments.data

    def ahead(self, rows: Int[Array, "*r"], n_step: int) -> Int[Array, "*r"]:
        """The last of n steps that begin at each row, or of its episode if that is over before."""
        ends = jnp.append(self.initial[1:], self.steps.count) - 1
        episode = jnp.searchsorted(self.initial, rows, side="right") - 1
        return jnp.minimum(rows + n_step - 1, ends[episode])

    def onto_steps(self, mass: Float[Array, " segments"]) -> Float[Array, " steps"]:
        """The mass w d^D of every step, given that of every segment: all steps of one share its w."""
        if self.segments is None:
            return mass
        ratios, segment = mass / self.segments.data.steps.weight, self.segments.of_step
        return jnp.where(segment == CUT, 0, ratios[segment] * self.steps.weight)


class Segments(eqx.Module):
    """n-step transitions of a dataset."""

    data: DeviceData
    """One row per segment."""
    of_step: Int[Array, " steps"]
    """The row of every step's segment."""


def to_device(
    transitions: Transitions,
    actions: int = 0,
    outcomes: Outcomes | None = None,
    horizon: int = 0,
    recorded: int | None = None,
) -> DeviceData:
    """Move a dataset to the device; integer observations and actions stay integers."""
    rows, initial = len(transitions.time), transitions.initial
    last = np.append(initial[1:], rows) - 1
    frame = np.arange(rows) + np.repeat(np.arange(len(initial)), last + 1 - initial)

    def framed(here: Shaped[np.ndarray, "steps *s"], there: Shaped[np.ndarray, "steps *s"]) -> Array:
        found = np.empty((rows + len(initial), *here.shape[1:]), here.dtype)
        found[frame], found[frame[last] + 1] = here, there[last]
        return _compact(found.reshape(len(found), -1))

    steps = Recorded(
        observation=framed(transitions.observations, transitions.next_observations),
        accrued=framed(transitions.accrued, transitions.next_accrued),
        frame=_compact(frame),
        time=_compact(transitions.time),
        action=_compact(transitions.actions),
        terminated=jax.device_put(transitions.terminated),
        bootstraps=jax.device_put(transitions.bootstraps),
        weight=_compact(transitions.weights),
        successors=None if outcomes is None else _successors(outcomes, transitions.time, horizon),
    )
    breaks = bool(transitions.bootstraps[last].any())
    count = rows if recorded is None else recorded
    return DeviceData(steps, _compact(initial), actions, breaks, count)


def with_segments(
    data: DeviceData, transitions: Transitions, of_step: Int[np.ndarray, " steps"]
) -> DeviceData:
    """The same data with its n-step transitions beside it."""
    return replace(data, segments=Segments(to_device(transitions, data.actions), _compact(of_step)))


def _successors(outcomes: Outcomes, time: Int[np.ndarray, " steps"], horizon: int) -> Successors:
    follows = ~outcomes.ends & (time[:, None] + 1 < horizon)
    return Successors(
        observation=_compact(outcomes.observations),
        reward=_compact(outcomes.rewards),
        terminated=jax.device_put(outcomes.ends),
        follows=jax.device_put(follows),
        probability=_compact(outcomes.probabilities),
    )


def _compact(values: Shaped[np.ndarray, "..."]) -> Array:
    """Converted on the host, where nothing is compiled."""
    integer = np.issubdtype(values.dtype, np.integer)
    return jax.device_put(values.astype(np.int32 if integer else np.float32, copy=False))
