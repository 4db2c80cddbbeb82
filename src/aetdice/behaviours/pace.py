"""How a training is going, in words."""

import time

import numpy as np
from jaxtyping import Float


class Pace:
    """Speed, remaining time and recent returns of a training; `now` is a clock in seconds."""

    def __init__(self, objectives: tuple[str, ...]) -> None:
        self.objectives = objectives
        self.speed, self.remaining = 0.0, float("inf")
        self._returns: Float[np.ndarray, " m"] | None = None
        self._upright = float("nan")
        self._first: tuple[float, int] | None = None

    def hear(
        self,
        steps: int,
        total: int,
        returns: Float[np.ndarray, " m"] | None,
        upright: float,
        now: float | None = None,
    ) -> None:
        """After an update; the first one, which compiles, does not count."""
        now = time.monotonic() if now is None else now
        if returns is not None:
            self._returns, self._upright = returns, upright
        if self._first is None:
            self._first = (now, steps)
        elif now > self._first[0]:
            self.speed = (steps - self._first[1]) / (now - self._first[0])
            self.remaining = (total - steps) / self.speed if self.speed else float("inf")

    def text(self) -> str:
        """Steps per second, and what the latest episodes earned."""
        parts = [f"{self.speed:,.0f} steps/s"] if self.speed else []
        if self._returns is not None:
            earned = zip(self.objectives, self._returns, strict=True)
            parts += [f"{name} {value:,.0f}" for name, value in earned]
            parts += [f"upright {self._upright:.0%}"]
        return ", ".join(parts)

    def clock(self) -> str:
        if not np.isfinite(self.remaining):
            return "?"
        seconds = round(self.remaining)
        return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
