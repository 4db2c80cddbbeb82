"""Pages run as their readers run them: the run-time checks of types are for the tests of each part."""

import pytest


@pytest.fixture(autouse=True)
def _as_readers_run_it(without_type_checks):
    pass
