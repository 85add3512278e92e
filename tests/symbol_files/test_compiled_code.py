"""Lists of code that was compiled at run time."""

import random
import struct

import numpy as np
import pytest

from symbolize.symbol_files import CodeList, code_list, process_of, read_jitdump, read_perf_map
from tests.support.jitdump_writer import dump, lines, load, move, record
from tests.support.listed import code_at


def names_at(code: CodeList, addresses: list[int], at: list[int] | None = None) -> list[bytes]:
    """The names at some addresses and times."""
    return [name for name, _, _ in code_at(code, addresses, at)]


class TestTimes:
    """Entries that had the same addresses."""

    def test_against_brute_force(self) -> None:
        """At every address and time the last entry loaded before counts, before all of them the first; without a time
        only what all entries agree on (rule R460)."""
        rng = random.Random(7)
        for _ in range(200):
            times = [rng.randrange(1, 9) for _ in range(rng.randrange(9))]
            ranges = [(begin := rng.randrange(40), begin + rng.randrange(12)) for _ in times]
            names = [rng.choice([b"a", b"b", b"c"]) for _ in times]
            rows = list(zip(times, ranges, names, strict=True))
            code = read_jitdump(dump(*(load(b, e - b, i, name, time=t) for i, (t, (b, e), name) in enumerate(rows))))
            rows = sorted(rows, key=lambda row: row[0])
            asked = [(rng.randrange(60), rng.randrange(11)) for _ in range(40)]
            wanted = []
            for address, time in asked:
                there = [(t, name) for t, (b, e), name in rows if b <= address < e]
                before = [name for t, name in there if t <= time] or [name for _, name in there[:1]]
                if not time:
                    before = [there[0][1]] if len({name for _, name in there}) == 1 else []
                wanted.append(before[-1] if before else b"")
            assert names_at(code, [address for address, _ in asked], [time for _, time in asked]) == wanted
            assert [names_at(code, [address], [time])[0] for address, time in asked[:4]] == wanted[:4]

    def test_very_many_entries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What cannot be compared has no name, and does not keep others from having theirs."""
        monkeypatch.setattr(code_list, "MAX_COMPARED", 30)
        code = read_perf_map(b"1000 10 f\n2000 10 g\n" + b"2000 10 h\n" * 40)
        assert names_at(code, [0x1000, 0x2000]) == [b"f", b""]


class TestPerfMap:
    """`perf-PID.map`."""

    def test_lines(self) -> None:
        """Names may hold spaces, numbers a prefix; of two functions that had an address nothing says which ran."""
        data = b"7f00001000 20 old\n7f00001000 10 py::run:/srv/app.py\n0x7f00002000 0x8 LazyCompile:~f /a b.js:1\n"
        addresses = [0x7F00000FFF, 0x7F00001000, 0x7F0000100F, 0x7F00001010, 0x7F0000101F, 0x7F00001020, 0x7F00002007]
        assert names_at(read_perf_map(data), addresses) == [
            b"", b"", b"", b"old", b"old", b"", b"LazyCompile:~f /a b.js:1",
        ]  # fmt: skip

    def test_compiled_again(self) -> None:
        """A function that was compiled again at the same address has its name."""
        assert names_at(read_perf_map(b"1000 20 f\n1000 10 f\n1000 30 f\n"), [0x1000, 0x1028]) == [b"f", b"f"]

    def test_broken_lines_are_counted(self) -> None:
        """A line that is cut off, or is something else, spoils no other."""
        listing = read_perf_map(b"1000 10 f\nhello\n2000 10\n\n3000 zz g\n4000 10 h\r\n50").listing
        assert listing.function_linkage == [b"f", b"h"]
        assert listing.problems == ["4 of 6 lines are not START SIZE NAME"]

    def test_absurd_numbers(self) -> None:
        """A function cannot reach past the end of the address space, nor have all of it again and again."""
        code = read_perf_map(b"fffffffffffffff0 ffffffffffffffff f\n0 0 g\n")
        assert names_at(code, [0, 0xFFFFFFFFFFFFFFF8]) == [b"", b"f"]
        code = read_perf_map(b"1 ffffffffffffffff f\n" * 50 + b"1 8 g\n")
        assert names_at(code, [1, 100]) == [b"", b"f"]
        assert (np.diff(code.place.astype(object)) > 0).all()


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
        code = read_jitdump(data)
        assert code.listing.problems == []
        assert code_at(code, [0x1000, 0x1009, 0x100C, 0x1010, 0x1020]) == [
            (b"run", b"/a.js", 3), (b"run", b"/a.js", 4), (b"run", b"/b.js", 9), (b"bare", b"", 0), (b"", b"", 0),
        ]  # fmt: skip

    def test_lines_as_for_perf_inject(self) -> None:
        """Where all lines lie an ELF header too high, as some runtimes write them, they are moved back."""
        data = dump(lines(0x1000, [(0x1040, 3, b"/a.js"), (0x1048, 4, b"\xff")]), load(0x1000, 0x10, 1, b"run"))
        assert code_at(read_jitdump(data), [0x1000, 0x1008]) == [(b"run", b"/a.js", 3), (b"run", b"/a.js", 4)]

    def test_code_that_moves_and_code_that_is_replaced(self) -> None:
        """Code that moved is at both places, with its lines, at the new one from then on; code loaded over other code
        takes its place from then on."""
        data = dump(
            lines(0x1000, [(0x1000, 3, b"/a")]), load(0x1000, 0x10, 1, b"f", time=10),
            load(0x3000, 8, 3, b"h", time=15), move(1, 0x3000, 0x10, time=20), load(0x1008, 8, 2, b"g", time=30),
        )  # fmt: skip
        code = read_jitdump(data)
        f = (b"f", b"/a", 3)
        assert code_at(code, [0x1004, 0x1008, 0x3004, 0x300C]) == [f, (b"", b"", 0), (b"", b"", 0), f]
        asked = [(0x1008, 29), (0x1008, 30), (0x3004, 19), (0x3004, 20), (0x3004, 1), (0x1004, 99)]
        assert code_at(code, [address for address, _ in asked], [time for _, time in asked]) == [
            f, (b"g", b"", 0), (b"h", b"", 0), f, (b"h", b"", 0), f,
        ]  # fmt: skip

    def test_lines_that_change(self) -> None:
        """Of a function that was compiled again at the same address the lines are those of the time."""
        data = dump(
            lines(0x1000, [(0x1000, 3, b"/a")]), load(0x1000, 0x10, 1, b"f", time=10),
            lines(0x1000, [(0x1000, 7, b"/a")]), load(0x1000, 0x10, 2, b"f", time=20),
        )  # fmt: skip
        code = read_jitdump(data)
        assert code_at(code, [0x1004] * 3, [12, 22, 0]) == [(b"f", b"/a", 3), (b"f", b"/a", 7), (b"f", b"/a", 7)]

    def test_cut_anywhere(self) -> None:
        """A file of a process that was killed gives the functions that are whole."""
        data = dump(lines(0x1000, [(0x1000, 3, b"/a")]), load(0x1000, 0x10, 1, b"f"), load(0x2000, 8, 2, b"g"))
        for end in range(len(data)):
            listing = read_jitdump(data[:end]).listing
            assert listing.function_linkage in ([], [b"f"])
            assert len(listing.problems) <= 1

    def test_records_that_lie(self) -> None:
        """Absurd counts and sizes cost their own record only."""
        bad = record(2, struct.pack("<QQ", 0x2000, 1 << 60)) + record(0, b"x") + record(99, b"?") + record(1, b"")
        bad += b"".join(record(4, struct.pack("<QQQ", *sizes)) for sizes in ((1, 0, 1), (0, 1, 0), (1 << 63, 0, 0)))
        listing = read_jitdump(dump(bad, load(0x1000, 0x10, 1, b"f"), load(0x2000, 0x10, 2, b"g"))).listing
        assert listing.function_linkage == [b"f", b"g"]
        assert listing.problems == [
            "1 debug records are damaged: the lines of their functions are left out", "5 records are corrupt",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "damaged",
        [
            lines(0x1000, [(0x1000, 3, b"/a.js"), (0x0FFF, 5, b"garbage")]),
            lines(0x1000, [(0x1000, 3, b"/a.js"), (0x1051, 5, b"garbage")]),
            record(2, struct.pack("<QQQII", 0x1000, 1, 0x1000, 3, 0) + b"\xed.\0" + bytes(8)),
            record(2, struct.pack("<QQQII", 0x1000, 1, 0x1000, 3, 0) + b"endless"),
        ],
    )
    def test_damaged_debug_records(self, damaged: bytes) -> None:
        """A debug record with addresses outside of its code, or other bytes than those of its entries, gives no
        lines; the records around it do."""
        good = lines(0x2000, [(0x2000, 8, b"/b.js")]) + load(0x2000, 0x10, 2, b"g")
        code = read_jitdump(dump(damaged, load(0x1000, 0x10, 1, b"f"), good))
        assert code_at(code, [0x1000, 0x2000]) == [(b"f", b"", 0), (b"g", b"/b.js", 8)]
        assert code.listing.files == [b"/b.js"]
        assert any("1 debug records are damaged" in problem for problem in code.listing.problems)

    def test_padding(self) -> None:
        """Up to seven bytes behind the entries of a debug record are padding; its code may end with a line."""
        body = struct.pack("<QQ", 0x1000, 2) + struct.pack("<QII", 0x1000, 3, 0) + b"/a\0"
        padded = record(2, body + struct.pack("<QII", 0x1010, 4, 0) + b"\xff\0" + bytes(7))
        code = read_jitdump(dump(padded, load(0x1000, 0x10, 1, b"f")))
        assert code_at(code, [0x1000]) == [(b"f", b"/a", 3)]
        assert code.listing.problems == []

    def test_lines_that_repeat_absurdly(self) -> None:
        """Code with many lines that moves often is not laid out again and again."""
        moves = [move(1, 0x100000 * i, 0x10) for i in range(2, 500)]
        many = lines(0x1000, [(0x1000 + i % 16, i, b"\xff") for i in range(5000)])
        listing = read_jitdump(dump(many, load(0x1000, 0x10, 1, b"f"), *moves)).listing
        assert any("absurdly" in problem for problem in listing.problems)
