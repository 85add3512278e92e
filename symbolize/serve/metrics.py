"""Metrics of a server for Prometheus, added up over its workers."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder in which workers keep their metrics; prometheus_client reads it when it is imported."""
LIVE_FILE = re.compile(r"gauge_live[a-z]*_([0-9]+)\.db")
LIVE: Final = "livesum"


class ServerMetrics:
    """Requests by path and status, how long they took, what was refused and missed, and what is held."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry, multiprocess_mode=LIVE)
        self._requests = counter("symbolize_http_requests", "Requests answered", ["path", "status"])
        self._seconds = Histogram(
            "symbolize_http_seconds", "Seconds until the answer began", ["path"], registry=registry
        )
        self._in_flight = gauge("symbolize_http_in_flight", "Requests without an answer")
        self._refused = counter("symbolize_http_refused", "Requests refused because of a limit", ["reason"])
        self._received = counter("symbolize_http_received_bytes", "Bytes of bodies received")
        self._sent = counter("symbolize_http_sent_bytes", "Bytes of bodies sent")
        self._admitted = gauge("symbolize_work", "Requests worked on or waiting", ["lane"])
        age = "Seconds since the oldest request that is worked on began"
        self._oldest = gauge("symbolize_work_seconds", age, ["lane"], multiprocess_mode="livemax")
        self._open = gauge("symbolize_open_binaries", "Binaries that are open")
        self._open_bytes = gauge("symbolize_open_bytes", "Bytes of their tables and symbols")
        self._modules = counter("symbolize_modules", "Modules asked for: open, opened, unknown, failed", ["result"])
        self._tables = counter("symbolize_tables", "Tables of opened binaries: cached, built, partial", ["result"])
        self._frames = counter("symbolize_frames", "Frames asked for", ["result"])
        self._files = counter("symbolize_files", "Debug files asked for", ["kind", "result"])
        status = "Messages handed on by the status of the answer, none without one, repeated if it was there already"
        self._forwarded = counter("symbolize_forwarded", status, ["status"])
        size = "Bytes of messages handed on, before compression"
        self._forwarded_bytes = counter("symbolize_forwarded_bytes", size)

    def began(self) -> None:
        """Count a request that is there."""
        self._in_flight.inc()

    def answered(self, path: str, status: int, size: int, seconds: float) -> None:
        """Count an answer, and its bytes."""
        self._in_flight.dec()
        self._sent.inc(size)
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def refused(self, reason: str) -> None:
        """Count a request that a limit refused."""
        self._refused.labels(reason).inc()

    def received(self, size: int) -> None:
        """Count the bytes of a body."""
        self._received.inc(size)

    def admitted(self, pool: str, number: int) -> None:
        """Note how many requests are worked on or wait."""
        self._admitted.labels(pool).set(number)

    def oldest(self, pool: str, seconds: float) -> None:
        """Note for how long the oldest request has been worked on."""
        self._oldest.labels(pool).set(seconds)

    def opened(self, number: int, size: int) -> None:
        """Note what is open."""
        self._open.set(number)
        self._open_bytes.set(size)

    def module(self, result: str) -> None:
        """Count a module that was asked for."""
        self._modules.labels(result).inc()

    def table(self, result: str) -> None:
        """Count where the table of a binary came from."""
        self._tables.labels(result).inc()

    def frames(self, named: int, unnamed: int) -> None:
        """Count frames that were asked for."""
        self._frames.labels("named").inc(named)
        self._frames.labels("unnamed").inc(unnamed)

    def file(self, kind: str, result: str) -> None:
        """Count a debug file that was asked for."""
        self._files.labels(kind, result).inc()

    def forwarded(self, status: str, size: int) -> None:
        """Count a message that was handed on."""
        self._forwarded.labels(status).inc()
        self._forwarded_bytes.inc(size)

    def text(self) -> bytes:
        """All metrics, of all workers; what a worker that died held counts no more."""
        folder = os.environ.get(FOLDER, "")
        if not folder:
            return generate_latest(self._registry)
        workers = live_workers(folder)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        registry.register(ProcessMetrics(workers))
        return generate_latest(registry)


class ProcessMetrics(Collector):
    """Collects memory, time and descriptors of workers, and of the processes for profiles below them."""

    def __init__(self, workers: Iterable[int]) -> None:
        self._processes = [(pid, "worker") for pid in workers]
        self._processes += [(pid, "profiles") for worker in workers for pid in children_of(worker)]

    def collect(self) -> Iterable[Metric]:
        """The metrics that all clients of Prometheus have, by process."""
        families: dict[str, Metric] = {}
        for pid, kind in self._processes:
            for family in ProcessCollector(registry=None, pid=partial(int, pid)).collect():
                merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                labels = {"pid": str(pid), "process": kind}
                merged.samples += [sample._replace(labels=labels) for sample in family.samples]
        return families.values()


def live_workers(folder: str) -> list[int]:
    """The processes that have metrics in a folder and run; what the others held is forgotten."""
    found: list[int] = []
    with suppress(OSError):
        for pid in sorted({int(match[1]) for name in os.listdir(folder) if (match := LIVE_FILE.fullmatch(name))}):
            if os.path.exists(f"/proc/{pid}"):
                found.append(pid)
            else:
                mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]
    return found


def children_of(pid: int) -> list[int]:
    """The processes that a process has started, and those that these have; none where the system does not tell."""
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    return [*found, *(below for child in found for below in children_of(child))]
