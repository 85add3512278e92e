"""Profiles through all stages, in the library."""

import binascii
import gzip
import io
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

import symbolize
from symbolize import Reason, Symbolizer, UsageError
from symbolize.binaries import Kind, Unasked
from symbolize.elf import ElfImage, inside_calls
from symbolize.formats import encode
from symbolize.options import DEFAULTS, Options
from symbolize.report.json import folded
from tests.support import fixture_files as fixtures
from tests.support.elf_writer import (
    ALLOC,
    ARM,
    EXEC,
    I386,
    MIPS,
    Section,
    Segment,
    Symbol,
    elf_file,
)
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.kernel_modules import MODULE_ID, MODULE_START, write_module
from tests.support.messages import profile_pb2
from tests.support.pprof_writer import Line, Mapping, Place, profile
from tests.support.spectra import (
    BASE,
    CODE,
    DEBUG,
    FIXED,
    MAIN,
    PIE,
    PIE_ID,
    SPLIT_ID,
    STRIPPED,
    WHOLE,
    code_of,
    load_headers,
    main_of,
    shifted,
)
from tests.support.tiny_elf import write as write_elf


def run(
    mappings: Sequence[Mapping], places: Sequence[Place], *roots: Path, options: Options = DEFAULTS
) -> tuple[Any, symbolize.Report]:
    """The symbolized profile, decoded, and the report, for a profile whose only stack has these locations."""
    made = symbolize.load(io.BytesIO(profile(mappings, [(places, [1])])))
    with Symbolizer(roots, options) as symbolizer:
        result = symbolizer.symbolize(made)
    return profile_pb2.Profile.FromString(encode(result.profile)), result.report


def names(message: Any) -> list[list[str]]:
    """The names of the frames of each location of the only stack."""
    by_id = {function.id: message.string_table[function.name].decode() for function in message.function}
    locations = {location.id: location for location in message.location}
    return [[by_id[line.function_id] for line in locations[i].line] for i in message.sample[0].location_id]


def reasons(report: symbolize.Report) -> list[Reason]:
    """Why locations were missed, over all mappings."""
    return [reason for row in report.mappings for reason, _, _ in row.misses]


def without_build_id(data: bytes) -> bytes:
    """A binary whose build id note is of another kind."""
    note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
    assert data.count(note) == 1
    return data.replace(note, note.replace(b"\x03", b"\x33"))


def test_nearest_line() -> None:
    """On demand a frame without a line gets the nearest earlier one, and the report says so (rule R170)."""
    path = BINARIES / "clang-pie" / "libresonance.so"
    offset, vaddr, size = code_of(path)
    mapping = Mapping(BASE + offset, BASE + offset + size, offset, str(path))
    places = [Place(BASE + 0x223F - vaddr + offset, 1)]
    lines = []
    for options in (DEFAULTS, Options(nearest_line=True)):
        message, report = run([mapping], places, path.parent, options=options)
        lines.append((message.location[0].line[0].line, report.mappings[0].approximate_lines))
    assert lines == [(0, 0), (51, 1)]


class TestMappings:
    """The mappings that a loader, the kernel and the program itself make of one file."""

    @pytest.mark.parametrize(
        ("desc", "mappings"),
        [
            ("the code alone", [WHOLE]),
            ("the whole file at once", [WHOLE._replace(start=BASE, limit=BASE + 0x7000, offset=0)]),
            ("cut by mprotect", [WHOLE._replace(limit=BASE + 0x3000),
                                 WHOLE._replace(start=BASE + 0x3000, offset=0x3000)]),
            ("other address", [WHOLE._replace(start=0x7FFF_0000_2000, limit=0x7FFF_0000_4000)]),
        ],
    )  # fmt: skip
    def test_position_independent(self, desc: str, mappings: list[Mapping]) -> None:
        """Wherever a PIE was loaded and however its mapping was cut, an address gives the same function."""
        base = mappings[0].start - mappings[0].offset
        places = [
            Place(base + MAIN, next(i for i, m in enumerate(mappings, 1) if m.start <= base + MAIN < m.limit)),
            Place(base + 0x3325, len(mappings)),
        ]
        message, report = run(mappings, places, PIE.parent)
        leaf, inlined = names(message)
        assert leaf[-1] == "main"
        assert len(inlined) > 3
        assert report.percent == 100

    @pytest.mark.parametrize("alone", [False, True], ids=["binary", "debug file alone"])
    @pytest.mark.parametrize(
        ("desc", "begin", "end"),
        [
            ("ends inside the code, begins with the file", 0, 0x3400),
            ("ends inside the code", 0x2000, 0x3400),
            ("begins inside the code", 0x3000, 0x4000),
            ("from before the code on into it", 0x1000, 0x3400),
            ("code and data", 0x1000, 0x5000),
            ("larger than the file", 0x2000, 0x40000),
            ("larger than the file, from its beginning on", 0, 0x40000),
        ],
    )
    def test_any_part_of_a_proven_file(self, desc: str, begin: int, end: int, alone: bool) -> None:
        """With the right build id each address in the mapping is converted, whatever part of the file is mapped (R127,
        offset of each address), of a debug file alone within its segment (R103); without one a mapping that reaches
        past the file is of another."""
        folder, build_id = (DEBUG.parent, SPLIT_ID) if alone else (PIE.parent, PIE_ID)
        recorded = Mapping(BASE + begin, BASE + end, begin, WHOLE.file, build_id)
        places = [Place(BASE + vaddr, 1) for vaddr in range(0x2400, 0x3680, 0x40)]
        expected = names(run([WHOLE._replace(build_id=build_id)], places, folder)[0])
        message, report = run([recorded], places, folder)
        if alone and not (begin >= 0x2000 and end <= 0x4000):  # beyond its segment, whose place in the file is not told
            assert reasons(report) == [Reason.MISFIT]
            return
        assert names(message) == [
            found if recorded.start <= place.address < recorded.limit else []
            for found, place in zip(expected, places, strict=True)
        ]
        assert not {*reasons(report)} - {Reason.OUTSIDE_SEGMENTS, Reason.OUTSIDE_SYMBOLS}
        if end > 0x6000:
            message, report = run([recorded._replace(build_id="")], places, folder)
            assert reasons(report) == [Reason.MISFIT]

    def test_lost_offset_of_a_proven_file(self) -> None:
        """Where the build id proves the file, call sites tell that its code is not mapped from offset 0 on (R147)."""
        with ElfImage.open(str(PIE)) as image:
            vaddrs = np.arange(0x2000, 0x3400, dtype=np.uint64)
            in_calls = inside_calls(image, vaddrs)
        assert in_calls is not None
        sites = vaddrs[:-1][in_calls[:-1] & ~in_calls[1:]].tolist()  # where calls return to
        places = [Place(BASE + site, 1) for site in sites]
        _, report = run([WHOLE._replace(limit=BASE + 0x3400, offset=0, build_id=PIE_ID)], places, PIE.parent)
        assert reasons(report) == [Reason.MISFIT]

    def test_fixed_address(self) -> None:
        """A position-dependent file is found by its addresses even where the mapping lost its offset."""
        main = main_of(FIXED)
        for offset in (0x2000, 0):
            mapping = Mapping(0x203000, 0x204000, offset, "/x/spectra", "8103350fd5b410ce46a66c2cfaa9af537edec6c5")
            message, _ = run([mapping], [Place(main, 1)], FIXED.parent)
            assert names(message)[0][-1] == "main"

    def test_no_mapping_named(self) -> None:
        """A location without a mapping is matched by its address, and the output says to which."""
        message, report = run([WHOLE], [Place(BASE + MAIN), Place(0x1234)], PIE.parent)
        assert [frames[-1:] for frames in names(message)] == [["main"], []]
        assert [location.mapping_id for location in message.location] == [1, 0]
        assert reasons(report) == [Reason.NO_MAPPING]

    def test_mapping_of_everything(self) -> None:
        """Addresses in a mapping of everything that has a build id are vaddrs."""
        message, _ = run([Mapping(0, 0, 0, "", PIE_ID)], [Place(MAIN, 1)], PIE.parent)
        assert names(message)[0][-1] == "main"

    def test_bad_addresses_spoil_nothing(self) -> None:
        """Addresses outside the mapping, in padding and at the ends of the address space are missed one by one."""
        _, vaddr, size = CODE
        places = [Place(a, 1) for a in (0, BASE, BASE + MAIN, BASE + vaddr + size, 2**64 - 1)]
        message, report = run([WHOLE], places, PIE.parent)
        assert [frames[-1:] for frames in names(message)] == [[], [], ["main"], [], []]
        assert reasons(report) == [Reason.OUTSIDE_SEGMENTS]

    def test_bad_mappings_spoil_nothing(self) -> None:
        """Mappings with absurd numbers next to a good one are missed, each with a reason."""
        top = 2**64 - 1
        bad = [
            WHOLE._replace(start=top, limit=0), WHOLE._replace(offset=top), WHOLE._replace(start=0x4000, limit=0x1000),
            WHOLE._replace(build_id="zz"), WHOLE._replace(build_id="", file=""),
            WHOLE._replace(build_id="", file="[heap]"),
            Mapping(top - 4096, top, top, "/x", SPLIT_ID),
        ]  # fmt: skip
        places = [Place(m.start + 1 & top, i + 2) for i, m in enumerate(bad)]
        message, report = run([WHOLE, *bad], [Place(BASE + MAIN, 1), *places], PIE.parent, DEBUG.parent)
        assert names(message)[0][-1] == "main"
        assert names(message)[1:] == [[]] * len(bad)
        assert sum(locations for row in report.mappings for _, locations, _ in row.misses) == len(bad)


class TestFiles:
    """Which files a mapping is symbolized with."""

    PLACES = (Place(BASE + 0x345D, 1),)
    MAPPING = Mapping(BASE + 0x2000, BASE + 0x4000, 0x2000, "/opt/spectra/bin/spectra", SPLIT_ID)

    def chain(self, *roots: Path, **changes: Any) -> tuple[list[str], symbolize.Report]:
        message, report = run([self.MAPPING._replace(**changes)], self.PLACES, *roots)
        return names(message)[0], report

    @pytest.mark.parametrize(
        "build_id", [SPLIT_ID, SPLIT_ID.upper(), SPLIT_ID + "0" * 24], ids=["same", "upper", "padded"]
    )
    def test_build_id_forms(self, build_id: str) -> None:
        """Case and padding of the recorded build id do not matter, and the output keeps it as it was."""
        message, report = run([self.MAPPING._replace(build_id=build_id)], self.PLACES, DEBUG.parent)
        assert len(names(message)[0]) > 3
        assert report.mappings[0].verified
        assert message.string_table[message.mapping[0].build_id].decode() == build_id

    @pytest.mark.needs("objcopy")
    def test_best_file_of_a_build(self, tmp_path: Path) -> None:
        """Of the files of one build DWARF beats symbols, and symbols beat none; in whatever folder they lie."""
        unit = tmp_path / "symtab"
        subprocess.run(["objcopy", "--strip-debug", DEBUG, unit], check=True)
        expected, _ = self.chain(DEBUG.parent)
        assert len(expected) > 3
        for roots in ([STRIPPED.parent, DEBUG.parent], [unit, DEBUG.parent], [DEBUG.parent, STRIPPED.parent, unit]):
            assert self.chain(*roots)[0] == expected
        assert self.chain(STRIPPED.parent, unit)[0] == expected[-1:]
        bare, report = self.chain(STRIPPED.parent)
        assert bare == []
        assert reasons(report) == [Reason.NO_SYMBOLS]

    @pytest.mark.parametrize(
        "route", ["build id", "debug link", "debug link without ids", "layout", "unified", "list", "prelinked"]
    )
    def test_same_frames_by_every_route(self, route: str, tmp_path: Path) -> None:
        """However a stripped binary and its debug file come together, the frames are the same (rules R138, R139, R141,
        R145)."""
        expected, _ = self.chain(STRIPPED.parent, DEBUG.parent)
        assert len(expected) > 3
        stripped, debug = STRIPPED.read_bytes(), DEBUG.read_bytes()
        places, changes, verified = {"a/spectra": stripped, "b/spectra.debug": debug}, {}, True
        if route != "build id" and route != "prelinked":
            old = binascii.crc32(debug).to_bytes(4, "little")
            bare = without_build_id(debug)
            new = binascii.crc32(bare).to_bytes(4, "little")
            assert stripped.count(old) == 1
            places = {"a/spectra": stripped.replace(old, new), "b/spectra.debug": bare}
        if route == "debug link without ids":
            places["a/spectra"] = without_build_id(places["a/spectra"])
            changes, verified = {"build_id": ""}, False
        elif route in ("layout", "unified", "list"):
            places["a/spectra"] = without_build_id(places["a/spectra"])
            verified = False
            if route == "layout":
                places = {f"{SPLIT_ID}/spectra": places["a/spectra"], f"{SPLIT_ID}/spectra.debug": bare}
            elif route == "unified":
                folder = f"{SPLIT_ID[:2]}/{SPLIT_ID[2:]}"
                packed = zstandard.compress(places["a/spectra"]), zstandard.compress(bare)
                places = dict(zip((f"{folder}/executable", f"{folder}/debuginfo"), packed, strict=True))
            else:
                places["build_id_list"] = f"0x{SPLIT_ID}=a/spectra".encode()
        elif route == "prelinked":
            places["a/spectra"] = shifted(stripped, 0x3000_0000)
        for place, data in places.items():
            (tmp_path / "root" / place).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "root" / place).write_bytes(data)
        found, report = self.chain(tmp_path / "root", **changes)
        assert found == expected
        assert report.mappings[0].verified == verified
        assert len(report.mappings[0].files) == 2
        assert report.mappings[0].problems == []

    def test_debug_file_with_other_segments(self, tmp_path: Path) -> None:
        """A file of the same build id whose segments lie otherwise is refused, and the binary stays (rule R145)."""
        shutil.copy(STRIPPED, tmp_path / "spectra")
        data = bytearray(DEBUG.read_bytes())
        for number, place in enumerate(load_headers(data)):
            vaddr = int.from_bytes(data[place + 16 : place + 24], "little")
            data[place + 16 : place + 24] = (vaddr + 0x1000 * number).to_bytes(8, "little")
        (tmp_path / "spectra.debug").write_bytes(data)
        bare, report = self.chain(tmp_path)
        assert bare == []
        assert reasons(report) == [Reason.NO_SYMBOLS]
        assert report.mappings[0].files == [str(tmp_path / "spectra")]
        assert "segments that do not agree" in report.mappings[0].problems[0]

    @pytest.mark.needs("eu-strip", "objcopy")
    def test_debug_files_of_both_makers(self, tmp_path: Path) -> None:
        """Debug files by objcopy and by eu-strip are enough by themselves, by build id as well as by name."""
        debug = tmp_path / "eu" / "spectra.debug"
        debug.parent.mkdir()
        shutil.copy(PIE, tmp_path / "copy")
        subprocess.run(["eu-strip", "-f", debug, tmp_path / "copy"], check=True)
        objcopy = tmp_path / "objcopy" / "spectra.debug"
        objcopy.parent.mkdir()
        subprocess.run(["objcopy", "--only-keep-debug", PIE, objcopy], check=True)
        expected = names(run([WHOLE], [Place(BASE + 0x3325, 1)], PIE.parent)[0])
        assert len(expected[0]) > 3
        for folder in (debug.parent, objcopy.parent):
            for build_id in (PIE_ID, ""):
                message, _ = run([WHOLE._replace(build_id=build_id)], [Place(BASE + 0x3325, 1)], folder)
                assert names(message) == expected

    def test_cut_mapping_and_debug_file_alone(self) -> None:
        """A debug file without segments places also the parts that mprotect cut the code into."""
        message, _ = run([self.MAPPING._replace(start=BASE + 0x3000, offset=0x3000)], self.PLACES, DEBUG.parent)
        assert len(names(message)[0]) > 3

    def test_name_only_is_unverified(self) -> None:
        """Without a build id the name decides, and the report marks it."""
        chain, report = self.chain(DEBUG.parent, build_id="")
        assert len(chain) > 3
        assert report.mappings[0].files == [str(DEBUG)]
        assert not report.mappings[0].verified

    def test_other_build(self) -> None:
        """A file of the right name and another build id names nothing."""
        chain, report = self.chain(PIE.parent)
        assert chain == []
        assert reasons(report) == [Reason.BUILD_ID_DIFFERS]
        assert PIE_ID in report.mappings[0].detail

    def test_file_too_short_for_the_mapping(self) -> None:
        """A file of the right name that is shorter than what was mapped of it names nothing."""
        chain, report = self.chain(PIE.parent, build_id="", limit=BASE + 0x40000)
        assert chain == []
        assert reasons(report) == [Reason.MISFIT]

    def test_cut_in_half(self, tmp_path: Path) -> None:
        """A binary cut in half is told, names nothing, and does not spoil the debug file beside it."""
        cut = tmp_path / "cut" / "spectra"
        cut.parent.mkdir()
        cut.write_bytes(STRIPPED.read_bytes()[: STRIPPED.stat().st_size // 2])
        chain, report = self.chain(cut.parent)
        assert chain == []
        assert reasons(report) == [Reason.UNREADABLE]
        assert str(cut) in report.mappings[0].problems[0]
        chain, report = self.chain(cut.parent, DEBUG.parent)
        assert len(chain) > 3
        assert any(str(cut) in problem for problem in report.mappings[0].problems)

    def test_file_that_went_away(self, tmp_path: Path) -> None:
        """A file that is gone when it is needed is reported, and the other file of the build is used."""
        for path, name in ((STRIPPED, "stripped"), (DEBUG, DEBUG.name), (PIE, "other")):
            shutil.copy(path, tmp_path / name)
        made = [symbolize.load(io.BytesIO(profile([m], [(self.PLACES, [1])]))) for m in (WHOLE, self.MAPPING)]
        with Symbolizer([tmp_path]) as symbolizer:
            symbolizer.symbolize(made[0])
            (tmp_path / "stripped").unlink()
            result = symbolizer.symbolize(made[1])
        assert result.report.percent == 100
        assert result.report.mappings[0].files == [str(tmp_path / DEBUG.name)]
        assert result.report.failures == [(Reason.CHANGED, f"{tmp_path}/stripped", "changed while it was read")]

    @pytest.mark.needs("objcopy")
    def test_debug_file_cut_in_half(self, tmp_path: Path) -> None:
        """Of a debug file cut in half is told where, and the symbols of the binary beside it are used."""
        unit = tmp_path / "unit"
        subprocess.run(["objcopy", "--strip-debug", PIE, unit], check=True)
        cut = tmp_path / "spectra.debug"
        cut.write_bytes(PIE.read_bytes()[: PIE.stat().st_size // 2])
        message, report = run([WHOLE], [Place(BASE + MAIN, 1)], tmp_path)
        assert names(message) == [["main"]]
        assert any(str(cut) in problem for problem in report.mappings[0].problems)

    def test_no_code_at_all(self, tmp_path: Path) -> None:
        """A file that has the build id and nothing else is told to have no symbols, or not to fit."""
        write_elf(tmp_path / "spectra", SPLIT_ID)
        chain, report = self.chain(tmp_path)
        assert chain == []
        assert reasons(report)[0] in (Reason.NO_SYMBOLS, Reason.MISFIT)


class TestProfile:
    """What the output keeps, gains and loses."""

    def test_without_binaries(self) -> None:
        """Without folders a profile comes out as it came in, and the report says that nothing was asked for."""
        place = Place(BASE + MAIN, 1, (Line("_ZN1a1bEv", "a.c", 3),), is_folded=True)
        message, report = run([WHOLE], [place, Place(BASE + 0x3325, 1)])
        assert names(message) == [["_ZN1a1bEv"], []]
        assert message.location[0].is_folded
        assert reasons(report) == [Reason.NOT_ASKED]

    def test_names_that_came_along(self, tmp_path: Path) -> None:
        """With binaries that are not found, names stay and count as symbolized."""
        message, report = run([WHOLE], [Place(BASE + MAIN, 1, (Line("old", "a.c", 3),))], tmp_path)
        assert names(message) == [["old"]]
        assert report.percent == 100
        assert message.mapping[0].has_functions
        assert message.mapping[0].has_line_numbers

    def test_functions_and_strings_are_unique(self) -> None:
        """Each function and each string stands once in the output, ids run from 1, and the first string is empty."""
        data = (FIXTURES / "profiles/perf/spectra-gcc-pie.pb.gz").read_bytes()
        with Symbolizer([BINARIES / "gcc-pie"]) as symbolizer:
            once = symbolizer.symbolize(symbolize.load(io.BytesIO(data))).profile
            twice = symbolizer.symbolize(symbolize.load(io.BytesIO(gzip.compress(encode(once))))).profile
        message = profile_pb2.Profile.FromString(encode(once))
        functions = [(f.name, f.system_name, f.filename, f.start_line) for f in message.function]
        assert len(set(functions)) == len(functions) > 30
        assert len(set(message.string_table)) == len(message.string_table)
        assert message.string_table[0] == b""
        for table in (message.mapping, message.location, message.function):
            assert [row.id for row in table] == list(range(1, len(table) + 1))
        used = {line.function_id for location in message.location for line in location.line}
        assert used == {f.id for f in message.function}
        assert encode(twice) == encode(once)

    def test_everything_else_comes_out_again(self) -> None:
        """Samples, values, labels and mappings of a real profile are those that went in."""
        path = FIXTURES / "profiles/perf/spectra-gcc-pie.pb.gz"
        before = fixtures.read_pprof(path)
        with Symbolizer([BINARIES / "gcc-pie"]) as symbolizer:
            after = profile_pb2.Profile.FromString(encode(symbolizer.symbolize(symbolize.load(path)).profile))

        def told(message: Any) -> Any:
            text = message.string_table
            address = {location.id: location.address for location in message.location}
            return (
                [([address[i] for i in s.location_id], list(s.value)) for s in message.sample],
                [[(text[x.key], text[x.str], x.num) for x in s.label] for s in message.sample],
                [
                    (m.memory_start, m.memory_limit, m.file_offset, text[m.filename], text[m.build_id])
                    for m in message.mapping
                ],
                [(text[t.type], text[t.unit]) for t in message.sample_type],
                (message.period, message.time_nanos, message.duration_nanos),
            )

        assert told(after) == told(before)

    def test_one_symbolizer_many_profiles(self) -> None:
        """Profiles through one symbolizer come out as through one each, in any order."""
        paths = [path for path in fixtures.GPERFTOOLS if "gcc-pie" in path.name or "clang-pie" in path.name]
        roots = [BINARIES / "gcc-pie", BINARIES / "clang-pie"]

        def alone(path: Path) -> bytes:
            with Symbolizer(roots) as symbolizer:
                return encode(symbolizer.symbolize(symbolize.load(path)).profile)

        with Symbolizer(roots) as symbolizer:
            together = [encode(symbolizer.symbolize(symbolize.load(path)).profile) for path in (*paths, *paths[::-1])]
        expected = [alone(path) for path in paths]
        assert together == [*expected, *expected[::-1]]

    @pytest.mark.process
    def test_deterministic(self, tmp_path: Path) -> None:
        """Two processes with other hash seeds write the same bytes."""
        outputs = []
        for seed in ("1", "2"):
            output = tmp_path / f"{seed}.pb.gz"
            source = str(FIXTURES / "profiles/gperftools/spectra-gcc-pie.prof")
            command = [sys.executable, "-m", "symbolize", source, "-b", str(BINARIES / "gcc-pie")]
            subprocess.run(
                [*command, "-o", str(output), "-q"],
                check=True,
                cwd=Path(__file__).parents[2],
                env={"PYTHONHASHSEED": seed, "XDG_CACHE_HOME": str(tmp_path / seed)},
            )
            outputs.append(output.read_bytes())
        assert outputs[0] == outputs[1]

    def test_problems_of_the_folders_are_told_once(self, tmp_path: Path) -> None:
        """What cannot be read below the folders is a warning of the first report only."""
        (tmp_path / "broken").write_bytes(b"\x7fELF\x02\x01")
        data = profile([WHOLE], [([Place(BASE + MAIN, 1)], [1])])
        with Symbolizer([tmp_path]) as symbolizer:
            first, second = (symbolizer.symbolize(symbolize.load(io.BytesIO(data))).report for _ in range(2))
        assert len(first.warnings) == 1
        assert first.warnings[0].startswith(f"{tmp_path}/broken: ")
        assert second.warnings == []

    def test_progress(self) -> None:
        """Progress is told before each mapping that has locations."""
        told: list[Any] = []
        made = symbolize.load(io.BytesIO(profile([WHOLE, WHOLE], [([Place(BASE + MAIN, 2)], [1])])))
        with Symbolizer([PIE.parent]) as symbolizer:
            symbolizer.symbolize(made, lambda *arguments: told.append(arguments))
        assert told == [(1, 2, "/opt/spectra/bin/spectra")]


def module_mapping(start: int = MODULE_START, size: int = 0x4000, offset: int = 0, verified: bool = True) -> Mapping:
    """The mapping of the module."""
    return Mapping(start, start + size, offset, "/lib/modules/6.1/net.ko", MODULE_ID.hex() if verified else "")


def test_kernel_module(tmp_path: Path) -> None:
    """A module is loaded with .text first; the places of its other sections are unknown, so they have no symbols.

    That is rule R96: at the addresses of .init.text something else lies by now.
    """
    write_module(tmp_path / "net.ko")
    at = (MODULE_START + 0x10, MODULE_START + 0x2F, MODULE_START + 0x30, MODULE_START + 0x110)
    message, report = run([module_mapping()], [Place(address) for address in at], tmp_path)
    assert names(message) == [["handle"], ["handle"], [], []]
    assert sorted(reasons(report)) == [Reason.OUTSIDE_SEGMENTS, Reason.OUTSIDE_SYMBOLS]


@pytest.mark.parametrize(
    "mapping",
    [
        module_mapping(offset=0x40),
        module_mapping(MODULE_START + 0x10),
        module_mapping(verified=False),
    ],
)
def test_what_is_no_mapping_of_a_module(mapping: Mapping, tmp_path: Path) -> None:
    """A module is placed only as the kernel does it, and only if the build id agrees (rule R96)."""
    write_module(tmp_path / "net.ko")
    message, report = run([mapping], [Place(mapping.start + 0x20)], tmp_path)
    assert names(message) == [[]]
    assert reasons(report) == [Reason.MISFIT]
    assert "not linked" in report.mappings[0].detail


def test_what_is_no_module(tmp_path: Path) -> None:
    """Object files, and modules with other code before .text, cannot be placed (rule R96)."""
    stub = Section(".plt", bytes(1), flags=ALLOC | EXEC)
    write_module(tmp_path / "net.ko", marked=False)
    write_module(tmp_path / "other.ko", stub)
    for name in ("net.ko", "other.ko"):
        message, report = run([module_mapping()], [Place(MODULE_START + 0x20)], tmp_path / name)
        assert names(message) == [[]]
        assert reasons(report) == [Reason.MISFIT]


@pytest.mark.parametrize(("machine", "found"), [(ARM, True), (MIPS, True), (I386, False)])
def test_marked_addresses(machine: int, found: bool, tmp_path: Path) -> None:
    """On ARM and MIPS bit 0 of an address is a mark and no part of it (rule R133)."""
    sections = [Section(".text", bytes(0x100), flags=ALLOC | EXEC, address=0x1000)]
    symbols = [Symbol("f", 0x1010 | found, 1), Symbol("g", 0x1012 | found, 1)]
    segment = Segment(0x1000, 0x100, 5, 0)
    path = tmp_path / "program"
    path.write_bytes(elf_file(sections, [segment], symbols, is_64=False, machine=machine))
    start = 0x4000_0000
    mapping = Mapping(start, start + 0x1000, 0, "/opt/program")
    for offset, name in ((0x10, "f"), (0x12, "g")):
        message, _ = run([mapping], [Place(start + offset), Place(start + offset + 1)], tmp_path)
        assert names(message) == [[name], [name] if found else []]


def test_wrong_calls(tmp_path: Path) -> None:
    """A missing folder and an unknown mode are refused at once."""
    for missing in (tmp_path / "none", tmp_path / ("n" * 300), "nul\0"):
        with pytest.raises(UsageError, match="no such folder or file"):
            Symbolizer([missing])
    with pytest.raises(UsageError, match="unknown demangling mode"):
        Symbolizer(options=Options(demangle="some"))  # type: ignore[arg-type]


def test_public_names() -> None:
    """Everything the package offers is there, and nothing else by accident."""
    for name in symbolize.__all__:
        assert getattr(symbolize, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        symbolize.nothing  # noqa: B018


@pytest.mark.parametrize("other", ["clang-pie", "gcc-gc-sections", "clang-gz-zstd"])
def test_another_build_of_the_name_is_refused(other: str) -> None:
    """A file that only has the right name is refused when the call sites of the profile lie in no calls (rule R148)."""
    recorded = symbolize.load(FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof")
    with Symbolizer([BINARIES / other]) as symbolizer:
        report = symbolizer.symbolize(recorded).report
    row = next(row for row in report.mappings if row.name.endswith("/ledger"))
    assert row.symbolized_locations == 0
    assert [reason for reason, _, _ in row.misses] == [Reason.MISFIT]
    assert "call sites" in row.detail or other == "clang-gz-zstd"


def test_the_very_build_is_taken_by_name() -> None:
    """The binary that ran passes the check of call sites, also with compressed debug sections."""
    for same in ("gcc-pie", "gcc-gz-zlib"):
        recorded = symbolize.load(FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof")
        with Symbolizer([BINARIES / same]) as symbolizer:
            report = symbolizer.symbolize(recorded).report
        row = next(row for row in report.mappings if row.name.endswith("/ledger"))
        assert row.symbolized_locations == row.locations > 100


def test_a_refused_file_is_not_reported_as_used() -> None:
    """The file that did not fit stands in the detail, not among the files that gave names."""
    recorded = symbolize.load(FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof")
    with Symbolizer([BINARIES / "clang-pie"]) as symbolizer:
        row = next(row for row in symbolizer.symbolize(recorded).report.mappings if row.name.endswith("/ledger"))
    assert row.files == []
    assert "clang-pie/ledger" in row.detail


def test_a_refused_file_gives_no_build_id() -> None:
    """Only a file that answers makes a whole build id of a module id; one that does not fit the mapping changes nothing
    (rule R240)."""
    raw = bytes.fromhex(PIE_ID)
    module = (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:16]).hex().upper() + "0"
    for recorded, wanted in ((WHOLE, PIE_ID), (WHOLE._replace(limit=0, offset=0), module)):
        message, report = run([recorded._replace(build_id=module)], [Place(WHOLE.start + 8, 1)], PIE)
        assert message.string_table[message.mapping[0].build_id].decode() == wanted
        assert reasons(report) == ([] if wanted == PIE_ID else [Reason.MISFIT])


def test_a_line_without_a_name_is_a_miss() -> None:
    """A location whose only function has no name counts as raw, and its line stays."""
    message, report = run([], [Place(0x10, lines=(Line("", "f.c", 3),))])
    assert report.percent == 0
    assert [line.line for line in message.location[0].line] == [3]


def test_negative_values_weigh_like_positive_ones() -> None:
    """In the difference of two profiles a lost sample weighs as much as a gained one."""
    made = symbolize.load(
        io.BytesIO(profile([WHOLE], [([Place(BASE + MAIN, 1)], [-3]), ([Place(BASE + 0x2000, 1)], [1])]))
    )
    with Symbolizer([PIE]) as symbolizer:
        assert symbolizer.symbolize(made).report.sample_value == 4


def test_code_of_several_functions(tmp_path: Path) -> None:
    """The report has the code that several functions share, with all of them, what is shown of it and its value (rule
    R119)."""
    twins = [Symbol("_Z5firstv", 0x1000, 0x10), Symbol("_Z6secondv", 0x1000, 0x10), Symbol("other", 0x1020, 0x10)]
    code = Section(".text", bytes(0x40), flags=ALLOC | EXEC, address=0x1000)
    (tmp_path / "twins").write_bytes(elf_file([code], [Segment(0x1000, 0x40, 5, 0x1000)], twins))
    recorded = Mapping(BASE, BASE + 0x1000, 0x1000, "/x/twins")
    stacks = [
        ([Place(BASE + 4, 1), Place(BASE + 0x24, 1)], [5]),
        ([Place(BASE + 8, 1), Place(BASE + 0x28, 1)], [2]),
        ([Place(BASE + 0x28, 1)], [100]),
    ]
    made = symbolize.load(io.BytesIO(profile([recorded], stacks)))
    with Symbolizer([tmp_path]) as symbolizer:
        result = symbolizer.symbolize(made)
    (found,) = result.report.folded
    assert (found.binary, found.code.begin, found.code.end) == (str(tmp_path / "twins"), 0x1000, 0x1010)
    functions = [*zip(found.names, [each.name for each in found.code.functions], strict=True)]
    assert sorted(functions) == [(b"first", b"_Z5firstv"), (b"second", b"_Z6secondv")]
    assert (found.shown, found.value, len(found.rows)) == ("first", 7.0, 2)
    assert result.profile.locations.is_folded.tolist().count(True) == 2
    (written,) = folded(result.report, "input")["folded"]  # type: ignore[misc, attr-defined]
    assert written == {
        "binary": str(tmp_path / "twins"),
        "begin": "0x1000",
        "end": "0x1010",
        "shown": "first",
        "value": 7.0,
        "decided": 0.0,
        "locations": 2,
        "evidence": "symbols",
        "functions": [
            {"name": name.decode(), "linkage_name": linked.decode(), "file": "", "line": 0}
            for name, linked in functions
        ],
    }


def test_fetched_ahead(tmp_path: Path) -> None:
    """Files are fetched ahead by build id, each once with the value of all frames in it, where there are some and no
    folder has the file."""

    class Recorder(Unasked):
        def prefetch(self, wanted: Iterable[tuple[str, Sequence[Kind], float]]) -> None:
            self.wanted = sorted(wanted)

    mappings = [
        WHOLE,
        Mapping(0x1000, 0x2000, 0, "/a", "aa" * 20),
        Mapping(0x2000, 0x3000, 0, "/b", "bb" * 20),
        Mapping(0x3000, 0x4000, 0, "/without build id"),
        Mapping(0x4000, 0x5000, 0, "/without frames", "cc" * 20),
        Mapping(0x5000, 0x6000, 0, "/a", "aa" * 20),
    ]
    stacks = [
        ([Place(BASE + MAIN, 1), Place(0x1000, 2), Place(0x1800, 2)], [100, -2]),
        ([Place(0x2000, 3), Place(0x3000, 4), Place(0x7000)], [100, 5]),
        ([Place(0x5000, 6)], [100, 7]),
    ]
    made = symbolize.load(io.BytesIO(profile(mappings, stacks, [("samples", "count"), ("cpu", "nanoseconds")])))
    servers = Recorder(["nobody"])
    with Symbolizer([PIE], servers=servers) as symbolizer:
        symbolizer.symbolize(made)
    kinds = ["debuginfo", "executable"]
    assert servers.wanted == [("aa" * 20, kinds, 11.0), ("bb" * 20, kinds, 5.0)]


def test_flags_of_unused_mappings_stay() -> None:
    """A mapping without locations keeps the flags that it came with."""
    unused = Mapping(0x1000, 0x2000, 0, "/opt/unused", flags=(True, True, True, True))
    message, _ = run([WHOLE, unused], [Place(BASE + MAIN, 1)], PIE)
    assert message.mapping[1].has_functions
    assert message.mapping[1].has_inline_frames


@pytest.mark.parametrize(
    "changed",
    [(BINARIES / "gcc-nopie-dwarf4" / "spectra").read_bytes(), without_build_id(PIE.read_bytes())],
    ids=["another build", "no build id"],
)
def test_a_file_that_changed_since_the_walk_is_refused(changed: bytes, tmp_path: Path) -> None:
    """The build id of what is opened counts, not that of what once was there; that it changed is the reason (R284)."""
    shutil.copy(PIE, tmp_path / "spectra")
    raw = profile([WHOLE], [([Place(BASE + MAIN, 1)], [1])])
    other = profile([Mapping(0, 1, 0, "/x", "ab" * 20)], [([Place(0, 1)], [1])])
    with Symbolizer([tmp_path]) as symbolizer:
        symbolizer.symbolize(symbolize.load(io.BytesIO(other)))
        (tmp_path / "spectra").write_bytes(changed)
        report = symbolizer.symbolize(symbolize.load(io.BytesIO(raw))).report
    assert report.symbolized_locations == 0
    assert report.mappings[0].misses[0][0] is Reason.CHANGED
    assert report.mappings[0].detail == f"{tmp_path}/spectra: changed while it was read"


def test_a_binary_mapped_twice_is_asked_once(tmp_path: Path) -> None:
    """Two mappings of one file get the names that each of them gets alone."""
    twice = Mapping(WHOLE.start + (1 << 32), WHOLE.limit + (1 << 32), WHOLE.offset, WHOLE.file, WHOLE.build_id)
    message, report = run([WHOLE, twice], [Place(BASE + MAIN, 1), Place(BASE + MAIN + (1 << 32), 2)], PIE)
    assert names(message) == [["main"], ["main"]]
    assert [row.symbolized_locations for row in report.mappings] == [1, 1]
