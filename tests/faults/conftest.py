"""Shared by the tests on rejected input."""

import pytest
from jaxtyping import config


@pytest.fixture
def without_type_checks():
    """As a user runs the library: without the run-time type checks of the tests."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
