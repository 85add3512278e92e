"""OTLP messages as they came, with the lines that were found for their locations."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Protocol

import numpy as np

from symbolize.core.arrays import NONE, Bool, distinct, distinct_inverse, first_of_runs, offsets_of, ranges
from symbolize.core.errors import UsageError
from symbolize.formats.files import write_pieces
from symbolize.formats.otlp.message_writer import Found, Function, Message
from symbolize.formats.otlp.writer import utf8
from symbolize.profile.model import Profile


class Container(Protocol):
    """The messages of an input, and how to put others into the same container."""

    @property
    def messages(self) -> Sequence[memoryview]: ...

    def framed(self, messages: Iterable[bytes]) -> Iterator[bytes]: ...

    def without_names(self) -> Bool: ...

    def stacks(self, profiles: Sequence[Any]) -> Iterator[Profile]: ...


class OtlpLines:
    """The lines that were found for the locations of an input, each location once; `addresses` counts these. Locations
    that came with names keep their lines, unless it `replaces` them (R326, OTLP with lines).
    """

    def __init__(self, container: Container, *, replaces: bool = False) -> None:
        self.addresses = 0
        self._container = container
        self._modules: set[tuple[bytes, bytes]] = set()
        self._messages = [Message(data) for data in container.messages]
        self._begins = offsets_of([len(each.locations) for each in self._messages])
        self._is_open = container.without_names() | replaces
        self._functions: dict[Function, int] = {}
        self._found: list[Found] = []

    @property
    def modules(self) -> int:
        """How many binaries the locations are in."""
        return len(self._modules)

    def add(self, profile: Profile, resolved: Bool) -> None:
        """Take the lines of the locations `resolved` (bool[n]), which a lookup found. What was taken before stays, and
        of a location that was split by its callers the part that shows what the others share.

        Raises UsageError if the profile is not of an OTLP message.
        """
        locations, lines = profile.locations, profile.locations.lines
        if len(locations.source_row) != len(locations):
            raise UsageError("lines for an OTLP message can only be those of its profiles")
        rows = np.flatnonzero(resolved & locations.has_lines() & (locations.source_row != NONE))
        rows = rows[self._is_open[locations.source_row[rows]]]
        rows = rows[np.argsort(locations.source_row[rows], kind="stable")]
        rows = rows[first_of_runs(locations.source_row[rows])]
        self._is_open[locations.source_row[rows]] = False
        for mapping in distinct(locations.mapping[rows][locations.mapping[rows] != NONE]).tolist():
            pair = profile.mappings.filename[mapping], profile.mappings.build_id[mapping]
            self._modules.add((profile.strings[int(pair[0])], profile.strings[int(pair[1])]))
        counts = np.diff(locations.line_offsets)[rows]
        taken = ranges(locations.line_offsets[rows], counts)
        used, which = distinct_inverse(lines.function[taken])
        text, functions = profile.strings, profile.functions
        columns = functions.name, functions.system_name, functions.filename
        numbers = []
        for row in used.tolist():
            name, system_name, filename = (utf8(text[int(column[row])]) for column in columns)
            function = Function(name, system_name, filename, int(functions.start_line[row]))
            numbers.append(self._functions.setdefault(function, len(self._functions)))
        self.addresses += len(rows)
        self._found.append(
            Found(
                locations.source_row[rows],
                offsets_of(counts),
                np.array(numbers, np.int64)[which],
                lines.line[taken],
                lines.column[taken],
                locations.is_folded[rows],
            )
        )

    def pieces(self) -> Iterator[bytes]:
        """The input with the lines."""
        functions = list(self._functions)
        rows = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in self._found)])
        counts = np.concatenate([np.zeros(0, np.int64), *(np.diff(each.offsets) for each in self._found)])
        offsets = offsets_of(counts)
        function, line, column = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(each, name) for each in self._found)])
            for name in ("function", "line", "column")
        )
        folded = np.concatenate([np.zeros(0, np.bool_), *(each.folded for each in self._found)])
        order = np.argsort(rows)
        edges = np.searchsorted(rows[order], self._begins)

        def written() -> Iterator[bytes]:
            for number, message in enumerate(self._messages):
                mine = order[edges[number] : edges[number + 1]]
                taken = ranges(offsets[mine], counts[mine])
                found = Found(
                    rows[mine] - self._begins[number],
                    offsets_of(counts[mine]),
                    function[taken],
                    line[taken],
                    column[taken],
                    folded[mine],
                )
                yield message.with_lines(found, functions)

        yield from self._container.framed(written())

    def write(self, destination: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the input with the lines to a path, to `-` (standard output) or to a binary file object. Raises
        OutputError."""
        write_pieces(self.pieces(), destination)
