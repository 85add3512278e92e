"""D names: the texts of c++filt, shortened as the modes ask."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize import names
from symbolize.names import dlang
from tests.support.seeds import examples

MODERN = Path(__file__).parent / "modern"
ROWS = [line.split(b"\t") for line in (MODERN / "dlang.tsv").read_bytes().splitlines()]
FORMS = [line.split(b"\t") for line in (MODERN / "dlang_forms.tsv").read_bytes().splitlines()]
"""A name or more for each form of types, values and symbols that the grammar has; a wrong one has no text."""


def test_real_names_read_as_by_cppfilt() -> None:
    """Names of the run-time library, the standard library and our own program have the texts of c++filt 2.40 (R260)."""
    expected = {name: text for name, text in ROWS if text}
    assert len(expected) > 250
    assert dict(zip(expected, names.demangle(list(expected), "full"), strict=True)) == expected


def test_every_form_reads_as_by_cppfilt() -> None:
    """Forms that real names seldom have are read as c++filt 2.40 reads them, and refused where it does (R260)."""
    assert {name: dlang.demangle(name) for name, _ in FORMS} == {name: text or None for name, text in FORMS}


def test_what_cppfilt_does_not_know() -> None:
    """Parameters that are `return scope` are read too, which c++filt 2.40 does not; thunks have no text."""
    missing = {name: names.demangle([name], "full")[0] for name, text in ROWS if not text}
    assert all(b"NkM" in name for name, text in missing.items() if text != name)
    assert names.demangle([b"_D2rt8lifetime9unqualifyFNaNbNiNkMNgC8TypeInfoZNgQn"], "full") == [
        b"rt.lifetime.unqualify(return scope inout(TypeInfo))"
    ]


# name, default, templates, full
TABLE = [
    (b"_Dmain", *[b"D main"] * 3),
    (
        b"_D3std5stdio__T7writelnTAyaZQnFNfQjZv",
        b"std.stdio.writeln.writeln",
        b"std.stdio.writeln!(immutable(char)[]).writeln",
        b"std.stdio.writeln!(immutable(char)[]).writeln(immutable(char)[])",
    ),
    (
        b"_D1t6nestedFiZ5innerMFNfAyaZ1L2lmMFNaNbNiNfZv",
        *[b"t.nested().inner().L.lm"] * 2,
        b"t.nested(int).inner(immutable(char)[]).L.lm()",
    ),
    (b"_D1t1C6__ctorMFiZCQo", b"t.C.this", b"t.C.this", b"t.C.this(int)"),
    (b"_D1t1C6__dtorMFZv", b"t.C.~this", b"t.C.~this", b"t.C.~this()"),
    (b"_D1t1C10__postblitMFZv", *[b"t.C.this(this)"] * 3),
    (b"_D1t1C1fMxFZv", b"t.C.f", b"t.C.f", b"t.C.f() const"),
    (b"_D1t1C6__vtblZ", *[b"vtable for t.C"] * 3),
    (b"_D1t1C6__initZ", *[b"initializer for t.C"] * 3),
    (
        b"_D1t1fFPFNaNbiZaDxFZvHAyaiG4kZv",
        *[b"t.f"] * 2,
        b"t.f(char(int) pure nothrow function, void() delegate const, int[immutable(char)[]], uint[4])",
    ),
    (b"_D1t1fFKiJiLiXv", b"t.f", b"t.f", b"t.f(ref int, out int, lazy int...)"),
    (b"_D1t1fFiYv", b"t.f", b"t.f", b"t.f(int, ...)"),
    (b"_D1t1fUiZv", b"t.f", b"t.f", b"t.f(int)"),
    (
        b"_D1t__T1fVki3Vai97Vbi1VAyaa2_0978Vde8C8P1Vli5VlN5Z1gFZv",
        b"t.f.g",
        b"t.f!(3u, 'a', true, \"\\tx\", 0x8.C8p1, 5L, -5L).g",
        b"t.f!(3u, 'a', true, \"\\tx\", 0x8.C8p1, 5L, -5L).g()",
    ),
    (
        b"_D1t__T1fVwi4660Vui4660Vai7Vqc0A8P1c0B8PN1VPvnZ1gFZv",
        b"t.f.g",
        b"t.f!('\\U00001234', '\\u1234', '\\x07', 0x0.A8p1+0x0.B8p-1i, null).g",
        b"t.f!('\\U00001234', '\\u1234', '\\x07', 0x0.A8p1+0x0.B8p-1i, null).g()",
    ),
    (b"_D1t1fFiZv.part.0", b"t.f", b"t.f", b"t.f(int)"),
    (b"_D1t1fFiZv@@V", b"t.f", b"t.f", b"t.f(int)"),
    (b"__D1t1fFiZv", b"t.f", b"t.f", b"t.f(int)"),
]


@pytest.mark.parametrize(("name", "default", "templates", "full"), TABLE)
def test_modes(name: bytes, default: bytes, templates: bytes, full: bytes) -> None:
    """Parameters and arguments of templates are left out as the modes ask; functions around others keep `()` (R260)."""
    for mode, text in zip(names.MODES, (default, templates, full, name), strict=True):
        assert names.demangle([name], mode) == [text]


@pytest.mark.parametrize(
    "name", [b"_DYNAMIC", b"_D", b"_D1", b"_D3foo", b"_D1f0", b"_D1ti_x", b"_DTi16_D1t1fFiZv", b"_D1tQa"]
)
def test_other_names_stay_whole(name: bytes) -> None:
    """What only looks like a D name is left as linked."""
    assert names.demangle([name]) == [name]


def test_a_c_function_may_begin_like_a_d_name() -> None:
    """Its clone suffix goes as that of any other (R115)."""
    assert names.demangle([b"_Dfoo.cold", b"_DYNAMIC.part.1"]) == [b"_Dfoo", b"_DYNAMIC"]


HOSTILE = [
    b"_D1t1fF" + b"A" * 50_000 + b"iZv",
    b"_D1t" + b"__T1f" * 10_000,
    b"_D1t1fF" + b"P" * 100 + b"iZv",
    b"_D1t1fFB9" + b"i" * 9 + b"".join(b"B9" + b"QBa" * 9 for _ in range(40)) + b"Zv",
    b"_D1t1fFS9" + b"a" * 9 + b"".join(b"B4QfQhQjQl" for _ in range(2_000)) + b"Zv",
    b"_D1t1fFC50000" + b"a" * 50_000 + b"B999" + b"QBwxy" * 999 + b"Zv",
    b"_D1t__T1fS" + b"1" * 300 + b"a" * 300,
    b"_D1t1fFB999999999iZv",
    b"_D1t1fFG" + b"9" * 60_000 + b"iZv",
    b"_D" + b"0" * 60_000,
    b"_D1t" + b"1aFZ" * 15_000,
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_cost_little(name: bytes) -> None:
    """Depth, steps and text are limited whatever back references stand for (R260)."""
    text = dlang.demangle(name)
    assert text is None or len(text) <= dlang.MAX_OUTPUT


def test_nested_trials_do_not_double() -> None:
    """What a position gives is found out once, not twice for each trial around it (R260)."""
    part = b"eoutMFNdS4core4time8Dur"
    reader = dlang.DDemangler(b"_D3std4HTTP16operationTimeoutMFNdS4core4time8Dur" + part * 16 + b"onZv", True, True)
    with suppress(dlang._MalformedError):
        reader.mangled(True)
    assert reader.steps < 2000


PIECES = [
    b"Q",
    b"Qa",
    b"QBa",
    b"__T",
    b"Z",
    b"F",
    b"M",
    b"Nk",
    b"A",
    b"B2",
    b"S",
    b"V",
    b"H",
    b"1a",
    b"D",
    b"\xff",
    b"9",
]


@examples(300)
@given(st.data())
def test_damaged_names_are_read_or_refused(data: st.DataObject) -> None:
    """Whatever is done to a name, it has a bounded text or none, the same in all modes."""
    name = bytearray(data.draw(st.sampled_from(ROWS))[0])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(2, len(name)))
        name[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.one_of(st.sampled_from(PIECES), st.binary(max_size=2))
        )
    full = dlang.demangle(bytes(name))
    short = dlang.demangle(bytes(name), parameters=False, arguments=False)
    assert (full is None) == (short is None)
    assert full is None or short is None or len(short) <= len(full) <= dlang.MAX_OUTPUT
