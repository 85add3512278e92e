"""Which frames of a profile are evidence for a binary: exact leaves, and call sites that count (R148)."""

import io
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize import Profile, load
from symbolize.profile import AddressKind, LeafKind, StackSource
from symbolize.resolve.mapping_record import MappingRecord, records_of
from tests.support.pprof_writer import Mapping, Place, profile
from tests.support.seeds import examples

CODE, OTHER, MEMORY = (
    Mapping(base, base + 0x10000, 0, name) for base, name in ((0x10000, "a"), (0x20000, "b"), (0x30000, "//anon"))
)
KERNEL = Mapping(0xFFFF_FFFF_8100_0000, 0xFFFF_FFFF_8200_0000, 0, "[kernel.kallsyms]")
MAPPINGS = [CODE, OTHER, MEMORY, KERNEL]


def recorded(
    *stacks: Sequence[int],
    values: Sequence[Sequence[int]] | None = None,
    leaf_kinds: Sequence[LeafKind] = (LeafKind.EXACT,),
    source: StackSource = StackSource.UNKNOWN,
) -> Profile:
    """A profile of stacks, leaf first; addresses in no mapping stay so."""

    def place(address: int) -> Place:
        number = next((n for n, each in enumerate(MAPPINGS, 1) if each.start <= address < each.limit), 0)
        return Place(address, number)

    rows = values or [[1] * len(leaf_kinds)] * len(stacks)
    types = [(f"t{number}", "count") for number in range(len(leaf_kinds))]
    data = profile(MAPPINGS, [([*map(place, stack)], row) for stack, row in zip(stacks, rows, strict=True)], types)
    made = load(io.BytesIO(data))
    made.leaf_kinds = np.array(leaf_kinds, np.uint8)
    made.stack_source = source
    made.address_kinds = np.array([0, 0, AddressKind.NO_BINARY, AddressKind.KERNEL], np.uint8)
    return made


def of_code(made: Profile) -> MappingRecord:
    """What is recorded of the first mapping."""
    return records_of(made, with_names=False)[0]


def leaves(record: MappingRecord) -> list[int]:
    """The addresses that are exact."""
    return sorted(record.addresses[record.is_leaf].tolist())


def sites(record: MappingRecord) -> list[int]:
    """The addresses that are call sites."""
    return sorted(record.addresses[record.is_call].tolist())


LOST = 0x90000
"""An address in no mapping."""


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ([0x10010, 0x10020, 0x10030], [0x10020, 0x10030]),
        ([0x10010, 0x20020, 0x10030], [0x10030]),
        ([0x10010, LOST, 0x10030], []),
        ([LOST, 0x10020, 0x10030], []),
        ([0x10010, 0x10020, LOST, 0x10030], [0x10020]),
        ([0x10010, 0x10020, 0x30020, 0x10030], [0x10020]),
        ([KERNEL.start + 16, KERNEL.start + 32, 0x10020, 0x10030], [0x10030]),
    ],
)
def test_call_sites_behind_known_code(stack: Sequence[int], expected: Sequence[int]) -> None:
    """What a walk finds behind a frame in no file may be any data, such as tables of virtual functions; the kernel is
    known code, and where it was entered is no call."""
    record = of_code(recorded(stack))
    assert sites(record) == expected
    assert not record.is_sound


def test_sound_stacks() -> None:
    """What call frame information found is behind whatever there is: the unwinder stops where it knows nothing."""
    record = of_code(recorded([0x10010, 0x10020, LOST, 0x10030], source=StackSource.OWN_UNWINDING))
    assert record.is_sound
    assert sites(record) == [0x10020, 0x10030]


def test_one_stack_with_known_code_is_enough() -> None:
    """A call site counts if it does so on one stack."""
    assert sites(of_code(recorded([0x10010, LOST, 0x10030], [0x10010, 0x10030]))) == [0x10030]


def test_leaves() -> None:
    """The first frame of each stack, and where the kernel was entered."""
    kernel = KERNEL.start + 16
    record = of_code(recorded([0x10010, 0x10020], [kernel, kernel + 16, 0x10030, 0x10040], [], [0x20010, 0x10050]))
    assert leaves(record) == [0x10010, 0x10030]
    assert sites(record) == [0x10020, 0x10040, 0x10050]


def test_kinds_of_leaves() -> None:
    """Only leaves of sample types that have exact ones, with a value; those of allocations are call sites."""
    kinds = (LeafKind.EXACT, LeafKind.CALL_SITE, LeafKind.UNKNOWN)
    values = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 1, 0], [0, 0, 0]]
    made = recorded(*([0x10010 + 16 * each] for each in range(5)), values=values, leaf_kinds=kinds)
    assert leaves(of_code(made)) == [0x10010, 0x10040]
    made.leaf_kinds = made.leaf_kinds[:0]
    assert leaves(of_code(made)) == []


@pytest.mark.parametrize("between", [[], [[]], [[], []]])
def test_pairs_on_a_stack(between: list[Sequence[int]]) -> None:
    """A leaf is not the caller of the outermost frame of the stack before, though it is a call site on another one."""
    made = recorded(
        [], [0x10010, 0x10020], *between, [0x10030, 0x10040], [0x10050, 0x10030, 0x20010, 0x20020], [0x20020], []
    )
    for record, expected in zip(
        records_of(made, with_names=False),
        ({(0x10010, 0x10020), (0x10030, 0x10040), (0x10050, 0x10030)}, {(0x20010, 0x20020)}),
        strict=False,
    ):
        assert record.pairs is not None
        callee, caller = (made.locations.address[rows].tolist() for rows in record.pairs())
        assert set(zip(callee, caller, strict=True)) == expected


STACKS = st.lists(
    st.builds(
        list.__add__,
        st.lists(st.sampled_from([KERNEL.start + 8, KERNEL.start + 16]), max_size=2),
        st.lists(st.sampled_from([0x10010, 0x10020, 0x20010, 0x30010, LOST]), max_size=4),
    ),
    min_size=1,
    max_size=6,
)


@examples(100)
@given(STACKS, st.data(), st.booleans())
def test_any_stacks(stacks: list[list[int]], data: st.DataObject, is_sound: bool) -> None:
    """Leaves and call sites are those that a walk over each stack finds: frames of the kernel are the first ones; above
    them the process may be at any instruction; and on stacks that are not sound a frame behind memory counts for
    nothing."""
    values = [data.draw(st.tuples(st.integers(-1, 1), st.integers(-1, 1))) for _ in stacks]
    kinds = (LeafKind.EXACT, LeafKind.CALL_SITE) if data.draw(st.booleans()) else (LeafKind.CALL_SITE, LeafKind.EXACT)
    source = StackSource.OWN_UNWINDING if is_sound else StackSource.FRAME_POINTERS
    made = recorded(*stacks, values=values, leaf_kinds=kinds, source=source)
    exact, sites = set(), set()
    for stack, value in zip(stacks, values, strict=True):
        kernel = next((depth for depth, each in enumerate(stack) if each < KERNEL.start), len(stack))
        known = next((depth for depth, each in enumerate(stack) if depth >= kernel and not each < 0x30000), len(stack))
        if value[kinds.index(LeafKind.EXACT)] and stack:
            exact.add(stack[0])
            if 0 < kernel < len(stack) - 1:
                exact.add(stack[kernel])
        sites |= {each for depth, each in enumerate(stack) if depth and depth != kernel and (is_sound or depth < known)}
    records = records_of(made, with_names=False)
    found = [
        {int(each) for record in records for each in record.addresses[getattr(record, column)].tolist()}
        for column in ("is_leaf", "is_call")
    ]
    assert found == [exact, sites]
