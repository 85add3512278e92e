"""Threads of samples in files of other viewers: what labels tell apart is apart there."""

import gzip
import io
import json
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest

import symbolize
from symbolize.analysis import Filters
from symbolize.formats.firefox.writer import MAX_THREADS
from symbolize.formats.outputs import View
from symbolize.profile import Profile
from tests.support.fixture_files import FIXTURES
from tests.support.messages import profile_pb2
from tests.support.perf_script import samples_of_text

Label = tuple[str, str | int]
NAMES = {"tid": "thread.id", "pid": "process.pid", "comm": "process.executable.name", "thread_comm": "thread.name"}
"""What OpenTelemetry calls the labels of perf."""


def labelled(samples: Sequence[tuple[int, str, Sequence[Label]]]) -> Profile:
    """A profile of samples: value, the function on the stack below `main`, and labels."""
    message: Any = profile_pb2.Profile()
    strings: dict[str, int] = {"": 0}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings))

    message.sample_type.add(type=string("cpu"), unit=string("ms"))
    numbers: dict[str, int] = {}
    for value, name, labels in samples:
        for each in (name, "main"):
            if each not in numbers:
                numbers[each] = len(numbers) + 1
                message.function.add(id=numbers[each], name=string(each))
                message.location.add(id=numbers[each]).line.add(function_id=numbers[each])
        sample = message.sample.add(value=[value], location_id=[numbers[name], numbers["main"]])
        for key, what in labels:
            if isinstance(what, str):
                sample.label.add(key=string(key), str=string(what))
            else:
                sample.label.add(key=string(key), num=what, num_unit=string("" if what else key))
    message.string_table.extend(text.encode() for text in strings)
    return symbolize.load(io.BytesIO(message.SerializeToString()))


def written(profile: Profile, emit: str, **filters: str) -> Any:
    """What is written as `emit`."""
    file = io.BytesIO()
    symbolize.write(profile, file, emit=emit, view=View(filters=Filters(**filters)))
    return json.loads(file.getvalue())


def leaves_in(thread: Any) -> list[tuple[str, float, float]]:
    """The leaf, time and weight of each sample, with indices that are all in their tables."""
    frames, functions = thread["frameTable"], thread["funcTable"]
    for name in ("samples", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "markers"):
        table = thread[name]
        assert {len(column) for column in table.values() if isinstance(column, list)} == {table["length"]}, name
    texts = [thread["stringArray"][row] for row in functions["name"]]
    names = [texts[frames["func"][row]] for row in thread["stackTable"]["frame"]]
    samples = thread["samples"]
    assert sorted(samples["time"]) == samples["time"]
    return [
        (names[row], at, weight)
        for row, at, weight in zip(samples["stack"], samples["time"], samples["weight"], strict=True)
    ]


def identity(thread: Any) -> tuple[Any, ...]:
    """What a thread is called."""
    return thread["processName"], thread["pid"], thread["name"], thread["tid"], thread["isMainThread"]


MACHINE: list[tuple[int, str, list[Label]]] = [
    (1, "spin", [("pid", 7), ("tid", 7), ("comm", "app"), ("thread_comm", "app")]),
    (5, "work", [("pid", 7), ("tid", 8), ("comm", "app"), ("thread_comm", "worker")]),
    (2, "spin", [("pid", 7), ("tid", 8), ("comm", "app"), ("thread_comm", "worker")]),
    (3, "idle", [("pid", 0), ("tid", 0), ("comm", "swapper")]),
    (4, "spin", []),
]
EXPECTED = [
    (("app", "7", "worker", 8, False), [("work", 0, 5), ("spin", 5, 2)]),
    (("profile", "unknown", "cpu", "unknown", True), [("spin", 0, 4)]),
    (("swapper", "0", "swapper", 0, True), [("idle", 0, 3)]),
    (("app", "7", "app", 7, True), [("spin", 0, 1)]),
]


@pytest.mark.parametrize("names", [{}, NAMES], ids=["perf", "OpenTelemetry"])
@pytest.mark.parametrize("has_texts", [False, True])
def test_firefox_threads(names: dict[str, str], has_texts: bool) -> None:
    """A thread for each process and thread id, the heaviest first, whatever producers call the labels; each has the
    functions of its own samples alone. What has no labels is one more."""
    samples = [
        (value, name, [(names.get(key, key), str(what) if has_texts else what) for key, what in labels])
        for value, name, labels in MACHINE
    ]
    threads = written(labelled(samples), "firefox")["threads"]
    assert [(identity(each), leaves_in(each)) for each in threads] == EXPECTED
    assert {*threads[2]["stringArray"]} == {"idle", "main", ""}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([[]], [("profile", "unknown", "cpu", "unknown", True)]),
        ([[("pid", 5)]], [("process 5", "5", "process 5", "unknown", True)]),
        ([[("tid", 5)]], [("profile", "unknown", "thread 5", 5, False)]),
        (
            [[("thread", "io")], [("thread", "ui")]],
            [("profile", "unknown", each, each, False) for each in ("io", "ui")],
        ),
        # Of perf script: the name of a process is that of its main thread, and there is one main thread.
        (
            [[("pid", 5), ("tid", 6), ("comm", "io")], [("pid", 5), ("tid", 5), ("comm", "app")], [("pid", 5)]],
            [("app", "5", "io", 6, False), ("app", "5", "app", 5, True), ("app", "5", "app", "unknown", False)],
        ),
        ([[("pid", 5), ("tid", 1 << 53)]], [("process 5", "5", f"thread {1 << 53}", str(1 << 53), False)]),
    ],
)
def test_names_of_threads(labels: list[list[Label]], expected: list[tuple[Any, ...]]) -> None:
    """What is not known is called after what is."""
    threads = written(labelled([(9 - row, "f", each) for row, each in enumerate(labels)]), "firefox")["threads"]
    assert [identity(each) for each in threads] == expected


def test_filters_and_frames_of_labels() -> None:
    """Filters leave threads out, and their labels with them; frames of labels are in no mapped file."""
    profile = labelled(MACHINE)
    threads = written(profile, "firefox", tagfocus="comm=^app$", tagroot="comm")["threads"]
    assert [identity(each)[3] for each in threads] == [8, 7]
    assert "app" in threads[0]["stringArray"]
    (only,) = written(profile, "firefox", taghide=".")["threads"]
    assert sum(weight for _, _, weight in leaves_in(only)) == 15


def test_times_of_samples() -> None:
    """Where all samples have a time they are in its order, and the recording begins with the first."""
    begin = 1_700_000_000_000_000_000
    samples = [
        (9 - at, f"f{at % 2}", [("tid", 1 + at % 2), ("timestamp_ns", begin + at * 10**6)]) for at in (3, 0, 2, 1)
    ]
    file = written(labelled(samples), "firefox")
    assert file["meta"]["startTime"] == begin / 1e6
    assert [leaves_in(each) for each in file["threads"]] == [[("f0", 0, 9), ("f0", 2, 7)], [("f1", 1, 8), ("f1", 3, 6)]]
    nothing = (0, "f0", [("tid", 1), ("timestamp_ns", begin + 10**6)])
    assert [leaves_in(each) for each in written(labelled([nothing, *samples]), "firefox")["threads"]] == [
        [("f0", 0, 9), ("f0", 2, 7)],
        [("f1", 1, 8), ("f1", 3, 6)],
    ]
    (_, *others), (value, name, _) = samples, samples[0]
    file = written(labelled([*others, (value, name, [])]), "firefox")
    assert [[at for _, at, _ in leaves_in(each)] for each in file["threads"]] == [[0], [0], [0]]


def test_very_many_threads() -> None:
    """The lightest threads are one, which says so, and no value is lost."""
    count = MAX_THREADS + 9
    file = written(labelled([(1 + (tid == 7), "f", [("tid", tid)]) for tid in range(count)]), "firefox")
    assert len(file["threads"]) == MAX_THREADS
    pool = file["threads"][-1]
    assert (pool["name"], pool["pid"], pool["samples"]["weight"]) == ("the 10 lightest threads", "others", [10])
    assert file["meta"]["extra"][0]["entries"][0]["value"] == "the 10 lightest threads are shown as one"
    assert sum(weight for each in file["threads"] for _, _, weight in leaves_in(each)) == count + 1


@pytest.mark.parametrize("name", ["threads", "lives"])
def test_threads_of_a_recording(name: str) -> None:
    """Threads are those that perf printed, each with the sum of its periods and a name that it had."""
    folder = FIXTURES / "profiles/perf_data"
    _, periods, _ = samples_of_text(gzip.decompress((folder / f"{name}.txt.gz").read_bytes()).decode())
    sums: Counter[tuple[str, int]] = Counter()
    for (_, pid, tid, *_), period in periods.items():
        sums[str(pid), tid] += period
    profile = symbolize.load(folder / f"{name}.data", sample_labels=["pid", "tid", "thread_comm"])
    threads = written(profile, "firefox")["threads"]
    shown = {(each["pid"], each["tid"]): sum(each["samples"]["weight"]) * 1e6 for each in threads}
    assert shown == pytest.approx(dict(sums))
    names = {(comm, str(pid), tid) for comm, pid, tid, *_ in periods}
    assert {(each["name"], each["pid"], each["tid"]) for each in threads} <= names


def test_speedscope_by_label() -> None:
    """With frames for a label each of its values has a profile too, the heaviest first, behind the whole one."""
    file = written(labelled(MACHINE), "speedscope", tagroot="comm,tid")
    frames = [each["name"] for each in file["shared"]["frames"]]
    assert file["activeProfileIndex"] == 0
    assert [(each["name"], each["endValue"]) for each in file["profiles"]] == [
        ("cpu", 15),
        ("app", 8),
        ("no comm", 4),
        ("swapper", 3),
    ]
    stacks = [";".join(frames[row] for row in stack) for stack in file["profiles"][1]["samples"]]
    assert dict(zip(stacks, file["profiles"][1]["weights"], strict=True)) == {
        "app;7;main;spin": 1,
        "app;8;main;work": 5,
        "app;8;main;spin": 2,
    }
    assert len(written(labelled(MACHINE), "speedscope")["profiles"]) == 1


def test_speedscope_of_very_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lightest values are one profile."""
    monkeypatch.setattr(import_module("symbolize.formats.speedscope"), "MAX_VALUES", 3)
    profile = labelled([(tid, "f", [("tid", tid)]) for tid in range(1, 7)])
    profiles = written(profile, "speedscope", tagroot="tid")["profiles"][1:]
    assert [(each["name"], each["endValue"]) for each in profiles] == [
        ("6", 6),
        ("5", 5),
        ("the 4 lightest others", 10),
    ]
