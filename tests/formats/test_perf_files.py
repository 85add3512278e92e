"""perf.data: which file a mapping is of, and what its build id proves (R293, names in the table of build ids; R427,
mappings of one file)."""

import io
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

import symbolize
from symbolize.formats import encode
from symbolize.formats.model import LoadOptions
from symbolize.formats.open import load_one
from symbolize.formats.perf import processes
from symbolize.formats.pprof.reader import load
from symbolize.profile import IdOrigin, LeafKind, Profile, StackSource
from tests.support import perf_writer as w
from tests.support.fixture_files import FIXTURES
from tests.support.perf_writer import BIG, LITTLE, Event, Format

EVENT = Event(sample_type=w.IP | w.TID | w.TIME)
APP, ID = "/bin/app", b"\x11" * 20
KERNEL = 0xFFFF_FFFF_8100_0000
FORMS = pytest.mark.parametrize("form", [LITTLE, BIG], ids=["little", "big"])


def read(data: bytes) -> Profile:
    """The profile of a recording, without labels."""
    return load_one(io.BytesIO(data), LoadOptions(sample_labels=()))


def run(pid: int, file: Sequence[int] = (8, 1, 99, 0), form: Format = LITTLE, build_id: bytes = b"",
        path: str = APP, mount: int = 0) -> list[bytes]:  # fmt: skip
    """A program that a process executes, and a sample of it."""
    return [
        form.comm(EVENT, pid, "app", w.EXEC),
        *([form.namespaces(EVENT, pid, mount)] if mount else []),
        form.mmap2(EVENT, pid, 0x400000, 0x10000, path, 0x1000, build_id, file=file),
        form.sample(EVENT, ip=0x400100, pid=pid),
    ]


def recording(*records: Sequence[bytes], table: Sequence[tuple[str, bytes, int]] = ((APP, ID, w.USER),),
              form: Format = LITTLE) -> Profile:  # fmt: skip
    """A recording with a table of build ids at its end."""
    features = {2: b"".join(form.build_id(*each) for each in table), 3: form.text("host")}
    return read(form.file([EVENT], [each for part in records for each in part], features))


def ids(profile: Profile) -> list[tuple[str, str, IdOrigin]]:
    """The mappings of the samples: path, build id and where that was recorded."""
    text, mappings = profile.strings.text, profile.mappings
    rows = profile.locations.mapping[profile.samples.locations[profile.samples.location_offsets[:-1]]].tolist()
    return [(text(mappings.filename[row]), text(mappings.build_id[row]), profile.id_origin(row)) for row in rows]


@FORMS
def test_origins_of_build_ids(form: Format) -> None:
    """Ids in records of mappings prove, and so do those of the table that perf reads from memory: of the kernel, its
    modules and the vdso. Those of files were read at the end."""
    module = 0xFFFF_FFFF_C000_0000
    records = [
        *run(7, form=form),
        *run(8, form=form, build_id=b"\x22" * 20, path="/lib/own"),
        *run(9, form=form, path="/lib/none"),
        *run(10, form=form, path="[vdso]"),
        form.mmap(EVENT, -1, KERNEL, 0x1000000, "[kernel.kallsyms]_text", KERNEL, w.KERNEL),
        form.mmap(EVENT, -1, module, 0x4000, "[ext4]", 0, w.KERNEL),
        form.sample(EVENT, w.KERNEL, ip=KERNEL + 0x20, pid=7),
        form.sample(EVENT, w.KERNEL, ip=module + 0x20, pid=7),
    ]
    names = [(APP, w.USER), ("[vdso]", w.USER), ("[kernel.kallsyms]", w.KERNEL), ("[ext4]", w.KERNEL)]
    table = [(name, bytes([0x31 + row]) * 20, misc) for row, (name, misc) in enumerate(names)]
    assert ids(recording(records, table=table, form=form)) == [
        (APP, "31" * 20, IdOrigin.READ_LATER),
        ("/lib/own", "22" * 20, IdOrigin.RECORDED),
        ("/lib/none", "", IdOrigin.UNKNOWN),
        ("[vdso]", "32" * 20, IdOrigin.RECORDED),
        ("[kernel.kallsyms]_text", "33" * 20, IdOrigin.RECORDED),
        ("[ext4]", "34" * 20, IdOrigin.RECORDED),
    ]


def test_build_ids_of_a_pipe() -> None:
    """Records that perf writes to a pipe are from its end too."""
    profile = read(LITTLE.pipe([EVENT], [*run(7), LITTLE.build_id(APP, ID)]))
    assert ids(profile) == [(APP, ID.hex(), IdOrigin.READ_LATER)]


@pytest.mark.parametrize(
    ("first", "second", "is_void"),
    [
        ((8, 1, 99, 5), (8, 1, 100, 6), True),
        ((8, 1, 99, 5), (8, 1, 99, 6), True),  # the inode was used anew
        ((8, 1, 99, 5), (8, 2, 99, 5), True),
        ((8, 1, 99, 5), (8, 1, 99, 5), False),
        ((8, 1, 99, 0), (8, 1, 99, 6), False),  # what perf finds when it starts has no generation
        ((8, 1, 99, 6), (8, 1, 99, 0), False),
        ((0, 0, 0, 0), (8, 1, 99, 6), False),
    ],
)
@FORMS
def test_replaced_files(first: Sequence[int], second: Sequence[int], is_void: bool, form: Format) -> None:
    """An id of the table is of one file; a path that was of two has none, and a warning says so. Mappings of the two
    are apart, also in one process."""
    profile = recording(run(7, first, form), run(8, second, form), form=form)
    origin = IdOrigin.UNKNOWN if is_void else IdOrigin.READ_LATER
    assert ids(profile) == [(APP, "" if is_void else ID.hex(), origin)] * 2
    assert profile.warnings == is_void * [
        "The build ids of 1 paths, the first of which is /bin/app, were read when perf stopped, but each was of "
        "several files while it recorded: they were left out."
    ]
    again = [form.mmap2(EVENT, 7, 0x400000, 0x10000, APP, 0x1000, file=second), form.sample(EVENT, ip=0x400100, pid=7)]
    assert len(recording(run(7, first, form), again, form=form).mappings) == 1 + is_void


def test_generations_of_one_inode() -> None:
    """A file without a generation is the one that is seen with one later, and no third."""
    profile = recording(*(run(pid, (8, 1, 99, generation)) for pid, generation in ((7, 0), (8, 5), (9, 0))))
    assert not profile.warnings
    profile = recording(*(run(pid, (8, 1, 99, generation)) for pid, generation in ((7, 0), (8, 5), (9, 6))))
    assert len(profile.warnings) == 1


def test_a_path_with_two_ids_in_the_table() -> None:
    """perf knew two files of that path; which of them had which id is not in the table."""
    table = [(APP, ID, w.USER), (APP, b"\x22" * 20, w.USER)]
    assert ids(recording(run(7), table=table)) == [(APP, "", IdOrigin.UNKNOWN)]
    assert ids(recording(run(7), table=[table[0], table[0]])) == [(APP, ID.hex(), IdOrigin.READ_LATER)]


def test_mount_namespaces() -> None:
    """The table has the ids of the files that perf sees: those of a process in another mount namespace than the first
    are left out, and a warning says so. A process has the namespace of the one that it was forked off."""
    child = [
        LITTLE.fork(EVENT, 9, 8),
        LITTLE.mmap2(EVENT, 9, 0x500000, 0x10000, APP),
        LITTLE.sample(EVENT, ip=0x500100, pid=9),
    ]
    profile = recording(run(7, mount=77), run(8, mount=78), child, run(10, mount=77))
    here, there = (APP, ID.hex(), IdOrigin.READ_LATER), (APP, "", IdOrigin.UNKNOWN)
    assert ids(profile) == [here, there, there, here]
    assert profile.warnings == [
        "The build ids of 1 paths, the first of which is /bin/app, were read when perf stopped, but processes in other "
        "mount namespaces had files of these paths: they were left out."
    ]
    own = recording(run(7, mount=77), run(8, mount=78, build_id=b"\x22" * 20))
    assert (ids(own)[1][2], own.warnings) == (IdOrigin.RECORDED, [])


def test_namespaces_that_say_nothing() -> None:
    """Records of other threads than the first, and those without the namespace of mounts, have no effect."""
    records = [LITTLE.namespaces(EVENT, 8, 78, tid=9), LITTLE.namespaces(EVENT, 8, 78, count=5)]
    assert ids(recording(run(7, mount=77), records, run(8))) == [(APP, ID.hex(), IdOrigin.READ_LATER)] * 2
    cut = LITTLE.record(w.NAMESPACES, LITTLE.pack("IIQQ", 7, 7, 1 << 60, 4))
    assert ids(recording([cut], run(7))) == [(APP, ID.hex(), IdOrigin.READ_LATER)]


def rows(profile: Profile) -> list[int]:
    """The mapping of each location."""
    return profile.locations.mapping.tolist()


def test_equal_mappings_of_processes() -> None:
    """Each process has a mapping of its own, because the file may have been written over in between: nothing in the
    recording would tell. A process that was forked off shares it until it executes a program."""
    fork = [LITTLE.fork(EVENT, 9, 7), LITTLE.sample(EVENT, ip=0x400100, pid=9)]
    profile = recording(run(7), run(8), fork, run(9))
    assert sorted(rows(profile)) == [0, 1, 2]
    assert profile.samples.values[:, 0].tolist() == [2, 1, 1]  # the first with the one that it forked off
    assert ids(profile) == [(APP, ID.hex(), IdOrigin.READ_LATER)] * 3
    assert sorted(rows(recording(run(7), run(7)))) == [0, 1]  # executed again


def test_equal_mappings_that_share_a_row() -> None:
    """Where the record has an id, and for the kernel and what is no file, equal mappings are one."""
    kernel = LITTLE.mmap(EVENT, -1, KERNEL, 0x1000000, "[kernel.kallsyms]_text", KERNEL, w.KERNEL)
    for path, build_id in ((APP, b"\x22" * 20), ("[vdso]", b"")):
        profile = recording([kernel], *(run(pid, path=path, build_id=build_id) for pid in (7, 8)))
        assert rows(profile) == [0]


@pytest.mark.parametrize("path", [APP, "//anon"])
def test_many_short_processes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many processes have equal mappings of their own, whatever comes between them."""
    monkeypatch.setattr(processes, "MAX_ALIKE", 5)
    profile = recording(*(run(pid, path=path) for pid in range(7, 107)))
    assert len(profile.mappings) == (6 if path == APP else 100)  # run-time code is of one process
    assert profile.samples.values[:, 0].sum() == 100
    if path == APP:
        assert Counter(profile.samples.values[:, 0].tolist()) == {1: 5, 95: 1}


def test_the_main_program_is_that_of_most_samples() -> None:
    """Mappings of one program count together (pprof schema)."""
    others = [each for pid in range(20, 24) for each in run(pid, path="/bin/other")]
    profile = recording(others, run(7), [LITTLE.sample(EVENT, ip=0x400200 + row, pid=7) for row in range(2)])
    assert profile.strings.text(profile.mappings.filename[0]) == "/bin/other"


def test_files_of_one_path_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further ones count as the last of them."""
    monkeypatch.setattr(processes, "MAX_FILES", 3)
    monkeypatch.setattr(processes, "MAX_ALIKE", 0)
    profile = recording(*(run(7, (8, 1, inode, 0)) for inode in range(1, 50)))
    assert len(profile.mappings) == 3


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Event(sample_type=w.IP | w.TID), StackSource.UNKNOWN),
        (Event(sample_type=w.IP | w.TID | w.CALLCHAIN), StackSource.FRAME_POINTERS),
        (Event(sample_type=w.IP | w.TID | w.BRANCHES), StackSource.UNKNOWN),
        (Event(sample_type=w.IP | w.TID | w.CALLCHAIN | w.BRANCHES, branches=1 << 11), StackSource.RECORDER),
        (
            Event(sample_type=w.IP | w.TID | w.CALLCHAIN | w.USER_REGISTERS | w.USER_STACK, registers=w.X86_64),
            StackSource.UNKNOWN,
        ),
    ],
    ids=["flat", "frame pointers", "branches", "calls of the processor", "dumps"],
)
def test_sources_of_callers(event: Event, expected: StackSource) -> None:
    """The processor, and the kernel along frame pointers; nobody where there are copies of the stacks only. Leaves are
    exact in all of them."""
    profile = read(LITTLE.file([event], [LITTLE.sample(event, ip=0x400100, pid=7, chain=[w.USER_CHAIN, 0x400100])]))
    assert profile.stack_source == expected
    assert profile.leaf_kinds.tolist() == [LeafKind.EXACT] * 2


def test_events_of_different_sources() -> None:
    """Frame pointers are the weakest of them, and count for all samples."""
    events = [
        Event(sample_type=w.IP | w.TID | w.IDENTIFIER | w.CALLCHAIN, ids=(5,), name="fp"),
        Event(sample_type=w.IP | w.TID | w.IDENTIFIER | w.CALLCHAIN | w.BRANCHES, branches=1 << 11, ids=(6,)),
    ]
    assert read(LITTLE.file(events, [LITTLE.sample(events[0], ip=1 << 20, pid=7, id=5)])).stack_source == 2


def test_a_table_id_is_no_proof_after_it_was_written() -> None:
    """The same is known of a recording and of the pprof file that we make of it."""
    profile = symbolize.load(FIXTURES / "profiles/perf_data/threads.data")
    back = load(encode(profile), "again")
    later = profile.id_origins == IdOrigin.READ_LATER
    assert later.any()
    np.testing.assert_array_equal(back.id_origins == IdOrigin.READ_LATER, later)
    assert (back.leaf_kinds.tolist(), back.stack_source) == (profile.leaf_kinds.tolist(), profile.stack_source)
