"""Binaries and kept tables that change while a command reads them: what is reported, and that nothing is lost."""

import errno
import importlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch.engines.engine import Task, TaskFailure
from symbolize.batch.tasks import decode_binary, forget_worker, symbolize_inputs
from symbolize.binaries.index_update import IndexUpdate
from symbolize.cli import main
from symbolize.elf import ElfImage
from symbolize.formats import load
from symbolize.pipeline import Symbolizer
from symbolize.symbols import SymbolTable, TableCache
from symbolize.symbols.build import Builder
from tests.support.batch_engines import DirectEngine
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.needs import needs_compiled

PERF = FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz"
LEDGER = FIXTURES / "profiles" / "perf" / "ledger-clang-nopie-dwarf4-lld.pb.gz"
OTHER = BINARIES / "clang-pie" / "spectra"

pytestmark = needs_compiled


@pytest.fixture(autouse=True)
def _binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with the binaries of two profiles."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("bin").mkdir()
    restore()


def restore() -> None:
    """Put all binaries where they belong, as new files."""
    for path in ("gcc-pie/spectra", "gcc-pie/libresonance.so", "clang-nopie-dwarf4-lld/ledger"):
        shutil.copy2(BINARIES / path, "bin/new")
        os.rename("bin/new", f"bin/{Path(path).name}")


def undisturbed(profile: Path) -> bytes:
    """The output where nothing happens."""
    assert main([str(profile), "--binaries", str(BINARIES), "-q", "--no-cache", "-o", "undisturbed.pb.gz"]) == 0
    return Path("undisturbed.pb.gz").read_bytes()


def rewrite(path: str) -> None:
    """Another build, in place."""
    with open(path, "r+b") as file:
        file.write(OTHER.read_bytes())
        file.truncate()


def replace(path: str) -> None:
    """Another build under the same name."""
    shutil.copyfile(OTHER, path + ".new")
    os.rename(path + ".new", path)


HARM: dict[str, Callable[[str], object]] = {
    "truncated": lambda path: os.truncate(path, 0),
    "truncated to half": lambda path: os.truncate(path, os.path.getsize(path) // 2),
    "rewritten": rewrite,
}
GONE: dict[str, Callable[[str], object]] = {"removed": os.unlink, "replaced": replace}


def when_read(monkeypatch: pytest.MonkeyPatch, harm: Callable[[str], object], times: int = 1) -> list[str]:
    """Do harm to `spectra` when its table is built, so many times; the list is of the times."""
    build, done = Builder.build, list[str]()

    def built(self: Builder, vaddrs: Any, callers: Any) -> SymbolTable:
        path = next((image.path for image in self._images if image.path.endswith("spectra")), "")
        if path and len(done) < times:
            done.append(path)
            harm(path)
        return build(self, vaddrs, callers)

    monkeypatch.setattr(Builder, "build", built)
    return done


def reports(text: str) -> list[dict[str, Any]]:
    """The reports that a command printed."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def misses(report: dict[str, Any]) -> dict[str, list[str]]:
    """The reasons of what each mapping misses."""
    rows = {row["name"].rpartition("/")[2]: row for row in report["mappings"]}
    return {name: [miss["reason"] for miss in row["misses"]] for name, row in rows.items() if row["locations"]}


@pytest.mark.parametrize("cache", [["--no-cache"], []], ids=["no cache", "cache"])
@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
@pytest.mark.full
def test_single(
    harm: Callable[[str], object], cache: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is read of a file that changes is discarded: the reason says so, the exit code is 1, nothing is kept, and
    the rest and other profiles have their names (R280). The next run makes what an undisturbed one does."""
    wanted = [undisturbed(PERF), undisturbed(LEDGER)]
    done = when_read(monkeypatch, harm)
    arguments = [str(PERF), str(LEDGER), "--binaries", "bin", "-o", ".", *cache]
    assert main([*arguments, "--report", "json"]) == 1
    assert len(done) == 1
    first, second = reports(capsys.readouterr().out)
    assert misses(first)["spectra"] == ["changed"]
    row = next(row for row in first["mappings"] if row["name"].endswith("/spectra"))
    assert row["detail"] == "bin/spectra: changed while it was read"
    assert first["failures"] == [{"reason": "changed", "place": "bin/spectra", "text": "changed while it was read"}]
    assert first["server_failures"] == second["failures"] == []
    found = next(row for row in first["mappings"] if row["name"].endswith("/libresonance.so"))
    assert found["symbolized_locations"] > 0
    names = [f"{path.name.removesuffix('.pb.gz')}.symbolized.pb.gz" for path in (PERF, LEDGER)]
    assert Path(names[1]).read_bytes() == wanted[1]
    restore()
    assert main([*arguments, "-q"]) == 0
    assert [Path(name).read_bytes() for name in names] == wanted


def test_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed is a sentence, in the report and without it."""
    when_read(monkeypatch, HARM["truncated"], 2)
    assert main([str(PERF), "--binaries", "bin", "-q", "-o", "out.pb.gz"]) == 1
    said = f"symbolize: {PERF}: bin/spectra: changed while it was read; run again\n"
    assert capsys.readouterr().err == said
    restore()
    assert main([str(PERF), "--binaries", "bin", "-o", "out.pb.gz"]) == 1
    said = "warning: bin/spectra: changed while it was read; names or lines may be missing, run again\n"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("nearest", [[], ["--nearest-line"]], ids=["", "nearest line"])
@pytest.mark.parametrize("harm", [*HARM, "removed"])
@pytest.mark.full
def test_kept_tables(harm: str, nearest: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept table that changes while it is asked is made anew, and the answers are those of an undisturbed run."""
    arguments = [str(PERF), "--binaries", "bin", "-q", "-o", "out.pb.gz", *nearest]
    assert main([*arguments, "--no-cache"]) == 0
    wanted = Path("out.pb.gz").read_bytes()
    assert main(arguments) == main(arguments) == main(arguments) == 0
    lookup, done = SymbolTable.lookup, list[str]()
    others = [path.read_bytes() for path in Path("cache").rglob("*.symtab")]
    assert others

    def looked_up(self: SymbolTable, vaddrs: Any) -> Any:
        if self.file is not None and self.file.path not in done:
            done.append(self.file.path)
            if harm == "rewritten":
                Path(self.file.path).write_bytes(others[0][::-1])
            else:
                (HARM | GONE)[harm](self.file.path)
        return lookup(self, vaddrs)

    monkeypatch.setattr(SymbolTable, "lookup", looked_up)
    assert main(arguments) == 0
    assert done
    assert Path("out.pb.gz").read_bytes() == wanted
    assert main(arguments) == 0
    assert Path("out.pb.gz").read_bytes() == wanted


def test_names_that_are_read_late(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Names are read out of a kept table when they are written into the profile: what was read by then counts, and
    nothing after it."""
    from symbolize.enrich import frames as expand

    wanted = undisturbed(PERF)
    arguments = [str(PERF), "--binaries", "bin", "-o", "out.pb.gz", "--report", "json"]
    assert main(arguments) == main(arguments) == 0
    read = expand.frame_functions

    def harmed(*given: Any, **more: Any) -> Any:
        for path in Path("cache").rglob("*.symtab"):
            os.truncate(path, 0)
        return read(*given, **more)

    monkeypatch.setattr(expand, "frame_functions", harmed)
    os.unlink("out.pb.gz")  # one with names would be kept
    capsys.readouterr()
    assert main(arguments) == 1
    (report,) = reports(capsys.readouterr().out)
    assert misses(report)["spectra"] == ["changed"]
    assert not load("out.pb.gz").locations.has_lines().any()
    monkeypatch.setattr(expand, "frame_functions", read)
    assert main(arguments) == 0
    assert Path("out.pb.gz").read_bytes() == wanted


def between(monkeypatch: pytest.MonkeyPatch, harm: Callable[[], object]) -> None:
    """Do harm behind the first walk, before any file is opened."""
    run, done = IndexUpdate.run, list[bool]()

    def walked(self: IndexUpdate, roots: Sequence[str], *others: object) -> dict[int, int]:
        order = run(self, roots, *others)  # type: ignore[arg-type]
        if not done:
            done.append(True)
            harm()
        return order

    monkeypatch.setattr(IndexUpdate, "run", walked)


@pytest.mark.parametrize("harm", (HARM | GONE).values(), ids=HARM | GONE)
@pytest.mark.full
def test_replaced_before_it_is_opened(
    harm: Callable[[str], object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that was there when the folders were walked, and is another one when it is opened, has changed: its names
    are not lost silently (R284)."""
    wanted = undisturbed(PERF)
    between(monkeypatch, lambda: harm("bin/spectra"))
    arguments = [str(PERF), "--binaries", "bin", "-o", "out.pb.gz", "--report", "json"]
    assert main(arguments) == 1
    (report,) = reports(capsys.readouterr().out)
    assert misses(report)["spectra"] == ["changed"]
    restore()
    assert main(arguments) == 0
    assert Path("out.pb.gz").read_bytes() == wanted


@pytest.mark.parametrize("where", ["bin/spectra", "bin/sub/spectra-2"])
def test_replaced_by_its_like(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders are walked again, and the same build under the same or another name is found (R284)."""
    wanted = undisturbed(PERF)

    def move() -> None:
        Path("bin/sub").mkdir()
        os.rename("bin/spectra", "bin/sub/moved")
        shutil.copy2("bin/sub/moved", where)
        os.unlink("bin/sub/moved")

    between(monkeypatch, move)
    assert main([str(PERF), "--binaries", "bin", "-q", "-o", "out.pb.gz"]) == 0
    assert Path("out.pb.gz").read_bytes() == wanted


def test_while_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers of zeros are no fault of the file: it is opened once more, and then has all its names."""
    wanted = undisturbed(PERF)
    parse, done = ElfImage.parse.__func__, list[str]()  # type: ignore[attr-defined]

    def parsed(cls: type[ElfImage], data: memoryview, path: str) -> ElfImage:
        if path.endswith("spectra") and not done:
            done.append(path)
            os.truncate(path, 0)
            try:
                return parse(cls, data, path)
            finally:
                restore()
        return parse(cls, data, path)

    monkeypatch.setattr(ElfImage, "parse", classmethod(parsed))
    assert main([str(PERF), "--binaries", "bin", "-q", "-o", "out.pb.gz"]) == 0
    assert done
    assert Path("out.pb.gz").read_bytes() == wanted


@pytest.mark.parametrize("harm", (HARM | GONE).values(), ids=HARM | GONE)
def test_between_profiles(harm: Callable[[str], object]) -> None:
    """A binary that was written to between two profiles is opened anew; one that lost its name stays open."""
    with Symbolizer(["bin"]) as symbolizer:
        assert symbolizer.symbolize(load(PERF)).report.failures == []
        harm("bin/spectra")
        report = symbolizer.symbolize(load(PERF)).report
        row = next(row for row in report.mappings if row.name.endswith("/spectra"))
        assert bool(row.symbolized_locations) == (harm in GONE.values())
        restore()
        assert symbolizer.symbolize(load(PERF)).report.failures == []


@pytest.mark.parametrize(
    ("number", "reason", "code"),
    [(errno.EIO, "read-failed", 1), (errno.EMFILE, "read-failed", 1), (errno.EACCES, "unreadable", 0)],
    ids=["disk", "descriptors", "rights"],
)
def test_errors_that_may_pass(
    number: int, reason: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the system says of a disk or of its limits is no property of the file, and another run may do better (R285);
    what it says of rights is."""
    opened = ElfImage.open.__func__  # type: ignore[attr-defined]

    def fails(cls: type[ElfImage], path: str) -> ElfImage:
        if path.endswith("spectra"):
            raise OSError(number, os.strerror(number), path)
        image: ElfImage = opened(cls, path)
        return image

    monkeypatch.setattr(ElfImage, "open", classmethod(fails))
    assert main([str(PERF), "--binaries", "bin", "-o", "out.pb.gz", "--report", "json"]) == code
    (report,) = reports(capsys.readouterr().out)
    assert misses(report)["spectra"] == [reason]
    text = os.strerror(number)
    assert report["failures"] == ([{"reason": reason, "place": "bin/spectra", "text": text}] if code else [])


def test_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles lack the names of a binary whose decoding ends its worker, for that reason; the next run tries again,
    and then makes what an undisturbed one does (R285)."""
    wanted = [undisturbed(PERF), undisturbed(LEDGER)]
    tried: list[str] = []

    def fails(task: Task) -> TaskFailure | None:
        if task.function is decode_binary and task.argument.request.files[0][0].endswith("spectra") and len(tried) < 1:
            tried.append(task.key)
            return TaskFailure.MEMORY
        return None

    in_process(monkeypatch, fails)
    assert batch("--no-cache") == 1
    done = {Path(event["input"]).name: event for event in events("input") if event["state"] == "done"}
    assert done["0.pb.gz"]["reason"] == "read-failed"
    assert "bin/spectra: given up: simulated memory" in done["0.pb.gz"]["detail"]
    assert Path("out/1.pb.gz").read_bytes() == wanted[1]
    assert batch("--no-cache") == 0
    assert [Path(f"out/{number}.pb.gz").read_bytes() for number in range(2)] == wanted


def batch(*more: str) -> int:
    """The exit code of a batch over two profiles."""
    if not Path("in").exists():
        Path("in").mkdir()
        for number, path in enumerate((PERF, LEDGER)):
            shutil.copyfile(path, f"in/{number}.pb.gz")
    seen = ["--log-json", "log", "--report-file", "report", "--report", "json"]
    Path("log").unlink(missing_ok=True)
    return main(["batch", "in", "--out", "out", "--binaries", "bin", "-j", "1", *seen, *more])


def events(name: str) -> list[dict[str, Any]]:
    """The events of a kind in the log."""
    return [entry for line in Path("log").read_text().splitlines() if (entry := json.loads(line))["event"] == name]


def in_process(monkeypatch: pytest.MonkeyPatch, *fails: Callable[[Task], TaskFailure | None]) -> None:
    """Have the tasks of a batch run in this process, where they can be harmed."""
    monkeypatch.setattr("symbolize.cli.batch.open_engine", lambda options: DirectEngine(*fails))


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
@pytest.mark.full
def test_batch(harm: Callable[[str], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile is written with what there is, the reason recorded, and the next run does it again (R280, R285)."""
    wanted = [undisturbed(PERF), undisturbed(LEDGER)]
    in_process(monkeypatch)
    when_read(monkeypatch, harm)
    assert batch("--no-cache") == 1
    done = {Path(event["input"]).name: event for event in events("input") if event["state"] == "done"}
    assert done["0.pb.gz"]["reason"] == "changed"
    assert done["0.pb.gz"]["detail"].endswith("bin/spectra: changed while it was read")
    assert done["1.pb.gz"].get("reason", "") == ""
    assert events("ended")[0]["incomplete"] == 1
    assert Path("out/1.pb.gz").read_bytes() == wanted[1]
    restore()
    assert batch("--no-cache") == 0
    assert [Path(f"out/{number}.pb.gz").read_bytes() for number in range(2)] == wanted
    assert batch("--no-cache") == 0
    assert events("input") == []


@pytest.mark.parametrize("harm", (HARM | GONE).values(), ids=HARM | GONE)
@pytest.mark.full
def test_between_the_passes_of_a_batch(harm: Callable[[str], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that never saw the binary that was scanned knows that it is another one now (R284)."""
    wanted = undisturbed(PERF)
    done: list[str] = []

    def harms(task: Task) -> None:
        if task.function is symbolize_inputs and not task.argument.spill and not done:
            done.append(task.key)
            forget_worker()
            harm("bin/spectra")

    in_process(monkeypatch, harms)
    assert batch("--no-cache") == 1
    assert [event["reason"] for event in events("input") if event["state"] == "done"] == ["changed", ""]
    assert all(event["detail"] == "" for event in events("input") if event["state"] == "put-off")
    restore()
    assert batch("--no-cache") == 0
    assert Path("out/0.pb.gz").read_bytes() == wanted


def test_tables_ahead(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`symbolize index` keeps no table of a file that changes, says so, and makes the others."""
    when_read(monkeypatch, HARM["truncated to half"])
    assert main(["index", "bin", "-j", "1"]) == 4
    assert "bin/spectra: changed while it was read" in capsys.readouterr().err
    cache = TableCache(Path("cache/symbolize"))
    assert cache.stats().tables == 2
    restore()
    assert main(["index", "bin", "-j", "1"]) == 0
    assert TableCache(Path("cache/symbolize")).stats().tables == 3


def test_inspect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`symbolize inspect` says nothing of a file that changes but that."""
    module = importlib.import_module("symbolize.inspection.inspect")
    look = module.inspect_elf

    def harmed(*given: Any) -> Any:
        os.truncate("bin/spectra", 4096)
        return look(*given)

    monkeypatch.setattr(module, "inspect_elf", harmed)
    assert main(["inspect", "bin/spectra"]) == 1
    assert capsys.readouterr().err == "symbolize: bin/spectra: changed while it was read\n"
