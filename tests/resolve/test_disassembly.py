"""Machine code of a profile, and its values: against the profile's own messages and llvm-symbolizer."""

import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import symbolize
from symbolize import Options, Symbolizer
from symbolize.analysis import Filters, stacks_of
from symbolize.core.disassembly import Disassembly, Instruction
from symbolize.options import DEFAULTS
from symbolize.page import Instructions, instructions_of
from symbolize.profile import Profile
from symbolize.resolve import disassembly as reader
from tests.support.fixture_files import BINARIES, FIXTURES, GPERFTOOLS, PERF, llvm_frames, read_pprof, vaddr_of, variant

RECORDED = [path for path in (*GPERFTOOLS, *PERF) if "gcc-nopie" not in path.name]
SPECTRA = FIXTURES / "profiles" / "gperftools" / "spectra-gcc-pie.prof"


def decoded(path: Path, binaries: Path, options: Options = DEFAULTS) -> tuple[Profile, Instructions]:
    """A profile with names, and its instructions."""
    with Symbolizer(binaries, options) as symbolizer:
        profile = symbolizer.symbolize(symbolize.load(path)).profile
        return profile, instructions_of(stacks_of(profile), lambda weights: symbolizer.disassembly(profile, weights))


def places(code: Disassembly) -> list[tuple[str, int]]:
    """File and vaddr of each instruction."""
    return [(block.file, each.vaddr) for block in code.blocks for each in block.instructions]


def instructions(code: Disassembly) -> list[Instruction]:
    """All instructions."""
    return [each for block in code.blocks for each in block.instructions]


def only(folder: Path, name: str) -> Path:
    """The file of a name below a folder that has the code."""
    (path,) = folder.rglob(name)
    return path


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_values_are_those_of_the_messages(path: Path, tmp_path: Path) -> None:
    """Flat and cumulative value of each address, summed by address of the pprof file that protobuf decodes."""
    binaries = BINARIES / variant(path)
    profile, found = decoded(path, binaries)
    symbolize.write(profile, tmp_path / "out.pb.gz")
    message = read_pprof(tmp_path / "out.pb.gz")
    column = profile.weight_column()
    mappings = {each.id: each for each in message.mapping}
    locations = {each.id: each for each in message.location}
    ends = {(b.file, each.vaddr): each.vaddr + each.size for b in found.code.blocks for each in b.instructions}

    @cache
    def place(location: int) -> tuple[str, int] | None:
        mapping = mappings.get(locations[location].mapping_id)
        name = Path(message.string_table[mapping.filename].decode()).name if mapping is not None else ""
        if mapping is None or not any(block.file == name for block in found.code.blocks):
            return None
        vaddr = vaddr_of(locations[location].address, mapping, only(binaries, name))
        inside = (each for each in range(vaddr, vaddr - 15, -1) if (name, each) in ends)
        return next(((name, each) for each in inside if vaddr < ends[name, each]), None)

    flat, cumulative = Counter[tuple[str, int] | None](), Counter[tuple[str, int] | None]()
    for sample in message.sample:
        at = [place(each) for each in sample.location_id]
        flat[at[0]] += sample.value[column]
        for each in set(at):
            cumulative[each] += sample.value[column]
    assert sum(flat.values()) > 2 * flat[None] - sum(flat.values()) and len(flat) > 20
    for number, each in enumerate(places(found.code)):
        assert (found.flat[number, column], found.cumulative[number, column]) == (flat[each], cumulative[each]), each
    assert found.flat[:, column].sum() == sum(flat.values()) - flat[None]


@pytest.mark.needs("llvm-symbolizer-19")
@pytest.mark.parametrize("build", ["gcc-pie", "gcc-split", "clang-pie"])
def test_lines_are_those_of_llvm_symbolizer(build: str) -> None:
    """File and line of each instruction, and whether it was inlined; the code of a split build is that of the stripped
    file."""
    _, found = decoded(FIXTURES / "profiles" / "gperftools" / f"spectra-{build}.prof", BINARIES / build)
    code, asked = found.code, places(found.code)
    for file in {file for file, _ in asked}:
        debug = BINARIES / "gcc-split" / "debug" / f"{file}.debug" if build == "gcc-split" else BINARIES / build / file
        expected = llvm_frames(debug, [vaddr for name, vaddr in asked if name == file])
        for row, (name, vaddr) in enumerate(asked):
            if name == file:
                _, path, line, _ = expected[vaddr][0]
                own = instructions(code)[row]
                assert (own.file.replace("/./", "/"), own.line) == (path.replace("/./", "/"), line), hex(vaddr)
                assert bool(own.inlined) == (len(expected[vaddr]) > 1)


def test_named_profile_and_filters(tmp_path: Path) -> None:
    """A profile that came with names has instructions by its addresses; filters leave those of fewer samples."""
    profile, found = decoded(SPECTRA, BINARIES / "gcc-pie")
    symbolize.write(profile, tmp_path / "named.pb.gz")
    _, again = decoded(tmp_path / "named.pb.gz", BINARIES / "gcc-pie")
    assert instructions(again.code) == instructions(found.code) and np.array_equal(again.flat, found.flat)
    texts = [each.text for each in instructions(found.code)]
    assert any(text.startswith("call ") and text.endswith("<operator new@plt>") for text in texts)
    with Symbolizer(BINARIES / "gcc-pie") as symbolizer:
        stacks = stacks_of(profile, Filters(focus="LowPass"))
        some = instructions_of(stacks, lambda weights: symbolizer.disassembly(profile, weights))
    focused = profile.filter(focus="LowPass")
    assert 0 < some.flat[:, 0].sum() <= focused.samples.values[:, 0].sum() < found.flat[:, 0].sum()


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heaviest functions are there, and how many are not is said."""
    _, whole = decoded(SPECTRA, BINARIES / "gcc-pie")
    monkeypatch.setattr(reader, "MAX_FUNCTIONS", 2)
    _, few = decoded(SPECTRA, BINARIES / "gcc-pie")
    assert [block[:4] for block in few.code.blocks] == [block[:4] for block in whole.code.blocks[:2]]
    assert few.code.missing[-1] == f"not shown: {len(whole.code.blocks) - 2} functions with less value"
    monkeypatch.setattr(reader, "MAX_BYTES", 400)
    _, small = decoded(SPECTRA, BINARIES / "gcc-pie")
    assert small.code.blocks[0][:4] == whole.code.blocks[0][:4]
    assert sum(block.end - block.begin for block in small.code.blocks) <= 400


@pytest.mark.parametrize(
    ("options", "folder", "reason"),
    [
        (Options(), "gcc-split/debug", "not shown (no file with the code was found): "),
        (Options(accept="proved"), "gcc-split", "not shown (no binary is known): "),
    ],
)
def test_no_code(options: Options, folder: str, reason: str) -> None:
    """A file without bytes, and one whose verdict does not allow names, gives no instructions; that is said."""
    path = SPECTRA.with_name("spectra-gcc-split.prof")
    _, found = decoded(path, BINARIES / folder, options)
    assert not found.code.blocks and not len(found.flat)
    (missing,) = [each for each in found.code.missing if each.startswith(reason)]
    assert "libresonance.so" in missing and "spectra" in missing


@pytest.mark.process
def test_capstone_is_imported_on_request_only(tmp_path: Path) -> None:
    """A page of a profile that build ids prove decodes nothing without the option."""
    profile = PERF[1]
    program = (
        "import sys; from symbolize.cli import main; assert main(sys.argv[1:]) == 0; print('capstone' in sys.modules)"
    )
    for option, expected in (([], "False\n"), (["--disassembly"], "True\n")):
        arguments = ["view", profile, "-b", BINARIES / variant(profile), "-o", tmp_path / "x.html", "-q", *option]
        run = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
        assert run.stdout == expected
