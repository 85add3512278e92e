"""What clients of `symbolize serve` see, from a process of it."""

import errno
import gc
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus as Status
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from symbolize import Options, Symbolizer
from symbolize.cli import main
from symbolize.formats import load, write
from tests.support.fixture_files import FIXTURES
from tests.support.http_server import HttpServer, Request
from tests.support.needs import find, package
from tests.support.symbol_server import (
    SymbolServer,
    breakpad_id,
    build_id,
    job,
    settings,
    symbol_server,
    wait_until_ready,
)

package("starlette")
package("uvicorn")

from symbolize.serve import worker

pytestmark = pytest.mark.process

BINARIES = FIXTURES / "bin"
LEDGER = BINARIES / "gcc-pie" / "ledger"
PROFILE = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
TOKEN = "a-token-of-the-tests"
ALLOWED = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SymbolServer]:
    """A server over the binaries of the fixtures."""
    cache = tmp_path_factory.mktemp("cache")
    folders = [f"--binaries={BINARIES / name}" for name in ("gcc-pie", "gcc-nopie-dwarf4")]
    with symbol_server([*folders, "--cache", str(cache), "--body-limit", "1M"]) as running:
        yield running


@pytest.mark.needs("llvm-symbolizer-19", "nm", "c++filt")
@pytest.mark.parametrize(("folder", "base"), [("gcc-pie", 0), ("gcc-nopie-dwarf4", 0x400000)])
def test_names_are_those_of_llvm(server: SymbolServer, folder: str, base: int) -> None:
    """Functions, inlined ones too, with lines and files, by offsets from where the image begins."""
    path = BINARIES / folder / "ledger"
    symbols = subprocess.run(["nm", "-S", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in symbols.splitlines()]
    sized = {(int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4 and row[2] in "tTwW"}
    vaddrs = sorted({first + step for first, size in sized for step in range(0, size, 9)})
    assert len(vaddrs) > 100
    printed = subprocess.run(
        [find("llvm-symbolizer-19"), "--output-style=JSON", "--no-demangle", f"--obj={path}", *map(hex, vaddrs)],
        capture_output=True,
        text=True,
        check=True,
    )
    # GNU's demangler: llvm-symbolizer's own names inherited constructors after the class that has them.
    readable = subprocess.run(["c++filt"], input=printed.stdout, capture_output=True, text=True, check=True).stdout
    answer = server.symbolicate(job(path, [vaddr - base for vaddr in vaddrs])).json()["results"][0]
    assert answer["found_modules"] == {f"ledger/{breakpad_id(path)}": True}
    for number, (frame, llvm) in enumerate(zip(answer["stacks"][0], json.loads(readable), strict=True)):
        assert (frame["frame"], frame["module"]) == (number, "ledger")
        assert frame["module_offset"] == hex(vaddrs[number] - base)
        shown = [*frame.get("inlines", []), frame]
        assert len(shown) == len(llvm["Symbol"]), hex(vaddrs[number])
        for ours, theirs in zip(shown, llvm["Symbol"], strict=True):
            assert (ours.get("line", 0), ours.get("file", "")) == (theirs["Line"], theirs["FileName"])
            # llvm-symbolizer has bare names for functions without a linkage name, and says which part of one it is;
            # nested template arguments end with or without a space, as the demangler or the compiler writes them.
            name = re.sub(r" \[clone.*| \(\..*|\.cold$", "", theirs["FunctionName"])
            function = re.sub(r" \(\..*|\.cold$", "", ours["function"])
            assert f"::{function}".replace("> >", ">>").endswith(f"::{name}".replace("> >", ">>"))
        begin = vaddrs[number] - int(frame["function_offset"], 16)
        assert (begin, int(frame["function_size"], 16)) in sized


def test_unknown_modules_harm_no_others(server: SymbolServer) -> None:
    """Modules without a file, with an id that is none, and frames of no module."""
    names = [["ledger", breakpad_id(LEDGER)], ["other.so", "0" * 33], ["bad.so", "../../etc/passwd"], ["none.so", ""]]
    stack = [[0, 0], [1, 16], [2, 16], [3, 16], [-1, 16], [0, -1], [0, (1 << 63) - 1]]
    result = server.symbolicate({"jobs": [{"memoryMap": names, "stacks": [stack]}]}).json()["results"][0]
    assert [*result["found_modules"].values()] == [True, False, False, False]
    assert result["stacks"][0][1] == {"frame": 1, "module": "other.so", "module_offset": "0x10"}
    assert result["stacks"][0][4] == {"frame": 4, "module": "<unknown>", "module_offset": "0x10"}
    assert len(result["stacks"][0]) == len(stack)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"jobs": []}',
        b'{"jobs": [1]}',
        b'{"memoryMap": [], "stacks": [[[0, 1]]]}',
        b'{"memoryMap": [["a", "AB"]], "stacks": [[[0, 99999999999999999999]]]}',
        b'{"memoryMap": [["a", "AB"]], "stacks": [[[true, 1]]]}',
        b'{"memoryMap": [["a/../b", "AB"]], "stacks": [[[0, 1]]]}',
        b'{"memoryMap": [["a", "AB"]], "stacks": [[[0.5, 1]]]}',
        json.dumps({"jobs": [{"memoryMap": [], "stacks": []}] * 11}).encode(),
    ],
)
def test_requests_that_are_none(server: SymbolServer, body: bytes) -> None:
    """One line says what is wrong; nothing else happens."""
    answer = server.ask("POST", "/symbolicate/v5", body, Origin="https://profiler.firefox.com")
    assert answer.status == Status.BAD_REQUEST
    assert "\n" not in answer.json()["title"]
    assert answer.headers["access-control-allow-origin"] == "https://profiler.firefox.com"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/symbolicate/v5", Status.METHOD_NOT_ALLOWED),
        ("GET", "/nothing", Status.NOT_FOUND),
        ("GET", "/buildid/xyz/debuginfo", Status.BAD_REQUEST),
        ("GET", "/buildid/..%2f..%2fetc/debuginfo", Status.NOT_FOUND),
        ("GET", "/buildid/abcdef0123/debuginfo", Status.NOT_FOUND),
        ("GET", "/buildid/abcdef0123/passwords", Status.BAD_REQUEST),
        ("GET", f"/buildid/{'ab' * 100}/debuginfo", Status.BAD_REQUEST),
        ("PUT", "/buildid/abcdef0123/debuginfo", Status.FORBIDDEN),
        ("POST", "/source/v1", Status.BAD_REQUEST),
    ],
)
def test_refused(server: SymbolServer, method: str, path: str, status: Status) -> None:
    """Each with the status that its clients know."""
    assert server.ask(method, path).status == status


def test_no_file_of_the_machine_is_sent(server: SymbolServer) -> None:
    """Sources are sent only if a build names them and they are below a folder with sources."""
    for path in ("/etc/passwd", "//etc/passwd", "/../../etc/passwd", "/%2e%2e/etc/passwd"):
        assert server.ask("GET", f"/buildid/{build_id(LEDGER)}/source{path}").status == Status.NOT_FOUND
    request = {"debugName": "ledger", "debugId": breakpad_id(LEDGER), "moduleOffset": "0x10", "file": "/etc/passwd"}
    assert server.ask("POST", "/source/v1", json.dumps(request).encode()).status == Status.NOT_FOUND


def test_large_bodies(server: SymbolServer) -> None:
    """Refused when the head says so, and when the body turns out to be so."""
    large = bytes((1 << 20) + 1)
    assert server.ask("POST", "/symbolize", large).status == Status.REQUEST_ENTITY_TOO_LARGE
    with socket.create_connection(("127.0.0.1", server.port)) as chunked:
        chunked.sendall(
            b"POST /symbolize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n" + large
        )
        assert b" 413 " in chunked.recv(64)
    with socket.create_connection(("127.0.0.1", server.port)) as lying:
        lying.sendall(b"POST /symbolize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999\r\n\r\n")
        assert b" 413 " in lying.recv(64)


@pytest.mark.needs("objcopy")
def test_debug_files(server: SymbolServer, tmp_path: Path) -> None:
    """The bytes of files and sections, with the headers that clients read."""
    answer = server.ask("GET", f"/buildid/{build_id(LEDGER)}/executable")
    assert answer.body == LEDGER.read_bytes()
    assert answer.headers["x-debuginfod-size"] == str(LEDGER.stat().st_size)
    section = tmp_path / "text"
    subprocess.run(["objcopy", "-O", "binary", "--only-section=.text", LEDGER, section], check=True)
    assert server.ask("GET", f"/buildid/{build_id(LEDGER)}/section/.text").body == section.read_bytes()
    assert server.ask("GET", f"/buildid/{build_id(LEDGER)}/section/.none").status == Status.NOT_FOUND
    small = server.ask("GET", f"/buildid/{build_id(LEDGER)}/debuginfo", X_DEBUGINFOD_MAXSIZE="10")
    assert small.status == Status.NOT_ACCEPTABLE


@pytest.mark.needs("debuginfod-find")
def test_debuginfod_find(server: SymbolServer, tmp_path: Path) -> None:
    """The client of elfutils gets the file."""
    environment = os.environ | {"DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": str(tmp_path)}
    command = ["debuginfod-find", "debuginfo", build_id(LEDGER)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()).read_bytes() == LEDGER.read_bytes()


def test_profile_in_profile_out(server: SymbolServer) -> None:
    """The bytes that the command writes, and what was found."""
    answer = server.ask("POST", "/symbolize", PROFILE.read_bytes())
    with Symbolizer([str(BINARIES / "gcc-pie")], Options(demangle="full")) as symbolizer:
        expected = symbolizer.symbolize(load(PROFILE)).profile
    written = BytesIO()
    write(expected, written)
    assert answer.body == written.getvalue()
    assert json.loads(answer.headers["x-symbolize-report"])
    refused = server.ask("POST", "/symbolize", b"no profile")
    assert refused.status == Status.UNPROCESSABLE_ENTITY
    assert "\n" not in refused.json()["title"]
    assert server.ask("POST", "/symbolize?emit=../x", PROFILE.read_bytes()).status == Status.BAD_REQUEST


def test_metrics(server: SymbolServer) -> None:
    """Requests by path and status, work by lane, and what the processes take."""
    server.ask("POST", "/symbolicate/v5", b"{")
    text = ""
    end = time.monotonic() + 60
    while 'symbolize_work_seconds{lane="profiles"} 0.0' not in text and time.monotonic() < end:  # of requests before
        text = server.ask("GET", "/metrics").body.decode()
    assert 'symbolize_http_requests_total{path="/symbolicate/v5",status="400"}' in text
    assert 'symbolize_work_seconds{lane="profiles"} 0.0' in text
    (memory,) = re.findall(rf'process_resident_memory_bytes{{pid="{server.process.pid}",process="worker"}} (\S+)', text)
    assert 1e7 < float(memory) < 1e9
    assert text.count("# TYPE process_cpu_seconds_total counter") == 1


def test_preflight_of_browsers(server: SymbolServer) -> None:
    """Pages of other origins may ask."""
    answer = server.ask("OPTIONS", "/symbolicate/v5", Access_Control_Request_Headers="content-type")
    assert answer.status == Status.NO_CONTENT
    assert answer.headers["access-control-allow-headers"] == "content-type"


def test_uploads(tmp_path: Path) -> None:
    """A file is kept under its own build id, with the token only, and named from then on."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "kept").mkdir()
    options = ["--binaries", str(tmp_path / "empty"), "--uploads", str(tmp_path / "kept"), "--no-cache"]
    path = f"/buildid/{build_id(LEDGER)}/executable"
    other = f"/buildid/{'ab' * 20}/executable"
    with symbol_server([*options, "--upload-limit", "16M"], TOKEN) as server:
        assert server.ask("PUT", path, LEDGER.read_bytes()).status == Status.UNAUTHORIZED
        assert server.ask("PUT", path, LEDGER.read_bytes(), Authorization="Bearer x").status == Status.UNAUTHORIZED
        assert server.ask("PUT", other, LEDGER.read_bytes(), **ALLOWED).status == Status.BAD_REQUEST
        assert server.ask("PUT", path, b"text", **ALLOWED).status == Status.BAD_REQUEST
        assert server.ask("PUT", path, bytes((16 << 20) + 1), **ALLOWED).status == Status.REQUEST_ENTITY_TOO_LARGE
        assert [*(tmp_path / "kept").rglob("*.*")] == []
        assert server.ask("PUT", path, LEDGER.read_bytes(), **ALLOWED).status == Status.CREATED
        assert server.ask("PUT", path, LEDGER.read_bytes(), **ALLOWED).status == Status.OK
        assert server.ask("GET", path).body == LEDGER.read_bytes()
        body = json.dumps(job(LEDGER, [0x10])).encode()
        assert server.ask("POST", "/symbolicate/v5", body).status == Status.UNAUTHORIZED
        answer = server.ask("POST", "/symbolicate/v5", body, **ALLOWED).json()["results"][0]
        assert [*answer["found_modules"].values()] == [True]


def test_otlp_is_passed_on(tmp_path: Path) -> None:
    """With names, to the server behind, whose answer is the answer."""
    received: list[bytes] = []

    def receive(request: Request) -> None:
        received.append(request.body())
        request.reply(Status.ACCEPTED, b"\x0a\x00", Content_Type="application/x-protobuf")

    sent = BytesIO()
    write(load(PROFILE), sent, emit="otlp")
    with HttpServer(receive) as behind:
        options = ["--binaries", str(BINARIES / "gcc-pie"), "--forward", f"{behind.url}/v1development/profiles"]
        with symbol_server([*options, "--no-cache"]) as server:
            answer = server.ask(
                "POST", "/v1development/profiles", sent.getvalue(), Content_Type="application/x-protobuf"
            )
    assert (answer.status, answer.body) == (Status.ACCEPTED, b"\x0a\x00")
    before, after = load(BytesIO(sent.getvalue())), load(BytesIO(received[0]))
    assert after.samples.values.tolist() == before.samples.values.tolist()
    assert not before.locations.has_lines().any()
    assert after.locations.has_lines().any()


@pytest.mark.full
def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    """Requests are answered afterwards, and SIGTERM ends the server in order."""
    with symbol_server(["--binaries", str(BINARIES / "gcc-pie"), "--workers", "2", "--no-cache"]) as server:
        killed = server.workers()
        assert len(killed) == 2
        os.kill(killed[0], signal.SIGKILL)
        wait_until_ready(server)
        until = time.monotonic() + 30
        while len(set(server.workers()) - {killed[0]}) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        assert len(set(server.workers()) - {killed[0]}) == 2
        wait_until_ready(server)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.full
def test_the_end(monkeypatch: pytest.MonkeyPatch, workers: str) -> None:
    """SIGTERM leaves no folder, whichever process answers the requests, and whatever it has started."""
    options = ["--binaries", str(BINARIES / "gcc-pie"), "--workers", workers, "--no-cache"]
    with TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        with symbol_server(options) as server:
            assert [name.startswith("symbolize-serve-") for name in os.listdir(folder)] == [True]
            assert server.ask("POST", "/symbolize", PROFILE.read_bytes()).status == Status.OK
            server.process.terminate()
            assert server.process.wait(30) == 0
        assert os.listdir(folder) == []


def test_workers_end_with_who_started_them(tmp_path: Path) -> None:
    """They would keep the port."""
    with symbol_server(["--binaries", str(BINARIES / "gcc-pie"), "--workers", "2", "--no-cache"]) as server:
        workers = server.workers()
        assert len(workers) == 2
        server.process.kill()
        until, is_free = time.monotonic() + 30, False
        while not is_free and time.monotonic() < until:
            with socket.socket() as trial:
                is_free = trial.connect_ex(("127.0.0.1", server.port)) == errno.ECONNREFUSED
            time.sleep(0.05)
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert is_free


def test_what_is_wrong_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Is reported, and does not keep the server from running; cycles of objects are collected while it runs."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setenv("SYMBOLIZE_SERVE", "")
    ran = []
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: ran.append(gc.isenabled()))
    assert main(["serve", "--binaries", str(tmp_path / "empty"), "--cache", str(tmp_path / "file" / "cache")]) == 0
    errors = capsys.readouterr().err
    assert "no ELF files below" in errors
    assert "tables are not kept" in errors
    assert ran == [True]


def test_an_address_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 1, and no word of serving."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--binaries", str(tmp_path), "--port", port, "--cache", str(tmp_path / "cache")]) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"--port {port}: Address already in use")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "serve needs --binaries DIR or --debuginfod URL"),
        (["--binaries", "here", "--host", "0.0.0.0"], "needs a token in SYMBOLIZE_TOKEN"),
        (["--binaries", "here", "--host", "example.org"], "is no IP address"),
        (["--binaries", "here", "--uploads", "here"], "--uploads needs a token"),
        (["--binaries", "here", "--port", "70000"], "is not from 1 to 65535"),
        (["--binaries", "here", "--forward", "ftp://a"], "not an http, https or grpc URL"),
        (["--binaries", "here", "--forward", "http://[a"], "not an http, https or grpc URL"),
        (["--binaries", "here", "--forward-authorization"], "--forward-authorization needs --forward"),
        (["--binaries", "here", "--forward-headers", "here"], "--forward-headers needs --forward"),
        (["--binaries", "there"], "there"),
    ],
)
def test_options_that_cannot_be(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and exit code 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SYMBOLIZE_TOKEN", raising=False)
    (tmp_path / "here").mkdir()
    assert main(["serve", *arguments]) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(("length", "is_child", "is_used"), [(72, True, True), (73, True, False), (72, False, False)])
def test_where_workers_have_their_sockets(
    monkeypatch: pytest.MonkeyPatch, length: int, is_child: bool, is_used: bool
) -> None:
    """In the folder of their parent, unless its path is too long for the address of a socket two folders below."""
    with TemporaryDirectory(dir="/tmp") as folder:
        made = replace(settings(Path(folder)), shared=folder.ljust(length, "x"))
        os.mkdir(made.shared)
        monkeypatch.setattr("multiprocessing.parent_process", lambda: is_child or None)
        monkeypatch.setattr(worker, "be_killed_with_parent", lambda: None)
        for name in ("TMPDIR", worker.VARIABLE):
            monkeypatch.setenv(name, "/tmp")
        monkeypatch.setattr("tempfile.tempdir", None)
        made.leave()
        assert worker.app() is not None
        assert (tempfile.tempdir, os.environ["TMPDIR"]) == ((made.shared,) * 2 if is_used else (None, "/tmp"))
