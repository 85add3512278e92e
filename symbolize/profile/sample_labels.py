"""What labels of samples say of their process, their thread and their time."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import NONE, Float64, Int32, Int64, UInt64, distinct, distinct_inverse, pair, unpair
from symbolize.profile.model import Profile

PROCESS_IDS: Final = (b"pid", b"process_id", b"process.pid", b"tgid")
THREAD_IDS: Final = (b"tid", b"thread_id", b"thread.id", b"thread id")
PROCESS_NAMES: Final = (b"process", b"process_name", b"process.executable.name", b"comm")
THREAD_NAMES: Final = (b"thread", b"thread_name", b"thread.name", b"thread name", b"thread_comm", b"comm")
"""Keys of labels by what they name, as producers spell them but for case; of several the first one counts."""
TIMES: Final = (b"timestamp_ns", b"end_timestamp_ns")
"""Keys of labels with the time of a sample, in nanoseconds."""
MAX_TEXT: Final = 4096
"""Letters of what a label names."""


class SampledThread(NamedTuple):
    """A thread: the ids of its process and its own, or names where there are no ids, and their names, each empty if it
    is not known. `is_main`: it stands for its process, as no other thread of it does."""

    process: str = ""
    process_name: str = ""
    thread: str = ""
    name: str = ""
    is_main: bool = True


def sampled_threads(profile: Profile, weights: Float64) -> tuple[list[SampledThread], Int64]:
    """The threads that labels tell apart, those with the largest sum of `weights` first, and which of them each sample
    is of (R475, threads of samples).

    The keys are, whatever their case, `pid`, `process_id`, `process.pid` or `tgid`, and `tid`, `thread_id`, `thread.id`
    or `thread id`; the first of these that a sample has counts. Without an id the name is one. A thread has the
    heaviest name among those of its samples, a process that of its main thread, if it has one.
    """
    process_id, process_ids = label_values(profile, PROCESS_IDS)
    process_name, process_names = label_values(profile, PROCESS_NAMES)
    thread_id, thread_ids = label_values(profile, THREAD_IDS)
    thread_name, thread_names = label_values(profile, THREAD_NAMES)
    processes, process_of = distinct_inverse(pair(process_id, np.where(process_id == 0, process_name, 0)))
    own = distinct_inverse(pair(thread_id, np.where(thread_id == 0, thread_name, 0)))[1]
    keys, thread_of = distinct_inverse(pair(process_of, own))
    first = np.zeros(len(keys), np.int64)
    first[thread_of[::-1]] = np.arange(len(thread_of))[::-1]
    ids = [
        (
            process_ids[process_id[row]] or process_names[process_name[row]],
            thread_ids[thread_id[row]] or thread_names[thread_name[row]],
        )
        for row in first.tolist()
    ]
    is_named_alike = np.array([process == thread for process, thread in ids], np.bool_)
    named = heaviest_values(thread_of, thread_name, weights, len(keys))
    preferred = weights + is_named_alike[thread_of] * (weights.sum() + 1)  # the main thread has the name of its process
    called = heaviest_values(process_of, process_name, preferred, len(processes))[process_of[first]]
    with_main = {process for process, thread in ids if process == thread}
    threads = [
        SampledThread(
            process,
            process_names[called[row]],
            thread,
            thread_names[named[row]],
            thread == process or (not thread and process not in with_main),
        )
        for row, (process, thread) in enumerate(ids)
    ]
    order = np.argsort(-np.bincount(thread_of, weights, len(keys)), kind="stable")
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys))
    return [threads[row] for row in order.tolist()] or [SampledThread()], rank[thread_of]


def sample_time(profile: Profile) -> UInt64 | None:
    """When each sample was taken; None if that is not known of all."""
    rows = first_labels(profile, TIMES)
    labels = profile.samples.labels
    if not len(rows) or (rows == NONE).any() or labels.text[rows].any() or (labels.number[rows] < 0).any():
        return None
    return labels.number[rows].view(np.uint64)


def label_values(profile: Profile, keys: Sequence[bytes]) -> tuple[Int32, list[str]]:
    """What each sample has for the first of `keys` that it has, a row of the texts, the first of which is for none."""
    labels, strings, rows = profile.samples.labels, profile.strings, first_labels(profile, keys)
    has = rows != NONE
    texts, text_of = distinct_inverse(labels.text[rows[has]])
    # Of a label with a text the number says nothing; many may share a long text.
    numbers, number_of = distinct_inverse(np.where(labels.text[rows[has]] == 0, labels.number[rows[has]], 0))
    values, value_of = distinct_inverse(pair(text_of, number_of))
    text, number = unpair(values)
    known = {"": 0}
    shown = [
        strings.text(string)[:MAX_TEXT] if string else str(value)
        for string, value in zip(texts[text].tolist(), numbers[number].tolist(), strict=True)
    ]
    code_of = np.array([known.setdefault(each, len(known)) for each in shown], np.int32)
    codes = np.zeros(len(rows), np.int32)
    codes[has] = code_of[value_of]
    return codes, list(known)


def first_labels(profile: Profile, keys: Sequence[bytes]) -> Int64:
    """The label of each sample with the first of `keys` that it has, NONE without any: int64[n]."""
    samples, strings = profile.samples, profile.strings
    rank = np.full(len(strings), len(keys), np.int64)
    for string in distinct(samples.labels.key).tolist():  # a key has very many spellings
        if (key := strings[string].lower()) in keys:
            rank[string] = keys.index(key)
    rows = np.full(len(samples), NONE, np.int64)
    owner = np.repeat(np.arange(len(samples)), np.diff(samples.label_offsets))
    here = np.flatnonzero(rank[samples.labels.key] < len(keys))
    here = here[np.lexsort((here, rank[samples.labels.key[here]]))][::-1]  # the first label of the first key last
    rows[owner[here]] = here
    return rows


def heaviest_values(groups: Int64, values: Int32, weights: Float64, count: int) -> Int32:
    """The value other than 0 with the largest sum of `weights` in each of `count` groups, 0 where there is none."""
    has = values != 0
    keys, number = distinct_inverse(pair(groups[has], values[has]))
    group, value = unpair(keys)
    order = np.argsort(np.bincount(number, weights[has], len(keys)), kind="stable")
    found = np.zeros(count, np.int32)
    found[group[order]] = value[order]
    return found
