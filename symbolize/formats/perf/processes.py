"""Processes, threads and what is mapped in them (R300, mappings over time), and which build id of the table of a
recording is that of a mapping."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import NONE, TOP, Bool, Int64
from symbolize.core.mapped_names import Mapped, mapped_by
from symbolize.formats.model import Choice
from symbolize.formats.perf import numbers as n
from symbolize.formats.perf.header import BUILD_ID_ROOM, RecordedBuildId
from symbolize.profile.model import IdOrigin, Strings

KERNEL: Final = re.compile(rb"\[kernel[^]]*\]\w*|(?:.*/)?vmlinux[^/]*|/proc/kcore")
MODULE: Final = re.compile(rb"\[([\w-]+)\]|(?:.*/)?([^/]+)\.ko(?:\.(?:gz|xz|zst))?")
VDSO: Final = re.compile(rb"\[vdso\w*\]")
MAX_FILES: Final = 16
"""Files that one path had which are distinguished; further ones count as the last of them."""

PAGE: Final = 4096
EXECUTABLE: Final = 4
LOWEST_KERNEL: Final = 1 << 30
"""No kernel has its code below this address."""

MAX_MAPS: Final = 1 << 16
"""Mappings of a process; the kernel's own limit (vm.max_map_count) is 65530."""
MAX_ALL_MAPS: Final = 1 << 22
"""Mappings of all processes together."""
MAX_PROCESSES: Final = 1 << 22
"""Processes, one of them the kernel, of which is known what is mapped in them. All others are one without mappings."""
MAX_ALIKE: Final = 16
"""Processes whose equal mappings of one file stay apart; those of further ones are one."""
NO_MOUNTS: Final = (0, 0)
"""The mount namespace of a process where it is not known: device and inode."""

JIT_MAP: Final = b"/tmp/perf-"
"""How the name begins of the file in which a compiler at run time lists its code, as which perf names such memory."""

COMM_SIZE: Final = 15
"""Bytes of its name that the kernel keeps for a thread."""

STAND_INS: Final = (b"[unknown]", b"[kernel.kallsyms]", b"[guest]", b"[hypervisor]")
"""Names of the mappings that stand for what no other holds, by row (R302, stand-ins for no mapping)."""


class FileId(NamedTuple):
    """What tells one file from another that had its path before, as the kernel has it: the device, the inode, and how
    often that was used anew, 0 where it is not known."""

    major: int
    minor: int
    inode: int
    generation: int


class RecordedFiles:
    """The files that the paths of mappings were of, each by its number among those of its path.

    An id is void where the path was of files of different device, inode or generation (unless that is 0, as perf has it
    for what was mapped before), where the table has two for one path, and for mappings that a process made in another
    mount namespace than the first (R293, names in the table of build ids).
    """

    def __init__(self) -> None:
        self._known: dict[int, list[FileId]] = {}

    def number(self, name: int, file: FileId) -> int:
        """The number of a file, whose path is string `name`, from 0 on in the order in which they were mapped; 0 if it
        is not known which file it is."""
        if not file.inode:
            return 0
        known = self._known.setdefault(name, [])
        for number, each in enumerate(known):
            if each[:3] == file[:3] and (0 in (each.generation, file.generation) or each == file):
                # What perf finds mapped when it starts has no generation.
                known[number] = max(each, file)
                return number
        if len(known) < MAX_FILES:
            known.append(file)
        return len(known) - 1

    def are_several(self, name: int) -> bool:
        """Whether a path was of several files."""
        return len(self._known.get(name, ())) > 1


class BuildIds:
    """The table of build ids by the names that mappings have (R293, names in the table of build ids).

    perf writes it when it stops, and takes the ids from the files that have the paths then. Only those of the kernel,
    its modules and the vdso are from memory. The kernel is `[kernel.kallsyms]` or a vmlinux there, a module `[NAME]` or
    a path to `NAME.ko`, packed or not, where `-` and `_` are equal.
    """

    def __init__(self, entries: Sequence[RecordedBuildId]) -> None:
        self._by_name: dict[bytes, RecordedBuildId] = {}
        self._ambiguous: set[bytes] = set()
        self._modules: dict[bytes, bytes] = {}
        self._kernel = b""
        for entry in entries:
            if not entry.build_id or entry.is_guest:
                continue
            if entry.is_kernel and KERNEL.fullmatch(entry.name):
                self._kernel = self._kernel or entry.build_id
            elif entry.is_kernel and (module := module_name(entry.name)):
                self._modules.setdefault(module, entry.build_id)
            else:
                known = self._by_name.setdefault(entry.name, entry)
                if known.build_id != entry.build_id:
                    self._ambiguous.add(entry.name)

    def find(self, name: bytes) -> tuple[bytes, IdOrigin]:
        """The build id of the file of a mapping, empty if it is not known, and what it was read from."""
        if name.startswith(b"[kernel.kallsyms]"):
            return self._kernel, IdOrigin.RECORDED
        entry = self._by_name.get(name)
        if entry is None:
            return self._modules.get(module_name(name), b""), IdOrigin.RECORDED
        if name in self._ambiguous:
            return b"", IdOrigin.UNKNOWN
        is_memory = entry.is_kernel or VDSO.fullmatch(name) is not None
        return entry.build_id, IdOrigin.RECORDED if is_memory else IdOrigin.READ_LATER


def module_name(name: bytes) -> bytes:
    """The name of the kernel module that a file or mapping is of, empty if it is none."""
    match = MODULE.fullmatch(name)
    return (match[1] or match[2]).replace(b"-", b"_") if match else b""


class RecordedMapping(NamedTuple):
    """What is mapped at a range of addresses. `symbol` is the function that it consists of, 0 if it is a file.

    Those of several processes that are equal are one. Those of files without a build id of their own differ by the
    `file` among those of that path, by the `image` of the process, and if that was `elsewhere`, in another mount
    namespace than the first process: nothing else tells the old build from the new one that was written over it.
    """

    start: int
    limit: int
    offset: int
    name: int
    build_id: bytes = b""
    symbol: int = 0
    file: int = 0
    image: int = 0
    elsewhere: bool = False


class AddressSpace:
    """The mappings of a process: disjoint, ascending. `users` is how many processes have them, those that were forked
    off too; `holder` is the row of the process that entered them into the pool."""

    __slots__ = ("holder", "limits", "rows", "starts", "users")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.limits: list[int] = []
        self.rows: list[int] = []
        self.users = 1
        self.holder = NONE

    def copy(self) -> "AddressSpace":
        """The same mappings, to be changed."""
        other = AddressSpace()
        other.starts, other.limits, other.rows = self.starts.copy(), self.limits.copy(), self.rows.copy()
        return other


class Process:
    """A process: `row` in the tables of the samples, `image` the number of the program it executes among all that were
    executed, `main` the mapping of that, `mounts` its mount namespace."""

    __slots__ = ("comm", "image", "is_main_named", "main", "mounts", "pid", "row", "space")

    def __init__(self, row: int, pid: int, image: int) -> None:
        self.row = row
        self.image = image
        self.mounts = NO_MOUNTS
        self.pid = pid
        self.comm = 0
        self.space = AddressSpace()
        self.main = n.UNKNOWN_MAPPING
        self.is_main_named = False


IDLE: Final = 0
IDLE_COMM: Final = b"swapper"
"""The idle threads of all processors, of which no record has the name; perf calls them so itself."""


class RecordedProcesses:
    """What the side-band records say, entered into the tables of `samples`, a `perf.samples.Samples`.

    A mapping takes the place of what it covers; what is left of that is a mapping of its own, at its offset. Only
    executable ones count. A forked process has those of its parent until it executes a program; a FORK record with bit
    13 only says that a process is there. A pid may be given again. What several processes have at the same addresses is
    one mapping of the profile, if it is the same for certain (R427, mappings of one file), and one address in different
    mappings is different locations.
    """

    def __init__(self, samples: Any, strings: Strings, choice: Choice) -> None:
        self._samples = samples
        self._strings = strings
        self._choice = choice
        self.mappings: list[RecordedMapping] = []
        self._mapping_rows: dict[RecordedMapping, int] = {}
        self.of_pid: dict[int, Process] = {}
        self.all: list[Process] = []
        self._exited: list[Process] = []
        self._maps = 0
        self._images = 0
        self._alike: dict[RecordedMapping, int] = {}
        self._first_mounts = NO_MOUNTS
        self.files = RecordedFiles()
        self.too_many_maps = 0
        self.too_many_processes = 0
        self._others: Process | None = None
        for name in STAND_INS:
            self._mapping(RecordedMapping(0, TOP, 0, strings.add(name)))
        self.kernel = self._new_process(-1)

    def thread(self, pid: int, tid: int) -> int:
        """The row of a thread, which is made if it is new."""
        row: int = self._samples.find_thread(pid, tid)
        if row < 0:
            row = self._samples.add_thread(pid, tid)
            process = self.process(pid)
            self._samples.set_thread(row, process.row, process.comm)
        return row

    def process(self, pid: int) -> Process:
        """The process that has a pid now."""
        return self.of_pid.get(pid) or self._new_process(pid)

    def refresh(self, row: int) -> None:
        """Enter the mappings of a process into the pool."""
        space = self.all[row].space
        holder = space.holder
        if holder not in (NONE, row) and self.all[holder].space is space and self._samples.share_maps(row, holder):
            return
        space.holder = row
        if not self._samples.fits(len(space.rows)):
            self._samples.empty_pool(len(self.all))
        columns = np.array(space.starts, np.uint64), np.array(space.limits, np.uint64), np.array(space.rows, np.int32)
        self._samples.set_maps(row, *columns)

    def comm(self, pid: int, tid: int, name: bytes, is_exec: bool) -> None:
        """A thread got a name, by executing a program if `is_exec`, which ends all mappings before."""
        process, comm = self.process(pid), self._strings.add(name)
        self._samples.set_thread(self.thread(pid, tid), process.row, comm)
        if process is self._others:
            return
        if is_exec:
            self._set_space(process, AddressSpace())
            process.main, process.is_main_named, process.image = n.UNKNOWN_MAPPING, False, self._new_image()
        if is_exec or pid == tid or not process.comm:
            process.comm = comm
            self._enter(process)

    def fork(self, pid: int, parent: int, tid: int, parent_tid: int, is_exec: bool) -> None:
        """A thread was made; of another process than that which made it, it has copies of its mappings, unless the
        record only says that it is there (`is_exec`)."""
        comm = self._samples.comm_of(self.thread(parent, parent_tid)) if parent >= 0 else 0
        if pid != parent:
            origin = self.process(parent)
            process = self._new_process(pid)
            if process is not self._others:
                self._inherit(process, origin, comm, is_exec)
        self._samples.set_thread(self.thread(pid, tid), self.process(pid).row, comm)

    def _inherit(self, process: Process, origin: Process, comm: int, is_exec: bool) -> None:
        """Let a process have what it has of the one that made it, in whose thread it was called `comm`."""
        process.comm, process.mounts = comm, origin.mounts
        if not is_exec:
            process.space = origin.space
            process.space.users += 1
            process.main, process.is_main_named = origin.main, origin.is_main_named
            if self._samples.keeps_times(origin.row):
                self._samples.keep_times(process.row)
        self._enter(process)

    def namespace(self, pid: int, mounts: tuple[int, int]) -> None:
        """The mount namespace of a process is known."""
        if self._first_mounts == NO_MOUNTS:
            self._first_mounts = mounts
        self.process(pid).mounts = mounts

    def exit(self, pid: int) -> None:
        """The first thread of a process ended. Others, and samples of it, may follow; its mappings go when others need
        the memory."""
        self._exited.append(self.process(pid))

    def main_program(self, frames_of: Int64) -> int:
        """The mapping of the program that most frames are in, by the number of frames in each mapping, and of its
        mappings that with most; the stand-in for none if that is not known."""
        mains = sorted({process.main for process in self.all} - {n.UNKNOWN_MAPPING})
        frames: Counter[int] = Counter()
        for row in mains:
            frames[self.mappings[row].name] += int(frames_of[row])
        return max(
            mains,
            key=lambda row: (frames[self.mappings[row].name], int(frames_of[row])),
            default=n.UNKNOWN_MAPPING,
        )

    def neighbours(self, used: Bool) -> list[int]:
        """The mappings that touch anonymous ones in use, in the processes as they are now.

        They come along even if no address is in them (R301, run-time code).
        """
        found: set[int] = set()
        for space in {process.space for process in self.all}:  # of many processes that were forked off it may be one
            for i, row in enumerate(space.rows):
                if not used[row] or not self._strings[self.mappings[row].name].startswith(JIT_MAP):
                    continue
                if i and space.limits[i - 1] == space.starts[i]:
                    found.add(space.rows[i - 1])
                if i + 1 < len(space.rows) and space.starts[i + 1] == space.limits[i]:
                    found.add(space.rows[i + 1])
        return sorted(found)

    def map(
        self,
        pid: int,
        start: int,
        size: int,
        offset: int,
        name: bytes,
        build_id: bytes,
        file: FileId,
        is_kernel: bool,
    ) -> None:
        """Something executable was mapped over what was at its addresses before.

        Memory without a file is called `/tmp/perf-PID.map`, as perf does, because that is where its functions are
        listed (R301, run-time code).
        """
        limit = min(start + size, TOP)
        if is_kernel and start < LOWEST_KERNEL <= offset:
            start = offset // PAGE * PAGE
        if start >= limit:
            return
        process = self.kernel if is_kernel else self.process(pid)
        if process is self._others:
            return
        if not is_kernel and mapped_by(name) is Mapped.ANONYMOUS:
            name = b"/tmp/perf-%d.map" % pid
        build_id = build_id[:BUILD_ID_ROOM] if any(build_id) else b""
        mapping = RecordedMapping(start, limit, offset, self._strings.add(name), build_id)
        if not (is_kernel or mapping.build_id) and name.startswith(b"/") and not name.startswith(JIT_MAP):
            mapping = self._own(mapping, process, file)
        row = self._mapping(mapping)
        self._put(process, start, limit, row)
        if not is_kernel and name.startswith(b"/") and not process.is_main_named:
            is_named = name.rpartition(b"/")[2][:COMM_SIZE] == self._strings[process.comm]
            if is_named or process.main == n.UNKNOWN_MAPPING:
                process.main, process.is_main_named = row, is_named

    def keep_times(self, pid: int) -> None:
        """Keep the times of the samples of a process from now on."""
        process = self.process(pid)
        if process is not self._others:
            self._samples.keep_times(process.row)

    def symbol(self, start: int, size: int, is_bpf: bool, name: bytes, is_removed: bool) -> None:
        """A function was added to the kernel at run time, or removed."""
        limit = min(start + size, TOP)
        if start >= limit:
            return
        if is_removed:
            self._cut(self.kernel, start, limit)
            return
        module = self._strings.add(b"[bpf]" if is_bpf else b"[kernel.ool]")
        row = self._mapping(RecordedMapping(start, limit, 0, module, symbol=self._strings.add(name)))
        self._put(self.kernel, start, limit, row)

    def _own(self, mapping: RecordedMapping, process: Process, file: FileId) -> RecordedMapping:
        """A mapping of a file as that of a process alone, unless too many others have its like.

        A file may be written over between two processes that map it, which no record shows. So mappings without a build
        id of their own are one for several processes only if these were forked off with it, or if 16 have equal ones
        already. Executing a program counts as another process, another inode as another file (R427, mappings of one
        file).
        """
        elsewhere = process.mounts not in (NO_MOUNTS, self._first_mounts)
        alike = mapping._replace(file=self.files.number(mapping.name, file), elsewhere=elsewhere)
        own = alike._replace(image=process.image)
        if own in self._mapping_rows:
            return own
        count = self._alike[alike] = self._alike.get(alike, 0) + 1
        return own if count <= MAX_ALIKE else alike

    def _new_image(self) -> int:
        self._images += 1
        return self._images

    def _new_process(self, pid: int) -> Process:
        is_kept = len(self.all) < MAX_PROCESSES
        self.too_many_processes += not is_kept
        if is_kept or self._others is None:
            process = Process(len(self.all), pid if is_kept else NONE, self._new_image())
            self.all.append(process)
            if not is_kept:
                self._others = process
            elif pid == IDLE:
                process.comm = self._strings.add(IDLE_COMM)
        else:
            process = self._others
        self.of_pid[pid] = process
        self._enter(process)
        self._samples.set_stale(process.row)
        return process

    def _enter(self, process: Process) -> None:
        """Tell the samples what a process is called, and whether it is wanted."""
        wanted = self._choice.takes("cpu", process.pid, self._strings[process.comm])
        self._samples.set_process(process.row, process.comm, wanted)

    def _mapping(self, mapping: RecordedMapping) -> int:
        row = self._mapping_rows.get(mapping)
        if row is None:
            row = self._mapping_rows[mapping] = len(self.mappings)
            self.mappings.append(mapping)
        return row

    def _put(self, process: Process, start: int, limit: int, row: int) -> None:
        """Put a mapping into a process."""
        fits = self._fits(1)
        at = self._cut(process, start, limit)
        space = process.space
        if at is None or len(space.rows) >= MAX_MAPS or not fits:
            self.too_many_maps += 1
            return
        space.starts.insert(at, start)
        space.limits.insert(at, limit)
        space.rows.insert(at, row)
        self._maps += 1

    def _cut(self, process: Process, start: int, limit: int) -> int | None:
        """Take a range out of the mappings of a process; the position in its lists that is free then, None if it shares
        them and a copy would exceed the limit of all mappings. What it shares is forgotten if it holds the range."""
        if process.space.users > 1:
            fits = self._fits(len(process.space.rows))
            space = process.space
            if not fits and bisect_right(space.limits, start) == bisect_left(space.starts, limit):
                return None
            self.too_many_maps += 0 if fits else len(space.rows)
            self._set_space(process, space.copy() if fits else AddressSpace())
        space = process.space
        self._samples.set_stale(process.row)
        first = bisect_right(space.limits, start)
        last = bisect_left(space.starts, limit)
        pieces: list[tuple[int, int, int]] = []
        for i in range(first, last):
            old = self.mappings[space.rows[i]]
            for begin, end in ((space.starts[i], start), (limit, space.limits[i])):
                if begin < end:
                    piece = old._replace(start=begin, limit=end, offset=(old.offset + begin - old.start) & TOP)
                    pieces.append((begin, end, self._mapping(piece)))
        space.starts[first:last] = [begin for begin, _, _ in pieces]
        space.limits[first:last] = [end for _, end, _ in pieces]
        space.rows[first:last] = [row for _, _, row in pieces]
        self._maps += len(pieces) - (last - first)
        return first + sum(begin < start for begin, _, _ in pieces)

    def _fits(self, count: int) -> bool:
        """Whether there may be so many more mappings, for which those of processes that ended are forgotten."""
        while self._maps + count > MAX_ALL_MAPS and self._exited:
            self._set_space(self._exited.pop(), AddressSpace())
        return self._maps + count <= MAX_ALL_MAPS

    def _set_space(self, process: Process, space: AddressSpace) -> None:
        process.space.users -= 1
        if not process.space.users:
            self._maps -= len(process.space.rows)
        self._maps += len(space.rows)
        process.space = space
        self._samples.set_stale(process.row)
