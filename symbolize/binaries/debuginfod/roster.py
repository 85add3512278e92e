"""Which servers are worth asking: each is tried out once, and what came of it is shared with other processes."""

import threading
import time
from collections.abc import Callable, Sequence

from symbolize.binaries.debuginfod.cache import ClientCache
from symbolize.binaries.debuginfod.model import Limits, Outcome
from symbolize.binaries.debuginfod.server import Server
from symbolize.binaries.debuginfod.transport import Cancelled, NetworkFailure, Refused, Transport
from symbolize.errors import printable

VERDICT_LIFE = 600.0
"""Seconds for which all processes believe that a server answers."""
DOWN_LIFE = 60.0
"""Seconds for which they believe that it does not: it may be back, and what it has is missed until then."""


class Roster:
    """The servers, with a verdict on each. `refresh` tries out again those that did not answer another process."""

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
        self._verdicts: dict[Server, tuple[float, bool, str]] = {}

    def probe(self) -> dict[str, tuple[bool, str]]:
        """Try out all servers at once, unless that was done in the last minutes: whether each answers, and a text.

        Happens by itself before the first request.
        """
        with self._probing:
            due = [server for server in self._servers if self._verdict(server) is None]
            threads = [threading.Thread(target=self._probe, args=(server,), daemon=True) for server in due]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return {server.url: self._verdicts[server][1:] for server in self._servers if server in self._verdicts}

    def _verdict(self, server: Server) -> tuple[float, bool, str] | None:
        """What is known of a server, by us or by another process."""
        known = self._verdicts.get(server)
        if known is not None and time.monotonic() - known[0] < life(known[1]):
            return known
        shared = self._cache.read_verdict(self._transport.route(server), VERDICT_LIFE)
        is_up, when = (None, 0.0) if shared is None else (shared.get("is_up"), shared.get("time"))
        if not isinstance(is_up, bool) or not isinstance(when, int | float):
            return None
        age = max(time.time() - when, 0.0)
        if age >= life(is_up):
            return None
        # Who asks to ask again asks again servers that did not answer, too.
        if not is_up and self._refresh and when < self._started:
            return None
        text = printable(str((shared or {}).get("text", "")))[:200]
        known = time.monotonic() - age, is_up, text
        if server not in self._verdicts:
            self._tell(f"{server.url}: {text} ({age:.0f} s ago)")
        self._verdicts[server] = known
        return known

    def _probe(self, server: Server) -> None:
        call = self._transport.new_call()
        timer = threading.Timer(self._limits.probe_time, call.cancel, [f"no answer in {self._limits.probe_time:g} s"])
        timer.daemon = True
        began = time.monotonic()
        timer.start()
        try:
            answer = self._transport.get(server, "/", call, self._limits.probe_time, {})
            answer.close()
            is_up, text = True, f"answers ({time.monotonic() - began:.2f} s)"
        except NetworkFailure as error:
            is_up, text = False, f"unreachable, not asked: {error}"
        except Refused:
            is_up, text = True, f"answers ({time.monotonic() - began:.2f} s)"
        except Cancelled:
            return
        finally:
            timer.cancel()
            self._transport.end_call(call)
        self._verdicts[server] = time.monotonic(), is_up, text
        self._cache.write_verdict(self._transport.route(server), is_up, text)
        self._tell(f"{server.url}: {text}")

    def usable(self, outcomes: dict[Server, Outcome]) -> list[Server]:
        """The servers to ask; of the others `outcomes` says why not."""
        self.probe()
        usable = []
        for server in self._servers:
            _, is_up, text = self._verdicts.get(server, (0.0, False, "not tried out"))
            if not is_up:
                outcomes[server] = Outcome("skipped", text)
            elif why := server.closed():
                outcomes[server] = Outcome("skipped", why)
            else:
                usable.append(server)
        return usable


def life(is_up: bool) -> float:
    """Seconds for which a verdict on a server is believed."""
    return VERDICT_LIFE if is_up else DOWN_LIFE
