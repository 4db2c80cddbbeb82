"""Settings are chosen by how well cloning predicts held-out episodes, and within the effort."""

import itertools

import numpy as np
import pytest

from aetdice import Episode, Episodes, TrainingConfig, lsr
from aetdice.learning import choice, recipe
from aetdice.learning.choice import GRIDS
from aetdice.learning.recipe import EFFORTS, FEATURES, FLAT, MANY, WIDE, Effort, Trial, features_for, settle
from aetdice.learning.setup import algorithm_for, set_up

SMALL = TrainingConfig().adapted({"network.hidden": (16,)})


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(recipe, "UPDATES", 400)
    monkeypatch.setitem(recipe.EFFORTS, "standard", Effort((400,), 300))


def striped(stripes: float) -> Episodes:
    """Which of two actions is taken depends on the stripe that the observation lies in."""
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(60):
        x = rng.uniform(-1, 1, (21, 1))
        action = (np.floor(x[:-1, 0] * stripes) % 2).astype(int)
        episodes.append(Episode(x, action, np.ones((20, 1)), False, True))
    return Episodes.from_list(episodes)


def chosen(data: Episodes, config: TrainingConfig = SMALL) -> TrainingConfig:
    return settle(data, algorithm_for("aetdice", 20, config), 20, config)


@pytest.mark.trains
def test_fine_structure_asks_for_fourier_features():
    assert chosen(striped(8)).network.observation_fourier > 0
    trial = Trial.of(striped(8), algorithm_for("aetdice", 20, SMALL), 20)
    fits = [trial.fit(SMALL.adapted(dict(features)), 400) for features in FEATURES]
    assert max(fits[1:]) > fits[0] + 0.1


def test_what_was_set_by_hand_is_kept():
    given = {"network.observation_fourier": 2, "extraction.steps": 10, "dual.steps": 20}
    config = SMALL.adapted(given)
    assert chosen(striped(8), config) == config


def test_one_episode_leaves_nothing_to_hold_out():
    expected = SMALL.adapted({"dual.steps": 300, "dual.until_flat": True})
    assert chosen(striped(1).select(np.arange(1))) == expected


@pytest.mark.parametrize(
    ("gains", "expected"), [([2, 2], 400), ([2, 0.5], 200), ([0.5, 2], 100), ([-1, 5], 100)]
)
def test_training_is_lengthened_while_that_gains(monkeypatch, gains, expected):
    """In units of what counts as flat: 100, 200, 400 updates."""
    curve = dict(zip((100, 200, 400), np.cumsum([0, *gains]) * FLAT, strict=True))
    monkeypatch.setitem(recipe.EFFORTS, "standard", Effort((100, 200, 400), 300))
    monkeypatch.setattr(Trial, "fit", lambda self, config, updates, hear: curve[updates])
    config = SMALL.adapted({"network.observation_fourier": 1})
    assert chosen(striped(1), config).extraction.steps == expected


def test_dropout_and_width_are_tried_where_the_effort_has_them(monkeypatch):
    likes = {(0.1, (16,)): 1.0, (0.1, (32,)): 2.0}
    monkeypatch.setitem(recipe.EFFORTS, "standard", Effort((100,), 300, (0.1, 0.2), ((32,),)))
    monkeypatch.setattr(
        Trial, "fit", lambda self, c, updates, hear: likes.get((c.extraction.dropout, c.network.hidden), 0.0)
    )
    config = TrainingConfig().adapted({"network.observation_fourier": 1, "network.hidden": (16,)})
    assert chosen(striped(1), config).extraction.dropout == 0.1
    assert chosen(striped(1), config).network.hidden == (16,)  # set by hand


def observed(*shape: int, whole: bool = False) -> Episodes:
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(6):
        x = rng.integers(0, 3, (4, *shape)) if whole else rng.normal(size=(4, *shape))
        episodes.append(Episode(x, np.zeros(3, int), np.ones((3, 1)), False, True))
    return Episodes.from_list(episodes)


@pytest.mark.parametrize(
    ("data", "many"),
    [
        (observed(), False),
        (observed(whole=True), False),
        (observed(MANY), False),
        (observed(MANY + 1), True),
        (observed(MANY + 1, whole=True), False),
        (observed(2, MANY // 2 + 1), True),
    ],
    ids=["one", "a class", "few", "many", "many classes", "a table"],
)
def test_observations_of_many_numbers_get_wide_networks_and_no_sines(monkeypatch, data, many):
    monkeypatch.setattr(Trial, "fit", lambda self, config, updates, hear: float(updates))
    config = chosen(data, TrainingConfig())
    assert config.network.hidden == (WIDE if many else TrainingConfig().network.hidden)
    assert config.extraction.steps == (1600 if many else 400)
    tried = features_for(data)
    assert any("network.observation_fourier" in each for each in tried) == (len(tried) == len(FEATURES))
    assert chosen(data, SMALL).network.hidden == SMALL.network.hidden


def test_more_effort_is_more():
    assert list(EFFORTS) == ["quick", "standard", "thorough"]
    quick, *_, thorough = EFFORTS.values()
    assert quick.values < thorough.values
    assert max(quick.lengths) < max(thorough.lengths)


@pytest.mark.parametrize("name", ["esr-iql", "optidice", "fairdice", "episode-weighting", "bc"])
def test_every_algorithm_has_its_settings_chosen_unless_something_of_its_own_is_given(name, monkeypatch):
    found = SMALL.adapted(dict(FEATURES[2]))
    monkeypatch.setattr(choice, "settle", lambda *_: found)
    given = {"algorithm": name, "horizon": 20, "learning_rate": 1e-3, "seed": 0, "config": SMALL}

    def features_of(sweeps):
        network = set_up(striped(2), [lsr((1.0,))], sweeps=sweeps, **given).config.network
        return network.observation_fourier, network.fourier

    reads_time = name not in ("optidice", "fairdice")
    assert features_of({}) == (3, 3 if reads_time else SMALL.network.fourier)
    own = dict.fromkeys(algorithm_for(name, 20, SMALL).sweeps, 0.5)
    if own:
        assert features_of(own) == (0, SMALL.network.fourier)


def test_other_algorithms_try_values_of_their_own_where_policies_can_be_played():
    given = {"algorithm": "esr-iql", "horizon": 20, "learning_rate": 1e-3, "seed": [3, 4], "config": SMALL}

    def tried(data: Episodes, **own: float) -> set[tuple[float, float]]:
        found = set_up(data, [lsr((1.0,))], sweeps=own, **given)
        assert found.held_out is None or not own
        return {(each["expectile"], each["temperature"]) for each in found.choices}

    played, many = striped(2), observed(MANY + 1)
    assert tried(played) == set(itertools.product(*GRIDS["esr-iql"].values()))
    assert tried(played, expectile=0.9) == {(0.9, 14.0)}
    assert tried(many) == {(0.85, 14.0)}
