"""Strings of a table: numbers, lookups, bytes of any length."""

import pickle
import sys

import numpy as np
import pytest

from symbolize.core.c_strings import texts_at
from symbolize.core.string_array import StringArray, joined_arrays
from symbolize.core.string_table import StringTable
from tests.support.interpreted import load_source

WORDS = [b"", b"a", b"ab", b"abc", b"abcd", b"abc\0", b"\0", b"\0\0", b"b" * 5000, b"ab"]


def strings_of(pool: StringTable) -> list[bytes]:
    """All strings of a pool."""
    text, offsets = pool.columns()
    found = list(StringArray(text, offsets, np.arange(len(offsets) - 1)))
    assert found == list(pool) == [pool[number] for number in range(len(pool))]
    return found


def test_numbers_in_order_of_appearance() -> None:
    """A string has one number, whatever it is added with; numbers ascend from 0, the empty string."""
    pool = StringTable()
    assert pool.add_all([b"x", b"", b"y", b"x"]).tolist() == [1, 0, 2, 1]
    assert pool.add_all(StringArray.of(WORDS)).tolist() == [0, 3, 4, 5, 6, 7, 8, 9, 10, 4]
    assert strings_of(pool) == [b"", b"x", b"y", *WORDS[1:-1]]


def test_only_rows_that_occur_are_added() -> None:
    """Strings of the same array that no row names stay out."""
    pool = StringTable()
    assert pool.add_all(StringArray.of([b"x", b"y", b"z"]).only(np.array([2, 2]))).tolist() == [1, 1]
    assert strings_of(pool) == [b"", b"z"]


@pytest.mark.parametrize("count", [1, 15, 16, 17, 3000])
def test_many(count: int) -> None:
    """Strings are found again after the pool has grown, and others are not."""
    pool = StringTable()
    words = [b"%d" % i for i in range(count)]
    for word in words:
        pool.add(word)
    assert pool.add_all(words).tolist() == list(range(1, count + 1))
    assert [pool.find(word) for word in words] == list(range(1, count + 1))
    assert pool.find(b"%d" % count) == -1
    assert pool.find(b"") == 0


@pytest.mark.parametrize("make", [b"%d\0%06d", b"%d%c%c\1"], ids=["words", "bytes"])
def test_runs_of_hashes(make: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strings that differ in their last bytes alone are hardly searched for: one lies, in the mean, less than a slot
    behind where the search for it begins. The slots are seen in the interpreted module."""
    numbers = [(i, j) if make.count(b"%") == 2 else (i, j & 255, j >> 8) for i in range(8) for j in range(1024)]
    texts = StringArray.of([make % each for each in numbers])
    monkeypatch.setitem(sys.modules, "symbolize.core.interning", load_source("core/interning"))
    table = load_source("core/string_table")
    for _ in range(4):  # where runs begin is random, and they may just miss each other
        pool = table.StringTable()
        assert int(pool.add_all(texts).max()) == len(texts)
        slots = np.array(pool.slots)
        (taken,) = np.nonzero(slots)
        begins = slots[taken] >> np.uint64(32 + pool.shift)
        assert ((taken.astype(np.uint64) - begins) % np.uint64(len(slots))).sum() < len(texts)


def test_copies() -> None:
    """A copy, and a pickled one, have the same strings; what is added to it is not added to the first."""
    pool = StringTable([b"x", b"y"])
    for other in (pool.copy(), pickle.loads(pickle.dumps(pool))):
        assert strings_of(other) == [b"", b"x", b"y"]
        assert [other.add(b"z"), other.add(b"y")] == [3, 2]
        assert len(pool) == 3
        assert pool.find(b"z") == -1


@pytest.mark.parametrize(("begin", "end"), [(-1, 1), (2, 1), (0, 5)])
def test_strings_outside_of_the_data(begin: int, end: int) -> None:
    """A place that is none in the data is an error, not memory of others."""
    with pytest.raises(IndexError):
        StringTable().add_slices(b"abcd", np.array([begin]), np.array([end]))
    with pytest.raises(IndexError):
        StringTable()[1]


def test_shared_strings() -> None:
    """A string that many rows share is kept once and read once."""
    long = b"x" * 1000
    texts = StringArray.of([long, b"y", long, long])
    assert len(texts.data) == 1001
    first, other, _, last = texts.take(np.arange(4))
    assert (first, other) == (long, b"y")
    assert first is last
    changed = texts.with_changed(np.array([0, 2, 3]), [b"z" * 1000] * 3)
    assert len(changed.data) == 2001
    assert list(changed) == [b"z" * 1000, b"y", b"z" * 1000, b"z" * 1000]


def test_changed_and_joined() -> None:
    """Rows can be changed and arrays joined without a word of the others being touched."""
    texts = StringArray.of(WORDS).only(np.array([3, 1, 3]))
    changed = texts.with_changed(np.array([1]), [b"new"])
    assert list(changed) == [b"abc", b"new", b"abc"]
    assert list(texts) == [b"abc", b"a", b"abc"]
    joined = joined_arrays([changed, StringArray.empty(2), texts])
    assert list(joined) == [*changed, b"", b"", *texts]
    assert joined.lengths().tolist() == [3, 3, 3, 0, 0, 3, 1, 3]
    assert joined[1:3] == [b"new", b"abc"]


def test_strings_of_a_section() -> None:
    """Strings end at a NUL or at the end of the section; outside there are none (rule R75)."""
    problems: list[str] = []
    texts = texts_at(b"one\0two", np.array([4, 0, 2, 3, 7, 400, -1, 0]), problems)
    assert list(texts) == [b"two", b"one", b"e", b"", b"", b"", b"", b"one"]
    assert not problems
