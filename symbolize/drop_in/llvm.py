"""What llvm-symbolizer and llvm-addr2line do: lines in, frames out, in the styles of LLVM 19.

A line is a command, a file and an address, of which the address alone has to be there. The forms, and what is wrong
with other lines, are those of LLVM 19 (R382, lines of LLVM's symbolizer).
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from symbolize.core.arrays import TOP, UInt64
from symbolize.core.errors import InputError, printable
from symbolize.drop_in.binaries import Binaries, Wanted
from symbolize.drop_in.frame_rows import LLVM_FRAME, NOTHING, UNKNOWN, Row, llvm_answers, rows
from symbolize.drop_in.llvm_options import ToolOptions, integer

Command = Literal["CODE", "DATA", "FRAME"]

COMMANDS: Final[tuple[Command, ...]] = "CODE", "DATA", "FRAME"
SPACE: Final = " \t\n\v\f\r"
DELIMITERS: Final = " \n\r"
LONGEST: Final = 1023
"""Bytes of a line that are read at once; the rest of a longer one is the next line."""
MAX_SYMBOLS: Final = 64
"""Symbols of one name that are answered for."""

PLAIN: Final = re.compile(rb"(?:0x[0-9a-fA-F]{1,16}\n)+")
"""Lines with an address each and nothing else."""
NO_ANSWER: Final = LLVM_FRAME % (UNKNOWN, UNKNOWN, 0, 0) + b"\n"

Tell = Callable[[str], None]


class AddressRequest(NamedTuple):
    """One line: what is asked for, the file by its path or build id, and an address or a symbol with an offset; or what
    is wrong with it."""

    command: Command = "CODE"
    name: str = ""
    address: int = 0
    symbol: str = ""
    problem: str = ""
    is_build_id: bool = False

    @property
    def wanted(self) -> Wanted:
        """The file."""
        return Wanted(self.name, self.is_build_id)

    @property
    def shown(self) -> str:
        """The file as answers name it."""
        return self.name.upper() if self.is_build_id else self.name


def request_of(line: str, name: str, is_build_id: bool, is_gnu: bool) -> AddressRequest:
    """The request in a line; `name` is the file that the command line has, if any, and `is_build_id` what it is.

    A line is `[CODE|DATA|FRAME] [FILE:|BUILDID:] [FILE] ADDRESS`, the file maybe in quotes; where the command line
    names one, none may be in it. A number has the base that its prefix says, of llvm-addr2line 16; any other word is a
    symbol, maybe with `+OFFSET`. Wrong lines are an error and an unknown frame; a file that cannot be read is an error
    once (R382, lines of LLVM's symbolizer).
    """
    command: Command = "CODE"
    if not line:
        return AddressRequest(problem="no module offset has been specified")
    for each in COMMANDS:
        if line.startswith(f"{each} "):
            command, line = each, line[len(each) + 1 :]
            break
    prefix = ""
    while line:
        line = line.lstrip(SPACE)
        found = next((each for each in ("FILE:", "BUILDID:") if line.startswith(each)), "")
        if not found:
            break
        if prefix:
            return AddressRequest(command, name, problem="duplicate input file specification prefix")
        prefix, line = found, line[len(found) :]
    if prefix:
        line = line.lstrip(SPACE)
        if not line:
            what = "an input file" if prefix == "FILE:" else "a hash"
            return AddressRequest(command, name, problem=f"must be followed by {what}")
        if name:
            return AddressRequest(command, name, problem="input file has already been specified")
        name, line = first_word(line)
        if not name:
            return AddressRequest(command, problem="unbalanced quotes in input file name")
        if prefix == "BUILDID:":
            if not re.fullmatch("(?:[0-9a-fA-F]{2})+", name):
                return AddressRequest(command, problem="wrong format of build-id")
            is_build_id = True
    elif not name:
        name, line = first_word(line)
        if not name:
            return AddressRequest(command, problem="no input filename has been specified")
    return with_address(AddressRequest(command, name, is_build_id=is_build_id), line.strip(SPACE), is_gnu)


def first_word(text: str) -> tuple[str, str]:
    """The first word, maybe in quotes, and what follows it; an empty one where a quote is missing."""
    text = text.lstrip(DELIMITERS)
    if text[:1] in ("'", '"'):
        word, quote, rest = text[1:].partition(text[0])
        return (word, rest) if quote else ("", "")
    word = re.split(f"[{DELIMITERS}]", text, maxsplit=1)[0]
    return word, text[len(word) :]


def with_address(request: AddressRequest, text: str, is_gnu: bool) -> AddressRequest:
    """A request with the address or the symbol that the rest of its line has."""
    if not text:
        return request._replace(problem="no module offset has been specified")
    word = re.split(f"[{DELIMITERS}]", text, maxsplit=1)[0]
    starts_with_digit = word[0] in "0123456789"
    if is_gnu and word[:2] in ("0x", "0X"):
        word = word[2:]
    address = integer(word, 16 if is_gnu else 0)
    if address is not None:
        return request._replace(address=address)
    if starts_with_digit or not word:
        return request._replace(problem="expected a number as module offset")
    symbol, offset = symbol_and_offset(word)
    return request._replace(symbol=symbol, address=offset)


def symbol_and_offset(word: str) -> tuple[str, int]:
    """A symbol, and the offset behind the last `+`, 0 if there is no number there."""
    symbol, plus, offset = word.rpartition("+")
    number = integer(offset) if plus and symbol else None
    return (word, 0) if number is None else (symbol, number)


class LlvmSymbolizer:
    """Answers lines as `options` say, from `binaries`; problems are lines that `tell` gets."""

    def __init__(self, options: ToolOptions, binaries: Binaries, tell: Tell) -> None:
        self._options, self._binaries, self._tell = options, binaries, tell
        self._wanted = Wanted(options.build_id or options.object, bool(options.build_id))
        self._is_plain = bool(options.object) and options.is_plain
        self._needs_bounds = options.style == "JSON" or options.verbose

    def answers(self, lines: Sequence[bytes]) -> list[bytes]:
        """The answers to some lines, in their order; each file is asked once for all its addresses."""
        if self._options.style == "JSON":
            return [dumped(each, self._options.pretty) for each in self._data(lines)]
        if self._is_plain and PLAIN.fullmatch(b"".join(lines)):
            return self._plain(lines)
        return [self._printed(request, found) for request, found, _ in self._answered(lines)]

    def _plain(self, lines: Sequence[bytes]) -> list[bytes]:
        """The answers to lines that have an address each and nothing else, by the default options."""
        vaddrs: UInt64 = np.array([int(line, 16) for line in lines], np.uint64)
        try:
            module = self._binaries.module(self._wanted)
        except InputError as error:  # it changed meanwhile
            self._tell(f"'{printable(self._wanted.name)}': {error.problem}")
            module = None
        if module is None:
            return [NO_ANSWER] * len(lines)
        is_alone = not self._binaries.has_symbol_table(self._wanted)
        return [text + b"\n" for text in llvm_answers(module.answer(vaddrs), self._options.demangle, is_alone)]

    def listed(self, lines: Sequence[bytes]) -> list[bytes]:
        """The answers to all words of a command line, in JSON as one list."""
        if self._options.style == "JSON":
            return [dumped(self._data(lines), self._options.pretty)]
        return self.answers(lines)

    def _data(self, lines: Sequence[bytes]) -> list[dict[str, Any]]:
        return [as_answer(*each) for each in self._answered(lines)]

    def _answered(self, lines: Sequence[bytes]) -> list[tuple[AddressRequest, list[Row] | None, str]]:
        """The requests in some lines, with the frames that were found, and what is wrong with a file."""
        requests = [self._request(line) for line in lines]
        found: list[list[Row] | None] = [None] * len(requests)
        problems: dict[int, str] = {}
        groups: dict[Wanted, list[int]] = {}
        for number, request in enumerate(requests):
            if request.problem:
                if text := text_of(lines[number]):
                    self._tell(f"'{printable(text)}': {request.problem}")
            else:
                groups.setdefault(request.wanted, []).append(number)
        for wanted, numbers in groups.items():
            try:
                self._find(wanted, [(number, requests[number]) for number in numbers], found)
            except InputError as error:
                first = requests[numbers[0]]
                problems[numbers[0]] = error.problem
                if self._options.style != "JSON":
                    self._tell(f"'{printable(first.shown)}': {error.problem}")
        return [(request, found[number], problems.get(number, "")) for number, request in enumerate(requests)]

    def check(self) -> str:
        """What is wrong with the file that the command line names, empty if nothing is."""
        if not self._options.object:
            return ""
        try:
            self._binaries.module(self._wanted)
        except InputError as error:
            return error.problem
        return ""

    def _request(self, line: bytes) -> AddressRequest:
        return request_of(text_of(line), *self._wanted, self._options.is_gnu)

    def _find(
        self, wanted: Wanted, requests: Sequence[tuple[int, AddressRequest]], found: list[list[Row] | None]
    ) -> None:
        """Fill in the frames of requests for one file. Raises InputError if it cannot be read."""
        plain = [(number, each) for number, each in requests if each.command == "CODE" and not each.symbol]
        adjust = self._options.adjust
        vaddrs: UInt64 = np.array([(each.address - adjust) & TOP for _, each in plain], np.uint64)
        for (number, _), frames in zip(plain, self._rows(wanted, vaddrs), strict=False):
            found[number] = frames if self._options.inlines else self._single(frames)
        for number, request in requests:
            if request.symbol and request.command == "CODE":
                found[number] = self._at_symbol(wanted, request)

    def _rows(self, wanted: Wanted, vaddrs: UInt64) -> Iterable[list[Row]]:
        module = self._binaries.module(wanted)
        if module is None:
            return ()
        options = self._options
        drops_suffixes = not self._binaries.has_symbol_table(wanted)
        begins = module.function_bounds(vaddrs)[0].tolist() if self._needs_bounds else ()
        return rows(
            module.answer(vaddrs), begins, options.kind, options.demangle, "llvm", options.basenames, drops_suffixes
        )

    def _single(self, frames: list[Row]) -> list[Row]:
        """One frame in the place of all: the line of the innermost with, as LLVM does, the linkage name of the
        outermost."""
        if not frames:
            return frames
        if self._options.style == "GNU" or self._options.kind == "short":
            return frames[:1]
        return [frames[0]._replace(name=frames[-1].name, start=frames[-1].start)]

    def _at_symbol(self, wanted: Wanted, request: AddressRequest) -> list[Row]:
        """Where symbols of a name begin, or are at an offset below their size."""
        module = self._binaries.module(wanted)
        if module is None:
            return []
        places = module.symbol_bounds(request.symbol.encode(errors="surrogateescape"))[:MAX_SYMBOLS]
        vaddrs = [begin + (request.address if request.address < end - begin else 0) for begin, end in places]
        frames = self._rows(wanted, np.array(vaddrs, np.uint64))
        return [row for each in frames for row in self._single(each) if row.path != UNKNOWN]

    def _printed(self, request: AddressRequest, found: list[Row] | None) -> bytes:
        if request.command == "DATA" and not request.problem:
            text = b"??\n0 0\n??:?\n"
        elif request.command == "FRAME" and not request.problem:
            text = b"??\n"
        elif request.symbol:
            text = b"".join(self._row(row, False) for row in found or [NOTHING])
        else:
            text = b"".join([self._row(row, number > 0) for number, row in enumerate(found or [NOTHING])])
        header = b""
        if self._options.addresses and not request.symbol and not request.problem:
            header = b"0x%x" % request.address + (b": " if self._options.pretty else b"\n")
        return header + text + (b"\n" if self._options.style == "LLVM" else b"")

    def _row(self, row: Row, is_outer: bool) -> bytes:
        options = self._options
        name = b""
        if options.kind != "none":
            prefix = b" (inlined by) " if options.pretty and is_outer else b""
            name = prefix + row.name + (b" at " if options.pretty else b"\n")
        if options.verbose:
            return name + self._verbose(row)
        if options.style == "LLVM":
            return b"%b%b:%d:%d\n" % (name, row.path, row.line, row.column)
        return b"%b%b:%d\n" % (name, row.path, row.line)

    def _verbose(self, row: Row) -> bytes:
        lines = [b"  Filename: %b" % row.path]
        if row.start_line:
            lines.append(b"  Function start filename: %b" % row.start_path)
            lines.append(b"  Function start line: %d" % row.start_line)
        if row.start is not None and self._options.style == "LLVM":
            lines.append(b"  Function start address: 0x%x" % row.start)
        lines += [b"  Line: %d" % row.line, b"  Column: %d" % row.column, b""]
        return b"\n".join(lines)


def as_answer(request: AddressRequest, found: list[Row] | None, problem: str) -> dict[str, Any]:
    """The answer to a request as LLVM's JSON has it.

    Tables have no data, no discriminators, and not where inlined functions begin: `DATA` is answered as unknown,
    discriminators are 0 or left out, `StartAddress` is that of the outermost function only. Paths have no `/./`.
    Addresses between functions have neither name nor line, and a symbol ends where its size says. Of aliases the one of
    R118 (aliases) is named, also from the `.symtab` of a debug file, of which LLVM reads none. Stubs of the linker have
    names, such as `sin@plt`. Functions of Go have no `.abi0`, with which the linker marks assembly. The sections of a
    relocatable object all begin at 0, so that a number alone has no name there (R94, sections of object files); symbols
    have, and numbers behind addr2line's `-j` (R384, what drop-ins leave out).
    """
    result: dict[str, Any] = {"ModuleName": request.shown}
    if request.problem:
        result["Symbol"] = [as_data(NOTHING)]
        return result
    if request.symbol:
        result["SymName"] = request.symbol
    else:
        result["Address"] = hex(request.address)
    if problem:
        result["Error"] = {"Message": problem}
    elif request.command == "DATA":
        result["Data"] = {"Name": "", "Size": "0x0", "Start": "0x0"}
    elif request.command == "FRAME":
        result["Frame"] = []
    elif request.symbol:
        result["Loc"] = [as_data(row) for row in found or ()]
    else:
        result["Symbol"] = [as_data(row) for row in found or ([] if found is None else [NOTHING])]
    return result


def as_data(row: Row) -> dict[str, Any]:
    """A frame as LLVM's JSON has it."""
    return {
        "Column": row.column,
        "Discriminator": 0,
        "FileName": "" if row.path == UNKNOWN else row.path.decode(errors="replace"),
        "FunctionName": "" if row.name == UNKNOWN else row.name.decode(errors="replace"),
        "Line": row.line,
        "StartAddress": "" if row.start is None else hex(row.start),
        "StartFileName": row.start_path.decode(errors="replace"),
        "StartLine": row.start_line,
    }


def dumped(value: Any, is_pretty: bool) -> bytes:
    """A JSON value as LLVM writes it."""
    layout: dict[str, Any] = {"indent": 2} if is_pretty else {"separators": (",", ":")}
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, **layout)
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode() + b"\n"


def text_of(line: bytes) -> str:
    """A line up to its first NUL, without its end; bytes that are no UTF-8 get through as they are."""
    return line.partition(b"\0")[0].translate(None, b"\r\n").decode(errors="surrogateescape")
