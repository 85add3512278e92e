"""What a JSON text takes in memory once it is read."""

from typing import Final

OBJECT: Final = 184
LIST: Final = 64
ITEM: Final = 12
"""Bytes of an object with a few keys, of a list with an item, and of a further item whose text is as short as it may
be. Longer ones take no more than a few times their text."""


def json_cost(text: bytes) -> int:
    """About how many bytes the objects of a JSON text will take, which may be 25 times its size (`{},{},…`)."""
    return OBJECT * text.count(b"{") + LIST * text.count(b"[") + ITEM * text.count(b",")
