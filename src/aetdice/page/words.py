"""An objective, an answer and what to do, in plain words."""

import re
from collections.abc import Mapping
from typing import Any

from aetdice.objectives import Objective
from aetdice.objectives.parameters import text
from aetdice.page.numbers import number

GREEK = {"alpha": "α", "beta": "β", "rho": "ρ"}
FORMULAS = {
    "LSR": "w · E[R]",
    "SER": "Σᵢ log E[Rᵢ]",
    "ESR": "E[Σᵢ log Rᵢ]",
    "BSR": "Σᵢ u_α(E[u_{1-α}(Rᵢ)])",
}
MEANINGS = {
    "LSR": "A weighted sum of what episodes bring on average; who gets it within an episode does not matter.",
    "SER": "Fair on average: one side may be served today and the other tomorrow.",
    "ESR": "Fair within every episode: nobody has to wait for another one.",
    "BSR": "Between fair within every episode (α = 0, ESR) and fair on average (α = 1, SER).",
}
REGIMES = {
    "linear": "Only the average return of each objective counts, and it counts in proportion.",
    "SER": "Only the average return of each objective counts: F is linear, so single episodes may differ.",
    "ESR": "Every episode is judged by itself, and the judgements are averaged: G is linear.",
    "AET": "Every episode is judged by F, and what F gives on average is weighed by G.",
}
ALARM = re.compile(r"\b[A-Z]{2,}\b")
"""What speaks against a policy stands in capitals in its verdict."""


def symbol(name: str) -> str:
    """A parameter as mathematics has it."""
    return GREEK.get(name, name.replace("_", " "))


def short_name(objective: Objective) -> str:
    """Such as BSR(α = 0.5)."""
    shown = ", ".join(f"{symbol(name)} = {text(value)}" for name, value in objective.shown.items())
    return f"{objective.label}({shown})" if shown else objective.label


def described(objective: Objective, objectives: int) -> dict[str, str]:
    """F and G in words and in symbols."""
    label = objective.label
    words = MEANINGS[label] if label in MEANINGS else REGIMES[objective.regime(objectives)]
    return {
        "name": short_name(objective),
        "formula": FORMULAS.get(label, "G(E[F(R)])"),
        "words": words,
        "utility": objective.utility.name,
        "aggregation": objective.aggregation.name,
    }


def score_text(score: Mapping[str, Any]) -> str:
    """A value with its interval, where it has one."""
    if score.get("low") is None:
        return number(score["value"])
    half = (score["high"] - score["low"]) / 2
    value, low, high = (number(score[name], half) for name in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def answer(name: str, trained: Mapping[str, Mapping[str, Any]], estimate: Mapping[str, Any] | None) -> str:
    """What the policy attains, beside its twin, the data and the optimum; `trained` is by kind of row."""
    data = f"{score_text(trained['data'])} in the logged data"
    if "policy" in trained:
        said = (
            f"Under {name} the policy attains {score_text(trained['policy'])}, against "
            f"{score_text(trained['twin'])} for its cloning twin and {data}"
        )
        return said + _gap(trained) + "."
    if estimate is not None:
        found = estimate["policy"]
        return (
            f"By the log alone, the policy would attain {score_text(found)} under {name}, against "
            f"{score_text(estimate['twin'])} for its cloning twin and {data}. It is better than the log with "
            f"a probability of {found['improvement']:.0%}; the estimate is {SUPPORT[found['support']['word']]}."
        )
    if "model" in trained:
        return (
            f"Played in the recorded transitions, the policy attains {score_text(trained['model'])} under "
            f"{name}, against {data}. No episodes were kept for an estimate with an interval."
        )
    return (
        f"What the policy attains under {name} is not known: there is neither an environment nor an estimate. "
        f"It is {data}."
    )


SUPPORT = {
    "supported": "supported by the data",
    "extrapolating": "an extrapolation beyond the data",
    "do not trust": "not to be trusted",
}


def _gap(trained: Mapping[str, Mapping[str, Any]]) -> str:
    if "optimum" not in trained:
        return ""
    policy, twin, best = (trained[kind]["value"] for kind in ("policy", "twin", "optimum"))
    share = f", {(policy - twin) / (best - twin):.0%} of the way from the twin" if best > twin else ""
    return f"; the exact optimum is {number(best)}{share}"


def findings(words: str) -> list[dict[str, Any]]:
    """The sentences of a verdict, and whether each is an alarm."""
    sentences = re.split(r"(?<=\.) (?=[A-Z0-9])", words)
    return [{"words": each, "alarm": bool(ALARM.search(each))} for each in sentences if each]


def advice(trusted: bool, estimate: Mapping[str, Any] | None, folder: str | None) -> list[str]:
    """What to do next."""
    if not trusted:
        return [
            "Do not put this policy to work. The marked lines say what to change; then train again.",
            "Until then the cloning twin, which does what the data did, is the safer choice.",
        ]
    steps = ["Nothing that is known to go wrong was found. That is no promise that the policy is optimal."]
    if estimate is not None and estimate["policy"]["support"]["word"] != "supported":
        steps.append(
            "The verdict is good, the estimate is not supported: record more episodes like those that the "
            "policy makes, and estimate again."
        )
    if estimate is not None and not estimate["self_check"]["within"]:
        steps.append("Read the estimate with care: that of the cloning twin is not what was recorded.")
    steps.append("Put it to work on few episodes first, and compare what they bring with this page.")
    return steps if folder is None else [*steps, f"One file to ship: aetdice export {folder} policy.onnx"]
