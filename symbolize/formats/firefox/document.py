"""A JSON text whose values are found when they are asked for: what is not needed is not decoded."""

import json
from typing import Any, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Float64, Int64
from symbolize.core.budget import json_cost
from symbolize.core.errors import InputError
from symbolize.core.json_scan import JsonDamage, numbers, skip_blanks, spans, value_end

MAX_KEYS: Final = 1 << 16
"""Keys of an object."""
MAX_COST: Final = 64 << 20
"""Bytes that the objects of a value may take that is decoded as a whole."""
OPENING: Final = {"a list": "[", "an object": "{"}
MAX_INTEGER: Final = 1 << 53
"""Up to here numbers of JavaScript are exact."""


class Span(NamedTuple):
    """Where a value is in a text."""

    begin: int
    end: int


Members = dict[str, Span]
"""Where the values of an object are, by their keys."""


class JsonText:
    """The values of `data`, a text that people know as `source`. All raise InputError for what is damaged, or is not
    what was asked for."""

    def __init__(self, data: memoryview, source: str) -> None:
        self.data = data
        self.source = source

    def root(self) -> Span:
        """The one value of the text."""
        try:
            begin = skip_blanks(self.data, 0)
            end = value_end(self.data, begin)
            if skip_blanks(self.data, end) < len(self.data):
                raise JsonDamage(end, "more stands behind the end")
            return Span(begin, end)
        except JsonDamage as error:
            raise self.damaged(error) from error

    def damaged(self, error: JsonDamage) -> InputError:
        """What is said of damage."""
        return self.problem(error.at, str(error))

    def problem(self, at: int, what: str) -> InputError:
        """What is said of a value that is not as it should be."""
        return InputError(self.source, f"is damaged at offset {at:#x}: {what}")

    def spans(self, span: Span, kind: str = "a list") -> Int64:
        """Where the items of a list, or the keys and values of an object, begin and end: int64[n, 2]."""
        if self.data[span.begin] != ord(OPENING[kind]):
            raise self.problem(span.begin, f"{kind} is expected")
        try:
            found: Int64 = spans(self.data, span.begin, span.end)
        except JsonDamage as error:
            raise self.damaged(error) from error
        return found

    def members(self, span: Span) -> Members:
        """The members of an object; of equal keys the last counts, as in JavaScript."""
        found = self.spans(span, "an object")
        if len(found) > 2 * MAX_KEYS:
            raise self.problem(span.begin, f"an object has more than {MAX_KEYS} keys")
        keys, values = found[::2].tolist(), found[1::2].tolist()
        return {self.text(Span(*key)): Span(*value) for key, value in zip(keys, values, strict=True)}

    def items(self, span: Span) -> list[Span]:
        """The items of a list."""
        return [Span(begin, end) for begin, end in self.spans(span).tolist()]

    def has(self, members: Members, key: str) -> bool:
        """Whether an object has a member that is not null."""
        return key in members and self.data[members[key].begin] != ord("n")

    def text(self, span: Span) -> str:
        """A text."""
        value = self.value(span)
        if not isinstance(value, str):
            raise self.problem(span.begin, "a text is expected")
        return value

    def value(self, span: Span, *, is_open: bool = False) -> Any:
        """A value as Python has it, which is not large; a list of items, if it `is_open`. Bytes that are no UTF-8 are
        replaced, as browsers do."""
        raw = bytes(self.data[span.begin : span.end])
        raw = b"[%b]" % raw if is_open else raw
        if json_cost(raw) > MAX_COST:
            raise self.problem(span.begin, "a value is too large")
        try:
            return json.loads(raw.decode(errors="replace"))
        except (ValueError, RecursionError) as error:
            raise self.problem(span.begin, "a value is no JSON") from error

    def numbers(self, span: Span) -> Float64:
        """A list of numbers, with NaN for null: float64[n]."""
        try:
            found: Float64 = numbers(self.data, span.begin, span.end)
        except JsonDamage as error:
            raise self.damaged(error) from error
        return found

    def integers(self, span: Span, null: int) -> Int64:
        """A list of integers, with `null` for null: int64[n]."""
        found = self.numbers(span)
        is_null = np.isnan(found)
        found[is_null] = null
        if not bool((np.abs(found) < MAX_INTEGER).all()) or bool((found != np.floor(found)).any()):
            raise self.problem(span.begin, "a list has numbers that are no integers")
        return found.astype(np.int64)


class DocumentTexts:
    """The texts of a list, each decoded when it is asked for."""

    def __init__(self, text: JsonText, span: Span) -> None:
        self._text = text
        self.spans = text.spans(span)
        self._known: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self.spans)

    def __getitem__(self, row: int) -> bytes:
        """A text by its row, empty for a row below 0. Raises InputError."""
        if row < 0:
            return b""
        if row not in self._known:
            span = Span(*self.spans[row].tolist())
            self._known[row] = self._text.text(span).encode(errors="backslashreplace")
        return self._known[row]
