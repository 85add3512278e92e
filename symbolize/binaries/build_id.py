"""Build ids as text."""

import re

HASH_PREFIX = "htlhash:"
"""In front of the hash by which the eBPF profiler of OpenTelemetry knows a file."""

_BUILD_ID = re.compile(r"(?:[0-9a-f]{2}){2,64}", re.IGNORECASE)
_GO_BUILD_ID = re.compile(r"[\w-]+(?:/[\w-]+){3}", re.ASCII)
_MODULE_ID_DIGITS = 33
_MODULE_ID = re.compile(r"[0-9a-f]{32}0", re.IGNORECASE)


def is_build_id(text: str) -> bool:
    """Whether `text` is a build id: an even number of hex digits, 4 to 128, not all of them zero."""
    return _BUILD_ID.fullmatch(text) is not None and text.strip("0") != ""


def is_other_id(text: str) -> bool:
    """Whether `text` identifies a file by what is no build id in an ELF note of GNU: `htlhash:` with a hash of the
    file, or the four parts of the id that Go's linker wrote (R321, build ids of OTLP)."""
    return text.startswith(HASH_PREFIX) or _GO_BUILD_ID.fullmatch(text) is not None


def plain_build_id(text: str) -> str:
    """A build id as recorders write it, without the `0x` that simpleperf puts before it."""
    return text[2:] if text[:2] in ("0x", "0X") else text


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
    if not _MODULE_ID.fullmatch(text):
        return ""
    raw = bytes.fromhex(text[:32])
    return (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex()


def same_build_id(a: str, b: str) -> bool:
    """Whether two build ids are the same but for case and zero padding, one of them maybe as module id (R240, module
    ids of Chromium)."""
    key, other = build_id_key(a), build_id_key(b)
    if key == other or len(a) != _MODULE_ID_DIGITS != len(b):
        return key == other
    for module, full in ((a, b), (b, a)):
        if (prefix := module_prefix(module)) and len(full) != _MODULE_ID_DIGITS:
            return full.lower().startswith(prefix) or build_id_key(full) == build_id_key(prefix)
    return False


def has_build_id(found: str | None, wanted: str) -> bool:
    """Whether the build id in a file is the wanted one; an empty one is wanted of files that have none of sense."""
    if found is None or not is_build_id(found):
        return not wanted
    return same_build_id(found, wanted)
