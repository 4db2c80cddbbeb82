"""The datasets of the studies: collected once per folder from the policies that come with the package."""

from pathlib import Path

from aetdice.behaviours import collect_body, load_behaviour
from aetdice.behaviours.collection import collection_facts
from aetdice.data import Episodes, Transform, load_episodes, load_facts, save_episodes, transform_episodes
from aetdice.errors import InputError
from aetdice.studies.bodies.plan import Plan
from aetdice.studies.bodies.scenes import Scene

SEED = 0


def behaviour_hash(body: str) -> str | None:
    """Of the policy that comes with the package; None without one, which is said when it is needed."""
    try:
        return load_behaviour(body).sha256
    except InputError:
        return None


def raw_episodes(scene: Scene, plan: Plan, folder: Path) -> Episodes:
    """The episodes as collected, from the folder if they are there."""
    behaviour, store = load_behaviour(scene.body), folder / f"{scene.body}-{scene.quality}"
    facts = collection_facts(behaviour, scene.quality, plan.trajectories, SEED) | {"horizon": plan.horizon}
    if not store.exists():
        found = collect_body(
            scene.body, scene.quality, plan.trajectories, SEED, behaviour, horizon=plan.horizon
        )
        save_episodes(store, found, objectives=behaviour.objectives, facts=facts)
    kept = load_facts(store)
    if any(kept.get(name) != value for name, value in facts.items() if name != "versions"):
        raise InputError(f"{store} holds other data than this study's; delete it or choose another folder")
    return load_episodes(store)


def reshaped_episodes(scene: Scene, plan: Plan, folder: Path) -> tuple[Episodes, Transform]:
    """The episodes as a table sees them, and the transform that made them so."""
    raw = raw_episodes(scene, plan, folder)
    first = [raw[i] for i in range(min(plan.reference, len(raw)))]
    transform = scene.transform(Episodes.from_list(first, raw.objectives))
    return transform_episodes(raw, transform), transform
