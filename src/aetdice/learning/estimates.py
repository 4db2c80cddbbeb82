"""What a run's policies would attain by logged episodes: beside, and never mixed with, scores."""

from typing import Any

from aetdice.data import Episodes
from aetdice.datasets import dataset_of
from aetdice.errors import InputError
from aetdice.estimation import PolicyEstimate, estimate
from aetdice.learning.inputs import set_aside
from aetdice.learning.run import Member, Run
from aetdice.progress import tell


def estimate_member(member: Member, data: Episodes, seen: Episodes | None, horizon: int) -> dict[str, Any]:
    """Policy and twin, and as a check the log itself beside the twin's estimate."""
    known = {"twin": member.twin, "seen": seen, "horizon": horizon}
    found = []
    for one in member.acting:
        found.append(estimate(one, data, member.objective, **known))  # type: ignore[arg-type]
        tell("estimates", len(found), len(member.acting))
    policy, twin = found
    return {
        "policy": policy.record(),
        "twin": twin.record(),
        "self_check": self_check(twin),
        "beside_verdict": beside_verdict(member, policy),
    }


def beside_verdict(member: Member, policy: PolicyEstimate) -> str:
    """Two words on one policy, which answer different questions."""
    trusts = "trusts" if member.verdict.trusted else "does not trust"
    word = policy.support.word
    return f"the verdict {trusts} what was trained; {word!r} says how far this number can be believed"


def self_check(twin: PolicyEstimate) -> dict[str, Any]:
    """The twin does what the log did, as far as cloning goes; so its estimate should be the log's own J."""
    apart = abs(twin.value - twin.logged.value)
    within = apart <= twin.interval.half + twin.logged.half
    words = (
        "the estimate of the cloning twin agrees with what was recorded"
        if within
        else "the estimate of the cloning twin is not what was recorded: cloning has lost something, or the "
        "estimate is wrong"
    )
    return {"apart": apart, "within": within, "words": words}


def parts_of(run: Run) -> tuple[Episodes, Episodes | None]:
    """What a run learned or chose from, and the episodes it kept; None if it kept none."""
    origin = run.request["dataset"]["origin"]
    if origin is None:
        raise InputError("the data of this run came from Python: give the episodes to estimate with")
    data = dataset_of(origin)
    if not is_own(run, data):
        raise InputError(f"the data of this run has changed: {origin.get('file', origin.get('env'))}")
    return set_aside(data, run.config)


def is_own(run: Run, data: Episodes) -> bool:
    """Whether a run had these very episodes."""
    return bool(data.sha256 == run.request["dataset"]["sha256"])


def own_parts(run: Run, data: Episodes | None = None) -> tuple[Episodes, Episodes | None]:
    """The episodes a run kept and those it learned from; if it kept none, those it learned from alone.

    Its data are read from where it found them, unless they are given.
    """
    seen, kept = parts_of(run) if data is None else set_aside(data, run.config)
    return (seen, None) if kept is None else (kept, seen)


def estimate_run(run: Run, dataset: Episodes) -> list[dict[str, Any]]:
    """The selected member of every objective; nothing where no episodes were kept."""
    seen, kept = set_aside(dataset, run.config)
    if kept is None:
        return []
    return [estimate_member(run.members[each.chosen], kept, seen, run.horizon) for each in run.selections]
