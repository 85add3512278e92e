"""Records take what dataclasses take, and refuse the same."""

from dataclasses import asdict, field, replace

import pytest

from symbolize.core.records import record


@record(frozen=True)
class Pair:
    """A field without a default and one with."""

    first: int
    second: list[int] = field(default_factory=list)


@record(frozen=True, kw_only=True)
class Named:
    """A field that is given by name only."""

    name: str = "none"


@record(frozen=True)
class Child(Named):
    """Fields of its own come before those."""

    number: int

    def __post_init__(self) -> None:
        assert self.number > 0


def test_fields() -> None:
    """They are given in order, by name, or by default, of which each instance has its own."""
    assert asdict(Pair(1, [2])) == asdict(Pair(second=[2], first=1)) == {"first": 1, "second": [2]}
    assert Pair(1).second == [] and Pair(1).second is not Pair(1).second
    assert Pair(1) != Pair(1) and len({Pair(1), Pair(1)}) == 2
    assert asdict(replace(Pair(1, [2]), first=3)) == {"first": 3, "second": [2]}
    assert asdict(Child(1)) == {"name": "none", "number": 1}
    assert asdict(Child(2, name="x")) == {"name": "x", "number": 2}
    with pytest.raises(AssertionError):
        Child(0)


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, [], 2), {}), ((1,), {"first": 1}), ((1,), {"third": 1}), ((), {"second": []})]
)
def test_wrong_fields(values: tuple[int, ...], named: dict[str, int]) -> None:
    """Missing ones, further ones, and what is given twice."""
    with pytest.raises(TypeError, match=r"^Pair: "):
        Pair(*values, **named)
