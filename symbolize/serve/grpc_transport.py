"""Messages handed on over gRPC, the protocol that collectors listen to by default."""

import ssl
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import grpc

from symbolize.core.compression import Codec
from symbolize.serve.otlp_answers import (
    DETAILS,
    EXPORT,
    MAX_ANSWER,
    MAX_TEXT,
    SECONDS,
    Passed,
    delay_of,
    no_answer,
    status_body,
)

STATUSES: Final = {1: 503, 3: 400, 4: 504, 5: 404, 7: 403, 9: 400, 10: 503, 11: 503, 14: 503, 15: 503, 16: 401}
"""HTTP statuses by code of gRPC, so that what may be sent again there may be here; others are 500. RESOURCE_EXHAUSTED
depends on its RetryInfo."""
CLIENT_OPTIONS: Final = {
    "grpc.enable_http_proxy": 0,  # as over HTTP, whatever the variables for debuginfod say
    "grpc.enable_retries": 0,  # a message may be sent again by its own client alone
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 2000,
    "grpc.keepalive_time_ms": 300_000,
}


class GrpcTransport:
    """Sends messages to the server at an address, with TLS if `is_safe`."""

    def __init__(self, address: str, is_safe: bool) -> None:
        self._address, self._is_safe = address, is_safe

    @cached_property
    def _export(self) -> Any:
        options = [*CLIENT_OPTIONS.items()]
        if self._is_safe:
            file = ssl.get_default_verify_paths().cafile  # as over HTTP; without it those that gRPC brings
            roots = Path(file).read_bytes() if file is not None else None
            channel = grpc.secure_channel(self._address, grpc.ssl_channel_credentials(roots), options)
        else:
            channel = grpc.insecure_channel(self._address, options)
        return channel.unary_unary(EXPORT)

    def __call__(self, body: bytes, codec: Codec | None, headers: Mapping[str, str]) -> Passed:
        """The answer to a message. Raises SymbolizeError if there is none."""
        compression = grpc.Compression.NoCompression if codec is None else grpc.Compression.Gzip
        try:
            answer = self._export(body, timeout=SECONDS, metadata=[*headers.items()], compression=compression)
        except grpc.RpcError as error:
            return self._failed(error)
        except ValueError:  # of a header, whose text has it; newer releases of grpcio have the error above
            body = status_body(HTTPStatus.INTERNAL_SERVER_ERROR, "Invalid metadata", as_json=False)
            return Passed(HTTPStatus.INTERNAL_SERVER_ERROR, body, {})
        if len(answer) > MAX_ANSWER:
            return Passed(HTTPStatus.BAD_GATEWAY, b"", {})
        return Passed(HTTPStatus.OK, answer, {})

    def _failed(self, error: Any) -> Passed:
        """The answer that an error is."""
        code, details = error.code().value[0], dict(error.trailing_metadata() or ()).get(DETAILS, b"")
        again = delay_of(details)
        if again is None and error.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE):
            raise no_answer(self._address, error.details())  # a text that may be gRPC's own, with addresses
        status = STATUSES.get(code, 500)
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
            status = 413 if again is None else 429
        text = str(error.details())[:MAX_TEXT]
        headers = {} if again is None else {"retry-after": str(again)}
        return Passed(status, status_body(status, text, as_json=False), headers)
