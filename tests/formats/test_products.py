"""R276: what small inputs multiply is counted before it is made, by readers and by all that is written or shown."""

import gzip
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import symbolize
from symbolize.analysis import call_tree, stacks_of
from symbolize.analysis.stacks import CELLS, STEPS
from symbolize.analysis.tables import ShownTable, top_table, tree_table
from symbolize.analysis.text import text_lines
from symbolize.analysis.totals import function_totals
from symbolize.core.budget import MEMORY, NO_MOST, Budget
from symbolize.core.errors import InputError
from symbolize.formats.folded import writer as folded
from symbolize.formats.open import load_all
from symbolize.formats.outputs import OUTPUTS
from symbolize.formats.perf import reader as perf
from symbolize.formats.products import VALUES
from symbolize.formats.simpleperf import reader as simpleperf
from symbolize.profile import Profile
from symbolize.report import html, json
from tests.support.bombs import field, otlp_message, varint
from tests.support.costs import cost_of, needs_peak
from tests.support.fixture_files import FIXTURES
from tests.support.needs import find, needs_compiled
from tests.support.products import A_BOMB, READING, WRITING, otlp_profiles, pprof
from tests.support.simpleperf_writer import meta, report, sample

SECONDS = 5.0
MOST_MEMORY = 200 << 20
"""What one output of any of these may cost on a slow machine; unbounded ones take hours and fill it."""
MOST_WRITTEN = 100 << 20
PACKED = 200_000


class Sink(io.RawIOBase):
    """A file that counts what is written to it."""

    def __init__(self) -> None:
        self.size = 0

    def writable(self) -> bool:
        """So that it may be buffered."""
        return True

    def write(self, data: Any, /) -> int:
        """Count some bytes."""
        self.size += len(data)
        assert self.size < MOST_WRITTEN
        return len(data)


def loaded(data: bytes) -> list[Profile]:
    """The profiles of an input."""
    return [each.profile for each in load_all(io.BytesIO(data))]


def lines(profile: Profile, show: Callable[..., ShownTable], *options: Any) -> None:
    """Make all lines of a table."""
    sink = Sink()
    for line in text_lines(show(stacks_of(profile).only_default(), *options)):
        sink.write(line)


DOORS: dict[str, Callable[[Profile], object]] = {
    **{each.name: lambda profile, name=each.name: symbolize.write(profile, Sink(), emit=name) for each in OUTPUTS},
    "top": lambda profile: lines(profile, top_table),
    "tree": lambda profile: lines(profile, tree_table, 0.0),
    "callers": lambda profile: lines(profile, tree_table, 0.0, True),
    "report as json": lambda profile: json.render(json.as_dict(symbolize.symbolize(profile, ()).report, "in", "out")),
    "report as html": lambda profile: html.section(symbolize.symbolize(profile, ()).report, "in", "out"),
    "merge": lambda profile: symbolize.merge([profile, profile]),
    "to_arrow": lambda profile: profile.to_arrow(),
}
if not find("pyarrow"):
    del DOORS["parquet"], DOORS["to_arrow"]
"""All that is written, shown or made of a profile, with the packages that are installed."""


def refused(action: Callable[[], object]) -> str:
    """Why an action is refused; empty if it is not."""
    try:
        action()
    except InputError as error:
        assert A_BOMB.search(error.problem), error
        return error.problem
    return ""


@pytest.mark.process
@needs_compiled
@needs_peak
@pytest.mark.parametrize("name", READING)
def test_readers(name: str) -> None:
    """Few rows that very many refer to are refused, at once, in a file that is small once it is packed."""
    data = READING[name]()
    assert len(gzip.compress(data)) < PACKED

    cost = cost_of(lambda: refused(lambda: loaded(data)))
    assert cost.result
    assert cost.seconds < SECONDS
    assert cost.memory < MOST_MEMORY


@pytest.mark.process
@needs_compiled
@needs_peak
@pytest.mark.parametrize("name", WRITING)
@pytest.mark.full
def test_doors(name: str) -> None:
    """What can be read costs little in each output, or is refused there."""
    data, refusing = WRITING[name]
    (profile,) = loaded(data())
    for door, make in DOORS.items():
        cost = cost_of(lambda make=make: refused(lambda: make(profile)))
        assert (door in refusing) == bool(cost.result), (door, cost.result)
        assert cost.seconds < SECONDS, door
        assert cost.memory < MOST_MEMORY, door


RECORDED = (
    "go/census.pb.gz",
    "perf/ledger-clang-nopie-dwarf4-lld.pb.gz",
    "otlp/spectra-gcc-pie.otlp",
    "perf_data/events.data",
)


@pytest.mark.parametrize("name", RECORDED)
def test_real_profiles_are_far_from_that(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded profiles pass every door where nothing is free."""
    make = Budget.__init__

    def without_free(
        self: Budget, source: str, size: int, free: int, ratio: int, problem: str = MEMORY, most: int = NO_MOST
    ) -> None:
        make(self, source, size, 0, ratio, problem, most)

    monkeypatch.setattr(Budget, "__init__", without_free)
    for each in load_all(FIXTURES / "profiles" / name):
        for door, show in DOORS.items():
            assert not refused(lambda show=show, each=each: show(each.profile)), door


def test_processes_of_a_message() -> None:
    """The stacks of several processes, which are looked up at once, are bounded like those of each."""
    deep = field(2, field(3, b"\x08\x01") * 20_000) + field(7, field(1, b"\x02" * 9999))
    data = otlp_message(profiles=otlp_profiles(2, b"\x08\x02\x22\x01\x01"), dictionary=field(3, b"\x08\x01") + deep)
    with symbolize.Symbolizer() as symbolizer, pytest.raises(InputError, match="as only a bomb"):
        symbolize.write_otlp(load_all(io.BytesIO(data)), symbolizer, io.BytesIO())


def test_deep_inlining_passes() -> None:
    """A small profile of deeply inlined code, and a large one with the deepest chains that compilers make."""
    assert loaded(pprof(lines=[2000], stacks=[b"\x01" * 8000]))
    assert loaded(pprof(lines=[60], stacks=[b"\x01" * 300_000]))


def test_stacks_that_share_nothing_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree of many different stacks, with twenty values each, is shown."""
    monkeypatch.setattr("symbolize.analysis.stacks.CELLS", (0, *CELLS[1:]))
    count, depth = 300, 60
    names = [b"f%d" % each for each in range(count * depth)]
    rows = list(map(varint, range(1, 1 + len(names))))
    stacks = [b"".join(rows[first : first + depth]) for first in range(0, len(names), depth)]
    functions = range(4, 4 + len(names))
    (profile,) = loaded(pprof(types=20, texts=names, function_names=functions, lines=[1] * len(names), stacks=stacks))
    assert len(call_tree(stacks_of(profile))) == 1 + len(names)


def test_steps_of_sparse_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over the stacks take as many steps as samples have values, as those of merged profiles are mostly 0."""
    (profile,) = loaded(pprof(types=3, stacks=[b"\x01" * depth for depth in range(1, 11)]))
    stacks = stacks_of(profile)
    monkeypatch.setattr("symbolize.analysis.stacks.STEPS", (0, 1, STEPS[2]))
    assert refused(lambda: function_totals(stacks))
    sparse = np.where(np.arange(3) == np.arange(10).reshape(-1, 1) % 3, stacks.values, 0)
    sparse[0] = stacks.values[0]
    assert not refused(lambda: function_totals(replace(stacks, values=sparse)))


def test_letters_are_those_written() -> None:
    """What is counted of folded stacks is as much as their lines have."""
    stacks = stacks_of(symbolize.load(FIXTURES / "profiles" / "go" / "census.pb.gz")).only_default()
    written = b"".join(folded.pieces(stacks)).decode().splitlines()
    assert folded.letters(call_tree(stacks)) == sum(len(line[: line.rindex(" ") + 1]) for line in written)


def test_values_of_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of perf and simpleperf, which have values for all events, are not made where these are far too many."""
    data = (FIXTURES / "profiles" / "perf_data" / "events.data").read_bytes()
    assert loaded(data)
    monkeypatch.setattr(perf, "VALUES", (0, 1, VALUES[2]))
    with pytest.raises(InputError, match=r"has samples with \d+ values, \d+ for each record, as only a bomb has"):
        loaded(data)
    data = report([meta(b"a", b"b"), sample(1, [], event_type_id=0), sample(2, [], event_type_id=1)])
    assert loaded(data)
    monkeypatch.setattr(simpleperf, "VALUES", (0, 1, VALUES[2]))
    with pytest.raises(InputError, match="as only a bomb has"):
        loaded(data)
