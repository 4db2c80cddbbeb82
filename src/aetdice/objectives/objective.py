"""J = G(E[F(R)]): an objective scores a set of episodes' returns."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from aetdice.errors import InputError
from aetdice.objectives.aggregations import Aggregation, as_aggregation
from aetdice.objectives.parameters import Parameter, text
from aetdice.objectives.precision import in_float64
from aetdice.objectives.utilities import Utility, as_utility

Regime = Literal["linear", "SER", "ESR", "AET"]


class Score(NamedTuple):
    """An objective's value on a set of episodes, with a bootstrap interval."""

    value: float
    low: float
    high: float
    level: float
    episodes: int


class Objective(eqx.Module):
    """J(π) = G(E[F(R)]) (paper: eq:AET-obj); F and G may be bare JAX functions.

    The parameters inside are array leaves, so `jax.vmap` over them is one program.
    """

    utility: Utility = eqx.field(converter=as_utility)
    aggregation: Aggregation = eqx.field(converter=as_aggregation)
    label: str = eqx.field(static=True, default="custom")
    shown: dict[str, Parameter] = eqx.field(default_factory=dict)
    """Parameters that stand beside the label in the name, such as BSR's α."""

    def expected_utilities(
        self,
        returns: Float[Array, "episodes m"],
        probabilities: Float[Array, " episodes"] | None = None,
    ) -> Float[Array, " n"]:
        """k = E[F(R)], each episode counting equally or with its probability."""
        utilities = jax.vmap(self.utility)(returns)
        return jnp.mean(utilities, axis=0) if probabilities is None else probabilities @ utilities

    def __call__(
        self,
        returns: Float[Array, "episodes m"],
        probabilities: Float[Array, " episodes"] | None = None,
    ) -> Float[Array, ""]:
        """J on the episodes' returns."""
        return self.aggregation(self.expected_utilities(returns, probabilities))

    def score(
        self,
        returns: Float[Array, "episodes m"] | Float[np.ndarray, "episodes m"],
        key: PRNGKeyArray,
        *,
        resamples: int = 1000,
        level: float = 0.95,
    ) -> Score:
        """J with a percentile bootstrap interval over episodes."""
        returns = jnp.asarray(returns, dtype=float)
        if returns.ndim != 2 or not np.all(np.isfinite(np.asarray(returns))):
            raise InputError(f"returns must be finite, of shape (episodes, objectives), not {returns.shape}")
        if returns.shape[0] == 0:
            raise InputError("cannot score an empty set of episodes")
        if resamples < 1:
            raise InputError(f"an interval needs at least one resample, not {resamples}")
        if not 0 < level < 1:
            raise InputError(f"the level of an interval lies between 0 and 1, not at {level}")
        utilities = _utilities(self.utility, returns)
        mean, means = _mean_and_resampled(utilities, key, resamples)
        value, low, high = _value_and_interval(self.aggregation, mean, means, level)
        return Score(float(value), float(low), float(high), level, returns.shape[0])

    def regime(self, objectives: int) -> Regime:
        """Which of the four regimes this is, by whether F and G are affine on R^m and R^n."""
        utilities = np.size(in_float64(self.utility)(np.zeros(objectives)))
        linear_utility = _is_affine(self.utility, objectives)
        linear_aggregation = _is_affine(self.aggregation, utilities)
        if linear_utility:
            return "linear" if linear_aggregation else "SER"
        return "ESR" if linear_aggregation else "AET"

    @property
    def name(self) -> str:
        """The full definition, thresholds and continuations included."""
        return f"{self.short_name}: F = {self.utility.name}; G = {self.aggregation.name}"

    @property
    def short_name(self) -> str:
        """The label with its parameters, such as BSR[alpha=0.5]."""
        shown = ", ".join(f"{name}={text(value)}" for name, value in self.shown.items())
        return f"{self.label}[{shown}]" if shown else self.label


@eqx.filter_jit
def _utilities(utility: Utility, returns: Float[Array, "episodes m"]) -> Float[Array, "episodes n"]:
    return jax.vmap(utility)(returns)


@eqx.filter_jit
def _mean_and_resampled(
    utilities: Float[Array, "episodes n"], key: PRNGKeyArray, resamples: int
) -> tuple[Float[Array, " n"], Float[Array, "resamples n"]]:
    """The mean, and those over episodes drawn with replacement; apart from F and G: compiled once for all."""
    episodes = utilities.shape[0]

    def resample(key: PRNGKeyArray) -> Float[Array, " n"]:
        return jnp.mean(utilities[jax.random.randint(key, (episodes,), 0, episodes)], axis=0)

    means = jax.lax.map(resample, jax.random.split(key, resamples), batch_size=32)
    return jnp.mean(utilities, axis=0), means


@eqx.filter_jit
def _value_and_interval(
    aggregation: Aggregation,
    mean: Float[Array, " n"],
    resampled: Float[Array, "resamples n"],
    level: float,
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    tail = (1 - level) / 2
    values = jax.vmap(aggregation)(resampled)
    low, high = jnp.quantile(values, jnp.asarray([tail, 1 - tail], dtype=values.dtype))
    return aggregation(mean), low, high


def _is_affine(function: Callable[[Array], Array], size: int) -> bool:
    """f(x + y) - f(x) - f(y) + f(0) = 0 at points of both signs and several magnitudes."""
    rng = np.random.default_rng(0)
    scales = np.array([0.1, 1.0, 10.0, 100.0, 1000.0])[:, None, None]
    x, y = scales * rng.uniform(-1, 1, (2, 5, 8, size))
    evaluate = in_float64(eqx.filter_vmap(function))
    f_x, f_y, f_both, f_zero = (
        np.asarray(evaluate(points.reshape(-1, size))) for points in (x, y, x + y, np.zeros_like(x))
    )
    if not all(np.all(np.isfinite(values)) for values in (f_x, f_y, f_both, f_zero)):
        return False
    size_of_f = 1 + np.abs(f_x) + np.abs(f_y) + np.abs(f_both) + np.abs(f_zero)
    return bool(np.all(np.abs(f_both - f_x - f_y + f_zero) <= 1e-9 * size_of_f))
