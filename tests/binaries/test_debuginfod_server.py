"""The debuginfod client and elfutils' own server and client."""

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from symbolize.binaries.debuginfod import Debuginfod, FetchOptions, Limits
from symbolize.binaries.debuginfod.cache import COMPOSED
from symbolize.binaries.debuginfod.sections import NEEDED
from symbolize.core.errors import UsageError
from symbolize.elf import ElfImage, read_build_id
from symbolize.elf.image import SHF_COMPRESSED
from symbolize.symbols import build_table
from tests.support.fixture_files import BINARIES
from tests.support.http_server import HttpServer, Request
from tests.support.lookup import frames_of

pytestmark = [pytest.mark.process, pytest.mark.needs("debuginfod", "debuginfod-find")]

LIMITS = Limits(connect_time=30, probe_time=30, answer_time=60, stall_time=30, retries=0)
BY_SECTIONS = replace(LIMITS, sections_above=1)

NAMES = ("gcc-pie/ledger", "clang-pie/spectra", "aarch64/libresonance.so", "gcc-nopie-dwarf4/spectra",
         "clang-nopie-dwarf4-lld/libresonance.so", "gcc-gz-zlib/spectra", "clang-gz-zstd/ledger")  # fmt: skip
WHOLE = [BINARIES / name for name in NAMES]
SPLIT = sorted((BINARIES / "gcc-split" / "debug").glob("*.debug"))


def id_of(path: Path) -> str:
    """The build id of a file."""
    build_id = read_build_id(str(path))
    assert build_id
    return build_id


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that has the fixtures."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    command = ["debuginfod", f"--database={folder}/db", "-F", "-p", str(port), "-t", "0", "-c", "2", str(BINARIES)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD")}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=environment | {"HOME": str(folder), "TMPDIR": str(folder)}
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wanted = [id_of(WHOLE[-1]), *map(id_of, SPLIT)]
        deadline = time.monotonic() + 120
        while wanted:
            try:
                with urllib.request.urlopen(f"{url}/buildid/{wanted[-1]}/debuginfo", timeout=30):
                    wanted.pop()
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()


def find(url: str, cache: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run elfutils' client."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(cache), "DEBUGINFOD_URLS": url}
    environment |= {"DEBUGINFOD_CACHE_PATH": str(cache), "DEBUGINFOD_TIMEOUT": "60"}
    return subprocess.run(["debuginfod-find", *arguments], capture_output=True, text=True, env=environment)


def test_files_of_a_real_server(server: str, tmp_path: Path) -> None:
    """Executables, debug files and misses come as the server has them."""
    debug = SPLIT[0]
    stripped = debug.parents[1] / "stripped" / debug.stem
    with Debuginfod([server], FetchOptions(cache=tmp_path, limits=LIMITS)) as client:
        for kind, path in (("debuginfo", debug), ("executable", stripped)):
            fetched = client.fetch(id_of(debug), kind)  # type: ignore[arg-type]
            assert fetched.path
            assert Path(fetched.path).read_bytes() == path.read_bytes()
        assert client.fetch("ab" * 20, "debuginfo").status == "missing"
        limited = replace(LIMITS, max_size=1000)
    with Debuginfod([server], FetchOptions(cache=tmp_path / "2", limits=limited)) as client:
        assert client.fetch(id_of(debug), "debuginfo").status == "too-large"


def test_folder_shared_with_the_other_client(server: str, tmp_path: Path) -> None:
    """What one client fetched, or did not find, the other one has without a server, in both directions."""
    dead = "http://127.0.0.1:1"
    one, two, none, nowhere = id_of(WHOLE[0]), id_of(WHOLE[1]), "ab" * 20, "cd" * 20
    with Debuginfod([server], FetchOptions(cache=tmp_path, limits=LIMITS)) as client:
        for kind in ("debuginfo", "executable"):
            ours = client.fetch(one, kind)  # type: ignore[arg-type]
            theirs = find(dead, tmp_path, kind, one)
            assert theirs.stdout == f"{ours.path}\n", theirs.stderr
        assert client.fetch(none, "debuginfo").status == "missing"
    assert find(server, tmp_path, "-v", "debuginfo", none).returncode == 1
    assert "query 1 urls" not in find(server, tmp_path, "-v", "debuginfo", none).stderr

    for kind in ("debuginfo", "executable"):
        theirs = find(server, tmp_path, kind, two)
        assert theirs.returncode == 0
        with Debuginfod([dead], FetchOptions(cache=tmp_path, limits=LIMITS)) as client:
            assert client.fetch(two, kind).path == theirs.stdout.strip()  # type: ignore[arg-type]
    find(server, tmp_path, "debuginfo", nowhere)
    with Debuginfod([dead], FetchOptions(cache=tmp_path, limits=LIMITS)) as client:
        assert client.fetch(nowhere, "debuginfo").status == "missing"


def every_vaddr(image: ElfImage) -> np.ndarray:
    """Addresses all over the code, at every place of an instruction."""
    begins, ends = image.code_ranges
    return np.concatenate([np.arange(b, e, 11, dtype=np.uint64) for b, e in zip(begins, ends, strict=True)])


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("path", [*WHOLE, *SPLIT], ids=lambda path: f"{path.parent.name}-{path.name}")
def test_sections_answer_like_the_whole_file(path: Path, server: str, tmp_path: Path) -> None:
    """A file composed of sections gives the frames that the whole file gives, and is a small ELF file (rule R103)."""
    build_id = id_of(path)
    with Debuginfod([server], FetchOptions(cache=tmp_path / "parts", limits=BY_SECTIONS)) as client:
        parts = client.fetch(build_id, "debuginfo")
    with Debuginfod([server], FetchOptions(cache=tmp_path / "whole", limits=LIMITS)) as client:
        whole = client.fetch(build_id, "debuginfo")
        code = client.fetch(build_id, "executable")
    assert parts.path
    assert whole.path
    assert code.path
    assert parts.is_composed
    assert not whole.is_composed
    assert os.path.basename(parts.path) == COMPOSED
    with ElfImage.open(parts.path) as small, ElfImage.open(whole.path) as large, ElfImage.open(code.path) as executable:
        assert small.problems == []
        assert small.build_id == build_id
        assert len(small.data) < len(large.data)
        assert {section.name for section in small.sections} <= {
            "", ".shstrtab", *NEEDED, *(section.name for section in large.sections)
        }  # fmt: skip
        assert small.loaded_sections == large.loaded_sections
        assert small.segments == executable.segments
        assert {section.flags & ~SHF_COMPRESSED for section in small.sections if section.name in NEEDED} == {0}
        vaddrs = every_vaddr(large)
        assert (small.code_ranges[0] == large.code_ranges[0]).all()
        # Like every debug file it goes together with the executable, which has the unwind information.
        mine, theirs = build_table([executable, small]), build_table([executable, large])
        assert frames_of(mine, vaddrs) == frames_of(theirs, vaddrs)
        assert build_table([small]).lookup(vaddrs).offsets[-1] > len(vaddrs)
    # The sections themselves are in the composed file, and nothing else stays.
    assert sorted(each.name for each in (tmp_path / "parts" / build_id).iterdir()) == ["executable", COMPOSED]
    run = subprocess.run(["readelf", "-hlSW", parts.path], capture_output=True, text=True, check=True)
    assert run.stderr == ""


def test_large_file_is_not_fetched_twice(server: str, tmp_path: Path) -> None:
    """The composed file is found again, by the same question."""
    build_id = id_of(SPLIT[0])
    with Debuginfod([server], FetchOptions(cache=tmp_path, limits=BY_SECTIONS)) as client:
        first = client.fetch(build_id, "debuginfo")
    with Debuginfod(["http://127.0.0.1:1"], FetchOptions(cache=tmp_path, limits=BY_SECTIONS)) as client:
        assert client.fetch(build_id, "debuginfo").path == first.path
        assert client.fetch_sections(build_id).path == first.path


def behind(url: str, path: str) -> bytes | None:
    """What the real server answers; None for a miss."""
    try:
        with urllib.request.urlopen(url + path, timeout=60) as answer:
            return answer.read()
    except OSError:
        return None


@pytest.mark.parametrize(
    ("odd", "text"),
    [
        (".note.gnu.build-id", "wanted"),
        (".debug_line", "different files"),
        (".debug_str", "HTTP 500"),
        (".debug_info", "has no such file"),
        (".symtab", "symbols do not lie in the sections"),
    ],
)
def test_sections_that_cannot_be_trusted(odd: str, text: str, server: str, tmp_path: Path) -> None:
    """Sections of another binary, of several files, or with gaps are not composed; the whole file is fetched."""
    build_id, other = id_of(SPLIT[0]), id_of(SPLIT[1])

    def behave(request: Request) -> None:
        name = request.path.rpartition("/")[2]
        if name == odd == ".debug_str":
            request.reply(500)
        elif name == odd == ".debug_info":
            request.reply(404)
        else:
            swapped = name == odd and odd != ".debug_line"
            data = behind(server, request.path.replace(build_id, other) if swapped else request.path)
            if data is None:
                request.reply(404)
            else:
                request.reply(200, data, X_DEBUGINFOD_FILE="another" if name == odd == ".debug_line" else "one")

    with (
        HttpServer(behave) as proxy,
        Debuginfod([proxy.url], FetchOptions(cache=tmp_path, limits=BY_SECTIONS)) as client,
    ):
        fetched = client.fetch(build_id, "debuginfo")
        assert fetched.path == str(tmp_path / build_id / "debuginfo")
        assert not fetched.is_composed
        assert [attempt.outcome for attempt in fetched.attempts][-1] == "found"
        assert text in fetched.attempts[-2].outcome
    assert sorted(each.name for each in (tmp_path / build_id).iterdir()) == ["debuginfo", "executable"]


def test_sections_with_the_executable_at_hand(server: str, tmp_path: Path) -> None:
    """The executable that is given is used, if its build id agrees."""
    debug = SPLIT[0]
    stripped = debug.parents[1] / "stripped"
    with Debuginfod([server], FetchOptions(cache=tmp_path, limits=LIMITS)) as client:
        wrong = client.fetch_sections(id_of(debug), executable=stripped / SPLIT[1].stem)
        assert wrong.path is None
        assert id_of(SPLIT[1]) in wrong.attempts[-1].outcome
    with Debuginfod([server], FetchOptions(cache=tmp_path, limits=LIMITS)) as client:
        assert client.fetch_sections(id_of(debug), executable=stripped / debug.stem).is_composed
    assert [each.name for each in (tmp_path / id_of(debug)).iterdir()] == [COMPOSED]


def test_chosen_sections(server: str, tmp_path: Path) -> None:
    """Who asks for other sections gets a file of its own; names that are none become no path."""
    build_id = id_of(SPLIT[0])
    with Debuginfod([server], FetchOptions(cache=tmp_path, limits=LIMITS)) as client:
        few = client.fetch_sections(build_id, [".debug_loclists", ".debug_absent"])
        assert few.path
        assert few.path != client.fetch_sections(build_id).path
        with ElfImage.open(few.path) as image:
            names = {section.name for section in image.sections if section.name.startswith(".debug")}
            assert names == {".debug_info", ".debug_abbrev", ".debug_loclists"}
        for name in ("../x", "", ".debug/../../x", ".debug info"):
            with pytest.raises(UsageError):
                client.fetch_sections(build_id, [name])
