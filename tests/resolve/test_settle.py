"""R284, R285: what several attempts at a mapping come to; the rows are those of the table of `settle`."""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import pytest

from symbolize.core.errors import ChangedFile, ReadFailure
from symbolize.core.mapped import CHANGED
from symbolize.core.reasons import Failure, Reason, reason_of
from symbolize.elf import ElfImage
from symbolize.resolve.resolution import MappingAttempt, Resolution, settle
from symbolize.symbols import Binary
from tests.support.fixture_files import BINARIES

EARLIER = Failure(Reason.SERVER_FAILED, "http://localhost", "no answer")
WRITTEN, UNREAD = ChangedFile("a", CHANGED), ReadFailure("b", "no descriptors")
CHANGED_FIRST, REOPENED = ChangedFile("first", CHANGED), ChangedFile("opened before", CHANGED)
UNREAD_FIRST = ReadFailure("first", "no memory")
FIRST = CHANGED_FIRST, UNREAD_FIRST
OTHER: Any = "a list of symbols"


class Row(NamedTuple):
    """A row of the table: what failed of the attempts, the binary of the last one, and what comes of it: whether the
    binary is kept, and which failure counts or was transient."""

    failures: list[ReadFailure | None]
    binary: str
    reopened: ReadFailure | None
    is_kept: bool
    counts: ReadFailure | None
    transient: ReadFailure | None


def rows() -> Iterator[Row]:
    """All that the table has: "any" is each."""
    every, reopened = ("none", "other", "whole", "failed"), (None, REOPENED)
    for first, binary, again in product(FIRST, every, reopened):
        has_binary = binary != "none"
        yield Row([first, WRITTEN], binary, again, False, WRITTEN, None)
        yield Row([first, UNREAD], binary, again, has_binary, UNREAD, None)
        if binary in ("whole", "failed"):
            yield Row([first, None], binary, again, True, None, first)
        else:
            yield Row([first, None], binary, again, has_binary, first, None)
    for binary in every:
        yield Row([None], binary, REOPENED, binary != "none", None, REOPENED)
        yield Row([None], binary, None, binary != "none", None, None)


@pytest.fixture(scope="module")
def ledger() -> Iterator[Binary]:
    """A binary with its code and debug information, to which no other file would add anything."""
    binary = Binary([ElfImage.open(BINARIES / "gcc-pie" / "ledger")])
    yield binary
    binary.close()


@pytest.mark.parametrize("row", [*rows()], ids=lambda row: f"{row.binary}-{row.failures}-{row.reopened}")
def test_table(row: Row, ledger: Binary) -> None:
    """Each row comes to what the table says, whatever the results of earlier attempts were."""
    result = Resolution(
        {"none": None, "whole": ledger}.get(row.binary, OTHER),
        files=["first"] if row.binary == "failed" else ["c"],
        reason=Reason.NOT_FOUND if row.binary == "none" else Reason.SYMBOLIZED,
        detail="as it was",
        failures=[EARLIER],
    )
    attempts = [MappingAttempt(Resolution(OTHER, detail="thrown away"), each) for each in row.failures[:-1]]
    attempts.append(MappingAttempt(result, row.failures[-1], row.reopened))
    found = settle(attempts)
    assert found.binary is (result.binary if row.is_kept else None)
    assert found.files == result.files
    assert found.transient_failure == (Failure.of(row.transient) if row.transient is not None else None)
    if row.counts is None:
        assert (found.reason, found.detail, found.failures) == (result.reason, "as it was", [EARLIER])
    else:
        assert found.reason is (result.reason if row.is_kept else reason_of(row.counts))
        assert found.detail == str(row.counts)
        assert [*found.failures] == [EARLIER, Failure.of(row.counts)]
