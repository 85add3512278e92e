"""Random parts of the committed recordings, as a short profile without build ids has them, against every build."""

from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import symbolize
from symbolize.elf import ElfImage
from symbolize.resolve.address_maps import judge
from symbolize.resolve.addresses import MIN_CALL_SHARE
from symbolize.resolve.candidates import Candidate
from symbolize.resolve.choice import MIN_LEAD, select_build
from symbolize.resolve.mapping_record import MappingRecord, records_of
from symbolize.symbols import Binary
from tests.support.fixture_files import BINARIES, GPERFTOOLS, PERF, variant

PROGRAMS = "ledger", "spectra", "libresonance.so"
PARTS = 4
"""Parts of each size that are taken of a recording."""
SIZES = range(1, 11)
MAX_WRONG = {2: 0.15, 3: 0.03, 4: 0.05}
"""The share of other builds that may pass by chance, by the number of call sites."""
MAX_WRONG_OF_MORE = 0.025


class Case(NamedTuple):
    """A mapping of a recording and a build of its binary."""

    record: MappingRecord
    binary: Binary
    is_right: bool


@cache
def builds(name: str) -> dict[str, Binary]:
    """All builds of a fixture that the processor of the recordings runs, by their folder."""
    if name not in PROGRAMS:
        return {}
    paths = [*BINARIES.glob(f"*/{name}"), *BINARIES.glob(f"*/stripped/{name}")]
    found = {path.relative_to(BINARIES).parts[0]: path for path in sorted(paths)}
    images = {folder: ElfImage.parse(memoryview(path.read_bytes()), str(path)) for folder, path in found.items()}
    return {folder: Binary([image]) for folder, image in images.items() if image.machine == "EM_X86_64"}


@cache
def cases() -> list[Case]:
    """The mappings of all recordings with all builds that fit into them."""
    return list(chain.from_iterable(map(cases_of, [*GPERFTOOLS, *PERF])))


def cases_of(path: Path) -> Iterator[Case]:
    """Those of one recording."""
    for record in records_of(symbolize.load(path), with_names=False):
        for folder, binary in builds(record.filename.rpartition("/")[2]).items():
            verdict = judge(record, binary, verified=False)
            is_right = folder == variant(path)
            if verdict.calls is not None and (is_right or verdict.calls.share < MIN_CALL_SHARE):
                yield Case(record, binary, is_right)


def parts(record: MappingRecord, size: int) -> Iterator[MappingRecord]:
    """The mapping with some of its call sites, chosen at random."""
    sites = np.flatnonzero(record.is_call)
    chosen = np.random.default_rng([size, len(sites)])
    for _ in range(PARTS if size <= len(sites) else 0):
        rows = np.sort(chosen.choice(sites, size, replace=False))
        yield record._replace(
            rows=record.rows[rows], addresses=record.addresses[rows], is_call=record.is_call[rows], names=None
        )


def test_there_are_enough() -> None:
    """Every recording has its build, and other ones that fit into the mapping."""
    assert len([case for case in cases() if case.is_right]) >= len([*GPERFTOOLS, *PERF])
    assert len([case for case in cases() if not case.is_right]) > 60


@pytest.mark.parametrize("size", SIZES)
def test_right_builds_are_accepted(size: int) -> None:
    """No part of a recording refutes the build that ran (rule R148)."""
    for case in cases():
        for part in parts(case.record, size) if case.is_right else ():
            assert not judge(part, case.binary, verified=False).problem


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.full
def test_other_builds_are_refused(size: int) -> None:
    """From two call sites on hardly any part of a recording fits another build, and none that has few in its calls
    (rule R148)."""
    passed = []
    for case in cases():
        for part in parts(case.record, size) if not case.is_right else ():
            verdict = judge(part, case.binary, verified=False)
            assert verdict.calls is not None
            passed.append(not verdict.problem)
            assert verdict.problem or verdict.calls.inside * 2 >= size
    assert sum(passed) <= MAX_WRONG.get(size, MAX_WRONG_OF_MORE) * len(passed)


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.full
def test_the_right_one_is_chosen(size: int) -> None:
    """Of all builds no other one is taken where its call sites are fewer, and mostly the right one is (rule R247)."""
    right = 0
    asked = 0
    for case in cases():
        others = [other.binary for other in cases() if other.record is case.record and not other.is_right]
        for part in parts(case.record, size) if case.is_right and others else ():
            found = [Candidate("name", None, binary) for binary in (*others, case.binary)]  # type: ignore[arg-type]
            chosen = select_build(found, lambda binary, part=part: judge(part, binary, verified=False))  # type: ignore[misc]
            asked += 1
            if chosen.candidate is not None:
                assert chosen.candidate.binary is case.binary
                right += 1
    assert right >= (0.4 if size == MIN_LEAD else 0.8) * asked
