"""Policies whose J is known, and the logs to estimate them from: the cases of `estimation.py`."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from mo_gym import planned

from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.data.successors import frames_before
from aetdice.datasets import load_dataset, make_env
from aetdice.envs.environment import FiniteEnvironment
from aetdice.estimation.acting import Acting, Augmented, DiscreteActing, acting_of
from aetdice.estimation.tabular_acting import TabularActing
from aetdice.evaluation import Policy, sample_returns
from aetdice.evaluation.tabulation import tabulated
from aetdice.exact import (
    AugmentedSpace,
    OfflineProblem,
    TabularMOMDP,
    TabularPolicy,
    enumerate_space,
    solve,
    solve_dual,
    uniform_policy,
)
from aetdice.exact.tabular_policy import draw
from aetdice.learning.training import train
from aetdice.objectives import Objective, bsr, in_float64
from aetdice.studies.strangers.finite import collect_table, planners, record
from aetdice.studies.strangers.mo_gym import TABLES
from aetdice.studies.strangers.problem import fair_objectives

KEPT = 0.1
TRUTH_EPISODES = 4_000
SHORT = {"network.hidden": (64,), "dual.steps": 1_000, "extraction.steps": 1_000}
MAZE = {
    "network.observation_fourier": 3,
    "network.fourier": 3,
    "extraction.steps": 1_000,
}
OBJECTIVES = {"ESR": bsr(0.0), "BSR": bsr(0.5), "SER": bsr(1.0)}


class Case(NamedTuple):
    """A policy under an objective, the log to estimate it from, and what is true."""

    family: str
    problem: str
    policy: str
    label: str
    acting: Acting
    behaviour: Acting | None
    log: Episodes
    seen: Episodes
    objective: Objective
    horizon: int
    truth: Callable[[], float]
    gap: Callable[[], float]
    """Between the behaviour's twin and the best policy known."""


def parts(data: Episodes, seed: int) -> tuple[Episodes, Episodes]:
    order = np.random.default_rng(seed).permutation(len(data))
    count = round(KEPT * len(data))
    return data.select(np.sort(order[count:])), data.select(np.sort(order[:count]))


def random_policy(space: AugmentedSpace, seed: int) -> TabularPolicy:
    rng = np.random.default_rng(seed)
    actions = space.momdp.actions
    rows = [rng.dirichlet(np.full(actions, 0.5), layer.live.size) for layer in space.layers[:-1]]
    return TabularPolicy(space, rows)


def blended(one: TabularPolicy, other: TabularPolicy) -> TabularPolicy:
    pairs = zip(one.probabilities, other.probabilities, strict=True)
    return TabularPolicy(one.space, [(a + b) / 2 for a, b in pairs])


def momdp_cases(count: int) -> Iterator[Case]:
    """Random stochastic problems: regularised solutions of the data, optima, random policies, mixtures."""
    import stochastic

    for seed in range(count):
        space = enumerate_space(stochastic.problem(seed))
        behaviour = uniform_policy(space)
        label, objective = [("ESR", bsr(0.0)), ("BSR", bsr(0.5)), ("SER", bsr(1.0))][seed % 3]
        best = solve(space, objective)
        gap = best.value - behaviour.outcomes().score(objective)
        for episodes in (1_000, 4_000):
            training, log = parts(behaviour.rollout(episodes, seed=seed), seed)
            problem = OfflineProblem.from_episodes(training, objective)
            learned = solve_dual(problem, beta=0.01).policy(space)
            policies = {
                "behaviour": behaviour,
                "random": random_policy(space, seed),
                "learned": learned,
                "optimum": best.policy,
                "half optimum": blended(best.policy, behaviour),
            }
            for name, policy in policies.items():
                yield Case(
                    family="momdp",
                    problem=f"{seed}, {episodes} episodes",
                    policy=name,
                    label=label,
                    acting=TabularActing(policy),
                    behaviour=TabularActing(behaviour),
                    log=log,
                    seen=training,
                    objective=objective,
                    horizon=stochastic.HORIZON,
                    truth=lambda policy=policy, o=objective: policy.outcomes().score(o),
                    gap=lambda gap=gap: gap,
                )


def narrow_cases(count: int) -> Iterator[Case]:
    """Little data of a behaviour that hardly varies: much of what other policies do was never recorded."""
    import stochastic

    for seed in range(count):
        space = enumerate_space(stochastic.problem(100 + seed))
        rng = np.random.default_rng([7, seed])
        usual = np.eye(stochastic.ACTIONS)[rng.integers(stochastic.ACTIONS, size=space.momdp.states)]
        shares = [0.98 * usual[layer.state[layer.live]] + 0.02 / 3 for layer in space.layers[:-1]]
        behaviour = TabularPolicy(space, shares)
        objective = bsr(0.5)
        best = solve(space, objective)
        training, log = parts(behaviour.rollout(200, seed=seed), seed)
        policies = {"behaviour": behaviour, "uniform": uniform_policy(space), "optimum": best.policy}
        for name, policy in policies.items():
            yield Case(
                family="narrow",
                problem=f"{100 + seed}, 200 episodes",
                policy=name,
                label="BSR",
                acting=TabularActing(policy),
                behaviour=TabularActing(behaviour),
                log=log,
                seen=training,
                objective=objective,
                horizon=stochastic.HORIZON,
                truth=lambda policy=policy, o=objective: policy.outcomes().score(o),
                gap=lambda b=best, p=behaviour, o=objective: b.value - p.outcomes().score(o),
            )


class Truth:
    """J of policies, exact on an augmented space or from sampled returns; each is worked out once."""

    def __init__(
        self, space: AugmentedSpace | None = None, returns: Callable[[Policy], np.ndarray] | None = None
    ) -> None:
        self.space, self.returns = space, returns
        self.known: dict[int, Any] = {}

    def __call__(self, policy: Policy | TabularPolicy, objective: Objective) -> float:
        if id(policy) not in self.known:
            self.known[id(policy)] = policy, self._found(policy)
        found = self.known[id(policy)][1]
        if self.space is not None:
            return float(found.score(objective))
        return float(in_float64(objective)(found))

    def best(self, objective: Objective, policies: Iterable[Policy | TabularPolicy]) -> float:
        """The optimum, or the best of some policies."""
        if self.space is not None:
            return float(solve(self.space, objective, check=False).value)
        return max(self(policy, objective) for policy in policies)

    def _found(self, policy: Policy | TabularPolicy) -> Any:
        if self.space is None:
            return self.returns(policy)
        table = policy if isinstance(policy, TabularPolicy) else tabulated(policy.network, self.space)
        return table.outcomes()


def trained(
    data: Episodes, objectives: dict[str, Objective], horizon: int, settings: dict[str, Any], **options: Any
) -> dict[str, Policy]:
    """A policy for each objective and their twin, from one training."""
    config = TrainingConfig().adapted({**settings, "trainer.report": 0.0})
    asked = list(objectives.values())
    run = train(data, asked, horizon=horizon, config=config, progress=False, **options)
    found = {f"trained for {n}": m.policy for n, m in zip(objectives, run.members, strict=True)}
    return {**found, "twin": run.members[0].twin}


def acting(policy: Policy | TabularPolicy | Acting) -> Acting:
    if isinstance(policy, TabularPolicy):
        return TabularActing(policy)
    return acting_of(policy) if isinstance(policy, Policy) else policy


def cases_of(
    family: str,
    problem: str,
    parts_of_data: tuple[Episodes, Episodes],
    policies: dict[str, Policy | TabularPolicy],
    objectives: dict[str, Objective],
    horizon: int,
    truth: Truth,
    every: bool = True,
) -> Iterator[Case]:
    """Each policy under every objective, or under that it was trained for alone."""
    training, log = parts_of_data
    twin = policies.get("twin")
    base = twin or next(iter(policies.values()))
    for name, policy in policies.items():
        for label, objective in objectives.items():
            if not every and name.startswith("trained for") and name != f"trained for {label}":
                continue
            yield Case(
                family=family,
                problem=problem,
                policy=name,
                label=label,
                acting=acting(policy),
                behaviour=None if twin is None else acting(twin),
                log=log,
                seen=training,
                objective=objective,
                horizon=horizon,
                truth=lambda policy=policy, o=objective: truth(policy, o),
                gap=lambda o=objective: truth.best(o, policies.values()) - truth(base, o),
            )


def taxi_cases(count: int) -> Iterator[Case]:
    """Layouts drawn at random, every other one with slip."""
    for seed in range(count):
        rng = np.random.default_rng([19, seed])
        cells = [divmod(int(c), 5) for c in rng.permutation(25)[:5]]
        layout = {
            "size": 5,
            "origins": tuple(cells[:2]),
            "destinations": tuple(cells[2:4]),
            "start": cells[4],
        }
        slip = 0.1 * (seed % 2)
        env = make_env("fair-taxi", horizon=20, slip=slip, **layout)
        assert isinstance(env, FiniteEnvironment)
        data = load_dataset("fair-taxi", horizon=20, slip=slip, episodes=2_000, seed=seed, **layout)
        divided = parts(data, 0)
        yield from cases_of(
            "fair-taxi",
            f"layout {seed}, slip {slip:g}",
            divided,
            trained(divided[0], OBJECTIVES, 20, SHORT, beta=1e-2),
            OBJECTIVES,
            20,
            Truth(enumerate_space(TabularMOMDP.from_environment(env))),
        )


def cloned(momdp: TabularMOMDP, data: Episodes) -> np.ndarray:
    """How often each action was taken in every state; each as often where none was."""
    index = {tuple(row): state for state, row in enumerate(momdp.observations.tolist())}
    rows = data.observations[frames_before(data)].tolist()
    counts = np.zeros((momdp.states, momdp.actions))
    np.add.at(counts, ([index[tuple(row)] for row in rows], data.actions), 1)
    counts[counts.sum(axis=1) == 0] = 1
    return counts / counts.sum(axis=1, keepdims=True)


GYM = ("fishwood", "resource-gathering", "fishwood-even", "breakable-bottles", "deep-sea-treasure")
"""As the strangers have them."""
SEEDS = 5


def gym_cases(count: int) -> Iterator[Case]:
    """MO-Gymnasium's problems: cloning, a planner in the data's frequencies, half the optimum."""
    spaces = {name: enumerate_space(TABLES[name][0].momdp()) for name in GYM[:count]}
    for seed in range(SEEDS):
        for name, space in spaces.items():
            table, units, behaviour = TABLES[name]
            objectives = fair_objectives(**units)
            label = list(objectives)[seed % 3]
            divided = parts(collect_table(space.momdp, 2_000, 50 + seed, behaviour), seed)
            shares = cloned(space.momdp, divided[0])
            clone = TabularPolicy(space, [shares[layer.state[layer.live]] for layer in space.layers[:-1]])
            best = solve(space, objectives[label], check=False).policy
            policies: dict[str, Policy | TabularPolicy] = {
                "twin": clone,
                "planned": planned(space, divided[0], objectives[label])[1],
                "half optimum": blended(best, clone),
            }
            yield from cases_of(
                "mo-gym",
                f"{name}, seed {seed}",
                divided,
                policies,
                {label: objectives[label]},
                table.horizon,
                Truth(space),
            )


class StatePolicy(DiscreteActing):
    """π(a | s, t) of a table; its returns are sampled there."""

    def __init__(self, momdp: TabularMOMDP, chances: np.ndarray) -> None:
        self.momdp, self.chances = momdp, chances
        self.index = {tuple(row): state for state, row in enumerate(momdp.observations.tolist())}

    def probabilities(self, states: Augmented) -> np.ndarray:
        rows = [self.index.get(tuple(row), 0) for row in states.observations.tolist()]
        return self.chances[states.time, rows]

    def returns(self) -> np.ndarray:
        rng = np.random.default_rng(99)
        choose = lambda t, states: draw(rng, self.chances[t][states])  # noqa: E731
        return record(self.momdp, choose, 20 * TRUTH_EPISODES, rng).returns


def dispatch_cases(count: int) -> Iterator[Case]:
    """The dispatch centre's log, recorded anew: cloning, a planner for the mean, and blends of the two."""
    env = make_env("dispatch")
    assert isinstance(env, FiniteEnvironment)
    momdp = TabularMOMDP.from_environment(env)
    plan = np.eye(momdp.actions)[planners(momdp, np.ones((1, 3)))[:, 0]]
    for seed in range(count):
        divided = parts(load_dataset("dispatch", episodes=2_000, seed=50 + seed), seed)
        clone = np.broadcast_to(cloned(momdp, divided[0]), plan.shape)
        shares = {"twin": 0.0, "planner": 1.0, "half planner": 0.5, "mostly twin": 0.2}
        policies = {n: StatePolicy(momdp, share * plan + (1 - share) * clone) for n, share in shares.items()}
        label = list(OBJECTIVES)[seed % 3]
        yield from cases_of(
            "dispatch",
            f"log {seed}",
            divided,
            policies,
            {label: OBJECTIVES[label]},
            momdp.horizon,
            Truth(returns=lambda policy: policy.returns()),
        )


def maze_cases(count: int) -> Iterator[Case]:
    """PointMaze with two and three goals, with and without slip, 150 steps; truth from sampled episodes."""
    objectives = {label: bsr(alpha, threshold=0.01) for label, alpha in (("ESR", 0.0), ("SER", 1.0))}
    for index in range(count):
        name, slip = ("pointmaze-2obj", "pointmaze-3obj")[index % 2], (0.0, 0.0, 0.0, 0.1)[index % 4]
        arguments: dict[str, Any] = {"slip": slip} if slip else {}
        env = make_env(name, horizon=150, **arguments)
        divided = parts(load_dataset(name, episodes=1_000, seed=30 + index, horizon=150, **arguments), 0)
        yield from cases_of(
            "maze",
            f"{name}, slip {slip:g}, seed {30 + index}",
            divided,
            trained(divided[0], objectives, env.horizon, MAZE, algorithm="episode-weighting"),
            objectives,
            env.horizon,
            Truth(returns=lambda policy, env=env: sample_returns(policy, env, TRUTH_EPISODES, 99)),
            every=False,
        )


def body_cases(count: int) -> Iterator[Case]:
    """Short episodes of a hopper, which has too many dimensions for neighbours to be near."""
    horizon = 50
    for seed in range(count):
        env = make_env("d4morl-hopper", horizon=horizon)
        divided = parts(
            load_dataset("d4morl-hopper", episodes=300, seed=seed, quality="amateur", horizon=horizon), 0
        )
        label, objective = list(OBJECTIVES.items())[seed % 3]
        yield from cases_of(
            "body",
            f"hopper, seed {seed}",
            divided,
            trained(divided[0], {label: objective}, horizon, SHORT, algorithm="episode-weighting"),
            {label: objective},
            horizon,
            Truth(returns=lambda policy, env=env: sample_returns(policy, env, 256, 99)),
        )


FAMILIES: dict[str, tuple[Callable[[int], Iterator[Case]], int]] = {
    "momdp": (momdp_cases, 24),
    "narrow": (narrow_cases, 16),
    "taxi": (taxi_cases, 8),
    "mo-gym": (gym_cases, len(GYM)),
    "dispatch": (dispatch_cases, 6),
    "maze": (maze_cases, 5),
    "body": (body_cases, 2),
}
