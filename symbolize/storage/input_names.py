"""Inputs of a batch, and the names of their outputs: relative, valid in any folder or bucket, and not too long."""

import hashlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from symbolize.formats.endings import without_endings

STATE_FOLDER: Final = ".symbolize"
"""The folder below the outputs for the state of a batch; it has neither inputs nor outputs."""

UNFINISHED: Final = (".tmp", ".part")
"""Endings of files that are still being written; they are inputs only if they are named."""

ENDING: Final = ".pb.gz"
"""The ending of outputs."""

MAX_COMPONENT: Final = 200
"""Bytes of a part of a name between slashes. File systems allow 255, with the ending."""

MAX_NAME: Final = 800
"""Bytes of a whole name. Object stores allow 1024, with the prefix."""

UNSAFE: Final = re.compile("[?\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that are escaped in names: control characters, bytes that are no text, and `?`, which begins a query."""

ESCAPED_BYTES: Final = range(0xDC80, 0xDD00)
"""Characters that Python has for bytes of a name that are no text (PEP 383)."""


class Input(NamedTuple):
    """A profile to be symbolized.

    `uri` is an absolute path or a URL, always valid text; `name` the name of its output without ending; `size` is in
    bytes, -1: unknown; `version` changes with the content.
    """

    uri: str
    name: str
    size: int
    version: str


class Problem(NamedTuple):
    """A name that is no input, and why: a sentence about it without the name."""

    uri: str
    sentence: str


class NotListed(Problem):
    """A name that may have inputs, but its server did not list them."""


def output_name(parts: Sequence[str]) -> str:
    """The name of the output for an input with the path `parts` below its root, without the endings of profiles. It is
    relative, cannot lead out of a folder, is UTF-8 and not too long, whatever `parts` hold."""
    folders = [_component(part) for part in parts[:-1] if part]
    return _joined(folders, _component(without_endings(parts[-1])))


def alternatives(name: str, file_name: str, identity: str) -> Iterator[str]:
    """Names for an input, to be tried until one is free: `name`, one with all of `file_name`, and those with a hash of
    its unique `identity`."""
    yield name
    folders = name.split("/")[:-1]
    full = _joined(folders, _component(file_name))
    if full != name:
        yield full
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    for length in (12, 64):
        ending = "-" + digest[:length]
        base = posixpath.basename(full).encode()[: MAX_COMPONENT - len(ending)].decode("utf-8", "ignore")
        yield "/".join([*folders, base + ending])


def _joined(folders: Sequence[str], last: str) -> str:
    name = "/".join([*folders, last])
    if len(name.encode()) > MAX_NAME:
        return f"{_digest('/'.join(folders))}/{last}"
    return name


def _component(raw: str) -> str:
    """A part of a path, escaped and shortened."""
    text = UNSAFE.sub(_escaped, raw.replace("/", "%2f"))
    if text in ("", ".", "..", STATE_FOLDER):
        text = text.replace(".", "%2e") or "%"
    data = text.encode()
    if len(data) > MAX_COMPONENT:
        ending = "~" + _digest(raw)
        text = data[: MAX_COMPONENT - len(ending)].decode("utf-8", "ignore") + ending
    return text


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    data = bytes([code & 0xFF]) if code in ESCAPED_BYTES else match[0].encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02x}" for byte in data)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
