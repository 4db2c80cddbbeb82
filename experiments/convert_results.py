"""Convert results that version 0.1 wrote to the one schema that all studies have now.

    python experiments/convert_results.py experiments/results/ant.json …

A file is replaced by its conversion; one that is converted already is left alone. No number changes:
what version 0.1 did not keep (a standard deviation where the noise of the episodes was larger, scores of
settings that were not shown) is null. `made` keeps the facts in the words of version 0.1.
"""

import argparse
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from aetdice.evaluation.estimates import NORMAL, estimate, spread
from aetdice.files import write_json
from aetdice.learning.run import gap_share
from aetdice.studies import STUDIES
from aetdice.studies.fair_taxi import HISTORY, SHARES, name_of, optimum_of
from aetdice.studies.mujoco_rollouts import DIRECTIONS, STAY_UP, UPRIGHT
from aetdice.studies.parts import FORMAT
from aetdice.studies.point_maze import best_for
from aetdice.studies.study import Population, Row, Study, Table

HEADINGS = {"BSR[alpha=0.5]": "BSR 0.5"}
WORDS = {"faltering": "unstable", "-walks": "-rollouts", "endowed": "initial-reward"}
UNKNOWN = {"sd": None, "error": None, "freedom": None, "half": None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path, nargs="+")
    for path in parser.parse_args().file:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("format") == FORMAT:
            print(f"{path}: converted already")
            continue
        write_json(path, converted(content, path.stem.removesuffix("-quick"), recorded_in(path)))
        print(f"{path}: converted")


def recorded_in(path: Path) -> str:
    """The commit that brought the results."""
    command = ["git", "-C", str(path.parent), "log", "-1", "--format=%h", "--", path.name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def converted(content: dict[str, Any], name: str, commit: str) -> dict[str, Any]:
    """Results of version 0.1 as `summary.json` has them now."""
    study = STUDIES[name.replace("_", "-")](False)
    convert = maze if "maze" in content else bodies if "scenes" in content else fair_taxi
    return {
        "format": FORMAT,
        "study": study.name,
        **convert(content, study),
        "converted": {"from": "version 0.1", "recorded_in": commit},
    }


def made_of(content: dict[str, Any]) -> dict[str, Any]:
    made = {renamed(part): {**facts, "commit": None} for part, facts in content["made"].items()}
    return {f"star-{n[6:]}-aetdice" if n.startswith("goals-") else n: facts for n, facts in made.items()}


def renamed(name: str) -> str:
    for old, new in WORDS.items():
        name = name.replace(old, new)
    return name


def table_of(table: Table, objectives: list[str], rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    columns = {heading: objective.name for heading, objective in table.columns.items()}
    about = {"title": table.title, "horizon": table.horizon, "interval": table.interval, "columns": columns}
    paper = {name: {h: list(cell) for h, cell in cells.items()} for name, cells in table.paper.items()}
    printed = {name: {**row, "paper": paper.get(name, {})} for name, row in rows.items()}
    return {**about, "objectives": objectives, "rows": printed, **more}


def known_rows(table: Table) -> dict[str, tuple[Population, Row]]:
    return {row.name: (population, row) for population in table.populations for row in population.rows}


def about_row(table: Table, name: str) -> dict[str, Any]:
    if name not in known_rows(table):
        return {"algorithm": "bc", **dict.fromkeys(("objective", "column", "optimum", "data_score"))}
    population, row = known_rows(table)[name]
    facts = {"objective": row.objective.name, "column": row.column, "optimum": row.optimum}
    return {"algorithm": population.algorithm, **facts, "data_score": None}


# MO-PointMaze.


def maze(content: dict[str, Any], study: Study) -> dict[str, Any]:
    main, reference = study.tables[0], content["reference"]
    references: dict[str, Any] = {"data": {"scores": headed(reference["data"]["scores"])}}
    for name, found in reference["schedules"].items():
        references[best_for(HEADINGS.get(name, name))] = {
            "value": found["value"],
            "scores": headed(found["scores"]),
            "schedules": found["mixture"],
        }
    rows = {
        name: {
            **about_row(main, name),
            "data_score": row.get("data_score"),
            "rule": row["rule"],
            "selected": row["selected"],
            "best": row["best"],
            "shown": row["selected"],
            "settings": [maze_setting(setting, "cloning" not in name) for setting in row["settings"]],
        }
        for name, row in content["rows"].items()
    }
    tables = {main.name: table_of(main, reference["objectives"], rows, references=references)}
    tables |= {t.name: star(t, content["goals"][t.name.removeprefix("star-")]) for t in study.tables[1:]}
    return {"tables": tables, "probes": probes(content), "made": made_of(content)}


def headed(scores: dict[str, Any]) -> dict[str, Any]:
    return {HEADINGS.get(name, name): score for name, score in scores.items()}


def maze_setting(setting: dict[str, Any], trained: bool) -> dict[str, Any]:
    """The standard deviation is known where it made the error."""
    scores = {}
    for name, score in headed(setting["scores"]).items():
        freedom = score["freedom"]
        sd = None if freedom is None else score["error"] * math.sqrt(freedom + 1)
        scores[name] = {"mean": score["mean"], "sd": sd, **score}
    own = scores.pop("trained", None)
    kept = {name: setting[name] for name in ("mean_returns", "variances")}
    known = ("scores", "params", "twin", "schedule", "gap_shares", *kept)
    shown = {"twin": setting["twin"], "gap_shares": setting["gap_shares"]} if trained else {}
    return {
        "params": setting.get("params", {}),
        "diagnostics": {name: value for name, value in setting.items() if name not in known},
        "trained": own if trained else None,
        **shown,
        "scores": scores,
        **kept,
        "quantities": {},
    }


def star(table: Table, part: dict[str, Any]) -> dict[str, Any]:
    """A star's part had every seed."""
    references = {
        best_for(name): {"value": part["best"][name], "scores": {}, "schedules": schedules}
        for name, schedules in part["schedules"].items()
    }
    rows = {}
    for name, row in part["rows"].items():
        settings = []
        for setting in row["settings"]:
            seeds = [{**seed, "scores": headed(seed["scores"])} for seed in setting["seeds"]]
            own, twins = [seed["scores"].pop("trained") for seed in seeds], [seed["twin"] for seed in seeds]
            values = zip((score["value"] for score in own), twins, strict=True)
            settings.append(
                {
                    "params": {key: v for key, v in setting["params"].items() if key != "algorithm"},
                    "diagnostics": {
                        key: float(np.mean([seed["diagnostics"][key] for seed in seeds]))
                        for key in seeds[0]["diagnostics"]
                    },
                    "trained": estimate(own).record(),
                    "twin": float(np.mean(twins)),
                    "gap_shares": [gap_share(score, twin, part["best"][name]) for score, twin in values],
                    "scores": {h: estimate([s["scores"][h] for s in seeds]).record() for h in table.columns},
                    "mean_returns": np.mean([seed["mean_returns"] for seed in seeds], axis=0).tolist(),
                    "variances": np.mean([seed["variances"] for seed in seeds], axis=0).tolist(),
                    "quantities": {},
                    "seeds": [{**seed, "trained": score} for seed, score in zip(seeds, own, strict=True)],
                }
            )
        chosen = {"selected": row["selected"], "best": row["best"], "shown": row["selected"]}
        facts = {**about_row(table, name), "data_score": row["data_score"], "rule": row["rule"]}
        rows[name] = {**facts, **chosen, "settings": settings}
    goals = [f"goal{letter}" for letter in "ABCD"[: len(rows["ESR"]["settings"][0]["mean_returns"])]]
    return table_of(table, goals, rows, references=references, twins=part["twins"])


def probes(content: dict[str, Any]) -> dict[str, Any]:
    cases = []
    for case in content["endowed"]["cases"]:
        seeds = [{"not_told": seed["untold"], **seed} for seed in case["seeds"]]
        cases.append(
            {
                "accrued": case["endowment"],
                **{name: case[name] for name in ("best", "best_gains")},
                "schedules": case["schedule"],
                "seeds": [{name: v for name, v in seed.items() if name != "untold"} for seed in seeds],
            }
        )
    return {"initial-reward": {"cases": cases}}


# The D4MORL bodies.


def bodies(content: dict[str, Any], study: Study) -> dict[str, Any]:
    tables = {table.name: table for table in study.tables}
    seeds = {len(part["facts"]["seeds"]) for part in content["made"].values() if "seeds" in part["facts"]}
    [count] = seeds
    return {
        "tables": {
            renamed(name): scene_table(tables[renamed(name)], scene, count)
            for name, scene in content["scenes"].items()
        },
        "probes": {},
        "made": made_of(content),
    }


def scene_table(table: Table, scene: dict[str, Any], count: int) -> dict[str, Any]:
    references = {
        name: {
            "scores": {heading: score["value"] for heading, score in found["scores"].items()},
            "mean_returns": found["mean_returns"],
            "intervals": {
                heading: [score["low"], score["high"]] for heading, score in found["scores"].items()
            },
            "quantities": {UPRIGHT: {STAY_UP: found["upright"]}},
        }
        for name, found in scene["references"].items()
    }
    rows = {name: body_row(table, name, row, count) for name, row in scene["rows"].items()}
    return table_of(table, scene["objectives"], rows, references=references)


def body_row(table: Table, name: str, row: dict[str, Any], count: int) -> dict[str, Any]:
    scores = {heading: with_error(score, count) for heading, score in row["scores"].items()}
    quantities: dict[str, Any] = {UPRIGHT: {STAY_UP: row["upright"]}}
    if row["shares"]:
        quantities[DIRECTIONS] = {kind: {"mean": share, "sd": None} for kind, share in row["shares"].items()}
    attained = {"mean_returns": row["mean_returns"], "variances": None, "quantities": quantities}
    own = scores.pop("trained", None)
    if not row["settings"]:
        setting = {"params": {}, "diagnostics": {}, "trained": None, "scores": scores, **attained}
        chosen = dict.fromkeys(("selected", "best", "shown"), 0)
        facts = {**about_row(table, name), "rule": "nothing to choose"}
        return {**facts, **chosen, "settings": [setting]}
    settings = []
    for each in row["settings"]:
        found = {"params": each["params"], "diagnostics": each["diagnostics"]}
        if each["params"] == row["params"]:
            found |= {"trained": own, "scores": scores, **attained}
        else:
            found["trained"] = None if each["score"] is None else {"mean": each["score"], **UNKNOWN}
        settings.append(found)
    shown = next(i for i, setting in enumerate(settings) if setting["params"] == row["params"])
    selected = next(i for i, each in enumerate(row["settings"]) if each["selected"])
    chosen = {"selected": selected, "best": shown, "shown": shown}
    return {**about_row(table, name), "rule": row["rule"], **chosen, "settings": settings}


def with_error(score: dict[str, Any], count: int) -> dict[str, Any]:
    """Error and degrees of freedom, from the interval that they gave."""
    sd, half = score["sd"], score["half"]
    error = 0.0 if sd is None else sd / math.sqrt(count)
    between = count > 1 and math.isclose(half, student.ppf(0.975, count - 1) * error, rel_tol=1e-6)
    return {
        "mean": score["mean"],
        "sd": sd,
        "error": error if between else half / NORMAL,
        "freedom": count - 1.0 if between else None,
        "half": half,
    }


# Fair-Taxi.


def fair_taxi(content: dict[str, Any], study: Study) -> dict[str, Any]:
    """Kept by hand from the parts: members with plain scores, and what the selected policies do."""
    [table] = study.tables
    rows, references, made = {}, {}, {}
    for part, found in content["parts"].items():
        for alpha, summary in zip(found["policies"], found["by_objective"], strict=True):
            name, policies = name_of(float(alpha)), found["policies"][alpha]
            references[optimum_of(float(alpha))] = {
                "value": summary["exact_score"],
                "scores": {},
                "quantities": {SHARES: policies["exact_shares"]},
            }
            rows[name] = taxi_row(table, name, summary, found["members"], policies["seeds"])
        facts = {"command": content["command"], "episodes": content["episodes"], "config": content["config"]}
        about = {key: content[key] for key in ("commit", "date", "versions")}
        device = {"device": content["machine"], "seconds": found["seconds"]}
        made[part] = {"facts": facts, **about, **device}
    table_now = table_of(table, ["group0", "group1"], rows, references=references)
    return {"tables": {table.name: table_now}, "probes": {}, "made": made}


def taxi_row(
    table: Table, name: str, summary: dict[str, Any], members: list[dict[str, Any]], seeds: list[Any]
) -> dict[str, Any]:
    own = [m for m in members if m["params"]["objective"] == summary["selected"]["params"]["objective"]]
    betas = list(dict.fromkeys(member["params"]["beta"] for member in own))
    selected = betas.index(summary["selected"]["params"]["beta"])
    settings = [
        taxi_setting([m for m in own if m["params"]["beta"] == beta], summary, table) for beta in betas
    ]
    settings[selected] |= {
        "mean_returns": np.mean([seed["mean"] for seed in seeds], axis=0).tolist(),
        "variances": np.mean([seed["variance"] for seed in seeds], axis=0).tolist(),
        "quantities": {
            SHARES: {key: spread([s["shares"][key] for s in seeds]) for key in seeds[0]["shares"]},
            HISTORY: {
                "group 0 served 3 times": spread([seed["probe"]["served 3"] for seed in seeds]),
                "never served": spread([seed["probe"]["served 0"] for seed in seeds]),
            },
        },
    }
    best = max(range(len(betas)), key=lambda i: settings[i]["trained"]["mean"])
    facts = {**about_row(table, name), "data_score": summary["data_score"]}
    chosen = {"selected": selected, "best": best, "shown": selected}
    kept = {"gap_share": summary["gap_share"], "verdict": summary["verdict"], "selected_seeds": seeds}
    return {**facts, "rule": summary["selected"]["rule"], **chosen, "settings": settings, **kept}


def taxi_setting(members: list[dict[str, Any]], summary: dict[str, Any], table: Table) -> dict[str, Any]:
    """The members were kept without the intervals of their episodes."""

    def estimated(name: str) -> dict[str, Any]:
        values = [member["scores"][name] for member in members]
        return estimate([{"value": v, "low": v, "high": v} for v in values]).record()

    params = members[0]["params"]
    old = {heading: name for name, heading in HEADINGS.items()}
    scalars = [key for key, value in members[0]["diagnostics"].items() if isinstance(value, float)]
    exact = summary["exact_score"]
    return {
        "params": {key: params[key] for key in ("beta", "learning_rate")},
        "diagnostics": {key: float(np.mean([m["diagnostics"][key] for m in members])) for key in scalars},
        "trained": estimated("trained"),
        "twin": float(np.mean([member["twin_score"] for member in members])),
        "gap_shares": [gap_share(member["score"], member["twin_score"], exact) for member in members],
        "scores": {heading: estimated(old.get(heading, heading)) for heading in table.columns},
        "seeds": members,
    }


if __name__ == "__main__":
    main()
