"""Whole runs over the committed profiles, against what llvm-symbolizer and pprof say."""

import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from symbolize.cli import main
from tests.support import fixture_files as fixtures
from tests.support.fixture_files import BINARIES, FIXTURES, GPERFTOOLS, PERF, Frame

PROFILES = [*GPERFTOOLS, *PERF]
OURS = ("spectra", "ledger", "libresonance.so")
CENSUS = BINARIES / "go" / "census"
SIZELESS = ("", "_init", "_fini")
"""What llvm-symbolizer calls the linkage tables, which no symbol covers."""
IS_ENTRY = re.compile(r"\w+@plt")
"""What we call their entries (rule R263)."""


def symbolized(profile: Path, binaries: list[Path], folder: Path) -> Any:
    """The decoded output of the command."""
    output = folder / "out.pb.gz"
    folders = [argument for path in binaries for argument in ("-b", str(path))]
    output.unlink(missing_ok=True)  # one with names is not replaced by one without
    assert main([str(profile), *folders, "-o", str(output), "-q"]) == 0
    return fixtures.read_pprof(output)


def by_file(profile: Any) -> dict[str, list[tuple[Any, Any]]]:
    """The locations in our own binaries with their mappings, by the name of the file."""
    mappings = {mapping.id: mapping for mapping in profile.mapping}
    found = defaultdict(list)
    for location in profile.location:
        if location.mapping_id:
            mapping = mappings[location.mapping_id]
            name = profile.string_table[mapping.filename].decode().rpartition("/")[2]
            if name in OURS:
                found[name].append((location, mapping))
    return found


def comparable(frames: list[Frame]) -> list[Frame]:
    """The frames without what is a matter of taste: `.` in paths."""
    return [(name, file.replace("/./", "/"), line, column) for name, file, line, column in frames]


@pytest.mark.needs("llvm-symbolizer-19")
@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.name)
def test_inline_chains(path: Path, tmp_path: Path) -> None:
    """Every location in our own binaries has the chain of names, files, lines and columns of llvm-symbolizer."""
    variant = fixtures.variant(path)
    profile = symbolized(path, [BINARIES / variant], tmp_path)
    split = variant == "gcc-split"
    compared = inlined = 0
    for name, places in by_file(profile).items():
        loaded = BINARIES / variant / ("stripped" if split else ".") / name
        named = BINARIES / variant / "debug" / f"{name}.debug" if split else loaded
        vaddrs = [fixtures.vaddr_of(location.address, mapping, loaded) for location, mapping in places]
        oracle = fixtures.llvm_frames(named, vaddrs)
        for (location, _), vaddr in zip(places, vaddrs, strict=True):
            ours, theirs = comparable(fixtures.frames_of(profile, location)), comparable(oracle[vaddr])
            if not ours or IS_ENTRY.fullmatch(ours[0][0]):
                assert len(ours) <= 1
                assert [frame[1:] for frame in ours] in ([], [("", 0, 0)])
                assert len(theirs) == 1
                assert theirs[0][0] in SIZELESS
                continue
            if location.is_folded:  # several functions share the code; which one is named is a choice
                ours[-1], theirs[-1] = (("", *frame[1:]) for frame in (ours[-1], theirs[-1]))
            assert ours == theirs, f"{name} at {vaddr:#x}"
            compared += 1
            inlined += len(ours) > 1
    assert compared > 50
    assert inlined > 20


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.name)
def test_flags_follow_the_lines(path: Path, tmp_path: Path) -> None:
    """The has_* flags of a mapping say what its locations have; a mapping without its binary claims nothing."""
    profile = symbolized(path, [BINARIES / fixtures.variant(path)], tmp_path)
    functions = {function.id: function for function in profile.function}
    seen = set()
    for mapping in profile.mapping:
        lines = [location.line for location in profile.location if location.mapping_id == mapping.id]
        if not lines:
            continue
        each = [line for location in lines for line in location]
        flags = (mapping.has_functions, mapping.has_filenames, mapping.has_line_numbers, mapping.has_inline_frames)
        assert flags == (
            bool(each),
            any(functions[line.function_id].filename for line in each),
            any(line.line for line in each),
            any(len(location) > 1 for location in lines),
        )
        seen.add(flags)
    assert {(True, True, True, True), (False, False, False, False)} <= seen


def test_folded_functions_are_marked(tmp_path: Path) -> None:
    """The two `power` functions that lld folded into one are marked as folded, and little else is."""
    profile = symbolized(
        FIXTURES / "profiles/gperftools/spectra-clang-nopie-dwarf4-lld.prof",
        [BINARIES / "clang-nopie-dwarf4-lld"],
        tmp_path,
    )
    names = {function.id: profile.string_table[function.name].decode() for function in profile.function}
    folded = {names[location.line[-1].function_id] for location in profile.location if location.is_folded}
    plain = {names[x.line[-1].function_id] for x in profile.location if x.line and not x.is_folded}
    assert folded & {"resonance::LowPass::power", "resonance::HighPass::power"}
    assert "resonance::transform" in plain
    assert len(folded) < len(plain)


@pytest.mark.parametrize("path", [path for path in GPERFTOOLS if "gcc-split" in path.name], ids=lambda path: path.name)
class TestSplitBinaries:
    """A stripped binary and its debug file in separate folders."""

    def chains(self, path: Path, folders: list[str], tmp_path: Path) -> dict[tuple[str, int], list[Frame]]:
        profile = symbolized(path, [BINARIES / "gcc-split" / folder for folder in folders], tmp_path)
        return {
            (name, location.address): fixtures.frames_of(profile, location)
            for name, places in by_file(profile).items()
            for location, _ in places
        }

    @pytest.mark.full
    def test_debug_file_alone_is_enough(self, path: Path, tmp_path: Path) -> None:
        """Debug files whose segments have no bytes give the same as together with the binaries, in either order, but
        for entries of linkage tables, whose code they do not have (rule R263)."""
        both = self.chains(path, ["stripped", "debug"], tmp_path)
        assert sum(len(chain) > 1 for chain in both.values()) > 20
        assert self.chains(path, ["debug", "stripped"], tmp_path) == both
        assert self.chains(path, ["debug"], tmp_path) == {
            place: chain if not chain or not IS_ENTRY.fullmatch(chain[0][0]) else [] for place, chain in both.items()
        }
        assert self.chains(path, ["."], tmp_path) == both

    def test_stripped_alone_has_exported_names(self, path: Path, tmp_path: Path) -> None:
        """A stripped library still names its exported functions, without lines; a stripped program names the entries of
        its linkage table only."""
        both = self.chains(path, ["stripped", "debug"], tmp_path)
        for (name, address), chain in self.chains(path, ["stripped"], tmp_path).items():
            if name != "libresonance.so":
                assert chain == [] or IS_ENTRY.fullmatch(chain[0][0])
            elif chain:
                ((linked, file, line, _),) = chain
                assert (file, line) == ("", 0)
                assert linked == both[name, address][-1][0]


@pytest.mark.needs("census")
def test_go_profile_gets_its_names_back(tmp_path: Path) -> None:
    """A Go profile without names, whose build id only a section of the binary holds, has the runtime's names again."""
    profiles = FIXTURES / "profiles" / "go"
    ours = symbolized(profiles / "census-unnamed.pb.gz", [CENSUS.parent], tmp_path)
    runtime = fixtures.read_pprof(profiles / "census.pb.gz")

    def chains(profile: Any) -> dict[int, list[tuple[str, int]]]:
        return {
            location.address: [
                (frame[1].rpartition("/")[2], frame[2]) for frame in fixtures.frames_of(profile, location)
            ]
            for location in profile.location
        }

    named, theirs = chains(ours), chains(runtime)
    assert len(named) > 40
    assert all(named.values())
    agreeing = sum(named[address] == theirs[address] for address in named.keys() & theirs.keys())
    assert agreeing > 0.8 * len(theirs)


@pytest.mark.needs("go")
class TestPprofReadsIt:
    """`go tool pprof` shows our names and does not look for others."""

    PROFILE = FIXTURES / "profiles" / "gperftools" / "spectra-gcc-pie.prof"

    def pprof(self, options: list[str], tmp_path: Path) -> tuple[str, str]:
        """What `go tool pprof` prints and complains about for our output."""
        output = tmp_path / "out.pb.gz"
        assert main([str(self.PROFILE), "-b", str(BINARIES / "gcc-pie"), "-o", str(output), "-q"]) == 0
        home = {"HOME": str(tmp_path), "PPROF_TMPDIR": str(tmp_path), "PPROF_BINARY_PATH": str(BINARIES / "gcc-pie")}
        run = subprocess.run(
            ["go", "tool", "pprof", *options, str(output)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **home},
        )
        return run.stdout, run.stderr

    def test_top(self, tmp_path: Path) -> None:
        """The functions appear with inlined ones marked, and pprof does not symbolize again."""
        table, complaints = self.pprof(["-top"], tmp_path)
        assert "resonance::LowPass::step\n" in table
        assert "resonance::(anonymous namespace)::split_parity (inline)\n" in table
        for name in OURS:
            assert name not in complaints

    def test_lines_in_traces(self, tmp_path: Path) -> None:
        """Traces show files and lines, inlined frames before what they are inlined into."""
        traces, _ = self.pprof(["-traces", "-lines"], tmp_path)
        assert re.search(
            r"split_parity /src/spectra/resonance\.cc:\d+ \(inline\)\n"
            r"\s+resonance::\(anonymous namespace\)::fast_fourier /src/spectra/resonance\.cc:\d+",
            traces,
        )
