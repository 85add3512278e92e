"""Answers to OTLP profiles, whatever protocol they go by: in protobuf, as JSON, and what gRPC has as the status."""

import json
import logging
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from time import time
from typing import Final, NamedTuple

from symbolize.core.cursor import varint_at
from symbolize.core.errors import SymbolizeError
from symbolize.core.protobuf import BYTES, NUMBER, VARINT, WIRE_TYPE, field, varint
from symbolize.serve.worker_pools import RETRY_AFTER

SERVICE: Final = "opentelemetry.proto.collector.profiles.v1development.ProfilesService"
EXPORT: Final = f"/{SERVICE}/Export"
DETAILS: Final = "grpc-status-details-bin"
MAX_ANSWER: Final = 1 << 16
"""Bytes of the answer of the server that requests are passed on to."""
SECONDS: Final = 30.0
"""For each step of it, and for its body in all."""
DELIVERED: Final = range(200, 300)
"""Statuses with which the server behind has taken a message."""
PARTIAL_SUCCESS: Final = 1
REJECTED_PROFILES, ERROR_MESSAGE = 1, 2
"""Fields of ExportProfilesServiceResponse and of its ExportProfilesPartialSuccess."""
CODE, MESSAGE = 1, 2
"""Fields of google.rpc.Status."""
CODES: Final = {400: 3, 401: 16, 403: 7, 404: 5, 408: 4, 413: 8, 415: 3, 422: 3, 429: 8, 502: 14, 503: 14, 504: 4}
"""Codes of google.rpc by HTTP status; anything else is INTERNAL."""
INTERNAL: Final = 13
STATUS_DETAILS: Final = 3
"""Field of google.rpc.Status: messages Any."""
TYPE_URL, VALUE = 1, 2
RETRY_INFO: Final = "type.googleapis.com/google.rpc.RetryInfo"
RETRY_DELAY = 1
DURATION_SECONDS, DURATION_NANOSECONDS = 1, 2
"""Fields of RetryInfo, and of its Duration."""
MAX_DELAY: Final = 3600
"""Seconds after which a client comes again, whatever it was told."""
MAX_TEXT: Final = 1000
"""Bytes of what was wrong, which may be three letters each: clients take 8 KiB of metadata."""
RETRIED: Final = {429, 502, 503, 504}
"""Statuses after which OTLP's clients send a message again."""
Fields = dict[int, int | bytes]


class Passed(NamedTuple):
    """The answer of the server behind."""

    status: int
    body: bytes
    headers: dict[str, str]


def no_answer(where: str, why: object) -> SymbolizeError:
    """The error that the server behind does not answer; the log has why."""
    logging.getLogger("uvicorn.error").error("%s: does not answer: %s", where, why)
    return SymbolizeError("the server that profiles are passed on to does not answer")


def in_kind(passed: Passed, as_json: bool) -> bytes:
    """The body of an answer in the encoding of the request, empty if it cannot be read or may not be there."""
    if not as_json or passed.status == HTTPStatus.NO_CONTENT:
        return passed.body
    try:
        fields = fields_of(passed.body)
        if passed.status >= HTTPStatus.BAD_REQUEST:
            return as_json_status(fields)
        partial = fields.get(PARTIAL_SUCCESS)
        inner = fields_of(partial) if isinstance(partial, bytes) else {}
    except ValueError:
        return b"{}"
    if not inner:
        return b"{}"
    names: Mapping[int, str] = {REJECTED_PROFILES: "rejectedProfiles", ERROR_MESSAGE: "errorMessage"}
    return json.dumps(
        {"partialSuccess": {names[key]: text(value) for key, value in inner.items() if key in names}}
    ).encode()


def as_json_status(fields: Fields) -> bytes:
    """A google.rpc.Status as JSON."""
    code, message = fields.get(CODE, 0), fields.get(MESSAGE, b"")
    return json.dumps({"code": code if isinstance(code, int) else 0, "message": text(message)}).encode()


def text(value: int | bytes) -> str:
    """A value as JSON has it: 64-bit numbers are strings there."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def status_body(status: int, problem: str, as_json: bool) -> bytes:
    """The google.rpc.Status of an error."""
    code = CODES.get(status, INTERNAL)
    if as_json:
        return json.dumps({"code": code, "message": problem}).encode()
    return varint(CODE << NUMBER | VARINT) + varint(code) + field(MESSAGE << NUMBER | BYTES, problem.encode())


def fields_of(data: bytes) -> Fields:
    """The numbers and bytes of a small message, the last of each field. Raises ValueError for what is none."""
    return dict(fields_in(data))


def message_of(value: int | bytes) -> Fields:
    """The same of a field that is a message. Raises ValueError for what is none."""
    if isinstance(value, int):
        raise ValueError("is a number")
    return fields_of(value)


def fields_in(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers of the fields of a small message, and their values. Raises ValueError for what is none."""
    at = 0
    while at < len(data):
        tag, at = needed(varint_at(data, at))
        value, at = needed(varint_at(data, at))
        if tag & WIRE_TYPE == BYTES:
            if value > len(data) - at:
                raise ValueError("is cut short")
            yield tag >> NUMBER, data[at : at + value]
            at += value
        elif tag & WIRE_TYPE == VARINT:
            yield tag >> NUMBER, value
        else:
            raise ValueError("has a field that no answer has")


def needed(read: tuple[int, int] | None) -> tuple[int, int]:
    """A number that has to be there."""
    if read is None:
        raise ValueError("is cut short")
    return read


def is_message(data: bytes) -> bool:
    """Whether an answer can be read."""
    try:
        fields_of(data)
    except ValueError:
        return False
    return True


def grpc_status(passed: Passed) -> tuple[int, str, bytes]:
    """The code, text and google.rpc.Status for an answer that is an error. One after which a message may be sent again
    says when (R531, errors of gRPC)."""
    code = CODES.get(passed.status, INTERNAL)
    problem = problem_in(passed)
    status = status_body(passed.status, problem, as_json=False)
    if passed.status in RETRIED:
        again = {name.lower(): value for name, value in passed.headers.items()}.get("retry-after", RETRY_AFTER)
        delay = varint(DURATION_SECONDS << NUMBER | VARINT) + varint(seconds_of(again))
        info = field(RETRY_DELAY << NUMBER | BYTES, delay)
        detail = field(TYPE_URL << NUMBER | BYTES, RETRY_INFO.encode()) + field(VALUE << NUMBER | BYTES, info)
        status += field(STATUS_DETAILS << NUMBER | BYTES, detail)
    return code, problem, status


def problem_in(passed: Passed) -> str:
    """What an answer says was wrong."""
    try:
        message = fields_of(passed.body).get(MESSAGE, b"")
    except ValueError:
        message = b""
    default = f"the server that profiles are passed on to answers with {passed.status}"
    said = text(message) if message else default
    return said.encode()[:MAX_TEXT].decode(errors="ignore")


def seconds_of(again: str) -> int:
    """The seconds of a Retry-After, which may be a date."""
    try:
        seconds = int(again) if again.isdecimal() else int(parsedate_to_datetime(again).timestamp() - time())
    except (ValueError, OverflowError):
        seconds = int(RETRY_AFTER)
    return max(0, min(seconds, MAX_DELAY))


def delay_of(status: bytes) -> int | None:
    """The seconds of the RetryInfo of a google.rpc.Status, rounded up; None without one."""
    try:
        for number, detail in fields_in(status):
            fields = message_of(detail) if number == STATUS_DETAILS else {}
            if fields.get(TYPE_URL) == RETRY_INFO.encode():
                delay = message_of(message_of(fields.get(VALUE, b"")).get(RETRY_DELAY, b""))
                seconds = delay.get(DURATION_SECONDS, 0)
                return min(int(seconds) + (DURATION_NANOSECONDS in delay), MAX_DELAY)
    except ValueError:
        pass
    return None
