"""What results keep of episodes on a body: scores, shares of behaviours, who stays up, some ways."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from aetdice.objectives import Objective
from aetdice.studies.bodies.watch import Walked
from aetdice.studies.members import rounded

SHOWN = 30
"""Episodes of each seed whose way is kept."""
NARROW = float(np.tan(np.pi / 6))
"""Within 30° of an axis."""
BEHAVIOURS = ("A", "B", "C", "other")
"""Of Ant: along x, along y, between them, anywhere else."""


def record(walked: Walked, objectives: Mapping[str, Objective], body: str) -> dict[str, Any]:
    """Episodes under every objective, and what they look like."""
    return {
        "episodes": len(walked.returns),
        "scores": scores_of(walked.returns, objectives),
        "mean_returns": walked.returns.mean(axis=0).tolist(),
        "upright": float(walked.upright.mean()),
        "shares": shares(walked.ends) if body == "ant" else None,
        "lengths": walked.lengths.tolist(),
        "ways": [rounded(way) for way in walked.ways[:SHOWN]],
    }


def scores_of(
    returns: Float[np.ndarray, "episodes m"], objectives: Mapping[str, Objective]
) -> dict[str, dict[str, float]]:
    """Each objective's value with its interval over episodes."""
    found = {name: objective.score(returns, jax.random.key(0)) for name, objective in objectives.items()}
    return {name: {"value": s.value, "low": s.low, "high": s.high} for name, s in found.items()}


def behaviours_of(ends: Float[np.ndarray, "n 2"]) -> list[str]:
    """Where each Ant went: A along x, B along y (within 30°), C between them, or anywhere else."""
    x, y = ends.T
    along_x, along_y = (x > 0) & (np.abs(y) <= NARROW * x), (y > 0) & (np.abs(x) <= NARROW * y)
    between = (x > 0) & (y > 0)
    return [BEHAVIOURS[i] for i in np.select([along_x, along_y, between], [0, 1, 2], 3)]


def shares(ends: Float[np.ndarray, "n 2"]) -> dict[str, float]:
    """How often each behaviour is shown."""
    found = behaviours_of(ends)
    return {name: found.count(name) / len(found) for name in BEHAVIOURS}
