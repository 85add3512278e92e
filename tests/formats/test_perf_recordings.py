"""Recordings of perf against what `perf script` says of them (fixtures/record_perf_data.py)."""

import gzip
import os
import re
import shutil
from collections import Counter
from itertools import pairwise, takewhile
from pathlib import Path
from threading import Thread

import pytest

import symbolize
from symbolize.core.errors import InputError
from symbolize.formats import open as opening
from symbolize.formats.model import LoadOptions
from symbolize.formats.open import load_one
from symbolize.profile import Profile
from symbolize.profile.sample_labels import THREAD_IDS, label_values, sample_time
from tests.support import dump_profiles, interpreted
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.perf_script import KERNEL_HALF, Sample, samples_of_profile, samples_of_text

FOLDER = FIXTURES / "profiles" / "perf_data"
OPTIONS = LoadOptions(sample_labels=("pid", "tid", "thread_comm"))


def recorded(name: str) -> tuple[Profile, Counter[Sample], Counter[Sample], dict[tuple[int, str], str]]:
    """The profile of a recording, and what perf says of it."""
    text = gzip.decompress((FOLDER / f"{name}.txt.gz").read_bytes()).decode()
    return load_one(FOLDER / f"{name}.data", OPTIONS), *samples_of_text(text)


@pytest.mark.process
@pytest.mark.full
def test_interpreted(tmp_path: Path) -> None:
    """Uncompiled, every recording gives the same profile."""
    paths = [path for path in sorted(FOLDER.rglob("*.data")) if path.is_file()]
    printed = interpreted.run(tmp_path, Path(dump_profiles.__file__), *map(str, paths)).split()
    assert printed == ["False", *map(dump_profiles.digest, paths)]


@pytest.mark.parametrize("name", ["frames", "zstd", "events", "group", "pipe", "ids", "lives", "threads"])
def test_samples_are_those_of_perf(name: str) -> None:
    """Threads, names, events, periods and all addresses of the stacks, in files and at offsets in them."""
    profile, counts, periods, _ = recorded(name)
    assert counts
    assert samples_of_profile(profile) == (counts, periods)
    assert profile.warnings == []


@pytest.mark.parametrize("name", ["frames", "threads", "pipe"])
def test_times_are_those_of_perf(name: str) -> None:
    """Asked for, each sample has the time that perf prints, of the wall clock where that is known."""
    text = gzip.decompress((FOLDER / f"{name}.txt.gz").read_bytes()).decode()
    printed = re.findall(r"^\S.*?/(\d+) +(\d+)\.(\d{6}):", text, re.MULTILINE)
    expected = sorted((int(seconds + part) * 1000, int(tid)) for tid, seconds, part in printed)
    profile = load_one(FOLDER / f"{name}.data", LoadOptions(timestamps=None))
    times, (tids, texts) = sample_time(profile), label_values(profile, THREAD_IDS)
    assert times is not None and len(times) == len(expected)
    found = sorted(zip(times.tolist(), (int(texts[row]) for row in tids.tolist()), strict=True))
    shift = found[0][0] - expected[0][0]
    assert [tid for _, tid in found] == [tid for _, tid in expected]
    assert max(abs(time - shift - other) for (time, _), (other, _) in zip(found, expected, strict=True)) < 1000
    assert abs(shift) < 1000 or profile.time_nanos == found[0][0]
    assert sample_time(load_one(FOLDER / f"{name}.data", OPTIONS)) is None


def test_times_are_kept_of_small_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless they are asked for: of a larger file there are none, nor of a pipe, whose size nobody knows."""
    data = (FOLDER / "frames.data").read_bytes()
    monkeypatch.setattr(opening, "MAX_TIMED", len(data) - 1)
    assert sample_time(load_one(FOLDER / "frames.data", LoadOptions(timestamps=None))) is None
    assert sample_time(load_one(FOLDER / "frames.data", LoadOptions(timestamps=True))) is not None
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(data,), daemon=True)
    writer.start()
    assert sample_time(load_one(pipe, LoadOptions(timestamps=None))) is None
    writer.join()


def test_a_fifo_in_the_folder_of_a_recording(tmp_path: Path) -> None:
    """Only regular files beside `data` are read: nobody named the others, and a FIFO would block."""
    folder = tmp_path / "threads.data"
    shutil.copytree(FOLDER / "threads.data", folder)
    (folder / "data.0").unlink()
    os.mkfifo(folder / "data.0")
    with pytest.raises(InputError, match=r"data\.0: cannot be read: is no regular file"):
        load_one(folder, OPTIONS)


@pytest.mark.parametrize("name", ["frames", "zstd", "events", "pipe", "ids", "threads"])
def test_names_are_those_of_perf(name: str) -> None:
    """Of every frame in the program and its library perf names the function that symbols name here; where functions
    share code it names another one of them."""
    recording, _, _, symbols = recorded(name)
    profile = symbolize.symbolize(recording, binaries=[BINARIES / "gcc-pie"]).profile
    text, locations, mappings = profile.strings.text, profile.locations, profile.mappings
    same = different = 0
    for row, mapping in enumerate(locations.mapping.tolist()):
        path = text(mappings.filename[mapping])
        if not path.startswith("/opt/spectra/"):
            continue
        address = int(locations.address[row]) + int(mappings.file_offset[mapping]) - int(mappings.start[mapping])
        outermost = int(locations.line_offsets[row + 1]) - 1
        ours = text(profile.functions.system_name[locations.lines.function[outermost]])
        for frame in ((address, path), (address + 1, path)):  # a leaf, or a caller inside of its call
            if frame in symbols:
                same += symbols[frame] == ours
                different += symbols[frame] != ours
                assert symbols[frame] == ours or locations.is_folded[row]
    assert same >= 40
    assert different <= 1


def test_stack_dumps() -> None:
    """Until a stack dump is unwound a sample has the frames of the kernel and the first of the process."""
    profile, counts, periods, _ = recorded("dwarf")

    def known(samples: Counter[Sample]) -> Counter[Sample]:
        found: Counter[Sample] = Counter()
        for (*head, frames), count in samples.items():
            kernel = len(list(takewhile(lambda frame: frame[0] >= KERNEL_HALF, frames)))
            found[(*head, frames[: kernel + 1])] += count  # type: ignore[index]
        return found

    assert samples_of_profile(profile) == (known(counts), known(periods))
    dumps = profile.stack_dumps
    assert dumps is not None
    assert len(dumps) == counts.total()
    assert dumps.machine == "x86-64"
    assert profile.warnings == [f"{len(dumps)} samples lack their callers until their stack dumps are unwound."]
    for row in range(len(dumps)):
        mappings = dumps.space_mappings[
            dumps.space_offsets[dumps.space[row]] : dumps.space_offsets[dumps.space[row] + 1]
        ]
        ends = [(int(profile.mappings.start[each]), int(profile.mappings.limit[each])) for each in mappings.tolist()]
        assert all(limit <= start for (_, limit), (start, _) in pairwise(ends))
        pc = int(dumps.registers[row, 16])
        assert any(start <= pc < limit for start, limit in ends)
        sample = int(dumps.sample[row])
        stack = profile.samples.locations[slice(*profile.samples.location_offsets[sample : sample + 2].tolist())]
        assert int(profile.locations.address[stack[-1]]) == pc


def test_a_pid_that_two_processes_had() -> None:
    """The samples of both have the pid, and the mappings of each are its own."""
    profile, counts, _, symbols = recorded("lives")
    leaves = {(pid, comm, symbols[frames[0]]) for comm, pid, tid, _, frames in counts if pid == tid}
    pids = [pid for pid, comm, _ in leaves if comm == "alder"]
    assert any((pid, "birch", "birch") in leaves for pid in pids)
    names = {profile.strings.text(each) for each in profile.mappings.filename.tolist()}
    assert {"/opt/lives/libalder.so", "/opt/lives/libbirch.so", "/opt/lives/lives"} <= names
