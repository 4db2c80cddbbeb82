"""What to train, and how long: features, length, dropout and width, by the likelihood of held-out episodes.

How well plain cloning predicts episodes it has not seen ranks settings as the environment does; a
ratio-weighted J does not. One thing is chosen after the other, each with short trials of cloning; what was
set by hand is kept.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from aetdice.algorithms import Algorithm
from aetdice.algorithms.cloning import cloning
from aetdice.algorithms.sampling import SampleWeights, cumulative_shares
from aetdice.config import TrainingConfig, is_among
from aetdice.data import Episodes
from aetdice.data.device import DeviceData
from aetdice.learning.inputs import encoder_for, has_discrete_observations, head_for, onto_device
from aetdice.learning.population import draw_policy, fit_of_policies, start_policies, train_policies
from aetdice.progress import tell

Settings = Mapping[str, Any]

FEATURES: tuple[Settings, ...] = (
    {},
    {"network.fourier": 1},
    {"network.observation_fourier": 3, "network.fourier": 3},
    {"network.observation_fourier": 5, "network.fourier": 3},
)
"""Of continuous observations."""
MANY = 8
"""Numbers in a continuous observation: of more there is more to learn, and less data near any of them."""
FEATURES_OF_MANY: tuple[Settings, ...] = ({}, {"network.fourier": 1}, {"network.fourier": 3})
WIDE = (256, 256)
"""Hidden layers for those."""
VALUE_STAGES = ("dual.steps", "iql.steps")
UPDATES = 2_000
"""Of a trial that compares features."""
FLAT = 0.01
"""In nats: twice as many updates must gain as much to be worth it."""
HELD_OUT = 0.1
MOST_EPISODES = 2_000
"""Of a dataset, by which settings are chosen."""
RATE = 1e-3


class Effort(NamedTuple):
    """How much a choice and a training may cost."""

    lengths: tuple[int, ...]
    """Updates of cloning, from the fewest to the most."""
    values: int
    """Updates of ν, or of Q and V."""
    dropouts: tuple[float, ...] = ()
    """Tried beside none."""
    widths: tuple[tuple[int, ...], ...] = ()
    """Tried beside the default."""

    @property
    def for_many(self) -> "Effort":
        """With longer cloning, and no widths to try, where observations have many numbers."""
        longest = self.lengths[-1]
        return self._replace(lengths=(*self.lengths, 2 * longest, 4 * longest), widths=())


EFFORTS = {
    "quick": Effort((3_000,), 6_000),
    "standard": Effort((6_000, 12_000), 12_000),
    "thorough": Effort((6_000, 12_000, 24_000), 36_000, (0.1, 0.2), ((256, 256),)),
}


def settle(dataset: Episodes, algorithm: Algorithm, horizon: int, config: TrainingConfig) -> TrainingConfig:
    """The configuration with what was not set by hand chosen within its effort."""
    effort, given = effort_for(dataset, config.trainer.effort), config.changed()
    config = widened(dataset, config)
    open_ones = [name for name in VALUE_STAGES if is_open(name, algorithm, config)]
    stops = {"dual.until_flat": True} if "dual.steps" in open_ones else {}
    config = config.adapted({**dict.fromkeys(open_ones, effort.values), **stops})
    trial = Trial.of(dataset, algorithm, horizon)
    if trial is None:
        return config
    candidates = features_for(dataset)
    if candidates and not _touched(given, FEATURES):
        config = trial.best("features", [config.adapted(features) for features in candidates], UPDATES)
    if "extraction.steps" not in given:
        config = _long_enough(trial, config, effort.lengths)
    length = config.extraction.steps
    for name, values in (("extraction.dropout", effort.dropouts), ("network.hidden", effort.widths)):
        if values and name not in given:
            others = [config.adapted({name: value}) for value in values]
            config = trial.best(name.partition(".")[2], [config, *others], length)
    return config


def effort_for(dataset: Episodes, name: str) -> Effort:
    """What an effort means for these data."""
    return EFFORTS[name].for_many if _has_many_numbers(dataset) else EFFORTS[name]


def features_for(dataset: Episodes) -> Sequence[Settings]:
    """Those to choose from; none where observations are discrete."""
    if has_discrete_observations(dataset):
        return ()
    return FEATURES_OF_MANY if _has_many_numbers(dataset) else FEATURES


def widened(dataset: Episodes, config: TrainingConfig) -> TrainingConfig:
    """With wide networks, where observations have many numbers and no width was set by hand."""
    wide = _has_many_numbers(dataset) and "network.hidden" not in config.changed()
    return config.adapted({"network.hidden": WIDE}) if wide else config


def _has_many_numbers(dataset: Episodes) -> bool:
    return not has_discrete_observations(dataset) and math.prod(dataset.observations.shape[1:]) > MANY


def is_open(name: str, algorithm: Algorithm, config: TrainingConfig) -> bool:
    """Whether the algorithm reads a setting that was not set by hand."""
    return name not in config.changed() and not is_among(name, algorithm.ignores)


def _touched(given: Settings, candidates: Sequence[Settings]) -> bool:
    return any(name in given for candidate in candidates for name in candidate)


def _long_enough(trial: "Trial", config: TrainingConfig, lengths: Sequence[int]) -> TrainingConfig:
    """The first length that the next one does not improve on."""
    length, hear = lengths[0], partial(tell, "choosing length")
    reached = trial.fit(config, length, partial(hear, total=length)) if len(lengths) > 1 else 0.0
    for longer in lengths[1:]:
        fit = trial.fit(config, longer, partial(hear, total=longer))
        if fit < reached + FLAT:
            break
        length, reached = longer, fit
    return config.adapted({"extraction.steps": length})


class Trial(NamedTuple):
    """Episodes to clone, and others to predict."""

    training: Episodes
    seen: DeviceData
    held_out: DeviceData
    algorithm: Algorithm
    horizon: int

    @classmethod
    def of(cls, dataset: Episodes, algorithm: Algorithm, horizon: int) -> "Trial | None":
        """None if there are too few episodes to hold any out."""
        order = np.random.default_rng(0).permutation(len(dataset))[:MOST_EPISODES]
        count = max(1, round(HELD_OUT * len(order)))
        if count == len(order):
            return None
        training, kept = (dataset.select(np.sort(rows)) for rows in (order[count:], order[:count]))
        plain = cloning(horizon, TrainingConfig())
        seen, held_out = (onto_device(part, horizon, plain) for part in (training, kept))
        return cls(training, seen, held_out, algorithm, horizon)

    def best(self, what: str, candidates: Sequence[TrainingConfig], updates: int) -> TrainingConfig:
        """The candidate whose cloning predicts held-out episodes best."""

        def fit(index: int) -> float:
            before, total = index * updates, len(candidates) * updates
            return self.fit(
                candidates[index], updates, lambda done: tell(f"choosing {what}", before + done, total)
            )

        return candidates[int(np.argmax([fit(index) for index in range(len(candidates))]))]

    def fit(
        self, config: TrainingConfig, updates: int, hear: Callable[[int], None] = lambda _: None
    ) -> float:
        """E[log π(a|s̃)] of held-out steps, after a cloning of the others; `hear` is told how far it is."""
        network, seeds = config.network, jnp.zeros(1, jnp.int32)
        encoder = encoder_for(self.training, self.horizon, self.algorithm, network)
        states = start_policies(encoder, head_for(self.training, network), network.hidden, seeds)
        weights = SampleWeights(jnp.asarray(cumulative_shares(np.asarray(self.seen.steps.weight))))
        extraction = config.adapted({"extraction.steps": updates}).extraction
        for first in range(0, updates, UPDATES):
            steps = jnp.arange(first, min(first + UPDATES, updates))
            shown = jax.tree.map(
                lambda leaf: leaf[None], draw_policy(weights, seeds[0], steps, extraction.batch)
            )
            states = train_policies(states, shown, jnp.full(1, RATE), seeds, self.seen, steps, extraction)
            jax.tree.map(lambda leaf: leaf.block_until_ready(), states)
            hear(first + len(steps))
        return float(fit_of_policies(states, self.held_out)[0])
