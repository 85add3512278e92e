"""Build ids: the bytes that identify a build, in all the ways in which recorders spell them."""

import re
from enum import Enum
from typing import NamedTuple

HASH_PREFIX = "htlhash:"
"""In front of the hash by which the eBPF profiler of OpenTelemetry knows a file."""

_BUILD_ID = re.compile(r"(?:[0-9a-f]{2}){2,64}", re.IGNORECASE)
_GO_BUILD_ID = re.compile(r"[\w-]+(?:/[\w-]+){3}", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-f]{2}){2,256}", re.IGNORECASE)
_GUID = re.compile(
    r"\{?([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})\}?-?([0-9a-f]{0,8})", re.I
)
_TEXT = re.compile(rb"[\w/+.=-]{16,}")
"""Bytes that are text: of other ids one of 10^9 is."""
_MODULE_ID = re.compile(r"([0-9a-f]{32})([0-9a-f]|[0-9a-f]{3}|[0-9a-f]{5}|[0-9a-f]{7})", re.IGNORECASE)
"""A module id: 32 digits and an age, together an odd number, which no build id has."""


class IdKind(Enum):
    """What an id is of."""

    ELF = "the note of GNU in an ELF file"
    GO = "the note of Go in an ELF file"
    HASH = "the bytes of a file"
    MODULE = "the first 16 bytes of a build id"
    FOREIGN = "a program of Windows"


class BuildId(NamedTuple):
    """An id by its bytes: those of the note, of the hash, or the 16 of a module with its age behind them where it is
    of Windows. `text` is the one way in which it is spelled here."""

    kind: IdKind
    raw: bytes
    text: str

    @property
    def prefix(self) -> str:
        """The first 16 bytes, in hex, of the build id that a module id is made of; "" for other ids."""
        return self.raw.hex() if self.kind is IdKind.MODULE else ""


def parse_build_id(text: str) -> BuildId | None:
    """The id that `text` spells; None if it spells none.

    Hex digits in any case, with `0x` before them or with the signs of a GUID, of the id itself or of its text, as Parca
    writes those of Go (R451, spellings of build ids); the text that Go's linker wrote; `htlhash:` and a hash (R321,
    build ids of OTLP); module ids (R240, module ids of Chromium), with an age other than 0 of Windows. Of text there
    have to be 16 letters. 32 hex digits with an age other than 0 are of a program of Windows, which no ELF file is:
    only the symbol file with the same digits is its.
    """
    if text.startswith(HASH_PREFIX):
        digits = text.removeprefix(HASH_PREFIX).lower()
        return BuildId(IdKind.HASH, digits.encode(errors="replace"), HASH_PREFIX + digits)
    if _GO_BUILD_ID.fullmatch(text):
        return BuildId(IdKind.GO, text.encode(), text)
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    if guid := _GUID.fullmatch(digits):
        digits = "".join(guid.groups())
    if _HEX.fullmatch(digits):
        raw = bytes.fromhex(digits)
        if _TEXT.fullmatch(raw) and (spelled := parse_build_id(raw.decode("ascii", "replace"))) is not None:
            return spelled
        return BuildId(IdKind.ELF, raw, digits.lower()) if is_build_id(digits) else None
    if module := _MODULE_ID.fullmatch(digits):
        raw, age = bytes.fromhex(module[1]), int(module[2], 16)
        raw = raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]
        if not any(raw):
            return None
        if age:
            return BuildId(IdKind.FOREIGN, raw + age.to_bytes(4, "big"), digits.upper())
        return BuildId(IdKind.MODULE, raw, digits.upper())
    return None


def plain_build_id(text: str) -> str:
    """An id in the one spelling that it has here; what is none stays as it is."""
    found = parse_build_id(text)
    return text if found is None else found.text


def is_build_id(text: str) -> bool:
    """Whether `text` is a build id of an ELF file: an even number of hex digits, 4 to 128, not all of them zero."""
    return _BUILD_ID.fullmatch(text) is not None and text.strip("0") != ""


def build_id_key(build_id: str) -> str:
    """Equal for build ids that are the same: case and zero padding at the end do not count.

    perf and simpleperf pad ids to 20 bytes.
    """
    return build_id.lower().rstrip("0")


def module_prefix(text: str) -> str:
    """The first 16 bytes, in hex, of the build id that a module id of Chromium is made of; "" for other text.

    A module id has the bytes of the three numbers of a GUID in the other order, and a zero behind: 33 digits, which
    no build id has. A shorter build id is padded with zeros (R240, module ids of Chromium).
    """
    found = parse_build_id(text)
    return found.prefix if found is not None else ""


def same_build_id(a: str, b: str) -> bool:
    """Whether two ids are the same but for their spelling and zero padding, one of them maybe as module id (R240,
    module ids of Chromium).

    An ordinary build id of 16 bytes is no beginning of another. Where files with different build ids fit none does, and
    the mapping gets the whole build id of the file.
    """
    one, other = parse_build_id(a), parse_build_id(b)
    if one is None or other is None:
        return build_id_key(a) == build_id_key(b)
    if one.kind is other.kind:
        is_padded = one.kind is IdKind.ELF
        return build_id_key(one.text) == build_id_key(other.text) if is_padded else one.raw == other.raw
    for module, full in ((one, other), (other, one)):
        if module.kind is IdKind.MODULE and full.kind is IdKind.ELF:
            return full.raw.startswith(module.raw) or build_id_key(full.text) == build_id_key(module.prefix)
    return False


def has_build_id(found: str | None, wanted: str) -> bool:
    """Whether the build id in a file is the wanted one; an empty one is wanted of files that have none of sense."""
    if found is None or not is_build_id(found):
        return not wanted
    return same_build_id(found, wanted)
