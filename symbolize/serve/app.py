"""The server as an ASGI application: routes, limits on what a request may cost, metrics and health."""

import asyncio
import base64
import hashlib
import html
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from threading import Event
from time import perf_counter
from typing import Any, BinaryIO, Final, NoReturn
from uuid import uuid4

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from symbolize.analysis.sources import Sources
from symbolize.binaries import Kind
from symbolize.binaries.debuginfod import Fetched
from symbolize.core.errors import ChangedFile, InputError, ReadFailure, SymbolizeError, UsageError
from symbolize.names import Mode
from symbolize.serve import otlp
from symbolize.serve.answers import failure, preflight, refused, sent
from symbolize.serve.debug_files import (
    KINDS,
    Opened,
    checked_build_id,
    fetched,
    file_of,
    normalized,
    section_of,
    source_of,
)
from symbolize.serve.metrics import ServerMetrics
from symbolize.serve.modules import PATIENCE, HeldModule, Modules
from symbolize.serve.otlp import Deliveries
from symbolize.serve.otlp_answers import Passed, in_kind, status_body
from symbolize.serve.profiles import Job, Origin, Symbolized, symbolized
from symbolize.serve.protocol import CONNECTION, GuardedProtocol
from symbolize.serve.request_bodies import RequestBodies, check_encoding, decoded, for_child
from symbolize.serve.request_filter import PROFILER, ROUTE, AccessLog, RequestFilter, is_allowed
from symbolize.serve.symbolication import (
    MODULE_ID,
    FoundFrames,
    RequestTooLarge,
    SourceRequest,
    SymbolicationAnswer,
    SymbolicationRequest,
    as_json,
    parsed,
    read_request,
)
from symbolize.serve.uploads import Full, Uploads, full_disk
from symbolize.serve.worker_pools import RETRY_AFTER, Child, SingleFlight, WorkerPool, while_connected
from symbolize.storage.servers import AnyClient

STATUS_POLICY: Final = (
    "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
STATUS_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3em .8em .3em 0;"
    "border-bottom:1px solid #8884;vertical-align:top}code{font-size:.9em}:root{color-scheme:light dark}"
)
STATUS_ROUTES: Final = {
    "POST /symbolicate/v5": "names of frames: Mozilla's symbolication API",
    "POST /source/v1": "the source file of a frame",
    "POST /symbolize": "a profile in any format; symbolized",
    "POST /v1development/profiles": "OTLP profiles, passed on with names",
    "GET /buildid/ID/debuginfo": "a debug file; also executable, section/NAME, source/PATH: debuginfod",
    "POST /walk": "has the folders walked now",
    "PUT /buildid/ID/debuginfo": "keeps a debug file; also executable",
    "GET /healthz, /readyz, /metrics": "whether it runs, whether it takes requests, metrics for Prometheus",
}
CHUNK: Final = 256 << 10
"""Bytes that are handed over at a time; the next ones when most of them were taken."""
Endpoint = Callable[[Request], Awaitable[Response]]

MAX_JSON: Final = 16 << 20
"""Bytes of a request for names; Firefox sends a few hundred KB."""
SMALL: Final = 128 << 10
"""Bytes of a request that is read at once: a thread would take longer."""
MAX_ATTEMPTS: Final = 3
"""How often a binary is asked for that is closed for others, or looked for anew after a walk, before it is held."""
MAX_HOPS: Final = 8
"""Servers that a request for a file went through, after which it is not passed on."""
NOTED: Final = 5.0
"""Seconds between two notes of how long work has taken."""
CLIENT_LEFT: Final = 499
"""The status of a request whose client left before its answer, for metrics and the log, as proxies have it."""
LATER: Final = {"Retry-After": RETRY_AFTER}
FORWARDED: Final = re.compile(r"[0-9A-Za-z.:, _\[\]-]{1,1000}")


def status_page(facts: Mapping[str, str]) -> str:
    """The status page: `facts`, and what requests there are."""
    rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in facts.items())
    routes = "".join(
        f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(text)}</td></tr>"
        for name, text in STATUS_ROUTES.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>symbolize: a symbol server</title>'
        f"<style>{STATUS_STYLE}</style></head><body><h1>symbolize: a symbol server</h1><table>{rows}</table>"
        f"<h2>Requests</h2><table>{routes}</table></body></html>\n"
    )


def status_text(facts: Mapping[str, str]) -> str:
    """The same for terminals."""
    lines = ["symbolize: a symbol server", *(f"{name}: {value}" for name, value in facts.items()), ""]
    return "\n".join([*lines, *(f"{name}  {value}" for name, value in STATUS_ROUTES.items())]) + "\n"


class ResponseBudget:
    """The answers that clients have not taken yet: at most `space` bytes."""

    def __init__(self, space: int, metrics: ServerMetrics) -> None:
        self._space, self._size = space, 0
        self._metrics = metrics

    @property
    def is_full(self) -> bool:
        """Whether the next request is refused."""
        return self._size >= self._space

    def check(self) -> None:
        """Raise HTTPException if the next request is refused."""
        if self.is_full:
            self._refuse()

    def response(self, body: bytes, media_type: str, headers: Mapping[str, str] | None = None) -> Response:
        """An answer. Raises HTTPException if it and those that wait are too large."""
        if self._size + len(body) > self._space:
            self._refuse()
        return InPieces(self, body, media_type=media_type, headers=headers)

    def count(self, change: int) -> None:
        """Note bytes that wait to be taken, or wait no more."""
        self._size += change

    def _refuse(self) -> NoReturn:
        self._metrics.refused("answers busy")
        raise HTTPException(503, "too many answers are not read; ask again", LATER)


class InPieces(Response):
    """An answer that counts until its client took it, but for what the connection holds."""

    def __init__(
        self, budget: ResponseBudget, body: bytes, *, media_type: str, headers: Mapping[str, str] | None
    ) -> None:
        super().__init__(body, media_type=media_type, headers=headers)
        self._budget = budget
        budget.count(len(body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for at in range(0, len(self.body) or 1, CHUNK):
                piece, is_last = self.body[at : at + CHUNK], at + CHUNK >= len(self.body)
                await send({"type": "http.response.body", "body": piece, "more_body": not is_last})
                await asyncio.sleep(0)  # so that a lost connection is noticed: each further write would be logged
        finally:
            self._budget.count(-len(self.body))


@dataclass(frozen=True)
class ServerLimits:
    """What requests may cost: bytes of a profile, of memory that work on it takes, of all bodies at a time, of all
    answers that are not taken yet, of an upload and of all uploads; seconds for a body to arrive and for an answer;
    threads of each worker for each kind of work, requests that wait for one, and seconds for which one for names or of
    a profile may; and seconds between two walks of the folders."""

    body: int = 256 << 20
    memory: int = 4 << 30
    bodies: int = 16 << 30
    answers: int = 1 << 30
    upload: int = 4 << 30
    uploads: int = 100 << 30
    body_seconds: float = 30
    answer_seconds: float = 120
    quick: int = 2
    slow: int = 8
    waiting: int = 512
    wait_seconds: float = 5
    in_flight: int = 1024
    walk_seconds: float = 60


@dataclass(frozen=True)
class Services:
    """What answers the requests of a worker."""

    modules: Modules
    origin: Origin
    sources: list[str]
    servers: AnyClient | None = None
    uploads: Uploads | None = None
    deliveries: Deliveries | None = None
    mode: Mode = "full"
    limits: ServerLimits = field(default_factory=ServerLimits)


class SymbolApp:
    """The routes of one worker, and what its requests share."""

    def __init__(self, services: Services, metrics: ServerMetrics) -> None:
        self.services, self.limits, self.metrics = services, services.limits, metrics
        limits = services.limits
        self.bodies = RequestBodies(limits.in_flight, limits.bodies, limits.body_seconds, metrics)
        self.responses = ResponseBudget(limits.answers, metrics)
        self.quick = WorkerPool("names", limits.quick, limits.waiting, metrics, limits.wait_seconds)
        self.slow = WorkerPool("opening", limits.slow, limits.waiting, metrics)
        self.files = WorkerPool("files", limits.quick, limits.waiting, metrics)
        self.fetching = WorkerPool("fetching", limits.slow, limits.waiting, metrics)
        self.forwarding = WorkerPool("forwarding", limits.slow, limits.waiting, metrics, limits.wait_seconds)
        self.profile = WorkerPool("profiles", 1, limits.waiting // 8, metrics, limits.wait_seconds)
        self.child = Child(limits.memory)
        self.uploading = WorkerPool("uploads", 1, limits.waiting // 8, metrics)
        self.pools = (
            *(self.quick, self.slow, self.files, self.fetching),
            *(self.forwarding, self.profile, self.uploading),
        )
        self._once = SingleFlight()

    def app(
        self,
        token: str = "",
        hosts: Iterable[str] | None = None,
        origins: Iterable[str] = (PROFILER,),
        log: AccessLog | None = None,
        beside: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> ASGIApp:
        """The application, and what serves `beside` it."""
        routes = [
            ("/", self.status, "GET"),
            ("/healthz", self.health, "GET"),
            ("/readyz", self.ready, "GET"),
            ("/metrics", self.show_metrics, "GET"),
            ("/symbolicate/v5", self.symbolicate, "POST"),
            ("/source/v1", self.source_of_frame, "POST"),
            ("/symbolize", self.symbolize, "POST"),
            ("/v1development/profiles", self.otlp, "POST"),
            ("/walk", self.walk, "POST"),
            ("/buildid/{build_id}/section/{name:path}", self.section, "GET"),
            ("/buildid/{build_id}/source/{path:path}", self.source, "GET"),
            ("/buildid/{build_id}/{kind}", self.debug_file, "GET"),
            ("/buildid/{build_id}/{kind}", self.upload, "PUT"),
        ]
        made = [Route(path, self._answered(path, each), methods=[method]) for path, each, method in routes]
        preflights = [Route(path, allow_browsers, methods=["OPTIONS"]) for path in ("/symbolicate/v5", "/source/v1")]
        app = Starlette(
            routes=[*made, *preflights],
            lifespan=lambda _: self._lifespan(beside),
            exception_handlers={HTTPException: not_routed},
        )
        known = None if hosts is None else [*hosts]
        return RequestFilter(app, self.metrics, token=token, hosts=known, origins=[*origins], log=log)

    def _answered(self, path: str, endpoint: Endpoint) -> Endpoint:
        """An endpoint whose errors are answers."""
        is_otlp = path == "/v1development/profiles"

        async def run(request: Request) -> Response:
            request.scope[ROUTE] = path
            try:
                return await endpoint(request)
            except Exception as error:
                status, text, headers = self.problem(error, path, 400 if is_otlp else 422)
            if is_otlp:
                as_json = request.headers.get("content-type", "").startswith(otlp.JSON)
                kind = otlp.JSON if as_json else otlp.PROTOBUF
                return Response(status_body(status, text, as_json), status, headers, kind)
            return failure(status, text, headers)

        return run

    def problem(self, error: Exception, path: str, unreadable: int) -> tuple[int, str, Mapping[str, str]]:
        """The status, text and headers of the answer to a request for `path` that failed; `unreadable` is the status
        for an input that cannot be read."""
        match error:
            case ClientDisconnect():
                return CLIENT_LEFT, "the client has left", {}
            case TimeoutError():
                self.metrics.refused("slow answer")
                return 503, "the answer takes long; ask again", LATER
            case RequestTooLarge():
                return 413, str(error), {}
            case Full():
                return 507, str(error), {}
            case OSError() | ReadFailure():
                logging.getLogger("uvicorn.error").error("%s: %s", path, error)
                return 503, "a file cannot be read or written", LATER
            case InputError():
                return unreadable, f"the body: {error.problem}", {}
            case UsageError():
                return 400, str(error), {}
            case HTTPException():
                return error.status_code, error.detail, dict(error.headers or {})
            case SymbolizeError():
                return 503, str(error), LATER
            case MemoryError():
                return 503, "there is not enough memory; ask again", LATER
        logging.getLogger("uvicorn.error").error("%s: failed", path, exc_info=error)
        return 500, "the server failed; its log says why", {}

    @asynccontextmanager
    async def _lifespan(self, beside: Callable[[], AbstractAsyncContextManager[None]]) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(each) for each in (self._walk(), self._note_work())]
        async with beside():
            yield
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for pool in self.pools:
            pool.close()
        await to_thread.run_sync(self.child.close)
        if self.services.servers is not None:
            await to_thread.run_sync(self.services.servers.close)

    async def _walk(self) -> None:
        """Walk the folders again from time to time, and forget what nobody came for."""
        while True:
            await asyncio.sleep(self.limits.walk_seconds)
            try:
                if self.services.deliveries is not None:
                    await to_thread.run_sync(self.services.deliveries.forget_old)
                await to_thread.run_sync(self.services.modules.walk_again, self.limits.walk_seconds / 2)
            except Exception:  # whatever it was, the next walk may end well
                logging.getLogger("uvicorn.error").exception("walking the folders failed")

    async def _note_work(self) -> None:
        """Tell the metrics from time to time for how long the pools have been at their work."""
        while True:
            for pool in self.pools:
                self.metrics.oldest(pool.name, pool.oldest)
            await asyncio.sleep(NOTED)

    def _check_token(self, request: Request) -> None:
        """Raise HTTPException unless a request has the token, if there is one."""
        if not is_allowed(request):
            self.metrics.refused("token")
            raise HTTPException(401, "the request has no valid token", {"WWW-Authenticate": "Bearer"})

    async def status(self, request: Request) -> Response:
        """What the server is."""
        services = self.services
        facts = {
            "Folders": str(len(services.modules.roots)),
            "Binaries open in this process": str(len(services.modules)),
            "Servers behind": str(len(services.servers.servers)) if services.servers is not None else "none",
            "Sources": "on" if services.sources else "off",
            "Uploads": "on" if services.uploads else "off",
            "OTLP profiles": "passed on" if services.deliveries else "off",
        }
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse(status_text(facts))
        digest = base64.b64encode(hashlib.sha256(STATUS_STYLE.encode()).digest()).decode()
        headers = {
            "Content-Security-Policy": STATUS_POLICY.format(digest=digest),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        return HTMLResponse(status_page(facts), headers=headers)

    async def health(self, request: Request) -> Response:
        """That the process answers."""
        return PlainTextResponse("ok\n")

    async def ready(self, request: Request) -> Response:
        """Whether the process takes requests; the folders were walked before the first one."""
        return PlainTextResponse("ok\n") if self.is_ready else PlainTextResponse("busy\n", 503, LATER)

    @property
    def is_ready(self) -> bool:
        """Whether the process takes requests."""
        # Without profiles: where one is worked on others may be refused, which is no reason to be asked for no names.
        is_full = any(each.is_full for each in (self.quick, self.slow, self.files, self.bodies, self.responses))
        pools = self.quick, self.slow, self.files, self.forwarding, self.profile
        return not is_full and not any(pool.is_stuck(self.limits.answer_seconds) for pool in pools)

    async def show_metrics(self, request: Request) -> Response:
        """Metrics for Prometheus, of all workers."""
        return Response(await self.files.run(self.metrics.text), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _json(self, request: Request) -> bytes:
        """A body of JSON, decompressed."""
        self._check_token(request)
        self.quick.check()
        self.responses.check()
        encoding = request.headers.get("content-encoding", "")
        async with self.bodies.received(request, MAX_JSON) as body:
            if encoding:
                return await self.quick.run(partial(decoded, body, encoding, MAX_JSON))
            return body.read()

    async def symbolicate(self, request: Request) -> Response:
        """Names for frames, by Mozilla's API."""
        data = await self._json(request)
        began = perf_counter()
        async with asyncio.timeout(self.limits.answer_seconds), while_connected(request):
            asked = read_request(data) if len(data) < SMALL else await self.quick.run(partial(read_request, data))
            debug = {"jobs": len(asked.jobs), "modules": len(asked.asked)}
            with_debug = request.headers.get("debug", "").lower() == "true"

            def written(answer: SymbolicationAnswer) -> bytes:
                return answer.json({**debug, "seconds": perf_counter() - began} if with_debug else None)

            answer = await self._named(asked, written)
        return self.responses.response(answer, "application/json")

    async def _named(self, asked: SymbolicationRequest, use: Callable[[SymbolicationAnswer], Any]) -> Any:
        """What `use` makes, in a thread, of the answer to a request."""
        found = await self._found(asked.build_ids.values())
        held = [each.module for each in found.values() if each.module is not None]

        def job() -> Any:
            answer = SymbolicationAnswer(asked, found, self.services.mode)
            result = use(answer)
            self.metrics.frames(answer.named, answer.frames - answer.named)
            return result

        pool = self.quick if all(module.is_quick for module in held) else self.slow
        return await pool.run(job, lambda: self._release(held))

    def _release(self, held: Iterable[HeldModule]) -> None:
        self.services.modules.release(*held)

    async def _found(self, build_ids: Iterable[str]) -> dict[str, FoundFrames]:
        """The modules with some ids, held; what is not open yet is opened, of one id at a time."""
        found: dict[str, FoundFrames] = {}
        try:
            for build_id in build_ids:
                if build_id not in found:
                    found[build_id] = await self._module(build_id)
        except BaseException:
            self._release(each.module for each in found.values() if each.module is not None)
            raise
        return found

    async def _module(self, build_id: str) -> FoundFrames:
        """The module with an id, held, or why there is none."""
        modules = self.services.modules
        for attempt in range(MAX_ATTEMPTS):
            module = modules.hold(build_id)
            if module is not None:
                self.metrics.module("opened" if attempt else "open")
                return FoundFrames(module)
            if modules.is_unknown(build_id):
                break
            try:
                opening = partial(self.slow.run, partial(modules.open, build_id))
                if not await self._once.run(("open", build_id), opening):
                    break
            except SymbolizeError as error:
                self.metrics.module("failed")
                return FoundFrames(problem=str(error))
            except (OSError, MemoryError) as error:
                self.metrics.module("failed")
                logging.getLogger("uvicorn.error").error("%s: %s", build_id, error)
                return FoundFrames(problem="the server cannot open the files of this build")
        else:
            self.metrics.module("failed")
            return FoundFrames(problem="the binary changes all the time, or too many others are asked for")
        self.metrics.module("unknown")
        return FoundFrames()

    async def source_of_frame(self, request: Request) -> Response:
        """The source file of a frame: one of those that the debug information has at its address."""
        asked = SourceRequest.read(parsed(await self._json(request)))
        async with asyncio.timeout(self.limits.answer_seconds):
            text = None
            if await self._named(asked.frames, asked.is_named_in):
                text = await self.files.run(lambda: self._sources().read(asked.file))
                build_id = await self._full_id(asked.build_id) if text is None else ""
                if build_id and asked.file.startswith("/"):
                    opened = await self._fetch_source(request, build_id, normalized(asked.file))
                    text = (await self.files.run(opened.file.read)).decode(errors="replace") if opened else None
        if text is None:
            raise HTTPException(404, "no such source file for this address, or it is not below a folder with sources")
        answer = {"symbolsLastModified": None, "sourceLastModified": None, "file": asked.file, "source": text}
        return self.responses.response(as_json(answer), "application/json")

    async def _full_id(self, build_id: str) -> str:
        """The whole build id of a module; empty if it is not there."""
        found = (await self._found([build_id]))[build_id].module if MODULE_ID.fullmatch(build_id) else None
        if found is None:
            return ""
        self.services.modules.release(found)
        return found.build_id

    async def symbolize(self, request: Request) -> Response:
        """A profile in, a symbolized profile out."""
        self._check_token(request)
        self.profile.check()
        self.responses.check()
        encoding = request.headers.get("content-encoding", "")
        parameters = dict(request.query_params)
        async with self.bodies.received(request, self.limits.body) as body:
            check_encoding(body, encoding)
            async with asyncio.timeout(self.limits.answer_seconds), while_connected(request):
                done = await self._symbolized(body, parameters)
        return self.responses.response(done.body, done.kind, {"X-Symbolize-Report": done.report})

    async def _symbolized(self, body: BinaryIO, parameters: dict[str, str] | None) -> Symbolized:
        """What the process for profiles makes of a body."""
        job, left = Job(self.services.origin, self.services.modules.last_walk(), for_child(body), parameters), Event()
        return await self.profile.run(partial(self.child.run, symbolized, job, left), left=left.set)

    async def otlp(self, request: Request) -> Response:
        """A request of OTLP profiles, which is passed on with names added."""
        self._check_token(request)
        deliveries = self.deliveries()
        as_json = otlp.is_json(request.headers.get("content-type", ""))
        encoding, authorization = (request.headers.get(each, "") for each in ("content-encoding", "authorization"))
        async with self.bodies.received(request, self.limits.body) as body, while_connected(request):
            name, passed = await self.handed_on(deliveries, body, encoding, authorization)
        connection: GuardedProtocol = request.scope[CONNECTION]
        if connection.has_ended:
            raise ClientDisconnect
        deliveries.forget(name, authorization)
        connection.if_unread = partial(deliveries.keep, name, authorization, passed)
        kind = otlp.JSON if as_json else otlp.PROTOBUF
        return Response(in_kind(passed, as_json), passed.status, passed.headers, kind)

    def deliveries(self) -> Deliveries:
        """What hands OTLP profiles on. Raises HTTPException if there is none, or no room for another request."""
        if self.services.deliveries is None:
            raise HTTPException(404, "profiles are not passed on here; the server needs --forward")
        self.profile.check()
        self.forwarding.check()
        return self.services.deliveries

    async def handed_on(
        self, deliveries: Deliveries, body: BinaryIO, encoding: str, authorization: str
    ) -> tuple[str, Passed]:
        """A request of OTLP profiles, by whichever protocol it came, with names added and handed on: the name under
        which its answer is kept, and the answer."""
        check_encoding(body, encoding)
        async with asyncio.timeout(self.limits.answer_seconds):
            is_empty = not body.read(1)
            body.seek(0)
            # One that is empty is handed on each time: it is like others.
            named = Symbolized(b"", "", "", uuid4().hex) if is_empty else await self._symbolized(body, None)
            left = Event()
            post = partial(deliveries.hand_on, named.request, named.body, encoding, authorization, left)
            return named.request, await self.forwarding.run(post, left=left.set)

    async def debug_file(self, request: Request) -> Response:
        """A debug file or an executable, as debuginfod serves it."""
        kind = request.path_params["kind"]
        if kind not in KINDS:
            raise HTTPException(400, f"the kind of file is none of {', '.join(KINDS)}, section, source")
        build_id = checked_build_id(request.path_params["build_id"])
        async with asyncio.timeout(self.limits.answer_seconds):
            opened = await self._look(partial(file_of, self.services.modules, build_id, kind))
            servers = self.services.servers
            if opened is None and servers is not None:
                asked: Kind = "executable" if kind == "executable" else "debuginfo"
                opened = await self._fetch(request, build_id, kind, partial(servers.fetch, build_id, asked))
        return self._sent(request, kind, opened)

    async def source(self, request: Request) -> Response:
        """A source file that the debug information of a build names, or that a server behind has."""
        self._check_token(request)
        build_id = checked_build_id(request.path_params["build_id"])
        path = normalized("/" + request.path_params["path"].lstrip("/"))
        async with asyncio.timeout(self.limits.answer_seconds):
            opened = None
            if self.services.sources:
                opened = await self.slow.run(partial(source_of, self.services.modules, self._sources(), build_id, path))
            if opened is None:
                opened = await self._fetch_source(request, build_id, path)
        return self._sent(request, "source", opened)

    async def section(self, request: Request) -> Response:
        """The bytes of a section."""
        build_id, name = checked_build_id(request.path_params["build_id"]), request.path_params["name"]
        async with asyncio.timeout(self.limits.answer_seconds):
            opened = await self._look(partial(section_of, self.services.modules, build_id, name))
        return self._sent(request, "section", opened)

    async def _look(self, look: Callable[[], Opened | None]) -> Opened | None:
        """The file or part of one that is found, after another walk if one has changed."""
        try:
            return await self.files.run(look)
        except ChangedFile:
            return await self.slow.run(partial(self.services.modules.after_walk, look))

    async def walk(self, request: Request) -> Response:
        """Walk the folders now: what has come, gone or changed counts in all workers from then on."""
        self._check_token(request)
        async with asyncio.timeout(self.limits.answer_seconds):
            if not await self.uploading.run(partial(self.services.modules.walk_again, 0, PATIENCE)):
                raise TimeoutError
        return PlainTextResponse("walked\n")

    def _sent(self, request: Request, kind: str, opened: Opened | None) -> Response:
        self.metrics.file(kind, "missing" if opened is None else "found")
        return sent(request, opened, is_private=kind == "source")  # which only those who have the token may see

    def _sources(self) -> Sources:
        """The folders with sources as they are now."""
        return Sources(self.services.sources)

    async def _fetch_source(self, request: Request, build_id: str, path: str) -> Opened | None:
        servers = self.services.servers
        if servers is None:
            return None
        return await self._fetch(request, build_id, path, partial(servers.fetch_source, build_id, path))

    async def _fetch(
        self, request: Request, build_id: str, what: str, fetch: Callable[[str], Fetched]
    ) -> Opened | None:
        """What the servers behind have, unless the request came through too many of them (R418, requests that are
        passed on).

        The address of the client goes to the end of X-Forwarded-For, and no request on that has eight. An answer is a
        miss only if all servers said so.
        """
        before = request.headers.get("x-forwarded-for", "")
        count = before.count(",") + bool(before)
        if count >= MAX_HOPS:
            self.metrics.refused("hops")
            return None
        client = request.client.host if request.client is not None else "unknown"
        hops = [*([before] if FORWARDED.fullmatch(before) else ["unknown"] * count), client]
        work = partial(self.fetching.run, partial(fetch, ", ".join(hops)))
        answer = await self._once.run(("fetch", build_id, what), work)
        return await self.files.run(partial(fetched, answer, build_id, what if what in KINDS else "source"))

    async def upload(self, request: Request) -> Response:
        """Keep a debug file or an executable."""
        uploads = self.services.uploads
        if uploads is None:
            raise HTTPException(403, "uploads are off; the server needs --uploads and a token")
        self._check_token(request)
        kind = request.path_params["kind"]
        if kind not in KINDS:
            raise HTTPException(400, f"the kind of file is none of {', '.join(KINDS)}")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise HTTPException(415, "files are sent as they are, without a Content-Encoding")
        build_id = checked_build_id(request.path_params["build_id"])
        if await self.uploading.run(partial(uploads.has, build_id, kind)):
            return PlainTextResponse("was there\n")
        length = request.headers.get("content-length", "0")
        await self.uploading.run(partial(uploads.check_room, int(length) if length.isdecimal() else 0))
        with full_disk():
            async with self.bodies.received(request, uploads.limit, uploads.folder) as body:
                is_new = await self.uploading.run(partial(uploads.receive, build_id, kind, body))
        if is_new:
            await self.uploading.run(partial(self.services.modules.walk_uploads, uploads.folder))
        return PlainTextResponse("kept\n" if is_new else "was there\n", 201 if is_new else 200)


async def not_routed(request: Request, error: Exception) -> Response:
    """The answer to what no route is for."""
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return failure(404, f"Unrecognized URL: {request.url.path[:200]}")
    return refused(error)


async def allow_browsers(request: Request) -> Response:
    """The answer to the question of a browser what it may ask."""
    return preflight(request)
