"""The container of the Firefox Profiler that keeps long arrays beside its JSON (`.jslb`), as one JSON text (R498, slabs
of Firefox' profiles)."""

import json
import re
import struct
from collections.abc import Iterator
from math import isfinite
from typing import Final

import numpy as np

from symbolize.core.errors import InputError
from symbolize.core.records import record

VERSION: Final = 1
HEADER: Final = struct.Struct("<8xIII")
"""Behind the magic: the version, how many slabs there are, and which of them is the root."""
ROW: Final = struct.Struct("<III")
"""The type of a slab, where it begins, and its size in bytes."""
ARRAYS: Final = ("i1", "u1", "<i2", "<u2", "<i4", "<u4", "<f4", "<f8", "<i8", "<u8")
JSON: Final = len(ARRAYS)
PLACEHOLDER: Final = re.compile(rb'\{\s{0,9}"\$s"\s{0,9}:\s{0,9}(\d{1,9})\s{0,9}\}')
"""What stands for a slab. In a string its quotes are behind backslashes."""
MAX_DEPTH: Final = 16
"""Slabs of JSON in each other."""
MAX_GROWTH: Final = 64
"""Bytes of text for one of the container, as many slabs may stand for the same one."""
CHUNK: Final = 1 << 16
"""Numbers that are written at a time."""


@record(frozen=True)
class Slabs:
    """The slabs of a container `data`, which people know as `source`."""

    data: memoryview
    source: str

    def text(self) -> bytearray:
        """The JSON text in which each slab stands where it belongs. Raises InputError."""
        version, count, root = self._unpack(HEADER, 0)
        if version != VERSION:
            raise InputError(self.source, f"is a container of version {version}; version {VERSION} is read")
        if root >= count:
            raise self._damaged(0, f"slab {root} of {count} is the root")
        result = bytearray()
        for number, piece in enumerate(self._pieces(root, count, 0)):  # pieces may be empty
            result += piece
            if number + len(result) > MAX_GROWTH * len(self.data):
                raise self._damaged(0, "its slabs stand for each other too often")
        return result

    def _pieces(self, number: int, count: int, depth: int) -> Iterator[bytes | memoryview]:
        """The text of a slab."""
        at = HEADER.size + number * ROW.size
        kind, begin, size = self._unpack(ROW, at)
        if begin + size > len(self.data) or kind > JSON or depth > MAX_DEPTH:
            raise self._damaged(at, f"slab {number} is beyond the end, of an unknown type or in itself")
        slab = self.data[begin : begin + size]
        if kind != JSON:
            yield from self._numbers(slab, np.dtype(ARRAYS[kind]), at)
            return
        done = 0
        for match in PLACEHOLDER.finditer(slab):
            if int(match[1]) >= count:
                raise self._damaged(begin + match.start(), f"there is no slab {int(match[1])}")
            yield slab[done : match.start()]
            yield from self._pieces(int(match[1]), count, depth + 1)
            done = match.end()
        yield slab[done:]

    def _numbers(self, slab: memoryview, kind: np.dtype[np.generic], at: int) -> Iterator[bytes]:
        """A list of numbers; what JSON has no number for is null."""
        if len(slab) % kind.itemsize:
            raise self._damaged(at, "a slab ends within a number")
        array = np.frombuffer(slab, kind)
        yield b"["
        for begin in range(0, len(array), CHUNK):
            values = array[begin : begin + CHUNK].tolist()
            if kind.kind == "f":
                values = [each if isfinite(each) else None for each in values]
            yield (b"," if begin else b"") + json.dumps(values, separators=(",", ":")).encode()[1:-1]
        yield b"]"

    def _unpack(self, row: struct.Struct, at: int) -> tuple[int, ...]:
        if at + row.size > len(self.data):
            raise self._damaged(at, "it ends in the table of slabs")
        found: tuple[int, ...] = row.unpack_from(self.data, at)
        return found

    def _damaged(self, at: int, problem: str) -> InputError:
        return InputError(self.source, f"is damaged at offset {at:#x}: {problem}")
