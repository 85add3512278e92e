"""Files of this machine that a profile says its mappings were of: which are looked at, and which name."""

import gzip
import io
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import symbolize
from symbolize.binaries import this_machine
from symbolize.binaries.this_machine import FileSystem, read_mounts
from symbolize.cli import main
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.elf import read_build_id
from symbolize.profile import IdOrigin
from symbolize.report.model import MappingRow
from tests.support import pprof_writer as w
from tests.support.fixture_files import BINARIES, GPERFTOOLS
from tests.support.messages import profile_pb2
from tests.support.needs import find

RECORDED = next(path for path in GPERFTOOLS if path.name == "ledger-gcc-pie.prof")
BINARY = BINARIES / "gcc-pie/ledger"


@pytest.fixture(autouse=True)
def _nothing_of_this_machine() -> None:
    """Here files of this machine count."""


def files_below(folder: Path, *mounts: tuple[str, str]) -> FileSystem:
    """The file system below `root` of a folder, in which these types are mounted at some places."""
    (folder / "root").mkdir(parents=True)
    lines = [f"36 35 98:0 / {point} rw,noatime master:1 - {kind} source rw\n" for point, kind in mounts]
    (folder / "mountinfo").write_text("".join(lines))
    return FileSystem(str(folder / "root"), str(folder / "mountinfo"))


class TestFileSystem:
    """Which files a name may lead to."""

    def test_links_stay_inside(self, tmp_path: Path) -> None:
        """Links lead to what the process sees, absolute ones and those with `..` too."""
        system = files_below(tmp_path / "p", ("/", "ext4"))
        root = tmp_path / "p/root"
        (root / "usr/lib").mkdir(parents=True)
        (root / "usr/lib/x.so.1").write_text("x")
        (root / "lib").symlink_to("usr/lib")
        (root / "usr/lib/x.so").symlink_to("/lib/x.so.1")
        (root / "up").symlink_to("../../../../lib/x.so")
        (root / "loop").symlink_to("loop")
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib/x.so.1").write_text("outside")
        for path in ("/usr/lib/x.so.1", "/lib/x.so.1", "/lib/x.so", "/up", "/usr/../lib/./x.so", "//lib//x.so"):
            found = system.regular(path)
            assert found is not None and found[0] == "/usr/lib/x.so.1" and found[1].st_size == 1
        for path in ("/loop", "/usr/lib", "/", "", "/nothing", "/usr/lib/x.so.1/y", "/usr/lib/x\0", "/a" * 5000):
            assert system.regular(path) is None

    def test_no_device(self, tmp_path: Path) -> None:
        """Neither a FIFO, which would be waited for, nor a socket nor a device is a file."""
        system = files_below(tmp_path / "p", ("/", "ext4"))
        os.mkfifo(tmp_path / "p/root/fifo")
        (tmp_path / "p/root/null").symlink_to("/dev/null")
        assert system.regular("/fifo") is None
        assert system.regular("/null") is None
        assert FileSystem().regular("/dev/null") is None

    @pytest.mark.parametrize("kind", ["autofs", "nfs4", "cifs", "fuse.sshfs", "9p", "proc", "new"])
    def test_other_file_systems_are_not_touched(
        self, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is not known to answer by itself is not even asked whether it is there."""
        mounts = ("/", "9p"), ("/net", kind), ("/net/own", "ext4"), ("/with\\040blank", kind), ("/local", "xfs")
        system = files_below(tmp_path / "p", *mounts)
        root = tmp_path / "p/root"
        for folder in ("net/own", "with blank", "local", "network"):
            (root / folder).mkdir(parents=True)
            (root / folder / "x").write_text("x")
        (root / "link").symlink_to("/net/x")
        asked: list[str] = []
        lstat = os.lstat
        monkeypatch.setattr(os, "lstat", lambda path: asked.append(str(path)) or lstat(path))
        for path in ("/net/x", "/net/own/x", "/with blank/x", "/link", "/local/../net/x"):
            assert system.regular(path) is None, path
        assert not [path for path in asked if path.startswith((f"{root}/net", f"{root}/with"))]
        assert system.regular("/local/x") is not None
        assert system.regular("/network/x") is not None  # the file system of the programs themselves

    @pytest.mark.parametrize("kind", ["proc", "sysfs", "devtmpfs", "devpts", "debugfs", "autofs", "cgroup2", ""])
    def test_files_of_the_kernel(self, kind: str, tmp_path: Path) -> None:
        """What does something when it is opened is no file, wherever it is mounted; nor is anything without a table."""
        system = files_below(tmp_path / "p", *([("/", kind)] if kind else []))
        (tmp_path / "p/root/x").write_text("x")
        assert system.regular("/x") is None

    def test_mounts(self, tmp_path: Path) -> None:
        """The last one at a place counts; what is no line of a mount table is left out; names may have any byte."""
        files_below(tmp_path / "p", ("/", "ext4"), ("/a", "nfs"), ("/a", "tmpfs"), ("/b\u2028c\x0b", "fuse"))
        with open(tmp_path / "p/mountinfo", "a") as file:
            file.write("\n36 35 - ext4\nwords\n36 35 98:0 / /b rw - btrfs x\n")
        known = {"/": "ext4", "/a": "tmpfs", "/b": "btrfs", "/b\u2028c\x0b": "fuse"}
        assert read_mounts(str(tmp_path / "p/mountinfo")) == known
        assert read_mounts(str(tmp_path / "nothing")) == {}
        with open(tmp_path / "p/mountinfo", "a") as file:
            file.write("x" * this_machine.MAX_MOUNTS)
        assert read_mounts(str(tmp_path / "p/mountinfo")) == {}


def recorded_at(path: Path, out: Path, build_id: str = "") -> Path:
    """The recording, as if its program had been at another path, with a build id, and its libraries nowhere."""
    symbolize.write(symbolize.load(RECORDED), out)
    message = profile_pb2.Profile.FromString(gzip.decompress(out.read_bytes()))
    for mapping in message.mapping:
        is_program = message.string_table[mapping.filename].endswith(b"/ledger")
        mapping.filename, mapping.build_id = len(message.string_table), len(message.string_table) + 1
        message.string_table.extend((os.fsencode(path) if is_program else b"/nowhere", build_id.encode() * is_program))
    out.write_bytes(gzip.compress(message.SerializeToString()))
    return out


def one_leaf(folder: Path, program: Path = BINARY) -> Path:
    """The recording, of which one sample without callers is left, in the program."""
    profile = recorded_at(program, folder / "leaf.pb.gz")
    message = profile_pb2.Profile.FromString(gzip.decompress(profile.read_bytes()))
    inside = {location.id for location in message.location if location.mapping_id == message.mapping[0].id}
    sample = next(each for each in message.sample if each.location_id[0] in inside)
    del sample.location_id[1:]
    kept = sample.SerializeToString()
    del message.sample[:]
    message.sample.add().ParseFromString(kept)
    profile.write_bytes(gzip.compress(message.SerializeToString()))
    return profile


def row_of(profile: Path, **options: object) -> MappingRow:
    """What the report says of the program, with files of this machine."""
    report = symbolize.symbolize(profile, options=symbolize.Options(local=True, **options)).report  # type: ignore[arg-type]
    (row,) = (row for row in report.mappings if not row.name.startswith("/nowhere") and row.locations)
    return row


class TestVerdicts:
    """Which files of this machine name."""

    def test_supported(self, tmp_path: Path) -> None:
        """A file without a build id to compare, which what was sampled fits; the report says whose it is."""
        row = row_of(recorded_at(BINARY, tmp_path / "p.pb.gz"))
        assert row.symbolized_locations > 20 and row.verdict is Verdict.SUPPORTED
        assert row.outcome.is_local and list(row.files) == [str(BINARY)]

    def test_proved(self, tmp_path: Path) -> None:
        """A file with the recorded build id."""
        row = row_of(recorded_at(BINARY, tmp_path / "p.pb.gz", read_build_id(str(BINARY)) or ""), accept="proved")
        assert row.symbolized_locations > 20 and row.verdict is Verdict.PROVED

    def test_other_build(self, tmp_path: Path) -> None:
        """A file that was built anew since names nothing, with and without a build id."""
        other = tmp_path / "ledger"
        shutil.copy(BINARIES / "clang-pie/ledger", other)
        for build_id in ("", read_build_id(str(BINARY)) or ""):
            row = row_of(recorded_at(other, tmp_path / "p.pb.gz", build_id))
            assert row.symbolized_locations == 0 and not row.outcome.is_local

    def test_unverified(self, tmp_path: Path) -> None:
        """A file for which nothing speaks but its path names nothing, whatever may name elsewhere."""
        report = symbolize.symbolize(one_leaf(tmp_path), options=symbolize.Options(local=True)).report
        row = report.mappings[0]
        assert row.locations == 1 and row.symbolized_locations == 0
        assert [reason for reason, _, _ in row.misses] == [Reason.UNCONFIRMED]

    @pytest.mark.parametrize(("age", "is_named"), [(-60, True), (60, False)])
    def test_claim(self, age: int, is_named: bool, tmp_path: Path) -> None:
        """A build id that was read later, by path, is void if the file was written after the recording began."""
        program = tmp_path / "ledger"
        shutil.copy(BINARY, program)
        profile = symbolize.load(recorded_at(program, tmp_path / "p.pb.gz", read_build_id(str(BINARY)) or ""))
        profile.id_origins = np.full(len(profile.mappings), IdOrigin.READ_LATER, np.uint8)
        profile.duration_nanos = 10**10
        begin = os.stat(profile.source).st_mtime - 10
        os.utime(program, (begin + age,) * 2)
        report = symbolize.symbolize(profile, options=symbolize.Options(local=True)).report
        assert bool(report.mappings[0].symbolized_locations) is is_named
        assert any("was written after the recording began" in each for each in report.warnings) is not is_named

    def test_never_unasked(self, tmp_path: Path) -> None:
        """The library does not look here by itself."""
        profile = recorded_at(BINARY, tmp_path / "p.pb.gz")
        assert symbolize.symbolize(profile).report.symbolized_locations == 0


@pytest.mark.parametrize("place", ["link", ".debug", "cache"])
def test_debug_files(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The debug file of a stripped binary: by its debug link beside it and in `.debug`, and in debuginfod's cache."""
    objcopy = find("objcopy")
    stripped, debug = tmp_path / "ledger", tmp_path / "ledger.debug"
    build_id = read_build_id(str(BINARY)) or ""
    subprocess.run([objcopy, "--only-keep-debug", BINARY, debug], check=True)
    subprocess.run([objcopy, "--strip-all", f"--add-gnu-debuglink={debug}", BINARY, stripped], check=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept = {"link": debug, ".debug": tmp_path / ".debug/ledger.debug"}.get(
        place, tmp_path / "cache/debuginfod_client" / build_id / "debuginfo"
    )
    kept.parent.mkdir(parents=True, exist_ok=True)
    debug.rename(kept)
    row = row_of(recorded_at(stripped, tmp_path / "p.pb.gz"))
    assert str(kept) in row.files and row.without_lines < row.symbolized_locations / 2


def test_no_name_of_another_path(tmp_path: Path) -> None:
    """A file names what was recorded at its path, and nothing that is only called like it: neither of the same profile
    nor of the one before."""
    here, elsewhere = (
        recorded_at(BINARY, tmp_path / "here.pb.gz"),
        recorded_at(Path("/srv/x/ledger"), tmp_path / "x.pb.gz"),
    )
    with symbolize.Symbolizer(options=symbolize.Options(local=True)) as symbolizer:
        named = [
            symbolizer.symbolize(symbolize.load(path)).report.symbolized_locations for path in (elsewhere, here) * 2
        ]
    assert named[0] == named[2] == 0 and named[1] == named[3] > 20
    both = symbolize.merge([symbolize.load(here), symbolize.load(elsewhere)])
    rows = symbolize.symbolize(both, options=symbolize.Options(local=True)).report.mappings
    assert {row.name: row.symbolized_locations > 20 for row in rows if row.name.endswith("/ledger")} == {
        str(BINARY): True,
        "/srv/x/ledger": False,
    }


def test_recorded_names_that_lead_elsewhere(tmp_path: Path) -> None:
    """Only the file at the end of a recorded path is opened, by its own path."""
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "link").symlink_to("deep/er")
    shutil.copy(BINARY, tmp_path / "deep/ledger")
    os.mkfifo(tmp_path / "ledger")
    profile = recorded_at(tmp_path / "link/../ledger", tmp_path / "p.pb.gz")
    row = next(
        row
        for row in symbolize.symbolize(profile, options=symbolize.Options(local=True)).report.mappings
        if row.locations
    )
    assert list(row.files) == [str(tmp_path / "deep/ledger")]


def test_behind_given_folders(tmp_path: Path) -> None:
    """What the folders have counts, as without files of this machine, whatever is at the recorded path."""
    other = tmp_path / "ledger"
    shutil.copy(BINARIES / "clang-pie/ledger", other)
    profile = recorded_at(other, tmp_path / "p.pb.gz")
    for local in (False, True):
        options = symbolize.Options(local=local)
        row = symbolize.symbolize(profile, BINARY.parent, options).report.mappings[0]
        assert list(row.files) == [str(BINARY)] and not row.outcome.is_local


@pytest.mark.parametrize(("start", "verdict"), [(0xFFFFFFFF81000000, Verdict.PROVED), (0, Verdict.UNVERIFIED)])
def test_list_of_the_running_kernel(
    start: int, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of the kernel that runs proves where the profile says where its kernel was, which is another place after
    each start; else its addresses may be of another start."""
    symbols = tmp_path / "kallsyms"
    base = 0xFFFFFFFF81000000
    lines = [f"{base:016x} T _text", f"{base:016x} T _stext", *(f"{base + 64 * i:016x} T f{i}" for i in range(1, 50))]
    symbols.write_text("\n".join([*lines, f"{base + 64 * 50:016x} T _etext"]) + "\n")
    build_id = "12" * 20
    monkeypatch.setattr("symbolize.resolve.providers.kernel.KALLSYMS", str(symbols))
    monkeypatch.setattr("symbolize.resolve.providers.kernel.running_kernel_id", lambda: build_id)
    mapping = w.Mapping(
        start, start + (1 << 24) if start else 0xFFFFFFFFFFFFFFFF, start, "[kernel.kallsyms]_text", build_id
    )
    stacks = [([w.Place(base + 64 * i + 4, 1)], [1]) for i in range(1, 20)]
    profile = symbolize.load(io.BytesIO(w.profile([mapping], stacks)))
    row = symbolize.symbolize(profile, symbols).report.mappings[0]
    assert (row.symbolized_locations, row.verdict) == (19, verdict)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --binaries the commands look here, with it only if --local says so; --no-local never."""
    profile = str(recorded_at(BINARY, tmp_path / "p.pb.gz"))
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, is_named in (
        ([], True),
        (["--no-local"], False),
        (["-b", str(empty)], False),
        (["-b", str(empty), "--local"], True),
    ):
        for command in (["top"], ["tree"], ["plan"], ["-o", str(tmp_path / "o.pb.gz"), "--force"]):
            assert main([*command, profile, *arguments]) == 0
            shown = capsys.readouterr().out
            assert (f"of this machine: {BINARY}" in " ".join(shown.split()) or "scramble" in shown) is is_named


def test_given_files_are_not_of_this_machine(tmp_path: Path) -> None:
    """A file below a given folder is one that was given, whatever the profile says."""
    profile = recorded_at(BINARY, tmp_path / "p.pb.gz")
    report = symbolize.symbolize(profile, BINARY.parent, symbolize.Options(local=True)).report
    row = next(row for row in report.mappings if row.locations and row.name == str(BINARY))
    assert row.symbolized_locations > 20 and not row.outcome.is_local


def test_without_a_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder was removed."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert FileSystem().regular("/nothing") is None
