"""Bodies of requests: bounded in size, time and number, in memory or in files without names."""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, BinaryIO, Final, NoReturn

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request

from symbolize.core.compression import GZIP, ZSTD, Codec, CompressionError, InflateLimits, codec_of, gzipped, inflate
from symbolize.core.errors import UsageError
from symbolize.serve.metrics import ServerMetrics
from symbolize.serve.worker_pools import RETRY_AFTER

IN_MEMORY: Final = 256 << 10
"""Bytes of a body above which it is a temporary file."""
MIN_RATE: Final = 64 << 10
"""Bytes of a body that have to arrive in a second, on average."""
LENGTH: Final = re.compile("[0-9]{1,18}")
ENCODINGS: Final = {"": None, "identity": None, "gzip": GZIP, "x-gzip": GZIP, "zstd": ZSTD}
MAX_RATIO: Final = 1032
"""How many times a body may expand: as often as deflate can."""


class RequestBodies:
    """The bodies that are held at a time: at most `number`, and `space` bytes of them. Each has to come within
    `seconds` and the time that its size takes."""

    def __init__(self, number: int, space: int, seconds: float, metrics: ServerMetrics) -> None:
        self._number, self._space, self._seconds = number, space, seconds
        self._held = self._size = 0
        self._metrics = metrics

    @property
    def is_full(self) -> bool:
        """Whether the next request is refused."""
        return self._held >= self._number or self._size >= self._space

    @asynccontextmanager
    async def received(self, request: Request, limit: int, folder: str | None = None) -> AsyncIterator[BinaryIO]:
        """The body of a request, at most `limit` bytes, as `collected` has it. Raises HTTPException too if its length
        is none."""
        length = request.headers.get("content-length", "0")
        if not LENGTH.fullmatch(length):
            raise HTTPException(400, "the length of the body is no number")
        if int(length) > limit:
            self._metrics.refused("too large")
            raise HTTPException(413, f"the body is larger than {limit} bytes")
        async with self.collected(aiter(request.stream()), limit, folder) as body:
            yield body

    @asynccontextmanager
    async def collected(
        self, chunks: AsyncIterator[bytes], limit: int, folder: str | None = None, chunk_size: int = 0
    ) -> AsyncIterator[BinaryIO]:
        """Chunks, at most `limit` bytes, as a file; with a `folder` as one without a name that is there. What hands
        them over may hold `chunk_size` bytes until then, for which there has to be room.

        Raises HTTPException for a body that is too large or too slow, OSError if it cannot be written.
        """
        if self.is_full or self._size + chunk_size > self._space:
            self._refuse()
        self._held += 1
        self._size += chunk_size
        size = 0
        body: Any = (
            tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (closed below)
            if folder is None
            else tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        )
        try:
            until = monotonic() + self._seconds
            while True:
                try:
                    async with asyncio.timeout(until + size / MIN_RATE - monotonic()):
                        chunk = await anext(chunks, None)
                except TimeoutError:
                    self._metrics.refused("slow body")
                    raise HTTPException(408, "the body took too long to arrive") from None
                if chunk is None:
                    break
                if size + len(chunk) > limit:
                    self._metrics.refused("too large")
                    raise HTTPException(413, f"the body is larger than {limit} bytes")
                self._size -= chunk_size
                chunk_size = 0
                if self._size + len(chunk) > self._space:
                    self._refuse()
                size += len(chunk)
                self._size += len(chunk)
                if folder is None and size <= IN_MEMORY:
                    body.write(chunk)
                else:
                    await to_thread.run_sync(body.write, chunk)
            if folder is None and size <= IN_MEMORY:
                body.seek(0)
            else:
                await to_thread.run_sync(body.seek, 0)
            self._metrics.received(size)
            yield body
        finally:
            self._held -= 1
            self._size -= size + chunk_size
            body.close()

    def _refuse(self) -> NoReturn:
        self._metrics.refused("bodies busy")
        raise HTTPException(503, "too many requests; ask again", {"Retry-After": RETRY_AFTER})


def for_child(body: BinaryIO) -> bytes | str:
    """The bytes of a small body, or a path by which another process opens it as long as this one has it open."""
    data = body.read(IN_MEMORY + 1)
    return data if len(data) <= IN_MEMORY else f"/proc/{os.getpid()}/fd/{body.fileno()}"


def decoded(body: BinaryIO, encoding: str, limit: int) -> bytes:
    """A body as it was before its Content-Encoding. Raises HTTPException for one that is not known, or that expands to
    more than `limit` bytes, UsageError for one that is damaged."""
    codec = codec_named(encoding)
    if codec is None:
        return body.read()
    result = bytearray()
    try:
        for piece in inflate(pieces(body), codec, "body", InflateLimits(limit, MAX_RATIO, IN_MEMORY)):
            result += piece
    except CompressionError as error:
        if "holds more" in error.problem or "expands" in error.problem:
            raise HTTPException(413, f"the body is larger than {limit} bytes once decompressed") from error
        raise UsageError(f"the body is no {encoding}: {error.problem}") from error
    return bytes(result)


def compressed(body: bytes, codec: Codec) -> bytes:
    """A body as a client sends it with a Content-Encoding."""
    if codec is GZIP:
        return b"".join(gzipped([body]))
    import zstandard

    return zstandard.ZstdCompressor().compress(body)


def check_encoding(body: BinaryIO, encoding: str) -> None:
    """Raise unless a body, which whoever reads it decompresses, begins as its Content-Encoding does."""
    codec = codec_named(encoding)
    if codec is not None:
        head = body.read(8)
        body.seek(0)
        if codec_of(head, (codec,)) is None:
            raise UsageError(f"the body is no {encoding}")


def encoding_of(body: BinaryIO) -> str:
    """The Content-Encoding that a message of gRPC has, whose compression is not in its metadata (R530, compressed
    messages of gRPC): no message of protobuf begins as gzip does."""
    head = body.read(8)
    body.seek(0)
    return "" if codec_of(head, (GZIP,)) is None else GZIP.name


def codec_named(encoding: str) -> Codec | None:
    """The codec of a Content-Encoding, None for none. Raises HTTPException for one that is not known."""
    try:
        return ENCODINGS[encoding.strip().lower()]
    except KeyError:
        raise HTTPException(415, "the Content-Encoding is none of gzip, zstd, identity") from None


def pieces(body: BinaryIO) -> Iterator[bytes]:
    """A file in pieces."""
    return iter(lambda: body.read(1 << 16), b"")
