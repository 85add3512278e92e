"""Maps of ProGuard and R8, applied to profiles."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from symbolize import InputError, Options, Symbolizer, UsageError
from symbolize.enrich.deobfuscate import Deobfuscator, deobfuscate, java_names
from symbolize.formats.pprof import reader as loader
from symbolize.names.proguard import ProguardMap
from symbolize.profile import Profile
from tests.support.pprof_writer import Line, Mapping, Place, profile
from tests.support.profile_frames import frames_of

MAPPINGS = [Mapping(0x1000, 0x9000, 0, "/data/app/base.apk!/classes.dex"), Mapping(0x10000, 0x20000, 0, "/lib/x.so")]
MAP = """\
com.acme.Codec -> a.a.a:
# {"id":"sourceFile","fileName":"Codec.kt"}
    1:3:int encode(int):20:22 -> a
    4:4:int com.acme.Checks.range(int):7:7 -> a
    4:4:int encode(int):23 -> a
com.acme.Checks -> a.a.b:
# {"id":"sourceFile","fileName":"Checks.java"}
com.acme.Main -> com.acme.Main:
# {"id":"sourceFile","fileName":"Main.kt"}
    5:5:void com.acme.Codec.close():70:70 -> main
    5:5:void main(java.lang.String[]):9 -> main
"""


def loaded(places: Sequence[Place]) -> Profile:
    """A profile whose only stack has these locations."""
    return loader.load(memoryview(profile(MAPPINGS, [(places, [1])])), "test")


def java(*lines: Line, mapping: int = 1) -> Place:
    """A location with these frames."""
    return Place(0x1000 if mapping == 1 else 0x10000, mapping, lines)


def written(tmp_path: Path, contents: str = MAP, name: str = "mapping.txt") -> str:
    """The path of a map."""
    path = tmp_path / name
    path.write_text(contents)
    return str(path)


def test_frames(tmp_path: Path) -> None:
    """Names, files, lines and inlined frames of the source; the obfuscated name stays beside (rules R171, R172)."""
    made = loaded(
        [
            java(Line("a.a.a.a", "SourceFile", 4)),
            Place(0x2000, 1, (Line("a.a.a.a", "SourceFile", 2), Line("com.acme.Main.main", "SourceFile", 5))),
            Place(0x3000, 1),
            Place(0x4000, 1, (Line("x.y.z", "SourceFile", 2),)),
            Place(0x5000, 1, (Line("int a.a.a.a(int) [DEDUPED]", "", 0),)),
        ]
    )
    changed = Deobfuscator([written(tmp_path)]).apply(made)
    assert changed.tolist() == [True, True, False, False, True]
    assert frames_of(made) == [
        [
            ("com.acme.Checks.range", "com.acme.Checks.range", "Checks.java", 7, 0),
            ("com.acme.Codec.encode", "a.a.a.a", "Codec.kt", 23, 0),
        ],
        [
            ("com.acme.Codec.encode", "a.a.a.a", "Codec.kt", 21, 0),
            ("com.acme.Codec.close", "com.acme.Codec.close", "Codec.kt", 70, 0),
            ("com.acme.Main.main", "com.acme.Main.main", "Main.kt", 9, 0),
        ],
        [],
        [("x.y.z", "x.y.z", "SourceFile", 2, 0)],
        [("com.acme.Codec.encode [DEDUPED]", "int a.a.a.a(int) [DEDUPED]", "Codec.kt", 0, 0)],
    ]


def test_unknown_file(tmp_path: Path) -> None:
    """Where the map does not know the file, the one of the profile stays (rule R171)."""
    made = loaded([java(Line("a.a.x", "X.java", 4))])
    Deobfuscator([written(tmp_path, "com.acme.X -> a.a:\n  void run() -> x\n")]).apply(made)
    assert frames_of(made) == [[("com.acme.X.run", "a.a.x", "X.java", 4, 0)]]


def test_native_code_keeps_its_names(tmp_path: Path) -> None:
    """In a mapping of native code nothing is a Java method, though a function of that name is one elsewhere
    (rule R171)."""
    made = loaded([java(Line("a.a.a.a", "", 2)), java(Line("a.a.a.a", "", 2), mapping=2)])
    Deobfuscator([written(tmp_path)]).apply(made)
    assert [frames[0][0] for frames in frames_of(made)] == ["com.acme.Codec.encode", "a.a.a.a"]


def test_nothing_to_rename(tmp_path: Path) -> None:
    """A profile without classes of the map stays as it is, and that is told."""
    made = loaded([java(Line("b.b", "f.c", 2)), Place(0x2000, 1, (Line("main", "f.c", 3),))])
    before, path = frames_of(made), written(tmp_path)
    deobfuscator = Deobfuscator([path])
    assert not deobfuscator.apply(made).any()
    assert frames_of(made) == before
    assert deobfuscator.problems == [f"{path}: has none of the classes in the profile"]


def test_what_is_the_same_stays() -> None:
    """A class that kept its names keeps its functions with their first line."""
    known = ProguardMap("packet")
    known.add(b"com.acme.Main", b"com.acme.Main")
    made = loaded([java(Line("com.acme.Main.main", "Main.kt", 3))])
    made.functions.start_line[:] = 1
    changed, _ = deobfuscate(made, [known])
    assert not changed.any()
    assert made.functions.start_line.tolist() == [1]


def test_several_maps(tmp_path: Path) -> None:
    """Every map is asked; where two say different things of a name it stays as it is (rule R174)."""
    other = written(tmp_path, "org.b.B -> b.b:\n  void f() -> a\norg.c.C -> a.a.a:\n  void g() -> a\n", "other.txt")
    made = loaded([java(Line("a.a.a.a", "", 1)), Place(0x2000, 1, (Line("b.b.a", "", 1),))])
    deobfuscator = Deobfuscator([f"com.acme={written(tmp_path)}", other])
    deobfuscator.apply(made)
    assert [frames[0][0] for frames in frames_of(made)] == ["a.a.a.a", "org.b.B.f"]
    assert deobfuscator.problems == ["the ProGuard maps contradict each other on 1 functions, left as they are"]


def test_class_that_occurs_twice(tmp_path: Path) -> None:
    """It is not translated, whenever it is asked for; others of the map are (rule R174)."""
    path = written(tmp_path, "org.c.C -> c.c:\n  void f() -> a\norg.b.B -> b.b:\n  void f() -> a\norg.d.D -> b.b:\n")
    deobfuscator = Deobfuscator([path])
    for name, expected in (("c.c.a", "org.c.C.f"), ("b.b.a", "b.b.a"), ("b.b.a", "b.b.a")):
        made = loaded([java(Line(name, "", 1))])
        deobfuscator.apply(made)
        assert frames_of(made)[0][0][0] == expected
    assert deobfuscator.problems == [f"{path}: class b.b occurs twice, so that it is not translated"]


def test_several_profiles(tmp_path: Path) -> None:
    """What the first profile did not ask for is read for the next."""
    deobfuscator = Deobfuscator([written(tmp_path)])
    for name, expected in (("a.a.a.a", "com.acme.Codec.encode"), ("a.a.b.x", "com.acme.Checks.x")):
        made = loaded([java(Line(name, "", 1))])
        deobfuscator.apply(made)
        assert frames_of(made)[0][0][0] == expected


def test_java_names() -> None:
    """Functions without a name like a Java method's are not looked up (rule R171)."""
    native = java(Line("c.d", "", 1), mapping=2)
    made = loaded([java(Line("a.b", "", 1), Line("std::max", "", 1), Line("main", "", 1)), native])
    assert [made.strings[made.functions.name[row]] for row in java_names(made)] == [b"a.b"]


def test_in_the_pipeline(tmp_path: Path) -> None:
    """The result has the names and true flags, and the report what could not be read."""
    made = loaded([java(Line("a.a.a.a", "", 4))])
    path = written(tmp_path, MAP.replace("    1:3:int", "    1:3 int"))
    with Symbolizer(options=Options(proguard_maps=[path])) as symbolizer:
        result = symbolizer.symbolize(made)
    assert [frame[0] for frame in frames_of(result.profile)[0]] == ["com.acme.Checks.range", "com.acme.Codec.encode"]
    assert result.profile.mappings.has_inline_frames.tolist() == [True, False]
    assert result.report.top[0].name == "com.acme.Checks.range"
    assert f"{path}: unreadable members in lines 3 are left out" in result.report.warnings


def test_bad_files(tmp_path: Path) -> None:
    """A map that is not there is a usage error, a file that is none an error with the line."""
    with pytest.raises(UsageError, match=r"com\.acme=none\.txt: no such file"):
        Symbolizer(options=Options(proguard_maps=["com.acme=none.txt"]))
    symbolizer = Symbolizer(options=Options(proguard_maps=[written(tmp_path, "hello\n")]))
    with pytest.raises(InputError, match="line 1"):
        symbolizer.symbolize(loaded([java(Line("a.a.a.a", "", 4))]))


KEPT = """\
com.acme.K -> com.acme.K:
# {"id":"sourceFile","fileName":"K.kt"}
    7:7:void a():7:7 -> a
    7:7:void b():9 -> a
    1:3:void m():20:22 -> m
    5:5:void n():5 -> n
"""


@pytest.mark.parametrize(
    ("line", "expected", "changes"),
    [
        (Line("com.acme.K.a", "K.kt", 7), [("com.acme.K.a", "K.kt", 7), ("com.acme.K.b", "K.kt", 9)], True),
        (Line("com.acme.K.m", "K.kt", 2), [("com.acme.K.m", "K.kt", 21)], True),
        (Line("com.acme.K.n", "K.kt", 5), [("com.acme.K.n", "K.kt", 5)], False),
        (Line("com.acme.K.n", "SourceFile", 5), [("com.acme.K.n", "K.kt", 5)], True),
        # Numbers that no line has.
        (Line("com.acme.K.m", "K.kt", 2 + (1 << 32)), [("com.acme.K.m", "K.kt", 2 + (1 << 32))], False),
        (Line("com.acme.K.m", "K.kt", -1), [("com.acme.K.m", "K.kt", -1)], False),
    ],
)
def test_classes_that_keep_their_names(
    tmp_path: Path, line: Line, expected: list[tuple[str, str, int]], changes: bool
) -> None:
    """They have files and lines of the source, and frames that were inlined, all the same."""
    made = loaded([java(line)])
    assert Deobfuscator([written(tmp_path, KEPT)]).apply(made).tolist() == [changes]
    (frames,) = frames_of(made)
    assert [(name, file, number) for name, _, file, number, _ in frames] == expected


def test_functions_without_a_system_name(tmp_path: Path) -> None:
    """The name that they had becomes that."""
    made = loaded([java(Line("a.a.a.a", "SourceFile", 2, system_name=""))])
    Deobfuscator([written(tmp_path)]).apply(made)
    assert frames_of(made) == [[("com.acme.Codec.encode", "a.a.a.a", "Codec.kt", 21, 0)]]
