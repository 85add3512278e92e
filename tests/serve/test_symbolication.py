"""Mozilla's symbolication API as the Firefox Profiler and others speak it."""

import errno
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus as Status
from pathlib import Path

import pytest

from tests.support.fixture_files import FIXTURES
from tests.support.needs import package
from tests.support.symbol_server import HttpClient, breakpad_id, build_id, job, serving, settings

package("starlette")
package("uvicorn")

from symbolize.serve import modules as serve_modules
from symbolize.serve import symbolication
from symbolize.serve.metrics import ServerMetrics
from symbolize.serve.modules import HeldModule, Modules
from symbolize.serve.request_filter import PROFILER
from symbolize.symbols import TableCache

pytestmark = pytest.mark.process

BINARIES = FIXTURES / "bin" / "gcc-pie"
LEDGER, SPECTRA = BINARIES / "ledger", BINARIES / "spectra"
INLINED = 0x25D0
"""An offset in ledger with inlined functions."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    """A server over two programs and a library."""
    folder = tmp_path_factory.mktemp("serve")
    sources = folder / "sources"
    shutil.copytree(FIXTURES / "src" / "ledger", sources / "ledger")
    with serving(settings(folder, BINARIES, sources=[str(sources)])) as running:
        yield running


@pytest.mark.needs("addr2line")
def test_a_request_of_the_firefox_profiler(server: HttpClient) -> None:
    """Ten jobs with one library each, sent as text to spare a preflight: the answer field by field."""
    library = BINARIES / "libresonance.so"
    jobs = [job(path, [INLINED, 0x7FFFFFFF]) for path in (LEDGER, SPECTRA, library)]
    jobs += [{"memoryMap": [[f"lib{n}.so", f"{n:032X}0"]], "stacks": [[[0, 4096 * n]]]} for n in range(1, 8)]
    body = json.dumps({"jobs": jobs}).encode()
    headers = {"Content_Type": "text/plain;charset=UTF-8", "Origin": PROFILER}
    answer = server.ask("POST", "/symbolicate/v5", body, **headers)
    assert answer.status == Status.OK
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["access-control-allow-origin"] == PROFILER
    results = answer.json()["results"]
    assert len(results) == 10
    first = results[0]
    assert set(first) == {"stacks", "found_modules"}
    assert first["found_modules"] == {f"ledger/{breakpad_id(LEDGER)}": True}
    frame, unknown = first["stacks"][0]
    assert unknown == {"frame": 1, "module": "ledger", "module_offset": "0x7fffffff"}
    assert set(frame) == {
        *("frame", "module", "module_offset", "function", "function_offset", "function_size", "file", "line"),
        "inlines",
    }
    assert (frame["frame"], frame["module"], frame["module_offset"]) == (0, "ledger", hex(INLINED))
    assert int(frame["function_offset"], 16) < int(frame["function_size"], 16)
    lines = subprocess.run(["addr2line", "-fiCe", LEDGER, hex(INLINED)], capture_output=True, text=True, check=True)
    places = [line.split(" (")[0] for line in lines.stdout.splitlines()[1::2]]
    shown = [*frame["inlines"], frame]
    assert [f"{each['file']}:{each.get('line', '?')}" for each in shown] == places
    for number in range(3, 10):
        assert [*results[number]["found_modules"].values()] == [False]


def test_modules_that_no_frame_is_of(server: HttpClient) -> None:
    """Null says that nobody looked; module -1 is none, and an offset of -1 has no name."""
    modules = [[path.name, breakpad_id(path)] for path in (LEDGER, SPECTRA)]
    stack = [[0, INLINED], [-1, INLINED], [0, -1]]
    result = server.symbolicate({"memoryMap": modules, "stacks": [stack]}).json()["results"][0]
    assert [*result["found_modules"].values()] == [True, None]
    assert "function" in result["stacks"][0][0]
    assert result["stacks"][0][1:] == [
        {"frame": 1, "module": "<unknown>", "module_offset": hex(INLINED)},
        {"frame": 2, "module": "ledger", "module_offset": "-0x1"},
    ]


def test_ids_of_all_kinds(server: HttpClient) -> None:
    """Breakpad ids in both cases and whole build ids name one binary; zeros name none."""
    ids = [breakpad_id(LEDGER), breakpad_id(LEDGER).lower(), build_id(LEDGER), build_id(LEDGER).upper(), "0" * 33]
    frames = []
    for each in ids:
        request = {"memoryMap": [["renamed", each]], "stacks": [[[0, INLINED]]], "version": 5}
        frames.append(server.symbolicate(request).json()["results"][0]["stacks"][0][0])
    assert frames[0] == frames[1] == frames[2] == frames[3]
    assert frames[4] == {"frame": 0, "module": "renamed", "module_offset": hex(INLINED)}


def test_a_breakpad_id_of_what_is_open(tmp_path: Path) -> None:
    """By whichever id a binary was opened first; not if there are two builds by now that it may be of."""
    name = breakpad_id(LEDGER)
    (tmp_path / "bin").mkdir()
    (tmp_path / "shared").mkdir()
    path = Path(shutil.copy(LEDGER, tmp_path / "bin"))
    modules = Modules(
        [str(path.parent)], TableCache(tmp_path / "cache"), str(tmp_path / "shared"), None, ServerMetrics()
    )

    def held(build_id: str) -> HeldModule | None:
        with modules.held(build_id.lower()) as module:
            return module

    whole = build_id(LEDGER)
    assert held(whole) is held(name) is not None
    other = f"{whole[:-8]}{int(whole[-8:], 16) ^ 1:08x}"
    path.with_name("other").write_bytes(path.read_bytes().replace(bytes.fromhex(whole), bytes.fromhex(other)))
    modules.walk_again(0)
    assert None not in (held(whole), held(other))
    assert held(name) is None
    modules.close()


def test_debug_statistics(server: HttpClient) -> None:
    """Only who asks for them gets them."""
    body = json.dumps(job(LEDGER, [INLINED, 1 << 40])).encode()
    assert "debug" not in server.ask("POST", "/symbolicate/v5", body).json()
    debug = server.ask("POST", "/symbolicate/v5", body, Debug="true").json()["debug"]
    assert (debug["jobs"], debug["modules"], debug["frames"], debug["named"]) == (1, 1, 2, 1)
    assert debug["seconds"] >= 0


def test_compressed_requests(server: HttpClient) -> None:
    """A body may be compressed; one that expands to too much is refused, as are unknown encodings."""
    import gzip

    import zstandard

    body = json.dumps(job(LEDGER, [INLINED])).encode()
    plain = server.ask("POST", "/symbolicate/v5", body).body
    packed = zstandard.ZstdCompressor().compress(body)
    assert server.ask("POST", "/symbolicate/v5", gzip.compress(body), Content_Encoding="gzip").body == plain
    assert server.ask("POST", "/symbolicate/v5", packed, Content_Encoding="zstd").body == plain
    bomb = gzip.compress(bytes(64 << 20))
    refused = server.ask("POST", "/symbolicate/v5", bomb, Content_Encoding="gzip")
    assert refused.status == Status.REQUEST_ENTITY_TOO_LARGE
    assert server.ask("POST", "/symbolicate/v5", body, Content_Encoding="gzip").status == Status.BAD_REQUEST
    assert server.ask("POST", "/symbolicate/v5", body, Content_Encoding="br").status == Status.UNSUPPORTED_MEDIA_TYPE


@pytest.mark.parametrize("path", ["/symbolicate/v4", "/symbolicate/v6", "/asm/v1", "/source/v2"])
def test_other_apis(server: HttpClient, path: str) -> None:
    """Are refused so that a page can read it."""
    answer = server.ask("POST", path, b"{}", Origin=PROFILER)
    assert answer.status == Status.NOT_FOUND
    assert answer.json() == {"title": f"Unrecognized URL: {path}"}
    assert answer.headers["access-control-allow-origin"] == PROFILER


def many(count: int) -> bytes:
    """A request with many frames."""
    return b'{"memoryMap":[["a","AB"]],"stacks":[[' + b",".join([b"[0,1]"] * count) + b"]]}"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"memoryMap":[["a","AB"]],"stacks":[[[1,1]]]}', Status.BAD_REQUEST),
        (b'{"memoryMap":[["a","AB"]],"stacks":[[[-2,1]]]}', Status.BAD_REQUEST),
        (b'{"memoryMap":[["a","AB"]],"stacks":[[[0,-2]]]}', Status.BAD_REQUEST),
        (b'{"memoryMap":[["a","AB"]],"stacks":[[[0,NaN]]]}', Status.BAD_REQUEST),
        (b'{"memoryMap":[["a","AB"]],"stacks":[[[0,1e400]]]}', Status.BAD_REQUEST),
        (b'{"memoryMap":[["a","AB"]],"stacks":[[[0,' + b"9" * 5000 + b"]]]}", Status.BAD_REQUEST),
        (b'{"memoryMap":[["a","AB"]],"stacks":[[[' + b"9" * 400 + b",0]]]}", Status.BAD_REQUEST),
        (b'{"memoryMap":[["a","AB"]],"stacks":{"a":1}}', Status.BAD_REQUEST),
        (b'{"memoryMap":[["\\ud800","AB"]],"stacks":[[]]}', Status.BAD_REQUEST),
        (b'{"memoryMap":[["a","\\ud800\\u0000"]],"stacks":[[[0,1]]]}', Status.OK),
        (b'{"memoryMap":[["a","AB"]],"stacks":[[[0,1]]]}'.decode().encode("utf-16"), Status.OK),
        (b'{"a":' * 100_000, Status.BAD_REQUEST),
        (many(symbolication.MAX_FRAMES + 1), Status.REQUEST_ENTITY_TOO_LARGE),
        (b"[" + b"{}," * symbolication.MAX_FRAMES, Status.REQUEST_ENTITY_TOO_LARGE),
        (b'{"memoryMap":[' + b'["a",""],' * 9000 + b'["a",""]],"stacks":[]}', Status.BAD_REQUEST),
        (
            json.dumps(
                {"memoryMap": [["a", f"{n:08x}"] for n in range(1100)], "stacks": [[[n, 1] for n in range(1100)]]}
            ).encode(),
            Status.REQUEST_ENTITY_TOO_LARGE,
        ),
    ],
)
def test_hostile_requests(server: HttpClient, body: bytes, status: Status) -> None:
    """Each is refused in one line, or answered without a name."""
    answer = server.ask("POST", "/symbolicate/v5", body)
    assert answer.status == status
    if status != Status.OK:
        assert "\n" not in answer.json()["title"]


def test_answers_are_bounded(server: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that are asked for again and again cost as much as others."""
    monkeypatch.setattr(symbolication, "MAX_ANSWER", 10_000)
    assert server.symbolicate(job(LEDGER, [INLINED] * 1000)).status == Status.REQUEST_ENTITY_TOO_LARGE
    assert server.symbolicate(job(LEDGER, [INLINED])).status == Status.OK


def test_source_of_a_frame(server: HttpClient) -> None:
    """Of the files at the address only, below the folders with sources only."""
    offsets = [*range(INLINED, INLINED + 0x200, 4)]
    frames = server.symbolicate(job(LEDGER, offsets)).json()["results"][0]["stacks"][0]
    offset, file = next(
        (offset, each["file"])
        for offset, frame in zip(offsets, frames, strict=True)
        for each in (frame, *frame.get("inlines", []))
        if each.get("file", "").startswith("/src/ledger/")
    )
    request = {"debugName": "ledger", "debugId": breakpad_id(LEDGER), "moduleOffset": hex(offset), "file": file}
    answer = server.ask("POST", "/source/v1", json.dumps(request).encode())
    assert answer.status == Status.OK
    expected = (FIXTURES / "src" / "ledger" / file.rpartition("/")[2]).read_text()
    assert answer.json() == {"symbolsLastModified": None, "sourceLastModified": None, "file": file, "source": expected}
    for wrong in ({"moduleOffset": "0x1"}, {"file": "/etc/passwd"}, {"debugId": "AB" * 16}, {"file": "../ledger.cc"}):
        assert server.ask("POST", "/source/v1", json.dumps(request | wrong).encode()).status == Status.NOT_FOUND
    for wrong in ({"moduleOffset": "zz"}, {"moduleOffset": "0x" + "f" * 40}, {"file": 1}, {"debugName": "a/b"}):
        assert server.ask("POST", "/source/v1", json.dumps(request | wrong).encode()).status == Status.BAD_REQUEST


@pytest.mark.needs("objcopy")
def test_files_that_come_and_go(tmp_path: Path) -> None:
    """After the next walk a binary is opened with the files that are there by then."""
    (tmp_path / "bin").mkdir()
    shared = tmp_path / "shared"
    shared.mkdir()
    modules = Modules([str(tmp_path / "bin")], TableCache(tmp_path / "cache"), str(shared), None, ServerMetrics())
    asked = breakpad_id(LEDGER).lower()
    assert not modules.open(asked)
    assert modules.is_unknown(asked)
    shutil.copy(LEDGER, tmp_path / "bin" / "ledger")
    modules.walk_again(0)
    assert not modules.is_unknown(asked)
    with modules.held(asked) as first:
        assert first is not None
        with modules.held(build_id(LEDGER)) as same:
            assert same is first
        subprocess.run(["objcopy", "--only-keep-debug", LEDGER, tmp_path / "bin" / "more.debug"], check=True)
        (tmp_path / "bin" / "ledger").unlink()
        modules.walk_again(0)
        # Who holds it goes on with the file that it was.
        assert len(first.answer([INLINED]).frames) == 1
        with modules.held(asked) as again:
            assert again is not None
            assert again is not first
            assert len(again.answer([INLINED]).frames) == 1
    modules.close()


def test_files_that_are_replaced(tmp_path: Path) -> None:
    """The worker that meets one has the folders walked, and what it found counts in all: nobody goes on with the build
    that is gone, nor takes the new one for it."""
    (folder := tmp_path / "bin").mkdir()
    (shared := tmp_path / "shared").mkdir()
    shutil.copy(LEDGER, folder / "program")
    workers = [
        Modules([str(folder)], TableCache(tmp_path / "cache"), str(shared), None, ServerMetrics()) for _ in range(3)
    ]
    old, new = build_id(LEDGER), build_id(SPECTRA)
    for each in workers[:2]:  # the third has not opened it
        assert each.open(old)
        assert not each.open(new)
    shutil.copy(SPECTRA, tmp_path / "new")
    (tmp_path / "new").rename(folder / "program")
    assert workers[2].open(old) is False
    for each in workers:
        assert each.hold(old) is None
        assert not each.open(old)
        assert len(each) == 0
        with each.held(new) as module:
            assert module is not None
    for each in workers:
        each.close()


def test_walks_on_request(tmp_path: Path) -> None:
    """Make what has come and gone known at once, also with the whole folder, and to the process for profiles; they need
    the token."""
    (folder := tmp_path / "bin").mkdir()
    profile = (FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof").read_bytes()
    token = "a-token-of-the-tests"
    with serving(settings(tmp_path, folder, token=token)) as server:

        def named() -> float:
            answer = server.ask("POST", f"/{token}/symbolize", profile)
            return float(json.loads(answer.headers["x-symbolize-report"])["symbolized_percent"])

        before = named()
        path = f"/buildid/{build_id(LEDGER)}/executable"
        assert server.ask("GET", path).status == Status.NOT_FOUND
        shutil.copy(LEDGER, folder)
        assert server.ask("POST", "/walk").status == Status.UNAUTHORIZED
        assert server.ask("GET", path).status == Status.NOT_FOUND
        assert server.ask("POST", f"/{token}/walk").body == b"walked\n"
        assert server.ask("GET", path).status == Status.OK
        assert named() > before
        folder.rename(tmp_path / "before")
        folder.mkdir()
        assert server.ask("POST", f"/{token}/walk").status == Status.OK
        assert server.ask("GET", path).status == Status.NOT_FOUND
        assert named() == before


@pytest.mark.parametrize(
    ("what", "number"),
    [("symbolize.resolve.opened.ElfImage.open", errno.EMFILE), ("symbolize.symbols.Binary.prepare", errno.ENOSPC)],
)
def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, number: int) -> None:
    """Are an error of their module, not one of the request, and no miss that is remembered."""

    def cannot(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    request = job(LEDGER, [INLINED])
    with serving(settings(tmp_path, BINARIES)) as server:
        with monkeypatch.context() as patch:
            patch.setattr(what, cannot)
            answer = server.symbolicate(request)
        assert answer.status == Status.OK
        result = answer.json()["results"][0]
        assert [*result["found_modules"].values()] == [False]
        assert [*result["module_errors"]] == [*result["found_modules"]]
        assert str(BINARIES) not in answer.body.decode()
        assert [*server.symbolicate(request).json()["results"][0]["found_modules"].values()] == [True]


def test_sources_of_large_binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request has all of the debug information decoded that is too much for that."""
    monkeypatch.setattr("symbolize.symbols.binary.MAX_AT_ONCE", 0)
    with serving(settings(tmp_path, BINARIES, sources=[str(FIXTURES / "src")])) as server:
        answer = server.ask("GET", f"/buildid/{build_id(LEDGER)}/source/src/ledger/main.cc")
    assert answer.status == Status.NOT_FOUND
    assert not [*tmp_path.rglob("*.symtab")]


def test_a_clock_that_is_set_back(tmp_path: Path) -> None:
    """Does not keep the folders from being walked."""
    for name in ("bin", "shared"):
        (tmp_path / name).mkdir()
    modules = Modules(
        [str(tmp_path / "bin")], TableCache(tmp_path / "cache"), str(tmp_path / "shared"), None, ServerMetrics()
    )
    modules.walk_again(30)
    os.utime(tmp_path / "shared" / "walked", (time.time() + 3600,) * 2)
    shutil.copy(LEDGER, tmp_path / "bin" / "ledger")
    modules.walk_again(30)
    assert modules.files(build_id(LEDGER))
    modules.close()


def test_binaries_are_closed_when_others_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is open at a time here, and all threads get their answers whatever the others ask for."""
    monkeypatch.setattr(serve_modules, "MAX_OPEN", 1)
    with serving(settings(tmp_path, BINARIES)) as server:
        requests = [job(path, [*range(INLINED, INLINED + 64, 4)]) for path in (LEDGER, SPECTRA)]
        expected = [server.symbolicate(each).body for each in requests]
        assert all(b'"function"' in each for each in expected)
        barrier = threading.Barrier(8)

        def ask(number: int) -> list[bytes]:
            barrier.wait()
            return [server.symbolicate(requests[(number + turn) % 2]).body for turn in range(8)]

        with ThreadPoolExecutor(8) as pool:
            for number, answers in enumerate(pool.map(ask, range(8))):
                for turn, answer in enumerate(answers):
                    result = json.loads(answer)["results"][0]
                    if "module_errors" not in result:
                        assert answer == expected[(number + turn) % 2]
        text = server.ask("GET", "/metrics").body.decode()
        assert "symbolize_open_binaries 1.0" in text


def test_a_table_is_made_once_for_all_workers(tmp_path: Path) -> None:
    """The second one takes it from the cache."""
    (tmp_path / "shared").mkdir()
    metrics = [ServerMetrics(), ServerMetrics()]
    workers = [
        Modules([str(BINARIES)], TableCache(tmp_path / "cache"), str(tmp_path / "shared"), None, each)
        for each in metrics
    ]
    asked = build_id(LEDGER)
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda worker: worker.open(asked), workers))
    texts = b"".join(each.text() for each in metrics).decode()
    assert "symbolize_tables_total" in texts
    assert len([*(tmp_path / "cache").rglob("*.symtab")]) == 1
    assert not [*(tmp_path / "cache").rglob("*.lock")]
    for each in workers:
        each.close()


def test_what_is_not_there_is_remembered_for_some_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many ids the last that were asked for."""
    monkeypatch.setattr(serve_modules, "MAX_UNKNOWN", 2)
    for name in ("bin", "shared"):
        (tmp_path / name).mkdir()
    roots, shared = [str(tmp_path / "bin")], str(tmp_path / "shared")
    modules = Modules(roots, TableCache(tmp_path / "cache"), shared, None, ServerMetrics())
    ids = [f"{number:02}" * 20 for number in range(4)]
    assert [modules.open(each) for each in ids] == [False] * 4
    assert [modules.is_unknown(each) for each in ids] == [False, False, True, True]
    modules.close()


def test_a_binary_whose_table_cannot_be_made_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its descriptors are not lost with it."""
    (tmp_path / "shared").mkdir()
    modules = Modules([str(BINARIES)], TableCache(tmp_path / "cache"), str(tmp_path / "shared"), None, ServerMetrics())
    closed: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr("symbolize.symbols.Binary.prepare", lambda _: 1 // 0)
        patch.setattr("symbolize.symbols.Binary.close", lambda self: closed.append(self.images[0].path))
        with pytest.raises(ZeroDivisionError):
            modules.open(build_id(LEDGER))
    assert closed == [str(LEDGER)] and len(modules) == 0
    modules.close()
