"""Discounted flows are judged per unit of the mass that enters, and annealed from as far above their β."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.ragged import KEY

from aetdice import Episode, Episodes, TrainingConfig, ser
from aetdice.algorithms.diagnostics import _test_functions, flow_violation
from aetdice.algorithms.dual import annealed_beta, expected_next
from aetdice.data.device import DeviceData
from aetdice.learning.inputs import encoder_for, onto_device
from aetdice.learning.selection import MOST_IMBALANCE, NONE_PASSED, RULE, Candidate, select
from aetdice.learning.setup import algorithm_for, hyper_of
from aetdice.learning.verdict import judge

STEPS = 20


def forks() -> Episodes:
    """From place 0 to place 1 or 2, by the first action, and staying there for the rest of the recording."""
    rng, found = np.random.default_rng(0), []
    for _ in range(30):
        actions = rng.integers(2, size=STEPS)
        places = np.append(0, np.full(STEPS, 1 + actions[0]))[:, None]
        found.append(Episode(places, actions, rng.random((STEPS, 2)), False, True))
    return Episodes.from_list(found)


def occupancy(data: DeviceData, entering: float) -> jax.Array:
    """Mass of steps that go from place 0 to place 1, so much of it on the way, the rest there."""
    steps = data.steps.everything()
    place, after = (np.asarray(o)[:, 0] for o in (steps.observation, steps.next_observation))
    on_the_way, there = (place == 0) & (after == 1), place == 1
    mass = entering * on_the_way / on_the_way.sum() + (1 - entering) * there / there.sum()
    return jnp.asarray(mass, jnp.float32)


@pytest.mark.parametrize("gamma", [0.9, 0.99, 0.998])
def test_a_flow_that_leaves_out_the_start_is_out_of_balance_whatever_the_discount(gamma):
    """A policy cloned from it has no idea how to begin; per step, only a part 1 - γ of the mass is wrong."""
    config, episodes = TrainingConfig().adapted({"dual.gamma": gamma, "network.hidden": (4,)}), forks()
    learner = algorithm_for("fairdice", STEPS, config)
    data = onto_device(episodes, STEPS, learner)
    hyper = hyper_of({"objective": ser(), "beta": 1.0, "learning_rate": 1e-3}, learner)
    state = learner.init(encoder_for(episodes, STEPS, learner, config.network), hyper, data, KEY)
    sines, steps = _test_functions(state), data.steps.everything()
    here = jax.vmap(sines)(steps.observation, steps.accrued, steps.time)
    there = expected_next(sines, steps)
    begins, spread = jnp.mean(here[data.initial], axis=0), jnp.std(here, axis=0)
    moved = [occupancy(data, entering) @ (gamma * there - here) for entering in (1 - gamma, 0.0)]
    sound, lost = (float(flow_violation(begins, each, spread, learner.setting.flow)) for each in moved)
    assert sound < 0.02
    assert lost > MOST_IMBALANCE
    assert (1 - gamma) * lost < MOST_IMBALANCE / 2  # what it would be per unit of all mass


def candidates(*violations: float) -> list[Candidate]:
    """Settings of which the last claims most and rests on least, as FairDICE's do in a maze."""
    return [
        Candidate(
            "SER",
            (i,),
            {
                "mass_violation": 0.0,
                "flow_violation": violation,
                "effective_sample_size": 0.7 / (i + 1),
                "held_out_claimed_value": 5.0 + i,
                "distance_to_twin": 0.1,
                "episodes": 100,
            },
        )
        for i, violation in enumerate(violations)
    ]


def test_the_boldest_setting_whose_flow_is_balanced_is_selected():
    assert select(candidates(0.2, 0.35, 0.48, 0.7, 1.5)) == [(2, RULE)]
    assert select(candidates(0.9, 0.7, 1.5)) == [(1, NONE_PASSED)]
    hints = algorithm_for("fairdice", STEPS, TrainingConfig()).hints
    verdicts = [judge(candidate.diagnostics, hints) for candidate in candidates(0.48, 0.7)]
    assert ["NOT converged" in verdict.words for verdict in verdicts] == [False, True]


@pytest.mark.parametrize(("name", "above"), [("aetdice", 1.0), ("optidice", 50.0), ("fairdice", 50.0)])
def test_beta_starts_a_hundred_times_above_its_default_whatever_the_flow(name, above):
    config = TrainingConfig().adapted({} if name == "aetdice" else {"dual.gamma": 0.98})
    learner = algorithm_for(name, STEPS, config)
    hyper = hyper_of({"objective": ser(), "learning_rate": 1e-3, **learner.sweeps}, learner)
    assert float(hyper.first_beta) == pytest.approx(0.1 * above)
    assert float(hyper.first_beta / hyper.beta) == pytest.approx(100)
    hyper = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), hyper)
    begins, ends = (annealed_beta(hyper, jnp.asarray(when), learner.setting) for when in (0.0, 1.0))
    assert float(begins / ends) == pytest.approx(100, rel=1e-4)
