"""The folder that debuginfod clients share, and the variables that describe a client."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from symbolize.binaries.debuginfod import ClientCache, Debuginfod, FetchOptions, Limits, default_folder
from symbolize.binaries.debuginfod.cache import section_entry
from symbolize.binaries.debuginfod.server import read_environment
from symbolize.core.errors import UsageError
from tests.support.http_server import HttpServer

ID = "aa" * 20
DAY = 86400


def never() -> bool:
    """Nobody wants to stop."""
    return False


def test_names_of_sections() -> None:
    """Sections go by a hash and their name, with odd characters replaced."""
    assert section_entry("a") == "section-0002b606-a"  # 5381 * 33 + 97
    assert section_entry(".debug_info").endswith("-.debug_info")
    assert section_entry("../x y").endswith("-..#x#y")
    assert len(section_entry("x" * 5000)) < 200


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"HOME": "{home}"}, "{home}/.cache/debuginfod_client"),
        ({"HOME": "{home}", "XDG_CACHE_HOME": "/x"}, "/x/debuginfod_client"),
        ({"HOME": "{home}", "XDG_CACHE_HOME": ""}, "{home}/.cache/debuginfod_client"),
        ({"HOME": "{home}/old", "XDG_CACHE_HOME": "/x"}, "{home}/old/.debuginfod_client_cache"),
    ],
)
def test_default_folder(variables: dict[str, str], folder: str, tmp_path: Path) -> None:
    """The folder is the one that elfutils' client uses."""
    (tmp_path / "old" / ".debuginfod_client_cache").mkdir(parents=True)
    given = {name: value.format(home=tmp_path) for name, value in variables.items()}
    assert default_folder(given) == folder.format(home=tmp_path)


def test_one_at_a_time(tmp_path: Path) -> None:
    """Who comes second waits until the first is done, or goes on without."""
    cache, order = ClientCache(tmp_path), []

    def second() -> None:
        with cache.only_one(ID, "debuginfo", 60, never) as lock:
            order.append(lock)

    with cache.only_one(ID, "debuginfo", 5, never) as lock:
        assert lock
        with cache.only_one(ID, "debuginfo", 0.05, never) as other:
            assert not other
        with cache.only_one(ID, "debuginfo", 60, lambda: True) as other:
            assert not other
        with cache.only_one(ID, "executable", 0.05, never) as other:
            assert other
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", True]
    assert list((tmp_path / "symbolize" / "locks").iterdir()) == []


HOLDS = """
import sys, time
from symbolize.binaries.debuginfod import ClientCache
with ClientCache(sys.argv[1]).only_one(sys.argv[2], "debuginfo", 0, lambda: False) as is_mine:
    print(is_mine, flush=True)
    time.sleep(60)
"""


@pytest.mark.process
def test_lock_of_a_killed_process(tmp_path: Path) -> None:
    """A lock counts for as long as its process lives, however old it is, and what it leaves behind hinders nobody."""
    cache = ClientCache(tmp_path)
    path = tmp_path / "symbolize" / "locks" / f"{ID}-debuginfo"
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path), ID], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        os.utime(path, (0, 0))
        with cache.only_one(ID, "debuginfo", 0.05, never) as lock:
            assert not lock
        other.kill()
    assert path.exists()
    with cache.only_one(ID, "debuginfo", 5, never) as lock:
        assert lock
    assert not path.exists()


def test_lock_is_for_one_of_many(tmp_path: Path) -> None:
    """Whoever waits while the file of the lock comes and goes gets it alone."""
    cache, holders, most = ClientCache(tmp_path), [0], [0]

    def hold() -> None:
        for _ in range(20):
            with cache.only_one(ID, "debuginfo", 60, never) as lock:
                assert lock
                holders[0] += 1
                most[0] = max(most[0], holders[0])
                time.sleep(0.0005)
                holders[0] -= 1

    threads = [threading.Thread(target=hold) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_unfinished_files(tmp_path: Path) -> None:
    """Nothing appears before it is whole, and what fails leaves nothing."""
    cache = ClientCache(tmp_path)
    with cache.writing(ID, "debuginfo") as file:
        file.write(b"half")
        file.flush()
        assert cache.find(ID, "debuginfo") is None
        assert os.path.dirname(file.name) == str(tmp_path / ID)
        file.write(b"whole")
    assert (tmp_path / ID / "debuginfo").read_bytes() == b"halfwhole"
    with pytest.raises(ZeroDivisionError), cache.writing(ID, "debuginfo") as file:
        file.write(b"x" * (1 // 0))
    assert [each.name for each in (tmp_path / ID).iterdir()] == ["debuginfo"]


def test_verdicts(tmp_path: Path) -> None:
    """Verdicts hold for a while; damaged ones do not."""
    cache = ClientCache(tmp_path)
    assert cache.read_verdict("http://x", 60) is None
    cache.write_verdict("http://x", False, "unreachable")
    found = cache.read_verdict("http://x", 60)
    assert found
    assert (found["is_up"], found["text"]) == (False, "unreachable")
    assert cache.read_verdict("http://x", 0) is None
    assert cache.read_verdict("http://y", 60) is None
    (path,) = (tmp_path / "symbolize" / "servers").iterdir()
    for text in ("", "[]", "{}", "[" * 2000, '{"time": "x"}', '{"time": 1e400, "is_up": true}'):
        path.write_text(text)
        assert cache.read_verdict("http://x", 60) is None


def test_cleaning(tmp_path: Path) -> None:
    """Files unused for long go, at intervals, as the control files say; what nobody knows stays."""
    cache = ClientCache(tmp_path)
    old, new = tmp_path / ID, tmp_path / ("bb" * 20)
    files = [old / "debuginfo", old / "section-00000000-.text", old / ".symbolize-left", new / "executable"]
    kept = [tmp_path / "notes.txt", tmp_path / "other" / "debuginfo", new / "mine", new / ".symbolize-busy"]
    now = time.time()
    for path in (*files, *kept):
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
        os.utime(path, (now - 8 * DAY,) * 2)
    os.utime(new / ".symbolize-busy", (now - 60,) * 2)
    assert cache.clean() == 0  # the first time only begins the interval
    control = tmp_path / "cache_clean_interval_s"
    assert control.read_text() == str(DAY)
    assert cache.clean() == 0
    os.utime(control, (now - 2 * DAY,) * 2)
    (tmp_path / "max_unused_age_s").write_text(str(9 * DAY))
    assert cache.clean() == 1  # what a dead process left
    os.utime(control, (now - 2 * DAY,) * 2)
    (tmp_path / "max_unused_age_s").write_text("rubbish")
    assert cache.find(new.name, "executable")  # which makes it used
    assert cache.clean() == 2
    assert not old.exists()
    assert all(path.exists() for path in (*kept, new / "executable"))


@pytest.mark.process
def test_cleaning_where_only_sources_are_fetched(tmp_path: Path) -> None:
    """They take room too: a symbol server may fetch nothing else."""
    old, control = tmp_path / ID / "source-0-old", tmp_path / "cache_clean_interval_s"
    old.parent.mkdir()
    for path in (old, control):
        path.write_text("1")
        os.utime(path, (time.time() - 8 * DAY,) * 2)
    with (
        HttpServer(lambda request: request.reply(200, b"text")) as server,
        Debuginfod([server.url], FetchOptions(cache=tmp_path)) as client,
    ):
        assert client.fetch_source(ID, "/src/new.c").path is not None
    assert not old.exists()


def test_environment(tmp_path: Path) -> None:
    """Each variable has its meaning, and what makes no sense is said and left out."""
    headers = tmp_path / "headers"
    headers.write_text("X-One: 1\n\n   \nX-Two:  a: b \nrubbish\nX Bad: s3cret\nX-Bad: s3c\x01ret\n: s3cret\n")
    found = read_environment(
        {
            "DEBUGINFOD_URLS": "http://a.example/ ima:enforcing https://me:s3cret@b.example:8002/x/ ima:ignore "
            "http://a.example ftp://s3cret@c/ ima:odd http://d.example",
            "DEBUGINFOD_CACHE_PATH": "/somewhere",
            "DEBUGINFOD_TIMEOUT": "7",
            "DEBUGINFOD_MAXTIME": "8",
            "DEBUGINFOD_MAXSIZE": "9",
            "DEBUGINFOD_RETRY_LIMIT": "1000000",
            "DEBUGINFOD_PROGRESS": "1",
            "HTTP_PROXY": "http://not.example",
            "HTTPS_PROXY": "proxy:3128",
            "no_proxy": "a.example",
            "DEBUGINFOD_HEADERS_FILE": str(headers),
        },
        FetchOptions(),
    )
    assert [(server.url, server.refusal != "") for server in found.servers] == [
        ("http://a.example", False),
        ("https://b.example:8002/x", True),
        ("URL 4 of DEBUGINFOD_URLS", True),
        ("http://d.example", True),
    ]
    assert (found.options.cache, found.wants_progress) == ("/somewhere", True)
    limits = found.options.limits
    assert limits is not None
    assert (limits.answer_time, limits.total_time, limits.max_size, limits.retries) == (7, 8, 9, 10)
    assert found.options.headers == {"X-One": "1", "X-Two": "a: b"}
    assert found.options.proxies == {"https": "proxy:3128", "no": "a.example"}
    assert len(found.problems) == 5
    assert not any("s3c" in problem for problem in (*found.problems, *(each.refusal for each in found.servers)))


def test_environment_by_default() -> None:
    """Without variables there is no server, and the limits are the usual ones."""
    found = read_environment(
        {"HOME": "/home/x", "DEBUGINFOD_TIMEOUT": "soon", "DEBUGINFOD_HEADERS_FILE": "/nowhere"}, FetchOptions()
    )
    assert found.servers == []
    assert found.options.limits == Limits()
    assert found.options.cache == "/home/x/.cache/debuginfod_client"
    assert len(found.problems) == 3
    found = read_environment(
        {"DEBUGINFOD_TIMEOUT": "0", "DEBUGINFOD_MAXTIME": "-1", "DEBUGINFOD_MAXSIZE": "0"}, FetchOptions()
    )
    assert found.options.limits.answer_time > DAY
    assert found.options.limits.total_time > DAY
    assert found.options.limits.max_size == Limits().max_size


def test_environment_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is given its servers knows nothing of the variables."""
    for name in ("URLS", "CACHE_PATH", "TIMEOUT", "HEADERS_FILE", "MAXSIZE"):
        monkeypatch.setenv(f"DEBUGINFOD_{name}", "9" if name in ("TIMEOUT", "MAXSIZE") else "http://x.example")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with Debuginfod([]) as client:
        assert client.servers == []
        assert client.limits == Limits()
        assert client.cache.path == str(tmp_path / "debuginfod_client")
        assert client.fetch(ID, "debuginfo").status == "skipped"
    assert list(tmp_path.iterdir()) == []
    told: list[str] = []
    with Debuginfod.from_environment(options=FetchOptions(tell=told.append)) as client:
        assert [server.url for server in client.servers] == ["http://x.example"]
        assert client.cache.path == "http://x.example"
        assert client.limits.max_size == 9
    assert "HEADERS_FILE" in told[0]


@pytest.mark.parametrize("headers", [{"X\r\n": "y"}, {"X": "s3cret\r\nY: z"}, {"": "y"}, {"X:": "y"}])
def test_bad_headers(headers: dict[str, str], tmp_path: Path) -> None:
    """A header that would make another one is an error, which does not show its value."""
    with pytest.raises(UsageError) as error:
        Debuginfod(["http://x.example"], FetchOptions(cache=tmp_path, headers=headers))
    assert "s3cret" not in str(error.value)


def test_cleaning_of_notes(tmp_path: Path) -> None:
    """What misses, locks and servers left goes by the same age, and not before an hour."""
    cache, control, now = ClientCache(tmp_path), tmp_path / "cache_clean_interval_s", time.time()
    cache.write_miss(ID, "debuginfo", "servers")
    cache.write_verdict("http://x", True, "")
    (tmp_path / "symbolize" / "locks").mkdir()
    (tmp_path / "symbolize" / "locks" / f"{ID}-debuginfo").touch()
    notes = [path for part in ("misses", "locks", "servers") for path in (tmp_path / "symbolize" / part).iterdir()]
    assert len(notes) == 3
    assert cache.clean() == 0
    for unused, age, left in ((60, 1000, 3), (2 * DAY, DAY, 3), (2 * DAY, 3 * DAY, 0)):
        (tmp_path / "max_unused_age_s").write_text(str(unused))
        for path in (control, *notes):
            os.utime(path, (now - (2 * DAY if path == control else age),) * 2)
        assert cache.clean() == 3 - left
        assert sum(path.exists() for path in notes) == left
