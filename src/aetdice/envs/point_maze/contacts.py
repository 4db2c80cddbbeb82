"""A sphere sliding on a plane among square blocks, stepped as MuJoCo steps it.

The ball has two slide joints with damping and a force on each. Blocks fill the cells of a unit
grid; each is a box of its own, so that a ball rolling along a wall meets two of them at a seam.
Contacts are frictionless and soft: MuJoCo's default impedance and reference, Euler integration
with implicit damping.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

RADIUS = 0.1
MASS = 4 / 3 * math.pi * RADIUS**3 * 1000
DAMPING = 1.0
STEP = 0.01
"""Seconds."""
LEAST_IMPEDANCE, IMPEDANCE, WIDTH = 0.9, 0.95, 0.001
"""`solimp`: how far acceleration follows the reference, from first touch to WIDTH metres deeper."""
STIFFNESS = 1 / (IMPEDANCE * 0.02) ** 2
RESISTANCE = 2 / (IMPEDANCE * 0.02)
"""`solref` 0.02 1: critically damped with a time constant of 0.02 s."""
SUBSETS = np.array(list(itertools.product((False, True), repeat=3)))
"""Which of the three possible contacts push."""


def slide(
    position: Float[Array, " 2"],
    velocity: Float[Array, " 2"],
    force: Float[Array, " 2"],
    blocks: Bool[np.ndarray, "rows columns"],
    margin: float,
) -> tuple[Float[Array, " 2"], Float[Array, " 2"]]:
    """Position and velocity STEP seconds later.

    v' = v + h M a / (M + h d), x' = x + h v', where a includes the contacts' push.
    """
    free = (force - DAMPING * velocity) / MASS
    normals, gaps = nearest_blocks(position, blocks)
    acceleration = constrained_acceleration(free, velocity, normals, gaps - margin)
    velocity = velocity + STEP * MASS / (MASS + STEP * DAMPING) * acceleration
    return position + STEP * velocity, velocity


def nearest_blocks(
    position: Float[Array, " 2"], blocks: Bool[np.ndarray, "rows columns"]
) -> tuple[Float[Array, "3 2"], Float[Array, " 3"]]:
    """The unit normals and the gaps of the blocks that can touch the ball; no block, infinite gap.

    Of the four cells around the nearest corner of the grid the ball is in one, and a block in any
    other cell is at least half a cell from its centre. The grid is centred on the origin.
    """
    rows, columns = blocks.shape
    point = position + jnp.asarray([columns / 2, rows / 2], position.dtype)
    cell = jnp.floor(point)
    side = jnp.where(point - cell < 0.5, -1, 1).astype(position.dtype)

    def block(offset: Float[Array, " 2"]) -> tuple[Float[Array, " 2"], Float[Array, ""]]:
        corner = cell + side * offset
        column, height = corner.astype(jnp.int32)
        solid = jnp.asarray(blocks)[rows - 1 - height, column]
        away = point - jnp.clip(point, corner, corner + 1)
        distance = jnp.sqrt(jnp.sum(away**2))
        return away / jnp.where(solid, distance, 1), jnp.where(solid, distance - RADIUS, jnp.inf)

    return jax.vmap(block)(jnp.asarray([(1, 0), (0, 1), (1, 1)], position.dtype))


def constrained_acceleration(
    free: Float[Array, " 2"],
    velocity: Float[Array, " 2"],
    normals: Float[Array, "3 2"],
    depths: Float[Array, " 3"],
) -> Float[Array, " 2"]:
    """argmin_a ½M|a - free|² + Σ_i ½D_i min(0, n_i·a - reference_i)² over the touching blocks.

    A negative depth touches. Given which blocks push, the minimum is a 2×2 linear system; of the
    eight subsets the right one is that whose pushing blocks, and no others, fall short of their
    reference. It is taken as the least violation, so that a tie in rounding does no harm.
    """
    nx, ny = normals.T
    touching = depths < 0
    depths = jnp.where(touching, depths, 0)
    strength = impedance(depths)
    reference = -RESISTANCE * along(normals, velocity) - STIFFNESS * strength * depths
    weight = jnp.where(touching, MASS * strength / (1 - strength), 0)

    def solve(pushing: Bool[Array, " 3"]) -> tuple[Float[Array, " 2"], Float[Array, ""]]:
        """The acceleration if just these push, and by how much that is inconsistent."""
        pull = jnp.where(pushing, weight, 0)
        xx, xy, yy = (jnp.sum(pull * product) for product in (nx * nx, nx * ny, ny * ny))
        x, y = (MASS * a + jnp.sum(pull * reference * n) for a, n in zip(free, (nx, ny), strict=True))
        xx, yy = xx + MASS, yy + MASS
        acceleration = jnp.stack([yy * x - xy * y, xx * y - xy * x]) / (xx * yy - xy**2)
        excess = along(normals, acceleration) - reference
        violation = jnp.where(pushing, excess, -excess)
        return acceleration, jnp.max(jnp.where(touching, violation, -jnp.inf))

    accelerations, violations = jax.vmap(solve)(jnp.asarray(SUBSETS))
    return accelerations[jnp.argmin(violations)]


def along(normals: Float[Array, "n 2"], vector: Float[Array, " 2"]) -> Float[Array, " n"]:
    """n_i·v, summed by hand: an accelerator's matrix product would round it to fewer digits."""
    return jnp.sum(normals * vector[None], axis=1)


def impedance(depth: Float[Array, " n"]) -> Float[Array, " n"]:
    """MuJoCo's smooth step from LEAST_IMPEDANCE at depth 0 to IMPEDANCE at WIDTH."""
    share = jnp.minimum(jnp.abs(depth) / WIDTH, 1)
    rise = jnp.where(share <= 0.5, 2 * share**2, 1 - 2 * (1 - share) ** 2)
    return LEAST_IMPEDANCE + rise * (IMPEDANCE - LEAST_IMPEDANCE)
