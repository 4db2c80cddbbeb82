"""Where a run's data and exact answers come from: an environment with a dataset of its own."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from aetdice.data import Episodes
from aetdice.envs import Environment, FairTaxi, FiniteEnvironment, point_maze_2obj, point_maze_3obj
from aetdice.envs.maze_data import collect_point_maze
from aetdice.envs.taxi_data import collect_fair_taxi
from aetdice.errors import InputError
from aetdice.exact import AugmentedSpace, TabularMOMDP, enumerate_space

COLLECTORS: dict[str, tuple[Callable[..., Environment], Callable[..., Episodes]]] = {
    "fair-taxi": (FairTaxi, collect_fair_taxi),
    "pointmaze-2obj": (point_maze_2obj, collect_point_maze),
    "pointmaze-3obj": (point_maze_3obj, collect_point_maze),
}
"""Environments with a dataset of their own, by short name."""


@dataclass(frozen=True)
class Source:
    """An environment's own dataset, described well enough to make it again."""

    env: str
    episodes: int | None = None
    """How many to collect; None takes the environment's own number."""
    dataset_seed: int = 0
    arguments: dict[str, Any] = field(default_factory=dict)

    def environment(self) -> Environment:
        if self.env not in COLLECTORS:
            raise InputError(f"no dataset is known for {self.env!r}; known: {', '.join(COLLECTORS)}")
        return COLLECTORS[self.env][0](**{name: _tuples(value) for name, value in self.arguments.items()})

    def dataset(self) -> Episodes:
        environment = self.environment()
        count = {} if self.episodes is None else {"episodes": self.episodes}
        return COLLECTORS[self.env][1](environment, seed=self.dataset_seed, **count)

    def space(self) -> AugmentedSpace | None:
        """For exact optima beside the learner's; None where states cannot be listed."""
        environment = self.environment()
        if not isinstance(environment, FiniteEnvironment):
            return None
        return enumerate_space(TabularMOMDP.from_environment(environment))

    def record(self) -> dict[str, Any]:
        return asdict(self)


def _tuples(value: Any) -> Any:
    """JSON turns tuples into lists; environments want tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
