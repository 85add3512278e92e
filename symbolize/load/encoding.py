"""Texts that begin with a byte order mark, as PowerShell and editors on Windows save them."""

import codecs
from collections.abc import Iterator
from typing import Final

from symbolize.core.errors import InputError

MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
"""How such texts begin, and how they are encoded. No other format begins so."""
LONGEST: Final = max(len(mark) for mark, _ in MARKS)


def without_mark(pieces: Iterator[bytes], source: str) -> Iterator[bytes]:
    """The content of `pieces`; of a text with a byte order mark, its text in UTF-8 without the mark. Raises InputError
    for one that is not encoded as its mark says."""
    head = b""
    while len(head) < LONGEST and (piece := next(pieces, b"")):
        head += piece
    for mark, encoding in MARKS:
        if head.startswith(mark):
            if encoding == "utf-8":
                head = head[len(mark) :]
            elif is_text(head[len(mark) :], encoding):
                pieces, head = recoded(head[len(mark) :], pieces, encoding, source), b""
            break
    if head:
        yield head
    yield from pieces


def is_text(data: bytes, encoding: str) -> bool:
    """Whether data may begin a text: other data may begin with the two bytes of a mark."""
    try:
        return "\0" not in codecs.getincrementaldecoder(encoding)().decode(data)
    except UnicodeError:
        return False


def recoded(first: bytes, pieces: Iterator[bytes], encoding: str, source: str) -> Iterator[bytes]:
    """The text of `first` and `pieces` in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        if text := decoder.decode(first):
            yield text.encode()
        for piece in pieces:
            if text := decoder.decode(piece):
                yield text.encode()
        decoder.decode(b"", final=True)
    except UnicodeError as error:
        raise InputError(source, f"begins as {encoding.upper()} text does, and is none") from error
