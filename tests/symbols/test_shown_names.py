"""The names of a table's functions are made once, whoever asks for them."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from symbolize.names import Mode, shown_names
from symbolize.symbols import FunctionNames, functions

COUNT = 64


@pytest.fixture
def names() -> FunctionNames:
    """The functions of a table, with names that can be told by their rows."""
    linked = [f"_ZN2ns3f{row:02}Ei".encode() for row in range(COUNT)]
    return FunctionNames(linked, [b""] * COUNT, np.full(COUNT, -1, np.int32), np.zeros(COUNT, np.uint32))


def shown(names: FunctionNames, rows: Sequence[int]) -> list[bytes]:
    """The names of some functions."""
    return list(names.shown(np.array(rows, np.int64), "default").names)


def test_several_threads(names: FunctionNames, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of a server that share a table do not disturb one another: each waits for the names that are made."""
    inside, most, made = 0, 0, 0

    def counted(linkage: Sequence[bytes], plain: Sequence[bytes], mode: Mode, of_linker: bool) -> object:
        nonlocal inside, most, made
        inside += 1
        most, made = max(most, inside), made + len(linkage)
        time.sleep(0.02)
        inside -= 1
        return shown_names(linkage, plain, mode, of_linker)

    monkeypatch.setattr(functions, "shown_names", counted)
    asked = [range(48), range(16, 64), range(8, 40), range(64)]
    with ThreadPoolExecutor(len(asked)) as pool:
        found = list(pool.map(lambda rows: shown(names, rows), asked))
    assert found == [[b"ns::f%02d" % row for row in rows] for rows in asked]
    assert (most, made) == (1, COUNT)


def test_memory_is_bounded(names: FunctionNames, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where too many names are kept they are made anew, and stay what they were."""
    monkeypatch.setattr(functions, "MAX_KNOWN", 40)
    first = names.shown(np.arange(16), "default")
    for begin in (0, 8, 16, 32, 40, 48):  # others, and some of those before
        assert shown(names, range(begin, begin + 16)) == [b"ns::f%02d" % row for row in range(begin, begin + 16)]
    assert list(first.names) == [b"ns::f%02d" % row for row in range(16)]
    (known,) = names.known.values()
    assert len(known.strings) <= 41
