"""Inputs that cannot be symbolized, of twelve kinds, and what a batch says of each."""

import fcntl
import gzip
import os
import random
import shutil
import signal
import struct
import threading
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tests.support.batch_runs import PERF, members
from tests.support.fixture_files import BINARIES
from tests.support.perfetto_writer import varint

SOUND = PERF / "spectra-gcc-pie.pb.gz"
OPENAT = 257
"""The system call's number on x86-64."""
MEMORY = 300 << 20
"""What a batch with poison may use for an input."""


def absurd_lengths() -> bytes:
    """A pprof file whose fields say that they are longer than anything."""
    return b"\x0a\x04\x08\x01\x10\x02" + b"\x12" + varint((1 << 63) - 5) + b"\x08\x01"


def bomb(size: int, random_bytes: int) -> bytes:
    """A pprof file that becomes a string of `size` bytes, so many of them random in each MiB."""
    piece = random.Random(0).randbytes(random_bytes) + bytes((1 << 20) - random_bytes)
    head = b"\x0a\x04\x08\x01\x10\x02\x32\x00\x32" + varint(size)
    packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    made = [packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)]
    # After a full flush the same bytes are packed in the same way, so that once is enough.
    made += [packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)] * (size >> 20)
    check = zlib.crc32(head)
    for _ in range(size >> 20):
        check = zlib.crc32(piece, check)
    ending = struct.pack("<II", check, len(head) + len(piece) * (size >> 20) & 0xFFFFFFFF)
    return b"\x1f\x8b\x08" + bytes(7) + b"".join(made) + packer.flush() + ending


REASONS = {
    "empty": "unreadable",
    "random": "unreadable",
    "truncated": "unreadable",
    "cut": "unreadable",
    "text": "unreadable",
    "elf": "unreadable",
    "bomb": "unreadable",
    "hungry": "memory",
    "absurd": "unreadable",
    "fifo": "unreadable",
    "gone": "unreadable",
    "killer": "crash",
    "hanging": "time",
}
"""Why a batch gives up each kind."""
ACTED_ON = "gone", "fifo", "killer", "hanging"
"""Kinds that are sound until somebody acts: removes the file, makes it a pipe, kills or holds up who opens it."""


def write_poison(folder: Path, kind: str, name: str, seed: int = 0) -> Path:
    """An input of a kind."""
    data = SOUND.read_bytes()
    path = folder / name
    made = {
        "empty": lambda: b"",
        "random": lambda: random.Random(seed).randbytes(5000),
        "truncated": lambda: data[: len(data) // 2 + seed],
        "cut": lambda: gzip.decompress(data)[: 3001 + seed],
        "text": lambda: b'{"profile": [1, 2, 3]}\n',
        "elf": lambda: (BINARIES / "gcc-pie" / "ledger").read_bytes(),
        "bomb": lambda: bomb(1 << 30, 0),
        "hungry": lambda: bomb(MEMORY * 2, 1 << 14),
        "absurd": absurd_lengths,
    }
    if kind in ACTED_ON:
        shutil.copyfile(SOUND, path)
    else:
        path.write_bytes(made[kind]())
    return path


class Saboteur(threading.Thread):
    """Kills or holds up the processes of a group that open certain files.

    Who opens a file of which another process has a lease waits for that process. `hits` counts how often each file was
    opened by somebody who was killed, `held` the files whose readers wait.
    """

    def __init__(self, killing: Iterable[Path], holding: Iterable[Path]) -> None:
        super().__init__(daemon=True)
        signal.signal(signal.SIGIO, signal.SIG_IGN)  # sent to those whose lease is in the way
        self.group = 0
        self.hits: dict[Path, int] = {}
        self.held: set[Path] = set()
        self._holding = set(holding)
        self._files = {path: os.open(path, os.O_RDWR) for path in [*killing, *self._holding]}
        for file in self._files.values():
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        self._stopping = threading.Event()

    def run(self) -> None:
        """Look until stopped."""
        while not self._stopping.wait(0.005):
            for path, file in self._files.items():
                if fcntl.fcntl(file, fcntl.F_GETLEASE) == fcntl.F_WRLCK:
                    continue
                if path in self._holding:
                    self.held.add(path)
                    continue
                for pid in openers(path, self.group):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    self.hits[path] = self.hits.get(path, 0) + 1
                    while pid in members(self.group):
                        time.sleep(0.001)
                    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
                    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)

    def stop(self) -> None:
        """End the thread and give up the leases."""
        self._stopping.set()
        self.join()
        for file in self._files.values():
            os.close(file)


def openers(path: Path, group: int) -> list[int]:
    """The processes of a group that are about to open a file."""
    found = []
    for pid in members(group):
        with suppress(OSError, ValueError):
            number, _, address, *_ = Path(f"/proc/{pid}/syscall").read_text().split()
            if int(number) == OPENAT:
                with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                    memory.seek(int(address, 16))
                    if memory.read(4096).split(b"\0")[0] == os.fsencode(path):
                        found.append(pid)
    return found
