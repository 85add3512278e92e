"""The names for frames of a text: which file each is in, whether that is the build that ran, and its vaddr."""

import json
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from symbolize.binaries import is_build_id
from symbolize.core.arrays import TOP, Bool, UInt64
from symbolize.core.errors import InputError, SymbolizeError, printable
from symbolize.core.mapped_names import base_name
from symbolize.core.verdict import Verdict
from symbolize.drop_in.addresses import Addresses, Place, ShownFrame
from symbolize.drop_in.binaries import Binaries, Wanted
from symbolize.drop_in.log.forms import ADDRESS, KERNEL_FORM, At, Base, NameStyle, TraceFrame
from symbolize.drop_in.log.modules import KERNEL, MAIN, RELEASE, TextModule, TextModules, base_key
from symbolize.elf import inside_calls
from symbolize.evidence.judge import Judge, Observed
from symbolize.evidence.kernels import own_release
from symbolize.names import Mode
from symbolize.resolve.addresses import map_addresses
from symbolize.resolve.module import Module

TRAPS: Final = (
    *("EM_X86_64", "EM_386", "EM_AARCH64", "EM_PPC", "EM_PPC64", "EM_RISCV", "EM_S390", "EM_LOONGARCH"),
    *("EM_PARISC", "EM_SH"),
)
"""Machines on which the kernel warns by an instruction that traps, `__WARN_FLAGS` of `asm/bug.h`."""
CALL_REGISTERS: Final = ("EM_SPARC", "EM_SPARC32PLUS", "EM_SPARCV9")
"""Machines that keep the address of a call in place of where it returns to."""
OTHER_SIZES: Final = 2
"""Symbols of other sizes than a text has show another build; of one, the line may be damaged."""
PAGE: Final = 0xFFF
MAX_FILES: Final = 1 << 10
"""Names of files of which it is remembered what they lead to."""
MAX_SEEN: Final = 1 << 11
"""Addresses of a file that are remembered as evidence."""
ONLY_ITS_NAME: Final = "found by its name only, the text has no build id of it"

NO_FILE: Final = "there is no file of this build id or name"
NOT_SAID: Final = "the text does not say what was there"
MISFIT: Final = "the file does not fit"
UNCERTAIN: Final = "nothing shows that the file of this name is the one that ran"
NO_NAME: Final = "the file has no name there"


class Key(NamedTuple):
    """A file as texts name it: its path or name, its build id if there is one, and the release of the kernel if it is
    that or a module of it."""

    file: str
    build_id: str
    release: str = ""


class Target(NamedTuple):
    """Where a frame is: the file, and the module of the text that has its address, if that is to be used."""

    key: Key
    row: TextModule | None = None


Asked = tuple[int, TraceFrame, int]
"""A frame: its number in the text, and its vaddr."""


class TextFile:
    """A binary that frames are in, with what was seen of it."""

    def __init__(self, addresses: Addresses, shown: str, is_proved: bool, doubt: str) -> None:
        self.addresses, self.shown, self.is_proved, self.doubt = addresses, shown, is_proved, doubt
        self._seen: dict[int, At] = {}
        self._pairs: dict[tuple[int, int], None] = {}
        self._last: Asked | None = None
        self._is_sound = True
        self._others: set[bytes] = set()
        self.is_told = False

    def has_other_sizes(self, module: Module, frames: Iterable[TraceFrame]) -> bool:
        """Whether the sizes that frames have show for the first time that the file is not what ran."""
        if self.is_proved or len(self._others) >= OTHER_SIZES:
            return False
        for frame in frames:
            found = module.symbol_bounds(frame.symbol) if frame.size else []
            if found and not any(has_size(module, *each, frame.size) for each in found):
                self._others.add(frame.symbol)
        return len(self._others) >= OTHER_SIZES

    def see(self, module: Module, judge: Judge, asked: Sequence[Asked]) -> Verdict:
        """Whether the file is what ran, by these frames and all before them: proved by the build id, else as of a
        profile whose stacks have the same addresses (R386, files of texts)."""
        if self.is_proved:
            return Verdict.PROVED
        if len(self._others) >= OTHER_SIZES:
            return Verdict.REFUTED
        for before, (number, frame, vaddr) in zip([self._last, *asked], asked, strict=False):
            if not frame.symbol and len(self._seen) < MAX_SEEN:
                self._seen[vaddr] = frame.at
                if frame.follows and before is not None and before[0] == number - 1 and before[2] in self._seen:
                    self._pairs[before[2], vaddr] = None
            self._is_sound &= frame.form != ADDRESS.name  # walks along frame pointers
        self._last = asked[-1] if asked else self._last
        if not self._seen:
            return Verdict.UNVERIFIED
        number_of = {vaddr: number for number, vaddr in enumerate(self._seen)}
        vaddrs = np.array(list(self._seen), np.uint64)
        is_leaf = np.array([at is At.EXACT for at in self._seen.values()])
        pairs = np.array([[number_of[each] for each in pair] for pair in self._pairs], np.int64).reshape(-1, 2)
        inside = np.ones(len(vaddrs), np.bool_)
        columns = vaddrs, inside, is_leaf, ~is_leaf, self._is_sound, lambda: (pairs[:, 0], pairs[:, 1])
        observed = Observed(*columns, by_pointers=not self._is_sound)
        return judge.judge(module.binary, observed).verdict


class TextNames:
    """Names for frames from `binaries`. `problems` are the lines to tell, each once, about what could not be used or
    is doubtful."""

    def __init__(self, binaries: Binaries, mode: Mode) -> None:
        self._binaries, self._mode = binaries, mode
        self._files: dict[Key, TextFile | None] = {}
        self._judge = Judge()
        self._count = 0
        self.problems: list[str] = []

    def places(self, frames: Sequence[TraceFrame], targets: Sequence[Target | None]) -> list[Place | str]:
        """What is known of each frame, or why nothing is; each file is asked once for all of them."""
        result: list[Place | str] = [NOT_SAID] * len(frames)
        groups: dict[Key, list[int]] = {}
        for number, target in enumerate(targets):
            if target is not None:
                groups.setdefault(target.key, []).append(number)
        for key, numbers in groups.items():
            try:
                file = self._file(key)
                found: Sequence[Place | str] = [NO_FILE] * len(numbers)
                if file is not None:
                    found = self._asked(file, [(self._count + i, frames[i], targets[i]) for i in numbers])
            except SymbolizeError as error:
                self.problems.append(str(error))
                self._files[key] = None
                found = [NO_FILE] * len(numbers)
            for number, place in zip(numbers, found, strict=True):
                result[number] = place
        self._count += len(frames)
        return result

    def _asked(self, file: TextFile, frames: Sequence[tuple[int, TraceFrame, Target | None]]) -> list[Place | str]:
        """What is known of frames of one file, each with its number in the text. Raises SymbolizeError."""
        module = file.addresses.module()
        machine = module.binary.loaded.machine
        frames = [(row, on_machine(frame, machine), target) for row, frame, target in frames]
        vaddrs = [vaddr_of(frame, target and target.row, module, file.is_proved) for _, frame, target in frames]
        is_said = [
            frame.offset is not None or (target is not None and target.row is not None) for _, frame, target in frames
        ]
        result: list[Place | str] = [MISFIT if each else NOT_SAID for each in is_said]
        rows = [row for row, vaddr in enumerate(vaddrs) if vaddr is not None]
        asked = [(frames[row][0], frames[row][1], vaddrs[row] or 0) for row in rows]
        missing = (frame for (_, frame, _), vaddr in zip(frames, vaddrs, strict=True) if vaddr is None)
        if file.has_other_sizes(module, missing):
            self.problems.append(f"{printable(file.shown)}: is of another build: its functions have other sizes")
        verdict = file.see(module, self._judge, asked)
        if verdict is Verdict.REFUTED or not asked:
            return result
        is_certain = verdict in (Verdict.PROVED, Verdict.SUPPORTED)
        column = np.array([vaddr for _, _, vaddr in asked], np.uint64)
        calls = in_calls(module, column)
        if is_certain and calls is not None:
            # What returns to no place behind a call was interrupted by a signal there, or is where that returns to. The
            # kernel says so itself, and makes its calls of other code while it runs.
            is_open = [frame.at is At.RETURN and frame.form != KERNEL_FORM for _, frame, _ in asked]
            column += np.array(is_open) & ~calls
        is_call = [False] * len(asked) if calls is None else calls.tolist()
        places = file.addresses.places(column.tolist())
        for row, (_, frame, vaddr), place, fits in zip(rows, asked, places, is_call, strict=True):
            if is_certain or is_symbol(frame, vaddr, module) or (fits and frame.at is not At.EXACT):
                result[row] = place if place.frames else NO_NAME
            else:
                result[row] = UNCERTAIN
        if not file.is_told and any(not isinstance(each, str) for each in result):
            file.is_told = True
            doubt = file.doubt if file.is_proved else f"{verdict.name.lower()}: {ONLY_ITS_NAME}"
            if doubt:
                self.problems.append(f"{printable(file.shown)}: {doubt}")
        return result

    def _file(self, key: Key) -> TextFile | None:
        """The binary with a build id or, if a text has none, the one that is called so; None if there is none. Raises
        SymbolizeError, also for one of another kernel (R465, other kernels)."""
        if key not in self._files:
            if len(self._files) >= MAX_FILES:
                self._files.clear()
            self._files[key] = None
            name: str | None = key.build_id
            if not key.build_id:
                names = spellings(key.file, key.release)
                name = next(filter(None, (self._binaries.called(each, key.release) for each in names)), None)
            if name is not None and (not key.build_id or is_build_id(key.build_id)):
                addresses = Addresses(self._binaries, Wanted(name, bool(key.build_id)), self._mode)
                doubt = addresses.doubt if key.build_id else ""
                release = own_release(addresses.module().binary.images) if key.release and not key.build_id else ""
                if release not in ("", key.release):
                    raise InputError(name, f"is of Linux {release}, and the text is of {key.release}")
                self._files[key] = TextFile(addresses, name, bool(key.build_id), doubt)
        return self._files[key]


def target_of(frame: TraceFrame, modules: TextModules, place: int) -> Target | None:
    """Where a frame at `place` of a text is, as the text says; None if it does not."""
    if frame.is_main:
        build_id = modules.build_id(MAIN, place)
        return Target(Key("", build_id)) if build_id else None
    build_id = frame.build_id
    if frame.loaded_at:
        build_id = modules.build_id(base_key(frame.loaded_at), place)
        return Target(Key("", build_id)) if build_id else None
    if frame.offset is not None and (frame.file or build_id):
        release = modules.build_id(RELEASE, place) if frame.form == KERNEL_FORM else ""
        return Target(
            Key(modules.path(frame.file), build_id or modules.build_id(base_name(frame.file), place), release)
        )
    row = modules.at(frame.address, place) if frame.address is not None else None
    if row is not None:
        return Target(Key(row.file, row.build_id or modules.build_id(base_name(row.file), place)), row)
    if not frame.file:
        return None
    return Target(Key(modules.path(frame.file), modules.build_id(base_name(frame.file), place)))


def spellings(file: str, release: str) -> list[str]:
    """The names that a file may have: a kernel may have its release behind it, modules of the kernel have `_` in traces
    for `-`, and both have debug files."""
    names = [file, *([file.replace("_", "-")] if file.endswith(".ko") and "_" in file else [])]
    if file == KERNEL and release:
        names.insert(0, f"{file}-{release}")
    if file == KERNEL or file.endswith(".ko"):
        names += [f"{name}.debug" for name in names]
    return names if file else []


def on_machine(frame: TraceFrame, machine: str) -> TraceFrame:
    """A frame of the kernel with what its address is on a machine; others as they are."""
    if frame.at is At.WARNING:
        return frame._replace(at=At.EXACT if machine in TRAPS else At.RETURN)
    is_call = frame.form == KERNEL_FORM and frame.at is At.RETURN and machine in CALL_REGISTERS
    return frame._replace(at=At.CALL) if is_call else frame


def vaddr_of(frame: TraceFrame, row: TextModule | None, module: Module, is_proved: bool) -> int | None:
    """The vaddr of a frame, in the call if it is a return address; None if its symbol is not there, or is there more
    than once, if its address is not in the file, or if it was at another offset in a page of memory, in which files
    are mapped. That also tells symbols of one name apart, as those of the destructors of a class are."""
    back = frame.at is At.RETURN
    if frame.offset is None:
        return vaddr_in_memory(frame.address - back, row, module, is_proved) if frame.address else None

    def is_in_page(vaddr: int) -> bool:
        return frame.address is None or not (vaddr ^ (frame.address - back)) & PAGE

    vaddr = frame.offset - back
    if frame.base is Base.FILE and not frame.symbol:
        vaddr += module.base
    if frame.symbol:
        found = module.symbol_bounds(frame.symbol, frame.is_demangled)
        if frame.size:
            found = [each for each in found if has_size(module, *each, frame.size)]
        found = [each for each in found if is_in_page(vaddr + each[0])]
        if len(found) != 1:
            return None
        begin, end = found[0]
        vaddr += begin
        if vaddr >= max(end, begin + frame.size):
            return None
    return vaddr if 0 <= vaddr < TOP and is_in_page(vaddr) else None


def has_size(module: Module, begin: int, end: int, size: int) -> bool:
    """Whether the kernel counts `size` bytes to a symbol, which are those up to the next one; behind the last one of a
    section is what the kernel puts there."""
    limit = module.next_symbol(begin)
    return begin + size == limit if limit is not None else end <= begin + size


def vaddr_in_memory(address: int, row: TextModule | None, module: Module, is_proved: bool) -> int | None:
    """The vaddr of an address in memory: by the module of the text that has it, else only in a program that is always
    at the same place."""
    image = module.binary.loaded
    vaddr = address
    if row is None:
        if image.kind != "ET_EXEC":
            return None
    elif row.kind == "file":
        loaded = image.segments if image.has_code else None
        limits = row.start, row.limit, row.offset
        mapped = map_addresses(
            np.array([address], np.uint64), *limits, loaded, image.segments, kind=image.kind, verified=is_proved
        )
        return int(mapped[0][0]) if mapped is not None and mapped[1][0] else None
    elif row.kind == "text":
        section = image.find(".text")
        if section is None or row.limit - row.start != section.size:
            return None
        vaddr = address - row.start + section.vaddr
    else:
        vaddr = address - row.start + module.base
    return vaddr if any(each.vaddr <= vaddr < each.vaddr + each.memory_size for each in image.segments) else None


def is_symbol(frame: TraceFrame, vaddr: int, module: Module) -> bool:
    """Whether a vaddr was found by a symbol, or is where the text has it beside one."""
    if frame.known is None:
        return bool(frame.symbol)
    symbol, offset = frame.known
    begin = vaddr + (frame.at is At.RETURN) - offset
    return [begin] == [each for each, _ in module.symbol_bounds(symbol)]


def in_calls(module: Module, vaddrs: UInt64) -> Bool | None:
    """Which of some vaddrs are the last byte of a call; None if that is not known."""
    code = module.binary.code
    calls = None if code is None else inside_calls(code, np.concatenate([vaddrs, vaddrs + np.uint64(1)]))
    return None if calls is None else calls[: len(vaddrs)] & calls[len(vaddrs) :]


def with_names(text: bytes, frame: TraceFrame, place: Place) -> tuple[int, int, bytes] | None:
    """What a frame in a text is replaced by, as begin, end and bytes; None if the names say no more than the text."""
    if frame.has_name and not any(each.line for each in place.frames):
        return None
    if frame.style in (NameStyle.SANITIZER, NameStyle.THREAD):
        return sanitizer_lines(text, frame, place)
    names = b" (inlined by) ".join(shown(each, b" at ") for each in place.frames)
    if frame.style is NameStyle.BRACKETS:
        names = b" [" + names + b"]"
    elif frame.style in (NameStyle.STRING, NameStyle.MEMBER):
        names = json.dumps(names.decode(errors="replace")).encode()[1:-1]
        names = b',"symbolized":"' + names + b'"' if frame.style is NameStyle.MEMBER else b" " + names
    else:
        names = b" " + names
    return frame.end, frame.end, names


def sanitizer_lines(text: bytes, frame: TraceFrame, place: Place) -> tuple[int, int, bytes]:
    """The line of a frame as the runtime of a sanitizer prints it, with a line for each inlined function; that of the
    thread sanitizer has no address, and keeps the place in the file."""
    begin, end = text.rfind(b"\n", 0, frame.start) + 1, text.find(b"\n", frame.end) + 1 or len(text)
    start, old, rest = text[begin : frame.start], text[frame.start : frame.end], text[frame.end : end]
    module = old.rpartition(b" <null>")[2] if frame.style is NameStyle.THREAD else b""
    before = b"" if module else b"in "
    if not place.frames[-1].path:  # as the runtime prints a function of which only the name is known
        more = b" <null>" + module if module else b" (" + old.lstrip(b" (")
        return begin, end, start + before + encoded(place.frames[-1].shown) + more + rest
    between = b"" if rest.endswith(b"\n") else b"\n"
    return begin, end, between.join(start + before + shown(each, b" ") + module + rest for each in place.frames)


def shown(frame: ShownFrame, before_path: bytes) -> bytes:
    """A frame in a line."""
    return encoded(frame.shown) + (before_path + encoded(frame.where) if frame.path else b"")


def encoded(text: str) -> bytes:
    """Text for the output, without control characters that a file could steer a terminal with."""
    if not text.isprintable():
        text = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text)
    return text.encode()
