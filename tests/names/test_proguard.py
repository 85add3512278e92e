"""Mapping files of ProGuard and R8 (rules R171 to R174)."""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolize.core.errors import InputError
from symbolize.names.proguard import JavaName, ProguardMap, classes_in, parse_name, read_map
from tests.support.proguard_maps import R8


def read(tmp_path: Path, contents: str | bytes = R8, *wanted: str) -> ProguardMap:
    """The map with these contents, read for the classes that are wanted or all of `R8`."""
    path = tmp_path / "mapping.txt"
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    classes = wanted or ("a.a.a", "a.a.b", "com.acme.util.Math", "com.acme.Main")
    return read_map(str(path), {name.encode() for name in classes})


def frames(known: ProguardMap, name: str, line: int = 0) -> list[tuple[str, str, int]]:
    """What a name at a line stands for."""
    parsed = parse_name(name.encode())
    assert parsed is not None
    return [(frame.name.decode(), frame.file.decode(), frame.line) for frame in known.frames(parsed, line)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.b.c", JavaName(b"a.b", b"c")),
        ("a.b.<init>", JavaName(b"a.b", b"<init>")),
        ("a.b$c.d", JavaName(b"a.b$c", b"d")),
        ("void a.b.c(int, a.d[])", JavaName(b"a.b", b"c", b"int, a.d[]")),
        ("a.b.c()", JavaName(b"a.b", b"c", b"")),
        ("a.b.c [DEDUPED]", JavaName(b"a.b", b"c", None, b" [DEDUPED]")),
        ("int a.b.c(int) [DEDUPED]", JavaName(b"a.b", b"c", b"int", b" [DEDUPED]")),
        ("main", None),
        ("a::b.c", None),
        ("/system/lib/x.so", None),
        ("art_quick_invoke_stub", None),
        ("a.", None),
        ("", None),
        ("void a b.c", None),
    ],
)
def test_names(name: str, expected: JavaName | None) -> None:
    """Class, method and arguments as profilers write them; other names are none of Java (rule R171)."""
    assert parse_name(name.encode()) == expected


def test_classes_in_a_name() -> None:
    """A name speaks of its class and of those of its arguments (rule R171)."""
    assert list(classes_in(JavaName(b"a.b", b"c", b"int, a.d[]"))) == [b"a.b", b"int", b"a.d"]


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("a.a.a.<init>", 1, [("com.acme.Codec.<init>", "Codec.kt", 12)]),
        ("a.a.a.a", 1, [("com.acme.Codec.encode", "Codec.kt", 20)]),
        ("a.a.a.a", 3, [("com.acme.Codec.encode", "Codec.kt", 22)]),
        ("a.a.a.a", 4, [("com.acme.util.Checks.range", "Checks.java", 7), ("com.acme.Codec.encode", "Codec.kt", 23)]),
        ("a.a.a.a", 5, [("com.acme.util.Math.clamp", "Math.kt", 40), ("com.acme.util.Checks.range", "Checks.java", 9),
                        ("com.acme.Codec.encode", "Codec.kt", 24)]),
        ("a.a.a.a", 13, [("com.acme.Codec.encode", "Codec.kt", 25)]),
        ("a.a.a.a", 22, [("com.acme.Codec.close", "Codec.kt", 61)]),
        ("a.a.a.a", 24, [("com.acme.Codec.close", "Codec.kt", 0)]),
        ("a.a.a.e", 2, [("com.acme.Codec.isReady", "Codec.kt", 81)]),
        ("a.a.a.h", 77, [("com.acme.Codec.outlined", "Codec.kt", 0)]),
        ("com.acme.Main.main", 8, [("com.acme.Main.main", "", 8)]),
    ],
)  # fmt: skip
def test_lines_decide(tmp_path: Path, name: str, line: int, expected: list[tuple[str, str, int]]) -> None:
    """A line tells the method, its line in the source, and what was inlined there, with its own file (rule R172)."""
    assert frames(read(tmp_path), name, line) == expected


def test_synthesized(tmp_path: Path) -> None:
    """Methods that the compiler made up go where others stand in them, told once for all lines (rule R172)."""
    known = read(tmp_path)
    assert frames(known, "a.a.a.g", 1) == [("com.acme.Codec.lambda$run$0", "Codec.kt", 33)]
    assert frames(known, "a.a.a.g", 2) == [("com.acme.Codec.lambda$run$1", "Codec.kt", 35)]
    alone = "A -> a:\n  void made() -> x\n  # {'id':'com.android.tools.r8.synthesized'}\n"
    assert frames(read(tmp_path, alone, "a"), "a.x") == [("A.made", "", 0)]
    both = alone + "  void written() -> x\n"
    assert frames(read(tmp_path, both, "a"), "a.x") == [("A.written", "", 0)]


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("a.a.a.a", 0, "com.acme.Codec.close | com.acme.Codec.encode"),
        ("a.a.a.a", 99, "com.acme.Codec.close | com.acme.Codec.encode"),
        ("a.a.a.a(java.lang.String,int)", 0, "com.acme.Codec.encode"),
        ("void a.a.a.a()", 0, "com.acme.Codec.close"),
        ("a.a.a.a(long)", 0, "com.acme.Codec.close | com.acme.Codec.encode"),
        ("a.a.a.c", 0, "com.acme.Codec.size"),
        ("a.a.a.c(a.a.a)", 0, "com.acme.Codec.size"),
        ("a.a.b.a", 0, "com.acme.util.Checks.check"),
        ("a.a.a.kept", 5, "com.acme.Codec.kept"),
    ],
)
def test_without_a_line(tmp_path: Path, name: str, line: int, expected: str) -> None:
    """Where no line decides, arguments do; else all methods that it may be are named (rule R173)."""
    (frame,) = frames(read(tmp_path), name, line)
    assert frame[0] == expected


@pytest.mark.parametrize(("other", "file"), [("B.kt", ""), ("A.kt", "A.kt")])
def test_file_without_a_line(tmp_path: Path, other: str, file: str) -> None:
    """Of methods of which nothing tells which it is the file is known if it is that of all (rule R173)."""
    comment = '# {"id":"sourceFile","fileName":"%s"}\n'
    members = "  void f() -> m\n  void B.g() -> m\n"
    known = read(tmp_path, f"A -> a:\n{comment % 'A.kt'}{members}B -> b:\n{comment % other}", "a")
    assert frames(known, "a.m") == [("A.f | B.g", file, 0)]


def test_too_many_candidates(tmp_path: Path) -> None:
    """Of very many methods none is named, but the class is known (rule R173)."""
    members = "".join(f"    void m{i}(int) -> a\n" for i in range(9))
    assert frames(read(tmp_path, f"A.B -> a.a:\n{members}", "a.a"), "a.a.a", 3) == [("A.B.a", "", 0)]


def test_overloads_without_lines_are_no_chain(tmp_path: Path) -> None:
    """Neighbours without lines, or that both have several, are methods beside each other (rules R172, R173)."""
    contents = "A -> a:\n  void x() -> m\n  void y() -> m\n  1:2:void u():1:2 -> n\n  1:2:void v():5:6 -> n\n"
    known = read(tmp_path, contents, "a")
    assert [name for name, _, _ in frames(known, "a.m", 3)] == ["A.x | A.y"]
    assert [name for name, _, _ in frames(known, "a.n", 1)] == ["A.u | A.v"]


def test_methods_without_lines_of_their_own(tmp_path: Path) -> None:
    """A method of which the map only knows its lines in the source has no line that is sure, and one without lines is
    meant by a line that no other has (rules R172, R173)."""
    known = read(tmp_path, "A -> a:\n  void f():10:20 -> m\n  1:2:void g():5:6 -> n\n  void h() -> n\n", "a")
    assert frames(known, "a.m", 3) == [("A.f", "", 0)]
    assert [frames(known, "a.n", line) for line in (2, 9, 0)] == [
        [("A.g", "", 6)],
        [("A.h", "", 0)],
        [("A.g | A.h", "", 0)],
    ]


def test_classes_of_two_names(tmp_path: Path) -> None:
    """Two classes with one obfuscated name are left alone, and the map is told of (rule R174)."""
    known = read(tmp_path, "A -> a:\nB -> b:\nC -> a:\n", "a", "b")
    assert frames(known, "a.x") == []
    assert frames(known, "b.x") == [("B.x", "", 0)]
    assert known.problems == [f"{known.source}: class a occurs twice, so that it is not translated"]


def test_what_is_not_asked_for_is_not_kept(tmp_path: Path) -> None:
    """Of a map only the classes that are asked for stay, and the files of what is inlined into them (rule R171)."""
    known = read(tmp_path, R8, "a.a.a")
    assert list(known.classes) == [b"a.a.a"]
    assert known.files == {
        b"com.acme.Codec": b"Codec.kt",
        b"com.acme.util.Checks": b"Checks.java",
        b"com.acme.util.Math": b"Math.kt",
    }


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        ("hello\n", "line 1 is no class"),
        ("A -> a:\nB - b\n", "line 2 is no class, and not indented as a member is"),
        ("# comment\n\n    int x -> a\n", "line 3 precedes any class"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "line 1 is no class"),
    ],
)
def test_no_map(tmp_path: Path, contents: str | bytes, problem: str) -> None:
    """What is no map is refused with the line."""
    with pytest.raises(InputError, match=f"is not a ProGuard map: {problem}$"):
        read(tmp_path, contents, "a")


def test_unreadable_members(tmp_path: Path) -> None:
    """A bad member costs itself alone and is told with its line; those of other classes are not looked at.

    Methods that the class does not list may be the bad ones, and stay as they are (rule R174).
    """
    long = "    void " + "x" * (1 << 16) + "() -> b"
    contents = (
        f"A -> a:\n    nonsense\n    void f() -> a\n{long}\n    ?\n    void (\n    void g() -> c\nB -> b:\n    ?\n"
    )
    known = read(tmp_path, contents, "a")
    assert frames(known, "a.a") == [("A.f", "", 0)]
    assert frames(known, "a.c") == [("A.g", "", 0)]
    assert frames(known, "a.b") == []
    assert known.problems == [f"{known.source}: unreadable members in lines 2, 4, 5 and 1 more are left out"]


@pytest.mark.parametrize(
    "changed",
    [
        R8.replace("\n", "\r\n"),
        "\ufeff" + R8[R8.index("com.acme.Codec ->") :],
        R8.rstrip("\n"),
        R8.replace("    ", "\t"),
    ],
    ids=["line ends", "byte order mark", "no last line end", "tabs"],
)
def test_spellings(tmp_path: Path, changed: str) -> None:
    """Line ends, a byte order mark, other indents and a missing last line end do not matter."""
    known = read(tmp_path, changed)
    assert frames(known, "a.a.a.a", 4)[0] == ("com.acme.util.Checks.range", "Checks.java", 7)
    assert frames(known, "com.acme.Main.main", 8) == [("com.acme.Main.main", "", 8)]
    assert known.problems == []


def test_missing_file(tmp_path: Path) -> None:
    """A file that cannot be opened is an error that names it."""
    with pytest.raises(InputError, match=r"nothing\.txt: No such file"):
        read_map(str(tmp_path / "nothing.txt"), set())


def test_filled_by_hand() -> None:
    """A map may be filled from other sources than a file, with lines or without (rules R171, R172)."""
    known = ProguardMap("packet")
    java_class = known.add(b"a.a", b"com.acme.Codec")
    java_class.add(b"b", b"encode", b"", 1, 4, 10, 13)
    java_class.add(b"c", b"com.acme.Other.copy", b"", 5, 5, 3)
    java_class.add(b"c", b"run", b"", 5, 5, 9)
    java_class.add(b"d", b"close")
    assert frames(known, "a.a.b", 2) == [("com.acme.Codec.encode", "", 11)]
    assert frames(known, "a.a.c", 5) == [("com.acme.Other.copy", "", 3), ("com.acme.Codec.run", "", 9)]
    assert frames(known, "a.a.d", 2) == [("com.acme.Codec.close", "", 2)]


LINES = st.lists(
    st.one_of(
        st.sampled_from(R8.splitlines()),
        st.text(" \t:->#(){}'\"0123456789ab.,[]$<>", max_size=40),
        st.builds("    {}:{}:void f():{}:{} -> a".format, *(st.integers(0, 10**12) for _ in range(4))),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=200)
@given(LINES, st.binary(max_size=20), st.integers(0, 1 << 40))
def test_any_input(tmp_path_factory: pytest.TempPathFactory, lines: list[str], more: bytes, line: int) -> None:
    """Whatever the file, it is read or refused, and every name has at most as many frames as the file has lines."""
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes("\n".join(lines).encode() + more)
    try:
        known = read_map(str(path), {b"a.a.a", b"a.a.b", b"a"})
    except InputError as error:
        assert error.source == str(path)
        return
    for owner, java_class in known.classes.items():
        for method in [*java_class.methods, b"other"]:
            for at in (0, 1, line):
                found = known.frames(JavaName(owner, method, b"int"), at)
                assert len(found) <= len(lines) + 1
                assert all(frame.name and frame.line >= 0 for frame in found)
                assert not (found and owner in known.ambiguous)
                assert found or owner in known.ambiguous or known.classes[owner].has_gaps


def test_hostile_lines_are_quick(tmp_path: Path) -> None:
    """Lines made to be matched slowly are not (rule R174)."""
    hostile = [
        "    " + "1:" * 30000,
        "    " + "a" * 30000 + " " * 30000,
        "    " + " a(" * 20000,
        "    a " + "b" * 60000,
    ]
    begun = time.process_time()
    known = read(tmp_path, "A -> a:\n" + "\n".join(hostile) + "\n", "a")
    parse_name(b"a." * 30000 + b"(")
    assert time.process_time() - begun < 2
    assert len(known.problems) == 1
