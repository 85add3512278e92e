"""R452, stand-ins: frames of profiles that have stand-ins for names."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from symbolize import Reason, Symbolizer, load
from symbolize.core.arrays import TOP
from symbolize.enrich.edits import synthesize
from symbolize.profile import NONE, AddressKind, Profile
from tests.support.fixture_files import BINARIES
from tests.support.pprof_writer import Line, Mapping, Place, profile
from tests.support.profile_frames import frames_of

PIE = BINARIES / "gcc-pie"
PIE_ID = "5e3ede9cfcac812af078bd0cfe366fe00b102526"
LLD = BINARIES / "clang-nopie-dwarf4-lld"
LLD_ID = "d06409523cfd7e78eb5a075c3e50b82330b78e48"
MAIN, LLD_MAIN, LLD_OFFSET = 0x2320, 0x202B00, 0x1B00
"""Where `main` is: vaddr, and offset in the file, which differs from the vaddr in one of the files."""


def read(places: Sequence[Place], mappings: Sequence[Mapping] = ()) -> Profile:
    """A pprof file with these locations on one stack."""
    return load(io.BytesIO(profile(mappings, [(places, [1])])))


def placed(profile: Profile) -> list[tuple[str, str, int]]:
    """File, build id and address of each location."""
    mappings, text = profile.mappings, profile.strings.text
    return [
        (text(mappings.filename[row]), text(mappings.build_id[row]), address) if row != NONE else ("", "", address)
        for row, address in zip(profile.locations.mapping.tolist(), profile.locations.address.tolist(), strict=True)
    ]


def test_no_name_is_claimed() -> None:
    """A location keeps its place and loses the stand-in, and its mapping claims no names."""
    made = read(
        [Place(0x1010, 1, (Line("??", "??"),)), Place(0x1020, 1, (Line("[unknown]"),)), Place(0x9010, 2, (Line("f"),))],
        [Mapping(0x1000, 0x2000, 0, "/a", flags=(True,) * 4), Mapping(0x9000, 0xA000, 0, "/b", flags=(True,) * 4)],
    )
    assert [[frame[0] for frame in each] for each in frames_of(made)] == [[], [], ["f"]]
    assert placed(made) == [("/a", "", 0x1010), ("/a", "", 0x1020), ("/b", "", 0x9010)]
    assert made.mappings.has_functions.tolist() == [False, True]
    assert made.mappings.has_filenames.tolist() == [False, True]


def test_what_else_a_frame_says_stays() -> None:
    """A source line stays without a name, and an inlined stand-in stays a frame; the linked name becomes the name."""
    made = read(
        [
            Place(0x1010, 1, (Line("??", "a.c", 7),)),
            Place(
                0x1020,
                1,
                (
                    Line("??"),
                    Line("outer"),
                ),
            ),
            Place(0x1030, 1, (Line("??", system_name="_Z1fv"),)),
        ],
        [Mapping(0x1000, 0x2000, 0, "/a")],
    )
    lines, functions, strings = made.locations.lines, made.functions, made.strings
    found = [(strings[functions.name[row]], strings[functions.filename[row]]) for row in lines.function.tolist()]
    assert found == [(b"", b"a.c"), (b"", b""), (b"outer", b""), (b"_Z1fv", b"")]
    assert lines.line.tolist() == [7, 0, 0, 0]


def test_begins_of_functions() -> None:
    """The begin of a function counts in the module that the text tells of: in another it is a place of something
    else."""
    texts = ["liba.so!sub_10", "map!sub_add", "/x/liba.so!sub_30", "[kernel.kallsyms]!sub_40"]
    places = [Place(0x1010 + row, 1, (Line(text),)) for row, text in enumerate(texts)]
    places += [Place(0x9010, 2, (Line(texts[3]),)), Place(0, 0, (Line(texts[0]),))]
    made = read(
        places, [Mapping(0x1000, 0x2000, 0, "/lib/liba.so"), Mapping(0x9000, 0xA000, 0, "[kernel.kallsyms]_text")]
    )
    assert not made.locations.has_lines().any()
    assert made.locations.function_starts().tolist() == [0x10, 0, 0x30, 0, 0x40, 0x10]
    assert made.top(1)[0].name == "liba.so!sub_10"


@pytest.mark.parametrize("name", ["unknown", "fun_23d1", "sub_401000"])
def test_functions_that_may_be_called_so(name: str) -> None:
    """Where the source file is known it is a name (R452, stand-ins)."""
    mappings = [Mapping(0x1000, 0x2000, 0, "/a")]
    assert frames_of(read([Place(0x1010, 1, (Line(name, "a.c", 3),))], mappings))[0][0][0] == name
    assert frames_of(read([Place(0x1010, 1, (Line(name),))], mappings)) == [[]]


def test_function_with_offset() -> None:
    """`main+0x1a` is a function where the location is in another module, and a place where there is none."""
    line = (Line("main+0x1a"),)
    named = read([Place(0x1010, 1, line)], [Mapping(0x1000, 0x2000, 0, "/bin/app")])
    assert len(frames_of(named)[0]) == 1
    same = read([Place(0x1010, 1, line)], [Mapping(0x1000, 0x2000, 0, "/bin/main")])
    assert (frames_of(same), placed(same)) == ([[]], [("/bin/main", "", 0x1010)])
    assert len(frames_of(read([Place(0, 0, line)]))[0]) == 1
    assert placed(read([Place(0, 0, (Line("prog+0x1a40"),))])) == [("prog", "", 0x1A40)]


@pytest.mark.parametrize(
    ("file", "address", "kind"),
    [("/bin/libx.so", 0x17, AddressKind.OFFSET), ("/bin/main", 0, AddressKind.PROCESS)],
)
def test_place_in_a_file_that_is_known(file: str, address: int, kind: AddressKind) -> None:
    """A location without an address gets the one that its stand-in tells, if that is in the file of its mapping."""
    made = read([Place(0, 1, (Line("libx.so+0x17"),))], [Mapping(0x1000, 0x2000, 0, file, PIE_ID)])
    assert placed(made) == [(file, PIE_ID, address)]
    assert made.address_kind(int(made.locations.mapping[0])) is kind


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ("libx.so+0x17", ("libx.so", "", 0x17), AddressKind.OFFSET),
        ("lib 0x23d1", ("lib", "", 0x23D1), AddressKind.OFFSET),
        ("lib@9f3a1b2c4d5e6f70+0x23d3", ("lib", "9f3a1b2c4d5e6f70", 0x23D3), AddressKind.OFFSET),
        ("[kernel.kallsyms][+ffffffff93000000]", ("[kernel.kallsyms]", "", 0xFFFFFFFF93000000), AddressKind.KERNEL),
        ("0xffffffff93000000", ("[kernel.kallsyms]", "", 0xFFFFFFFF93000000), AddressKind.KERNEL),
        ("[libm.so.6]", ("libm.so.6", "", 0), AddressKind.PROCESS),
        ("[libm.so.6][+17]", ("libm.so.6", "", 0x17), AddressKind.OFFSET),
        ("[unknown_Java]", ("[unknown_Java]", "", 0), AddressKind.PROCESS),
        ("0x23d1", ("", "", 0x23D1), None),
        ("0xffffffffffffffff", ("", "", 0), None),
        ("<unknown>", ("", "", 0), None),
    ],
)
@pytest.mark.parametrize("form", ["pprof", "pprof with a mapping that says nothing", "folded"])
def test_places(text: str, expected: tuple[str, str, int], kind: AddressKind | None, form: str) -> None:
    """What a stand-in tells of module, build and offset is where the location is, in any format."""
    if form == "folded":
        made = load(io.BytesIO(b"root;" + text.encode() + b" 1\n"))
        place = placed(made)[int(np.flatnonzero(~made.locations.has_lines())[0])]
    else:
        mappings = [Mapping(0, 0)] if "mapping" in form else []
        made = read([Place(0, len(mappings), (Line(text),))], mappings)
        (place,) = placed(made)
        assert frames_of(made) == [[]]
    assert place == expected
    if kind is not None:
        row = next(row for row, name in enumerate(made.mappings.filename.tolist()) if made.strings.text(name))
        assert made.address_kind(row) is kind


@pytest.mark.parametrize(
    "text",
    [
        f"ledger@{PIE_ID}+{MAIN + 4:#x}",
        f"gone@{PIE_ID.upper()}+{MAIN + 4:#x}",
        f"unknown ([buildid:{PIE_ID}]) <{MAIN + 4:#x}>",
        f"buildid:{LLD_ID}+{LLD_OFFSET:#x}",
        f"ledger@{LLD_ID}+{LLD_MAIN:#x}",
    ],
)
def test_id_and_offset_are_looked_up(text: str) -> None:
    """A build id and an offset, in vaddrs or in bytes of the file, name the function, and prove the file."""
    made = load(io.BytesIO(f"root;{text} 1\n".encode()))
    with Symbolizer(binaries=[str(PIE), str(LLD)]) as symbolizer:
        result = symbolizer.symbolize(made)
    stack = next(iter(result.profile.stacks()))
    assert "main" in [frame.function for frame in stack]
    assert result.report.leaf_percent == 100
    assert all(row.verified for row in result.report.mappings if row.files)


def test_module_and_offset_are_looked_up() -> None:
    """So do the name of a file and an offset, where a pprof file has nothing else."""
    made = read([Place(0, 0, (Line(f"[ledger+{MAIN + 4:#x}]"),)), Place(0, 0, (Line("root"),))])
    with Symbolizer(binaries=[str(PIE)]) as symbolizer:
        result = symbolizer.symbolize(made)
    assert next(iter(result.profile.stacks()))[0].function == "main"


@pytest.mark.parametrize(
    ("folder", "offset", "function"),
    [("gcc-nopie-dwarf4", 0x1300, "main"), ("gcc-pie", 0x320, ""), ("gcc-pie", 0x10, "")],
)
def test_offsets_count_from_where_a_file_is_loaded(folder: str, offset: int, function: str) -> None:
    """Or are vaddrs; from where its code is mapped they do not count, where they would name something else (R163)."""
    made = load(io.BytesIO(f"root;/opt/ledger+{offset:#x} 1\n".encode()))
    with Symbolizer(binaries=[str(BINARIES / folder)]) as symbolizer:
        result = symbolizer.symbolize(made)
    assert next(iter(result.profile.stacks()))[0].function == function


def test_bytes_of_a_file_are_one_mapping() -> None:
    """From the first page to the last one with code that was sampled; an offset far beyond is apart (R452)."""
    offsets = 0x1234, 0x3001, 0x2000, 0x7FFF_0000
    made = load(io.BytesIO("".join(f"root;unknown (libx.so) <{each:#x}> 1\n" for each in offsets).encode()))
    mappings = made.mappings
    assert (mappings.limit - mappings.start).tolist() == [0x3000, 0x1000]
    assert mappings.file_offset.tolist() == [0x1000, 0x7FFF_0000]
    place = made.locations.mapping
    inside = made.locations.address - mappings.start[place] + mappings.file_offset[place]
    assert sorted(inside[place >= 0].tolist()) == sorted(offsets)


def test_names_that_came_along_do_not_protect_stand_ins(tmp_path: Path) -> None:
    """Stand-ins count as unnamed, and a file that nothing proves names them."""
    mapping = Mapping(0x10002000, 0x10004000, 0x2000, "/bin/ledger")
    places = [Place(0x10000000 + MAIN + 4, 1, (Line("??", "x.c", 3),))]
    with Symbolizer() as symbolizer:
        before = symbolizer.symbolize(read(places, [mapping]))
    assert (before.report.had_names, before.report.leaf_percent) == (0, 0)
    assert before.report.mappings[0].misses[0][0] is Reason.NOT_ASKED
    with Symbolizer(binaries=[str(PIE)]) as symbolizer:
        after = symbolizer.symbolize(read(places, [mapping]))
    assert next(iter(after.profile.stacks()))[0].function == "main"


def test_round_trips(tmp_path: Path) -> None:
    """What is shown for code without names in folded stacks comes back without names, and what `synthesize` writes."""
    made = load(io.BytesIO(b"main;[unknown];libx.so+0x17 2\n"))
    folded = str(tmp_path / "x.folded")
    with Symbolizer() as symbolizer:
        symbolizer.symbolize(made).write(folded)
    assert b"<unknown>" in Path(folded).read_bytes()
    again = load(folded)
    assert again.locations.has_lines().sum() == 1
    made = load(io.BytesIO(b"main;[unknown];libx.so+0x17;[app+0x958];[app+0x957] 2\n"))
    named = synthesize(made)
    assert named.locations.has_lines().sum() == 3
    with Symbolizer() as symbolizer:
        symbolizer.symbolize(named).write(folded, emit="folded")
    assert b";[libx.so+0x16];[app+0x957];[app+0x957] 2" in Path(folded).read_bytes()
    again = load(folded)
    assert again.locations.has_lines().sum() == 1
    assert ("app", "", 0x957) in placed(again)


def test_many_locations() -> None:
    """Each of many texts is a place of its own."""
    places = [Place(0, 0, (Line(f"lib{i % 7}.so+{i + 1:#x}"),)) for i in range(3000)]
    made = read(places)
    assert placed(made) == [(f"lib{i % 7}.so", "", i + 1) for i in range(3000)]
    assert len(made.mappings) == 7
    assert made.mappings.limit.tolist() == [TOP] * 7
