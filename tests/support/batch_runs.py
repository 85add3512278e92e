"""Inputs of every format over the committed binaries, and the batch command as a process."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import zstandard
from elftools.elf.elffile import ELFFile

from symbolize.batch.manifest import State
from symbolize.cli import main
from tests.support import perfetto_writer as w
from tests.support.fixture_files import BINARIES, FIXTURES, segments
from tests.support.messages import profile_pb2

ROOT = Path(__file__).parent.parent.parent
ENDING = ".pb.gz"
PERF = FIXTURES / "profiles" / "perf"
GPERFTOOLS = FIXTURES / "profiles" / "gperftools"
LEDGER = GPERFTOOLS / "ledger-gcc-split.prof"
SPECTRA = PERF / "spectra-gcc-pie.pb.gz"
BINS = [BINARIES / "gcc-split", BINARIES / "gcc-pie"]
"""Folders with the binaries of `LEDGER` and `SPECTRA`."""
ALL_DONE = {State.NEW: 0, State.SCANNED: 0, State.QUARANTINED: 0}


def trace(*pids: int) -> bytes:
    """A Perfetto trace with a heap dump of each process, whose addresses lie in `ledger`."""
    ledger = BINARIES / "gcc-pie" / "ledger"
    with ledger.open("rb") as file:
        elf = ELFFile(file)
        functions = [
            symbol["st_value"]
            for symbol in elf.get_section_by_name(".symtab").iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"] > 30
        ]
        notes = elf.get_section_by_name(".note.gnu.build-id")
        build_id = b"" if notes is None else bytes.fromhex(next(notes.iter_notes())["n_desc"])
    ((offset, vaddr, size),) = segments(ledger)
    code = sorted({value for value in functions if vaddr <= value < vaddr + size})[:40]
    page = offset // 4096 * 4096
    start = 0x7F0000000000 + page
    mapping = w.mapping(1, int(bool(build_id)), start, start + 0x100000, page, 0, vaddr - offset, [1])
    state = w.interned(
        builds={1: build_id},
        paths={1: "ledger"},
        mappings=[mapping],
        frames=[w.frame(number, 0, 1, value + 5) for number, value in enumerate(code, 1)],
        callstacks=[w.callstack(number, [number]) for number in range(1, len(code) + 1)],
    )
    dumps = [w.heap_dump(pid, [w.heap_sample(row, 8 * pid, 0, 1) for row in range(1, len(code) + 1)]) for pid in pids]
    tree = w.process_tree({pid: [f"/bin/p{pid}"] for pid in pids})
    return tree + w.packet(1, w.CLEARED, state) + w.heap_packet(dumps)


def make_inputs(folder: Path) -> Path:
    """Profiles of every format in `folder`: some in folders of their own, two of one name, one that has its names."""
    plain = gzip.decompress((PERF / "spectra-gcc-pie.pb.gz").read_bytes())
    files = {
        "perf/spectra.pb.gz": (PERF / "spectra-gcc-pie.pb.gz").read_bytes(),
        "perf/spectra.pb": plain,
        "perf/spectra-zstd.pb.zst": zstandard.ZstdCompressor().compress(plain),
        "perf/ledger-lld": (PERF / "ledger-clang-nopie-dwarf4-lld.pb.gz").read_bytes(),
        "traces/two.pftrace": trace(7, 8),
        "traces/one.perfetto-trace": trace(7),
        "go/census.pb.gz": (FIXTURES / "profiles" / "go" / "census.pb.gz").read_bytes(),
    }
    for path in sorted((FIXTURES / "simpleperf").glob("*.proto"))[:2]:
        files[f"android/{path.name}"] = path.read_bytes()
    for name in ("ledger-gcc-split.prof", "spectra-clang-pie.prof", "ledger-gcc-pie.prof"):
        files[name] = (GPERFTOOLS / name).read_bytes()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def outputs(folder: Path) -> dict[str, bytes]:
    """The outputs in a folder, by their names below it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*" + ENDING))
        if path.is_file() and not path.relative_to(folder).parts[0].startswith(".")
    }


def files_below(folder: Path) -> list[str]:
    """All files in a folder, the batch's own too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def single_outputs(inputs: Path, names: dict[str, str], folder: Path, *options: str) -> dict[str, bytes]:
    """What the command for one profile makes of each input, by the name that a batch has for it in `names`."""
    made: dict[str, bytes] = {}
    for source, name in names.items():
        path = folder / (name + ENDING)
        path.parent.mkdir(parents=True, exist_ok=True)
        if main([str(inputs / source), "-q", "-o", str(path), *options]) == 2:  # several profiles
            path.parent.joinpath(path.name.removesuffix(ENDING)).mkdir()
            assert main([str(inputs / source), "-q", "-o", str(folder / name), *options]) == 0
    made.update(outputs(folder))
    return made


def command(*arguments: str | Path) -> list[str]:
    """The batch command."""
    return [sys.executable, "-m", "symbolize", "batch", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """The environment of a command."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def start(*arguments: str | Path, log: Any = subprocess.PIPE, **options: Any) -> "subprocess.Popen[str]":
    """The batch command in a process group of its own; what it says goes to `log`."""
    return subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        text=True,
        env=environment(),
        start_new_session=True,
        **options,
    )


def run(*arguments: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    """The batch command as a process, to its end."""
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, env=environment(), timeout=300, check=False, **options
    )


def kill_group(process: "subprocess.Popen[Any]") -> None:
    """SIGKILL to the command and all its workers; waits until none of them is left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    while members(process.pid):
        time.sleep(0.01)


def members(group: int) -> list[int]:
    """The living processes of a process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, of_group, *_ = path.read_text().rpartition(")")[2].split()
            if int(of_group) == group and state not in "ZX":
                found.append(int(path.parent.name))
    return found


class Poller(threading.Thread):
    """Reads every output that it sees in a folder over and over, as somebody who cannot wait. `bad` are those that were
    not whole."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.bad: list[str] = []
        self.seen: set[str] = set()
        self._stopping = threading.Event()

    def run(self) -> None:
        """Read until stopped."""
        while not self._stopping.wait(0.005):
            for path in self.folder.rglob("*" + ENDING):
                with suppress(FileNotFoundError):
                    data = path.read_bytes()
                    self.seen.add(str(path))
                    try:
                        profile_pb2.Profile.FromString(gzip.decompress(data))
                    except Exception as error:
                        self.bad.append(f"{path}: {error!r}")

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self.join()


@contextmanager
def polling(folder: Path) -> Iterator[Poller]:
    """A reader who looks on."""
    poller = Poller(folder)
    poller.start()
    try:
        yield poller
    finally:
        poller.stop()


def wait_until(condition: Any, seconds: float = 300) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)


def copies(source: Path, folder: Path, names: Sequence[str]) -> None:
    """Copies of a profile."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(source, folder / name)
