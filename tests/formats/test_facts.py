"""What each reader knows of the evidence in its format: where build ids were recorded, what leaves are, who found the
callers."""

import pytest

import symbolize
from symbolize.profile import IdOrigin, LeafKind, Profile, StackSource
from tests.support import perfetto_writer as w
from tests.support.fixture_files import FIXTURES
from tests.support.perfetto_profiles import only
from tests.support.perfetto_traces import CYCLES, HEAP, STATE

UNKNOWN, EXACT, CALL_SITE = LeafKind
NOBODY, RECORDER, FRAME_POINTERS, OWN_UNWINDING = StackSource
NO_IDS: frozenset[IdOrigin] = frozenset()
RECORDED, LATER = frozenset({IdOrigin.RECORDED}), frozenset({IdOrigin.READ_LATER})


def facts(profile: Profile) -> tuple[frozenset[IdOrigin], LeafKind, StackSource]:
    """The origins of the build ids that are there, the kind of all leaves, who found the callers."""
    mappings = profile.mappings
    origins = {profile.id_origin(row) for row in range(len(mappings)) if mappings.build_id[row]}
    assert all(profile.id_origin(row) == 0 for row in range(len(mappings)) if not mappings.build_id[row])
    (kind,) = {profile.leaf_kind(column) for column in range(len(profile.sample_types))}
    return frozenset(origins), kind, profile.stack_source


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("profiles/perf_data/ids.data", (RECORDED, EXACT, FRAME_POINTERS)),
        ("profiles/perf_data/threads.data", (RECORDED | LATER, EXACT, FRAME_POINTERS)),
        ("profiles/perf_data/dwarf.data", (RECORDED | LATER, EXACT, NOBODY)),
        ("legacy/maps.perf-script", (NO_IDS, EXACT, FRAME_POINTERS)),
        ("profiles/gperftools/ledger-gcc-pie.prof", (NO_IDS, EXACT, RECORDER)),
        ("legacy/symbolized.gz", (NO_IDS, UNKNOWN, RECORDER)),
        ("legacy/samples.heap", (NO_IDS, CALL_SITE, RECORDER)),
        ("legacy/growth.heap", (NO_IDS, CALL_SITE, RECORDER)),
        ("legacy/jemalloc.dump", (NO_IDS, CALL_SITE, RECORDER)),
        ("legacy/heap.txt", (NO_IDS, CALL_SITE, RECORDER)),
        ("legacy/mutex.txt", (NO_IDS, CALL_SITE, RECORDER)),
        ("legacy/goroutine.txt", (NO_IDS, UNKNOWN, NOBODY)),
        ("simpleperf/mixer.proto", (NO_IDS, UNKNOWN, RECORDER)),
        ("profiles/otlp/spectra-gcc-pie.otlp", (RECORDED, UNKNOWN, RECORDER)),
        ("profiles/go/census.pb.gz", (frozenset({IdOrigin.UNKNOWN}), UNKNOWN, NOBODY)),
        ("profiles/perf/spectra-gcc-pie.pb.gz", (frozenset({IdOrigin.UNKNOWN}), UNKNOWN, NOBODY)),
    ],
)
def test_recorded_profiles(path: str, expected: tuple[frozenset[IdOrigin], LeafKind, StackSource]) -> None:
    """Real ones."""
    assert facts(symbolize.load(FIXTURES / path)) == expected


def test_perfetto() -> None:
    """Heaps have call sites only; leaves of samples were not measured."""
    assert facts(only(HEAP)) == (RECORDED, CALL_SITE, RECORDER)
    samples = w.packet(1, w.CLEARED, STATE, CYCLES) + w.perf_sample(2, total=5000)
    assert facts(only(samples)) == (RECORDED, UNKNOWN, RECORDER)
