"""Two profiles side by side."""

from dataclasses import replace

import numpy as np

from symbolize.analysis.frames import FrameNames, Texts
from symbolize.analysis.stacks import Stacks
from symbolize.core.arrays import Int32
from symbolize.core.errors import UsageError


def difference(new: Stacks, base: Stacks) -> Stacks:
    """The stacks of both: of the 2k columns of values the first k are those of `new`, the others those of `base`.

    Frames are the same where name and module are, since builds may be of other folders; where a profile has that name
    in several files, the file has to be the same too. Raises UsageError if a sample type of `new` is not in `base`.
    """
    columns = []
    for kind in new.types:
        if kind not in base.types:
            have = ", ".join("/".join(each) for each in base.types) or "none"
            raise UsageError(f"the base has no sample type {'/'.join(kind)}; it has {have}")
        columns.append(base.types.index(kind))
    names, new_frames, base_frames = joined_names(new.names, base.names)
    files, sources = joined_files(new.files, base.files)
    k = len(new.types)
    values = np.zeros((len(new) + len(base), 2 * k))
    values[: len(new), :k] = new.values
    values[len(new) :, k:] = base.values[:, columns]
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
        values=values,
        totals=np.concatenate((new.totals, base.totals[columns])),
    )


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
