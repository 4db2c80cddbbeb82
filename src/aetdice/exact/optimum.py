"""The unregularised optimum of any objective, with a certificate.

max G(x) over the utilities x = E[F(R)] that policies attain, a polytope whose vertices are
deterministic policies on the augmented MDP. Frank-Wolfe, fully corrective: a backward dynamic
programme finds the best vertex for the multiplier μ = ∇G(x), then x becomes the best mixture of
the vertices found. By concavity G* ≤ G(x) + μ·(vertex - x), which is the certificate.
"""

import time
from dataclasses import dataclass

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from aetdice.errors import InputError
from aetdice.exact.augmented import AugmentedSpace, enumerate_space
from aetdice.exact.momdp import TabularMOMDP
from aetdice.exact.simplex import SmoothFunction, maximise_on_simplex
from aetdice.exact.tabular_policy import ReturnDistribution, TabularPolicy, deterministic, mixture
from aetdice.objectives import Aggregation, Objective, check_objective, in_float64, second_order

Choice = list[Int[np.ndarray, "_"]]


@dataclass(frozen=True, eq=False)
class Optimum:
    """A certified optimum: no policy exceeds `value` by more than `gap`."""

    objective: Objective
    value: float
    gap: float
    policy: TabularPolicy
    outcomes: ReturnDistribution
    expected_utilities: Float[np.ndarray, " n"]
    multiplier: Float[np.ndarray, " n"]
    oracle_calls: int
    seconds: float


def solve(
    problem: TabularMOMDP | AugmentedSpace,
    objective: Objective,
    *,
    tolerance: float = 1e-9,
    max_oracle_calls: int = 500,
    check: bool = True,
) -> Optimum:
    """max_π G(E[F(R)]) over all policies that remember accrued reward and time.

    An `AugmentedSpace` in place of the MOMDP saves enumerating it again. `check` refuses an
    F or G that is not smooth, or a G that is not concave, on the returns that can occur.
    """
    started = time.perf_counter()
    if max_oracle_calls < 2:
        raise InputError(f"a certificate takes at least 2 oracle calls, not {max_oracle_calls}")
    space = problem if isinstance(problem, AugmentedSpace) else enumerate_space(problem)
    if check:
        ends = np.concatenate([layer.accrued[layer.final] for layer in space.layers])
        check_objective(objective, ends)
    payoffs = _payoffs(space, objective)
    aggregate = smooth(objective.aggregation)

    x = np.asarray(in_float64(objective.utility)(np.zeros(space.momdp.reward.shape[3])))
    choices: list[Choice] = []
    vertices: list[Float[np.ndarray, " n"]] = []
    weights = np.zeros(0)
    gap = np.inf
    calls = 0
    while calls < max_oracle_calls:
        calls += 1
        value, mu, _ = aggregate(x)
        choice, best = _best_response(space, payoffs, mu)
        gap = best - float(mu @ x) if choices else np.inf
        if gap <= tolerance * (1 + abs(value)):
            break
        vertex = _expected(space, payoffs, choice)
        if any(np.abs(vertex - known).max() <= 1e-13 * (1 + np.abs(vertex).max()) for known in vertices):
            break
        choices.append(choice)
        vertices.append(vertex)
        weights = maximise_on_simplex(aggregate, np.stack(vertices), np.append(weights, 0.0))
        x = weights @ np.stack(vertices)

    points = np.stack(vertices)
    weights, gap = _trim(space, payoffs, aggregate, points, weights, max(gap, tolerance * (1 + abs(value))))
    x = weights @ points
    used = np.flatnonzero(weights)
    policy = mixture(space, [choices[j] for j in used], weights[used])
    outcomes = policy.outcomes()
    value, mu, _ = aggregate(x)
    return Optimum(
        objective=objective,
        value=value,
        gap=max(0.0, gap),
        policy=policy,
        outcomes=outcomes,
        expected_utilities=x,
        multiplier=mu,
        oracle_calls=calls,
        seconds=time.perf_counter() - started,
    )


def smooth(aggregation: Aggregation) -> SmoothFunction:
    """G with its derivatives, in double precision."""

    def function(k: Float[np.ndarray, " n"]) -> tuple[float, np.ndarray, np.ndarray]:
        value, gradient, hessian = in_float64(second_order)(aggregation, k)
        return float(value), gradient, hessian

    return function


def _payoffs(space: AugmentedSpace, objective: Objective) -> list[Float[np.ndarray, "_ n"]]:
    """F(R) of the final states of every layer; of all at once, which is one program instead of many."""
    returns = [layer.accrued[layer.final] for layer in space.layers]
    utilities = np.asarray(in_float64(eqx.filter_vmap(objective.utility))(np.concatenate(returns)))
    return np.split(utilities, np.cumsum([len(each) for each in returns])[:-1])


def _best_response(
    space: AugmentedSpace, payoffs: list[Float[np.ndarray, "_ n"]], mu: Float[np.ndarray, " n"]
) -> tuple[Choice, float]:
    """max_π μ·E[F(R)] by backward induction; ties go to the first action."""
    choice: Choice = []
    value = np.zeros(0)
    for layer, payoff in zip(reversed(space.layers), reversed(payoffs), strict=True):
        here = np.empty(layer.state.size)
        here[layer.final] = payoff @ mu
        if layer.live.size:
            follow = value[layer.successor]
            quality = (follow * layer.probability(space.momdp)).sum(axis=2)
            action = np.argmax(quality, axis=1)
            here[layer.live] = quality[np.arange(action.size), action]
            choice.append(action)
        value = here
    return choice[::-1], float(space.initial @ value)


def _expected(
    space: AugmentedSpace, payoffs: list[Float[np.ndarray, "_ n"]], choice: Choice
) -> Float[np.ndarray, " n"]:
    """E[F(R)] under a deterministic policy."""
    visits = deterministic(space, choice).visits()
    return sum(
        visited[layer.final] @ payoff
        for layer, visited, payoff in zip(space.layers, visits, payoffs, strict=True)
    )


def _trim(
    space: AugmentedSpace,
    payoffs: list[Float[np.ndarray, "_ n"]],
    aggregate: SmoothFunction,
    points: Float[np.ndarray, "j n"],
    weights: Float[np.ndarray, " j"],
    most: float,
) -> tuple[Float[np.ndarray, " j"], float]:
    """The mixture without the vertices it hardly uses, if its own certificate is as good."""
    for least in (1e-4, 1e-6, 1e-9):
        trimmed = np.where(weights > least, weights, 0) / weights[weights > least].sum()
        _, mu, _ = aggregate(trimmed @ points)
        _, best = _best_response(space, payoffs, mu)
        gap = best - float(mu @ (trimmed @ points))
        if gap <= most:
            return trimmed, gap
    return weights, most
