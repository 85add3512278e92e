"""Which servers are worth asking: each is tried out once, and what came of it is shared with other processes."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from symbolize.binaries.debuginfod.cache import ClientCache
from symbolize.binaries.debuginfod.server import Server
from symbolize.binaries.debuginfod.transport import Cancelled, NetworkFailure, Refused, Transport
from symbolize.binaries.debuginfod.types import Limits, Outcome
from symbolize.core.errors import printable

VERDICT_LIFE = 600.0
"""Seconds for which all processes believe that a server answers."""
DOWN_LIFE = 60.0
"""Seconds for which they believe that it does not: it may be back, and what it has is missed until then."""


class Health(NamedTuple):
    """Whether a server answers, the text about it, and when that was found out, by the monotonic clock."""

    is_up: bool
    text: str
    when: float

    @property
    def age(self) -> float:
        """Seconds since then."""
        return time.monotonic() - self.when


class ServerHealth:
    """The servers, with the health of each. `refresh` tries out again those that did not answer another process."""

    def __init__(
        self,
        servers: Sequence[Server],
        transport: Transport,
        cache: ClientCache,
        limits: Limits,
        refresh: bool,
        tell: Callable[[str], None],
    ) -> None:
        self._servers = servers
        self._transport = transport
        self._cache = cache
        self._limits = limits
        self._refresh = refresh
        self._tell = tell
        self._started = time.time()
        self._probing = threading.Lock()
        self._known: dict[Server, Health] = {}

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
        found = self._cache.read_verdict(self._transport.route(server), VERDICT_LIFE) or {}
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
        call = self._transport.new_call()
        timer = threading.Timer(limit, call.cancel, [f"no answer in {limit:g} s"])
        timer.daemon = True
        began = time.monotonic()
        timer.start()
        is_up, text = True, ""
        try:
            self._transport.get(server, "/", call, limit, {}).close()
        except NetworkFailure as error:
            is_up, text = False, f"unreachable, not asked: {error}"
        except Refused:
            pass
        except Cancelled:
            return
        finally:
            timer.cancel()
            self._transport.end_call(call)
        text = text or f"answers ({time.monotonic() - began:.2f} s)"
        self._known[server] = Health(is_up, text, time.monotonic())
        self._cache.write_verdict(self._transport.route(server), is_up, text)
        self._tell(f"{server.url}: {text}")

    def usable(self, outcomes: dict[Server, Outcome]) -> list[Server]:
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
                outcomes[server] = Outcome("skipped", why)
            else:
                usable.append(server)
        return usable


def life(is_up: bool) -> float:
    """Seconds for which a verdict on a server is believed."""
    return VERDICT_LIFE if is_up else DOWN_LIFE
