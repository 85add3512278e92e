"""The instructions and functions of a file with code, as far as evidence asks for them.

Functions are decoded from their begin on (R374, instructions of a file), so that a decoder that went astray
goes no further than one of them; only those that hold what is asked.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import proxy

import numpy as np

from symbolize.core.arrays import TOP, Bool, Int8, UInt64, distinct_inverse
from symbolize.elf import ElfImage, code_around
from symbolize.elf.call_frames import frame_ranges
from symbolize.elf.call_sites import BL, BL_MASK, CALL_REL32
from symbolize.elf.plt import TABLES
from symbolize.evidence.x86_code import X86Function, decoded
from symbolize.symbols import Binary

if TYPE_CHECKING:
    from capstone import Cs

    from symbolize.core.disassembly import Instruction

X86: Final = frozenset({"EM_X86_64", "EM_386"})
MAX_PADDING: Final = 4096
"""Bytes between two functions, at most, that are looked at for being padding."""
PADDING: Final = frozenset({"nop", "int3", "udf"})
"""Instructions that fill the space between functions, where nothing runs. Others may be code of assembler without call
frame information or the size of a symbol."""
FILLING: Final = re.compile(rb"(?:\xcc|\x66{0,6}(?:\x90|\x2e?\x0f\x1f(?:\0|\x40\0|\x44\0\0|\x80\0{4}|\x84\0{5})))*")
"""INT3 and NOP of x86 as assemblers and linkers write them."""
MAX_BODY: Final = 1 << 16
"""Bytes of a function that are decoded: its first."""
MAX_DECODED: Final = 1 << 22
"""Bytes of a file that are decoded for a mapping, a second's work; of other functions nothing is known then."""
MAX_KEPT: Final = 1 << 21
"""Instructions of a file that are kept for the next mapping."""
MAX_JUMPS: Final = 4
"""Tail calls between a call and the next frame, at most."""
MAX_REACHED: Final = 64
"""Functions that are looked into for one call."""

LOCK: Final = 0xF0
CALL_SIZE: Final = 5
BEFORE, BEHIND = 5, 5


class CodePlace(IntEnum):
    """Where a vaddr is in a file."""

    UNKNOWN = 0
    """In code of which no function is known."""
    FUNCTION = 1
    STUB = 2
    """An entry of a procedure linkage table."""
    PADDING = 3
    """Between two functions."""
    OUTSIDE = 4
    """In no code."""


class Body(NamedTuple):
    """A decoded function: where its instructions begin, up to `end`, and where it jumps to beyond its bounds.

    `is_open`: it jumps to where a register or memory says, or is not decoded to its end.
    """

    starts: UInt64
    end: int
    jumps: Sequence[int]
    is_open: bool


class DecodedCode:
    """The code of a binary, which `image`, its `loaded` file, has; vaddrs are those in that.

    Functions are decoded from their begin on, by call frame information, else by symbols with a size or the line table
    of Go; only those that hold what was sampled. An address inside an instruction contradicts, and one in padding
    between two functions, or in no code; behind a `lock` prefix, over which older C libraries jump, an instruction may
    begin. Entries of procedure linkage tables agree. Code of which no function is known says nothing: assembler may
    have neither call frame information nor sizes. On machines whose instructions have one length only the place counts
    (R374, instructions of a file).
    """

    def __init__(self, binary: Binary, image: ElfImage) -> None:
        self._binary = proxy(binary)  # which this is kept for, by the judge
        self.image = image
        self._bodies: dict[int, Body | None] = {}
        self._gaps: dict[int, bool] = {}
        self._budget = MAX_DECODED
        self._kept = 0

    @classmethod
    def of(cls, binary: Binary) -> "DecodedCode | None":
        """That of a binary; None without the bytes, or if it is not linked."""
        image = binary.code
        return None if image is None or image.is_relocatable else cls(binary, image)

    def renew(self) -> None:
        """Allow for MAX_DECODED bytes again, for the next mapping; much that is decoded is forgotten."""
        self._budget = MAX_DECODED
        if self._kept > MAX_KEPT:
            self._bodies.clear()
            self._kept = 0

    @property
    def varies_in_length(self) -> bool:
        """Whether instructions differ in length, so that few addresses begin one by chance, and can be decoded."""
        return self.image.machine in X86

    @property
    def is_readable(self) -> bool:
        """Whether instructions of the machine are decoded."""
        return self._decoder is not None

    def instructions(self, begin: int, end: int) -> "list[Instruction]":
        """The instructions from `begin` up to `end`, those in MAX_BODY bytes at most."""
        from symbolize.core.disassembly import Instruction

        decoder, data = self._decoder, self._bytes(begin, min(end - begin, MAX_BODY))
        if decoder is None:
            return []
        decoder.skipdata = True
        lines = decoder.disasm_lite(data, begin)
        found = [Instruction(vaddr, size, f"{name} {operands}".rstrip()) for vaddr, size, name, operands in lines]
        decoder.skipdata = False
        return found

    def places(self, vaddrs: UInt64) -> Int8:
        """Where `vaddrs` are, a `CodePlace` each."""
        return self._located(vaddrs)[0]

    def functions(self, vaddrs: UInt64) -> tuple[UInt64, UInt64]:
        """Begin and end of the functions at `vaddrs`, by call frame information, else by sized symbols; 0 and 0 where
        none is known."""
        return self._located(vaddrs)[1:]

    def _located(self, vaddrs: UInt64) -> tuple[Int8, UInt64, UInt64]:
        """The places of `vaddrs`, and begin and end of their functions. Symbols, of which a file may have a million,
        are read where there is no call frame information."""
        place = np.full(len(vaddrs), CodePlace.OUTSIDE, np.int8)
        begin, end = (np.zeros(len(vaddrs), np.uint64) for _ in range(2))
        place[within(vaddrs, *self._sections)] = CodePlace.UNKNOWN
        place[within(vaddrs, *self._stubs)] = CodePlace.STUB
        for ranges in ("_frames", "_symbols"):
            waiting = np.flatnonzero(place == CodePlace.UNKNOWN)
            if len(waiting):
                begins, ends = getattr(self, ranges)
                at = np.searchsorted(begins, vaddrs[waiting], side="right") - 1
                waiting, at = waiting[at >= 0], at[at >= 0]
                waiting, at = waiting[ends[at] > vaddrs[waiting]], at[ends[at] > vaddrs[waiting]]
                place[waiting], begin[waiting], end[waiting] = CodePlace.FUNCTION, begins[at], ends[at]
        waiting = np.flatnonzero(place == CodePlace.UNKNOWN)
        if len(waiting):
            begins, ends = self._between
            at = np.searchsorted(ends[:-1], vaddrs[waiting], side="right")
            first, last = begins[at], ends[at]
            place[waiting[first > vaddrs[waiting]]] = CodePlace.FUNCTION  # in a function around another one
            gaps = zip(first.tolist(), last.tolist(), strict=True)
            is_padding = [begin <= end and self._is_padding(begin, end) for begin, end in gaps]
            place[waiting[np.array(is_padding, np.bool_)]] = CodePlace.PADDING
        return place, begin, end

    def has_frame(self, vaddrs: UInt64) -> Bool:
        """Which of `vaddrs` have call frame information."""
        begin, end = self._frames
        return within(vaddrs, begin, np.maximum.accumulate(end))

    def begins_instruction(self, vaddrs: UInt64) -> Int8:
        """Whether an instruction begins at each of `vaddrs`: 1, 0, or -1 where that is not known."""
        places, begin, end = self._located(vaddrs)
        result = np.full(len(vaddrs), -1, np.int8)
        result[(places == CodePlace.PADDING) | (places == CodePlace.OUTSIDE)] = 0
        result[places == CodePlace.STUB] = 1
        inside = np.flatnonzero(places == CodePlace.FUNCTION)
        if not self.varies_in_length:
            result[inside] = 1
            return result
        begin, end = begin[inside], end[inside]
        begins, which = distinct_inverse(begin)
        for number, first in enumerate(begins.tolist()):
            here = inside[which == number]
            body = self.body(first, int(end[which == number][0]))
            if body is not None:
                asked = vaddrs[here]
                known = asked < np.uint64(body.end)
                result[here[known]] = np.isin(asked[known], body.starts)
        return result

    def body(self, begin: int, end: int) -> Body | None:
        """The function from `begin` to `end`, decoded; None if it cannot be, or was too much."""
        if begin not in self._bodies:
            size = min(end - begin, MAX_BODY)
            if size > self._budget:
                return None
            self._budget -= size
            body = self._bodies[begin] = self._decode(begin, end)
            self._kept += len(body.starts) if body is not None else 0
        return self._bodies[begin]

    def targets(self, vaddrs: UInt64) -> UInt64:
        """Where the direct calls lead that begin at `vaddrs`, have their last byte there, or return there; 0 where none
        does. What leads to no code is none."""
        code = code_around(self.image, vaddrs, BEFORE, BEHIND)
        result = np.zeros(len(vaddrs), np.uint64)
        if self.image.machine in X86:
            # A profile has an address inside the call, as its last byte, or against the rules the return address.
            for column in (BEFORE, BEFORE - CALL_SIZE, BEFORE - CALL_SIZE + 1):
                parts = code[:, column + 1 : column + CALL_SIZE]
                here = (code[:, column] == CALL_REL32) & (parts >= 0).all(axis=1)
                distance = parts @ (1 << 8 * np.arange(4))
                distance = np.where(distance >> 31, distance - (1 << 32), distance)
                start = vaddrs + np.uint64(column) - np.uint64(BEFORE)
                found = start + np.uint64(CALL_SIZE) + distance.astype(np.uint64)
                result = np.where(here & within(found, *self._sections), found, result)
        elif self.image.machine == "EM_AARCH64" and not self.image.big_endian:
            start = vaddrs & ~np.uint64(3)
            for back in (4, 0):
                at = start - np.uint64(back)
                parts = code_around(self.image, at, 0, 4)
                word = parts @ (1 << 8 * np.arange(4))
                here = (parts >= 0).all(axis=1) & (word & BL_MASK == BL)
                distance = (word & 0x3FFFFFF) << 2
                distance = np.where(distance >> 27, distance - (1 << 28), distance)
                found = at + distance.astype(np.uint64)
                result = np.where(here & within(found, *self._sections), found, result)
        return result

    def leads_to(self, target: int, vaddr: int) -> bool | None:
        """Whether the function at `target` holds `vaddr`, or jumps directly to one that does; None if it may by ways
        that are not decoded (R375, targets of calls).

        It follows four jumps at most; a function that jumps through a register says nothing.
        """
        waiting, seen = [target], {target}
        is_open = False
        for _ in range(MAX_JUMPS + 1):
            following: list[int] = []
            located = (column.tolist() for column in self._located(np.array(waiting, np.uint64)))
            for place, begin, end in zip(*located, strict=True):
                if place in (CodePlace.STUB, CodePlace.UNKNOWN):
                    is_open = True
                if not end:
                    continue
                if begin <= vaddr < end:
                    return True
                body = self.body(begin, end)
                if body is None or body.is_open:
                    is_open = True
                following += [jump for jump in (body.jumps if body is not None else ()) if jump not in seen]
                seen.update(following)
                if len(seen) > MAX_REACHED:
                    return None
            waiting = following
            if not waiting:
                break
        return None if is_open or waiting else False

    @cached_property
    def _frames(self) -> tuple[UInt64, UInt64]:
        return frame_ranges(self.image)

    @cached_property
    def _symbols(self) -> tuple[UInt64, UInt64]:
        """Begins, ascending, and ends of the functions by symbols with a size, or by the line table of Go."""
        begin, end = self._binary.sized_functions()
        shift = np.uint64(self._binary.shift)
        return begin - shift, end - shift

    @cached_property
    def _sections(self) -> tuple[UInt64, UInt64]:
        return self.image.code_ranges

    @cached_property
    def _stubs(self) -> tuple[UInt64, UInt64]:
        tables = [s for s in self.image.sections if s.name in TABLES and s.size]
        ranges = sorted((s.vaddr, min(s.vaddr + s.size, TOP)) for s in tables)
        begin, end = (np.array(column, np.uint64) for column in (zip(*ranges, strict=True) if ranges else ([], [])))
        return begin, end

    @cached_property
    def _between(self) -> tuple[UInt64, UInt64]:
        """Begins and ends, ascending, of what is in front of, between and behind all functions and stubs."""
        parts = [self._frames, self._symbols, self._stubs]
        begin, end = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], np.maximum.accumulate(end[order]) if len(order) else end
        is_new = np.append(True, begin[1:] > end[:-1]) if len(begin) else np.zeros(0, np.bool_)
        last = np.append(is_new[1:], True) if len(begin) else is_new
        return np.append(np.uint64(0), end[last]), np.append(begin[is_new], ~np.uint64(0))

    def _decode(self, begin: int, end: int) -> Body | None:
        data = self._bytes(begin, min(end - begin, MAX_BODY))
        if not data:
            return None
        if self.image.machine == "EM_X86_64" and (found := decoded(data, end - begin)) is not None:
            return body_of(found, data, begin, end)
        decoder = self._decoder
        if decoder is None:
            return None
        starts: list[int] = []
        jumps: dict[int, None] = {}
        is_open = False
        position = begin
        for vaddr, length, mnemonic, operands in decoder.disasm_lite(data, begin):
            starts.append(vaddr)
            if data[vaddr - begin] == LOCK and self.varies_in_length:
                starts.append(vaddr + 1)  # glibc jumps over the prefix while there is one thread
            position = vaddr + length
            if is_jump(mnemonic):
                target = jump_target(operands)
                if target is None:
                    is_open = True
                elif not begin <= target < end:
                    jumps[target] = None
        return Body(np.array(starts, np.uint64), position, list(jumps), is_open or position < end)

    def _is_padding(self, begin: int, end: int) -> bool:
        """Whether nothing but padding is between two functions."""
        if begin not in self._gaps:
            size = end - begin
            if size <= MAX_PADDING:
                if size > self._budget:
                    return False
                self._budget -= size
            data = self._bytes(begin, size) if begin and size <= MAX_PADDING else b""
            filled = 0 if data.strip(b"\0") else len(data)
            if self.varies_in_length and FILLING.fullmatch(data):
                filled = len(data)
            elif not filled and self._decoder is not None:
                decoded = self._decoder.disasm_lite(data, begin)
                filled = sum(length for _, length, mnemonic, _ in decoded if mnemonic in PADDING)
            self._gaps[begin] = len(data) > 0 and filled == len(data)
        return self._gaps[begin]

    def _bytes(self, begin: int, size: int) -> bytes:
        for segment in self.image.segments:
            if segment.executable and segment.vaddr <= begin < segment.vaddr + segment.file_size:
                at = segment.file_offset + begin - segment.vaddr
                return bytes(self.image.data[at : at + max(min(size, segment.vaddr + segment.file_size - begin), 0)])
        return b""

    @cached_property
    def _decoder(self) -> "Cs | None":
        import capstone as c

        kind = {
            "EM_X86_64": (c.CS_ARCH_X86, c.CS_MODE_64),
            "EM_386": (c.CS_ARCH_X86, c.CS_MODE_32),
            "EM_AARCH64": (c.CS_ARCH_ARM64, c.CS_MODE_LITTLE_ENDIAN),
        }.get(self.image.machine)
        return c.Cs(*kind) if kind is not None and not self.image.big_endian else None


def body_of(found: X86Function, data: bytes, begin: int, end: int) -> Body:
    """The function from `begin` to `end`, of which `data` are the first bytes, decoded."""
    offsets = np.asarray(found.starts)[: found.count]
    locked = offsets[np.frombuffer(data, np.uint8)[offsets] == LOCK] + 1  # as in `DecodedCode._decode`
    starts = np.uint64(begin) + np.concatenate((offsets, locked)).astype(np.uint64)
    jumps = [begin + offset & TOP for offset in np.asarray(found.jumps)[: found.jump_count].tolist()]
    return Body(starts, begin + found.end, list(dict.fromkeys(jumps)), found.is_open or begin + found.end < end)


def within(vaddrs: UInt64, begins: UInt64, ends: UInt64) -> Bool:
    """Which of `vaddrs` are in one of some disjoint ranges, ascending."""
    if not len(begins):
        return np.zeros(len(vaddrs), np.bool_)
    at = np.searchsorted(begins, vaddrs, side="right") - 1
    return (at >= 0) & (vaddrs < ends[at])


def is_jump(mnemonic: str) -> bool:
    """Whether an instruction may go on elsewhere without being a call: of x86 `jmp` and `jcc`, of AArch64 `b`, `br`,
    `cbz` and their kin."""
    if mnemonic.startswith("j") or " j" in mnemonic:
        return True
    return mnemonic in ("b", "br", "braa", "brab", "cbz", "cbnz", "tbz", "tbnz") or mnemonic.startswith("b.")


def jump_target(operands: str) -> int | None:
    """The vaddr that a jump names, None if a register or memory has it."""
    last = operands.rpartition(",")[2].strip().lstrip("#")
    return int(last, 16) if last.startswith("0x") else None


def called(text: str) -> int:
    """The vaddr that a call or jump in the text of an instruction names; 0 for other instructions."""
    mnemonic, _, operands = text.partition(" ")
    return (jump_target(operands) or 0) if is_jump(mnemonic) or mnemonic in ("call", "bl") else 0
