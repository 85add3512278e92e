"""What filters leave of a profile that is symbolized later."""

import io
from collections import Counter

import pytest

import symbolize
from symbolize import Profile, Symbolizer
from symbolize.profile import LeafKind, StackSource
from symbolize.profile.facts import set_leaves
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.pprof_writer import Line, Mapping, Place, profile

DUMPS = FIXTURES / "profiles" / "perf_data" / "dwarf.data"


def dumped() -> Profile:
    """A recording of three threads with copies of their stacks, 15 of each."""
    return symbolize.load(DUMPS, sample_labels=["tid"])


def symbolized(made: Profile) -> Profile:
    """The profile with names, and with the callers in copies of stacks."""
    with Symbolizer(BINARIES / "gcc-pie") as symbolizer:
        return symbolizer.symbolize(made).profile


def names(made: Profile) -> Counter[tuple[str, ...]]:
    """The value of each stack of names."""
    found: Counter[tuple[str, ...]] = Counter()
    for stack, value in zip(made.stacks(), made.samples.values[:, 0].tolist(), strict=True):
        found[tuple(frame.function for frame in stack)] += value
    return found


@pytest.mark.parametrize("thread", [585, 586, 587])
def test_copies_of_stacks(thread: int) -> None:
    """Samples have the callers that are in their own copies, whichever samples were left out before."""
    left, others = dumped().filter(tagfocus=f"tid={thread}"), dumped().filter(tagignore=f"tid={thread}")
    assert left.warnings == ["15 samples lack their callers until their stack dumps are unwound."]
    found = names(symbolized(left))
    assert any(len(stack) > 3 for stack in found)
    assert found + names(symbolized(others)) == names(symbolized(dumped()))


def test_hidden_leaves() -> None:
    """Callers are found behind what is left at the end of a stack, as if they had been found before."""
    hidden = {"hide": "kallsyms"}
    assert names(symbolized(dumped().filter(**hidden))) == names(symbolized(dumped()).filter(**hidden))


@pytest.mark.parametrize(
    ("filters", "cut", "left"), [({"tagroot": "tid"}, 45, 0), ({"tagleaf": "tid"}, 45, 0), ({"hide": "spectra"}, 3, 12)]
)
def test_stacks_without_their_end(filters: dict[str, str], cut: int, left: int) -> None:
    """No callers are found for stacks on which filters put a frame, or from whose end they took one."""
    made = dumped().filter(**filters)
    more = [f"{left} samples lack their callers until their stack dumps are unwound."] if left else []
    assert made.warnings == [
        f"{cut} stacks were not unwound before frames were filtered: they lack their callers",
        *more,
    ]
    samples, dumps = made.samples, made.stack_dumps
    if dumps is not None:  # each is of a stack that ends where its registers say
        ends = samples.locations[samples.location_offsets[dumps.sample + 1] - 1]
        assert made.locations.address[ends].tolist() == dumps.registers[:, -1].tolist()
    assert len(dumps or ()) == left < len(samples)
    assert names(symbolized(made)).total() == made.samples.values[:, 0].sum()


@pytest.mark.parametrize(("filters", "kinds"), [({"hide": "^g$"}, []), ({"ignore": "^f$"}, [LeafKind.EXACT])])
def test_leaves(filters: dict[str, str], kinds: list[LeafKind]) -> None:
    """What leaves are is known as long as all that are left were leaves before."""
    places = [Place(0x1000 + 16 * row, 1, (Line(name),)) for row, name in enumerate("fgm")]
    stacks = [((places[0], places[2]), (1,)), ((places[1], places[2]), (1,))]
    made = symbolize.load(io.BytesIO(profile([Mapping(0x1000, 0x2000, 0, "/x")], stacks)))
    set_leaves(made, LeafKind.EXACT, StackSource.RECORDER)
    assert made.filter(**filters).leaf_kinds.tolist() == kinds


@pytest.mark.parametrize(
    ("expressions", "left"),
    [
        ({"focus": "a.so!sub_10$"}, {"a.so!sub_10": 1}),
        ({"ignore": "^a.so!sub_10$"}, {"b.so!sub_10": 2, "named": 4}),
        ({"hide": "!sub_"}, {"named": 4}),
        ({"show": "^b.so!sub"}, {"b.so!sub_10": 2}),
    ],
)
def test_functions_without_names(expressions: dict[str, str], left: dict[str, int]) -> None:
    """What is shown of a function without a name is what expressions find; one with a name has none of it."""
    mappings = [Mapping(0x1000, 0x2000, 0, "/lib/a.so"), Mapping(0x9000, 0xA000, 0, "/lib/b.so")]
    stacks = [([Place(0x1010, 1, (Line("a.so!sub_10"),))], [1]), ([Place(0x9010, 2, (Line("b.so!sub_10"),))], [2])]
    made = symbolize.load(io.BytesIO(profile(mappings, [*stacks, ([Place(0x9020, 2, (Line("named"),))], [4])])))
    made.locations.function_start[2] = 0x10
    assert {row.name: row.flat for row in made.filter(**expressions).top()} == left
