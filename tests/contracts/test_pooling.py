"""What follows a state and action may depend on a clock that no observation shows."""

import jax.numpy as jnp
import numpy as np
import pytest
from support.problems import random_tables

from aetdice import Episodes, bsr, enumerate_space, estimate
from aetdice.estimation.acting import Augmented, DiscreteActing
from aetdice.estimation.counted_model import CountedModel
from aetdice.estimation.pooling import depends_on_time
from aetdice.exact import uniform_policy

OBJECTIVE = bsr(0.5)
LONGEST = 6


class Mostly(DiscreteActing):
    """The second action with a probability, whatever it sees."""

    def __init__(self, share: float) -> None:
        self.share = share

    def probabilities(self, states: Augmented):
        assert states.observations.shape[1] == 1
        return np.repeat([[1 - self.share, self.share]], len(states.time), axis=0)


def shifts(count: int, kind: str, share: float = 0.5, seed: int = 0) -> Episodes:
    """Shifts of two to six steps, or of six steps that bring more and more; or neither."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, LONGEST + 1, count) if kind == "ends" else np.full(count, LONGEST)
    steps, over = int(lengths.sum()), np.full(count, kind == "ends")
    actions = (rng.random(steps) < share).astype(int)
    rewards = np.stack([actions + 1.0, 2.0 - actions], axis=1) + rng.integers(0, 3, (steps, 2))
    if kind == "rewards":
        rewards *= 1 + np.concatenate([np.arange(length) for length in lengths])[:, None]
    return Episodes(
        rng.integers(0, 3, (steps + count, 1)), actions, rewards, lengths, over, ~over, ("a", "b")
    )


@pytest.mark.parametrize("kind", ["ends", "rewards"])
def test_a_hidden_clock_is_found_and_told_apart(kind):
    log = shifts(600, kind)
    assert depends_on_time(log)
    assert not depends_on_time(shifts(600, "neither"))
    seen, kept = log.select(np.arange(500)), log.select(np.arange(500, 600))
    for share in (0.5, 1.0):
        truth = float(OBJECTIVE(jnp.asarray(shifts(40_000, kind, share, seed=1).returns)))
        found = estimate(Mostly(share), kept, OBJECTIVE, twin=Mostly(0.5), seen=seen, horizon=LONGEST)
        assert found.support.word == "supported"
        assert abs(found.value - truth) < 2 * found.interval.half
        if kind == "ends":
            pooled = CountedModel(log, LONGEST).play(Mostly(share), 10_000, 0).returns
            assert abs(float(OBJECTIVE(jnp.asarray(pooled))) - truth) > 4 * found.interval.half


def test_no_clock_is_found_where_there_is_none():
    for seed in range(20):
        space = enumerate_space(random_tables(seed, horizon=4, ends=True).momdp())
        assert not depends_on_time(uniform_policy(space).rollout(300, seed=seed))
