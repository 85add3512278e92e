"""Reads what is in a page, as its scripts do."""

import base64
import gzip
import json
import struct
from html.parser import HTMLParser
from typing import Any

import numpy as np

DTYPES = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "i4": "<i4", "f8": "<f8"}


class Elements(HTMLParser):
    """The elements of a page: tag, attributes, text directly in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("", {}, ""))

    def handle_data(self, data: str) -> None:
        if self.found:
            tag, attributes, text = self.found[-1]
            self.found[-1] = (tag, attributes, text + data)

    def text_of(self, tag: str, **attributes: str) -> str:
        """The text of the only such element with these attributes; none are given for one without any."""
        wanted = [text for name, found, text in self.found if name == tag and attributes.items() <= found.items()]
        plain = [text for name, found, text in self.found if name == tag and not found]
        (text,) = wanted if attributes else plain
        return text


def unpacked(text: str, name: str = "data") -> bytes:
    """A block of data of a page."""
    return gzip.decompress(base64.b64decode(Elements(text).text_of("script", id=name), validate=True))


def read_data(text: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and columns of a page."""
    data = unpacked(text)
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    columns, start = {}, 8 + size
    for name, dtype, count, factor in header["columns"]:
        width = np.dtype(DTYPES[dtype]).itemsize
        planes = np.frombuffer(data, np.uint8, count * width, start).reshape(width, count)
        columns[name] = np.ascontiguousarray(planes.T).view(DTYPES[dtype]).ravel()
        columns[name] = columns[name] * np.int64(factor) if factor != 1 else columns[name]
        start += -(-count * width // 8) * 8
    assert start == len(data)
    return header, columns
