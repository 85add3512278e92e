"""Build ids as text."""

import re

_BUILD_ID = re.compile(r"(?:[0-9a-f]{2}){2,64}", re.IGNORECASE)


def is_build_id(text: str) -> bool:
    """Whether `text` is a build id: an even number of hex digits, 4 to 128, not all of them zero."""
    return _BUILD_ID.fullmatch(text) is not None and text.strip("0") != ""


def plain_build_id(text: str) -> str:
    """A build id as recorders write it, without the `0x` that simpleperf puts before it."""
    return text[2:] if text[:2] in ("0x", "0X") else text


def build_id_key(build_id: str) -> str:
    """Equal for build ids that are the same: case and zero padding at the end do not count.

    perf and simpleperf pad ids to 20 bytes.
    """
    return build_id.lower().rstrip("0")


def same_build_id(a: str, b: str) -> bool:
    """Whether two build ids are the same but for case and zero padding."""
    return build_id_key(a) == build_id_key(b)


def has_build_id(found: str | None, wanted: str) -> bool:
    """Whether the build id in a file is the wanted one; an empty one is wanted of files that have none of sense."""
    if found is None or not is_build_id(found):
        return not wanted
    return same_build_id(found, wanted)
