"""The command for many profiles, from end to end."""

import gzip
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from symbolize.cli import main
from tests.support.batch_runs import (
    GPERFTOOLS,
    PERF,
    copies,
    files_below,
    holders,
    kill_group,
    make_inputs,
    outputs,
    polling,
    run,
    single_outputs,
    start,
    trace,
    wait_until,
)
from tests.support.fixture_files import BINARIES

BIN = str(BINARIES)
NAMES = {
    "android/mixer.proto": "android/mixer.proto",
    "android/mixer_named.proto": "android/mixer_named.proto",
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
    monkeypatch.setattr("symbolize.cursor.COMPILED", True)


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
def test_outputs_are_those_of_the_single_command(options: list[str], tmp_path: Path) -> None:
    """Byte for byte, whatever the options, with an empty cache and a filled one."""
    inputs = make_inputs(tmp_path / "in")
    naming = [option for option in options if option not in ("--jobs", "1", "2")]
    wanted = single_outputs(inputs, NAMES, tmp_path / "single", "-b", BIN, *naming)
    assert len(wanted) == len(NAMES) + 1
    for out in ("cold", "warm"):
        assert main(["batch", str(inputs), "-b", BIN, "--out", out, "-q", *options]) == 0
        assert outputs(Path(out)) == wanted
