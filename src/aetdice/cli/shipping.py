"""`aetdice export` and `aetdice serve`: from a run to decisions elsewhere."""

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from aetdice.cli.options import Shown
from aetdice.errors import InputError
from aetdice.serving import FORMATS, export_run, find_policy, policy_model
from aetdice_runner import Runner
from aetdice_runner.service import IDLE, SESSIONS

ONNX = ".onnx"


@dataclass(frozen=True)
class Export:
    """Write a policy as one file: .onnx for aetdice_runner, without JAX, or .jax for JAX alone."""

    run_folder: tyro.conf.Positional[Path]
    """A run folder or a policy file (.npz)."""
    target: tyro.conf.Positional[Path]
    """The new file: .onnx, or .jax (programs of jax.export)."""
    member: int | None = None
    """Of the run (default: the selected one)."""
    shown: Shown = Shown()

    def run(self) -> None:
        if self.target.suffix not in FORMATS:
            named = " or ".join(str(self.target.with_suffix(suffix)) for suffix in FORMATS)
            raise InputError(f"{self.target} has no suffix that names a format; call it {named}")
        if self.target.exists():
            raise InputError(f"{self.target} exists; delete it or choose another name")
        result = export_run(self.run_folder, self.target, self.member)
        said = "" if result is None else f"; member {result['member']}: {result.get('verdict', 'no verdict')}"
        size = self.target.stat().st_size
        record = {"file": str(self.target), "bytes": size, "result": result}
        self.shown.answer(record, lambda: [f"{self.target}: {size:,} bytes{said}"])


@dataclass(frozen=True)
class Serve:
    """Answer decisions over HTTP, one session per episode; an exported policy is served without JAX."""

    source: tyro.conf.Positional[Path]
    """An exported policy (.onnx), a run folder or a policy file (.npz)."""
    host: str = "127.0.0.1"
    """Where to listen; other machines reach 0.0.0.0, and nothing asks who they are."""
    port: int = 8000
    """0 takes a free one."""
    sessions: int = SESSIONS
    """Episodes open at once; more are refused with 429."""
    idle: float = IDLE
    """Seconds after which an episode that nobody asks about is forgotten."""
    member: int | None = None
    """Of the run (default: the selected one)."""

    def run(self) -> None:
        from aetdice_runner.server import serve

        runner = self.runner()
        trusted = (runner.facts["result"] or {}).get("trusted", True)
        if not trusted:
            print(f"warning: {runner.facts['result']['verdict']}", file=sys.stderr)
        serve(runner, host=self.host, port=self.port, sessions=self.sessions, idle=self.idle)

    def runner(self) -> Runner:
        """Of the file; a run is exported in memory."""
        if self.source.suffix != ONNX:
            if self.source.suffix in FORMATS:
                raise InputError(f"{self.source} runs with JAX alone; export an {ONNX} file to serve it")
            return Runner(policy_model(*find_policy(self.source, self.member)))
        if self.member is not None:
            raise InputError(f"{self.source} is one policy; only a run folder has members")
        return Runner.load(self.source)
