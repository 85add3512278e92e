"""Mappings of kernel modules."""

import gzip
import lzma
from pathlib import Path

import pytest
import zstandard

from symbolize import Reason
from tests.support.kernel_modules import MODULE_ID, MODULE_START, write_module
from tests.support.pprof_writer import Mapping, Place
from tests.support.whole_runs import run

PACKERS = {"xz": lzma.compress, "gz": gzip.compress, "zst": zstandard.compress}


def mapping(name: str, build_id: str = MODULE_ID.hex()) -> Mapping:
    """The mapping of the module."""
    return Mapping(MODULE_START, MODULE_START + 0x4000, 0, name, build_id)


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("name", ["[nf_net]", "/lib/modules/6.1/kernel/net/nf-net.ko", "/lib/modules/6.1/nf-net.ko.xz"])
@pytest.mark.parametrize("build_id", [MODULE_ID.hex(), ""])
def test_packed(tmp_path: Path, ending: str, name: str, build_id: str) -> None:
    """A packed module is found by build id, or by the release and its name; `-` and `_` are the same there."""
    module = write_module(tmp_path / "net.ko").read_bytes()
    (tmp_path / "net.ko").unlink()
    path = tmp_path / "lib" / "modules" / "6.1" / "kernel" / f"nf-net.ko.{ending}"
    path.parent.mkdir(parents=True)
    path.write_bytes(PACKERS[ending](module))
    recorded = [mapping(name, build_id), Mapping(1 << 63, (1 << 63) + 4096, 0, "/lib/modules/6.1/kernel/fs/x.ko")]
    names, report = run(recorded, [Place(MODULE_START + 0x10, 1), Place(MODULE_START + 0x30, 1)], tmp_path)
    assert names == ["handle", ""]
    assert report.mappings[0].verified == bool(build_id)
    assert report.mappings[0].files == [str(path)]


def test_by_release(tmp_path: Path) -> None:
    """Without a build id a module counts in the folder of the release of the profile only, rule R96."""
    path = tmp_path / "lib" / "modules" / "6.1" / "net.ko"
    path.parent.mkdir(parents=True)
    write_module(path)
    place = [Place(MODULE_START + 0x10, 1)]
    assert run([mapping("/lib/modules/6.1/kernel/net.ko", "")], place, tmp_path)[0] == ["handle"]
    names, report = run([mapping("/lib/modules/6.2/kernel/net.ko", "")], place, tmp_path)
    assert names == [""]
    assert report.mappings[0].misses[0][0] == Reason.MISFIT


def test_another_build(tmp_path: Path) -> None:
    """A packed module with another build id is not used."""
    module = write_module(tmp_path / "net.ko").read_bytes()
    (tmp_path / "net.ko").unlink()
    (tmp_path / "net.ko.gz").write_bytes(gzip.compress(module))
    assert run([mapping("[net]", "ff" * 20)], [Place(MODULE_START + 0x10, 1)], tmp_path)[0] == [""]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("net.ko.xz", lzma.compress(bytes(1 << 21))[:-40]),
        ("net.ko.gz", gzip.compress(b"x" * 1000, mtime=0)[:-10]),
        ("net.ko.gz", b"\x1f\x8b\x08\x00rubbish rubbish"),
        ("net.ko.zst", b"\x28\xb5\x2f\xfd\xff\xff\xff"),
        ("net.ko.zst", zstandard.compress(b"no ELF file")),
        ("net.ko.gz", b"plain"),
        ("net.ko.gz", gzip.compress(bytes(1 << 20), mtime=0)),
    ],
)
def test_what_cannot_be_unpacked(tmp_path: Path, name: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packed module that is damaged, is something else or expands without bound is told."""
    monkeypatch.setattr("symbolize.resolve.providers.kernel.MAX_UNPACKED", 1 << 19)
    (tmp_path / name).write_bytes(data)
    names, report = run([mapping("[net]")], [Place(MODULE_START + 0x10, 1)], tmp_path)
    assert names == [""]
    assert any(str(tmp_path / name) in warning for warning in report.warnings)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize(("folder", "wanted"), [("6.1", "handle"), ("6.10", ""), ("5.6.1", ""), ("6", "")])
def test_release_is_the_whole_folder(tmp_path: Path, is_packed: bool, folder: str, wanted: str) -> None:
    """A folder counts for the release that it is called after, and for no longer or shorter one (rule R96)."""
    path = tmp_path / "lib" / "modules" / folder / "net.ko"
    path.parent.mkdir(parents=True)
    write_module(path)
    if is_packed:
        path.with_suffix(".ko.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    recorded = mapping("/lib/modules/6.1/kernel/net.ko", "")
    names, report = run([recorded], [Place(MODULE_START + 0x10, 1)], tmp_path)
    assert names == [wanted]
    assert not report.mappings[0].verified


def test_several_releases(tmp_path: Path) -> None:
    """Where the mappings tell two releases, neither is that of a module which tells none (rule R96)."""
    path = tmp_path / "lib" / "modules" / "6.1" / "net.ko"
    path.parent.mkdir(parents=True)
    write_module(path)
    others = [
        Mapping(start << 60, (start << 60) + 4096, 0, f"/lib/modules/{release}/x.ko")
        for start, release in ((1, "6.1"), (2, "6.2"))
    ]
    for count, wanted in ((1, "handle"), (2, "")):
        recorded = [mapping("[net]", ""), *others[:count]]
        assert run(recorded, [Place(MODULE_START + 0x10, 1)], tmp_path)[0] == [wanted]
