"""How much of the MO-PointMaze study to do: the grids, the seeds, the networks."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from aetdice.config import TrainingConfig
from aetdice.envs import PointMaze, point_maze_2obj, point_maze_3obj

MAZES: dict[str, Callable[[], PointMaze]] = {
    "pointmaze-2obj": point_maze_2obj,
    "pointmaze-3obj": point_maze_3obj,
}
ALPHAS = {"ESR": 0.0, "BSR 0.5": 0.5, "SER": 1.0}
"""The rows of AETDICE as members of one family."""
WEIGHTS: dict[str, dict[str, tuple[float, ...]]] = {
    "pointmaze-2obj": {"[0.5, 0.5]": (0.5, 0.5), "[1, 0]": (1.0, 0.0), "[0.75, 0.25]": (0.75, 0.25)},
    "pointmaze-3obj": {
        "[1/3, 1/3, 1/3]": (1 / 3, 1 / 3, 1 / 3),
        "[1, 0, 0]": (1.0, 0.0, 0.0),
        "[0.75, 0.25, 0]": (0.75, 0.25, 0.0),
    },
}
ARMS = {
    2: "#######/#######/#######/#B.S.A#/#######/#######/#######",
    3: "#######/###C###/###.###/#B.S.A#/#######/#######/#######",
    4: "#######/###C###/###.###/#B.S.A#/###.###/###D###/#######",
}
"""A star with one goal at the end of each arm, for quality against the number of objectives."""


@dataclass(frozen=True)
class Plan:
    """One maze's study."""

    maze: str
    betas: tuple[float, ...]
    """Of AETDICE, in exact units; the ablation shows them all."""
    linear_betas: tuple[float, ...]
    """Of finite-horizon AETDICE with linear objectives, whose values are hundreds."""
    optidice_betas: tuple[float, ...]
    """Of the discounted flow, whose weights sum to one: the unit is the paper's own."""
    fairdice_betas: tuple[float, ...]
    expectiles: tuple[float, ...]
    temperatures: tuple[float, ...]
    """Of ESR-IQL; nothing but the environment tells its settings apart, so the first ones are taken."""
    baseline_steps: int
    """Updates of ν or of the values, for all but AETDICE's own rows."""
    baseline_batch: int
    """Fewer steps do for plain states, and the values of ESR-IQL travel one step of the horizon an update."""
    seeds: tuple[int, ...]
    episodes: int
    """Evaluation episodes per policy."""
    step: int
    """Of the grid of switch times, before they are refined to single steps."""
    config: TrainingConfig
    coverage_beta: float
    coverage_seeds: tuple[int, ...]
    arms: tuple[int, ...] = ()
    """Numbers of objectives to compare."""
    dataset: int = 1500
    """Episodes collected."""

    def environment(self) -> PointMaze:
        return MAZES[self.maze]()


NINE = (1e-2, 3e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5)
FIVE = (1e-3, 5e-4, 2e-4, 1e-4, 5e-5)
"""With three goals ν takes four times the steps, so the middle of the grid has to do."""
FULL = Plan(
    maze="pointmaze-2obj",
    betas=NINE,
    linear_betas=(1e-1, 3e-2, 1e-2),
    optidice_betas=(30.0, 10.0, 3.0),
    fairdice_betas=(1.0, 3e-1, 1e-1, 3e-2, 1e-2),
    expectiles=(0.85, 0.8, 0.9),
    temperatures=(14.0,),
    baseline_steps=24_000,
    baseline_batch=512,
    seeds=(0, 1, 2),
    episodes=1000,
    step=5,
    config=TrainingConfig(
        hidden=(256, 256),
        batch=1024,
        cloning_batch=512,
        value_steps=60_000,
        cloning_steps=24_000,
        dropout=0.2,
        holdout=0.1,
        chunk=4_000,
        waves=3,
        frequencies=3,
        value_frequencies=6,
    ),
    coverage_beta=2e-4,
    coverage_seeds=(0, 1, 2),
)
QUICK = replace(
    FULL,
    betas=(3e-3, 1e-3),
    linear_betas=(1e-1,),
    optidice_betas=(10.0,),
    fairdice_betas=(3e-1,),
    expectiles=(0.85,),
    baseline_steps=12_000,
    baseline_batch=256,
    seeds=(0,),
    episodes=500,
    step=10,
    config=TrainingConfig(
        hidden=(128, 128),
        batch=256,
        value_steps=12_000,
        cloning_steps=6_000,
        dropout=0.1,
        holdout=0.1,
        chunk=1_000,
        waves=3,
        frequencies=3,
    ),
    coverage_beta=1e-3,
    coverage_seeds=(0,),
)
PLANS: dict[str, tuple[Plan, Plan]] = {
    "pointmaze-2obj": (FULL, QUICK),
    "pointmaze-3obj": (
        replace(
            FULL,
            maze="pointmaze-3obj",
            betas=FIVE,
            step=10,
            config=replace(FULL.config, batch=2048, value_steps=120_000),
            arms=(2, 3, 4),
        ),
        replace(QUICK, maze="pointmaze-3obj", arms=(2, 3)),
    ),
}
"""Full and quick, by maze."""
