"""Names that are not those of files."""

from pathlib import Path

import pytest

from symbolize import Reason
from symbolize.binaries import BinaryIndex, find_recorded
from symbolize.binaries.finder import plain_names
from tests.support.tiny_elf import write


@pytest.mark.parametrize(
    ("recorded", "plain"),
    [
        ("/lib/x.so (deleted)", "/lib/x.so"),
        ("/lib/x.so\\040(deleted)", "/lib/x.so"),
        ("//deleted/lib/x.so", "/lib/x.so"),
        ("/lib/x.so;5f3a2b1c", "/lib/x.so"),
        ("/lib/x.so;5f3a2b1c (deleted)", "/lib/x.so"),
        ("/lib/x.so.#prelink#.a1B2c3 (deleted)", "/lib/x.so"),
        ("/lib/x.so.dpkg-new (deleted)", "/lib/x.so"),
        ("/proc/4711/root/lib/x.so", "/lib/x.so"),
        ("/proc/self/root/newroot/lib/x.so", "/lib/x.so"),
        ("/newroot/lib/x.so", "/lib/x.so"),
        ("/memfd:x.so (deleted)", "x.so"),
        ("/dev/ashmem/x.so (deleted)", "x.so"),
        ("/var/lib/docker/overlay2/0123abcd/merged/lib/x.so", "/lib/x.so"),
        ("/var/lib/docker/overlay2/0123abcd/diff/lib/x.so", "/lib/x.so"),
        ("/var/lib/containers/storage/overlay/0123abcd/merged/lib/x.so", "/lib/x.so"),
        ("/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/17/fs/lib/x.so", "/lib/x.so"),
        ("/run/containerd/io.containerd.runtime.v2.task/k8s.io/0123abcd/rootfs/lib/x.so", "/lib/x.so"),
    ],
)
def test_names(recorded: str, plain: str, tmp_path: Path) -> None:
    """What is put around a name is taken off after the literal name was looked for."""
    assert plain_names(recorded)[0] == recorded
    assert plain_names(recorded)[-1] == plain
    path = write(tmp_path / "lib" / "x.so")
    found = find_recorded(BinaryIndex([str(tmp_path)]), "", recorded)
    assert found.paths == [str(path)]
    assert not found.verified


@pytest.mark.parametrize(
    "name",
    [
        "/lib/x.so",
        "",
        "[heap]",
        "//anon",
        "x;y",
        "/a;b",
        " (deleted)",
        "/overlay/x/y",
        "/lib/;abcdef12",
        "/" * 9000,
    ],
)
def test_other_names_stay(name: str) -> None:
    """What is a name by itself is left alone."""
    assert plain_names(name) == [name]


def test_literal_name_first(tmp_path: Path) -> None:
    """A file that is really called so is taken."""
    write(tmp_path / "x.so")
    path = write(tmp_path / "x.so;5f3a2b1c")
    assert find_recorded(BinaryIndex([str(tmp_path)]), "", "/lib/x.so;5f3a2b1c").paths == [str(path)]


@pytest.mark.parametrize("name", ["[heap]", "/memfd:jit (deleted)", "/dev/zero (deleted)", "/SYSV0000 (deleted)"])
def test_no_file(name: str, tmp_path: Path) -> None:
    """Memory without a file is told as such."""
    write(tmp_path / "zero")
    assert find_recorded(BinaryIndex([str(tmp_path)]), "", name).reason == Reason.NOT_A_FILE


def test_with_build_id_the_names_are_for_the_report(tmp_path: Path) -> None:
    """A file of the plain name with another build id is told."""
    write(tmp_path / "x.so", "ff" * 20)
    found = find_recorded(BinaryIndex([str(tmp_path)]), "ee" * 20, "/lib/x.so (deleted)")
    assert found.reason == Reason.BUILD_ID_DIFFERS
    assert "ff" * 20 in found.detail
