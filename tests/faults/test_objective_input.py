"""Objectives that cannot be: refused with the place, the reason and what is known."""

import os
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aetdice.errors import InputError
from aetdice.objectives import (
    AlphaFair,
    ClosedAggregation,
    CobbDouglas,
    Fair,
    Linear,
    Objective,
    Select,
    bsr,
    check_objective,
    cobb_douglas,
    lsr,
    named_aggregation,
    named_objective,
    safe_cobb_douglas,
    ser,
    written_objective,
)
from aetdice.objectives.expressions import FUNCTIONS, parse_aggregation, parse_utility

HORIZON = {"horizon": 10.0}
KNOWN_FUNCTIONS = f"known functions: {', '.join(FUNCTIONS)}"


def refused(message):
    return pytest.raises(InputError, match=re.escape(message))


# Expressions.


@pytest.mark.parametrize(
    "source",
    [
        "__import__('os').system('x')",
        "r0.__class__",
        "lambda: 1",
        "[r0]",
        "{r0: 1}",
        "r0 if r1 else 0",
        "'a'",
        "f'{r0}'",
        "True",
        "None",
        "1j",
        "...",
        "r0 < r1",
        "r0 and r1",
        "not r0",
        "~r0",
        "r0 @ r1",
        "r0 % r1",
        "r0 // r1",
        "r0[0]",
        "log(r0)(r1)",
        "log(x=r0)",
    ],
)
def test_whatever_is_python_but_not_arithmetic_is_refused(source):
    with refused(f"malformed expression {source!r}: {source!r} is not arithmetic"):
        parse_utility(source, 2, HORIZON)


@pytest.mark.parametrize(
    ("source", "piece"),
    [
        ("r0 + log(*r1)", "*r1"),
        ("(r0, r1), r0", "(r0, r1)"),
        ("2 * (r0 := 1)", "r0 := 1"),
        ("  -[r0] ", "[r0]"),
        ("log(print('x'), r1)(r0)", "log(print('x'), r1)(r0)"),
    ],
)
def test_refusal_quotes_the_piece_that_is_wrong(source, piece):
    with refused(f"{piece!r} is not arithmetic"):
        parse_utility(source, 2, HORIZON)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("r0 +", ""),
        ("(r0", " at character 1"),
        ("r0 r1", " at character 4"),
        ("*r0", " at character 1"),
        ("r0; r1", " at character 3"),
        ("r0 = 1", ""),
        ("2x", " at character 1"),
        ("r0\x00", ""),
        ("(" * 240 + "r0" + ")" * 240, " at character 201"),
    ],
)
def test_text_that_does_not_parse_is_refused_with_the_place(source, where):
    with refused(f"malformed expression {source!r}{where}"):
        parse_utility(source, 2, HORIZON)


@pytest.mark.parametrize("source", ["", "   ", "()", ","])
def test_empty_expressions_are_refused(source):
    with refused(f"malformed expression {source!r}"):
        parse_utility(source, 2, HORIZON)


@pytest.mark.parametrize("source", ["r0" + "+r0" * 200, "(" * 300 + "r0" + ")" * 300])
def test_long_expressions_are_refused_unread(source):
    with refused(f"the expression has {len(source)} characters; at most 500 are read"):
        parse_utility(source, 2, HORIZON)


@pytest.mark.parametrize("source", ["-" * 490 + "r0", "+-" * 200 + "r1"])
def test_deeply_nested_expressions_are_refused(source):
    with refused("nested"):
        parse_utility(source, 2, HORIZON)


@pytest.mark.parametrize("number", ["1e999", "1" + "0" * 400])
def test_numbers_beyond_all_precision_are_refused(number):
    with refused("is not a finite number"):
        parse_utility(f"{number} * r0", 2, HORIZON)


@pytest.mark.parametrize("name", ["x", "r7", "r2", "k0", "R0", "log", "__builtins__"])
def test_unknown_names_are_refused_with_the_known_ones(name):
    with refused(f"unknown name {name!r} in '1 + {name}'; known names: r0, r1, horizon; {KNOWN_FUNCTIONS}"):
        parse_utility(f"1 + {name}", 2, HORIZON)


@pytest.mark.parametrize("name", ["foo", "eval", "abs", "r0"])
def test_unknown_functions_are_refused_with_the_known_ones(name):
    with refused(f"unknown function {name!r} in '{name}(r0)'; {KNOWN_FUNCTIONS}"):
        parse_utility(f"{name}(r0)", 2, HORIZON)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("log()", "log takes 1 argument(s), not 0, in 'log()'"),
        ("log(r0, r1)", "log takes 1 argument(s), not 2, in 'log(r0, r1)'"),
        ("fair(r0)", "fair takes 2 argument(s), not 1, in 'fair(r0)'"),
    ],
)
def test_wrong_number_of_arguments_is_refused(source, message):
    with refused(message):
        parse_utility(source, 2, HORIZON)


def test_refused_expressions_are_never_executed(monkeypatch):
    calls = []
    monkeypatch.setattr(os, "system", calls.append)
    for source in ("__import__('os').system('x')", "(lambda: __import__('os').system('x'))()"):
        with refused("is not arithmetic"):
            parse_utility(source, 2, HORIZON)
        with refused("is not arithmetic"):
            written_objective("r0", source, 2, 10)
    assert calls == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("k0, k1", "an aggregation is one expression, but 'k0, k1' has commas outside parentheses"),
        ("k2", "unknown name 'k2' in 'k2'; known names: k0, k1, horizon"),
        ("log(r0)", "unknown name 'r0' in 'log(r0)'; known names: k0, k1, horizon"),
    ],
)
def test_malformed_aggregations_are_refused(source, message):
    with refused(message):
        parse_aggregation(source, 2, HORIZON)


def test_unknown_aggregation_is_refused_with_the_known_ones():
    for ask in (named_aggregation, lambda name: written_objective("r0", name, 2, 10)):
        with refused("unknown aggregation 'logg'; known aggregations: linear, log, alpha-fair, smooth-min"):
            ask("logg")


@pytest.mark.parametrize("threshold", [0.0, -1.0, float("nan"), float("inf")])
def test_written_objective_needs_a_positive_threshold(threshold):
    with refused(f"threshold must be positive, not {threshold:g}"):
        written_objective("log(r0)", "linear", 2, 10, threshold)


# Named objectives.


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "serr",
            {},
            "unknown objective 'serr'; known objectives: lsr, ser, esr, bsr, convex, cobb-douglas, "
            "safe-cobb-douglas",
        ),
        ("bsr", {}, "objective 'bsr' needs alpha, for example --alpha 0.5"),
        ("lsr", {"alpha": 0.5}, "objective 'lsr' takes no alpha; it takes: weights"),
        (
            "ser",
            {"rho": 0.5},
            "objective 'ser' takes no rho; it takes: weights, threshold, continuation",
        ),
        ("bsr", {"alpha": 1.5}, "alpha must be between 0 and 1, not 1.5"),
        ("bsr", {"alpha": -0.1}, "alpha must be between 0 and 1, not -0.1"),
        ("bsr", {"alpha": float("nan")}, "alpha must be between 0 and 1, not nan"),
        ("bsr", {"alpha": 0.5, "aggregation_threshold": 0.0}, "threshold must be positive, not 0"),
        ("ser", {"threshold": -1.0}, "threshold must be positive, not -1"),
        ("esr", {"threshold": float("inf")}, "threshold must be positive, not inf"),
        ("ser", {"weights": (1.0, -2.0)}, "weights must be positive, not (1, -2)"),
        ("bsr", {"alpha": 0.5, "weights": (0.0, 1.0)}, "weights must be positive, not (0, 1)"),
        ("lsr", {"weights": (1.0, float("nan"))}, "weights must be finite, not (1, nan)"),
        ("convex", {"scale": 0.0}, "scale must be positive, not 0"),
        ("convex", {"cap": -20.0}, "cap must be positive, not -20"),
        ("cobb-douglas", {"rho": 2.0}, "rho must be between 0 and 1, not 2"),
        ("cobb-douglas", {"epsilon": 0.0}, "epsilon must be positive, not 0"),
        ("cobb-douglas", {"delta": float("nan")}, "delta must be positive, not nan"),
        ("safe-cobb-douglas", {"horizon": 0.0}, "horizon must be positive, not 0"),
        ("safe-cobb-douglas", {"efficiency_scale": -1.0}, "efficiency_scale must be positive, not -1"),
    ],
)
def test_named_objective_refuses_what_it_cannot_take(name, options, message):
    with refused(message):
        named_objective(name, options)


def test_unknown_continuation_is_refused(without_type_checks):
    with refused("unknown continuation 'cubic'; known: quadratic, linear"):
        named_objective("ser", {"continuation": "cubic"})


def test_parameter_vector_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match=re.escape("a parameter of shape (3,) does not fit 2 entries")):
        lsr((1.0, 2.0, 3.0))(jnp.ones((4, 2)))


def test_utilities_refuse_the_wrong_number_of_returns():
    with pytest.raises(ValueError, match=re.escape("Cobb-Douglas takes 2 returns (gain, cost), not 3")):
        CobbDouglas()(jnp.ones(3))
    with pytest.raises(ValueError, match="objective 2 is asked for, but there are 2"):
        Select((0, 2))(jnp.ones(2))


@pytest.mark.parametrize(
    ("episodes", "options", "message"),
    [
        (0, {}, "cannot score an empty set of episodes"),
        (3, {"level": 1.0}, "the level of an interval lies between 0 and 1, not at 1.0"),
        (3, {"level": 0.0}, "the level of an interval lies between 0 and 1, not at 0.0"),
        (3, {"resamples": 0}, "resample"),
    ],
)
def test_score_refuses_what_has_no_interval(episodes, options, message):
    with refused(message):
        ser().score(np.ones((episodes, 2)), jax.random.key(0), **options)


# `check_objective`: the place is part of the message.

RETURNS = np.random.default_rng(0).uniform(0, 10, (20, 2))


def kinked(x):
    return jnp.abs(x - 3)


class Decreasing(ClosedAggregation):
    """Concave and closed, but falling above k = 1."""

    def __call__(self, k):
        return -jnp.sum((k - 1) ** 2) / 2

    def maximiser(self, mu):
        return 1 - mu

    def steepest(self, like):
        return jnp.full_like(like, jnp.inf)

    @property
    def name(self):
        return "decreasing"


@pytest.mark.parametrize(
    ("utility", "aggregation", "message"),
    [
        (jnp.log, Linear(), r"^F has no finite value at R=\(0, 0\)$"),
        (jnp.sqrt, Linear(), r"^F has no finite slope at R=\(0, 0\)$"),
        (lambda r: 1 / (r[0] - r[0]), Linear(), r"^F has no finite value at R="),
        (
            lambda r: jnp.where(r[0] > 3, r[0], r[0] - 1),
            Linear(),
            r"^F is not smooth at R=\(3, [\d.]+\): its value jumps there; use a smooth version of it$",
        ),
        (
            lambda r: jnp.floor(r[1]),
            Linear(),
            r"^F is not smooth at R=\([\d.]+, [1-9](\.0*)?\): its value jumps there",
        ),
        (lambda r: kinked(r[0]), Linear(), r"^F is not smooth at R=\(3, [\d.]+\): its slope jumps there"),
        (
            lambda r: r,
            lambda k: jnp.min(k),
            r"^G is not smooth at k=\(([\d.]+), \1\): its slope jumps there; use a smooth version of it$",
        ),
        (lambda r: r, lambda k: -kinked(k[1]), r"^G is not smooth at k=\([\d.]+, 3\): its slope jumps there"),
        (lambda r: r, lambda k: jnp.log(k[0] - 1), r"^G has no finite value at k=\(0, 0\)$"),
        (
            lambda r: r,
            lambda k: k[0] ** 2,
            r"^G is not concave between k=\(0, [\d.]+\) and \([\d.]+, [\d.]+\)$",
        ),
        (lambda r: r, lambda k: k[0] * k[1], r"^G is not concave between k=\([\d., ]+\) and \([\d., ]+\)$"),
        (
            lambda r: r,
            AlphaFair(weights=(1.0, -1.0)),
            r"^G is not concave between k=\([\d., ]+\) and \([\d., ]+\)$",
        ),
        (
            lambda r: r,
            AlphaFair(Fair(0.0), weights=-1.0),
            r"^G does not increase with k0 at k=\(0, 0\), but its conjugate needs positive multipliers$",
        ),
        (lambda r: r, Decreasing(), r"^G does not increase with k\d at k="),
    ],
    ids=[
        "log of F not finite",
        "root of F without slope",
        "F divides by zero",
        "F jumps",
        "F is a staircase",
        "F kinked",
        "G the hard minimum",
        "G kinked",
        "G not finite",
        "G convex",
        "G a saddle",
        "G convex in one entry",
        "G falls",
        "G falls above 1",
    ],
)
def test_check_refuses_an_ill_posed_objective(utility, aggregation, message):
    with pytest.raises(InputError, match=message):
        check_objective(Objective(utility, aggregation), RETURNS)


@pytest.mark.parametrize(
    ("objective", "returns", "message"),
    [
        (
            cobb_douglas(),
            np.ones((4, 3)),
            "the objective does not fit 3 objectives: Cobb-Douglas takes 2 returns (gain, cost), not 3",
        ),
        (
            safe_cobb_douglas(),
            np.ones((4, 2)),
            "the objective does not fit 2 objectives: objective 2 is asked for, but there are 2",
        ),
        (
            ser(weights=(1.0, 2.0)),
            np.ones((4, 3)),
            "the objective does not fit 3 objectives: a parameter of shape (2,) does not fit 3 entries",
        ),
        (
            Objective(lambda r: r @ jnp.ones(3), Linear()),
            np.ones((4, 2)),
            "the objective does not fit 2 objectives: ",
        ),
        (
            Objective(lambda r: r[7], Linear()),
            np.ones((4, 2)),
            "the objective does not fit 2 objectives: ",
        ),
    ],
    ids=["cobb-douglas on 3", "safe cobb-douglas on 2", "2 weights on 3", "custom on 2", "index 7 of 2"],
)
def test_check_refuses_an_objective_of_the_wrong_size(objective, returns, message):
    with refused(message):
        check_objective(objective, returns)


def test_check_refuses_an_aggregation_that_gives_a_vector(without_type_checks):
    with refused("G must give one number, not an array of shape (2,)"):
        check_objective(Objective(lambda r: r, lambda k: 2 * k), RETURNS)


def test_check_refuses_a_utility_that_gives_a_matrix(without_type_checks):
    with refused("F must give a vector of utilities, not an array of shape (2, 1)"):
        check_objective(Objective(lambda r: r[:, None], lambda k: jnp.sum(k)), RETURNS)


def test_check_needs_returns_to_check_on():
    with refused("empty set of episodes"):
        check_objective(ser(), np.ones((0, 2)))


def test_check_names_returns_that_are_not_finite():
    with refused("F has no finite value at R=(nan, nan)"):
        check_objective(bsr(0.5), np.full((3, 2), np.nan))
