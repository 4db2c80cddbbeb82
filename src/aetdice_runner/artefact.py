"""The artefact: an ONNX file whose metadata says everything else that a policy needs to act.

An ONNX file is a protobuf message. Its outermost level is read here, so that neither the onnx package
nor the graph's arithmetic is needed to see whether the file is whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from aetdice_runner.checks import Interface
from aetdice_runner.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float

FORMAT = 1
KEY = "aetdice"
"""Of the one entry of the metadata: a JSON object."""
GRAPH, METADATA = 7, 14
"""Fields of ONNX's ModelProto."""
VARINT, BYTES = 0, 2
"""The two wire types that a ModelProto has."""


def read_facts(model: bytes) -> dict[str, Any]:
    """The metadata of an artefact, after its checksum was compared."""
    try:
        fields = list(_fields(model))
        graph = b"".join(content for number, content in fields if number == GRAPH)
        entries = (dict(_fields(content)) for number, content in fields if number == METADATA)
        text = next((entry[2] for entry in entries if entry.get(1) == KEY.encode()), None)
        if text is None:
            raise ValueError("it has no metadata of aetdice; write it with aetdice export")
        facts = json.loads(text)
        if facts["format"] != FORMAT:
            raise ValueError(f"it has format {facts['format']}, this version reads {FORMAT}")
        if facts["sha256"] != hashlib.sha256(graph).hexdigest():
            raise ValueError("its weights do not fit their checksum: the file is damaged")
        if facts["facts_sha256"] != facts_checksum(facts):
            raise ValueError("its metadata does not fit its checksum: the file is damaged")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(f"this is no policy that the runner can read: {error}") from error
    return dict(facts)


def graph_checksum(model: bytes) -> str:
    """The SHA-256 of weights and operations, as they stand in the file."""
    return hashlib.sha256(b"".join(content for n, content in _fields(model) if n == GRAPH)).hexdigest()


def facts_checksum(facts: Mapping[str, Any]) -> str:
    """The SHA-256 of everything else, as JSON with sorted keys."""
    others = {name: value for name, value in facts.items() if name != "facts_sha256"}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def interface_from(facts: dict[str, Any]) -> Interface:
    """What the policy of an artefact is told."""
    told = facts["observation"]
    sizes = None if told["sizes"] is None else tuple(int(size) for size in told["sizes"])
    return Interface(int(facts["horizon"]), int(told["size"]), sizes, int(facts["accrued"]))


def courses_from(facts: dict[str, Any]) -> Float[np.ndarray, " k"] | None:
    """How likely each course of a mixture policy is; None for a policy that is no mixture."""
    chances = np.array(facts.get("courses", [1.0]), dtype=np.float64)
    if chances.ndim != 1 or not chances.size or not (np.isfinite(chances) & (chances >= 0)).all():
        raise ValueError(f"courses have probabilities, not {facts['courses']}")
    return None if chances.size == 1 else chances / chances.sum()


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field at the outermost level; whole numbers have no content."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        if tag & 7 == VARINT:
            _, place = _varint(message, place)
            yield tag >> 3, b""
        elif tag & 7 == BYTES:
            length, place = _varint(message, place)
            if place + length > len(message):
                raise ValueError("the file is cut off")
            yield tag >> 3, message[place : place + length]
            place += length
        else:
            raise ValueError("it is not an ONNX file")


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """Seven bits per byte, the lowest first."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ValueError("the file is cut off")
        byte, place = message[place], place + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("it is not an ONNX file")
