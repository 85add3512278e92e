"""The download of one file: all servers at once, the first that has it sends it."""

import queue
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus

from symbolize.binaries.debuginfod.cache import ClientCache, Partial
from symbolize.binaries.debuginfod.received import ELF_MAGIC, Wrong, check_head, verify_file
from symbolize.binaries.debuginfod.server import Server
from symbolize.binaries.debuginfod.transport import (
    CHUNK,
    Call,
    Cancelled,
    HttpAnswer,
    NetworkFailure,
    Refused,
    TooLarge,
    Transport,
)
from symbolize.binaries.debuginfod.types import Limits, Outcome, Progress, Request
from symbolize.core.errors import printable
from symbolize.core.files import os_error_text

PROGRESS_INTERVAL = 0.1
LEAST_PARTIAL = 1 << 16
"""Bytes below which the beginning of a file is not kept."""
REPORT_AFTER = 10.0
"""Seconds after which it is reported that a server has not answered yet."""
LAST_WAIT = 1.0
"""Seconds that downloads which were ended have to tidy up."""


class Large(Exception):
    """The debug file is so large that its sections are to be fetched one by one."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


class Mute(NetworkFailure):
    """The server did not answer in time. It had enough of it: it is not asked for this file again."""


class Again(Exception):
    """The server is to be asked again, after a while that it may have named."""

    def __init__(self, text: str, after: float | None = None) -> None:
        super().__init__(text)
        self.after = after


class Downloader:
    """Downloads files into a folder."""

    def __init__(
        self,
        transport: Transport,
        cache: ClientCache,
        limits: Limits,
        tell: Callable[[str], None],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._transport = transport
        self._cache = cache
        self._limits = limits
        self._tell = tell
        self._progress = progress
        self._slow: set[str] = set()

    def race(self, request: Request, servers: Sequence[Server]) -> None:
        """Ask all servers at once; the first that has the file sends it, the others are left alone.

        If it then fails, those are asked again.
        """
        pending = list(servers)
        while pending and not request.won and request.large is None and not self._transport.closed:
            request.claimed = None
            calls = {server: self._transport.new_call() for server in pending}
            events: queue.SimpleQueue[Server] = queue.SimpleQueue()
            threads = [
                threading.Thread(target=self._ask, args=(request, server, calls, events), daemon=True)
                for server in pending
            ]
            try:
                for thread in threads:
                    thread.start()
                left = len(threads)
                # Who is left alone may take a while to notice; nobody waits for it.
                while left and not request.won and request.large is None:
                    with suppress(queue.Empty):
                        events.get(timeout=0.5)
                        left -= 1
                    if self._transport.closed:
                        break
            finally:
                for call in calls.values():
                    call.cancel()
                if not request.won and request.large is None:
                    # Interrupted or closed: they have files to remove before the process ends.
                    deadline = time.monotonic() + LAST_WAIT
                    for thread in threads:
                        if thread.ident is not None:
                            thread.join(max(deadline - time.monotonic(), 0.0))
            # Without an outcome are those that were left alone.
            pending = [server for server in pending if server not in request.outcomes]
        if self._transport.closed:
            for server in pending:
                request.outcomes.setdefault(server, Outcome("skipped", "the client was closed"))

    def _ask(
        self, request: Request, server: Server, calls: Mapping[Server, Call], events: queue.SimpleQueue[Server]
    ) -> None:
        """In a thread of its own: ask one server, several times if that may help."""
        call, tries = calls[server], 0
        try:
            while True:
                wait: float | None = None
                try:
                    outcome = self._ask_once(request, server, calls)
                    break
                except NetworkFailure as error:
                    server.failed(str(error))
                    outcome = Outcome("failed", str(error))
                    if isinstance(error, Mute):
                        break
                except Again as again:
                    outcome, wait = Outcome("failed", str(again)), again.after
                    if wait is not None and wait > self._limits.longest_wait:
                        server.pause(wait)
                        break
                except TooLarge as error:
                    outcome = Outcome("too-large", f"too large: {error}")
                    break
                except Refused as error:
                    outcome = Outcome("failed", f"refused: {error}")
                    break
                except Wrong as error:
                    outcome = Outcome("wrong", str(error))
                    break
                except Large as large:
                    outcome = Outcome("too-large", f"{large.size:,} bytes announced, so sections are fetched instead")
                    request.outcomes[server] = outcome
                    request.large = server
                    break
                except OSError as error:
                    outcome = Outcome("failed", f"cannot be written: {os_error_text(error)}")
                    break
                # Whoever had the file and lost it makes room for the others first.
                if tries >= self._limits.retries or server.closed() or (request.claimed is server and len(calls) > 1):
                    break
                if wait is None:
                    wait = self._limits.first_wait * 2**tries
                tries += 1
                call.sleep(min(wait, self._limits.longest_wait))
            request.outcomes[server] = outcome
        except Cancelled:
            pass
        except NetworkFailure as error:  # ended while waiting
            request.outcomes[server] = Outcome("failed", str(error))
        except Exception as error:  # never without an outcome
            request.outcomes[server] = Outcome("failed", f"{type(error).__name__}: {printable(str(error))[:200]}")
        finally:
            self._transport.end_call(call)
            events.put(server)

    def _ask_once(self, request: Request, server: Server, calls: Mapping[Server, Call]) -> Outcome:
        call, limits = calls[server], self._limits
        partial = self._cache.partial(request.build_id, request.entry, server.url)
        headers = {"X-DEBUGINFOD-MAXSIZE": str(request.limit)}
        if request.forwarded:
            headers["X-Forwarded-For"] = request.forwarded
        if partial is not None:  # what came goes on where it broke off, if the file there is the same still
            headers |= {"Range": f"bytes={partial.size}-", "If-Range": partial.validator, "Accept-Encoding": "identity"}
        timers = [
            threading.Timer(limits.answer_time, call.cancel, [f"no answer in {limits.answer_time:g} s"]),
            threading.Timer(REPORT_AFTER, self._report_slow, [server]),
        ]
        began = time.monotonic()
        for timer in timers:
            timer.daemon = True
            timer.start()
        try:
            answer = self._transport.get(
                server, f"/buildid/{request.build_id}/{request.path}", call, limits.answer_time, headers
            )
        except NetworkFailure as error:
            if time.monotonic() - began >= limits.answer_time:
                raise Mute(str(error)) from None
            raise
        finally:
            for timer in timers:
                timer.cancel()
        try:
            server.answered()
            status = answer.status
            if status == HTTPStatus.NOT_FOUND:
                return Outcome("missing", "has no such file")
            if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                return Outcome("denied", f"access denied (HTTP {status})")
            if status == HTTPStatus.NOT_ACCEPTABLE:
                return Outcome("too-large", f"too large: more than {request.limit:,} bytes (HTTP 406)")
            if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise Again(f"HTTP {status}", retry_after(answer.header("Retry-After")))
            if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and partial is not None:
                self._cache.drop_partial(request.build_id, request.entry)
                raise Again(f"HTTP {status}", 0.0)
            if status != HTTPStatus.OK and (partial is None or status != HTTPStatus.PARTIAL_CONTENT):
                return Outcome("failed", f"HTTP {status}")
            if status == HTTPStatus.OK:
                partial = None
            elif partial is not None and answer.begin != partial.size:
                self._cache.drop_partial(request.build_id, request.entry)
                raise Again("sent another part of the file than was asked for", 0.0)
            self._claim(request, server, calls)
            size = answer.announced
            if request.sections_above is not None and size is not None and request.sections_above < size:
                raise Large(size)
            self._receive(request, server, answer, partial)
            return Outcome("found", "found")
        finally:
            answer.close()

    def _report_slow(self, server: Server) -> None:
        """Say that a server is waited for, once."""
        if server.url not in self._slow:
            self._slow.add(server.url)
            self._tell(
                f"{server.url}: no answer for {REPORT_AFTER:g} s, waited for up to {self._limits.answer_time:g} s"
            )

    def _claim(self, request: Request, server: Server, calls: Mapping[Server, Call]) -> None:
        """Become the one that sends the file, and end the others; the second one to try ends itself."""
        with request.mutex:
            if request.claimed is None:
                request.claimed = server
            if request.claimed is not server:
                raise Cancelled
        for other, call in calls.items():
            if other is not server:
                call.cancel()

    def _receive(self, request: Request, server: Server, answer: HttpAnswer, partial: Partial | None) -> None:
        """Append to the part received before, check the file, and rename it to its final name."""
        limits, total = self._limits, answer.announced
        with self._cache.writing(request.build_id, request.entry) as file:
            done, head, reported = 0, b"", time.monotonic()
            if partial is not None:
                with open(partial.path, "rb") as before:
                    shutil.copyfileobj(before, file, CHUNK)
                done, head = file.tell(), ELF_MAGIC
            try:
                for data in answer.body(
                    request.limit, limits.answer_time, limits.stall_time, limits.min_rate, limits.total_time
                ):
                    head = (head + data)[: len(ELF_MAGIC)] if len(head) < len(ELF_MAGIC) else head
                    if request.is_elf:
                        check_head(head)
                    file.write(data)
                    done += len(data)
                    if self._progress is not None and time.monotonic() - reported >= PROGRESS_INTERVAL:
                        reported = time.monotonic()
                        self._progress(Progress(request.build_id, request.kind, server.url, done, total))
            except (NetworkFailure, Cancelled):
                if answer.validator and request.is_elf and done >= LEAST_PARTIAL:
                    file.flush()
                    self._cache.keep_partial(file.name, request.build_id, request.entry, server.url, answer.validator)
                raise
            self._cache.drop_partial(request.build_id, request.entry)
            if self._progress is not None:
                self._progress(Progress(request.build_id, request.kind, server.url, done, done))
            file.flush()
            try:
                if request.is_elf:
                    verify_file(file.name, request.build_id)
            except Wrong as error:
                if partial is not None:
                    raise Again(f"{error}; begun anew") from None
                raise
        request.outcomes[server] = Outcome("found", "found")
        request.origin = answer.header("X-DEBUGINFOD-FILE")
        request.won = self._cache.path_of(request.build_id, request.entry)  # last: whoever waits reads the others then


def retry_after(text: str) -> float | None:
    """The seconds of a Retry-After header; None if there is none or it is a date."""
    return float(text) if re.fullmatch(r"[0-9]{1,9}", text.strip()) else None
