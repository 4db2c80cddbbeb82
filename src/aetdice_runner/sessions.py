"""Acting in many episodes at once: accrued reward, time and whose turn it is are remembered here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aetdice_runner.checks import Interface, check_observations, is_finite, numbers, shown
from aetdice_runner.coding import Coding
from aetdice_runner.errors import InputError, TurnError
from aetdice_runner.transforms import Transform

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Shaped
    from numpy.typing import ArrayLike

Choose = Callable[[Any, Any, Any, Any], Any]
"""An action per row, from observations (n, o), accrued rewards (n, m) in float32, times (n,) and courses."""
Draw = Callable[[int], Any]
"""The courses that so many new episodes of a mixture policy keep to."""


class Sessions:
    """A policy in `count` episodes at once, each with its own memory.

    `act(observations)` gives an action per episode, `observe(rewards, …, ended)` remembers what they
    brought; episodes that `ended` begin anew.
    """

    accrued: Float[np.ndarray, "n m"]
    """What each episode has brought so far, transformed as in training."""
    time: Int[np.ndarray, " n"]
    """How many steps each episode has had."""

    def __init__(
        self,
        interface: Interface,
        choose: Choose,
        count: int,
        transform: Transform | None = None,
        coding: Coding | None = None,
        draw: Draw | None = None,
    ) -> None:
        if count < 1:
            raise InputError(f"at least one episode is needed, not {count}")
        self._interface, self._choose = interface, choose
        self._transform, self._coding = transform, coding
        self._waiting = False
        self.accrued = np.zeros((count, interface.objectives))
        self.time = np.zeros(count, dtype=np.int32)
        self._draw = draw
        self._courses = None if draw is None else draw(count)

    @property
    def count(self) -> int:
        """How many episodes there are."""
        return len(self.time)

    def reset(self, which: Bool[np.ndarray, " n"] | None = None) -> None:
        """Begin these episodes anew, or all of them."""
        rows = np.ones(self.count, bool) if which is None else self._which(which)
        self.accrued = np.where(rows[:, None], 0, self.accrued)
        self.time = np.where(rows, 0, self.time)
        if self._draw is not None:
            self._courses = np.where(rows, self._draw(self.count), self._courses)
        self._waiting = self._waiting and which is not None

    def act(self, observations: ArrayLike | Sequence[Any]) -> Shaped[np.ndarray, "n *a"]:
        """An action per episode; with a coding, categories are told and actions answered by name."""
        if self._waiting:
            raise TurnError("act was called twice: first tell observe what the last action brought")
        horizon = self._interface.horizon
        if (self.time >= horizon).any():
            raise TurnError(f"the episode is over: the policy was trained for {horizon} steps; call reset")
        seen = check_observations(self._interface, self._encoded(observations), self.count)
        actions = self._choose(seen, self.accrued.astype(np.float32), self.time, self._courses)
        self._waiting = True
        return actions if self._coding is None else self._coding.decode(actions)

    def observe(
        self,
        rewards: ArrayLike,
        next_observations: ArrayLike | Sequence[Any] | None = None,
        ended: Bool[np.ndarray, " n"] | None = None,
    ) -> None:
        """Remember what the last actions brought; a policy with a transform is told the raw rewards."""
        if not self._waiting:
            raise TurnError("observe was called before act")
        over = None if ended is None else self._which(ended)
        raw = numbers(rewards, "rewards").astype(np.float64)
        values = self._transformed(raw, next_observations)
        fits = values.shape == self.accrued.shape
        accrued = self.accrued + values if fits else values
        if not fits or not is_finite(accrued).all():
            raise InputError(
                f"a reward has {self.accrued.shape[1]} finite entries, one per objective, "
                f"not {shown(raw.tolist())}"
            )
        self.accrued, self.time = accrued, self.time + 1  # new ones: the old may be kept
        self._waiting = False
        if over is not None:
            self.reset(over)

    def _which(self, given: Any) -> Bool[np.ndarray, " n"]:
        rows = np.asarray(given)
        if rows.shape != self.time.shape or rows.dtype != np.bool_:
            raise InputError(
                f"{self.count} episodes end or not, one truth value each; not shape {rows.shape} of "
                f"{rows.dtype}"
            )
        return rows

    def _encoded(self, observations: Any) -> Any:
        return observations if self._coding is None else self._coding.encode(observations)

    def _transformed(self, raw: Float[np.ndarray, "n r"], following: Any) -> Float[np.ndarray, "n m"]:
        if self._transform is None:
            return raw
        if following is None:
            raise InputError("this policy transforms rewards: give observe the next observation, too")
        seen = check_observations(self._interface, self._encoded(following), self.count)
        try:
            return np.asarray(self._transform(raw, seen.astype(np.float64)))
        except (ValueError, IndexError) as error:
            raise InputError(f"rewards of shape {raw.shape} cannot be transformed: {error}") from error
