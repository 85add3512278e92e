"""URLs of object stores."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, Final

from symbolize.errors import UsageError

URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(text: str) -> bool:
    """Whether `text` is a URL and no path."""
    return URL.match(text) is not None


def open_url(uri: str) -> AbstractContextManager[BinaryIO]:
    """The file at a URL, as a stream to be read once."""
    raise UsageError("URLs are not read yet")


def find_below_url(url: str, is_listed: bool = False) -> Iterator[Any]:
    """The files that a URL means."""
    raise UsageError("URLs are not read yet")
