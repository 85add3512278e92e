"""Numbers for equal rows, and sums by number."""

import json
from pathlib import Path

import numpy as np
import pytest

from symbolize.core.interning import add_up, first_of_numbers, number_lists, number_tuples
from tests.support import interpreted
from tests.support.needs import needs_compiled

SCRIPT = """
import json
import numpy as np
from symbolize.core.cursor import COMPILED
from symbolize.core.interning import add_up, number_lists, number_tuples

rng = np.random.default_rng(7)
tuples = rng.integers(0, 4, (500, 3)).astype(np.uint64) << np.uint64(62)
lengths = rng.integers(0, 4, 500)
offsets = np.concatenate(([0], np.cumsum(lengths)))
items = rng.integers(-2, 2, offsets[500]).astype(np.int32)
values = rng.integers(-(2**62), 2**62, (500, 2))
numbers = rng.integers(0, 9, 500).astype(np.int32)
sums = np.zeros((9, 2), np.int64)
exceeded = add_up(values.data, numbers.data, sums.data)
print(json.dumps([number_tuples(tuples.data).tolist(), number_lists(offsets.data, items.data).tolist(), exceeded,
                  sums.tolist()]))
"""


def test_numbers_count_first_occurrences() -> None:
    """Equal rows have one number, numbers are in the order of the first of each."""
    rows = np.array([[1, 2], [2**64 - 1, 0], [1, 2], [2, 1]], np.uint64)
    assert number_tuples(rows.data).tolist() == [0, 1, 0, 2]
    lists = number_lists(np.array([0, 2, 2, 4, 5, 5]).data, np.array([3, -1, 3, -1, 3], np.int32).data)
    assert lists.tolist() == [0, 1, 0, 2, 1]
    assert first_of_numbers(lists).tolist() == [True, True, False, True, False]


def test_offsets_outside_are_an_error() -> None:
    """Nothing is read beyond the items."""
    with pytest.raises(IndexError):
        number_lists(np.array([0, 3]).data, np.array([1, 2], np.int32).data)
    with pytest.raises(IndexError):
        add_up(np.ones((1, 1), np.int64).data, np.array([1], np.int32).data, np.zeros((1, 1), np.int64).data)


@pytest.mark.process
@needs_compiled
def test_the_source_gives_the_same_answers(tmp_path: Path) -> None:
    """Compiled and interpreted, numbers and sums are the same."""
    script = tmp_path / "number.py"
    script.write_text(SCRIPT)
    captured: list[str] = []
    exec(SCRIPT, {"print": captured.append})
    assert json.loads(interpreted.run(tmp_path, script)) == json.loads(captured[0])
