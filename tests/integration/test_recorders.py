"""The recorders of "Getting started", each as its page says: a recording of a small program, then the first picture of
it, without an option that says where binaries are."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.docs_examples import DOCS, blocks, environment, programs
from tests.support.needs import missing

PAGE = DOCS / "getting-started.md"
SOURCES = Path(__file__).with_name("recorders")
LEFT_OUT = re.compile(r"^(?:sudo .*|.* # elsewhere.*)\n", re.MULTILINE)
"""Commands that install packages, and those with folders of another machine."""
LIMIT = 120


class Recorder(NamedTuple):
    """A section of the page, the folder of the program's sources, what is recorded, what the commands need, and what
    comes before them."""

    section: str
    folder: str
    recording: str
    needs: tuple[str, ...]
    before: str = ""


RECORDERS = [
    Recorder("C++ with gperftools", "", "cpu.prof", ("g++", "google-pprof")),
    Recorder("A program of the system, with the kernel", "", "perf.data", ("perf",)),
    Recorder("C++ without frame pointers", "", "perf.data", ("g++", "perf"), "g++ -O2 -g -o ledger ledger.cc\n"),
    Recorder("Go", "package", "go.pb.gz", ("go",)),
    Recorder("Rust", "server", "perf.data", ("perf", "cargo")),
]


def commands(section: str) -> str:
    """The commands of a section of the page for the machine that records."""
    lines = PAGE.read_text().split("\n")
    begin = lines.index(f"### {section}")
    end = next(row for row in range(begin + 1, len(lines)) if lines[row].startswith("##"))
    return "".join(LEFT_OUT.sub("", each.text) for each in blocks(PAGE) if begin < each.line <= end)


def run(text: str, folder: Path, variables: dict[str, str]) -> str:
    """What commands print, in order, where perf does not take the test for the program that reads its recording."""
    with (folder / "printed").open("w+") as printed:
        command = ["bash", "-euo", "pipefail", "-c", text]
        done = subprocess.run(
            command, cwd=folder, env=variables, stdout=printed, stderr=subprocess.STDOUT, timeout=LIMIT, check=False
        )
        printed.seek(0)
        text = printed.read()
    assert done.returncode == 0, text
    return text


def named_by_perf(folder: Path) -> float:
    """The share of the samples of perf.data whose leaf `perf script` names."""
    command = ["perf", "script", "--no-inline", "-F", "ip,sym"]
    printed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=True).stdout
    leaves = [sample.strip().split("\n")[0] for sample in printed.split("\n\n") if sample.strip()]
    return sum("[unknown]" not in leaf for leaf in leaves) / len(leaves)


def test_every_recorder_is_tried() -> None:
    """The page has no recorder that the test below does not know."""
    page = PAGE.read_text()
    sections = re.findall(r"^### (.+)$", page[page.index("## 2. ") : page.index("## Read the picture")], re.MULTILINE)
    assert sections == [each.section for each in RECORDERS]


@pytest.mark.process
@pytest.mark.full
@pytest.mark.parametrize("recorder", RECORDERS, ids=lambda each: each.section)
def test_first_picture(recorder: Recorder, tmp_path: Path) -> None:
    """What the page says records a program and makes a picture of it in which as much has a name as the recorder's own
    tools name."""
    if reason := missing(recorder.needs):
        pytest.skip(reason)
    folder = tmp_path / "work"
    shutil.copytree(SOURCES / recorder.folder, folder)
    variables = dict(environment(programs(tmp_path / "bin"), tmp_path))
    variables["RUSTUP_HOME"] = os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
    if "perf" in recorder.needs:
        try_perf(folder, variables)
    printed = run(recorder.before + commands(recorder.section), folder, variables)
    page = folder / recorder.recording.replace(".data", ".html").replace(".pb.gz", ".html").replace(".prof", ".html")
    assert page.stat().st_size > 30_000, printed
    report = json.loads(run(f"symbolize {recorder.recording} -o named.pb.gz --report json", folder, variables))
    wanted = named_by_perf(folder) if "perf" in recorder.needs else 1.0
    assert report["leaf_percent"] >= 99 * wanted, (printed, wanted)


def try_perf(folder: Path, variables: dict[str, str]) -> None:
    """Skip the test where perf may not record."""
    command = ["perf", "record", "-q", "-o", "try.data", "true"]
    if subprocess.run(command, cwd=folder, env=variables, capture_output=True, check=False).returncode:
        pytest.skip("perf may not record here: needs root, or kernel.perf_event_paranoid of 1 or less")
