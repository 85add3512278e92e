"""Inputs that are small in a file and large in memory: what a format lets say in the fewest bytes, over and over.

Each maker takes how many bytes the input is to have after decompression, about.
"""

from collections.abc import Callable
from typing import Final

from tests.support.simpleperf_writer import report as whole_report

Maker = Callable[[int], bytes]


def varint(value: int) -> bytes:
    """A protobuf varint."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def padded(value: int) -> bytes:
    """A varint of four bytes."""
    return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80, value >> 21))


BASE: Final = b"".join(
    (
        field(1, b"\x08\x01\x10\x02"),
        field(3, b"\x08\x01\x10\x80\x20\x18\x80\x40"),
        field(4, b"\x08\x01\x10\x01\x18\x80\x21\x22\x02\x08\x01"),
        field(5, b"\x08\x01\x10\x01"),
        *(field(6, text) for text in (b"", b"cpu", b"ns")),
        field(2, b"\x0a\x01\x01\x12\x01\x05"),
    )
)
"""A valid profile with a row in each table."""


def pprof(one: bytes) -> Maker:
    """A profile with `one` over and over."""
    return lambda size: BASE + one * (size // len(one))


def numbered(make: Callable[[bytes], bytes]) -> Maker:
    """A profile with rows that have an id of four bytes, counting from 2."""
    return lambda size: BASE + b"".join(make(padded(each)) for each in range(2, 2 + size // len(make(padded(2)))))


def inside(number: int, before: bytes, one: bytes) -> Maker:
    """A profile with one message that has `one` over and over."""
    return lambda size: BASE + field(number, before + one * (size // len(one)))


def report(one: bytes) -> Maker:
    """A simpleperf report with the record `one` over and over."""
    return lambda size: whole_report([one] * (size // (len(one) + 4)))


def trace(one: bytes) -> Maker:
    """A Perfetto trace with the packet `one` over and over."""
    return lambda size: field(1, one) * (size // len(field(1, one)))


SAMPLE_START: Final = b"\x0a\x01\x01\x12\x01\x05"


def otlp(where: str, one: bytes) -> Maker:
    """A message of OTLP profiles with `one` over and over in a profile, its scope, its resource or the dictionary."""
    return lambda size: otlp_message(**{where: one * (size // len(one))})


def otlp_message(
    *,
    profile: bytes = b"",
    profiles: bytes = b"",
    scope: bytes = b"",
    resource: bytes = b"",
    dictionary: bytes = b"",
) -> bytes:
    """A message of OTLP profiles that has some more fields in each place. All tables have a row 0; those of locations,
    strings, attributes and stacks have a row 1 too."""
    profile = field(1, b"\x08\x01") + field(2, b"\x08\x01\x22\x01\x01") + profile
    scopes = field(1, scope) + field(2, profile) + profiles
    resources = field(1, resource) + field(2, scopes)
    tables = [b"\x0a\x00", b"\x12\x00\x12\x00", b"\x1a\x00", b"\x22\x00", b"\x2a\x00\x2a\x01a", b"\x32\x00\x32\x00"]
    dictionary = b"".join(tables) + field(7, b"") + field(7, b"\x0a\x01\x01") + dictionary
    return field(1, resources) + field(2, dictionary)


BOMBS: Final[dict[str, Maker]] = {
    "pprof comments": inside(13, b"", b"\x01"),
    "pprof comments, unpacked": pprof(b"\x68\x01"),
    "pprof comments, absent string": inside(13, b"", b"\x7f"),
    "pprof unknown numbers": pprof(b"\x80\x01\x01"),
    "pprof unknown texts": pprof(b"\x82\x01\x00"),
    "pprof sample types": pprof(b"\x0a\x00"),
    "pprof period types": pprof(b"\x5a\x00"),
    "pprof unknown in a period type": inside(11, b"", b"\x18\x01"),
    "pprof unknown in a sample type": inside(1, b"", b"\x18\x01"),
    "pprof drop_frames": pprof(b"\x38\x01"),
    "pprof mappings": numbered(lambda each: field(3, b"\x08" + each)),
    "pprof unknown in a mapping": inside(3, b"\x08\x02", b"\x58\x01"),
    "pprof unknown in mappings": numbered(lambda each: field(3, b"\x08" + each + b"\x58\x01")),
    "pprof samples": pprof(field(2, b"\x10\x01")),
    "pprof stack": inside(2, SAMPLE_START, b"\x08\x01"),
    "pprof packed stack": lambda size: BASE + field(2, field(1, b"\x01" * size) + b"\x10\x01"),
    "pprof labels": inside(2, SAMPLE_START, b"\x1a\x00"),
    "pprof unknown in samples": pprof(field(2, b"\x10\x01\x20\x01")),
    "pprof unknown in a sample": inside(2, SAMPLE_START, b"\x20\x01"),
    "pprof unknown in a label": inside(2, SAMPLE_START, field(3, b"\x28\x01")),
    "pprof locations": numbered(lambda each: field(4, b"\x08" + each)),
    "pprof unknown in locations": numbered(lambda each: field(4, b"\x08" + each + b"\x30\x01")),
    "pprof lines": inside(4, b"\x08\x02", field(4, b"\x08\x01")),
    "pprof lines without function": inside(4, b"\x08\x02", b"\x22\x00"),
    "pprof functions": numbered(lambda each: field(5, b"\x08" + each)),
    "pprof unknown in functions": numbered(lambda each: field(5, b"\x08" + each + b"\x30\x01")),
    "pprof empty strings": pprof(b"\x32\x00"),
    "pprof strings": lambda size: BASE + b"".join(field(6, padded(each)) for each in range(size // 6)),
    "pprof string": lambda size: BASE + field(6, b"\x01" * size),
    "pprof wide samples": lambda size: BASE.replace(field(1, b"\x08\x01\x10\x02"), b"\x0a\x00" * 1000).replace(
        field(2, b"\x0a\x01\x01\x12\x01\x05"), field(2, field(2, b"\x01" * 1000)) * (size // 1006)
    ),
    "otlp samples": otlp("profile", field(2, b"\x08\x01\x22\x01\x01")),
    "otlp empty samples": otlp("profile", field(2, b"")),
    "otlp values": otlp("profile", field(2, b"\x08\x01" + field(4, b"\x01" * 1000))),
    "otlp unpacked values": otlp("profile", field(2, b"\x08\x01" + b"\x20\x01" * 1000)),
    "otlp attributes of samples": otlp("profile", field(2, b"\x08\x01\x22\x01\x01" + field(2, b"\x01" * 1000))),
    "otlp attributes of a scope": otlp("scope", field(3, b"")),
    "otlp attributes of a resource": otlp("resource", field(1, field(1, b"a"))),
    "otlp arrays": otlp("resource", field(1, field(2, field(5, field(1, b"\x18\x01") * 1000)))),
    "otlp mappings": otlp("dictionary", field(1, b"")),
    "otlp locations": otlp("dictionary", field(2, b"\x10\x01")),
    "otlp lines": otlp("dictionary", field(2, field(3, b"\x08\x01") * 1000)),
    "otlp functions": otlp("dictionary", field(3, b"")),
    "otlp links": otlp("dictionary", field(4, b"")),
    "otlp strings": otlp("dictionary", field(5, b"")),
    "otlp attributes": otlp("dictionary", field(6, b"\x08\x01")),
    "otlp stacks": otlp("dictionary", field(7, b"\x0a\x01\x01")),
    "otlp stack": otlp("dictionary", field(7, field(1, b"\x01" * 100_000))),
    "otlp unknown fields": otlp("dictionary", b"\x78\x01"),
    "otlp messages": lambda size: otlp("profile", b"x")(0).join(
        [len(otlp("profile", b"x")(0)).to_bytes(4, "big")] * (size // 60)
    ),
    "gperftools samples": lambda size: (
        b"".join(each.to_bytes(4, "little") for each in (0, 3, 0, 10000, 0))
        + b"".join((1).to_bytes(4, "little") * 2 + each.to_bytes(4, "little") for each in range(1, size // 12))
    ),
    "simpleperf samples": report(b"\x0a\x04\x08\x01\x1a\x00"),
    "simpleperf stack": lambda size: whole_report([b"\x0a" + varint(len(each := b"\x1a\x00" * (size // 2))) + each]),
    "simpleperf symbols": lambda size: whole_report([field(3, b"\x08\x01" + b"\x1a\x00" * (size // 4))] * 2),
    "simpleperf unknown in a file": lambda size: whole_report([field(3, b"\x08\x01" + b"\x78\x01" * (size // 2))]),
    "simpleperf files": lambda size: whole_report([field(3, b"\x08" + padded(each)) for each in range(size // 11)]),
    "simpleperf threads": lambda size: whole_report([field(4, b"\x08" + padded(each)) for each in range(size // 11)]),
    "simpleperf event types": lambda size: whole_report([field(5, b"\x0a\x00" * (size // 2))]),
    "perfetto packets": trace(b"\x50\x01"),
    "perfetto unknown packets": trace(b"\xf8\x7f\x01"),
    "perfetto processes": lambda size: b"".join(
        field(1, field(43, b"\x08" + padded(each))) for each in range(size // 10)
    ),
    "perfetto process tree": trace(field(2, field(1, b"\x08\x01") * 10000)),
    "perfetto command lines": trace(field(2, field(1, b"\x08\x01" + b"\x1a\x00" * 10000))),
    "perfetto symbols": trace(field(61, field(3, b"\x08\x01" + field(2, b"\x0a\x01x")) * 10000)),
    "perfetto interned": lambda size: (
        field(1, b"\x50\x01\x68\x01")
        + b"".join(
            field(1, b"\x50\x01" + field(12, field(5, b"\x08" + padded(each) + field(2, padded(each)))))
            for each in range(1, size // 22)
        )
    ),
}
"""Makers by what they have much of."""
