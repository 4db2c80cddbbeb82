"""Acting in many episodes at once: accrued reward, time and randomness are remembered here."""

import secrets
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped
from numpy.typing import ArrayLike

from aetdice.data import Coding, Transform
from aetdice.errors import InputError
from aetdice.networks import Categorical, Encoder, PolicyNetwork


@eqx.filter_jit
def sample_actions(
    network: PolicyNetwork,
    observations: Shaped[Array, "n o"],
    accrued: Float[Array, "n m"],
    time: Int[Array, " n"],
    key: PRNGKeyArray,
    greedy: bool = False,
) -> Shaped[Array, "n *a"]:
    """One action per row; pure. Every row draws from a key of its own."""
    if greedy:
        return jax.vmap(network.greedy)(observations, accrued, time)
    keys = jax.random.split(key, observations.shape[0])
    return jax.vmap(network.sample)(observations, accrued, time, keys)


class VectorPolicy:
    """A policy in many episodes at once, as a vectorised environment steps them.

    `act(observations)` gives an action per episode, `observe(rewards, …, ended)` remembers what they
    brought; episodes that `ended` begin anew. Without a seed, randomness is fresh each time.
    """

    def __init__(
        self,
        network: PolicyNetwork,
        transform: Transform | None,
        count: int,
        seed: int | None = None,
        greedy: bool = False,
        coding: Coding | None = None,
    ) -> None:
        if count < 1:
            raise InputError(f"at least one episode is needed, not {count}")
        self._coding = coding
        self._network, self._transform, self._greedy = network, transform, greedy
        self._key = jax.random.key(secrets.randbits(32) if seed is None else seed)
        self._waiting = False
        self.accrued = np.zeros((count, len(network.encoder.accrued_range)))
        self.time = np.zeros(count, dtype=np.int32)

    @property
    def count(self) -> int:
        return len(self.time)

    def reset(self, which: Bool[np.ndarray, " n"] | None = None) -> None:
        """Begin these episodes anew, or all of them."""
        rows = np.ones(self.count, bool) if which is None else np.asarray(which, bool)
        if rows.shape != self.time.shape:
            raise InputError(f"{self.count} episodes end or not, one by one; not in shape {rows.shape}")
        self.accrued = np.where(rows[:, None], 0, self.accrued)
        self.time = np.where(rows, 0, self.time)
        self._waiting = self._waiting and which is not None

    def act(self, observations: ArrayLike | Sequence[Any]) -> Shaped[np.ndarray, "n *a"]:
        """An action per episode: sampled, because optima of SER and AET are stochastic; or greedy.

        With a coding, observations may hold categories, and actions are what the log calls them.
        """
        if self._waiting:
            raise InputError("act was called twice: first tell observe what the last action brought")
        horizon = self._network.encoder.horizon
        if np.any(self.time >= horizon):
            raise InputError(f"the episode is over: the policy was trained for {horizon} steps; call reset")
        shown = check_observations(self._network.encoder, self._encoded(observations), self.count)
        self._key, key = jax.random.split(self._key)
        accrued = jnp.asarray(self.accrued, jnp.float32)
        actions = sample_actions(self._network, shown, accrued, jnp.asarray(self.time), key, self._greedy)
        self._waiting = True
        return np.asarray(actions) if self._coding is None else self._coding.decode(np.asarray(actions))

    def _encoded(self, observations: Any) -> Any:
        return observations if self._coding is None else self._coding.encode(observations)

    def observe(
        self,
        rewards: ArrayLike,
        next_observations: ArrayLike | Sequence[Any] | None = None,
        ended: Bool[np.ndarray, " n"] | None = None,
    ) -> None:
        """Remember what the last actions brought; a policy with a transform is told the raw rewards."""
        if not self._waiting:
            raise InputError("observe was called before act")
        if self._transform is not None and next_observations is None:
            raise InputError("this policy transforms rewards: give observe the next observation, too")
        raw = values = numbers(rewards, "rewards").astype(np.float64)
        if self._transform is not None and next_observations is not None:
            seen = numbers(self._encoded(next_observations), "observations").astype(np.float64)
            try:
                values = self._transform(raw, seen.reshape(self.count, -1))
            except (ValueError, IndexError) as error:
                raise InputError(f"rewards of shape {raw.shape} cannot be transformed: {error}") from error
        if values.shape != self.accrued.shape or not np.all(_is_finite(values)):
            raise InputError(
                f"a reward has {self.accrued.shape[1]} finite entries, one per objective, not {raw.tolist()}"
            )
        self.accrued, self.time = self.accrued + values, self.time + 1  # new ones: the old may be kept
        self._waiting = False
        if ended is not None:
            self.reset(ended)

    @property
    def discrete(self) -> bool:
        return isinstance(self._network.head, Categorical)


def numbers(values: ArrayLike, what: str) -> Shaped[np.ndarray, "..."]:
    """The values as one array of numbers."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what} must be numbers, not {values!r}")
    return array


def _is_finite(values: Shaped[np.ndarray, "*s"]) -> Bool[np.ndarray, "*s"]:
    """Finite in the precision of the networks."""
    return np.abs(values) <= np.finfo(np.float32).max


def check_observations(encoder: Encoder, observations: ArrayLike, count: int) -> Shaped[Array, "n o"]:
    """The observations as the network takes them; `InputError` for what no policy should act on."""
    found = numbers(observations, "observations")
    if found.shape[:1] != (count,):
        raise InputError(f"{count} episodes need {count} observations, not an array of shape {found.shape}")
    rows, size = found.reshape(count, -1), len(encoder.centre)
    if rows.shape[1] != size:
        raise InputError(f"an observation has {size} entries, not {rows.shape[1]}")
    if not np.all(_is_finite(rows)):
        row, column = np.argwhere(~_is_finite(rows))[0]
        raise InputError(f"an observation must be finite, but entry {column} is {rows[row, column]}")
    if encoder.sizes is None:
        return jnp.asarray(rows, jnp.float32)
    wrong = (rows < 0) | (rows >= np.array(encoder.sizes)) | (rows != np.round(rows))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"entry {column} of an observation is a whole number from 0 to {encoder.sizes[column] - 1}, "
            f"not {rows[row, column]}"
        )
    return jnp.asarray(rows, jnp.int32)
