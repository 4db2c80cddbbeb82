"""What nearest neighbours would do: a plain rule that cloning should not fall behind."""

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.spatial import cKDTree

from aetdice.data.episodes import Episodes
from aetdice.data.successors import frames_before

ASKED = 2_000
"""Steps whose actions are predicted."""
KNOWN = 50_000
"""Steps that may be neighbours."""
LOOKED_AT = 20
"""Nearest steps, of which those of the same episode do not count."""


def near_steps(episodes: Episodes) -> tuple[Int[np.ndarray, " asked"], Int[np.ndarray, " asked"]]:
    """Some steps, and for each one that was taken near it, drawn from another episode's."""
    rng = np.random.default_rng(0)
    asked, known = (rng.permutation(episodes.steps)[:count] for count in (ASKED, KNOWN))
    flat = episodes.observations.reshape(len(episodes.observations), -1)
    there, places = (flat[frames_before(episodes)[rows]].astype(np.float64) for rows in (asked, known))
    spread = places.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    near = known[cKDTree(places / spread).query(there / spread, min(LOOKED_AT, len(known)))[1]]
    near = near.reshape(len(asked), -1)
    episode = np.repeat(np.arange(len(episodes)), episodes.lengths)
    others = episode[near] != episode[asked][:, None]
    drawn = np.argmax(rng.random(near.shape) * others, axis=1)
    found = others.any(axis=1)
    return asked[found], near[np.arange(len(asked)), drawn][found]


def misses(wanted: Shaped[np.ndarray, "k ..."], drawn: Shaped[np.ndarray, "k ..."]) -> float:
    """How far drawn actions are from those taken: the share that differs, or the mean squared difference."""
    if np.issubdtype(wanted.dtype, np.integer):
        return float(np.mean(wanted != drawn))
    apart = (wanted - drawn).reshape(len(wanted), -1)
    spread: Float[np.ndarray, " a"] = wanted.reshape(len(wanted), -1).std(axis=0)
    return float(np.mean((apart / np.where(spread > 1e-9, spread, 1.0)) ** 2))
