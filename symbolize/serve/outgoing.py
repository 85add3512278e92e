"""Answers on their way to clients, which may take them slowly: bounded in their bytes."""

import asyncio
from collections.abc import Mapping
from typing import Final, NoReturn

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from symbolize.serve.lanes import RETRY_AFTER
from symbolize.serve.metrics import Metrics

CHUNK: Final = 256 << 10
"""Bytes that are handed over at a time; the next ones when most of them were taken."""


class Outgoing:
    """The answers that clients have not taken yet: at most `space` bytes."""

    def __init__(self, space: int, metrics: Metrics) -> None:
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
        raise HTTPException(503, "too many answers are not read; ask again", {"Retry-After": RETRY_AFTER})


class InPieces(Response):
    """An answer that counts until its client took it, but for what the connection holds."""

    def __init__(self, outgoing: Outgoing, body: bytes, *, media_type: str, headers: Mapping[str, str] | None) -> None:
        super().__init__(body, media_type=media_type, headers=headers)
        self._outgoing = outgoing
        outgoing.count(len(body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for at in range(0, len(self.body) or 1, CHUNK):
                piece, is_last = self.body[at : at + CHUNK], at + CHUNK >= len(self.body)
                await send({"type": "http.response.body", "body": piece, "more_body": not is_last})
                await asyncio.sleep(0)  # so that a lost connection is noticed: each further write would be logged
        finally:
            self._outgoing.count(-len(self.body))
