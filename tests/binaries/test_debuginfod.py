"""The debuginfod client: its folder, servers that come and go, several threads and processes."""

import os
import signal
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from symbolize.binaries.debuginfod import Debuginfod, FetchOptions, Progress, Server
from symbolize.binaries.debuginfod.download import Downloader
from symbolize.binaries.debuginfod.sections import is_compressed
from symbolize.binaries.debuginfod.server import MAX_FAILURES
from symbolize.core.errors import UsageError
from tests.support.debuginfod_servers import (
    FAST,
    FILE,
    ID,
    OTHER,
    SMALL,
    fetch,
    in_turn,
    left_behind,
    outcome,
    says,
    sends,
    unreachable,
    wait_for,
)
from tests.support.http_server import HANG, HttpServer, Request
from tests.support.tiny_elf import elf

pytestmark = pytest.mark.process


def test_file_gets_its_name(tmp_path: Path) -> None:
    """A file lies in the folder as other clients have it, and is not asked for twice."""
    with HttpServer(sends()) as server:
        fetched = fetch(tmp_path, server)
        assert fetched.status == "found"
        assert fetched.path == str(tmp_path / "cache" / ID / "debuginfo")
        assert Path(fetched.path).read_bytes() == SMALL
        assert os.stat(fetched.path).st_mode & 0o777 == 0o400
        assert os.stat(tmp_path / "cache" / ID).st_mode & 0o777 == 0o700
        assert fetch(tmp_path, server).path == fetched.path
        assert server.asked == [f"/buildid/{ID}/debuginfo"]
        assert server.requests[0].headers["x-debuginfod-maxsize"] == str(FAST.max_size)
    assert left_behind(tmp_path) == ["debuginfo"]


def test_found_without_a_server(tmp_path: Path) -> None:
    """What lies in the folder needs no network."""
    with HttpServer(sends()) as server:
        fetch(tmp_path, server)
        url = server.url
    told: list[str] = []
    with Debuginfod([url], FetchOptions(cache=tmp_path / "cache", limits=FAST, tell=told.append)) as client:
        assert client.fetch(ID.upper(), "debuginfo").status == "found"
    assert told == []


@pytest.mark.parametrize("text", ["", "abc", "../../etc/passwd", "aa/../bb", "zz" * 20, "0" * 40, "aa" * 65])
def test_bad_build_id(text: str, tmp_path: Path) -> None:
    """What is no build id becomes no path and no request."""
    with HttpServer(sends()) as server:
        assert fetch(tmp_path, server, build_id=text).status == "invalid"
        assert server.asked == []
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("padded", "asked"),
    [("cc" * 16 + "00" * 4, "cc" * 16), ("cc" * 8 + "00" * 12, "cc" * 8), ("cc" * 19 + "00", "cc" * 19 + "00")],
)
def test_padding_of_build_ids(padded: str, asked: str, tmp_path: Path) -> None:
    """Servers are asked for ids without the zeros that profilers fill them up with."""
    with HttpServer(sends(elf(bytes.fromhex(asked)))) as server:
        assert fetch(tmp_path, server, build_id=padded).status == "found"
        assert server.asked == [f"/buildid/{asked}/debuginfo"]


def test_miss_is_remembered(tmp_path: Path) -> None:
    """A file that all servers lack is not asked for again, unless that is wanted or the servers are others."""
    with HttpServer(says(404)) as server, HttpServer(says(404)) as other:
        assert fetch(tmp_path, server).status == "missing"
        path = tmp_path / "cache" / ID / "debuginfo"
        assert path.stat().st_size == 0
        again = fetch(tmp_path, server)
        assert again.status == "missing"
        assert "no server had it" in outcome(again)
        assert len(server.asked) == 1
        fetch(tmp_path, other)
        assert len(other.asked) == 1
        time.sleep(0.02)
        with Debuginfod(
            [other.url], FetchOptions(cache=tmp_path / "cache", limits=FAST, refresh_misses=True)
        ) as client:
            client.fetch(ID, "debuginfo")
            client.fetch(ID, "debuginfo")
        assert len(other.asked) == 2
        # A miss of another client, which says nothing of servers, is believed for as long as the folder says.
        os.chmod(path, 0o600)
        path.unlink()
        path.write_bytes(b"")
        fetch(tmp_path, server)
        assert len(server.asked) == 1
        (tmp_path / "cache" / "cache_miss_s").write_text("600\n")
        os.utime(path, (time.time() - 700,) * 2)
        fetch(tmp_path, server)
        assert len(server.asked) == 2


@pytest.mark.parametrize("first", [says(500), says(503, Retry_After="0"), says(429), lambda request: None])
def test_second_try(first: Callable[[Request], None], tmp_path: Path) -> None:
    """What may pass is tried again, a few times."""
    with HttpServer(in_turn(first, sends())) as server:
        assert fetch(tmp_path, server).status == "found"
        assert len(server.asked) == 2
    with HttpServer(first) as server:
        assert fetch(tmp_path / "2", server).status == "failed"
        assert len(server.asked) == 1 + FAST.retries


def test_who_is_left_alone_is_not_reported(tmp_path: Path) -> None:
    """Once a server sends the file nothing is said of those that had not answered."""
    done = threading.Event()
    with HttpServer(sends()) as quick, HttpServer(lambda request: done.wait(HANG) and None) as slow:
        fetched = fetch(tmp_path, slow, quick)
        done.set()
        assert [(attempt.place, attempt.outcome) for attempt in fetched.attempts] == [(quick.url, "found")]


def test_breaker(tmp_path: Path) -> None:
    """After some network failures in a row a server is not asked any more; any HTTP answer counts as health."""
    with (
        HttpServer(lambda request: None) as server,
        Debuginfod([server.url], FetchOptions(cache=tmp_path / "cache", limits=replace(FAST, retries=0))) as client,
    ):
        ids = [f"{number:02x}" * 20 for number in range(1, 20)]
        results = [client.fetch(each, "debuginfo") for each in ids]
        assert len(server.asked) == MAX_FAILURES
        assert [result.status for result in results[MAX_FAILURES:]] == ["skipped"] * (19 - MAX_FAILURES)
        assert "network failures in a row" in outcome(results[-1])
    with (
        HttpServer(says(500)) as server,
        Debuginfod([server.url], FetchOptions(cache=tmp_path / "2", limits=replace(FAST, retries=0))) as client,
    ):
        assert {client.fetch(each, "debuginfo").status for each in ids} == {"failed"}
        assert len(server.asked) == len(ids)
    behave = in_turn(*[lambda request: None] * (MAX_FAILURES - 1), says(404), lambda request: None)
    with (
        HttpServer(behave) as server,
        Debuginfod([server.url], FetchOptions(cache=tmp_path / "3", limits=replace(FAST, retries=0))) as client,
    ):
        for each in ids:
            client.fetch(each, "debuginfo")
        assert len(server.asked) == 2 * MAX_FAILURES


def test_failure_is_not_tried_again(tmp_path: Path) -> None:
    """The same client does not ask again for what has just failed."""
    with (
        HttpServer(says(500)) as server,
        Debuginfod([server.url], FetchOptions(cache=tmp_path / "cache", limits=replace(FAST, retries=0))) as client,
    ):
        assert client.fetch(ID, "debuginfo") == client.fetch(ID, "debuginfo")
        assert len(server.asked) == 1


def test_verdicts_are_told_and_shared(tmp_path: Path) -> None:
    """Each server is tried out once, and the next client knows."""
    dead, told, probed = unreachable(), [], []

    def answers(request: Request) -> None:
        wait_for(lambda: bool(probed))  # they are tried out side by side
        request.reply(200)

    # One that hangs up without an answer: it is not time that decides which of them is up.
    with HttpServer(says(404), probe=answers) as server, HttpServer(says(404), probe=probed.append) as mute:
        urls = [dead, server.url, mute.url]
        with Debuginfod(urls, FetchOptions(cache=tmp_path, limits=FAST, tell=told.append)) as client:
            for number in range(1, 9):
                fetched = client.fetch(f"{number:02x}" * 20, "debuginfo")
                # Nobody can say that the file is nowhere.
                assert fetched.status == "skipped"
                assert [attempt.place for attempt in fetched.attempts] == urls
        assert len(probed) == 1
        assert mute.asked == []
        assert len(server.asked) == 8
        texts = dict(line.split(": ", 1) for line in told)
        assert texts[dead] == "unreachable, not asked: Connection refused"
        assert texts[server.url].startswith("answers (")
        assert texts[mute.url].startswith("unreachable, not asked: ")
        assert not (tmp_path / ("01" * 20) / "debuginfo").exists()

        told.clear()
        with Debuginfod(urls, FetchOptions(cache=tmp_path, limits=FAST, tell=told.append)) as client:
            verdicts = client.probe()
            assert [verdicts[url][0] for url in urls] == [False, True, False]
        assert len(probed) == 1
        assert len(told) == 3
        assert all(line.endswith(" s ago)") for line in told)


def test_several_servers(tmp_path: Path) -> None:
    """Who has the file sends it; who does not, or is slow, does no harm."""
    gate, too_late = threading.Event(), threading.Event()

    def slow(request: Request) -> None:
        gate.wait(HANG)
        too_late.set()
        request.reply(200, SMALL)

    def behave(request: Request) -> None:
        wait_for(lambda: bool(without.asked and late.asked))
        request.reply(200, SMALL)

    with HttpServer(says(404)) as without, HttpServer(slow) as late, HttpServer(behave) as has:
        assert fetch(tmp_path, without, late, has).status == "found"
        assert not too_late.is_set()
        gate.set()
        assert len(without.asked) == len(late.asked) == len(has.asked) == 1


@pytest.mark.parametrize(
    "first",
    [sends(elf(bytes.fromhex(OTHER))), lambda request: request.head(200, Content_Length="90000"), says(500), says(401)],
)
def test_next_server(first: Callable[[Request], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server is asked when the first one to answer fails, and the report has both."""
    ended: list[str] = []

    def ask(self: Downloader, request: Any, server: Server, *more: Any) -> None:
        asks(self, request, server, *more)
        ended.append(server.url)

    def later(request: Request) -> None:
        wait_for(lambda: bad.url in ended)
        request.reply(200, SMALL)

    asks = Downloader._ask
    monkeypatch.setattr(Downloader, "_ask", ask)

    with HttpServer(first) as bad, HttpServer(later) as good:
        fetched = fetch(tmp_path, bad, good)
        assert fetched.status == "found"
        assert [attempt.place for attempt in fetched.attempts] == [bad.url, good.url]
        assert fetched.attempts[1].outcome == "found"


@pytest.mark.parametrize(
    "url",
    ["ftp://me:s3cret@x/", "me:s3cret@x", "http://me:s3cret@", "http://me:s3cret@x/?y", "http://me:s3c ret@x/",
     "http://me:s3cret@x:99999/", "http://me:s3cret@[::1/", "file:///x", ""],
)  # fmt: skip
def test_bad_urls(url: str, tmp_path: Path) -> None:
    """A URL that is none is an error that does not show passwords."""
    with pytest.raises(UsageError) as error:
        Debuginfod([url], FetchOptions(cache=tmp_path))
    assert "s3c" not in str(error.value)


def test_signatures_cannot_be_checked(tmp_path: Path) -> None:
    """Servers whose signatures are to be enforced are not asked, and that is told."""
    told: list[str] = []
    with HttpServer(sends()) as strict, HttpServer(says(404)) as other:
        probed: list[Request] = []
        strict.probe = probed.append
        urls = ["ima:enforcing", strict.url, "ima:ignore", other.url]
        for _ in range(2):  # that the other has no such file is not kept: nobody knows of all
            with Debuginfod(urls, FetchOptions(cache=tmp_path, limits=FAST, tell=told.append)) as client:
                fetched = client.fetch(ID, "debuginfo")
            assert strict.asked == probed == []
            assert fetched.status == "skipped"
            assert [place for place, _ in fetched.failures] == [strict.url]
            assert "ima:enforcing" in fetched.failures[0].outcome
        assert told[0].startswith(f"{strict.url}: not asked: ")
        assert len(other.asked) == 2
        with Debuginfod([other.url], FetchOptions(cache=tmp_path, limits=FAST)) as client:
            assert client.fetch(ID, "debuginfo").status == "missing"
        with Debuginfod(urls, FetchOptions(cache=tmp_path, limits=FAST)) as client:
            assert client.fetch(ID, "debuginfo").status == "skipped"


def test_too_large_is_told(tmp_path: Path) -> None:
    """A limit on sizes that costs names is told, once a server."""
    told: list[str] = []
    limits = replace(FAST, max_size=len(SMALL) - 1)
    with (
        HttpServer(sends()) as server,
        Debuginfod([server.url], FetchOptions(cache=tmp_path, limits=limits, tell=told.append)) as client,
    ):
        assert client.fetch(ID, "debuginfo").status == client.fetch(ID, "executable").status == "too-large"
        assert len([line for line in told if f"{len(SMALL) - 1:,}" in line and "max_size" in line]) == 1


def test_progress(tmp_path: Path) -> None:
    """Bytes are counted for who wants to show them."""
    seen: list[Progress] = []
    with (
        HttpServer(sends()) as server,
        Debuginfod([server.url], FetchOptions(cache=tmp_path, limits=FAST, progress=seen.append)) as client,
    ):
        client.fetch(ID, "executable")
        assert seen == [Progress(ID, "executable", server.url, len(SMALL), len(SMALL))]


def test_prefetch(tmp_path: Path) -> None:
    """Heavy files come first, and who asks for one meanwhile waits for the same download."""
    gate = threading.Event()

    def behave(request: Request) -> None:
        gate.wait(HANG)
        request.reply(200, elf(bytes.fromhex(request.path.split("/")[2])))

    ids = [f"{number:02x}" * 20 for number in range(1, 6)]
    with (
        HttpServer(behave) as server,
        Debuginfod([server.url], FetchOptions(cache=tmp_path, limits=replace(FAST, workers=1))) as client,
    ):
        futures = client.prefetch([(each, ["debuginfo"], float(weight)) for weight, each in enumerate(ids)])
        threading.Timer(0.1, gate.set).start()
        assert client.fetch(ids[4], "debuginfo").status == "found"
        assert [future.result()["debuginfo"].status for future in futures] == ["found"] * 5
        assert server.asked == [f"/buildid/{each}/debuginfo" for each in reversed(ids)]


def test_closing_ends_downloads(tmp_path: Path) -> None:
    """Nobody waits for a server after the client was closed."""
    with HttpServer(Request.hang) as server:
        with Debuginfod([server.url], FetchOptions(cache=tmp_path, limits=FAST)) as client:
            (future,) = client.prefetch([(ID, ["debuginfo"], 1.0)])
            wait_for(lambda: bool(server.asked))
        # Not "failed", as it would be after the time for an answer.
        assert future.result()["debuginfo"].status == "skipped"
        assert client.fetch(ID, "executable").status == "skipped"


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends a fetch at once and leaves no lock and no half of a file."""
    code = (
        "import sys\nfrom symbolize.binaries.debuginfod import Debuginfod, FetchOptions\n"
        "with Debuginfod([sys.argv[1]], FetchOptions(sys.argv[2])) as client:\n"
        "    client.fetch(sys.argv[3], 'debuginfo')\n"
    )

    def behave(request: Request) -> None:
        request.head(200, Content_Length="100000")
        request.send(FILE[:1000])
        request.hang()

    with HttpServer(behave) as server:
        command = [sys.executable, "-c", code, server.url, str(tmp_path / "cache"), ID]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            wait_for(lambda: len(left_behind(tmp_path)) == 2)
            assert len(left_behind(tmp_path)) == 2
            process.send_signal(signal.SIGINT)
            assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
        finally:
            process.kill()
    wait_for(lambda: not left_behind(tmp_path))
    assert left_behind(tmp_path) == []


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Without a folder there is no file, and the reason is said."""
    (tmp_path / "cache").write_text("a file")
    with HttpServer(sends()) as server:
        fetched = fetch(tmp_path, server)
        assert fetched.status == "failed"
        assert "cannot be written" in outcome(fetched)


def test_file_in_the_folder_is_checked(tmp_path: Path) -> None:
    """A file that another client put there under the wrong name is not believed, and fetched anew."""
    path = tmp_path / "cache" / ID / "debuginfo"
    path.parent.mkdir(parents=True)
    path.write_bytes(elf(bytes.fromhex(OTHER)))
    told: list[str] = []
    with (
        HttpServer(sends()) as server,
        Debuginfod([server.url], FetchOptions(cache=tmp_path / "cache", limits=FAST, tell=told.append)) as client,
    ):
        assert client.fetch(ID, "debuginfo").path == str(path)
    assert path.read_bytes() == SMALL
    assert any(OTHER in line and ID in line for line in told)


@pytest.fixture
def slow_server() -> Iterator[HttpServer]:
    """A server that takes a while."""

    def behave(request: Request) -> None:
        time.sleep(0.5)
        request.reply(200, SMALL)

    with HttpServer(behave) as server:
        yield server


def test_one_download_for_all_threads(slow_server: HttpServer, tmp_path: Path) -> None:
    """Threads that want the same file share a download."""
    results = []
    with Debuginfod([slow_server.url], FetchOptions(cache=tmp_path, limits=FAST)) as client:
        threads = [threading.Thread(target=lambda: results.append(client.fetch(ID, "debuginfo"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [result.status for result in results] == ["found"] * 8
    assert len(slow_server.asked) == 1


def test_one_download_for_all_processes(slow_server: HttpServer, tmp_path: Path) -> None:
    """Processes wait for who is fetching; not for ever, and then go on without the file."""
    code = (
        "import sys\nfrom symbolize.binaries.debuginfod import Debuginfod, FetchOptions, Limits\n"
        "options = FetchOptions(sys.argv[2], Limits(patience=float(sys.argv[3])))\n"
        "with Debuginfod([sys.argv[1]], options) as client:\n"
        "    print(client.fetch(sys.argv[4], 'debuginfo').status)\n"
    )

    def start(patience: float) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", code, slow_server.url, str(tmp_path), str(patience), ID]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    running = [start(60) for _ in range(3)]
    assert [process.communicate()[0] for process in running] == ["found\n"] * 3
    assert len(slow_server.asked) == 1


def test_urllib3_is_imported_late() -> None:
    """Who makes no client does not wait for the HTTP library."""
    code = "import sys, symbolize.binaries.debuginfod; print('urllib3' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@pytest.mark.parametrize(
    ("build_id", "name"),
    [
        ("AB" * 20, "ab" * 20),
        ("ab" * 16 + "0" * 8, "ab" * 16),
        ("ab" * 8 + "0" * 24, "ab" * 8),
        ("ab" * 8 + "0" * 16, "ab" * 8 + "0" * 16),
        ("ab" * 12 + "0" * 16, "ab" * 12 + "0" * 8),
        ("ab" * 16 + "10000000", "ab" * 16 + "10000000"),
        ("ab" * 8, "ab" * 8),
    ],
)
def test_spellings_of_a_build_id(build_id: str, name: str) -> None:
    """Servers are asked for a build id without the zeros that recorders fill it up with to 20 bytes."""
    assert Debuginfod.name_of(build_id, "debuginfo") == f"{name}-debuginfo"
    assert Debuginfod.name_of(build_id + "x", "debuginfo") == ""


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("is_64", [False, True])
def test_compressed_sections_by_their_bytes(order: str, is_64: bool, tmp_path: Path) -> None:
    """A section comes without its flags: a header of a known type and such data behind it say that it is compressed."""
    path = tmp_path / "section"

    def found(kind: int, payload: bytes, reserved: int = 0) -> bool:
        head = (kind, reserved, 100, 1) if is_64 else (kind, 100, 1)
        path.write_bytes(struct.pack(order + ("IIQQ" if is_64 else "III"), *head) + payload)
        return is_compressed(str(path), is_64, order)

    packed = zlib.compress(bytes(100))
    assert found(1, packed)
    assert found(2, b"\x28\xb5\x2f\xfd")
    assert not found(2, packed)
    assert not found(1, b"\x28\xb5\x2f\xfd")
    assert not found(3, packed)
    assert not found(1, bytes([packed[0], packed[1] ^ 1]) + packed[2:])
    assert not found(1, bytes([packed[0] ^ 1]) + packed[1:])
    assert not found(1, packed[:3])
    assert found(1, packed[:4])
    assert found(1, packed, reserved=1) == (not is_64)
