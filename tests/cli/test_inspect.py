"""`symbolize inspect`."""

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from symbolize import lookup
from symbolize.cli import main
from tests.support import go_writer, jitdump_writer
from tests.support.dwarf_writer import Unit, die, dwarf_sections, function
from tests.support.elf_writer import NOTE as SHT_NOTE
from tests.support.elf_writer import Section, Symbol, build_id_note, elf_file, text
from tests.support.fixture_files import BINARIES, FIXTURES, PARTS
from tests.support.gsym_writer import EXAMPLE, UUID_BYTES, gsym_file
from tests.support.labelled import labelled
from tests.support.messages import profile_pb2
from tests.support.split_writer import package_file, split_unit

KALLSYMS = b"""ffffffff81000000 T _text
ffffffff81000000 T startup
ffffffff81000100 t secondary
ffffffff81000200 D data
ffffffff81000300 T _etext
ffffffffc0000000 t init\t[mod]
"""
BREAKPAD = b"""MODULE Linux x86_64 D8B296CBD7254C32F1E87DDE7772EA780 libx.so
FILE 0 a.c
FUNC 1000 20 0 first
1000 20 3 0
PUBLIC 2000 0 second
"""


def inspected(path: Path, *arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the command says of a file, as data."""
    assert main(["inspect", str(path), "--json", *arguments]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema_version"] == 1
    (found,) = data["files"]
    assert found["path"] == str(path)
    return dict(found)


def printed(path: Path, *arguments: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the command prints of a file."""
    assert main(["inspect", str(path), *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return [" ".join(line.split()) for line in out.splitlines()]


def functions_by_readelf(path: Path) -> dict[str, int]:
    """The defined functions in each symbol table, as readelf lists them."""
    out = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    counts: Counter[str] = Counter()
    table = ""
    for line in out.splitlines():
        if line.startswith("Symbol table '"):
            table = line.split("'")[1]
        fields = line.split()
        if len(fields) > 7 and fields[3] in ("FUNC", "IFUNC") and fields[6] != "UND":
            counts[table] += 1
    return dict(counts)


@pytest.mark.needs("readelf")
@pytest.mark.parametrize(
    "name", ["gcc-pie", "gcc-nopie-dwarf4", "clang-nopie-dwarf4-lld", "clang-gz-zstd", "aarch64", "gcc-gc-sections"]
)
@pytest.mark.parametrize("program", ["ledger", "libresonance.so"])
def test_numbers_are_those_of_readelf(name: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Functions, build id, segments, and the units with their versions."""
    path = BINARIES / name / program
    elf = inspected(path, capsys=capsys)["elf"]
    assert {table: number for table, number in elf["functions"].items() if number} == functions_by_readelf(path)
    run = subprocess.run(["readelf", "-nlW", path], capture_output=True, text=True, check=True)
    assert f"Build ID: {elf['build_id']}" in run.stdout
    loads = [line.split() for line in run.stdout.splitlines() if line.split()[:1] == ["LOAD"]]
    assert [[int(field, 16) for field in (row[1], row[2], row[4], row[5])] for row in loads] == [
        [segment[key] for key in ("file_offset", "vaddr", "file_size", "memory_size")] for segment in elf["segments"]
    ]
    command = ["readelf", "--debug-dump=info", "--dwarf-depth=1", path]
    dump = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    versions = Counter(line.split()[1] for line in dump.splitlines() if line.strip().startswith("Version:"))
    assert elf["debug"]["versions"] == dict(versions)
    assert elf["debug"]["units"] == versions.total()


def test_whole_binary(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything is in one file."""
    lines = printed(BINARIES / "gcc-pie" / "ledger", capsys=capsys)
    assert "type shared object or position-independent executable, X86_64, 64-bit, little-endian" in lines
    assert "build id 5e3ede9cfcac812af078bd0cfe366fe00b102526" in lines
    assert "code in the file" in lines
    assert sum(line.startswith("segment ") and line.endswith(", executable") for line in lines) == 1
    assert lines[-1] == "symbolize gets functions, lines and inlined calls from it."


@pytest.mark.parametrize(("name", "how"), [("gcc-gz-zlib", "zlib"), ("clang-gz-zstd", "zstd")])
def test_compression(name: str, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    """How the debug sections are compressed, and how large the units are without that."""
    debug = inspected(BINARIES / name / "ledger", capsys=capsys)["elf"]["debug"]
    assert debug["compression"] == [how]
    assert f"compressed with {how}" in " ".join(printed(BINARIES / name / "ledger", capsys=capsys))
    assert inspected(BINARIES / "gcc-pie" / "ledger", capsys=capsys)["elf"]["debug"]["compression"] == []


def test_stripped_binary_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is missing is named, with the command that fetches it, and where the link was looked for."""
    path = Path(shutil.copy(BINARIES / "gcc-split" / "stripped" / "ledger", tmp_path))
    found = inspected(path, capsys=capsys)
    elf = found["elf"]
    assert elf["debug"] is None
    assert ".symtab" not in elf["functions"]
    (link,) = elf["links"]
    assert (link["section"], link["name"], link["resolved"]) == (".gnu_debuglink", "ledger.debug", "")
    assert link["tried"] == [
        {
            "place": f"debug link ledger.debug of {path}",
            "outcome": "no file of that name, neither beside it, nor in .debug, nor anywhere else",
        }
    ]
    assert found["conclusion"].endswith(f"add its debug file ledger.debug: debuginfod-find debuginfo {elf['build_id']}")


def test_debug_link_leads_somewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The debug file is found in its usual place, or below a folder; one with another checksum is told."""
    path = Path(shutil.copy(BINARIES / "gcc-split" / "stripped" / "ledger", tmp_path))
    debug = BINARIES / "gcc-split" / "debug" / "ledger.debug"
    elf = inspected(path, "--binaries", str(debug.parent), capsys=capsys)["elf"]
    assert elf["links"][0]["resolved"] == str(debug)
    assert [other["path"] for other in elf["same_build"]] == [str(debug)]
    (tmp_path / ".debug").mkdir()
    copy = Path(shutil.copy(debug, tmp_path / ".debug"))
    lines = printed(path, capsys=capsys)
    assert any(
        line.startswith(".gnu_debuglink ledger.debug, checksum ") and line.endswith(f": {copy}") for line in lines
    )
    assert lines[-1] == f"symbolize gets functions, lines and inlined calls from {copy}, which has the same build id."
    with copy.open("ab") as file:
        file.write(b"changed")
    lines = printed(path, capsys=capsys)
    assert any(f"{copy} has the checksum" in line for line in lines)


def test_files_deep_below_the_folder_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A binary in a home folder does not have all of it searched."""
    path = Path(shutil.copy(BINARIES / "gcc-split" / "stripped" / "ledger", tmp_path))
    (tmp_path / "a" / "b").mkdir(parents=True)
    shutil.copy(BINARIES / "gcc-split" / "debug" / "ledger.debug", tmp_path / "a" / "b")
    assert inspected(path, capsys=capsys)["elf"]["same_build"] == []
    assert len(inspected(path, "-b", str(tmp_path), capsys=capsys)["elf"]["same_build"]) == 1


def test_debug_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names are all there; the code is not, which placing addresses may need (rule R103)."""
    path = Path(shutil.copy(BINARIES / "gcc-split" / "debug" / "ledger.debug", tmp_path))
    lines = printed(path, capsys=capsys)
    assert "code not in the file, which is a debug file" in lines
    build_id = next(line.removeprefix("build id ") for line in lines if line.startswith("build id "))
    assert lines[-1].startswith("symbolize gets functions, lines and inlined calls from it; add the binary itself")
    assert lines[-1].endswith(f": debuginfod-find executable {build_id}.")
    lines = printed(path, "-b", str(BINARIES / "gcc-split"), capsys=capsys)
    assert lines[-1] == "symbolize gets functions, lines and inlined calls from it."


@pytest.mark.parametrize("name", ["dwz", "dwz-dwarf5"])
def test_supplementary_file(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file that dwz moved names to is there, is not there, or is another one (rule R91)."""
    folder = PARTS / name
    elf = inspected(folder / "ledger.debug", capsys=capsys)["elf"]
    (link,) = (link for link in elf["links"] if link["section"] != ".gnu_debuglink")
    assert link["resolved"] == str(folder / "common.dwz")
    path = Path(shutil.copy(folder / "ledger.debug", tmp_path))
    found = inspected(path, capsys=capsys)
    (link,) = (link for link in found["elf"]["links"] if link["section"] != ".gnu_debuglink")
    assert not link["resolved"]
    assert "names in the supplementary file common.dwz are missing" in found["conclusion"]
    identifier = bytes.fromhex(link["identifier"])
    other = (folder / "common.dwz").read_bytes()
    assert identifier in other
    (tmp_path / os.path.basename(link["name"])).write_bytes(other.replace(identifier, identifier[::-1]))
    (link,) = (k for k in inspected(path, capsys=capsys)["elf"]["links"] if k["section"] != ".gnu_debuglink")
    assert not link["resolved"]
    assert f" {identifier[::-1].hex()}, wanted {identifier.hex()}" in link["tried"][0]["outcome"]
    assert "is a supplementary file" in inspected(folder / "common.dwz", capsys=capsys)["conclusion"]


@pytest.mark.parametrize("name", ["gcc-dwarf5", "clang-dwarf4", "clang-dwarf5"])
def test_split_units(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Split units are counted, and found by their ids (rules R81, R88)."""
    path = Path(shutil.copy(PARTS / name / "ledger.debug", tmp_path))
    found = inspected(path, capsys=capsys)
    splits = found["elf"]["splits"]
    assert (splits["needed"], splits["found"]) == (found["elf"]["debug"]["split"], 0)
    assert len(splits["missing"]) == splits["needed"] == 3
    assert "3 of 3 are missing" in found["conclusion"]
    for dwo in sorted((PARTS / name / "dwo").iterdir()):
        (tmp_path / "dwo").mkdir(exist_ok=True)
        shutil.copy(dwo, tmp_path / "dwo")
    found = inspected(path, capsys=capsys)
    assert found["elf"]["splits"] == {"needed": 3, "found": 3, "missing": [], "files": 3}
    assert "missing" not in found["conclusion"]
    wrong, right = sorted((tmp_path / "dwo").iterdir())[:2]
    shutil.copy(right, wrong)
    assert inspected(path, capsys=capsys)["elf"]["splits"]["found"] == 2
    assert inspected(right, capsys=capsys)["conclusion"].startswith("holds split units")


@pytest.mark.parametrize("name", ["gcc-dwarf4", "clang-dwarf5"])
def test_package(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A package beside the binary has its units."""
    path = Path(shutil.copy(PARTS / name / "ledger.debug", tmp_path))
    package = Path(shutil.copy(PARTS / name / "dwp" / "ledger.dwp", tmp_path))
    elf = inspected(path, capsys=capsys)["elf"]
    assert f"package {package}, {elf['splits']['needed']} units" in printed(path, capsys=capsys)
    assert elf["packages"] == [[str(package), elf["splits"]["needed"]]]
    assert elf["splits"]["found"] == elf["splits"]["needed"] > 0
    assert inspected(package, capsys=capsys)["conclusion"].startswith("holds split units")
    package.write_bytes(package_file([split_unit()]))
    assert inspected(path, capsys=capsys)["elf"]["splits"]["found"] == 0


def test_code_without_debug_information(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program of which a small part only was built with -g does not promise more than that."""
    path = tmp_path / "program"
    units = [Unit(die("compile_unit", function("f", 0x1000, 0x100), low_pc=0x1000, high_pc=0x100))]
    path.write_bytes(elf_file([text(0x1000, 0x1000), *dwarf_sections(units)]))
    assert inspected(path, capsys=capsys)["elf"]["debug"]["described"] == 1 / 16
    assert ", but only of 6 % of the code" in printed(path, capsys=capsys)[-1]
    path.write_bytes(elf_file([text(0x1000, 0x110), *dwarf_sections(units)]))
    assert "but only" not in printed(path, capsys=capsys)[-1]


def test_type_units(capsys: pytest.CaptureFixture[str]) -> None:
    """Type units of all versions are counted."""
    debug = inspected(PARTS / "types" / "ledger.debug", capsys=capsys)["elf"]["debug"]
    assert 0 < debug["types"] < debug["units"]
    assert sum(debug["versions"].values()) == debug["units"]


@pytest.mark.parametrize(("layout", "release"), [(102, "1.2"), (116, "1.16"), (118, "1.18"), (120, "1.20")])
def test_go_program(layout: int, release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Go program without DWARF has its line table (rule R121)."""
    path = tmp_path / "program"
    functions = [go_writer.Function("main.main", 0, 0x20), go_writer.Function("main.other", 0x20, 0x10)]
    path.write_bytes(go_writer.go_file(functions, go_writer.Go(layout)))
    lines = printed(path, capsys=capsys)
    assert f".gopclntab as of Go {release}, 2 functions" in lines
    assert lines[-1] == "symbolize gets functions, lines and inlined calls from the line table of Go in it."


def test_extract_of_a_go_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is said of a file that keeps the line table of Go alone is what lookups get (rule R121)."""
    path = tmp_path / "debuginfo"
    rows = [go_writer.Row(0, "/src/main.go", 10)]
    path.write_bytes(go_writer.go_extract([go_writer.Function("main.main", 0, 0x20, rows)]))
    lines = printed(path, capsys=capsys)
    assert "code not in the file, which is a debug file" in lines
    assert lines[-1] == "symbolize gets functions and lines from the line table of Go in it."
    found = lookup(path, [0x1004])
    assert (found.functions.name[0], found.files[0], found.line.tolist()) == (b"main.main", b"/src/main.go", [10])


@pytest.mark.parametrize(
    ("symbols", "dynamic", "said"),
    [
        ([Symbol("f", 0x1000, 8)], [], "symbolize gets functions, but no lines and no inlined calls; "),
        ([], [Symbol("f", 0x1000, 8)], "symbolize gets exported functions only; "),
        ([], [], "symbolize gets no names from it; "),
    ],
)
def test_without_debug_information(
    symbols: list[Symbol], dynamic: list[Symbol], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What symbol tables give, and what to do for more with and without a build id."""
    path = tmp_path / "program"
    path.write_bytes(elf_file([text()], symbols=symbols, dynamic=dynamic))
    assert (
        printed(path, capsys=capsys)[-1]
        == f"{said}add its debug file to the folders with binaries, or build it with -g."
    )
    note = Section(".note.gnu.build-id", build_id_note(b"\xab\xcd\xef\x01"), SHT_NOTE)
    path.write_bytes(elf_file([text(), note], symbols=symbols, dynamic=dynamic))
    assert printed(path, capsys=capsys)[-1] == f"{said}add its debug file: debuginfod-find debuginfo abcdef01."


def test_lists_of_symbols(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kind, number of functions and addresses of what is no binary; the content decides."""
    for name, data, kind, functions, addresses in (
        ("a", KALLSYMS, "kernel symbols", 4, (0xFFFFFFFF81000000, 0xFFFFFFFFC0001000)),
        ("perf-7.map", b"7f00 10 f\n7f20 8 g h\n", "perf map", 2, (0x7F00, 0x7F28)),
        ("b", b"7f00 10 f\n7f20 8 g h\n", "perf map", 2, (0x7F00, 0x7F28)),
        ("c", BREAKPAD, "Breakpad symbols", 2, (0x1000, 0x3000)),
        ("d", jitdump_writer.dump(jitdump_writer.load(0x7F00, 16, 1, b"f")), "jitdump", 1, (0x7F00, 0x7F10)),
        ("e", gsym_file(EXAMPLE), "GSYM symbols", 3, (0x1000, 0x4000)),
    ):
        (tmp_path / name).write_bytes(data)
        found = inspected(tmp_path / name, capsys=capsys)
        listed = found["listed"]
        assert (found["kind"], listed["functions"]) == (kind, functions)
        assert (listed["begin"], listed["end"]) == addresses
        assert listed["has_lines"] == (kind in ("Breakpad symbols", "GSYM symbols"))
    lines = printed(tmp_path / "c", capsys=capsys)
    assert "module libx.so" in lines
    assert lines[-1] == "symbolize gets functions and lines from it."
    lines = printed(tmp_path / "e", capsys=capsys)
    assert f"build id {UUID_BYTES.hex()}" in lines
    assert lines[-1] == "symbolize gets functions, lines and inlined calls from it."
    (tmp_path / "f").write_bytes(gsym_file([])[:47])
    assert printed(tmp_path / "f", capsys=capsys)[-1] == "symbolize gets nothing from it: it lists no functions."
    hidden = b"".join(b"0" * 16 + line[16:] for line in KALLSYMS.splitlines(keepends=True))
    (tmp_path / "kallsyms").write_bytes(hidden)
    assert "as root" in printed(tmp_path / "kallsyms", capsys=capsys)[-1]


def test_labels_of_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each label has the values of its samples, the heaviest first; a sample counts for each value that it has."""
    path = tmp_path / "x.pb"
    path.write_bytes(labelled())
    found = inspected(path, capsys=capsys)["profiles"][0]["labels"]
    sums = {each["key"]: [(value["text"], value["total"]) for value in each["heaviest"]] for each in found}
    assert sums == {
        "comm": [("b", 10010), ("a", 101), ("c", 100)],
        "size": [("2.00kB", 1000)],
        "tid": [("8", 10), ("7", 1)],
    }
    assert [(each["values"], each["total"]) for each in found] == [(3, 10211), (1, 1000), (2, 11)]
    lines = printed(path, capsys=capsys)
    assert "label comm: 90.09% b (10.01 us), 0.91% a (101 ns), 0.90% c (100 ns)" in lines
    message = profile_pb2.Profile(string_table=[b"", b"n", b"count", b"key"])
    message.sample_type.add(type=1, unit=2)
    for number in range(300):
        message.sample.add(value=[number]).label.add(key=3, num=number, num_unit=3)
    path.write_bytes(message.SerializeToString())
    (label,) = inspected(path, capsys=capsys)["profiles"][0]["labels"]
    assert (label["values"], len(label["heaviest"])) == (300, 256)
    (line,) = (line for line in printed(path, capsys=capsys) if line.startswith("label"))
    assert line.startswith("label key: 0.67% 299key (299), ")
    assert line.endswith(", 292 more")


@pytest.mark.needs("go")
def test_labels_are_those_of_pprof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts and sums of labels are those of `pprof -tags`."""
    message = profile_pb2.Profile.FromString(labelled())
    del message.sample[-1]  # it has no stack, and pprof leaves it out
    message.sample_type[0].unit = message.sample_type[0].type  # a unit that pprof does not scale
    path = tmp_path / "x.pb.gz"
    path.write_bytes(gzip.compress(message.SerializeToString()))
    command = ["go", "tool", "pprof", "-tags", str(path)]
    theirs: dict[str, dict[str, float]] = {}
    for line in subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines():
        if head := re.fullmatch(r" (.*): Total .*", line):
            theirs[head[1]] = values = {}
        elif row := re.fullmatch(r" +([\d.]+)\D*\(.*%\): (.*)", line):
            values[row[2]] = float(row[1])
    found = inspected(path, capsys=capsys)["profiles"][0]["labels"]
    ours = {each["key"]: {value["text"]: value["total"] for value in each["heaviest"]} for each in found}
    assert ours.pop("size") == {"2.00kB": 1000}
    assert theirs.pop("size") == {"2kB": 1000}
    assert ours == theirs


def test_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The libraries of an archive, stored and deflated."""
    library = BINARIES / "gcc-pie" / "libresonance.so"
    path = tmp_path / "app.apk"
    with zipfile.ZipFile(path, "w") as made:
        made.write(library, "lib/a.so", zipfile.ZIP_STORED)
        made.write(library, "lib/b.so", zipfile.ZIP_DEFLATED)
        made.writestr("lib/c.so", "no library")
    build_id = inspected(library, capsys=capsys)["elf"]["build_id"]
    a, b, c = inspected(path, capsys=capsys)["libraries"]
    assert (a["is_stored"], b["is_stored"]) == (True, False)
    assert all(each["build_id"] == build_id and each["has_dwarf"] and each["functions"] > 10 for each in (a, b))
    assert c["problem"] == "not an ELF file"
    assert printed(path, capsys=capsys)[-1] == "symbolize gets names from 2 of 3 libraries in it."


def test_compressed_binary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A binary that is compressed as a whole is looked into."""
    path = tmp_path / "ledger.gz"
    stream = zlib.compressobj(wbits=31)
    path.write_bytes(stream.compress((BINARIES / "gcc-pie" / "ledger").read_bytes()) + stream.flush())
    found = inspected(path, capsys=capsys)
    assert found["kind"] == "compressed ELF"
    assert found["conclusion"] == "symbolize gets functions, lines and inlined calls from it"


@pytest.mark.parametrize(
    "data",
    [b"", b"text\n", b"\x7fELF", b"PK\x03\x04 nothing", b"\x1f\x8b\x08cut off", b"\x7fELF\x09" + bytes(80), None],
)
def test_files_that_cannot_be_read(data: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line and exit code 1; the other files are inspected nonetheless."""
    path = tmp_path / "file\x1b[31m"
    if data is not None:
        path.write_bytes(data)
    assert main(["inspect", str(path), str(BINARIES / "gcc-pie" / "ledger")]) == 1
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert err.startswith(f"symbolize: {tmp_path}/file\\x1b[31m: ")
    assert "symbolize gets functions, lines and inlined calls from it." in out


def test_folders_and_pipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder is no file, and a pipe is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert main(["inspect", str(path)]) == 1
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["x", "--binaries", "/no/such/folder"], [""], ["x", "--xml"]])
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong arguments are told, with exit code 2."""
    try:
        code = main(["inspect", *arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    assert code == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("name", ["a\x1b]0;title\x07", "../../etc/passwd", "x" * 300])
def test_names_in_files_are_not_trusted(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link steers neither the terminal nor the way to a file."""
    raw = name.encode() + b"\0"
    raw += bytes(-len(raw) % 4) + bytes(4)
    path = tmp_path / "program"
    path.write_bytes(elf_file([text(), Section(".gnu_debuglink", raw), Section(".gnu_debugaltlink", raw)]))
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "leads to no file" in out


@pytest.mark.full
def test_damaged_files_are_told_or_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No damage ends in a traceback."""
    rng = random.Random(7)
    path = tmp_path / "damaged"
    kinds = [
        BINARIES / "objects" / "x86_64.o",
        BINARIES / "gcc-split" / "stripped" / "ledger",
        PARTS / "gcc-dwarf5" / "ledger.debug",
        PARTS / "gcc-dwarf5" / "dwo" / "digest.c.dwo",
        PARTS / "clang-dwarf5" / "dwp" / "ledger.dwp",
        PARTS / "dwz" / "ledger.debug",
    ]
    for number in range(48):
        data = bytearray(kinds[number % len(kinds)].read_bytes())
        areas = [(0, 64), (len(data) - 2600, len(data)), (0, len(data))]
        for _ in range(rng.choice((1, 4, 30))):
            low, high = rng.choice(areas)
            data[rng.randrange(max(low, 4), high)] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
        path.write_bytes(data[: rng.choice((len(data), len(data), rng.randrange(4, len(data))))])
        code = main(["inspect", str(path)])
        out, err = capsys.readouterr()
        assert (code, bool(out), err.count("\n")) in ((0, True, 0), (1, False, 1))


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "is_failure"),
    [
        (["inspect"], False),
        (["-q", "-b", str(BINARIES), "--emit", "folded", "-o", "-"], False),
        (["-q", "-b", str(BINARIES), "--emit", "pprof", "-o", "-"], True),
    ],
)
def test_reader_that_goes_away(words: list[str], is_failure: bool, tmp_path: Path) -> None:
    """That the reader of a text wants no more, as `head`, is no failure: nothing is said of it."""
    program = (
        "import os, sys\nread, write = os.pipe()\nos.close(read)\nos.dup2(write, 1)\n"
        "from symbolize.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, *words, str(FIXTURES / "profiles/gperftools/ledger-gcc-pie.prof")]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == is_failure
    assert ("standard output: cannot be written" in run.stderr) if is_failure else (run.stderr == "")


def test_shares_of_negative_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shares are of the values without signs, as in all outputs: a difference may add up to nothing."""
    message = profile_pb2.Profile(string_table=[b"", b"n", b"count", b"key", b"a", b"b"])
    message.sample_type.add(type=1, unit=2)
    for name, value in ((4, 600), (5, -400)):
        message.sample.add(value=[value]).label.add(key=3, str=name)
    (tmp_path / "x.pb").write_bytes(message.SerializeToString())
    assert "label key: 60.00% a (600), -40.00% b (-400)" in printed(tmp_path / "x.pb", capsys=capsys)
