"""The exact answers once more: dictionaries, occupancy measures and cvxpy, nothing of `aetdice.exact`.

An agreement with the library is then an agreement of two methods and of two programs.
"""

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from aetdice import Episodes, Objective, bsr, esr, lsr, ser
from aetdice.objectives import Identity, Linear, SmoothMinimum
from support.problems import Tables

Concave = Callable[[cp.Expression], tuple[cp.Expression, list[cp.Constraint]]]


def maximum(gain: cp.Expression, constraints: list[cp.Constraint]) -> float:
    program = cp.Problem(cp.Maximize(gain), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")  # the tests compare far above 1e-9
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert program.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return float(program.value)


# Objectives of the library, each beside the same formulas in NumPy and cvxpy.


@dataclass(frozen=True)
class Case:
    objective: Objective
    utility: Callable[[np.ndarray], np.ndarray]
    aggregate: Concave


def fair(a: float, x: np.ndarray) -> np.ndarray:
    """u_a, continued below 1 by its second-order expansion."""
    above, below = np.maximum(x, 1), np.minimum(x - 1, 0)
    power = np.log(above) if a == 1 else (above ** (1 - a) - 1) / (1 - a)
    return power + below - a / 2 * below**2


def concave_fair(a: float) -> Concave:
    """Σ u_a(k_i): the best split of k into a part above 1 and a part below 0."""

    def aggregate(k: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        below = cp.Variable(k.shape, nonpos=True)
        above, constraints = k - below, [k - below >= 1]
        if a == 1:
            rising = cp.log(above)
        else:
            power = cp.Variable(k.shape)
            constraints.append(cp.PowCone3D(above, np.ones(k.shape), power, np.full(k.shape, 1 - a)))
            rising = (power - 1) / (1 - a)
        return cp.sum(rising + below - a / 2 * cp.square(below)), constraints

    return aggregate


def identity(returns: np.ndarray) -> np.ndarray:
    return returns


def total(k: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
    return cp.sum(k), []


def saturating(k: jnp.ndarray) -> jnp.ndarray:
    return -jnp.sum(jnp.exp(-k / 4))


def concave_saturating(k: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
    return -cp.sum(cp.exp(-k / 4)), []


def nearness(k: jnp.ndarray) -> jnp.ndarray:
    """Not increasing: largest at k = 1.5, which mixtures of policies can often meet exactly."""
    return -jnp.sum((k - 1.5) ** 2)


def product_and_sum(returns: jnp.ndarray) -> jnp.ndarray:
    return jnp.stack([returns[0] * returns[1], jnp.sum(returns)])


def bsr_case(alpha: float) -> Case:
    """Σ u_α(E[u_{1-α}(R_i)]), with ESR and SER themselves at the ends."""
    utility = identity if alpha == 1 else lambda returns: fair(1 - alpha, returns)
    return Case(bsr(alpha), utility, total if alpha == 0 else concave_fair(alpha))


CASES = {
    "lsr": Case(lsr(), identity, total),
    "ser": Case(ser(), identity, concave_fair(1)),
    "esr": Case(esr(), lambda returns: fair(1, returns), total),
    "bsr-0.3": bsr_case(0.3),
    "bsr-0.5": bsr_case(0.5),
    "smooth-min": Case(
        Objective(Identity(), SmoothMinimum(2.0)),
        identity,
        lambda k: ((np.log(k.shape[0]) - cp.log_sum_exp(-2 * k)) / 2, []),
    ),
    "saturating": Case(Objective(Identity(), saturating), identity, concave_saturating),
    "nearness": Case(Objective(Identity(), nearness), identity, lambda k: (-cp.sum_squares(k - 1.5), [])),
    "product": Case(
        Objective(product_and_sum, Linear((1.0, 0.5))),
        lambda returns: np.array([returns[0] * returns[1], returns.sum()]),
        lambda k: (k[0] + 0.5 * k[1], []),
    ),
    "saturating-product": Case(
        Objective(product_and_sum, saturating),
        lambda returns: np.array([returns[0] * returns[1], returns.sum()]),
        concave_saturating,
    ),
}


# Optima over all policies.

Node = tuple[int, tuple[float, ...], int]
"""State, accrued reward, time."""


def branches(tables: Tables, node: Node, action: int) -> Iterator[tuple[float, Node]]:
    state, accrued, time = node
    for successor in np.flatnonzero(tables.transition[state, action]):
        after = tuple(np.add(accrued, tables.reward[state, action, successor]).tolist())
        yield tables.transition[state, action, successor], (int(successor), after, time + 1)


def reachable(tables: Tables) -> tuple[list[Node], list[Node]]:
    """The nodes in which a policy acts, and those in which episodes end."""
    nothing = (0.0,) * tables.reward.shape[3]
    queue: list[Node] = [(int(state), nothing, 0) for state in np.flatnonzero(tables.initial)]
    seen, acting, ending = set(queue), [], []
    for node in queue:
        if tables.terminal[node[0]] or node[2] == tables.horizon:
            ending.append(node)
            continue
        acting.append(node)
        for action in range(tables.transition.shape[1]):
            for _, after in branches(tables, node, action):
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
    return acting, ending


def best_value(tables: Tables, case: Case) -> float:
    """max G(Σ_end P(end) F(R)) over the occupancy measures of (state, accrued, time)."""
    acting, ending = reachable(tables)
    actions = tables.transition.shape[1]
    number = {node: index for index, node in enumerate([*acting, *ending])}
    moves = [
        (number[after], number[node] * actions + action, probability)
        for node in acting
        for action in range(actions)
        for probability, after in branches(tables, node, action)
    ]
    rows, columns, probabilities = zip(*moves, strict=True)
    arriving = sp.csr_array((probabilities, (rows, columns)), shape=(len(number), len(acting) * actions))
    entering = np.array([tables.initial[node[0]] if node[2] == 0 else 0.0 for node in number])

    visits = cp.Variable((len(acting), actions), nonneg=True)
    arrival = entering + arriving @ cp.vec(visits, order="C")
    payoffs = np.stack([case.utility(np.array(node[1])) for node in ending])
    gain, constraints = case.aggregate(payoffs.T @ arrival[len(acting) :])
    return maximum(gain, [cp.sum(visits, axis=1) == arrival[: len(acting)], *constraints])


def best_value_without_memory(tables: Tables, case: Case) -> float:
    """The same for F(R) = R over policies that see only the state and the time."""
    states, actions, objectives = *tables.transition.shape[:2], tables.reward.shape[3]
    following = tables.transition.reshape(states * actions, states)
    expected = np.einsum("sat,satm->sam", tables.transition, tables.reward).reshape(-1, objectives)
    arrival, k, constraints = tables.initial, np.zeros(objectives), []
    for _ in range(tables.horizon):
        visits = cp.Variable((states, actions), nonneg=True)
        constraints.append(cp.sum(visits, axis=1) == cp.multiply(~tables.terminal, arrival))
        arrival, k = cp.vec(visits, order="C") @ following, k + cp.vec(visits, order="C") @ expected
    gain, more = case.aggregate(k)
    return maximum(gain, [*constraints, *more])


def best_mixture(returns: Iterable[tuple[float, ...]], case: Case) -> float:
    """max G(Σ p F(R)) over mixtures of sure returns: the optimum of a deterministic problem."""
    payoffs = np.stack([case.utility(np.array(each)) for each in returns])
    shares = cp.Variable(len(payoffs), nonneg=True)
    gain, constraints = case.aggregate(payoffs.T @ shares)
    return maximum(gain, [cp.sum(shares) == 1, *constraints])


# The regularised offline problem, straight from the episodes.


def regularised_value(
    episodes: Episodes,
    case: Case,
    beta: float,
    divergence: str = "chi2",
    *,
    discount: float | None = None,
    augmented: bool = True,
) -> float:
    """max G(F(0) + Σ d r̃) - β Σ d^D φ(d/d^D) on the empirical model of episodes that nobody cut off.

    Without a discount a node is (observation, accrued, time), the accrued reward only if
    `augmented`, and the longest episode reaches the horizon. With one it is the observation alone.
    """
    horizon = int(episodes.lengths.max())
    counts, starts, follows = Counter(), Counter(), Counter()
    gains: dict = defaultdict(float)

    def node(observation: np.ndarray, accrued: np.ndarray, time: int) -> tuple:
        memory = (*accrued.round(6).tolist(),) if augmented else ()
        return (*observation.tolist(), *(() if discount else (*memory, time)))

    for episode in episodes:
        accrued = np.zeros(episodes.rewards.shape[1])
        starts[node(episode.observations[0], accrued, 0)] += 1
        for time, (action, reward) in enumerate(zip(episode.actions, episode.rewards, strict=True)):
            before, accrued = accrued, accrued + reward
            pair = node(episode.observations[time], before, time), int(action)
            counts[pair] += 1
            gains[pair] = gains[pair] + case.utility(accrued) - case.utility(before)
            ended = episode.terminated and time + 1 == len(episode.rewards)
            if not ended and (discount or time + 1 < horizon):
                follows[pair, node(episode.observations[time + 1], accrued, time + 1)] += 1

    pairs, nodes = list(counts), list({pair[0] for pair in counts} | {after for _, after in follows})
    column = {pair: index for index, pair in enumerate(pairs)}
    row = {place: index for index, place in enumerate(nodes)}
    leaving, arriving = np.zeros((2, len(nodes), len(pairs)))
    for pair in pairs:
        leaving[row[pair[0]], column[pair]] = 1
    for (pair, after), times in follows.items():
        arriving[row[after], column[pair]] = times / counts[pair]
    entering = np.array([starts[place] for place in nodes]) / len(episodes)
    mass = np.array([counts[pair] for pair in pairs]) / (episodes.steps if discount else len(episodes))
    rewards = np.stack([gains[pair] / counts[pair] for pair in pairs])

    visits = cp.Variable(len(pairs), nonneg=True)
    gamma, enters = (discount, 1 - discount) if discount else (1.0, 1.0)
    zero = case.utility(np.zeros(episodes.rewards.shape[1]))
    gain, constraints = case.aggregate(zero + rewards.T @ visits / enters)
    constraints.append((leaving - gamma * arriving) @ visits == enters * entering)
    if beta > 0:
        penalty, more = PENALTIES[divergence](visits, mass)
        gain, constraints = gain - beta * penalty, [*constraints, *more]
    return maximum(gain, constraints)


def chi2(visits: cp.Variable, mass: np.ndarray) -> tuple[cp.Expression, list[cp.Constraint]]:
    return cp.sum(cp.multiply(0.5 / mass, cp.square(visits - mass))), []


def kl(visits: cp.Variable, mass: np.ndarray) -> tuple[cp.Expression, list[cp.Constraint]]:
    return cp.sum(cp.kl_div(visits, mass)), []


def soft_chi2(visits: cp.Variable, mass: np.ndarray) -> tuple[cp.Expression, list[cp.Constraint]]:
    """KL of what stays below the data's mass, and the square of what goes above it."""
    above = cp.Variable(visits.shape, nonneg=True)
    square = cp.sum(cp.multiply(0.5 / mass, cp.square(above)))
    return cp.sum(cp.kl_div(visits - above, mass)) + square, [visits - above <= mass]


PENALTIES = {"chi2": chi2, "kl": kl, "soft-chi2": soft_chi2}
