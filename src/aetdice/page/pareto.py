"""Which policies are on the Pareto front of expected returns, and its hypervolume."""

import numpy as np
from jaxtyping import Bool, Float

Means = Float[np.ndarray, "policies m"]
MOST_OBJECTIVES = 3
"""With more of them a hypervolume says little, and takes long."""


def on_front(means: Means) -> Bool[np.ndarray, " policies"]:
    """Whether no other policy is at least as good in every objective and better in one."""
    at_least = np.all(means[:, None] >= means[None], axis=-1)
    better = np.any(means[:, None] > means[None], axis=-1)
    return ~np.any(at_least & better, axis=0)


def hypervolume(means: Means, reference: Float[np.ndarray, " m"]) -> float | None:
    """What the policies dominate above the reference; None without moocore, or where it says little."""
    if len(means) < 2 or not 2 <= means.shape[1] <= MOST_OBJECTIVES:
        return None
    try:
        import moocore
    except ImportError:
        return None
    above = means[np.all(means > reference, axis=1)]
    return float(moocore.hypervolume(above, ref=reference, maximise=True)) if len(above) else 0.0
