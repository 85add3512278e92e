"""Debug files that clients send."""

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from http import HTTPStatus as Status
from pathlib import Path

import pytest

from tests.support.fixture_files import FIXTURES
from tests.support.needs import package
from tests.support.symbol_server import Answer, HttpClient, build_id, job, serving, settings

package("starlette")
package("uvicorn")

from symbolize.serve import uploads

pytestmark = pytest.mark.process

LEDGER, SPECTRA = (FIXTURES / "bin" / "gcc-pie" / name for name in ("ledger", "spectra"))
TOKEN = "a-token-of-the-tests"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The folder for uploads."""
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept"


@pytest.fixture
def server(tmp_path: Path, kept: Path) -> Iterator[HttpClient]:
    """A server that keeps uploads, some 400 KB in all."""
    with serving(settings(tmp_path, uploads=str(kept), token=TOKEN, uploads_limit=400_000)) as running:
        yield running


def send(server: HttpClient, path: Path, kind: str, asked: str = "", data: bytes | None = None) -> Answer:
    """Send a file."""
    body = path.read_bytes() if data is None else data
    return server.ask("PUT", f"/buildid/{asked or build_id(path)}/{kind}", body, Authorization=f"Bearer {TOKEN}")


def files(folder: Path) -> list[Path]:
    """The files below a folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_kept_where_debuggers_look(server: HttpClient, kept: Path) -> None:
    """Below .build-id, whole, readable, and never replaced; found from then on, without a walk of everything."""
    asked = build_id(LEDGER)
    body = json.dumps(job(LEDGER, [0x25D0])).encode()
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert server.ask("GET", f"/buildid/{asked}/executable").status == Status.NOT_FOUND
    assert b'"function"' not in server.ask("POST", f"/{TOKEN}/symbolicate/v5", body).body
    assert send(server, LEDGER, "executable").status == Status.CREATED
    (path,) = files(kept)
    assert path == kept / ".build-id" / asked[:2] / asked[2:]
    assert path.read_bytes() == LEDGER.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o644
    assert send(server, LEDGER, "executable").status == Status.OK
    assert server.ask("GET", f"/buildid/{asked}/executable").body == LEDGER.read_bytes()
    assert b'"function"' in server.ask("POST", "/symbolicate/v5", body, **token).body


@pytest.mark.needs("objcopy", "strip")
def test_names_get_better_with_debug_files(server: HttpClient, tmp_path: Path) -> None:
    """A debug file of a program that is open counts from then on."""
    stripped, debug = tmp_path / "ledger", tmp_path / "ledger.debug"
    subprocess.run(["strip", "-o", stripped, LEDGER], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", LEDGER, debug], check=True)
    body = json.dumps(job(LEDGER, [0x25D0])).encode()
    path = f"/{TOKEN}/symbolicate/v5"
    assert send(server, stripped, "executable").status == Status.CREATED
    before = server.ask("POST", path, body).json()["results"][0]
    assert "line" not in before["stacks"][0][0]
    assert send(server, debug, "debuginfo").status == Status.CREATED
    assert "line" in server.ask("POST", path, body).json()["results"][0]["stacks"][0][0]


@pytest.mark.needs("objcopy")
def test_what_is_not_kept(server: HttpClient, kept: Path, tmp_path: Path) -> None:
    """Files that are cut, of another build, of another kind, or none; a name for them leads nowhere else."""
    debug = tmp_path / "ledger.debug"
    subprocess.run(["objcopy", "--only-keep-debug", LEDGER, debug], check=True)
    whole = LEDGER.read_bytes()
    for data, asked, kind, problem in (
        (whole[:-1000], "", "executable", "section headers"),
        (whole[:64], "", "executable", ""),
        (whole, build_id(SPECTRA), "executable", "has the build id"),
        (debug.read_bytes(), "", "executable", "has no code"),
        (b"", "", "executable", "no ELF file"),
        (b"#!/bin/sh\n", "", "executable", "no ELF file"),
    ):
        answer = send(server, LEDGER, kind, asked, data)
        assert answer.status == Status.BAD_REQUEST
        assert problem in answer.json()["title"]
    for path in ("/buildid/../../etc/executable", "/buildid/%2e%2e/executable", "/buildid/..%2f..%2fx/executable"):
        answer = server.ask("PUT", path, whole, Authorization=f"Bearer {TOKEN}")
        assert answer.status in (Status.BAD_REQUEST, Status.NOT_FOUND, Status.METHOD_NOT_ALLOWED)
    packed = server.ask(
        "PUT",
        f"/buildid/{build_id(LEDGER)}/executable",
        whole,
        Authorization=f"Bearer {TOKEN}",
        Content_Encoding="gzip",
    )
    assert packed.status == Status.UNSUPPORTED_MEDIA_TYPE
    assert files(kept) == []


@pytest.mark.parametrize("has_length", [True, False])
def test_room(server: HttpClient, kept: Path, has_length: bool) -> None:
    """What is too much in all is refused, whether it says how long it is or comes in chunks, and leaves nothing."""
    assert send(server, LEDGER, "executable").status == Status.CREATED
    length = {} if has_length else {"Transfer_Encoding": "chunked"}
    data = SPECTRA.read_bytes()
    body = data if has_length else b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)
    path = f"/buildid/{build_id(SPECTRA)}/executable"
    answer = server.ask("PUT", path, body, Authorization=f"Bearer {TOKEN}", **length)
    assert answer.status == Status.INSUFFICIENT_STORAGE
    assert len(files(kept)) == 1
    next(path for path in files(kept)).unlink()
    assert send(server, SPECTRA, "executable").status == Status.CREATED


def test_two_at_a_time(server: HttpClient, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file system has no locks, the one that comes first stays."""

    def late(_: str, path: str, **__: object) -> None:
        Path(path).write_bytes(b"first")
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    with monkeypatch.context() as patch:
        patch.setattr(uploads.os, "link", late)
        assert send(server, LEDGER, "executable").status == Status.OK
    (path,) = files(kept)
    assert path.read_bytes() == b"first"


@pytest.mark.parametrize("call", ["fsync", "link", "makedirs"])
def test_full_disk(server: HttpClient, kept: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Is 507, and leaves nothing."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(uploads.os, call, full)
        answer = send(server, LEDGER, "executable")
    assert (answer.status, answer.json()) == (Status.INSUFFICIENT_STORAGE, {"title": "the disk is full"})
    assert files(kept) == []
    assert send(server, LEDGER, "executable").status == Status.CREATED


def test_folders_without_nameless_files(
    server: HttpClient, kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where a file without a name cannot get one it is copied."""

    def cannot(*_: object, **__: object) -> None:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

    with monkeypatch.context() as patch:
        patch.setattr(uploads.os, "link", cannot)
        assert send(server, LEDGER, "executable").status == Status.CREATED
    (path,) = files(kept)
    assert path.read_bytes() == LEDGER.read_bytes()
    shutil.rmtree(kept / ".build-id")
