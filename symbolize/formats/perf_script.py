"""What `perf script` prints: samples with their callchains, as text (R341, text of perf)."""

import re
from itertools import pairwise
from typing import Final

from symbolize.core.arrays import NONE, TOP
from symbolize.formats.content import Content
from symbolize.formats.model import LoadedProfile, LoadOptions, only
from symbolize.formats.samples import BOTH, COUNTS, Label, NamedStacks, TextFrame, lines_of
from symbolize.formats.stand_ins import KERNEL_FILE, MappingKey, in_call, place_of
from symbolize.names.stand_ins import StandIn, stand_in
from symbolize.profile.facts import set_leaves
from symbolize.profile.model import AddressKind, IdOrigin, LeafKind, Profile, StackSource
from symbolize.profile.sample_types import show_first_event

BLANKS: Final = rb"\s{1,64}+"
"""Blanks are not given back (`+`), because what a run of them was split at would be tried for each of the others."""
ANY_COMMAND: Final = rb"(?P<comm>\S.{0,255}?)" + BLANKS
COMMAND: Final = rb"(?!(?:-?\d+/)?-?\d+\s)" + ANY_COMMAND
THREAD: Final = rb"(?:(?P<pid>-?\d{1,10})/)?(?P<tid>-?\d{1,10})" + BLANKS
COLUMNS: Final = (
    rb"(?:\[\d+\]" + BLANKS + rb")?"  # CPU
    rb"(?:(?:(?!\d+\s)(?:[-\w.#]{4,6}|[A-Za-z]{1,5})" + BLANKS + rb")?"  # flags, or how the process ran
    rb"(?P<time>\d+\.\d+):(?:" + BLANKS + rb"|$))?"
    rb"(?:(?:(?P<period>\d{1,20})" + BLANKS + rb")?"
    rb"(?P<event>(?![\d.]+:)\S{1,255}?):(?:" + BLANKS + rb"|$))?"
    rb"(?(time)|(?(event)|(?!)))(?P<rest>.*)$"
)
"""The columns of a sample's line in the order in which `perf script` prints them, behind command and thread: each may
be left out, but not both time and event. The rest has what an event is about, and for one frame that."""
FULL_HEADER: Final = re.compile(ANY_COMMAND + THREAD + COLUMNS + rb"(?(time)|(?!))(?(event)|(?!))", re.DOTALL)
"""The line of a sample with time and event, whose command may look like a thread."""
HEADER: Final = re.compile(COMMAND + THREAD + COLUMNS, re.DOTALL)
SHORT_HEADER: Final = re.compile(rb"(?:" + THREAD + rb"|" + COMMAND + rb")?" + COLUMNS, re.DOTALL)
"""The line of a sample without command or thread, which any line may look like: frames have to follow."""
PERIOD: Final = re.compile(rb"\d{1,20}\s*\Z")
"""The rest of a line without the column of the event, where frames follow."""
NUMBERS: Final = re.compile(rb"\s*\d{1,20}(?:\s+[0-9a-f]{4,16}(?:\s+[^\s(].*)?)?\s*\Z", re.DOTALL)
"""The rest of a line without the column of the event and without frames: its number may be a period, the address of
data, or that of code."""
FULL_TIME: Final = re.compile(rb"\d+\.\d{6,9}\Z")

RECORD: Final = re.compile(rb".*?\bPERF_RECORD_(?P<kind>[A-Z0-9_]+)[\s:]*(?P<rest>.*)", re.DOTALL)
MMAP: Final = re.compile(
    rb"(?P<pid>-?\d{1,10})/-?\d+: \[(?P<start>0x[0-9a-f]{1,16}|0)\((?P<size>0x[0-9a-f]{1,16}|0)\) @ "
    rb"(?P<offset>0x[0-9a-f]{1,16}|0)(?: <(?P<id>[0-9a-f]{4,128})>)?[^\]]*\]: (?P<access>\S+) (?P<file>.+)$",
    re.DOTALL,
)
FORK: Final = re.compile(rb"\((\d{1,10}):(\d{1,10})\):\((\d{1,10}):\d{1,10}\)")
EXEC: Final = re.compile(rb"exec: .*?:(\d{1,10})/\d{1,10}\b")

FRAME: Final = re.compile(rb"\s*(?P<ip>[0-9a-f]{1,16})(?:\s+(?P<what>\S.*))?$", re.DOTALL)
BARE_FRAME: Final = re.compile(rb"[0-9a-f]{4,16}(?:\s+\S|$)")
"""How a frame begins behind the event, or on a line whose blanks in front were lost, as in text that was pasted."""
DATA: Final = re.compile(rb"(?:[0-9a-f]{1,16}\s++){0,3}(?=[0-9a-f]{4,16}\s+[^\s(])")
"""Addresses and weights of data between the event and a frame (`-F +addr,+weight`)."""
MEMORY_OPERATION: Final = b"|OP "
"""In what `perf mem` says of an access; its parts are between blanks, as the columns are."""
WHAT: Final = re.compile(rb"(?P<symbol>.*?)\((?P<file>[^()]*(?:\([^()]*\)[^()]*)?)\)\s*$", re.DOTALL)
OFFSET: Final = re.compile(rb"\+0x[0-9a-f]+$")
FILE_OFFSET: Final = re.compile(rb"\+0x([0-9a-f]{1,16})$")
SOURCE: Final = re.compile(rb"\s+(?P<file>\S.*):(?P<line>\d{1,9})(?: \(discriminator \d+\))?\s*$")

INLINED: Final = b"(inlined)"
UNKNOWN: Final = b"[unknown]"
KERNEL_DIGITS: Final = re.compile(rb"\s*[89a-f][0-9a-f]{15}\b")
MAX_OFFSET: Final = 1 << 36
"""An address below may be one in a file, those above are of a process."""

KERNEL_MODULE: Final = re.compile(rb"\[(?!kernel|guest\.kernel|unknown|vdso|vsyscall)[\w.-]+\]|/.*\.ko(?:\.[a-z0-9]+)?")
"""What the frame of a module of the kernel, or of a program for it (`[bpf]`), is in."""

MAX_MAPPINGS: Final = 1 << 10
MAX_PROCESSES: Final = 1 << 15
"""Mappings of a process, and processes, whose mappings are retained."""

NO_FRAME: Final = -2
"""Instead of the location of a line that is no frame."""

KERNEL_PID: Final = -1
CLOCK: Final = re.compile(rb"(?:cpu|task)-clock(?::|\Z)")

SNIFFED: Final = 1 << 14
MAX_OTHERS: Final = 16
"""Bytes in which the first sample is looked for, and other lines before it."""


def matches(head: bytes | memoryview) -> bool:
    """Whether what begins with `head` is the output of `perf script`: a sample with a thread, time and event, or with a
    frame, or a mapping. Some lines of warnings may be before it."""
    lines = bytes(head[:SNIFFED]).split(b"\n")
    has_records, others = False, 0
    for line, following in pairwise(lines):
        if line.startswith(b"#") or not line.strip():
            continue
        if RECORD.match(line):
            has_records = True
            continue
        found = header_of(line)
        if found is not None:
            is_full = is_whole(found) and bool(found["event"]) and FULL_TIME.match(found["time"] or b"") is not None
            if is_full or (following[:1].isspace() and FRAME.match(following)) or is_unindented(following):
                return True
            if found["time"] and one_frame(found["rest"]):
                return True
        others += 1
        if others > MAX_OTHERS:
            return False
    return has_records


def header_of(line: bytes) -> re.Match[bytes] | None:
    """The columns of a sample's line, None for another line; perf pads what is first on the left."""
    line = line.strip()
    return FULL_HEADER.match(line) or HEADER.match(line) or SHORT_HEADER.match(line)


def is_unindented(line: bytes) -> bool:
    """Whether a line without blanks in front is a frame: an address, a symbol, and a file in brackets."""
    return BARE_FRAME.match(line) is not None and line.rstrip().endswith(b")") and b" (" in line


def is_timed(header: re.Match[bytes] | None) -> bool:
    """Whether a line has the time of a sample."""
    return header is not None and header["time"] is not None


def one_frame(rest: bytes) -> bytes:
    """The frame behind the event of a sample without callers; empty for none."""
    rest = rest.strip()
    if rest.endswith(b")") and (data := DATA.match(rest)):
        rest = rest[data.end() :]
    return rest if BARE_FRAME.match(rest) else b""


def is_whole(header: re.Match[bytes]) -> bool:
    """Whether the line of a sample has a command and a thread, which makes it one whatever follows."""
    return header["comm"] is not None and header["tid"] is not None


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The profile of a text, read in pieces, of which only what is distinct is kept.

    Names come with the profile. Where mappings were printed too (`--show-mmap-events`), frames are located by them;
    addresses of the kernel are located without; a file offset is located by the names (R341, text of perf).
    """
    reader = ScriptReader(content.name)
    for line in lines_of(content.pieces()):
        reader.read(line)
    reader.finish()
    return only(reader.profile())


def is_path(file: bytes) -> bool:
    """Whether what stands for a file is one: `//anon` is memory."""
    return file.startswith(b"/") and not file.startswith(b"//")


class Line:
    """The line of a frame: whether it is of an inlined function, or of the kernel, and its locations as leaf and as
    caller, NONE as long as they are not known."""

    __slots__ = ("call", "is_inlined", "is_kernel", "leaf")

    def __init__(self, text: bytes) -> None:
        self.is_inlined = text.partition(b"\n")[0].endswith(INLINED)
        self.is_kernel = KERNEL_DIGITS.match(text) is not None
        self.leaf = self.call = NONE


class ScriptSpace:
    """What is mapped in a process, later mappings first, and the lines of frames that were located by that."""

    def __init__(self, mappings: tuple[MappingKey, ...] = ()) -> None:
        self.mappings = mappings
        self.lines: dict[bytes, Line] = {}

    def map(self, mapping: MappingKey) -> bool:
        """Map a file over what is there; True if the oldest mapping was dropped for it: without the new one its
        addresses would be those of what was there before."""
        is_full = len(self.mappings) >= MAX_MAPPINGS
        self.mappings = (mapping, *self.mappings[: MAX_MAPPINGS - 1])
        self.lines.clear()
        return is_full

    def at(self, ip: int, file: bytes) -> tuple[MappingKey, int] | None:
        """The mapping of an address, or of an offset in a file, and the address."""
        for mapping in self.mappings:
            if mapping.start <= ip < mapping.limit:
                return mapping, ip
        for mapping in self.mappings:
            if mapping.file == file and 0 <= ip - mapping.file_offset < mapping.limit - mapping.start:
                return mapping, ip - mapping.file_offset + mapping.start
        return None


class ScriptReader:
    """Reads line by line.

    Of the columns of a sample's line the event or the time has to be there, and without command or thread frames have
    to follow; what stands behind the event is a frame only if no line below is one, and then behind the addresses and
    weights of data. Frames come leaf first, those that are "(inlined)" belong to the next location, source lines to the
    frame before. The event has two sample types, how often and with which periods. Callers are moved into their calls,
    but not the first frame of a process below those of the kernel.

    With lines of PERF_RECORD_MMAP addresses are located by the mappings of their process, which FORK copies and an exec
    clears. Some versions of perf (5.18 to 6.3) print offsets in files for frames of processes: they become addresses by
    the mappings, and without these are addresses in a file (R163, base of file addresses); `file+0xoffset`, as `-F
    +dsoff` prints, is the byte there of the file. A build id that is printed with a mapping is that of the mapping.
    Addresses of the kernel need no mapping, and are in the module that perf says; below a frame of a process there are
    none. Other addresses keep their names only (R341, text of perf).
    """

    def __init__(self, source: str) -> None:
        self.stacks = NamedStacks(source)
        self.spaces: dict[int, ScriptSpace] = {}
        self.others: set[int] = set()
        """Processes whose mappings are not retained."""
        self.too_many_mappings = 0
        self.process_of: dict[int, int] = {}
        self.events: dict[bytes, int] = {}
        self.has_period = False
        self.unlocated = 0
        self.skipped = 0
        self.unclear = 0
        self.header: re.Match[bytes] | None = None
        self.frames: list[bytes] = []

    def read(self, line: bytes) -> None:
        """Read a line."""
        if line[:1] == b"\t" and self.header is not None:
            self.frames.append(line)
            return
        if self.header is not None and is_unindented(line) and not is_timed(header_of(line)):
            self.frames.append(line)
            return
        if line[:1] in (b" ", b"\t"):
            sample = header_of(line)
            is_sample = sample is not None and (is_timed(sample) or line.rstrip().endswith(b":"))
            if FRAME.match(line) and not is_sample:
                self.frames.append(line)
                return
            if not is_sample and self.header is not None and line.strip():
                if self.frames and SOURCE.match(line):
                    self.frames[-1] += b"\n" + line
                return
        self.finish()
        if not line.strip() or line.startswith(b"#"):
            return
        record = RECORD.match(line)
        self.header = None if record else header_of(line)
        if record:
            self._record(record["kind"], record["rest"])
        elif self.header is None:
            self.skipped += 1

    def _record(self, kind: bytes, rest: bytes) -> None:
        """Read what happened to a process."""
        if kind.startswith(b"MMAP") and (found := MMAP.match(rest)):
            start, size, offset = (int(found[each], 16) for each in ("start", "size", "offset"))
            is_code = found["access"][:4] == b"x" or b"x" in found["access"]
            if is_code and size and start + size <= TOP:
                pid = int(found["pid"])
                file = KERNEL_FILE if found["file"].startswith(KERNEL_FILE) else found["file"]
                identity = (found["id"], IdOrigin.RECORDED) if found["id"] else ()
                mapping = MappingKey(start, start + size, offset, file, AddressKind.PROCESS, *identity)
                self.too_many_mappings += self._mapped(pid).map(mapping)
        elif kind == b"FORK" and (fork := FORK.match(rest)):
            child, thread, parent = (int(each) for each in fork.groups())
            self.process_of[thread] = child
            if child != parent:
                self.spaces.pop(child, None)  # of another process that had the number
                if parent in self.others or (parent in self.spaces and self.spaces[parent].mappings):
                    self._mapped(child).mappings = self.spaces[parent].mappings if parent in self.spaces else ()
        elif kind == b"COMM" and (execution := EXEC.match(rest)):
            self.spaces.pop(int(execution[1]), None)

    def _space(self, pid: int) -> ScriptSpace:
        """What is mapped in a process."""
        if pid not in self.spaces and len(self.spaces) >= MAX_PROCESSES:
            return ScriptSpace()
        return self.spaces.setdefault(pid, ScriptSpace())

    def _mapped(self, pid: int) -> ScriptSpace:
        """What is mapped in a process, to which something is added."""
        space = self._space(pid)
        if pid not in self.spaces:
            self.others.add(pid)
        return space

    def finish(self) -> None:
        """Count the sample that was read."""
        header, self.header = self.header, None
        frames, self.frames = self.frames, []
        if header is None:
            return
        is_bare = header["event"] is None and NUMBERS.match(header["rest"]) is not None
        if not frames and (is_bare or MEMORY_OPERATION in header["rest"]):
            self.unclear += 1
            return
        if not frames and (one := one_frame(header["rest"])):
            frames = [one]
        if not frames and not is_whole(header):
            self.skipped += 1
            return
        labels: list[Label] = []
        if header["comm"] is not None:
            labels.append((b"comm", header["comm"].strip()))
        tid = int(header["tid"] or 0)
        if header["tid"]:
            labels.append((b"tid", tid))
        pid = int(header["pid"]) if header["pid"] else self.process_of.get(tid)
        if pid is None:
            pid = tid if tid in self.spaces else self._only_process()
        if header["pid"]:
            labels.append((b"pid", pid))
        event = self.events.setdefault((header["event"] or b"").rstrip(b":"), len(self.events))
        period = header["period"]
        if header["event"] is None and PERIOD.match(header["rest"]):
            period = header["rest"]
        self.has_period |= period is not None
        value = int(period or 0)
        self.stacks.add(self._stack(self._space(pid), frames), tuple(labels), event, value)

    def _only_process(self) -> int:
        """The process, if there is only one; perf prints threads without their processes."""
        known = [pid for pid in self.spaces if pid > 0 and self.spaces[pid].mappings]
        return known[0] if len(known) == 1 and not self.others else 0

    def _stack(self, space: ScriptSpace, texts: list[bytes]) -> tuple[int, ...]:
        """The locations of a stack."""
        stack: list[int] = []
        inlined: list[bytes] = []
        was_kernel = False
        lines = space.lines
        for text in texts:
            line = lines.get(text)
            if line is None:
                line = lines[text] = Line(text)
            if line.is_inlined:
                inlined.append(text)
                continue
            # The kernel calls no process, so that there is none of it among the callers of one.
            is_kernel = line.is_kernel and (was_kernel or not stack)
            # Where the kernel was entered the process may have been at any instruction.
            is_call = bool(stack) and (is_kernel or not was_kernel)
            was_kernel = is_kernel
            is_by_line = not inlined and is_kernel == line.is_kernel
            location = (line.call if is_call else line.leaf) if is_by_line else NONE
            if location == NONE:
                location = self._locate(space, [*inlined, text], is_call, is_kernel)
                inlined.clear()
                if is_by_line and is_call:
                    line.call = location
                elif is_by_line:
                    line.leaf = location
            if location != NO_FRAME:
                stack.append(location)
        if inlined and (location := self._locate(space, inlined, bool(stack), was_kernel)) != NO_FRAME:
            stack.append(location)
        return tuple(stack)

    def _locate(self, space: ScriptSpace, lines: list[bytes], is_call: bool, is_kernel: bool) -> int:
        """The location of an address, with the frames that lines have for it, innermost first."""
        frames, ip, file, told = [], 0, b"", None
        for line in lines:
            shown, _, source = line.partition(b"\n")
            found = FRAME.match(shown)
            if found is None:
                self.skipped += 1
                return NO_FRAME
            what = found["what"] or b""
            split = WHAT.match(what)
            symbol, file = (split["symbol"], split["file"]) if split else (what, b"")
            ip = int(found["ip"], 16)
            name = OFFSET.sub(b"", symbol.strip())
            told = stand_in(name)
            at = SOURCE.match(source) if source else None
            if name and (told is None or (told.may_be_name and at)):
                frames.append(TextFrame(name, at["file"] if at else b"", int(at["line"]) if at else 0))
        if in_file := FILE_OFFSET.search(file):
            file, ip = file[: in_file.start()], int(in_file[1], 16)
            if is_path(file) and ip < MAX_OFFSET:
                told = StandIn(file, offset=ip, is_in_bytes=True)
        if is_call:
            ip, told = max(ip - 1, 0), in_call(told) if told is not None else None
        return self.stacks.location(*self._mapping(space, ip, file, told, is_kernel), frames)

    def _mapping(
        self, space: ScriptSpace, ip: int, file: bytes, told: StandIn | None, is_kernel: bool
    ) -> tuple[int, int]:
        """The row of the mapping of an address, and the address in it; `told` is what else is said of where it is."""
        found = (self._space(KERNEL_PID) if is_kernel else space).at(ip, file)
        if found is not None:
            return self.stacks.mapping(found[0]), found[1]
        if is_kernel:
            module = file if KERNEL_MODULE.fullmatch(file) else KERNEL_FILE
            return self.stacks.mapping(MappingKey(0, TOP, 0, module, AddressKind.KERNEL)), ip
        if told is not None and told.module and told.offset is not None:
            key, address = place_of(told)
            if key is not None:
                is_same = file.rpartition(b"/")[2] == told.module.rpartition(b"/")[2]
                return self.stacks.mapping(key._replace(file=file) if is_same else key), address
        if not file or file == UNKNOWN:
            return NONE, ip
        is_file = is_path(file)
        if is_file and ip < MAX_OFFSET:
            return self.stacks.mapping(MappingKey(0, TOP, 0, file, AddressKind.OFFSET)), ip
        self.unlocated += is_file
        return self.stacks.mapping(MappingKey(0, TOP, 0, file, AddressKind.NO_BINARY)), ip

    def profile(self) -> Profile:
        """The profile of what was read."""
        warnings = self.stacks.warnings
        if self.unlocated:
            warnings.append(
                f"{self.unlocated} addresses cannot be looked up, because the mappings were not printed: use `perf "
                "script --show-mmap-events --show-task-events -F +pid`, or give the perf.data itself."
            )
        if self.others:
            warnings.append(f"{len(self.others)} processes are too many: what is mapped in them was left out.")
        if self.too_many_mappings:
            warnings.append(
                f"{self.too_many_mappings} mappings were left out: processes have more than {MAX_MAPPINGS}."
            )
        if self.unclear:
            warnings.append(
                f"Samples whose columns cannot be told apart: {self.unclear}; they are left out: print them with `perf "
                "script -F comm,pid,tid,time,event,period,ip,sym,dso`."
            )
        if self.skipped:
            warnings.append(f"Lines that are no samples of perf: {self.skipped}; they are left out.")
        types: list[tuple[bytes, bytes]] = []
        for event in self.events:
            begin = event + b"_" if event else b""
            types.append((begin + b"sample", b"count"))
            types.append((begin + b"event", b"nanoseconds" if CLOCK.match(event) else b"count"))
        kept = (types, BOTH) if self.has_period else (types[::2], COUNTS)
        profile = self.stacks.build(*kept)
        show_first_event(profile, 2 if self.has_period else 1)
        set_leaves(profile, LeafKind.EXACT, StackSource.FRAME_POINTERS)
        return profile
