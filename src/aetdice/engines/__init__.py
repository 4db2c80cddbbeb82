"""Where tasks are done: this process, processes of this machine, or a Ray cluster."""

from pathlib import Path

from aetdice.engines.base import Engine
from aetdice.errors import InputError

ENGINES = ("local", "ray")


def engine_for(
    name: str, folder: Path, *, workers: int | None, address: str | None, threads: int, gpus: float
) -> Engine:
    """The engine of a name; what the other one takes is refused."""
    if name not in ENGINES:
        raise InputError(f"there is no engine {name!r}; known: {', '.join(ENGINES)}")
    if name == "local":
        if address is not None:
            raise InputError("an address is of a Ray cluster: say --engine ray")
        from aetdice.engines.local import LocalEngine

        return LocalEngine(folder, workers, threads)
    if workers is not None:
        raise InputError("a Ray cluster has its own number of workers: leave --workers out")
    from aetdice.engines.ray import RayEngine

    return RayEngine(folder, address, threads, gpus)
