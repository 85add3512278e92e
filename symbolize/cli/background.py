"""Symbol tables that a command makes after its answer, in a process for which nobody waits."""

import argparse
import os
import threading
from contextlib import suppress

from symbolize.cli import console
from symbolize.symbols import TableCache
from symbolize.symbols.later_tables import LaterTables

LOWEST_PRIORITY = 19


def answering_first(options: argparse.Namespace, cache: TableCache | None) -> TableCache | None:
    """The cache for a command that answers first, if the options and the place of this process allow it.

    The first process of a container takes all others with it when it ends, and so does a service, which the first one
    starts. Tables that machines share are reached by threads and connections, which a forked process does not have.
    """
    is_last = 1 in (os.getpid(), os.getppid())
    if type(cache) is not TableCache or not console.is_command or options.foreground or is_last:
        return cache
    return LaterTables(cache.base, cache.limit)


def make_tables(cache: TableCache | None) -> None:
    """Make the tables that wait in `cache`, in a forked process: it has what was read and decompressed. The binaries
    have to be open, and no other thread may run."""
    if not isinstance(cache, LaterTables) or not cache.begin() or threading.active_count() > 1:
        return
    with suppress(OSError):  # no further process may run
        if child := os.fork():
            # From now on what ends the terminal or its program does not end it. Not a session of its own: those the
            # kernel may schedule side by side, whatever the priorities in them.
            os.setpgid(child, child)
            return
        try:
            detach()
            cache.make()
        finally:
            os._exit(0)


def detach() -> None:
    """Let go of all descriptors that came from who started the command, as a pipe whose reader waits for the end, and
    leave the processor to others. None of the other descriptors is inheritable (PEP 446)."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # that of the list itself
            if os.get_inheritable(descriptor):
                os.dup2(nowhere, descriptor)
    os.nice(LOWEST_PRIORITY)  # only now: on a busy machine a reader of a pipe would wait for this process to go on
