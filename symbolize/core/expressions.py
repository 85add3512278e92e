"""Regular expressions of callers, settings and profiles: whether texts match, in time that grows with their length.

Names come from profiles, and expressions may: an engine that tries one way after another, as Python's does, can be made
to run for ever. Here an expression becomes an automaton, whose states are made when a text first leads to them; what
that costs in all has a limit (R425, regular expressions).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from enum import IntEnum
from functools import cache
from itertools import groupby
from typing import Final, NamedTuple

from symbolize.core.errors import UsageError
from symbolize.core.records import record

MAX_LETTERS: Final = 1 << 16
"""Letters of an expression."""
MAX_STEPS: Final = 10_000
"""Steps of a program."""
MAX_REPEATS: Final = 1000
"""How often a part may be repeated by number, as in RE2."""
LAST_LETTER: Final = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]

NAMED: Final[dict[str, Ranges]] = {
    name: tuple((ord(each[0]), ord(each[-1])) for each in ranges)
    for name, ranges in {
        "alnum": ("09", "AZ", "az"), "alpha": ("AZ", "az"), "ascii": ("\0\x7f",), "blank": ("\t", " "),
        "cntrl": ("\0\x1f", "\x7f"), "digit": ("09",), "graph": ("!~",), "lower": ("az",), "print": (" ~",),
        "punct": ("!/", ":@", "[`", "{~"), "space": ("\t\r", " "), "upper": ("AZ",), "word": ("09", "AZ", "__", "az"),
        "xdigit": ("09", "AF", "af"), "d": ("09",), "s": ("\t\n", "\f\r", " "), "w": ("09", "AZ", "__", "az"),
    }.items()
}  # fmt: skip
"""Classes of letters with a name, `[:alpha:]` and `\\d`; all are ASCII."""
ALSO: Final = {ord("k"): 0x212A, ord("s"): 0x17F, ord("ß"): 0x1E9E}
"""Spellings that no change of case makes: the Kelvin sign, the long s, and the capital of a letter that has none."""
CONTROLS: Final = {"a": 7, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}

BOUNDS: Final = re.compile(r"\{([0-9]{1,9})(,?)([0-9]{0,9})\}")
FLAGS: Final = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
NAME: Final = re.compile(r"\(\?P?<\w+>")
CODE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,8})\}|(0[0-7]{0,2}|[1-7][0-7]{1,2}))")
PROPERTY: Final = re.compile(r"\\([pP])(?:([A-Z])|\{(\^?)([A-Za-z_]+)\})")
CATEGORY: Final = re.compile("L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfos]?|Any")
"""Classes by Unicode's general category."""
CLASS_NAME: Final = re.compile(r"\[:(\^?)([^\]:]*):\]")
MAX_WORK: Final = 1 << 21
"""Steps that may be followed to make states, of one expression: about a second."""
STATE_WORK: Final = 16
"""What making a state counts beyond the steps that it stands at: an empty table."""
MAX_QUOTED: Final = 200
"""Letters of an expression in a message."""
END: Final = ""
"""The symbol behind the last one of a text."""

Matches = Callable[[str], bool]


class Operation(IntEnum):
    """What a step does: take a letter of a set, go on at two places or at another, ask what is around, end."""

    TAKE = 0
    FORK = 1
    JUMP = 2
    ASSERT = 3
    MATCH = 4


class Assertion(IntEnum):
    """What may be asked of the place between two letters."""

    TEXT_BEGIN = 0
    TEXT_END = 1
    LINE_BEGIN = 2
    LINE_END = 3
    WORD_EDGE = 4
    NO_WORD_EDGE = 5


class Step(NamedTuple):
    """A step of a program: the number of a set or an assertion, or how far to go on from here."""

    operation: Operation
    first: int = 0
    second: int = 0


class Letters(NamedTuple):
    """A set of letters: those in `ranges`, or all others, in any case if that is ignored."""

    ranges: Ranges
    is_negated: bool = False
    ignores_case: bool = False

    def has(self, spellings: Sequence[int]) -> bool:
        """Whether a letter is in the set, by all its spellings, itself first."""
        codes = spellings if self.ignores_case else spellings[:1]
        return any(first <= code <= last for first, last in self.ranges for code in codes) != self.is_negated


def spellings_of(letter: str) -> tuple[int, ...]:
    """A letter, and what it may be instead where case is ignored."""
    if letter == "ı":  # its capital is that of i
        return (ord(letter),)
    cases = [letter, letter.lower(), letter.upper(), letter.upper().lower()]
    codes = dict.fromkeys(ord(case) for case in cases if len(case) == 1)
    return (*codes, *(ALSO[code] for code in codes if code in ALSO))


class Invalid(ValueError):
    """An expression that is none."""


@record
class PatternGroup:
    """A group that is read: the flags in it, alternatives that are complete and the one that is not, and where the part
    of that begins that may be repeated."""

    flags: frozenset[str]
    alternatives: list[list[Step]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    last: int | None = None

    def joined(self) -> list[Step]:
        """The steps of all alternatives."""
        parts = [*self.alternatives, self.steps]
        left = sum(map(len, parts)) + 2 * (len(parts) - 1)
        check_size(left)
        steps: list[Step] = []
        for part in parts[:-1]:
            left -= len(part) + 2
            steps += [Step(Operation.FORK, 1, len(part) + 2), *part, Step(Operation.JUMP, left + 1)]
        return steps + parts[-1]


class PatternReader:
    """Reads one expression.

    The syntax is that of RE2, but for classes by Unicode script, single bytes, and spellings of letters beyond ASCII in
    which Python differs where case is ignored. An expression that has more than 10,000 parts, or takes more than 2^21
    steps to make states, is refused.
    """

    def __init__(self, text: str) -> None:
        self.sets: dict[Letters, int] = {}
        self._text = text
        self._at = 0
        self._groups = [PatternGroup(frozenset())]

    def program(self) -> list[Step]:
        """The steps. Raises Invalid."""
        if len(self._text) > MAX_LETTERS:
            raise Invalid(f"it is longer than {MAX_LETTERS:,} letters")
        while self._at < len(self._text):
            self._read()
        if len(self._groups) > 1:
            raise Invalid("missing )")
        return [*self._groups[0].joined(), Step(Operation.MATCH)]

    def _read(self) -> None:
        group, letter = self._groups[-1], self._text[self._at]
        bounds = BOUNDS.match(self._text, self._at)
        if letter == "(":
            self._open(group)
        elif letter == ")":
            self._close()
        elif letter == "|":
            self._at += 1
            group.alternatives.append(group.steps)
            group.steps, group.last = [], None
        elif letter in "*+?" or bounds is not None:
            self._repeat(group, bounds)
        elif letter == "[":
            self._take(self._bracketed(group.flags))
        elif letter == "\\":
            self._escaped(group)
        elif letter in "^$":
            self._at += 1
            is_line, is_end = "m" in group.flags, letter == "$"
            self._add(Step(Operation.ASSERT, Assertion(2 * is_line + is_end)))
        elif letter == ".":
            self._at += 1
            self._take(ANY if "s" in group.flags else NO_NEWLINE)
        else:
            self._at += 1
            self._literal(ord(letter))

    def _add(self, *steps: Step) -> None:
        """Add a part, which may be repeated."""
        group = self._groups[-1]
        check_size(len(group.steps) + len(steps))
        group.last = len(group.steps)
        group.steps += steps

    def _take(self, letters: Letters) -> None:
        self._add(Step(Operation.TAKE, self.sets.setdefault(letters, len(self.sets))))

    def _literal(self, code: int) -> None:
        self._take(Letters(((code, code),), ignores_case="i" in self._groups[-1].flags))

    def _open(self, group: PatternGroup) -> None:
        if (match := FLAGS.match(self._text, self._at)) is not None:
            flags = (group.flags | set(match[1])) - set(match[2] or "")
            if match[3] == ":":
                self._groups.append(PatternGroup(flags))
            else:
                group.flags = flags
        elif self._text.startswith("(?", self._at) and (match := NAME.match(self._text, self._at)) is None:
            raise Invalid(f"{self._text[self._at : self._at + 4]!r} is not supported")
        else:
            self._groups.append(PatternGroup(group.flags))
        self._at = match.end() if match is not None else self._at + 1

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise Invalid("unexpected )")
        self._at += 1
        self._add(*self._groups.pop().joined())

    def _repeat(self, group: PatternGroup, bounds: re.Match[str] | None) -> None:
        if group.last is None:
            raise Invalid(f"nothing to repeat at letter {self._at + 1}")
        part = group.steps[group.last :]
        del group.steps[group.last :]
        if bounds is not None:
            least = int(bounds[1])
            most = int(bounds[3]) if bounds[3] else None if bounds[2] else least
            if least > MAX_REPEATS or (most is not None and not least <= most <= MAX_REPEATS):
                raise Invalid(f"{bounds[0]} is out of range")
        else:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self._text[self._at]]
        size = len(part)
        check_size((size + 1) * max(least, most or 0))
        if most is None and least:
            steps = part * least + [Step(Operation.FORK, -size, 1)]
        elif most is None:
            steps = [Step(Operation.FORK, 1, size + 2), *part, Step(Operation.JUMP, -size - 1)]
        else:
            steps = part * least + [Step(Operation.FORK, 1, size + 1), *part] * (most - least)
        self._add(*steps)
        group.last = None
        self._at = bounds.end() if bounds is not None else self._at + 1
        self._at += self._text.startswith("?", self._at)  # the shortest match first: there is one or none

    def _escaped(self, group: PatternGroup) -> None:
        letter = self._text[self._at + 1 : self._at + 2]
        if letter == "Q":
            end = self._text.find("\\E", self._at)
            end = len(self._text) if end < 0 else end
            for each in self._text[self._at + 2 : end]:
                self._literal(ord(each))
            self._at = end + 2
        elif letter in ASSERTIONS:
            self._at += 2
            self._add(Step(Operation.ASSERT, ASSERTIONS[letter]))
        elif letter and letter in "dswDSW":
            self._at += 2
            self._take(Letters(named(letter.lower(), "i" in group.flags), letter.isupper()))
        elif (found := self._property()) is not None:
            self._take(Letters(*found, ignores_case="i" in group.flags))
        else:
            self._literal(self._code())

    def _property(self) -> tuple[Ranges, bool] | None:
        """The letters of a class by Unicode property, and whether all others are meant; None if there is none here."""
        match = PROPERTY.match(self._text, self._at)
        if match is None:
            return None
        name = match[2] or match[4]
        if not CATEGORY.fullmatch(name):
            raise Invalid(f"{match[0]} is not supported: only general categories are, such as \\p{{Lu}}")
        self._at = match.end()
        return of_category(name), (match[1] == "P") != bool(match[3])

    def _code(self) -> int:
        """The letter that an escape stands for."""
        letter = self._text[self._at + 1 : self._at + 2]
        match = CODE.match(self._text, self._at)
        if match is not None:
            code = int(match[1] or match[2], 16) if match[3] is None else int(match[3], 8)
            self._at = match.end()
        elif letter in CONTROLS or (letter.isascii() and letter and not letter.isalnum()):
            code = CONTROLS.get(letter, ord(letter))
            self._at += 2
        else:
            raise Invalid(f"\\{letter} is not supported" if letter else "it ends with \\")
        if code > LAST_LETTER:
            raise Invalid(f"there is no letter {code:#x}")
        return code

    def _bracketed(self, flags: frozenset[str]) -> Letters:
        """The set between brackets."""
        text, ignores_case = self._text, "i" in flags
        is_negated = text.startswith("^", self._at + 1)
        self._at += 1 + is_negated
        begin, ranges = self._at, list[tuple[int, int]]()
        while self._at == begin or not text.startswith("]", self._at):
            if self._at >= len(text):
                raise Invalid("missing ]")
            letter = text[self._at + 1 : self._at + 2]
            if (match := CLASS_NAME.match(text, self._at)) is not None:
                if match[2] not in NAMED or len(match[2]) == 1:
                    raise Invalid(f"there is no class {match[0]}")
                self._at = match.end()
                found = named(match[2], ignores_case)
                ranges += others(found) if match[1] else found
            elif text[self._at] == "\\" and letter and letter in "dswDSW":
                self._at += 2
                found = named(letter.lower(), ignores_case)
                ranges += others(found) if letter.isupper() else found
            elif (of_property := self._property()) is not None:
                found, is_other = of_property
                ranges += others(in_any_case(found) if ignores_case else found) if is_other else found
            else:
                ranges.append(self._range())
        self._at += 1
        return Letters(tuple(ranges), is_negated, ignores_case)

    def _range(self) -> tuple[int, int]:
        """A letter in brackets, or a first and a last one."""
        begin = self._at
        first = last = self._letter()
        if self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at):
            self._at += 1
            last = self._letter()
        if first > last:
            raise Invalid(f"{self._text[begin : self._at]!r} is no range")
        return first, last

    def _letter(self) -> int:
        if self._at >= len(self._text):
            raise Invalid("missing ]")
        if self._text[self._at] == "\\":
            return self._code()
        self._at += 1
        return ord(self._text[self._at - 1])


ANY: Final = Letters(((0, LAST_LETTER),))
NO_NEWLINE: Final = Letters(((10, 10),), is_negated=True)
ASSERTIONS: Final = {
    "A": Assertion.TEXT_BEGIN, "z": Assertion.TEXT_END, "b": Assertion.WORD_EDGE, "B": Assertion.NO_WORD_EDGE
}  # fmt: skip


def named(name: str, ignores_case: bool) -> Ranges:
    """A class with a name, with the other case of its letters if case is ignored."""
    ranges = NAMED[name]
    if not ignores_case:
        return ranges
    codes = {code for first, last in ranges for code in range(first, last + 1)}
    cases = {ord(chr(code).swapcase()) for code in codes}
    return tuple(
        (code, code) for code in sorted(codes | cases | {ALSO[code] for code in ALSO if code in codes | cases})
    )


@cache
def in_categories() -> list[tuple[str, int, int]]:
    """The runs of letters of one general category, of the Unicode version that Python has: category, first and last."""
    found, begin = [], 0
    for category, run in groupby(map(unicodedata.category, map(chr, range(LAST_LETTER + 1)))):
        end = begin + sum(1 for _ in run)
        found.append((category, begin, end - 1))
        begin = end
    return found


def of_category(name: str) -> Ranges:
    """The letters of a general category; those of no category are in none."""
    if name == "Any":
        return ((0, LAST_LETTER),)
    return tuple(
        (first, last) for category, first, last in in_categories() if category.startswith(name) and category != "Cn"
    )


@cache
def letters_with_cases() -> list[int]:
    """The letters that may be others where case is ignored."""
    every = ((code, chr(code)) for code in range(LAST_LETTER + 1))
    return [code for code, letter in every if letter.lower() != letter or letter.upper() != letter]


def in_any_case(ranges: Ranges) -> Ranges:
    """The letters that are in `ranges` where case is ignored, sorted."""
    letters = Letters(ranges, ignores_case=True)
    cases = ((code, code) for code in letters_with_cases() if letters.has(spellings_of(chr(code))))
    return tuple(sorted((*ranges, *cases)))


def others(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """All letters that are not in `ranges`, which are sorted."""
    found, begin = [], 0
    for first, last in ranges:
        if begin < first:
            found.append((begin, first - 1))
        begin = max(begin, last + 1)
    return (*found, (begin, LAST_LETTER))


def check_size(steps: int) -> None:
    """Raise Invalid for a program with more steps than one may have."""
    if steps > MAX_STEPS:
        raise Invalid(f"it has more than {MAX_STEPS:,} parts, each counted as often as it is repeated")


def program_of(text: str) -> tuple[list[Step], Sequence[Letters]]:
    """The program of an expression, and the sets of letters that it names by number. Raises Invalid."""
    reader = PatternReader(text)
    return reader.program(), [*reader.sets]


def compiled(name: str, pattern: str, *, whole: bool = False) -> Matches:
    """Whether a text has a match for an expression of RE2, or is one as a whole.

    Raises UsageError, which names the parameter, for an expression that is none. So does the function that is returned,
    if the expression takes too many steps for the texts that it has been given.
    """
    quoted = f"{name}: {pattern[:MAX_QUOTED]!r}"
    try:
        return Automaton(pattern, is_whole=whole, quoted=quoted).matches
    except Invalid as error:
        raise UsageError(f"{quoted} is not a regular expression: {error}") from error


class Side(IntEnum):
    """What is beside a place between two letters."""

    EDGE = 0
    NEWLINE = 1
    WORD = 2
    OTHER = 3


class SyntaxSymbol(NamedTuple):
    """Letters that an expression does not tell apart: the sets that have them, and what they are beside a place."""

    sets: frozenset[int]
    side: Side


class DecidedTexts(Exception):
    """No letter that follows changes the answer."""


class MatcherState(dict[str, "MatcherState"]):
    """A state of an automaton: by symbol the state after it, which is made when it is first asked for.

    It stands at several places of the program, behind a letter of a kind. Nothing is after `MATCHED` and `FAILED`.
    """

    __slots__ = ("before", "make", "places")

    def __init__(
        self, places: tuple[int, ...], before: Side, make: Callable[[MatcherState, str], MatcherState]
    ) -> None:
        self.places = places
        self.before = before
        self.make = make

    def __missing__(self, symbol: str) -> MatcherState:
        after = self[symbol] = self.make(self, symbol)
        return after


def nothing_after(state: MatcherState, symbol: str) -> MatcherState:
    """Raise Decided."""
    raise DecidedTexts


MATCHED: Final = MatcherState((), Side.EDGE, nothing_after)
FAILED: Final = MatcherState((), Side.EDGE, nothing_after)


class SyntaxSymbols(dict[int, str]):
    """By letter the symbol that it is for an expression."""

    def __init__(self, make: Callable[[str], str]) -> None:
        self._make = make

    def __missing__(self, code: int) -> str:
        symbol = self[code] = self._make(chr(code))
        return symbol


class Automaton:
    """Answers whether texts match an expression."""

    def __init__(self, pattern: str, *, is_whole: bool, quoted: str) -> None:
        self._program, self._sets = program_of(pattern)
        self._ranges = sum(1 + len(letters.ranges) for letters in self._sets)
        self._is_whole = is_whole
        self._begins_once = is_whole or self._program[0] == (Operation.ASSERT, Assertion.TEXT_BEGIN, 0)
        self._quoted = quoted
        self._asks = any(step.operation is Operation.ASSERT for step in self._program)
        self._left = MAX_WORK
        self._symbols = SyntaxSymbols(self._symbol)
        self._names: dict[SyntaxSymbol, str] = {}
        self._of_name = {END: SyntaxSymbol(frozenset(), Side.EDGE)}
        self._moves: dict[tuple[int, Side, str], tuple[int, ...] | None] = {}
        self._states: dict[tuple[tuple[int, ...], Side], MatcherState] = {}
        self._first = MatcherState((0,), Side.EDGE, self._after)

    def matches(self, text: str) -> bool:
        """Whether a text matches. Raises UsageError if that takes too many steps."""
        state = self._first
        try:
            for symbol in text.translate(self._symbols):
                state = state[symbol]
            state = state[END]
        except DecidedTexts:
            pass
        return state is MATCHED

    def _symbol(self, letter: str) -> str:
        self._spend(STATE_WORK + self._ranges)
        side = Side.OTHER
        if self._asks and letter == "\n":
            side = Side.NEWLINE
        elif self._asks and letter.isascii() and (letter.isalnum() or letter == "_"):
            side = Side.WORD
        spellings = spellings_of(letter)
        symbol = SyntaxSymbol(frozenset(row for row, letters in enumerate(self._sets) if letters.has(spellings)), side)
        name = self._names.setdefault(symbol, chr(len(self._names)))
        self._of_name[name] = symbol
        return name

    def _after(self, state: MatcherState, name: str) -> MatcherState:
        symbol = self._of_name[name]
        places: set[int] = set() if self._begins_once else {0}
        self._spend(STATE_WORK + len(state.places))
        for place in state.places:
            key = place, state.before, name
            if key not in self._moves:
                self._moves[key] = self._move(place, state.before, symbol)
            move = self._moves[key]
            if move is None:
                return MATCHED
            self._spend(len(move))
            places.update(move)
        if not places or symbol.side is Side.EDGE:
            return FAILED
        key_of_state = tuple(sorted(places)), symbol.side
        if key_of_state not in self._states:
            self._states[key_of_state] = MatcherState(*key_of_state, self._after)
        return self._states[key_of_state]

    def _move(self, place: int, before: Side, symbol: SyntaxSymbol) -> tuple[int, ...] | None:
        """The places behind a symbol that follows a place; None if a match ends in front of it."""
        is_end = symbol.side is Side.EDGE
        seen, waiting, places = {place}, [place], []
        while waiting:
            place = waiting.pop()
            operation, first, second = self._program[place]
            following: tuple[int, ...] = ()
            if operation is Operation.MATCH and (is_end or not self._is_whole):
                return None
            if operation is Operation.TAKE and first in symbol.sets:
                places.append(place + 1)
            elif operation is Operation.FORK:
                following = place + first, place + second
            elif operation is Operation.JUMP:
                following = (place + first,)
            elif operation is Operation.ASSERT and holds(Assertion(first), before, symbol.side):
                following = (place + 1,)
            fresh = [other for other in following if other not in seen]
            seen.update(fresh)
            waiting += fresh
        self._spend(len(seen))
        return tuple(places)

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise UsageError(f"{self._quoted} takes too many steps to match; write a simpler expression")


def holds(assertion: Assertion, before: Side, after: Side) -> bool:
    """Whether what is asked of a place between two letters is so."""
    match assertion:
        case Assertion.TEXT_BEGIN:
            return before is Side.EDGE
        case Assertion.TEXT_END:
            return after is Side.EDGE
        case Assertion.LINE_BEGIN:
            return before <= Side.NEWLINE
        case Assertion.LINE_END:
            return after <= Side.NEWLINE
        case _:
            return ((before is Side.WORD) != (after is Side.WORD)) == (assertion is Assertion.WORD_EDGE)
