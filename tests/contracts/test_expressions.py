"""Utilities and aggregations written as text: right numbers, total functions, no surprises."""

import contextlib
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aetdice.errors import InputError
from aetdice.objectives import AlphaFair, written_objective
from aetdice.objectives.expressions import FUNCTIONS, parse_aggregation, parse_utility

HORIZON = {"horizon": 10.0}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("r0 + 2*r1", [22]),
        ("r0 - r1 - 1", [-6]),
        ("-r0**2 / 8", [-2]),
        ("2**r0", [16]),
        ("r0**-1", [0.25]),
        ("r1**0.5", [3]),
        ("+r0", [4]),
        ("1e2", [100]),
        ("log(r0), r1 - 0.8*horizon", [np.log(4), 1]),
        ("(r0, r1)", [4, 9]),
        ("r0,", [4]),
        ("sqrt(r0)", [2]),
        ("exp(r0/2)", [np.exp(2)]),
        ("tanh(r0/4)", [np.tanh(1)]),
        ("sigmoid(r0 - 4)", [0.5]),
        ("softplus(r0)", [np.log1p(np.exp(4))]),
        ("fair(r1, 0.5)", [4]),
        ("fair(r0, r1 - 8)", [np.log(4)]),
        ("  log( (r0) ) ", [np.log(4)]),
    ],
)
def test_expression_at_four_and_nine(source, expected):
    utility = parse_utility(source, 2, HORIZON)
    found = utility(jnp.asarray([4.0, 9.0]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert utility.components == len(expected)
    assert found.dtype == jnp.float32


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function_of_an_expression_is_finite_with_finite_slopes_everywhere(function):
    utility = parse_utility(f"{function}(r0{', 0.5' * (FUNCTIONS[function] - 1)})", 1, {})
    ends = jnp.asarray([[x] for x in (0, 1, -1, 1e-6, 20, -1e6, 1e6)], jnp.float32)
    values, slopes = jax.jit(jax.vmap(lambda r: (utility(r), jax.jacrev(lambda x: utility(x))(r))))(ends)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(slopes))


def test_log_of_an_expression_is_continued_below_its_threshold():
    utility = parse_utility("log(r0)", 1, {}, threshold=0.5)
    np.testing.assert_allclose(utility(jnp.asarray([0.25])), [np.log(0.5) - 0.5 - 0.125], rtol=1e-6)
    assert utility.name == "(log(r0)), logs quadratic below 0.5"


def test_written_utility_under_a_named_aggregation():
    objective = written_objective("log(r0), r1 - 0.8*horizon", "log", objectives=2, horizon=10)
    returns = jnp.asarray([[20.0, 9.0], [30.0, 15.0]])
    expected = np.log(np.log([20, 30]).mean()) + np.log(4)
    assert isinstance(objective.aggregation, AlphaFair)
    np.testing.assert_allclose(objective(returns), expected, rtol=1e-6)


def test_written_aggregation_of_a_written_utility():
    objective = written_objective("r0, r1**2", "log(k0) + k1/horizon", objectives=2, horizon=10)
    np.testing.assert_allclose(objective(jnp.asarray([[3.0, 1.0], [5.0, 3.0]])), np.log(4) + 0.5, rtol=1e-6)


def test_aggregation_may_ignore_its_argument():
    constant = parse_aggregation("2", 2, HORIZON)
    np.testing.assert_allclose(jax.grad(lambda k: constant(k))(jnp.ones(2)), 0)


WORDS = [*FUNCTIONS, "r0", "r1", "r9", "horizon", "2", "0.5", "1e3", "+", "-", "*", "/", "**", "//", "@"]
WORDS += ["(", ")", ",", " ", ".", "=", ":=", "<", "if", "else", "lambda", ":", "[", "]", "{", "}", "'", '"']
WORDS += ["\\", "\n", "\x00", "\ud800", "_", "é", "not", "and", "for", "in", "await", "yield", "True", "1j"]


@given(st.text(max_size=40) | st.lists(st.sampled_from(WORDS), max_size=12).map("".join))
@settings(max_examples=600)
def test_any_text_is_either_an_expression_or_an_input_error(source):
    with contextlib.suppress(InputError):
        assert parse_utility(source, 2, HORIZON).components >= 1


def arithmetic():
    """Texts that must parse: numbers, names, operators and functions, nested a few deep."""
    operators = st.sampled_from(["+", "-", "*", "/", "**"])
    leaves = st.sampled_from(["r0", "r1", "horizon", "3", "0.5"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, operators, inner).map(lambda parts: "(" + " ".join(parts) + ")"),
            st.sampled_from([name for name, count in FUNCTIONS.items() if count == 1]).flatmap(
                lambda name: inner.map(lambda argument: f"{name}({argument})")
            ),
            inner.map(lambda argument: f"-{argument}"),
        ),
        max_leaves=6,
    )


@given(arithmetic())
def test_all_arithmetic_parses(source):
    assert parse_utility(source, 2, HORIZON).source == source


sums_and_products = st.lists(st.sampled_from(["r0", "r1", "3", "0.5"]), min_size=2, max_size=6).flatmap(
    lambda terms: st.tuples(*[st.sampled_from("+-*")] * (len(terms) - 1)).map(
        lambda signs: "".join(itertools.chain(*zip(terms, [*signs, ""], strict=True)))
    )
)


@given(sums_and_products)
@settings(max_examples=25)
def test_precedence_is_that_of_arithmetic(source):
    expected = eval(source, {"__builtins__": {}, "r0": 2.0, "r1": -3.0})
    np.testing.assert_allclose(parse_utility(source, 2, {})(jnp.asarray([2.0, -3.0])), [expected], rtol=1e-5)
