"""What GNU addr2line does: its options, lines in, frames out, in the format of binutils 2.40."""

import re
from collections.abc import Sequence
from typing import Final

from symbolize.core.arrays import TOP
from symbolize.core.errors import InputError, UsageError, did_you_mean
from symbolize.drop_in.binaries import NOT_AN_OBJECT, Binaries, Wanted
from symbolize.drop_in.frame_rows import UNKNOWN, Row, rows
from symbolize.drop_in.llvm_options import ToolOptions, expanded, next_word
from symbolize.resolve.module import Module

LONG: Final = {
    "addresses": "a",
    "basenames": "s",
    "demangle": "C",
    "exe": "e",
    "functions": "f",
    "help": "h",
    "inlines": "i",
    "no-recurse-limit": "r",
    "no-recursion-limit": "r",
    "pretty-print": "p",
    "recurse-limit": "R",
    "recursion-limit": "R",
    "section": "j",
    "target": "b",
    "version": "v",
}
"""The letters of the long options; a beginning that is of one option alone is enough."""
VALUED: Final = "bej"
LONGEST: Final = 99
"""Bytes of a line that are read at once; the rest of a longer one is the next line."""
NUMBER: Final = re.compile(rb"(?:0[xX](?=[0-9a-fA-F]))?([0-9a-fA-F]*)")
SYMBOL: Final = re.compile(rb"([^\s+]+)(?:\s*\+\s*\+?(-?)(0[xX][0-9a-fA-F]+|0[0-7]*|[0-9]+))?")
MAX_DIGITS: Final = 22
"""Octal digits of the highest number, more than it has decimal ones."""


def parsed(words: Sequence[str]) -> ToolOptions:
    """The options in the words of a command line. Raises UsageError for what is unknown."""
    result = ToolOptions(style="GNU", object="a.out", kind="none", demangle=False, inlines=False)
    waiting = list(reversed(expanded(words)))
    while waiting:
        word = waiting.pop()
        if word == "--":
            result.inputs += waiting[::-1]
            break
        if word.startswith("--"):
            apply(result, *long_option(word, waiting))
        elif word.startswith("-") and word != "-":
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter in VALUED:
                    apply(result, letter, letters or next_word(f"-{letter}", waiting))
                    break
                apply(result, "h" if letter == "H" else "v" if letter == "V" else letter, "")
        else:
            result.inputs.append(word)
    return result


def long_option(word: str, waiting: list[str]) -> tuple[str, str]:
    """The letter of a long option, and its value. Raises UsageError."""
    name, equals, value = word[2:].partition("=")
    letter = next((letter for each, letter in LONG.items() if name and each.startswith(name)), "")
    if not letter:
        raise UsageError(f"unrecognized option '{word}'{did_you_mean(name, LONG)}")
    if letter in VALUED and not equals:
        value = next_word(word, waiting)
    if equals and letter not in (*VALUED, "C"):
        raise UsageError(f"option '--{name}' doesn't allow an argument")
    return letter, value


def apply(options: ToolOptions, letter: str, value: str) -> None:
    """Take an option. Raises UsageError for one that does not exist. The format of a file is what it is, and names are
    read without a limit on recursion that could be removed."""
    flags = {"a": "addresses", "s": "basenames", "C": "demangle", "i": "inlines", "p": "pretty"}
    if letter in flags:
        setattr(options, flags[letter], True)
    elif letter == "f":
        options.kind = "linkage"
    elif letter == "e":
        options.object = value
    elif letter == "j":
        options.section = value
    elif letter == "h":
        options.action = "help"
    elif letter == "v":
        options.action = "version"
    elif letter not in "bRr":
        raise UsageError(f"invalid option -- '{letter}'")


class Addr2line:
    """Answers lines as `options` say, from one of the `binaries`."""

    def __init__(self, options: ToolOptions, binaries: Binaries) -> None:
        """Open the file. Raises InputError, in the words of addr2line."""
        self._options, self._binaries = options, binaries
        image = self._opened().binary.loaded
        self._digits = 16 if image.is_64 else 8
        self._base, self._size = 0, TOP + 1
        if options.section:
            section = image.find(options.section)
            if section is None:
                raise InputError(options.object, f"cannot find section {options.section}")
            self._base, self._size = section.vaddr, section.size

    def _opened(self) -> Module:
        try:
            return self._binaries.module_again(Wanted(self._options.object))
        except InputError as error:
            problem = "file format not recognized" if error.problem == NOT_AN_OBJECT else error.problem
            raise InputError(self._options.object, problem) from error

    def answers(self, lines: Sequence[bytes]) -> list[bytes]:
        """The answers to some lines, in their order; the file is asked once for all of them."""
        options = self._options
        module = self._opened()
        asked = [self._asked(line.partition(b"\0")[0].lstrip(), module) for line in lines]
        answer = module.answer([vaddr for _, vaddr in asked if vaddr is not None])
        found = rows(answer, (), "linkage", options.demangle, "gnu", options.basenames, drops_suffixes=True)
        return [self._printed(address, [] if vaddr is None else next(found)) for address, vaddr in asked]

    def _asked(self, text: bytes, module: Module) -> tuple[int, int | None]:
        """The address in a line and where it is looked up: a number from the begin of the section on, if one is given,
        nowhere if it is behind it."""
        number = number_of(text)
        if number is None:
            vaddr = symbol_vaddr(text, module)
            return vaddr, vaddr
        vaddr = self._base + number
        return number, vaddr if number < self._size and vaddr <= TOP else None

    def _printed(self, address: int, frames: list[Row]) -> bytes:
        options = self._options
        text = b""
        if options.addresses:
            text = b"0x%0*x" % (self._digits, address) + (b": " if options.pretty else b"\n")
        if not frames:
            unknown = b"" if options.kind == "none" else b"?? " if options.pretty else b"??\n"
            return text + unknown + b"??:0\n"
        shown = [self._row(row) for row in (frames if options.inlines else frames[:1])]
        return text + (b" (inlined by) " if options.pretty else b"").join(shown)

    def _row(self, row: Row) -> bytes:
        name = b"" if self._options.kind == "none" else row.name + (b" at " if self._options.pretty else b"\n")
        line = b"%d" % row.line if row.line else b"?"
        return b"%b%b:%b\n" % (name, row.path or UNKNOWN, line)


def number_of(text: bytes) -> int | None:
    """The hexadecimal number that a line begins with, the highest one for one that is too large; None if there is
    none."""
    match = NUMBER.match(text)
    digits = match[1] if match is not None else b""
    if text[:1].isdigit() or (match is not None and digits and text[match.end() :][:1].strip() == b""):
        return min(int(digits or b"0", 16), TOP)
    return None


def symbol_vaddr(text: bytes, module: Module) -> int:
    """The vaddr of the symbol that a line begins with, with or without `+OFFSET`; 0 if there is none."""
    symbol = SYMBOL.match(text)
    found = module.symbol_bounds(symbol[1]) if symbol is not None else []
    if symbol is None or not found:
        return 0
    offset = unsigned(symbol[3] or b"0")
    return (found[0][0] + (-offset if symbol[2] else offset)) & TOP


def unsigned(digits: bytes) -> int:
    """A number as C's `strtoul` reads it: the base by the prefix, the highest one for one that is too large."""
    if digits[:2] in (b"0x", b"0X"):
        return min(int(digits, 16), TOP)
    digits, base = digits.lstrip(b"0") or b"0", 8 if digits[:1] == b"0" else 10
    return min(int(digits, base), TOP) if len(digits) <= MAX_DIGITS else TOP
