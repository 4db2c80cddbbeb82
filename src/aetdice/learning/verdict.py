"""Whether to trust a member: read from its diagnostics, without the environment, and said in words.

Where the data allow to play a policy (`estimation.models`), what it attains there decides. Elsewhere
the signs of the dual and of cloning are told, but a policy whose J nothing tells is not trusted.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from aetdice.algorithms import Hints
from aetdice.algorithms.episode_weighting import LEAST_EPISODES
from aetdice.learning.selection import MOST_IMBALANCE, MOST_VIOLATION

LEAST_DISTANCE = 0.02
MOST_UNCERTAINTY = 0.08
"""Half a 95 % interval of the data's own J, relative to what the policy gains over it."""
MOST_CHANCE = 0.01
"""Of steps after which something else might have followed, where whole episodes are weighed."""
MOST_NOISE = 0.1
"""Of what a continuous step does, where the dual sees a single draw of it."""
MOST_UNKNOWN = 0.15
"""Of a policy's steps in the recorded model, that nothing like them was recorded."""
MOST_LOST = 0.3
"""Of what is possible over the data, that the policy does not attain in the recorded model."""
LEAST_RECORDED = 100
"""Episodes to choose whole ones from: among fewer there is hardly one that shows what is possible."""
MOST_SHORTFALL = 0.25
"""By which cloning's actions may be further from those taken than nearest neighbours' are, relatively."""

Diagnostics = Mapping[str, Any]
Findings = list[tuple[bool, str]]
"""Each a statement, and whether it speaks for the member."""


class Verdict(NamedTuple):
    """Whether to trust a member, in plain words."""

    trusted: bool
    words: str


def judge(diagnostics: Diagnostics, hints: Hints | None) -> Verdict:
    """All that is known of a member, and whether any of it speaks against it."""
    if hints is None:
        findings = [(True, "This is plain cloning."), *_cloning(diagnostics)]
    else:
        findings = [
            *_convergence(diagnostics),
            *_sample_size(diagnostics, hints.closer),
            *_episodes(diagnostics, hints.closer),
            *_noise(diagnostics),
            *_cloning(diagnostics),
            *_played(diagnostics),
            _difference(diagnostics, hints.further),
        ]
    return Verdict(all(good for good, _ in findings), " ".join(words for _, words in findings))


def trusted_by_words(words: str) -> bool:
    """Version 0.1 kept the words of a verdict alone; what spoke against a member stood in capitals."""
    return not any(mark in words for mark in ("NOT converged", "COLLAPSED", "INDISTINGUISHABLE"))


def _convergence(diagnostics: Diagnostics) -> Findings:
    if "flow_violation" not in diagnostics:
        return []
    lost, imbalance = diagnostics["mass_violation"], diagnostics["flow_violation"]
    converged = lost <= MOST_VIOLATION and imbalance <= MOST_IMBALANCE
    state = "converged" if converged else "NOT converged, train longer"
    words = (
        f"The dual has {state}: mass is conserved within {lost:.1%} (at most {MOST_VIOLATION:.0%} is good), "
        f"and the flow through the states is out of balance by {imbalance:.2f} (at most {MOST_IMBALANCE:g})."
    )
    return [(converged or "model_value" in diagnostics, words)]


def _sample_size(diagnostics: Diagnostics, hint: str) -> Findings:
    """A small share of many episodes is enough to learn from."""
    if "effective_sample_size" not in diagnostics:
        return []
    share = diagnostics["effective_sample_size"]
    if share * diagnostics["episodes"] >= LEAST_EPISODES:
        return [(True, f"The sample weights rest on {share:.1%} of the data.")]
    words = f"The sample weights have COLLAPSED onto {share:.1%} of the data; use {hint}."
    return [("model_value" in diagnostics, words)]


def _episodes(diagnostics: Diagnostics, hint: str) -> Findings:
    if "effective_episodes" not in diagnostics:
        return []
    count, chance = diagnostics["effective_episodes"], diagnostics["stochastic_share"]
    findings = [
        (True, f"Whole episodes are weighed; the weights rest on {count:.1f} of them.")
        if count >= LEAST_EPISODES
        else (False, f"The weights have COLLAPSED onto {count:.1f} episodes; use {hint}.")
    ]
    if (recorded := diagnostics.get("episodes", LEAST_RECORDED)) < LEAST_RECORDED:
        words = f"They were chosen from FEW, {recorded}, so that better ones may be possible: record more."
        findings.append((False, words))
    if joined := diagnostics.get("joined_share"):
        findings.append((True, f"{joined:.0%} of the weight is of episodes joined from parts of others."))
    if chance > MOST_CHANCE:
        words = (
            f"After {chance:.0%} of the steps something else might have followed: weights of whole "
            "episodes REWARD LUCK; use aetdice."
        )
        findings.append((False, words))
    return findings


def _noise(diagnostics: Diagnostics) -> Findings:
    """Continuous transitions: their outcomes cannot be pooled."""
    noise = diagnostics.get("noise", 0.0)
    if noise <= MOST_NOISE:
        return []
    words = (
        f"{noise:.0%} of what a step does is chance, which the dual of single draws takes for skill: it "
        "REWARDS LUCK. Number the states, so that outcomes can be pooled, or compare with esr-iql."
    )
    return [(False, words)]


def _cloning(diagnostics: Diagnostics) -> Findings:
    shortfall = diagnostics.get("cloning_shortfall", 0.0)
    if shortfall <= MOST_SHORTFALL:
        return []
    words = (
        f"CLONING FAILED: its actions are further from those taken than nearest neighbours' are, by "
        f"{shortfall:.0%}. Train longer, leave network.* unset, or use --effort thorough."
    )
    return [(False, words)]


def _played(diagnostics: Diagnostics) -> Findings:
    """What the policy attains by the data, where it can be played in them, and how sure that is."""
    if "model_value" not in diagnostics:
        words = (
            "It is UNVERIFIED: what it attains cannot be told from these data, since states with so many "
            "numbers are never near enough to play it in them. Evaluate it beside its twin before use."
        )
        return [(False, words)]
    value, data = diagnostics["model_value"], diagnostics["data_value"]
    words = f"Played in the recorded transitions the policy attains {value:.4g}; the data have {data:.4g}."
    findings = [(True, words)]
    if (unknown := diagnostics["model_unknown"]) > MOST_UNKNOWN:
        words = f"It LEAVES THE DATA: nothing like {unknown:.0%} of its steps was recorded. Train longer."
        findings.append((False, words))
    if value <= data:
        findings.append((False, "That is NO BETTER than the data: use the cloning twin."))
        return findings
    if (lost := diagnostics.get("lost_share", 0.0)) > MOST_LOST:
        words = (
            f"Parts of the data promise {diagnostics['possible_value']:.4g}: {lost:.0%} of the gain is LOST. "
            "Train longer, or use --effort thorough."
        )
        findings.append((False, words))
    if (share := diagnostics["model_uncertainty"]) > MOST_UNCERTAINTY:
        words = f"That is UNCERTAIN by {min(share, 9.99):.0%} of the gain: record more episodes."
        findings.append((False, words))
    return findings


def _difference(diagnostics: Diagnostics, hint: str) -> tuple[bool, str]:
    if diagnostics["distance_to_twin"] >= LEAST_DISTANCE:
        return True, "The policy differs from its cloning twin."
    return False, f"The policy is INDISTINGUISHABLE from plain cloning; use {hint}."
