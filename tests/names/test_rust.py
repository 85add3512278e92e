"""Rust names: the texts of rustc-demangle and llvm-cxxfilt, and names nobody meant well."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symbolize import names
from symbolize.core.cursor import COMPILED
from symbolize.names.rust import RustDemangler, is_legacy
from tests.support import interpreted
from tests.support.needs import needs_compiled
from tests.support.seeds import examples

GOLDEN = [
    name
    for line in Path(__file__).with_name("golden.tsv").read_bytes().splitlines()
    if (name := line.split(b"\t")[0]).startswith(b"_R") or is_legacy(name)
]


def read(name: bytes, generics: bool) -> bytes | None:
    text: bytes | None = RustDemangler().demangle(name, generics)
    return text


def both(name: bytes) -> tuple[bytes | None, bytes | None]:
    """The text without and with generic arguments."""
    return read(name, False), read(name, True)


@pytest.mark.parametrize("generics", [False, True])
def test_real_names_are_read(generics: bool) -> None:
    """No real name needs more than the grammar."""
    assert len(GOLDEN) > 50
    assert [name for name in GOLDEN if read(names.split_suffix(name)[0], generics) is None] == []


# Each stands for a part of the grammar.
SHAPES = [
    (b"_RNvC6_123foo3bar", b"123foo::bar", b"123foo::bar"),
    (b"_RNCNCNvC1a4mains_00B5_", b"a::main::{closure#1}::{closure#0}", b"a::main::{closure#1}::{closure#0}"),
    (b"_RNSNvC1a4main3abc", b"a::main::{shim:abc#0}", b"a::main::{shim:abc#0}"),
    (b"_RNYNvC1a4main1b", b"a::main::{Y:b#0}", b"a::main::{Y:b#0}"),
    (b"_RINvC1a3genFG0_RL1_hQL0_eERL1_hEB2_", b"a::gen::<>",
     b"a::gen::<for<'a, 'b> fn(&'a u8, &'b mut str) -> &'a u8>"),
    (b"_RINvC1a3genFK8C_unwindlEuEB2_", b"a::gen::<>", b'a::gen::<extern "C-unwind" fn(i32)>'),
    (b"_RINvC1a3genFUKCEuEB2_", b"a::gen::<>", b'a::gen::<unsafe extern "C" fn()>'),
    (b"_RINvC1a3cstKb1_Kc7e_Kln80000000_KpKoffffffffffffffff0_Kyffffffffffffffff_EB2_", b"a::cst::<>",
     b"a::cst::<true, '~', -2147483648, _, 0xffffffffffffffff0, 18446744073709551615>"),
    (b"_RINvC1a1fTTuEuEAhj8_SePcOzL_EB2_", b"a::f::<>",
     b"a::f::<(((),), ()), [u8; 8], [str], *const char, *mut !, '_>"),
    (b"_RNvMs0_NtC1a1bINtB5_1VmE3new", b"<a::b::V<>>::new", b"<a::b::V<u32>>::new"),
    (b"_RNvXs_C1aNtB4_1SNtNtC4core3fmt5Debug3fmt", b"<a::S as core::fmt::Debug>::fmt",
     b"<a::S as core::fmt::Debug>::fmt"),
    (b"_RNvYNtC1a1SINtC1b1TmE1f", b"<a::S as b::T<>>::f", b"<a::S as b::T<u32>>::f"),
    (b"_RINvC1a1fDG_INtB2_1TRL0_hEp3OutmNtB2_1ZEL_EB2_", b"a::f::<>",
     b"a::f::<dyn for<'a> a::T<&'a u8, Out = u32> + a::Z>"),
    (b"_RNvMC1aDNtB2_1Tp3OutmEL_1f", b"<dyn a::T<>>::f", b"<dyn a::T<Out = u32>>::f"),
    (b"_RNvMC1aDINtB2_1TmEp3OutmEL_1f", b"<dyn a::T<>>::f", b"<dyn a::T<u32, Out = u32>>::f"),
    (b"_RNvXNvMC1aDNtB5_1Tp3OutmEL_1fNtB5_1ZNtB5_1Y1g", b"<a::Z as a::Y>::g", b"<a::Z as a::Y>::g"),
    (b"_RNvC1a1b.llvm.123", b"a::b", b"a::b"),
    (b"_ZN3foo3bar17h0123456789abcdefE", b"foo::bar", b"foo::bar"),
    (b"_ZN34_$LT$a..B$u20$as$u20$c..D$GT$$u5b$1f17h0123456789abcdefE", b"<a::B as c::D>[::f",
     b"<a::B as c::D>[::f"),
    (b"_ZN3foo17h0123456789abcdefE.llvm.12aF", b"foo", b"foo"),
    (b"_ZN5a.$b$1$17h0123456789abcdefE", b"a.$b$::$", b"a.$b$::$"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "plain", "full"), SHAPES)
def test_shapes_of_names(name: bytes, plain: bytes, full: bytes) -> None:
    """Every part of the grammar is read (R116)."""
    assert both(name) == (plain, full)


FORMS = [line.split(b"\t") for line in (Path(__file__).parent / "modern" / "rust_forms.tsv").read_bytes().splitlines()]
"""A name or more for each form of paths, types and constants, printed or left out, with the text of llvm-cxxfilt 19."""


def test_every_form_reads_as_by_llvm() -> None:
    """Forms that real names seldom have have the text of llvm-cxxfilt."""
    assert {name: read(name, True) for name, _ in FORMS} == dict(FORMS)


RARE = [
    (b"_RNvC7mycrateu8gdel_5qa", "mycrate::g\u00f6del"),
    (b"_RNvC7mycrateu8gdel_5qa.llvm.99", "mycrate::g\u00f6del"),
    (b"_RNvC1au4_9caa", "a::\u00e9\u00e9"),
    (b"_RNvMNtC1au8gdel_5qaNtC1a1b1c", "<a::b>::c"),
    (b"_RINvC1a3cstKc27_EB2_", "a::cst::<'\\''>"),
    (b"_RINvC1a3cstKca_Kc5c_Kc9_Kcd_Kc7f_Kce9_Kc1f600_EB2_",
     "a::cst::<'\\n', '\\\\', '\\t', '\\r', '\\u{7f}', '\\u{e9}', '\\u{1f600}'>"),
    (b"_RNvMINtC1a1bFKCRL_hEuENtC1a1c1d", "<a::c>::d"),
    (b"_RNvMINtC1a1bFUK8C_unwindEuENtC1a1c1d", "<a::c>::d"),
    (b"_RNvMINtC1a1bFG_RL0_hEB4_ENtC1a1c1d", "<a::c>::d"),
    (b"_RNCNvC1a1bsfffffffff_0", "a::b::{closure#3328791773671367}"),
    (b"_ZN7$u20ac$17h0123456789abcdefE", "\u20ac"),
    (b"_ZN9a$u1f600$17h0123456789abcdefE", "a\U0001f600"),
    (b"_ZN7$ud800$17h0123456789abcdefE", "$ud800$"),
    (b"_ZN5$u80$17h0123456789abcdefE", "\x80"),
    (b"_ZN2\xc3\xa917h0123456789abcdefE", "\u00e9"),
    (b"_RNvC3000" + b"a" * 3000 + b"1b", "a" * 3000 + "::b"),
    (b"_RINvC1a1f" + b"T" * 200 + b"u" + b"E" * 201, "a::f::<" + "(" * 200 + "()" + ",)" * 200 + ">"),
    (b"_RINvC1a1f" + b"u" * 6000 + b"E", "a::f::<" + ", ".join(["()"] * 6000) + ">"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), RARE, ids=range(len(RARE)))
def test_rare_names(name: bytes, text: str) -> None:
    """Punycode, characters that are escaped, function types in what is not printed, and large names are read."""
    assert read(name, True) == text.encode()


BROKEN = [
    b"_RNvMINtC1a1bRL0_hEhNtB2_1c",  # a lifetime in a path that is not printed
    b"_RNvMNtC1a1b.arch_x",
    b"_RNvC1a1b.llvm.12@V",
    b"_RNvC1a1b.\xff",
    b"_RNvC1a9b",
    b"_RNvC1a",
    b"_RNvC1a1bE",
    b"_RINvC1a1fRL2_hEB2_",  # more lifetimes than are bound
    b"_RNvC1a1bB9_",  # a reference to what comes later
    b"_RINvC1a1fKaEE",
    b"_RINvC1a1fKa_EE",
    b"_R",
    b"_RC",
    b"_RC0",
    b"_ZN3foo017h0123456789abcdefE",
    b"_ZN4foo17h0123456789abcdefE",
    b"_ZN17h0123456789abcdefE",
    b"_ZN8a.arch_x17h0123456789abcdefE",
    b"_ZN3foo17h0123456789ABCDEFE",
    b"_ZN3foo17h0123456789abcdefE.llvm.",
    b"_ZN3foo17h0123456789abcdefE.llvm.x",
    b"_ZN3foo17h0123456789abcdefE.cold.llvm.1",
    b"_ZN8a.arch_x17h0123456789abcdefE.llvm.1",
]


@pytest.mark.parametrize("name", BROKEN, ids=range(len(BROKEN)))
def test_broken_names_have_no_text(name: bytes) -> None:
    """A malformed name is not read, with or without generic arguments (R116, R117)."""
    assert both(name) == (None, None)


def doubled(times: int) -> bytes:
    """A name with types that are pairs of the one before."""
    name = b"_RINvC1a1fTuuE"
    last = 8
    for _ in range(times):
        digits, rest = b"", last - 1
        while rest or not digits:
            rest, digit = divmod(rest, 62)
            digits = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[digit : digit + 1] + digits
        last = len(name) - 2
        name += b"TB%s_B%s_E" % (digits, digits)
    return name + b"E"


CRAFTED = [
    b"_RINvC1a1fFG" + b"z" * 30 + b"_uEuE",
    b"_RINvC1a1fTTTTTTTTTTTTuuEB9_B8_EB7_B7_EB6_B6_EB5_B5_EEEEEEEEEE",
    b"_RINvC1a1fT" + b"TB9_B9_E" * 400 + b"EE",
    b"_RINvC1a1f" + b"T" * 20_000 + b"E" * 20_001,
    b"_R" + b"Nv" * 30_000 + b"C1a",
    b"_RINvC1a1f" + b"FG3x_" * 10_000 + b"uE" * 10_001,
    b"_RNvC1au%d" % 60_000 + b"9" * 60_000,
    b"_RIC1aCu900_" + b"a" * 900 + b"B3_" * 20_000 + b"E",
    b"_RINvC1a1f" + b"Kc" + b"f" * 60_000 + b"_E",
    b"_RINvC1a1f" + b"Kj" + b"f" * 60_000 + b"_E",
    b"_RINvC1a1f" + b"DC1a" * 300 + b"EL_" * 300 + b"E",
    b"_RIC5000_" + b"a" * 5000 + b"B0_" * 15_000 + b"E",
    b"_ZN65000" + b"$" * 65_000 + b"17h0123456789abcdefE",
    b"_ZN65000" + b"$ue9" * 16_250 + b"17h0123456789abcdefE",
    doubled(40),
    b"_RINvC1a1bINtC1a1c" + b"L_" * 20_000 + b"ET" + b"B8_" * 60 + b"ET" + b"BaqG_" * 60 + b"EE",
]
"""Names of at most 64 KiB that ask for as much depth, text or time as they can."""


@pytest.mark.parametrize("name", CRAFTED, ids=range(len(CRAFTED)))
def test_crafted_names_cost_little(name: bytes) -> None:
    """No name takes more than a few megabytes, or a second on a busy machine where some take 0.1 s, compiled (R117)."""
    demangler = RustDemangler()
    tracemalloc.start()
    begun = time.process_time()
    for generics in (False, True):
        demangler.demangle(name, generics)
    spent = time.process_time() - begun
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20
    assert spent < 1 or not COMPILED


PIECES = [
    b"B_", b"B2_", b"B5_", b"I", b"E", b"L_", b"L0_", b"RL0_h", b"FG0_RL0_hEu", b"DNtB2_1aEL_", b"DINtB2_1abEp1cmEL_",
    b"p1xj", b"K", b"j0_", b"ln80_", b"c27_", b"Kc61_", b"oabcdef0123456789ff_", b"u3abc", b"s_", b"0", b"3foo", b"T",
    b"A", b"S", b"NC", b"Nv", b"FUKCEu", b"M", b"X", b"Y", b"C1a", b"..", b"$LT$", b"$u20$", b"$u80$", b"_$", b".",
    b"$", b"arch_", b"@", b".llvm.1", b"p", b"e", b"9", b"_", b"",
]  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """A real name with a few pieces put in, taken out or overwritten."""
    name = bytearray(draw(st.sampled_from(GOLDEN + [shape[0] for shape in SHAPES])))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(2, len(name)))
        end = min(len(name), at + draw(st.integers(0, 4)))
        name[at:end] = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=2)))
        if draw(st.integers(0, 9)) == 0:
            del name[at:]
    return bytes(name)


@examples(300)
@given(mutations())
@example(b"")
@example(b"_R")
def test_damaged_names_are_read_or_refused(name: bytes) -> None:
    """Whatever is done to a name, it is read with and without generic arguments or neither way (R117)."""
    plain, full = both(name)
    assert full is None or (plain is not None and len(plain) <= len(full))
    if full is not None:
        assert names.demangle([name, name], "full") == [full, full]
        assert names.demangle([name]) == [plain]


SCRIPT = """
import json, sys
from symbolize.core.cursor import COMPILED
from symbolize.names.rust import RustDemangler
assert not COMPILED
names = [name.encode("latin-1") for name in json.load(open(sys.argv[1]))]
texts = [RustDemangler().demangle(name, generics) for name in names for generics in (False, True)]
print(json.dumps([text if text is None else text.decode("latin-1") for text in texts]))
"""


@pytest.mark.process
@needs_compiled
@pytest.mark.full
def test_the_sources_give_the_same_answers(tmp_path: Path) -> None:
    """Compiled and interpreted demanglers agree."""
    cases = GOLDEN + [shape[0] for shape in (*SHAPES, *FORMS, *RARE)] + BROKEN + CRAFTED
    (tmp_path / "names.json").write_text(json.dumps([name.decode("latin-1") for name in cases]))
    (tmp_path / "read.py").write_text(SCRIPT)
    printed = interpreted.run(tmp_path, tmp_path / "read.py", str(tmp_path / "names.json"))
    answers = [None if text is None else text.encode("latin-1") for text in json.loads(printed)]
    assert answers == [read(name, generics) for name in cases for generics in (False, True)]
