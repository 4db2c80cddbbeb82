"""The service in OpenAPI's words, with the names of the policy it serves."""

from __future__ import annotations

from typing import Any

from aetdice_runner.runner import Runner

ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
REFUSALS = {
    "400": "not JSON",
    "404": "no such episode",
    "408": "a body that takes too long",
    "409": "out of turn, or past the horizon",
    "413": "a body that is too large",
    "415": "another content type",
    "422": "a value that is missing or wrong",
    "429": "too many episodes are open",
}


def description(runner: Runner) -> dict[str, Any]:
    """What `GET /openapi.json` answers."""
    whole, flag = {"type": "integer"}, {"type": "boolean"}
    answers = {
        "start": _object({"id": {"type": "string"}, "horizon": whole}),
        "act": _object({"action": _action(runner), "time": whole}),
        "observe": _object({"time": whole, "over": flag}),
    }
    told = {"reward": _reward(runner), "next_observation": _observation(runner)}
    asked = {
        "start": _object({"seed": {**whole, "minimum": 0}, "greedy": flag}, []),
        "act": _object({"observation": _observation(runner)}),
        "observe": _object(told, ["reward"] if runner.facts["transform"] is None else None),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": f"aetdice: {runner.facts['objective']}", "version": runner.facts["aetdice"]},
        "paths": {
            "/episodes": {"post": _post("Begin an episode.", asked["start"], answers["start"], "201")},
            "/episodes/{id}/act": {
                "parameters": [ID],
                "post": _post("Choose an action.", asked["act"], answers["act"]),
            },
            "/episodes/{id}/observe": {
                "parameters": [ID],
                "post": _post("Tell what the action brought.", asked["observe"], answers["observe"]),
            },
            "/episodes/{id}": {
                "parameters": [ID],
                "delete": {"summary": "End an episode.", "responses": {"204": {"description": "ended"}}},
            },
            "/health": {"get": _get("Whether it answers, and what it serves.")},
            "/metrics": {"get": _get("Counters in Prometheus' text format.")},
        },
    }


def _observation(runner: Runner) -> dict[str, Any]:
    coding = runner.facts["coding"]
    if coding is None:
        size = runner.facts["observation"]["size"]
        return {"type": "array", "items": {"type": "number"}, "minItems": size, "maxItems": size}
    columns = {
        column["name"]: {"type": "number"} if column["values"] is None else {"enum": column["values"]}
        for column in coding["observations"]
    }
    by_place = {"type": "array", "prefixItems": list(columns.values()), "minItems": len(columns)}
    return {"oneOf": [_object(columns), by_place]}


def _reward(runner: Runner) -> dict[str, Any]:
    names = runner.objectives
    known = {} if names is None else {"description": ", ".join(names), "minItems": len(names)}
    return {"type": "array", "items": {"type": "number"}, **known}


def _action(runner: Runner) -> dict[str, Any]:
    action, coding = runner.facts["action"], runner.facts["coding"]
    if action["kind"] == "continuous":
        size = len(action["low"])
        return {"type": "array", "items": {"type": "number"}, "minItems": size, "maxItems": size}
    if coding is None or coding["actions"] is None:
        return {"type": "integer", "minimum": 0, "maximum": action["count"] - 1}
    return {"enum": [entry[0] if len(entry) == 1 else entry for entry in coding["actions"]]}


def _object(entries: dict[str, Any], needed: list[str] | None = None) -> dict[str, Any]:
    required = list(entries) if needed is None else needed
    return {"type": "object", "properties": entries, "required": required}


def _post(summary: str, asked: Any, answer: Any, status: str = "200") -> dict[str, Any]:
    return {
        "summary": summary,
        "requestBody": {"content": {"application/json": {"schema": asked}}},
        "responses": {
            status: {"description": "done", "content": {"application/json": {"schema": answer}}},
            **{code: {"description": words} for code, words in REFUSALS.items()},
        },
    }


def _get(summary: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": "the answer"}}}
