"""What a page says of one policy."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from aetdice.evaluation.scores import TRAINED, score_returns
from aetdice.objectives import Objective
from aetdice.page.gathering import Gathered, Returns
from aetdice.page.statistics import distribution
from aetdice.page.words import advice, answer, described, findings, score_text

LABELS = {
    "policy": "Policy",
    "twin": "Cloning twin",
    "data": "Logged data",
    "estimate": "Policy, estimated from the log",
    "twin_estimate": "Twin, estimated from the log",
    "model": "Policy, played in the recorded transitions",
    "optimum": "Exact optimum",
}
Score = dict[str, Any]
Rows = dict[str, dict[str, Score]]
"""By kind of row, then by column."""


class Describing:
    """Describes the members of one run; what they share is looked at once."""

    def __init__(self, gathered: Gathered, most: int) -> None:
        self.gathered, self.most = gathered, most
        self.samples: list[dict[str, Any]] = []
        self._seen: dict[int, int] = {}
        self._scores: dict[tuple[int, str], Score] = {}

    def member(self, index: int) -> dict[str, Any]:
        """A policy's record: its answer, table, verdict, and where its episodes are in `samples`."""
        gathered, member = self.gathered, self.gathered.run.members[index]
        estimate, rows = self._estimate(index), self._rows(index)
        words = described(member.objective, len(gathered.names))
        trained = {kind: scores[TRAINED] for kind, scores in rows.items() if TRAINED in scores}
        folder = None if gathered.folder is None else str(gathered.folder)
        doubted = estimate is not None and estimate["policy"]["support"]["word"] == "do not trust"
        trusted = member.verdict.trusted and not doubted
        return {
            "objective": words,
            "answer": answer(words["name"], trained, estimate),
            "trusted": trusted,
            "selected": any(index in gathered.run.seeds_of(each) for each in gathered.run.selections),
            "findings": findings(member.verdict.words),
            "advice": advice(trusted, estimate, folder),
            "rows": [
                {"kind": kind, "label": LABELS[kind], "scores": scores, "note": _note(kind, estimate)}
                for kind, scores in rows.items()
            ],
            "samples": self._samples(index, estimate),
            "mean": self._mean(index, estimate),
        }

    def _rows(self, index: int) -> Rows:
        gathered, member = self.gathered, self.gathered.run.members[index]
        columns, estimate = gathered.columns(index), self._estimate(index)
        rows: Rows = {kind: self._scored(returns, columns) for kind, returns in self._returns(index).items()}
        if estimate is not None:
            rows["estimate"] = {TRAINED: _score(estimate["policy"])}
            rows["twin_estimate"] = {TRAINED: _score(estimate["twin"])}
        if "policy" not in rows and (value := member.diagnostics.get("model_value")) is not None:
            rows["model"] = {TRAINED: _score({"value": value})}
        if (best := gathered.optima.get(member.objective.name)) is not None:
            rows["optimum"] = {TRAINED: _score({"value": best})}
        return rows

    def _returns(self, index: int) -> dict[str, Returns]:
        gathered = self.gathered
        if gathered.policies is None or gathered.twins is None:
            return {"data": gathered.run.data_returns}
        own = {"policy": gathered.policies[index], "twin": gathered.twins[index]}
        return {**own, "data": gathered.run.data_returns}

    def _scored(self, returns: Returns, columns: Mapping[str, Objective]) -> dict[str, Score]:
        new = {
            name: objective
            for name, objective in columns.items()
            if (id(returns), objective.name) not in self._scores
        }
        found = score_returns(returns, new).scores
        for name, score in found.items():
            self._scores[id(returns), columns[name].name] = _score(score._asdict())
        return {name: self._scores[id(returns), objective.name] for name, objective in columns.items()}

    def _estimate(self, index: int) -> dict[str, Any] | None:
        """Of the selected member of every objective, where episodes were kept."""
        run = self.gathered.run
        chosen = [each.chosen for each in run.selections]
        place = chosen.index(index) if index in chosen else len(run.estimates)
        return run.estimates[place] if place < len(run.estimates) else None

    def _samples(self, index: int, estimate: Mapping[str, Any] | None) -> dict[str, int]:
        """Where each kind's episodes are; without an environment, those of the estimate's rollouts."""
        places = {kind: self._place(returns) for kind, returns in self._returns(index).items()}
        for kind in ("policy", "twin"):
            if kind not in places and estimate is not None and estimate[kind].get("sample"):
                places[kind] = len(self.samples)
                self.samples.append(distribution(np.array(estimate[kind]["sample"]), self.most))
        return places

    def _place(self, returns: Returns) -> int:
        if id(returns) not in self._seen:
            self._seen[id(returns)] = len(self.samples)
            self.samples.append(distribution(returns, self.most))
        return self._seen[id(returns)]

    def _mean(self, index: int, estimate: Mapping[str, Any] | None) -> list[float] | None:
        """Expected returns: sampled, or else estimated."""
        if self.gathered.policies is not None:
            return [float(value) for value in self.gathered.policies[index].mean(axis=0)]
        return None if estimate is None else list(estimate["policy"]["mean_returns"])


def _score(found: Mapping[str, Any]) -> Score:
    kept = {name: found[name] for name in ("value", "low", "high", "level") if found.get(name) is not None}
    return {**kept, "text": score_text(found)}


def _note(kind: str, estimate: Mapping[str, Any] | None) -> str:
    if estimate is None or kind not in ("estimate", "twin_estimate"):
        return ""
    support = estimate["policy" if kind == "estimate" else "twin"]["support"]
    return f"{support['word']}: {support['words']}"
