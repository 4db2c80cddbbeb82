"""The optimiser is Adam on a cosine schedule, as optax has it."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from aetdice.algorithms.optimiser import cosine, descend, no_moments, pace

STEPS, RATE = 50, 3e-2


def test_descent_is_that_of_adam_with_a_cosine_schedule():
    start = {"w": jnp.asarray([[0.3, -2.0], [0.0, 1e-3]]), "b": jnp.asarray([5.0])}
    schedule = optax.cosine_decay_schedule(RATE, STEPS)
    theirs = optax.adam(schedule)
    gradient = jax.grad(lambda w: jnp.sum(jnp.square(w["w"])) * w["b"][0] + jnp.sum(jnp.cos(3 * w["b"])))

    def ours(both, step):
        weights, moments = both
        now = pace(RATE * cosine(step / STEPS), step)
        return descend(weights, gradient(weights), moments, now), weights

    def reference(both, _):
        weights, state = both
        change, state = theirs.update(gradient(weights), state)
        return (optax.apply_updates(weights, change), state), weights

    steps = jnp.arange(STEPS, dtype=jnp.float32)
    (end, _), course = jax.lax.scan(ours, (start, no_moments(start)), steps)
    with jax.numpy_dtype_promotion("standard"):  # optax counts its updates in integers
        _, expected = jax.lax.scan(reference, (start, theirs.init(start)), steps)
    for name in start:
        np.testing.assert_allclose(course[name], expected[name], rtol=1e-4, atol=1e-5)
        assert np.abs(end[name] - start[name]).max() > 0.1
