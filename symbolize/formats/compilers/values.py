"""The values that compilers take: how often code was sampled, and the time of that."""

from symbolize.core.arrays import NONE
from symbolize.core.errors import UsageError
from symbolize.profile import Profile
from symbolize.profile.sample_types import Column, kinds_of, text_of, unit_of


def sampled_columns(profile: Profile, output: str) -> list[Column]:
    """The columns of counts and of nanoseconds: how often the type that is shown was sampled, which formats that have
    it have before it, and its time, or the count times a period of time. Raises UsageError for a profile of memory."""
    kinds, shown = kinds_of(profile), profile.weight_column()
    if not kinds:
        return [Column(NONE)]
    unit = unit_of(kinds[shown][1].decode(errors="replace"))
    if unit is not None and unit.kind == "size":
        raise UsageError(f"{output}: {text_of(kinds[shown])} is memory, and compilers take samples of running code")
    counts = [row for row in range(shown + 1) if kinds[row][1] == b"count" and b"sample" in kinds[row][0]]
    columns = [Column(counts[-1] if counts else shown)]
    period = unit_of(profile.strings[profile.period_type.unit].decode(errors="replace"))
    if unit is not None and unit.kind == "time":
        columns.append(Column(shown, unit.factor))
    elif counts and period is not None and period.kind == "time" and profile.period > 0:
        columns.append(Column(counts[-1], profile.period * period.factor))
    return columns
