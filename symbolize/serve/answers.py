"""Answers: errors as Mozilla's API has them, parts of files, and what browsers may read from other origins."""

import os
from collections.abc import Mapping
from email.utils import formatdate
from typing import Final

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from symbolize.core.errors import printable
from symbolize.serve.debug_files import Opened

CHUNK: Final = 256 << 10
BINARY: Final = "application/octet-stream"
MAX_NAME: Final = 200
"""Characters of the name of a file that a header has."""


class OpenedFile(FileResponse):
    """A file that is open, or a part of it; closed when it was sent. Ranges of a whole file may be asked for."""

    chunk_size = CHUNK

    def __init__(self, opened: Opened, headers: Mapping[str, str]) -> None:
        status = os.fstat(opened.file.fileno())
        whole = opened.size == status.st_size
        times = {"last-modified": formatdate(status.st_mtime, usegmt=True), "content-length": str(opened.size)}
        headers = {"accept-ranges": "bytes" if whole else "none", **times, **headers}
        # The descriptor's own name: whatever is at the path by now, this is the file that was checked.
        super().__init__(
            f"/proc/self/fd/{opened.file.fileno()}",
            headers=headers,
            media_type=BINARY,
            stat_result=status if whole else None,
        )
        self._opened = opened
        self._is_whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            if self._is_whole:
                await super().__call__(scope, receive, send)
            else:
                await self._send_part(scope["method"] == "HEAD", send)
        finally:
            self._opened.file.close()

    async def _send_part(self, is_head: bool, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        at, end = self._opened.offset, self._opened.offset + (0 if is_head else self._opened.size)
        while at < end:
            data = await to_thread.run_sync(os.pread, self._opened.file.fileno(), min(CHUNK, end - at), at)
            if not data:
                raise OSError("the file was cut while it was sent")
            at += len(data)
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def sent(request: Request, opened: Opened | None, is_private: bool = False) -> Response:
    """A file as debuginfod sends it; no shared cache keeps a private one."""
    if opened is None:
        return PlainTextResponse("not found\n", 404)
    headers = {
        "X-DEBUGINFOD-SIZE": str(opened.size),
        "X-DEBUGINFOD-FILE": printable(opened.name).encode("ascii", "replace").decode()[:MAX_NAME],
        "ETag": f'"{opened.tag}"',
        "Cache-Control": f"{'private' if is_private else 'public'}, max-age=86400",
    }
    limit = request.headers.get("x-debuginfod-maxsize", "")
    problem: Response | None = None
    if limit.isdecimal() and limit.isascii() and len(limit) < len(str(1 << 64)) and 0 < int(limit) < opened.size:
        problem = PlainTextResponse(f"File too large, max size={limit}\n", 406)
    elif headers["ETag"] in request.headers.get("if-none-match", ""):
        problem = Response(status_code=304, headers={"ETag": headers["ETag"]})
    if problem is not None:
        opened.file.close()
        return problem
    return OpenedFile(opened, headers)


def failure(status: int, problem: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as Mozilla's API has it."""
    return JSONResponse({"title": problem}, status, dict(headers or {}))


def refused(error: HTTPException) -> Response:
    """The answer to a request that was refused."""
    return failure(error.status_code, error.detail, error.headers)


def preflight(request: Request) -> Response:
    """What a browser may ask from another origin."""
    headers = {
        "Allow": "POST, OPTIONS",
        "Access-Control-Allow-Methods": "POST, OPTIONS",
        "Access-Control-Allow-Headers": request.headers.get("access-control-request-headers", "content-type"),
        "Access-Control-Max-Age": "86400",
        "Access-Control-Allow-Private-Network": "true",
    }
    return Response(status_code=204, headers=headers)
