"""Profiles of the Firefox Profiler: names put into the text, in each version, and what becomes of them elsewhere."""

import gzip
import json
import struct
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symbolize
from symbolize.cli.main import main
from symbolize.core.errors import InputError
from symbolize.formats import load, load_all
from symbolize.formats.firefox.gecko import named as named_frame
from symbolize.formats.firefox.slabs import Slabs
from tests.support.fixture_files import FIXTURES

PROFILES = FIXTURES / "profiles/firefox"
BINARIES = FIXTURES / "bin/gcc-pie"
VERSIONS = sorted(int(path.name[1:3]) for path in PROFILES.glob("v*.json.gz"))
NEWEST = 75
TABLES = "stackTable", "frameTable", "funcTable", "nativeSymbols"

Frame = list[Any]


def read(path: Path) -> dict[str, Any]:
    """A profile as JSON."""
    data = path.read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return found


def original(version: int) -> Path:
    """The profile of a version."""
    return PROFILES / f"v{version}.json.gz"


def named(version: int, to: Path, *options: str) -> dict[str, Any]:
    """The profile of a version with names, as the command writes it."""
    arguments = [str(original(version)), "-b", str(BINARIES), "-q", "--no-cache", "--demangle", "none", *options]
    assert main([*arguments, "-o", str(to)]) == 0
    return read(to)


class Shown:
    """What a thread of a profile shows, read by the rules of its version and by nothing of the package."""

    def __init__(self, profile: dict[str, Any], thread: int) -> None:
        self.version = v = profile["meta"]["preprocessedProfileVersion"]
        self.thread = profile["threads"][thread]
        owner = profile["shared"] if v >= 60 else self.thread
        self.stacks, self.frames, self.functions = (owner[name] for name in ("stackTable", "frameTable", "funcTable"))
        self.texts = (profile["shared"] if v >= 56 else self.thread)["stringArray"]
        self.sources = profile["shared"]["sources"]["filename"] if v >= 58 else None

    def frame(self, row: int) -> Frame:
        """Name, file and line of a frame."""
        function = self.frames["func"][row]
        if self.sources is None:
            file = self.functions["fileName"][function]
        else:
            source = self.functions["source"][function]
            is_there = self.functions["flags"][function] & 8 if self.version >= 75 else source is not None
            file = self.sources[source] if is_there else None
        has_line = self.version < 71 or self.frames["flags"][row] & 16
        line = self.frames["line"][row] if has_line else None
        return [self.texts[self.functions["name"][function]], None if file is None else self.texts[file], line]

    def is_inlined(self, row: int) -> bool:
        """Whether a frame is marked as inlined."""
        if self.version >= 71:
            return bool(self.frames["flags"][row] & 1)
        return self.version >= 40 and self.frames["inlineDepth"][row] > 0

    def nodes(self, node: int | None) -> Iterator[int]:
        """The frames of a stack, innermost first."""
        while node is not None:
            yield self.stacks["frame"][node]
            if self.version >= 66:
                offset = self.stacks["prefixOffset"][node]
                node = node - offset if offset else None
            else:
                node = self.stacks["prefix"][node]

    def stack(self, node: int | None) -> list[Frame]:
        """A stack, root first."""
        return [self.frame(row) for row in self.nodes(node)][::-1]

    def samples(self) -> list[list[Frame]]:
        """The stacks of the samples."""
        return [self.stack(node) for node in self.thread["samples"]["stack"]]

    def cause(self) -> list[Frame]:
        """The stack of the marker that has one."""
        return self.stack(self.thread["markers"]["data"][1]["cause"]["stack"])


@pytest.fixture(scope="module")
def expected() -> list[list[list[Frame]]]:
    """The stacks of each thread, as llvm-symbolizer names them."""
    found: list[list[list[Frame]]] = read(FIXTURES / "firefox_stacks.json.gz")  # type: ignore[assignment]
    return found


def known(stack: list[Frame], expected: list[Frame]) -> list[Frame]:
    """A stack without entries of procedure linkage tables, for which llvm-symbolizer has no name or that before."""
    return [frame for frame, (name, *_) in zip(stack, expected, strict=True) if name != "_init" and name[:2] != "0x"]


@pytest.mark.parametrize("version", VERSIONS)
def test_functions_files_and_lines_in_each_version(
    version: int, tmp_path: Path, expected: list[list[list[Frame]]]
) -> None:
    """Samples have the stacks that llvm-symbolizer gives, with inlined frames, and so has the marker with a stack."""
    profile = named(version, tmp_path / "named.json.gz")
    for thread, stacks in enumerate(expected):
        shown = Shown(profile, thread)
        for stack, truth in zip(shown.samples(), stacks, strict=True):
            assert known(stack, truth) == known(truth, truth)
        if version >= 40:
            depths = [shown.is_inlined(row) for row in range(len(shown.frames["func"]))]
            assert any(depths) or not thread
        assert not shown.cause()[1][0].startswith("0x") or shown.cause()[1][0].startswith("(")


def without_names(profile: dict[str, Any]) -> dict[str, Any]:
    """What names do not change."""
    for owner in (profile.get("shared", {}), *profile["threads"]):
        for name in (*TABLES, "stringArray", "sources"):
            owner.pop(name, None)
    for thread in profile["threads"]:
        del thread["samples"]["stack"], thread["markers"]["data"][1]["cause"]["stack"]
    del profile["meta"]["symbolicated"]
    return profile


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_else_changes(version: int, tmp_path: Path) -> None:
    """All other values, texts and resources stay; those that were there keep their rows."""
    before, after = read(original(version)), named(version, tmp_path / "named.json")
    owners = [("shared", None)] if version >= 56 else [("threads", row) for row in range(len(before["threads"]))]
    for key, row in owners:
        old, new = (each[key] if row is None else each[key][row] for each in (before, after))
        assert new["stringArray"][: len(old["stringArray"])] == old["stringArray"]
    assert list(after) == list(before)
    assert without_names(after) == without_names(before)


@pytest.mark.parametrize("version", [24, 40, 59, NEWEST])
def test_names_that_are_there_stay(version: int, tmp_path: Path) -> None:
    """A profile with names is written as it came, byte for byte; `--force` looks them up again, to the same stacks."""
    version = max(each for each in VERSIONS if each <= version)
    first, again, forced = (tmp_path / f"{name}.json" for name in ("named", "again", "forced"))
    named(version, first)
    options = ["-b", str(BINARIES), "-q", "--no-cache", "--demangle", "none", "-o"]
    assert main([str(first), *options, str(again)]) == 0
    assert again.read_bytes() == first.read_bytes()
    assert main([str(first), "--force", *options, str(forced)]) == 0
    if version >= 40:  # before, inlined frames are not marked, and have the addresses of the frames they are in
        shown = [[Shown(read(path), row).samples() for row in range(3)] for path in (first, forced)]
        assert shown[0] == shown[1]


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != NEWEST])
def test_all_versions_are_one_profile(version: int) -> None:
    """Each version becomes the same profile, up to CPU times, which are the same too."""

    def of(version: int) -> dict[tuple[Any, ...], list[int]]:
        with symbolize.Symbolizer([BINARIES], cache=None) as symbolizer:
            profile = symbolizer.symbolize(load(original(version))).profile
        text = profile.strings.text
        assert [tuple(map(text, each)) for each in profile.sample_types] == [
            ("samples", "count"),
            ("cpu", "nanoseconds"),
        ]
        labels = profile.samples.labels
        sums: dict[tuple[Any, ...], list[int]] = {}
        for row, (frames, values) in enumerate(zip(profile.stacks(), profile.samples.values.tolist(), strict=True)):
            mine = range(profile.samples.label_offsets[row], profile.samples.label_offsets[row + 1])
            facts = tuple(
                (text(int(labels.key[at])), text(int(labels.text[at])) or int(labels.number[at])) for at in mine
            )
            key = tuple((each.function, each.file, each.line, each.is_inlined) for each in frames), facts
            sums[key] = [a + b for a, b in zip(sums.get(key, [0, 0]), values, strict=True)]
        return sums

    assert of(version) == of(NEWEST)


def test_labels_times_and_values() -> None:
    """Samples have their thread, category and time; without times equal ones are one."""
    profile = load(original(NEWEST), timestamps=True)
    text, labels = profile.strings.text, profile.samples.labels
    mine = range(profile.samples.label_offsets[0], profile.samples.label_offsets[1])
    found = {text(int(labels.key[at])): text(int(labels.text[at])) or int(labels.number[at]) for at in mine}
    document = read(original(NEWEST))
    thread = document["threads"][0]
    taken = 1_700_000_000_000_500_000 + round(thread["samples"]["timeDeltas"][0] * 1e6)
    assert found == {
        "pid": int(thread["pid"]),
        "tid": thread["tid"],
        "process": "threads",
        "thread": thread["name"],
        "category": found["category"],
        "timestamp_ns": taken,
    }
    assert found["category"] in ("User", "Other")
    assert len(profile.samples) == sum(each["samples"]["length"] for each in document["threads"])
    cpu = sum(sum(each["samples"]["threadCPUDelta"]) for each in document["threads"]) * 1000
    assert profile.samples.values.sum(axis=0).tolist() == [len(profile.samples), cpu]
    assert load(original(NEWEST), timestamps=False).samples.values.sum(axis=0).tolist() == [len(profile.samples), cpu]


def test_symbols_for_samply(tmp_path: Path) -> None:
    """Each address of a library leads to its symbol, with the frames there, innermost first."""
    out = tmp_path / "x.syms.json"
    arguments = [str(original(NEWEST)), "-b", str(BINARIES), "-q", "--no-cache", "--emit", "samply-syms"]
    assert main([*arguments, "-o", str(out)]) == 0
    symbols, profile = read(out), read(original(NEWEST))
    texts = symbols["string_table"]
    by_name = {each["debug_name"]: each for each in symbols["data"]}
    library = next(each for each in profile["libs"] if each["name"] == "spectra")
    own = by_name["spectra"]
    assert own["code_id"] == library["codeId"]
    assert own["debug_id"].replace("-", "").upper() + "0" == library["breakpadId"]
    main_at = {address: own["symbol_table"][row] for address, row in own["known_addresses"]}
    frames = {texts[frame["function"]] for each in main_at.values() for frame in each["frames"]}
    assert {"(anonymous namespace)::band_energy", "resonance::norm"} <= frames
    for address, each in main_at.items():
        assert each["rva"] <= address < each["rva"] + each.get("size", 1 << 30)
        assert texts[each["symbol"]] == texts[each["frames"][-1]["function"]]


def test_symbols_for_samply_need_its_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another format has no such file."""
    other = FIXTURES / "profiles/gperftools/ledger-gcc-pie.prof"
    assert main([str(other), "--emit", "samply-syms", "-q", "-o", str(tmp_path / "x.syms.json")]) == 1
    assert "no profile of samply" in capsys.readouterr().err


def small(**changes: Any) -> dict[str, Any]:
    """A profile of version 75 with one frame of a library and one of none."""
    profile = {
        "meta": {"preprocessedProfileVersion": 75, "interval": 1, "startTime": 0, "stackwalk": 1, "markerSchema": []},
        "libs": [{"name": "x", "path": "/x", "debugName": "x", "breakpadId": "", "codeId": None, "arch": ""}],
        "shared": {
            "stringArray": ["root", "0x10"],
            "stackTable": {"frame": [0, 1], "prefixOffset": [0, 1], "length": 2},
            "frameTable": {
                "flags": [0, 2],
                "address": [0, 16],
                "lib": [0, 0],
                "func": [0, 1],
                "nativeSymbol": [0, 0],
                "category": [0, 0],
                "subcategory": [0, 0],
                "innerWindowID": [0, 0],
                "line": [0, 0],
                "column": [0, 0],
                "originalLocation": [0, 0],
                "length": 2,
            },
            "funcTable": {
                "flags": [0, 4],
                "name": [0, 1],
                "resource": [0, 0],
                "source": [0, 0],
                "lineNumber": [0, 0],
                "columnNumber": [0, 0],
                "originalLocation": [0, 0],
                "length": 2,
            },
            "resourceTable": {"name": [1], "host": [None], "type": [1], "length": 1},
            "nativeSymbols": {"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0},
            "sources": {"id": [], "filename": [], "startLine": [], "startColumn": [], "length": 0},
        },
        "threads": [
            {
                "name": "t",
                "pid": "1",
                "tid": 2,
                "samples": {"stack": [1, 0, None], "time": [1, 2, 3], "weight": None, "length": 3},
                "markers": {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": []},
            }
        ],
    }
    for path, value in changes.items():
        *owners, last = path.split("__")
        at: Any = profile
        for key in owners:
            at = at[int(key) if key.isdigit() else key]
        at[last] = value
    return profile


def loaded(profile: dict[str, Any]) -> symbolize.Profile:
    """A profile that was read."""
    return load(BytesIO(json.dumps(profile).encode()))


def test_samples_without_a_stack_are_told() -> None:
    """They are left out, with a warning."""
    profile = loaded(small())
    assert profile.samples.values.tolist() == [[1], [1]]
    assert any("without a stack: 1" in each for each in profile.warnings)


def test_addresses_count_from_the_first_page_of_the_image(tmp_path: Path) -> None:
    """Also in a program that is not position-independent, whose first page has another vaddr."""
    binary = FIXTURES / "bin/clang-nopie-dwarf4-lld/ledger"
    from elftools.elf.elffile import ELFFile

    with binary.open("rb") as file:
        elf = ELFFile(file)
        base = min(each["p_vaddr"] for each in elf.iter_segments("PT_LOAD"))
        start = next(
            each["st_value"] for each in elf.get_section_by_name(".symtab").iter_symbols() if each.name == "main"
        )
        build_id = next(iter(elf.get_section_by_name(".note.gnu.build-id").iter_notes()))["n_desc"]
    assert base
    profile = small(libs__0__codeId=build_id, shared__frameTable__address=[0, start - base])
    path = tmp_path / "x.json"
    path.write_text(json.dumps(profile))
    assert main([str(path), "-b", str(binary.parent), "-q", "--no-cache", "-o", str(tmp_path / "y.json")]) == 0
    assert Shown(read(tmp_path / "y.json"), 0).samples()[0][1][0] == "main"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"meta__preprocessedProfileVersion": 99}, "version 99"),
        ({"meta__preprocessedProfileVersion": "75"}, "version '75'"),
        ({"meta__preprocessedProfileVersion": 23}, "version 23"),
        ({"shared__stackTable__prefixOffset": [0, -1]}, "does not stand behind"),
        ({"shared__stackTable__prefixOffset": [0, 2]}, "does not stand behind"),
        ({"shared__stackTable__frame": [0, 2]}, "rows that are not there"),
        ({"shared__stackTable__frame": [0, None]}, "no frame"),
        ({"shared__frameTable__func": [0, 9]}, "rows that are not there"),
        ({"shared__frameTable__func": [0, 1.5]}, "no integers"),
        ({"shared__frameTable__lib": [0, 7]}, "library that is not there"),
        ({"shared__frameTable__address": [0]}, "has 1 rows"),
        ({"shared__frameTable__address": ["0", "1"]}, "number is expected"),
        ({"shared__funcTable__name": [0, 5]}, "rows that are not there"),
        ({"shared__funcTable__source": [0, 5], "shared__funcTable__flags": [0, 12]}, "source that is not there"),
        ({"shared__stringArray": ["root", 5]}, "text is expected"),
        ({"shared__stackTable": []}, "object is expected"),
        ({"threads": {}}, "list is expected"),
        ({"threads__0__samples__stack": [1, 0, 99]}, "rows that are not there"),
        ({"threads__0__samples__time": [1]}, "has 1 rows"),
    ],
)
def test_damage_is_told(changes: dict[str, Any], problem: str) -> None:
    """One sentence says what is wrong."""
    with pytest.raises(InputError, match=problem):
        loaded(small(**changes))


def test_every_cut_is_told() -> None:
    """A text that ends early is damaged, and nothing else happens."""
    data = json.dumps(small()).encode()
    for end in range(120, len(data), 7):
        with pytest.raises(InputError):
            load(BytesIO(data[:end]))


def test_chains_that_multiply_are_refused() -> None:
    """Many samples of one very deep stack are a small text with very many frames."""
    nodes = 10_000
    profile = small(
        shared__stackTable__frame=[1] * nodes,
        shared__stackTable__prefixOffset=[0] + [1] * (nodes - 1),
        threads__0__samples__stack=list(range(nodes)) * 8,
        threads__0__samples__time=list(range(nodes * 8)),
    )
    with pytest.raises(InputError, match="as only a bomb has"):
        load(BytesIO(json.dumps(profile).encode()), timestamps=True)
    deep = small(
        shared__stackTable__frame=[1] * 40_000,
        shared__stackTable__prefixOffset=[0] + [1] * 39_999,
    )
    with pytest.raises(InputError, match="more than"):
        loaded(deep)


def test_values_that_nest_deeply_are_stepped_over() -> None:
    """What is not needed may be anything; what is needed may not."""
    data = json.dumps(small()).encode()
    nested = b"[" * 200_000 + b"]" * 200_000
    assert len(load(BytesIO(data[:-1] + b',"more":' + nested + b"}")).samples) == 2
    with pytest.raises(InputError):
        load(BytesIO(data.replace(b'"libs": [', b'"libs": [' + nested + b",", 1)))


GECKO = {
    "meta": {"version": 34, "interval": 2, "startTime": 1000, "stackwalk": 1, "categories": [{"name": "Other"}]}
    | {"sampleUnits": {"threadCPUDelta": "ns"}, "shutdownTime": None, "markerSchema": []},
    "libs": [
        {"start": 0x1000, "end": 0x3000, "offset": 0, "path": "/lib/a.so", "debugName": "a.so", "codeId": "ab" * 20},
        {"start": 0x8000, "end": 0x9000, "offset": 0x1000, "path": "/lib/b.so", "debugName": "b.so", "breakpadId": ""},
    ],
    "pausedRanges": [],
    "threads": [
        {
            "name": "GeckoMain",
            "pid": 7,
            "tid": 7,
            "stringTable": ["(root)", "0x1234", "0x8010", "run (a.js:3:4)", "0x5000", "known (in c.so)"],
            "frameTable": {
                "schema": {"location": 0, "line": 1, "category": 2},
                "data": [[0], [1, None, 0], [2], [3], [4], [5]],
            },
            "stackTable": {
                "schema": {"prefix": 0, "frame": 1},
                "data": [[None, 0], [0, 1], [1, 2], [2, 3], [3, 4], [4, 5]],
            },
            "samples": {
                "schema": {"stack": 0, "time": 1, "threadCPUDelta": 2},
                "data": [[2, 1.5, 100], [5, 2.5, 200], [None, 3]],
            },
        }
    ],
    "processes": [],
}


def test_the_raw_form_of_a_browser() -> None:
    """Addresses of callers move into their calls; other frames have their names."""
    profile = load(BytesIO(json.dumps(GECKO).encode()), timestamps=False)
    text, locations = profile.strings.text, profile.locations
    assert profile.samples.values.tolist() == [[1, 100], [1, 200]]

    def shown(row: int) -> list[tuple[str, int, str, int]]:
        first, last = profile.samples.location_offsets[row : row + 2]
        found = []
        for at in profile.samples.locations[first:last].tolist():
            mapping = int(locations.mapping[at])
            path = text(int(profile.mappings.filename[mapping])) if mapping >= 0 else ""
            begin, end = locations.line_offsets[at : at + 2]
            names = [
                (text(int(profile.functions.name[locations.lines.function[line]])), int(locations.lines.line[line]))
                for line in range(begin, end)
            ]
            found.append((path, int(locations.address[at]), *(names[0] if names else ("", 0))))
        return found

    assert shown(0) == [("/lib/b.so", 0x1010, "", 0), ("/lib/a.so", 0x233, "", 0), ("", 0, "(root)", 0)]
    assert shown(1) == [
        ("", 0, "known", 0),
        ("", 0x5000, "", 0),
        ("", 0, "run", 3),
        ("/lib/b.so", 0x100F, "", 0),
        ("/lib/a.so", 0x233, "", 0),
        ("", 0, "(root)", 0),
    ]


def test_the_raw_form_becomes_a_processed_one(tmp_path: Path) -> None:
    """What is written of it is a profile that is read again, with the same values."""
    path = tmp_path / "x.json"
    path.write_text(json.dumps(GECKO))
    assert main([str(path), "-q", "-b", str(tmp_path), "-o", str(tmp_path / "y.json.gz")]) == 0
    again = load(tmp_path / "y.json.gz")
    assert again.samples.values[:, 0].sum() == 2


def test_damage_in_the_raw_form() -> None:
    """One sentence says what is wrong."""
    for path, value in (("frameTable", {}), ("stringTable", [1]), ("stackTable", {"schema": {}, "data": [[5, 0]]})):
        thread = GECKO["threads"][0] | {path: value}  # type: ignore[index, operator]
        with pytest.raises(InputError):
            load(BytesIO(json.dumps(GECKO | {"threads": [thread]}).encode()))


def test_the_library_writes_the_document(tmp_path: Path) -> None:
    """By the same way as the command."""
    named(NEWEST, tmp_path / "command.json")
    (profile,) = load_all(original(NEWEST))
    with symbolize.Symbolizer([BINARIES], options=symbolize.Options(demangle="none"), cache=None) as symbolizer:
        count = symbolize.write_firefox(profile, symbolizer, tmp_path / "library.json")
    assert count > 20
    assert (tmp_path / "library.json").read_bytes() == (tmp_path / "command.json").read_bytes()


def test_what_is_written_is_read_again() -> None:
    """A profile of another format keeps its stacks and values through the file for the viewer."""
    with symbolize.Symbolizer([BINARIES], cache=None) as symbolizer:
        result = symbolizer.symbolize(load(FIXTURES / "profiles/perf/spectra-gcc-pie.pb.gz"))
    out = BytesIO()
    symbolize.write(result.profile, out, emit="firefox")
    again = load(BytesIO(out.getvalue()))
    values = result.profile.samples.values
    default = [each.type for each in result.profile.sample_types].index(result.profile.default_sample_type)
    assert again.samples.values.sum() == np.abs(values[:, default]).sum()


def with_library(**changes: Any) -> dict[str, Any]:
    """`small` with a function of a library as its leaf."""
    library = {"name": "spectra", "path": "/spectra", "debugName": "spectra", "breakpadId": "", "codeId": None}
    return small(libs=[library], shared__frameTable__address=[0, SPECTRA_MAIN], **changes)


def spectra_main() -> int:
    """Where `main` begins, as symbolized profiles say."""
    from elftools.elf.elffile import ELFFile

    with (BINARIES / "spectra").open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        return int(next(each["st_value"] for each in symbols if each.name == "main"))


SPECTRA_MAIN = spectra_main()


def written(profile: dict[str, Any], tmp_path: Path, *options: str) -> dict[str, Any]:
    """A profile as the command writes it with names."""
    path = tmp_path / "x.json"
    path.write_text(json.dumps(profile))
    arguments = [str(path), "-b", str(BINARIES), "-q", "--no-cache", *options]
    assert main([*arguments, "-o", str(tmp_path / "y.json")]) == 0
    return read(tmp_path / "y.json")


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("frameTable", "innerWindowID"),
        ("frameTable", "nativeSymbol"),
        ("funcTable", "columnNumber"),
        ("sources", "id"),
    ],
)
def test_damage_in_what_only_a_writer_needs(
    table: str, column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told too, and nothing is written."""
    profile = read(original(NEWEST))
    profile["shared"][table][column].append(0)
    path = tmp_path / "x.json"
    path.write_text(json.dumps(profile))
    arguments = [str(path), "-b", str(BINARIES), "-q", "--no-cache", "-o", str(tmp_path / "y.json")]
    assert main(arguments) == 1
    assert f"the column {column} has" in capsys.readouterr().err
    assert not (tmp_path / "y.json").exists()


@pytest.mark.parametrize(
    "path", ["shared__stringArray", "shared__stackTable__prefixOffset", "shared__funcTable__resource"]
)
def test_what_every_profile_has_may_not_be_missing(path: str) -> None:
    """Also where nothing of it is needed."""
    profile: Any = small()
    *owners, last = path.split("__")
    at = profile
    for key in owners:
        at = at[key]
    del at[last]
    with pytest.raises(InputError, match=f"{last} is missing"):
        loaded(profile)


@pytest.mark.parametrize(
    "changes",
    [
        {"shared__nativeSymbols__length": None},
        {"shared__frameTable__flags": [0, 10], "shared__frameTable__nativeSymbol": [0, 99]},
        {"shared__frameTable__flags": [0, 10.0], "shared__frameTable__nativeSymbol": [0, -3]},
        {"threads__0__samples__timeDeltas": None, "threads__0__samples__threadCPUDelta": None}
        | {"meta__sampleUnits": {"threadCPUDelta": "ns"}, "threads__0__markers": None},
    ],
)
def test_names_where_something_is_odd(changes: dict[str, Any], tmp_path: Path) -> None:
    """Lengths that are none, rows of symbols that are not there, numbers with a point, columns that are null."""
    found = written(with_library(**changes), tmp_path)
    assert Shown(found, 0).samples()[0][1][0] == "main"
    assert found["shared"]["frameTable"]["flags"][1] == 2 + 8 + 16
    assert found["shared"]["nativeSymbols"]["address"] == [SPECTRA_MAIN]


def test_a_profile_without_threads(tmp_path: Path) -> None:
    """It has stacks, which nothing refers to."""
    profile = with_library(threads=[])
    assert written(profile, tmp_path) == profile


def test_bytes_that_are_no_utf8() -> None:
    """They are replaced, as browsers do, and spoil nothing else."""
    data = json.dumps(small()).encode().replace(b'"root"', b'"r\xe9t"')
    profile = load(BytesIO(data))
    assert "r\ufffdt" in {frame.function for stack in profile.stacks() for frame in stack}


def test_ids_of_zeros_are_none(tmp_path: Path) -> None:
    """What recorded no id writes these: the library is found by its name."""
    for ids in ({"breakpadId": "0" * 33}, {"breakpadId": "0" * 33, "codeId": "0" * 40}):
        profile = with_library()
        profile["libs"][0].update(ids)
        (mapping,) = loaded(profile).mappings.build_id.tolist()
        assert mapping == 0
        assert Shown(written(profile, tmp_path, "--accept", "unverified"), 0).samples()[0][1][0] == "main"


def test_ids_of_processes() -> None:
    """Numbers that fit are numbers, whatever they are written as; all others are texts."""
    for pid, expected in (("17", 17), (17, 17), ("12345678901234567890", "12345678901234567890"), ("7.1", "7.1")):
        profile = loaded(small(threads__0__pid=pid))
        labels, text = profile.samples.labels, profile.strings.text
        (at,) = [row for row in range(2) if text(int(labels.key[row])) == "pid"]
        assert (text(int(labels.text[at])) or int(labels.number[at])) == expected


@pytest.mark.parametrize("version", [version for version in VERSIONS if version < 40])
def test_what_took_a_stack_was_called(version: int, tmp_path: Path) -> None:
    """Leaves of allocations and of causes are callers, as the front end's code has it: in versions whose addresses are
    not in calls they are named one byte lower, also where nothing else has them."""
    profile = read(original(version))
    thread = profile["threads"][0]
    stacks, frames = thread["stackTable"], thread["frameTable"]
    before = Shown(profile, 0)
    at = next(row for row in stacks["prefix"] if row is not None and before.frame(stacks["frame"][row])[0][:2] == "0x")
    known = stacks["frame"][at]
    for shift in (2, 5):
        for table, of in ((frames, known), (stacks, at)):
            for column in table.values():
                if isinstance(column, list):
                    column.append(column[of])
            table["length"] += 1
        frames["address"][-1] += shift
        stacks["frame"][-1] = frames["length"] - 1
    count = stacks["length"]
    thread["nativeAllocations"] = {
        "time": [1],
        "weight": [64],
        "weightType": "bytes",
        "stack": [count - 2],
        "length": 1,
    }
    thread["markers"]["data"][1]["cause"]["stack"] = count - 1
    shown = Shown(written(profile, tmp_path), 0)
    allocated = shown.stack(shown.thread["nativeAllocations"]["stack"][0])
    assert allocated[-1][0][:2] != "0x"
    assert shown.cause()[-1][0][:2] != "0x"


def test_libraries_that_samply_cannot_take_are_left_out(tmp_path: Path) -> None:
    """It ends if it cannot read an id or an address of 32 bits."""
    profile, out = with_library(), tmp_path / "x.syms.json"
    for breakpad_id, count in (("", 0), ("XYZ", 0), ("ab" * 16 + "0", 1), ("ab" * 16 + "1f", 1)):
        profile["libs"][0]["breakpadId"], profile["libs"][0]["codeId"] = breakpad_id, spectra_id()
        path = tmp_path / "x.json"
        path.write_text(json.dumps(profile))
        arguments = [str(path), "-b", str(BINARIES), "-q", "--no-cache", "--emit", "samply-syms"]
        assert main([*arguments, "-o", str(out)]) == 0
        data = read(out)["data"]
        assert len(data) == count
        if data:
            ending = "-1f" if breakpad_id.endswith("f") else ""
            assert data[0]["debug_id"] == "abababab-abab-abab-abab-abababababab" + ending


def spectra_id() -> str:
    """The build id of a fixture."""
    found: str = next(each["codeId"] for each in read(original(NEWEST))["libs"] if each["name"] == "spectra")
    return found


@pytest.mark.parametrize(
    "changes",
    [{"start": -1}, {"end": 1 << 70}, {"start": 1 << 65, "end": 1 << 66}, {"offset": 1 << 70}, {"offset": -(1 << 65)}],
)
def test_places_of_libraries_that_are_none(changes: dict[str, int]) -> None:
    """No addresses are in them; all else is read."""
    libraries = [GECKO["libs"][0] | changes, GECKO["libs"][1]]  # type: ignore[index, operator]
    profile = load(BytesIO(json.dumps(GECKO | {"libs": libraries}).encode()))
    assert [profile.strings.text(int(each)) for each in profile.mappings.filename] == ["/lib/b.so"]


def test_texts_of_frames_that_are_hard_to_match() -> None:
    """Their patterns take no time that grows with the square of the text."""
    began = time.process_time()
    for text in ((" (in b) (" * 400 + ":" * 4000) * 20, " (" * 4000 + ":", " (:1" * 2000, "a (in b) (" + "x:" * 4000):
        assert named_frame(text, lambda _: (-1, -1))[0] == text
    assert time.process_time() - began < 3


def test_many_levels_of_inlined_frames() -> None:
    """Each node is looked at once, not once for each level."""
    deep, others = 12_000, 400_000
    frames = small()["shared"]["frameTable"]
    frames = {name: [*column, column[1]] if isinstance(column, list) else 3 for name, column in frames.items()}
    frames["flags"][2], frames["func"][2] = 3, 0
    began = time.process_time()
    profile = loaded(
        small(
            shared__frameTable=frames,
            shared__stackTable__frame=[1] + [2] * deep + [1] * others,
            shared__stackTable__prefixOffset=[0] + [1] * deep + [0] * others,
            threads__0__samples__stack=[deep, deep + 1],
            threads__0__samples__time=[1, 2],
        )
    )
    assert time.process_time() - began < 3
    assert np.diff(profile.locations.line_offsets).tolist() in ([0, deep + 1], [deep + 1, 0])


def test_names_of_stacks_that_no_sample_has_with_times(tmp_path: Path) -> None:
    """Those of causes get names beside samples that keep their times."""
    profile = read(original(NEWEST))
    stacks = profile["shared"]["stackTable"]
    known = {node for thread in profile["threads"] for node in thread["samples"]["stack"]}
    cause = profile["threads"][0]["markers"]["data"][1]["cause"]
    stacks["frame"].append(stacks["frame"][cause["stack"]])
    stacks["prefixOffset"].append(0)
    cause["stack"], stacks["length"] = stacks["length"], stacks["length"] + 1
    assert cause["stack"] not in known
    found = [written(profile, tmp_path, *options) for options in ([], ["--timestamps"])]
    assert found[0] == found[1]
    assert Shown(found[0], 0).cause()[-1][0][:2] != "0x"


KINDS = ("i1", "u1", "<i2", "<u2", "<i4", "<u4", "<f4", "<f8", "<i8", "<u8")


class SlabWriter:
    """A container of the Firefox Profiler, by its layout: a table of slabs behind a header, JSON among them."""

    def __init__(self) -> None:
        self.slabs: list[tuple[int, bytes]] = []

    def add(self, kind: int, data: bytes) -> dict[str, int]:
        """What stands for a slab."""
        self.slabs.append((kind, data))
        return {"$s": len(self.slabs) - 1}

    def moved(self, value: Any) -> Any:
        """A value whose lists are in slabs: of numbers in the narrowest type, of others as JSON."""
        if isinstance(value, dict):
            return {key: self.moved(each) for key, each in value.items()}
        if not isinstance(value, list) or not value:
            return value
        if all(type(each) in (int, float) for each in value):
            for kind, name in enumerate(KINDS):
                array = np.array(value, name) if all(fits(each, name) for each in value) else None
                if array is not None and array.tolist() == value:
                    return self.add(kind, array.tobytes())
        return self.add(10, json.dumps([self.moved(each) for each in value]).encode())

    def written(self, root: Any, version: int = 1) -> bytes:
        """The container with a root."""
        self.add(10, json.dumps(root).encode())
        count = len(self.slabs)
        head = b"\xdc\xdfJSLB\x01\0" + struct.pack("<III", version, count, count - 1)
        table, body, begin = b"", b"", len(head) + 12 * count
        for kind, data in self.slabs:
            body += bytes(-(begin + len(body)) % 8)  # readers map the arrays as they are
            table += struct.pack("<III", kind, begin + len(body), len(data))
            body += data
        return head + table + body


def fits(value: float, name: str) -> bool:
    """Whether a type holds a number of the kind that it is."""
    if name[-2] == "f" or isinstance(value, float):
        return name[-2] == "f" and isinstance(value, float)
    info = np.iinfo(name)
    return bool(info.min <= value <= info.max)


@pytest.mark.parametrize("version", [24, 75])
def test_slabs(version: int, tmp_path: Path) -> None:
    """A container is read as the JSON that has its lists in place, and gets the same names (R498, slabs of Firefox'
    profiles)."""
    profile, slabs = read(original(version)), SlabWriter()
    path = tmp_path / "x.jslb"
    path.write_bytes(slabs.written(slabs.moved(profile)))
    assert {kind for kind, _ in slabs.slabs} >= {0, 2, 6, 10}
    assert (
        main([str(path), "-b", str(BINARIES), "-q", "--no-cache", "--demangle", "none", "-o", str(path) + ".json"]) == 0
    )
    assert read(tmp_path / "x.jslb.json") == named(version, tmp_path / "y.json")


def test_numbers_of_slabs() -> None:
    """Numbers of all types, and what JSON has no number for; text that looks like a placeholder is none."""
    slabs = SlabWriter()
    root: dict[str, Any] = {
        "text": '{"$s":0}',
        "empty": slabs.add(7, b""),
        "odd": slabs.add(6, np.array([1, np.nan], "<f4").tobytes()),
    }
    expected: dict[str, Any] = {"text": '{"$s":0}', "empty": [], "odd": [1.0, None]}
    for kind, name in enumerate(KINDS):
        values = (
            [0.5, -1e300 if name == "<f8" else 2.0]
            if "f" in name
            else [int(np.iinfo(name).min), int(np.iinfo(name).max)]
        )
        root[name], expected[name] = slabs.add(kind, np.array(values, name).tobytes()), values
    found = json.loads(Slabs(memoryview(slabs.written(root)), "x").text())
    assert found == expected


def bomb() -> bytes:
    """Slabs of which each stands eight times in the next one."""
    slabs = SlabWriter()
    slabs.add(10, b"")
    for number in range(12):
        slabs.add(10, b'{"$s":%d}' % number * 8)
    return slabs.written({"a": {"$s": 12}})


@pytest.mark.parametrize(
    "data",
    [
        bomb(),
        SlabWriter().written({"a": {"$s": 7}}),
        SlabWriter().written({"a": {"$s": 0}}),
        SlabWriter().written({}, version=2),
        SlabWriter().written({})[:21],
        SlabWriter().written({})[:-1],
        b"\xdc\xdfJSLB\x01\0" + struct.pack("<III", 1, 1 << 31, 0),
        b"\xdc\xdfJSLB\x01\0" + struct.pack("<IIIIII", 1, 1, 0, 3, 12, 7),
    ],
)
def test_damaged_slabs(data: bytes) -> None:
    """One sentence, soon."""
    with pytest.raises(InputError, match=r"x\.jslb: is (damaged at offset|a container of version 2)"):
        Slabs(memoryview(data), "x.jslb").text()
