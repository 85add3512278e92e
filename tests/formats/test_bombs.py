"""Inputs that are small in a file and large in memory cost a bounded multiple of their size (rules R276, R277)."""

import gzip
import random
from pathlib import Path

import pytest

from symbolize.cli import main
from symbolize.core.errors import InputError
from symbolize.formats import content as contents
from symbolize.formats.content import decompressed
from symbolize.formats.open import load_all
from symbolize.formats.pprof import reader as pprof
from tests.support.bombs import BASE, BOMBS, SAMPLE_START, field, padded
from tests.support.costs import cost_of, needs_peak
from tests.support.needs import needs_compiled

SIZE = 4 << 20
MOST = 96 << 20
MORE = dict.fromkeys(("otlp samples", "otlp values", "otlp stack"), 128 << 20)
"""Bytes that an input of that size may take. Objects for each row took up to 600 MiB."""


def cost(data: bytes, folder: Path) -> int:
    """Bytes of memory that a process takes for symbolizing an input beyond what it had."""
    (folder / "out").mkdir(exist_ok=True)
    (folder / "first").write_bytes(BOMBS["pprof packed stack"](1000))
    (folder / "bomb").write_bytes(data)

    def symbolize(name: str) -> None:
        assert main([str(folder / name), "-o", str(folder / "out") + "/", "-q", "--no-cache"]) in (0, 1)

    symbolize("first")  # what the first input of a process imports is no cost of it
    return cost_of(lambda: symbolize("bomb")).memory


@pytest.mark.process
@needs_compiled
@needs_peak
@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.full
def test_memory(name: str, tmp_path: Path) -> None:
    """R276: the most of every table that so many bytes can say."""
    size = SIZE // 4 if name.startswith("perfetto") else SIZE
    assert cost(BOMBS[name](size), tmp_path) < MORE.get(name, MOST)


@pytest.mark.parametrize("table", ["labels", "empty strings", "strings"])
def test_tables_beyond_eight_times_the_size(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R276: they are refused before they are made, where they are large."""
    data = BOMBS[f"pprof {table}"](100_000)
    pprof.load(data, "x")
    monkeypatch.setattr(pprof, "FREE_COST", 100_000)
    with pytest.raises(InputError, match="in memory, as only a bomb does"):
        pprof.load(data, "x")


def test_real_profiles_are_far_from_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """R276: recorded profiles pass where nothing is free."""
    monkeypatch.setattr(pprof, "FREE_COST", 0)
    folder = Path(__file__).parents[2] / "fixtures" / "profiles"
    for path in (*folder.glob("go/*.gz"), *folder.glob("perf/*.gz")):
        assert load_all(path)[0].profile


def test_profiles_with_much_in_few_bytes_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """R276: short stacks with two span ids each, and many sample types of which nearly all are 0."""
    monkeypatch.setattr(pprof, "FREE_COST", 0)
    spans = range(1000)
    strings = b"".join(field(6, b"%016x" % each) for each in (*spans, *spans))
    labels = b"".join(field(3, b"\x08\x01\x10" + padded(3 + each)) for each in (0, 1))
    assert len(pprof.load(BASE + strings + field(2, SAMPLE_START + labels) * 1000, "x").samples) == 1001
    types, values = b"\x0a\x00" * 12, field(2, b"\x01" + bytes(12))
    wide = BASE.replace(field(2, SAMPLE_START), b"") + types + field(2, field(1, b"\x01" * 5) + values) * 1000
    assert len(pprof.load(wide, "x").samples) == 1000


def test_mappings_of_a_fleet_pass() -> None:
    """R276: 200,000 mappings."""
    assert len(pprof.load(BOMBS["pprof mappings"](7 * 200_000), "x").mappings) > 199_000


@pytest.mark.process
@needs_peak
@pytest.mark.full
def test_mappings_without_locations_are_small(tmp_path: Path) -> None:
    """R276: 100,000 mappings, each a row of the report, take about 1 KiB each."""
    assert cost(BOMBS["pprof mappings"](7 * 100_000), tmp_path) < 120 << 20


@pytest.mark.parametrize("kind", ["mapping", "comment"])
def test_more_rows_than_any_profile_has(kind: str) -> None:
    """R276: what becomes an object for each row has a limit of its own."""
    with pytest.raises(InputError, match=f"{kind}s, more than any profile can have"):
        pprof.load(BOMBS[f"pprof {kind}s"](3 << 20), "x")


def test_layers_multiply(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """R277: what no layer expands too much, but all of them together do."""
    monkeypatch.setattr(contents, "FREE_NESTED", 1 << 20)
    monkeypatch.setattr(contents, "MAX_RATIO", 300)
    chance = random.Random(1)
    content = b"".join(field(100, bytes(1 << 12) + chance.randbytes(20)) for _ in range(500))
    inner = gzip.compress(content)
    twice = gzip.compress(inner * 5)
    assert len(content) < 300 * len(inner)
    assert len(inner) * 5 < 300 * len(twice)
    with pytest.raises(InputError, match="as only a bomb does"):
        list(decompressed([twice], "x", 1 << 30))
    # The same of a stream that is a trace.
    (tmp_path / "trace").write_bytes(gzip.compress(gzip.compress(field(1, b"\x50\x01") + content) * 5))
    with pytest.raises(InputError, match="as only a bomb does"):
        load_all(tmp_path / "trace")
