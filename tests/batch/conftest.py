"""Inputs of a batch, and an object store: S3 as moto serves it, on the loopback interface."""

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.batch_runs import LEDGER, SPECTRA, copies
from tests.support.buckets import Bucket

COUNT = itertools.count()


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


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The address of an S3 server in a process of its own, because tests measure the memory of theirs."""
    pytest.importorskip("moto.server")
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        yield server.stdout.readline().strip()
        server.stdin.close()


@pytest.fixture
def store(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The server, as the environment names it."""
    s3fs = pytest.importorskip("s3fs")
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


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """A folder with three profiles of two programs."""
    copies(LEDGER, tmp_path / "in", ["a.prof", "b.prof"])
    copies(SPECTRA, tmp_path / "in", ["c.pb.gz"])
    return tmp_path / "in"
