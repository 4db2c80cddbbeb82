"""The paper's studies and ours by name, in full or quick; others are found where they are."""

import importlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from aetdice.errors import InputError
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


class Named(NamedTuple):
    """A study as any process can make it: by a name from `STUDIES`, or as `module:function`."""

    study: str
    quick: bool

    def make(self) -> Study:
        if self.study in STUDIES:
            return STUDIES[self.study](self.quick)
        module, _, name = self.study.partition(":")
        if not (module and name):
            known = ", ".join(STUDIES)
            raise InputError(f"there is no study {self.study!r}; known: {known}; your own is module:function")
        try:
            make: Callable[[bool], Study] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise InputError(f"there is no study {self.study!r}: {error}") from error
        return make(self.quick)

    @property
    def words(self) -> str:
        return f"{self.study}, quick" if self.quick else self.study
