"""The exact optima of BSR over α, of the two-step example and Fair-Taxi, for the slider of choosing.md.

python docs/figures/alphas.py writes docs/static/bsr-alpha.json, in about a minute on two cores.
"""

import json
from pathlib import Path

import numpy as np

import aetdice
from aetdice.exact import AugmentedSpace

ALPHAS = np.linspace(0, 1, 51)
PROBLEMS = {"two-step": "the two-step example", "fair-taxi": "Fair-Taxi"}


def points(space: AugmentedSpace) -> list[dict]:
    """For each α: how likely each return is under the optimum, its mean, and what ESR and SER make of it."""
    rows = []
    for alpha in ALPHAS:
        outcomes = aetdice.solve(space, aetdice.bsr(float(alpha))).policy.outcomes()
        likely = [
            [round(float(chance), 4), *(round(float(value), 4) for value in returns)]
            for chance, returns in zip(outcomes.probabilities, outcomes.returns, strict=True)
            if chance > 1e-3
        ]
        rows.append(
            {
                "alpha": round(float(alpha), 2),
                "outcomes": likely,
                "mean": [round(float(value), 4) for value in outcomes.mean],
                "esr": round(float(outcomes.score(aetdice.esr())), 4),
                "ser": round(float(outcomes.score(aetdice.ser())), 4),
            }
        )
    return rows


def main() -> None:
    data = {}
    for name, title in PROBLEMS.items():
        env = aetdice.make_env(name)
        space = aetdice.enumerate_space(aetdice.TabularMOMDP.from_environment(env))
        data[name] = {"title": title, "objectives": list(env.objectives), "points": points(space)}
    target = Path(__file__).parents[1] / "static" / "bsr-alpha.json"
    target.write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
