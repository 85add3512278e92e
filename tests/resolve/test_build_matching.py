"""Profiles of addresses in files, as simpleperf reports them: which files, what addresses count from, which names."""

import io
import lzma
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symbolize
from symbolize import Reason, Symbolizer
from symbolize.elf import ElfImage
from symbolize.evidence.choice import Agreement
from symbolize.formats import encode
from symbolize.names import demangle_android_linker
from symbolize.options import DEFAULTS, Options
from symbolize.profile import NONE
from symbolize.resolve.name_agreement import (
    MAX_NAME,
    ExistingNames,
    Name,
    compare_names,
    disagreeing,
    is_named,
    text,
    united,
)
from symbolize.symbols import FunctionsAt
from tests.support import fixture_files as fixtures
from tests.support import simpleperf_writer as writer
from tests.support.archives import archive
from tests.support.elf_writer import (
    ALLOC,
    ET_EXEC,
    EXEC,
    NOBITS,
    NOTE,
    PROGBITS,
    Section,
    Segment,
    Symbol,
    build_id_note,
    elf_file,
)
from tests.support.kernel_image import vmlinux
from tests.support.messages import profile_pb2

RECORDED = fixtures.FIXTURES / "simpleperf"
BINARIES, WRONG = RECORDED / "binaries", RECORDED / "wrong_build"
OURS = ("/opt/mixer/mixer", "/opt/mixer/libfilters.so")
NAMED, UNNAMED = RECORDED / "mixer_named.proto", RECORDED / "mixer.proto"


def run(source: Path | bytes, *roots: Path, options: Options = DEFAULTS) -> tuple[Any, symbolize.Report]:
    """The symbolized profile, decoded, and the report."""
    made = symbolize.load(io.BytesIO(source) if isinstance(source, bytes) else source)
    with Symbolizer(roots, options) as symbolizer:
        result = symbolizer.symbolize(made)
    return profile_pb2.Profile.FromString(encode(result.profile)), result.report


def frames(message: Any) -> dict[tuple[str, int], list[fixtures.Frame]]:
    """The frames of each location by path and address."""
    paths = {mapping.id: message.string_table[mapping.filename].decode() for mapping in message.mapping}
    return {(paths[each.mapping_id], each.address): fixtures.frames_of(message, each) for each in message.location}


def names(message: Any, path: str) -> dict[int, str]:
    """The name of the function that each address in a file is in, empty where there is none."""
    by_id = {function.id: message.string_table[function.name].decode() for function in message.function}
    paths = {mapping.id: message.string_table[mapping.filename].decode() for mapping in message.mapping}
    return {
        each.address: by_id[each.line[-1].function_id] if each.line else ""
        for each in message.location
        if paths[each.mapping_id] == path
    }


def row(report: symbolize.Report, name: str) -> Any:
    """What the report says of a file."""
    (found,) = (each for each in report.mappings if each.name == name)
    return found


def reported(
    path: str, places: Sequence[tuple[int, str]], mangled: Iterable[str] | None = None, process: int = 7
) -> bytes:
    """A report of leaves in one file: addresses, each with the name of its function or none."""
    symbols = list(dict.fromkeys(name for _, name in places if name))
    samples = [
        writer.sample(process, [(address, 0, symbols.index(name) if name else -1)], time=i)
        for i, (address, name) in enumerate(places)
    ]
    linked = symbols if mangled is None else list(mangled)
    return writer.report(
        [
            writer.meta(),
            *samples,
            writer.file(0, path.encode(), [each.encode() for each in symbols], [each.encode() for each in linked]),
            writer.thread(process, process, b"app"),
        ]
    )


class TestRecordings:
    """Recordings of simpleperf with the binaries that ran."""

    @pytest.mark.needs("llvm-symbolizer-19")
    @pytest.mark.parametrize("recording", [NAMED, UNNAMED], ids=lambda path: path.stem)
    def test_every_frame_is_what_llvm_says(self, recording: Path) -> None:
        """All frames in our binaries have the inline chain, files and lines of llvm-symbolizer, at true addresses."""
        message, report = run(recording, BINARIES)
        found = frames(message)
        for path in OURS:
            ours = {address: chain for (name, address), chain in found.items() if name == path}
            wanted = fixtures.llvm_frames(BINARIES / Path(path).name, ours)
            assert len(ours) > 10
            for address, chain in ours.items():
                assert [frame[1:] for frame in chain] == [frame[1:] for frame in wanted[address]], hex(address)
                assert chain[-1][0] == wanted[address][-1][0]
            assert row(report, path).verified == (recording == NAMED)

    def test_values_stay(self) -> None:
        """Samples, labels and values are those of the conversion without binaries."""
        plain, _ = run(NAMED)
        message, _ = run(NAMED, BINARIES)
        assert [list(each.value) for each in message.sample] == [list(each.value) for each in plain.sample]
        assert [len(each.label) for each in message.sample] == [len(each.label) for each in plain.sample]

    def test_build_id_of_a_proven_file(self) -> None:
        """A file whose names agree gives the mapping its build id; one that nothing proves does not (rule R166)."""
        for recording, wanted in ((NAMED, "7add2a0b552cab49f398c39a8a106f291f18edfd"), (UNNAMED, "")):
            message, report = run(recording, BINARIES)
            (mapping,) = (m for m in message.mapping if message.string_table[m.filename].decode() == OURS[1])
            assert message.string_table[mapping.build_id].decode() == wanted
            assert (mapping.memory_start, mapping.memory_limit, mapping.file_offset) == (0, 2**64 - 1, 0)
            assert row(report, OURS[1]).build_id == wanted

    def test_output_is_symbolized_again(self, tmp_path: Path) -> None:
        """The addresses that are written mean the same to the next reader of the profile."""
        once = symbolize.load(NAMED)
        with Symbolizer([BINARIES]) as symbolizer:
            first = encode(symbolizer.symbolize(once).profile)
        message, report = run(first, BINARIES)
        assert frames(message) == frames(profile_pb2.Profile.FromString(first))
        assert row(report, OURS[1]).verified

    def test_wrong_build_is_refused(self) -> None:
        """A library whose functions lie elsewhere is refused with an example; addresses and names stay (rule R164)."""
        message, report = run(NAMED, WRONG)
        plain, _ = run(NAMED)
        refused = row(report, OURS[1])
        assert refused.files == []
        assert "0 of 2 functions are where the profile has them; at 0x" in refused.detail
        assert "the profile has image::" in refused.detail
        assert refused.problems == [refused.detail]
        assert names(message, OURS[1]).keys() == names(plain, OURS[1]).keys()
        assert set(names(message, OURS[1]).values()) == {"image::Blur::apply", "image::Sharpen::apply"}

    def test_the_build_that_agrees_is_taken(self) -> None:
        """Of two builds of one name the names choose; without names it is ambiguous (rule R165)."""
        for roots in ([WRONG, BINARIES], [BINARIES, WRONG], [RECORDED]):
            _, report = run(NAMED, *roots)
            assert row(report, OURS[1]).files == [str(BINARIES / "libfilters.so")]
        _, report = run(UNNAMED, RECORDED)
        assert [reason for reason, _, _ in row(report, OURS[1]).misses] == [Reason.AMBIGUOUS]

    @pytest.mark.needs("objcopy")
    @pytest.mark.parametrize("layout", ["debug file", "mini debug info"])
    @pytest.mark.parametrize("recording", [NAMED, UNNAMED], ids=lambda path: path.stem)
    def test_variants_agree(self, tmp_path: Path, layout: str, recording: Path) -> None:
        """A stripped library with its debug file gives what the whole one does, one with mini debug info its names."""
        whole, _ = run(recording, BINARIES)
        for path in OURS:
            source, target = BINARIES / Path(path).name, tmp_path / Path(path).name
            debug = tmp_path / "debug" / (target.name + ".debug")
            debug.parent.mkdir(exist_ok=True)
            subprocess.run(["objcopy", "--only-keep-debug", source, debug], check=True)
            if layout == "mini debug info":
                mini = tmp_path / "mini"
                subprocess.run(["objcopy", "--strip-debug", debug, mini], check=True)
                debug.unlink()
                mini.write_bytes(lzma.compress(mini.read_bytes()))
                extra = ["--add-section", f".gnu_debugdata={mini}"]
            else:
                extra = []
            subprocess.run(["objcopy", "-S", *extra, source, target], check=True)
        message, report = run(recording, tmp_path)
        if layout == "debug file":
            assert frames(message) == frames(whole)
        for path in OURS:
            assert names(message, path) == names(whole, path)
            assert row(report, path).verified == (recording == NAMED)

    @pytest.mark.needs("objcopy")
    def test_debug_file_alone(self, tmp_path: Path) -> None:
        """A debug file without the binary answers too: its file offsets are not looked at (rule R163)."""
        for path in OURS:
            target = tmp_path / (Path(path).name + ".debug")
            subprocess.run(["objcopy", "--only-keep-debug", BINARIES / Path(path).name, target], check=True)
        whole, _ = run(NAMED, BINARIES)
        message, _ = run(NAMED, tmp_path)
        assert frames(message) == frames(whole)


VADDR = 0x23_7C0
"""Where the code of the library below begins: neither on a page nor at its file offset."""
OFFSET = 0x7C0
FIRST_BYTE = 120
"""Where `elf_file` puts the bytes of the first section of a file with one segment."""
ID = "00112233445566778899aabbccddeeff00112233"
LIBRARY = "/data/app/x/lib/arm64/libx.so"
FUNCTIONS = ("one", "two", "three", "four")


def library(path: Path, build_id: str = ID, functions: Sequence[str] = FUNCTIONS, *, size: int = 0x40) -> Path:
    """A library of small functions, one behind the other, without a byte of code."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        elf_file(
            [
                Section(".text", bytes(size * len(functions)), flags=ALLOC | EXEC, address=VADDR),
                Section(".note.gnu.build-id", build_id_note(bytes.fromhex(build_id)), NOTE, ALLOC, address=0x200),
            ],
            [Segment(0, 0x2000, 4, 0), Segment(VADDR, size * len(functions), 5, OFFSET)],
            [Symbol(name, VADDR + size * i, size) for i, name in enumerate(functions)],
        )
    )
    return path


def places(distance: int = 0, named: Sequence[str] = FUNCTIONS, size: int = 0x40) -> list[tuple[int, str]]:
    """A place in each function, written down `distance` above its vaddr."""
    return [(VADDR + size * i + 8 + distance, name if name in named else "") for i, name in enumerate(FUNCTIONS)]


class TestReadings:
    """What addresses in a file count from."""

    @pytest.mark.parametrize("distance", [0, -0x2_3000, 0x7C0], ids=["vaddrs", "mapping", "first segment"])
    def test_names_decide(self, tmp_path: Path, distance: int) -> None:
        """Addresses that count from elsewhere are made vaddrs if then they agree with the names (rule R163)."""
        library(tmp_path / "libx.so", size=0x400)
        given = places(distance, size=0x400)
        message, report = run(reported(LIBRARY, given), tmp_path)
        assert names(message, LIBRARY) == {VADDR + 0x400 * i + 8: name for i, name in enumerate(FUNCTIONS)}
        assert row(report, LIBRARY).verified

    def test_names_of_few_locations_serve_all(self, tmp_path: Path) -> None:
        """What the names decide holds for the addresses without one as well (rule R163)."""
        library(tmp_path / "libx.so")
        message, _ = run(reported(LIBRARY, places(-0x2_3000, ["one", "three"])), tmp_path)
        assert names(message, LIBRARY) == {VADDR + 0x40 * i + 8: name for i, name in enumerate(FUNCTIONS)}

    def test_without_names_all_addresses_have_to_fit(self, tmp_path: Path) -> None:
        """Of addresses that no name explains the one reading under which all lie in the code is taken (rule R163)."""
        library(tmp_path / "libx.so")
        message, report = run(reported(LIBRARY, places(-0x2_3000, [])), tmp_path)
        assert list(names(message, LIBRARY).values()) == list(FUNCTIONS)
        assert not row(report, LIBRARY).verified
        assert "counted from where the code is mapped" in row(report, LIBRARY).tried[0][1]

    def test_a_rare_reading_needs_names(self, tmp_path: Path) -> None:
        """Addresses that fit the code only if they count from its first byte are left where no name agrees (R163)."""
        library(tmp_path / "libx.so", size=0x400)
        given = places(0x7C0, [], size=0x400)
        message, report = run(reported(LIBRARY, given), tmp_path)
        assert names(message, LIBRARY) == dict(given)
        assert [reason for reason, _, _ in row(report, LIBRARY).misses] == [Reason.MISFIT]
        message, _ = run(reported(LIBRARY, places(0x7C0, ["two"], size=0x400)), tmp_path)
        assert list(names(message, LIBRARY).values()) == list(FUNCTIONS)

    def test_nothing_fits(self, tmp_path: Path) -> None:
        """Where some addresses lie outside of the code under every reading, nothing is named (rule R163)."""
        library(tmp_path / "libx.so")
        given = [*places(-0x2_3000, []), (0x9_0000, "")]
        message, report = run(reported(LIBRARY, given), tmp_path)
        assert names(message, LIBRARY) == dict(given)
        assert [reason for reason, _, _ in row(report, LIBRARY).misses] == [Reason.MISFIT]
        assert "1 of 5 addresses lie outside of its code" in row(report, LIBRARY).detail

    def test_the_first_byte_of_the_code_needs_names(self, tmp_path: Path) -> None:
        """That addresses count from the first byte of the code is believed for names only: nearly all addresses lie in
        the code then (rule R163)."""
        library(tmp_path / "libx.so")
        message, report = run(reported(LIBRARY, places(0x7C0, [])), tmp_path)
        assert names(message, LIBRARY) == dict(places(0x7C0, []))
        assert [reason for reason, _, _ in row(report, LIBRARY).misses] == [Reason.MISFIT]

    @pytest.mark.parametrize("distance", [0, 0x1_0000])
    def test_debug_file_at_other_addresses(self, tmp_path: Path, distance: int) -> None:
        """Call sites lie in calls of the file with the code, wherever its debug file has the functions (rule R145)."""
        bodies = b"".join(b"\xe8" + bytes(15) for _ in range(16))
        note = build_id_note(bytes.fromhex(ID))
        for path, moved, data, symbols in (
            ("libx.so", 0, bodies, []),
            ("libx.so.debug", distance, b"", [Symbol("f", VADDR + distance, len(bodies))]),
        ):
            code = Section(
                ".text", data, PROGBITS if data else NOBITS, ALLOC | EXEC, VADDR + moved, len(bodies), alignment=16
            )
            sections = [code, Section(".note.gnu.build-id", note, NOTE, ALLOC, address=0x200 + moved)]
            (tmp_path / path).write_bytes(
                elf_file(sections, [Segment(VADDR + moved, len(bodies), 5, FIRST_BYTE)], symbols)
            )
        calls = [VADDR + 16 * i for i in range(12)]
        stack = writer.sample(7, [(address, 0, -1) for address in calls])
        files = writer.file(0, LIBRARY.encode(), [], []), writer.thread(7, 7, b"app")
        message, report = run(writer.report([writer.meta(), stack, *files]), tmp_path)
        assert names(message, LIBRARY) == dict.fromkeys(calls, "f")
        assert "11 of 11 call sites lie in a call" in row(report, LIBRARY).tried[0][1]

    def test_one_name_does_not_outweigh_call_sites(self, tmp_path: Path) -> None:
        """A function that is where the profile has it is no proof: a file that has no call where the profile has call
        sites is refused (rule R145)."""
        code = Section(".text", b"\x90" * 256, PROGBITS, ALLOC | EXEC, VADDR, alignment=16)
        symbols = [Symbol("f", VADDR, 128), Symbol("g", VADDR + 128, 128)]
        (tmp_path / "libx.so").write_bytes(elf_file([code], [Segment(VADDR, 256, 5, FIRST_BYTE)], symbols))
        sites = [VADDR + 16 * i for i in range(1, 16)]
        stack = writer.sample(7, [(address, 0, 0 if address == sites[0] else -1) for address in sites])
        files = writer.file(0, LIBRARY.encode(), [b"f"], [b"f"]), writer.thread(7, 7, b"app")
        message, report = run(writer.report([writer.meta(), stack, *files]), tmp_path)
        assert "another build: " in row(report, LIBRARY).detail
        assert names(message, LIBRARY) == dict.fromkeys(sites, "") | {sites[0]: "f"}

    def test_the_reading_with_the_larger_share_is_taken(self, tmp_path: Path) -> None:
        """Three functions of three count for more than four of five (rule R163)."""
        wanted = [(0x1000 + 0x100 * i, f"f{i}") for i in range(1, 6)]
        there = [*wanted[:3], *((address + 0x1000, name) for address, name in wanted[:4]), (0x2500, "other")]
        (tmp_path / "libx.so").write_bytes(
            elf_file(
                [Section(".text", bytes(0x5000), flags=ALLOC | EXEC, address=0x1000)],
                [Segment(0x1000, 0x5000, 5, 0x1000)],
                dynamic=[Symbol(name, address, 0x80) for address, name in there],
            )
        )
        message, report = run(reported(LIBRARY, [*wanted, (0x1110, "")]), tmp_path)
        assert names(message, LIBRARY) == dict(wanted) | {0x1110: "f1"}
        assert row(report, LIBRARY).verified

    @pytest.mark.parametrize("is_stripped", [False, True])
    def test_functions_that_are_not_there(self, tmp_path: Path, is_stripped: bool) -> None:
        """They speak against a file that has its symbols, and not against one that lost them (rule R164)."""
        symbols = [Symbol(name, VADDR + 0x40 * i, 0x40) for i, name in enumerate(FUNCTIONS[:2])]
        tables = {"dynamic" if is_stripped else "symbols": symbols}
        text = Section(".text", bytes(0x100), flags=ALLOC | EXEC, address=VADDR)
        (tmp_path / "libx.so").write_bytes(elf_file([text], [Segment(VADDR, 0x100, 5, OFFSET)], **tables))
        _, report = run(reported(LIBRARY, places()), tmp_path)
        assert row(report, LIBRARY).verified == is_stripped
        assert ("2 of 4 functions" in row(report, LIBRARY).detail) != is_stripped

    def test_two_readings_fit(self, tmp_path: Path) -> None:
        """Small addresses in a large file may mean either; they are taken as they are, and the report says so."""
        path = tmp_path / "libx.so"
        path.write_bytes(
            elf_file(
                [Section(".text", bytes(0x5000), flags=ALLOC | EXEC, address=0x1000)],
                [Segment(0x1000, 0x5000, 5, 0x1000)],
                [Symbol("low", 0x1000, 0x1000), Symbol("high", 0x2000, 0x4000)],
            )
        )
        message, report = run(reported(LIBRARY, [(0x1010, "")]), tmp_path)
        assert names(message, LIBRARY) == {0x1010: "low"}
        assert row(report, LIBRARY).tried[0][1] == (
            "found, unverified: not checked: neither exact addresses of instructions nor call sites; "
            "addresses taken as vaddrs, or counted from where the code is mapped"
        )
        message, _ = run(reported(LIBRARY, [(0x1010, "high"), (0x10, "low")]), tmp_path)
        assert names(message, LIBRARY) == {0x2010: "high", 0x1010: "low"}


class TestCandidates:
    """Where files without a build id in the profile are found."""

    @pytest.mark.parametrize(
        "place",
        [
            f"{ID}/libx.so",
            f"{ID}-libx.so",
            LIBRARY[1:],
            "libx.so",
            "symbols/libx.so.debug",
        ],
    )
    def test_layouts(self, tmp_path: Path, place: str) -> None:
        """The layouts of binary_cache, device paths and base names (rule R165)."""
        library(tmp_path / "cache" / place)
        (tmp_path / "cache" / "build_id_list").write_text(f"0x{ID}={place}\n")
        message, report = run(reported(LIBRARY, places()), tmp_path)
        assert "" not in names(message, LIBRARY).values()
        assert row(report, LIBRARY).verified
        assert row(report, LIBRARY).build_id == ID

    def test_library_in_an_archive(self, tmp_path: Path) -> None:
        """A library inside an APK is read there."""
        archive(tmp_path / "base.apk", library(tmp_path / "x" / "y"), "lib/arm64-v8a/libx.so")
        (tmp_path / "x" / "y").unlink()
        path = "/data/app/~~a==/base.apk!/lib/arm64-v8a/libx.so"
        message, report = run(reported(path, places(-0x2_3000)), tmp_path)
        assert names(message, path) == {VADDR + 0x40 * i + 8: name for i, name in enumerate(FUNCTIONS)}
        assert row(report, path).files == [f"{tmp_path}/base.apk!/lib/arm64-v8a/libx.so"]

    def test_path_before_base_name(self, tmp_path: Path) -> None:
        """Where no name tells builds apart, the one at the recorded path is taken, unverified (rule R165)."""
        library(tmp_path / "a" / "libx.so", ID[::-1])
        library(tmp_path / LIBRARY[1:])
        _, report = run(reported(LIBRARY, places(named=[])), tmp_path)
        assert row(report, LIBRARY).files == [str(tmp_path / LIBRARY[1:])]
        assert not row(report, LIBRARY).verified

    def test_a_majority_of_functions_decides(self, tmp_path: Path) -> None:
        """Three functions of four prove a file, two do not; where one differs, its name stays (rules R164, R167)."""
        library(tmp_path / "a" / "libx.so", functions=("one", "two", "three", "other"))
        message, report = run(reported(LIBRARY, places()), tmp_path)
        assert row(report, LIBRARY).verified
        assert list(names(message, LIBRARY).values()) == list(FUNCTIONS)
        assert "at 1 addresses" in row(report, LIBRARY).problems[0]
        library(tmp_path / "a" / "libx.so", functions=("one", "two", "another", "other"))
        _, report = run(reported(LIBRARY, places()), tmp_path)
        assert "2 of 4 functions" in row(report, LIBRARY).detail

    @pytest.mark.parametrize("named", [FUNCTIONS, FUNCTIONS[:1]])
    def test_a_build_without_names_beside_one_that_agrees(self, tmp_path: Path, named: Sequence[str]) -> None:
        """The build whose functions are where the profile has them is taken, wherever it lies (rule R247)."""
        for agreeing, silent in (("a", "b"), ("b", "a")):
            library(tmp_path / agreeing / "libx.so")
            (tmp_path / silent).mkdir(exist_ok=True)
            (tmp_path / silent / "libx.so").write_bytes(
                elf_file(
                    [Section(".text", b"\x90" * 0x100, flags=ALLOC | EXEC, address=VADDR)],
                    [Segment(0, 0x2000, 4, 0), Segment(VADDR, 0x100, 5, OFFSET)],
                )
            )
            message, report = run(reported(LIBRARY, places(named=named)), tmp_path)
            assert list(names(message, LIBRARY).values()) == list(FUNCTIONS)
            assert row(report, LIBRARY).files == [str(tmp_path / agreeing / "libx.so")]

    def test_one_function_is_no_proof(self, tmp_path: Path) -> None:
        """A single function may lie at the same place in another build: it is found, unverified (rule R164)."""
        library(tmp_path / "libx.so")
        message, report = run(reported(LIBRARY, places(named=["two"])), tmp_path)
        assert not row(report, LIBRARY).verified
        assert list(names(message, LIBRARY).values()) == list(FUNCTIONS)
        assert row(report, LIBRARY).build_id == ""

    def test_many_functions(self, tmp_path: Path) -> None:
        """Of thousands of functions some are compared, and what they prove holds for all (rule R164)."""
        many = [f"function_{i}" for i in range(3000)]
        library(tmp_path / "libx.so", functions=many)
        given = [(VADDR + 0x40 * i + 8 - 0x2_3000, name) for i, name in enumerate(many)]
        message, report = run(reported(LIBRARY, given), tmp_path)
        assert list(names(message, LIBRARY)) == [address + 0x2_3000 for address, _ in given]
        assert "1000 of 1000 functions" in row(report, LIBRARY).tried[0][1]

    def test_hostile_names(self, tmp_path: Path) -> None:
        """Absurd names of a report cost neither time nor the answer."""
        library(tmp_path / "libx.so")
        absurd = " (.a" * 100_000, "_Z" + "N1a" * 100_000, "<" * 30_000, "\0", "a::" * 20_000
        given = [*places(), *((VADDR + 0x20, name) for name in absurd)]
        _, report = run(reported(LIBRARY, given), tmp_path)
        assert not row(report, LIBRARY).verified
        assert "4 of 9 functions" in row(report, LIBRARY).detail + "".join(row(report, LIBRARY).problems)

    def test_width_of_the_path(self, tmp_path: Path) -> None:
        """A file of 32 bits is not what lay in a folder for 64, if names do not prove it (rule R165)."""
        (tmp_path / "libx.so").write_bytes(
            elf_file(
                [Section(".text", bytes(0x1000), flags=ALLOC | EXEC, address=VADDR)],
                [Segment(VADDR, 0x1000, 5, OFFSET)],
                [Symbol("f", VADDR, 0x800), Symbol("g", VADDR + 0x800, 0x800)],
                is_64=False,
            )
        )
        for named, is_proved in ((["", ""], False), (["f", ""], False), (["f", "g"], True)):
            _, report = run(reported(LIBRARY, list(zip((VADDR, VADDR + 0x800), named, strict=True))), tmp_path)
            assert row(report, LIBRARY).verified == is_proved
            assert ("32 bits" in row(report, LIBRARY).detail) != is_proved


class TestAgreement:
    """Functions of a profile against those of a binary, location by location."""

    @staticmethod
    def judged(pairs: Sequence[tuple[str, str]], silence: bool = True) -> Agreement:
        """The agreement of locations with a name in the profile, or none, and one in the binary, or none."""
        own, there = (list(dict.fromkeys(pair[side] for pair in pairs if pair[side])) for side in (0, 1))
        embedded = ExistingNames(
            [Name(b"", each.encode()) for each in own],
            np.array([own.index(a) if a else NONE for a, _ in pairs], np.int64),
        )
        number = np.array([there.index(b) if b else NONE for _, b in pairs], np.int64)
        addresses = np.arange(1, len(pairs) + 1, dtype=np.uint64) << np.uint64(4)
        return compare_names(embedded, addresses, FunctionsAt(number, [[each.encode()] for each in there]), silence)

    def test_counts(self) -> None:
        """A function agrees if more of its addresses do than do not; addresses without a name say nothing (R164)."""
        assert self.judged([("f", "f"), ("f", "f"), ("f", "g"), ("", "g"), ("h", "h")]) == Agreement(
            2, 2, 3, "at 0x30 the profile has f, the file g"
        )
        assert self.judged([("f", "f"), ("f", "g")]) == Agreement(0, 1, 1, "at 0x20 the profile has f, the file g")
        assert self.judged([("", "g")]) == Agreement()
        assert self.judged([]) == Agreement()

    def test_silence(self) -> None:
        """Where a binary has no function, that speaks against it, unless it has lost its symbols (R164)."""
        pairs = [("f", ""), ("g", "g"), ("h", "h")]
        assert self.judged(pairs) == Agreement(2, 3, 2, "at 0x10 the profile has f, the file no function")
        assert self.judged(pairs, silence=False) == Agreement(2, 2, 2)

    @pytest.mark.parametrize(
        ("functions", "judged", "is_sound", "is_proof"),
        [(0, 0, True, False), (1, 1, True, False), (2, 2, True, True), (2, 3, False, False), (3, 4, True, True)],
    )
    def test_what_is_enough(self, functions: int, judged: int, is_sound: bool, is_proof: bool) -> None:
        """Two functions, and three quarters of all that can be judged (R164)."""
        agreement = Agreement(functions, judged)
        assert (agreement.is_sound, agreement.is_proof) == (is_sound, is_proof)

    def test_runs_put_together(self) -> None:
        """The names of several runs of locations stay with their locations; runs without any have none."""
        f, g = Name(b"", b"f"), Name(b"", b"g")
        first, last = ExistingNames([f], np.array([0, NONE])), ExistingNames([f, g], np.array([1, NONE, 0]))
        names, of_location = united([first, None, last], [2, 1, 3])
        assert [names[each] if each != NONE else None for each in of_location.tolist()] == [f, None, None, g, None, f]
        found = FunctionsAt(np.array([0, 0, 0, 0, 0, NONE]), [[b"f", b"alias"]])
        assert disagreeing(ExistingNames(names, of_location), found).tolist() == [False] * 3 + [True, False, False]

    def test_long_names(self) -> None:
        """Names longer than any are compared as they are, and a message has the beginning of one."""
        whole, longer = ("x" * (MAX_NAME - 10 + more) + "@@VERS_1.0" for more in (0, 1))
        assert is_named(Name(b"", whole.encode()), whole[:-10].encode())
        assert not is_named(Name(b"", longer.encode()), longer[:-10].encode())
        assert is_named(Name(b"", longer.encode()), longer.encode())
        assert text(b"y" * 120) == "y" * 120
        assert text(b"y" * 121) == "y" * 120 + "…"

    @pytest.mark.parametrize("name", ["@plt", "unknown"])
    def test_what_is_no_name(self, name: str, tmp_path: Path) -> None:
        """What recorders write where they know no name is none: it proves and disproves nothing (R164)."""
        library(tmp_path / "libx.so")
        given = [(address, name) for address, _ in places()]
        message, report = run(reported(LIBRARY, given), tmp_path)
        assert set(names(message, LIBRARY).values()) <= {*FUNCTIONS, name}
        assert row(report, LIBRARY).files == [str(tmp_path / "libx.so")]
        assert not row(report, LIBRARY).verified


class TestWithoutABinary:
    """What no ELF file stands for."""

    def test_bytecode(self, tmp_path: Path) -> None:
        """Positions in bytecode are never looked up, whatever file has that name."""
        path = "/data/app/base.apk!/classes.dex"
        library(tmp_path / "classes.dex")
        message, report = run(reported(path, places(named=["one"])), tmp_path)
        assert sorted(names(message, path).values()) == ["", "", "", "one"]
        assert [reason for reason, _, _ in row(report, path).misses] == [Reason.NOT_A_FILE]

    def test_compiled_code(self, tmp_path: Path) -> None:
        """Lists of code that was compiled at run time answer where no name came with the profile."""
        (tmp_path / "perf-7.map").write_text("7000 100 Lapp;->run\n7100 100 Lapp;->jump\n")
        for path in ("[JIT app cache]", "perf-7.map"):
            message, _ = run(reported(path, [(0x7010, ""), (0x7110, "app.jump")]), tmp_path)
            assert sorted(names(message, path).values()) == ["Lapp;->run", "app.jump"]

    def test_kernel(self, tmp_path: Path) -> None:
        """A kernel is named by kallsyms at run-time addresses, and by vmlinux at those that it was linked at."""
        base = 0xFFFF_FFFF_8100_0000
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "kallsyms").write_text(f"{base:x} T _stext\n{base + 0x10:x} T f\n{base + 0x20:x} T _etext\n")
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "vmlinux").write_bytes(
            elf_file(
                [Section(".text", bytes(0x1000), flags=ALLOC | EXEC, address=base)],
                [Segment(base, 0x1000, 5, 0x1000)],
                [Symbol("_stext", base, type=0), Symbol("f", base + 0x10, 0x10)],
                kind=ET_EXEC,
            )
        )
        for root in ("a", "b"):
            message, _ = run(reported("[kernel.kallsyms]", [(base + 0x14, "")]), tmp_path / root)
            assert names(message, "[kernel.kallsyms]") == {base + 0x14: "f"}

    @pytest.mark.parametrize("moved", [0x1C60_0000, 0x1_0000, 0])
    def test_moved_kernel(self, tmp_path: Path, moved: int) -> None:
        """Names that came along tell how far the kernel was moved; the others are then found (rule R169)."""
        base = 0xFFFF_FFFF_8100_0000
        vmlinux(tmp_path / "vmlinux")
        given = [(base + moved + 0x1000 * i + 5, f"f{i}" if i < 5 else "") for i in (1, 3, 4, 70, 400)]
        message, report = run(reported("[kernel.kallsyms]", given), tmp_path)
        assert list(names(message, "[kernel.kallsyms]").values()) == ["f1", "f3", "f4", "f70", "f400"]
        assert row(report, "[kernel.kallsyms]").verified
        assert "3 of 3 functions" in row(report, "[kernel.kallsyms]").tried[-1][1]

    def test_names_of_no_function_of_a_kernel(self, tmp_path: Path) -> None:
        """Names that vmlinux has none of do not tell how far the kernel was moved: it is placed without them."""
        base = 0xFFFF_FFFF_8100_0000
        vmlinux(tmp_path / "vmlinux")
        given = [(base + 0x1000 * i + 5, f"module_{i}" if i < 5 else "") for i in (3, 4, 70)]
        message, report = run(reported("[kernel.kallsyms]", given), tmp_path)
        assert list(names(message, "[kernel.kallsyms]").values()) == ["module_3", "module_4", "f70"]
        assert not row(report, "[kernel.kallsyms]").verified

    def test_names_of_all_functions(self, tmp_path: Path) -> None:
        """The first function of a kernel counts as the others do (rule R169)."""
        base, moved = 0xFFFF_FFFF_8100_0000, 0x1C60_0000
        code = Section(".text", bytes(0x1000), flags=ALLOC | EXEC, address=base)
        functions = [Symbol("f", base, 0x10), Symbol("g", base + 0x10, 0x10), Symbol("h", base + 0x20, 0x10)]
        (tmp_path / "vmlinux").write_bytes(
            elf_file([code], [Segment(base, 0x1000, 5, 0x1000)], functions, kind=ET_EXEC)
        )
        given = [(base + moved + 4, "f"), (base + moved + 0x14, "g"), (base + moved + 0x24, "")]
        message, report = run(reported("[kernel.kallsyms]", given), tmp_path)
        assert list(names(message, "[kernel.kallsyms]").values()) == ["f", "g", "h"]
        assert row(report, "[kernel.kallsyms]").verified

    def test_few_names_do_not_move_a_kernel(self, tmp_path: Path) -> None:
        """Two functions of ten may be where another kernel has them: then nothing is verified, and the names stay
        (rule R169)."""
        base, moved = 0xFFFF_FFFF_8100_0000, 0x1C60_0000
        vmlinux(tmp_path / "vmlinux")
        given = [(base + moved + 0x1000 * i + 5, f"f{i if i < 3 else i * 7}") for i in range(1, 11)]
        message, report = run(reported("[kernel.kallsyms]", [*given, (base + moved + 0x1_0005, "")]), tmp_path)
        assert names(message, "[kernel.kallsyms]") == {**dict(given), base + moved + 0x1_0005: ""}
        assert not row(report, "[kernel.kallsyms]").verified


class TestNames:
    """Names that came with a profile."""

    @pytest.mark.parametrize(
        ("linked", "shown", "found"),
        [
            ("_ZN1a1fEi", "a::f(int)", "_ZN1a1fEi"),
            ("_ZN1a1fEi", "a::f(int)", "_ZN1a1fEi.cold"),
            ("_ZN1aD2Ev", "a::~a()", "_ZN1aD1Ev"),
            ("", "a::f(int)", "_ZN1a1fEi"),
            ("", "int a::f<char>(int) const", "_ZN1a1fEi"),
            ("_ZN1a1fEi", "a::f(int)", "a::f"),
            ("", "a::f(int) (.isra.0)", "_ZN1a1fEi.isra.0"),
            ("", "a::f(nullptr_t)", "_ZN1a1fEDn"),
            ("__dl__ZN1a1fEi", "[linker]a::f(int)", "__dl__ZN1a1fEi"),
            ("__dl_memcpy", "[linker]memcpy", "__dl_memcpy"),
            ("pkg.A.run", "pkg.A.run [DEDUPED]", "pkg.A.run"),
            ("memcpy", "memcpy", "memcpy@@GLIBC_2.14"),
            ("", "core::ptr::f::h0123456789abcdef", "_ZN4core3ptr1f17h0123456789abcdefE"),
            ("", "f(const char *, unsigned long int)", "_Z1fPKcm"),
            ("", "f(void)", "_Z1fv"),
            ("", "f(std::string)", "_Z1fNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"),
            ("", "f(std::__1::pair<int, char> const&) [clone .cold]", "_Z1fRKSt4pairIicE.cold"),
            ("", "f(void (*)(int, char), int)", "_Z1fPFvicEi"),
            ("", "a::operator()(int)", "_ZN1aclEi"),
            ("", "a::operator()", "_ZN1aclEi"),
            ("", "f(...)", "_Z1fi"),
            ("", "f", "_Z1fd"),
            ("", "f(int)", "f"),
            ("", "<(A, B) as T>::f", "<(A,B) as T>::f"),
            ("", "<a::B<i32>>::f()", "<a::B<u8>>::f()"),
        ],
    )  # fmt: skip
    def test_one_function(self, linked: str, shown: str, found: str) -> None:
        """Spellings of one function by recorder, symbol table and debug information (rules R164, R241)."""
        assert is_named(Name(linked.encode(), shown.encode()), found.encode())

    @pytest.mark.parametrize(
        ("linked", "shown", "found"),
        [
            ("_ZN1a1fEi", "a::f(int)", "_ZN1a1gEi"),
            ("_ZN1a1fEi", "a::f(int)", "_ZN1a1fEc"),
            ("_ZN1a1fEi", "a::f(int)", "f"),
            ("", "a::f(int)", "_ZN1b1fEi"),
            ("main", "main", "_start"),
            ("pkg.A.run", "pkg.A.run", "pkg.B.run"),
            ("", "f(int)", "_Z1fd"),
            ("", "f(int)", "_Z1fv"),
            ("", "f(void)", "_Z1fi"),
            ("", "f(int)", "f(double)"),
            ("", "f(int, char)", "_Z1fci"),
            ("", "f(unsigned)", "_Z1fm"),
            ("", "a::operator()(int)", "_ZN1aclEd"),
            ("", "f(std::vector<int, std::allocator<int> >)", "_Z1fSt6vectorIdSaIdEE"),
            ("", "<(A, B) as T>::f", "<(C,) as T>::f"),
            ("", "<a::B<(u8,)>>::f", "<a::C<(u8,)>>::f"),
            ("", "<fn() as T>::f", "_ZN1fE"),
        ],
    )
    def test_two_functions(self, linked: str, shown: str, found: str) -> None:
        """Names of distinct functions (rules R164, R241)."""
        assert not is_named(Name(linked.encode(), shown.encode()), found.encode())

    def test_linker(self, tmp_path: Path) -> None:
        """Functions of the dynamic linker get its mark for their prefix, whether their names came along or not."""
        path = "/apex/com.android.runtime/bin/linker64"
        library(tmp_path / "linker64", functions=("__dl__ZN1a1fEi", "__dl_two", "__dl_three", "four"))
        embedded = [(VADDR + 8, "__dl__ZN1a1fEi"), (VADDR + 0x48, "__dl_two"), (VADDR + 0x88, ""), (VADDR + 0xC8, "")]
        message, _ = run(reported(path, embedded), tmp_path)
        assert list(names(message, path).values()) == ["[linker]a::f", "[linker]two", "[linker]three", "four"]
        library(tmp_path / "libx.so", ID[::-1], functions=("__dl_one",))
        message, _ = run(reported("/lib/libx.so", [(VADDR + 8, "")]), tmp_path)
        assert list(names(message, "/lib/libx.so").values()) == ["__dl_one"]
        assert demangle_android_linker([b"__dl__ZN1a1fEi"], "none") == [b"__dl__ZN1a1fEi"]

    @pytest.mark.parametrize(
        ("mode", "wanted"),
        [("default", "a::f"), ("full", "a::f(int)"), ("none", "_ZN1a1fEi")],
    )
    def test_names_that_stay_follow_the_mode(self, tmp_path: Path, mode: Any, wanted: str) -> None:
        """A name that came along is shown as one that was looked up would be (rule R168)."""
        report = reported(LIBRARY, [(VADDR, "a::f(int)")], ["_ZN1a1fEi"])
        message, _ = run(report, tmp_path, options=Options(demangle=mode))
        assert list(names(message, LIBRARY).values()) == [wanted]

    def test_names_of_bytecode_stay(self, tmp_path: Path) -> None:
        """The mark that several methods share code is kept, though the symbol table lacks it (rule R167)."""
        path = "/system/framework/arm64/boot.oat"
        library(tmp_path / "boot.oat", functions=("a.B.c", "a.B.d", "a.B.e"))
        given = [(VADDR + 8, "a.B.c [DEDUPED]"), (VADDR + 0x48, "a.B.d"), (VADDR + 0x88, "")]
        message, _ = run(reported(path, given), tmp_path)
        assert list(names(message, path).values()) == ["a.B.c [DEDUPED]", "a.B.d", "a.B.e"]


def test_fixture_is_what_it_says() -> None:
    """The two builds of the library differ in code and build id."""
    with ElfImage.open(BINARIES / "libfilters.so") as right, ElfImage.open(WRONG / "libfilters.so") as wrong:
        assert right.build_id != wrong.build_id
