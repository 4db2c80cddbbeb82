"""How long, on what and for how much: a thousand million transitions and ten thousand policies.

python benchmarks/plan.py RESULT.json

Everything that is assumed stands in `ASSUMED`; everything else is measured, here or in speed_h200.json.
"""

import json
import sys
from pathlib import Path
from typing import Any

ASSUMED = {
    "transitions": 1e9,
    "policies": 10_000,
    "updates_per_policy": 18_000,
    "hours": 24,
    "two_cores_usd_per_hour": 0.08,
    "h200_usd_per_hour": 3.5,
    "h200_policy_steps": 155_500,
    "h200_gib": 130,
    "disk_gbytes_per_second": 3.0,
}
"""18,000 updates are the default of both stages; prices are round figures of on-demand computers; 155,500
steps per second is what one H200 reached with 45 policies of 2×256, with data on the device."""


def plan(found: dict[str, Any]) -> dict[str, Any]:
    """Machines, hours and money for two kinds of machine, and which limit each meets first."""
    together = max(found["growth"]["members"], key=lambda row: row["policy_steps"])
    bytes_per_step = together["data_mib"] * 2**20 / together["steps"]
    data_gib = ASSUMED["transitions"] * bytes_per_step / 2**30
    total = ASSUMED["policies"] * ASSUMED["updates_per_policy"]
    fits = data_gib <= ASSUMED["h200_gib"]
    cases = {
        "two cores": (together["policy_steps"], ASSUMED["two_cores_usd_per_hour"], True),
        "H200": (ASSUMED["h200_policy_steps"], ASSUMED["h200_usd_per_hour"], not fits),
    }
    rows = {}
    for name, (rate, price, streams) in cases.items():
        hours = total / rate / 3600
        drawn = 2 * together["batch"] * rate * bytes_per_step * 1e-9
        rows[name] = {
            "policy_steps": rate,
            "machine_hours": round(hours, 1),
            "machines_for_a_day": -(-hours // ASSUMED["hours"]),
            "usd": round(hours * price),
            "drawn_gbytes_per_second": round(drawn, 3),
            "bottleneck": "reading rows"
            if streams and drawn > ASSUMED["disk_gbytes_per_second"]
            else "updates",
        }
    return {
        "assumed": ASSUMED,
        "policy_steps_in_all": total,
        "bytes_per_transition": round(bytes_per_step, 1),
        "data_gib": round(data_gib),
        "fits_an_h200": fits,
        "machines": rows,
    }


if __name__ == "__main__":
    print(json.dumps(plan(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), indent=2))
