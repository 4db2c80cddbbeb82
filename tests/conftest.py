"""Every test runs with strict ranks, strict dtypes, run-time shape checks and warnings as errors."""

import jax
from hypothesis import settings

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

settings.register_profile("aetdice", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("aetdice")
