"""Lists of code that was compiled at run time."""

import random
import struct

import numpy as np
import pytest

from symbolize.core.ranges import latest
from symbolize.symbol_files import process_of, read_jitdump, read_perf_map
from symbolize.symbols import SymbolListBinary
from tests.support.jitdump_writer import dump, lines, load, record
from tests.support.listed import names_at, places_at


class TestOverlay:
    """Later entries hide earlier ones."""

    def test_against_brute_force(self) -> None:
        """At every address the last of the entries that hold it answers."""
        rng = random.Random(7)
        for _ in range(300):
            entries = [(begin := rng.randrange(40), begin + rng.randrange(12)) for _ in range(rng.randrange(9))]
            begin, end, row = latest(
                *(np.array(c, np.uint64) for c in ([b for b, _ in entries], [e for _, e in entries]))
            )
            found = [-1] * 60
            for low, high, i in zip(begin.tolist(), end.tolist(), row.tolist(), strict=True):
                assert low < high
                assert found[low:high] == [-1] * (high - low)
                found[low:high] = [i] * (high - low)
            wanted = [max((i for i, (b, e) in enumerate(entries) if b <= at < e), default=-1) for at in range(60)]
            assert found == wanted
            assert (begin[1:] >= end[:-1]).all()


class TestPerfMap:
    """`perf-PID.map`."""

    def test_lines(self) -> None:
        """Names may hold spaces, numbers a prefix; of two functions at one place the later answers."""
        data = b"7f00001000 20 old\n7f00001000 10 py::run:/srv/app.py\n0x7f00002000 0x8 LazyCompile:~f /a b.js:1\n"
        table = SymbolListBinary("map", read_perf_map(data)).table()
        addresses = 0x7F00000FFF, 0x7F00001000, 0x7F0000100F, 0x7F00001010, 0x7F0000101F, 0x7F00001020, 0x7F00002007
        assert names_at(table, addresses) == [
            b"", b"py::run:/srv/app.py", b"py::run:/srv/app.py", b"old", b"old", b"", b"LazyCompile:~f /a b.js:1",
        ]  # fmt: skip

    def test_broken_lines_are_counted(self) -> None:
        """A line that is cut off, or is something else, spoils no other."""
        listing = read_perf_map(b"1000 10 f\nhello\n2000 10\n\n3000 zz g\n4000 10 h\r\n50")
        assert listing.function_linkage == [b"f", b"h"]
        assert listing.problems == ["4 of 6 lines are not START SIZE NAME"]

    def test_absurd_numbers(self) -> None:
        """A function cannot reach past the end of the address space."""
        table = SymbolListBinary("map", read_perf_map(b"fffffffffffffff0 ffffffffffffffff f\n0 0 g\n")).table()
        assert names_at(table, [0, 0xFFFFFFFFFFFFFFF8]) == [b"", b"f"]


class TestJitdump:
    """jitdump files."""

    @pytest.mark.parametrize("order", ["<", ">"])
    def test_functions_and_lines(self, order: str) -> None:
        """Both byte orders: functions have names, and lines from their debug records."""
        data = dump(
            lines(0x1000, [(0x1000, 3, b"/a.js"), (0x1008, 4, b"\xff"), (0x100C, 9, b"/b.js")], order),
            load(0x1000, 0x10, 1, b"run", order),
            load(0x1010, 0x10, 2, b"bare", order),
            order=order,
        )
        assert process_of(data) == 77
        listing = read_jitdump(data)
        assert listing.problems == []
        assert places_at(SymbolListBinary("dump", listing).table(), [0x1000, 0x1009, 0x100C, 0x1010, 0x1020]) == [
            (b"run", b"/a.js", 3), (b"run", b"/a.js", 4), (b"run", b"/b.js", 9), (b"bare", b"", 0), (b"", b"", 0),
        ]  # fmt: skip

    def test_lines_as_for_perf_inject(self) -> None:
        """Where all lines lie an ELF header too high, as some runtimes write them, they are moved back."""
        data = dump(lines(0x1000, [(0x1040, 3, b"/a.js"), (0x1048, 4, b"\xff")]), load(0x1000, 0x10, 1, b"run"))
        table = SymbolListBinary("dump", read_jitdump(data)).table()
        assert places_at(table, [0x1000, 0x1008]) == [(b"run", b"/a.js", 3), (b"run", b"/a.js", 4)]

    def test_code_that_moves_and_code_that_is_replaced(self) -> None:
        """Code that moved is known at both places, with its lines; code loaded over other code hides it."""
        move = record(1, struct.pack("<IIQQQQQ", 77, 78, 0, 0x1000, 0x3000, 0x10, 1))
        data = dump(lines(0x1000, [(0x1000, 3, b"/a")]), load(0x1000, 0x10, 1, b"f"), move, load(0x1008, 8, 2, b"g"))
        assert places_at(SymbolListBinary("dump", read_jitdump(data)).table(), [0x1004, 0x1008, 0x3004]) == [
            (b"f", b"/a", 3), (b"g", b"", 0), (b"f", b"/a", 3),
        ]  # fmt: skip

    def test_cut_anywhere(self) -> None:
        """A file of a process that was killed gives the functions that are whole."""
        data = dump(lines(0x1000, [(0x1000, 3, b"/a")]), load(0x1000, 0x10, 1, b"f"), load(0x2000, 8, 2, b"g"))
        for end in range(len(data)):
            listing = read_jitdump(data[:end])
            assert listing.function_linkage in ([], [b"f"])
            assert len(listing.problems) <= 1

    def test_records_that_lie(self) -> None:
        """Absurd counts and sizes cost their own record only."""
        bad = record(2, struct.pack("<QQ", 0x1000, 1 << 60)) + record(0, b"x") + record(99, b"?") + record(1, b"")
        listing = read_jitdump(dump(bad, load(0x1000, 0x10, 1, b"f")))
        assert listing.function_linkage == [b"f"]
        assert len(listing.problems) == 3

    def test_lines_that_repeat_absurdly(self) -> None:
        """Code with many lines that moves often is not laid out again and again."""
        moves = [record(1, struct.pack("<IIQQQQQ", 77, 78, 0, 0, 0x100000 * i, 0x10, 1)) for i in range(2, 500)]
        many = lines(0x1000, [(0x1000 + i % 16, i, b"\xff") for i in range(5000)])
        listing = read_jitdump(dump(many, load(0x1000, 0x10, 1, b"f"), *moves))
        assert any("absurdly" in problem for problem in listing.problems)
