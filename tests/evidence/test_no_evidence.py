"""What the code of a file says of sampled addresses and call sites (R374, instructions of a file)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.evidence.code import DecodedCode
from symbolize.evidence.judge import Count, Evidence, Judge, Observed
from symbolize.symbols import Binary
from tests.support.frame_writer import CODE, Cie, Fde, framed_file

CALLEE, CALLER, BARE = 0x1100, 0x1180, 0x1300
"""Functions; the last has no call frame information."""
GAP = CALLEE + 0x40
"""Where the first one ends; the second begins 0x40 bytes behind."""
SITE = CALLER + 0x20
"""The last byte of a call of the first function."""
NO_SITE = CALLER + 0x30


def binary_of(folder: Path, gap: bytes = b"") -> Binary:
    """A binary of two functions, the second of which calls the first, with these bytes between them."""
    code = bytearray(b"\x90" * 0x1000)
    at = SITE - CODE - 4
    code[at : at + 5] = b"\xe8" + (CALLEE - (SITE + 1)).to_bytes(4, "little", signed=True)
    code[GAP - CODE : CALLER - CODE] = (gap or b"\x90").ljust(CALLER - GAP, gap[-1:] or b"\x90")
    path = folder / "prog"
    path.write_bytes(framed_file([Cie([Fde(CALLEE, 0x40), Fde(CALLER, 0x100)])], bytes(code)))
    return Binary([ElfImage.open(str(path))])


def count(
    binary: Binary, vaddrs: Sequence[int], *, is_sound: bool, pairs: Sequence[tuple[int, int]] = ()
) -> dict[Evidence, Count]:
    """What is counted of call sites; `pairs` are what was called, and its call site, by index."""
    all_of = np.ones(len(vaddrs), np.bool_)
    callee, caller = np.array(pairs or np.zeros((0, 2)), np.int64).T
    addresses = np.array(vaddrs, np.uint64)
    observed = Observed(addresses, all_of, ~all_of, all_of, is_sound, lambda: (callee, caller))
    return {each.kind: each for each in Judge().count(binary, observed) if each.judged}


@pytest.mark.parametrize(
    ("gap", "begins"),
    [
        (b"\x90", 0),
        (b"\xcc", 0),
        (b"\0", 0),
        (b"\x66\x0f\x1f\x44\0\0\x90", 0),
        (b"\x0f\x05\x48\x85\xc0\xc3\x90", -1),  # syscall, test, ret: the second half of a function in assembler
        (b"\xc3\x90", -1),
    ],
)
def test_what_is_between_functions(gap: bytes, begins: int, tmp_path: Path) -> None:
    """Only padding is known not to run; where there is other code nothing is known."""
    binary = binary_of(tmp_path, gap)
    code = DecodedCode.of(binary)
    assert code is not None
    vaddrs = np.array([GAP, GAP + 9, CALLER - 1, CALLER], np.uint64)
    assert code.begins_instruction(vaddrs).tolist() == [begins, begins, begins, 1]


@pytest.mark.parametrize("is_sound", [False, True])
def test_where_stacks_of_goroutines_end(is_sound: bool, tmp_path: Path) -> None:
    """One byte into a function that nothing called."""
    binary = binary_of(tmp_path)
    found = count(binary, [SITE, CALLER], is_sound=is_sound)
    (sites,) = found.values()
    assert (sites.judged, sites.contradicting) == (1, 0)


def test_data_that_is_read_as_frames(tmp_path: Path) -> None:
    """A walk along frame pointers finds data, padding, and the begin of a function in a table. Frames that were unwound
    by the rules of this file would not be there."""
    binary, vaddrs = binary_of(tmp_path), [SITE, NO_SITE, GAP + 3, CALLER - 1, 0x9000]
    walked = count(binary, vaddrs, is_sound=False)[Evidence.DOUBTFUL_SITES]
    assert (walked.judged, walked.contradicting) == (2, 1)
    sites = count(binary, vaddrs, is_sound=True)[Evidence.SITES]
    assert (sites.judged, sites.contradicting) == (5, 4)


def test_callers_of_code_without_rules(tmp_path: Path) -> None:
    """Its caller may be skipped, so that the next frame called another function."""
    binary = binary_of(tmp_path)
    vaddrs = [SITE, CALLEE + 4, BARE, CALLER + 0x80]
    for callee, expected in ((1, (1, 0)), (2, None), (3, (1, 1))):
        found = count(binary, vaddrs, is_sound=True, pairs=[(callee, 0)]).get(Evidence.TARGETS)
        assert (found and (found.judged, found.contradicting)) == expected
