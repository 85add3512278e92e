"""Regular expressions of callers, settings and profiles: whether texts match, in time that grows with their length.

Names come from profiles, and expressions may: an engine that tries one way after another, as Python's does, can be made
to run for ever. Here an expression becomes an automaton, whose states are made when a text first leads to them; what
that costs in all has a limit (R425, regular expressions).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final, NamedTuple

from symbolize.core.errors import UsageError
from symbolize.core.expression_syntax import Assertion, Invalid, Operation, program_of, spellings_of

MAX_WORK: Final = 1 << 21
"""Steps that may be followed to make states, of one expression: about a second."""
STATE_WORK: Final = 16
"""What making a state counts beyond the steps that it stands at: an empty table."""
MAX_QUOTED: Final = 200
"""Letters of an expression in a message."""
END: Final = ""
"""The symbol behind the last one of a text."""

Matches = Callable[[str], bool]


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


class Symbol(NamedTuple):
    """Letters that an expression does not tell apart: the sets that have them, and what they are beside a place."""

    sets: frozenset[int]
    side: Side


class Decided(Exception):
    """No letter that follows changes the answer."""


class State(dict[str, "State"]):
    """A state of an automaton: by symbol the state after it, which is made when it is first asked for.

    It stands at several places of the program, behind a letter of a kind. Nothing is after `MATCHED` and `FAILED`.
    """

    __slots__ = ("before", "make", "places")

    def __init__(self, places: tuple[int, ...], before: Side, make: Callable[[State, str], State]) -> None:
        self.places = places
        self.before = before
        self.make = make

    def __missing__(self, symbol: str) -> State:
        after = self[symbol] = self.make(self, symbol)
        return after


def nothing_after(state: State, symbol: str) -> State:
    """Raise Decided."""
    raise Decided


MATCHED: Final = State((), Side.EDGE, nothing_after)
FAILED: Final = State((), Side.EDGE, nothing_after)


class Symbols(dict[int, str]):
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
        self._symbols = Symbols(self._symbol)
        self._names: dict[Symbol, str] = {}
        self._of_name = {END: Symbol(frozenset(), Side.EDGE)}
        self._moves: dict[tuple[int, Side, str], tuple[int, ...] | None] = {}
        self._states: dict[tuple[tuple[int, ...], Side], State] = {}
        self._first = State((0,), Side.EDGE, self._after)

    def matches(self, text: str) -> bool:
        """Whether a text matches. Raises UsageError if that takes too many steps."""
        state = self._first
        try:
            for symbol in text.translate(self._symbols):
                state = state[symbol]
            state = state[END]
        except Decided:
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
        symbol = Symbol(frozenset(row for row, letters in enumerate(self._sets) if letters.has(spellings)), side)
        name = self._names.setdefault(symbol, chr(len(self._names)))
        self._of_name[name] = symbol
        return name

    def _after(self, state: State, name: str) -> State:
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
            self._states[key_of_state] = State(*key_of_state, self._after)
        return self._states[key_of_state]

    def _move(self, place: int, before: Side, symbol: Symbol) -> tuple[int, ...] | None:
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
