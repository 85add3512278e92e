"""Makes golden.tsv: what `go tool pprof` makes of real linkage names in each mode.

    nm -D --defined-only --without-symbol-versions libstdc++.so.6 | python make_golden.py 200 >> golden.tsv

Reads `nm` output or bare names, takes a spread-out sample of the size given, and prints `name default templates full`,
separated by tabs. Names on whose full text pprof and `c++filt` or `llvm-cxxfilt` disagree are left out: one of
the two is wrong. A field is empty where the pprof at hand is older than the rule: releases before 2024 spell
out the parameters of enclosing functions and keep the generic arguments of Rust paths. One was emptied by hand, where
both print a reference to a lambda that takes a pointer to a function inside out.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MAX_NAME = 200
_MODES = {"default": "default", "templates": "templates", "full": "full"}
_CLOSURE_PROBE = b"_ZZN3foo3barEiENKUlvE_clEv"
_RUST_PROBE = b"_RINvNtC3std3mem8align_ofdE"


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _profile(names: list[bytes]) -> bytes:
    """Encode a profile of one sample whose functions have system names only."""
    strings = [b"", b"samples", b"count", *names]
    ids = range(1, len(names) + 1)
    message = [_bytes(1, _number(1, 1) + _number(2, 2))]
    message.append(_bytes(2, _bytes(1, b"".join(map(_varint, ids))) + _bytes(2, _varint(1))))
    message += [_bytes(4, _number(1, i) + _number(3, i) + _bytes(4, _number(1, i))) for i in ids]
    message += [_bytes(5, _number(1, i) + _number(3, i + 2)) for i in ids]
    message += [_bytes(6, string) for string in strings]
    return b"".join(message)


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (field, number, bytes) of a protobuf message of varints and length-delimited fields."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint(), b""
        else:
            size = varint()
            yield key >> 3, 0, message[position : position + size]
            position += size


def pprof(names: list[bytes], mode: str) -> dict[bytes, bytes]:
    """Return the Function.name that `go tool pprof` writes for each system name."""
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory, "in.pb"), Path(directory, "out.pb.gz")
        source.write_bytes(_profile(names))
        command = ["go", "tool", "pprof", "-proto", f"-symbolize=demangle={mode}", f"-output={target}", str(source)]
        subprocess.run(command, check=True, capture_output=True)
        message = gzip.decompress(target.read_bytes())
    strings = [value for field, _, value in _fields(message) if field == 6]
    readable = {}
    for field, _, function in _fields(message):
        if field == 5:
            columns = {key: number for key, number, _ in _fields(function)}
            readable[strings[columns.get(3, 0)]] = strings[columns.get(2, 0)]
    return readable


def _filtered(tool: str, names: list[bytes]) -> list[bytes]:
    result = subprocess.run([tool], input=b"\n".join(names), check=True, capture_output=True)
    return result.stdout.split(b"\n")[: len(names)]


def main() -> None:
    """Read names from standard input and print the table."""
    size = int(sys.argv[1])
    words = {line.split()[-1] for line in sys.stdin.buffer if line.strip()}
    names = sorted(word for word in words if word.startswith((b"_Z", b"_R")) and len(word) <= _MAX_NAME)
    tool = "llvm-cxxfilt-19" if names and names[0].startswith(b"_R") else "c++filt"
    agreed = pprof(names, "full")
    names = [name for name, text in zip(names, _filtered(tool, names), strict=True) if text == agreed.get(name) != name]
    names = [names[len(names) * i // size] for i in range(min(size, len(names)))]
    tables = {mode: pprof([*names, _CLOSURE_PROBE, _RUST_PROBE], option) for mode, option in _MODES.items()}
    old_closures = tables["default"][_CLOSURE_PROBE] != b"foo::bar()::{lambda()#1}::operator()"
    old_rust = tables["default"][_RUST_PROBE] != b"std::mem::align_of::<>"
    for name in dict.fromkeys(names):
        row = [tables[mode][name] for mode in _MODES]
        if old_closures and any(mark in row[2] for mark in (b")::", b") const::", b") &::", b") &&::")):
            row[0] = row[1] = b""
        if old_rust and name.startswith(b"_R"):
            row[0] = b""
        sys.stdout.buffer.write(b"\t".join([name, *row]) + b"\n")


if __name__ == "__main__":
    main()
