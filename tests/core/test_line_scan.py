"""Lines that have a marker are found as by looking for each marker in each line."""

from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.line_scan import LineMarkers
from tests.support.seeds import examples

MARKERS = [b"+0x", b" + 0x", b" pc 0", b"frame #", b"?? ()", b"() from ", b"aa", b"ab"]
PIECES = st.sampled_from(
    [*MARKERS, *(each[:-1] for each in MARKERS), *(each[1:] for each in MARKERS), b"\n", b" ", b"x"]
)


@examples(200)
@given(st.lists(PIECES, max_size=40).map(b"".join))
def test_lines(text: bytes) -> None:
    """The begin of each line that has a marker, also one that is cut by the end, or follows itself."""
    begins = [0]
    for line in text.split(b"\n"):
        begins.append(begins[-1] + len(line) + 1)
    lines = text.split(b"\n")
    expected = [begin for begin, line in zip(begins, lines, strict=False) if any(each in line for each in MARKERS)]
    assert LineMarkers(MARKERS).lines(text) == expected
