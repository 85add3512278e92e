"""The values of a page apart by labels and times."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.analysis import call_tree, stacks_of
from symbolize.page import page_pieces, picture_of
from symbolize.page import slices as module
from symbolize.page.slices import Slices, slices_of
from symbolize.profile import Profile
from tests.support.page_data import read_data
from tests.support.threads import Sample, threaded

SAMPLES = st.builds(
    Sample,
    st.lists(st.sampled_from("abc"), max_size=4),
    st.integers(-3, 9),
    st.dictionaries(st.sampled_from(["pid", "tid", "comm", "size"]), st.sampled_from([1, 2, "x", "y"])),
    st.integers(0, 5000),
)


def slices(profile: Profile) -> Slices | None:
    stacks = stacks_of(profile)
    return slices_of(stacks, call_tree(stacks))


@given(st.lists(SAMPLES, max_size=30))
def test_rows_are_the_samples(samples: list[Sample]) -> None:
    """Added up they are the tree; each row has the values of the samples with its stack, labels and time."""
    stacks = stacks_of(threaded(samples))
    tree = call_tree(stacks)
    found = slices_of(stacks, tree)
    if found is None:
        return
    for rows, whole in ((found.values, tree.values), (found.sizes, tree.sizes)):
        sums = np.zeros_like(whole)
        np.add.at(sums, found.node, rows)
        assert sums.tolist() == whole.tolist()
    keys = [key.name for key in found.keys]
    known = [name for name in ("pid", "tid", "comm", "size") if name in keys]
    begin = min(each.time or 0 for each in samples)
    expected: Counter[tuple[object, ...]] = Counter()
    for each, end in zip(samples, tree.ends.tolist(), strict=True):
        time = ((each.time or 0) - begin) // found.width if found.bins > 1 else 0
        expected[end, time, *(str(each.labels.get(name, "")) for name in known)] += abs(each.value)
    actual: Counter[tuple[object, ...]] = Counter()
    for node, of_set, time, size in zip(
        found.node.tolist(), found.set.tolist(), found.bin.tolist(), found.sizes[:, 0].tolist(), strict=True
    ):
        texts = [found.keys[keys.index(name)].texts[found.sets[of_set, keys.index(name)]] for name in known]
        actual[node, time, *texts] += size
    assert +actual == +expected


def test_threads_are_told_apart_by_names_and_ids() -> None:
    """The heaviest first; what chooses the same as another key is no key of its own."""
    labels = [
        {"pid": 7, "tid": 7, "comm": "main"},
        {"pid": 7, "tid": 8, "comm": "io"},
        {"pid": 9, "tid": 9, "comm": "up"},
    ]
    found = slices(threaded([Sample("a", value, each) for value, each in zip((1, 5, 3), labels, strict=True)]))
    assert found is not None and found.has_threads and found.bins == 1
    assert found.keys[0] == ("thread", ["", "main 7 / io 8", "up 9", "main 7"])
    assert [key.name for key in found.keys] == ["thread", "pid"]


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of too many values are left out with a sentence, times become coarser, then they are left out."""
    many = threaded([Sample("a", 1, {"request": row, "half": row % 2}, 1000 * row) for row in range(3000)])
    found = slices(many)
    assert found is not None and [key.name for key in found.keys] == ["half"]
    assert found.notes == ["request: left out, as it has more than 256 different values"]
    assert (found.bins, len(found.node)) == (512, 1024)
    monkeypatch.setattr(module, "MAX_ROWS", 300)
    found = slices(many)
    assert found is not None and (found.bins, len(found.node)) == (128, 256)
    monkeypatch.setattr(module, "MAX_ROWS", 4)
    found = slices(many)
    assert found is not None and found.bins == 1
    assert found.notes[1:] == ["times: left out, as they tell too many stacks apart"]


def test_nothing_to_choose() -> None:
    """A profile whose samples have the same labels and no times has no such columns in its page."""
    picture = picture_of(stacks_of(threaded([Sample("ab", 3, {"pid": 1}), Sample("a", 2, {"pid": 1})])), "one")
    header, columns = read_data(b"".join(page_pieces(picture)).decode())
    assert picture.slices is None and "slices" not in header
    assert not [name for name in columns if name.startswith(("slice", "label"))]
