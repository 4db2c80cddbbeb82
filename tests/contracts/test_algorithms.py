"""What every algorithm keeps: to be listed is to be tested."""

import math
import re

import jax.numpy as jnp
import numpy as np
import pytest
from support.training import Cut, leaves, parameters, tiny_episodes, tiny_run

from aetdice import InputError, TrainingConfig, bsr, esr, load_policy, lsr, ser, train
from aetdice.algorithms import ALGORITHMS
from aetdice.algorithms.dice import BETA
from aetdice.learning.setup import algorithm_for

pytestmark = pytest.mark.trains

OBJECTIVE = lsr((1.0, 0.5))
"""Linear: every algorithm takes it."""
SWEEPS = {name: make(3, TrainingConfig()).sweeps for name, make in ALGORITHMS.items()}
FOREIGN = {name: set().union(*SWEEPS.values()) - set(own) for name, own in SWEEPS.items()}
WITHOUT_VALUES = [name for name, make in ALGORITHMS.items() if make(3, TrainingConfig()).steps == 0]


def run_of(name, **changes):
    return tiny_run(**{"algorithm": name, "objective": OBJECTIVE, "beta": None, **changes})


@pytest.fixture(scope="module", params=ALGORITHMS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def run(name):
    return run_of(name, beta=0.1 if "beta" in SWEEPS[name] else None)


def test_diagnostics_are_finite(run, name):
    [member] = run.members
    assert all(np.all(np.isfinite(value)) for value in member.diagnostics.values())
    assert "distance_to_twin" in member.diagnostics
    assert member.verdict.words
    assert member.params["algorithm"] == name
    assert run.algorithm == name
    assert set(SWEEPS[name]) < set(member.params)


def test_policy_is_saved_with_all_it_needs_and_acts_the_same(run, tmp_path):
    run.policy.save(tmp_path / "policy.npz")
    one, other = run.policy, load_policy(tmp_path / "policy.npz")
    assert all(map(np.array_equal, leaves(one.network), leaves(other.network)))
    assert other.details == one.details
    for acting in (one, other):
        acting.reset(seed=4)
    actions = []
    for acting in (one, other):
        actions.append([])
        for place in (0, 1, 2):
            actions[-1].append(acting.act(np.array([place])))
            acting.observe(np.array([1.0, -1.0]))
    assert actions[0] == actions[1]


def test_twin_is_plain_cloning_of_the_same_form(run):
    assert run.twin.details == {**run.policy.details, "twin": True}
    shapes = [[leaf.shape for leaf in leaves(acting.network)] for acting in (run.policy, run.twin)]
    assert shapes[0] == shapes[1]
    assert run.twin.network.encoder.use_time == run.policy.network.encoder.use_time


def test_cut_run_resumes_to_the_same_bits(run, name, tmp_path):
    beta = 0.1 if "beta" in SWEEPS[name] else None
    for stage in ("values", "refit", "cloning"):

        def cut(found, *_, stage=stage):
            if found == stage:
                raise Cut

        if stage == "values" and name in WITHOUT_VALUES:
            continue
        with pytest.raises(Cut):
            run_of(name, beta=beta, out=tmp_path, progress=cut)
    again = run_of(name, beta=beta, out=tmp_path)
    assert all(map(np.array_equal, parameters(again), parameters(run)))
    assert again.members[0].diagnostics == run.members[0].diagnostics


VALUES = {"beta": (0.5, 2.0), "expectile": (0.6, 0.9), "temperature": (1.0, 3.0), "sample_size": (0.3, 0.6)}


def test_population_is_its_members_trained_alone(name):
    own = {hyper: VALUES[hyper] for hyper in SWEEPS[name]}
    together = run_of(name, seed=[0, 1], **own)
    assert len(together.members) == 2 ** (1 + len(own))
    for index in (1, len(together.members) - 2):
        given = together.members[index].params
        alone = run_of(name, seed=given["seed"], **{hyper: given[hyper] for hyper in own})
        assert alone.members[0].params == given
        pairs = zip(parameters(alone), leaves(*map(policies, [together.members[index]])), strict=True)
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def policies(member):
    return member.policy.network, member.twin.network


@pytest.mark.parametrize(
    ("name", "hyper"), [(name, hyper) for name, foreign in FOREIGN.items() for hyper in sorted(foreign)]
)
def test_hyper_parameter_of_another_algorithm_is_refused(name, hyper):
    takes = ", ".join(SWEEPS[name]) or "no hyper-parameters of its own"
    with pytest.raises(InputError, match=f"^this algorithm has no {hyper}; it takes {takes}$"):
        run_of(name, **{hyper: 0.5})


AETDICE = "use aetdice"
REFUSED = [
    ("optidice", ser(), "optidice optimises linear objectives; SER is SER: use fairdice or aetdice"),
    ("optidice", esr(), "optidice optimises linear objectives; ESR is ESR: use aetdice"),
    ("optidice", bsr(0.5), "optidice optimises linear objectives; BSR[alpha=0.5] is AET: use aetdice"),
    ("fairdice", esr(), "fairdice optimises linear and SER objectives; ESR is ESR: use aetdice"),
    (
        "fairdice",
        bsr(0.5),
        "fairdice optimises linear and SER objectives; BSR[alpha=0.5] is AET: use aetdice",
    ),
    ("esr-iql", ser(), "esr-iql optimises linear and ESR objectives; SER is SER: use aetdice"),
    ("esr-iql", bsr(0.5), "esr-iql optimises linear and ESR objectives; BSR[alpha=0.5] is AET: use aetdice"),
]


@pytest.mark.parametrize(("name", "objective", "message"), REFUSED)
def test_objective_of_another_regime_is_refused(name, objective, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        run_of(name, objective=objective)


@pytest.mark.parametrize("objective", [lsr(), ser(), esr(), bsr(0.5)], ids=lambda o: o.short_name)
def test_what_is_not_refused_is_taken(objective):
    refused = {name for name, other, _ in REFUSED if other.short_name == objective.short_name}
    for name in set(ALGORITHMS) - refused:
        algorithm_for(name, 3, TrainingConfig()).check(objective, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expectile": 1.0}, "expectile lies between 0 and 1, not at 1.0"),
        ({"expectile": [0.5, 0.0]}, "expectile lies between 0 and 1, not at 0.0"),
        ({"expectile": math.nan}, "expectile lies between 0 and 1, not at nan"),
        ({"temperature": -1.0}, "temperature must be finite and not negative, not -1.0"),
        ({"temperature": math.inf}, "temperature must be finite and not negative, not inf"),
    ],
)
def test_value_out_of_range_is_refused(change, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        run_of("esr-iql", **change)


def test_unknown_algorithm_is_refused():
    known = ", ".join(ALGORITHMS)
    with pytest.raises(InputError, match=f"^unknown algorithm 'ppo'; known algorithms: {known}$"):
        train(tiny_episodes(), OBJECTIVE, algorithm="ppo")


def test_default_beta_of_a_discounted_flow_is_per_unit_of_entering_mass():
    """The same trade of return for divergence: a discounted flow has 1/(1 - γ) times less mass."""
    config = TrainingConfig().adapted({"dual.gamma": 0.95})
    assert algorithm_for("aetdice", 3, TrainingConfig()).sweeps == {"beta": BETA}
    for name in ("optidice", "fairdice"):
        assert algorithm_for(name, 3, config).sweeps["beta"] == pytest.approx(20 * BETA)


# Relatives.


def test_fairdice_of_a_linear_objective_is_optidice():
    one, other = (run_of(name, beta=0.1) for name in ("optidice", "fairdice"))
    assert one.members[0].diagnostics == other.members[0].diagnostics
    assert all(map(np.array_equal, parameters(one), parameters(other)))


@pytest.mark.parametrize("name", ["optidice", "fairdice"])
def test_policy_of_a_discounted_flow_sees_the_observation_only(name):
    policy, place = run_of(name, beta=0.1).policy.network, jnp.ones(1, jnp.int32)
    one = policy.outputs(place, jnp.zeros(2), jnp.zeros((), jnp.int32))
    other = policy.outputs(place, jnp.asarray([3.0, -7.0]), jnp.asarray(2, jnp.int32))
    np.testing.assert_array_equal(one, other)
    assert np.ptp(np.asarray(one)) > 0


# Cloning.


def test_cloning_is_its_own_twin():
    run = run_of("bc", objective=ser())
    assert all(map(np.array_equal, leaves(run.policy.network), leaves(run.twin.network)))
    assert run.members[0].diagnostics["distance_to_twin"] == 0
    assert run.verdict == (True, "This is plain cloning.")


def test_cloning_takes_an_objective_without_parameters():
    run = run_of("bc", objective=type(ser())(lambda returns: returns, lambda k: k.sum()))
    assert len(run.members) == 1


def test_cold_temperature_is_cloning():
    """exp(0 · A) = 1 for every step."""
    run = run_of("esr-iql", temperature=0.0)
    assert all(map(np.array_equal, leaves(run.policy.network), leaves(run.twin.network)))
    assert run.verdict.words.endswith("cloning; use a larger temperature or expectile.")


@pytest.fixture(scope="module")
def far():
    """Two objectives, each with a β that moves the policy and one that does not."""
    return run_of("aetdice", objective=[OBJECTIVE, lsr((0.5, 1.0))], beta=[0.1, 1e7])


def test_as_beta_grows_aetdice_becomes_cloning(far):
    """Not so for a discounted flow, which recorded episodes of few steps do not obey by themselves."""
    for near, beyond in (far.members[:2], far.members[2:]):
        assert near.diagnostics["distance_to_twin"] > 0.02
        assert abs(beyond.diagnostics["distance_to_twin"]) < 1e-3
        assert beyond.diagnostics["effective_sample_size"] == pytest.approx(1, abs=1e-3)
        assert beyond.verdict.words.endswith("cloning; use a smaller beta.")


def test_every_objective_of_a_population_has_its_selection(far):
    chosen = [far.members[selection.chosen].objective.name for selection in far.selections]
    assert chosen == [OBJECTIVE.name, lsr((0.5, 1.0)).name]
