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
    "SER": "Σ_i log E[R_i]",
    "ESR": "E[Σ_i log R_i]",
    "BSR": "Σ_i u_α(E[u_{1-α}(R_i)])",
}
FAIR = "u_a(x) = (x^(1-a) - 1) / (1 - a), and log x for a = 1"
"""The α-fair function, which names of utilities and aggregations write as u[a=…]."""
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
SENTENCE = re.compile(r"(?<=\.) (?=[A-Z0-9])(?!Train |Number )")
"""Where one begins that is no advice about the one before."""
RECORDED = "Read the estimates with care: that of the cloning twin is not what was recorded."
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
        "fair": FAIR if "u[a=" in objective.name else "",
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
        support = SUPPORT[found["support"]["word"]]
        better = (
            "Whether it is better than the log was not recorded"
            if found["improvement"] is None
            else f"It is better than the log with a probability of {found['improvement']:.0%}"
        )
        return (
            f"By the log alone, the policy would attain {score_text(found)} under {name}, against "
            f"{score_text(estimate['twin'])} for its cloning twin and {data}. "
            f"{better}; the estimate is {support}."
        )
    if "model" in trained:
        return (
            f"Played in the recorded transitions, the policy attains {score_text(trained['model'])} under "
            f"{name}, against {data}. No episodes were kept for an estimate with an interval."
        )
    return (
        f"What the policy attains under {name} is not known, for lack of an environment and of an estimate; "
        f"it is {data}."
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
    if best <= twin:
        return f"; the exact optimum is {number(best)}"
    share = f"{(policy - twin) / (best - twin):.0%}"
    return f"; that is {share} of the way from the twin to the exact optimum, {number(best)}"


def findings(words: str) -> list[dict[str, Any]]:
    """The sentences of a verdict, each with what to do about it, and whether it is an alarm."""
    sentences = SENTENCE.split(words)
    return [{"words": each, "alarm": bool(ALARM.search(each))} for each in sentences if each]


def advice(trusted: bool, estimate: Mapping[str, Any] | None, folder: str | None) -> list[str]:
    """What to do next."""
    agrees = estimate is None or estimate["self_check"]["within"]
    if not trusted:
        steps = ["Do not put this policy to work. The marked lines say what to change; then train again."]
        twin = "Until then the cloning twin, which does what the data did, is the safer choice."
        return [*steps, twin if agrees else RECORDED]
    steps = ["Nothing that is known to go wrong was found. That is no promise that the policy is optimal."]
    if estimate is not None and estimate["policy"]["support"]["word"] != "supported":
        steps.append(
            "The verdict is good, the estimate is not supported: record more episodes like those that the "
            "policy makes, and estimate again."
        )
    if not agrees:
        steps.append(RECORDED)
    steps.append("Put it to work on few episodes first, and compare what they bring with this page.")
    return steps if folder is None else [*steps, f"One file to ship: aetdice export {folder} policy.onnx"]
