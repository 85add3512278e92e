"""The frames of a profile, in a form that tests compare."""

from itertools import pairwise

from symbolize.profile import Profile


def frames_of(made: Profile) -> list[list[tuple[str, str, str, int, int]]]:
    """Name, system name, file, line and column of every frame of every location."""
    text, functions, lines = made.strings.text, made.functions, made.locations.lines
    frames = [
        (text(functions.name[f]), text(functions.system_name[f]), text(functions.filename[f]), line, column)
        for f, line, column in zip(lines.function.tolist(), lines.line.tolist(), lines.column.tolist(), strict=True)
    ]
    bounds = made.locations.line_offsets.tolist()
    return [frames[first:last] for first, last in pairwise(bounds)]
