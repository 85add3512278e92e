"""The names by which a function is known, and what is found by them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from symbolize.core.folded_code import FoldedCode, FoldedFunction, FoldingEvidence
from symbolize.symbols import Function, name_key
from symbolize.symbols.binary import opened
from symbolize.symbols.functions import MAX_GROUPS, UNDECIDED, Namesakes, spellings_of
from tests.support.called import Program


def test_linkage_table() -> None:
    """A sample in the entry of a linkage table is in a call of that function (R263, names of PLT entries)."""
    called = Function(b"_ZN3Box3putEi", b"Box::put", b"", 0)
    assert name_key(called) in spellings_of([b"_ZN3Box3putEi@plt"])[0]
    assert name_key(Function(b"", b"LockSemaphoreInfo", b"", 0)) in spellings_of([b"LockSemaphoreInfo@plt"])[0]
    assert name_key(called) not in spellings_of([b"_ZN3Box3getEi@plt"])[0]


def folded(*names: Sequence[bytes]) -> list[FoldedCode]:
    """Code that functions with these names share."""
    return [FoldedCode(0, 1, FoldingEvidence.NAMES, [*map(FoldedFunction, each)]) for each in names]


def test_shared_code_with_a_name() -> None:
    """A function is looked for in all shared code with its name, but not in very much."""
    shared = [[b"_ZN3Box3putEi", b"start"], [b"stop", b"start"], *([b"init", b"open%d" % i] for i in range(1000))]
    namesakes = Namesakes(folded(*shared))
    assert [namesakes.groups(Function(name, b"", b"", 0)) for name in (b"_ZN3Box3putEi", b"stop", b"start")] == [
        [0],
        [1],
        [0, 1],
    ]
    assert len(namesakes.groups(Function(b"", b"init", b"", 0))) == MAX_GROUPS
    assert namesakes.groups(Function(b"", b"open7", b"", 0)) == [9]


def test_functions_that_cannot_be_told_apart() -> None:
    """Of local functions of one name the declaration decides, by the name of its file and its line; nothing does where
    two have that as well."""
    places = [(b"/one/util.c", 3), (b"/two/util.c", 3), (b"/two/util.c", 9), (b"/two/more.c", 3)]
    shared = FoldedCode(0, 1, FoldingEvidence.NAMES, [FoldedFunction(b"helper", *place) for place in places])
    found = [Namesakes([shared]).find(Function(b"helper", b"", *place), 0) for place in (
        (b"/src/util.c", 3), (b"/src/util.c", 9), (b"/src/more.c", 3), (b"/src/more.c", 4)
    )]  # fmt: skip
    assert found == [UNDECIDED, 2, 3, UNDECIDED]


@pytest.mark.needs("gcc", "mold")
def test_folded_callers(tmp_path: Path) -> None:
    """Of many folded functions that call the same, each has the calls of the one whose code it shares (R358, calls of
    folded functions)."""
    count, apart = 30, "__attribute__((noinline)) int"
    lines = [
        "volatile int sink;",
        *(f"{apart} {name}(int n) {{ sink += n; return n * 7; }}" for name in ("low", "high")),
    ]
    lines += [f"{apart} a{i}(int n) {{ return low(n + {i}) * {i + 3} + 1; }}" for i in range(count)]
    lines += [f"{apart} b{i}(int n) {{ return high(n + {i}) * {i + 3} + 1; }}" for i in range(count)]
    lines += [f"int main(int c, char **v) {{ return {' + '.join(f'a{i}(c) + b{i}(c)' for i in range(count))}; }}"]
    options = ("-O2", "-g", "-fno-ipa-icf", "-ffunction-sections", "-fuse-ld=mold", "-Wl,--icf=all")
    program = Program(tmp_path, ("gcc", *options), one_c="\n".join(lines))
    with opened(program.path) as binary:
        calls = binary.table().calls()
    found: dict[int, set[tuple[bytes, bytes]]] = {}
    columns = (calls.return_vaddr.tolist(), calls.caller.tolist(), calls.callee.tolist())
    for returned, caller, callee in zip(*columns, strict=True):
        if calls.functions[caller].name != b"main":
            found.setdefault(returned, set()).add((calls.functions[caller].name, calls.functions[callee].name))
    expected = [{(b"a%d" % i, b"low"), (b"b%d" % i, b"high")} for i in range(count)]
    assert sorted(found.values(), key=sorted) == sorted(expected, key=sorted)
