"""Labels as frames of stacks."""

import gzip
import io
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symbolize
from symbolize.analysis import Filters, stacks_of
from symbolize.analysis.filters import selected
from symbolize.analysis.label_values import label_totals, note_on_missing
from symbolize.analysis.totals import function_totals
from symbolize.core.errors import InputError
from symbolize.profile import Profile
from symbolize.profile.sample_labels import first_labels, label_values
from tests.support.costs import cost_of
from tests.support.labelled import TEXTS, labelled
from tests.support.messages import profile_pb2
from tests.support.pprof_oracle import pprof


def stacks_in(profile: Profile) -> Counter[tuple[str, ...]]:
    """The value of each stack of names, from the root on."""
    found: Counter[tuple[str, ...]] = Counter()
    for stack, value in zip(profile.stacks(), profile.samples.values[:, 0].tolist(), strict=True):
        found[tuple(frame.function for frame in reversed(stack))] += value
    return found


def test_frames_of_labels() -> None:
    """The first key is outermost, several values of one key are one frame, and what has no label is as it was."""
    made = symbolize.load(io.BytesIO(labelled()))
    shown = selected(made, Filters(tagroot="comm, tid", tagleaf="size,comm"))
    assert stacks_in(shown) == {
        ("a", "7", "main", "leaf", "a"): 1,
        ("b", "8", "main", "leaf", "b"): 10,
        ("a,c", "main", "leaf", "a,c"): 100,
        ("main", "leaf", "2.00kB"): 1000,
        ("b", "[no stack]", "b"): 10000,
    }
    assert len(made.strings) == len(TEXTS)
    assert {row.name for row in made.filter(tagroot="tid").top(9)} == {"leaf", "main", "7", "8", "[no stack]"}
    totals = function_totals(stacks_of(made, Filters(tagleaf="comm")))
    assert sum(row.flat for row in totals.heaviest(0)) == 11111
    assert stacks_in(selected(made, Filters(tagroot="pod"))) == {("main", "leaf"): 1111, ("[no stack]",): 10000}
    assert note_on_missing(made, ["tid", "pod"]) == "no sample has the label pod; there are comm, size, tid"


def test_very_many_labels() -> None:
    """What is joined of the labels of one sample has a limit: their number and their lengths multiply."""
    message = profile_pb2.Profile(string_table=[b"", b"n", b"count", b"key", b"x" * 100_000])
    message.sample_type.add(type=1, unit=2)
    sample = message.sample.add(value=[1])
    for number in range(20_000):
        sample.label.add(key=3, str=4 if number % 2 else 0, num=number)
    made = symbolize.load(io.BytesIO(message.SerializeToString()))
    (texts,) = stacks_in(selected(made, Filters(tagroot="key")))
    assert [len(each) for each in texts] == [4098, len("[no stack]")]


def test_very_many_long_texts() -> None:
    """So has what is joined for many samples."""
    message = profile_pb2.Profile(string_table=[b"", b"n", b"count", b"key", *(b"%04000d" % row for row in range(160))])
    message.sample_type.add(type=1, unit=2)
    for row in range(160 * 160):
        sample = message.sample.add(value=[1])
        sample.label.add(key=3, str=4 + row // 160)
        sample.label.add(key=3, str=4 + row % 160)
    made = symbolize.load(io.BytesIO(message.SerializeToString()))
    with pytest.raises(InputError, match="several labels whose texts would take 67,"):
        selected(made, Filters(tagroot="key"))


@pytest.mark.needs("go")
@pytest.mark.parametrize(("root", "leaf"), [("comm", ""), ("", "tid"), ("comm,tid", ""), ("tid", "comm")])
def test_as_pprof(root: str, leaf: str, tmp_path: Path) -> None:
    """Where samples have a stack and each key once at most, the stacks are those of pprof."""
    message = profile_pb2.Profile.FromString(labelled())
    del message.sample[2:]
    made = symbolize.load(io.BytesIO(message.SerializeToString()))
    options = [*([f"-tagroot={root}"] if root else []), *([f"-tagleaf={leaf}"] if leaf else [])]
    theirs = pprof(tmp_path, [gzip.compress(message.SerializeToString())], *options)
    assert stacks_in(theirs) == stacks_in(selected(made, Filters(tagroot=root, tagleaf=leaf)))
    theirs = pprof(tmp_path, [gzip.compress(message.SerializeToString())], *options, "-focus=^[a7]$", "-hide=main")
    ours = selected(made, Filters(tagroot=root, tagleaf=leaf, focus="^[a7]$", hide="main"))
    assert stacks_in(theirs) == stacks_in(ours) != Counter()


@pytest.mark.process
def test_labels_that_share_a_long_text() -> None:
    """A unit, a text and a key are read once, however many labels have them or are spelled as they are."""
    message = profile_pb2.Profile(string_table=[b"", b"n", b"count", b"comm", b"x" * (1 << 21)])
    message.sample_type.add(type=1, unit=2)
    for number in range(4000):
        sample = message.sample.add(value=[1])
        sample.label.add(key=3, num=number, num_unit=4)
        sample.label.add(key=3, str=4, num=number)
    made = symbolize.load(io.BytesIO(message.SerializeToString()))
    cost = cost_of(lambda: [len(label_totals(made)), len(label_values(made, [b"comm"])[1])])
    assert cost.result == [1, 4001]
    assert cost.seconds < 5


@given(st.lists(st.lists(st.sampled_from(["pid", "PID", "tgid", "x"]), max_size=4), min_size=1, max_size=6))
def test_the_first_label_of_the_first_key(keys: list[list[str]]) -> None:
    """Of the labels of a sample the first with the first key that it has counts, whatever its case."""
    names = ["", "pid", "PID", "tgid", "x"]
    message = profile_pb2.Profile(string_table=[name.encode() for name in names])
    message.sample_type.add(type=1, unit=2)
    for labels in keys:
        sample = message.sample.add(value=[1])
        for key in labels:
            sample.label.add(key=names.index(key), num=1)
    made = symbolize.load(io.BytesIO(message.SerializeToString()))
    expected, row = [], 0
    for labels in keys:
        ranks = [(["pid", "tgid"].index(key.lower()), row + at) for at, key in enumerate(labels) if key != "x"]
        expected.append(min(ranks)[1] if ranks else -1)
        row += len(labels)
    assert first_labels(made, [b"pid", b"tgid"]).tolist() == expected
