"""Servers that fail, one profile at a time and in a batch: what is told, and that nothing is lost for good."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from symbolize.cli import main
from symbolize.elf import read_build_id
from tests.support.debuginfod_servers import FAST
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.http_server import HttpServer, Request

pytestmark = pytest.mark.process

PERF = FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz"
SPECTRA = BINARIES / "gcc-pie" / "spectra"
RESONANCE = BINARIES / "gcc-pie" / "libresonance.so"
KNOWN = {read_build_id(str(path)): path for path in (SPECTRA, RESONANCE)}


def answers(request: Request) -> None:
    """A server that has the files."""
    path = KNOWN.get(request.path.split("/")[2])
    request.reply(404) if path is None else request.reply(200, path.read_bytes())


def hangs(request: Request) -> None:
    """One that takes the question and says nothing."""
    request.hang()


def drips(request: Request) -> None:
    """One that sends slower than it may."""
    request.head(200, Content_Length="100000")
    request.drip(b"\x7fELF" + bytes(16), 0.1)


def stops(request: Request) -> None:
    """One that sends a part and ends."""
    request.head(200, Content_Length="100000")
    request.send(b"\x7fELF" + bytes(4996))


class Failing(NamedTuple):
    """How a server fails, as a request to it shows (None: nobody listens), what is said of that, and which time runs
    out."""

    behave: Callable[[Request], None] | None
    said: str
    time: str = ""


BROKEN = {
    "down": Failing(None, "unreachable, not asked: Connection refused"),
    "mute": Failing(hangs, "unreachable, not asked: no answer in 0.2 s", "probe_time"),
    "refuses": Failing(lambda request: request.reply(403), r"access denied \(HTTP 403\)"),
    "overloaded": Failing(lambda request: request.reply(503), "HTTP 503"),
    "hangs": Failing(hangs, "no answer in 0.2 s", "answer_time"),
    "slow": Failing(drips, "stalled: ([0-9]+ bytes in|nothing came for) ", "stall_time"),
    "stops": Failing(stops, "cut off: 5,000 of 100,000 bytes"),
    "other": Failing(lambda request: request.reply(200, b"no ELF" * 99), "refused: "),
}
"""The rows of the table in docs/debuginfod.md."""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder, with short waits for servers that are asked again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("symbolize.binaries.debuginfod.client.Limits", lambda: FAST)


@contextmanager
def failing(how: Failing) -> Iterator[HttpServer]:
    """A server that fails, or one that was there; there is little time for what it does not do."""
    server = HttpServer(how.behave or answers)
    if how.time == "probe_time":
        server.probe = hangs
    limits = replace(FAST, **{how.time: 0.2}) if how.time else FAST  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("symbolize.binaries.debuginfod.client.Limits", lambda: limits)
        with server:
            if how.behave is not None:
                yield server
        if how.behave is None:
            yield server


def undisturbed() -> bytes:
    """The output where all files are at hand."""
    assert main([str(PERF), "--binaries", str(SPECTRA.parent), "-q", "-o", "undisturbed.pb.gz"]) == 0
    return Path("undisturbed.pb.gz").read_bytes()


@pytest.mark.parametrize("how", BROKEN.values(), ids=BROKEN)
@pytest.mark.full
def test_one_profile(how: Failing, capsys: pytest.CaptureFixture[str]) -> None:
    """What can be named is written; the reason, a warning and exit code 1 tell of the server and what it said. When it
    is back, the same command makes what an undisturbed run does (rule R285, names missed by failures)."""
    with failing(how) as server:
        arguments = [str(PERF), "--binaries", str(RESONANCE), "--debuginfod", server.url, "-o", "out.pb.gz"]
        assert main([*arguments, "--report", "json"]) == 1
        report: dict[str, Any] = json.loads(capsys.readouterr().out)
        rows = {row["name"].rpartition("/")[2]: row for row in report["mappings"]}
        assert [miss["reason"] for miss in rows["spectra"]["misses"]] == ["server-failed"]
        assert re.match(f"{server.url}: {how.said}", rows["spectra"]["detail"])
        assert [failure["server"] for failure in report["server_failures"]] == [server.url]
        assert rows["libresonance.so"]["symbolized_locations"] > 0
        assert main([*arguments, "-q"]) == 1
        assert f"{server.url} failed: " in capsys.readouterr().err
    with HttpServer(answers, port=server.port):
        assert main([*arguments, "-q", "--refresh-misses"]) == 0
    assert Path("out.pb.gz").read_bytes() == undisturbed()


def test_a_server_that_hangs_is_asked_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said soon that it is waited for, and it is not waited for again for the same file."""
    monkeypatch.setattr("symbolize.binaries.debuginfod.download.REPORT_AFTER", 0.05)
    with failing(BROKEN["hangs"]) as server:
        assert main([str(PERF), "--debuginfod", server.url, "-o", "out.pb.gz"]) == 1
        assert len(server.asked) == len(set(server.asked)) > 1
        assert capsys.readouterr().err.count(f"{server.url}: no answer for 0.05 s, waited for up to 0.2 s") == 1


def test_a_verdict_is_outlived(monkeypatch: pytest.MonkeyPatch) -> None:
    """That a server was down is believed for a minute only, and not for ten as that it answers."""
    monkeypatch.setattr("symbolize.binaries.debuginfod.download.DOWN_LIFE", 0.0)
    with failing(BROKEN["down"]) as server:
        arguments = [str(PERF), "--debuginfod", server.url, "-q", "-o", "out.pb.gz"]
        assert main(arguments) == 1
        with HttpServer(answers, port=server.port):
            assert main(arguments) == 0
    assert Path("out.pb.gz").read_bytes() == undisturbed()


def test_what_a_folder_has_is_no_failure() -> None:
    """A server that is down is no matter where nothing is missing, nor is one that has no such file."""
    with HttpServer(answers) as server, HttpServer(lambda request: request.reply(404)) as empty:
        arguments = [str(PERF), "--debuginfod", server.url, "--debuginfod", empty.url, "-q", "-o", "out.pb.gz"]
        assert main(arguments) == 0
    assert main([*arguments, "--demangle", "full"]) == 0


def batch(server: HttpServer | str, *more: str, binaries: Path = RESONANCE) -> int:
    """The exit code of a batch over one profile, with a log, metrics and a report."""
    url = server if isinstance(server, str) else server.url
    if not Path("in").exists():
        Path("in").mkdir()
        Path("in/one.pb.gz").write_bytes(PERF.read_bytes())
    Path("log").unlink(missing_ok=True)
    seen = ["--log-json", "log", "--metrics-file", "metrics", "--report-file", "report", "--report", "json"]
    arguments = ["in", "--out", "out", "--binaries", str(binaries), "--debuginfod", url, "-j", "1", *seen, *more]
    return main(["batch", *arguments])


def events(name: str) -> list[dict[str, Any]]:
    """The events of a kind in the log."""
    return [entry for line in Path("log").read_text().splitlines() if (entry := json.loads(line))["event"] == name]


@pytest.mark.parametrize("how", BROKEN.values(), ids=BROKEN)
@pytest.mark.full
def test_a_batch(how: Failing, capsys: pytest.CaptureFixture[str]) -> None:
    """A batch writes what can be named, tells of the server once, in log, metrics and report too, and ends with 1. The
    next run does the profile again, and ends with what an undisturbed one makes (rule R285)."""
    with failing(how) as server:
        assert batch(server) == 1
        assert capsys.readouterr().err.count(f"symbolize: {server.url}: failed for ") == 1
        (done,) = [event for event in events("input") if event["state"] == "done"]
        assert done["reason"] == "server-failed"
        assert re.match(f"{server.url}: {how.said}", done["detail"])
        assert re.search(how.said, events("problem")[0]["text"])
        assert events("ended")[0]["incomplete"] == 1
        metrics = Path("metrics").read_text()
        assert "\nsymbolize_incomplete_total 1.0\n" in metrics
        assert re.search(r'\nsymbolize_locations_total{outcome="server-failed"} [1-9]', metrics)
        assert re.search(r'\nsymbolize_debuginfod_fetches_total{outcome="failed"} [1-9]', metrics)
        report = json.loads(Path("report").read_text())
        assert report["inputs"]["incomplete"] == 1
        assert report["inputs"]["quarantined"] == 0
    with HttpServer(answers, port=server.port):
        assert batch(server) == 0
        assert Path("out/one.pb.gz").read_bytes() == undisturbed()
        assert batch(server) == 0
    assert events("input") == []


@pytest.mark.full
def test_each_file_is_fetched_once_a_batch() -> None:
    """Many profiles want the same files, from several workers, and each is asked for once."""
    Path("in").mkdir()
    for number in range(6):
        Path(f"in/{number}.pb.gz").write_bytes(PERF.read_bytes())
    with HttpServer(answers) as server:
        assert main(["batch", "in", "--out", "out", "--debuginfod", server.url, "-j", "2", "-q"]) == 0
        assert len(server.asked) == len(set(server.asked))
    assert {path.read_bytes() for path in Path("out").glob("*.pb.gz")} == {undisturbed()}


def test_downloads_take_no_time_of_inputs() -> None:
    """Files are fetched in a pass of their own, when no input is under way."""
    running: list[list[str]] = []

    def looks(request: Request) -> None:
        running.append([event["pass"] for event in events("pass")])
        answers(request)

    with HttpServer(looks) as server:
        assert batch(server) == 0
    assert Path("out/one.pb.gz").read_bytes() == undisturbed()
    assert running and all(passes == ["scan", "fetch"] for passes in running)
    assert [event["pass"] for event in events("pass")] == ["scan", "fetch", "scan", "decode", "rewrite"]


@pytest.mark.full
def test_a_batch_asks_again_for_misses() -> None:
    """A miss is believed, unless --refresh-misses is given."""
    with HttpServer(lambda request: request.reply(404)) as server:
        assert batch(server) == 0
        server.behave = answers
        assert batch(server, "--again") == 0
        assert Path("out/one.pb.gz").read_bytes() != undisturbed()
        assert batch(server, "--again", "--refresh-misses") == 0
    assert Path("out/one.pb.gz").read_bytes() == undisturbed()


@pytest.mark.parametrize("url", ["not-a-url", "ftp://user:secret@host/", "", "env"])
def test_a_batch_refuses_what_is_no_server(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is begun, and without passwords."""
    assert batch(url, "--debuginfod", "http://user:secret@127.0.0.1:1") == 2
    assert "secret" not in capsys.readouterr().err
    assert not Path("out").exists()


def test_an_environment_without_servers_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--debuginfod env` where DEBUGINFOD_URLS names nobody."""
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    assert batch("env") == 0
    lines = capsys.readouterr().err
    assert "debuginfod: no server is named that may be asked\n" in lines
    assert "debuginfod: DEBUGINFOD_URLS names no server\n" in lines


def test_servers_that_are_never_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Names are missed because a server of DEBUGINFOD_URLS demands signatures, or is no URL: each run says so, with the
    way out where there is one, and has the reason and the exit code of a server that failed."""
    with HttpServer(answers) as server:
        monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", "client")
        for urls, place, said in (
            (f"ima:enforcing {server.url} ima:ignore ", server.url, "demands signatures (ima:enforcing)"),
            ("file:///srv/debug", "URL 1 of DEBUGINFOD_URLS", "begin with http:// or https://"),
        ):
            monkeypatch.setenv("DEBUGINFOD_URLS", urls)
            for _ in range(2):
                assert main([str(PERF), "--debuginfod", "env", "--report", "json", "-o", "out.pb.gz"]) == 1
                found = capsys.readouterr()
                report = json.loads(found.out)
                reasons = {miss["reason"] for row in report["mappings"] for miss in row["misses"] if row["build_id"]}
                assert reasons == {"server-failed"}
                assert [failure["server"] for failure in report["server_failures"]] == [place]
                assert f"{place}: not asked: " in found.err and said in found.err
                assert main([str(PERF), "--debuginfod", "env", "-o", "out.pb.gz"]) == 1
                assert "--debuginfod URL asks one that demands" in " ".join(capsys.readouterr().out.split())
        assert server.asked == []
        monkeypatch.setenv("DEBUGINFOD_URLS", f"ima:ignore {server.url}")
        assert main([str(PERF), "--debuginfod", "env", "-q", "-o", "out.pb.gz"]) == 0
