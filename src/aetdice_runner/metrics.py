"""Counters and a histogram in Prometheus' text format, bounded in memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate

from aetdice_runner.service import Service

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Upper bounds of the answer times in seconds."""


class Metrics:
    """What was asked for and how long it took; paths are routes, so their number is bounded."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._requests: Counter[tuple[str, int]] = Counter()
        self._times = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def count(self, path: str, status: int, seconds: float) -> None:
        """One request."""
        self._requests[path, status] += 1
        self._times[bisect_left(BUCKETS, seconds)] += 1
        self._seconds += seconds

    def text(self) -> str:
        """As `GET /metrics` answers."""
        service = self._service
        lines = [
            *_single("aetdice_sessions", "gauge", "Episodes that are open.", len(service)),
            *_single("aetdice_sessions_limit", "gauge", "Episodes that may be open.", service.limit),
            *_single("aetdice_episodes_total", "counter", "Episodes begun.", service.started),
            *_single("aetdice_evicted_total", "counter", "Episodes forgotten when idle.", service.evicted),
            *_single("aetdice_decisions_total", "counter", "Actions chosen.", service.decisions),
            *_head("aetdice_requests_total", "counter", "Requests by route and status."),
        ]
        for (path, status), count in sorted(self._requests.items()):
            lines.append(f'aetdice_requests_total{{route="{path}",status="{status}"}} {count}')
        lines += _head("aetdice_request_seconds", "histogram", "Time to answer a request.")
        sums = list(accumulate(self._times))
        for bound, count in zip((*BUCKETS, "+Inf"), sums, strict=True):
            lines.append(f'aetdice_request_seconds_bucket{{le="{bound}"}} {count}')
        lines.append(f"aetdice_request_seconds_sum {self._seconds:.6f}")
        lines.append(f"aetdice_request_seconds_count {sums[-1]}")
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]


def _single(name: str, kind: str, words: str, value: int) -> list[str]:
    return [*_head(name, kind, words), f"{name} {value}"]
