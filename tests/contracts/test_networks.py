"""Networks, heads, the policy that acts, and the updates of every variant of ν."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.training import tiny_episodes

from aetdice import InputError, Policy, bsr, esr, load_policy, ser
from aetdice.algorithms.dual import (
    DiceHyper,
    DualSetting,
    init_dual,
    prepare_dual,
    step_rewards,
    update_dual,
)
from aetdice.config import DualConfig, NetworkConfig
from aetdice.data import augment
from aetdice.data.device import to_device
from aetdice.data.transforms import Chain, Scaling, WithoutBonus
from aetdice.dice import FiniteHorizon, dual_loss
from aetdice.files import write_arrays
from aetdice.learning.inputs import encoder_of_values
from aetdice.learning.programs import known_options
from aetdice.networks import Categorical, Encoder, GaussianMixture, Nu, Perceptron, PolicyNetwork
from aetdice.networks.nu import entries
from aetdice.objectives import ChiSquare, Identity

KEY = jax.random.key(0)


def encoder(*, discrete: bool = True, use_time: bool = True) -> Encoder:
    """For three steps, two objectives, and observations of three values or of two numbers."""
    size = 1 if discrete else 2
    return Encoder(
        sizes=(3,) if discrete else None,
        horizon=3,
        use_accrued=True,
        use_time=use_time,
        centre=np.ones(size),
        spread=np.full(size, 2.0),
        accrued_range=np.array([1.0, 3.0]),
        observation_fourier=0,
        fourier=8,
    )


MIXTURE = GaussianMixture(np.array([-1.0]), np.array([3.0]), components=3)


@pytest.fixture(params=["categorical", "mixture"])
def acting(request):
    """A policy with weights everywhere, as after training."""
    discrete = request.param == "categorical"
    policy = PolicyNetwork(encoder(discrete=discrete), Categorical(4) if discrete else MIXTURE, (8,), KEY)
    weights = jax.random.normal(jax.random.key(1), policy.net.weights[-1].shape)
    policy = eqx.tree_at(lambda p: p.net.weights[-1], policy, weights)
    return Policy(policy, {"objective": "SER", "params": {"beta": 0.1}})


def observation(acting: Policy) -> np.ndarray:
    return np.array([2]) if acting.network.encoder.sizes else np.array([0.3, -5.0])


def episode(acting: Policy, seed: int) -> list:
    acting.reset(seed=seed)
    actions = []
    for _ in range(acting.horizon):
        actions.append(acting.act(observation(acting)))
        acting.observe([1.0, -0.5], observation(acting))
    return actions


def test_probabilities_of_all_actions_sum_to_one():
    outputs = jnp.asarray([3.0, -2.0, 0.5, 40.0])
    logs = [Categorical(4).log_probability(outputs, jnp.asarray(action)) for action in range(4)]
    assert sum(np.exp(logs)) == pytest.approx(1, abs=1e-6)


def density_on(grid, outputs):
    return np.exp(jax.jit(jax.vmap(MIXTURE.log_probability, (None, 0)))(outputs, grid[:, None]))


def test_density_of_a_mixture_integrates_to_one():
    outputs = jax.random.normal(KEY, (MIXTURE.outputs,))
    grid = np.linspace(-15, 17, 20_001, dtype=np.float32)
    density = density_on(grid, outputs)
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-3)


def test_samples_of_a_mixture_follow_its_density_within_the_bounds():
    outputs = 0.5 * jax.random.normal(KEY, (MIXTURE.outputs,))
    keys = jax.random.split(KEY, 20_000)
    drawn = np.asarray(jax.jit(jax.vmap(MIXTURE.sample, (None, 0)))(outputs, keys))[:, 0]
    assert -1 <= drawn.min() <= drawn.max() <= 3
    grid = np.linspace(-15, 17, 20_001, dtype=np.float32)
    density = density_on(grid, outputs)
    mean = np.trapezoid(np.clip(grid, -1, 3) * density, grid)
    assert drawn.mean() == pytest.approx(mean, abs=5 * drawn.std() / np.sqrt(drawn.size))


def test_fresh_policy_is_uniform_and_fresh_nu_is_zero():
    state = (jnp.asarray([1]), jnp.asarray([2.0, -1.0]), jnp.asarray(1))
    fresh = PolicyNetwork(encoder(), Categorical(4), (8,), KEY)
    assert float(fresh.log_probability(*state, jnp.asarray(3))) == pytest.approx(np.log(0.25))
    assert float(Nu(encoder(), (8,), 1, 3, KEY)(*state)) == 0


@pytest.mark.parametrize("accrued", [0.0, 1e-30, -1e6, 1e30, -3e38])
def test_encoder_is_finite_for_any_accrued_reward(accrued):
    encoded = encoder(discrete=False)(jnp.asarray([1e6, -1e6]), jnp.full(2, accrued), jnp.asarray(3))
    assert encoded.shape == (encoder(discrete=False).features,)
    assert np.all(np.isfinite(encoded))


def test_encoder_tells_accrued_rewards_and_times_apart():
    places = [(a, t) for a in (0.0, 0.5, 1.0, 1.5) for t in range(3)]
    rows = np.array([encoder()(jnp.asarray([0]), jnp.full(2, a), jnp.asarray(t)) for a, t in places])
    apart = np.abs(rows[:, None] - rows[None]).max(axis=2)
    assert apart[~np.eye(len(places), dtype=bool)].min() > 0.1


# The policy that acts.


def test_fourier_features_tell_near_observations_apart():
    plain = encoder(discrete=False)
    fine = dataclasses.replace(plain, observation_fourier=4, fourier=2)
    near, nearer = (
        np.asarray(e(jnp.asarray([0.3, 0.0]), jnp.zeros(2), jnp.asarray(0)))
        - np.asarray(e(jnp.asarray([0.31, 0.0]), jnp.zeros(2), jnp.asarray(0)))
        for e in (plain, fine)
    )
    assert np.abs(nearer).max() > 5 * np.abs(near).max()
    assert fine.features == 2 + 2 * 2 * 4 + 2 + 2 * 2 * 2 + 2 * 2


def test_values_see_observations_through_their_gain():
    plain = encoder(discrete=False)
    damped = encoder_of_values(plain, NetworkConfig(value_gain=0.1, value_fourier=2))
    at, centre = jnp.asarray([0.7, -2.0]), jnp.asarray(plain.centre)
    one, other = (np.asarray(e(at, jnp.zeros(2), jnp.asarray(0)))[:2] for e in (plain, damped))
    assert np.all(one != 0)
    np.testing.assert_allclose(other, 0.1 * one, rtol=1e-5)
    assert (damped.fourier, plain.fourier) == (2, 8)
    assert np.allclose(damped(centre, jnp.zeros(2), jnp.asarray(0))[:2], 0)


def test_saved_policy_keeps_its_fourier_features(tmp_path):
    fine = dataclasses.replace(encoder(discrete=False), observation_fourier=3, fourier=5)
    Policy(PolicyNetwork(fine, MIXTURE, (8,), KEY), {}).save(tmp_path / "policy.npz")
    loaded = load_policy(tmp_path / "policy.npz").network.encoder
    assert (loaded.observation_fourier, loaded.fourier) == (3, 5)


def test_saved_policy_acts_as_before(acting, tmp_path):
    acting.save(tmp_path / "policy.npz")
    loaded = load_policy(tmp_path / "policy.npz")
    assert loaded.details == acting.details
    for seed in (0, 7):
        assert np.array_equal(episode(acting, seed), episode(loaded, seed))


def test_equal_seeds_give_equal_actions_and_others_do_not(acting):
    assert np.array_equal(episode(acting, 3), episode(acting, 3))
    assert len({str(episode(acting, seed)) for seed in range(8)}) > 1


def test_policy_keeps_accrued_reward_and_time(acting):
    acting.reset()
    for reward in ([1.0, 2.0], np.array([0.5, -3.0])):
        acting.act(observation(acting))
        acting.observe(reward)
    assert acting.time == 2
    np.testing.assert_array_equal(acting.accrued, [1.5, -1.0])
    acting.reset()
    assert acting.time == 0
    np.testing.assert_array_equal(acting.accrued, [0, 0])


def test_policy_with_a_transform_is_told_raw_rewards(acting, tmp_path):
    chained = Chain((Scaling((2.0, 0.5)), WithoutBonus((1.0, 0.0))))
    reshaping = dataclasses.replace(acting, transform=chained)
    reshaping.save(tmp_path / "policy.npz")
    for policy in (reshaping, load_policy(tmp_path / "policy.npz")):
        assert policy.transform == chained
        policy.reset()
        policy.act(observation(policy))
        policy.observe([1.0, 2.0], observation(policy))
        np.testing.assert_array_equal(policy.accrued, [1.0, 1.0])
        policy.act(observation(policy))
        with pytest.raises(InputError, match="this policy transforms rewards: give observe the next obs"):
            policy.observe([1.0, 2.0])


def test_policy_does_not_act_beyond_its_horizon(acting):
    episode(acting, 0)
    with pytest.raises(
        InputError, match="the episode is over: the policy was trained for 3 steps; call reset"
    ):
        acting.act(observation(acting))


@pytest.mark.parametrize("reward", [1.0, [1.0], [1.0, 2.0, 3.0], [1.0, np.nan], [np.inf, 0.0]])
def test_policy_refuses_a_reward_it_cannot_accrue(acting, reward, without_type_checks):
    acting.reset()
    acting.act(observation(acting))
    with pytest.raises(InputError, match="a reward has 2 finite entries, one per objective, not"):
        acting.observe(reward)
    assert acting.time == 0


def test_policy_refuses_an_observation_of_another_size(acting):
    acting.reset()
    with pytest.raises(InputError, match=r"an observation has \d entries, not 3"):
        acting.act(np.zeros(3))


def saved(acting, folder):
    acting.save(folder / "policy.npz")
    return folder / "policy.npz"


def test_missing_policy_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such policy file"):
        load_policy(tmp_path / "policy.npz")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_truncated_policy_is_refused(acting, tmp_path, share):
    path = saved(acting, tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"policy.npz is not a policy that this version can read"):
        load_policy(path)


def test_policy_with_a_flipped_byte_is_refused(acting, tmp_path):
    path = saved(acting, tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="is not a policy"):
        load_policy(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("description", lambda old: np.array([{"a": 1}], dtype=object)),
        ("description", lambda old: np.frombuffer(b"[1, 2]", np.uint8)),
        ("description", lambda old: np.frombuffer(b"{broken", np.uint8)),
        (
            "description",
            lambda old: np.frombuffer(old.tobytes().replace(b'"format": 3', b'"format": 9'), np.uint8),
        ),
        (
            "description",
            lambda old: np.frombuffer(old.tobytes().replace(b'"layers": 2', b'"layers": 0'), np.uint8),
        ),
        ("net0", lambda old: old[:-1]),
        ("net3", lambda old: old[:-1]),
        ("spread", lambda old: None),
    ],
    ids=["pickled", "no-object", "no-json", "format", "no-layers", "weights", "biases", "missing"],
)
def test_altered_policy_is_refused(acting, tmp_path, name, change):
    path = saved(acting, tmp_path)
    with np.load(path) as archive:
        arrays = dict(archive)
    changed = change(arrays.pop(name))
    if changed is not None and changed.dtype == object:
        np.savez(path, **arrays, **{name: changed})
    else:
        write_arrays(path, arrays if changed is None else {**arrays, name: changed})
    with pytest.raises(InputError, match="is not a policy that this version can read"):
        load_policy(path)


# Updates of ν.

DATA = to_device(augment(tiny_episodes(), Identity(), 3))


@pytest.mark.parametrize("augmented", [False, True], ids=["heads", "augmented"])
def test_nu_with_a_head_per_step_learns(augmented):
    config = DualConfig(batch=32, starts=8, steps=20)
    setting = DualSetting(FiniteHorizon(3), ChiSquare(), config, time_augmented=augmented)
    hyper = DiceHyper(ser(), beta=0.1, learning_rate=1e-3, slack_rate=3e-3, first_beta=0.1, averaging=0.999)
    start = init_dual(Nu(encoder(use_time=False), (8,), 3, 3, KEY), hyper, DATA, setting)

    @eqx.filter_jit
    def trained(state):
        arrays, rest = eqx.partition(state, eqx.is_array)

        def update(arrays, step):
            rows = jax.random.randint(jax.random.fold_in(KEY, step), (32, 1), 0, DATA.steps.count)
            state, number = eqx.combine(arrays, rest), step.astype(jnp.float32)
            batch = prepare_dual(state.nu.encoder, hyper, DATA, rows, DATA.initial[:8], number, setting)
            return eqx.filter(update_dual(state, hyper, batch, setting), eqx.is_array), None

        return eqx.combine(jax.lax.scan(update, arrays, jnp.arange(20))[0], rest)

    end = trained(start)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(end))
    place = (jnp.asarray([0]), jnp.zeros(2))
    heads = end.nu.heads(end.nu.encoder(*place, jnp.asarray(0)))
    assert np.abs(heads).max() > 0
    for time in range(3):
        assert float(end.nu(*place, jnp.asarray(time))) == pytest.approx(float(heads[time]), abs=1e-6)


@pytest.mark.parametrize("precision", ["highest", "tensorfloat32", "bfloat16"])
def test_only_bfloat16_halves_what_nu_sees_and_outliers_stay_finite(precision: str):
    setting = DualSetting(FiniteHorizon(3), ChiSquare(), DualConfig(batch=4, starts=4))
    hyper = DiceHyper(ser(), beta=0.1, learning_rate=1e-3, slack_rate=3e-3, first_beta=0.1, averaging=0.999)
    narrow = dataclasses.replace(encoder(discrete=False), spread=np.full(2, 1e-6))
    data = eqx.tree_at(
        lambda d: d.steps.observation, DATA, 2 * jnp.ones((DATA.steps.observation.shape[0], 2))
    )
    with jax.default_matmul_precision(precision):
        batch = prepare_dual(
            narrow, hyper, data, jnp.arange(4)[:, None], data.initial[:4], jnp.zeros(()), setting
        )
    assert batch.encoded.dtype == (jnp.float16 if precision == "bfloat16" else jnp.float32)
    net = Perceptron((batch.encoded.shape[1], 64, 64, 1), KEY)
    net = eqx.tree_at(lambda n: n.weights, net, jax.tree.map(lambda weight: 2 * weight, net.weights))
    assert np.abs(batch.encoded).max() >= 4096
    assert np.all(np.isfinite(net(batch.encoded)))


@pytest.mark.parametrize("terminal", [False, True], ids=["along-the-way", "at-the-end"])
@pytest.mark.parametrize("objective", [esr(), bsr(0.5), ser()], ids=["esr", "bsr", "ser"])
def test_rewards_of_an_episode_sum_to_its_utility(objective, terminal):
    rewards = np.asarray(step_rewards(objective.utility, DATA.steps.everything(), terminal)).reshape(50, 3, 2)
    returns = jnp.asarray(tiny_episodes().returns, jnp.float32)
    gain = jax.vmap(objective.utility)(returns) - objective.utility(jnp.zeros(2))[None]
    np.testing.assert_allclose(rewards.sum(axis=1), gain, atol=1e-5)
    if terminal:
        assert not np.any(rewards[:, :2])


def test_weight_of_a_step_moves_only_its_own_gradient():
    residuals, flow = jnp.asarray([0.3, -0.2, 0.5, 0.1]), FiniteHorizon(2)

    def gradient(weights):
        def loss(residuals):
            return dual_loss(
                jnp.zeros(1),
                residuals,
                jnp.ones(2),
                jnp.zeros(2),
                initial_weights=jnp.ones(1),
                weights=weights,
                beta=0.5,
                divergence=ChiSquare(),
                aggregation=ser().aggregation,
                flow=flow,
            )

        return np.asarray(jax.grad(loss)(residuals))

    plain, heavy = gradient(jnp.full(4, 0.25)), gradient(jnp.asarray([0.25, 0.25, 0.75, 0.25]))
    assert heavy[2] == pytest.approx(3 * plain[2])
    np.testing.assert_array_equal(np.delete(heavy, 2), np.delete(plain, 2))


def network_and_rows() -> tuple[Perceptron, jax.Array]:
    """A network whose last layer is not zero, and rows that have the same numbers in half precision."""
    net = Perceptron((20, 64, 48, 5), KEY)
    net = eqx.tree_at(lambda n: n.weights[-1], net, jax.random.normal(KEY, (48, 5)) / 7)
    return net, jnp.round(jax.random.normal(jax.random.key(1), (30, 20)) * 8) / 8


@pytest.mark.parametrize("shape", [(30,), (5, 6)])
@pytest.mark.parametrize("precision", [jnp.float32, jnp.float16, jnp.bfloat16])
def test_rows_together_give_what_each_gives(precision: type, shape: tuple[int, ...]):
    net, x = network_and_rows()
    kept = (jnp.linspace(0, 2, 64), jnp.linspace(1, 0, 48))

    def value(net_and_x: tuple[Perceptron, jax.Array], *, together: bool) -> jax.Array:
        net, x = net_and_x

        def of(rows: jax.Array) -> jax.Array:
            return net(rows.astype(precision), kept)

        return jnp.sum((of(x.reshape(*shape, 20)) if together else jax.vmap(of)(x)) ** 2)

    slopes = jax.jit(jax.value_and_grad(value), static_argnames="together")
    one, other = (slopes((net, x), together=each) for each in (True, False))
    near = 1e-5 if precision == jnp.float32 else 0.02
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert np.linalg.norm(a - b) <= near * np.linalg.norm(b)


def test_slopes_of_layers_are_those_of_plain_mathematics():
    net, x = network_and_rows()
    kept = (jnp.linspace(0, 2, 64), jnp.linspace(1, 0, 48))

    def plainly(net: Perceptron, x: jax.Array) -> jax.Array:
        for weight, bias, factor in zip(net.weights[:-1], net.biases[:-1], kept, strict=True):
            x = jax.nn.gelu(x @ weight + bias[None]) * factor[None]
        return x @ net.weights[-1] + net.biases[-1][None]

    def slopes(function: Callable[..., jax.Array]) -> Any:
        return jax.jit(jax.grad(lambda both: jnp.sum(function(*both) ** 2)))((net, x))

    ours, theirs = slopes(lambda net, x: net(x, kept)), slopes(plainly)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5), ours, theirs)


@pytest.mark.parametrize("constants", [1, 4])
@pytest.mark.parametrize("heads", [1, 4])
def test_values_together_are_those_of_each(heads: int, constants: int):
    nu = Nu(encoder(), (8,), heads, constants, KEY)
    nu = eqx.tree_at(lambda n: n.net.weights[-1], nu, jax.random.normal(KEY, (8, heads)))
    nu = eqx.tree_at(lambda n: n.offsets, nu, jnp.arange(constants, dtype=jnp.float32))
    encoded = jax.random.normal(jax.random.key(1), (6, nu.net.weights[0].shape[0]))
    times = jnp.arange(6)  # the last ones beyond the end
    each = jax.vmap(nu.of_encoded)(encoded, times)
    np.testing.assert_allclose(nu.of_encoded(encoded, times), each, rtol=1e-5, atol=1e-6)
    assert len(np.unique(each)) == 6


def test_an_option_that_the_compiler_lacks_is_left_out():
    assert known_options(xla_cpu_no_such_thing="") == {}
    assert known_options(xla_cpu_experimental_ynn_fusion_type="") != {}


@pytest.mark.parametrize(("precision", "digits"), [(jnp.float16, 11), (jnp.bfloat16, 8)])
def test_rounded_products_are_near_and_weights_keep_their_precision(precision: type, digits: int):
    net, x = network_and_rows()

    def value(net: Perceptron, x: jax.Array) -> jax.Array:
        outputs = net(x)
        assert outputs.dtype == jnp.float32
        return jnp.sum(outputs**2)

    both = jax.jit(jax.value_and_grad(value))
    exact, slopes = both(net, x)
    near, rounded = both(net, x.astype(precision))
    np.testing.assert_allclose(near, exact, rtol=4 * 2.0**-digits)
    for ours, theirs in zip(rounded.weights[:-1], slopes.weights[:-1], strict=True):
        assert ours.dtype == jnp.float32
        assert 0 < np.linalg.norm(ours - theirs) < 0.02 * np.linalg.norm(theirs)


def test_small_gradients_survive_half_precision():
    net, x = network_and_rows()

    def slope(x: jax.Array) -> jax.Array:
        return jax.grad(lambda net: 1e-9 * jnp.sum(net(x)))(net).weights[0]

    exact = slope(x)
    assert np.linalg.norm(slope(x.astype(jnp.float16)) - exact) < 0.02 * np.linalg.norm(exact)


@pytest.mark.parametrize("index", [[0, 1, 1, 3], [[2, 2], [0, 3]]])
@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_entries_of_a_table_have_the_slope_of_an_index(monkeypatch, backend: str, index: list):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    table, where = jnp.arange(4.0) ** 2, jnp.asarray(index)

    def slope(function: Callable[..., jax.Array]) -> jax.Array:
        return jax.grad(lambda table: jnp.sum(jnp.sin(function(table))))(table)

    np.testing.assert_array_equal(entries(table, where), table[where])
    np.testing.assert_allclose(slope(lambda t: entries(t, where)), slope(lambda t: t[where]), rtol=1e-6)
