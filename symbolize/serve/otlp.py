"""Requests of OTLP profiles that are passed on with names added, once, also when a client that does not know it sends
one again."""

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from http import HTTPStatus
from threading import Event
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from symbolize.binaries.debuginfod.server import read_headers
from symbolize.core.compression import Codec
from symbolize.core.errors import SymbolizeError, UsageError
from symbolize.core.files import atomic_file, file_lock, remove
from symbolize.serve.metrics import ServerMetrics
from symbolize.serve.otlp_answers import DELIVERED, MAX_ANSWER, SECONDS, Passed, no_answer
from symbolize.serve.request_bodies import codec_named, compressed

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
OURS: Final = ("connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding")
"""Fields of a request that follow from its body and where it goes."""
KEPT: Final = ("retry-after", "www-authenticate")
"""Fields of its answer that are passed back."""
STATUSES: Final = {*range(200, 300), *range(400, 600)}
"""Those that are: a redirect is not followed, and others are no end of an answer."""
GRPC_SCHEMES: Final = ("grpc", "grpcs")
ANSWER_KEPT: Final = 600.0
"""Seconds for which an answer is kept that no client has got."""
PATIENCE: Final = 60.0
"""Seconds for which a message waits while the same one is handed on."""

Transport = Callable[[bytes, Codec | None, Mapping[str, str]], Passed]
"""Sends a message, compressed, with headers. Raises SymbolizeError if there is no answer."""


class Forward:
    """Passes requests on to the server at `url`, over HTTP, or gRPC if it says so, with the clients' Authorization if
    `authorizes`, and the headers in the file at `headers`, one a line. Raises UsageError."""

    def __init__(self, url: str, authorizes: bool = False, headers: str = "") -> None:
        try:
            parts = urlsplit(url)
            is_grpc = parts.scheme in GRPC_SCHEMES
            is_known = is_grpc or parts.scheme in ("http", "https")
            is_url = is_known and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_url = False
        if not is_url or parts.username is not None:
            raise UsageError(f"--forward {url.rpartition('@')[2]}: not an http, https or grpc URL without a password")
        if is_grpc and (parts.port is None or parts.path.strip("/") or parts.query):
            raise UsageError(f"--forward {url}: a server of gRPC has a host and a port, and nothing else")
        self.url = url
        self.authorizes = authorizes
        self._headers = headers_in(headers) if headers else {}
        self._send: Transport
        if is_grpc:
            from symbolize.serve.grpc_transport import GrpcTransport

            self._send = GrpcTransport(parts.netloc, is_safe=parts.scheme == "grpcs")
        else:
            self._send = HttpTransport(url)

    def post(self, body: bytes, encoding: str, authorization: str) -> Passed:
        """Send a request, compressed as its Content-Encoding says. Raises SymbolizeError if there is no answer."""
        given = {"authorization": authorization} if self.authorizes and authorization else {}
        return self._send(body, codec_named(encoding), self._headers | given)


class HttpTransport:
    """Sends messages to a URL."""

    def __init__(self, url: str) -> None:
        import urllib3

        self._url = url
        self._pool = urllib3.PoolManager(maxsize=8, retries=False, timeout=SECONDS)

    def __call__(self, body: bytes, codec: Codec | None, headers: Mapping[str, str]) -> Passed:
        """The answer to a message. Raises SymbolizeError if there is none."""
        import urllib3

        headers = {**headers, "content-type": PROTOBUF}
        if codec is not None:
            body, headers["content-encoding"] = compressed(body, codec), codec.name
        try:
            answer = self._pool.request(
                "POST", self._url, body=body, headers=headers, redirect=False, preload_content=False
            )
            try:
                data = body_of(answer)
            finally:
                answer.close()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise no_answer(self._url, error) from error
        kept = {name: answer.headers[name] for name in KEPT if name in answer.headers}
        if answer.status not in STATUSES or len(data) > MAX_ANSWER:
            return Passed(HTTPStatus.BAD_GATEWAY, b"", {})
        return Passed(answer.status, data, kept)


def headers_in(path: str) -> dict[str, str]:
    """The headers in a file, by their names in lower case. Raises UsageError."""
    problems: list[str] = []
    headers = {name.lower(): value for name, value in read_headers(path, "--forward-headers", problems).items()}
    problems += [f"--forward-headers {path}: {name} is not for a user to set" for name in OURS if name in headers]
    if problems:
        raise UsageError(problems[0])
    return headers


def body_of(answer: Any) -> bytes:
    """The body of an answer, or of a too large one more than MAX_ANSWER bytes. Raises TimeoutError for a slow one."""
    until, data = monotonic() + SECONDS, b""
    while len(data) <= MAX_ANSWER and (piece := answer.read1(MAX_ANSWER)):
        data += piece
        if monotonic() > until:
            raise TimeoutError("the body took too long to arrive")
    return data


def is_json(content_type: str) -> bool:
    """Whether a request is in JSON. Raises UsageError for one that is in neither encoding."""
    kind = content_type.partition(";")[0].strip().lower()
    # None at all would do for web pages of other origins, which can send that without a preflight.
    if kind not in (JSON, PROTOBUF, "application/protobuf"):
        raise UsageError(f"the Content-Type is neither {PROTOBUF} nor {JSON}")
    return kind == JSON


class Deliveries:
    """Hands messages on by `forward`. The answer to each is kept in a folder that all workers share until its client
    has it, and is the answer to the same message if it is sent again before."""

    def __init__(self, forward: Forward, folder: str, metrics: ServerMetrics) -> None:
        self._forward, self._folder, self._metrics = forward, folder, metrics
        os.makedirs(folder, exist_ok=True)

    def hand_on(self, request: str, body: bytes, encoding: str, authorization: str, is_left: Event) -> Passed:
        """The answer to the symbolized message of a request, whose hash `request` is; it is sent unless it was taken
        already. Raises SymbolizeError if there is none, TimeoutError if nobody waits for it any more."""
        path = self._path(request, authorization)
        with file_lock(path + ".lock", PATIENCE, is_left.is_set) as is_mine:
            if not is_mine:
                raise SymbolizeError("the same message is being passed on; ask again")
            if (known := kept_in(path)) is not None:
                self._metrics.forwarded("repeated", 0)
                return known
            if is_left.is_set():
                raise TimeoutError("nobody waits for it any more")
            try:
                passed = self._forward.post(body, encoding, authorization)
            except SymbolizeError:
                self._metrics.forwarded("none", len(body))
                raise
            self._metrics.forwarded(str(passed.status), len(body))
            self.keep(request, authorization, passed)
        return passed

    def keep(self, request: str, authorization: str, passed: Passed) -> None:
        """Keep the answer to a message that was taken."""
        if passed.status in DELIVERED:
            with suppress(OSError), atomic_file(self._path(request, authorization)) as file:
                file.write(json.dumps([passed.status, passed.body.decode("latin-1"), passed.headers]).encode())

    def forget(self, request: str, authorization: str) -> None:
        """The client has the answer to its request."""
        remove(self._path(request, authorization))

    def forget_old(self) -> None:
        """Forget the answers for which nobody came."""
        os.makedirs(self._folder, exist_ok=True)  # who cleans temporary files removes it when it was empty for long
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.stat().st_mtime < time.time() - ANSWER_KEPT:
                        os.unlink(entry.path)

    def _path(self, request: str, authorization: str) -> str:
        return os.path.join(self._folder, sha256(f"{request} {authorization}".encode()).hexdigest())


def kept_in(path: str) -> Passed | None:
    """The answer that is kept in a file, if there is one."""
    with suppress(OSError), open(path, "rb") as file:
        status, body, headers = json.loads(file.read())
        return Passed(status, body.encode("latin-1"), headers)
    return None
