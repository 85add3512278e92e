"""Servers behind the symbol server, which take OTLP profiles over HTTP or gRPC, and a client of gRPC."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus as Status
from typing import Any, NamedTuple

from tests.support.http_server import HttpServer, Request
from tests.support.needs import package

PATH = "/v1development/profiles"
PROTOBUF = "application/x-protobuf"
SERVICE = "opentelemetry.proto.collector.profiles.v1development.ProfilesService"
EXPORT = f"/{SERVICE}/Export"
DETAILS = "grpc-status-details-bin"
PATIENCE = 60.0


class Backend:
    """A server behind, which answers as a test wants and keeps what it got."""

    def __init__(self) -> None:
        self.status: int = Status.OK
        self.answer, self.headers = b"", dict[str, str]()
        self.received: list[tuple[bytes, dict[str, str]]] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def behave(self, request: Request) -> None:
        """Take a request."""
        self.received.append((request.body(), dict(request.headers)))
        self.may_answer.wait(60)
        request.reply(self.status, self.answer, Content_Type=PROTOBUF, **self.headers)


@contextmanager
def http_backend() -> Iterator[tuple[str, Backend]]:
    """A server behind that speaks HTTP, and its URL."""
    backend = Backend()
    with HttpServer(backend.behave) as behind:
        yield f"{behind.url}{PATH}", backend


class GrpcBackend:
    """The same for gRPC: it answers with `answer`, or with a code, text and trailing metadata."""

    def __init__(self) -> None:
        self.error: tuple[Any, str, bytes] | None = None
        self.answer = b""
        self.received: list[tuple[bytes, dict[str, str]]] = []

    def export(self, body: bytes, context: Any) -> bytes:
        """Take a request."""
        self.received.append((body, dict(context.invocation_metadata())))
        if self.error is not None:
            code, text, details = self.error
            context.set_trailing_metadata([(DETAILS, details)] if details else [])
            context.abort(code, text)
        return self.answer


@contextmanager
def grpc_backend(credentials: Any = None) -> Iterator[tuple[str, GrpcBackend]]:
    """A server behind that speaks gRPC, and its URL."""
    grpc = package("grpc")
    backend = GrpcBackend()
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_receive_message_length", -1)])
    method = {"Export": grpc.unary_unary_rpc_method_handler(backend.export)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, method)])
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"grpc{'s' * (credentials is not None)}://localhost:{port}", backend
    finally:
        server.stop(None).wait()


class Outcome(NamedTuple):
    """What came of a message: the name of the code, the text or the answer, and the google.rpc.Status."""

    code: str
    text: str
    answer: bytes
    details: bytes


class GrpcClient:
    """Asks a server at a port of this machine, each time on a connection of its own."""

    def __init__(self, port: int) -> None:
        self.port = port

    @contextmanager
    def calling(self, method: str = EXPORT) -> Iterator[Any]:
        """What calls a method."""
        grpc = package("grpc")
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
        options += [("grpc.enable_retries", 0)]
        with grpc.insecure_channel(f"127.0.0.1:{self.port}", options) as channel:
            yield channel.unary_unary(method)

    def send(self, body: bytes, encoding: str = "NoCompression", method: str = EXPORT, **metadata: str) -> Outcome:
        """Send a message."""
        grpc = package("grpc")
        with self.calling(method) as call:
            try:
                compression = getattr(grpc.Compression, encoding)
                answer = call(body, timeout=PATIENCE, compression=compression, metadata=[*metadata.items()])
            except grpc.RpcError as error:
                details = dict(error.trailing_metadata() or ()).get(DETAILS, b"")
                return Outcome(error.code().name, error.details(), b"", details)
        return Outcome("OK", "", answer, b"")
