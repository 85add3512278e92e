"""No profile and no binary makes the program open a file outside of the given folders."""

import json
import lzma
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import zstandard

from symbolize.binaries.store import BOOT_ID
from symbolize.cli import main
from tests.support.elf_writer import ALLOC, COMPRESSED, EXEC, NOTE, Section, Segment, build_id_note, elf_file, text
from tests.support.pprof_writer import Mapping, Place, profile
from tests.support.tiny_elf import write

ID = "ab" * 20

RUN = """
import json, os, sys
opened = []
def hook(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "os.readlink", "sqlite3.connect"):
        opened.append(os.fsdecode(arguments[0]) if isinstance(arguments[0], (str, bytes)) else "")
from symbolize.cli import main
sys.addaudithook(hook)
code = main(sys.argv[1:])
print(json.dumps([code, opened]))
"""

HOSTILE_NAMES = [
    "/etc/passwd", "../../../etc/passwd", "..", "/", "//", "~/x", "~root/.ssh/id_rsa", "http://example.org/x",
    "file:///etc/passwd", "x\0y", "x\ny", "/" + "a" * 10_000, "a/" * 5000, "/dev/zero", "/proc/self/mem", "C:\\x",
    "server/../../outside", "secret",
]  # fmt: skip
HOSTILE_IDS = [
    "..", "../..", "/etc/passwd", "a", "ab", "ab/..", "0", "00" * 20, "~", "http://example.org/ab", "ab\0cd", "ab\ncd",
    "f" * 10_000, "0x", "0x..", ID + "/../x", "%2e%2e", "💥" * 20, "-", "--help", "'; DROP TABLE file; --",
]  # fmt: skip


@pytest.mark.process
def test_nothing_outside_is_opened(tmp_path: Path) -> None:
    """Build ids and names with dots, slashes, NULs, of great length, as URLs; links out of the root; debug links to
    devices and other folders; lists and archives that lead astray: each is a reason, and opens nothing (rule R141)."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(outside / "server", ID)
    write(outside / "secret", ID)
    root.mkdir()
    (root / "secret").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "zero").symlink_to("/dev/zero")
    (root / "etc").symlink_to("/etc")
    for number, name in enumerate([b"/dev/zero", b"../../outside/server", b"..", b"secret", b"zero", b"/etc/passwd"]):
        link = name + b"\0" + bytes(-(len(name) + 1) % 4) + struct.pack("<I", 0)
        note = Section(".note.gnu.build-id", build_id_note(bytes([number]) * 20), NOTE)
        alternate = Section(".gnu_debugaltlink", name + b"\0" + bytes(20))
        (root / f"linked{number}").write_bytes(elf_file([text(), note, Section(".gnu_debuglink", link), alternate]))
    (root / "build_id_list").write_text(f"0x{ID}=../outside/server\n0x{ID}=/etc/passwd\n0x{ID}=secret\n")
    (root / "ab" / ("ab" * 19)).mkdir(parents=True)
    (root / "ab" / ("ab" * 19) / "debuginfo").write_bytes(zstandard.compress(b"\x7fELF" + bytes(1 << 27)))
    mappings = [Mapping(n << 32, (n << 32) + 0x2000, 0, name) for n, name in enumerate(HOSTILE_NAMES, 1)]
    mappings += [
        Mapping(n << 32, (n << 32) + 0x2000, 0, "/opt/server", build_id)
        for n, build_id in enumerate([*HOSTILE_IDS, ID, *(f"{i:02x}" * 20 for i in range(1, 6))], len(mappings) + 1)
    ]
    places = [Place(mapping.start + 0x1000, number) for number, mapping in enumerate(mappings, 1)]
    (tmp_path / "in.pb").write_bytes(profile(mappings, [(places, [1])]))
    arguments = [str(tmp_path / "in.pb"), "-b", str(root), "-o", str(tmp_path / "out.gz"), "--report", "json"]
    arguments += ["--cache", str(tmp_path / "cache")]
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True)
    *printed, last = done.stdout.splitlines()
    code, opened = json.loads(last)
    assert code == 0
    elsewhere = (str(outside), "/etc", "/dev", "/proc", "http", "~")
    strange = []
    for path in opened:
        if path.startswith("/proc/self/fd/"):  # what was opened by its name first, to see that it is a file
            continue
        real = path if not path.startswith(str(root)) else str(Path(path).resolve())
        if path == BOOT_ID:
            continue
        if real.startswith(elsewhere) or (".." in path.split("/") and not path.startswith(sys.prefix)):
            strange.append(path)
    assert strange == []
    assert str(root / "linked0") in opened  # or the hook saw nothing
    report = json.loads(next(line for line in printed if line.startswith("{")))
    for row in report["mappings"]:
        assert row["misses"], row["name"][:40]
    assert "as only a bomb does" in json.dumps(report)
    assert not any("link" in warning for warning in report["warnings"])


ZEROS = 1 << 30
"""What a bomb says that it expands to."""
ZLIB = zlib.compress(bytes(1 << 24), 9) * 64


@pytest.mark.parametrize(
    ("bomb", "said"),
    [
        (Section(".gnu_debugdata", lzma.compress(bytes(1 << 25))), "section .gnu_debugdata: xz stream expands"),
        (
            Section(".debug_info", struct.pack("<IIQQ", 1, 0, ZEROS, 1) + ZLIB, flags=COMPRESSED),
            "section .debug_info: claims to expand",
        ),
        (
            Section(
                ".debug_info",
                struct.pack("<IIQQ", 2, 0, ZEROS, 1) + zstandard.compress(bytes(1 << 24)),
                flags=COMPRESSED,
            ),
            "section .debug_info: claims to expand",
        ),
        (Section(".zdebug_info", b"ZLIB" + struct.pack(">Q", ZEROS) + ZLIB), "section .zdebug_info: claims to expand"),
    ],
    ids=["mini debug info", "zlib", "zstd", "zdebug"],
)
def test_bombs(bomb: Section, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sections that expand out of all proportion to their file are a reason in the report (rule R99)."""
    note = Section(".note.gnu.build-id", build_id_note(bytes.fromhex(ID)), NOTE)
    code = Section(".text", bytes(0x1000), flags=ALLOC | EXEC, address=0x1000)
    data = elf_file([code, note, bomb, Section(".debug_abbrev", b"\0")], [Segment(0x1000, 0x1000, 5, 0x1000)])
    (tmp_path / "server").write_bytes(data)
    mapping = Mapping(1 << 32, (1 << 32) + 0x1000, 0x1000, "/opt/server", ID)
    (tmp_path / "in.pb").write_bytes(profile([mapping], [([Place((1 << 32) + 16, 1)], [1])]))
    arguments = [str(tmp_path / "in.pb"), "-b", str(tmp_path / "server"), "-o", str(tmp_path / "out.gz")]
    assert main([*arguments, "--no-cache", "--report", "json"]) == 0
    report = json.loads(next(line for line in capsys.readouterr().out.splitlines() if line.startswith("{")))
    (row,) = (row for row in report["mappings"] if row["locations"])
    assert row["misses"]
    assert any(said in problem for problem in row["problems"])
