"""Names of lambdas and local classes that have no linked name (rule R264)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symbolize import names
from symbolize.dwarf.qualify import calibrated
from symbolize.elf import ElfImage, read_symbols
from symbolize.symbols import build_table
from tests.support.dwarf_writer import As, C, Die, Ref, die
from tests.support.elf_writer import Symbol
from tests.support.lookup import image_of, names_at
from tests.support.programs import unit

BINARIES = Path(__file__).parents[2] / "fixtures" / "bin"
GCC_12, GCC_13 = "GNU C++17 12.2.0 -g -O2", "GNU C++17 13.2.0 -g -O2"
CODE = 0x1000
TOTAL = "_ZN4shop5totalERKSt6vectorIiSaIiEE"
TOTAL_TEXT = "shop::total(std::vector<int, std::allocator<int> > const&)"

TYPES = [
    die("base_type", name="int", label="int"),
    die("base_type", name="char", label="char"),
    die("base_type", name="long unsigned int", label="ulong"),
    die("unspecified_type", name="decltype(nullptr)", label="null"),
    die("const_type", type=Ref("char"), label="const char"),
    die("pointer_type", type=Ref("const char"), label="char*"),
    die("const_type", type=Ref("char*"), label="char* const"),
    die("pointer_type", label="void*"),
    die("typedef", name="number", type=Ref("int"), label="typedef"),
    die("namespace", die("class_type", name="box<int>", label="box"), name="ns"),
    die("const_type", type=Ref("box"), label="const box"),
    die("reference_type", type=Ref("const box"), label="const box&"),
    die("rvalue_reference_type", type=Ref("box"), label="box&&"),
    die("reference_type", type=Ref("int"), label="int&"),
    die("pointer_type", type=Ref("int"), label="int*"),
    die("pointer_type", type=Ref("const int"), label="int const*"),
    die("const_type", type=Ref("int"), label="const int"),
    die("reference_type", type=Ref("const int"), label="const int&"),
    die("rvalue_reference_type", type=Ref("int"), label="int&&"),
    die("subroutine_type", die("formal_parameter", type=Ref("char")), type=Ref("int"), label="function"),
    die("pointer_type", type=Ref("function"), label="function*"),
    die("subroutine_type", die("formal_parameter", type=Ref("const int")), type=Ref("const int"), label="constant"),
    die("pointer_type", type=Ref("constant"), label="constant*"),
    die("ptr_to_member_type", type=Ref("int"), label="member"),
    die("pointer_type", type=Ref("circle"), label="circle"),
]


def closure(
    *parameters: str,
    at: int = 0,
    line: int = 1,
    call: str = "operator()",
    extra: list[Die] | None = None,
    label_call: str = "",
    **given: Any,
) -> Die:
    """A closure as gcc describes it, whose function has its code at `at`; `extra` stands in that function."""
    this = f"this {at} {line}"
    children = [
        die("formal_parameter", name="__closure", artificial=True, type=Ref(f"const* {at} {line}"), label=this),
        *(die("formal_parameter", type=Ref(name)) for name in parameters),
        *(extra or []),
    ]
    code = {"low_pc": at, "high_pc": 4} if at else {}
    labelled: dict[str, Any] = {"label": label_call} if label_call else {}
    function = die("subprogram", *children, name=call, artificial=True, object_pointer=Ref(this), **code, **labelled)
    place = {"decl_file": 1, "decl_line": line, "decl_column": 5}
    structure = die("structure_type", function, label=f"closure {at} {line}", **place | given)
    const = die("const_type", type=Ref(f"closure {at} {line}"), label=f"const {at} {line}")
    pointer = die("pointer_type", type=Ref(f"const {at} {line}"), label=f"const* {at} {line}")
    return die("lexical_block", structure, const, pointer)


def name_in(*children: Die, at: int = CODE, producer: str = GCC_12, **given: Any) -> str:
    """The name at an address, where `children` stand in a function, `shop::total` unless something else is given."""
    function = die("subprogram", *children, **given or {"linkage_name": TOTAL})
    image = image_of([unit(*TYPES, die("namespace", function, name="shop"), producer=producer)])
    ((name,),) = names_at(image, at)
    return name


SIGNATURES = {
    "": [],
    "int": ["int"],
    "char, unsigned long": ["char", "ulong"],
    "char const*, char const*": ["char*", "char* const"],
    "int, void*, decltype(nullptr)": ["typedef", "void*", "null"],
    "ns::box<int> const&, ns::box<int>&&": ["const box&", "box&&"],
    "int (*)(char)": ["function*"],
    "int const (*)(int)": ["constant*"],
}


@pytest.mark.parametrize("signature", SIGNATURES)
def test_types_of_parameters(signature: str) -> None:
    """A closure is spelled as c++filt spells it, with the types of its parameters (rule R264)."""
    expected = f"{TOTAL_TEXT}::{{lambda({signature})#1}}::operator()"
    assert name_in(closure(*SIGNATURES[signature], at=CODE)) == expected


@pytest.mark.parametrize("unknown", ["member", "circle"])
def test_types_that_cannot_be_told(unknown: str) -> None:
    """Where a type cannot be told there are none, and the number tells closures apart (rule R264)."""
    both = [closure(unknown, at=CODE, line=3), closure(unknown, at=CODE + 16, line=2)]
    assert name_in(*both) == f"{TOTAL_TEXT}::{{lambda#2}}::operator()"
    assert name_in(*both, at=CODE + 16) == f"{TOTAL_TEXT}::{{lambda#1}}::operator()"


def test_variadic() -> None:
    """An ellipsis is the last of the types."""
    call = closure("int", at=CODE, extra=[die("unspecified_parameters")])
    assert name_in(call) == f"{TOTAL_TEXT}::{{lambda(int, ...)#1}}::operator()"


@pytest.mark.parametrize(
    ("producer", "third"),
    [
        (GCC_12, 3),
        (GCC_13, 2),
        (GCC_12 + " -fabi-version=18", 2),
        (GCC_13 + " -fabi-version=17", 3),
        (GCC_12 + " -fabi-version=0", 3),  # the newest one of that compiler
        (GCC_13 + " -fabi-version=0", 2),
    ],
)
def test_numbers(producer: str, third: int) -> None:
    """Numbers follow the places in the source; from gcc 13 on lambdas of the same types are counted (rule R264)."""
    calls = [
        closure("int", at=CODE + 32, line=9),
        closure("char", at=CODE + 16, line=4),
        closure("int", at=CODE, line=2),
    ]
    found = [name_in(*calls, at=CODE + 16 * i, producer=producer) for i in range(3)]
    second = 1 if third == 2 else 2
    expected = ["{lambda(int)#1}", f"{{lambda(char)#{second}}}", f"{{lambda(int)#{third}}}"]
    assert found == [f"{TOTAL_TEXT}::{name}::operator()" for name in expected]


GENERIC = {
    "auto:1": [("int", "int")],
    "auto:1, auto:2": [("int", "int"), ("int", "int")],
    "auto:1 const&, auto:2&, auto:3&&, auto:4&&": [
        ("int", "const int&"), ("int", "int&"), ("int", "int&&"), ("int&", "int&"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("signature", GENERIC)
def test_generic_lambdas(signature: str) -> None:
    """Where all parameters are `auto`, the instance tells how (rule R264)."""
    arguments = [
        die("template_type_param", name=f"auto:{5 + i}", type=Ref(argument))
        for _ in range(2)  # gcc writes them twice
        for i, (argument, _) in enumerate(GENERIC[signature])
    ]
    call = closure(*(given for _, given in GENERIC[signature]), at=CODE, call="operator()<int>", extra=arguments)
    assert name_in(call) == f"{TOTAL_TEXT}::{{lambda({signature})#1}}::operator()<int>"
    mixed = closure(
        "int", *(given for _, given in GENERIC[signature]), at=CODE, call="operator()<int>", extra=arguments
    )
    assert name_in(mixed) == f"{TOTAL_TEXT}::{{lambda#1}}::operator()<int>"


def test_lambdas_with_template_parameters() -> None:
    """What a lambda is a template of says nothing of its parameters where these are not all `auto` (rule R264)."""
    argument = die("template_type_param", name="T", type=Ref("int"))
    call = closure("int", at=CODE, call="operator()<int>", extra=[argument])
    assert name_in(call) == f"{TOTAL_TEXT}::{{lambda#1}}::operator()<int>"


@pytest.mark.parametrize(
    ("linked", "numbers"),
    [
        ([0, 0, 0], [1, 2, 3]),
        ([0, 2, 0], [1, 2, 3]),
        ([0, 3, 0, 5, 0], [0, 3, 4, 5, 0]),  # one is missing before the second, and perhaps others behind the last
        ([1, 0, 4, 0], [1, 0, 4, 0]),
        ([0, 1, 0], [0, 0, 0]),  # numbers that no source can have
        ([4, 0, 5], [0, 0, 0]),
    ],
)
def test_calibrated(linked: list[int], numbers: list[int]) -> None:
    """A number is given where linked names leave one only (rule R264)."""
    assert calibrated(linked) == numbers


@pytest.mark.parametrize("has_body", [True, False])
@pytest.mark.parametrize("producer", [GCC_12, GCC_13])
def test_linked_names_contradict(has_body: bool, producer: str) -> None:
    """Where the symbol of a closure has another number than the count, those that it leaves open go (rule R264)."""
    calls = [closure("int", at=CODE + 16 * i, line=i + 1) for i in range(4)]
    if has_body:
        calls[2] = closure("int", line=3, label_call="third")
    function = die("subprogram", *calls, linkage_name="_Z4worki")
    body = die("subprogram", abstract_origin=Ref("third"), low_pc=CODE + 32, high_pc=4) if has_body else die("variable")
    image = image_of(
        [unit(*TYPES, function, body, producer=producer)],
        symbols=[Symbol("_ZZ4workiENKUliE3_clEi.constprop.0", CODE + 32, 4)],
    )
    found = [names_at(image, CODE + 16 * i)[0][0] for i in range(4)]
    lambdas = [text.replace("work(int)::", "").replace("::operator()", "") for text in found]
    assert lambdas[:2] + lambdas[3:] == ["{lambda(int)}"] * 3
    assert found[2].startswith("_ZZ4worki")


ONE, OTHER = "_ZZ4workiENKUliE3_clEi", "_ZZ4workiENKUliE4_clEi"
"""Linked names of the fifth and of the sixth closure of a function."""


@pytest.mark.parametrize(
    ("linked", "numbers"),
    [
        ([ONE], ["", "", ""]),
        ([ONE, f"{ONE}.constprop.0"], ["", "", ""]),
        ([ONE, OTHER], ["#1", "#2", "#4"]),
        ([OTHER, ONE], ["#1", "#2", "#4"]),
    ],
)
def test_several_linked_names_of_one_closure(linked: list[str], numbers: list[str]) -> None:
    """Names of one number at one place tell the number of a closure; names of several, as where a linker folded
    closures, tell none, and the others are counted (rule R264)."""
    function = die("subprogram", *(closure("int", at=CODE + 16 * i, line=i + 1) for i in range(4)), name="work")
    symbols = [Symbol(name, CODE + 32, 4) for name in linked]
    image = image_of([unit(*TYPES, function, producer=GCC_12)], symbols=symbols)
    found = [names_at(image, CODE + 16 * i)[0][0] for i in (0, 1, 3)]
    assert found == [f"work()::{{lambda(int){number}}}::operator()" for number in numbers]


def test_functions_without_a_linked_name() -> None:
    """A function that is local to its file has parameters and scopes, one of C and `main` have neither (rule R264)."""
    lambda_ = closure("int", at=CODE)
    local = name_in(die("formal_parameter", type=Ref("char*")), lambda_, name="helper")
    assert local == "shop::helper(char const*)::{lambda(int)#1}::operator()"
    assert name_in(lambda_, name="main", external=True) == "main::{lambda(int)#1}::operator()"
    for pointer, const in (("int*", ""), ("int const*", " const")):
        this = die("formal_parameter", name="this", artificial=True, type=Ref(pointer), label="this")
        member = name_in(this, lambda_, name="member", external=True, object_pointer=Ref("this"))
        assert member == f"shop::member(){const}::{{lambda(int)#1}}::operator()"


def test_lambdas_in_lambdas() -> None:
    """The function of a lambda is a scope of those in it, with whether it is const (rule R264)."""
    inner = closure("int", at=CODE, line=2)
    outer = closure("char", line=1, extra=[inner])
    assert name_in(outer) == (
        f"{TOTAL_TEXT}::{{lambda(char)#1}}::operator()(char) const::{{lambda(int)#1}}::operator()"
    )


def test_modes() -> None:
    """The modes shorten such names as those of symbols, so that a lambda has one name, inlined or not (rule R264)."""
    function = die("subprogram", closure("const box&", at=CODE), linkage_name=TOTAL)
    table = build_table([image_of([unit(*TYPES, function, producer=GCC_12)])])
    row = table.lookup(np.array([CODE], np.uint64)).function.astype(np.int64)
    shown = {mode: table.functions.shown(row, mode)[0][0].decode() for mode in names.MODES}
    assert shown == {
        "default": "shop::total()::{lambda(ns::box const&)#1}::operator()",
        "templates": "shop::total()::{lambda(ns::box<int> const&)#1}::operator()",
        "full": f"{TOTAL_TEXT}::{{lambda(ns::box<int> const&)#1}}::operator()",
        "none": "operator()",
    }
    linked = b"_ZZN4shop5totalERKSt6vectorIiSaIiEEENKUlRKN2ns3boxIiEEE_clES7_"
    assert names.demangle([linked])[0].decode() == shown["default"]


@pytest.mark.parametrize(
    ("language", "expected"),
    [(0x1A, "shop::helper()::local::f"), (0x21, "shop::helper()::local::f"), (0x13, "local::f"), (C, "f")],
)
def test_local_classes(language: int, expected: str) -> None:
    """In C++ a class in a function has the function as its scope, and what is around that (rule R264); elsewhere the
    function ends the scopes (rule R15)."""
    local = die("structure_type", die("subprogram", name="f", low_pc=CODE, high_pc=4), name="local")
    function = die("subprogram", die("lexical_block", local), name="helper")
    tree = die("namespace", function, name="shop")
    assert names_at(image_of([unit(tree, language=As("data2", language))]), CODE) == [[expected]]


def test_other_classes_without_a_name() -> None:
    """A class without a name that is no closure stays what it is: nothing of gcc's stands in it."""
    call = die("subprogram", name="operator()", low_pc=CODE, high_pc=4)
    assert name_in(die("structure_type", call)) == f"{TOTAL_TEXT}::(anonymous struct)::operator()"
    constructed = die("structure_type", die("subprogram", name="<lambda>", declaration=True), call)
    assert name_in(constructed) == f"{TOTAL_TEXT}::{{lambda()#1}}::operator()"


def test_linked_names_stay() -> None:
    """A lambda with a linked name has that (rule R14)."""
    linked = die("subprogram", name="operator()", linkage_name="_ZZN1a1bEvENKUlvE_clEv", low_pc=CODE, high_pc=4)
    assert name_in(die("structure_type", linked)) == "_ZZN1a1bEvENKUlvE_clEv"


def test_nesting_has_an_end() -> None:
    """Functions in classes in functions are followed a few levels, and then named without what is around them."""
    inner = die("subprogram", name="f0", low_pc=CODE, high_pc=4)
    for i in range(1, 100):
        inner = die("subprogram", die("structure_type", inner, name=f"s{i}"), name=f"f{i}")
    ((name,),) = names_at(image_of([unit(inner)]), CODE)
    assert name.endswith("::s2::f1()::s1::f0")
    assert name.count("::") < 40


def test_work_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where absurdly many DIEs would be read, names stay shorter, and a problem says so."""
    monkeypatch.setattr("symbolize.dwarf.qualify.CLOSURE_MORE_DIES", -1000)
    function = die("subprogram", closure("int", at=CODE), linkage_name=TOTAL)
    table = build_table([image_of([unit(*TYPES, function, producer=GCC_12)])])
    assert b"(anonymous struct)::operator()" in table.functions.name[0]
    assert any("absurdly" in problem for problem in table.problems)


def test_lambdas_of_a_real_program() -> None:
    """What is derived of inlined lambdas is what the linked names say where nothing is inlined (rule R264)."""
    with ElfImage.open(BINARIES / "gcc-o0" / "ledger") as image:
        symbols = read_symbols(image, ".symtab")
        assert symbols is not None
        linked = [symbols.text(int(name)) for name in symbols.name]
    known = {text.partition(b"::operator()(")[0] + b"::operator()" for text in names.demangle(linked, "full")}
    with ElfImage.open(BINARIES / "gcc-pie" / "ledger") as image:
        functions = build_table([image]).functions
    derived = [
        name
        for linkage, name in zip(functions.linkage, functions.name, strict=True)
        if not linkage and b"{lambda" in name and name.endswith(b"::operator()")
    ]
    assert derived
    assert set(derived) <= known
