"""The lines that llvm-symbolizer answers: a command, a file and an address, of which the address alone has to be there.

The forms, and what is wrong with other lines, are those of LLVM 19 (R382, lines of LLVM's symbolizer).
"""

import re
from typing import Final, Literal, NamedTuple

from symbolize.drop_in.binaries import Wanted
from symbolize.drop_in.llvm_options import integer

Command = Literal["CODE", "DATA", "FRAME"]

COMMANDS: Final[tuple[Command, ...]] = "CODE", "DATA", "FRAME"
SPACE: Final = " \t\n\v\f\r"
DELIMITERS: Final = " \n\r"


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
