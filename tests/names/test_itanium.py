"""C++ names: the same texts as the C++ runtime of GCC, and those of names that are newer than it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symbolize import names
from symbolize.names import demangling, itanium_printer
from symbolize.names.rust import is_legacy
from symbolize.names.simplify import drop_clone_notes, simplify
from tests.support import cxx_runtime, interpreted
from tests.support.needs import needs_compiled
from tests.support.seeds import examples
from tools.names.make_modern import REASONS, UNKNOWN, plain

GOLDEN = [
    line.split(b"\t")[0]
    for line in Path(__file__).with_name("golden.tsv").read_bytes().splitlines()
    if line.startswith(b"_Z")
]
MODERN = [
    tuple(line.split(b"\t")) for line in (Path(__file__).parent / "modern" / "modern.tsv").read_bytes().splitlines()
]
DEFAULT, TEMPLATES, FULL = itanium_printer.DEFAULT, itanium_printer.TEMPLATES, itanium_printer.FULL


def read(name: bytes, mode: int = DEFAULT) -> bytes | None:
    text: bytes | None = demangling.CppDemangler().demangle(name, mode)
    return text


def by_runtime(name: bytes) -> bytes | None:
    """The full text of a name by libstdc++, without notes on clones."""
    text = cxx_runtime.demangle(name)
    return None if text is None else drop_clone_notes(text)


# What libstdc++ 12 has wrong: a parameter that is a lambda is inside out if the lambda takes a pointer to a function.
INSIDE_OUT = b"_ZNSt8functionIFiPFidERA3_iEEC1IZ4mainEUlS1_S3_E9_vEEOT_"


@pytest.mark.needs("libstdc++.so.6")
def test_real_names_read_as_by_the_runtime() -> None:
    """Real names have the full text that libstdc++ gives them."""
    expected = {name: by_runtime(name) for name in GOLDEN if not is_legacy(name) and name != INSIDE_OUT}
    assert {name: read(name, FULL) for name in expected} == expected


def test_modes_agree() -> None:
    """What the modes print of the tree is what is left of the full text when it is shortened as text (R258)."""
    cases = [*GOLDEN, *(row[0] for row in MODERN), *(name for name, _ in SHAPES)]
    texts = {name: text for name in cases if (text := read(name, FULL)) is not None}
    assert len(texts) > 500
    assert {name: read(name, DEFAULT) for name in texts} == {
        name: simplify(text, keep_templates=False) for name, text in texts.items()
    }
    assert {name: read(name, TEMPLATES) for name in texts} == {
        name: simplify(text, keep_templates=True) for name, text in texts.items()
    }


@pytest.mark.parametrize("row", MODERN, ids=lambda row: row[0].decode())
def test_names_of_new_features(row: tuple[bytes, ...]) -> None:
    """Names of C++20 to C++26 are read; their texts are those of llvm-cxxfilt 19 up to style (R259)."""
    name, llvm, full, default, how = row
    assert names.demangle([name], "full") == [full]
    assert names.demangle([name], "default") == [default]
    if how == b"equal":
        assert full == llvm
    elif how == b"style":
        assert plain(full) == plain(llvm)
    else:
        assert how.decode() == REASONS.get(name, UNKNOWN)


def test_the_table_of_new_features_is_large_enough() -> None:
    """A hundred names, of which all but some are equal but for style."""
    assert len(MODERN) > 100
    assert sum(row[4] in (b"equal", b"style") for row in MODERN) > 0.8 * len(MODERN)


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
    (b"_ZTv0_n24_N1A1fEv", b"virtual thunk to A::f()"),
    (b"_ZTcv0_n24_h32_N1A1fEv", b"covariant return thunk to A::f()"),
    (b"_Z1fIKiEvRKT_", b"f"),
    (b"_Z1fIVKiEvRVKT_", b"f"),
    (b"_ZTVN3fooI3barEE", b"vtable for foo"),
    (b"_ZGVZ1fvE1x", b"guard variable for f()::x"),
    (b"_Z1fI1AENSt9enable_ifIXoosr3stdE1vIT_Esr1AIiEE1bEvE4typeES2_", b"f"),
    (b"_Z1fI1AENSt9enable_ifIXaasrT_1bntsrSt8is_arrayIT_E5valueEvE4typeES2_", b"f"),
    (b"_Z1fI1AENSt9enable_ifIX6is_ok_IT_EEvE4typeES2_S3_", b"f"),
    (b"_Z1fILi3EENSt9enable_ifIXeqT_Li4EEvE4typeEv", b"f"),
    (b"_Z5beginI1AEDTcldtfp_5beginEERT_", b"begin"),
    (b"_Z1fIiEPDTplfp_Li1EET_", b"f"),
    (b"_Z1fI1SENDTcvT__EE4typeES1_", b"f"),
    (b"_Z1gI1SENDtfp_E4typeET_", b"g"),
    (b"_ZN1AC2Ev", b"A::A"),
    (b"_ZN1ACI2N1B1CIiEEEi", b"A::C"),
    (b"_ZN1ACI1St1BEi", b"A::B"),
    (b"_ZNK1AcvRKmEv", b"A::operator unsigned long const&"),
    (b"_ZNSt4pairIK1AN1B1CEEC2IJRS1_EJEEESt21piecewise_construct_tSt5tupleIJDpT_EES8_IJDpT0_EE", b"std::pair::pair"),
    (b"_ZNSaC1Ev", b"std::allocator::allocator"),
    (b"_ZN10_GLOBAX__N1xE", b"_GLOBAX__N::x"),
    (b"_ZN1AUt_1fEv", b"A::{unnamed type#1}::f"),
    (b"_ZZ1fvENUt0_1gEv", b"f()::{unnamed type#2}::g"),
    (b"_ZZZ1fvENK1A1gEvE1x__12_", b"f()::A::g() const::x"),
    (b"_ZNKR1A1fEv", b"A::f"),
    (b"_Z1fIFviEET_v", b"f"),
    (b"_ZSt3fooIvPFvvEET_T0_", b"std::foo"),
    (b"_Z1fIPFviEERKT_v", b"f"),
    (b"_Z1fPU3addILi3EEi", b"f"),
    (b"_Z1fPDwicEFvvE", b"f"),
    (b"_Z1fPDoDxFvvE", b"f"),
    (b"_ZTAXtl1ALi1EEE", b"template parameter object for A{1}"),
    (b"_Z1fILb1EEvDTtrE", b"f"),
    (b"_Z1fIXadL_ZN1A1fEvEEEvv", b"f"),
    (b"_Z1fIiEDTpp_fp_ET_", b"f"),
    (b"_Z1fIiEDTixfp_Li0EET_", b"f"),
    (b"_Z1fIiEDTu5__footT_EET_", b"f"),
    (b"_Z1fIiEDTclgs1xfp_EET_", b"f"),
    (b"_Z1fIiEDTdtfp_gs1xET_", b"f"),
    (b"_Z1fIiEDTcl1xB3tagfp_EET_", b"f"),
    (b"_Z1fIiEDTnw_T_ilLi1EEES0_", b"f"),
    (b"_Z1fIJicEEv1AIXsPDpT_Li3EEEE", b"f"),
    (b"_ZN1A1fIiEEDTptfpT1xET_", b"A::f"),
    (b"_Z1fIiEDTtl1Adi1xdxLi0ELi1EEET_", b"f"),
    (b"_Z1fIiEDTtl1AdXLi0ELi3ELi1EEET_", b"f"),
]  # fmt: skip


@pytest.mark.needs("libstdc++.so.6")
@pytest.mark.parametrize(("name", "text"), SHAPES)
def test_shapes_of_names(name: bytes, text: bytes) -> None:
    """Every part of the grammar gives the text of the runtime."""
    assert read(name) == text
    assert read(name, FULL) == by_runtime(name)


@pytest.mark.needs("libstdc++.so.6")
@pytest.mark.parametrize(
    "name",
    [
        b"_ZZ4mainENKUlT_E_clIiEEDaS_",
        b"_ZZZ4mainENKUlT_E_clIiEEDaS_ENKUlvE_clEv",
        b"_Z1gIXadL_ZZ1fvEN1A1hIiEEDaT_EEEvv",
        b"_Z1gIXadL_ZZ4mainENKUlT_E_clIiEEDaS_EEEvv",
    ],
)
def test_types_that_local_functions_return(name: bytes) -> None:
    """One is shown of the outermost function alone, where it cannot be taken for that of another one."""
    assert read(name, FULL) == by_runtime(name)


CALL_ONCE = (
    b"std::call_once<void (std::thread::*)(), std::thread*>"
    b"(std::once_flag&, void (std::thread::*&&)(), std::thread*&&)::{lambda()#1}"
)

# name, full text, and why no other reader's is taken
BETTER = [
    # The argument of a parameter is that of the function that is printed: compilers take the first parameters of all
    # templates for one type that can be referred back to. libstdc++ and llvm-cxxfilt: `void (std::thread::*&)()`.
    (
        b"_ZSt11__addressofIZSt9call_onceIMSt6threadFvvEIPS1_EEvRSt9once_flagOT_DpOT0_EUlvE_EPS7_RS7_",
        CALL_ONCE + b"* std::__addressof<" + CALL_ONCE + b">(" + CALL_ONCE + b"&)",
    ),
    # Behind `srN` GCC writes a type that can be referred back to, Clang does not: libstdc++ has the second wrong,
    # llvm-cxxfilt the first.
    (
        b"_Z1fI1AEN2enIXsrNT_3fooE3barEvE4typeES2_PS2_PS3_PS6_",
        b"en<A::foo::bar, void>::type f<A>(A, A*, A::foo*, A**)",
    ),
    (
        b"_Z1fI1AEN2enIXsrNT_3fooE3barEvE4typeES2_PS2_PNS2_3fooEPS5_",
        b"en<A::foo::bar, void>::type f<A>(A, A*, A::foo*, A**)",
    ),
    # llvm-cxxfilt cannot read GCC's way to write a scope behind `sr`.
    (
        b"_Z1hI1AEN2enIXsr3is2IT_E5valueEvE4typeES3_PS3_PS4_S8_PS7_",
        b"en<is2<A>::value, void>::type h<A>(A, A*, is2<A>*, is2<A>*, A**)",
    ),
    # No commas around packs without elements, which libstdc++ prints.
    (b"_ZN1AIJEiE1fEv", b"A<int>::f()"),
    (b"_Z1fIJEEvDpT_i", b"void f<>(int)"),
    # A constructor has no return type, with ABI tags neither; libstdc++ takes the first parameter for one.
    (b"_ZN1AIcEC1B3tagIiEEPcmPT_", b"A<char>::A[abi:tag]<int>(char*, unsigned long, int*)"),
    # An old pack behind a pointer is no list of arguments of a template.
    (
        b"_ZSt8__invokeIMSt6threadFvvEIPS0_EENSt15__invoke_resultIT_IDpT0_EE4typeEOS5_DpOS6_",
        b"std::__invoke_result<void (std::thread::*)(), std::thread*>::type std::__invoke<void (std::thread::*)(), "
        b"std::thread*>(void (std::thread::*&&)(), std::thread*&&)",
    ),
    # In the constraint of a parameter `T_` is of the class, but what refers back to it is of the function.
    (b"_ZN1AIiE1kITk1DIT_EcEEvS3_", b"void A<int>::k<char>(char)"),
    (b"_ZN1AIiE1wIcTk1EITL0__XstT_EElEEvS4_T0_", b"void A<int>::w<char, long>(char, long)"),
    (
        INSIDE_OUT,
        b"std::function<int (int (*)(double), int (&) [3])>::function<main::{lambda(int (*)(double), int (&) [3])#11}, "
        b"void>(main::{lambda(int (*)(double), int (&) [3])#11}&&)",
    ),
    # What libstdc++ does not know or takes for something else, or what reads otherwise as a text than as a tree.
    (b"_ZZ1fvEUb_", b"f()::{block}"),
    (b"_ZZ1fvEs_0", b"f()::string literal"),
    (b"_Z1fTs1ATu1BTe1C", b"f(struct A, union B, enum C)"),
    (b"_Z1fDF32x", b"f(_Float32x)"),
    (b"_Z1fIJicEEvDyT_Li0E", b"void f<int, char>(int...[0])"),
    (b"_Z1fI1AiEvDTclT_IiEEE", b"void f<A, int>(decltype ((A<int>)()))"),
    (b"_Z1fIiEDTcl1gLA3_KcEEET_", b'decltype (g("<char const [3]>")) f<int>(int)'),
    (b"_Z1fIXadsoiL_Z1xEn8_1_2pEEEvv", b"void f<&(x.<int at offset -8>)>()"),
    (b"_ZZW3foo1fvES_1x", b"f@foo()::x@foo"),
    (b"_ZW3foo1fS_1AS_1BIiE", b"f@foo(A@foo, B@foo<int>)"),
    # Constraints: of two parameters by one concept, of a lambda, and of a member of a template by both's arguments.
    (b"_Z1fITk1CIiEcTkS_IiEdEvT_T0_", b"void f<char, double>(char, double)"),
    (
        b"_ZZ4mainENKUlTyTyQsr3stdE1aT_E_clIiiEEDaS_",
        b"auto main::{lambda<typename $T0, typename $T1>($T0)#1}::operator()<int, int>(int) const",
    ),
    (
        b"_ZZ1fvENKUlTyT_Q1CIS_EE_clIiEEDaS_",
        b"auto f()::{lambda<typename $T0>($T0)#1}::operator()<int>(int) const",
    ),
    (b"_ZN1AIiE1fIcEEvT_Q1CIT_TL0__E", b"void A<int>::f<char>(char) requires C<int, char>"),
]


# In the type of a value `T_` is a parameter of the innermost template, as in a signature: clang 19 and 22.
OF_VALUES = [
    (b"_ZN1AIiE1tIlTnDTplcvT__Ecvi_EELl3EEEvS2_", b"void A<int>::t<long, 3l>(long)"),
    (b"_ZN1AIiE1tIlcTnDTplcvT0__EcvT__EELl3EEEvS2_S3_", b"void A<int>::t<long, char, 3l>(char, long)"),
    (
        b"_ZNSt5tupleIJiEEC2IJiELb1ETnNSt9enable_ifIXclsr4_TCCIXT0_EEE29__is_implicitly_constructibleIDpT_EEEbE4typeELb1"
        b"EEEDpOS3_",
        b"std::tuple<int>::tuple<int, true, true>(int&&)",
    ),
    (
        b"_ZNSt5tupleIJldEEC2IifTnNSt9enable_ifIXclsr4_TCCILb1EEE29__is_implicitly_constructibleIT_T0_EEEbE4typeELb1EEEOSt"
        b"4pairIS3_S4_E",
        b"std::tuple<long, double>::tuple<int, float, true>(std::pair<int, float>&&)",
    ),
    (
        b"_ZNSt3__116allocator_traitsINS_9allocatorIcEEE9constructB9nie220108IcJRKcETnNS_9enable_ifIXnt17__has_construct_v"
        b"IS2_PT_DpT0_EEiE4typeELi0EEEvRS2_S9_DpOSA_",
        b"void std::__1::allocator_traits<std::__1::allocator<char> >::construct[abi:nie220108]<char, char const&, 0>("
        b"std::__1::allocator<char>&, char*, char const&)",
    ),
]


@pytest.mark.parametrize(("name", "text"), OF_VALUES, ids=range(len(OF_VALUES)))
def test_types_of_values_of_constrained_templates(name: bytes, text: bytes) -> None:
    """Templates with declared values, as of constrained constructors, are read with the right parameters."""
    assert read(name, FULL) == text


def test_constraints_of_no_known_parameter() -> None:
    """What refers back to a parameter of a constraint that no template has is no name."""
    assert read(b"_ZN1AIiE1kITk1DIT5_EcEEvT_", FULL) == b"void A<int>::k<char>(char)"
    assert read(b"_ZN1AIiE1kITk1DIT5_EcEEvS3_", FULL) is None


@pytest.mark.parametrize(("name", "text"), BETTER, ids=range(len(BETTER)))
def test_names_that_other_readers_have_wrong(name: bytes, text: bytes) -> None:
    """A name says what the compiler meant, also where other readers are mistaken (R259)."""
    assert read(name, FULL) == text


def test_names_that_the_runtime_refuses() -> None:
    """A name is answered by what it stands for, not by how long it is or how it looks (R117)."""
    construct = (
        b"_ZNSt16allocator_traitsIN7mempool14pool_allocatorILNS0_12pool_index_tE23ESt13_Rb_tree_nodeISt4pairIK4pg_tSt6"
        b"vectorIiNS1_ILS2_23EiEEEEEEEE9constructISA_JRKSA_EEEDTcl12_S_constructfp_fp0_spcl7forwardIT0_Efp1_EEERSC_PT_"
        b"DpOSH_"
    )
    long = b"_ZN1AI" + b"N4name5innerE" * 200 + b"E1fEv"
    assert len(long) > cxx_runtime.MAX_NAME
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


# Traps that are read all the same; libstdc++ makes other texts of them, or none.
READ_TRAPS = {
    b"_Z1fIJEEvT_": b"void f<>()",
    b"_ZThn8_N1A1B1CEPKNS_1DEPKNS2_1EEPNS_1FE": (
        b"non-virtual thunk to A::B::C(A::D const*, A::D const::E const*, A::F*)"
    ),
    b"_ZNK1A1bE": b"A::b",
}


@pytest.mark.needs("libstdc++.so.6")
@pytest.mark.parametrize("name", TRAPS)
def test_odd_names(name: bytes) -> None:
    """A name that is wrong, deep, long or odd is refused, or read as the runtime reads it (R117)."""
    text = read(name, FULL)
    assert text in (None, READ_TRAPS.get(name, by_runtime(name)))


DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
COSTLY = [
    b"_Z1fSt4pairIiiE" + b"S_IS0_S0_E" + b"".join(b"S_IS%c_S%c_E" % (digit, digit) for digit in DIGITS),
    b"_Z1fIJ" + b"i" * 3000 + b"EEv" + b"DpT_" * 15_000,
    b"_Z1fI" + b"i" * 20_000 + b"Ev" + b"T9999_" * 5_000,
    b"_Z1fIJ" + b"JiEJjE" * 2_000 + b"EEvDpDpT_",
    b"_Z1fIJ" + b"i" * 2_000 + b"EEv" + b"N1aIXsZT_EE1bE" * 3_000,
    b"_Z1fIiEDTsrNT_3fooE3barE" + b"NT_3barE" * 7_000,
    b"_ZZ1fIJiEEvvENKUl" + b"DpT_" * 5_000 + b"E_clIJ" + b"i" * 3_000 + b"EEEDaDpT_",
    b"_ZN1AcvT_IS1_EEv",
    b"_ZcvT_IT_Ev",
]


@pytest.mark.parametrize("name", COSTLY, ids=range(len(COSTLY)))
@pytest.mark.parametrize("mode", [DEFAULT, TEMPLATES, FULL])
def test_no_name_costs_much(name: bytes, mode: int) -> None:
    """Steps and text are limited whatever a name refers back to (R117)."""
    text = read(name, mode)
    assert text is None or len(text) <= 1 << 20


def test_a_mistake_in_front_of_an_unresolved_name_counts() -> None:
    """Reading an `sr` name in another way does not hide that what precedes it is malformed."""
    assert read(b"_Z1fUa9enable_ifIXdt1xsr1aIiE1bEEv", FULL) == b"f() [enable_if:x.a<int>::b]"
    assert read(b"_Z1fUa9enable_ifIXdtT_sr1aIiE1bEEv", FULL) is None  # there is no template parameter


def test_what_costs_too_much_is_told_from_what_is_wrong() -> None:
    """The C++ runtime is not asked for a name that was refused for its cost (R117)."""
    reader = demangling.CppDemangler()
    assert reader.demangle(COSTLY[0], FULL) is None
    assert reader.gave_up()
    assert reader.demangle(b"_Z1fT_", FULL) is None
    assert not reader.gave_up()
    assert reader.demangle(COSTLY[0], DEFAULT) == b"f"


PIECES = [
    b"S_", b"S0_", b"S1_", b"T_", b"T0_", b"DpOT_", b"I", b"E", b"J", b"N", b"K", b"P", b"R", b"O", b"v",
    b"i", b"z", b"C1", b"D0", b"St", b"Ss", b"Sa", b"Z", b"3foo", b"UlvE_", b"UliE0_", b"Ut_", b"Li5E", b"XT_E", b"F",
    b"A3_", b"M", b"V", b"L", b"B3tag", b"cl", b"lt", b"cv", b"_", b"0", b"n", b"TV", b"GV", b"Th8_", b"8operator",
    b"12_GLOBAL__N_1", b"NS_", b"XadL_Z3foovEE", b"IiE", b"PFvvE", b"_0", b"sr", b"srT_1b",
    b"sr3stdE1vIT_E", b"aa", b"nt", b"eq", b"XsrSt1aIT_E1bE", b"X1aIT_EE", b"DTcl1gfp_EE", b"spT_", b"spcl1gIT_Efp_E",
    b"dtfp_1a", b"CI21B", b"CI1N1A1BE", b"cvRi", b"Li5E", b"DpT_",
    b"TyTn", b"TnT_", b"Tk1C", b"TL0__", b"Q1CIT_E", b"H", b"F", b"DB8_", b"DF16_", b"rq", b"so", b"srN", b"fr", b"aa",
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


@examples(300)
@given(mutations())
@example(b"_Z")
@example(b"")
def test_damaged_names_are_read_or_refused(name: bytes) -> None:
    """Whatever is done to a name, each mode gives a text or none does; the text is never too long (R117)."""
    reader = demangling.CppDemangler()
    full = reader.demangle(name, FULL)
    if reader.gave_up():
        return
    default = reader.demangle(name, DEFAULT)
    assert (full is None) == (default is None)
    assert full is None or default is None or len(default) <= len(full) <= 1 << 20


SCRIPT = """
import json, sys
from symbolize.core.cursor import COMPILED
from symbolize.names import demangling
assert not COMPILED
reader = demangling.CppDemangler()
names = json.load(open(sys.argv[1]))
texts = [reader.demangle(name.encode("latin-1"), mode) for name in names for mode in (0, 1, 2)]
print(json.dumps([text if text is None else text.decode("latin-1") for text in texts]))
"""


@pytest.mark.process
@needs_compiled
def test_the_sources_give_the_same_answers(tmp_path: Path) -> None:
    """Compiled and interpreted readers agree."""
    cases = [*GOLDEN, *(row[0] for row in MODERN), *(name for name, _ in SHAPES), *TRAPS, *(n for n, _ in BETTER)]
    cases += [b"_Z1fIX" + b"nw" * 400, b"_Z1f" + b"DvL" * 400, b"_Z1fI" + b"Z1a" * 400]  # deeper than Python's calls
    (tmp_path / "names.json").write_text(json.dumps([name.decode("latin-1") for name in cases]))
    (tmp_path / "read.py").write_text(SCRIPT)
    printed = interpreted.run(tmp_path, tmp_path / "read.py", str(tmp_path / "names.json"))
    answers = [None if text is None else text.encode("latin-1") for text in json.loads(printed)]
    assert answers == [read(name, mode) for name in cases for mode in (DEFAULT, TEMPLATES, FULL)]


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


SPECIAL = {
    b"_ZTV1A": b"vtable for A",
    b"_ZTT1A": b"VTT for A",
    b"_ZTI1A": b"typeinfo for A",
    b"_ZTS1A": b"typeinfo name for A",
    b"_ZTF1A": b"typeinfo fn for A",
    b"_ZTJ1A": b"java Class for A",
    b"_ZTC1D0_1B": b"construction vtable for B-in-D",
    b"_ZTCN1a1DE16_NS_1BE": b"construction vtable for a::B-in-a::D",
    b"_ZTh4_N1A1fEv": b"non-virtual thunk to A::f()",
    b"_ZThn4_N1A1fEv": b"non-virtual thunk to A::f()",
    b"_ZTv0_n24_N1A1fEv": b"virtual thunk to A::f()",
    b"_ZTchn4_h0_N1A1fEv": b"covariant return thunk to A::f()",
    b"_ZTcv0_n24_v8_16_N1A1fEv": b"covariant return thunk to A::f()",
    b"_ZGV1x": b"guard variable for x",
    b"_ZGR1x_": b"reference temporary #0 for x",
    b"_ZGR1x0_": b"reference temporary #1 for x",
    b"_ZTH1x": b"TLS init function for x",
    b"_ZTW1x": b"TLS wrapper function for x",
    b"_ZGTt1fv": b"transaction clone for f()",
    b"_ZGTn1fv": b"non-transaction clone for f()",
    b"_ZGA1x": b"hidden alias for x",
}


@pytest.mark.parametrize("name", SPECIAL)
def test_what_the_compiler_makes(name: bytes) -> None:
    """Each kind is read by the own reader, and as by the runtime where that reads it; a part of one is none."""
    assert read(name, FULL) == SPECIAL[name]
    assert by_runtime(name) in (None, SPECIAL[name])
    assert [read(name[:end], FULL) for end in range(4)] == [None] * 4


@pytest.mark.parametrize("name", [b"_ZNE", b"_ZN1aEvNE", b"_Z1fN1a1bENE", b"_ZTXN1aE", b"_ZTC1D0_", b"_ZTC1D"])
def test_names_without_a_part(name: bytes) -> None:
    """What has no name in it is none, whatever came before."""
    assert read(name, FULL) is None
