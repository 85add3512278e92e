"""Names that are read off their grammar: the same text as by way of the C++ runtime, or no answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symbolize import names
from symbolize.cursor import COMPILED
from symbolize.names import itanium, itanium_fast, rust
from symbolize.names.simplify import drop_clone_notes, simplify
from tests.support.interpreted import load_source

GOLDEN = [
    line.split(b"\t")[0]
    for line in Path(__file__).with_name("golden.tsv").read_bytes().splitlines()
    if line.startswith(b"_Z")
]

needs_walker = pytest.mark.skipif(
    not COMPILED or itanium_fast.borrow() is None, reason="not compiled, or the C++ runtime is not libstdc++"
)


def by_runtime(name: bytes) -> bytes | None:
    """What the runtime and `simplify` make of a linkage name; None if it stays raw."""
    text = rust.demangle_legacy(name)
    if text is not None:
        return text
    text = itanium.demangle(name)
    return None if text is None else simplify(drop_clone_notes(text), keep_templates=False)


def agrees(name: bytes) -> bool:
    """Whether the walker has no answer, or that of the runtime; a name that it answers is safe to ask for."""
    text = walk(name)
    if text is None:
        return True
    limit, ask = itanium.runtimes()[0]
    full = ask(name) if len(name) <= limit else None
    return len(name) > limit if full is None else text == simplify(drop_clone_notes(full), keep_templates=False)


def walk(name: bytes) -> bytes | None:
    walker = itanium_fast.borrow()
    assert walker is not None
    text: bytes | None = walker.demangle(name)
    itanium_fast.give_back(walker)
    return text


@needs_walker
def test_most_real_names_need_no_runtime() -> None:
    """Real names are answered without the runtime, with the text that it leads to."""
    answers = {name: walk(name) for name in GOLDEN}
    answered = {name: text for name, text in answers.items() if text is not None}
    assert len(answered) > 0.9 * len(answers)
    assert answered == {name: by_runtime(name) for name in answered}


# Each was once read differently than by the runtime, or stands for a part of the grammar.
SHAPES = [
    (b"_ZN3foo3barEi", b"foo::bar"),
    (b"_ZL3fooi", b"foo"),
    (b"_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", b"std::operator<<"),
    (b"_ZNSsC1ERKSs", b"std::basic_string::basic_string"),
    (b"_ZNSaIcED2Ev", b"std::allocator::~allocator"),
    (b"_ZNK12_GLOBAL__N_11A1bB5cxx11Ev", b"(anonymous namespace)::A::b[abi:cxx11]"),
    (b"_ZZNK3foo3barEvENKUlPKcS1_RjE0_clES1_S1_S2_",
     b"foo::bar() const::{lambda(char const*, char const*, unsigned int&)#2}::operator()"),
    (b"_ZZ1fIJiNSt3setIcEEEEvDpT_E1x", b"f()::x"),
    (b"_ZN1AcvSt6vectorIiSaIiEEEv", b"A::operator std::vector"),
    (b"_ZThn16_N3foo3barERKSt6vectorIiSaIiEEi", b"non-virtual thunk to foo::bar(std::vector const&, int)"),
    (b"_ZTVN3fooI3barEE", b"vtable for foo"),
    (b"_ZGVZ1fvE1x", b"guard variable for f()::x"),
    (b"_Z1fI1AENSt9enable_ifIXoosr3stdE1vIT_Esr1AIiEE1bEvE4typeES2_", b"f"),
    (b"_Z1fI1AENSt9enable_ifIXaasrT_1bntsrSt8is_arrayIT_E5valueEvE4typeES2_", b"f"),
    (b"_Z1fI1AENSt9enable_ifIX6is_ok_IT_EEvE4typeES2_S3_", b"f"),
    (b"_Z1fILi3EENSt9enable_ifIXeqT_Li4EEvE4typeEv", b"f"),
    (b"_Z5beginI1AEDTcldtfp_5beginEERT_", b"begin"),
    (b"_Z1fIiEPDTplfp_Li1EET_", b"f"),
    (b"_ZN1AC2Ev", b"A::A"),
    (b"_ZN1ACI2N1B1CIiEEEi", b"A::C"),
    (b"_ZN1ACI1St1BEi", b"A::B"),
    (b"_ZNK1AcvRKmEv", b"A::operator unsigned long const&"),
    (b"_ZNSt4pairIK1AN1B1CEEC2IJRS1_EJEEESt21piecewise_construct_tSt5tupleIJDpT_EES8_IJDpT0_EE", b"std::pair::pair"),
]  # fmt: skip


@needs_walker
@pytest.mark.parametrize(("name", "text"), SHAPES)
def test_shapes_of_names(name: bytes, text: bytes) -> None:
    """Every part of the grammar that needs no runtime gives the text of the runtime."""
    assert by_runtime(name) == text
    assert walk(name) == text


@needs_walker
def test_names_that_the_runtime_is_not_asked_for() -> None:
    """A name is answered by what it stands for, not by how many back references and packs it has (R117).

    The runtime takes no more than 1024 characters, and is not asked for names that look as if they could explode.
    """
    construct = (
        b"_ZNSt16allocator_traitsIN7mempool14pool_allocatorILNS0_12pool_index_tE23ESt13_Rb_tree_nodeISt4pairIK4pg_tSt6"
        b"vectorIiNS1_ILS2_23EiEEEEEEEE9constructISA_JRKSA_EEEDTcl12_S_constructfp_fp0_spcl7forwardIT0_Efp1_EEERSC_PT_"
        b"DpOSH_"
    )
    assert itanium.demangle(construct) is None
    assert agrees(construct)
    long = b"_ZN1AI" + b"N4name5innerE" * 200 + b"E1fEv"
    assert len(long) > 1024
    assert names.demangle([construct, long]) == [b"std::allocator_traits::construct", b"A::f"]


TRAPS = [
    b"_ZN1AEvi",  # text behind the only parameter that may be void is read, but `E` ends nothing
    b"_ZN1A1bES0_",  # fewer substitutions than referred to
    b"_Z1fIiEvT0_",  # fewer arguments than parameters
    b"_Z1fIJEEvT_",  # a pack that is not expanded
    b"_Z1fIJiEJicEEvDpSt4pairIT_T0_E",  # packs of two lengths
    b"_Z1fv" + b"E",
    b"_Z1fi.",
    b"_Z1f",
    b"_Z9f",
    b"_ZN1A8operatorEv",
    b"_ZN1A10xdecltypeE(",
    b"_ZN1AltIiE1BE",
    b"_ZN1A12_GLOBAL__N_1Ev",
    b"_Z1fN1A12_GLOBAL__N_1E",
    b"_ZNSt12_GLOBAL__N_11AIJS_IJEEEE1bIS0_EEvv",
    b"_ZZltiE1x",
    b"_ZZlt1AiE1x",
    b"_ZNrsERm",
    b"_Z1fILN1A1BE2EET_i",  # the return type is a value
    b"_Z1gIXadL_Z3foovEEET_i",
    b"_ZThn8_N1A1B1CEPKNS_1DEPKNS2_1EEPNS_1FE",  # a scope with a qualifier
    b"_Z1fPFvvES_IiE",  # template arguments of a function type
    b"_ZNmiI1AS0_E1bES0_",
    b"_ZN1AmiISt3setIS0_EEEvi",
    b"_ZN1AIiE12_GLOBAL__N_1C1IiEET_",
    b"_ZNK1A1bE",
    b"_Z1fIiEN1AIXsrE4typeET_",
    b"_Z1fIiEN1AIXsr3stdEE4typeET_",
    b"_Z1fIiEN1AIXsr3std1vEE4typeET_",
    b"_Z1fIiEN1AIXsrT0_1vEE4typeET_",
    b"_Z1fIiEN1AIXaasrT_1vEE4typeET_",
    b"_Z1fIiEN1AIXltsrT_1vLi4EEE4typeET_",  # a text that looks like the start of template arguments
    b"_Z1fIJicEEN1AIXsrT_1vEE4typeEv",  # a pack that is not expanded
    b"_Z1fIiEvKDTcl1gfp_EET_",
    b"_Z1fIiEDTcl1gfp_ET_",
    b"_Z1fIiEN1AIXLZN1BcvT_EvEEE4typeES1_",
    b"_ZN1ACI2S_Ei",
    b"_ZN1ACI2Ei",
    b"_ZN1ACI2iEi",
    b"_ZN1ACI23fooIiEEi",
    b"_ZZ1fvENKUlT_E_clIiEEDaS0_",
    b"_Z1fRA3_RiRS0_",
    b"_ZThn8_N1A1bEPKNS_1CEPKS2_",  # what is const already becomes const
    b"_Z1f" + b"P" * 900 + b"i",
    b"_Z1f" + b"i" * 700,
    b"_Z1f" + b"1AIPS_" * 40 + b"E" * 40,
    b"_Z1fSt4pairIiiE" + b"S_IS0_S0_E" + b"".join(b"S_IS%d_S%d_E" % (i, i) for i in range(1, 9)) * 4,
    b"_ZN4core3ptr4drop17h0123456789abcdefE",
]


@needs_walker
@pytest.mark.parametrize("name", TRAPS)
def test_what_only_the_runtime_knows_is_left_to_it(name: bytes) -> None:
    """A name that is wrong, deep, long or odd is not answered differently than by the runtime (R117)."""
    assert agrees(name)


PIECES = [
    b"S_", b"S0_", b"S1_", b"T_", b"T0_", b"DpOT_", b"I", b"E", b"J", b"N", b"K", b"P", b"R", b"O", b"v",
    b"i", b"z", b"C1", b"D0", b"St", b"Ss", b"Sa", b"Z", b"3foo", b"UlvE_", b"UliE0_", b"Ut_", b"Li5E", b"XT_E", b"F",
    b"A3_", b"M", b"V", b"L", b"B3tag", b"cl", b"lt", b"cv", b"_", b"0", b"n", b"TV", b"GV", b"Th8_", b"8operator",
    b"12_GLOBAL__N_1", b"NS_", b"XadL_Z3foovEE", b"IiE", b"PFvvE", b"_0", b"sr", b"srT_1b",
    b"sr3stdE1vIT_E", b"aa", b"nt", b"eq", b"XsrSt1aIT_E1bE", b"X1aIT_EE", b"DTcl1gfp_EE", b"spT_", b"spcl1gIT_Efp_E",
    b"dtfp_1a", b"CI21B", b"CI1N1A1BE", b"cvRi", b"Li5E", b"DpT_",
]  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """A real name with a few pieces put in, taken out or overwritten."""
    name = bytearray(draw(st.sampled_from(GOLDEN)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(2, len(name)))
        end = min(len(name), at + draw(st.integers(0, 5)))
        piece = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=2), st.just(b"")))
        name[at:end] = piece
        if draw(st.integers(0, 9)) == 0:
            del name[at:]
    return bytes(name)


@needs_walker
@settings(max_examples=300, deadline=None)
@given(mutations())
@example(b"_Z")
@example(b"")
def test_damaged_names_are_answered_as_by_the_runtime(name: bytes) -> None:
    """Whatever is done to a name, it is answered as before or not at all (R117)."""
    assert agrees(name)


@needs_walker
def test_the_sources_give_the_same_answers() -> None:
    """Compiled and interpreted walkers agree."""
    interpreted = load_source("names/itanium_fast").Walker()
    cases = GOLDEN[::3] + [name for name, _ in SHAPES] + TRAPS
    assert [interpreted.demangle(name) for name in cases] == [walk(name) for name in cases]


def test_another_runtime_keeps_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the runtime prints closures otherwise, names come from it alone."""
    monkeypatch.setattr(itanium, "_demanglers", lambda: ((1024, lambda name: b"x::'lambda'()::f(int)"),))
    assert names.demangle([b"_ZN3foo3barEv"]) == [b"x::'lambda'()::f"]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (b"_ZN3fooC1Ev", b"_ZN3fooC2Ev", True),
        (b"_ZN3fooI2C1EC1IiEET_", b"_ZN3fooI2C1EC2IiEET_", True),
        (b"_ZN3fooI2C1EC1IiEET_", b"_ZN3fooI2C2EC1IiEET_", False),
        (b"_ZN3fooD0Ev", b"_ZN3fooD2Ev", True),
        (b"_ZN3fooD0Ev", b"_ZN3fooD3Ev", False),
        (b"_ZN3fooC1Ev", b"_ZN3fooC1Ei", False),
        (b"_ZN3foo2C1Ev", b"_ZN3foo2C2Ev", False),
        (b"_ZN3foo3barEv", b"_ZN3foo3bazEv", False),
    ],
)
def test_variants_of_constructors_are_one_function(a: bytes, b: bytes, same: bool) -> None:
    """Names are one function if their full texts are equal (R115)."""
    assert names.same_function(a, b) is same
    assert names.same_function(b, a) is same
