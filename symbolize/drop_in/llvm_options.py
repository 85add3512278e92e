"""The options of llvm-symbolizer 19: those that are honoured, those without an effect, those that are refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, cast

from symbolize.core.errors import UsageError, did_you_mean
from symbolize.core.files import os_error_text, read_limited

if TYPE_CHECKING:
    from symbolize.drop_in.frame_rows import Kind

MAX_OPTION_FILES: Final = 64
MAX_OPTION_BYTES: Final = 1 << 20

FLAGS: Final = {
    "addresses": "addresses",
    "print-address": "addresses",
    "a": "addresses",
    "basenames": "basenames",
    "s": "basenames",
    "demangle": "demangle",
    "C": "demangle",
    "demangle=true": "demangle",
    "no-demangle": "no-demangle",
    "demangle=false": "no-demangle",
    "functions": "functions",
    "f": "functions",
    "inlines": "inlines",
    "inlining": "inlines",
    "inlining=true": "inlines",
    "i": "inlines",
    "no-inlines": "no-inlines",
    "inlining=false": "no-inlines",
    "pretty-print": "pretty-print",
    "p": "pretty-print",
    "verbose": "verbose",
    "debuginfod": "debuginfod",
    "no-debuginfod": "no-debuginfod",
    "help": "help",
    "h": "help",
    "version": "version",
    "v": "version",
}
"""What each flag is an alias of."""
VALUED: Final = {
    "adjust-vma": "adjust-vma",
    "build-id": "build-id",
    "debug-file-directory": "debug-file-directory",
    "dwp": "dwp",
    "e": "obj",
    "exe": "obj",
    "fallback-debug-path": "fallback-debug-path",
    "obj": "obj",
    "output-style": "output-style",
}
"""Options that have a value, behind `=` or in the next word."""
JOINED: Final = {"functions": "functions=", "f": "functions="}
"""Options that have a value only behind `=`."""
NO_EFFECT: Final = frozenset({"relative-address", "untag-addresses", "no-untag-addresses", "color"})
NO_EFFECT_VALUED: Final = frozenset({"cache-size", "default-arch", "color"})
"""Options that change nothing for ELF files."""
REFUSED: Final = {
    "relativenames": "tables have whole paths only",
    "print-source-context-lines": "paths of source files that a binary records are not opened",
    "filter-markup": "markup is not read; symbolize log reads text",
    "dsym-hint": "Mach-O files are not read",
    "dia": "PDB files are not read",
}
SHORT: Final = "aCfhipsv"
"""Flags of one letter, which may be in one word; `e` with its value comes last. So `-version` is `-v -e rsion`."""


@dataclass
class ToolOptions:
    """What a tool was asked for: llvm-symbolizer, `is_gnu` if it goes by the name llvm-addr2line, or addr2line. Numbers
    count from the begin of the `section`, if one is given."""

    is_gnu: bool = False
    style: Literal["LLVM", "GNU", "JSON"] = "LLVM"
    object: str = ""
    section: str = ""
    build_id: str = ""
    kind: Kind = "linkage"
    addresses: bool = False
    basenames: bool = False
    demangle: bool = True
    inlines: bool = True
    pretty: bool = False
    verbose: bool = False
    adjust: int = 0
    debug_folders: list[str] = field(default_factory=list)
    fallback: str = ""
    package: str = ""
    debuginfod: bool = False
    action: Literal["", "help", "version"] = ""
    inputs: list[str] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """Whether answers have the default form."""
        changed = self.addresses, self.basenames, self.pretty, self.verbose, not self.inlines, self.adjust
        return (self.style, self.kind) == ("LLVM", "linkage") and not any(changed)


def parsed(words: Sequence[str], environment: str, is_gnu: bool) -> ToolOptions:
    """The options in the words of a command line, after those that a variable of the `environment` has. Raises
    UsageError for what is unknown or refused."""
    result = ToolOptions(is_gnu=is_gnu)
    if is_gnu:
        result.style, result.kind, result.demangle, result.inlines = "GNU", "none", False, False
    waiting = expanded([*split(environment, "the variable with options"), *words])
    waiting.reverse()
    while waiting:
        word = waiting.pop()
        if word == "--":
            result.inputs += waiting[::-1]
            break
        if not word.startswith("-") or word == "-":
            result.inputs += [word] if word else []
            continue
        for name, value in split_word(word, waiting):
            apply(result, name, value)
    return result


def split_word(word: str, waiting: list[str]) -> Iterator[tuple[str, str]]:
    """The options in a word, with their values, which may be the next word. Raises UsageError."""
    is_long = word.startswith("--")
    whole = word[2:] if is_long else word[1:]
    name, equals, value = whole.partition("=")
    if not is_long and len(name) > 1 and whole not in ("demangle=true", "demangle=false"):
        for number, letter in enumerate(whole):
            if letter == "e":
                yield "obj", whole[number + 1 :] or next_word(word, waiting)
                return
            if letter not in SHORT:
                raise unknown(word)
            yield FLAGS[letter], ""
        return
    if name in REFUSED:
        raise UsageError(f"--{name}: {REFUSED[name]}")
    if whole in FLAGS:
        yield FLAGS[whole], ""
    elif equals and name in JOINED:
        yield JOINED[name], value
    elif name in VALUED:
        yield VALUED[name], value if equals else next_word(word, waiting)
    elif whole in NO_EFFECT:
        return
    elif name in NO_EFFECT_VALUED:
        if not equals:
            next_word(word, waiting)
    else:
        raise unknown(word)


def next_word(word: str, waiting: list[str]) -> str:
    """The value of an option in the next word. Raises UsageError."""
    if not waiting:
        raise UsageError(f"{word}: missing argument")
    return waiting.pop()


def unknown(word: str) -> UsageError:
    """The error for an option that LLVM's tool does not have either."""
    known = [f"--{name}" for name in (*FLAGS, *VALUED) if len(name) > 1]
    return UsageError(f"unknown argument '{word}'{did_you_mean(word, known)}")


def apply(options: ToolOptions, name: str, value: str) -> None:
    """Take an option. Raises UsageError for a wrong value."""
    if name in ("addresses", "basenames", "verbose") or name in ("demangle", "inlines", "debuginfod"):
        setattr(options, name, True)
    elif name in ("no-demangle", "no-inlines", "no-debuginfod"):
        setattr(options, name.removeprefix("no-"), False)
    elif name == "pretty-print":
        options.pretty = True
    elif name == "functions":
        options.kind = "linkage"
    elif name == "functions=":
        options.kind = cast("Kind", value) if value in ("none", "short") else "linkage"
    elif name == "output-style":
        options.style = cast(Literal["LLVM", "GNU", "JSON"], value) if value in ("GNU", "JSON") else "LLVM"
    elif name in ("help", "version"):
        options.action = cast(Literal["help", "version"], name)
    elif name == "obj":
        options.object = value
    elif name == "build-id":
        if not re.fullmatch("(?:[0-9a-fA-F]{2})+", value):
            raise UsageError(f"--build-id=: expected a build ID, but got '{value}'")
        options.build_id = value
    elif name == "adjust-vma":
        number = integer(value)
        if number is None:
            raise UsageError(f"--adjust-vma=: expected a non-negative integer, but got '{value}'")
        options.adjust = number
    elif name == "debug-file-directory":
        options.debug_folders.append(value)
    elif name == "fallback-debug-path":
        options.fallback = value
    else:
        options.package = value


def integer(text: str, base: int = 0) -> int | None:
    """A number below 2⁶⁴ as LLVM reads it, None for other text: base 0 takes the prefixes 0x, 0b, 0o and 0."""
    if base == 0:
        for prefix, radix in (("0x", 16), ("0b", 2), ("0o", 8)):
            if text[:2].lower() == prefix:
                base, text = radix, text[2:]
                break
        else:
            base = 8 if text[:1] == "0" and text[1:2] in tuple("0123456789") else 10
    digits = "0123456789abcdef"[:base]
    if not text or text.lower().strip(digits) or len(text.lstrip("0")) > 64:
        return None
    number = int(text, base)
    return number if number < 1 << 64 else None


def expanded(words: Sequence[str]) -> list[str]:
    """The words of a command line, with those of files in the place of `@FILE`; a file that cannot be read stays a
    word. Raises UsageError for too many or too large ones."""
    result: list[str] = []
    waiting = list(reversed(words))
    files = 0
    while waiting:
        word = waiting.pop()
        if len(word) < 2 or not word.startswith("@"):
            result.append(word)
            continue
        files += 1
        if files > MAX_OPTION_FILES:
            raise UsageError(f"{word}: more than {MAX_OPTION_FILES} files of options")
        try:
            data = read_limited(word[1:], MAX_OPTION_BYTES)
        except FileNotFoundError:
            result.append(word)
            continue
        except (OSError, ValueError) as error:
            raise UsageError(f"{word}: {os_error_text(error)}") from error
        if data is None:
            raise UsageError(f"{word}: has more than {MAX_OPTION_BYTES} bytes of options")
        waiting += reversed(split(data.decode(errors="surrogateescape"), word))
    return result


def split(text: str, name: str) -> list[str]:
    """The words of `text` as a shell has them. Raises UsageError, which calls it `name`."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{name}: a quotation or an escape in it has no end") from error
