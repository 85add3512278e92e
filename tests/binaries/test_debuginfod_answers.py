"""What debuginfod servers may answer: garbage, parts, redirects, too slowly, by way of proxies or TLS."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from symbolize.binaries.debuginfod import Debuginfod, FetchOptions, Server
from symbolize.binaries.debuginfod.download import retry_after
from symbolize.binaries.debuginfod.transport import Call
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
from tests.support.http_server import HttpServer, Request, made_certificate
from tests.support.tiny_elf import elf

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("behave", "status", "text"),
    [
        (says(401), "denied", "access denied (HTTP 401)"),
        (says(403), "denied", "access denied (HTTP 403)"),
        (says(406), "too-large", "too large"),
        (says(500), "failed", "HTTP 500"),
        (says(418), "failed", "HTTP 418"),
        (sends(elf(bytes.fromhex(OTHER))), "wrong", f"refused: has {OTHER}, wanted {ID}"),
        (sends(elf()), "wrong", "has no build id"),
        (sends(b"<html>log in</html>"), "wrong", "not an ELF file"),
        (sends(b""), "wrong", "empty"),
        (sends(SMALL, X_DEBUGINFOD_SIZE="999999999999"), "too-large", "999,999,999,999 bytes announced"),
        (sends(Content_Encoding="br"), "failed", "'br' was not asked for"),
        (sends(Content_Encoding="gzip"), "failed", "bad content encoding"),
        (sends(SMALL, X_DEBUGINFOD_SIZE="5000"), "failed", f"cut off: {len(SMALL)} of 5,000 bytes"),
        (lambda request: request.head(200, Content_Length="90000"), "failed", "cut off"),
        (lambda request: request.send(b"HTTP/1.1 200 OK\r\nContent-Len"), "failed", "nothing came"),
        (lambda request: request.send(b"\0\xff" * 500), "failed", ""),
        (lambda request: request.send(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"), "failed", ""),
        (lambda request: request.send(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n"), "failed", ""),
        (lambda request: request.send(b"HTTP/1.1 banana OK\r\n\r\n"), "failed", ""),
        (lambda request: None, "failed", ""),
    ],
)
def test_bad_answers(behave: Callable[[Request], None], status: str, text: str, tmp_path: Path) -> None:
    """Each kind of failure is told apart, and none of them is a miss that is kept or leaves a file."""
    with HttpServer(behave) as server:
        fetched = fetch(tmp_path, server, limits=replace(FAST, max_size=1 << 20))
        assert fetched.path is None
        assert fetched.status == status
        assert text in outcome(fetched)
        assert fetched.attempts[-1].place == server.url
    assert left_behind(tmp_path) == []


def test_garbage_in_headers(tmp_path: Path) -> None:
    """Headers that are no numbers do not count, and do no harm."""
    with HttpServer(sends(SMALL, X_DEBUGINFOD_SIZE="-5\x1b[31m", Retry_After="soon")) as server:
        assert fetch(tmp_path, server).status == "found"
    bad = b"HTTP/1.1 200 OK\r\nContent-Length: pumpkin\r\nno colon here\r\n\r\n"
    with HttpServer(lambda request: request.send(bad + SMALL)) as server:
        assert fetch(tmp_path / "2", server).status == "found"


def test_cut_off_without_a_length(tmp_path: Path) -> None:
    """Where no header tells the size, the section headers tell that a file is not whole; where these do not come last,
    the ends of the sections."""
    headers_first = bytearray(FILE) + bytes(100)
    table, count = int.from_bytes(FILE[40:48], "little"), int.from_bytes(FILE[60:62], "little")
    last = table + 64 * (count - 2)  # the one behind has the names of sections
    headers_first[last + 24 : last + 32] = len(FILE).to_bytes(8, "little")
    headers_first[last + 32 : last + 40] = (100).to_bytes(8, "little")
    build_id = note_of(FILE).hex()
    for sent, status in ((FILE[: len(FILE) // 2], "wrong"), (headers_first, "found"), (headers_first[:-1], "wrong")):

        def behave(request: Request, sent: bytes = bytes(sent)) -> None:
            request.head(200)
            request.send(sent)

        with HttpServer(behave) as server:
            assert fetch(tmp_path / str(len(sent)), server, build_id=build_id).status == status


def note_of(data: bytes) -> bytes:
    """The build id in an ELF file."""
    place = data.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0") + 16
    return data[place : place + 20]


def test_huge_and_not_announced(tmp_path: Path) -> None:
    """Bytes are counted while they come, and no more than a little beyond the limit is taken."""
    sent = [0]

    def behave(request: Request) -> None:
        request.head(200)
        request.send(FILE[:4])
        try:
            while sent[0] < 1 << 28:
                request.connection.sendall(bytes(65536))
                sent[0] += 65536
        except OSError:
            pass

    with HttpServer(behave) as server:
        fetched = fetch(tmp_path, server, limits=replace(FAST, max_size=100_000))
        assert fetched.status == "too-large"
    assert sent[0] < 1 << 25


def test_compressed_answers(tmp_path: Path) -> None:
    """A proxy may compress; what comes out is bounded, and a stream without an end is cut off."""
    with HttpServer(sends(gzip.compress(SMALL), Content_Encoding="gzip")) as server:
        fetched = fetch(tmp_path, server)
        assert fetched.path
        assert Path(fetched.path).read_bytes() == SMALL
        assert server.requests[0].headers["accept-encoding"] == "gzip"
    with HttpServer(sends(gzip.compress(b"\x7fELF" + bytes(1 << 26)), Content_Encoding="gzip")) as server:
        assert fetch(tmp_path / "2", server, limits=replace(FAST, max_size=1 << 20)).status == "too-large"
    with HttpServer(sends(gzip.compress(SMALL)[:-9], Content_Encoding="gzip")) as server:
        assert fetch(tmp_path / "3", server).status == "failed"


def test_a_body_that_is_no_elf_file_is_not_stored(tmp_path: Path) -> None:
    """The first bytes decide, before the rest is written to disk (rule R282)."""
    sent = 0

    def endless(request: Request) -> None:
        nonlocal sent
        request.head(200, Content_Length=str(8 << 30))
        for _ in range(1 << 12):
            try:
                request.connection.sendall(b"<html>" * 2048)
            except OSError:
                return
            sent += 6 * 2048

    with HttpServer(endless) as server:
        got = fetch(tmp_path, server)
        assert got.path is None
        assert "refused: not an ELF file" in outcome(got)
        assert sent < 16 << 20
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.stat().st_size > 4096]


def test_an_encoded_body_out_of_proportion(tmp_path: Path) -> None:
    """An encoding that expands a thousandfold is refused at 64 times what came, and 16 MiB (rule R282)."""
    body = gzip.compress(b"\x7fELF" + bytes(1 << 25))
    with HttpServer(sends(body, Content_Encoding="gzip")) as server:
        got = fetch(tmp_path, server, limits=replace(FAST, max_size=1 << 30))
        assert got.path is None
        assert "as only a bomb does" in outcome(got)


@pytest.mark.full
def test_stalls(tmp_path: Path) -> None:
    """A server that sends nothing, or too little, is given up after seconds, however it spreads its bytes."""

    def nothing(request: Request) -> None:
        request.head(200, Content_Length="100000")
        request.send(FILE[:1000])
        request.hang()

    def drips(request: Request) -> None:
        request.head(200, Content_Length="100000")
        request.drip(FILE[:1000], 0.02)

    def drips_in_the_end(request: Request) -> None:
        request.head(200, Content_Length="300000")
        request.send(FILE[:4] + bytes(200_000))
        request.drip(FILE[:1000], 0.02)

    def drips_headers(request: Request) -> None:
        request.drip(b"HTTP/1.1 200 OK\r\nX-Long: " + b"y" * 1000, 0.02)

    limits = replace(FAST, retries=0, answer_time=0.5, stall_time=0.4, min_rate=1000)
    for number, behave in enumerate((nothing, drips, drips_in_the_end, drips_headers, Request.hang)):
        with HttpServer(behave) as server:
            fetched = fetch(tmp_path / str(number), server, limits=limits)
            assert fetched.status == "failed"
            # Not that the server cut it off, as all of them do in the end.
            assert "stalled" in outcome(fetched) or "no answer" in outcome(fetched)


def test_too_slow_as_a_whole(tmp_path: Path) -> None:
    """A download that never stalls ends all the same."""

    def behave(request: Request) -> None:
        request.head(200)
        request.send(FILE[:4])
        while request.drip(bytes(1), 0.01):
            pass

    with HttpServer(behave) as server:
        fetched = fetch(tmp_path, server, limits=replace(FAST, retries=0, min_rate=1, total_time=0.5))
        assert "not done after 0.5 s" in outcome(fetched)


def test_retry_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that asks for a short pause gets it; for a long one it is left alone meanwhile."""
    pauses: list[float] = []
    monkeypatch.setattr(Call, "sleep", lambda self, seconds: pauses.append(seconds))
    with HttpServer(in_turn(says(429, Retry_After="1"), sends())) as server:
        assert fetch(tmp_path, server, limits=replace(FAST, longest_wait=1.5)).status == "found"
        assert pauses == [1]
    with (
        HttpServer(says(429, Retry_After="99999")) as server,
        Debuginfod([server.url], FetchOptions(cache=tmp_path / "2", limits=FAST)) as client,
    ):
        assert client.fetch(ID, "debuginfo").status == "failed"
        later = client.fetch(OTHER, "debuginfo")
        assert later.status == "skipped"
        assert "it asked to wait" in outcome(later)
        assert len(server.asked) == 1


def to(location: str) -> Callable[[Request], None]:
    """A server that sends everybody elsewhere."""
    return lambda request: request.reply(302, Location=location)


def test_redirects(tmp_path: Path) -> None:
    """Redirects are followed within the hosts given, three times at most."""
    with HttpServer(in_turn(to("/elsewhere"), to("other?x=1"), sends())) as server:
        assert fetch(tmp_path, server).status == "found"
        assert server.asked == [f"/buildid/{ID}/debuginfo", "/elsewhere", "/other?x=1"]
    with HttpServer(to("/again")) as server:
        fetched = fetch(tmp_path / "2", server)
        assert "more than 3 redirects" in outcome(fetched)
        assert len(server.asked) == 4


@pytest.mark.parametrize(
    "location",
    [
        "http://localhost:{port}/x",
        "http://127.0.0.2:{port}/x",
        "http://127.0.0.1:{other}/x",
        "//localhost/x",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]:{port}/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "http://127.0.0.1:99999/x",
        "http://127.0.0.1\r\n evil",
        "",
    ],
)
def test_redirects_elsewhere(location: str, tmp_path: Path) -> None:
    """No redirect leads to a host or port that was not given, or to another scheme."""
    with HttpServer(sends()) as elsewhere, HttpServer(says(404)) as server:
        server.behave = to(location.format(port=server.port, other=elsewhere.port))
        fetched = fetch(tmp_path, server)
        assert fetched.status == "failed"
        assert "redirect" in outcome(fetched)
        assert elsewhere.asked == []
        assert len(server.asked) == 1
        assert outcome(fetched).isprintable()


def test_no_downgrade() -> None:
    """A redirect from https to http is refused, the other way round it is followed."""
    from symbolize.binaries.debuginfod.transport import Refused, Transport

    transport = Transport([Server.parse("https://symbols.example"), Server.parse("http://plain.example")], {}, 1.0)
    assert transport._redirected("http://plain.example/x", "https://plain.example/y") == "https://plain.example/y"
    for target in ("http://symbols.example/y", "http://plain.example/y"):
        with pytest.raises(Refused, match="from https"):
            transport._redirected("https://symbols.example/x", target)
    transport.close()


def test_credentials_stay_with_their_server(tmp_path: Path) -> None:
    """A password and extra headers go to the server that they are for, never along with a redirect to another."""
    told: list[str] = []
    with HttpServer(sends()) as second, HttpServer(to(f"{second.url}/x")) as first:
        urls = [first.url.replace("//", "//me:s3cr%2Ft@"), second.url]
        headers = {"X-Token": "t0ken"}
        second.probe = lambda request: None  # so that it is not asked but by way of the other one
        with Debuginfod(urls, FetchOptions(cache=tmp_path, limits=FAST, headers=headers, tell=told.append)) as client:
            fetched = client.fetch(ID, "debuginfo")
        assert first.requests[0].headers["authorization"] == "Basic bWU6czNjci90"
        assert first.requests[0].headers["x-token"] == "t0ken"
        assert second.asked == ["/x"]
        assert "authorization" not in second.requests[0].headers
        assert "x-token" not in second.requests[0].headers
        for text in (*told, str(fetched), repr(client.servers), str(client.probe())):
            assert "s3cr" not in text
            assert "t0ken" not in text
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or path.suffix or b"s3cr" not in path.read_bytes()


def test_proxies(tmp_path: Path) -> None:
    """A proxy is used for the hosts that need one, and gets its own password and no other."""
    with HttpServer(sends(), probe=lambda request: request.reply(200)) as proxy, HttpServer(sends()) as near:
        proxies = {"all": proxy.url.replace("//", "//p:s3cret@"), "no": "127.0.0.1,other.example"}
        far = "http://far.example/symbols"
        with Debuginfod([far], FetchOptions(cache=tmp_path / "1", limits=FAST, proxies=proxies)) as client:
            assert client.fetch(ID, "debuginfo").status == "found"
            assert "s3cret" not in str(client.probe())
        assert proxy.asked == [f"{far}/", f"{far}/buildid/{ID}/debuginfo"]
        assert proxy.requests[1].headers["proxy-authorization"] == "Basic cDpzM2NyZXQ="
        assert proxy.requests[1].headers["host"] == "far.example"
        with Debuginfod([near.url], FetchOptions(cache=tmp_path / "2", limits=FAST, proxies=proxies)) as client:
            assert client.fetch(ID, "debuginfo").status == "found"
        assert len(proxy.asked) == 2
        # That a server cannot be reached without a proxy says nothing of the way through it.
        dead = unreachable()
        for settings, status in (({}, "skipped"), ({"http": proxy.url}, "found")):
            with Debuginfod([dead], FetchOptions(cache=tmp_path / "3", limits=FAST, proxies=settings)) as client:
                assert client.fetch(ID, "debuginfo").status == status
    with pytest.raises(UsageError) as error:
        Debuginfod([], FetchOptions(cache=tmp_path, proxies={"http": "socks5://p:s3cret@x"}))
    assert "s3cret" not in str(error.value)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for localhost, with its key, that nobody signed."""
    return made_certificate(tmp_path)


@pytest.mark.needs("openssl")
def test_https(certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates are verified; a download by TLS can be ended."""

    def behave(request: Request) -> None:
        if request.path.endswith("executable"):
            request.hang()
        else:
            request.reply(200, SMALL)

    with HttpServer(behave, certificate=certificate) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        with Debuginfod([url], FetchOptions(cache=tmp_path / "1", limits=FAST)) as client:
            fetched = client.fetch(ID, "debuginfo")
            assert fetched.status == "skipped"
            assert "certificate" in outcome(fetched)
        assert server.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with Debuginfod([url], FetchOptions(cache=tmp_path / "2", limits=FAST)) as client:
            assert client.fetch(ID, "debuginfo").status == "found"
            (future,) = client.prefetch([(ID, ["executable"], 1.0)])
            wait_for(lambda: len(server.asked) == 2)
        assert future.result()["executable"].status == "skipped"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5), (" 5 ", 5), ("0", 0), ("9" * 9, 999_999_999), ("9" * 10, None), ("", None), ("-5", None), ("1.5", None),
     ("Fri, 31 Dec 1999 23:59:59 GMT", None), ("\u0665", None)],
)  # fmt: skip
def test_pauses_that_servers_ask_for(text: str, seconds: float | None) -> None:
    """Seconds count, dates and all else do not."""
    assert retry_after(text) == seconds
