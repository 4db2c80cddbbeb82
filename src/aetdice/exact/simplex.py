"""Maximise a smooth concave function over convex combinations of a few points."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

Vector = Float[np.ndarray, "n"]
SmoothFunction = Callable[[Vector], tuple[float, Vector, Float[np.ndarray, "n n"]]]
"""x ↦ (value, gradient, Hessian)."""

FIRST, LAST, GROWTH = 1e2, 1e14, 10.0


def maximise_on_simplex(
    function: SmoothFunction, points: Float[np.ndarray, "j n"], start: Float[np.ndarray, " j"]
) -> Float[np.ndarray, " j"]:
    """argmax_λ f(Σ λ_j x_j) over the simplex: a log-barrier Newton method, all λ_j > 0.

    Each step solves for relative changes λ_j(1 + δ_j), in which the barrier's curvature is the
    identity, so nearly empty vertices do no harm to the conditioning.
    """
    weights = 0.9 * start + 0.1 / start.size
    weights /= weights.sum()
    scale = 1.0 / max(1e-12, float(np.abs(function(weights @ points)[1] @ points.T).max()))
    sharpness = FIRST * scale
    while sharpness <= LAST * scale:
        weights = _centre(function, points, weights, sharpness)
        sharpness *= GROWTH
    return weights


def _centre(
    function: SmoothFunction,
    points: Float[np.ndarray, "j n"],
    weights: Float[np.ndarray, " j"],
    sharpness: float,
) -> Float[np.ndarray, " j"]:
    """Newton's method on sharpness · f(Σ λ_j x_j) + Σ log λ_j."""
    size = weights.size
    for _ in range(50):
        value, gradient, hessian = function(weights @ points)
        # Along the simplex only differences count, and centred points have none to cancel.
        scaled = weights[:, None] * (points - weights @ points)
        ascent = sharpness * scaled @ gradient + 1
        curvature = np.eye(size) - sharpness * scaled @ hessian @ scaled.T
        system = np.block([[curvature, weights[:, None]], [weights[None, :], np.zeros((1, 1))]])
        change = np.linalg.solve(system, np.append(ascent, 0.0))[:size]
        decrement = float(change @ ascent)
        if decrement < 1e-10:
            break
        step = min(1.0, 0.99 / max(1e-12, -float(change.min())))
        merit = sharpness * value + np.log(weights).sum()
        while step > 1e-12:
            trial = weights * (1 + step * change)
            trial /= trial.sum()
            reached = sharpness * function(trial @ points)[0] + np.log(trial).sum()
            if reached >= merit + 1e-4 * step * decrement - 1e-13 * abs(merit):
                break
            step /= 2
        else:
            break
        weights = trial
    return weights
