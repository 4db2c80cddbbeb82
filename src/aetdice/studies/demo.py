"""The demonstration: the two-step problem exactly, then Fair-Taxi learned from data, beside its optima."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from rich.console import Console
from rich.table import Table

from aetdice.config import TrainingConfig
from aetdice.envs import FairTaxi, TwoStep
from aetdice.envs.fair_taxi.collection import collect_fair_taxi
from aetdice.evaluation import Policy, sample_returns
from aetdice.exact import Optimum, TabularMOMDP, enumerate_space, solve
from aetdice.files import versions, write_json
from aetdice.learning.run import Member, gap_share
from aetdice.learning.training import train
from aetdice.objectives import Objective, bsr, esr, lsr, ser
from aetdice.progress import Progress
from aetdice.report.figures import share_bars
from aetdice.report.tables import columns
from aetdice.studies.fair_taxi import exact_shares, shares
from aetdice.studies.score_tables import gap_words

ALPHAS = {"ESR": 0.0, "BSR 0.25": 0.25, "BSR 0.5": 0.5, "BSR 0.75": 0.75, "SER": 1.0}
EPISODES = 2000
SHORT = TrainingConfig().adapted({"extraction.steps": 4_000})


def demo(out: Path, console: Console, progress: Progress | bool = True) -> None:
    """Print the tables, and write the picture and its data to `out`."""
    console.print(figure_one(), "")
    taxi = FairTaxi()
    space = enumerate_space(TabularMOMDP.from_environment(taxi))
    optima = {name: solve(space, bsr(alpha)) for name, alpha in ALPHAS.items()}
    dataset = collect_fair_taxi(taxi)
    console.print(
        f"Fair-Taxi: {space.size:,} augmented states solved exactly; learning from {len(dataset):,} recorded "
        "episodes, one population for all objectives",
        style="dim",
    )
    run = train(dataset, [bsr(alpha) for alpha in ALPHAS.values()], config=SHORT, progress=progress)
    learners = dict(zip(ALPHAS, run.members, strict=True))
    console.print(taxi_table(taxi, learners, optima, dataset.returns), "")
    behaviours = {
        name: {"learner": shares(_returns(member.policy, taxi)), "exact": exact_shares(optima[name])}
        for name, member in learners.items()
    }
    write_json(
        out / "behaviours.json",
        {"behaviours": behaviours, "episodes": EPISODES, "seconds": run.seconds, "versions": versions()},
    )
    share_bars(out / "behaviours.png", behaviours, "Whom the taxi serves within an episode", "trained for")
    console.print(
        f"This was a shortened run with one seed ({run.seconds:.0f} s). The full study is `aetdice reproduce "
        "fair-taxi`; docs/fair-taxi.md has what it reaches.\n"
        f"behaviours from ESR to SER: {out / 'behaviours.png'} (data beside it)"
    )


def _returns(policy: Policy, taxi: FairTaxi) -> Float[np.ndarray, "episodes m"]:
    return sample_returns(policy, taxi, EPISODES, seed=0)


def figure_one() -> Table:
    """The paper's Figure 1, recomputed, with the history-dependent case below it."""
    table = Table(title="two-step MOMDP (Figure 1)", title_justify="left", title_style="bold")
    for column in ("objective", "optimal policy", "exp SER", "exp ESR"):
        table.add_column(column, justify="left" if column in ("objective", "optimal policy") else "right")
    rows: list[tuple[str, TwoStep, Objective]] = [
        ("SER", TwoStep(), ser()),
        ("ESR", TwoStep(), esr()),
        ("linear (0.6, 0.4)", TwoStep(), lsr((0.6, 0.4))),
        ("ESR, first reward (2, 0)", TwoStep((2.0, 0.0)), esr()),
    ]
    for name, environment, objective in rows:
        optimum = solve(TabularMOMDP.from_environment(environment), objective)
        scores = [np.exp(optimum.outcomes.score(other)) for other in (ser(), esr())]
        table.add_row(name, _actions(environment, optimum), *(f"{score:.4f}" for score in scores))
    return table


def _actions(environment: TwoStep, optimum: Optimum) -> str:
    chances = optimum.policy.at(1, environment.first_reward, 1)
    return " + ".join(f"{chance:.3g} a{i + 1}" for i, chance in enumerate(chances) if chance > 1e-9)


def taxi_table(
    taxi: FairTaxi,
    learners: dict[str, Member],
    optima: dict[str, Optimum],
    recorded: Float[np.ndarray, "episodes m"],
) -> Table:
    """Data, cloning twin, learner and exact optimum, each under the objective trained for."""
    table = columns(
        "Fair-Taxi, J of sampled episodes",
        *("trained for", "data", "twin", "learner", "exact", "gap closed", "optimum delivers"),
    )
    for name, member in learners.items():
        episodes = (recorded, *(_returns(policy, taxi) for policy in (member.twin, member.policy)))
        data, cloned, learned = (float(member.objective(jnp.asarray(returns, float))) for returns in episodes)
        best = optima[name].value
        values = (f"{value:.3f}" for value in (data, cloned, learned, best))
        table.add_row(name, *values, gap_words([gap_share(learned, cloned, best)]), _deliveries(optima[name]))
    return table


def _deliveries(optimum: Optimum) -> str:
    taxi, outcomes = FairTaxi(), optimum.outcomes
    counts = outcomes.returns * taxi.scale / np.array(taxi.deliveries)
    return ", ".join(
        f"{probability:.2f} ({', '.join(f'{count:.0f}' for count in row)})"
        for probability, row in zip(outcomes.probabilities, counts, strict=True)
    )
