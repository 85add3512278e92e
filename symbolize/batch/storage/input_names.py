"""What an input is, and the name of its output: relative, safe in any folder or bucket, and not too long."""

import hashlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from symbolize.load.extensions import without_endings

STATE_FOLDER: Final = ".symbolize"
"""The folder of a run's own state below its place; no output goes there and no input comes from there."""

UNFINISHED: Final = (".tmp", ".part")
"""Endings of files that somebody is still writing; they are no inputs unless named."""

ENDING: Final = ".pb.gz"
"""What outputs are called behind the names of their inputs."""

MAX_COMPONENT: Final = 200
"""Bytes of a name between two slashes. File systems allow 255, of which the endings of outputs take some."""

MAX_NAME: Final = 800
"""Bytes of a whole name. Object stores allow 1024 for a key, of which the prefix of the place takes some."""

UNSAFE: Final = re.compile("[?\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What is in no name of an output: control characters, bytes that are no text, and what begins a query in URLs."""


class Input(NamedTuple):
    """A profile to be symbolized.

    `uri` is an absolute path or a URL, always text that can be stored; `name` the name of its output below the place
    for outputs, without ending; `size` in bytes, -1 where unknown; `version` differs when the content does.
    """

    uri: str
    name: str
    size: int
    version: str


class Problem(NamedTuple):
    """What was named and is no input, and why: a sentence about it without its name."""

    uri: str
    sentence: str


class NotListed(Problem):
    """What may be or hold inputs, but its server did not say."""


def output_name(parts: Sequence[str]) -> str:
    """The name of the output for an input with the path `parts` below its root, without the endings of profiles.

    Whatever `parts` hold, the name is relative, stays below where it is put, is UTF-8 and not too long.
    """
    folders = [_component(part) for part in parts[:-1] if part]
    return _joined(folders, _component(without_endings(parts[-1])))


def alternatives(name: str, file_name: str, identity: str) -> Iterator[str]:
    """Names for an input in the order in which they are to be tried until one is free.

    First `name`, then with all of `file_name`, then told apart by `identity`, which no other input has.
    """
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
    """A part of a path as a part of a name."""
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
    data = bytes([code - 0xDC00]) if 0xDC80 <= code <= 0xDCFF else match[0].encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02x}" for byte in data)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
