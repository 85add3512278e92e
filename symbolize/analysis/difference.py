"""Two profiles side by side."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from symbolize.analysis.frames import FrameNames, Texts
from symbolize.analysis.stacks import Stacks, stacks_of
from symbolize.analysis.totals import function_totals
from symbolize.analysis.units import quantity
from symbolize.core.arrays import Float64, Int32
from symbolize.core.errors import UsageError, check_count, check_flags
from symbolize.profile import FunctionChange, Profile, with_sample_type
from symbolize.profile.sample_types import Alignment, Column, aligned, kinds_of


def difference(new: Stacks, base: Stacks, *, normalize: bool = False) -> Stacks:
    """The stacks of both: of the 2k columns of values the first k are those of `new`, the others those of `base`.

    Frames are the same where name and module are, since builds may be of other folders; where a profile has that name
    in several files, the file has to be the same too. There are the sample types that both have, in the finer unit.
    With `normalize` the values of `new` are scaled so that its totals are those of `base`: the change is that of the
    shares. Raises UsageError if the sample type that `new` is shown by is not in both.
    """
    common = common_types(new.types, new.default, base)
    own = [column.row for column in common.columns[0]]
    (values, totals), (base_values, base_totals) = (
        scaled(stacks, columns) for stacks, columns in zip((new, base), common.columns, strict=True)
    )
    if normalize:
        ratios = np.divide(base_totals, totals, out=np.zeros_like(totals), where=totals != 0)
        values, totals = values * ratios, totals * ratios
    names, new_frames, base_frames = joined_names(new.names, base.names)
    files, sources = joined_files(new.files, base.files)
    k = len(own)
    both_values = np.zeros((len(new) + len(base), 2 * k))
    both_values[: len(new), :k] = values
    both_values[len(new) :, k:] = base_values
    return replace(
        new,
        names=names,
        frame_offsets=behind(new.frame_offsets, base.frame_offsets),
        frames=np.concatenate((new_frames[new.frames], base_frames[base.frames])),
        flags=np.concatenate((new.flags, base.flags)),
        files=files,
        sources=np.concatenate((new.sources, sources[base.sources])),
        lines=np.concatenate((new.lines, base.lines)),
        location_offsets=behind(new.location_offsets, base.location_offsets),
        locations=np.concatenate((new.locations, base.locations + np.int32(len(new.frame_offsets) - 1))),
        values=both_values,
        types=[(kind.decode(), unit.decode()) for kind, unit in common.kinds],
        default=own.index(new.default),
        totals=np.concatenate((totals, base_totals)),
    )


def common_types(types: Sequence[tuple[str, str]], default: int, base: Stacks) -> Alignment:
    """The sample types that some others have too. Raises UsageError if the one in the row `default` is not among
    them."""
    common = aligned(
        *([(kind.encode(), unit.encode()) for kind, unit in each] for each in (types, base.types))
    ).common()
    own = [column.row for column in common.columns[0]]
    if default not in own:
        have = ", ".join("/".join(each) for each in base.types)
        both = ", ".join(types[row][0] for row in own)
        shown = f"choose a sample type that both have: {both}" if both else "no sample type is in both"
        raise UsageError(f"the base has no sample type {'/'.join(types[default])}, only {have}; {shown}")
    return common


def changed_functions(
    new: Profile, base: Profile, count: int, sample_type: str | int, normalize: bool
) -> list[FunctionChange]:
    """The functions whose values differ most between two profiles, see `Profile.diff`."""
    check_count("count", count)
    check_flags(normalize=normalize)
    stacks = [stacks_of(each, has_lines=False) for each in (with_sample_type(new, sample_type), base)]
    both = difference(*stacks, normalize=normalize).only_default()
    return function_totals(both).most_changed(0, 1, count)


def note_on_extent(new: Profile, base: Profile) -> str:
    """What differs by more than a twentieth of how long two profiles were recorded, or of their totals: their values
    are hard to compare then. Empty if nothing does, or if it is not known."""
    durations = base.duration_nanos, new.duration_nanos
    if differ(*durations):
        texts = [quantity(each, "nanoseconds", " ") for each in durations]
        return f"the base was recorded for {texts[0]}, the other profile for {texts[1]}"
    common = aligned(kinds_of(new), kinds_of(base)).common()
    for kind, own, other in zip(common.kinds, *common.columns, strict=True):
        pair = [(base, other), (new, own)]
        totals = [float(np.abs(each.samples.values[:, c.row].astype(np.float64)).sum()) * c.factor for each, c in pair]
        if own.row == new.weight_column() and differ(*totals):
            texts = [quantity(each, kind[1].decode("utf-8", "backslashreplace"), " ") for each in totals]
            return f"the base has a total of {texts[0]}, the other profile of {texts[1]}"
    return ""


def differ(first: float, second: float) -> bool:
    """Whether two numbers are known and differ by more than a twentieth of the smaller one."""
    return min(first, second) > 0 and max(first, second) > 1.05 * min(first, second)


def scaled(stacks: Stacks, columns: Sequence[Column]) -> tuple[Float64, Float64]:
    """Values and totals in some columns, in their units."""
    rows, factors = [each.row for each in columns], np.array([float(each.factor) for each in columns])
    return stacks.values[:, rows] * factors, stacks.totals[rows] * factors


def behind(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The offsets of two CSR tables behind one another."""
    return np.concatenate((first[:-1], first[len(first) - 1] + second))


def joined_names(first: FrameNames, second: FrameNames) -> tuple[FrameNames, Int32, Int32]:
    """The distinct frames of both by what they read, and the row of each of `first` and of `second`."""
    known: dict[tuple[str, str, str], int] = {}
    files: list[str] = []
    rows: list[int] = []
    in_files = in_several_files(first) | in_several_files(second)
    for names in (first, second):
        for name, module, file in zip(names.names, names.modules, names.files, strict=True):
            row = known.setdefault((name, module, file if (name, module) in in_files else ""), len(known))
            files += [""] * (len(known) - len(files))
            files[row] = files[row] or file
            rows.append(row)
    columns = [name for name, _, _ in known], files, [module for _, module, _ in known]
    row_of = np.array(rows, np.int32)
    return FrameNames(*map(Texts.of, columns)), row_of[: len(first)], row_of[len(first) :]


def in_several_files(names: FrameNames) -> set[tuple[str, str]]:
    """The names and modules that functions of several files have."""
    known: dict[tuple[str, str], str] = {}
    columns = zip(names.names, names.modules, names.files, strict=True)
    return {(name, module) for name, module, file in columns if known.setdefault((name, module), file) != file}


def joined_files(first: list[str], second: list[str]) -> tuple[list[str], Int32]:
    """The distinct files of both, those of `first` in their rows, and the row of each of `second`."""
    known = {file: row for row, file in enumerate(first)}
    rows = [known.setdefault(file, len(known)) for file in second]
    return list(known), np.array(rows, np.int32)
