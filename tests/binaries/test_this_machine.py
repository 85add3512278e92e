"""Files of this machine that a profile says its mappings were of: which are looked at, and which name."""

import gzip
import io
import math
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from mmap import PAGESIZE
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

import symbolize
from symbolize.binaries import BinaryIndex, Companions, Kind, Unasked, this_machine
from symbolize.binaries.remote import Fetched
from symbolize.binaries.this_machine import FileSystem, read_mounts
from symbolize.cli import main
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.elf import read_build_id
from symbolize.profile import IdOrigin
from symbolize.report.model import MappingRow
from tests.support import elf_writer
from tests.support import pprof_writer as w
from tests.support.fixture_files import BINARIES, GPERFTOOLS, PARTS
from tests.support.kernel_image import KERNEL_ID, LINKED, vmlinux
from tests.support.kernel_modules import MODULE_ID as FILE_ID
from tests.support.kernel_modules import MODULE_START, write_module
from tests.support.messages import profile_pb2
from tests.support.needs import find

RECORDED = next(path for path in GPERFTOOLS if path.name == "ledger-gcc-pie.prof")
BINARY = BINARIES / "gcc-pie/ledger"
DWZ = PARTS / "dwz"


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

    def test_length(self, tmp_path: Path) -> None:
        """A file whose code is not as long as what was mapped is another build, unless a build id proves it."""
        for build_id, is_named in (("", False), (read_build_id(str(BINARY)) or "", True)):
            profile = symbolize.load(recorded_at(BINARY, tmp_path / "p.pb.gz", build_id))
            profile.mappings.limit[0] += PAGESIZE
            report = symbolize.symbolize(profile, options=symbolize.Options(local=True)).report
            assert (report.mappings[0].symbolized_locations > 20) is is_named
            assert ("not as long as what was mapped" in report.mappings[0].detail) is not is_named

    @pytest.mark.parametrize("build_id", ["", read_build_id(str(BINARY)) or ""])
    def test_written_since(self, build_id: str, tmp_path: Path) -> None:
        """A file that is younger than the profile is not what ran, unless a build id proves it."""
        program = tmp_path / "ledger"
        shutil.copy(BINARY, program)
        profile = recorded_at(program, tmp_path / "p.pb.gz", build_id)
        assert row_of(profile).symbolized_locations > 20
        os.utime(program, (os.stat(profile).st_mtime + 1,) * 2)
        assert (row_of(profile).symbolized_locations > 20) is bool(build_id)

    @pytest.mark.parametrize("build_id", ["", read_build_id(str(BINARY)) or ""])
    def test_replaced_since(self, build_id: str, tmp_path: Path) -> None:
        """A file that was put there since with an old time is not what ran, unless a build id proves it; one that perf
        linked into its cache is."""
        program, other = tmp_path / "ledger", tmp_path / "other"
        shutil.copy(BINARY, program)
        profile = recorded_at(program, tmp_path / "p.pb.gz", build_id)
        os.utime(profile, (os.stat(profile).st_mtime - 60,) * 2)
        os.utime(program, (os.stat(profile).st_mtime - 60,) * 2)
        assert (row_of(profile).symbolized_locations > 20) is bool(build_id)
        os.link(program, other)
        assert row_of(profile).symbolized_locations > 20

    def test_time_that_is_to_come(self, tmp_path: Path) -> None:
        """No recording began after its file was written, whatever it says."""
        program = tmp_path / "ledger"
        shutil.copy(BINARY, program)
        profile = symbolize.load(recorded_at(program, tmp_path / "p.pb.gz"))
        os.utime(program, (os.stat(profile.source).st_mtime + 1,) * 2)
        profile.time_nanos = 1 << 62
        report = symbolize.symbolize(profile, options=symbolize.Options(local=True)).report
        assert report.mappings[0].symbolized_locations == 0

    @pytest.mark.parametrize("name", ["{} (deleted)", "//deleted{}", "{}.dpkg-new", "/proc/7/root{}", "{};5f3a2b1c"])
    @pytest.mark.parametrize("build_id", ["", read_build_id(str(BINARY)) or ""])
    def test_name_of_what_was_replaced(self, name: str, build_id: str, tmp_path: Path) -> None:
        """What has the plain name of a file that was replaced, or is in a container, is another one, unless a build id
        proves it; also where it is listed because another mapping is of it."""
        profile = recorded_at(Path(name.format(BINARY)), tmp_path / "p.pb.gz", build_id)
        assert (row_of(profile).symbolized_locations > 20) is bool(build_id)
        both = symbolize.merge([symbolize.load(profile), symbolize.load(recorded_at(BINARY, tmp_path / "q.pb.gz"))])
        rows = symbolize.symbolize(both, options=symbolize.Options(local=True)).report.mappings
        assert {row.name: row.symbolized_locations > 20 for row in rows if "ledger" in row.name} == {
            str(BINARY): True,
            name.format(BINARY): bool(build_id),
        }

    def test_unverified(self, tmp_path: Path) -> None:
        """A file for which nothing speaks but its path names nothing, whatever may name elsewhere."""
        report = symbolize.symbolize(one_leaf(tmp_path), options=symbolize.Options(local=True)).report
        row = report.mappings[0]
        assert row.locations == 1 and row.symbolized_locations == 0
        assert [reason for reason, _, _ in row.misses] == [Reason.UNCONFIRMED]

    @pytest.mark.parametrize(("age", "time", "is_named"), [(-60, 0, True), (60, 0, False), (-60, -90, False)])
    def test_claim(self, age: int, time: int, is_named: bool, tmp_path: Path) -> None:
        """A build id that was read later, by path, is void if the file was written after the recording began."""
        program = tmp_path / "ledger"
        shutil.copy(BINARY, program)
        profile = symbolize.load(recorded_at(program, tmp_path / "p.pb.gz", read_build_id(str(BINARY)) or ""))
        profile.id_origins = np.full(len(profile.mappings), IdOrigin.READ_LATER, np.uint8)
        profile.duration_nanos = 10**10
        begin = os.stat(profile.source).st_mtime - 10
        os.utime(program, (begin + age,) * 2)
        profile.time_nanos = int(time and (begin + time) * 1e9)
        report = symbolize.symbolize(profile, options=symbolize.Options(local=True)).report
        assert bool(report.mappings[0].symbolized_locations) is is_named
        assert (
            any("was written or replaced after the recording began" in each for each in report.warnings) is not is_named
        )

    @pytest.mark.parametrize(("age", "is_named"), [(-60, True), (5, False), (60, False)])
    def test_rebuilt_afterwards(
        self, age: int, is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The build that was recorded is taken of perf's cache where another one is at its path now, which was written
        after the profile, if the copy is older than the recording: else another may have run before."""
        monkeypatch.setenv("HOME", str(tmp_path))
        program, build_id = tmp_path / "ledger", read_build_id(str(BINARY)) or ""
        kept = tmp_path / ".debug/.build-id" / build_id[:2] / build_id[2:] / "elf"
        kept.parent.mkdir(parents=True)
        shutil.copy(BINARY, kept)
        shutil.copy(BINARIES / "clang-pie/ledger", program)
        profile = symbolize.load(recorded_at(program, tmp_path / "p.pb.gz", build_id))
        profile.id_origins = np.full(len(profile.mappings), IdOrigin.READ_LATER, np.uint8)
        profile.duration_nanos = 10**10
        written = os.stat(profile.source).st_mtime
        os.utime(program, (written + 60,) * 2)
        os.utime(kept, (written - 10 + age,) * 2)
        report = symbolize.symbolize(profile, options=symbolize.Options(local=True)).report
        assert (report.mappings[0].symbolized_locations > 20) is is_named
        assert any("was written or replaced after the recording began" in each for each in report.warnings)

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


@pytest.mark.parametrize("place", ["common.dwz", "cache/debuginfod_client/{}/debuginfo"])
def test_supplementary_file(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What dwz took out of a debug file, by its name and by its build id."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copy(DWZ / "ledger.debug", tmp_path)
    build_id = read_build_id(str(DWZ / "common.dwz")) or ""
    kept = tmp_path / place.format(build_id)
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(DWZ / "common.dwz", kept)
    machine = this_machine.ThisMachine()
    index = BinaryIndex((), listing=machine)
    machine.look_for(
        index,
        [this_machine.WantedFile(str(tmp_path / "ledger.debug"), "")],
        (),
        this_machine.RecordingTimes(0.0, math.inf, math.inf),
    )
    assert Companions(index, [str(tmp_path / "ledger.debug")]).supplementary("common.dwz", build_id) == [str(kept)]


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


@pytest.mark.parametrize(
    ("start", "offset", "verdict"),
    [(LINKED + 0x1C600000, 0x1C600000, Verdict.PROVED), (0, 0, Verdict.UNVERIFIED)],
)
def test_image_of_the_running_kernel(
    start: int, offset: int, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vmlinux where distributions put it names the kernel that runs, where the profile says where that was."""
    image = vmlinux(tmp_path / f"boot/vmlinux-{os.uname().release}")
    monkeypatch.setattr(this_machine, "KERNELS", (f"{tmp_path}/boot/vmlinux-{{0}}",))
    monkeypatch.setattr(this_machine, "running_kernel_id", lambda: KERNEL_ID)
    mapping = w.Mapping(
        start, 0xFFFFFFFFC0000000 if start else 2**64 - 1, start, "[kernel.kallsyms]" + "_text" * bool(start), KERNEL_ID
    )
    stacks = [([w.Place(LINKED + offset + 0x1000 * i + 5, 1)], [1]) for i in (3, 70, 400)]
    profile = symbolize.load(io.BytesIO(w.profile([mapping], stacks)))
    result = symbolize.symbolize(profile, options=symbolize.Options(local=True))
    row = result.report.mappings[0]
    if verdict is Verdict.PROVED:
        assert {each.name for each in result.top()} == {"f3", "f70", "f400"}
        assert list(row.files) == [str(image)] and row.verdict is verdict and row.outcome.is_local
    else:
        assert row.symbolized_locations == 0
    monkeypatch.setattr(this_machine, "running_kernel_id", lambda: "34" * 20)
    assert symbolize.symbolize(profile, options=symbolize.Options(local=True)).report.symbolized_locations == 0


MODULE_ID = "56" * 20
MODULE = 0xFFFFFFFFC0600000


def module_run(start: int, build_id: str) -> MappingRow:
    """What is said of a kernel module with samples at two functions, 16 bytes apart."""
    places = [([w.Place(start + offset, 1)], [1]) for offset in (0x14, 0x24)]
    mapping = w.Mapping(start, start + 0x10000, 0, "[nf_tables]", build_id)
    profile = symbolize.load(io.BytesIO(w.profile([mapping], places)))
    return symbolize.symbolize(profile, options=symbolize.Options(local=True)).report.mappings[0]


def test_loaded_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of the running kernel names a module that is loaded where it was recorded, with that build id, and no
    other: not one that was loaded anew, nor of another build."""
    lines = [f"{MODULE + 16 * i:016x} t nft_{i}\t[nf_tables]" for i in range(8)]
    (tmp_path / "kallsyms").write_text("\n".join([f"{LINKED:016x} T _text", f"{LINKED:016x} T _stext", *lines, ""]))
    (tmp_path / "modules").write_text(
        f"other 1 0 - Live 0x0\nnf_tables 69632 0 - Live 0x{MODULE:016x} (OE)\nshort\nnf_tables\n"
    )
    (tmp_path / "notes").write_bytes(elf_writer.build_id_note(bytes.fromhex(MODULE_ID)))
    monkeypatch.setattr("symbolize.resolve.providers.kernel.KALLSYMS", str(tmp_path / "kallsyms"))
    monkeypatch.setattr(this_machine, "MODULES", str(tmp_path / "modules"))
    monkeypatch.setattr(this_machine, "MODULE_NOTES", f"{tmp_path}/notes")
    row = module_run(MODULE, MODULE_ID)
    assert row.symbolized_locations == 2 and row.verdict is Verdict.PROVED and row.outcome.is_local
    for start, build_id in ((MODULE + 0x1000, MODULE_ID), (MODULE, "57" * 20), (MODULE, ""), (0x1000, MODULE_ID)):
        assert module_run(start, build_id).symbolized_locations == 0
    lines[2:] = [line.replace("nf_tables]", "bpf]") for line in lines[2:]]
    (tmp_path / "kallsyms").write_text("\n".join([f"{LINKED:016x} T _text", f"{LINKED:016x} T _stext", *lines, ""]))
    assert module_run(MODULE, MODULE_ID).symbolized_locations == 1  # code that was made at run time is behind it by now
    (tmp_path / "notes").write_bytes(b"")
    assert module_run(MODULE, MODULE_ID).symbolized_locations == module_run(MODULE, "").symbolized_locations == 0


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_file_of_a_module(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module recorded by its name is the file that the running kernel's list of modules has, if that is the build."""
    folder = tmp_path / os.uname().release
    (folder / "kernel/net").mkdir(parents=True)
    module = write_module(tmp_path / "net.ko").read_bytes()
    path = folder / f"kernel/net/nf-net.ko{ending}"
    path.write_bytes(gzip.compress(module) if ending else module)
    (folder / "modules.dep").write_text(f"kernel/x.ko: \nkernel/net/{path.name}: kernel/x.ko\n/../nf_net.ko\nnf_net")
    monkeypatch.setattr(this_machine, "MODULE_FOLDER", f"{tmp_path}/{{}}")
    for build_id in (FILE_ID.hex(), "57" * 20, ""):
        mapping = w.Mapping(MODULE_START, MODULE_START + 0x4000, 0, "[nf_net]", build_id)
        profile = symbolize.load(io.BytesIO(w.profile([mapping], [([w.Place(MODULE_START + 0x10, 1)], [1])])))
        result = symbolize.symbolize(profile, options=symbolize.Options(local=True))
        if build_id == FILE_ID.hex():
            row = result.report.mappings[0]
            assert [each.name for each in result.top()] == ["handle"]
            assert list(row.files) == [str(path)] and row.verdict is Verdict.PROVED
        else:
            assert result.report.symbolized_locations == 0


@pytest.mark.skipif(not this_machine.own_vdso(), reason="the kernel maps no vdso")
def test_vdso_of_this_process(tmp_path: Path) -> None:
    """The vdso of the kernel that runs names a mapping with its build id, and no other."""
    (tmp_path / "vdso").write_bytes(this_machine.own_vdso())
    build_id = read_build_id(str(tmp_path / "vdso"))
    with open(tmp_path / "vdso", "rb") as file:
        known = next(
            each
            for each in ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
            if each.name.endswith("clock_gettime") and each["st_info"]["type"] == "STT_FUNC"
        )
    start = 0x7FFD12345000
    for recorded, is_named in ((build_id, True), ("12" * 20, False), ("", False)):
        mapping = w.Mapping(start, start + 0x2000, 0, "[vdso]", recorded)
        profile = w.profile([mapping], [([w.Place(start + known["st_value"] + 1, 1)], [1])])
        result = symbolize.symbolize(symbolize.load(io.BytesIO(profile)), options=symbolize.Options(local=True))
        assert result.report.symbolized_locations == is_named
        if is_named:
            assert result.top()[0].name.endswith("clock_gettime")
            assert result.report.mappings[0].verdict is Verdict.PROVED


class TestContainers:
    """Files in mount namespaces of running processes."""

    @pytest.fixture
    def proc(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A folder as /proc, in which process 7 runs in a container that has the program."""
        proc = tmp_path / "proc"
        for process in ("self", "7", "8"):
            (proc / process / "ns").mkdir(parents=True)
            (proc / process / "ns/mnt").write_text(process)
        (proc / "self/ns/user").write_text("user")
        for process in ("7", "8"):
            os.link(proc / "self/ns/user", proc / process / "ns/user")
        (proc / "notes").write_text("no process")
        (proc / "7/root/srv").mkdir(parents=True)
        shutil.copy(BINARY, proc / "7/root/srv/ledger")
        self.mount(proc, "ext4")
        monkeypatch.setattr(this_machine, "PROC", str(proc))
        return proc

    def mount(self, proc: Path, kind: str) -> None:
        """Let the root of the container be of another type."""
        (proc / "7/mountinfo").write_text(f"36 35 98:0 / / rw - {kind} source rw\n")

    def named(self, tmp_path: Path, build_id: str = read_build_id(str(BINARY)) or "") -> int:
        """How many locations of the program have names."""
        return row_of(recorded_at(Path("/srv/ledger"), tmp_path / "p.pb.gz", build_id)).symbolized_locations

    def test_by_build_id(self, proc: Path, tmp_path: Path) -> None:
        """The file at the recorded path in a container counts if its build id was recorded with the mapping; who runs a
        container may put any other one there."""
        build_id = read_build_id(str(BINARY)) or ""
        row = row_of(recorded_at(Path("/srv/ledger"), tmp_path / "p.pb.gz", build_id))
        assert row.symbolized_locations > 20 and row.verdict is Verdict.PROVED and row.outcome.is_local
        assert list(row.files) == [str(proc / "7/root/srv/ledger")]
        assert self.named(tmp_path, "") == self.named(tmp_path, "12" * 20) == 0

    def test_by_place(self, proc: Path, tmp_path: Path) -> None:
        """A file in a container that has no build id itself does not get one by its place."""
        build_id = read_build_id(str(BINARY)) or ""
        place = Path(f"/srv/.build-id/{build_id[:2]}/{build_id[2:]}")
        inside = Path(f"{proc}/7/root{place}")
        inside.parent.mkdir(parents=True)
        subprocess.run([find("objcopy"), "--remove-section=.note.gnu.build-id", BINARY, inside], check=True)
        report = symbolize.symbolize(
            recorded_at(place, tmp_path / "p.pb.gz", build_id), options=symbolize.Options(local=True)
        ).report
        assert report.mappings[0].locations and report.symbolized_locations == 0

    def test_claim(self, proc: Path, tmp_path: Path) -> None:
        """A build id that was read later proves nothing."""
        profile = symbolize.load(
            recorded_at(Path("/srv/ledger"), tmp_path / "p.pb.gz", read_build_id(str(BINARY)) or "")
        )
        profile.id_origins = np.full(len(profile.mappings), IdOrigin.READ_LATER, np.uint8)
        report = symbolize.symbolize(profile, options=symbolize.Options(local=True)).report
        assert report.mappings[0].symbolized_locations == 0

    @pytest.mark.parametrize("kind", ["nfs", "fuse", "autofs", "proc", "9p", ""])
    def test_other_file_systems_are_not_touched(self, kind: str, proc: Path, tmp_path: Path) -> None:
        """Not even the root of a container is looked at if it is not known to answer by itself."""
        self.mount(proc, kind)
        assert self.named(tmp_path) == 0

    def test_namespaces_of_others(self, proc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A user's own container is looked into, and by root none that any user may have made; a process in our
        namespace, or one that ended, is no container."""
        (proc / "7/ns/user").unlink()
        (proc / "7/ns/user").write_text("another")
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert self.named(tmp_path) > 20
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert self.named(tmp_path) == 0
        (proc / "7/ns/user").unlink()
        assert self.named(tmp_path) == 0
        os.link(proc / "self/ns/user", proc / "7/ns/user")
        assert self.named(tmp_path) > 20
        (proc / "7/ns/mnt").unlink()
        os.link(proc / "self/ns/mnt", proc / "7/ns/mnt")
        assert self.named(tmp_path) == 0

    def test_links_stay_inside(self, proc: Path, tmp_path: Path) -> None:
        """A link in a container leads to a file of the container."""
        (proc / "7/root/srv/ledger").rename(proc / "7/root/ledger")
        (proc / "7/root/srv/ledger").symlink_to("/../ledger")
        assert self.named(tmp_path) > 20
        (proc / "7/root/srv/ledger").unlink()
        (proc / "7/root/srv/ledger").symlink_to(BINARY)
        assert self.named(tmp_path) == 0

    def test_number_of_paths(self, proc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Paths in containers are looked at up to a number, which is said."""
        monkeypatch.setattr(this_machine, "MAX_IN_CONTAINERS", 0)
        profile = recorded_at(Path("/srv/ledger"), tmp_path / "p.pb.gz", read_build_id(str(BINARY)) or "")
        report = symbolize.symbolize(profile, options=symbolize.Options(local=True)).report
        assert report.symbolized_locations == 0
        assert any("paths in containers were not looked at" in each for each in report.warnings)

    def test_number_of_containers(self, proc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """So are containers."""
        monkeypatch.setattr(this_machine, "MAX_NAMESPACES", 0)
        profile = recorded_at(Path("/srv/ledger"), tmp_path / "p.pb.gz", read_build_id(str(BINARY)) or "")
        report = symbolize.symbolize(profile, options=symbolize.Options(local=True)).report
        assert report.symbolized_locations == 0
        assert any("containers run, the others were not looked into" in each for each in report.warnings)


def stripped(folder: Path) -> Path:
    """The program without symbols, in a folder of its own."""
    folder.mkdir()
    subprocess.run([find("objcopy"), "--strip-all", BINARY, folder / "ledger"], check=True)
    return folder / "ledger"


def test_completes_what_was_given(tmp_path: Path) -> None:
    """Where a given file is stripped, the complete one of this machine with its build id has the names; a file of
    another build has none."""
    given, build_id = stripped(tmp_path / "given"), read_build_id(str(BINARY)) or ""
    for path, is_named in ((BINARY, True), (BINARIES / "clang-pie/ledger", False)):
        profile = recorded_at(path, tmp_path / "p.pb.gz", build_id)
        for options in (symbolize.Options(), symbolize.Options(local=True)):
            row = symbolize.symbolize(profile, given.parent, options).report.mappings[0]
            is_whole = is_named and options.local
            assert (row.symbolized_locations > 20) is row.outcome.is_local is is_whole
            assert list(row.files) == ([str(BINARY), str(given)] if is_whole else [str(given)])
    complete = tmp_path / "complete"
    complete.mkdir()
    shutil.copy(BINARY, complete)
    row = symbolize.symbolize(recorded_at(BINARY, tmp_path / "p.pb.gz"), complete, symbolize.Options(local=True)).report
    assert list(row.mappings[0].files) == [str(complete / "ledger")] and not row.mappings[0].outcome.is_local


def test_completes_nothing_unverified(tmp_path: Path) -> None:
    """A given file for which too little speaks names what it has itself, and nothing out of files of this machine."""
    given = stripped(tmp_path / "given")
    profile = one_leaf(tmp_path)
    for options in (symbolize.Options(), symbolize.Options(local=True)):
        row = symbolize.symbolize(profile, given.parent, options).report.mappings[0]
        assert row.locations == 1 and list(row.files) == [str(given)] and not row.outcome.is_local


def test_before_servers(tmp_path: Path) -> None:
    """Servers are asked for what neither the folders nor this machine have."""

    class Server(Unasked):
        """Counts what it is asked for."""

        def __init__(self) -> None:
            self.asked: set[str] = set()

        def fetch(self, build_id: str, kind: Kind) -> Fetched:
            self.asked.add(build_id)
            return Fetched(None, "missing")

        def prefetch(self, wanted: Iterable[tuple[str, Sequence[Kind], float]]) -> None:
            self.asked.update(build_id for build_id, _, _ in wanted)

    build_id = read_build_id(str(BINARY)) or ""
    given = stripped(tmp_path / "given").parent
    for path, roots, is_asked in (
        (BINARY, (), False),
        (BINARY, (given,), False),
        (Path("/nowhere"), (), True),
        (Path("/nowhere"), (given,), True),
    ):
        server = Server()
        profile = recorded_at(path, tmp_path / "p.pb.gz", build_id)
        with symbolize.Symbolizer(roots, symbolize.Options(local=True), servers=server) as symbolizer:
            report = symbolizer.symbolize(symbolize.load(profile)).report
        assert server.asked == ({build_id} if is_asked else set())
        assert (report.mappings[0].symbolized_locations > 20) is not is_asked


def test_what_is_not_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not here is said to be not on this machine, and not that nothing was given."""
    profile = str(recorded_at(Path("/srv/ledger"), tmp_path / "p.pb.gz"))
    assert main(["plan", profile]) == 0
    shown = capsys.readouterr().out
    assert "binary not found (not on this machine)" in shown and "no binaries were given" not in shown
    assert main(["plan", profile, "--no-local"]) == 0
    assert "no binaries were given" in capsys.readouterr().out


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


def test_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not proved is said in one short line, of each library once, with the sum of its mappings."""
    program, build_id = tmp_path / "ledger", read_build_id(str(BINARY)) or ""
    shutil.copy(BINARY, program)
    os.utime(program, (0, 0))
    parts = [symbolize.load(recorded_at(program, tmp_path / "p.pb.gz", build_id * number)) for number in (0, 1)]
    merged = symbolize.merge(parts)
    merged.id_origins = np.full(len(merged.mappings), IdOrigin.READ_LATER, np.uint8)
    merged.duration_nanos = 1
    symbolize.write(merged, tmp_path / "both.pb.gz")
    assert main(["top", str(tmp_path / "both.pb.gz")]) == 0
    (note,) = (line for line in capsys.readouterr().err.splitlines() if "not proved" in line)
    assert note == f"note: {tmp_path}/both.pb.gz: not proved to be what ran: ledger, 89.2 % (supported)"


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
