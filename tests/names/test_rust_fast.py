"""Rust names that are read off their grammar: the same text as by way of rust-demangler, or no answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symbolize import names
from symbolize.names import rust, rust_fast
from symbolize.names.suffixes import split_suffix
from tests.support.interpreted import load_source

GOLDEN = [
    name
    for line in Path(__file__).with_name("golden.tsv").read_bytes().splitlines()
    if (name := line.split(b"\t")[0]).startswith(b"_R") or rust.demangle_legacy(name) is not None
]


def by_library(name: bytes, generics: bool) -> bytes | None:
    """What is answered without the walker; None if the name stays raw."""
    base, _ = split_suffix(name)
    return rust.demangle_v0(base, generics) if name.startswith(b"_R") else rust.demangle_legacy(base)


def walk(name: bytes, generics: bool) -> bytes | None:
    walker = rust_fast.borrow()
    text: bytes | None = walker.demangle(name, generics)
    rust_fast.give_back(walker)
    return text


@pytest.mark.parametrize("generics", [False, True])
def test_most_names_need_no_library(generics: bool) -> None:
    """Names are answered without the library, with the text that it gives."""
    answers = {name: walk(name, generics) for name in GOLDEN}
    answered = {name: text for name, text in answers.items() if text is not None}
    assert len(answered) > 0.8 * len(answers)
    assert answered == {name: by_library(name, generics) for name in answered}


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
    """Every part of the grammar that needs no library gives the text of the library."""
    assert (walk(name, False), walk(name, True)) == (plain, full)
    assert (by_library(name, False), by_library(name, True)) == (plain, full)


TRAPS = [
    b"_RNvC7mycrateu8gdel_5qa",  # Punycode
    b"_RINvC1a3cstKc27_EB2_",  # a character that is escaped
    b"_RNvMINtC1a1bRL0_hEhNtB2_1c",  # a lifetime in a path that is not printed
    b"_RNvMNtC1a1b.arch_x",
    b"_RNvC1a1b.llvm.12@V",
    b"_RNvC1a1b.\xff",
    b"_RNvC1a9b",
    b"_RNvC1a",
    b"_RNvC1a1bE",
    b"_RINvC1a1fRL2_hEB2_",  # more lifetimes than are bound
    b"_RNvC1a1bB9_",  # a reference to what comes later
    b"_RINvC1a1fFG" + b"z" * 30 + b"_uEuE",
    b"_RINvC1a1fTTTTTTTTTTTTuuEB9_B8_EB7_B7_EB6_B6_EB5_B5_EEEEEEEEEE",
    b"_RINvC1a1f" + b"T" * 200 + b"u" + b"E" * 201,
    b"_RINvC1a1f" + b"u" * 6000 + b"E",
    b"_RINvC1a1fT" + b"TB9_B9_E" * 400 + b"EE",
    b"_RNvC3000" + b"a" * 3000 + b"1b",
    b"_RINvC1a1fKaEE",
    b"_RINvC1a1fKa_EE",
    b"_R",
    b"_RC",
    b"_RC0",
    b"_ZN3foo017h0123456789abcdefE",
    b"_ZN4foo17h0123456789abcdefE",
    b"_ZN17h0123456789abcdefE",
    b"_ZN7$u20ac$17h0123456789abcdefE",
    b"_ZN8a.arch_x17h0123456789abcdefE",
    b"_ZN3foo17h0123456789ABCDEFE",
    b"_ZN3foo17h0123456789abcdefE.llvm.",
    b"_ZN3foo17h0123456789abcdefE.llvm.x",
    b"_ZN3foo17h0123456789abcdefE.cold.llvm.1",
    b"_ZN8a.arch_x17h0123456789abcdefE.llvm.1",
]


@pytest.mark.parametrize("name", TRAPS)
def test_what_is_rare_or_wrong_is_left_to_the_library(name: bytes) -> None:
    """A name that is wrong, deep, long or rare is not answered differently (R116, R117)."""
    for generics in (False, True):
        assert walk(name, generics) in (None, by_library(name, generics))


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


@settings(max_examples=300, deadline=None)
@given(mutations(), st.booleans())
@example(b"", True)
@example(b"_R", False)
def test_damaged_names_are_answered_as_by_the_library(name: bytes, generics: bool) -> None:
    """Whatever is done to a name, it is answered as by the library or not at all (R117)."""
    text = walk(name, generics)
    if text is not None:
        assert text == by_library(name, generics)
        assert names.demangle([name], "full" if generics else "default") == [text]


def test_the_sources_give_the_same_answers() -> None:
    """Compiled and interpreted walkers agree."""
    interpreted = load_source("names/rust_fast").Walker()
    cases = GOLDEN + [shape[0] for shape in SHAPES] + TRAPS
    for generics in (False, True):
        assert [interpreted.demangle(name, generics) for name in cases] == [walk(name, generics) for name in cases]
