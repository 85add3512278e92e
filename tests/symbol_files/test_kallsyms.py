"""Lists of the kernel's symbols."""

import numpy as np

from symbolize.symbol_files import read_kallsyms
from symbolize.symbols import SymbolListBinary
from tests.support.kallsyms import LINES
from tests.support.listed import names_at


def names(data: bytes, *addresses: int) -> list[bytes]:
    """The name at each of the ascending addresses, empty where there is none."""
    return names_at(SymbolListBinary("kallsyms", read_kallsyms(data).listing).table(), addresses)


def test_only_functions_count_and_any_symbol_ends_one() -> None:
    """Kinds `T t W w` are functions; a table behind a function has no name and ends it (rule R124)."""
    found = names(LINES, *(0xFFFFFFFF81000000 + at for at in (0, 0x3F, 0x40, 0x80, 0xC0, 0xFF, 0x100, 0x1FF, 0x200)))
    assert found == [b"startup_64"] * 2 + [b"helper", b"weak_one", b"weaker_one", b"weaker_one", b"", b"", b"last_one"]


def test_code_of_the_start_is_gone() -> None:
    """The memory of code that ran at boot only is reused, and has no names (rule R124)."""
    assert names(LINES, 0xFFFFFFFF82000000, 0xFFFFFFFF82000010, 0xFFFFFFFF82000018) == [b""] * 3


def test_modules_and_code_made_at_run_time() -> None:
    """The last function of a module ends with the page of its start; BPF programs and trampolines have their names."""
    found = names(
        LINES, *(0xFFFFFFFFC0000000 + at for at in (0xFF, 0x100, 0xFFF, 0x1000, 0x4000, 0x4FFF, 0x5000, 0x200010)),
        0xFFFFFFFFC0200100, 0xFFFFFFFFC0300000, 0xFFFFFFFFC0300FFF, 0xFFFFFFFFC0301000,
    )  # fmt: skip
    assert found == [
        b"nft_do_chain", b"nft_last", b"nft_last", b"", b"other", b"other", b"",
        b"bpf_prog_6deef7357e7b4530_sd_fw_egress", b"bpf_prog_1234567812345678",
        b"ftrace_trampoline", b"ftrace_trampoline", b"",
    ]  # fmt: skip


def test_gaps_have_no_names() -> None:
    """A symbol does not reach over the megabytes up to the next one."""
    assert names(LINES, 0xFFFFFFFF81000300 + (1 << 20)) == [b""]


def test_anchors() -> None:
    """The places that tell where the kernel was loaded are found."""
    anchors = read_kallsyms(LINES).anchors
    assert anchors == (0xFFFFFFFF81000000, 0xFFFFFFFF81000000, 0xFFFFFFFF81000300, 0)
    assert anchors.core == (0xFFFFFFFF81000000, 0xFFFFFFFF81000300)


def test_hidden_addresses() -> None:
    """A file that was read without the right to see addresses is told (rule R124)."""
    hidden = b"".join(b"0" * 16 + line[16:] + b"\n" for line in LINES.splitlines())
    read = read_kallsyms(hidden)
    assert read.restricted
    assert not len(read.listing.start)
    assert not read_kallsyms(LINES).restricted
    assert not read_kallsyms(b"").restricted


def test_unsorted_32_bit_and_broken_lines() -> None:
    """Order does not matter, addresses may be short, lines of another form are counted and left out."""
    data = b"c0008100 t b\nnonsense\nc0008000 T a\r\n\xff\xfe T\nc0008200 t c"
    read = read_kallsyms(data)
    assert read.listing.problems == ["2 of 5 lines are no symbols"]
    assert names(data, 0xC0008000, 0xC0008100, 0xC0008200, 0xC0008FFF, 0xC0009000) == [b"a", b"b", b"c", b"c", b""]


def test_end_of_the_address_space() -> None:
    """The last symbol may lie in the last page there is."""
    assert names(b"fffffffffffff000 t top\n", 0xFFFFFFFFFFFFF000, 0xFFFFFFFFFFFFFFF0) == [b"top", b"top"]


def test_no_symbols_at_all() -> None:
    """An empty file lists nothing."""
    assert np.array_equal(read_kallsyms(b"").listing.start, np.zeros(0, np.uint64))
