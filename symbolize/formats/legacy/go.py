"""Profiles that Go writes with debug=1: counts of goroutines and threads, and the names in comments below samples."""

import json
import re
from typing import Final

import numpy as np

from symbolize.formats.legacy.frames import PROFILER
from symbolize.formats.legacy.text import Rows, Text, attach_map, inside_calls, read_rows
from symbolize.formats.samples import Frame, Label, Names, fill, name_locations, set_labels, value_type
from symbolize.profile.model import Profile

HEADER: Final = re.compile(rb"(\S+) profile: total \d+$")
SHAPE: Final = b"n@a"

COMMENT: Final = re.compile(
    rb"\n#\t0x([0-9a-f]{1,16})\t+([^\t\n]+)\+0x[0-9a-f]+(?:\t+([^\t\n]*):(\d{1,18}))?[ \t\r]*(?=\n|\Z)"
)
"""An address inside a call, the function that it is in, and its line, below a sample."""

LABELS: Final = re.compile(rb"\n# labels: (\{[^\n]*\})[ \t\r]*(?=\n|\Z)")
ESCAPE: Final = re.compile(r"\\(?:x([0-9a-f]{2})|U([0-9a-f]{8})|([^xU]))")
ESCAPED_LETTERS: Final = {"a": "\\u0007", "v": "\\u000b"}
"""Escapes of Go's strings that JSON does not have."""
MAX_RUNE: Final = 0x10FFFF
ASCII: Final = 0x7F
LONE_BYTE: Final = 0xDC00
"""What Python adds to a byte that is not UTF-8."""


def load_counts(text: Text) -> Profile:
    """Read what begins with `NAME profile: total N` (R335, comments of Go)."""
    line, begin = text.line_at(text.begin)
    header = HEADER.match(line)
    assert header is not None
    rows = read_rows(text, begin, SHAPE)
    profile = Profile(warnings=text.warnings)
    fill(profile, [(header[1], b"count")], rows.numbers[0][:, None], rows.offsets, inside_calls(rows.addresses))
    profile.period_type, profile.period = value_type(profile, header[1], b"count"), 1
    profile.drop_frames = profile.strings.add(PROFILER)
    _label(profile, text, rows)
    attach_map(profile, text, rows.end)
    if names := names_in_comments(text):
        name_locations(profile, lambda address: names.get(address, ()))
    return profile


def names_in_comments(text: Text) -> Names:
    """The functions that comments below samples have for addresses, which are those in the calls already."""
    return {
        int(address, 16): [Frame(name, file or b"", int(line or 0))]
        for address, name, file, line in (found.groups() for found in COMMENT.finditer(text.data, text.begin))
    }


def _label(profile: Profile, text: Text, rows: Rows) -> None:
    """Give samples the labels in the comment below each."""
    found = [(each.start(), each[1]) for each in LABELS.finditer(text.data, text.begin)]
    labels: list[list[Label]] = [[] for _ in range(rows.size)]
    owners = np.searchsorted(rows.lines, [at for at, _ in found]) - 1
    unreadable = 0
    for owner, (_, written) in zip(owners.tolist(), found, strict=True):
        pairs = labels_of(written)
        unreadable += pairs is None
        if owner >= 0 and pairs:
            labels[owner] += pairs
    if unreadable:
        text.warnings.append(f"Labels that cannot be read: {unreadable}; they are left out.")
    if found:
        set_labels(profile, labels)


def labels_of(written: bytes) -> list[Label] | None:
    """The labels in `{"key":"value", ...}`, whose strings Go quotes; None if it is nothing of that kind."""

    def escaped(found: re.Match[str]) -> str:
        byte, rune, letter = found.groups()
        if letter:
            return ESCAPED_LETTERS.get(letter, found[0])
        code = int(byte or rune, 16)
        return json.dumps(chr(LONE_BYTE + code if byte and code > ASCII else min(code, MAX_RUNE)))[1:-1]

    try:
        found = json.loads(ESCAPE.sub(escaped, written.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return None
    try:
        return [
            (key.encode("utf-8", "surrogateescape"), each.encode("utf-8", "surrogateescape"))
            for key, each in found.items()
        ]
    except UnicodeEncodeError:
        return None
