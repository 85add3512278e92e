"""Metrics of a server for Prometheus, added up over its workers."""

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder in which workers keep their metrics; prometheus_client reads it when it is imported."""


class Metrics:
    """Requests by path and status, how long they took, and how many are worked on or wait."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "symbolize_http_requests", "Requests answered", ["path", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "symbolize_http_seconds", "Seconds until the answer began", ["path"], registry=self._registry
        )
        self._admitted = Gauge(
            "symbolize_http_working",
            "Requests that are worked on or wait",
            registry=self._registry,
            multiprocess_mode="livesum",
        )

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def working(self, number: int) -> None:
        """Note how many requests are worked on or wait."""
        self._admitted.set(number)

    def text(self) -> bytes:
        """All metrics, of all workers."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
