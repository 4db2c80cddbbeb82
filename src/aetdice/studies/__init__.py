"""The paper's studies and ours by name, in full or quick."""

from collections.abc import Callable
from functools import partial

from aetdice.studies import coverage, fair_taxi, mujoco, stitching_study, strangers
from aetdice.studies.study import Study

STUDIES: dict[str, Callable[[bool], Study]] = {
    "fair-taxi": fair_taxi.study,
    **{name: partial(coverage.study, name) for name in ("pointmaze-2obj", "pointmaze-3obj")},
    **{name: partial(mujoco.study, name) for name in ("ant", "walker2d", "cobb-douglas")},
    "stitching": stitching_study.study,
    "strangers": strangers.study,
}
"""What makes a study, given whether it is to be quick."""
