"""Bounded reading of integers: what they are, and that nothing is read or moved past the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core import cursor as compiled
from tests.support.interpreted import load_source
from tests.support.line_writer import sleb, uleb

# The compiled class answers to compiled callers only; its source answers to anybody.
INTERPRETED = load_source("core/cursor")
Cursor = INTERPRETED.Cursor

BIT64 = 1 << 64


@given(st.integers(0, BIT64 - 1), st.integers(0, 12), st.binary(max_size=3))
def test_uleb(value: int, width: int, rest: bytes) -> None:
    """An unsigned LEB128 number is read whole, however it is padded, and nothing behind it."""
    raw = uleb(value, width)
    cursor = Cursor(raw + rest)
    assert (cursor.uleb(), cursor.pos, cursor.bad) == (value, len(raw), False)


@given(st.integers(-(BIT64 >> 1), (BIT64 >> 1) - 1), st.binary(max_size=3))
def test_sleb(value: int, rest: bytes) -> None:
    """A signed LEB128 number is read whole, and nothing behind it."""
    raw = sleb(value)
    cursor = Cursor(raw + rest)
    assert (cursor.sleb(), cursor.pos, cursor.bad) == (value, len(raw), False)


@given(st.binary(max_size=24))
def test_leb_of_any_bytes(data: bytes) -> None:
    """Any bytes give the number modulo 2⁶⁴ that the definition gives, or mark the cursor and leave it in place."""
    end = next((i + 1 for i, byte in enumerate(data) if byte < 0x80), None)
    for read in ("uleb", "sleb"):
        cursor = Cursor(data)
        value = getattr(cursor, read)()
        if end is None:
            assert (value, cursor.pos, cursor.bad) == (0, 0, True)
            continue
        number = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(data[:end]))
        if read == "sleb" and data[end - 1] & 0x40:
            number -= 1 << 7 * end
        assert (value - number) % BIT64 == 0
        assert (cursor.pos, cursor.bad) == (end, False)
        assert 0 <= value < BIT64 if read == "uleb" else -BIT64 // 2 <= value < BIT64 // 2


@given(st.binary(max_size=12), st.integers(1, 8), st.booleans())
def test_uint(data: bytes, size: int, big: bool) -> None:
    """Fixed-size integers come in the byte order asked for; one that is cut off is 0 and moves nothing."""
    cursor = Cursor(data, 0, -1, big)
    value = cursor.uint(size)
    if size <= len(data):
        assert value == int.from_bytes(data[:size], "big" if big else "little")
    assert (cursor.pos, cursor.bad) == ((size, False) if size <= len(data) else (0, True))
    assert size <= len(data) or value == 0


@given(st.binary(max_size=12).map(lambda data: data.replace(b"\0", b"a", 1)))
def test_skip_string(data: bytes) -> None:
    """A string ends behind its NUL, one without at the end (rule R75)."""
    cursor = Cursor(data)
    cursor.skip_string()
    assert (cursor.pos, cursor.bad) == (data.find(b"\0") + 1 or len(data), False)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, -1, (0, 4, False)),
        (2, 3, (2, 3, False)),
        (4, 4, (4, 4, False)),
        (5, -1, (4, 4, True)),
        (-1, -1, (4, 4, True)),
    ],
)
def test_bounds(start: int, end: int, expected: tuple[int, int, bool]) -> None:
    """A cursor stands within its bytes; one that is asked to start outside is bad and at the end."""
    cursor = Cursor(b"abcd", start, end)
    assert (cursor.pos, cursor.end, cursor.bad) == expected
    assert Cursor(b"abcd", 0, 99).end == 4


def test_seek_and_skip() -> None:
    """A move past the end marks the cursor; a move back inside clears the mark (rule R77)."""
    cursor = Cursor(b"abcd")
    cursor.skip(BIT64 - 1)
    assert (cursor.pos, cursor.bad) == (0, True)
    cursor.seek(4)
    assert (cursor.pos, cursor.bad) == (4, False)
    cursor.seek(5)
    assert (cursor.pos, cursor.bad) == (4, True)


@given(st.integers(0, (1 << 64) - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_varint_at(value: int, before: bytes, behind: bytes) -> None:
    """Value and end; None where it is cut off, has more than ten bytes, or begins outside."""
    data = before + uleb(value)
    for module in (compiled, INTERPRETED):
        assert module.varint_at(data + behind, len(before)) == (value, len(data))
        assert module.varint_at(data[:-1], len(before)) is None
        assert module.varint_at(data, len(data) + 1) is None
        assert module.varint_at(b"\x80" * 10 + b"\0", 0) is None
        assert module.varint_at(memoryview(b"\xff" * 9 + b"\1"), 0) == ((1 << 64) - 1, 10)
