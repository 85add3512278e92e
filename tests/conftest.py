"""What holds for all tests, and an object store: S3 as moto serves it, on the loopback interface."""

import gc
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import engine

from tests.support.buckets import Bucket
from tests.support.needs import PACKAGES, missing, package
from tests.support.seeds import FULL_EXAMPLES

COUNT = itertools.count()

# The same examples each time, however busy the machine is.
settings.register_profile(
    "full",
    derandomize=True,
    deadline=None,
    max_examples=FULL_EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
engine.MAX_SHRINKING_SECONDS = 20  # it has no setting: a failure is told of before any limit of a CI ends it
settings.register_profile("plain", settings.get_profile("full"), max_examples=FULL_EXAMPLES // 4)

LEAVES_OUT = re.compile(r"\bnot\b.*\bfull\b")
"""An expression of markers without those of the full run: `not full`, `not (oracle or full)`."""

SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
sys.stdin.read()
"""
"""Serves S3 until its standard input ends."""


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples property tests take. Commands that tests start keep their compiled modules, or each of
    thousands compiles them again."""
    settings.load_profile("plain" if LEAVES_OUT.search(config.option.markexpr) else "full")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_make_parametrize_id(val: object) -> str | None:
    """A name for long bytes that is the same in each process: what is compressed may hold the time."""
    return f"{len(val)} bytes" if isinstance(val, bytes) and len(val) > 16 else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Skip a test that needs what is missing. Mark one with the store as one of processes, and one that needs another
    program as one with an oracle, unless it is one of processes."""
    if "endpoint" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.process)
    names = [name for mark in item.iter_markers("needs") for name in mark.args]
    if reason := missing(names):
        item.add_marker(pytest.mark.skip(reason=reason))
    if not PACKAGES.issuperset(names) and item.get_closest_marker("process") is None:
        item.add_marker(pytest.mark.oracle)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count what a worker of pytest-xdist leaves out."""
    output = getattr(items[0].config, "workeroutput", None) if items else None
    if output is not None:
        output["deselected"] = output.get("deselected", 0) + len(items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Have the summary say how many that are, the same in every worker, as it does without workers."""
    if count := getattr(node, "workeroutput", {}).get("deselected"):
        node.config.pluginmanager.get_plugin("terminalreporter").stats.setdefault("deselected", [node] * count)


def pytest_collection_finish() -> None:
    """Spare collections of garbage, of which a batch makes many, the hundred thousands of objects of the tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _children_hear_ctrl_c() -> Iterator[None]:
    """Processes that tests start have SIGINT's default disposition, also under `nohup` and in jobs of a CI.

    A signal that is ignored stays so in what a process starts; one that is caught, by whatever, does not.
    """
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: None)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands keep their symbol tables in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def _no_warning_of_a_slow_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are those of an installation with the compiled core, also where the tests run without it."""
    monkeypatch.setattr("symbolize.core.cursor.COMPILED", True)


@pytest.fixture(autouse=True)
def _no_folders_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the folders that a test names are searched."""
    for variable in ("PPROF_BINARY_PATH", "PERFETTO_BINARY_PATH", "ANDROID_PRODUCT_OUT"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorded path leads to no file of the machine that runs the tests."""
    monkeypatch.setattr("symbolize.binaries.this_machine.FileSystem.regular", lambda *_: None)


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands have the options that a test gives them."""
    monkeypatch.setenv("SYMBOLIZE_NO_CONFIG", "1")


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The address of an S3 server in a process of its own, because tests measure the memory of theirs."""
    package("moto.server")
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        yield server.stdout.readline().strip()
        server.stdin.close()


@pytest.fixture
def store(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The server, as the environment names it."""
    s3fs = package("s3fs")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    s3fs.S3FileSystem.clear_instance_cache()
    yield endpoint
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(store: str) -> Bucket:
    """An empty bucket."""
    import s3fs

    system = s3fs.S3FileSystem(use_listings_cache=False)
    name = f"bucket-{next(COUNT)}"
    system.mkdir(name)
    return Bucket(f"s3://{name}", system)
