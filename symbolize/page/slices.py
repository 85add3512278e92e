"""The stacks of a call tree apart by the labels and times of their samples, which the page chooses from."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from symbolize.analysis.label_values import MAX_KEYS, MAX_VALUES, LabelTexts, label_keys, label_texts
from symbolize.analysis.totals import by_node
from symbolize.core.arrays import Int32, Int64, distinct, distinct_inverse, pair, unpair
from symbolize.core.errors import InputError
from symbolize.core.records import record
from symbolize.profile.sample_labels import TIMES, SampledThread, sample_time, sampled_threads

if TYPE_CHECKING:
    from symbolize.analysis import CallTree, Stacks
    from symbolize.core.arrays import Float64
    from symbolize.profile import Profile

MAX_SETS: Final = 1 << 12
"""Distinct sets of labels."""
MAX_ROWS: Final = 100_000
"""Rows of the table, or half as many again as there are nodes with values, if that is more."""
MAX_LETTERS: Final = 200
"""Letters of what a label has for a key."""
MOST_BINS: Final = 512
LEAST_BINS: Final = 8
"""The most and the fewest parts that the time is divided into."""


class SliceKey(NamedTuple):
    """A key of labels, and what samples have for it; the first text is for none."""

    name: str
    texts: list[str]


@record(frozen=True)
class Slices:
    """A row of values (float64[n, k], and without their signs in `sizes`) for the stacks that end at a `node`, have one
    `set` of labels and one `bin` of time.

    `sets` has for each set of labels and each of `keys` a row of its texts: int64[m, keys]. The first key tells threads
    apart if `has_threads`. Time has `bins` parts of `width` nanoseconds. `notes` say what is left out.
    """

    keys: list[SliceKey]
    has_threads: bool
    sets: Int64
    bins: int
    width: int
    node: Int32
    set: Int32
    bin: Int32
    values: "Float64"
    sizes: "Float64"
    notes: list[str]


def slices_of(stacks: "Stacks", tree: "CallTree") -> Slices | None:
    """The slices of the stacks of a tree; None if all have the same labels, and times are not known."""
    profile, ends = stacks.profile, tree.ends
    most = max(MAX_ROWS, 3 * len(distinct(ends)) // 2)
    number, keys, columns, notes = np.zeros(len(stacks), np.int64), list[SliceKey](), list[Int64](), list[str]()
    threads = thread_key(stacks)
    for name, labels in ([threads] if threads is not None else []) + list(label_codes(profile, notes)):
        codes = labels.codes.astype(np.int64) + 1
        sets, joined = distinct_inverse(pair(number, codes))
        if len(sets) > MAX_SETS or len(distinct(pair(ends, joined))) > most:
            notes.append(f"{name}: left out, as there would be too many combinations of labels")
            continue
        one = sample_of_each(joined, len(sets))
        if any(is_same_choice(codes[one], each[one]) for each in columns):
            continue
        number = joined
        keys.append(SliceKey(name, ["", *(text[:MAX_LETTERS] for text in labels.texts)]))
        columns.append(codes)
    bin_of, bins, width = time_bins(profile, pair(ends, number), most, notes)
    if not keys and bins == 1:
        return None
    of_sets = sample_of_each(number, int(number.max(initial=-1)) + 1)
    cells, cell_of = distinct_inverse(pair(ends, number))
    rows, row_of = distinct_inverse(pair(cell_of, bin_of))
    cell, bin_ = unpair(rows)
    node, set_ = unpair(cells[cell])
    values = by_node(row_of, stacks.values, len(rows))
    sizes = by_node(row_of, np.abs(stacks.values), len(rows)) if stacks.has_negative() else values
    sets = np.column_stack([column[of_sets] for column in columns]) if columns else np.zeros((1, 0), np.int64)
    has_threads = threads is not None and bool(keys) and keys[0].name == threads[0]
    return Slices(keys, has_threads, sets, bins, width, node, set_, bin_, values, sizes, notes)


def sample_of_each(number: Int64, count: int) -> Int64:
    """A sample for each of `count` numbers of samples."""
    found = np.zeros(count, np.int64)
    found[number] = np.arange(len(number))
    return found


def is_same_choice(one: Int64, other: Int64) -> bool:
    """Whether two keys tell apart the same samples, or sets of labels."""
    count = len(distinct(pair(one, other)))
    return count == len(distinct(one)) == len(distinct(other))


def thread_key(stacks: "Stacks") -> tuple[str, LabelTexts] | None:
    """The threads of samples, or their processes, the lightest of very many as one; None if there is one only."""
    threads, thread_of = sampled_threads(stacks.profile, np.abs(stacks.values[:, stacks.default]))
    if len(threads) == 1:
        return None
    texts = thread_texts(threads[: MAX_VALUES - 1])
    if (others := len(threads) - len(texts)) > 0:
        texts.append(f"the {others:,} lightest others")
    codes = np.minimum(thread_of, len(texts) - 1).astype(np.int32)
    return "thread" if any(each.thread for each in threads) else "process", LabelTexts(codes, texts)


def thread_texts(threads: Sequence[SampledThread]) -> list[str]:
    """Names and ids of threads, those of their processes before them where there are several."""
    has_several = len({each.process for each in threads}) > 1
    found = []
    for each in threads:
        own = " ".join(filter(None, dict.fromkeys([each.name, each.thread])))
        process = " ".join(filter(None, dict.fromkeys([each.process_name, each.process])))
        found.append((process if each.is_main else f"{process} / {own}") if has_several and process else own or process)
    return [text or "unknown" for text in found]


def label_codes(profile: "Profile", notes: list[str]) -> Iterator[tuple[str, LabelTexts]]:
    """The keys of labels that tell samples apart, but for times, with what each sample has for them; of keys with too
    many values there are `notes`."""
    labels = profile.samples.labels
    for name, key in islice(label_keys(profile).items(), MAX_KEYS):
        if name.lower().encode(errors="backslashreplace") in TIMES:
            continue
        rows = labels.key == key
        count = len(distinct(pair(labels.text[rows], distinct_inverse(labels.number[rows])[1])))
        if count <= MAX_VALUES:
            try:
                found = label_texts(profile, key)
            except InputError:  # very many combinations of long texts
                count = MAX_VALUES + 1
            else:
                count = len(distinct(found.codes))
        if count > MAX_VALUES:
            notes.append(f"{name}: left out, as it has more than {MAX_VALUES} different values")
        elif count > 1:
            yield name, found


def time_bins(profile: "Profile", cells: Int64, most: int, notes: list[str]) -> tuple[Int64, int, int]:
    """The part of the time that each sample is of, how many there are, and how many nanoseconds each takes: as many as
    give the `cells` no more than `most` rows, 1 if times are not known."""
    none = np.zeros(len(profile.samples), np.int64), 1, 1
    times = sample_time(profile)
    if times is None or not len(times) or (span := int(times.max() - times.min())) == 0:
        return none
    after, cell = times - times.min(), distinct_inverse(cells)[1]
    bins = MOST_BINS
    while bins >= LEAST_BINS:
        width = span // bins + 1
        bin_of = (after // np.uint64(width)).astype(np.int64)
        if len(distinct(pair(cell, bin_of))) <= most:
            return bin_of, int(bin_of.max()) + 1, width
        bins //= 2
    notes.append("times: left out, as they tell too many stacks apart")
    return none
