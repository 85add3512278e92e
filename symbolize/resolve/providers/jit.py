"""Code that was compiled at run time: `perf-PID.map` and jitdump files."""

import re
from collections.abc import Callable

from symbolize.binaries import SpecialFiles
from symbolize.core.arrays import UInt64
from symbolize.core.reasons import Reason
from symbolize.resolve.providers.symbol_lists import SymbolLists
from symbolize.resolve.resolution import Resolution, as_they_are, by_symbol_list
from symbolize.symbol_files import SymbolList, process_of, read_jitdump, read_perf_map
from symbolize.symbol_files.jitdump import HEADER_SIZE, is_jitdump
from symbolize.symbols import SymbolListBinary

MAX_DUMP, MAX_MAP = 1 << 30, 128 << 20
"""Bytes of the largest jitdump, which has the code as well, and of the largest perf map that are read."""

ANONYMOUS = re.compile(
    r"//anon|\[anon.*|/memfd:.*|\[heap\]|\[stack.*|anon_inode:?.*|/dev/zero.*|/anon_hugepage.*|/SYSV.*|/dev/ashmem/.*"
    r"|(.*/)?perf-\d+\.map|(.*/)?jit[^/]*\.dump|(.*/)?jitted-\d+-\d+\.so|\[unknown\]|"
)
"""Recorded names of memory that may hold code compiled at run time."""

COMPILED = re.compile(r"\[JIT .*|(.*/)?TemporaryFile-[^/]*|.*_jit_(app|zygote)_cache:.*")
"""What simpleperf calls the code that Android's runtime compiled."""

PROCESS = re.compile(r"(?:.*/)?(?:perf-(\d{1,10})\.map|jit-(\d{1,10})\.dump|jitted-(\d{1,10})-\d+\.so)")


def is_anonymous(filename: str) -> bool:
    """Whether a recorded name denotes memory that may hold code compiled at run time."""
    return ANONYMOUS.fullmatch(filename.removesuffix(" (deleted)")) is not None


def is_compiled(filename: str) -> bool:
    """Whether a recorded name is one that simpleperf gives to code compiled at run time."""
    return COMPILED.fullmatch(filename) is not None


def process_in(name: str) -> int:
    """The process that a name of such a file has, 0 if it has none."""
    match = PROCESS.fullmatch(name)
    return int(next(filter(None, match.groups()))) if match else 0


class CompiledCode:
    """The lists of code compiled at run time among `files`, each read once. `processes` are those of the profile."""

    def __init__(self, files: SpecialFiles, lists: SymbolLists) -> None:
        self._files = files
        self._lists = lists

    def find(self, filename: str, addresses: UInt64, processes: set[int]) -> Resolution | None:
        """The list for a mapping of that name; None if there is none that covers one of `addresses`.

        The process is that of the name, else that of the profile, else there must be lists of one process only.
        """
        own = process_in(filename)
        wanted = {own} if own else processes
        # A dump knows lines, and comes first.
        candidates: dict[int, list[tuple[str, Callable[[bytes], SymbolList], int]]] = {}
        for file in self._files.of_kind("jitdump"):
            head = self._files.head(file.path, HEADER_SIZE)
            if is_jitdump(head):
                candidates.setdefault(process_of(head), []).append((file.path, read_jitdump, MAX_DUMP))
        for file in self._files.of_kind("perf-map"):
            candidates.setdefault(process_in(file.name), []).append((file.path, read_perf_map, MAX_MAP))
        if wanted:
            candidates = {process: found for process, found in candidates.items() if process in wanted}
        best: list[tuple[int, SymbolListBinary]] = []
        for process, found in candidates.items():
            lists = [read[1] for each in found if (read := self._lists.read(*each)) is not None]
            covered = [int(each.covers(addresses).sum()) for each in lists]
            if any(covered):
                best.append((process, lists[covered.index(max(covered))]))
        if not best:
            return None
        if len(best) > 1:
            names = " and ".join(binary.path for _, binary in best[:3])
            return Resolution(reason=Reason.AMBIGUOUS, detail=f"lists of several processes cover it: {names}")
        return by_symbol_list(best[0][1], as_they_are)
