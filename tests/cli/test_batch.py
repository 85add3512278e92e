"""The command for many profiles, from end to end."""

import os
import platform
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from symbolize.batch.engines.engine import TaskLimits
from symbolize.batch.job import Plan, Shard
from symbolize.batch.manifest import State
from symbolize.cli import main
from symbolize.cli.batch import batch_parser, keep_watching, plan_of, stop_on_signals
from symbolize.core.errors import UsageError
from symbolize.symbols import DEFAULT_LIMIT, default_folder
from tests.support.batch_runs import (
    GPERFTOOLS,
    command,
    copies,
    environment,
    files_below,
    kill_group,
    make_inputs,
    members,
    outputs,
    polling,
    run,
    single_outputs,
    start,
    wait_until,
)
from tests.support.fixture_files import BINARIES
from tests.support.needs import package
from tests.support.poison import MEMORY, REASONS, Saboteur, write_poison

LEDGER = GPERFTOOLS / "ledger-gcc-split.prof"
SPECTRA = GPERFTOOLS / "spectra-clang-pie.prof"
ORDER = {"gone": "a", "fifo": "a", "hanging": "b"}
"""Beginnings of names, which are the order of the inputs."""
BIN = str(BINARIES)
BINS = ["-b", str(BINARIES / "gcc-split"), "-b", str(BINARIES / "clang-pie")]
NAMES = {
    "android/mixer.proto": "android/mixer",
    "android/mixer_named.proto": "android/mixer_named",
    "go/census.pb.gz": "go/census",
    "ledger-gcc-pie.prof": "ledger-gcc-pie",
    "ledger-gcc-split.prof": "ledger-gcc-split",
    "perf/ledger-lld": "perf/ledger-lld",
    "perf/spectra-zstd.pb.zst": "perf/spectra-zstd",
    "perf/spectra.pb": "perf/spectra",
    "perf/spectra.pb.gz": "perf/spectra.pb.gz",
    "spectra-clang-pie.prof": "spectra-clang-pie",
    "traces/one.perfetto-trace": "traces/one/heap_dump.1.7.libc.malloc",
    "traces/two.pftrace": "traces/two",
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.process
@pytest.mark.parametrize(
    "options",
    [
        ["--jobs", "2"],
        ["--jobs", "1", "--no-cache"],
        ["--jobs", "2", "--demangle", "full", "--nearest-line"],
        ["--jobs", "2", "--demangle", "none", "--no-cache", "--nearest-line"],
        ["--jobs", "1", "--demangle", "templates"],
    ],
    ids=" ".join,
)
@pytest.mark.full
def test_outputs_are_those_of_the_single_command(options: list[str], tmp_path: Path) -> None:
    """Byte for byte, whatever the options, with an empty cache and a filled one."""
    inputs = make_inputs(tmp_path / "in")
    naming = [option for option in options if option not in ("--jobs", "1", "2")]
    wanted = single_outputs(inputs, NAMES, tmp_path / "single", "-b", BIN, *naming)
    assert len(wanted) == len(NAMES) + 1
    for out in ("cold", "warm"):
        assert main(["batch", str(inputs), "-b", BIN, "--out", out, "-q", *options]) == 0
        assert outputs(Path(out)) == wanted


def profiles(folder: Path, count: int) -> Path:
    """A folder with copies of two profiles whose binaries have to be decoded."""
    for number in range(count):
        copies([LEDGER, SPECTRA][number % 2], folder, [f"p{number:03}.prof"])
    return folder


@pytest.mark.process
@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads system calls of x86-64: run it on such a machine")
@pytest.mark.full
def test_poison(tmp_path: Path) -> None:
    """Inputs of twelve bad kinds among good ones: each in quarantine for its reason, all good ones done."""
    inputs = profiles(tmp_path / "in", 20)
    names = {kind: f"{ORDER.get(kind, 'm')}-{kind}" for kind in REASONS}
    paths = {kind: write_poison(inputs, kind, name) for kind, name in names.items()}
    shutil.copyfile(LEDGER, paths["gone"])
    shutil.copyfile(LEDGER, paths["fifo"])
    saboteur = Saboteur([paths["killer"]], [paths["hanging"]])
    limits = ["--time-limit", "5", "--memory-limit", str(MEMORY), "--attempts", "2"]
    batch = start(inputs, *BINS, "--out", "out", "--no-cache", "--jobs", "2", *limits)
    saboteur.group = batch.pid
    saboteur.start()
    try:
        wait_until(lambda: saboteur.held or batch.poll() is not None)  # the last one: the first were looked at
        paths["gone"].unlink()
        paths["fifo"].unlink()
        os.mkfifo(paths["fifo"])
        _, err = batch.communicate(timeout=300)
    finally:
        saboteur.stop()
        kill_group(batch)
    assert batch.returncode == 4, err
    assert saboteur.hits == {paths["killer"]: 2}
    rows = recorded(Path("out"))
    assert {name: reason for name, (reason, _) in rows.items() if reason} == {
        name: REASONS[kind] for kind, name in names.items()
    }
    assert "took longer than 5 s" in rows[names["hanging"]][1]
    assert "SIGKILL" in rows[names["killer"]][1]
    assert rows[names["hungry"]][1].startswith("out of memory")
    assert sorted(outputs(Path("out"))) == [f"p{number:03}.pb.gz" for number in range(20)]
    # What is in quarantine is let alone, and tried again when that is asked for.
    paths["fifo"].unlink()
    before = {path: path.stat().st_mtime_ns for path in Path("out").glob("*.gz")}
    again = run(inputs, *BINS, "--out", "out", "--no-cache", "--jobs", "1", *limits)
    assert again.returncode == 0
    retried = run(inputs, *BINS, "--out", "out", "--no-cache", "--jobs", "1", *limits, "--retry-quarantined")
    assert retried.returncode == 0
    done = {"p000.pb.gz", names["killer"] + ".pb.gz", names["hanging"] + ".pb.gz"}
    assert done < {*outputs(Path("out"))}
    assert {path: path.stat().st_mtime_ns for path in before} == before


def recorded(out: Path) -> dict[str, tuple[str, str]]:
    """Reason and detail of each input, by its name, as the manifest has them."""
    with closing(sqlite3.connect(out / ".symbolize" / "manifest.sqlite")) as base:
        rows = base.execute("SELECT uri, reason, detail FROM inputs").fetchall()
    return {Path(uri).name: (reason, detail) for uri, reason, detail in rows}


@pytest.mark.process
@pytest.mark.full
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """A job killed again and again, workers and all, ends with the outputs of one left alone; nobody ever sees a part
    of one, and what was done is not done again."""
    inputs = profiles(tmp_path / "in", 30)
    make_inputs(inputs)
    assert run(inputs, *BINS, "--out", "whole", "--no-cache").returncode == 0
    wanted = outputs(Path("whole"))
    Path("out").mkdir()
    choose = random.Random(1)
    arguments = (inputs, *BINS, "--out", "out", "--no-cache", "--jobs", "2")
    times: dict[str, int] = {}
    with polling(tmp_path / "out") as poller:
        for _ in range(5):
            batch = start(*arguments)
            with suppress(subprocess.TimeoutExpired):
                batch.wait(choose.uniform(0.3, 2.5))
            kill_group(batch)
        assert run(*arguments).returncode == 0
        times = {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in wanted}
        assert run(*arguments).returncode == 0
    assert poller.bad == []
    assert poller.seen
    assert outputs(Path("out")) == wanted
    assert times == {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in wanted}
    others = {name for name in files_below(Path("out")) if name not in wanted}
    known = {".symbolize/manifest.sqlite", ".symbolize/quarantine.jsonl"}
    assert {name for name in others if not name.startswith(".symbolize/tmp/")} == known


@pytest.mark.process
@pytest.mark.full
def test_two_at_once(tmp_path: Path) -> None:
    """A second batch with the same --out says what is wrong, and leaves the first alone."""
    inputs = profiles(tmp_path / "in", 4)
    first = start("--watch", inputs, *BINS, "--out", "out", "--interval", "0.1")
    try:
        wait_until(lambda: len(outputs(Path("out"))) == 4)
        second = run(inputs, *BINS, "--out", "out")
        assert second.returncode == 2
        assert second.stderr.count("\n") == 1
        assert "another batch is writing to this folder" in second.stderr
        os.kill(first.pid, signal.SIGTERM)
        _, err = first.communicate(timeout=300)
        assert first.returncode == 0, err
    finally:
        kill_group(first)
    assert run(inputs, *BINS, "--out", "out").returncode == 0


@pytest.mark.process
@pytest.mark.full
def test_watching(tmp_path: Path) -> None:
    """New arrivals are taken when they no longer grow; quarantined ones are tried once; SIGTERM ends it in order."""
    inputs, out = profiles(tmp_path / "in", 2), Path("out")
    (inputs / "bad").write_bytes(b"?")
    log = tmp_path / "log"
    with log.open("w") as told:
        batch = subprocess.Popen(
            command("--watch", inputs, *BINS, "--out", "out", "--interval", "0.5", "--jobs", "1"),
            stderr=told,
            env=environment(),
            start_new_session=True,
        )
    try:
        wait_until(lambda: {*outputs(out)} == {"p000.pb.gz", "p001.pb.gz"})
        data = LEDGER.read_bytes()
        with (inputs / "slow.prof").open("wb") as file:
            for start_at in range(0, len(data), len(data) // 12):
                file.write(data[start_at : start_at + len(data) // 12])
                file.flush()
                time.sleep(0.2)
                assert "slow.pb.gz" not in outputs(out)
        copies(SPECTRA, inputs / "deeper", ["new.prof"])
        wait_until(lambda: {"slow.pb.gz", "deeper/new.pb.gz"} < {*outputs(out)})
        assert outputs(out)["slow.pb.gz"] == outputs(out)["p000.pb.gz"]
        os.kill(batch.pid, signal.SIGTERM)
        assert batch.wait(300) == 4
    finally:
        kill_group(batch)
    assert recorded(out)["slow.prof"] == ("", "")
    assert recorded(out)["bad"][0] == "unreadable"
    assert log.read_text().count("is not a profile") <= 2


@pytest.mark.process
@pytest.mark.full
def test_watching_an_empty_folder(tmp_path: Path) -> None:
    """Nothing has come, which is no failure."""
    Path("in").mkdir()
    batch = start("--watch", "in", "--watch", "not-yet", *BINS, "--out", "out", "--interval", "0.1", "--jobs", "1")
    try:
        said = ""
        while "holds no files" not in said or "not-yet: is missing" not in said:
            assert batch.stderr is not None
            line = batch.stderr.readline()
            assert line, said
            said += line
        os.kill(batch.pid, signal.SIGTERM)
        _, err = batch.communicate(timeout=300)
        assert batch.returncode == 0, err
    finally:
        kill_group(batch)


@pytest.mark.process
@pytest.mark.full
def test_shards_from_the_environment(tmp_path: Path) -> None:
    """The parts of a batch, numbered by an option or as an indexed job of Kubernetes is, make the whole."""
    inputs = profiles(tmp_path / "in", 12)
    parts = []
    for index, options in ((0, ["--shard", "0/3"]), (1, ["--shard", "3"]), (2, ["--shard", "3"])):
        done = subprocess.run(
            command(inputs, *BINS, "--out", "out", "-q", "--jobs", "1", *options),
            env=environment(JOB_COMPLETION_INDEX=str(index)),
            check=True,
            timeout=300,
        )
        assert done.returncode == 0
        parts.append(len(outputs(Path("out"))))
    assert parts == sorted(parts)
    assert [*outputs(Path("out"))] == [f"p{number:03}.pb.gz" for number in range(12)]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--out", "out"], "no inputs"),
        (["in"], "--out"),
        (["in", "--out", ""], "empty name"),
        (["in", "--out", "out", "-b", "nowhere"], "nowhere: no such folder"),
        (["in", "--out", "out", "--shard", "3/3"], "numbered from 0 to 2"),
        (["in", "--out", "out", "--shard", "x"], "is not I/N"),
        (["in", "--out", "out", "--shard", "3"], "JOB_COMPLETION_INDEX"),
        (["in", "--out", "out", "--time-limit", "0"], "above 0"),
        (["in", "--out", "out", "--jobs", "0"], "at least 1"),
        (["in", "--out", "in"], "is inside --out"),
        (["in/p000.prof", "--out", "in"], "is inside --out"),
        (["in", "--out", "out", "--jobs", "x"], "'x' is not a whole number"),
        (["in", "--out", "out", "--interval", "x"], "'x' is not a number"),
        (["in", "--out", "out", "--state", "in/state"], "is inside an input"),
        (["-", "--watch", "in", "--out", "out"], "cannot be watched"),
        (["in", "--out", "ftp://x/y"], "ftp://x/y"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_usage_errors(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says what is wrong, the exit code is 2, and nothing is made."""
    profiles(tmp_path / "in", 1)
    monkeypatch.delenv("JOB_COMPLETION_INDEX", raising=False)
    try:
        code = main(["batch", *arguments])
    except SystemExit as exit:
        code = exit.code  # type: ignore[assignment]
    assert code == 2
    line, *hint = capsys.readouterr().err.splitlines()
    assert told in line
    assert hint in ([], ["try: symbolize batch -h"])
    assert not Path("out").exists()


@pytest.mark.parametrize("option", ["--out", "--cache"])
def test_missing_library_of_a_url(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An output or cache at a URL that cannot be used ends the command before it reads an input."""
    profiles(tmp_path / "in", 1)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    options = ["--out", "out", "--cache", "cache", option, "s3://bucket/x"]
    assert main(["batch", "in", *options]) == 2
    assert capsys.readouterr().err == "symbolize: s3://bucket/x: URLs need fsspec: pip install fsspec s3fs\n"
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("option", "good", "bad"),
    [
        ("--metrics-port", ["0", "65535"], ["65536", "-1", "x"]),
        ("--interval", ["0.5", "999999999"], ["0", "1e9", "nan", "inf"]),
        ("--attempts", ["1"], ["0", "1.5"]),
        ("--shard", ["0/1", "999998/999999"], ["1/1", "0/0", "1000000/1000001", "/3", "-1/3"]),
    ],
)
def test_numbers_of_options(option: str, good: list[str], bad: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What is taken, and what is a usage error."""
    for text in good:
        made_plan(f"{option}={text}")
    for text in bad:
        with pytest.raises((SystemExit, UsageError)):
            made_plan(f"{option}={text}")


def made_plan(*options: str) -> Plan:
    """The plan of a command."""
    inputs = [] if "--watch" in options else ["in"]
    return plan_of(batch_parser().parse_args([*inputs, *([] if "--out" in options else ["--out", "out"]), *options]))


def test_limits_of_a_plan() -> None:
    """Those of inputs are as the options say, those of binaries at least an hour and 16 GiB."""
    plan = made_plan()
    assert (plan.limits, plan.decode_limits) == (TaskLimits(600, 4 << 30, 3), TaskLimits(3600, 16 << 30, 3))
    plan = made_plan("--time-limit", "7200", "--memory-limit", "20G", "--attempts", "5")
    assert plan.limits == plan.decode_limits == TaskLimits(7200, 20 << 30, 5)
    assert (plan.retry_quarantined, plan.again, plan.per_task, plan.shard) == (False, False, 1, Shard())
    plan = made_plan("--retry-quarantined", "--again", "--watch", "in", "--shard", "2/7")
    assert (plan.retry_quarantined, plan.again, plan.shard) == (True, True, Shard(2, 7))
    assert (plan.arguments, plan.name_list) == (["in"], sys.stdin)


@pytest.mark.process
@pytest.mark.needs("s3fs")
def test_folders_of_a_plan(tmp_path: Path) -> None:
    """Where a batch keeps what it knows: beside the outputs, where it is told to, or in the folder of the user; each
    part of it in a folder of its own. The workers of a cluster share a place that all of them have."""

    def places(*options: str) -> tuple[str, str]:
        plan = made_plan(*options)
        return tuple(os.path.relpath(each, tmp_path) for each in (plan.state, plan.config.shared))  # type: ignore[return-value]

    assert places() == places("--shard", "0/1") == ("out/.symbolize", "out/.symbolize/work")
    part = ".symbolize/shard-1-of-3"
    assert places("--shard", "1/3") == (f"out/{part}", f"out/{part}/work")
    assert places("--state", "kept") == ("kept", "kept/work")
    assert places("--state", "kept", "--shard", "1/3") == ("kept/shard-1-of-3", "kept/shard-1-of-3/work")
    on_cluster = ("--no-cache", "--dask", "tcp://h:1")
    assert places("--state", "kept", *on_cluster) == ("kept", "out/.symbolize/work")
    made = [made_plan("--out", out, *on_cluster) for out in ("s3://b/one", "s3://b/two", "s3://b/one")]
    assert made[0].state == made[2].state != made[1].state
    assert re.fullmatch(re.escape(default_folder()) + r"/batches/[0-9a-f]{16}/\.symbolize", made[0].state)
    assert made[0].config.shared == "s3://b/one/.symbolize/work"
    assert made_plan("--out", "s3://b/one").config.shared == made[0].state + "/work"


@pytest.mark.needs("s3fs")
def test_setup_of_a_plan(tmp_path: Path) -> None:
    """What workers are told: absolute paths, and a cache that they share."""
    (tmp_path / "bin").mkdir()
    config = made_plan("-b", "bin").config
    assert (config.binaries, config.out) == ((str(tmp_path / "bin"),), str(tmp_path / "out"))
    assert (config.cache, config.cache_limit) == (default_folder(), DEFAULT_LIMIT)
    assert (config.debuginfod, config.downloads) == ((), "")
    assert made_plan("--pid", "7").config.load_options.choice.pids == [7]
    assert made_plan("--no-cache").config.cache == ""
    assert made_plan("--cache", "c").config.cache == str(tmp_path / "c")
    config = made_plan("--cache", "s3://b/c", "--cache-limit", "5M", "--dask", "tcp://h:1").config
    assert (config.cache, config.cache_limit) == ("s3://b/c", 5 << 20)
    url = "http://127.0.0.1:1"
    assert made_plan("--debuginfod", url).config.downloads
    assert made_plan("--no-cache", "--dask", "tcp://h:1").per_task == 8
    with pytest.raises(UsageError, match="--dask needs a --cache that all workers reach"):
        made_plan("--dask", "tcp://h:1")
    with pytest.raises(UsageError, match="--exclude needs a pattern"):
        made_plan("--exclude", "/")


def test_looks_while_watching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look takes what is settled, does it, and tells when there is more in quarantine; what failed because of a
    server is tried again once a minute."""
    events: list[object] = []
    quarantined = iter([0, 1, 1, 2, 2, 2, 2])

    class Stopping:
        looks = 0

        def is_set(self) -> bool:
            return self.looks == 7

        def wait(self, seconds: float) -> None:
            events.append(seconds)
            self.looks += 1

    stopping: Any = Stopping()
    batch: Any = SimpleNamespace(
        take_in=lambda is_ready: events.append(is_ready("found")),
        look_after_state=lambda: events.append("state"),
        begin_generation=lambda: events.append("generation"),
        watch_binaries=lambda: 0,
        work=lambda: {State.QUARANTINED: next(quarantined)},
        retry_failed=lambda: events.append("retry"),
    )
    manifest: Any = SimpleNamespace(
        is_settled=lambda found, look: (found, look), end_scan=lambda look: events.append(("end", look))
    )
    monkeypatch.setattr(time, "monotonic", lambda: 25 * stopping.looks)
    monkeypatch.setattr("symbolize.cli.batch.LOOK_AFTER_EVERY", 100.0)
    keep_watching(batch, manifest, 3.5, stopping, lambda: events.append("failed"))
    expected: list[object] = []
    for look in range(7):
        expected += ["retry"] * (look in (3, 6)) + ["generation"] * (look == 5)
        expected += [("found", look), ("end", look), *["state"] * (look in (0, 5)), *["failed"] * (look in (1, 3)), 3.5]
    assert events == expected


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end(number: signal.Signals) -> None:
    """While watching the first time is in order, the second at once, as without; later signals mean what they did."""
    before = signal.getsignal(number)
    with stop_on_signals(True) as stopping:
        assert not stopping.is_set()
        os.kill(os.getpid(), number)
        assert stopping.is_set()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    with stop_on_signals(False) as stopping, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)
    assert not stopping.is_set()
    assert signal.getsignal(number) == before
    with stop_on_signals(True) as stopping:  # the one that ends patience comes after the last task
        stopping.is_out_of_patience = True
        stopping.end_patience()
        os.kill(os.getpid(), number)
        assert not stopping.is_set()


@pytest.mark.process
def test_no_address_of_a_scheduler(tmp_path: Path) -> None:
    """The command ends at once."""
    package("distributed")
    inputs = profiles(tmp_path / "in", 1)
    ended = run(inputs, "--out", "out", "--no-cache", "--dask", "nonsense")
    assert ended.returncode == 2
    assert "nonsense: not the address of a dask scheduler" in ended.stderr


@pytest.mark.process
def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 done, 3 too few names, 4 some in quarantine or missing, 1 as a whole, 130 interrupted."""
    inputs = profiles(tmp_path / "in", 2)
    assert main(["batch", str(inputs), *BINS, "-q", "--out", "a", "--fail-under", "1"]) == 0
    capsys.readouterr()
    assert main(["batch", str(inputs), "-q", "--out", "b", "--fail-under", "99"]) == 3
    assert capsys.readouterr().err == "symbolize: coverage 0.0 % is below --fail-under 99\n"
    assert main(["batch", str(inputs), "nowhere.prof", *BINS, "-q", "--out", "a"]) == 4
    Path("in/bad").write_bytes(b"?")
    assert main(["batch", str(inputs), *BINS, "-q", "--out", "a", "--fail-under", "99"]) == 4
    Path("file").touch()
    assert main(["batch", str(inputs), *BINS, "-q", "--out", "file/out"]) == 1
    assert main(["batch", str(inputs), *BINS, "-q", "--out", "c", "--proguard-map", "nowhere.txt"]) in (1, 2)


@pytest.mark.process
@pytest.mark.full
def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C and SIGTERM end it with 130 and leave no worker; it goes on later."""
    inputs = profiles(tmp_path / "in", 6)
    paths = sorted(inputs.iterdir())
    for number in (signal.SIGINT, signal.SIGTERM):
        saboteur = Saboteur([], [paths[3]])
        batch = start(inputs, *BINS, "--out", "out", "--no-cache", "--jobs", "2", "--again")
        try:
            saboteur.start()
            wait_until(lambda held=saboteur.held: held)
            os.kill(batch.pid, number)
            _, err = batch.communicate(timeout=300)
            assert batch.returncode == 130
            assert err.splitlines()[-1] == "symbolize: interrupted"
        finally:
            saboteur.stop()
        wait_until(lambda pid=batch.pid: not members(pid))
    assert run(inputs, *BINS, "--out", "out", "--no-cache").returncode == 0
    assert len(outputs(Path("out"))) == 6


@pytest.mark.process
@pytest.mark.full
def test_disk_full(tmp_path: Path) -> None:
    """It ends with 1 and says why; with space it goes on, and what was done is kept."""
    inputs = profiles(tmp_path / "in", 60)
    out = tmp_path / "out"
    out.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", out], check=False).returncode:
        pytest.skip("file systems cannot be mounted: run it as root with CAP_SYS_ADMIN")
    try:
        full = run(inputs, *BINS, "--out", out, "--no-cache", "--jobs", "2")
        assert full.returncode == 1
        assert full.stderr.splitlines()[-1].endswith(("No space left on device", "database or disk is full"))
        assert "Traceback" not in full.stderr
        few = outputs(out)
        assert len(few) < 60
        subprocess.run(["mount", "-o", "remount,size=50m", out], check=True)
        times = {name: (out / name).stat().st_mtime_ns for name in few}
        more = run(inputs, *BINS, "--out", out, "--no-cache", "--jobs", "2")
        assert more.returncode == 0
        made = outputs(out)
        assert len(made) == 60
        assert {*made.values()} == {made["p000.pb.gz"], made["p001.pb.gz"]}
        kept = [name for name in few if times[name] == (out / name).stat().st_mtime_ns]
        assert len(kept) >= len(few) - 4
    finally:
        subprocess.run(["umount", "-l", out], check=True)
