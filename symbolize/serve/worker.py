"""What a worker process of the server makes its application of: settings that the starting process left it."""

import json
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Final

from starlette.types import ASGIApp

from symbolize.analysis.sources import Sources
from symbolize.core.parallel import be_killed_with_parent
from symbolize.options import Options
from symbolize.resolve.arguments import as_roots
from symbolize.serve.app import ServerLimits, Services, SymbolApp
from symbolize.serve.metrics import ServerMetrics
from symbolize.serve.modules import Modules
from symbolize.serve.otlp import Deliveries, Forward
from symbolize.serve.profiles import Origin, open_behind
from symbolize.serve.request_filter import PROFILER, AccessLog
from symbolize.serve.uploads import Uploads
from symbolize.storage.servers import AnyClient
from symbolize.storage.shared_cache import open_tables
from symbolize.symbols import TableCache

VARIABLE: Final = "SYMBOLIZE_SERVE"
MAX_FOLDER: Final = 72
"""Bytes of the path of a folder two levels below which a socket may be, whose address has at most 107."""


@dataclass(frozen=True)
class ServerSettings:
    """The options of the server. `shared` is a folder for what the workers tell each other; `hosts` are None for a
    server that is not on a loopback address; `otlp_grpc` is the address for OTLP over gRPC, if it is to be served."""

    binaries: Sequence[str]
    cache: str
    cache_limit: int
    shared: str
    debuginfod: Sequence[str] = ()
    options: Options = field(default_factory=lambda: Options(demangle="full"))
    sources: Sequence[str] = ()
    uploads: str = ""
    upload_limit: int = ServerLimits.upload
    uploads_limit: int = ServerLimits.uploads
    body_limit: int = ServerLimits.body
    body_seconds: float = ServerLimits.body_seconds
    wait_seconds: float = ServerLimits.wait_seconds
    memory_limit: int = ServerLimits.memory
    forward: str = ""
    authorizes: bool = False
    headers: str = ""
    otlp_grpc: str = ""
    token: str = ""
    hosts: Sequence[str] | None = None
    origins: Sequence[str] = (PROFILER,)
    access_log: str = ""

    def leave(self) -> None:
        """Leave the settings to the workers that this process starts."""
        os.environ[VARIABLE] = json.dumps(asdict(self))


def check_settings(settings: ServerSettings) -> list[str]:
    """Walk the folders once, so that workers start fast; what is wrong with them and the cache, a sentence each. Raises
    UsageError for settings that cannot be, OSError for a log that cannot be written."""
    with closing(modules_of(settings, None, ServerMetrics())) as modules:
        Sources(settings.sources)
        forward_of(settings)
        log_of(settings)
        cache = cache_of(settings)
        return [*modules.index.problems, *([] if cache.is_writable() else cache.problems)]


def roots_of(settings: ServerSettings) -> list[str]:
    """The folders with binaries, those that were sent last."""
    return as_roots([*settings.binaries, *([settings.uploads] if settings.uploads else [])])


def cache_of(settings: ServerSettings) -> TableCache:
    """The cache of symbol tables, which all workers share."""
    return open_tables(settings.cache, settings.cache_limit)


def modules_of(settings: ServerSettings, servers: AnyClient | None, metrics: ServerMetrics) -> Modules:
    """The binaries."""
    return Modules(roots_of(settings), cache_of(settings), settings.shared, servers, metrics)


def forward_of(settings: ServerSettings) -> Forward | None:
    """The server behind. Raises UsageError."""
    return Forward(settings.forward, settings.authorizes, settings.headers) if settings.forward else None


def deliveries_of(settings: ServerSettings, metrics: ServerMetrics) -> Deliveries | None:
    """What hands messages on to the server behind. Raises UsageError."""
    forward = forward_of(settings)
    return Deliveries(forward, os.path.join(settings.shared, "delivered"), metrics) if forward is not None else None


def log_of(settings: ServerSettings) -> AccessLog | None:
    """The access log. Raises OSError."""
    return AccessLog(settings.access_log) if settings.access_log else None


def app() -> ASGIApp:
    """The application of this worker. Raises UsageError for settings that cannot be."""
    values = json.loads(os.environ[VARIABLE])
    settings = ServerSettings(**values | {"options": Options(**values["options"])})
    if multiprocessing.parent_process() is not None:
        be_killed_with_parent()
        if len(os.fsencode(settings.shared)) <= MAX_FOLDER:
            # A worker ends by a signal, and leaves what multiprocessing has made: where its parent removes it.
            tempfile.tempdir = os.environ["TMPDIR"] = settings.shared
    return application(settings)


def application(settings: ServerSettings) -> ASGIApp:
    """The application with some settings."""
    servers, metrics = open_behind(settings.debuginfod), ServerMetrics()
    roots, behind = tuple(roots_of(settings)), tuple(settings.debuginfod)
    services = Services(
        modules_of(settings, servers, metrics),
        Origin(roots, settings.cache, settings.cache_limit, behind, settings.options),
        list(settings.sources),
        servers,
        Uploads(settings.uploads, settings.upload_limit, settings.uploads_limit) if settings.uploads else None,
        deliveries_of(settings, metrics),
        settings.options.demangle,
        ServerLimits(
            body=settings.body_limit,
            body_seconds=settings.body_seconds,
            wait_seconds=settings.wait_seconds,
            memory=settings.memory_limit,
        ),
    )
    served, log = SymbolApp(services, metrics), log_of(settings)
    beside: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    if settings.otlp_grpc:
        from symbolize.serve.otlp_grpc import ProfilesService

        beside = ProfilesService(served, settings.otlp_grpc, settings.token, log).running
    return served.app(settings.token, settings.hosts, settings.origins, log, beside)
