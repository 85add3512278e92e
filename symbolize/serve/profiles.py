"""Profiles in, symbolized profiles out."""

import json
import threading
import time
from collections.abc import Mapping
from io import BytesIO
from typing import Any, BinaryIO, Final

from symbolize.binaries import Servers
from symbolize.core.errors import InputError, UsageError, first_names
from symbolize.load import load_all
from symbolize.load.model import LoadedProfile
from symbolize.names import MODES, Mode
from symbolize.pipeline import Symbolizer
from symbolize.report import Report
from symbolize.report.json import coverage
from symbolize.symbols import TableCache
from symbolize.write import write, write_otlp
from symbolize.write.outputs import View

OUTPUTS: Final = {"pprof": "application/octet-stream", "otlp": "application/x-protobuf"}
PARAMETERS: Final = ("emit", "demangle", "sample-type")
MAX_OPEN: Final = 256
"""Binaries that stay open from profile to profile."""
RENEWED: Final = 600.0
"""Seconds after which the folders of binaries are looked at anew."""
MAX_REPORT: Final = 8 << 10
"""Bytes of the header with the report."""
MAX_TEXT: Final = 200


class Profiles:
    """Symbolizes profiles, one at a time."""

    def __init__(self, roots: list[str], cache: TableCache, servers: Servers | None, mode: Mode) -> None:
        self._roots, self._cache, self._servers, self._mode = roots, cache, servers, mode
        self._lock = threading.Lock()
        self._made: dict[Mode, tuple[float, Symbolizer]] = {}

    def symbolized(self, body: BinaryIO, parameters: Mapping[str, str]) -> tuple[bytes, str, str]:
        """A profile in any format, symbolized, as pprof (gzipped) or OTLP; its media type, and its report in a line. An
        OTLP message stays what it is if OTLP is asked for. Raises SymbolizeError, UsageError for an input with several
        profiles."""
        if unknown := [name for name in parameters if name not in PARAMETERS]:
            raise UsageError(f"{unknown[0][:MAX_TEXT]}: is none of the parameters {', '.join(PARAMETERS)}")
        output = parameters.get("emit", "pprof")
        if output not in OUTPUTS:
            raise UsageError(f"emit: {output[:MAX_TEXT]} is none of {', '.join(OUTPUTS)}")
        mode = next((each for each in MODES if each == parameters.get("demangle", self._mode)), None)
        if mode is None:
            raise UsageError(f"demangle: is none of {', '.join(MODES)}")
        loaded = load_all(body)
        written = BytesIO()
        with self._lock:
            symbolizer = self._symbolizer(mode)
            if output == "otlp" and loaded[0].container is not None:
                self._write_otlp(symbolizer, loaded, written)
                return written.getvalue(), OUTPUTS[output], "{}"
            if len(loaded) > 1:
                names = first_names(each.name for each in loaded)
                raise InputError("body", f"holds {len(loaded)} profiles, and one can be answered: {names}")
            result = symbolizer.symbolize(loaded[0].profile)
        view = View(sample_type=parameters.get("sample-type", ""))
        write(result.profile, written, emit=output, view=view)
        return written.getvalue(), OUTPUTS[output], short(result.report)

    def symbolized_otlp(self, body: BinaryIO) -> bytes:
        """A request of OTLP profiles with names added, and otherwise as it came. Raises SymbolizeError."""
        loaded = load_all(body)
        if loaded[0].container is None:
            raise UsageError("the body is no request of OTLP profiles")
        written = BytesIO()
        with self._lock:
            self._write_otlp(self._symbolizer(self._mode), loaded, written)
        return written.getvalue()

    def _write_otlp(self, symbolizer: Symbolizer, loaded: list[LoadedProfile], written: BytesIO) -> None:
        write_otlp(loaded, symbolizer, written)

    def _symbolizer(self, mode: Mode) -> Symbolizer:
        """The symbolizer of a mode, anew if it has become old or has too much open."""
        made_at, symbolizer = self._made.get(mode, (0.0, None))
        now = time.monotonic()
        if symbolizer is None or now - made_at > RENEWED or symbolizer.open_binaries > MAX_OPEN:
            if symbolizer is not None:
                symbolizer.close()
            symbolizer = Symbolizer(self._roots, demangle=mode, cache=self._cache, servers=self._servers)
            self._made[mode] = now, symbolizer
        return symbolizer

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            for _, symbolizer in self._made.values():
                symbolizer.close()
            self._made.clear()


def short(report: Report) -> str:
    """What was found of a profile as JSON in ASCII, as much as a header takes."""
    facts: dict[str, Any] = {
        name: value[:MAX_TEXT] if isinstance(value, str) else value
        for name, value in coverage(report).items()
        if isinstance(value, str | int | float)
    }
    warnings: list[str] = []
    for each in report.warnings:
        shown = json.dumps({**facts, "warnings": [*warnings, each[:MAX_TEXT]]})
        if len(shown) > MAX_REPORT:
            break
        warnings.append(each[:MAX_TEXT])
    return json.dumps({**facts, "warnings": warnings})
