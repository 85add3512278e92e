"""Downloads that break off, and go on where they did."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from symbolize.binaries.debuginfod import Debuginfod, Fetched, FetchOptions
from symbolize.elf import read_build_id
from tests.support.debuginfod_servers import FAST
from tests.support.fixture_files import BINARIES
from tests.support.http_server import HttpServer, Request

pytestmark = pytest.mark.process

PATH = BINARIES / "gcc-pie" / "spectra"
FILE = PATH.read_bytes()
ID = str(read_build_id(str(PATH)))
PART = 80_000
"""Bytes that come before the connection breaks."""


def breaks_off(sent: list[bytes], *validators: str, is_ranged: bool = True) -> Callable[[Request], None]:
    """A server that ends each answer after a part; `validators` are the ETags of the file, one an answer and in the
    end the last. `sent` gets what was sent each time."""
    tags = list(validators)

    def answer(request: Request) -> None:
        tag = tags.pop(0) if len(tags) > 1 else tags[0]
        begin = int(request.headers.get("range", "bytes=0-")[6:-1])
        if not is_ranged or request.headers.get("if-range") != tag:
            begin = 0
        rest = FILE[begin:]
        more = {"Content_Range": f"bytes {begin}-{len(FILE) - 1}/{len(FILE)}"} if begin else {}
        request.head(206 if begin else 200, Content_Length=str(len(rest)), ETag=tag, **more)
        sent.append(rest[:PART])
        request.send(rest[:PART])

    return answer


def fetch(server: HttpServer, folder: Path, retries: int = 0) -> Fetched:
    """What comes of asking for the file."""
    with Debuginfod([server.url], FetchOptions(cache=folder, limits=replace(FAST, retries=retries))) as client:
        return client.fetch(ID, "debuginfo")


def test_a_download_goes_on_where_it_broke_off(tmp_path: Path) -> None:
    """Each byte comes once, over several runs, and nothing is left over (rule R286, downloads that go on)."""
    sent: list[bytes] = []
    runs = -(-len(FILE) // PART)
    with HttpServer(breaks_off(sent, '"one"')) as server:
        for _ in range(runs - 1):
            assert fetch(server, tmp_path).status == "failed"
        fetched = fetch(server, tmp_path)
    assert fetched.path is not None
    assert Path(fetched.path).read_bytes() == b"".join(sent) == FILE
    assert [path.name for path in (tmp_path / ID).iterdir()] == ["debuginfo"]


def test_retries_go_on_too(tmp_path: Path) -> None:
    """Also within a run."""
    sent: list[bytes] = []
    with HttpServer(breaks_off(sent, '"one"')) as server:
        assert fetch(server, tmp_path, retries=-(-len(FILE) // PART)).status == "found"
    assert b"".join(sent) == FILE


@pytest.mark.parametrize(("tags", "is_ranged"), [(('"one"', '"two"'), True), (('"one"',), False), (('W/"one"',), True)])
def test_another_file_is_begun_anew(tags: tuple[str, ...], is_ranged: bool, tmp_path: Path) -> None:
    """Where the file at the server is another by now, or may be, or the server knows no ranges."""
    sent: list[bytes] = []
    with HttpServer(breaks_off(sent, *tags, is_ranged=is_ranged)) as server:
        for _ in range(2):
            assert fetch(server, tmp_path).status == "failed"
    assert sent[1] == FILE[:PART]


def test_a_part_that_does_not_fit_is_dropped(tmp_path: Path) -> None:
    """A beginning that was changed on disk makes no file: it is found out, and the file comes whole."""
    sent: list[bytes] = []
    with HttpServer(breaks_off(sent, '"one"')) as server:
        assert fetch(server, tmp_path).status == "failed"
        (part,) = [path for path in (tmp_path / ID).iterdir() if path.name.endswith("partial-debuginfo")]
        part.chmod(0o600)
        part.write_bytes(bytes(PART))

        def whole(request: Request) -> None:
            begin = int(request.headers.get("range", "bytes=0-")[6:-1])
            more = {"Content_Range": f"bytes {begin}-{len(FILE) - 1}/{len(FILE)}"} if begin else {}
            request.reply(206 if begin else 200, FILE[begin:], ETag='"one"', **more)

        server.behave = whole
        fetched = fetch(server, tmp_path, retries=1)
    assert fetched.path is not None
    assert Path(fetched.path).read_bytes() == FILE
