"""Which files answer for a mapping."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from symbolize.binaries import BinaryIndex, BinaryMatch, Companions, Kind, Unasked, find_binary
from symbolize.binaries.finder import MAX_ATTEMPTS, MAX_CANDIDATES, MAX_FILES
from symbolize.binaries.index import BY_INDEX, FILES, of_build
from symbolize.core.reasons import Reason
from tests.support.elf_writer import ALLOC, EXEC, NOTE, Section, build_id_note, elf_file, text
from tests.support.tiny_elf import write

ID_A, ID_B, ID_C = "aa" * 20, "bb" * 20, "cc" * 20


def find(roots: list[Path], build_id: str, filename: str) -> BinaryMatch:
    """The answer, with paths relative to the folder that holds the roots."""
    found = find_binary(BinaryIndex([str(root) for root in roots]), build_id, filename)
    return replace(found, paths=[str(Path(path).relative_to(roots[0].parent)) for path in found.paths])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with some binaries."""
    root = tmp_path / "root"
    write(root / "opt/app/server", ID_A)
    write(root / "old/server", ID_B)
    write(root / "debug/server.debug", ID_A)
    write(root / "lib/plain.so")
    write(root / "lib/libx.so.debug", ID_C)
    return root


@pytest.mark.parametrize("build_id", [ID_A, ID_A.upper(), ID_A + "0000"])
@pytest.mark.parametrize("filename", ["/opt/app/server", "/elsewhere/renamed", "", "[kernel.kallsyms]"])
def test_by_build_id(root: Path, build_id: str, filename: str) -> None:
    """With a build id all files that have it answer, verified, whatever the recorded name (rule R138)."""
    found = find([root], build_id, filename)
    assert found.paths == ["root/debug/server.debug", "root/opt/app/server"]
    assert found.verified
    assert found.reason is Reason.SYMBOLIZED
    assert len(found.tried) == 1


@pytest.mark.parametrize(
    ("filename", "paths"),
    [
        ("/opt/app/server", ["root/opt/app/server", "root/debug/server.debug"]),
        ("opt/app/server", ["root/opt/app/server", "root/debug/server.debug"]),
        ("/other/plain.so", ["root/lib/plain.so"]),
        ("plain.so", ["root/lib/plain.so"]),
        ("/usr/lib/libx.so", ["root/lib/libx.so.debug"]),
    ],
)
def test_by_name(root: Path, filename: str, paths: list[str]) -> None:
    """Without a build id the full path, then the name, then the name of a debug file answers, unverified
    (rule R144)."""
    found = find([root], "", filename)
    assert found.paths == paths
    assert not found.verified
    assert any("unverified" in attempt.outcome for attempt in found.tried)


def test_path_under_the_root_comes_before_the_name(root: Path) -> None:
    """The full recorded path decides among files of one name; every place tried is listed."""
    assert find([root], "", "/old/server").paths == ["root/old/server"]
    found = find([root], "", "/nowhere/plain.so")
    assert [attempt.place for attempt in found.tried] == ["path nowhere/plain.so", "name plain.so"]
    assert found.tried[0].outcome == "nothing there"


def test_attempts_of_several_builds(root: Path) -> None:
    """Where there are several builds every place is listed that one was looked for in, also behind the first one."""
    tried = find([root], "", "/old/server").tried
    assert [attempt.place for attempt in tried[:4]] == [
        "path old/server", "name server", "name server.debug", "name server.dbg"
    ]  # fmt: skip
    assert ["nothing there" in attempt.outcome for attempt in tried[:4]] == [False, False, False, True]


def test_ambiguous_name(root: Path) -> None:
    """A name that several builds have is no match."""
    found = find([root], "", "/elsewhere/server")
    assert found.paths == []
    assert found.reason is Reason.AMBIGUOUS
    assert "old/server" in found.detail
    assert "opt/app/server" in found.detail


def test_copies_are_not_ambiguous(tmp_path: Path) -> None:
    """Several copies of one build under one name are a match."""
    for place in "ab":
        write(tmp_path / "root" / place / "server", ID_A)
    assert find([tmp_path / "root"], "", "/x/server").paths == ["root/a/server", "root/b/server"]


@pytest.mark.parametrize("filename", ["/opt/server", "/elsewhere/server"], ids=["path", "name"])
def test_no_root_wins(tmp_path: Path, filename: str) -> None:
    """Builds that only their folders tell apart are all candidates, whichever folder comes first (rule R247)."""
    write(tmp_path / "new/opt/server", ID_A)
    write(tmp_path / "old/opt/server", ID_B)
    for roots in (["new", "old"], ["old", "new"]):
        found = find([tmp_path / root for root in roots], "", filename)
        assert (found.paths, found.reason) == ([], Reason.AMBIGUOUS)
        assert sorted(each.build_id for _, each in found.candidates) == [ID_A, ID_B]


def test_many_builds(tmp_path: Path) -> None:
    """Of dozens of builds of one name some are candidates, and how many others there are is said (rule R247)."""
    for number in range(40):
        write(tmp_path / f"root/{number}/server", f"{number + 1:02x}" * 20)
    found = find([tmp_path / "root"], "", "/x/server")
    assert len(found.candidates) == MAX_CANDIDATES
    assert f"{40 - MAX_CANDIDATES} more builds" in found.tried[-1].outcome


@pytest.mark.parametrize("filename", ["/opt/app/server", "/x/server", "/lib/plain.so"])
def test_other_build(root: Path, filename: str) -> None:
    """With a build id a file of the right path or name and another id, or none, is no match; both ids are told."""
    found = find([root], ID_C[:-2] + "dd", filename)
    assert found.paths == []
    assert not found.verified
    assert found.reason is Reason.BUILD_ID_DIFFERS
    assert ID_C[:-2] + "dd" in found.tried[-1].outcome


def test_not_found(root: Path) -> None:
    """Nothing with the id and nothing with the name: not found."""
    assert find([root], "dd" * 20, "/opt/none").reason is Reason.NOT_FOUND
    assert find([root], "", "/opt/none").reason is Reason.NOT_FOUND
    assert [a.place for a in find([root], "", "/opt/none").tried] == [
        "path opt/none", "name none", "name none.debug", "name none.dbg"
    ]  # fmt: skip


@pytest.mark.parametrize("build_id", ["xyz", "abc", "../../etc/passwd", "0000", "f" * 130, "Go-style/id"])
def test_malformed_build_id(root: Path, build_id: str) -> None:
    """What is no build id is a reason, and the name is not tried instead."""
    found = find([root], build_id, "/lib/plain.so")
    assert found.paths == []
    assert found.reason is Reason.BAD_BUILD_ID
    assert found.detail[1:20] in repr(build_id)


def test_no_identity(root: Path) -> None:
    """A mapping without build id and name cannot be looked up."""
    assert find([root], "", "").reason is Reason.NO_IDENTITY


@pytest.mark.parametrize(
    "filename",
    [
        "/",
        "//",
        "..",
        "../..",
        "../outside",
        "/opt/app/../../../outside",
        "/opt/app/server/",
        ".",
        "a\0b",
        "/etc/passwd",
    ],
)
def test_names_that_lead_astray(tmp_path: Path, root: Path, filename: str) -> None:
    """A recorded name is compared and never opened: `..` leads nowhere."""
    write(tmp_path / "outside", ID_A)
    assert find([root], "", filename).paths == []


def test_many_copies_of_one_build(tmp_path: Path) -> None:
    """Of dozens of files with one build id those that offer most are opened, and one with the code (rule R139)."""
    note = Section(".note.gnu.build-id", build_id_note(bytes.fromhex(ID_A)), NOTE)
    root = tmp_path / "root"
    for number in range(30):
        write(root / f"a/{number:02d}", ID_A)
        (root / f"a/symbols{number:02d}").write_bytes(elf_file([text(), note, Section(".dynsym", b"x")]))
    (root / "z").mkdir()
    (root / "z/debug").write_bytes(elf_file([text(), note, Section(".debug_info", b"x")]))
    (root / "z/code").write_bytes(elf_file([note, Section(".text", b"x", flags=ALLOC | EXEC)]))
    found = find([root], ID_A, "")
    assert len(found.paths) == MAX_FILES
    assert {"root/z/debug", "root/z/code"} < set(found.paths)
    assert sum("symbols" in path for path in found.paths) == MAX_FILES - 2


MODULE = "44332211665588771122334455667788"
PREFIX = "11223344556677881122334455667788"
"""How build ids begin whose module id this is, but for the zero at its end."""


def test_by_module_id(tmp_path: Path) -> None:
    """A module id of Chromium is answered by the files whose build ids begin with its 16 bytes, verified; an ordinary
    id of 16 bytes only by files that have it (rule R240)."""
    write(tmp_path / "root/app/libchrome.so", PREFIX + "99aabbcc")
    write(tmp_path / f"root/.build-id/{PREFIX[:2]}/{PREFIX[2:]}99aabbcc.debug", PREFIX + "99aabbcc")
    write(tmp_path / "root/other/libchrome.so", PREFIX[:31] + "999aabbcc")
    write(tmp_path / "short/libshort.so", "1122334455667788")
    roots = [tmp_path / "root", tmp_path / "short"]
    for module in (MODULE + "0", MODULE.upper() + "0"):
        found = find(roots, module, "/x/libchrome.so")
        assert sorted(found.paths) == [
            f"root/.build-id/11/{PREFIX[2:]}99aabbcc.debug",
            "root/app/libchrome.so",
        ]
        assert (found.verified, found.build_id) == (True, PREFIX + "99aabbcc")
        assert found.wanted_id == PREFIX + "99aabbcc"
    assert find(roots, PREFIX, "libchrome.so").reason is Reason.BUILD_ID_DIFFERS
    assert find(roots, "4433221166558877" + "0" * 17, "").paths == ["short/libshort.so"]
    missing = find(roots, "5" * 32 + "0", "nowhere.so")
    assert (missing.reason, missing.paths, missing.wanted) == (Reason.NOT_FOUND, [], [])
    assert find(roots, "5" * 32 + "0", "libchrome.so").reason is Reason.BUILD_ID_DIFFERS
    assert find(roots, "5" * 33, "").reason is Reason.NOT_ELF
    assert find(roots, "5" * 31, "").reason is Reason.BAD_BUILD_ID


def test_module_id_by_layout(tmp_path: Path) -> None:
    """A file without a build id counts where its path has one that begins so, unverified (rules R138, R240)."""
    write(tmp_path / f"root/.build-id/{PREFIX[:2]}/{PREFIX[2:]}99aabbcc.debug")
    found = find([tmp_path / "root"], MODULE + "0", "libchrome.so")
    assert found.paths == [f"root/.build-id/11/{PREFIX[2:]}99aabbcc.debug"]
    assert not found.verified


def test_several_builds_of_a_module_id(tmp_path: Path) -> None:
    """Build ids that differ only behind the first 16 bytes are made up, and nothing is taken (rule R240)."""
    write(tmp_path / "root/a.so", PREFIX + "99aabbcc")
    write(tmp_path / "root/b.so", PREFIX + "99aabbdd")
    assert find([tmp_path / "root"], MODULE + "0", "a.so").reason is Reason.AMBIGUOUS


@pytest.mark.parametrize(("column", "index"), [("f.key", "file_key"), ("f.path_key", "file_path_key")])
def test_module_ids_are_looked_up_by_index(tmp_path: Path, column: str, index: str) -> None:
    """The database looks at the ids that begin so, and not at all of them (rule R240)."""
    files = BinaryIndex([str(tmp_path)], tmp_path / "cache")
    files.with_build_id(ID_A)
    where, parameters = of_build(column, MODULE + "0")
    question = f"EXPLAIN QUERY PLAN {FILES.format(where=where, tables=BY_INDEX, limit=-1).format(roots='1')}"
    steps = [row[3] for row in files._connect().execute(question, [*parameters, *parameters])]
    assert [step for step in steps if step.startswith("SCAN")] in ([], ["SCAN (subquery-1)"]), steps
    assert any(index in step for step in steps), steps
    files.close()


class TestCompanions:
    """Files with more debug information of a binary, by the names that are in it."""

    @pytest.fixture
    def companions(self, root: Path) -> Companions:
        """Those of `opt/app/server` and its debug file."""
        for place in ("far/a.dwo", "opt/app/a.dwo", "y/src/a.dwo", "x/build/src/a.dwo", "opt/app/b.dwo"):
            write(root / place)
        for place in ("far/server.dwp", "opt/app/server.dwp", "debug/server.debug.dwp", "far/serv.dwp"):
            write(root / place)
        paths = [str(root / "opt/app/server"), str(root / "debug/server.debug")]
        return Companions(BinaryIndex([str(root)]), paths)

    def test_split(self, companions: Companions, root: Path) -> None:
        """Split files that lie most like the recorded path come first, then those beside the binary (rule R88)."""
        order = ["x/build/src/a.dwo", "y/src/a.dwo", "opt/app/a.dwo", "far/a.dwo"]
        for name, folder in (("src/a.dwo", "/build"), ("../src/a.dwo", "/build/obj"), ("/build/src/a.dwo", "/x")):
            assert companions.split(name, folder) == [str(root / place) for place in order]
        assert companions.split("none.dwo", "/build") == []

    def test_packages(self, companions: Companions, root: Path) -> None:
        """Packages are called like the files of the binary, with and without the suffix of debug files (rule R88)."""
        places = ["opt/app/server.dwp", "debug/server.debug.dwp", "far/server.dwp"]
        assert companions.packages() == [str(root / place) for place in places]

    def test_many(self, root: Path) -> None:
        """Of hundreds of files of one name some are handed out, the likeliest ones."""
        for number in range(40):
            write(root / f"{number:02d}/a.dwo")
        found = Companions(BinaryIndex([str(root)]), []).split("39/a.dwo", "/")
        assert len(found) == 16
        assert found[0] == str(root / "39/a.dwo")

    @pytest.mark.parametrize(
        ("identifier", "asked", "first"),
        [(ID_B, False, "old/server"), ("ee" * 20, True, "fetched"), ("00", False, "opt/app/a.dwo")],
    )
    def test_supplementary(self, companions: Companions, root: Path, identifier: str, asked: bool, first: str) -> None:
        """A supplementary file is found by its id, else asked of servers, else one of that name will do (rule R91)."""
        requests = []

        class Fake(Unasked):
            def fetch(self, build_id: str, kind: Kind) -> Any:
                requests.append((build_id, kind))
                return replace(super().fetch(build_id, kind), path=str(root / "fetched"))

        index = BinaryIndex([str(root)], servers=Fake([]))
        found = Companions(index, companions.paths).supplementary("/dwz/a.dwo", identifier)
        assert found[0] == str(root / first)
        assert str(root / "far/a.dwo") in found
        assert requests == ([(identifier, "debuginfo")] if asked else [])


def test_attempts_are_counted(tmp_path: Path) -> None:
    """Of very many files that did not help some are listed, and the others counted."""
    for number in range(MAX_ATTEMPTS + 10):
        write(tmp_path / f"root/{number:02d}/server", ID_A)
    found = find([tmp_path / "root"], ID_B, "/x/server")
    assert len(found.tried) == MAX_ATTEMPTS + 1
    assert found.tried[-1] == ("and others", "11 more that did not help")
    for number in range(10, MAX_ATTEMPTS + 10):
        (tmp_path / f"root/{number:02d}/server").unlink()
    assert len(find([tmp_path / "root"], ID_B, "/x/server").tried) == 11
