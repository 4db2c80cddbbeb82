"""`render`: a policy beside its cloning twin, to look at."""

from pathlib import Path

import numpy as np

from aetdice.errors import InputError
from aetdice.evaluation import AnyEnvironment, Policy
from aetdice.evaluation.playing import play_episode
from aetdice.evaluation.scores import SEED
from aetdice.learning.run import Run
from aetdice.progress import tell
from aetdice.report.animation import Panel, SideBySide, write_animation, write_strip
from aetdice.report.drawing import pillow

MOST_FRAMES = 60
"""Of an episode; a longer one is shown every few steps."""
SUFFIXES = {"out": ".gif", "strip": ".png"}


def render(
    what: Run | Policy,
    env: AnyEnvironment,
    out: Path | str | None = None,
    *,
    strip: Path | str | None = None,
    episodes: int = 1,
    seed: int = SEED,
    member: int | None = None,
) -> None:
    """Draw sampled episodes of a run's policy beside its twin, or of a policy alone.

    `out` is an animation (.gif) of all episodes, `strip` a picture (.png) with moments of the first.
    Policy and twin meet the same chance. Equal seeds give equal pictures.
    """
    files = {"out": out, "strip": strip}
    targets = {name: _target(name, given) for name, given in files.items() if given is not None}
    if not targets:
        raise InputError("say where to draw: an animation (.gif), a strip of frames (.png), or both")
    if episodes < 1:
        raise InputError(f"at least one episode is needed, not {episodes}")
    pillow()  # before any episode is played
    panels, title = _cast(what, member)
    every = -(-env.horizon // MOST_FRAMES)
    drawn = []
    for episode in range(episodes):
        own = int(np.random.SeedSequence([seed, episode]).generate_state(1)[0])
        played = []
        for name, policy in panels.items():
            played.append(Panel(name, *play_episode(policy, env, own, every)))
            tell("episodes", episode * len(panels) + len(played), episodes * len(panels))
        drawn.append(SideBySide(played, _names(panels, env), env.horizon, title))
    if "out" in targets:
        write_animation(targets["out"], drawn)
    if "strip" in targets:
        write_strip(targets["strip"], drawn[0])


def _target(name: str, path: Path | str) -> Path:
    if Path(path).suffix.lower() != SUFFIXES[name]:
        raise InputError(f"{path} must end in {SUFFIXES[name]}")
    return Path(path)


def _cast(what: Run | Policy, member: int | None) -> tuple[dict[str, Policy], str]:
    """Who is shown, by name, and what for."""
    if isinstance(what, Run):
        one, origin = what.member(member), what.request.get("dataset", {}).get("origin") or {}
        where = f"{origin['env']}, " if "env" in origin else ""
        title = f"{where}trained for {one.objective.short_name}"
        return {"policy": one.policy, "cloning twin": one.twin}, title
    if isinstance(what, Policy):
        return {"policy": what}, str(what.details.get("params", {}).get("objective", ""))
    raise InputError(f"a Run or a Policy is drawn, as train, load_run or load_policy give them; not {what!r}")


def _names(panels: dict[str, Policy], env: AnyEnvironment) -> tuple[str, ...]:
    """Of what is accrued: the environment's objectives, or what a transform makes of them."""
    transform = panels["policy"].transform
    return env.objectives if transform is None else transform.names(env.objectives)
