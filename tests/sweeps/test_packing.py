"""Packing: every member exactly once, in products that fit, as few as one axis after the other allows."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from aetdice.sweeps.packing import even_parts, members_in, pack

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def axes_of(sizes):
    return {f"axis{i}": tuple(range(size)) for i, size in enumerate(sizes)}


def members(axes):
    return list(itertools.product(*axes.values()))


def cost(axes):
    """Members, and something that those of one value of the last axis share."""
    return members_in(axes) + 2 * len(list(axes.values())[-1])


@given(SIZES, st.integers(1, 60))
def test_every_member_is_in_exactly_one_part(sizes, budget):
    axes = axes_of(sizes)
    parts = pack(axes, lambda part: cost(part) <= budget)
    assert sorted(member for part in parts for member in members(part)) == sorted(members(axes))


@given(SIZES, st.integers(1, 60))
def test_every_part_fits_or_is_a_single_member(sizes, budget):
    parts = pack(axes_of(sizes), lambda part: cost(part) <= budget)
    assert all(cost(part) <= budget or members_in(part) == 1 for part in parts)
    assert all(list(part) == list(axes_of(sizes)) for part in parts)


@given(SIZES)
def test_what_fits_is_not_cut(sizes):
    axes = axes_of(sizes)
    assert pack(axes, lambda part: True) == [axes]


@given(SIZES, st.integers(1, 60))
def test_axes_that_come_first_are_cut_first(sizes, budget):
    """An axis is cut only where those before it are down to one value."""
    for part in pack(axes_of(sizes), lambda part: cost(part) <= budget):
        cut = [len(part[f"axis{i}"]) < size for i, size in enumerate(sizes)]
        last = max((i for i, is_cut in enumerate(cut) if is_cut), default=0)
        assert all(len(part[f"axis{i}"]) == 1 for i in range(last))


@given(st.lists(st.integers(), min_size=1, max_size=20), st.data())
def test_parts_are_even_and_in_order(values, data):
    count = data.draw(st.integers(1, len(values)))
    parts = even_parts(tuple(values), count)
    assert [value for part in parts for value in part] == values
    assert len(parts) == count
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
