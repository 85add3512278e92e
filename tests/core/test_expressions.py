"""Regular expressions: the answers of other engines, and no text or expression that takes long."""

import random
import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.errors import UsageError
from symbolize.core.expressions import compiled
from tests.support.needs import package

SECONDS = 0.5
NAMES = [
    "", "\n", "a\nb", "foo", "foo\n", "xfoox", "main", "main.main", "runtime.mallocgc",
    "tcmalloc::allocate(unsigned long)", "operator new[](unsigned long)", "MyAlloc", "_Z3foov",
    "std::vector<int, std::allocator<int> >::operator new", "libc.so.6", "42", "x42_y", "\t \v",
    "[kernel.kallsyms]", "/usr/lib/x.c", "a-b", "a]b", "aaaa", "abab", "Straße", "ſ", "K", "函数",
]  # fmt: skip
ORDINARY = [
    "", "foo", "^foo$", "^$", r"runtime\.mallocgc|tcmalloc::.*", ".*Alloc.*", "(?i)alloc", "(?i)[k-s]", r"(?i)[^\w]",
    "a|b|", "std::.*::operator new", r"operator new(\[\])?", "[a-c]+", "[^a-c]", r"[\w:]+", "x{2}", "a{2,}", "a{1,3}b",
    "(?:ab)+", "(ab){2}",
    r"\bmain\b", r"\Bain", "(?m)^b$", "(?s)a.b", "a.b", r"\Amain\z", "[]b]", "[a-]", r"\x41|\x{41}|\101",
    r"\Q[kernel.\E", r"\d+",
    r"\D", r"[\s\d]", "(?P<name>a)b", "(?<name>a)b", "a??b", "a*?", "(?i:FOO)x?$", "(?-i:foo)", "(a|)+", "()*",
    "(^)*a", "$", "x{,2}", "a{",
    "[[:alpha:]]+", "[[:^digit:]]", "[[:word:]]{3}", "(?i)[[:upper:]]", "(?i)[[:^lower:]]", r"\t|\v",
    "^(?:main|foo)", "|", "ß|函", r"\.so(?:\.|$)",
]  # fmt: skip
REPEATS = ["", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"]
"""What Python's engine understands alike, so that it can be asked."""
NOT_IN_PYTHON = re.compile(r"\[\[:|\\z|\\x\{|\\Q|\(\?<n|x\{,|\\[Dw]|\(\?i\)\[")


def of_python(pattern: str, text: str) -> tuple[bool, bool]:
    """What Python's own engine says of a part of the text, and of the whole."""
    its = re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern) if "(?m" not in pattern else pattern)
    return its.search(text) is not None, its.fullmatch(text) is not None


def answers(pattern: str, text: str) -> tuple[bool, bool]:
    return compiled("focus", pattern)(text), compiled("focus", pattern, whole=True)(text)


@pytest.mark.parametrize("pattern", [each for each in ORDINARY if not NOT_IN_PYTHON.search(each)])
def test_python_answers_the_same(pattern: str) -> None:
    """Where the syntaxes agree."""
    assert [answers(pattern, name) for name in NAMES] == [of_python(pattern, name) for name in NAMES]


@pytest.mark.oracle
def test_re2_answers_the_same() -> None:
    """RE2 is what pprof has: ordinary expressions, its own classes and escapes, cases and ends of lines."""
    re2 = package("re2")
    for pattern in ORDINARY:
        part, whole = re2.compile(pattern), re2.compile(rf"\A(?:{pattern})\z")
        theirs = [(part.search(name) is not None, whole.search(name) is not None) for name in NAMES]
        assert (pattern, [answers(pattern, name) for name in NAMES]) == (pattern, theirs)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Expressions that are short enough for an engine that goes back."""
    atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", r"\b", r"\w", r"\n"])
    inner = "|".join(draw(st.lists(st.lists(atoms, max_size=3).map("".join), min_size=1, max_size=3)))
    parts = draw(st.lists(st.sampled_from([f"({inner})", f"(?:{inner})", "a", "b", "."]), max_size=3))
    return "".join(f"{part}{draw(st.sampled_from(REPEATS))}" for part in parts)


@given(expressions(), st.text("ab_ \n", max_size=6))
def test_any_expression_any_text(pattern: str, text: str) -> None:
    """Repeated groups, alternatives, assertions in them."""
    assert answers(pattern, text) == of_python(pattern, text)


@pytest.mark.parametrize("name", [*"dsw", "alpha", "digit", "punct", "space", "print"])
@pytest.mark.parametrize("flags", ["", "(?i)"])
def test_classes_by_name(name: str, flags: str) -> None:
    """A class and the class of all others have no letter in common, and all letters together."""
    texts = [f"\\{name}", f"[\\{name.upper()}]"] if len(name) == 1 else [f"[[:{name}:]]", f"[[:^{name}:]]"]
    inside, outside = (compiled("focus", flags + text) for text in texts)
    for code in (*range(400), 0x212A, 0x10FFFF):
        assert inside(chr(code)) != outside(chr(code))


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        (r"\pL", "aZß中ʰ", "1_ \n!"),
        (r"\p{Lu}", "AÄΩ", "aß1"),
        (r"(?i)\p{Lu}", "AaÄäΩω", "ª1"),
        (r"(?i)\P{Lu}", "ª1", "AaÄä"),
        (r"(?i)[\P{Lu}]", "ª1", "AaÄä"),
        (r"(?i)[\P{Lu}b]", "ª1bB", "AaÄä"),
        (r"(?i)[^\P{Lu}]", "AaÄä", "ª1"),
        (r"\PL", "1_ ", "aé"),
        (r"\p{^L}", "1_ ", "aé"),
        (r"\P{^Lu}", "A", "a"),
        (r"[\pN_]", "1²Ⅷ_", "a "),
        (r"[^\pL\d]", "_ ", "a1中"),
        (r"\p{Any}", "a\n", ""),
        (r"\pZ\PZ", [" a", "\u00a0b"], ["  ", "ab"]),
        (r"\p{Nd}", "9٣", "²Ⅷ"),
        (r"\pS", "+€^", "a-"),
        (r"\p{Co}", "\ue000", "\u0378"),
    ],
)
def test_classes_by_category(pattern: str, inside: Sequence[str], outside: Sequence[str]) -> None:
    """Classes by Unicode's general category, alone and between brackets, as RE2 has them."""
    matches = compiled("focus", pattern, whole=True)
    assert [each for each in inside if not matches(each)] == [each for each in outside if matches(each)] == []


@pytest.mark.needs("re2")
@pytest.mark.parametrize("form", [r"\p{%s}", r"(?i)\p{%s}", r"(?i)\P{%s}", r"(?i)[\P{%s}b]"])
@pytest.mark.parametrize("name", ["L", "Lu", "Ll", "M", "N", "P", "Sm", "Zs", "C"])
def test_categories_of_re2(name: str, form: str) -> None:
    """The letters up to U+02FF, which are the same in all versions of Unicode, are in the same categories."""
    import re2

    theirs = re2.compile(f"^{form % name}$")
    ours = compiled("focus", form % name, whole=True)
    assert [code for code in range(11, 0x300) if ours(chr(code)) != bool(theirs.search(chr(code)))] == []


BOMBS = [
    ("(a|aa)+", "a" * 80 + "!"),
    ("(a|aa)+$", "a" * 80 + "!"),
    ("(a*)*", "a" * 5000 + "!"),
    ("(a|a)*b", "a" * 5000),
    ("(.*a){25}", "a" * 60 + "b"),
    ("(x+x+)+y", "x" * 5000),
    (".*.*.*.*x", "b" * 100_000),
    ("a?" * 100 + "a" * 100, "a" * 99),
    ("(a|a)" * 100 + "b", "a" * 100),
    ("(?:" * 500 + "a" + ")*" * 500, "a" * 1000 + "b"),
]


@pytest.mark.parametrize(("pattern", "text"), BOMBS, ids=range(len(BOMBS)))
def test_no_expression_takes_long(pattern: str, text: str) -> None:
    """Nested and ambiguous repeats, and many that are not bounded, are answered as others are."""
    began = time.process_time()
    answers(pattern, text)
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize(
    "pattern",
    ["a{1000}{1000}", "((a{1000}){1000}){1000}", "(a{1000}|b){11}", "|" * 20_000, "a" * 70_000, "(" * 60_000],
    ids=range(6),
)
def test_no_expression_grows(pattern: str) -> None:
    """One that would be large is refused before it is."""
    began = time.process_time()
    with pytest.raises(UsageError, match="is not a regular expression"):
        compiled("focus", pattern)
    assert time.process_time() - began < SECONDS


def test_states_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An expression with a state for nearly each letter of a text is given up."""
    text = "".join(random.Random(1).choices("ab", k=10_000))
    monkeypatch.setattr("symbolize.core.expressions.MAX_WORK", 1 << 16)
    matches = compiled("focus", "(a|b)*a(a|b){900}c")
    with pytest.raises(UsageError, match=r"^focus: '\(a\|b\)\*a\(a\|b\)\{900\}c' takes too many steps"):
        matches(text)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", r"missing \)"), (")", r"unexpected \)"), ("[a", "missing ]"), ("[a-", "missing ]"), ("[", "missing ]"),
        ("*a", "nothing to repeat"),
        ("a**", "nothing to repeat"), ("(?i)*", "nothing to repeat"), ("|+", "nothing to repeat"), ("x{2,1}",
        "out of range"), ("x{1001}", "out of range"),
        ("[b-a]", "no range"), ("[[:nope:]]", "no class"), ("\\", "ends with"), (r"\1", "not supported"), (r"\Z",
        "not supported"), (r"\p{Greek}", "general categories"), (r"\pX", "categories"),
        ("a(?=b)", "not supported"), ("(?<!a)b", "not supported"), (r"\x{110000}", "no letter"), ("[\\", "ends with"),
    ],
)  # fmt: skip
def test_what_is_no_expression(pattern: str, why: str) -> None:
    """It is refused, with the reason; so is what other engines have and RE2 has not."""
    with pytest.raises(UsageError, match=f"^drop: .* is not a regular expression: .*{why}"):
        compiled("drop", pattern)
