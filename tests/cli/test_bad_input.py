"""Damaged, foreign and hostile input: one clear line, the right exit code, no output file."""

import gzip
import io
import json
import os
import random
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from symbolize.cli import main
from tests.support import fixture_files as fixtures
from tests.support import gperftools_writer
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.pprof_writer import Line, Mapping, Place, profile
from tests.support.seeds import seeds
from tests.support.tiny_elf import write as write_elf

PIE_ID = "cb96b8d25342c1f32e87dde7772ea78c32607ad4"
MAPS = b"00400000-00500000 r-xp 00000000 08:01 11 /bin/main\n"
GPERFTOOLS = gperftools_writer.profile([(2, [0x401000, 0x402001]), (1, [0x401010, 0x402001])], MAPS)
PPROF = profile(
    [Mapping(0x1000, 0x9000, 0, "/bin/app", PIE_ID)],
    [([Place(0x1000, 1, (Line("f", "a.c", 3),)), Place(0x2000, 1)], [7]), ([Place(0x2000, 1)], [1])],
)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")


def complaint(source: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says about a profile that cannot be read, after the profile's name; it must leave no output."""
    before = sorted(os.listdir())
    assert main([source, "-o", "out.pb.gz"]) == 1
    assert sorted(os.listdir()) == before
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    start = f"symbolize: {'standard input' if source == '-' else source}: "
    assert err.startswith(start)
    return err[len(start) : -1]


_watched: list[list[str]] = []


def _note_opened(event: str, arguments: tuple[object, ...]) -> None:
    if (
        _watched
        and event in ("open", "os.scandir", "os.listdir")
        and isinstance(arguments[0], str | bytes | os.PathLike)
    ):
        _watched[0].append(os.fsdecode(arguments[0]))


@cache
def _install() -> None:
    sys.addaudithook(_note_opened)  # cannot be taken away again


@contextmanager
def paths_opened() -> Iterator[list[str]]:
    """The paths of all files and folders that are opened meanwhile."""
    _install()
    _watched.append([])
    try:
        yield _watched[0]
    finally:
        _watched.clear()


def row(report: str, name: str) -> str:
    """The row of a mapping in the report."""
    return next(line for line in report.splitlines() if line.endswith(name))


def place_of(number: int) -> int:
    """One place of each six bytes, of each kind of place as many."""
    return 6 * number + number % 6


WHOLE = {"gperftools": GPERFTOOLS, "pprof": PPROF, "gzip": gzip.compress(PPROF, mtime=0)}


@pytest.mark.parametrize(
    ("format", "numbers"),
    [pytest.param(name, *part.values, marks=part.marks) for name in WHOLE for part in seeds(len(WHOLE[name]) // 6)],
)
def test_cut_files(format: str, numbers: Sequence[int], capsys: pytest.CaptureFixture[str]) -> None:
    """A profile cut anywhere (a sixth is tried) is refused in one line, or read as far as it goes into an output that
    can be read."""
    refused = 0
    for length in map(place_of, numbers):
        Path("x").write_bytes(WHOLE[format][:length])
        code = main(["x", "-o", "out", "-q"])
        err = capsys.readouterr().err
        if code == 0:
            assert fixtures.read_pprof(Path("out")).string_table[0] == b""
            os.unlink("out")
        else:
            refused += 1
            assert code == 1
            assert err.count("\n") == 1
            assert err.startswith("symbolize: x: ")
            assert os.listdir() == ["x"]
    assert refused >= len(numbers) // 10


@pytest.mark.parametrize(
    ("format", "numbers"),
    [
        pytest.param(name, *part.values, marks=part.marks)
        for name in ("gperftools", "pprof")
        for part in seeds(len(WHOLE[name]) // 6)
    ],
)
def test_changed_bytes(format: str, numbers: Sequence[int], capsys: pytest.CaptureFixture[str]) -> None:
    """A profile with any byte changed (a sixth is tried) is refused in one line or symbolized; nothing else happens."""
    whole = WHOLE[format]
    for position in map(place_of, numbers):
        for value in (whole[position] ^ 0xFF, whole[position] ^ 0x01):
            Path("x").write_bytes(whole[:position] + bytes([value]) + whole[position + 1 :])
            code = main(["x", "-o", "out", "-b", ".", "-q"])
            err = capsys.readouterr().err
            assert (code, err.count("\n"), err.startswith("symbolize: x: ")) in ((0, 0, False), (1, 1, True)), position
            assert os.path.exists("out") is (code == 0)
            if code == 0:
                os.unlink("out")


def test_random_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    """Random bytes of any length are no profile."""
    generator = random.Random(1)
    for length in (1, 2, 3, 8, 64, 1000, 100_000):
        Path("x").write_bytes(generator.randbytes(length))
        complaint("x", capsys)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (gzip.compress(b""), "is empty"),
        (b"hello, world\n", "is not a profile: it looks like a text file"),
        (b'{"a": 1}', "is not a profile: it looks like JSON"),
        (bytes(1000), "is not a profile"),
        (b"PERFILE2" + bytes(100), "is a perf.data file with a damaged list of events"),
    ],
    ids=["empty", "empty gzip", "text", "JSON", "zeros", "perf.data"],
)
def test_other_files(data: bytes, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of other kinds are called what they look like."""
    Path("x").write_bytes(data)
    assert message in complaint("x", capsys)


def test_places_that_are_no_files(capsys: pytest.CaptureFixture[str]) -> None:
    """A missing path, an absurd name and a device are told apart."""
    assert complaint("missing.prof", capsys) == "no such file"
    assert "too long" in complaint("n" * 5000, capsys)
    assert "device" in complaint("/dev/null", capsys)


def test_gzip_cut_short_tells_where(capsys: pytest.CaptureFixture[str]) -> None:
    """A gzip stream cut short is told with the offset at which it ends."""
    whole = (FIXTURES / "profiles/perf/spectra-gcc-pie.pb.gz").read_bytes()
    Path("x").write_bytes(whole[:1000])
    assert complaint("x", capsys) == "gzip stream is cut short at offset 0x3e8"


def test_damaged_gzip(capsys: pytest.CaptureFixture[str]) -> None:
    """A gzip stream with a changed byte is refused by its checksum at the latest."""
    whole = bytearray((FIXTURES / "profiles/perf/spectra-gcc-pie.pb.gz").read_bytes())
    whole[len(whole) // 2] ^= 0x10
    Path("x").write_bytes(whole)
    complaint("x", capsys)


@pytest.mark.process
def test_a_gigabyte_of_zeros(capsys: pytest.CaptureFixture[str]) -> None:
    """A gigabyte of zeros in a megabyte of gzip is refused with a fraction of that memory."""
    compressor = zlib.compressobj(9, wbits=-15)
    block = compressor.compress(bytes(1 << 24)) + compressor.flush(zlib.Z_FULL_FLUSH)
    Path("x").write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block * 64)
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1500 << 20, 1500 << 20)); "
    code = limit + "from symbolize.cli import main; sys.exit(main(['x', '-o', 'out.pb.gz']))"
    root = Path(__file__).parent.parent.parent
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(root)})
    assert run.returncode == 1
    assert "nothing but zeros" in run.stderr.splitlines()[-1]
    assert "Traceback" not in run.stderr
    assert os.listdir() == ["x"]


def test_names_in_messages(capsys: pytest.CaptureFixture[str]) -> None:
    """The name of an input cannot break the line or steer the terminal."""
    name = "a\nb\x1b[2J"
    Path(name).write_text("no profile")
    assert main([name]) == 1
    err = capsys.readouterr().err
    assert err.startswith("symbolize: a\\x0ab\\x1b[2J: is not a profile")
    assert err.count("\n") == 1


class TestBinaries:
    """Bad files below --binaries spoil nothing but themselves."""

    PROFILE = FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz"

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """A folder with good binaries."""
        root = tmp_path / "root"
        shutil.copytree(BINARIES / "gcc-pie", root)
        return root

    @pytest.fixture
    def expected(self, root: Path) -> bytes:
        """What the good binaries give."""
        assert main([str(self.PROFILE), "-b", str(root), "-o", "expected", "-q"]) == 0
        return Path("expected").read_bytes()

    @pytest.mark.process
    def test_fifo(self, root: Path, expected: bytes) -> None:
        """Nothing waits for a FIFO among the binaries, whatever its name."""
        os.mkfifo(root / "aaa")
        os.mkfifo(root / "libm.so.6")
        root_of_package = Path(__file__).parent.parent.parent
        command = [sys.executable, "-m", "symbolize", str(self.PROFILE), "-b", str(root), "-o", "out", "-q"]
        environment = {"PYTHONPATH": str(root_of_package), "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
        subprocess.run(command, timeout=300, check=True, env=environment)
        assert Path("out").read_bytes() == expected

    def test_junk(self, root: Path, expected: bytes, capsys: pytest.CaptureFixture[str]) -> None:
        """Junk that claims to be ELF is a warning a file; the result is the same as without it."""
        (root / "libm.so.6").write_bytes(b"\x7fELF" + bytes(1000))
        (root / "libc.so.6").write_bytes(b"\x7fELF\x02\x01\x01" + random.Random(2).randbytes(5000))
        (root / "text").write_text("hello")
        (root / "empty").touch()
        assert main([str(self.PROFILE), "-b", str(root), "-o", "out"]) == 0
        out = capsys.readouterr().out
        assert out.count("warning: ") == 2
        assert f"warning: {root}/libm.so.6: " in out
        assert Path("out").read_bytes() == expected

    @pytest.mark.parametrize("part", [0.02, 0.25, 0.5, 0.75, 0.99])
    @pytest.mark.full
    def test_cut_binary(self, part: float, root: Path, expected: bytes, capsys: pytest.CaptureFixture[str]) -> None:
        """A binary cut off is told by its name; the other binary is symbolized as before."""
        whole = (root / "spectra").read_bytes()
        (root / "spectra").write_bytes(whole[: int(len(whole) * part)])
        assert main([str(self.PROFILE), "-b", str(root), "-o", "out"]) == 0
        out, err = capsys.readouterr()
        assert [line for line in out.splitlines() if f"{root}/spectra" in line and "from" not in line]
        assert row(out, "libresonance.so").split()[4] == "68/69"
        assert "Traceback" not in err

    def test_nothing_outside_the_roots_is_opened(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Neither links out of the roots nor recorded names, with `..` or absolute, open any file outside."""
        root, outside = tmp_path / "root", tmp_path / "elsewhere"
        write_elf(outside / "secret", PIE_ID)
        write_elf(outside / "folder/secret")
        root.mkdir()
        (root / "absolute").symlink_to(outside / "secret")
        (root / "relative").symlink_to("../elsewhere/secret")
        (root / "folder").symlink_to(outside)
        (root / "chain").symlink_to("absolute")
        (root / "loop").symlink_to("loop")
        (root / "up").symlink_to("..")
        names = [str(outside / "secret"), "../elsewhere/secret", "/../elsewhere/secret", "up/elsewhere/secret",
                 "/folder/secret", "absolute", "/etc/passwd", "//etc/passwd", "a\0b", "x" * 5000]  # fmt: skip
        mappings = [Mapping(0x1000 * i, 0x1000 * i + 0x1000, 0, name) for i, name in enumerate(names, 1)]
        mappings.append(Mapping(0x100000, 0x200000, 0, str(outside / "secret"), PIE_ID))
        mappings.append(Mapping(0x200000, 0x300000, 0, str(outside / "secret"), "../elsewhere/secret"))
        data = profile(mappings, [([Place(m.start + 8, i) for i, m in enumerate(mappings, 1)], [1])])
        Path("x.pb").write_bytes(data)
        with paths_opened() as opened:
            assert main(["x.pb", "-b", "root", "-o", "out", "-v"]) == 0
        assert "root" in opened
        assert [path for path in opened if "elsewhere" in path or "etc" in path or "secret" in path] == []
        out = capsys.readouterr().out
        assert "(0 files looked at, 5 links out of it not followed)" in out
        assert out.count(f"binary not found (root/absolute is a link to {outside}/secret, out of the given") == 1
        assert not fixtures.read_pprof(Path("out")).function


def test_links_to_lists_of_symbols(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Code that was made at run time, and the kernel, say which link to a list of their names is not followed."""
    away, root = tmp_path / "away", tmp_path / "root"
    away.mkdir()
    root.mkdir()
    names = {"[kernel.kallsyms]_text": "kallsyms", "/tmp/perf-7.map": "perf-7.map", "[vdso]": ""}
    for name in filter(None, names.values()):
        (away / name).write_text("1000 10 f\n")
        (root / name).symlink_to(away / name)
    mappings = [Mapping(0x1000 * i, 0x1000 * i + 0x1000, 0, name) for i, name in enumerate(names, 1)]
    places = [Place(mapping.start + 8, i) for i, mapping in enumerate(mappings, 1)]
    (tmp_path / "x.pb").write_bytes(profile(mappings, [(places, [1])]))
    output = str(tmp_path / "o.gz")
    assert main([str(tmp_path / "x.pb"), "-b", str(root), "-o", output, "--report", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["mappings"]
    details = {row["name"]: row["detail"] for row in rows if row["name"]}
    for mapping, name in names.items():
        link = f"{root}/{name} is a link to {away}/{name}, out of the given folders and not followed: "
        assert details[mapping] == (f"{link}give {away}/{name} too" if name else "")


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input is named in messages, also when it is empty."""
    for data, message in ((b"", "is empty"), (b"hello", "is not a profile")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert message in complaint("-", capsys)
