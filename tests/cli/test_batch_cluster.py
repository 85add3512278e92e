"""The command for many profiles on a dask cluster: a scheduler and workers in processes of their own, which die."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from symbolize.batch.engines.cluster import SILENCE
from symbolize.binaries.debuginfod import Limits
from symbolize.cli import main
from symbolize.elf import read_build_id
from tests.support.batch_runs import (
    GPERFTOOLS,
    PERF,
    copies,
    environment,
    kill_group,
    make_inputs,
    outputs,
    run,
    start,
    wait_until,
)
from tests.support.fixture_files import BINARIES
from tests.support.http_server import HttpServer, Request
from tests.support.needs import package

distributed = package("distributed")

pytestmark = pytest.mark.process
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
        file = folder / "scheduler.json"
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads((folder / "scheduler.json").read_text())["address"]
        options = ("--nthreads", "1", "--nworkers", "1", "--no-dashboard", "--local-directory", str(folder))
        for _ in range(workers):
            begin("worker", *options)
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=120)
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
        with distributed.Client(self.address, set_as_default=False) as client:
            wait_until(lambda: self._ended.is_set() or outputs(self.out))
            while not self._ended.is_set() and self.kills < 6:
                with suppress(Exception):
                    workers = client.run(os.getpid, on_error="ignore")
                    os.kill(self._choose.choice(sorted(workers.values())), signal.SIGKILL)
                    self.kills += 1
                self._ended.wait(self._choose.uniform(0.2, 2))

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self.join()


@pytest.mark.full
def test_files_of_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver fetches each file once, into its folder, which the workers reach; what a server does not hand out is
    asked for by the next run (rule R285)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "driver"))
    copies(PERF / "spectra-gcc-pie.pb.gz", tmp_path / "in", [f"{number}.pb.gz" for number in range(12)])
    files = {read_build_id(str(path)): path for path in (BINARIES / "gcc-pie").iterdir()}
    are_there = False

    def behave(request: Request) -> None:
        path = files.get(request.path.split("/")[2])
        if path is None or not are_there:
            request.reply(404 if path is None else 503)
        else:
            request.reply(200, path.read_bytes())

    monkeypatch.setattr("symbolize.binaries.debuginfod.client.Limits", lambda: Limits(first_wait=0.01))
    assert main(["batch", "in", "-b", str(BINARIES / "gcc-pie"), "--out", "local", "--no-cache", "-q"]) == 0
    with HttpServer(behave) as server, cluster(tmp_path, 1) as address:
        arguments = ["batch", "in", "--out", "out", "--no-cache", "--dask", address, "--debuginfod", server.url, "-q"]
        assert main(arguments) == 1
        are_there = True
        server.requests.clear()
        assert main(arguments) == 0
        assert outputs(Path("out")) == outputs(Path("local"))
        assert len(server.asked) == len(set(server.asked)) > 1


@pytest.mark.full
def test_workers_that_die(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are killed at random while a batch runs: every output is that of a local run."""
    monkeypatch.chdir(tmp_path)
    inputs = make_inputs(tmp_path / "in")
    for number in range(60):
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


@pytest.mark.parametrize("watch", [[], ["--watch"]], ids=["once", "watch"])
@pytest.mark.full
def test_a_scheduler_that_hangs(watch: list[str], tmp_path: Path) -> None:
    """SIGTERM ends the batch long before a scheduler that does not answer counts as lost."""
    copies(GPERFTOOLS / "ledger-gcc-split.prof", tmp_path / "in", [f"{number}.prof" for number in range(60)])
    with cluster(tmp_path, 1) as address:
        scheduler = scheduler_of(address)
        arguments = [
            *watch,
            str(tmp_path / "in"),
            *BINS,
            "--out",
            str(tmp_path / "out"),
            "--no-cache",
            "--dask",
            address,
        ]
        batch = start(*arguments, "--log-json", str(tmp_path / "log"))
        try:
            wait_until(lambda: (tmp_path / "log").exists() and '"pass"' in (tmp_path / "log").read_text())
            os.kill(scheduler, signal.SIGSTOP)
            batch.send_signal(signal.SIGTERM)
            began = time.monotonic()
            batch.communicate(timeout=SILENCE)
            assert time.monotonic() - began < SILENCE / 2
            assert batch.returncode == (0 if watch else 130)
        finally:
            os.kill(scheduler, signal.SIGCONT)
            kill_group(batch)


def scheduler_of(address: str) -> int:
    """The process id of a scheduler."""
    with distributed.Client(address, set_as_default=False) as client:
        return int(client.run_on_scheduler(os.getpid))
