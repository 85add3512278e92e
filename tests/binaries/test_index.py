"""The walk over the folders of binaries."""

import errno
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from symbolize.binaries import BinaryIndex
from symbolize.elf import ElfError, ElfImage, read_build_id
from tests.support.fixture_files import BINARIES
from tests.support.tiny_elf import elf, write

ID_A, ID_B = "aa" * 20, "bb" * 20
COMMITTED = sorted(path for path in BINARIES.rglob("*") if path.is_file() and path.suffix != ".o")


def index(*roots: Path) -> BinaryIndex:
    """An index of the folders."""
    return BinaryIndex([str(root) for root in roots])


def paths(entries: list[Any]) -> list[str]:
    """Where the entries were found."""
    return [entry.path for entry in entries]


@pytest.mark.needs("readelf")
def test_build_ids_of_real_files() -> None:
    """The quick look at a file finds the build id that readelf shows and that the full reader finds."""
    for path in COMMITTED:
        notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
        expected = notes.partition("Build ID: ")[2].partition("\n")[0]
        with ElfImage.open(path) as image:
            assert read_build_id(str(path)) == image.build_id == expected


@pytest.mark.parametrize("in_section", [False, True], ids=["segment", "section"])
@pytest.mark.parametrize("wide", [False, True], ids=["32", "64"])
@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
def test_build_id_layouts(in_section: bool, wide: bool, order: str, tmp_path: Path) -> None:
    """A build id is found in a note segment or, where no segment has it, in a note section, in all layouts."""
    path = tmp_path / "x"
    path.write_bytes(elf(b"\x12\x34\x56", in_section=in_section, wide=wide, order=order))
    assert read_build_id(str(path)) == "123456"
    path.write_bytes(elf(None, wide=wide, order=order))
    assert read_build_id(str(path)) == ""


@pytest.mark.parametrize("in_section", [False, True], ids=["segment", "section"])
def test_every_cut_and_every_byte(in_section: bool, tmp_path: Path) -> None:
    """However a file is cut or changed in one place, the look at it answers or says what is wrong with it."""
    whole = elf(b"\x12\x34\x56\x78", in_section=in_section)
    path = tmp_path / "x"
    damaged = [whole[:length] for length in range(len(whole))]
    damaged += [whole[:i] + bytes([value]) + whole[i + 1 :] for i in range(len(whole)) for value in (0, 0x80, 0xFF)]
    for data in damaged:
        path.write_bytes(data)
        try:
            read_build_id(str(path))
        except ElfError as error:
            assert str(error).startswith(f"{path}: ")


def test_every_cut_of_a_committed_file(tmp_path: Path) -> None:
    """A binary that is cut off keeps its build id or is told to be cut; the id of another build never appears."""
    whole = (BINARIES / "gcc-split/stripped/spectra").read_bytes()
    path = tmp_path / "spectra"
    expected = read_build_id(str(BINARIES / "gcc-split/stripped/spectra"))
    for length in [*range(0, 2048, 3), len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        try:
            assert read_build_id(str(path)) in (expected, None, "")
        except ElfError:
            pass


def test_layouts_of_folders(tmp_path: Path) -> None:
    """A file is found by its build id wherever it lies, and by the path and the name it has there."""
    for place in (".build-id/aa/rest.debug", "usr/lib/libx.so", f"{ID_A}/debuginfo", "deep/er/elf"):
        write(tmp_path / place, ID_A)
    found = index(tmp_path)
    assert len(found.with_build_id(ID_A)) == 4
    assert found.with_build_id(ID_A.upper() + "0000") == found.with_build_id(ID_A)
    assert paths(found.at_path("/usr/lib/libx.so")) == [str(tmp_path / "usr/lib/libx.so")]
    assert paths(found.with_name("libx.so")) == [str(tmp_path / "usr/lib/libx.so")]
    assert found.with_build_id(ID_B) == found.at_path("/lib/libx.so") == found.with_name("liby.so") == []
    assert found.problems == []


def test_order_of_roots(tmp_path: Path) -> None:
    """What lies in an earlier root comes first."""
    first, second = write(tmp_path / "z/x", ID_A), write(tmp_path / "a/x", ID_A)
    assert paths(index(tmp_path / "z", tmp_path / "a").with_build_id(ID_A)) == [str(first), str(second)]
    assert paths(index(tmp_path / "a", tmp_path / "z").with_name("x")) == [str(second), str(first)]


def test_single_file_as_root(tmp_path: Path) -> None:
    """A root may be a file."""
    path = write(tmp_path / "x", ID_A)
    write(tmp_path / "y", ID_B)
    found = index(path)
    assert paths(found.with_build_id(ID_A)) == paths(found.with_name("x")) == [str(path)]
    assert found.with_build_id(ID_B) == []


def test_walked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders are read at the first question, and then never again."""
    write(tmp_path / "x", ID_A)
    calls: list[Any] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: calls.append(path) or scan(path))
    found = index(tmp_path)
    assert calls == []
    for _ in range(3):
        assert found.with_build_id(ID_A)
        assert not found.with_name("none")
    assert calls == [str(tmp_path)]


def test_the_walk_of_another(tmp_path: Path) -> None:
    """An index that is kept where another one is answers by what that one finds, and walks where it found nothing."""
    (root := tmp_path / "root").mkdir()
    mine, other = (BinaryIndex([str(root)], tmp_path / "kept") for _ in range(2))
    write(root / "a", ID_A)
    other.walk()
    write(root / "b", ID_B)
    mine.use_last_walk()
    assert paths(mine.with_build_id(ID_A)) == [str(root / "a")]
    assert not mine.with_build_id(ID_B)
    other.walk()
    assert paths(mine.with_build_id(ID_B)) == [str(root / "b")]
    for kept in (None, tmp_path / "elsewhere"):
        alone = BinaryIndex([str(root)], kept)
        alone.use_last_walk()
        assert paths(alone.with_build_id(ID_A)) == [str(root / "a")]


def test_one_file_under_several_names(tmp_path: Path) -> None:
    """A file that links lead to is one file: found by each of its names, and once by its build id."""
    path = write(tmp_path / "lib/libx.so.1.2", ID_A)
    (tmp_path / "lib/libx.so").symlink_to("libx.so.1.2")
    (tmp_path / "other").mkdir()
    os.link(path, tmp_path / "other/libx.so.1.2")
    found = index(tmp_path)
    assert len(found.with_build_id(ID_A)) == 1
    assert found.with_name("libx.so") == found.with_name("libx.so.1.2") == found.with_build_id(ID_A)
    assert found.at_path("/other/libx.so.1.2") == found.with_build_id(ID_A)


def test_folder_goes_by_its_own_name(tmp_path: Path) -> None:
    """A link to a folder (`lib` to `usr/lib`) does not hide the folder's own path."""
    write(tmp_path / "usr/lib/libx.so", ID_A)
    (tmp_path / "lib").symlink_to("usr/lib")
    found = index(tmp_path)
    assert paths(found.at_path("/usr/lib/libx.so")) == [str(tmp_path / "usr/lib/libx.so")]


def test_link_into_another_root(tmp_path: Path) -> None:
    """A link is followed when it leads into another of the roots."""
    path = write(tmp_path / "store/x", ID_A)
    (tmp_path / "view").mkdir()
    (tmp_path / "view/y").symlink_to(path)
    alone, both = index(tmp_path / "view"), index(tmp_path / "view", tmp_path / "store")
    assert alone.with_name("y") == []
    assert alone.problems == [f"no ELF files below {tmp_path}/view (0 files looked at, 1 link out of it not followed)"]
    assert len(both.with_name("y")) == 1
    assert both.problems == []


def test_loops_and_dangling_links(tmp_path: Path) -> None:
    """Links in a circle and links to nothing end the walk neither late nor early."""
    write(tmp_path / "b/x", ID_A)
    (tmp_path / "b/up").symlink_to("..")
    (tmp_path / "a").symlink_to(".")
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "nothing").symlink_to("missing")
    found = index(tmp_path)
    assert paths(found.with_build_id(ID_A)) == [str(tmp_path / "b/x")]
    assert paths(found.at_path("b/x")) == [str(tmp_path / "b/x")]
    assert not any("nothing" in problem for problem in found.problems)


def test_very_deep_folders(tmp_path: Path) -> None:
    """Folders below a great depth are not entered, and that is said."""
    deep = tmp_path / "/".join("d" * 70)
    write(deep / "x", ID_A)
    write(tmp_path / "/".join("d" * 60) / "y", ID_B)
    found = index(tmp_path)
    assert found.with_build_id(ID_A) == []
    assert len(found.with_build_id(ID_B)) == 1
    assert len(found.problems) == 1
    assert "nested too deep" in found.problems[0]


def test_what_is_no_binary(tmp_path: Path) -> None:
    """StringArray, empty files, FIFOs and sockets are passed over without a word and without waiting."""
    write(tmp_path / "x", ID_A)
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "fifo")
    found = index(tmp_path)
    done = threading.Thread(target=found.with_name, args=("x",), daemon=True)
    done.start()
    done.join(10)
    assert not done.is_alive()
    assert paths(found.with_name("x")) == [str(tmp_path / "x")]
    assert found.with_name("fifo") == found.with_name("text") == found.with_name("empty") == []
    assert found.problems == []


def test_fifo_that_took_the_place_of_a_file(tmp_path: Path) -> None:
    """Even when a FIFO is opened, nothing waits for a writer."""
    os.mkfifo(tmp_path / "fifo")
    assert read_build_id(str(tmp_path / "fifo")) is None


def test_unreadable_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be read is said, a sentence each, and everything else is found."""
    write(tmp_path / "x", ID_A)
    write(tmp_path / "secret", ID_B)
    (tmp_path / "closed").mkdir()

    def refuse(name: str) -> Any:
        original = getattr(os, name)

        def call(path: str, *arguments: int) -> Any:
            if os.path.basename(path) in ("secret", "closed"):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return original(path, *arguments)

        return call

    monkeypatch.setattr(os, "open", refuse("open"))
    monkeypatch.setattr(os, "scandir", refuse("scandir"))
    found = index(tmp_path)
    assert len(found.with_build_id(ID_A)) == 1
    assert found.with_build_id(ID_B) == []
    assert sorted(found.problems) == [f"{tmp_path}/closed: Permission denied", f"{tmp_path}/secret: Permission denied"]


def test_all_zero_build_ids_are_none(tmp_path: Path) -> None:
    """Files whose build id is all zeros, as some linkers leave it, are not taken for one another."""
    write(tmp_path / "x", "00" * 20)
    write(tmp_path / "y", "00" * 20)
    assert [entry.build_id for entry in index(tmp_path).with_name("x")] == [None]
    assert index(tmp_path).with_build_id("00" * 20) == []


def test_links_out_of_a_folder(tmp_path: Path) -> None:
    """They are reported to those alone who may need what is behind them: by name, path, folder or build id (rule
    R490)."""
    root, away = tmp_path / "root", tmp_path / "away"
    write(root / "x", ID_A)
    target = write(away / "libx.so.1.2", ID_B)
    layout = root / ".build-id" / ID_B[:2]
    layout.mkdir(parents=True)
    (root / "libx.so.1").symlink_to(target)
    (root / "lib").symlink_to(away)
    (layout / ID_B[2:]).symlink_to(target)
    (root / "gone.so").symlink_to("/no/where/gone.so")
    (root / "y").symlink_to("/etc")
    made = index(root)
    assert len(made.with_build_id(ID_A)) == 1
    assert made.problems == []
    to_file = f"is a link to {target}, out of the given folders and not followed: give {away} too"
    assert made.links_out("/usr/bin/libx.so.1") == {f"{root}/libx.so.1": to_file}
    assert made.links_out("", ID_B.upper()) == {f"{layout}/{ID_B[2:]}": to_file}
    to_folder = f"is a link to {away}, out of the given folders and not followed: give {away} too"
    assert made.links_out("/lib/libz.so") == {f"{root}/lib": to_folder}
    gone = "is a link to /no/where/gone.so, which does not exist: copy the file that it stands for"
    assert made.links_out("gone.so") == {f"{root}/gone.so": gone}
    (away / "lists").touch()
    for name in ("perf-7.map", "perf-8.map", "kallsyms"):
        (root / name).symlink_to(away / "lists")
    made.walk_again()
    assert made.with_name("none") == []
    assert list(made.links_out("/tmp/perf-8.map", kinds=["perf-map"])) == [f"{root}/perf-8.map"]
    assert list(made.links_out("//anon", kinds=["jitdump", "perf-map"])) == [f"{root}/perf-7.map"]
    assert list(made.links_out("[kernel.kallsyms]", kinds=["kallsyms"])) == [f"{root}/kallsyms"]
    assert made.links_out("/usr/lib/libz.so") == made.links_out("") == made.links_out("/") == {}


def test_bad_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many files that cannot be used some are remembered, and so are some of very many links; what is wrong is
    told of some, and counted."""
    monkeypatch.setattr("symbolize.binaries.index_update.MAX_UNUSABLE", 3)
    monkeypatch.setattr("symbolize.binaries.index_update.MAX_PROBLEMS", 2)
    monkeypatch.setattr("symbolize.binaries.index_update.MAX_LINKS", 4)
    root = tmp_path / "root"
    for number in range(5):
        (root / str(number)).mkdir(parents=True)
        (root / str(number) / "x").write_bytes(b"\x7fELF")
        (root / f"link{number}").symlink_to(tmp_path)
    made = index(root, *(tmp_path / f"none{number}" for number in range(4)))
    made.with_build_id(ID_A)
    assert list(made.unusable_called("x")) == [str(root / str(number) / "x") for number in range(3)]
    assert made.unusable_called("y") == {}
    assert [problem.partition(":")[0] for problem in made.problems[:2]] == [f"{root}/{n}/x" for n in (0, 1)]
    assert [number for number in range(5) if made.links_out(f"link{number}")] == [0, 1, 2, 3]
    assert made.problems[2:] == ["and 7 more problems with files of the given folders"]
    assert made.unread == [str(tmp_path / "none0"), str(tmp_path / "none1")]


def test_every_kind_of_entry_is_found(tmp_path: Path) -> None:
    """Files of a name, and those called so behind a build id, are found in the order of the roots."""
    for place in ("b/x", f"b/{ID_A}-x", f"a/{ID_B}-x", "a/y-x", "a/sub/x"):
        write(tmp_path / place)
    made = index(tmp_path / "b", tmp_path / "a")
    assert paths(made.with_name("x")) == [str(tmp_path / "b/x"), str(tmp_path / "a/sub/x")]
    assert paths(made.behind_build_id("x")) == [str(tmp_path / f"b/{ID_A}-x"), str(tmp_path / f"a/{ID_B}-x")]
    assert paths(made.at_path("/sub/x")) == [str(tmp_path / "a/sub/x")]


def test_file_systems_of_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below a root, folders of /proc and /sys are not entered: they show the same files again for each process."""
    for name in ("proc/x", "proc/1/y", "usr/z"):
        write(tmp_path / name, ID_A)
    monkeypatch.setattr("symbolize.binaries.index_update.VIRTUAL", (str(tmp_path / "proc"),))
    assert paths(index(tmp_path).with_build_id(ID_A)) == [str(tmp_path / "proc/x"), str(tmp_path / "usr/z")]
    assert paths(index(tmp_path / "proc").with_build_id(ID_A)) == [str(tmp_path / "proc/1/y"), str(tmp_path / "proc/x")]


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("libc6.deb", b"!<arch>\ndebian-binary   1", "a Debian package: `dpkg-deb -x x.deb folder` unpacks it"),
        ("glibc.rpm", b"\xed\xab\xee\xdb\3\0", "an RPM package: `rpm2cpio x.rpm | cpio -id` unpacks it"),
        ("app.tar", bytes(257) + b"ustar\0", "a tar archive: unpack it"),
        ("app.exe", b"MZ\x90\0", "a Windows program"),
        ("app", b"\xcf\xfa\xed\xfe\7\0\0\1", "a Mach-O binary, which is not read"),
    ],
)  # fmt: skip
def test_files_that_are_no_binaries(name: str, data: bytes, what: str, tmp_path: Path) -> None:
    """Where nothing can be used, what is there is called by its name: the largest file that is known."""
    path = tmp_path / "given" / name
    path.parent.mkdir()
    path.write_bytes(data)
    (tmp_path / "given/README").write_text("a" * 1000)
    below, alone = index(path.parent), index(path)
    assert [*below.with_name(name), *alone.with_name(name)] == []
    assert below.problems == [
        f"no ELF files below {path.parent} (2 files looked at)",
        f"{path}: is {what}",
    ]
    assert alone.problems == [f"{path}: is neither an ELF file nor a list of symbols of a known name, but {what}"]
