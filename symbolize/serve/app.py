"""The server as an ASGI application: routes, limits on what a request may cost, metrics and health."""

import asyncio
import hmac
import json
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, BinaryIO, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from symbolize.analysis.sources import Sources
from symbolize.core.errors import InputError, SymbolizeError, UsageError
from symbolize.names import Mode
from symbolize.serve.debug_files import KINDS, Uploads, checked_build_id, file_of, section_of, source_of
from symbolize.serve.metrics import Metrics
from symbolize.serve.modules import Modules
from symbolize.serve.profiles import OUTPUTS, Forward, Profiles
from symbolize.serve.symbolication import symbolicated

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

IN_MEMORY: Final = 1 << 20
"""Bytes of a body above which it is a temporary file."""
MAX_JSON: Final = 32 << 20
"""Bytes of a request for names; Firefox sends a few hundred KB."""
RETRY_AFTER: Final = "2"
ORIGIN: Final = {"Access-Control-Allow-Origin": "*"}
CACHED: Final = {"Cache-Control": "public, max-age=86400"}


@dataclass(frozen=True)
class Limits:
    """What requests may cost: bytes of a profile and of an upload, seconds for a body to arrive and for an answer,
    requests that each worker works on at a time and that wait there; and seconds between two walks of the folders."""

    body: int = 256 << 20
    upload: int = 4 << 30
    body_seconds: float = 60
    answer_seconds: float = 120
    working: int = 2
    waiting: int = 64
    walk_seconds: float = 60


class Server:
    """What the requests of one worker share."""

    def __init__(
        self,
        modules: Modules,
        profiles: Profiles,
        *,
        mode: Mode,
        sources: Sources,
        uploads: Uploads | None,
        forward: Forward | None,
        token: str,
        limits: Limits,
    ) -> None:
        self.modules, self.profiles = modules, profiles
        self.mode, self.sources, self.uploads, self.forward = mode, sources, uploads, forward
        self.limits = limits
        self.metrics = Metrics()
        self._token = token.encode()
        self._threads = CapacityLimiter(limits.working)
        self._admitted = 0

    def app(self) -> Starlette:
        """The application."""
        routes = [
            ("/", self.status, "GET"),
            ("/healthz", self.health, "GET"),
            ("/readyz", self.health, "GET"),
            ("/metrics", self.show_metrics, "GET"),
            ("/symbolicate/v5", self.symbolicate, "POST"),
            ("/source/v1", self.source_of_frame, "POST"),
            ("/symbolize", self.symbolize, "POST"),
            ("/v1development/profiles", self.otlp, "POST"),
            ("/buildid/{build_id}/section/{name:path}", self.section, "GET"),
            ("/buildid/{build_id}/source/{path:path}", self.source, "GET"),
            ("/buildid/{build_id}/{kind}", self.debug_file, "GET"),
            ("/buildid/{build_id}/{kind}", self.upload, "PUT"),
        ]
        made = [Route(path, self._measured(path, each), methods=[method]) for path, each, method in routes]
        made += [Route(path, options, methods=["OPTIONS"]) for path in ("/symbolicate/v5", "/source/v1")]
        return Starlette(routes=made, lifespan=self._lifespan, exception_handlers={HTTPException: refused})

    def _measured(self, path: str, endpoint: Endpoint) -> Endpoint:
        """An endpoint whose errors are answers, and whose requests are counted."""

        async def run(request: Request) -> Response:
            began = perf_counter()
            try:
                async with asyncio.timeout(self.limits.answer_seconds):
                    response = await endpoint(request)
            except ClientDisconnect:
                response = failure(400, "the request ended before its body did")
            except TimeoutError:
                response = failure(503, "the answer took too long; ask again", {"Retry-After": RETRY_AFTER})
            except (UsageError, InputError) as error:
                response = failure(422 if isinstance(error, InputError) else 400, str(error))
            except HTTPException as error:
                response = await refused(request, error)
            except (SymbolizeError, OSError) as error:
                problem = str(error) if isinstance(error, SymbolizeError) else "a file cannot be read"
                response = failure(503, problem, {"Retry-After": RETRY_AFTER})
            except Exception:
                logging.getLogger("uvicorn.error").exception("%s: failed", path)
                response = failure(500, "the server failed; its log says why")
            self.metrics.answered(path, response.status_code, perf_counter() - began)
            return response

        return run

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        walks = asyncio.create_task(self._walk())
        yield
        walks.cancel()
        with suppress(asyncio.CancelledError):
            await walks
        self.modules.close()
        self.profiles.close()

    async def _walk(self) -> None:
        """Walk the folders again from time to time."""
        while True:
            await asyncio.sleep(self.limits.walk_seconds)
            with suppress(SymbolizeError, OSError):
                await to_thread.run_sync(self.modules.walk_again)

    async def _work(self, job: Callable[[], T]) -> T:
        """Do a job in a thread, `Limits.working` at a time. Raises HTTPException if too many wait."""
        if self._admitted >= self.limits.working + self.limits.waiting:
            raise HTTPException(503, "too many requests; ask again", {"Retry-After": RETRY_AFTER})
        self._admitted += 1
        self.metrics.working(self._admitted)
        try:
            return await to_thread.run_sync(job, limiter=self._threads, abandon_on_cancel=True)
        finally:
            self._admitted -= 1
            self.metrics.working(self._admitted)

    async def _body(self, request: Request, limit: int) -> BinaryIO:
        """The body of a request, in memory or in a file without a name. Raises HTTPException for one that is too large
        or too slow."""
        if int(request.headers.get("content-length") or 0) > limit:
            raise HTTPException(413, f"the body is larger than {limit} bytes")
        body = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (closed by whom it is given to)
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for chunk in request.stream():
                    if body.tell() + len(chunk) > limit:
                        raise HTTPException(413, f"the body is larger than {limit} bytes")
                    body.write(chunk)
        except TimeoutError:
            body.close()
            raise HTTPException(408, "the body took too long to arrive") from None
        except BaseException:
            body.close()
            raise
        body.seek(0)
        return body  # type: ignore[return-value]

    def _check_token(self, request: Request) -> None:
        """Raise HTTPException unless a request has the token, if there is one."""
        if self._token and not hmac.compare_digest(
            request.headers.get("authorization", "").encode(), b"Bearer " + self._token
        ):
            raise HTTPException(401, "the request has no valid token", {"WWW-Authenticate": "Bearer"})

    async def status(self, request: Request) -> Response:
        """What the server is."""
        lines = [
            "symbolize: a symbol server",
            f"binaries open: {len(self.modules)}",
            f"uploads: {'on' if self.uploads else 'off'}, forwarding: {'on' if self.forward else 'off'}",
            "POST /symbolicate/v5, /source/v1, /symbolize, /v1development/profiles",
            "GET /buildid/ID/debuginfo, /executable, /section/NAME, /source/PATH, /metrics, /healthz, /readyz",
        ]
        return PlainTextResponse("\n".join(lines) + "\n")

    async def health(self, request: Request) -> Response:
        """That requests are answered; the folders were walked before the first one."""
        return PlainTextResponse("ok\n")

    async def show_metrics(self, request: Request) -> Response:
        """Metrics for Prometheus, of all workers."""
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def symbolicate(self, request: Request) -> Response:
        """Names for frames, by Mozilla's API."""
        self._check_token(request)
        with await self._body(request, MAX_JSON) as body:
            data = body.read()
        answer = await self._work(partial(self._symbolicated, data))
        return Response(answer, media_type="application/json", headers=ORIGIN)

    def _symbolicated(self, data: bytes) -> bytes:
        return json.dumps(symbolicated(parsed(data), self.modules, self.mode), separators=(",", ":")).encode()

    async def source_of_frame(self, request: Request) -> Response:
        """The source file of a frame: one of those that the debug information has at its address."""
        self._check_token(request)
        with await self._body(request, MAX_JSON) as body:
            data = body.read()
        return JSONResponse(await self._work(partial(self._source_of_frame, data)), headers=ORIGIN)

    def _source_of_frame(self, data: bytes) -> dict[str, Any]:
        request = parsed(data)
        wanted = ("debugName", "debugId", "moduleOffset", "file")
        if not isinstance(request, dict) or any(not isinstance(request.get(each), str) for each in wanted):
            raise UsageError(f"the request lacks one of {', '.join(wanted)}")
        try:
            offset = int(request["moduleOffset"], 16)
        except ValueError:
            raise UsageError("moduleOffset is no hexadecimal number") from None
        job = {"memoryMap": [[request["debugName"], request["debugId"]]], "stacks": [[[0, offset]]]}
        frame = symbolicated(job, self.modules, self.mode)["results"][0]["stacks"][0][0]
        files = {each.get("file") for each in (frame, *frame.get("inlines", []))}
        text = self.sources.read(request["file"]) if request["file"] in files else None
        if text is None:
            raise HTTPException(404, "no such source file for this address, or it is not below a folder with sources")
        return {"symbolsLastModified": None, "sourceLastModified": None, "file": request["file"], "source": text}

    async def symbolize(self, request: Request) -> Response:
        """A profile in, a symbolized profile out."""
        self._check_token(request)
        output = request.query_params.get("emit", "pprof")
        with await self._body(request, self.limits.body) as body:
            written, summary = await self._work(partial(self.profiles.symbolized, body, output))
        return Response(written, media_type=OUTPUTS[output], headers={"X-Symbolize-Report": json.dumps(summary)})

    async def otlp(self, request: Request) -> Response:
        """A request of OTLP profiles; with names added it is passed on, or the answer."""
        self._check_token(request)
        with await self._body(request, self.limits.body) as body:
            written = await self._work(partial(self.profiles.symbolized_otlp, body))
        if self.forward is None:
            return Response(written, media_type="application/x-protobuf")
        headers = {"Content-Type": "application/x-protobuf"}
        status, answer, kept = await self._work(partial(self.forward.post, written, headers))
        return Response(answer, status, kept)

    async def debug_file(self, request: Request) -> Response:
        """A debug file or an executable, as debuginfod serves it."""
        kind = request.path_params["kind"]
        if kind not in KINDS:
            raise HTTPException(400, f"the kind of file is none of {', '.join(KINDS)}, section, source")
        build_id = checked_build_id(request.path_params["build_id"])
        path = await self._work(partial(file_of, self.modules, build_id, kind))
        return sent(request, path)

    async def source(self, request: Request) -> Response:
        """A source file that the debug information of a build names."""
        build_id = checked_build_id(request.path_params["build_id"])
        name = "/" + request.path_params["path"].lstrip("/")
        return sent(request, await self._work(partial(source_of, self.modules, self.sources, build_id, name)))

    async def section(self, request: Request) -> Response:
        """The bytes of a section."""
        build_id = checked_build_id(request.path_params["build_id"])
        data = await self._work(partial(section_of, self.modules, build_id, request.path_params["name"]))
        if data is None:
            return PlainTextResponse("not found", 404)
        headers = {"X-DEBUGINFOD-SIZE": str(len(data))} | CACHED
        return Response(data, media_type="application/octet-stream", headers=headers)

    async def upload(self, request: Request) -> Response:
        """Keep a debug file or an executable."""
        if self.uploads is None:
            raise HTTPException(403, "uploads are off; the server needs --uploads and --token")
        self._check_token(request)
        kind = request.path_params["kind"]
        if kind not in KINDS:
            raise HTTPException(400, f"the kind of file is none of {', '.join(KINDS)}")
        build_id = checked_build_id(request.path_params["build_id"])
        with await self._body(request, self.uploads.limit) as body:
            body.rollover()  # type: ignore[attr-defined]
            is_new = await self._work(partial(self.uploads.receive, build_id, kind, body))
        if is_new:
            await self._work(self.modules.walk_again)
        return PlainTextResponse("kept\n" if is_new else "was there\n", 201 if is_new else 200)


def parsed(data: bytes) -> Any:
    """A body of JSON. Raises UsageError."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the body is not JSON: {error}") from error


def sent(request: Request, path: str | None) -> Response:
    """A file as debuginfod sends it."""
    if path is None:
        return PlainTextResponse("not found", 404)
    size = os.stat(path).st_size
    limit = request.headers.get("x-debuginfod-maxsize", "")
    if limit.isdigit() and 0 < int(limit) < size:
        return PlainTextResponse(f"File too large, max size={limit}", 406)
    headers = {"X-DEBUGINFOD-SIZE": str(size), "X-DEBUGINFOD-FILE": os.path.basename(path)} | CACHED
    return FileResponse(path, media_type="application/octet-stream", headers=headers)


def failure(status: int, problem: str, headers: dict[str, str] | None = None) -> Response:
    """An error as Mozilla's API has it."""
    return JSONResponse({"title": problem}, status, {**ORIGIN, **(headers or {})})


async def refused(request: Request, error: Exception) -> Response:
    """The answer to a request that was refused."""
    assert isinstance(error, HTTPException)
    return failure(error.status_code, error.detail, dict(error.headers or {}))


async def options(request: Request) -> Response:
    """What a browser may ask from another origin."""
    headers = {
        "Access-Control-Allow-Methods": "POST, OPTIONS",
        "Access-Control-Allow-Headers": request.headers.get("access-control-request-headers", "content-type"),
        "Access-Control-Max-Age": "86400",
        "Access-Control-Allow-Private-Network": "true",
    }
    return Response(status_code=204, headers=ORIGIN | headers)
