"""The D4MORL bodies as in the paper: convex F on Ant and Walker2d, Cobb-Douglas with and without safety."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aetdice.behaviours import load_behaviour
from aetdice.behaviours.stored import stored_episodes
from aetdice.config import TrainingConfig
from aetdice.data import Episodes, Transform
from aetdice.data.transforms import Chain, MinMax, Safety, SpeedAndEffort, WithoutBonus
from aetdice.envs.mujoco.body import HORIZON
from aetdice.envs.mujoco.recorder import RecordedBody
from aetdice.envs.transformed import TransformedBatch
from aetdice.errors import InputError
from aetdice.evaluation import Policy, sample_returns
from aetdice.objectives import AlphaFair, Linear, Objective
from aetdice.objectives.named import convex, lsr, safe_cobb_douglas, ser
from aetdice.studies import study as framework
from aetdice.studies.body_objectives import cobb_douglas, in_units_of_data, without_safety
from aetdice.studies.mujoco_figures import draw_behaviours, draw_collapse
from aetdice.studies.mujoco_rollouts import STAY_UP, UPRIGHT, act_returns, rollouts_in
from aetdice.studies.paper import CONVEX_BODIES, EFFICIENCY
from aetdice.studies.study import Dataset, Effort, Population, Rollouts, Row, Study, Table

WEIGHTS = {"[1, 0]": (1.0, 0.0), "[0.5, 0.5]": (0.5, 0.5), "[0, 1]": (0.0, 1.0)}
CONCAVE = convex(aggregation=AlphaFair())
"""Σ log E[exp(R_i / 50)]."""
RHOS = (0.1, 0.5)
EFFICIENCY_SCALES = {0.1: 10.0, 0.5: 0.2}
"""What brings E[R0^ρ / R1^(1-ρ)] of these bodies to order one, for the safe objective; by ρ."""
TRAINED_EPSILON = 1.0
"""Added to the cost in training, where costs are hundreds: with the 1e-3 of the scores, F(0) would be a
thousand times the value of a whole episode, and nearly all of r̃ would be its decay."""
SAFE_EPSILON = 20.0
"""The same for the safe objective, which is paid along the way, where that decay still is large."""
REFERENCE = 300
"""The first so many trajectories give the constants of the normalisation, whatever the dataset's size."""
_NETWORK = {"network.hidden": (256, 256), "network.fourier": 3, "network.value_fourier": 5}
_TRAINER = {"extraction.warm_up": 0.5, "trainer.holdout": 0.1, "trainer.chunk": 500}
_SHORT = framework.with_value_stage(
    TrainingConfig().adapted(_NETWORK | _TRAINER | {"extraction.steps": 8_000}), 6_000, 256
)
_POLICY = {"extraction.batch": 512, "extraction.steps": 32_000, "trainer.chunk": 4_000}
_LONG = framework.with_value_stage(_SHORT.adapted(_POLICY), 20_000, 1024)
FULL = Effort(
    seeds=(0, 1, 2, 3, 4),
    episodes=100,
    dataset=2000,
    grids={
        "aetdice": {"beta": (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)},  # in units of the data's value where G is linear
        "safe": {"beta": (1e-3, 3e-4, 1e-4, 5e-5, 2e-5, 1e-5, 5e-6)},  # a logarithm's slope falls
        # A discounted flow's weights sum to one: the unit of their papers.
        "discounted": {"beta": (10.0, 3.0, 1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3)},
        # In units of the data's value; the first are taken.
        "esr-iql": {"expectile": (0.85, 0.7, 0.95), "temperature": (100.0, 10.0, 30.0, 300.0)},
    },
    config=_LONG,
)
QUICK = Effort(
    seeds=(0,),
    episodes=40,
    dataset=300,
    grids={
        "aetdice": {"beta": (1e-3, 3e-4)},
        "safe": {"beta": (1e-4, 3e-5)},
        "discounted": {"beta": (1.0, 1e-1)},
        "esr-iql": {"expectile": (0.85,), "temperature": (100.0, 30.0)},
    },
    config=_SHORT,
)
_FINER = {"aetdice": {"beta": (3e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5)}}
FULL_EFFICIENCY = replace(FULL, grids={**FULL.grids, **_FINER})
SINGLE, LEFT_OUT = ", n = 1", ", safety left out"

_CONVEX = (
    "Utilities are exponentials of the speeds along two axes, so an episode is best spent on one of them. "
    "Does a concave G over them mix such episodes, where a weighted sum takes one kind alone?"
)
ASKS = {
    "ant": _CONVEX,
    "walker2d": _CONVEX.replace("the speeds along two axes", "speed and of saved energy"),
    "cobb-douglas": "How far do policies trade speed against effort, with the alive bonus counted as speed "
    "and without, and does a safety utility keep a walker on its feet?",
}


class Source(NamedTuple):
    """Whose data of which quality, in episodes of how many steps, and how much to do with it."""

    body: str
    quality: str
    effort: Effort
    horizon: int


def study(name: str, quick: bool) -> Study:
    full = FULL_EFFICIENCY if name == "cobb-douglas" else FULL
    return Study(name, tables_of(name, quick, QUICK if quick else full), asks=ASKS[name])


def tables_of(name: str, quick: bool, effort: Effort, horizon: int = HORIZON) -> tuple[Table, ...]:
    """Convex F for a body; or efficiency with and without the alive bonus, and where a walker falls."""
    both = ("expert", "amateur")

    def sources(body: str, *qualities: str) -> list[Source]:
        return [Source(body, quality, effort, horizon) for quality in qualities]

    if name != "cobb-douglas":
        chosen = sources(name, *(both if not quick else both[:1] if name == "ant" else both[1:]))
        scales = [(1.0, 1.0), (2.0, 1.0)] if name == "ant" and not quick else [(1.0, 1.0)]
        return tuple(convex_table(source, scale) for scale in scales for source in chosen)
    walker, halfcheetah = (
        [
            efficiency_table(source, bonus)
            for bonus in (True, False)
            for source in sources(body, *both[1 if quick else 0 :])
        ]
        for body in ("walker2d", "halfcheetah")
    )
    [unstable] = sources("walker2d", "unstable")
    return (*walker, efficiency_table(unstable, True), *halfcheetah)


def convex_table(source: Source, scale: tuple[float, float]) -> Table:
    """F = exp(R/50) on min-max-normalised rewards, with linear and with concave G."""
    body, quality = source.body, source.quality
    name = f"{quality}-{'-'.join(f'{c:g}' for c in scale)}"
    exponential = {f"w={w}": convex(aggregation=Linear(np.array(given))) for w, given in WEIGHTS.items()}

    def rows(method: str) -> tuple[Row, ...]:
        return tuple(Row(f"{method} {h.removeprefix('w=')}", o, h) for h, o in exponential.items())

    linear = tuple(Row(f"Lin-{w}", lsr(np.array(given))) for w, given in WEIGHTS.items())

    def concave(ending: str) -> tuple[Row, ...]:
        return (Row(f"AETDICE{ending}", CONCAVE, "G, F"),)

    return body_table(
        source,
        lambda reference: MinMax.fit(reference, scale),
        name=name,
        title=f"{body}, {quality}, c = ({', '.join(f'{c:g}' for c in scale)})",
        columns={**exponential, "G, F": CONCAVE},
        populations=(
            own(source, "aetdice", concave(""), "cloning"),
            own(source, "aet-esr", rows("AET-ESR")),
            own(source, "n-1", concave(SINGLE), n_step=1),
            *framework.chosen_and_weighed(concave, source.effort.config),
            baseline(source, "esr-iql", rows("ESR-IQL")),
            baseline(source, "optidice", linear, "cloning, state only"),
            baseline(source, "fairdice", (Row("FairDICE", ser()),)),
        ),
        paper=CONVEX_BODIES[body, quality] if scale == (1.0, 1.0) else {},
        figures=partial(draw_behaviours, name) if body == "ant" else lambda *_: None,
    )


def efficiency_table(source: Source, bonus: bool) -> Table:
    """Cobb-Douglas: speed against effort, with the alive bonus in speed or as the distance alone.

    Walker2d has the safety channel, too, and the safe objectives.
    """
    body, quality = source.body, source.quality
    name = f"{body}-{quality}-{'bonus' if bonus else 'distance'}"
    walker = body == "walker2d"

    def plain(epsilon: float) -> dict[str, Objective]:
        return {f"CD({rho:g})": cobb_douglas(rho, epsilon) for rho in RHOS}

    def safe(epsilon: float) -> dict[str, Objective]:
        make = partial(safe_cobb_douglas, horizon=float(source.horizon), epsilon=epsilon)
        scales = EFFICIENCY_SCALES.items() if walker else ()
        return {f"safe-CD({rho:g})": make(rho, efficiency_scale=scale) for rho, scale in scales}

    def rows(method: str, objectives: Mapping[str, Objective], ending: str = "") -> tuple[Row, ...]:
        return tuple(Row(f"{method} {head}{ending}", own, head) for head, own in objectives.items())

    trained, safest = plain(TRAINED_EPSILON), safe(SAFE_EPSILON)
    alone = {head: without_safety(objective) for head, objective in safest.items()}
    weighed = framework.chosen_and_weighed(partial(rows, "AETDICE", trained), source.effort.config)
    first = () if bonus else (WithoutBonus((1.0, 0.0)),)
    reshape = Chain((*first, SpeedAndEffort(), *((Safety(),) if walker else ())))
    return body_table(
        source,
        lambda _: reshape,
        name=name,
        title=f"{body}, {quality}, {'with the alive bonus' if bonus else 'distance only'}",
        columns={**plain(1e-3), **safe(1e-3)},
        populations=(
            paid(own(source, "aetdice", rows("AETDICE", trained), "cloning")),
            paid(own(source, "n-1", rows("AETDICE", trained, SINGLE), n_step=1)),
            *map(paid, weighed),
            paid(baseline(source, "esr-iql", rows("ESR-IQL", trained))),
            *([paid(own(source, "safe", rows("AETDICE", safest)))] if walker else []),
            *([paid(own(source, "alone", rows("AETDICE", alone, LEFT_OUT)))] if walker else []),
        ),
        stills=True,
        paper=EFFICIENCY[body] if bonus and quality != "unstable" else {},
        figures=partial(draw_collapse, name) if walker else lambda *_: None,
    )


def own(
    source: Source,
    name: str,
    rows: tuple[Row, ...],
    cloning_row: str | None = None,
    n_step: int | None = None,
) -> Population:
    """AETDICE of whole episodes, or of so many steps at a time: the selected setting is rolled out."""
    config, grids = source.effort.config, source.effort.grids
    grid = grids["safe" if name in ("safe", "alone") else "aetdice"]
    config = config.adapted({"dual.n_step": n_step or source.horizon})
    return Population(name, "aetdice", rows, grid, config, cloning_row, evaluates="selected")


def baseline(source: Source, name: str, rows: tuple[Row, ...], cloning_row: str | None = None) -> Population:
    """A baseline with AETDICE's budget, discounting over as many steps as an episode has.

    All settings are rolled out, so that a table can show the best in the environment as well. With the
    usual averaging of 0.995 the critics' values come late to the start of 500 steps.
    """
    settings = {"iql.critic_averaging": 0.95, "dual.gamma": 1 - 1 / source.horizon}
    config, grids = source.effort.config.adapted(settings), source.effort.grids
    return Population(name, name, rows, grids.get(name, grids["discounted"]), config, cloning_row)


def paid(population: Population) -> Population:
    """Its utility paid at the end: a cost that adds up makes r̃ along the way all but cancel."""
    return replace(population, config=population.config.adapted({"reward.terminal": True}))


def body_table(
    source: Source,
    transform: Callable[[Episodes], Transform],
    *,
    columns: Mapping[str, Objective],
    stills: bool = False,
    **given: Any,
) -> Table:
    """A body's data of one quality, its rewards reshaped; perhaps beside what standing still does."""
    body, quality, effort, horizon = source

    def dataset(folder: Path) -> Dataset:
        raw = stored_episodes(body, quality, effort.dataset, horizon, folder / "data")
        first = [raw[i] for i in range(min(REFERENCE, len(raw)))]
        return Dataset(raw, transform(Episodes.from_list(first, raw.objectives)))

    def play(policies: Sequence[Policy], episodes: int) -> list[Rollouts]:
        env = RecordedBody(body, horizon)
        sample = partial(sample_returns, env=env, episodes=episodes, seed=framework.SEED)
        return [rollouts_in(env, partial(sample, policy)) for policy in policies]

    def references(dataset: Dataset) -> dict[str, Any]:
        seen, env = dataset.seen, RecordedBody(body, horizon)
        upright = {UPRIGHT: {STAY_UP: float(1 - seen.terminated.mean())}}
        found = {"data": framework.reference_of(seen.returns, columns, quantities=upright)}
        if stills and dataset.transform is not None:
            reshaped, behaviour = TransformedBatch(env, dataset.transform), load_behaviour(body)
            size, last = env.body.body.action_size, behaviour.preferences[-1]
            acts = {
                "standing still": lambda shown: behaviour.act(shown, last),
                "no action": lambda shown: np.zeros((len(shown), size)),
            }
            for name, act in acts.items():
                still = rollouts_in(env, partial(act_returns, reshaped, act))
                found[name] = framework.reference_of(still.returns, columns, quantities=still.quantities)
        return found

    return Table(
        horizon=horizon,
        effort=effort,
        columns=columns,
        facts={"body": body, "quality": quality, "behaviour": behaviour_hash(body), "reference": REFERENCE},
        dataset=dataset,
        play=play,
        references=references,
        prefix=f"{given['name']}-",
        separate=True,
        trained=in_units_of_data,
        **given,
    )


def behaviour_hash(body: str) -> str | None:
    """Of the policy that comes with the package; None without one, which is said when it is needed."""
    try:
        return load_behaviour(body).sha256
    except InputError:
        return None
