"""`symbolize inspect FILE...`: what a binary or a profile contains."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from symbolize.cli.arguments import Parser
from symbolize.cli.console import EXIT_DONE, EXIT_FAILED, print_error, print_output
from symbolize.cli.options import add_form_options, add_list, limit_of
from symbolize.core.errors import InputError, UsageError, printable
from symbolize.core.files import no_such

if TYPE_CHECKING:
    from symbolize.inspection import Debug, Elf, Inspection, Listed, ProfileContent

TYPES = {
    "EXEC": "executable",
    "DYN": "shared object or position-independent executable",
    "REL": "relocatable file",
    "CORE": "core dump",
}
CODE = {"here": "in the file", "elsewhere": "not in the file, which is a debug file", "none": "none"}
MAX_ROWS = 32
"""Segments, libraries and attempts that are printed."""
PROFILE_COLUMNS = "stacks", "value", "began", "lasts", "profile"
MAX_VALUES = 8
MAX_TEXT = 48
"""Values of a label that are printed, and letters of each."""


def run_inspect(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code: 1 if a file could not be read."""
    from symbolize.formats.perf import recording_in
    from symbolize.inspection import inspect
    from symbolize.symbols import default_folder

    options = inspect_parser().parse_args(arguments)
    if "" in options.files:
        raise UsageError("a file has an empty name")
    for folder in options.binaries:
        if not os.path.exists(folder):
            raise UsageError(f"{folder}: {no_such(folder, 'folder or file')}")
    code, found = EXIT_DONE, []
    limit = limit_of(options)
    for path in options.files:
        problem = ""
        try:
            if os.path.isdir(path) and recording_in(path) is None:
                raise InputError(path, "is a folder: inspect a FILE in it; symbolize index reads whole folders")
            inspection = inspect(path, options.binaries, default_folder() if options.binaries else None)
        except InputError as error:
            problem = str(error)
        except MemoryError:
            problem = f"{path}: out of memory"
        except Exception as error:  # one file must not stop the others
            problem = f"{path}: {type(error).__name__}: {error}"
        if problem:
            print_error(f"symbolize: {printable(problem)}")
            code = EXIT_FAILED
            continue
        if options.json:
            found.append(as_data(inspection))
        elif options.markdown:
            print_output("\n".join(markdown(inspection, limit or MAX_ROWS)) + "\n\n", flush=True)
        else:
            print_output("\n".join(text(inspection, limit or MAX_ROWS)) + "\n", flush=True)
    if options.json:
        import json

        from symbolize.report.json import bounded

        cuts: list[dict[str, object]] = []
        files = [bounded(each, limit or MAX_ROWS, cuts, f"files[{number}]") for number, each in enumerate(found)]
        data = {"schema_version": 1, "files": files, "truncated": bool(cuts), "cuts": cuts}
        print_output(json.dumps(data, indent=1) + "\n", flush=True)
    return code


def inspect_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize inspect",
        "Show what a binary, a debug file or a list of symbols contains: symbols, debug information, links to other "
        "files and whether these exist, and what symbolize uses of it; or what is in a profile or trace.",
        ["[OPTIONS] FILE..."],
        epilog="Exit codes: 0 done, 1 a file could not be read, 2 usage.",
    )
    result.add_argument(
        "files", metavar="FILE", nargs="+", help="binary, debug file, list of symbols, profile or trace"
    )
    add_list(
        result.group("Binaries"),
        "--binaries",
        "-b",
        metavar="DIR",
        help="folder to search for files that belong to FILE\n(default: the folder of FILE and its subfolders); may be "
        "given several times",
    )
    add_form_options(result, "entries of each kind", f"{MAX_ROWS}; with --json 1000, with --markdown 100")
    return result


def as_data(value: Any) -> Any:
    """An inspection as dictionaries, lists and plain values."""
    from dataclasses import fields, is_dataclass

    if is_dataclass(value):
        return {each.name: as_data(getattr(value, each.name)) for each in fields(value)}
    if hasattr(value, "_asdict"):
        return as_data(value._asdict())
    if isinstance(value, dict):
        return {str(key): as_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_data(each) for each in value]
    return value


def text(inspection: Inspection, limit: int) -> Iterator[str]:
    """An inspection as lines of text."""
    yield heading(inspection)
    profiles = named_profiles(inspection)
    if profiles:
        rows = [PROFILE_COLUMNS, *map(profile_cells, profiles[:limit])]
        widths = [max(len(row[column]) for row in rows) for column in range(len(PROFILE_COLUMNS) - 1)] + [0]
        for row in rows:
            yield "  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
    if len(profiles) > limit:
        yield f"  and {len(profiles) - limit:,} more, which --json shows"
    for name, value in shown_rows(inspection, limit):
        yield f"  {name:<16} {printable(value)}"
    yield f"  {printable(inspection.conclusion)}."


def markdown(inspection: Inspection, limit: int) -> Iterator[str]:
    """An inspection as lines of Markdown."""
    from symbolize.analysis.markdown import MAX_SENTENCE, code, more, table_rows

    yield from (f"### {code(heading(inspection))}", "")
    profiles = named_profiles(inspection)
    if profiles:
        yield from table_rows(PROFILE_COLUMNS, map(profile_cells, profiles[:limit]))
        yield from ("", more(min(limit, len(profiles)), len(profiles), "profiles"), "")
    yield from table_rows(("what", "value"), shown_rows(inspection, limit), MAX_SENTENCE)
    yield from ("", code(f"{inspection.conclusion}.", MAX_SENTENCE))


def heading(inspection: Inspection) -> str:
    """The first line on an inspection."""
    return f"{printable(inspection.path)}: {inspection.kind}, {count(inspection.size, 'byte')}"


def shown_rows(inspection: Inspection, limit: int) -> Iterator[tuple[str, str]]:
    """The rows of an inspection, title and text: `limit` of each title, then how many there are more."""
    rows: list[tuple[str, str]] = []
    if inspection.elf is not None:
        rows += elf_rows(inspection.elf)
    if inspection.listed is not None:
        rows += listed_rows(inspection.listed)
    for library in inspection.libraries or ():
        stored = "stored" if library.is_stored else "deflated"
        content = library.problem or (
            f"build id {library.build_id or 'none'}, {count(library.functions, 'function')}"
            + (", DWARF" if library.has_dwarf else "")
        )
        rows.append(("library", f"{library.name}: {stored}, {count(library.size, 'byte')}, {content}"))
    if inspection.profiles is not None:
        rows += profile_rows(inspection.profiles)
    rows += [("problem", problem) for problem in inspection.problems]
    shown: dict[str, int] = {}
    for name, value in rows:
        shown[name] = shown.get(name, 0) + 1
        if shown[name] <= limit:
            yield name, value
    for name, number in shown.items():
        if number > limit:
            yield name, f"and {number - limit} more, which --json shows"


def named_profiles(inspection: Inspection) -> Sequence[ProfileContent]:
    """The profiles of a trace; none of an input with one that has no name."""
    profiles = inspection.profiles or ()
    return profiles if profiles and profiles[0].name else ()


def profile_cells(profile: ProfileContent) -> tuple[str, ...]:
    """A profile of a trace as a row of PROFILE_COLUMNS."""
    from symbolize.analysis.units import quantity_of

    kind = profile.sample_types[profile.default_type]
    value = quantity_of(kind.total, kind.type, kind.unit)
    lasts = f"{profile.seconds:,.1f} s" if profile.seconds else "-"
    return tuple(map(printable, (f"{profile.samples:,}", value, profile.began or "-", lasts, profile.title)))


def profile_rows(profiles: Sequence[ProfileContent]) -> Iterator[tuple[str, str]]:
    """The rows of a profile, or of all profiles of a trace: title and text."""
    from symbolize.analysis.units import quantity
    from symbolize.inspection import all_mapped_files

    if not profiles[0].name:
        (profile,) = profiles
        yield "stacks", f"{profile.samples:,}"
        for column, kind in enumerate(profile.sample_types):
            shown_first = ", shown first" * (column == profile.default_type and len(profile.sample_types) > 1)
            yield "sample type", f"{kind.type}/{kind.unit}, {quantity(kind.total, kind.unit, ' ')}{shown_first}"
        if profile.began:
            yield "began", profile.began
        if profile.seconds:
            yield "lasts", f"{profile.seconds:,.2f} s"
        lines = f", {profile.with_lines:,} with lines" if profile.named_locations else ""
        yield from label_rows(profile)
        yield "locations", f"{profile.locations:,}, {profile.named_locations:,} with names{lines}"
    for row in all_mapped_files(profiles):
        build_id = f"build id {row.build_id}" if row.build_id else "no build id"
        names = f", {row.named_locations:,} with names" if row.named_locations else ""
        yield "mapping", f"{row.name or '(no file name)'}, {build_id}: {count(row.locations, 'location')}{names}"
    for profile in profiles:
        for warning in profile.warnings:
            yield "warning", f"{profile.title}: {warning}" if profile.title else warning


def label_rows(profile: ProfileContent) -> Iterator[tuple[str, str]]:
    """The rows of the labels of a profile: title and text."""
    from symbolize.analysis.units import percent, quantity
    from symbolize.core.terminal import shortened

    for each in profile.labels:
        kind = profile.sample_types[profile.default_type]
        values = [
            f"{percent(total, each.whole)} {shortened(text, MAX_TEXT, MAX_TEXT // 2)} "
            f"({quantity(total, kind.unit, ' ')})"
            for text, total in each.heaviest[:MAX_VALUES]
        ]
        more = [f"{each.values - MAX_VALUES:,} more"] if each.values > MAX_VALUES else []
        yield "label", f"{each.key}: {', '.join([*values, *more])}"


def elf_rows(elf: Elf) -> Iterator[tuple[str, str]]:
    """The rows of an ELF file: title and text."""
    yield "type", f"{TYPES.get(elf.type, elf.type)}, {elf.machine}, {elf.bits}-bit, {elf.byte_order}"
    yield "build id", elf.build_id or "none"
    for segment in elf.segments:
        yield (
            "segment",
            f"offset {segment.file_offset:#x}, vaddr {segment.vaddr:#x}, {segment.file_size:#x} bytes in the file, "
            f"{segment.memory_size:#x} in memory" + (", executable" if segment.executable else ""),
        )
    yield "code", CODE[elf.code]
    for table, number in elf.functions.items():
        yield table, count(number, "function")
    if not elf.functions:
        yield "symbols", "none"
    if elf.go is not None:
        yield ".gopclntab", f"as of Go {elf.go.layout}, {count(elf.go.functions, 'function')}"
        if elf.go.build_id:
            yield "Go build id", elf.go.build_id
    yield "DWARF", debug_text(elf.debug) if elf.debug is not None else "none"
    if elf.splits is not None:
        yield "split units", f"{elf.splits.found} of {elf.splits.needed} found"
        for name in elf.splits.missing:
            yield "missing", name
    for path, units in elf.packages:
        yield "package", f"{path}, {count(units, 'unit')}"
    for link in elf.links:
        what = "checksum" if link.section in (".gnu_debuglink", ".debug_sup") else "build id"
        yield link.section, f"{link.name}, {what} {link.identifier}: {link.resolved or 'leads to no file'}"
        if not link.resolved:
            for path, outcome in link.tried:
                yield "tried", f"{path}: {outcome}"
    for other in elf.same_build:
        yield "same build id", f"{other.path}: {', '.join(other.offers) or 'nothing'}"


def debug_text(debug: Debug) -> str:
    """Debug information in a line."""
    versions = ", ".join(f"{number} of version {version}" for version, number in sorted(debug.versions.items()))
    parts = [f"{count(debug.units, 'unit')} in {debug.section}" + (f" ({versions})" if versions else "")]
    for number, name in (
        (debug.split, "split"),
        (debug.types, "type"),
        (debug.partial, "partial"),
        (debug.unreadable, "unreadable"),
    ):
        if number:
            parts.append(count(number, f"{name} unit"))
    parts.append(f"{count(debug.size, 'byte')} of debug sections")
    if debug.described is not None:
        parts.append(f"for {100 * debug.described:.0f} % of the code")
    if debug.compression:
        parts.append(f"compressed with {', '.join(debug.compression)}")
    return ", ".join(parts)


def listed_rows(listed: Listed) -> Iterator[tuple[str, str]]:
    """The rows of a list of functions: title and text."""
    yield from listed.about.items()
    yield "functions", f"{listed.functions:,}"
    if listed.end:
        yield "addresses", f"{listed.begin:#x}-{listed.end:#x}"
    yield "lines", "yes" if listed.has_lines else "no"
    yield "inlined calls", "yes" if listed.has_inlined else "no"


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
