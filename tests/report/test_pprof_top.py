"""The heaviest functions of the report against `go tool pprof -top`, line by line."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import symbolize
from tests.support.fixture_files import BINARIES, FIXTURES

PROFILES = FIXTURES / "profiles"
CASES = {
    "gperftools": (PROFILES / "gperftools" / "ledger-gcc-pie.prof", [BINARIES / "gcc-pie"]),
    "libm without names": (PROFILES / "perf" / "spectra-gcc-pie.pb.gz", [BINARIES / "gcc-pie"]),
    "no debug information in libraries": (PROFILES / "gperftools" / "spectra-clang-pie.prof", [BINARIES / "clang-pie"]),
    "nothing symbolized": (PROFILES / "gperftools" / "spectra-gcc-pie.prof", []),
    "go": (PROFILES / "go" / "census.pb.gz", []),
    "simpleperf": (FIXTURES / "simpleperf" / "mixer.proto", [FIXTURES / "simpleperf" / "binaries"]),
}
VALUE = r"\s*([\d.]+)\S*\s+[\d.]+%"
ROW = re.compile(rf"{VALUE}\s+[\d.]+%{VALUE}\s+(.*?)(?: \((?:partial-)?inline\))?")


def top(path: Path) -> list[tuple[str, float, float]]:
    """What pprof prints of a profile: names with their own values and totals."""
    options = ["-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-symbolize=none", "-unit=ns"]
    environment = {**os.environ, "PPROF_TMPDIR": str(path.parent), "GOFLAGS": ""}
    command = ["go", "tool", "pprof", *options, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    lines = iter(done.stdout.splitlines())
    for line in lines:
        if line.split()[:2] == ["flat", "flat%"]:
            break
    found = [ROW.fullmatch(line) for line in lines]
    assert all(found)
    return [(match[3], float(match[1]), float(match[2])) for match in found if match]


@pytest.mark.needs("go")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows_are_those_of_pprof(case: tuple[Path, list[Path]], tmp_path: Path) -> None:
    """Names, values and order agree in all rows, with the unnamed code of each module among them."""
    source, binaries = case
    result = symbolize.symbolize(source, binaries)
    result.write(tmp_path / "out.pb.gz")
    expected = top(tmp_path / "out.pb.gz")
    assert len(expected) > 3
    assert [tuple(row) for row in result.top(len(expected) + 1)] == expected


def test_rows_that_pprof_had() -> None:
    """The first rows of a profile with unnamed code, as pprof 1.19 printed them."""
    result = symbolize.symbolize(*CASES["libm without names"])
    assert [tuple(row) for row in result.top(3)] == [
        ("[libm.so.6]", 500000000, 500000000),
        ("resonance::(anonymous namespace)::split_parity", 316000000, 316000000),
        ("resonance::operator*", 120000000, 120000000),
    ]
    (libm,) = (row for row in result.report.mappings if row.name.endswith("libm.so.6"))
    assert (libm.flat, libm.cumulative, libm.symbolized_flat) == (500000000, 500000000, 0)
    named = sum(row.flat for row in result.top(1000) if not row.name.startswith("["))
    assert result.report.leaf_percent == pytest.approx(100 * named / result.report.sample_value, abs=0.01)
