"""FairDICE in a maze over β: what the diagnostics say, and what the policies attain.

    python experiments/discounted_selection.py pointmaze-2obj --out RESULT.json

Networks and features are those of the quick maze study, with fewer updates; minutes on two CPU cores.
The setting is selected by the rule, which never sees the environment.
"""

import argparse
import datetime
from pathlib import Path

import jax

from aetdice.datasets import load_dataset, make_env
from aetdice.evaluation import sample_returns_of
from aetdice.files import versions, write_json
from aetdice.learning.setup import readable
from aetdice.learning.training import train
from aetdice.objectives import in_float64, ser
from aetdice.studies.parts import code_commit
from aetdice.studies.point_maze import MAZES, QUICK

BETAS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
SHOWN = (
    *("flow_violation", "held_out_flow_violation", "mass_violation", "effective_sample_size"),
    *("claimed_value", "held_out_claimed_value", "distance_to_twin"),
)
ROLLOUT_SEED = 2026


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("env", choices=list(MAZES))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-seed", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, nargs=2, default=(6_000, 4_000), metavar=("NU", "POLICY"))
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--commit", default=code_commit())
    arguments = parser.parse_args()
    env, dataset = make_env(arguments.env), load_dataset(arguments.env, seed=arguments.data_seed)
    values, policies = arguments.steps
    lengths = {"dual.steps": values, "extraction.steps": policies, "dual.refit": "layer"}
    config = readable(QUICK.config.adapted(lengths), "fairdice")
    run = train(
        dataset,
        ser(),
        algorithm="fairdice",
        horizon=env.horizon,
        beta=BETAS,
        seed=arguments.seed,
        config=config,
    )
    acting = [*(member.policy for member in run.members), run.twin]
    score = in_float64(ser())
    *scores, twin = (
        float(score(r)) for r in sample_returns_of(acting, env, arguments.episodes, ROLLOUT_SEED)
    )
    rows = [
        {"beta": m.params["beta"], "score": own, **{name: m.diagnostics[name] for name in SHOWN}}
        for m, own in zip(run.members, scores, strict=True)
    ]
    write_json(
        arguments.out,
        {
            "env": arguments.env,
            "objective": ser().name,
            "data_seed": arguments.data_seed,
            "dataset_sha256": dataset.sha256,
            "seed": arguments.seed,
            "episodes": arguments.episodes,
            "rollout_seed": ROLLOUT_SEED,
            "settings": config.changed(),
            "rows": rows,
            "selected": run.selected.params["beta"],
            "rule": run.rule,
            "twin": twin,
            "data": float(score(dataset.returns)),
            "commit": arguments.commit,
            "date": datetime.date.today().isoformat(),
            "device": jax.devices()[0].device_kind,
            "seconds": run.seconds,
            "versions": versions(),
        },
    )
    for row in rows:
        print({name: round(value, 3) for name, value in row.items()})
    print("selected", run.selected.params["beta"], "twin", round(twin, 3))


if __name__ == "__main__":
    main()
