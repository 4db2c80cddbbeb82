"""Where a run's data and exact answers come from: an environment with a dataset of its own."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from aetdice.behaviours import collect_body
from aetdice.behaviours.collection import TRAJECTORIES
from aetdice.data import Episodes
from aetdice.envs import FairTaxi, FiniteEnvironment, point_maze_2obj, point_maze_3obj
from aetdice.envs.bodies import BODIES, BatchedBody
from aetdice.envs.maze_data import collect_point_maze
from aetdice.envs.taxi_data import collect_fair_taxi
from aetdice.errors import InputError
from aetdice.evaluation import Playable
from aetdice.exact import AugmentedSpace, TabularMOMDP, enumerate_space


def collect_walks(
    body: BatchedBody, episodes: int = TRAJECTORIES, seed: int = 0, quality: str = "expert"
) -> Episodes:
    """Episodes of the behaviour policy that comes with the package."""
    found = collect_body(body.body.name, quality, episodes, seed, horizon=body.horizon)
    return Episodes.from_list(found, body.objectives)


BODY_COLLECTORS = {f"d4morl-{name}": (partial(BatchedBody, name), collect_walks) for name in BODIES}
"""Those whose data has a quality."""
COLLECTORS: dict[str, tuple[Callable[..., Playable], Callable[..., Episodes]]] = {
    "fair-taxi": (FairTaxi, collect_fair_taxi),
    "pointmaze-2obj": (point_maze_2obj, collect_point_maze),
    "pointmaze-3obj": (point_maze_3obj, collect_point_maze),
    **BODY_COLLECTORS,
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
    quality: str | None = None
    """Expert, amateur or faltering, of a body's data; None is expert."""

    def environment(self) -> Playable:
        if self.env not in COLLECTORS:
            raise InputError(f"no dataset is known for {self.env!r}; known: {', '.join(COLLECTORS)}")
        if self.quality is not None and self.env not in BODY_COLLECTORS:
            raise InputError(f"{self.env} has one dataset; a choice have {', '.join(BODY_COLLECTORS)}")
        return COLLECTORS[self.env][0](**{name: _tuples(value) for name, value in self.arguments.items()})

    def dataset(self) -> Episodes:
        environment = self.environment()
        given = {"episodes": self.episodes, "quality": self.quality}
        options = {name: value for name, value in given.items() if value is not None}
        return COLLECTORS[self.env][1](environment, seed=self.dataset_seed, **options)

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
