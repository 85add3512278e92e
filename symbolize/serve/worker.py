"""What a worker process of the server makes its application of: settings that the starting process left it."""

import json
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Final

from starlette.applications import Starlette

from symbolize.analysis.sources import Sources
from symbolize.names import MODES, Mode
from symbolize.pipeline import Symbolizer
from symbolize.resolve.arguments import as_roots
from symbolize.serve.app import Limits, Server
from symbolize.serve.debug_files import Uploads
from symbolize.serve.modules import Modules
from symbolize.serve.profiles import Forward, Profiles
from symbolize.storage.servers import open_servers
from symbolize.storage.shared_cache import open_tables
from symbolize.symbols import TableCache

VARIABLE: Final = "SYMBOLIZE_SERVE"


@dataclass(frozen=True)
class Settings:
    """The options of the server."""

    binaries: Sequence[str]
    cache: str = ""
    cache_limit: int = 0
    debuginfod: Sequence[str] = ()
    demangle: Mode = "default"
    sources: Sequence[str] = ()
    uploads: str = ""
    upload_limit: int = Limits.upload
    body_limit: int = Limits.body
    forward: str = ""
    token: str = ""

    def leave(self) -> None:
        """Leave the settings to the workers that this process starts."""
        os.environ[VARIABLE] = json.dumps(asdict(self))


def check_settings(settings: Settings) -> None:
    """Walk the folders once, so that workers start fast. Raises UsageError for settings that cannot be."""
    with closing(Modules(as_roots(roots_of(settings)), cache_of(settings))):
        Sources(settings.sources)
        if settings.forward:
            Forward(settings.forward)


def roots_of(settings: Settings) -> list[str]:
    """The folders with binaries, those that were sent last."""
    return [*settings.binaries, *([settings.uploads] if settings.uploads else [])]


def cache_of(settings: Settings) -> TableCache | None:
    """The cache of symbol tables."""
    return open_tables(settings.cache, settings.cache_limit) if settings.cache else None


def app() -> Starlette:
    """The application of this worker. Raises UsageError for settings that cannot be."""
    return application(Settings(**json.loads(os.environ[VARIABLE])))


def application(settings: Settings) -> Starlette:
    """The application with some settings."""
    assert settings.demangle in MODES
    cache, roots = cache_of(settings), roots_of(settings)
    servers = open_servers(settings.debuginfod) if settings.debuginfod else None
    server = Server(
        Modules(roots, cache, servers),
        Profiles(Symbolizer(roots, demangle=settings.demangle, cache=cache, servers=servers)),
        mode=settings.demangle,
        sources=Sources(settings.sources),
        uploads=Uploads(settings.uploads, settings.upload_limit) if settings.uploads else None,
        forward=Forward(settings.forward) if settings.forward else None,
        token=settings.token,
        limits=Limits(body=settings.body_limit),
    )
    return server.app()
