"""The types of samples: units of values, which columns of two profiles count the same, which type is shown."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple, Never

import numpy as np

from symbolize.core.arrays import NONE, Int64, UInt8
from symbolize.core.errors import UsageError
from symbolize.profile.model import LeafKind, Profile, ValueType

Kind = tuple[bytes, bytes]
"""Name and unit of a sample type."""

LARGEST = (1 << 63) - 1
MAX_DIGITS = 9
"""Digits of the number of a sample type, at most."""
INUSE: Final = "inuse_"
"""What the names of values of a heap begin with where those of all allocations are beside them."""


class Unit(NamedTuple):
    """A unit: what it measures, and how many of the smallest unit for that it is."""

    kind: str
    factor: int


def _units() -> Iterator[tuple[str, Unit]]:
    """The units by all names that pprof knows for them, and minutes, in the singular."""
    for power, names in enumerate(("b byte", "kb kbyte kilobyte", "mb mbyte megabyte", "gb gbyte gigabyte")):
        yield from ((name, Unit("size", 1024**power)) for name in names.split())
    for power, names in enumerate(("tb tbyte terabyte", "pb pbyte petabyte"), 4):
        yield from ((name, Unit("size", 1024**power)) for name in names.split())
    for power, names in enumerate(("ns nanosecond", "us μs microsecond", "ms millisecond", "s sec second")):
        yield from ((name, Unit("time", 1000**power)) for name in names.split())
    yield from ((name, Unit("time", 60 * 10**9)) for name in ("min", "minute"))
    yield from ((name, Unit("time", 3600 * 10**9)) for name in ("hour", "hr"))
    for power, prefix in enumerate(("nano", "micro", "milli", "", "kilo", "mega", "giga", "tera", "peta")):
        yield f"{prefix}gcu", Unit("gcu", 1000**power)


UNITS: Final = dict(_units())
SHORT: Final = 2
"""Characters of a unit that has no plural."""


def unit_of(name: str) -> Unit | None:
    """The unit of a name, whatever its case and number; None if it is none of size or time."""
    name = name.lower()
    return UNITS.get(name.removesuffix("s") if len(name) > SHORT else name)


class Column(NamedTuple):
    """A column of values of one profile: its row there (NONE: zeros), and what its values are multiplied with."""

    row: int
    factor: int = 1


class Alignment(NamedTuple):
    """The sample types of two profiles together, and for each of the profiles its columns in that order."""

    kinds: list[Kind]
    columns: tuple[list[Column], list[Column]]

    def common(self) -> "Alignment":
        """Those that both have."""
        rows = [row for row, pair in enumerate(zip(*self.columns, strict=True)) if all(c.row != NONE for c in pair)]
        first, second = ([columns[row] for row in rows] for columns in self.columns)
        return Alignment([self.kinds[row] for row in rows], (first, second))

    def not_common(self) -> list[Kind]:
        """Those that only one has."""
        pairs = zip(self.kinds, *self.columns, strict=True)
        return [kind for kind, a, b in pairs if NONE in (a.row, b.row)]


def kinds_of(profile: Profile) -> list[Kind]:
    """The sample types of a profile."""
    return [kind_of(profile, each) for each in profile.sample_types]


def kind_of(profile: Profile, value_type: ValueType) -> Kind:
    """Name and unit of a value type."""
    return profile.strings[value_type.type], profile.strings[value_type.unit]


def text_of(kind: Kind) -> str:
    """Name and unit as messages have them: `cpu/nanoseconds`."""
    return b"/".join(kind).decode("utf-8", "backslashreplace")


def factors(first: Kind, second: Kind) -> tuple[Kind, int, int] | None:
    """Two kinds that count the same as one in the finer unit, and what the values of each are multiplied with; None if
    they count different things. Names may differ by a final s, as pprof has it, and by `inuse_`: a dump of a heap has
    `space` as long as nothing was freed, and later `inuse_space` beside `alloc_space`."""
    if first == second:
        return first, 1, 1
    units = [unit_of(each[1].decode("utf-8", "replace")) for each in (first, second)]
    a, b = units
    names = [each[0].removeprefix(INUSE.encode()).removesuffix(b"s") for each in (first, second)]
    if names[0] != names[1]:
        return None
    if first[1] == second[1]:
        return first, 1, 1
    if a is None or b is None or a.kind != b.kind:
        return None
    finer = min(a.factor, b.factor)
    unit = first[1] if a.factor <= b.factor else second[1]
    if a.factor % finer or b.factor % finer:
        return None
    return (first[0], unit), a.factor // finer, b.factor // finer


def aligned(first: list[Kind], second: list[Kind]) -> Alignment:
    """The sample types of two profiles together: those of `first`, then those that only `second` has."""
    kinds = [*first]
    columns = [Column(row) for row in range(len(first))]
    others = [Column(NONE)] * len(first)
    for is_exact in (True, False):
        for row, kind in enumerate(second):
            if any(each.row == row for each in others):
                continue
            for number, known in enumerate(first):
                found = factors(known, kind)
                if others[number].row == NONE and found is not None and (known == kind or not is_exact):
                    kinds[number] = found[0]
                    columns[number], others[number] = Column(number, found[1]), Column(row, found[2])
                    break
    for row, kind in enumerate(second):
        if not any(each.row == row for each in others):
            kinds.append(kind)
            columns.append(Column(NONE))
            others.append(Column(row))
    return Alignment(kinds, (columns, others))


def common_kinds(first: Profile, second: Profile, names: tuple[str, str]) -> Alignment:
    """The sample types that two profiles have both. Raises UsageError if there are none, unless neither has any, or if
    the profiles count by unlike periods."""
    kinds = kinds_of(first), kinds_of(second)
    found = aligned(*kinds)
    if not found.common().kinds and any(kinds):
        refuse_unlike("the sample types", kinds, names)
    periods = kind_of(first, first.period_type), kind_of(second, second.period_type)
    if any(periods[0]) and any(periods[1]) and factors(*periods) is None:
        refuse_unlike("periods of", ([periods[0]], [periods[1]]), names)
    return found


def refuse_unlike(what: str, kinds: tuple[list[Kind], list[Kind]], names: tuple[str, str]) -> Never:
    """Raise UsageError for two profiles that have unlike types."""
    texts = [", ".join(map(text_of, each)) or "none" for each in kinds]
    raise UsageError(
        f"{names[1]} has {what} {texts[1]}, and {names[0]} has {texts[0]}: unlike types are merged only side by side"
    )


def values_of(profile: Profile, columns: list[Column]) -> tuple[Int64, int]:
    """The values of a profile in some columns; how many of them exceeded 64 bits, which are limited to that."""
    own = profile.samples.values
    result = np.zeros((len(own), len(columns)), np.int64)
    exceeded = 0
    for number, (row, factor) in enumerate(columns):
        if row == NONE:
            continue
        values, factor = own[:, row], min(factor, LARGEST)
        too_large, too_small = values > LARGEST // factor, values < -(LARGEST // factor)
        exceeded += int(np.count_nonzero(too_large | too_small)) if factor > 1 else 0
        result[:, number] = values * factor
        if factor > 1:
            result[too_large, number], result[too_small, number] = LARGEST, -LARGEST - 1
    return result, exceeded


def joined_leaf_kinds(first: Profile, second: Profile, alignment: Alignment) -> UInt8:
    """What the leaves are that each sample type of both counts: unknown where the two differ."""
    if not (len(first.leaf_kinds) or len(second.leaf_kinds)):
        return np.zeros(0, np.uint8)
    found = np.zeros(len(alignment.kinds), np.uint8)
    for number, pair in enumerate(zip(*alignment.columns, strict=True)):
        kinds = {
            profile.leaf_kind(column.row)
            for profile, column in zip((first, second), pair, strict=True)
            if column.row != NONE
        }
        found[number] = kinds.pop() if len(kinds) == 1 else LeafKind.UNKNOWN
    return found


def choose_sample_type(profile: Profile, name: str) -> None:
    """Make a sample type, given by its name or by its number from 0 on, the one that a profile is weighed and shown by.

    `inuse_space` denotes `space` too, as pprof has it, and the other way round; of several with the name the first is
    meant. A number may be that of a later one: its values become the first then. Raises UsageError for one that is not
    there.
    """
    names = [profile.strings.text(each.type) for each in profile.sample_types]
    column = int(name) if name.isascii() and name.isdigit() and len(name) <= MAX_DIGITS else position(names, name)
    if column is None or column >= len(names):
        known = ", ".join(names) or "none"
        what = f"sample type {name} is there" if column is not None else f"sample type is called {name!r}"
        raise UsageError(f"no {what}; {profile.source or 'the profile'} has {known}")
    profile.default_sample_type = profile.sample_types[column].type
    if names.index(names[column]) == column:
        return
    order = [column, *range(column), *range(column + 1, len(names))]
    chosen = with_types(profile, order)
    profile.sample_types, profile.samples, profile.leaf_kinds = chosen.sample_types, chosen.samples, chosen.leaf_kinds
    profile.sample_times = None  # they are of columns


def with_sample_type(profile: Profile, name: str | int) -> Profile:
    """The profile weighed and shown by the sample type that `choose_sample_type` finds; as it is for an empty name."""
    if name != "":
        profile = replace(profile)
        choose_sample_type(profile, str(name))
    return profile


def show_first_event(profile: Profile, types: int = 2) -> None:
    """Make the first event with values the one that the profile of a recording is weighed and shown by. Each event has
    so many sample types: how often it was sampled, and how often it happened."""
    count = len(profile.sample_types)
    for column in (*range(types - 1, count, types), *range(count)):
        if profile.samples.values[:, column].any():
            profile.default_sample_type = profile.sample_types[column].type
            return


def with_types(profile: Profile, order: list[int]) -> Profile:
    """The profile with some of its sample types, given by their rows, in that order."""
    values = profile.samples.values.reshape(-1, len(profile.sample_types))
    return replace(
        profile,
        sample_types=[profile.sample_types[each] for each in order],
        samples=replace(profile.samples, values=values[:, order]),
        leaf_kinds=profile.leaf_kinds[order] if len(profile.leaf_kinds) else profile.leaf_kinds,
    )


def position(names: list[str], name: str) -> int | None:
    """Where the first of the names is that `name` denotes."""
    choices = (name, name.removeprefix(INUSE)), (INUSE + name,)
    return next((row for meant in choices for row, each in enumerate(names) if each in meant), None)
