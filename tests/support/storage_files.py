"""Files in a `Storage`."""

from pathlib import Path

from symbolize.storage.backend import Storage

BAD_NAMES = ["", "..", "../x", "a/../../x", "/etc/x", "a//b", "a/./b", "a/", "a\0b"]


def write(place: Storage, name: str, data: bytes) -> None:
    """Write a file."""
    with place.write(name) as file:
        file.write(data)


def content(place: Storage, name: str) -> bytes:
    """The bytes of a file."""
    return Path(place.read_file(name)).read_bytes()
