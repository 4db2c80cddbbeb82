"""Every test runs with strict ranks, strict dtypes, run-time shape checks and warnings as errors.

Nearly all of the suite's time goes into compiling small programs that run once, so XLA is told to
compile them quickly rather than well, and to keep them for the other worker and the next module.
"""

import ctypes
import functools
import gc
import math
import os
import platform
import shutil
import sys
import tempfile
import threading
from pathlib import Path

FLAGS = [
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",  # each worker has one core
]
if platform.machine() in ("x86_64", "AMD64"):
    # Unoptimised code computes a number twice, once with fused multiply-add: then x != x.
    FLAGS.append("--xla_cpu_max_isa=AVX")
os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))  # before JAX is imported

import jax  # noqa: E402
import jaxtyping  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_traceback_in_locations_limit", 0)  # nobody reads the programs of tests
if jax.__version_info__ < (0, 12):  # each program makes, and keeps, a context of its own; later ones share
    CONTEXT_OF = functools.cache(lambda thread, make=mlir.make_ir_context: make())
    mlir.make_ir_context = lambda: CONTEXT_OF(threading.get_ident())

settings.register_profile("check", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("test", deadline=None, max_examples=40, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))

LEAST, SHARE = 2e9, 0.25
"""Bytes that a process may take in any case, and its share of the machine's: a program that is forgotten
is traced and lowered again, which costs more than it weighs."""
SLOWEST_FIRST = ("studies", "docs", "consumer", "probes", "faults", "contracts", "environments", "oracles")
"""Folders of tests: whole files go to one worker, so the long ones must not come last."""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers and the processes that tests start inherit it
        config.compiled = tempfile.mkdtemp(prefix="aetdice-compiled-")
        os.environ["JAX_COMPILATION_CACHE_DIR"] = config.compiled
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def pytest_unconfigure(config: pytest.Config) -> None:
    if hasattr(config, "compiled"):
        shutil.rmtree(config.compiled, ignore_errors=True)


def pytest_collection_finish() -> None:
    """What is there by now stays: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        return SLOWEST_FIRST.index(folder) if folder in SLOWEST_FIRST else 0

    items.sort(key=place)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Compiled programs are kept in memory while they are few; within a module, a little longer."""
    within = nextitem is not None and nextitem.path == item.path
    if memory() < (1.25 * enough() if within else enough()):
        return
    jax.clear_caches()
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)  # what is free within the process goes back to the system


@functools.cache
def enough() -> float:
    """Bytes above which compiled programs are forgotten."""
    known = hasattr(os, "sysconf") and {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= os.sysconf_names.keys()
    return max(LEAST, SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) if known else LEAST


def memory() -> float:
    """Bytes of this process; infinity where that is not known."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else math.inf


@pytest.fixture
def without_type_checks():
    """As a user runs the library: the type checks look at one random entry of a sequence only."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
