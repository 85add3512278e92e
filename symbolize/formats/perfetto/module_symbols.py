"""Symbols out, as packets of a Perfetto trace: ModuleSymbols, which Perfetto reads behind the trace they are of."""

import os
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Bool, Int64, UInt8, UInt64, distinct_inverse, is_among, offsets_of, ranges
from symbolize.core.errors import UsageError
from symbolize.core.protobuf import LAST_BYTE, field
from symbolize.formats.files import write_pieces
from symbolize.profile.model import Profile
from symbolize.proto import perfetto_trace_tags as tags

MAX_PACKET: Final = 4 << 20
"""Bytes of symbols in one packet, from which on a module goes on in another one."""


class ModuleSymbols:
    """The symbols that were found for the frames of a trace: each module, address and its lines once (R230, module
    symbols). `addresses` counts the addresses that have symbols.

    They are for the frames whose mapping has the same path, slashes included, and the same bytes as build id, and whose
    rel_pc is the address; nothing of it is corrected. Only lines that a lookup found and that have a function name are
    written. An import adds to other packets, so that a module may have several.
    """

    def __init__(self) -> None:
        self.addresses = 0
        self._seen: dict[tuple[bytes, bytes], UInt64] = {}
        self._packets: list[bytes] = []

    @property
    def modules(self) -> int:
        """How many modules have symbols."""
        return len(self._seen)

    def add(self, profile: Profile, resolved: Bool) -> None:
        """Take the lines of the locations `resolved` (bool[n]), which a lookup found. What was taken before stays.

        Raises UsageError if the profile is not of a Perfetto trace.
        """
        locations = profile.locations
        if len(locations.rel_pc) != len(locations):
            raise UsageError("symbols for a trace can only be made of the profiles of a Perfetto trace")
        named = profile.functions.name[locations.lines.function] != 0
        total = offsets_of(named)
        has_name = total[locations.line_offsets[1:]] > total[locations.line_offsets[:-1]]
        rows_of: dict[tuple[bytes, bytes], list[Int64]] = {}
        taken = np.flatnonzero(resolved & has_name & (locations.mapping >= 0))
        taken = taken[np.argsort(locations.mapping[taken], kind="stable")]
        edges = np.searchsorted(locations.mapping[taken], np.arange(len(profile.modules) + 1))
        for mapping, module in enumerate(profile.modules):
            if edges[mapping] < edges[mapping + 1]:
                rows_of.setdefault(module, []).append(taken[edges[mapping] : edges[mapping + 1]])
        lines = _Lines(profile, named) if rows_of else None
        for module, parts in rows_of.items():
            rows = np.concatenate(parts)
            # Of equal addresses the first stays: where Chromium's callers were moved, the one that was not.
            known = self._seen.get(module, np.zeros(0, np.uint64))
            rows = rows[~is_among(locations.rel_pc[rows], known)]
            order = rows[np.argsort(locations.rel_pc[rows], kind="stable")]
            addresses = locations.rel_pc[order]
            first = np.ones(len(order), np.bool_)
            first[1:] = addresses[1:] != addresses[:-1]
            self._seen[module] = np.concatenate((known, addresses[first]))
            self.addresses += int(first.sum())
            if lines is not None:
                self._packets += (_packet(*module, symbols) for symbols in lines.symbols(order[first]))

    def pieces(self) -> Iterator[bytes]:
        """The packets, a trace without anything else."""
        yield from self._packets

    def encode(self) -> bytes:
        """The bytes of all packets."""
        return b"".join(self._packets)

    def write(self, destination: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the packets to a path, to `-` (standard output) or to a binary file object. Raises OutputError."""
        write_pieces(self._packets, destination)


def _packet(path: bytes, build_id: bytes, symbols: bytes) -> bytes:
    """A packet with symbols of a module, whose name and build id are those of the trace."""
    content = field(tags.MODULE_SYMBOLS_PATH, path) + field(tags.MODULE_SYMBOLS_BUILD_ID, build_id) + symbols
    return field(tags.TRACE_PACKET, field(tags.TRACE_PACKET_MODULE_SYMBOLS, content))


class _Lines:
    """The lines of a profile as they are written: for each its content, which begins with that of its function."""

    def __init__(self, profile: Profile, named: Bool) -> None:
        locations, functions = profile.locations, profile.functions
        # A line without the name of a function is useless there.
        kept = np.flatnonzero(named)
        self.offsets = offsets_of(named)[locations.line_offsets]
        self.rel_pc = locations.rel_pc
        used, self.function = distinct_inverse(locations.lines.function[kept].astype(np.int64))
        texts = [_names(profile, int(functions.name[row]), int(functions.filename[row])) for row in used.tolist()]
        self.texts = np.frombuffer(b"".join(texts), np.uint8)
        self.text_offsets = offsets_of(list(map(len, texts)))
        line = locations.lines.line[kept]
        # Lines are 32 bits there.
        self.line = np.where((line > 0) & (line < 1 << 32), line, 0).astype(np.uint64)
        self.text_size = np.diff(self.text_offsets)[self.function]
        self.size = self.text_size + np.where(self.line > 0, 1 + _varint_size(self.line), 0)
        whole = 1 + _varint_size(self.size) + self.size
        self.ends = offsets_of(whole)

    def symbols(self, rows: Int64) -> Iterator[bytes]:
        """The AddressSymbols of locations, in parts of some size."""
        content = self.ends[self.offsets[rows + 1]] - self.ends[self.offsets[rows]]
        content = content + 1 + _varint_size(self.rel_pc[rows])
        total = np.cumsum(content + 1 + _varint_size(content))
        begin = 0
        while begin < len(rows):
            before = int(total[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(total, before + MAX_PACKET, side="right")), begin + 1)
            yield self._part(rows[begin:end], content[begin:end])
            begin = end

    def _part(self, rows: Int64, content: Int64) -> bytes:
        """The AddressSymbols of some locations, which have `content` bytes inside."""
        address = self.rel_pc[rows]
        head = 2 + _varint_size(content) + _varint_size(address)
        whole = 1 + _varint_size(content) + content
        at = np.cumsum(whole) - whole
        out = np.empty(int(whole.sum()), np.uint8)
        out[at] = tags.MODULE_SYMBOLS_ADDRESS_SYMBOLS
        _put_varints(out, at + 1, content)
        out[at + 1 + _varint_size(content)] = tags.ADDRESS_SYMBOLS_ADDRESS
        _put_varints(out, at + 2 + _varint_size(content), address)
        counts = self.offsets[rows + 1] - self.offsets[rows]
        line = ranges(self.offsets[rows], counts)
        pos = np.repeat(at + head - self.ends[self.offsets[rows]], counts) + self.ends[line]
        size = self.size[line]
        out[pos] = tags.ADDRESS_SYMBOLS_LINES
        _put_varints(out, pos + 1, size)
        pos = pos + 1 + _varint_size(size)
        function, length = self.function[line], self.text_size[line]
        out[ranges(pos, length)] = self.texts[ranges(self.text_offsets[function], length)]
        numbered = self.line[line] > 0
        pos = (pos + length)[numbered]
        out[pos] = tags.LINE_LINE_NUMBER
        _put_varints(out, pos + 1, self.line[line][numbered])
        return out.tobytes()


def _names(profile: Profile, name: int, file: int) -> bytes:
    """The fields of a function: its name and its file, if that is known."""
    strings = profile.strings
    text = field(tags.LINE_FUNCTION_NAME, _utf8(strings[name]))
    return text + field(tags.LINE_SOURCE_FILE_NAME, _utf8(strings[file])) if file else text


def _utf8(text: bytes) -> bytes:
    """The same text; bytes that are not UTF-8, which readers may refuse, as `\\xNN`."""
    return text if text.isascii() else text.decode("utf-8", "backslashreplace").encode()


def _varint_size(values: NDArray[Any]) -> Int64:
    """How many bytes each number takes."""
    rest = values.astype(np.uint64)
    size = np.ones(len(rest), np.int64)
    while (more := rest >= np.uint64(LAST_BYTE)).any():
        size += more
        rest >>= np.uint64(7)
    return size


def _put_varints(out: UInt8, at: Int64, values: NDArray[Any]) -> None:
    """Write each number to `out`, from `at` on."""
    rest, pos = values.astype(np.uint64), at
    while len(rest):
        more = rest >= np.uint64(LAST_BYTE)
        out[pos] = (rest & np.uint64(0x7F)).astype(np.uint8) | (more.astype(np.uint8) << 7)
        rest, pos = rest[more] >> np.uint64(7), pos[more] + 1
