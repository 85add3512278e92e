"""Values of a JSON text by where they are: the standard library's reader says what they are."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.json_scan import JsonDamage, numbers, spans, value_end

NUMBERS = (
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    NUMBERS | st.text(max_size=6),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=4), each, max_size=4),
    max_leaves=12,
)
LAYOUTS = st.sampled_from([{"separators": (",", ":")}, {}, {"indent": 1}, {"ensure_ascii": False}])


@given(VALUES, LAYOUTS, st.sampled_from(["", ",1", "]", " }"]))
def test_values_end_where_they_do(value: Any, layout: dict[str, Any], behind: str) -> None:
    """Whatever stands behind one; numbers go on to a border."""
    text = json.dumps(value, **layout).encode()
    assert value_end(text + behind.encode(), 0) == len(text)


@given(st.lists(VALUES, max_size=6) | st.dictionaries(st.text(max_size=4), VALUES, max_size=6), LAYOUTS)
def test_items(value: Any, layout: dict[str, Any]) -> None:
    """Items, or keys and values, are what the whole has."""
    text = json.dumps(value, **layout).encode()
    found = [json.loads(text[begin:end]) for begin, end in spans(text, 0, len(text)).tolist()]
    assert found == (value if isinstance(value, list) else [each for item in value.items() for each in item])


@given(st.lists(NUMBERS, max_size=8), LAYOUTS)
def test_numbers(values: list[Any], layout: dict[str, Any]) -> None:
    """Numbers are rounded as Python rounds them, null is NaN."""
    text = json.dumps(values, **layout).encode()
    found = numbers(text, 0, len(text)).tolist()
    wanted = [math.nan if each is None else float(each) for each in values]
    np.testing.assert_array_equal(found, wanted)


@given(st.lists(st.decimals(-(10**15), 10**15, places=6, allow_nan=False).map(str), min_size=1, max_size=8))
def test_fractions(texts: list[str]) -> None:
    """Also those that are read digit by digit."""
    text = f"[{','.join(texts)}]".encode()
    assert numbers(text, 0, len(text)).tolist() == json.loads(text)


@given(st.binary(max_size=40))
def test_anything(data: bytes) -> None:
    """Any bytes are stepped over or refused."""
    for begin in range(len(data)):
        for what in (value_end, spans, numbers):
            try:
                what(*((data, begin) if what is value_end else (data, begin, len(data))))
            except JsonDamage as damage:
                assert begin <= damage.at <= len(data)


@pytest.mark.parametrize(
    "text", ['["1"]', "[1,]", "[1 2]", "[,1]", "[-]", "[.5]", "[1.]", "[1..2]", "[nul]", "[NaN]", "[1", "1"]
)
def test_what_are_no_numbers(text: str) -> None:
    """Texts and damage are refused."""
    with pytest.raises(JsonDamage):
        numbers(text.encode(), 0, len(text))
