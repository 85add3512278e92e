"""Inputs in object stores and at other URLs."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from symbolize.core.errors import InputError, UsageError
from symbolize.formats import load
from symbolize.storage import urls
from symbolize.storage.inputs import Input, Problem, alternative_names, find_inputs, open_input
from symbolize.storage.urls import files_at, scheme_of, shown
from tests.support.buckets import Bucket, impatient
from tests.support.needs import package


def found(*arguments: str, listing: str | None = None) -> list[Input | Problem]:
    """All that is found."""
    return list(find_inputs(arguments, None if listing is None else io.StringIO(listing)))


def names(results: list[Input | Problem]) -> list[str]:
    """The names of what was found, all of it inputs."""
    assert all(isinstance(each, Input) for each in results), results
    return [each.name for each in results if isinstance(each, Input)]


KEYS = ["x.pb", "h1/a.pb", "h2/a.pb.gz", "h2/deep/a.pb", ".hid/a.pb", "h2/u.tmp", ".symbolize/t", "h1/.x/y"]


@pytest.fixture
def memory() -> Any:
    """A file system in memory, empty."""
    fsspec = package("fsspec")
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()


@pytest.mark.parametrize(
    ("url", "expected"),
    [("https://h/d/x.pb?sign=a/b", "x.pb"), ("s3://b/d/x.pb?y", "x.pb%3fy"), ("file:///d/x.pb%3fy", "x.pb%3fy")],
)
def test_queries_in_alternative_names(url: str, expected: str) -> None:
    """A web server's query is no part of a name; the question mark of a key or a file is."""
    assert [*alternative_names(Input(url, "x", 1, ""))][1] == expected


def test_schemes() -> None:
    """Those of URLs in lower case; paths have none."""
    assert [scheme_of(each) for each in ("S3://b/x", "gs+a://", "/a/s3://b", "a:/b", "", "C://b")] == (
        ["s3", "gs+a", "", "", "", ""]
    )


CASES = [
    ("/", ["h1/a", "h2/a", "h2/deep/a", "x"]),
    ("/h1", ["a"]),
    ("/h2/", ["a", "deep/a"]),
    ("/x.pb", ["x"]),
    ("/*.pb", ["x"]),
    ("/h?/*.pb", ["h1/a"]),
    ("/**/a.pb", ["h1/a", "h2/deep/a"]),
    ("/h2/**", ["a", "deep/a"]),
    ("/h*", ["h1/a", "h2/a", "h2/deep/a"]),
    ("/*/deep/*", ["h2/deep/a"]),
    ("/.hid/*", ["a"]),
    ("/.h*/*", [".hid/a"]),
]


@pytest.mark.parametrize(("argument", "expected"), CASES)
@pytest.mark.full
def test_store(bucket: Bucket, argument: str, expected: list[str]) -> None:
    """Prefixes, objects and patterns find what folders, files and patterns do."""
    bucket.put(*(f"p/{key}" for key in KEYS), "q.pb")
    results = found(f"{bucket.url}/p{argument}")
    assert sorted(names(results)) == expected
    for one in results:
        with open_input(one.uri) as stream:
            assert not isinstance(stream, str) and stream.read() == b"profile"


@pytest.mark.parametrize(("argument", "expected"), CASES)
def test_other_file_systems(memory: Any, tmp_path: Path, argument: str, expected: list[str]) -> None:
    """What lists folders as a whole, and file URLs, give the same."""
    for key in KEYS:
        memory.pipe_file(f"/b/p/{key}", b"profile")
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(b"profile")
    assert sorted(names(found(f"memory://b/p{argument}"))) == expected
    assert sorted(names(found(f"file://{tmp_path}{argument}"))) == expected


def test_whole_bucket(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket is a folder; a listing goes on from page to page."""
    bucket.put(*(f"{i}.pb" for i in range(7)), "folder/")
    call = type(bucket.system).call_s3
    monkeypatch.setattr(type(bucket.system), "call_s3", lambda *args, **kw: call(*args, **kw, MaxKeys=3))
    for argument in (bucket.url, bucket.url + "/", bucket.url + "/*", bucket.url + "/**/?.pb"):
        assert names(found(argument)) == [str(i) for i in range(7)]


def test_version(bucket: Bucket) -> None:
    """An object found alone has the version that it has in a listing, and another one when its content differs."""
    bucket.put("p/a.pb", data=b"1")
    [listed] = found(bucket.url)
    [alone] = found(f"{bucket.url}/p/a.pb")
    assert isinstance(listed, Input) and isinstance(alone, Input)
    assert (listed.uri, listed.size, listed.version) == (alone.uri, 1, alone.version)
    bucket.put("p/a.pb", data=b"2")
    [changed] = found(bucket.url)
    assert isinstance(changed, Input) and changed.version != listed.version


def test_listings_are_not_remembered(bucket: Bucket) -> None:
    """What another machine writes is seen at once, by file systems that would remember listings, too."""
    files = files_at(bucket.url)
    assert files.system.ls(files.path) == []
    other = type(bucket.system)(use_listings_cache=False, skip_instance_cache=True)
    other.pipe_file(f"{files.path}/x", b"1")
    assert files.system.ls(files.path) == [f"{files.path}/x"]


def test_hostile_keys(bucket: Bucket) -> None:
    """Keys are any text; names of outputs are safe all the same, and the objects can be read."""
    keys = ["p/../../etc/x", "p//abs", "p/" + "l" * 900, "p/a\x85b", "p/é::[1]*?.pb", "p/100%", "p/.."]
    bucket.put(*keys)
    results = [each for each in found(f"{bucket.url}/p/") if isinstance(each, Input)]
    assert len(results) == 5  # those with names that begin with dots are hidden
    for one in results:
        assert ".." not in one.name.split("/") and "\x85" not in one.name and not one.name.startswith("/")
        with open_input(one.uri) as stream:
            assert not isinstance(stream, str) and stream.read() == b"profile"
    [literal] = found(f"{bucket.url}/p/é::[1]*?.pb")
    assert isinstance(literal, Input) and list(alternative_names(literal))[:2] == ["é::[1]*%3f", "é::[1]*%3f.pb"]


def test_list_of_urls(bucket: Bucket) -> None:
    """URLs in a list are no patterns, and outputs keep the bucket and folders."""
    bucket.put("h1/a.pb", "h2/a.pb")
    name = bucket.url.removeprefix("s3://")
    results = found("-", bucket.url, listing=f"{bucket.url}/h1/a.pb\n{bucket.url}/h2\n{bucket.url}/*\n")
    assert names(results[:2]) == [f"{name}/h1/a", f"{name}/h2/a"]
    assert results[2:] == [Problem(f"{bucket.url}/*", "is missing, or holds no files")]


def test_what_is_no_input(bucket: Bucket) -> None:
    """What is not there is told in a sentence, without passwords, and the rest is found."""
    bucket.put("a.pb")
    results = found(
        f"{bucket.url}/gone",
        f"{bucket.url}/gone/",
        f"{bucket.url}/gone*",
        "s3://no-such-bucket/",
        "s3://*/x",
        "s3://me:secret@bucket/x",
        "strange://x/y",
        f"{bucket.url}/a.pb",
    )
    assert results[:-1] == [
        Problem(f"{bucket.url}/gone", "is missing, or holds no files"),
        Problem(f"{bucket.url}/gone/", "holds no files"),
        Problem(f"{bucket.url}/gone*", "is missing, or holds no files"),
        Problem("s3://no-such-bucket/", "is missing"),
        Problem("s3://*/x", "is a pattern for buckets; name one bucket"),
        Problem("s3://bucket/x", "contains a password; give credentials in the environment"),
        Problem("strange://x/y", "is of a kind that is not known: strange://"),
    ]
    assert names(results[-1:]) == ["a"]


def test_reading_fails(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that is gone, or changes while it is read, is an error in a line."""
    with pytest.raises(InputError, match=f"^{bucket.url}/gone: is missing$"), open_input(f"{bucket.url}/gone"):
        pass
    bucket.put("x", data=bytes(100_000))
    monkeypatch.setattr(urls, "BLOCK", 1000)
    with urls.open_url(f"{bucket.url}/x", 1000) as stream:
        assert len(stream.read(500)) == 500
        bucket.put("x", data=b"other")
        with pytest.raises(InputError, match=f"^{bucket.url}/x: "):
            stream.read(50_000)


def test_no_connection(monkeypatch: pytest.MonkeyPatch, bucket: Bucket) -> None:
    """A store that refuses connections is a problem of what was asked there."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    impatient(monkeypatch)
    [problem] = found(f"{bucket.url}/a.pb")
    assert isinstance(problem, Problem) and problem.sentence.startswith("cannot be read: Could not connect")


def test_load_from_store(bucket: Bucket) -> None:
    """A profile is read from a stream of a store, and errors about it name the URL."""
    bucket.put("bad.pb", data=b"no profile at all")
    says = pytest.raises(InputError, match=f"^{bucket.url}/bad.pb: is not a profile")
    with open_input(f"{bucket.url}/bad.pb") as source, says:
        load(source)


def test_missing_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the libraries for URLs the error says how to get them."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    for url, packages in (
        ("s3a://bucket/x", "fsspec s3fs"),
        ("gs://bucket/x", "fsspec gcsfs"),
        ("sftp://host/x", "fsspec"),
    ):
        with pytest.raises(UsageError, match=f": URLs need fsspec: pip install {packages}$"):
            found(url)


def test_missing_library_of_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it does when only the one for the kind of URL is missing."""
    package("fsspec")
    for scheme, module, how in (("s3", "s3fs", "pip install s3fs$"), ("sftp", "paramiko", ".*paramiko")):
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, scheme, raising=False)
        with pytest.raises(UsageError, match=f"{scheme}:// needs a library that is not installed: {how}"):
            found(f"{scheme}://bucket/x")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://me:pass@host/x?sig=1#f", "https://host/x"),
        ("ftp://me:p@ss@host/x", "ftp://host/x"),
        ("cannot reach https://k:s@h/x?token=1 now", "cannot reach https://h/x now"),
        ("s3://bucket/a@b?c", "s3://bucket/a@b?c"),
    ],
)
def test_shown(url: str, expected: str) -> None:
    """Secrets in URLs are not shown."""
    assert shown(url) == expected


def test_passwords_are_refused() -> None:
    """A URL with a password cannot be used: it would be kept with the run."""
    with pytest.raises(InputError, match=r"^ftp://host/x: contains a password"):
        files_at("ftp://me:secret@host/x")
