"""What is known of the evidence in a profile stays with it in the files that we write (R426, facts in a comment)."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symbolize
from symbolize.analysis.filters import Filters, selected
from symbolize.enrich.edits import prune
from symbolize.formats import encode, write
from symbolize.formats.pprof.reader import load
from symbolize.profile import IdOrigin, LeafKind, Profile, StackSource, ValueType, merged
from symbolize.profile.facts import FACTS_PREFIX, exact_sum, set_leaves
from tests.support import pprof_writer
from tests.support.pprof_oracle import pprof
from tests.support.pprof_writer import Line, Mapping, Place

LATER, OTHER, NO_ID = (Mapping(0x1000 * n, 0x1000 * n + 0x1000, 0, f"/bin/{n}", build_id) for n, build_id in
                       enumerate(("aa11", "bb22", ""), 1))  # fmt: skip
TYPES = [("cpu-clock_sample", "count"), ("cpu-clock_event", "nanoseconds")]


def recorded(*stacks: tuple[list[Place], list[int]], mappings: Any = (LATER, OTHER, NO_ID)) -> Profile:
    """A profile with exact leaves and own unwinding, the first of whose build ids was read later."""
    profile = load(pprof_writer.profile(mappings, stacks or [([Place(0x1010, 1)], [2, 20])], TYPES), "made")
    profile.id_origins = np.array([IdOrigin.READ_LATER, *[IdOrigin.RECORDED] * 2][: len(mappings)], np.uint8)
    set_leaves(profile, LeafKind.EXACT, StackSource.OWN_UNWINDING)
    return profile


def again(profile: Profile) -> Profile:
    """The profile as it is read from what we write of it."""
    return load(encode(profile), "again")


def facts(profile: Profile) -> tuple[list[str], list[LeafKind], StackSource]:
    """The build ids that were read later, what the leaves are, and who found the callers."""
    rows = range(len(profile.mappings))
    later = [profile.strings.text(profile.mappings.build_id[row]) for row in rows if profile.id_origin(row) == 2]
    return later, [profile.leaf_kind(column) for column in range(len(profile.sample_types))], profile.stack_source


KNOWN = ["aa11"], [LeafKind.EXACT] * 2, StackSource.OWN_UNWINDING
NOTHING: tuple[list[str], list[LeafKind], StackSource] = [], [LeafKind.UNKNOWN] * 2, StackSource.UNKNOWN


def test_facts_stay() -> None:
    """What we write is read with the same facts, which are no comment of the profile; writing it again gives the same
    bytes, whatever the order of the sample types is."""
    for default in (0, 1):
        profile = recorded()
        profile.comments = [profile.strings.add(b"mine")]
        profile.default_sample_type = profile.sample_types[default].type
        back = again(profile)
        assert facts(back) == KNOWN
        assert [back.strings.text(row) for row in back.comments] == ["mine"]
        assert encode(back) == encode(again(back))
        assert facts(profile) == KNOWN, "the profile was changed by writing it"


def test_the_comment() -> None:
    """The spelling that the documentation has."""
    from tests.support.messages import profile_pb2

    message = profile_pb2.Profile.FromString(encode(recorded()))
    (comment,) = [message.string_table[row] for row in message.comment]
    assert comment.decode() == (
        '#symbolize evidence: {"build ids read later": ["aa11"], "stacks": "own unwinding", "leaves": '
        '{"cpu-clock_sample/count": ["exact", 2], "cpu-clock_event/nanoseconds": ["exact", 20]}}'
    )


def test_facts_that_do_not_count() -> None:
    """Where all ids prove, or no more is known than that a recorder found the callers, there is no comment."""
    proved = recorded(mappings=[OTHER])
    proved.id_origins = np.array([IdOrigin.RECORDED], np.uint8)
    heap = recorded()
    heap.id_origins = np.zeros(0, np.uint8)
    set_leaves(heap, LeafKind.CALL_SITE, StackSource.RECORDER)
    for profile in (proved, heap):
        assert FACTS_PREFIX not in encode(profile)
        assert facts(again(profile)) == NOTHING


def with_comments(profile: Profile, *comments: str) -> Profile:
    """A profile as another tool writes it, with these comments."""
    plain = replace(profile, id_origins=profile.id_origins[:0], leaf_kinds=profile.leaf_kinds[:0])
    plain.stack_source = StackSource.UNKNOWN
    plain.comments = plain.strings.add_all([each.encode() for each in comments]).tolist()
    return again(plain)


def test_a_part_of_the_values() -> None:
    """What holds for some of the values says nothing of all: when another tool merged others, or left some out. Ids
    that were read later stay so."""
    text = encode(recorded()).decode("utf-8", "replace")
    comment = text[text.index(FACTS_PREFIX.decode()) :]
    comment = comment[: comment.index("}}") + 2]
    for values in ([2, 21], [3, 20]):
        found = facts(with_comments(recorded(([Place(0x1010, 1)], values)), comment))
        kinds = [LeafKind(value == known) for value, known in zip(values, [2, 20], strict=True)]
        assert found == (["aa11"], kinds, StackSource.UNKNOWN)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"build ids read later": "aa11"}',
        '{"build ids read later": [["aa11"], 1, null, ""]}',
        '{"leaves": ["exact"], "stacks": "own unwinding"}',
        '{"leaves": {"cpu-clock_sample/count": "exact"}, "stacks": {}}',
        '{"leaves": {"cpu-clock_sample/count": ["exact", 2.0], "cpu-clock_event/nanoseconds": ["exact"]}}',
        '{"leaves": {"cpu-clock_sample/count": [[], 2], "cpu-clock_event/nanoseconds": ["Exact", 20]}, "stacks": 3}',
        '{"leaves": {"x/y": ["exact", 2]}, "stacks": "own unwinding"}',
        '{"leaves": {"cpu-clock_event/nanoseconds": ["exact", ' + "9" * 10_000 + "]}}",
    ],
)
def test_damaged_comments(said: str) -> None:
    """What is damaged says nothing, and is no comment of the profile either."""
    found = with_comments(recorded(), FACTS_PREFIX.decode() + said)
    assert facts(found) == NOTHING
    assert found.comments == []


def test_names_that_are_not_utf8() -> None:
    """A sample type is that of the comment in the spelling in which it is written."""
    profile = recorded()
    name = profile.strings.add(b'a\xff"/\\')
    profile.sample_types[0] = ValueType(name, 0)
    assert facts(again(profile)) == KNOWN
    assert encode(again(profile)) == encode(again(again(profile)))


def test_equal_sample_types() -> None:
    """Of two sample types of one name it is not known which is meant."""
    profile = recorded()
    profile.sample_types = [profile.sample_types[0]] * 2
    assert facts(again(profile)) == (["aa11"], [LeafKind.UNKNOWN] * 2, StackSource.UNKNOWN)


@given(st.lists(st.sampled_from([0, -1, 2**63 - 1, -(2**63), 2**31, 12345678901]), max_size=6))
def test_sums(values: list[int]) -> None:
    """Sums beyond 64 bits do not wrap around: no others have the same."""
    assert exact_sum(np.array(values, np.int64)) == sum(values)


def test_frames_that_are_cut_off() -> None:
    """Where frames were taken off the stacks, leaves may be callers."""
    leaf, caller = (Place(0x1010 + row, 1, (Line(name),)) for row, name in enumerate(("malloc", "main")))
    profile = recorded(([leaf, caller], [1, 1]))
    assert facts(prune(profile, "malloc"))[1] == [LeafKind.UNKNOWN] * 2
    assert facts(prune(profile, "other")) == KNOWN
    assert facts(selected(profile, Filters(hide="malloc")))[1] == [LeafKind.UNKNOWN] * 2
    assert facts(selected(profile, Filters(hide="other", focus="main"))) == KNOWN


def test_otlp(tmp_path: Path) -> None:
    """A message of OpenTelemetry has the comment too; without it all of its ids count as recorded."""
    profile = recorded()
    write(profile, tmp_path / "x.otlp")
    back = symbolize.load(tmp_path / "x.otlp")
    assert facts(back) == KNOWN
    assert back.id_origin(1) == IdOrigin.RECORDED
    assert back.comments == []


@pytest.mark.needs("go")
def test_merged_by_pprof(tmp_path: Path) -> None:
    """pprof keeps the comments: of two profiles of ours all is known, of one of ours and another only which ids were
    read later."""
    other = recorded(([Place(0x2010, 2)], [5, 50]))
    other.id_origins = np.zeros(0, np.uint8)
    assert facts(pprof(tmp_path, [encode(recorded()), encode(other)])) == KNOWN
    other.leaf_kinds, other.stack_source = np.zeros(0, np.uint8), StackSource.UNKNOWN
    assert facts(pprof(tmp_path, [encode(recorded()), encode(other)])) == (["aa11"], *NOTHING[1:])
    set_leaves(other, LeafKind.EXACT, StackSource.FRAME_POINTERS)
    assert facts(pprof(tmp_path, [encode(recorded()), encode(other)])) == (
        ["aa11"],
        KNOWN[1],
        StackSource.FRAME_POINTERS,
    )


def test_merged_here() -> None:
    """Our own merge writes what holds for the whole."""
    whole = merged([recorded(), again(recorded())])
    assert facts(whole) == facts(again(whole)) == KNOWN
    assert json.loads(bytes(encode(whole)).split(FACTS_PREFIX)[1].split(b"}}")[0] + b"}}")["leaves"] == {
        "cpu-clock_sample/count": ["exact", 4],
        "cpu-clock_event/nanoseconds": ["exact", 40],
    }
