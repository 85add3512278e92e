"""Profiles in, symbolized profiles out: what the process for profiles does."""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import file_digest
from io import BytesIO
from typing import Any, BinaryIO, Final, NamedTuple

from symbolize.binaries import Servers
from symbolize.binaries.debuginfod import FetchOptions
from symbolize.binaries.debuginfod import Limits as FetchLimits
from symbolize.core.errors import InputError, SymbolizeError, UsageError, first_names
from symbolize.core.mapped import give_back
from symbolize.formats import load_all, write, write_otlp
from symbolize.formats.model import LoadedProfile
from symbolize.formats.outputs import View
from symbolize.names import MODES, Mode
from symbolize.options import DEFAULTS, Options
from symbolize.pipeline import Symbolizer
from symbolize.report import Report
from symbolize.report.json import coverage
from symbolize.resolve.opened import BinaryPool, Pooled
from symbolize.storage.servers import AnyClient, open_servers
from symbolize.storage.shared_cache import open_tables
from symbolize.symbols import TableCache

OUTPUTS: Final = {"pprof": "application/octet-stream", "otlp": "application/x-protobuf"}
PARAMETERS: Final = ("emit", "demangle", "sample-type")
MAX_OPEN: Final = 256
"""Binaries that stay open from profile to profile."""
RENEWED: Final = 600.0
"""Seconds after which the folders of binaries are looked at anew."""
MAX_REPORT: Final = 8 << 10
"""Bytes of the header with the report."""
MAX_TEXT: Final = 200
MAX_CAVEAT: Final = 1000
"""Characters in the header of a text, and of what is not proved, which names several binaries."""
LARGE: Final = 0.5
"""Seconds of work on a profile after which memory is given back, which takes some milliseconds."""
FETCHING: Final = FetchLimits(answer_time=60, total_time=900, patience=120)


class Origin(NamedTuple):
    """What a process makes its `Profiles` of: the folders of binaries, where tables are kept and up to how many bytes,
    the servers behind, and how profiles are symbolized."""

    roots: tuple[str, ...]
    cache: str
    cache_limit: int
    debuginfod: tuple[str, ...]
    options: Options


class Job(NamedTuple):
    """A profile to symbolize: when the folders were walked last; its bytes, or the path of a file with them; and the
    parameters of the request, None for a request of OTLP."""

    origin: Origin
    walk: int
    body: bytes | str
    parameters: dict[str, str] | None


class Symbolized(NamedTuple):
    """A profile as it is sent: its bytes, their media type, and its report in a line; of a request of OTLP the hash."""

    body: bytes
    kind: str
    report: str
    request: str = ""


def symbolized(job: Job) -> Symbolized | Exception:
    """The result of a job in this process, or the error for its client."""
    began = time.monotonic()
    try:
        profiles = profiles_of(job.origin)
        profiles.notice_walk(job.walk)
        with BytesIO(job.body) if isinstance(job.body, bytes) else open(job.body, "rb") as body:
            if job.parameters is None:
                request = file_digest(body, "sha256").hexdigest()
                body.seek(0)
                return profiles.symbolized_otlp(body)._replace(request=request)
            return profiles.symbolized(body, job.parameters)
    except (SymbolizeError, OSError) as error:
        return error
    except MemoryError:
        raise
    except Exception:
        logging.getLogger("uvicorn.error").exception("a profile: failed")
        raise
    finally:
        if time.monotonic() - began > LARGE:
            give_back()


@lru_cache(1)
def profiles_of(origin: Origin) -> "Profiles":
    """The profiles of this process, which stays with what it has open."""
    servers = open_behind(origin.debuginfod)
    return Profiles(origin.roots, open_tables(origin.cache, origin.cache_limit), servers, origin.options)


def open_behind(urls: Sequence[str]) -> AnyClient | None:
    """The servers behind, None if there are none; what fails of them is logged."""
    return (
        open_servers(urls, FetchOptions(limits=FETCHING, tell=logging.getLogger("uvicorn.error").error))
        if urls
        else None
    )


class OpenSymbolizer(Symbolizer, Pooled):
    """A symbolizer that stays from profile to profile, until it is old or has too much open."""

    @property
    def is_outdated(self) -> bool:
        """Whether another one has to be made, which looks at the folders anew."""
        return time.monotonic() - self.opened_at > RENEWED or self.open_binaries > MAX_OPEN


class Profiles:
    """Symbolizes profiles, one at a time."""

    def __init__(
        self, roots: Sequence[str], cache: TableCache, servers: Servers | None, options: Options = DEFAULTS
    ) -> None:
        self._roots, self._cache, self._servers, self._options = roots, cache, servers, options
        self._pool: BinaryPool[Mode, OpenSymbolizer] = BinaryPool(len(MODES))
        self._walk = 0

    def notice_walk(self, walk: int) -> None:
        """Ask the index anew if the folders were walked since: the roots may have been replaced."""
        if walk != self._walk:
            self._walk = walk
            for each in self._pool:
                each.index.close()

    def symbolized(self, body: BinaryIO, parameters: Mapping[str, str]) -> Symbolized:
        """A profile in any format, symbolized, as pprof (gzipped) or OTLP. An OTLP message stays what it is if OTLP is
        asked for. Raises SymbolizeError, UsageError for an input with several profiles."""
        if unknown := [name for name in parameters if name not in PARAMETERS]:
            raise UsageError(f"{unknown[0][:MAX_TEXT]}: is none of the parameters {', '.join(PARAMETERS)}")
        output = parameters.get("emit", "pprof")
        if output not in OUTPUTS:
            raise UsageError(f"emit: {output[:MAX_TEXT]} is none of {', '.join(OUTPUTS)}")
        mode = next((each for each in MODES if each == parameters.get("demangle", self._options.demangle)), None)
        if mode is None:
            raise UsageError(f"demangle: is none of {', '.join(MODES)}")
        loaded = load_all(body)
        if output == "otlp" and loaded[0].container is not None:
            return self._as_otlp(loaded, mode)
        if len(loaded) > 1:
            names = first_names(each.name for each in loaded)
            raise InputError("body", f"holds {len(loaded)} profiles, and one can be answered: {names}")
        result, written = self._symbolizer(mode).symbolize(loaded[0].profile), BytesIO()
        view = View(sample_type=parameters.get("sample-type", ""))
        write(result.profile, written, emit=output, view=view)
        return Symbolized(written.getvalue(), OUTPUTS[output], short(result.report))

    def symbolized_otlp(self, body: BinaryIO) -> Symbolized:
        """A request of OTLP profiles with names added, and otherwise as it came. Raises SymbolizeError."""
        loaded = load_all(body)
        if loaded[0].container is None:
            raise UsageError("the body is no request of OTLP profiles")
        return self._as_otlp(loaded, self._options.demangle)

    def _as_otlp(self, loaded: list[LoadedProfile], mode: Mode) -> Symbolized:
        symbolizer, written = self._symbolizer(mode), BytesIO()
        write_otlp(loaded, symbolizer, written)
        return Symbolized(written.getvalue(), OUTPUTS["otlp"], "{}")

    def _symbolizer(self, mode: Mode) -> Symbolizer:
        """The symbolizer of a mode, anew if it is outdated."""
        symbolizer = self._pool.hold(mode, partial(self._opened, replace(self._options, demangle=mode)))
        self._pool.release(symbolizer)
        return symbolizer

    def _opened(self, options: Options) -> OpenSymbolizer:
        symbolizer = OpenSymbolizer(self._roots, options, cache=self._cache, servers=self._servers)
        symbolizer.index.use_last_walk()
        return symbolizer


def short(report: Report) -> str:
    """What was found of a profile as JSON in ASCII, as much as a header takes."""
    facts: dict[str, Any] = {
        name: value[:MAX_TEXT] if isinstance(value, str) else value
        for name, value in coverage(report).items()
        if isinstance(value, str | int | float)
    }
    facts["caveats"], facts["warnings"] = [], []
    caveats = [("caveats", text[:MAX_CAVEAT]) for text in report.caveats]
    for name, text in [*caveats, *(("warnings", text[:MAX_TEXT]) for text in report.warnings)]:
        facts[name].append(text)
        if len(json.dumps(facts)) > MAX_REPORT:
            facts[name].pop()
            break
    return json.dumps(facts)
