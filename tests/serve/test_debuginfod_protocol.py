"""Debug files by build id, as clients of debuginfod get them."""

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus as Status
from pathlib import Path

import pytest

from tests.support.fixture_files import FIXTURES
from tests.support.http_server import HttpServer, Request
from tests.support.needs import package
from tests.support.symbol_server import HttpClient, build_id, serving, settings

package("starlette")
package("uvicorn")

from symbolize.serve import debug_files, profiles

LEDGER = FIXTURES / "bin" / "gcc-pie" / "ledger"
SOURCE = "/src/ledger/main.cc"
TEXT = FIXTURES / "src" / "ledger" / "main.cc"
ID = build_id(LEDGER)

pytestmark = [pytest.mark.process, pytest.mark.needs("objcopy", "strip")]


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stripped program, and its debug file in another one."""
    folder = tmp_path_factory.mktemp("split")
    (folder / "debug").mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", LEDGER, folder / "debug" / "ledger.debug"], check=True)
    subprocess.run(["strip", "-o", folder / "ledger", LEDGER], check=True)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, split: Path) -> Iterator[HttpClient]:
    """A server over both, with sources."""
    sources = [str(FIXTURES / "src")]
    with serving(settings(tmp_path_factory.mktemp("serve"), split, sources=sources)) as running:
        yield running


def test_files_and_their_headers(server: HttpClient, split: Path) -> None:
    """What a client reads of each kind."""
    for kind, path in (("executable", split / "ledger"), ("debuginfo", split / "debug" / "ledger.debug")):
        answer = server.ask("GET", f"/buildid/{ID.upper()}/{kind}")
        assert answer.status == Status.OK
        assert answer.body == path.read_bytes()
        assert answer.headers["content-length"] == answer.headers["x-debuginfod-size"] == str(path.stat().st_size)
        assert answer.headers["x-debuginfod-file"] == path.name
        assert answer.headers["content-type"] == "application/octet-stream"
        assert "last-modified" in answer.headers
        head = server.ask("HEAD", f"/buildid/{ID}/{kind}")
        assert (head.status, head.body) == (Status.OK, b"")
        assert head.headers["content-length"] == str(path.stat().st_size)


def test_parts_of_files(server: HttpClient, split: Path) -> None:
    """A download goes on where it ended, if the file is the same."""
    path, whole = f"/buildid/{ID}/executable", (split / "ledger").read_bytes()
    tag = server.ask("GET", path).headers["etag"]
    part = server.ask("GET", path, Range="bytes=1000-1999", If_Range=tag)
    assert (part.status, part.body) == (Status.PARTIAL_CONTENT, whole[1000:2000])
    assert part.headers["content-range"] == f"bytes 1000-1999/{len(whole)}"
    assert server.ask("GET", path, Range="bytes=1000-", If_Range='"other"').status == Status.OK
    assert server.ask("GET", path, Range=f"bytes={len(whole)}-").status == Status.REQUESTED_RANGE_NOT_SATISFIABLE
    many = server.ask("GET", path, Range="bytes=" + ",".join(f"{n}-{n + 1}" for n in range(0, 3000, 3)))
    assert (many.status, many.body) == (Status.OK, whole)
    assert server.ask("GET", path, If_None_Match=tag).status == Status.NOT_MODIFIED


def test_sizes(server: HttpClient, split: Path) -> None:
    """A client may set a limit."""
    size = (split / "ledger").stat().st_size
    path = f"/buildid/{ID}/executable"
    refused = server.ask("GET", path, X_DEBUGINFOD_MAXSIZE=str(size - 1))
    assert (refused.status, refused.body) == (Status.NOT_ACCEPTABLE, f"File too large, max size={size - 1}\n".encode())
    for accepted in (str(size), "0", "-1", "x", "9" * 5000, "²"):
        assert server.ask("GET", path, X_DEBUGINFOD_MAXSIZE=accepted.encode().decode("latin-1")).status == Status.OK


def test_sections(server: HttpClient, tmp_path: Path) -> None:
    """Of the debug file, and of the program what is not in that."""
    for name in (".text", ".debug_line", ".note.gnu.build-id"):
        expected = tmp_path / "section"
        command = ["objcopy", f"--dump-section={name}={expected}", LEDGER, tmp_path / "copy"]
        subprocess.run(command, check=True)
        answer = server.ask("GET", f"/buildid/{ID}/section/{name}")
        assert answer.body == expected.read_bytes()
        assert answer.headers["x-debuginfod-size"] == answer.headers["content-length"] == str(len(answer.body))
    assert server.ask("GET", f"/buildid/{ID}/section/.bss").status == Status.NOT_FOUND
    assert server.ask("GET", f"/buildid/{ID}/section/{'x' * 300}").status == Status.BAD_REQUEST


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "//etc/passwd",
        "/src/ledger/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%252e%252e/etc/passwd",
        "/src/ledger/main.cc%00",
        "/src/ledger/README.md",
        "/build.py",
        "/ledger/main.cc",
    ],
)
def test_sources_that_are_not_sent(server: HttpClient, path: str) -> None:
    """Only what the debug information names, below the folders with sources."""
    assert server.ask("GET", f"/buildid/{ID}/source{path}").status in (Status.NOT_FOUND, Status.BAD_REQUEST)


def test_sources(server: HttpClient) -> None:
    """As they are named, and with the detours that compilers write."""
    for path in (SOURCE, "/src/ledger/./main.cc", "/src//ledger/main.cc", "/src/other/../ledger/main.cc"):
        assert server.ask("GET", f"/buildid/{ID}/source{path}").body == TEXT.read_bytes()


def test_sources_need_the_token(tmp_path: Path) -> None:
    """As a header or in the path, which clients of debuginfod can have; debug files do not."""
    token, path = "a-token-of-the-tests", f"/buildid/{ID}/source{SOURCE}"
    with serving(settings(tmp_path, LEDGER.parent, sources=[str(FIXTURES)], token=token)) as server:
        assert server.ask("GET", path).status == Status.UNAUTHORIZED
        assert server.ask("GET", path, Authorization=f"Bearer {token}").status != Status.UNAUTHORIZED
        assert server.ask("GET", f"/{token}{path}").status != Status.UNAUTHORIZED
        assert server.ask("GET", f"/buildid/{ID}/executable").status == Status.OK


def test_what_shared_caches_may_keep(server: HttpClient) -> None:
    """They would hand it out without asking for the token: files, not sources."""
    for path, kept in ((f"/buildid/{ID}/executable", "public"), (f"/buildid/{ID}/source{SOURCE}", "private")):
        assert server.ask("GET", path).headers["cache-control"].startswith(kept)


@pytest.mark.parametrize("is_known", [True, False])
def test_files_that_are_cut(tmp_path: Path, is_known: bool) -> None:
    """Since the folders were walked or before: are not sent, and are no misses, which clients remember."""
    (folder := tmp_path / "bin").mkdir()
    copy = shutil.copy(LEDGER, folder)
    if is_known:
        os.truncate(copy, 150_000)
    with serving(settings(tmp_path, folder)) as server:
        if not is_known:
            os.truncate(copy, 150_000)
        for what in ("executable", "debuginfo", "section/.debug_info"):
            assert server.ask("GET", f"/buildid/{ID}/{what}").status == Status.SERVICE_UNAVAILABLE


def test_links_out_of_the_folders(tmp_path: Path) -> None:
    """A file that became a link to elsewhere since the walk is not sent, after another walk either."""
    (tmp_path / "bin").mkdir()
    shutil.copy(LEDGER, tmp_path / "bin" / "ledger")
    secret = tmp_path / "secret"
    secret.write_bytes(LEDGER.read_bytes() + b"secret")
    with serving(settings(tmp_path, tmp_path / "bin")) as server:
        path = f"/buildid/{ID}/executable"
        assert server.ask("GET", path).status == Status.OK
        (tmp_path / "bin" / "ledger").unlink()
        (tmp_path / "bin" / "ledger").symlink_to(secret)
        assert server.ask("GET", path).status == Status.NOT_FOUND


@pytest.mark.parametrize(
    ("number", "status"), [(errno.EMFILE, Status.SERVICE_UNAVAILABLE), (errno.ENOENT, Status.NOT_FOUND)]
)
def test_files_that_cannot_be_opened(
    server: HttpClient, monkeypatch: pytest.MonkeyPatch, number: int, status: Status
) -> None:
    """For a reason that may pass are no misses, which clients remember."""

    def cannot(path: str) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(debug_files, "opened_file", cannot)
        for what in ("executable", "debuginfo", "section/.text"):
            assert server.ask("GET", f"/buildid/{ID}/{what}").status == status
    assert server.ask("GET", f"/buildid/{ID}/executable").status == Status.OK


def test_what_is_sent_is_what_was_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if there is another file at its path by then."""
    path, other = tmp_path / "ledger", tmp_path / "other"
    shutil.copy(LEDGER, path)
    other.write_bytes(b"secret")
    open_image = debug_files.ElfImage.open

    def replaced(name: str) -> debug_files.ElfImage:
        image = open_image(name)
        other.replace(path)
        return image

    monkeypatch.setattr(debug_files.ElfImage, "open", replaced)
    opened = debug_files.checked(str(path), ID, "executable")
    assert opened is not None
    assert opened.file.read() == LEDGER.read_bytes()
    assert path.read_bytes() == b"secret"


@pytest.mark.needs("debuginfod-find")
def test_debuginfod_find(server: HttpClient, split: Path, tmp_path: Path) -> None:
    """The client of elfutils gets all kinds, and learns of misses."""
    environment = os.environ | {"DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": str(tmp_path)}

    def find(*what: str) -> Path | None:
        command = ["debuginfod-find", *what]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return Path(found.stdout.strip()) if found.returncode == 0 else None

    for kind, expected in (
        (["executable", ID], (split / "ledger").read_bytes()),
        (["debuginfo", ID], (split / "debug" / "ledger.debug").read_bytes()),
        (["source", ID, SOURCE], TEXT.read_bytes()),
    ):
        found = find(*kind)
        assert found is not None
        assert found.read_bytes() == expected
    section = find("section", ID, ".comment")
    assert section is not None
    assert b"GCC" in section.read_bytes()
    assert find("debuginfo", "ab" * 20) is None
    assert find("source", ID, "/etc/passwd") is None


@pytest.mark.needs("gdb")
def test_gdb(server: HttpClient, split: Path, tmp_path: Path) -> None:
    """Finds the debug information of a stripped program, and shows its source."""
    options = subprocess.run(["gdb", "--configuration"], capture_output=True, text=True, check=True).stdout
    if "--with-debuginfod" not in options:
        pytest.skip("this gdb was built without debuginfod, which that of Debian has: apt-get install gdb")
    program = tmp_path / "program"
    shutil.copy(split / "ledger", program)
    environment = os.environ | {
        "DEBUGINFOD_URLS": server.url,
        "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
    }
    command = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled on", "-ex", "info line main", "-ex", "list main"]
    shown = subprocess.run([*command, program], env=environment, capture_output=True, text=True, check=False).stdout
    assert re.search(r'Line \d+ of "main.cc"', shown), shown
    line = next(line for line in TEXT.read_text().splitlines() if "main(" in line)
    assert line in shown


def test_servers_behind(tmp_path: Path) -> None:
    """What is not here comes from them, checked; they are told for whom, and not asked by who went through many."""
    debug = tmp_path / "ledger.debug"
    subprocess.run(["objcopy", "--only-keep-debug", LEDGER, debug], check=True)

    def behave(request: Request) -> None:
        files = {f"/buildid/{ID}/debuginfo": debug.read_bytes(), f"/buildid/{ID}/source{SOURCE}": TEXT.read_bytes()}
        if request.path in files:
            request.reply(Status.OK, files[request.path])
        elif "ee" * 20 in request.path:
            request.reply(Status.INTERNAL_SERVER_ERROR)
        else:
            request.reply(Status.NOT_FOUND)

    (tmp_path / "bin").mkdir()
    with HttpServer(behave) as behind, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "downloads"))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        patch.setenv("HOME", str(tmp_path))
        with serving(settings(tmp_path, tmp_path / "bin", debuginfod=[behind.url])) as server:
            hops = ", ".join(f"10.0.0.{n}" for n in range(8))
            path = f"/buildid/{ID}/debuginfo"
            assert server.ask("GET", path, X_Forwarded_For=hops).status == Status.NOT_FOUND
            assert behind.asked == []
            answer = server.ask("GET", path, X_Forwarded_For="10.0.0.1")
            assert (answer.status, answer.body) == (Status.OK, debug.read_bytes())
            assert behind.requests[0].headers["x-forwarded-for"] == "10.0.0.1, 127.0.0.1"
            assert server.ask("GET", f"/buildid/{ID}/source{SOURCE}").body == TEXT.read_bytes()
            assert server.ask("GET", f"/buildid/{ID}/source/etc/passwd").status == Status.NOT_FOUND
            odd = {"X_Forwarded_For": "fe80::1%eth0, 10.0.0.1"}
            assert server.ask("GET", f"/buildid/{'ab' * 20}/executable", **odd).status == Status.NOT_FOUND
            assert behind.requests[-1].headers["x-forwarded-for"] == "unknown, unknown, 127.0.0.1"
            failed = server.ask("GET", f"/buildid/{'ee' * 20}/executable")
            assert (failed.status, failed.headers["retry-after"]) == (Status.SERVICE_UNAVAILABLE, "2")
            assert behind.url not in failed.body.decode()


def test_large_debug_files_behind(server: HttpClient, tmp_path: Path) -> None:
    """One of which only sections were fetched is not here, and no miss either."""
    (tmp_path / "bin").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "downloads"))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        patch.setattr(profiles, "FETCHING", replace(profiles.FETCHING, sections_above=1))
        with serving(settings(tmp_path, tmp_path / "bin", debuginfod=[server.url])) as front:
            answer = front.ask("GET", f"/buildid/{ID}/debuginfo")
            assert answer.status == Status.SERVICE_UNAVAILABLE
            assert "so large" in answer.json()["title"]
            assert front.ask("GET", f"/buildid/{ID}/executable").status == Status.OK
            assert front.symbolicate({"memoryMap": [["ledger", ID]], "stacks": [[[0, 0x25D0]]]}).json()["results"][0][
                "stacks"
            ][0][0]["line"]


def test_servers_that_do_not_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Are named in the log, and not in the answer."""
    (tmp_path / "bin").mkdir()
    with HttpServer(lambda request: None) as gone:
        url = gone.url
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "downloads"))
        with serving(settings(tmp_path, tmp_path / "bin", debuginfod=[url])) as server:
            answer = server.ask("GET", f"/buildid/{ID}/debuginfo")
    assert answer.status == Status.SERVICE_UNAVAILABLE
    assert url not in answer.body.decode()
    assert url in caplog.text


def test_servers_in_a_circle(tmp_path: Path) -> None:
    """Each asks the other, until the limit of hops."""
    (tmp_path / "bin").mkdir()
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        circle: list[HttpClient] = []

        def behave(request: Request) -> None:
            asked.append(request.headers["x-forwarded-for"])
            # Another id each time: a client asks for one file once at a time.
            number = int(request.path.split("/")[2], 16) + 1
            headers = {"X_Forwarded_For": request.headers["x-forwarded-for"]}
            answer = circle[0].ask("GET", f"/buildid/{number:040x}/executable", **headers)
            request.reply(answer.status, answer.body)

        with HttpServer(behave) as other, serving(settings(tmp_path, tmp_path / "bin", debuginfod=[other.url])) as one:
            circle.append(one)
            assert one.ask("GET", f"/buildid/{1:040x}/executable").status == Status.NOT_FOUND
    assert [each.count(",") for each in asked] == [*range(8)]
