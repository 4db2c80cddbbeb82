"""The studies of the mazes, with coverage: episodes that begin with reward accrued, and more objectives."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from aetdice.envs import PointMaze
from aetdice.envs.point_maze.schedules import drive_all, orders, tours
from aetdice.evaluation import Policy, Situation, sample_returns
from aetdice.exact.mixtures import best_mixture
from aetdice.learning.run import Member, gap_share
from aetdice.objectives import Objective, bsr, in_float64
from aetdice.progress import Progress
from aetdice.report.sheets import Cell, Sheet, line
from aetdice.studies import point_maze
from aetdice.studies.maze_figures import draw_stars
from aetdice.studies.parts import Part
from aetdice.studies.point_maze import FULL, FULL_3, LEGS, MAZES, QUICK, maze_table, table_of
from aetdice.studies.populations import population_facts, table_facts, train_population
from aetdice.studies.score_tables import gap_cell
from aetdice.studies.study import SEED, Effort, Population, Probe, Returns, Row, Study, Summary, Table

AMOUNTS = (20.0, 60.0, 150.0)
"""Reward that one goal has brought before the episode begins, in units of its scale."""
ARMS = {
    2: "#######/#######/#######/#B.S.A#/#######/#######/#######",
    3: "#######/###C###/###.###/#B.S.A#/#######/#######/#######",
    4: "#######/###C###/###.###/#B.S.A#/###.###/###D###/#######",
}
"""A star with one goal at the end of each arm, for quality against the number of objectives."""
ARM_DISTANCE, ARM_STEP = 0.3, 30
TRAINED = {"ESR": 0.0, "SER": 1.0}
ASKS = (
    "A point mass is driven to goals that pay while it is near. Does training for an objective win under "
    "that objective, against other methods and beside the best that is known? And where reward was accrued "
    "before the start, or goals are more?"
)


def study(name: str, quick: bool) -> Study:
    if name == "pointmaze-2obj":
        return study_of(name, QUICK if quick else FULL, 10 if quick else 5)
    return study_of(name, QUICK if quick else FULL_3, 10, (2, 3) if quick else (2, 3, 4))


def study_of(name: str, effort: Effort, step: int, arms: tuple[int, ...] = ()) -> Study:
    """A maze's table, stars of so many arms, and episodes that begin with reward accrued."""
    main, stars = table_of(name, effort, step), {m: star_table(m, effort) for m in arms}

    def figures(summaries: Mapping[str, Summary], folder: Path) -> None:
        draw_stars({m: summaries[table.name] for m, table in stars.items()}, folder)

    probe = initial_reward(main, MAZES[name](), 2 * step)
    return Study(name, (main, *stars.values()), (probe,), figures, asks=ASKS)


def _population(maze: PointMaze, effort: Effort, *names: str) -> Population:
    rows = (
        Row(n, bsr(TRAINED[n], threshold=maze.utility_threshold), n, point_maze.best_for(n)) for n in names
    )
    return Population("aetdice", "aetdice", tuple(rows), effort.grids["coverage"], effort.config)


def star_table(arms: int, effort: Effort) -> Table:
    """The same training on a star of so many arms, for ESR and for SER."""
    maze = PointMaze(ARMS[arms], distance=ARM_DISTANCE)
    population = _population(maze, effort, *TRAINED)
    headings = {row.name: row.objective for row in population.rows}
    table = maze_table(f"star-{arms}", maze, headings, {}, effort, tours(arms), ARM_STEP)
    facts = {**table.facts, "layout": ARMS[arms], "distance": ARM_DISTANCE}
    return replace(table, populations=(population,), prefix=f"{table.name}-", facts=facts)


def initial_reward(table: Table, maze: PointMaze, step: int) -> Probe:
    """A policy trained for ESR on episodes that begin with nothing, begun with something."""
    episodes, population = table.effort.episodes, _population(maze, table.effort, "ESR")
    objective = population.rows[0].objective

    def work(folder: Path, progress: Progress) -> dict[str, Any]:
        run = train_population(table, population, folder, progress)
        known = drive_all(maze, orders(len(maze.objectives), LEGS), step)
        cases = []
        for accrued in initial_rewards(maze):
            best = best_mixture(objective, known.returns + accrued)
            cases.append(
                {
                    "accrued": accrued.tolist(),
                    "best": best.value,
                    "best_gains": (best.probabilities @ known.returns[best.rows]).tolist(),
                    "schedules": point_maze.described(known, best, maze.objectives),
                    "seeds": [_begun(member, maze, episodes, accrued, objective) for member in run.members],
                }
            )
        return {"cases": cases}

    own = {"episodes": episodes, "amounts": AMOUNTS, "step": step}
    facts = {**table_facts(table), **population_facts(table, population), **own}
    return Probe(Part("initial-reward", facts, work), initial_reward_sheet)


def initial_rewards(maze: PointMaze) -> list[Float[np.ndarray, " m"]]:
    """Nothing, then each amount for each goal."""
    each = np.diag(np.asarray(maze.scales))
    return [np.zeros(len(each)), *(amount * goal for amount in AMOUNTS for goal in each)]


def _begun(
    member: Member, maze: PointMaze, episodes: int, accrued: Float[np.ndarray, " m"], objective: Objective
) -> dict[str, Any]:
    """J of what has accrued in the end: of the policy, of its twin, and had the policy not been told."""
    start = maze.reset(jax.random.key(SEED))
    begin = Situation(start, jnp.asarray(accrued, jnp.float32), jnp.zeros((), jnp.int32))

    def played(policy: Policy, begin: Situation | None) -> Returns:
        return sample_returns(policy, maze, episodes, SEED, begin=begin).astype(np.float64)

    told, score = played(member.policy, begin), in_float64(objective)
    return {
        "score": float(score(told)),
        "not_told": float(score(played(member.policy, None) + accrued)),
        "twin": float(score(played(member.twin, begin))),
        "gains": (told.mean(axis=0) - accrued).tolist(),
    }


def initial_reward_sheet(found: Mapping[str, Any]) -> Sheet:
    """How a policy trained for ESR from nothing does when something has accrued already."""
    heads = ("learner", "not told", "twin", "best schedules", "gap closed", "gains", "best schedules' gains")
    lines = []
    for case in found["cases"]:
        seeds, best = case["seeds"], case["best"]
        means = (float(np.mean([seed[key] for seed in seeds])) for key in ("score", "not_told", "twin"))
        lines.append(
            line(
                point_maze.vector(case["accrued"]),
                *(Cell(f"{value:.2f}", value) for value in (*means, best)),
                gap_cell([gap_share(seed["score"], seed["twin"], best) for seed in seeds]),
                point_maze.vector(np.mean([seed["gains"] for seed in seeds], axis=0).tolist()),
                point_maze.vector(case["best_gains"]),
            )
        )
    title = "ESR of episodes that begin with reward accrued"
    return Sheet(title, ("accrued at the start", *heads), lines)
