"""Is a user's F finite and smooth, and G concave, where the returns at hand lie?"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify
from jaxtyping import Array, Float

from aetdice.errors import InputError
from aetdice.objectives.aggregations import ClosedAggregation, multiplier
from aetdice.objectives.objective import Objective
from aetdice.objectives.precision import in_float64

SEGMENTS = 64
POINTS = 33
BISECTIONS = 40


def check_objective(objective: Objective, returns: Float[np.ndarray, "episodes m"]) -> None:
    """Raise `InputError`, naming the place, unless J is well posed on the range of `returns`.

    F must be finite and smooth on the box the returns span (0 included: F(0) enters the
    objective); G finite, smooth and concave on the box of the utilities; increasing where it
    has a closed conjugate, whose multipliers are positive.
    """
    if returns.shape[0] == 0:
        raise InputError("cannot check an objective on an empty set of episodes")
    corners = np.stack([np.minimum(returns.min(axis=0), 0), np.maximum(returns.max(axis=0), 0)])
    check_shapes(objective, corners[0])
    segments = _segments(corners)
    utilities = _check_function(objective.utility, segments, "F", "R")
    flat = utilities.reshape(-1, utilities.shape[-1])
    slack_segments = _segments(np.stack([flat.min(axis=0), flat.max(axis=0)]))
    values = _check_function(objective.aggregation, slack_segments, "G", "k")
    _check_concave(values[..., 0], slack_segments)
    if isinstance(objective.aggregation, ClosedAggregation):
        _check_increasing(objective.aggregation, slack_segments)


def check_shapes(objective: Objective, example: Float[np.ndarray, " m"]) -> None:
    """Raise `InputError` unless F takes such returns and G gives one number."""
    try:
        k = in_float64(objective.utility)(example)
        value = in_float64(objective.aggregation)(k)
        _check_indices(objective.utility, example)
        _check_indices(objective.aggregation, k)
    except InputError:
        raise
    except (ValueError, TypeError, IndexError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the objective does not fit {example.size} objectives: {reason}") from error
    if k.ndim != 1:
        raise InputError(f"F must give a vector of utilities, not an array of shape {k.shape}")
    if value.ndim != 0:
        raise InputError(f"G must give one number, not an array of shape {value.shape}")


def _check_indices(function: Callable[[Array], Array], example: Float[np.ndarray, " size"]) -> None:
    """JAX clamps an index beyond the last entry; a user's `r[7]` of two returns is a mistake."""
    error = _index_error(function, jnp.asarray(example.astype(np.float32))).get()
    if error:
        raise IndexError(error.splitlines()[0])


@eqx.filter_jit
def _index_error(function: Callable[[Array], Array], example: Array) -> checkify.Error:
    return checkify.checkify(lambda x: function(x), errors=checkify.index_checks)(example)[0]


def _segments(corners: Float[np.ndarray, "2 size"]) -> Float[np.ndarray, "segments points size"]:
    """Axis-parallel and slanted segments through the box, evenly subdivided; reproducible."""
    rng = np.random.default_rng(0)
    low, high = corners
    start, end = low + (high - low) * rng.random((2, SEGMENTS, low.size))
    start[0], end[0] = low, high
    for i in range(SEGMENTS // 2):
        axis = i % low.size
        end[i + 1] = start[i + 1]
        start[i + 1, axis], end[i + 1, axis] = low[axis], high[axis]
    steps = np.linspace(0, 1, POINTS)[:, None]
    return start[:, None] + steps * (end - start)[:, None]


def _check_function(
    function: Callable[[Array], Array],
    segments: Float[np.ndarray, "segments points size"],
    symbol: str,
    variable: str,
) -> Float[np.ndarray, "segments points out"]:
    """Finite values and slopes everywhere, and no jump of either along any segment."""

    start, end = segments[:, 0], segments[:, -1]
    steps = np.broadcast_to(np.linspace(0, 1, POINTS), segments.shape[:2])
    samples, jumps = in_float64(_examine)(function, start, end, steps)
    for which, kind in enumerate(("value", "slope")):
        infinite = np.argwhere(~np.isfinite(samples[which]))
        if infinite.size:
            segment, point, _ = infinite[0]
            raise InputError(
                f"{symbol} has no finite {kind} at {variable}={_vector(segments[segment, point])}"
            )
        jump, left, nearby = (each[which] for each in jumps)
        spread = np.maximum(np.abs(samples[which]).max(axis=(1, 2)), nearby) + 1e-12
        worst = int(np.argmax(jump / spread))
        if jump[worst] > 1e-5 * spread[worst]:
            place = start[worst] + left[worst] * (end - start)[worst]
            raise InputError(
                f"{symbol} is not smooth at {variable}={_vector(place)}: its {kind} jumps there; "
                "use a smooth version of it"
            )
    return samples[0]


def _along(function: Callable[[Array], Array], start: Array, end: Array, steps: Array) -> tuple[Array, Array]:
    """Values and directional slopes at steps from 0 to 1 along each segment."""

    def at(start: Array, end: Array, step: Array) -> tuple[Array, Array]:
        return jax.jvp(
            lambda s: jnp.atleast_1d(function(start + s * (end - start))), (step,), (jnp.ones_like(step),)
        )

    return jax.vmap(jax.vmap(at, in_axes=(None, None, 0)))(start, end, steps)


def _examine(
    function: Callable[[Array], Array], start: Array, end: Array, steps: Array
) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
    """Values and slopes at the steps, and the largest jumps of either: one program, compiled once."""
    samples = _along(function, start, end, steps)
    return samples, _largest_jumps(function, start, end, samples)


def _largest_jumps(
    function: Callable[[Array], Array], start: Array, end: Array, samples: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """Bisect each segment towards its largest change; a jump is one that does not shrink.

    Gives, for values and slopes, the change left over, where, and the size of the function there: a
    narrow bend may hide between the samples.
    """
    count = start.shape[0]
    twice = jnp.concatenate([start, start]), jnp.concatenate([end, end])

    def halve(left: Array, width: Array) -> tuple[Array, tuple[Array, Array]]:
        three = left[:, None] + width * jnp.arange(3, dtype=left.dtype)[None]
        values, slopes = _along(function, *twice, three)
        found = jnp.concatenate([values[:count], slopes[count:]])
        halves = jnp.abs(jnp.diff(found, axis=1)).max(axis=-1)
        left = jnp.where(halves[:, 1] > halves[:, 0], left + width, left)
        return left, (halves.max(axis=1), jnp.abs(found).max(axis=(1, 2)))

    changes = jnp.abs(jnp.diff(jnp.concatenate(samples), axis=1)).max(axis=-1)
    left = jnp.argmax(changes, axis=1).astype(start.dtype) / (POINTS - 1)
    widths = 0.5 ** jnp.arange(1, BISECTIONS + 1, dtype=left.dtype) / (POINTS - 1)
    left, (changes, sizes) = jax.lax.scan(halve, left, widths)
    middle, last = changes[BISECTIONS // 2], changes[-1]
    # A steep bend still shrinks by half at every bisection; a jump stays.
    jump = jnp.where(last > 0.01 * middle, last, 0)
    return jump.reshape(2, count), left.reshape(2, count), sizes[-1].reshape(2, count)


def _check_concave(
    values: Float[np.ndarray, "segments points"], segments: Float[np.ndarray, "segments points size"]
) -> None:
    """Midpoint concavity of G on every dyadic piece of every segment."""
    scale = 1 + np.abs(values).max()
    for gap in (POINTS // 2, POINTS // 4, POINTS // 8, 1):
        excess = (values[:, : -2 * gap] + values[:, 2 * gap :]) / 2 - values[:, gap:-gap]
        segment, point = np.unravel_index(int(np.argmax(excess)), excess.shape)
        if excess[segment, point] > 1e-10 * scale:
            a, b = segments[segment, point], segments[segment, point + 2 * gap]
            raise InputError(f"G is not concave between k={_vector(a)} and {_vector(b)}")


def _check_increasing(
    aggregation: ClosedAggregation, segments: Float[np.ndarray, "segments points size"]
) -> None:
    points = segments.reshape(-1, segments.shape[-1])
    slopes = in_float64(_slopes)(aggregation, points)
    if np.any(slopes <= 0):
        point, entry = np.argwhere(slopes <= 0)[0]
        raise InputError(
            f"G does not increase with k{entry} at k={_vector(points[point])}, "
            "but its conjugate needs positive multipliers"
        )


def _slopes(aggregation: ClosedAggregation, points: Array) -> Array:
    return jax.vmap(lambda k: multiplier(aggregation, k))(points)


def _vector(values: Float[np.ndarray, " size"]) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in values) + ")"
