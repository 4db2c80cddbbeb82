"""Every test runs with strict ranks, strict dtypes, run-time shape checks and warnings as errors."""

import jax
import jaxtyping
import pytest
from hypothesis import settings

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

settings.register_profile("aetdice", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("aetdice")


@pytest.fixture
def without_type_checks():
    """As a user runs the library: the type checks look at one random entry of a sequence only."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
