"""Binaries from servers, what is still missing, and the plan: as the command shows them."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from symbolize.binaries import BinaryIndex, find_binary
from symbolize.cli import main
from symbolize.elf import read_build_id
from tests.support.fixture_files import BINARIES, FIXTURES, read_pprof
from tests.support.http_server import HttpServer, Request

PERF = FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz"
PROF = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
SPECTRA = BINARIES / "gcc-pie" / "spectra"
RESONANCE = BINARIES / "gcc-pie" / "libresonance.so"
LIBM = "d6e6f9e3af1243eed9bf5efd366dd015a9f22c13"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")


def serving(*files: Path) -> HttpServer:
    """A server that has the debug information of `files`, which are whole, and their code."""
    known = {read_build_id(str(path)): path for path in files}

    def answer(request: Request) -> None:
        parts = request.path.split("/")
        path = known.get(parts[2]) if parts[1] == "buildid" else None
        if path is None:
            request.reply(404)
        else:
            request.reply(200, path.read_bytes())

    return HttpServer(answer)


@pytest.mark.process
def test_binaries_from_a_server_give_what_a_folder_gives(capsys: pytest.CaptureFixture[str]) -> None:
    """The output is the same, byte for byte; the report has the file that was fetched. A file that was never stripped
    is served as both kinds, and fetched once."""
    with serving(SPECTRA, RESONANCE) as server:
        assert main([str(PERF), "--debuginfod", server.url, "-o", "fetched.pb.gz"]) == 0
    out, err = capsys.readouterr()
    assert main([str(PERF), "--binaries", str(SPECTRA.parent), "-q", "-o", "local.pb.gz"]) == 0
    assert Path("fetched.pb.gz").read_bytes() == Path("local.pb.gz").read_bytes()
    assert re.search(r"from \S+/debuginfod_client/" + str(read_build_id(str(SPECTRA))) + "/debuginfo", out)
    assert f"/buildid/{read_build_id(str(SPECTRA))}/executable" not in server.asked
    assert f"{server.url}: answers" in err


@pytest.mark.process
def test_servers_are_asked_only_for_what_no_folder_has() -> None:
    """A binary with debug information in a folder is not fetched; the others are, what the server lacks once only."""
    with serving(RESONANCE) as server:
        arguments = [str(PERF), "--binaries", str(SPECTRA), "--debuginfod", server.url, "-q", "-o", "out.pb.gz"]
        assert main(arguments) == 0
        first = server.asked
        assert main(arguments) == 0
        assert server.asked == first
    assert not any(str(read_build_id(str(SPECTRA))) in path for path in first)
    assert any(str(read_build_id(str(RESONANCE))) in path for path in first)
    names = {function.name for function in read_pprof(Path("out.pb.gz")).function}
    strings = read_pprof(Path("out.pb.gz")).string_table
    assert b"resonance::transform" in {strings[name] for name in names}


@pytest.mark.process
def test_the_environment_alone_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """DEBUGINFOD_URLS is set for every shell by distributions; without --debuginfod it means nothing."""
    with serving(RESONANCE) as server:
        monkeypatch.setenv("DEBUGINFOD_URLS", server.url)
        assert main([str(PERF), "--binaries", str(SPECTRA), "-q", "-o", "out.pb.gz"]) == 0
        assert server.asked == []
        assert main([str(PERF), "--debuginfod", "env", "-q", "-o", "out.pb.gz"]) == 0
        assert server.asked != []


@pytest.mark.process
def test_a_dead_server_costs_a_line_not_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The run goes on, the report says that the server was not asked, and the exit code tells of it."""
    with serving() as server:
        url = server.url
    assert main([str(PERF), "--debuginfod", url, "-v", "-o", "out.pb.gz"]) == 1
    out, err = capsys.readouterr()
    assert re.search(re.escape(url) + ": .*(refused|unreachable|cannot)", out + err)


@pytest.mark.parametrize("url", ["ftp://host/", "", "env"])
def test_a_wrong_server_is_a_usage_error(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written; a password is not repeated."""
    arguments = ["--debuginfod", url, "--debuginfod", "http://user:secret@127.0.0.1:1"]
    assert main([str(PERF), *arguments, "-o", "out.pb.gz"]) == 2
    assert "secret" not in capsys.readouterr().err
    assert not Path("out.pb.gz").exists()


def test_missing_files_are_listed_as_commands() -> None:
    """Each build id with the command that fetches it, the heaviest first; no name of a file can become a command."""
    assert main([str(PERF), "--binaries", str(SPECTRA), "-q", "-o", "out.pb.gz", "--missing", "missing.sh"]) == 0
    lines = Path("missing.sh").read_text().splitlines()
    commands = [line.split("  # ") for line in lines[1:]]
    assert commands[0][0] == f"debuginfod-find debuginfo {read_build_id(str(RESONANCE))}"
    assert commands[0][1].endswith("libresonance.so: binary not found")
    assert f"debuginfod-find executable {LIBM}" in [command for command, _ in commands]
    assert not any(str(read_build_id(str(SPECTRA))) in line for line in lines)


def test_missing_says_what_has_no_build_id() -> None:
    """A mapping without a build id cannot be fetched; it stands in a comment."""
    assert main([str(PROF), "--binaries", str(SPECTRA), "-q", "-o", "out.pb.gz", "--missing", "missing.sh"]) == 0
    lines = Path("missing.sh").read_text().splitlines()
    assert all(line.startswith("#") for line in lines)
    assert any("/opt/ledger/bin/ledger: binary not found" in line for line in lines)


def test_reports_must_not_overwrite_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Two reports in one file are a usage error, and so is a report in place of the profile."""
    base = [str(PERF), "-o", "out.pb.gz"]
    assert main([*base, "--missing", "a", "--folded-report", "a"]) == 2
    assert main([*base, "--missing", "out.pb.gz"]) == 2
    assert "--missing out.pb.gz is the output" in capsys.readouterr().err
    assert not Path("out.pb.gz").exists()


@pytest.mark.process
def test_plan_tells_and_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """It shows the file that would be used, what the server would be asked for, and asks and writes nothing."""
    with serving(RESONANCE) as server:
        url = server.url.replace("http://", "http://user:secret@")
        assert main(["plan", str(PERF), "--binaries", str(SPECTRA), "--debuginfod", url, "-v"]) == 0
        assert server.asked == []
    out = capsys.readouterr().out
    assert f"use {SPECTRA}, to decode" in out
    assert f"wanted: debuginfo and executable of {read_build_id(str(RESONANCE))}" in out
    assert f"would be asked for the debuginfo of {read_build_id(str(RESONANCE))}" in out
    assert "secret" not in out
    assert list(Path().iterdir()) == []


def test_plan_knows_the_tables_at_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """After `symbolize index` nothing has to be decoded, and the JSON says so."""
    assert main(["index", str(SPECTRA), "-q"]) == 0
    capsys.readouterr()
    assert main(["plan", str(PERF), "--binaries", str(SPECTRA), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in plan["mappings"]}
    assert rows["/opt/spectra/bin/spectra"]["table"] == "kept table"
    assert rows["/opt/spectra/lib/libresonance.so"]["wanted"]["build_id"] == read_build_id(str(RESONANCE))
    assert 0 < plan["covered_percent"] < 100


def test_a_profile_that_cannot_be_planned(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 1, the others go on."""
    Path("broken").write_bytes(b"nonsense")
    assert main(["plan", "broken", str(PERF)]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "/opt/spectra/bin/spectra" in captured.out


def test_a_file_found_by_its_place_gives_way_to_one_with_the_id(tmp_path: Path) -> None:
    """A file without a build id in the folder of one is worth less than what a server has (rule R138)."""
    build_id = str(read_build_id(str(SPECTRA)))
    place = tmp_path / "store" / build_id[:2] / f"{build_id[2:]}.debug"
    place.parent.mkdir(parents=True)
    place.write_bytes(without_notes(SPECTRA))

    class Known:
        path = str(SPECTRA)
        attempts = ()

    class Fake:
        def fetch(self, build_id: str, kind: str) -> Known:
            return Known()

        def prefetch(self, wanted: object) -> None:
            pass

    found = find_binary(BinaryIndex([str(tmp_path / "store")]), build_id, "/bin/spectra")
    assert (found.paths, found.verified) == ([str(place)], False)
    found = find_binary(BinaryIndex([str(tmp_path / "store")], servers=Fake()), build_id, "/bin/spectra")  # type: ignore[arg-type]
    assert (found.paths, found.verified, found.wanted) == ([str(SPECTRA)], True, [])


@pytest.mark.process
@pytest.mark.needs("objcopy")
def test_nothing_is_fetched_ahead_that_a_folder_has() -> None:
    """A debug file that only a debug link leads to is enough; one that has no build id of its own is not asked for."""
    Path("root").mkdir()
    for arguments in (
        ["--only-keep-debug", "--remove-section=.note.gnu.build-id", SPECTRA, "root/spectra.debug"],
        ["--strip-all", "--add-gnu-debuglink=root/spectra.debug", SPECTRA, "root/spectra"],
    ):
        subprocess.run(["objcopy", *arguments], check=True)
    with serving(SPECTRA) as server:
        assert main([str(PERF), "--binaries", "root", "--debuginfod", server.url, "-q", "-o", "out.pb.gz"]) == 0
        assert not any(str(read_build_id(str(SPECTRA))) in path for path in server.asked)
        assert server.asked != []


@pytest.mark.process
def test_an_executable_that_was_never_stripped_is_all() -> None:
    """Where a server has the debug information in the executable only, nothing is wanted any more."""
    build_id = str(read_build_id(str(SPECTRA)))

    def answer(request: Request) -> None:
        is_it = request.path == f"/buildid/{build_id}/executable"
        request.reply(200 if is_it else 404, SPECTRA.read_bytes() if is_it else b"")

    with HttpServer(answer) as server:
        arguments = [str(PERF), "--debuginfod", server.url, "-q", "-o", "out.pb.gz", "--missing", "missing.sh"]
        assert main(arguments) == 0
    assert build_id not in Path("missing.sh").read_text()
    assert str(read_build_id(str(RESONANCE))) in Path("missing.sh").read_text()


def without_notes(path: Path) -> bytes:
    """The file without its build id."""
    data = path.read_bytes()
    return data.replace(b"GNU\0", b"GNX\0")
