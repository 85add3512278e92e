"""Asking the servers: each is tried out once, and the result is shared with other processes; those that answer
are asked for a file all at once, and the first that has it sends it."""

import queue
import re
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

from symbolize.binaries.debuginfod.cache import (
    ELF_MAGIC,
    ClientCache,
    FileTooLarge,
    Partial,
    Wrong,
    check_head,
    verify_file,
)
from symbolize.binaries.debuginfod.server import FetchOptions, Limits, Progress, Request, Server, ServerAnswer
from symbolize.binaries.debuginfod.transport import (
    CHUNK,
    Call,
    Cancelled,
    HttpAnswer,
    NetworkFailure,
    Refused,
    Transport,
)
from symbolize.core.errors import printable
from symbolize.core.files import os_error_text

VERDICT_LIFE = 600.0
"""Seconds for which all processes believe that a server answers."""
DOWN_LIFE = 60.0
"""Seconds for which they believe that it does not: it may be back, and what it has is missed until then."""
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


class Health(NamedTuple):
    """Downloads files into a folder.

    An interrupted download continues where it stopped, within a run and in later ones, if the server confirms that the
    file is the same: its strong ETag, or else Last-Modified, as If-Range. Encoded bodies and parts shorter than 64 KiB
    are not kept. The whole is checked like every file, and downloaded from the start if it is not the requested one
    (R286, resumed downloads).
    """

    is_up: bool
    text: str
    when: float

    @property
    def age(self) -> float:
        """Seconds since then."""
        return time.monotonic() - self.when


class Downloader:
    """Downloads files from `servers` into the folder `cache`."""

    def __init__(self, servers: Sequence[Server], cache: ClientCache, limits: Limits, options: FetchOptions) -> None:
        self._servers = servers
        self._cache = cache
        self._limits = limits
        self._tell = options.tell
        self._progress = options.progress
        self._refresh = options.refresh_misses or options.refresh_servers
        askable = [server for server in servers if not server.refusal]
        self.transport = Transport(askable, options.headers, limits.connect_time, options.proxies)
        self._started = time.time()
        self._probing = threading.Lock()
        self._known: dict[Server, Health] = {}
        self._slow: set[str] = set()

    def probe(self) -> dict[str, tuple[bool, str]]:
        """Try out all servers at once, unless that was done in the last minutes: whether each answers, and a text.

        Happens by itself before the first request.
        """
        with self._probing:
            due = [server for server in self._servers if not server.refusal and not self._is_known(server)]
            threads = [threading.Thread(target=self._probe, args=(server,), daemon=True) for server in due]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return {server.url: self._known[server][:2] for server in self._servers if server in self._known}

    def _is_known(self, server: Server) -> bool:
        """Whether there is a verdict on a server that still counts, of this process or of another one."""
        verdict = self._known.get(server)
        if verdict is None or verdict.age >= life(verdict.is_up):
            verdict = self._shared(server)
            if verdict is not None:
                if server not in self._known:
                    self._tell(f"{server.url}: {verdict.text} ({verdict.age:.0f} s ago)")
                self._known[server] = verdict
        return verdict is not None

    def _shared(self, server: Server) -> Health | None:
        """What another process found out about a server."""
        found = self._cache.read_verdict(self.transport.route(server), VERDICT_LIFE) or {}
        is_up, when = found.get("is_up"), found.get("time")
        if not isinstance(is_up, bool) or not isinstance(when, int | float):
            return None
        verdict = Health(
            is_up,
            printable(str(found.get("text") or "does not answer"))[:200],
            time.monotonic() - max(time.time() - when, 0.0),
        )
        # Who asks to ask again asks again servers that did not answer, too.
        is_refreshed = not is_up and self._refresh and when < self._started
        return None if is_refreshed or verdict.age >= life(is_up) else verdict

    def _probe(self, server: Server) -> None:
        limit = self._limits.probe_time
        call = self.transport.new_call()
        timer = threading.Timer(limit, call.cancel, [f"no answer in {limit:g} s"])
        timer.daemon = True
        began = time.monotonic()
        timer.start()
        is_up, text = True, ""
        try:
            self.transport.get(server, "/", call, limit, {}).close()
        except NetworkFailure as error:
            is_up, text = False, f"unreachable, not asked: {error}"
        except Refused:
            pass
        except Cancelled:
            return
        finally:
            timer.cancel()
            self.transport.end_call(call)
        text = text or f"answers ({time.monotonic() - began:.2f} s)"
        self._known[server] = Health(is_up, text, time.monotonic())
        self._cache.write_verdict(self.transport.route(server), is_up, text)
        self._tell(f"{server.url}: {text}")

    def usable(self, outcomes: dict[Server, ServerAnswer]) -> list[Server]:
        """The servers to ask; of the others `outcomes` says why not."""
        self.probe()
        usable = []
        for server in self._servers:
            verdict = self._known.get(server)
            if server.refusal:
                why = f"not asked: {server.refusal}"
            else:
                why = "not tried out" if verdict is None else server.closed() if verdict.is_up else verdict.text
            if why:
                outcomes[server] = ServerAnswer("skipped", why)
            else:
                usable.append(server)
        return usable

    def race(self, request: Request, servers: Sequence[Server] | None = None) -> None:
        """Ask all usable servers at once, or those given; the first that has the file sends it, the others are left
        alone. If it then fails, those are asked again.
        """
        pending = self.usable(request.outcomes) if servers is None else list(servers)
        while pending and not request.won and request.large is None and not self.transport.closed:
            request.claimed = None
            calls = {server: self.transport.new_call() for server in pending}
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
                    if self.transport.closed:
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
        if self.transport.closed:
            for server in pending:
                request.outcomes.setdefault(server, ServerAnswer("skipped", "the client was closed"))

    def _ask(
        self, request: Request, server: Server, calls: Mapping[Server, Call], events: queue.SimpleQueue[Server]
    ) -> None:
        """Ask one server, in a thread of its own; retry with a backoff that doubles where that may help."""
        call, tries = calls[server], 0
        try:
            while True:
                wait: float | None = None
                try:
                    outcome = self._ask_once(request, server, calls)
                    break
                except NetworkFailure as error:
                    server.failed(str(error))
                    outcome = ServerAnswer("failed", str(error))
                    if isinstance(error, Mute):
                        break
                except Again as again:
                    outcome, wait = ServerAnswer("failed", str(again)), again.after
                    if wait is not None and wait > self._limits.longest_wait:
                        server.pause(wait)
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
        except Exception as error:  # never without an outcome
            request.outcomes[server] = ended_by(error)
            if isinstance(error, Large):
                request.large = server
        finally:
            self.transport.end_call(call)
            events.put(server)

    def _ask_once(self, request: Request, server: Server, calls: Mapping[Server, Call]) -> ServerAnswer:
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
            answer = self.transport.get(
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
                return ServerAnswer("missing", "has no such file")
            if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                return ServerAnswer("denied", f"access denied (HTTP {status})")
            if status == HTTPStatus.NOT_ACCEPTABLE:
                return ServerAnswer("too-large", f"too large: more than {request.limit:,} bytes (HTTP 406)")
            if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise Again(f"HTTP {status}", retry_after(answer.header("Retry-After")))
            if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and partial is not None:
                self._cache.drop_partial(request.build_id, request.entry)
                raise Again(f"HTTP {status}", 0.0)
            if status != HTTPStatus.OK and (partial is None or status != HTTPStatus.PARTIAL_CONTENT):
                return ServerAnswer("failed", f"HTTP {status}")
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
            return ServerAnswer("found", "found")
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
        """Append to the part received before, check the file, and rename it to its final name.

        The first bytes of an ELF file are checked before the rest is written (R282, checked downloads).
        """
        total = answer.announced
        with self._cache.writing(request.build_id, request.entry) as file:
            done, head, reported = 0, b"", time.monotonic()
            if partial is not None:
                with open(partial.path, "rb") as before:
                    shutil.copyfileobj(before, file, CHUNK)
                done, head = file.tell(), ELF_MAGIC
            try:
                for data in answer.body(request.limit, self._limits):
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
        request.outcomes[server] = ServerAnswer("found", "found")
        request.origin = answer.header("X-DEBUGINFOD-FILE")
        request.won = self._cache.path_of(request.build_id, request.entry)  # last: whoever waits reads the others then


def ended_by(error: Exception) -> ServerAnswer:
    """What came of a server where asking it again would not help."""
    match error:
        case Large():
            return ServerAnswer("too-large", f"{error.size:,} bytes announced, so sections are fetched instead")
        case FileTooLarge():
            return ServerAnswer("too-large", f"too large: {error}")
        case Refused():
            return ServerAnswer("failed", f"refused: {error}")
        case Wrong():
            return ServerAnswer("wrong", str(error))
        case NetworkFailure():
            return ServerAnswer("failed", str(error))
        case OSError():
            return ServerAnswer("failed", f"cannot be written: {os_error_text(error)}")
    return ServerAnswer("failed", f"{type(error).__name__}: {printable(str(error))[:200]}")


def retry_after(text: str) -> float | None:
    """The seconds of a Retry-After header; None if there is none or it is a date."""
    return float(text) if re.fullmatch(r"[0-9]{1,9}", text.strip()) else None


def life(is_up: bool) -> float:
    """Seconds for which a verdict on a server is believed."""
    return VERDICT_LIFE if is_up else DOWN_LIFE
