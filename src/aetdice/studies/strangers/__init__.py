"""Strangers: problems with a known optimum that no setting was tuned on, all trained with nothing set.

The rule that splits them is fixed: a problem is one of the *development* half, which may be looked at, if
the SHA-256 of its name, read as a number, is even. The others are *held back*, to be looked at once. Layouts
and data come from the same number, so a problem's name is all that was ever chosen by hand beside its size.
"""

from functools import partial

from aetdice.studies.strangers.report import members, overview
from aetdice.studies.strangers.suite import FULL, QUICK, left_out, part_of, problems
from aetdice.studies.study import Study

ASKS = (
    "How much of the gap between cloning and the best known does training close with nothing set, on "
    "problems that no setting was tuned on? And is its verdict to be believed?"
)


def study(quick: bool) -> Study:
    """Quick: one seed."""
    effort = QUICK if quick else FULL
    parts = tuple(part_of(problem, effort) for problem in problems())
    shown = partial(overview, notes=left_out())
    return Study("strangers", (), parts=parts, overview=shown, members=members, asks=ASKS)
