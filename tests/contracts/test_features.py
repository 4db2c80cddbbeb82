"""Features of continuous observations are chosen by how well cloning predicts held-out episodes."""

import numpy as np
import pytest

from aetdice import Episode, Episodes, TrainingConfig, lsr
from aetdice.learning import features, setup
from aetdice.learning.features import CANDIDATES, choose_features
from aetdice.learning.setup import algorithm_for, set_up

SMALL = TrainingConfig().adapted({"network.hidden": (16,)})


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(features, "UPDATES", 400)


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
    return choose_features(data, algorithm_for("aetdice", 20, config), 20, config)


@pytest.mark.trains
def test_fine_structure_asks_for_fourier_features():
    assert chosen(striped(8)).network.observation_fourier > 0
    fits = {}
    for candidate in CANDIDATES:
        data, config = striped(8), SMALL.adapted(dict(candidate))
        algorithm = algorithm_for("aetdice", 20, config)
        parts = data.select(np.arange(50)), data.select(np.arange(50, 60))
        fits[config.network.observation_fourier] = features._fit(*parts, algorithm, 20, config)
    assert max(fits[3], fits[5]) > fits[0] + 0.1


def test_what_was_set_by_hand_is_kept():
    config = SMALL.adapted({"network.observation_fourier": 2})
    assert chosen(striped(8), config) == config
    one = striped(1).select(np.arange(1))
    assert chosen(one) == SMALL


@pytest.mark.parametrize("name", ["esr-iql", "optidice", "fairdice", "episode-weighting", "bc"])
def test_every_algorithm_has_its_features_chosen_unless_something_of_its_own_is_given(name, monkeypatch):
    found = SMALL.adapted(dict(CANDIDATES[1]))
    monkeypatch.setattr(setup, "choose_features", lambda *_: found)
    given = {"algorithm": name, "horizon": 20, "learning_rate": 1e-3, "seed": 0, "config": SMALL}

    def features_of(sweeps):
        network = set_up(striped(2), [lsr((1.0,))], sweeps=sweeps, **given).config.network
        return network.observation_fourier, network.fourier

    reads_time = name not in ("optidice", "fairdice")
    assert features_of({}) == (3, 3 if reads_time else SMALL.network.fourier)
    own = dict.fromkeys(algorithm_for(name, 20, SMALL).sweeps, 0.5)
    if own:
        assert features_of(own) == (0, SMALL.network.fourier)
