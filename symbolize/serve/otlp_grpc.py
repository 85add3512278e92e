"""OTLP profiles over gRPC: a server beside the application, which does the work.

Statuses inside the server are those of HTTP, whichever protocol a request has come by."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from time import perf_counter
from typing import Any, Final
from urllib.parse import unquote

import grpc
from starlette.exceptions import HTTPException

from symbolize.core.errors import UsageError
from symbolize.serve.app import CLIENT_LEFT, SymbolApp
from symbolize.serve.otlp_answers import (
    DELIVERED,
    DETAILS,
    EXPORT,
    SERVICE,
    Passed,
    grpc_status,
    is_message,
    status_body,
)
from symbolize.serve.protocol import MAX_GRPC_CONNECTIONS
from symbolize.serve.request_bodies import encoding_of
from symbolize.serve.request_filter import AccessLog, has_token

HEALTH: Final = "grpc.health.v1.Health"
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"
"""Messages HealthCheckResponse."""
MAX_MESSAGE: Final = (1 << 31) - 1
ENDED_SECONDS: Final = 0.5
"""After the end of a request without a message, within which gRPC cancels one whose client has left, or that was too
large for it."""
BEYOND: Final = 16 << 20
"""Bytes above the limit up to which a message is read, to be refused as over HTTP: one that gRPC itself refuses as too
large cannot be told from one whose client has left."""
CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
GRACE: Final = 30.0
"""Seconds that messages have to end when the server is stopped."""
SERVER_OPTIONS: Final = {
    "grpc.per_message_decompression": 0,
    "grpc.compression_enabled_algorithms_bitset": 0b101,  # none and gzip
    "grpc.max_allowed_incoming_connections": MAX_GRPC_CONNECTIONS,
    "grpc.max_concurrent_streams": 128,
    "grpc.server_handshake_timeout_ms": 10_000,
    "grpc.max_connection_idle_ms": 300_000,
    "grpc.max_connection_age_ms": 300_000,  # the workers would never share again what one has got alone
    "grpc.max_connection_age_grace_ms": 300_000,  # no request takes as long, unless its client reads no answer
    "grpc.keepalive_time_ms": 60_000,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.http2.min_recv_ping_interval_without_data_ms": 10_000,
}


class ProfilesService:
    """The service of OTLP for profiles in front of `app`, which needs the token if there is one."""

    def __init__(self, app: SymbolApp, address: str, token: str, log: AccessLog | None) -> None:
        self._app, self._address, self._token, self._log = app, address, token.encode(), log
        self._longest = min(app.limits.body + BEYOND, MAX_MESSAGE)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer until the block ends, and then what has begun. Each worker listens: the system chooses one for each
        connection."""
        # A message is taken when there is room for it, so all methods are those of streams, which are called before.
        handlers = {
            SERVICE: {"Export": grpc.stream_unary_rpc_method_handler(self.export)},
            HEALTH: {"Check": grpc.stream_unary_rpc_method_handler(self.check)},
        }
        options = SERVER_OPTIONS | {"grpc.max_receive_message_length": self._longest}
        server = grpc.aio.server(options=[*options.items()])
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, methods) for service, methods in handlers.items()]
        )
        server.add_insecure_port(self._address)
        await server.start()
        try:
            yield
        finally:
            await server.stop(GRACE)

    async def check(self, messages: AsyncIterator[bytes], context: Any) -> bytes:
        """Whether the process takes requests, whatever service is asked for."""
        return SERVING if self._app.is_ready else NOT_SERVING

    async def export(self, messages: AsyncIterator[bytes], context: Any) -> bytes:
        """A request of OTLP profiles, which is passed on with names added."""
        began, metrics = perf_counter(), self._app.metrics
        passed = Passed(CLIENT_LEFT, b"", {})
        metrics.began()
        try:
            passed = await self._passed(messages, context)
        finally:
            seconds, size = perf_counter() - began, len(passed.body)
            metrics.answered(EXPORT, passed.status, size, seconds)
            if self._log is not None:
                client = unquote(context.peer()).partition(":")[2].rpartition(":")[0].strip("[]")
                self._log.write(client, "", "POST", EXPORT, passed.status, size, seconds)
        if passed.status in DELIVERED:
            return passed.body if is_message(passed.body) else b""
        code, text, details = grpc_status(passed)
        await context.abort(CODES[code], text, ((DETAILS, details),))
        raise AssertionError

    async def _passed(self, messages: AsyncIterator[bytes], context: Any) -> Passed:
        """The answer to a request, as HTTP has it."""
        app = self._app
        try:
            authorization = str(dict(context.invocation_metadata()).get("authorization", ""))
            if not has_token(authorization, self._token):
                app.metrics.refused("token")
                raise HTTPException(401, "the request has no valid token")
            deliveries, limit = app.deliveries(), app.limits.body
            async with app.bodies.collected(first_of(messages), limit, chunk_size=self._longest) as body:
                name, passed = await app.handed_on(deliveries, body, encoding_of(body), authorization)
        except Exception as error:
            status, text, headers = app.problem(error, EXPORT, HTTPStatus.BAD_REQUEST)
            if status == HTTPStatus.SERVICE_UNAVAILABLE and isinstance(error, HTTPException):
                status = HTTPStatus.TOO_MANY_REQUESTS  # no failure, but a limit: RESOURCE_EXHAUSTED
            return Passed(status, status_body(status, text, as_json=False), dict(headers))

        def ended(answered: Any) -> None:
            if not answered.cancelled():
                deliveries.forget(name, authorization)

        context.add_done_callback(ended)
        return passed


async def first_of(messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The message of a request, compressed as it came (R530, compressed messages of gRPC). Raises UsageError if there
    is none."""
    async for message in messages:
        yield message
        return
    await asyncio.sleep(ENDED_SECONDS)
    raise UsageError("the request has no message")
