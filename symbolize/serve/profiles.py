"""Profiles in, symbolized profiles out."""

import threading
from io import BytesIO
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

from symbolize.core.errors import SymbolizeError, UsageError
from symbolize.load import load, load_all
from symbolize.pipeline import Symbolizer
from symbolize.report.json import coverage
from symbolize.write import write, write_otlp
from symbolize.write.outputs import View

OUTPUTS: Final = {"pprof": "application/octet-stream", "otlp": "application/x-protobuf"}
MAX_ANSWER: Final = 1 << 16
"""Bytes of the answer of the server that profiles are passed on to."""
SECONDS: Final = 30.0


class Profiles:
    """Symbolizes profiles with one `Symbolizer`, one at a time."""

    def __init__(self, symbolizer: Symbolizer) -> None:
        self._symbolizer = symbolizer
        self._lock = threading.Lock()

    def symbolized(self, body: BinaryIO, output: str) -> tuple[bytes, dict[str, Any]]:
        """A profile in any format, symbolized, as pprof (gzipped) or OTLP; and its coverage. Raises SymbolizeError."""
        if output not in OUTPUTS:
            raise UsageError(f"emit: {output} is none of {', '.join(OUTPUTS)}")
        with self._lock:
            result = self._symbolizer.symbolize(load(body))
        written = BytesIO()
        write(result.profile, written, emit=output, view=View())
        return written.getvalue(), {
            name: value for name, value in coverage(result.report).items() if isinstance(value, str | int | float)
        }

    def symbolized_otlp(self, body: BinaryIO) -> bytes:
        """A request of OTLP profiles with names added, and otherwise as it came. Raises SymbolizeError."""
        loaded = load_all(body)
        written = BytesIO()
        with self._lock:
            write_otlp(loaded, (self._symbolizer.symbolize(each.profile) for each in loaded), written)
        return written.getvalue()

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._symbolizer.close()


class Forward:
    """Passes requests on to another server."""

    def __init__(self, url: str) -> None:
        import urllib3

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--forward {url}: not an http or https URL")
        self.url = url
        self._pool = urllib3.PoolManager(maxsize=8, retries=False, timeout=SECONDS)

    def post(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        """Send a request; status, body and headers of the answer. Raises SymbolizeError if there is none."""
        import urllib3

        try:
            answer = self._pool.request(
                "POST", self.url, body=body, headers=headers, redirect=False, preload_content=False
            )
            data = answer.read(MAX_ANSWER)
            answer.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise SymbolizeError(f"{self.url}: does not answer: {error}") from error
        kept = {name: answer.headers[name] for name in ("content-type", "retry-after") if name in answer.headers}
        return answer.status, data, kept
