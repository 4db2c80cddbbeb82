"""A policy acts three ways that agree, travels as one file, and refuses what it was not made for."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aetdice import InputError, Policy, bsr, evaluate, load_policy, make_env
from aetdice.data.transforms import Scaling
from aetdice.envs.batched import GymnasiumBatch
from aetdice.envs.gymnasium import GymnasiumEnvironment
from aetdice.files import read_arrays, write_arrays
from aetdice.networks import Categorical, Encoder, GaussianMixture, PolicyNetwork
from aetdice.objectives import objective_record

HORIZON = 30


def policy_of(sizes=(3,), size=1, *, head=None, horizon=HORIZON, objectives=2, scale=0.0, transform=None):
    """Some policy; where `scale` is 0 it chooses every action equally often."""
    encoder = Encoder(
        sizes, horizon, True, True, np.zeros(size), np.ones(size), np.ones(objectives), 0 if sizes else 1, 2
    )
    network = PolicyNetwork(encoder, head or Categorical(3), (4,), jax.random.key(0))
    last = scale * jax.random.normal(jax.random.key(1), network.net.weights[-1].shape)
    details = {"objective_record": objective_record(bsr(0.25))}
    return Policy(eqx.tree_at(lambda p: p.net.weights[-1], network, last), details, transform)


def uniform(**changes):
    return policy_of(**changes)


def discrete(**changes):
    return policy_of((3, 2), 2, scale=0.3, **changes)


def continuous(**changes):
    head = GaussianMixture(np.array([-1.0, -2.0]), np.array([1.0, 2.0]), 3)
    return policy_of(None, 2, head=head, scale=0.3, **changes)


KINDS = {"discrete": discrete, "continuous": continuous}


def episode(policy, steps=HORIZON, **reset):
    """What the policy does in one episode of made-up observations and rewards."""
    policy.reset(**reset)
    actions = []
    for step in range(steps):
        actions.append(policy.act([step % 3, step % 2]))
        policy.observe([0.5, step])
    return np.asarray(actions)


# Randomness.


@pytest.mark.parametrize("kind", KINDS)
def test_randomness_is_fresh_unless_a_seed_is_given(kind):
    policy = KINDS[kind]()
    first, second = episode(policy), episode(policy)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(episode(policy, seed=7), episode(policy, seed=7))
    assert not np.array_equal(episode(policy, seed=7), episode(policy, seed=8))


def test_mixture_stays_a_mixture_over_episodes():
    """The optimum of SER is one: a policy that is reset and asked once must not always say the same."""
    policy, said = uniform(), set()
    for _ in range(60):
        policy.reset()
        said.add(policy.act([0]))
    assert said == {0, 1, 2}


def test_policy_acts_without_a_reset():
    assert uniform().act([0]) in (0, 1, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_policy_does_the_likeliest(kind):
    policy = KINDS[kind]()
    np.testing.assert_array_equal(episode(policy, greedy=True), episode(policy, greedy=True))
    policy.reset(greedy=True)
    seen = jnp.asarray([1, 1], jnp.float32 if kind == "continuous" else jnp.int32)
    expected = policy.network.greedy(seen, jnp.zeros(2), jnp.zeros((), jnp.int32))
    np.testing.assert_allclose(policy.act([1, 1]), expected, rtol=1e-6)


# Three ways that agree.


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_one_episode_is_a_vector_of_one(kind, greedy):
    policy, steps = KINDS[kind](), 6
    many = policy.vectorised(1, seed=3, greedy=greedy)
    found = []
    for step in range(steps):
        found.append(many.act([[step % 3, step % 2]])[0])
        many.observe([[0.5, step]])
    np.testing.assert_array_equal(found, episode(policy, steps, seed=3, greedy=greedy))
    np.testing.assert_array_equal(policy.accrued, [0.5 * steps, sum(range(steps))])
    assert policy.time == steps
    np.testing.assert_array_equal(many.accrued, [policy.accrued])


@pytest.mark.parametrize("kind", KINDS)
def test_vectorised_policy_samples_as_the_pure_function_does(kind):
    """A step of many episodes is `sample` with the next key, from what each has accrued."""
    policy, count = KINDS[kind](), 5
    many, key = policy.vectorised(count, seed=3), jax.random.key(3)
    accrued, pure = np.zeros((count, 2)), jax.jit(policy.sample)
    seen = np.arange(count)[:, None] % [3, 2]
    for step in range(4):
        key, own = jax.random.split(key)
        expected = policy.sample(seen, accrued, step, own)
        np.testing.assert_array_equal(expected, policy.sample(seen, accrued, np.full(count, step), own))
        np.testing.assert_allclose(expected, pure(seen, accrued, step, own), atol=1e-5)
        np.testing.assert_array_equal(many.act(seen), expected)
        rewards = np.arange(2 * count).reshape(count, 2) / 10
        many.observe(rewards)
        accrued += rewards


def test_pure_function_takes_states_in_their_shapes_only(without_type_checks):
    policy, key = discrete(), jax.random.key(0)
    for seen, accrued in (([0, 1], [0, 0]), ([[0, 1, 1]], [[0, 0]]), ([[0, 1]], [[0, 0, 0]])):
        with pytest.raises(
            InputError, match=r"observations have shape \(n, 2\) and accrued rewards \(n, 2\)"
        ):
            policy.sample(jnp.asarray(seen), jnp.asarray(accrued), 0, key)


def test_episodes_that_ended_begin_anew_and_the_others_go_on():
    many = uniform().vectorised(3, seed=0)
    for _ in range(2):
        many.act(np.zeros((3, 1)))
        many.observe(np.ones((3, 2)))
    many.act(np.zeros((3, 1)))
    many.observe(np.ones((3, 2)), ended=np.array([False, True, False]))
    np.testing.assert_array_equal(many.time, [3, 0, 3])
    np.testing.assert_array_equal(many.accrued, [[3, 3], [0, 0], [3, 3]])
    many.reset()
    np.testing.assert_array_equal(many.time, 0)


def test_what_has_been_accrued_may_be_kept():
    policy, many = uniform(), uniform().vectorised(1)
    kept = []
    for _ in range(3):
        policy.act([0])
        many.act([[0]])
        policy.observe([1, 2])
        many.observe([[1, 2]])
        kept.append((policy.accrued, many.accrued, many.time))
    many.reset()
    for step, (accrued, together, time) in enumerate(kept, start=1):
        np.testing.assert_array_equal(accrued, [step, 2 * step])
        np.testing.assert_array_equal(together, [[step, 2 * step]])
        np.testing.assert_array_equal(time, step)


def test_transform_sees_raw_rewards_and_the_next_observation():
    policy = discrete(transform=Scaling((2.0, 10.0)))
    policy.act([0, 1])
    with pytest.raises(InputError, match="give observe the next observation, too"):
        policy.observe([1.0, 1.0])
    policy.observe([1.0, 1.0], [1, 1])
    np.testing.assert_array_equal(policy.accrued, [2.0, 10.0])
    policy.act([0, 1])
    with pytest.raises(InputError, match=r"rewards of shape \(1, 3\) cannot be transformed"):
        policy.observe([1.0, 1.0, 1.0], [1, 1])


# Refusals.


@pytest.mark.parametrize(
    ("kind", "observation", "message"),
    [
        ("discrete", [0, np.nan], "an observation must be finite, but entry 1 is nan"),
        ("continuous", [np.inf, 0], "an observation must be finite, but entry 0 is inf"),
        ("continuous", [0, 1e39], "an observation must be finite, but entry 1 is 1e[+]39"),
        ("discrete", [0], "an observation has 2 entries, not 1"),
        ("continuous", [0, 1, 2], "an observation has 2 entries, not 3"),
        ("discrete", [3, 0], "entry 0 of an observation is a whole number from 0 to 2, not 3"),
        ("discrete", [0, -1], "entry 1 of an observation is a whole number from 0 to 1, not -1"),
        ("discrete", [0.5, 0], "entry 0 of an observation is a whole number from 0 to 2, not 0.5"),
        ("continuous", ["a", "b"], "observations must be numbers, not "),
        ("continuous", [[1], [1, 2]], "observations must be numbers: "),
        ("continuous", None, "observations must be numbers, not None"),
    ],
)
def test_observation_is_refused(kind, observation, message, without_type_checks):
    policy = KINDS[kind]()
    with pytest.raises(InputError, match=message):
        policy.act(observation)
    policy.act([0, 1])  # nothing has been lost


def test_vector_of_observations_has_a_row_per_episode():
    with pytest.raises(InputError, match=r"3 episodes need 3 observations, not an array of shape \(2, 3\)"):
        continuous().vectorised(3).act(np.zeros((2, 3)))
    with pytest.raises(InputError, match="at least one episode is needed, not 0"):
        continuous().vectorised(0)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ([np.nan, 0], "a reward has 2 finite entries, one per objective, not"),
        ([1, 2, 3], "a reward has 2 finite entries, one per objective, not"),
        (1.0, "a reward has 2 finite entries, one per objective, not"),
        (["a", "b"], "rewards must be numbers, not"),
    ],
)
def test_reward_is_refused(reward, message, without_type_checks):
    policy = discrete()
    policy.act([0, 1])
    with pytest.raises(InputError, match=message):
        policy.observe(reward)
    np.testing.assert_array_equal(policy.accrued, 0)
    policy.observe([1, 2])


def test_acting_and_observing_take_turns():
    policy = uniform()
    with pytest.raises(InputError, match="observe was called before act"):
        policy.observe([0, 0])
    policy.reset()
    with pytest.raises(InputError, match="observe was called before act"):
        policy.observe([0, 0])
    policy.act([0])
    with pytest.raises(InputError, match="act was called twice: first tell observe"):
        policy.act([0])


def test_policy_stops_at_its_horizon():
    policy = uniform(horizon=2)
    for _ in range(2):
        policy.act([0])
        policy.observe([0, 0])
    with pytest.raises(
        InputError, match="the episode is over: the policy was trained for 2 steps; call reset"
    ):
        policy.act([0])
    policy.reset()
    policy.act([0])


# Files.


@pytest.mark.parametrize("kind", KINDS)
def test_policy_travels_as_one_file_to_the_last_bit(kind, tmp_path):
    policy = KINDS[kind](transform=Scaling((2.0, 0.5)))
    policy.save(tmp_path / "policy.npz")
    again = load_policy(tmp_path / "policy.npz")
    assert eqx.tree_equal(again.network, policy.network)
    assert (again.details, again.transform, again.horizon) == (policy.details, policy.transform, HORIZON)
    assert again.discrete == policy.discrete == (kind == "discrete")
    assert again.objective.name == bsr(0.25).name
    again.save(tmp_path / "again.npz")
    first, second = (read_arrays(tmp_path / name) for name in ("policy.npz", "again.npz"))
    assert {name: value.tobytes() for name, value in first.items()} == {
        name: value.tobytes() for name, value in second.items()
    }


def rewritten(path, change):
    """The file with another description."""
    arrays = read_arrays(path)
    description = json.loads(arrays["description"].tobytes())
    change(description)
    text = np.frombuffer(json.dumps(description).encode(), np.uint8)
    write_arrays(path, {**arrays, "description": text})


@pytest.mark.parametrize("kind", KINDS)
def test_policies_of_version_0_1_load(kind, tmp_path):
    """They called Fourier features waves and frequencies; the first of them had neither word."""
    path, policy = tmp_path / "policy.npz", KINDS[kind]()
    policy.save(path)

    def backdate(description):
        description["format"] = 1
        encoder = description["encoder"]
        encoder["waves"], encoder["frequencies"] = encoder.pop("observation_fourier"), encoder.pop("fourier")

    rewritten(path, backdate)
    assert eqx.tree_equal(load_policy(path).network, policy.network)


def refusal(path) -> str:
    with pytest.raises(InputError) as refused:
        load_policy(path)
    message = str(refused.value)
    assert "pickle" not in message
    assert "\n" not in message
    return message


def test_what_is_no_policy_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time,reward\n0,1\n")
    assert refusal(path).startswith(
        "log.csv is not a policy that this version can read: not a whole NPZ file"
    )
    write_arrays(tmp_path / "other.npz", {"returns": np.zeros(3)})
    assert refusal(tmp_path / "other.npz").endswith("it is an NPZ file, but not of a policy")
    assert refusal(tmp_path / "nothing.npz").startswith("no such policy file: ")
    assert refusal(tmp_path).startswith("no such policy file: ")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    refusal(tmp_path / "objects.npy")


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(format=9),
        lambda d: d.pop("encoder"),
        lambda d: d.update(head={"actions": 7}),
        lambda d: d["encoder"].update(fourier=5),
        lambda d: d.update(layers=9),
        lambda d: d.update(details=3),
        lambda d: d.update(transform={"kind": "magic"}),
    ],
)
def test_policy_that_contradicts_itself_is_refused(change, tmp_path, without_type_checks):
    path = tmp_path / "policy.npz"
    discrete().save(path)
    rewritten(path, change)
    assert refusal(path).startswith("policy.npz is not a policy that this version can read: ")


def test_truncated_or_damaged_file_is_refused_or_whole(tmp_path):
    """Where a file is damaged: a sentence, or, where nothing of the policy was hit, the policy."""
    path, policy = tmp_path / "policy.npz", discrete()
    policy.save(path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for length in rng.integers(0, len(whole), 20):
        path.write_bytes(whole[:length])
        refusal(path)
    messages = []
    for place in rng.integers(0, len(whole), 100):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            assert eqx.tree_equal(load_policy(path).network, policy.network)
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 50
    assert not any("pickle" in message for message in messages)


# Environments that do not fit.

TAXI = make_env(
    "fair-taxi", size=3, origins=[[0, 0], [2, 2]], destinations=[[0, 1], [2, 1]], start=[1, 1], horizon=6
)
SIZES = TAXI.observation_sizes


def taxi_policy(**changes):
    given = {"sizes": SIZES, "size": len(SIZES), "head": Categorical(TAXI.actions), "horizon": 6}
    return policy_of(**{**given, **changes})


def batched(env):
    return GymnasiumBatch(lambda: GymnasiumEnvironment(env), env.objectives, env.horizon)


TORQUES = GaussianMixture(np.full(2, -1.0), np.ones(2), 1)


@pytest.mark.parametrize("make", [lambda env: env, batched], ids=["inside", "batched"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": (3,), "size": 1}, "was trained on observations of 1 entries, the environment shows 3"),
        ({"objectives": 3}, "the policy knows 3 objectives, the environment 2"),
        ({"head": TORQUES}, "the policy has 2-dimensional actions, the environment discrete ones"),
        ({"horizon": 5}, "was trained for 5 steps, but an episode of this environment has 6; make the env"),
    ],
)
def test_policy_is_refused_by_another_environment(changes, message, make):
    with pytest.raises(InputError, match=message):
        evaluate(taxi_policy(**changes), make(TAXI), 2)


def test_policy_is_refused_by_bodies_of_other_actions():
    body = make_env("d4morl-swimmer", horizon=3)
    with pytest.raises(
        InputError, match="the policy has discrete actions, the environment 2-dimensional ones"
    ):
        evaluate(policy_of(None, 8), body, 2)
    three = GaussianMixture(np.full(3, -1.0), np.ones(3), 1)
    with pytest.raises(InputError, match="has 3-dimensional actions, the environment 2-dimensional ones"):
        evaluate(policy_of(None, 8, head=three), body, 2)
    assert evaluate(policy_of(None, 8, head=TORQUES), body, 2).returns.shape == (2, 2)


def test_policy_has_no_more_actions_than_its_environment():
    with pytest.raises(InputError, match=f"the policy has 9 actions, the environment {TAXI.actions}"):
        evaluate(taxi_policy(head=Categorical(9)), TAXI, 2)


def test_only_policies_and_environments_are_evaluated(without_type_checks):
    with pytest.raises(InputError, match="a Run or a Policy is evaluated, as train, load_run or load_policy"):
        evaluate("policy-0.npz", TAXI)
    with pytest.raises(InputError, match="an environment is what make_env gives"):
        evaluate(taxi_policy(), "fair-taxi")
    with pytest.raises(InputError, match="at least one episode is needed, not 0"):
        evaluate(taxi_policy(), TAXI, 0)
