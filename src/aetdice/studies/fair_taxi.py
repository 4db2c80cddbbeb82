"""Fair-Taxi as in the paper: behaviours over α, the non-Markovian probe, quantiles, dense rewards or not."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from aetdice.config import TrainingConfig
from aetdice.datasets import load_dataset, space_of
from aetdice.envs import FairTaxi
from aetdice.evaluation import Policy, Situation, sample_returns, standard_objectives
from aetdice.exact import Optimum, solve
from aetdice.files import write_json
from aetdice.objectives import bsr, lsr, ser
from aetdice.report.figures import share_bars
from aetdice.studies import study as framework
from aetdice.studies.paper import FAIR_TAXI, REGIMES
from aetdice.studies.return_quantiles import draw_quantiles
from aetdice.studies.score_tables import setting
from aetdice.studies.study import Effort, Population, Quantities, Returns, Row, Study, Summary, Table

BEHAVIOURS: dict[str, tuple[bool, bool]] = {
    "only group 0": (True, False),
    "both groups": (True, True),
    "only group 1": (False, True),
}
"""Whether each group gains something within an episode."""
OPTIMUM = "exact optimum of "
SHARES = "whom an episode serves"
HISTORY = "half-way at group 0's destination: who turns to group 1?"
PAID_AT_THE_END = ", paid at the end"
MAIN = (0.0, 0.5, 1.0)
"""What all methods are trained for: ESR, BSR(0.5) and SER."""
Alphas = tuple[tuple[float, ...], ...]
"""Each group is trained as one population; the last one once more with rewards at the end only."""

_LONG = {"extraction.floor": 0.01, "trainer.holdout": 0.1, "trainer.chunk": 2_000}
_SHORT = {"extraction.steps": 3_000, "trainer.chunk": 1_000}
LINEAR = "[0.5, 0.5]"
"""The weights of the row that optimises a plain sum."""


FULL = Effort(
    seeds=(0, 1, 2),
    episodes=4000,
    dataset=2000,
    grids={
        "aetdice": {"beta": (3e-3, 1e-3, 3e-4, 1e-4)},
        "fairdice": {"beta": (3.0, 1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3)},
        "optidice": {"beta": (3.0, 1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3)},
        "esr-iql": {"expectile": (0.85, 0.7, 0.9, 0.95), "temperature": (14.0, 3.0)},
    },
    config=framework.with_value_stage(TrainingConfig().adapted(_LONG), 12_000, 256),
)
QUICK = Effort(
    seeds=(0,),
    episodes=2000,
    dataset=2000,
    grids={
        "aetdice": {"beta": (1e-3,)},
        "fairdice": {"beta": (1e-1,)},
        "optidice": {"beta": (1e-1,)},
        "esr-iql": {"expectile": (0.85,), "temperature": (14.0,)},
    },
    config=framework.with_value_stage(TrainingConfig().adapted(_SHORT), 6_000, 256),
)
ALPHAS: tuple[Alphas, Alphas] = (
    ((0.0, 0.25, 0.45), (0.5, 0.75, 1.0), (0.0, 0.5)),
    ((0.0, 0.45, 1.0), (0.0,)),
)
"""Full and quick."""


ASKS = (
    "A taxi serves two groups of passengers. Does a policy that is trained for ESR, BSR or SER on recorded "
    "rides score as the certified optimum does, and serve whom it serves?"
)


def study(quick: bool) -> Study:
    return Study("fair-taxi", (table_of(QUICK if quick else FULL, ALPHAS[quick]),), asks=ASKS)


def table_of(effort: Effort, alphas: Alphas, **arguments: Any) -> Table:
    """The paper's table; the arguments are the environment's."""
    terminal = effort.config.adapted({"reward.terminal": True})
    every = sorted({*MAIN, *(alpha for group in alphas for alpha in group)})

    def population(name: str, group: tuple[float, ...], config: TrainingConfig, ending: str) -> Population:
        cloning_row = "cloning" if name == "alphas-0" else None
        return Population(
            name, "aetdice", rows_of(group, ending), effort.grids["aetdice"], config, cloning_row
        )

    populations = (
        *(population(f"alphas-{i}", group, effort.config, "") for i, group in enumerate(alphas[:-1])),
        population("terminal", alphas[-1], terminal, PAID_AT_THE_END),
        *framework.chosen_and_weighed(partial(rows_of, MAIN), effort.config),
        *baselines(effort),
    )
    table = taxi_table("fair-taxi", effort, every, populations, **arguments)
    return replace(table, paper=FAIR_TAXI, figures=draw)


def baselines(effort: Effort) -> tuple[Population, ...]:
    """ESR-IQL for ESR, FairDICE for SER, OptiDICE for a plain sum: each with AETDICE's budget."""
    rows = {
        "esr-iql": Row("ESR-IQL", bsr(0.0), "ESR", optimum_of(0.0)),
        "fairdice": Row("FairDICE", ser(), "SER", optimum_of(1.0)),
        "optidice": Row(f"OptiDICE {LINEAR}", lsr((0.5, 0.5))),
    }
    config = effort.config.adapted({"dual.refit": "layer"})  # see docs/algorithms/fairdice.md
    return tuple(Population(name, name, (row,), effort.grids[name], config) for name, row in rows.items())


def rows_of(alphas: Sequence[float], ending: str) -> tuple[Row, ...]:
    """A row for every α; its column is the one of that α, if there is one."""

    def row(alpha: float) -> Row:
        name = name_of(alpha)
        return Row(name + ending, bsr(alpha), name if alpha in MAIN else None, optimum_of(alpha))

    return tuple(row(alpha) for alpha in alphas)


def taxi_table(
    name: str,
    effort: Effort,
    every: Sequence[float],
    populations: tuple[Population, ...],
    quality: str = "mixed",
    **arguments: Any,
) -> Table:
    """Any Fair-Taxi and its data of a quality, beside the exact optima of these α."""
    taxi = FairTaxi(**arguments)
    columns = dict(zip(REGIMES[:3], standard_objectives().values(), strict=False))

    def references(dataset: framework.Dataset) -> dict[str, Any]:
        returns, space = dataset.seen.returns, space_of(taxi)
        assert space is not None
        own = {SHARES: shares(returns)}
        found = {"data": framework.reference_of(returns, columns, quantities=own)}
        for alpha in every:
            optimum = solve(space, bsr(alpha), check=False)
            found[optimum_of(alpha)] = {
                "value": optimum.value,
                "scores": {name: float(optimum.outcomes.score(column)) for name, column in columns.items()},
                "mean_returns": optimum.outcomes.mean.tolist(),
                "quantities": {SHARES: exact_shares(optimum)},
            }
        return found

    def dataset(_: Path) -> framework.Dataset:
        found = load_dataset(
            "fair-taxi", episodes=effort.dataset, seed=framework.DATA_SEED, quality=quality, **arguments
        )
        return framework.Dataset(found)

    return Table(
        name=name,
        title=name,
        horizon=taxi.horizon,
        effort=effort,
        columns=columns,
        populations=populations,
        facts={"alphas": list(every), "quality": quality, "environment": framework.facts_of(taxi)},
        dataset=dataset,
        play=framework.play_in(taxi, partial(quantities, taxi)),
        references=references,
        certified=True,
    )


def name_of(alpha: float) -> str:
    return {0.0: "ESR", 1.0: "SER"}.get(alpha, f"BSR {alpha:g}")


def optimum_of(alpha: float) -> str:
    return f"{OPTIMUM}{name_of(alpha)}"


def quantities(taxi: FairTaxi, policy: Policy, returns: Returns) -> Quantities:
    """Whom the episodes serve; and half-way, empty, at group 0's destination: whom next, by what accrued?"""
    row, column = taxi.destinations[0]
    state = jnp.asarray(taxi.state_of(row, column, 0))
    turned = {}
    for name, served in {"group 0 served 3 times": 3, "never served": 0}.items():
        accrued = np.zeros(len(taxi.origins), np.float32)
        accrued[0] = served * taxi.deliveries[0] / taxi.scale
        begin = Situation(state, jnp.asarray(accrued), jnp.asarray(taxi.horizon // 2))
        begun = sample_returns(policy, taxi, len(returns), framework.SEED, begin=begin)
        turned[name] = float(np.mean(begun[:, 1] > 0))
    return {SHARES: shares(returns), HISTORY: turned}


def shares(returns: Returns, probabilities: Any = None) -> dict[str, float]:
    """How often an episode shows each behaviour."""
    gained = returns > 0
    return {
        name: float(np.average(np.all(gained == np.array(gains), axis=1), weights=probabilities))
        for name, gains in BEHAVIOURS.items()
    }


def exact_shares(optimum: Optimum) -> dict[str, float]:
    """The same of an exact optimum."""
    return shares(optimum.outcomes.returns, optimum.outcomes.probabilities)


def draw(summary: Summary, folder: Path) -> None:
    """Shares of behaviours beside the exact ones, and quantiles of returns, for dense rewards."""
    references = summary["references"]
    rows = {n: row for n, row in summary["rows"].items() if row["optimum"] == f"{OPTIMUM}{n}" in references}
    if not rows:
        return
    bars = {
        name: {
            "learner": {key: found["mean"] for key, found in setting(row)["quantities"][SHARES].items()},
            "exact": references[row["optimum"]]["quantities"][SHARES],
        }
        for name, row in rows.items()
    }
    write_json(folder / "behaviours.json", bars)
    share_bars(folder / "behaviours.png", bars, "Whom the taxi serves within an episode", "trained for")
    draw_quantiles(rows, summary["objectives"], folder, "Returns over episodes, by objective")
