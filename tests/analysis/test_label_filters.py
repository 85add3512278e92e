"""Filters of samples and labels, against pprof's own and by examples."""

import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.analysis import Filters
from symbolize.analysis.filters import note_on_range, selected, within
from symbolize.core.errors import UsageError
from symbolize.formats.pprof.reader import load
from symbolize.profile import Profile
from tests.support.messages import profile_pb2
from tests.support.pprof_oracle import pprof, summed

Label = tuple[str, str, int, str]
"""Key, text, number, unit."""

SAMPLES: list[list[Label]] = [
    [("bytes", "", 4096, "bytes"), ("thread", "main", 0, "")],
    [("chunk", "", 128, "kb")],
    [("request", "", 1 << 20, ""), ("thread", "worker-1", 0, "")],
    [("latency", "", 250, "ms"), ("thread", "worker-2", 0, ""), ("state", "idle", 0, "")],
    [("wait", "", 2, "seconds"), ("state", "busy", 0, "")],
    [("count", "", 32, ""), ("items", "", 32, "widgets")],
    [("offset", "", -5, "bytes")],
    [],
]
"""The labels of samples whose values are 1, 2, 4, 8 and so on."""


def written(samples: list[list[Label]]) -> bytes:
    """A profile with these labels, a function a sample."""
    message: Any = profile_pb2.Profile()
    strings: dict[str, int] = {"": 0}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings))

    message.sample_type.add(type=string("samples"), unit=string("count"))
    message.mapping.add(id=1, memory_start=0x1000, memory_limit=0x9000, filename=string("/bin/app"))
    for number, labels in enumerate(samples):
        message.function.add(id=number + 1, name=string(f"f{number}"), system_name=string(f"f{number}"))
        location = message.location.add(id=number + 1, mapping_id=1, address=0x1000 + number)
        location.line.add(function_id=number + 1)
        sample = message.sample.add(location_id=[number + 1], value=[1 << number])
        for key, text, value, unit in labels:
            sample.label.add(key=string(key), str=string(text), num=value, num_unit=string(unit))
    message.string_table.extend(text.encode() for text in strings)
    return bytes(message.SerializeToString())


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("span=42", "span=^42$"),
        ("42", ":42$"),
        ("span=40:50", "span=^40:50$"),
        ("span=^42$", ""),
        ("size=42", ""),
        ("none=42", ""),
    ],
)
def test_range_on_texts(text: str, better: str) -> None:
    """A number is a range also where the labels are texts; a note says what matches the text."""
    samples: list[list[Label]] = [[("span", "42", 0, "")], [("span", "7", 0, "")]]
    profile = load(memoryview(written(samples if "size" not in text else [*samples, [("size", "", 42, "")]])), "x")
    found = note_on_range(profile, "tagfocus", text)
    assert bool(found) == bool(better)
    if better:
        assert f"{better} matches" in found
        assert not chosen(selected(profile, Filters(tagfocus=text)))
    if text.endswith("42") and better:
        assert chosen(selected(profile, Filters(tagfocus=better))) == {0}


def chosen(profile: Profile) -> set[int]:
    """Which samples are left."""
    return {int(value).bit_length() - 1 for value in profile.samples.values[:, 0]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4kb", {0}),
        ("bytes=4kb:", {0}),
        ("chunk=100000b:1mb", {1}),
        (":4kb", {0, 6}),
        ("request=1mb", {2}),
        ("request=1mb:1gb", {2}),
        ("100ms:1s", {3}),
        ("wait=1s:", {4}),
        ("latency=:2000ms", {3}),
        ("wait=:2000ms", {4}),
        ("items=32", {5}),
        ("bytes=4096", {0}),
        ("items=30:40", {5}),
        ("offset=-5b:", {6}),
        ("thread=main", {0}),
        ("thread=^worker", {2, 3}),
        ("thread=main,worker-2", {0, 3}),
        ("thread", {0, 2, 3}),
        ("^thread:worker,state:idle", {3}),
        ("state:(idle|busy)", {3, 4}),
        ("none=x", set()),
        ("4kb:2s", set()),
        ("latency=1000000000000000000000000h:", set()),
        ("offset=-99999999999999999999999b:", {6}),
    ],
)
def test_labels(text: str, expected: set[int]) -> None:
    """Ranges count in units of the labels; expressions match texts (R348, label filters)."""
    profile = load(written(SAMPLES), "made")
    assert chosen(selected(profile, Filters(tagfocus=text))) == expected
    assert chosen(selected(profile, Filters(tagignore=text))) == set(range(len(SAMPLES))) - expected


@pytest.mark.needs("go")
@pytest.mark.parametrize(
    "options",
    [
        {"tagfocus": "4kb"},
        {"tagfocus": "bytes=4kb:"},
        {"tagfocus": ":4kb"},
        {"tagfocus": "request=1mb:1gb"},
        {"tagfocus": "100ms:1s"},
        {"tagfocus": "wait=1s:"},
        {"tagfocus": "offset=-5b:"},
        {"tagfocus": "thread=main,worker-2"},
        {"tagfocus": "^thread:worker,state:idle"},
        {"tagignore": "thread"},
        {"tagignore": "items=30:40"},
        {"tagshow": "th|st"},
        {"taghide": "^b"},
        {"tagfocus": "thread", "tagignore": "state=idle", "taghide": "thread"},
        {"focus": "f[0-4]", "ignore": "f2", "hide": "f3"},
        {"show": "f[24]"},
    ],
)
def test_pprof_filters_the_same(options: dict[str, str], tmp_path: Path) -> None:
    """Samples, frames and labels are those that pprof leaves."""
    data = written(SAMPLES)
    theirs = pprof(tmp_path, [data], *(f"-{name}={text}" for name, text in options.items()))
    assert summed(selected(load(data, "made"), Filters(**options))) == summed(theirs)


def test_expressions_raise_no_warnings(recwarn: pytest.WarningsRecorder) -> None:
    """A set that Python may read otherwise one day is no concern of who calls."""
    selected(load(written(SAMPLES), "made"), Filters(focus="[[a]"))
    assert not recwarn.list


def test_numbers_of_any_length() -> None:
    """What has more digits than any number is an expression like others."""
    assert chosen(selected(load(written(SAMPLES), "made"), Filters(tagfocus="9" * 5000 + "kb"))) == set()


@pytest.mark.full
def test_many_keys_take_linear_time() -> None:
    """Each number is compared once, however many keys there are."""
    count = 1 << 17
    labels: list[Label] = [(f"k{number}", "", number, "") for number in range(count)]
    profile = load(written([labels[: count // 2], labels[count // 2 :]]), "made")
    began = time.process_time()
    assert chosen(selected(profile, Filters(tagfocus=f"{count // 2}:"))) == {1}
    assert time.process_time() - began < 5


def test_units_of_one_key_may_differ() -> None:
    """Each number counts in its own unit; pprof takes the first for all."""
    samples: list[list[Label]] = [[("size", "", 2048, "b")], [("size", "", 2, "kb")], [("size", "", 2048, "")]]
    assert chosen(selected(load(written(samples), "made"), Filters(tagfocus="size=2kb"))) == {0, 1, 2}


def test_label_options_leave_the_rest() -> None:
    """Labels are removed by their keys; stacks, values and unknown fields stay."""
    profile = load(written(SAMPLES), "made")
    shown = selected(profile, Filters(tagshow="thread|state", taghide="state"))
    assert np.array_equal(shown.samples.values, profile.samples.values)
    assert {profile.strings.text(key) for key in shown.samples.labels.key} == {"thread"}
    assert shown.samples.label_offsets.tolist() == [0, 1, 1, 2, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("name", ["tagfocus", "tagignore", "tagshow", "taghide", "focus", "show"])
def test_invalid_expressions(name: str) -> None:
    """They are refused with the name of the parameter."""
    with pytest.raises(UsageError, match=rf"^{name}: '\[' is not a regular expression"):
        selected(load(written(SAMPLES), "made"), Filters(**{name: "["}))


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**70), 2**70), st.sampled_from(["", "b", "kb", "ns"]))
def test_numbers_are_exact(value: int, limit: int, unit: str) -> None:
    """Whatever the units and however large the numbers, ends of ranges are compared exactly."""
    profile = load(written([[("size", "", value, "mb")]]), "made")
    factor = {"": 1, "b": 1 << 20, "kb": 1 << 10}.get(unit)
    for text, holds in ((f"size={limit}{unit}:", ">="), (f"size=:{limit}{unit}", "<=")):
        expected = factor is not None and (value * factor >= limit if holds == ">=" else value * factor <= limit)
        assert chosen(selected(profile, Filters(tagfocus=text))) == ({0} if expected else set())


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.fractions() | st.integers(-(1 << 70), 1 << 70), st.booleans())
def test_limits_that_are_no_integers(value: int, limit: Fraction, is_low: bool) -> None:
    """Values are compared with the limit itself, of which a unit may make any fraction."""
    found = within(np.array([value]), Fraction(limit), is_low=is_low)
    assert found.tolist() == [value >= limit if is_low else value <= limit]
    if abs(limit) < 1 << 62:
        around = within(np.array([math.floor(limit), math.ceil(limit)]), Fraction(limit), is_low=is_low)
        is_whole = math.floor(limit) == limit
        assert around.tolist() == ([is_whole, True] if is_low else [True, is_whole])
