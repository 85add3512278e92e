"""Files of debuginfod servers between the driver of a batch, which fetches them, and its workers, which ask nobody."""

from pathlib import Path
from typing import Any

import pytest

from symbolize.batch.fetching import ANSWERS, Fetcher, WorkerAnswer, WorkerServers, open_client
from symbolize.binaries import Attempt
from symbolize.binaries.links import default_folder
from symbolize.binaries.remote import Fetched
from symbolize.elf import read_build_id
from symbolize.storage.backend import Storage
from tests.support.batch_engines import DirectEngine, plan, run_plan
from tests.support.batch_runs import LEDGER, copies, outputs
from tests.support.fixture_files import BINARIES
from tests.support.http_server import HttpServer, Request

LOST = Attempt("http://x", "is away")


@pytest.fixture
def shared(tmp_path: Path) -> Storage:
    """What driver and workers share."""
    return Storage.of(str(tmp_path / "work"))


class Client:
    """The client of servers that has the files in `here`; build ids that begin with "?" are none."""

    def __init__(self, **here: Any) -> None:
        self.here = here
        self.asked: list[str] = []

    def name_of(self, build_id: str, kind: str) -> str:
        return "" if build_id.startswith("?") else f"{build_id}-{kind}"

    def known(self, build_id: str, kind: str) -> Any:
        return self.here.get(build_id)

    def fetch(self, build_id: str, kind: str) -> Any:
        self.asked.append(build_id)
        return WorkerAnswer(None, [Attempt("debuginfod", "no build id")])


def leave(shared: Storage, **fetched: Fetched) -> None:
    """The driver leaves what it has fetched."""
    fetcher = Fetcher.__new__(Fetcher)
    vars(fetcher).update(_shared=shared, _answers={}, client=Client())
    for build_id, each in fetched.items():
        fetcher._record(build_id, "debuginfo", each)
    fetcher._write()


def worker(shared: Storage, **here: Any) -> WorkerServers:
    """A worker that has looked once."""
    result = WorkerServers(Client(**here), shared)  # type: ignore[arg-type]
    result.begin(1)
    return result


def test_files_that_the_driver_fetched(shared: Storage, tmp_path: Path) -> None:
    """Workers read them where the driver has put them; where a machine does not reach that, it is a failure."""
    path = tmp_path / "file"
    path.write_bytes(b"debug information")
    leave(shared, ab=Fetched(str(path), "found"))
    assert worker(shared).fetch("ab", "debuginfo").path == str(path)
    path.unlink()
    answer = worker(shared).fetch("ab", "debuginfo")
    assert answer.path is None
    ((place, text),) = answer.failures
    assert place == str(path) and "in a folder that this machine does not reach" in text


def test_what_a_worker_wants(shared: Storage) -> None:
    """What is neither noted nor at hand, each kind once, until it is taken; what failed is not wanted again."""
    leave(shared, cd=Fetched(None, "failed", [LOST], failures=[LOST]))
    here = WorkerAnswer("/file", ())
    at_hand = worker(shared, ab=here)
    assert at_hand.fetch("ab", "debuginfo") is here
    failed = at_hand.fetch("cd", "debuginfo")
    assert (failed.path, list(failed.attempts), list(failed.failures)) == (None, [LOST], [LOST])
    assert at_hand.fetch("?", "debuginfo").path is None
    assert at_hand.take_wanted() == {}
    for kind in ("debuginfo", "executable", "debuginfo"):
        answer = at_hand.fetch("ef", kind)
        assert answer.path is None
        assert [outcome for _, outcome in answer.failures] == ["not asked yet"]
    at_hand.fetch("cd", "executable")
    assert at_hand.take_wanted() == {"ef": ["debuginfo", "executable"], "cd": ["executable"]}
    assert at_hand.take_wanted() == {}


def test_answers_are_read_once_an_epoch(shared: Storage, tmp_path: Path) -> None:
    """Those that came meanwhile are seen in the next; damaged ones are none."""
    at_hand = worker(shared)
    (tmp_path / "file").touch()
    leave(shared, ab=Fetched(str(tmp_path / "file"), "found"))
    for epoch, is_there in ((1, False), (2, True), (2, True)):
        at_hand.begin(epoch)
        assert (at_hand.fetch("ab", "debuginfo").path is not None) == is_there
    for epoch, damaged in enumerate((b"{", b"[]", b"\xff", b""), 3):
        with shared.write(ANSWERS) as file:
            file.write(damaged)
        at_hand.begin(epoch)
        assert at_hand.fetch("ab", "debuginfo").path is None


@pytest.mark.parametrize("urls", [("http://127.0.0.1:1",), ("env",)])
def test_folder_of_fetched_files(urls: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that workers are told, else the user's, or that of the environment with its servers."""
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "env"))
    own = str(tmp_path / "env") if urls == ("env",) else default_folder()
    for folder, expected in ((str(tmp_path / "told"), str(tmp_path / "told")), ("", own)):
        client = open_client(urls, refresh_misses=False, folder=folder)
        assert client.cache.path == expected
        client.close()


@pytest.mark.process
def test_files_are_fetched_before_binaries_are_decoded(tmp_path: Path) -> None:
    """A binary is decoded once, with its debug file, and not before without it."""
    copies(LEDGER, tmp_path / "in", ["a.prof"])
    folder = BINARIES / "gcc-split"
    copies(folder / "stripped" / "ledger", tmp_path / "bin", ["ledger"])
    build_id = read_build_id(str(folder / "stripped" / "ledger"))

    def behave(request: Request) -> None:
        if request.path == f"/buildid/{build_id}/debuginfo":
            request.reply(200, (folder / "debug" / "ledger.debug").read_bytes())
        else:
            request.reply(404)

    with HttpServer(behave) as server, DirectEngine() as engine:
        options: dict[str, Any] = {"debuginfod": (server.url,), "downloads": str(tmp_path / "downloads")}
        run_plan(plan(tmp_path / "in", tmp_path / "out", [tmp_path / "bin"], **options), engine)
        assert engine.count("decode_binary") == 1
    run_plan(plan(tmp_path / "in", tmp_path / "whole", [folder]))
    assert outputs(tmp_path / "out") == outputs(tmp_path / "whole")
