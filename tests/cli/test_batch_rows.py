"""Rows of the batch command whose processes are killed."""

import os
import random
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.batch_runs import BINS, LEDGER, copies, files_below, kill_group, outputs, run, start
from tests.support.needs import package

parquet = package("pyarrow.parquet")

pytestmark = pytest.mark.process

DAY = 86_400
PROFILES = 12
BINARIES = ("-b", BINS[0])


@pytest.mark.full
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """A job that is killed again and again, while its profiles change their days, ends with one whole file for each
    profile, those of a run left alone; nobody ever reads a part of one, and what is done is not done again."""
    inputs, out, rows = tmp_path / "in", tmp_path / "out", tmp_path / "rows"
    names = [f"service-{number % 3}/p{number:03}.prof" for number in range(PROFILES)]
    for number in range(3):
        (inputs / f"service-{number}").mkdir(parents=True)
    copies(LEDGER, inputs, names)
    arguments = (inputs, *BINARIES, "--out", out, "--parquet", rows, "--no-cache", "--jobs", "2", "-q")
    choose = random.Random(2)
    for day in range(1, 4):
        for name in choose.sample(names, PROFILES // 2):
            os.utime(inputs / name, (day * DAY, day * DAY))
        batch = start(*arguments)
        with suppress(subprocess.TimeoutExpired):
            batch.wait(choose.uniform(0.8, 2.5))
        kill_group(batch)
        for name in files_below(rows):
            if name.endswith(".parquet"):
                assert len(parquet.read_table(rows / name, partitioning=None))
    assert run(*arguments).returncode == 0
    left = run(inputs, *BINARIES, "--out", tmp_path / "other", "--parquet", tmp_path / "whole", "--no-cache", "-q")
    assert left.returncode == 0
    assert len(outputs(out)) == PROFILES
    wanted = {name: (tmp_path / "whole" / name).read_bytes() for name in files_below(tmp_path / "whole")}
    found = {name: (rows / name).read_bytes() for name in files_below(rows) if not name.startswith(".symbolize/tmp/")}
    assert len(wanted) == PROFILES and found == wanted
    times = {name: (rows / name).stat().st_mtime_ns for name in found}
    assert run(*arguments).returncode == 0
    assert times == {name: (rows / name).stat().st_mtime_ns for name in found}
