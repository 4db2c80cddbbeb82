"""The objectives of the literature by name: constructors over F and G."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from aetdice.errors import InputError
from aetdice.objectives.aggregations import Aggregation, AlphaFair, Linear, Separable
from aetdice.objectives.fairness import Continuation, Fair
from aetdice.objectives.objective import Objective
from aetdice.objectives.parameters import Parameter, parameter, text
from aetdice.objectives.utilities import (
    AlphaFairUtility,
    Chain,
    CobbDouglas,
    Exponential,
    Identity,
    Scaled,
    Select,
    Stack,
    Threshold,
)


def lsr(weights: Parameter = 1.0) -> Objective:
    """Linear scalarised return w·E[R]; without weights the plain sum."""
    _require_finite("weights", weights)
    return Objective(Identity(), Linear(weights), "LSR")


def ser(
    weights: Parameter = 1.0, threshold: Parameter = 1.0, continuation: Continuation = "quadratic"
) -> Objective:
    """Scalarised expected return Σ w_i log E[R_i]; the log is continued below the threshold."""
    _require_positive("weights", weights)
    return Objective(Identity(), AlphaFair(_fair(1.0, threshold, continuation), weights), "SER")


def esr(
    weights: Parameter = 1.0, threshold: Parameter = 1.0, continuation: Continuation = "quadratic"
) -> Objective:
    """Expected scalarised return E[Σ w_i log R_i]; the log is continued below the threshold."""
    _require_finite("weights", weights)
    return Objective(AlphaFairUtility(_fair(1.0, threshold, continuation)), Linear(weights), "ESR")


def bsr(
    alpha: Parameter,
    weights: Parameter = 1.0,
    threshold: Parameter = 1.0,
    aggregation_threshold: Parameter = 1.0,
    continuation: Continuation = "quadratic",
) -> Objective:
    """Balanced scalarised return Σ w_i u_α(E[u_{1-α}(R_i)]) (paper: eq:bsr).

    `bsr(0)` is ESR and `bsr(1)` is SER, exactly (D12 of docs/paper.md). The printed family tends to
    ESR - m and to Σ log(E[R_i] - 1) at its ends instead, because u_0(x) = x - 1; so a sweep over a
    traced α jumps there, and only there. `threshold` is F's, `aggregation_threshold` G's.
    """
    _require("alpha", alpha, lambda a: (a >= 0) & (a <= 1), "between 0 and 1")
    _require_positive("weights", weights)
    exact = parameter(alpha)
    one = jnp.ones((), exact.dtype) if isinstance(exact, jax.Array) else np.float64(1.0)
    utility = AlphaFairUtility(
        _fair(one - exact, threshold, continuation), offset=(exact == 1).astype(exact.dtype)
    )
    aggregation = AlphaFair(
        _fair(exact, aggregation_threshold, continuation), weights, offset=(exact == 0).astype(exact.dtype)
    )
    return Objective(utility, aggregation, "BSR", {"alpha": exact})


def convex(
    scale: Parameter = 50.0, cap: Parameter = 20.0, aggregation: Aggregation | None = None
) -> Objective:
    """G(E[exp(R_i / scale)]): rewards excellence in an objective; G is the sum unless given."""
    _require_positive("scale", scale)
    _require_positive("cap", cap)
    return Objective(Exponential(scale, cap), aggregation or Linear(), "convex")


def cobb_douglas(rho: Parameter = 0.5, epsilon: Parameter = 1e-3, delta: Parameter = 1e-3) -> Objective:
    """E[R_0^ρ / R_1^{1-ρ}]: efficiency of gain R_0 against cost R_1, per episode."""
    return Objective(_efficiency(rho, epsilon, delta), Linear(), "Cobb-Douglas", {"rho": parameter(rho)})


def safe_cobb_douglas(
    rho: Parameter = 0.5,
    horizon: float = 500.0,
    safety: float = 0.8,
    efficiency_scale: Parameter = 1.0,
    threshold: Parameter = 0.02,
    epsilon: Parameter = 1e-3,
    delta: Parameter = 1e-3,
    log_inside: bool = False,
) -> Objective:
    """log E[R_0^ρ / R_1^{1-ρ}] + log E[(R_2 - safety·H) / H]: efficiency that stays safe.

    Both utilities are of order one (D16 of docs/paper.md): the efficiency times `efficiency_scale`,
    the safety margin divided by the horizon. `log_inside` moves the logarithm of the safety margin inside its
    expectation, log E[…] + E[log((R_2 - safety·H) / H)], as the paper's text has it.
    """
    _require_positive("horizon", horizon)
    _require_positive("efficiency_scale", efficiency_scale)
    log = _fair(1.0, threshold, "quadratic")
    efficiency = Chain((Select((0, 1)), _efficiency(rho, epsilon, delta), Scaled(efficiency_scale)))
    margin = Chain((Select((2,)), Threshold(safety * horizon, horizon)))
    shown = {"rho": parameter(rho)}
    if not log_inside:
        return Objective(Stack((efficiency, margin)), AlphaFair(log), "safe Cobb-Douglas", shown)
    inside = Stack((efficiency, Chain((margin, AlphaFairUtility(log)))))
    apart = Separable((AlphaFair(log), Linear()))
    return Objective(inside, apart, "safe Cobb-Douglas, log inside", shown)


def _efficiency(rho: Parameter, epsilon: Parameter, delta: Parameter) -> CobbDouglas:
    _require("rho", rho, lambda r: (r >= 0) & (r <= 1), "between 0 and 1")
    _require_positive("epsilon", epsilon)
    _require_positive("delta", delta)
    return CobbDouglas(rho, epsilon, delta)


def _fair(a: Parameter, threshold: Parameter, continuation: Continuation) -> Fair:
    _require_positive("threshold", threshold)
    if continuation not in ("quadratic", "linear"):
        raise InputError(f"unknown continuation {continuation!r}; known: quadratic, linear")
    return Fair(a, threshold, continuation)


def _require(name: str, value: Parameter, holds: Callable[[np.ndarray], np.ndarray], words: str) -> None:
    """Check a concrete parameter; a traced one is the caller's responsibility."""
    if isinstance(value, jax.core.Tracer):
        return
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array)) or not np.all(holds(array)):
        raise InputError(f"{name} must be {words}, not {text(array)}")


def _require_finite(name: str, value: Parameter) -> None:
    _require(name, value, lambda v: np.isfinite(v), "finite")


def _require_positive(name: str, value: Parameter) -> None:
    _require(name, value, lambda v: v > 0, "positive")


OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "lsr": lsr,
    "ser": ser,
    "esr": esr,
    "bsr": bsr,
    "convex": convex,
    "cobb-douglas": cobb_douglas,
    "safe-cobb-douglas": safe_cobb_douglas,
}
"""Every named objective; the command line offers these."""
