"""Text that fits a terminal: widths in cells, shortened names, wrapped lines, and colour where it is wanted."""

import os
import unicodedata
from collections.abc import Iterator
from typing import Final, TextIO

DEFAULT_WIDTH: Final = 80
LEAST_WIDTH: Final = 50
"""A narrower terminal wraps lines itself."""
HIGH, LOW = 90.0, 50.0
"""Percent from which a share is good, and below which it is bad."""


def cells(text: str) -> int:
    """The cells of a terminal that `text` takes: two for a wide character of East Asia, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(map(cells_of, text))


def cells_of(character: str) -> int:
    """The cells of one character."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shortened(text: str, width: int, head: int = 0) -> str:
    """`text` in at most `width` cells: of a longer one the end, behind its first `head` cells and an ellipsis."""
    if cells(text) <= width:
        return text
    begin = fitting(text, head)
    return begin + "…" + fitting(text[::-1], max(width - 1 - cells(begin), 0))[::-1]


def shortened_function(name: str, width: int) -> str:
    """The name of a function in at most `width` cells, without its middle: namespaces and the last part tell most."""
    return shortened(name, width, width // 3)


def fitting(text: str, width: int) -> str:
    """As much of the beginning of `text` as fits `width` cells."""
    if text.isascii():
        return text[: max(width, 0)]
    taken = 0
    for count, character in enumerate(text):
        taken += cells_of(character)
        if taken > width:
            return text[:count]
    return text


def padded(text: str, width: int) -> str:
    """`text` with spaces behind it, `width` cells."""
    return text + " " * (width - cells(text))


def wrapped(text: str, width: int, indent: str = "", first: str | None = None) -> Iterator[str]:
    """`text` in lines of at most `width` cells behind `indent`, or `first` for the first one. A word that is longer, as
    a path, is shortened."""
    line, is_empty = indent if first is None else first, True
    for word in text.split(" "):
        if not is_empty and cells(line) + 1 + cells(word) > width:
            yield line
            line, is_empty = indent, True
        line += shortened(word, max(width - cells(indent), 1), word.startswith("(")) if is_empty else " " + word
        is_empty = False
    yield line


def width_of(stream: TextIO | None) -> int:
    """The width of the terminal that a stream is, which COLUMNS overrides; 80 for a file."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH if stream is not None else DEFAULT_WIDTH
    except (OSError, ValueError):
        return DEFAULT_WIDTH


def has_colour(stream: TextIO | None) -> bool:
    """Whether a stream shows colours: a terminal, where NO_COLOR is not set."""
    return stream is not None and stream.isatty() and "NO_COLOR" not in os.environ


class Style:
    """Colours of a terminal, or none."""

    def __init__(self, colour: bool = False) -> None:
        self._is_on = colour

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._is_on and text else text

    def bold(self, text: str) -> str:
        """For headings."""
        return self._in("1", text)

    def dim(self, text: str) -> str:
        """For what is read last."""
        return self._in("2", text)

    def warning(self, text: str) -> str:
        """For what is read first."""
        return self._in("33", text)

    def rated(self, text: str, percent: float) -> str:
        """A share that is good, middling or bad."""
        return self._in("32" if percent >= HIGH else "33" if percent >= LOW else "31", text)
