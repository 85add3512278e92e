"""Messages that are handed on: once, also when a client that does not know it sends one again."""

import json
import os
import time
from contextlib import suppress
from hashlib import sha256
from threading import Event
from typing import Final

from symbolize.core.errors import SymbolizeError
from symbolize.core.files import atomic_file, file_lock, remove
from symbolize.serve.metrics import ServerMetrics
from symbolize.serve.otlp import Forward, Passed

KEPT: Final = 600.0
"""Seconds for which an answer is kept that no client has got."""
PATIENCE: Final = 60.0
"""Seconds for which a message waits while the same one is handed on."""
DELIVERED: Final = range(200, 300)
"""Statuses with which the server behind has taken a message."""


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
        with file_lock(path + ".lock", PATIENCE) as is_mine:
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
                    if entry.stat().st_mtime < time.time() - KEPT:
                        os.unlink(entry.path)

    def _path(self, request: str, authorization: str) -> str:
        return os.path.join(self._folder, sha256(f"{request} {authorization}".encode()).hexdigest())


def kept_in(path: str) -> Passed | None:
    """The answer that is kept in a file, if there is one."""
    with suppress(OSError), open(path, "rb") as file:
        status, body, headers = json.loads(file.read())
        return Passed(status, body.encode("latin-1"), headers)
    return None
