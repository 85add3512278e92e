"""The list of plausible wrong lines that tests are to notice, and the sample of made ones."""

import json
from argparse import Namespace
from pathlib import Path

import pytest

from tools import mutations
from tools.mutations import ROOT, equivalent_changes, faults_of, importers, listed_faults, try_in_rounds


def test_the_list_fits_the_code() -> None:
    """Each line of the list is in the code, and the tests that are to notice its change are there."""
    faults = list(listed_faults([]))
    assert len({each.name for each in faults}) == len(faults) > 70
    for module, line, old, _ in equivalent_changes():
        assert old in line in [each.strip() for each in (ROOT / module).read_text().splitlines()], (module, line)
    assert [path for each in faults for path in each.tests if not (ROOT / Path(path.partition("::")[0])).exists()] == []


def test_importers() -> None:
    """Tests that name a module, or import it or something of it from its package."""
    assert "tests/names/test_rust.py" in importers(ROOT / "symbolize/names/rust.py")
    assert "tests/core/test_files.py" in importers(ROOT / "symbolize/core/files.py")
    assert "tests/core/test_files.py" not in importers(ROOT / "symbolize/names/rust.py")


def test_sample_in_rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each fault is tried with more tests until one notices; a run that is started again does not repeat a round."""
    folder = ("tests/names",)
    faults = [each._replace(tests=(*folder, "tests")) for each in faults_of(ROOT / "symbolize/names/rust.py")[:3]]
    tried: list[tuple[int, tuple[str, ...]]] = []

    def outcome(fault: mutations.Fault, _options: Namespace) -> str | None:
        number = faults.index(next(each for each in faults if each[:5] == fault[:5]))
        tried.append((number, fault.tests))
        return {0: None, 1: "tests/last.py::test" if "last" in fault.tests else "", 2: ""}[number]

    monkeypatch.setattr(mutations, "try_fault", outcome)
    monkeypatch.setattr(mutations, "importers", lambda _module: ["importing"])
    assert try_in_rounds(faults, ["last"], tmp_path / "results", Namespace()) == (1, 2)
    assert tried == [(n, ("importing",)) for n in range(3)] + [(n, t) for t in (folder, ("last",)) for n in (1, 2)]
    lines = [json.loads(line) for line in (tmp_path / "results").read_text().splitlines()]
    assert [line["verdict"] for line in lines] == ["refused", *["survived"] * 4, "noticed", "survived"]
    tried.clear()
    assert try_in_rounds(faults, ["last"], tmp_path / "results", Namespace()) == (1, 2)
    assert tried == []
