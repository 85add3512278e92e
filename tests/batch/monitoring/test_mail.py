"""R405: the report on a batch as a mail."""

from pathlib import Path

import pytest

from symbolize.batch.manifest import InputResult, Manifest
from symbolize.batch.monitoring.mail import COLUMNS, LINES, mail
from symbolize.batch.monitoring.summary import Summary, Tally
from symbolize.batch.news import News
from symbolize.cli import main
from symbolize.cli.hints import OPTION_HINTS
from symbolize.core.terminal import cells
from symbolize.storage.input_names import Input
from tests.support import batch_events as events
from tests.support.batch_runs import LEDGER, copies

HALF = events.coverage(events.mapping("/usr/lib/libc.so.6", "cd" * 20, misses=[("not-found", 5, 50.0)]))


def reported(folder: Path, *results: InputResult, before: float | None = None) -> list[str]:
    """The lines of the report on inputs with these results; `before` is the coverage of an earlier run."""
    seconds = iter([0.0, 90.0, 90.0, 90.0])
    tally = Tally(lambda: next(seconds))
    with Manifest(str(folder / "manifest.sqlite")) as manifest:
        inputs = [Input(f"/in/{'long/' * 30}{each.number}.prof", str(each.number), 1000, "v") for each in results]
        manifest.add(inputs, "options", retry=False, again=False)
        manifest.record(results)
        for each in results:
            tally.handled(events.item(each.number), each)
        if before is not None:
            News(manifest).note_coverage(before)
        with Summary(manifest, tally, OPTION_HINTS) as summary:
            summary.read()
            return mail(summary, str(folder / "quarantine.jsonl")).splitlines()


def test_a_night(tmp_path: Path) -> None:
    """The result in the first line; what is new, how coverage changed, what is missing, and what to do."""
    lines = reported(tmp_path, events.done(1, HALF), events.done(2), events.quarantined(3, "time"), before=80.0)
    assert lines[0] == "symbolize batch: 2 of 3 inputs done, 1 newly in quarantine, coverage 75.0 %"
    assert lines[2:6] == [
        "this run    3 inputs in 1:30, wrote 1.37kB",
        "in all      2 inputs done, 2 profiles",
        "coverage    75.0 % on average (-5.0 since the last run)",
        "quarantine  1 inputs, 1 of them newly",
    ]
    assert lines[7] == "Newly in quarantine"
    assert lines[8].startswith("  time        …")
    assert lines[8].endswith("/3.prof")
    row = lines.index("Binaries that miss most names")
    assert lines[row + 2].split() == ["25.0", "%", "1", "cdcdcdcdcdcd", "libc.so.6"]
    assert lines[lines.index("What to do") + 1].startswith("  - binary not found (25.0 %, 1 binary): add it")


def test_it_fits(tmp_path: Path) -> None:
    """At most 40 lines of 78 columns, however much there is to say."""
    reasons = ["not-found", "no-symbols", "ambiguous", "misfit", "no-mapping", "not-a-file", "restricted", "unreadable"]
    mappings = [
        events.mapping(f"/{'x' * 300}/lib{'ü' * 100}{row}.so", f"{row:040x}", misses=[(reason, 5, 50.0)])
        for row, reason in enumerate(reasons * 3)
    ]
    results = [events.done(1, events.coverage(*mappings)), *(events.quarantined(row, "error") for row in range(2, 30))]
    results += [events.put_off(30)]
    lines = reported(tmp_path, *results, before=100.0)
    assert len(lines) <= LINES
    assert max(map(cells, lines)) <= COLUMNS
    assert any(line.startswith("  and 24 more: ") for line in lines)
    assert lines[-1] == "  - and more: see the text of the report"


def test_nothing_to_say(tmp_path: Path) -> None:
    """A night in which all is well is short."""
    assert len(reported(tmp_path, events.done(1))) < 8


def test_on_standard_output(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`--report mail` is ready for a pipe or a file; the next run says how coverage changed."""
    monkeypatch.chdir(tmp_path)
    copies(LEDGER, tmp_path / "in", ["a.prof"])
    arguments = ["batch", "in", "--out", "out", "--no-cache", "-q", "-j", "1", "--report", "mail"]
    assert main(arguments) == 0
    out, err = capfd.readouterr()
    assert out.startswith("symbolize batch: 1 of 1 inputs done, coverage 0.0 %\n")
    assert err == ""
    assert main([*arguments, "--report-file", "mail"]) == 0
    assert "0.0 % on average (+0.0 since the last run)" in Path("mail").read_text()
    assert capfd.readouterr() == ("", "")
