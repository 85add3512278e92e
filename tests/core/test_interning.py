"""Rows by keys, against a dictionary."""

import random

import numpy as np
import pytest

from symbolize.core.interning import InternTable

TOP = (1 << 64) - 1
KINDS = {
    "counted up": list(range(1, 400)),
    "counted down": list(range(400, 0, -1)),
    "from 0 on": list(range(400)),
    "every eighth": list(range(0, 3200, 8)),
    "far apart": [number << 40 for number in range(400)],
    "high": [TOP - number for number in range(400)],
    "addresses": [0x7F00_0000_0000 + 16 * number for number in range(400)],
    "at random": random.Random(1).sample(range(1 << 60), 400),
    "small and large": [key for number in range(1, 200) for key in (number, number << 32)],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numbered", [0, 5])
@pytest.mark.parametrize("mixer", [1, 0x9E3779B97F4A7C15])
def test_rows_of_keys(kind: str, numbered: int, mixer: int) -> None:
    """A key has the row that it got, and another one none, while the table grows; the first keys may be numbered."""
    table, rows = InternTable(mixer, numbered), dict(zip(range(1, numbered + 1), range(numbered), strict=True))
    keys = KINDS[kind]
    for row, key in enumerate(keys, 1000):
        if key not in rows:
            assert table.find(key) == -1
            table.put(key, row)
            rows[key] = row
        assert table.find(key) == rows[key]
    assert [table.find(key) for key in rows] == [*rows.values()]
    others = {(key + step) & TOP for key in keys for step in (1, 3, 1 << 33)} - rows.keys()
    assert {table.find(key) for key in others} == {-1}


@pytest.mark.parametrize("kind", KINDS)
def test_many_keys_at_once(kind: str) -> None:
    """They get the rows 0, 1, 2 and so on, up to one that is there already."""
    keys = KINDS[kind]
    table = InternTable(0x9E3779B97F4A7C15)
    assert table.put_all(np.array(keys, np.uint64).data) == -1
    assert [table.find(key) for key in keys] == [*range(len(keys))]
    for at in (1, 200):
        again = [*keys[:at], keys[0], *keys[at:]]
        assert InternTable(1).put_all(np.array(again, np.uint64).data) == at
