"""Reward transforms: recorded, frozen, and the same for a dataset, a batch and a single step."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aetdice.data import Episode, Episodes
from aetdice.data.transforms import (
    TRANSFORMS,
    Chain,
    MinMax,
    Safety,
    Scaling,
    SpeedAndEffort,
    WithoutBonus,
    transform_episodes,
    transform_from,
)
from aetdice.envs.mujoco import BatchedBody
from aetdice.errors import InputError

EXAMPLES = {
    "min-max": MinMax((-1.0, 0.5), (3.0, 5.0), (2.0, 1.0)),
    "scaling": Scaling((0.25, 0.2)),
    "speed-and-effort": SpeedAndEffort(),
    "without-bonus": WithoutBonus((1.0, 0.0)),
    "safety": Safety(),
    "chain": Chain((WithoutBonus((1.0, 0.0)), SpeedAndEffort(), Safety())),
}
numbers = st.floats(-100, 100, width=32)
steps = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, (n, 2), elements=numbers), arrays(np.float64, (n, 4), elements=numbers)
    )
)


@pytest.fixture(params=TRANSFORMS)
def transform(request):
    return EXAMPLES[request.param]


def some_steps(count=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 2)), rng.normal(size=(count, 4))


def test_record_is_json_and_reads_back_as_the_same_transform(transform):
    again = transform_from(json.loads(json.dumps(transform.record())))
    assert again == transform
    assert hash(again) == hash(transform)
    for here, there in zip(again(*some_steps()), transform(*some_steps()), strict=True):
        np.testing.assert_array_equal(here, there)


def test_names_fit_the_transformed_rewards(transform):
    rewards, observations = some_steps()
    names = transform.names(("speed", "energy"))
    assert transform(rewards, observations).shape == (6, len(names))
    assert len(set(names)) == len(names)


def test_batches_and_single_steps_agree_to_the_bit(transform):
    rewards, observations = some_steps()
    together = transform(rewards, observations)
    for row in range(6):
        np.testing.assert_array_equal(transform(rewards[row], observations[row]), together[row])
    folded = transform(rewards.reshape(2, 3, 2), observations.reshape(2, 3, 4))
    np.testing.assert_array_equal(folded.reshape(6, -1), together)


def test_jax_agrees_and_compiles(transform):
    rewards, observations = (part.astype(np.float32) for part in some_steps())
    inside = jax.jit(jax.vmap(transform))(jnp.asarray(rewards), jnp.asarray(observations))
    np.testing.assert_allclose(inside, transform(rewards, observations), rtol=1e-5, atol=1e-6)


def test_transforms_are_frozen(transform):
    with pytest.raises(AttributeError):
        transform.kind = "other"
    with pytest.raises(AttributeError):
        transform.low = ()


@given(steps)
def test_min_max_of_its_own_data_is_between_zero_and_the_scale(data):
    rewards = np.concatenate([data[0], [[-101, -101], [101, 101]]])
    episodes = Episodes.from_list(
        [Episode(np.zeros((len(rewards) + 1, 4)), np.zeros(len(rewards)), rewards, True, False)]
    )
    fitted = MinMax.fit(episodes, scale=(2.0, 1.0))
    changed = transform_episodes(episodes, fitted).rewards
    np.testing.assert_allclose(changed.min(axis=0), [0, 0], atol=1e-12)
    np.testing.assert_allclose(changed.max(axis=0), [2, 1], atol=1e-12)


@given(steps)
def test_scaling_is_min_max_without_its_constant_per_step(data):
    rewards, observations = data
    shift = EXAMPLES["min-max"](np.zeros((1, 2)), np.zeros((1, 4)))
    scaled = Scaling((2 / 4, 1 / 4.5))(rewards, observations)
    np.testing.assert_allclose(
        EXAMPLES["min-max"](rewards, observations), scaled + shift, rtol=1e-9, atol=1e-9
    )


def test_scaling_fits_the_spans():
    rewards = np.array([[0.0, 1.0], [4.0, 3.0]])
    episodes = Episodes.from_list([Episode(np.zeros((3, 1)), np.zeros(2), rewards, True, False)])
    assert Scaling.fit(episodes, scale=(2.0, 1.0)).factors == (0.5, 0.5)
    assert Scaling.fit(episodes).factors == (0.25, 0.5)


@given(steps)
def test_scaling_commutes_with_summation(data):
    """An episode's transformed return is its return transformed."""
    rewards, observations = data
    scaling = EXAMPLES["scaling"]
    np.testing.assert_allclose(
        scaling(rewards, observations).sum(axis=0),
        scaling(rewards.sum(axis=0), observations[0]),
        rtol=1e-9,
        atol=1e-9,
    )


def test_effort_is_the_squared_action_of_a_real_step():
    batch = BatchedBody("walker2d", threads=1)
    batch.reset(5, 0)
    actions = np.random.default_rng(0).uniform(-1, 1, (5, 6))
    observations, rewards, _ = batch.step(actions)
    effort = SpeedAndEffort()(rewards, observations)[:, 1]
    np.testing.assert_allclose(effort, np.sum(actions**2, axis=1), rtol=0, atol=1e-12)
    distance = WithoutBonus((1.0, 0.0))(rewards, observations)[:, 0] * batch.duration
    np.testing.assert_allclose(distance, batch.positions[:, 0] - _starts()[:, 0], atol=1e-12)


def _starts():
    batch = BatchedBody("walker2d", threads=1)
    batch.reset(5, 0)
    return batch.positions


@pytest.mark.parametrize(
    ("height", "angle", "expected"),
    [(1.4, 0, 2), (0.8, 0, 0), (2.0, 0, 0), (1.4, 1, 0), (0.8, -1, -2), (1.25, 0.5, 1.375)],
)
def test_safety_of_an_observation(height, angle, expected):
    rewards = Safety()(np.array([1.0, 2.0]), np.array([height, angle, 9.0, 9.0]))
    np.testing.assert_allclose(rewards, [1, 2, expected], atol=1e-12)


def test_safety_looks_at_the_observation_after_the_step():
    episode = Episode(
        np.array([[9.0, 9.0], [1.4, 0.0], [0.8, 0.0]]), np.zeros(2), np.zeros((2, 2)), True, False
    )
    episodes = Episodes.from_list([episode, episode], ["speed", "energy"])
    changed = transform_episodes(episodes, Safety())
    np.testing.assert_allclose(changed.rewards[:, 2], [2, 0, 2, 0], atol=1e-12)
    assert changed.objectives == ("speed", "energy", "safety")
    np.testing.assert_array_equal(changed.observations, episodes.observations)


def test_empty_chain_changes_nothing():
    rewards, observations = some_steps()
    np.testing.assert_array_equal(Chain()(rewards, observations), rewards)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MinMax((0.0,), (0.0,), (1.0,)),
            "min-max needs low below high for every objective, not 0.0 and 0.0",
        ),
        (lambda: MinMax((0.0, np.nan), (1.0, 1.0), (1.0, 1.0)), "low of min-max must be finite"),
        (lambda: Scaling((1.0, 0.0)), "factors must be positive, not 1.0, 0.0"),
        (lambda: MinMax((0.0,), (1.0, 1.0), (1.0,)), "min-max needs as many highs and scales as lows"),
        (lambda: Safety(spread=0.0), "the spread of heights must be positive"),
        (lambda: Safety(height_entry=-1), "an entry of the observation is counted from 0, not -1"),
        (lambda: transform_from({"kind": []}), "unknown transform"),
        (
            lambda: EXAMPLES["scaling"](np.zeros(3), np.zeros(4)),
            "has 2 constants, but there are 3 objectives",
        ),
        (lambda: SpeedAndEffort()(np.zeros(3), np.zeros(4)), "speed-and-effort needs 2 objectives, not 3"),
        (lambda: transform_from({}), "unknown transform None; known: min-max, scaling"),
        (lambda: transform_from({"kind": "os.system"}), "unknown transform 'os.system'"),
        (lambda: transform_from({"kind": "scaling"}), "the record of transform 'scaling' is not one"),
        (lambda: transform_from({"kind": "scaling", "factors": "ab"}), "must be numbers"),
        (
            lambda: transform_from({"kind": "chain", "transforms": [1]}),
            "the record of transform 'chain' is not one",
        ),
        (
            lambda: transform_from({"kind": "safety", "extra": 1}),
            "the record of transform 'safety' is not one",
        ),
    ],
)
def test_impossible_transforms_are_refused(without_type_checks, make, message):
    with pytest.raises(InputError, match=message):
        make()
