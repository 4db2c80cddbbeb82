"""Objectives as JSON: what is written down and read back is the same objective."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aetdice import InputError, Objective, bsr, convex, esr, lsr, safe_cobb_douglas
from aetdice.objectives import (
    AGGREGATIONS,
    OBJECTIVES,
    UTILITIES,
    objective_from,
    objective_record,
    written_objective,
)

RETURNS = jnp.asarray([[0.3, 5.0, 410.0], [2.0, 0.7, 450.0], [7.0, 3.0, 499.0]])
NAMED = {
    **{name: make(alpha=0.3) if name == "bsr" else make() for name, make in OBJECTIVES.items()},
    "weights": bsr(0.7, weights=(1.0, 2.0, 0.5), threshold=0.01, continuation="linear"),
    "ends of bsr": bsr(0.0),
    "other G": convex(aggregation=AGGREGATIONS["log"]()),
    "log inside": safe_cobb_douglas(log_inside=True),
    "expressions": written_objective("log(r0), r1 - 0.8*horizon", "log(k0) + tanh(k1)", 3, 500, 0.1, 0.2),
    "expression, named G": written_objective("sqrt(r2)", "smooth-min", 3, 500),
}
SIZES = {"cobb-douglas": 2}


def back(objective: Objective) -> Objective:
    """Through the text of a file."""
    return objective_from(json.loads(json.dumps(objective_record(objective), allow_nan=False)))


@eqx.filter_jit
def value_and_gradient(objective: Objective, returns):
    return jax.value_and_grad(objective)(returns)


@pytest.mark.parametrize("name", NAMED)
def test_objective_comes_back_with_its_name_values_and_gradients(name):
    objective, returns = NAMED[name], RETURNS[:, : SIZES.get(name, 3)]
    again = back(objective)
    assert (again.name, again.short_name) == (objective.name, objective.short_name)
    assert objective_record(again) == objective_record(objective)
    for found, expected in zip(
        value_and_gradient(again, returns), value_and_gradient(objective, returns), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_every_part_of_the_library_has_a_record(utility, aggregation):
    objective = Objective(UTILITIES[utility](), AGGREGATIONS[aggregation](), "own")
    assert back(objective).name == objective.name


@given(alpha=st.floats(0, 1), threshold=st.floats(1e-3, 1e3), weight=st.floats(0.1, 10))
def test_parameters_come_back_to_the_last_bit(alpha, threshold, weight):
    objective = bsr(alpha, weights=weight, threshold=threshold)
    leaves, again = jax.tree.leaves(objective), jax.tree.leaves(back(objective))
    assert [float(leaf) for leaf in leaves] == [float(leaf) for leaf in again]


@pytest.mark.parametrize(
    "objective",
    [Objective(lambda returns: returns**2, jnp.sum), Objective(jnp.tanh, AGGREGATIONS["log"]())],
    ids=["both", "F"],
)
def test_functions_of_ones_own_have_no_record(objective):
    assert objective_record(objective) is None


def changed(objective: Objective, where: str, **changes: object) -> dict:
    record = objective_record(objective)
    assert record is not None
    record[where] = {**record[where], **changes}
    return record


WRITTEN = written_objective("log(r0)", "linear", 1, 9)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, "it describes none"),
        ({"part": "Linear", "weights": 1.0}, "it describes none"),
        ({"part": "os.system"}, "there is no part 'os.system'; known: Objective, Fair, "),
        (changed(esr(), "utility", part="CustomUtility"), "there is no part 'CustomUtility'"),
        (changed(esr(), "utility", strength=2.0), "unexpected keyword argument 'strength'"),
        ({**objective_record(esr()), "utility": "print"}, "it describes none"),
        ({"part": ["Objective"]}, "cannot be read"),
        (changed(lsr(), "aggregation", weights="many"), "could not convert string to float"),
        (changed(WRITTEN, "utility", source="__import__('os')"), "unknown function '__import__'"),
        (changed(WRITTEN, "utility", source="log(" * 9 + "r0" + ")" * 9), "9 functions inside each other"),
    ],
)
def test_what_is_no_record_is_refused(record, message, without_type_checks):
    with pytest.raises(InputError, match="the record of an objective cannot be read") as refused:
        objective_from(record)
    assert message in str(refused.value)
