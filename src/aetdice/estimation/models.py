"""Which model of the recorded transitions a dataset has: one implementation for learners and estimates."""

import numpy as np

from aetdice.data import Episodes
from aetdice.data.successors import number_rows
from aetdice.estimation.counted_model import CountedModel
from aetdice.estimation.neighbour_model import NeighbourModel
from aetdice.estimation.pooling import depends_on_time

Model = CountedModel | NeighbourModel

MOST_DIMENSIONS = 8
"""Of observations and continuous actions together, for neighbours to be near."""


def model_of(episodes: Episodes, horizon: int) -> Model | None:
    """The model of the data, if they have one."""
    kind = kind_of_model(episodes)
    return None if kind is None else kind(episodes, horizon)


def estimation_model(episodes: Episodes, horizon: int, kind: type[Model]) -> Model:
    """The model of the data; it tells times apart where what follows a state and action depends on them."""
    if kind is CountedModel:
        return CountedModel(episodes, horizon, depends_on_time(episodes))
    return kind(episodes, horizon)


def kind_of_model(episodes: Episodes) -> type[Model] | None:
    """Counted where states are whole numbers that come again; by neighbours where those are near."""
    flat = episodes.observations.reshape(len(episodes.observations), -1)
    discrete = np.issubdtype(episodes.actions.dtype, np.integer)
    if discrete and episodes.actions.ndim != 1:
        return None
    numbers = number_rows(flat) if discrete else None
    if numbers is not None and 2 * int(numbers.max() + 1) <= len(numbers):
        return CountedModel
    dimensions = flat.shape[1] + (0 if discrete else episodes.actions[0].size)
    return NeighbourModel if dimensions <= MOST_DIMENSIONS else None
