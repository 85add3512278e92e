"""All commands give the same frames and, in the same mode, the same names, whichever of them is asked."""

import json
import random
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from symbolize import Options, Symbolizer, load, lookup
from symbolize.drop_in import addr2line, llvm_options
from symbolize.drop_in.addr2line import Addr2line
from symbolize.drop_in.addresses import Addresses
from symbolize.drop_in.binaries import Binaries, Places, Wanted
from symbolize.drop_in.llvm import LlvmSymbolizer
from symbolize.drop_in.log import Log
from symbolize.elf import read_build_id
from symbolize.names import MODES, Mode, is_mangled
from symbolize.symbols import TableCache
from tests.support.dwarf_writer import As, dwarf_sections, function
from tests.support.elf_writer import ALLOC, EXEC, NOBITS, NOTE, Section, Segment, Symbol, build_id_note, elf_file
from tests.support.fixture_files import BINARIES, FIXTURES, segments
from tests.support.go_writer import Function as GoFunction
from tests.support.go_writer import Row, go_file
from tests.support.line_writer import Lines, sequence
from tests.support.pprof_writer import Mapping, Place, profile
from tests.support.profile_frames import frames_of
from tests.support.programs import unit

COUNT = 200
BIAS, PAGE = 0x5555_0000_0000, 0x1000
ID = bytes.fromhex("00112233445566778899aabbccddeeff00112233")

Frame = tuple[str, str, str, int, int]
"""Shown name, linked name, file, line and column."""
Chains = list[list[Frame]]
"""The frames at each address, innermost first."""


@dataclass(frozen=True)
class Subject:
    """A binary, the folders with its other files, and whether it is a file that can be mapped."""

    path: Path
    roots: tuple[Path, ...] = ()
    is_mapped: bool = True

    @property
    def places(self) -> Places:
        """Where the commands look."""
        return Places(debug_folders=(), binaries=[str(root) for root in (self.path, *self.roots)])

    def vaddrs(self) -> list[int]:
        """Addresses of its code, in no order, and one behind all of it."""
        choose = random.Random(self.path.name)
        loaded = code_of(self.path)
        begins = [choose.choice(loaded) for _ in range(COUNT)]
        return [*(vaddr + choose.randrange(size) for _, vaddr, size in begins), max(v + s for _, v, s in loaded) + 64]


def code_of(path: Path) -> Sequence[tuple[int, int, int]]:
    """File offset, vaddr and size of the segments with code; those of a debug file have no bytes."""
    with path.open("rb") as file:
        every = [each.header for each in ELFFile(file).iter_segments("PT_LOAD")]
    return (
        segments(path)
        if any(size for *_, size in segments(path))
        else [(each.p_offset, each.p_vaddr, each.p_memsz) for each in every if each.p_flags & 1]
    )


def fixture(path: str, *roots: str, is_mapped: bool = True) -> Subject:
    """A committed binary."""
    return Subject(FIXTURES / path, tuple(FIXTURES / root for root in roots), is_mapped)


SUBJECTS = {
    **{
        path: fixture(f"bin/{path}")
        for path in (
            *("gcc-pie/ledger", "gcc-pie/libresonance.so", "clang-pie/spectra", "gcc-o0/ledger"),
            *("gcc-nopie-dwarf4/spectra", "clang-nopie-dwarf4-lld/ledger", "gcc-gc-sections/spectra"),
            *("gcc-gz-zlib/ledger", "clang-gz-zstd/libresonance.so", "aarch64/ledger", "aarch64/libresonance.so"),
            *("twins/gold-all/twins", "twins/lld-stripped/twins", "twins/gcc-icf/twins", "twins/clang-merge/twins"),
            *("twins/mold-all/twins", "twins/versions/libversions.so", "callers/clang-lld/callers"),
            *("callers/gcc-mold/callers", "tails/clang-tails/tails", "tails/gcc-calls/tails"),
        )
    },
    "split": fixture("bin/gcc-split/stripped/ledger", "bin/gcc-split/debug"),
    "stripped": fixture("bin/gcc-split/stripped/spectra"),
    "moved segments": fixture("bin/segments/stripped/libresonance.so", "bin/segments/debug"),
    **{
        machine: fixture(f"bin/headers/stripped/libwalk-{machine}.so", "bin/headers/debug")
        for machine in ("aarch64", "riscv64", "s390x", "thumb")
    },
    "android": fixture("simpleperf/binaries/mixer"),
    "assembly": fixture("unwind/x86-64"),
    "dwz": fixture("parts/dwz/ledger.debug", "parts/dwz", is_mapped=False),
    "dwo": fixture("parts/gcc-dwarf5/ledger.debug", "parts/gcc-dwarf5", is_mapped=False),
}
"""Binaries of all kinds, by a name."""


def without_build_id(folder: Path) -> Subject:
    """A stripped program without a build id that names its debug file by a checksum."""
    split = BINARIES / "gcc-split"
    debug = (split / "debug/spectra.debug").read_bytes()
    with (split / "stripped/spectra").open("rb") as file:
        elf = ELFFile(file)
        note, link = elf.get_section_by_name(".note.gnu.build-id"), elf.get_section_by_name(".gnu_debuglink")
        own = note.data()
        program = bytearray((split / "stripped/spectra").read_bytes())
        place = link["sh_offset"] + link["sh_size"] - 4
    other = own.replace(b"GNU\0", b"own\0")
    changed = debug.replace(own, other)
    program[place : place + 4] = struct.pack("<I", zlib.crc32(changed))
    (folder / "symbols").mkdir()
    (folder / "symbols/spectra.debug").write_bytes(changed)
    (folder / "spectra").write_bytes(bytes(program).replace(own, other))
    return Subject(folder / "spectra", (folder / "symbols",))


def at_other_addresses(folder: Path) -> Subject:
    """A program whose debug file has all addresses one distance away, as prelink and eu-strip leave it."""

    def written(distance: int, code: bytes, *symbols: Symbol) -> bytes:
        begin = PAGE + distance
        note = Section(".note.gnu.build-id", build_id_note(ID), NOTE, ALLOC, address=0x200)
        kind = {} if code else {"type": NOBITS, "size": 0x40}
        text = Section(".text", code, flags=ALLOC | EXEC, address=begin, **kind)  # type: ignore[arg-type]
        return elf_file([note, text], [Segment(begin, 0x40, 5, PAGE)], symbols).ljust(PAGE + 0x40 if code else 0, b"\0")

    moved = [Symbol(f"f{number}", PAGE + 0x5000 + 16 * number, 16, section=".text") for number in range(4)]
    (folder / "debug").mkdir()
    (folder / "debug/program.debug").write_bytes(written(0x5000, b"", *moved))
    (folder / "program").write_bytes(written(0, bytes(0x40)))
    return Subject(folder / "program", (folder / "debug",))


GO_NAMES = ["main.main", "main.cold", "main.avx2", "main.resolver", "main.part.func1", "main.Map[...]", "main"]


def of_go(folder: Path) -> Subject:
    """A Go program with functions that are called as compilers call copies of others."""
    rows = [Row(0, "/src/main.go", 7)]
    functions = [GoFunction(name, 0x40 * number, 0x40, rows, start_line=1) for number, name in enumerate(GO_NAMES)]
    (folder / "program").write_bytes(go_file(functions))
    return Subject(folder / "program")


def of_go_with_debug_information(folder: Path) -> Subject:
    """As a Go program, with DWARF, which calls the functions so too, and symbols."""
    functions = [
        function(name, PAGE + 16 * number, 16, decl_file=1, decl_line=7) for number, name in enumerate(GO_NAMES)
    ]
    debug = dwarf_sections(
        [unit(*functions, lines=Lines(sequence((PAGE, 7), end=PAGE + 0x80)), language=As("data2", 0x16))]
    )
    symbols = [Symbol(name, PAGE + 16 * number, 16, section=".text") for number, name in enumerate(GO_NAMES)]
    made = elf_file(
        [Section(".text", bytes(0x80), flags=ALLOC | EXEC, address=PAGE), *debug],
        [Segment(PAGE, 0x80, 5, PAGE)],
        symbols,
    )
    (folder / "program").write_bytes(made.ljust(PAGE + 0x80, b"\0"))
    return Subject(folder / "program")


def of_android(folder: Path) -> Subject:
    """Android's dynamic linker, which has a prefix before all its symbols."""
    names = ["__dl__ZN6soinfo4linkEv", "__dl_main", "__dl_", "_ZL3fooi.cold", "foo.constprop.0"]
    symbols = [Symbol(name, PAGE + 16 * number, 16, section=".text") for number, name in enumerate(names)]
    text = Section(".text", bytes(0x80), flags=ALLOC | EXEC, address=PAGE)
    made = elf_file([text], [Segment(PAGE, 0x80, 5, PAGE)], symbols)
    (folder / "linker64").write_bytes(made.ljust(PAGE + 0x80, b"\0"))
    return Subject(folder / "linker64")


MADE: dict[str, Callable[[Path], Subject]] = {
    "debug link without a build id": without_build_id,
    "debug file at other addresses": at_other_addresses,
    "go": of_go,
    "go with debug information": of_go_with_debug_information,
    "dynamic linker": of_android,
}


class Doors:
    """The commands and functions that name addresses of a binary, each in this process, with the cache of all."""

    def __init__(self, subject: Subject, cache: TableCache, held: ExitStack, shared: Path) -> None:
        self.subject, self.cache, self.shared = subject, cache, shared
        self.build_id = read_build_id(str(subject.path)) or ""
        self.path, self.vaddrs = str(subject.path), subject.vaddrs()
        self.binaries = held.enter_context(Binaries(subject.places, cache))

    def addr(self, mode: Mode) -> Chains:
        """`symbolize addr`, and what `--json` prints of it."""
        places = Addresses(self.binaries, Wanted(self.path), mode).places(self.vaddrs)
        return [[(f.function, f.linked, f.path, f.line, f.column) for f in place.frames] for place in places]

    def library(self, mode: Mode) -> Chains:
        """`symbolize.lookup`."""
        frames = lookup(self.path, self.vaddrs, self.subject.roots, cache=self.cache)
        is_linker = self.subject.path.name == "linker64"
        shown = frames.functions.shown(frames.function.astype(np.int64), mode, is_linker)
        files = [frames.files[row] if row >= 0 else b"" for row in frames.file.tolist()]
        texts = [[text.decode() for text in column] for column in (shown.names, shown.system_names, files)]
        every = list(zip(*texts, frames.line.tolist(), frames.column.tolist(), strict=True))
        offsets = frames.offsets.tolist()
        return [every[first:last] for first, last in pairwise(offsets)]

    def profile(self, mode: Mode) -> Chains:
        """A profile with a location at each address."""
        with self.subject.path.open("rb") as file:
            bias = BIAS if ELFFile(file)["e_type"] == "ET_DYN" else 0
        mappings, number_of = [], {}
        for number, (offset, vaddr, size) in enumerate(segments(self.subject.path), 1):
            begin, end = vaddr - vaddr % PAGE, vaddr + size
            mappings.append(Mapping(bias + begin, bias + end, offset - vaddr % PAGE, self.path, self.build_id))
            number_of |= {each: number for each in self.vaddrs if vaddr <= each < end}
        places = [Place(bias + vaddr, number_of.get(vaddr, 0)) for vaddr in self.vaddrs]
        asked = list(dict.fromkeys(places))
        data = profile(mappings, [([place], [1]) for place in asked])
        roots = [str(root) for root in (self.subject.path, *self.subject.roots)]
        with Symbolizer(roots, Options(demangle=mode), cache=self.cache) as symbolizer:
            made = symbolizer.symbolize(load(BytesIO(data))).profile
        found = dict(zip(made.locations.address.tolist(), frames_of(made), strict=True))
        return [found[place.address] for place in places]

    def server(self, mode: Mode) -> Chains:
        """`symbolize serve`, by Mozilla's API, which has no linked names and no columns."""
        from symbolize.serve.metrics import ServerMetrics
        from symbolize.serve.modules import Modules
        from symbolize.serve.symbolication import FoundFrames, SymbolicationAnswer, read_request

        roots = [str(root) for root in (self.subject.path, *self.subject.roots)]
        modules = Modules(roots, self.cache, str(self.shared), None, ServerMetrics())
        with ExitStack() as held:
            held.callback(modules.close)
            module = held.enter_context(modules.held(self.build_id))
            assert module is not None
            stack = [[0, vaddr - module.base] for vaddr in self.vaddrs]
            request = read_request(json.dumps({"memoryMap": [["x", self.build_id]], "stacks": [stack]}).encode())
            answer = json.loads(SymbolicationAnswer(request, {self.build_id: FoundFrames(module)}, mode).json())
        return [
            [(f["function"], "", f.get("file", ""), f.get("line", 0), 0) for f in [*frame.get("inlines", []), frame]]
            if "function" in frame
            else []
            for frame in answer["results"][0]["stacks"][0]
        ]

    def log(self, mode: Mode) -> Chains:
        """`symbolize log`, of a trace of a sanitizer, which has no linked names."""
        told: list[str] = []
        lines = [b"    #1 0x1  (/x+%#x) (BuildId: %b)\n" % (vaddr, self.build_id.encode()) for vaddr in self.vaddrs]
        log = Log(self.binaries, mode, told.append)
        named = [log.named(line) for line in lines]
        assert told == []
        return [[logged(line) for line in text.splitlines() if b" in " in line] for text in named]

    def llvm(self, *words: str) -> list[list[dict[str, object]]]:
        """`symbolize as llvm-symbolizer`."""
        options = llvm_options.parsed(["--output-style=JSON", f"--obj={self.path}", *words], "", False)
        tool = LlvmSymbolizer(options, self.binaries, pytest.fail)
        return [json.loads(line)["Symbol"] for line in tool.answers([b"%#x\n" % vaddr for vaddr in self.vaddrs])]

    def addr2line(self, *words: str) -> list[list[tuple[str, str]]]:
        """`symbolize as addr2line`: names, and files with lines."""
        tool = Addr2line(addr2line.parsed(["-fi", "-e", self.path, *words]), self.binaries)
        answers = [answer.decode().splitlines() for answer in tool.answers([b"%x\n" % vaddr for vaddr in self.vaddrs])]
        return [list(zip(lines[::2], lines[1::2], strict=True)) for lines in answers]


def logged(line: bytes) -> Frame:
    """The frame in a line of a log."""
    form = r"    #1 0x1 in (.*?)(?: \[folded\])?(?: (/\S+?|[\w.-]+\.\w+)(?::(\d+))?(?::(\d+))?)?(?: \(/x\+.*\))?"
    found = re.fullmatch(form, line.decode())
    assert found is not None, line
    return found[1], "", found[2] or "", int(found[3] or 0), int(found[4] or 0)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> TableCache:
    """The cache of all commands."""
    return TableCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(params=[*SUBJECTS, *MADE])
def doors(request: pytest.FixtureRequest, cache: TableCache, tmp_path: Path) -> Iterator[Doors]:
    """The doors to each subject."""
    subject = SUBJECTS.get(request.param) or MADE[request.param](tmp_path)
    (tmp_path / "shared").mkdir()
    with ExitStack() as held:
        yield Doors(subject, cache, held, tmp_path / "shared")


def test_frames_and_names(doors: Doors) -> None:
    """The same frames, names, files and lines everywhere, as far as an answer has them."""
    for mode in MODES:
        expected = doors.addr(mode)
        assert sum(map(bool, expected)) >= COUNT // 20
        assert doors.library(mode) == expected
        if doors.subject.is_mapped:
            assert doors.profile(mode) == expected
        if doors.build_id and mode in ("default", "full"):
            # A text has no column without a line.
            assert doors.log(mode) == [
                [(name, "", *place) if place[1] else (name, "", place[0], 0, 0) for name, _, *place in chain]
                for chain in expected
            ]
            unnamed = [[(name, "", file, line, 0) for name, _, file, line, _ in chain] for chain in expected]
            assert doors.server(mode) == unnamed


@pytest.mark.parametrize("made", [of_go, of_go_with_debug_information])
@pytest.mark.parametrize("mode", MODES)
def test_functions_of_go_are_no_copies(
    made: Callable[[Path], Subject], mode: Mode, cache: TableCache, tmp_path: Path
) -> None:
    """What may be the mark of a copy behind a name of C is a name behind a dot in Go (rule R115)."""
    with ExitStack() as held:
        doors = Doors(made(tmp_path), cache, held, tmp_path)
        assert {frame[0] for chain in doors.addr(mode) for frame in chain} == {*GO_NAMES}
        for answers in (doors.addr2line(), doors.addr2line("-C")):
            assert {name for answer in answers for name, _ in answer} == {*GO_NAMES, "??"}
        for printed in (doors.llvm(), doors.llvm("--no-demangle")):
            assert {frame["FunctionName"] for answer in printed for frame in answer} == {*GO_NAMES, ""}


LATE = re.compile(r"(?:\.(?:cold|lto_priv)(?:\.\d+)?)+$")
"""What only symbols have behind the name: without a `.symtab` in the file itself the tools print the name in DWARF."""


def spelled_by_llvm(name: str) -> str:
    """A whole name as LLVM spells it: without blanks between brackets, and with other words for lambdas."""
    name = re.sub(r"(?<=>) (?=>)", "", name)
    return re.sub(
        r"\{lambda\(([^{}]*)\)#(\d+)\}", lambda m: f"'lambda{int(m[2]) - 2 if m[2] > '1' else ''}'({m[1]})", name
    )


def test_tools_in_the_place_of_others(doors: Doors) -> None:
    """llvm-symbolizer and addr2line have the same frames, and differ in their names by this list only:

    - a function without a linked name is called as in its own scope, and names of C keep the marks of copies;
    - whole names have the spelling of the tool, and say which mark a copy has;
    - the marks that DWARF does not have are missing where the file has no `.symtab`, and for addr2line always.
    """
    expected = doors.addr("full")
    with doors.subject.path.open("rb") as file:
        has_symbols = ELFFile(file).get_section_by_name(".symtab") is not None
    printed = zip(expected, doors.llvm("--no-demangle"), doors.llvm(), strict=True)
    for chain, linked, shown in printed:
        assert len(linked) == len(shown) == max(len(chain), 1)
        for (name, link, *place), raw, whole in zip(chain, linked, shown, strict=False):
            assert [raw["FileName"], raw["Line"], raw["Column"]] == place
            assert raw["FunctionName"] == link or (not has_symbols and raw["FunctionName"] == LATE.sub("", link))
            without_mark = re.sub(r" \(\.[\w.]+\)$", "", str(whole["FunctionName"]))
            assert without_mark == (spelled_by_llvm(name) if is_mangled(link.encode()) else raw["FunctionName"])
    for chain, linked_lines, shown_lines in zip(expected, doors.addr2line(), doors.addr2line("-C"), strict=True):
        assert len(linked_lines) == len(shown_lines) == max(len(chain), 1)
        for (name, link, path, number, _), (raw, place), (whole, _) in zip(
            chain, linked_lines, shown_lines, strict=False
        ):
            assert place == f"{path or '??'}:{number or '?'}"
            assert raw in (link, LATE.sub("", link))
            assert re.sub(r" \[clone .*", "", whole) == (name if is_mangled(link.encode()) else raw)
