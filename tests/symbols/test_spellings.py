"""The names by which a function is known, and what is found by them."""

from pathlib import Path

import pytest

from symbolize.symbols import Function, name_key
from symbolize.symbols.bulk import opened
from symbolize.symbols.folded_calls import MAX_GROUPS, groups_by_name
from symbolize.symbols.functions import spellings_of
from tests.support.called import Program


def test_linkage_table() -> None:
    """A sample in the entry of a linkage table is in a call of that function (R263, names of PLT entries)."""
    called = Function(b"_ZN3Box3putEi", b"Box::put", b"", 0)
    assert name_key(called) in spellings_of([b"_ZN3Box3putEi@plt"])[0]
    assert name_key(Function(b"", b"LockSemaphoreInfo", b"", 0)) in spellings_of([b"LockSemaphoreInfo@plt"])[0]
    assert name_key(called) not in spellings_of([b"_ZN3Box3getEi@plt"])[0]


def test_groups_by_name() -> None:
    """A function is looked for in all shared code with its name, but not in very much."""
    shared = [[b"_ZN3Box3putEi", b"start"], [b"stop", b"start"], *([b"init", b"open%d" % i] for i in range(1000))]
    groups = groups_by_name(shared)
    assert [groups[name_key(Function(name, b"", b"", 0))] for name in (b"_ZN3Box3putEi", b"stop", b"start")] == [
        [0],
        [1],
        [0, 1],
    ]
    assert len(groups[b"init"]) == MAX_GROUPS and groups[b"open7"] == [9]


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
