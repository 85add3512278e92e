"""Buckets of an object store."""

from typing import Any, NamedTuple

import pytest


class Bucket(NamedTuple):
    """A bucket of a test, and the S3 client of s3fs, which remembers no listings."""

    url: str
    system: Any

    def put(self, *keys: str, data: bytes = b"profile") -> None:
        """Make objects with these keys."""
        for key in keys:
            self.system.pipe_file(f"{self.url}/{key}", data)

    def keys(self) -> list[str]:
        """The keys of all objects."""
        name = self.url.removeprefix("s3://")
        return sorted(path.removeprefix(name + "/") for path in self.system.find(name))


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have requests fail at once that would be tried again and again."""
    import fsspec
    import s3fs

    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": {"retries": {"max_attempts": 0}}})
    s3fs.S3FileSystem.clear_instance_cache()
