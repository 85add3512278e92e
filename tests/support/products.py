"""Inputs in which many rows refer to a large one: a few kilobytes, mostly, that say the product of two lengths."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from tests.support.bombs import field, otlp_message, varint

Maker = Callable[[], bytes]
LONG: Final = 1_000_000
"""Bytes of a long text, which packs to a thousand."""


def number(tag: int, value: int) -> bytes:
    """A field that is a number."""
    return varint(tag << 3) + varint(value)


def ids(count: int) -> bytes:
    """Ids or indices from 1 on."""
    return b"".join(map(varint, range(1, count + 1)))


def pprof(
    *,
    texts: Sequence[bytes] = (),
    types: int = 1,
    type_name: int = 1,
    mapping_names: Sequence[int] = (0,),
    function_names: Sequence[int] = (3,),
    lines: Sequence[int] = (1,),
    stacks: Sequence[bytes] = (b"\x01",),
    labels: bytes = b"",
    comments: bytes = b"",
) -> bytes:
    """A profile whose strings from 4 on are `texts`. There is a location for each of `lines`, which says how many lines
    it has, with a mapping and a function in turn; `stacks` are encoded location ids."""
    locations = (
        number(1, 1 + row)
        + number(2, 1 + row % len(mapping_names))
        + field(4, number(1, 1 + row % len(function_names))) * count
        for row, count in enumerate(lines)
    )
    mappings = (
        number(1, row) + number(2, 4096 * row) + number(3, 4096 * (row + 1)) + number(5, name)
        for row, name in enumerate(mapping_names, 1)
    )
    return b"".join(
        (
            field(1, number(1, type_name) + number(2, 2)) * types,
            *(field(2, field(1, stack) + field(2, b"\x01" * types) + labels) for stack in stacks),
            *(field(3, each) for each in mappings),
            *(field(4, each) for each in locations),
            *(field(5, number(1, row) + number(2, name)) for row, name in enumerate(function_names, 1)),
            *(field(6, text) for text in (b"", b"cpu", b"ns", b"work", *texts)),
            field(13, comments),
        )
    )


def otlp_profiles(count: int, sample: bytes = b"\x08\x01\x22\x01\x01", more: bytes = b"") -> bytes:
    """Profiles of a scope, each of another time."""
    profile = field(1, b"\x08\x01") + field(2, sample) + more
    return b"".join(field(2, profile + b"\x19" + time.to_bytes(8, "little")) for time in range(1, count + 1))


def pair(key: bytes, value: bytes) -> bytes:
    """An attribute that is in no table."""
    return field(1, field(1, key) + field(2, value))


def attribute(key: int, value: bytes) -> bytes:
    """An attribute of the table."""
    return field(6, number(1, key) + field(2, value))


LONG_STRING: Final = field(5, b"x" * LONG)
"""String 2 of a message."""
BY_REFERENCE: Final = number(8, 2)
"""A value that is that string."""
TWICE: Final = b"\x08\x01\x22\x01\x01" + field(2, b"\x02")
"""A sample with attribute 2."""

READING: Final[dict[str, Maker]] = {
    "pprof: lines, a deep stack": lambda: pprof(lines=[20_000], stacks=[b"\x01" * 20_000]),
    "pprof: lines, many stacks": lambda: pprof(lines=[20_000], stacks=[b"\x01"] * 20_000),
    "pprof: a comment": lambda: pprof(texts=[b"c" * LONG], comments=b"\x04" * 1000),
    "pprof: a path of mappings": lambda: pprof(texts=[b"/" * LONG], mapping_names=[4] * 1000),
    "pprof: a sample type": lambda: pprof(texts=[b"t" * LONG], types=1000, type_name=4),
    "otlp: lines, a deep stack": lambda: otlp_message(
        profile=field(2, b"\x08\x02\x22\x01\x01"),
        dictionary=field(3, b"\x08\x01")
        + field(2, field(3, b"\x08\x01") * 20_000)
        + field(7, field(1, b"\x02" * 9999)),
    ),
    "otlp: a deep stack, many samples": lambda: otlp_message(
        profile=field(2, b"\x08\x02\x22\x01\x01") * 5000, dictionary=field(7, field(1, b"\x01" * 5000))
    ),
    "otlp: items of an attribute, many samples": lambda: otlp_message(
        profile=field(2, TWICE) * 20_000, dictionary=attribute(1, field(5, field(1, number(3, 1)) * 20_000))
    ),
    "otlp: a text of an attribute's items": lambda: otlp_message(
        profile=field(2, TWICE), dictionary=LONG_STRING + attribute(1, field(5, field(1, BY_REFERENCE) * 1000))
    ),
    "otlp: a text of an attribute's map": lambda: otlp_message(
        profile=field(2, TWICE),
        dictionary=LONG_STRING
        + attribute(1, field(6, b"".join(pair(b"%d" % key, BY_REFERENCE) for key in range(999)))),
    ),
    "otlp: a key of attributes": lambda: otlp_message(
        dictionary=LONG_STRING, resource=field(1, number(3, 2) + field(2, field(1, b"v"))) * 1000
    ),
    "otlp: an attribute of a resource, many profiles": lambda: otlp_message(
        profiles=otlp_profiles(1000), resource=pair(b"k", field(1, b"v" * LONG))
    ),
    "otlp: attributes of a resource, many profiles": lambda: otlp_message(
        profiles=otlp_profiles(1000), resource=b"".join(pair(b"%d" % key, field(1, b"v")) for key in range(50_000))
    ),
    "otlp: locations, many profiles": lambda: otlp_message(
        profiles=otlp_profiles(200, b"\x08\x02\x22\x01\x01"),
        dictionary=field(2, b"\x18\x01") * 50_000 + field(7, field(1, ids(50_000))),
    ),
    "otlp: names, many profiles": lambda: otlp_message(
        profiles=otlp_profiles(200, b"\x08\x02\x22\x01\x01"),
        dictionary=LONG_STRING
        + field(3, number(1, 2))
        + field(2, field(3, number(1, 1)))
        + field(7, field(1, b"\x02"))
        + field(3, b""),
    ),
    "otlp: a sample type": lambda: otlp_message(
        dictionary=LONG_STRING + b"".join(field(5, b"%d" % each) for each in range(1000)),
        profiles=b"".join(
            field(2, field(1, number(1, 2) + number(2, 3 + unit)) + field(2, b"\x08\x01\x22\x01\x01"))
            for unit in range(999)
        ),
    ),
    "otlp: JSON of empty objects": lambda: b'{"resourceProfiles":[' + b"{}," * 1_000_000 + b"{}]}",
    "heap: variables of the memory map": lambda: (
        b"heap profile: 1: 2 [ 1: 2] @ heapprofile\n1: 2 [1: 2] @ 0x400001\n\nMAPPED_LIBRARIES:\nv=/%b\n"
        % (b"x" * 4000)
        + b"".join(b"%x-%x r-xp 0 08:01 12 $v$v$v$v%d\n" % (4096 * at, 4096 * (at + 1), at) for at in range(1024, 4096))
    ),
    "threads: the stack of the one before": lambda: (
        b"--- threadz 1 ---\n\n--- Thread 1 (name: a/1) stack: ---\n  PC: 0x1"
        + b" 0x400001" * 5000
        + b"\n"
        + b"--- Thread 1 (name: a/1) stack: ---\n  (same as previous thread)\n" * 5000
    ),
}
"""What no reader takes."""

NAMES: Final = frozenset({"folded", "svg", "tree", "callers"})
TREES: Final = NAMES | {"html", "speedscope", "firefox"}
SUMS: Final = frozenset({"html", "csv", "parquet"})
"""Doors that multiply names and frames, nodes, and values."""

WRITING: Final[dict[str, tuple[Maker, frozenset[str]]]] = {
    "a long name, a deep stack": (
        lambda: pprof(texts=[b"n" * LONG], function_names=[4], stacks=[b"\x01" * 20_000]),
        NAMES,
    ),
    "a name, a deep stack": (
        lambda: pprof(texts=[b"<&" * 256], function_names=[4], stacks=[b"\x01" * 20_000]),
        frozenset(),
    ),
    "a name in many modules": (
        lambda: pprof(
            texts=[b"n" * LONG, *(b"m%d" % each for each in range(1000))],
            function_names=[4],
            mapping_names=range(5, 1005),
            lines=[1] * 1000,
            stacks=[ids(1000)],
        ),
        TREES | SUMS | {"text"},
    ),
    "lines, a deep stack": (lambda: pprof(lines=[4000], stacks=[b"\x01" * 4000]), TREES | {"to_arrow"}),
    "lines, many stacks": (
        lambda: pprof(lines=[4000, *[1] * 400], stacks=[varint(2 + leaf) + b"\x01" * 4 for leaf in range(400)]),
        frozenset({"to_arrow"}),
    ),
    "sample types, a deep stack": (
        lambda: pprof(types=1000, stacks=[b"\x01" * 30_000]),
        SUMS | {"speedscope", "to_arrow"},
    ),
    "sample types, labels": (
        lambda: pprof(
            types=1000,
            texts=[b"%d" % key for key in range(20_000)],
            labels=b"".join(field(3, number(1, 4 + key) + number(3, 1)) for key in range(20_000)),
        ),
        frozenset({"otlp"}),
    ),
    "sample types, functions": (
        lambda: pprof(
            types=1000,
            texts=[b"f%d" % each for each in range(5000)],
            function_names=range(4, 5004),
            lines=[1] * 5000,
            stacks=[ids(5000)],
        ),
        SUMS | {"speedscope"},
    ),
    "sample types, functions, samples": (
        lambda: pprof(
            types=300,
            texts=[b"f%d" % each for each in range(250)],
            function_names=range(4, 254),
            lines=[1] * 250,
            stacks=[ids(250)] * 250,
        ),
        SUMS | {"speedscope", "to_arrow"},
    ),
}
"""What can be read, and the doors that refuse it."""

A_BOMB: Final = re.compile("as only a bomb|has more than [0-9]+ stack frames|too m(any|uch)|which is too much to show")
"""How what is refused is called."""
