"""The command for many profiles on a dask cluster: a scheduler and workers in processes of their own, which die."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from symbolize.cli import main
from tests.support.batch_runs import GPERFTOOLS, copies, environment, make_inputs, outputs, run, wait_until
from tests.support.fixture_files import BINARIES

pytest.importorskip("distributed")
BINS = ["-b", str(BINARIES / "gcc-split"), "-b", str(BINARIES / "clang-pie"), "-b", str(BINARIES / "gcc-pie")]


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """The address of a scheduler with so many workers, on the loopback interface."""
    where = ["--scheduler-file", str(folder / "scheduler.json")]
    quiet = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical"}
    processes: list[subprocess.Popen[bytes]] = []

    def begin(kind: str, *options: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *where, *options]
        process = subprocess.Popen(
            command,
            env=environment(**quiet),
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=(folder / f"{kind}{len(processes)}.log").open("wb"),
        )
        processes.append(process)

    try:
        begin("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_until(lambda: (folder / "scheduler.json").exists())
        address = json.loads((folder / "scheduler.json").read_text())["address"]
        options = ("--nthreads", "1", "--nworkers", "1", "--no-dashboard", "--local-directory", str(folder))
        for _ in range(workers):
            begin("worker", *options)
        yield address
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Killer(threading.Thread):
    """Kills workers at random once there are outputs. One that has just been started is spared: its nanny would give it
    up for good."""

    def __init__(self, address: str, out: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.out = out
        self.kills = 0
        self._choose = random.Random(seed)
        self._ended = threading.Event()

    def run(self) -> None:
        """Kill until stopped."""
        import distributed

        with distributed.Client(self.address, set_as_default=False) as client:
            wait_until(lambda: self._ended.is_set() or outputs(self.out))
            while not self._ended.is_set() and self.kills < 12:
                with suppress(Exception):
                    workers = client.run(os.getpid, on_error="ignore")
                    os.kill(self._choose.choice(sorted(workers.values())), signal.SIGKILL)
                    self.kills += 1
                self._ended.wait(self._choose.uniform(0.2, 2))

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self.join()


def test_workers_that_die(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are killed at random while a batch runs: every output is that of a local run."""
    monkeypatch.chdir(tmp_path)
    inputs = make_inputs(tmp_path / "in")
    for number in range(200):
        name = ["ledger-gcc-split.prof", "spectra-clang-pie.prof"][number % 2]
        copies(GPERFTOOLS / name, inputs / "more", [f"p{number:03}.prof"])
    assert run(inputs, *BINS, "--out", "local", "--no-cache").returncode == 0
    arguments = [str(inputs), *BINS, "--out", "out", "--no-cache", "--attempts", "20"]
    with cluster(tmp_path, 2) as address:
        killer = Killer(address, tmp_path / "out", seed=1)
        killer.start()
        try:
            assert main(["batch", *arguments, "--dask", address]) == 0
        finally:
            killer.stop()
    assert killer.kills > 0
    assert outputs(Path("out")) == outputs(Path("local"))
