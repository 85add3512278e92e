"""Random parts of the committed recordings, as a short profile without build ids has them, against every build."""

from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

import symbolize
from symbolize.binaries import BinaryMatch
from symbolize.core.arrays import distinct, marked
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage
from symbolize.evidence.choice import BuildMatch, Candidate, select_build
from symbolize.evidence.judge import Judge
from symbolize.profile import LeafKind
from symbolize.resolve.address_maps import map_in_images
from symbolize.resolve.mapping_record import MappingRecord, records_of
from symbolize.symbols import Binary
from tests.support.fixture_files import BINARIES, GPERFTOOLS, PERF, variant

PROGRAMS = "ledger", "spectra", "libresonance.so"
PARTS = 2
"""Parts of each size that are taken of a recording."""
MIN_HARM = 0.5
"""The share of the addresses that another build misnames at least, to be counted."""
SUPPORTED_FROM = {"leaves": 8, "sites": 5, "calls": 3}
"""How many of a kind of evidence support each right build."""
REFUSED = {
    ("leaves", 2): 0.55, ("leaves", 3): 0.8, ("leaves", 5): 0.95, ("leaves", 8): 0.99, ("leaves", 12): 0.995,
    ("sites", 5): 0.6, ("sites", 7): 0.7, ("sites", 10): 0.8,
    ("calls", 5): 0.65, ("calls", 7): 0.7, ("calls", 10): 0.75,
}  # fmt: skip
"""The share of other builds that so many of a kind of evidence refute at least; those that fit into no mapping too."""
FIRST = ("leaves", 8), ("sites", 7)
"""What the plain run asks of other builds."""
JUDGE = Judge()


class Case(NamedTuple):
    """A mapping of a recording, a build of its binary, and whether that ran."""

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
def symbols(folder: str, name: str) -> list[tuple[int, int, str]]:
    """Begin, end and name of the functions of a build."""
    debug = BINARIES / folder / "debug" / f"{name}.debug"
    with (debug if debug.exists() else BINARIES / folder / name).open("rb") as file:
        section: Any = ELFFile(file).get_section_by_name(".symtab")
        functions = [each for each in section.iter_symbols() if each["st_info"]["type"] == "STT_FUNC"]
        return sorted((each["st_value"], each["st_value"] + each["st_size"], each.name) for each in functions)


@cache
def cases() -> list[Case]:
    """The mappings of all recordings with all builds that fit into them, and misname many of the addresses."""
    return list(chain.from_iterable(map(cases_of, [*GPERFTOOLS, *PERF])))


def cases_of(path: Path) -> Iterator[Case]:
    """Those of one recording."""
    profile = symbolize.load(path)
    profile.leaf_kinds = np.full(len(profile.sample_types), LeafKind.EXACT, np.uint8)
    for record in records_of(profile, with_names=False):
        name, right = record.filename.rpartition("/")[2], variant(path)
        known = builds(name)
        wanted = names_of(record, known[right], symbols(right, name)) if known else []
        for folder, binary in known.items():
            found = names_of(record, binary, symbols(folder, name))
            harm = sum(one != other for one, other in zip(wanted, found, strict=True))
            if folder == right or harm > MIN_HARM * len(wanted):
                yield Case(record, binary, folder == right)


def names_of(record: MappingRecord, binary: Binary, functions: list[tuple[int, int, str]]) -> list[str]:
    """The function of each address of a mapping, were a binary mapped there; none if it does not fit."""
    mapped, _ = map_in_images(record, binary, verified=False)
    vaddrs = mapped[0].tolist() if mapped is not None else [0] * len(record.rows)
    at = (bisect_right(functions, vaddr, key=itemgetter(0)) - 1 for vaddr in vaddrs)
    return [functions[i][2] if i >= 0 and vaddr < functions[i][1] else "" for i, vaddr in zip(at, vaddrs, strict=True)]


def parts(record: MappingRecord, kind: str, size: int) -> Iterator[MappingRecord]:
    """The mapping with some of its addresses, chosen at random: "leaves", "sites", or "calls", sites with what they
    called."""
    rows = np.flatnonzero(record.is_leaf if kind == "leaves" else record.is_call)
    if kind == "calls":
        rows = distinct(record.indexed_pairs()[1])
    chosen = np.random.default_rng([size, len(rows)])
    for _ in range(PARTS if size <= len(rows) else 0):
        some = chosen.choice(rows, size, replace=False)
        mask, none = marked(some, len(record.rows)), marked(some[:0], len(record.rows))
        if kind == "leaves":
            yield record._replace(is_leaf=mask, is_call=none, pairs=None)
        else:
            yield record._replace(is_leaf=none, is_call=mask, pairs=record.pairs if kind == "calls" else None)


def judged(record: MappingRecord, binary: Binary) -> BuildMatch:
    """How a build matches a mapping."""
    mapped, _ = map_in_images(record, binary, verified=False)
    if mapped is None:
        return BuildMatch("does not fit")
    return BuildMatch(judgement=JUDGE.judge(binary, record.observed(mapped)))


def sizes(*, is_full: bool) -> list[Any]:
    """Kinds of evidence, and how many of each."""
    return [
        pytest.param(*each, id=f"{each[1]} {each[0]}", marks=() if each in FIRST or not is_full else pytest.mark.full)
        for each in REFUSED
    ]


def test_there_are_enough() -> None:
    """Every recording has its build, and other ones that name most of its addresses otherwise."""
    assert len([case for case in cases() if case.is_right]) >= len([*GPERFTOOLS, *PERF])
    assert len([case for case in cases() if not case.is_right]) > 100


@pytest.mark.parametrize(("kind", "size"), [*sizes(is_full=False), ("leaves", 1), ("sites", 1), ("calls", 3)])
def test_right_builds_are_accepted(kind: str, size: int) -> None:
    """No part of a recording refutes the build that ran, and few addresses support it: one recording has a frame that
    the walk invented (rule R148)."""
    right = [case for case in cases() if case.is_right]
    found = [judged(part, case.binary) for case in right for part in parts(case.record, kind, size)]
    assert min(each.verdict for each in found) > Verdict.REFUTED
    assert sum(each.judgement.contradicting > 0 for each in found) <= PARTS
    if size >= SUPPORTED_FROM[kind]:
        assert all(each.verdict is Verdict.SUPPORTED for each in found if not each.judgement.contradicting)


@pytest.mark.parametrize(("kind", "size"), sizes(is_full=True))
def test_other_builds_are_refused(kind: str, size: int) -> None:
    """Few addresses refute hardly any build less than the shares above, and none supports one (rule R148)."""
    others = [case for case in cases() if not case.is_right]
    verdicts = [judged(part, case.binary).verdict for case in others for part in parts(case.record, kind, size)]
    assert max(verdicts) < Verdict.SUPPORTED
    assert len(verdicts) > 150
    assert verdicts.count(Verdict.REFUTED) >= REFUSED[kind, size] * len(verdicts)


@pytest.mark.parametrize(("kind", "size"), sizes(is_full=True))
def test_the_right_one_is_chosen(kind: str, size: int) -> None:
    """Of all builds the right one is taken where few addresses support it, and never another one without doubt (rule
    R247)."""
    for record, right in [(case.record, case.binary) for case in cases() if case.is_right]:
        others = [case.binary for case in cases() if case.record is record and not case.is_right]
        found = [Candidate("name", BinaryMatch(), binary) for binary in (*others, right)]
        for part in parts(record, kind, size):
            chosen = select_build(found, partial(judged, part), "", lambda _: False)
            is_right = chosen.candidate is not None and chosen.candidate.binary is right
            assert is_right or chosen.verdict < Verdict.SUPPORTED
            assert is_right or size < SUPPORTED_FROM[kind] or judged(part, right).judgement.contradicting
