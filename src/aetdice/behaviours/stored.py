"""Datasets of the bodies kept in a folder: collected once, and checked when they are used again."""

from pathlib import Path

from aetdice.behaviours.behaviour import load_behaviour
from aetdice.behaviours.collection import collect_body, collection_facts
from aetdice.data import Episodes, load_episodes, load_facts, save_episodes
from aetdice.errors import InputError
from aetdice.locking import alone


def stored_episodes(body: str, quality: str, trajectories: int, horizon: int, folder: Path) -> Episodes:
    """The episodes as collected: once per folder, by one process, from the policy of the package."""
    behaviour, store = load_behaviour(body), folder / f"{body}-{quality}"
    facts = collection_facts(behaviour, quality, trajectories, 0) | {"horizon": horizon}
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / f"{store.name}.lock"):
        if not store.exists():
            found = collect_body(body, quality, trajectories, 0, behaviour, horizon=horizon)
            save_episodes(store, found, objectives=behaviour.objectives, facts=facts)
    kept = load_facts(store)
    if any(kept.get(name) != value for name, value in facts.items() if name != "versions"):
        raise InputError(f"{store} holds other data than this study's; delete it or choose another folder")
    return load_episodes(store)
