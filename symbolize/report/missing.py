"""The missing files as a shell script with comments."""

from symbolize.core.errors import printable
from symbolize.core.mapped_names import base_name
from symbolize.core.reasons import Reason
from symbolize.report.advice import NO_LIST, hint_of, kind_of
from symbolize.report.model import MappingRow, Report
from symbolize.report.reason_texts import HINTS, TEXTS, Hints

UNIDENTIFIED = (
    Reason.NO_IDENTITY,
    Reason.NOT_FOUND,
    Reason.BAD_BUILD_ID,
    Reason.NOT_ELF,
    Reason.AMBIGUOUS,
    Reason.MISFIT,
    Reason.NO_SYMBOLS,
    Reason.RESTRICTED,
    Reason.UNREADABLE,
    Reason.SERVER_FAILED,
)
"""Reasons that another file would help against, though its build id is not known."""


class Missing:
    """The files that the reports on some profiles want, each with the value of the frames in its mappings."""

    def __init__(self, hints: Hints = HINTS) -> None:
        self._hints = hints
        self._total = 0.0
        self._files: dict[tuple[str, str], tuple[float, str, str]] = {}
        self._names: dict[str, tuple[float, str]] = {}

    def add(self, report: Report) -> None:
        """Add the files of a report."""
        self._total += report.value
        for row in report.mappings:
            if not row.locations:
                continue
            reason = row.misses[0][0] if row.misses else Reason.SYMBOLIZED
            name = base_name(row.name) or "(no name)"
            for kind in row.outcome.wanted:
                value, _, _ = self._files.get((row.outcome.wanted_id, kind), (0.0, "", ""))
                self._files[row.outcome.wanted_id, kind] = value + row.value, name, why(row, kind)
            is_listed = reason in NO_LIST and kind_of(row.name) != ""
            if not row.outcome.wanted and (reason in UNIDENTIFIED or is_listed):
                value, _ = self._names.get(row.name, (0.0, ""))
                found = hint_of(reason, row.name, self._hints)
                self._names[row.name] = value + row.value, TEXTS[reason] + (f", {found[1]}" if found else "")

    def text(self) -> str:
        """A command a line, the heaviest first; names from files are in comments only."""
        lines = ["# What is missing, heaviest first. Run this file, or let symbolize ask a debuginfod server."]
        files = sorted(self._files.items(), key=lambda item: (-item[1][0], item[0]))
        for (build_id, kind), (value, name, reason) in files:
            lines.append(f"debuginfod-find {kind} {build_id}  # {self._share(value)}{printable(name)}: {reason}")
        for name, (value, reason) in sorted(self._names.items(), key=lambda item: (-item[1][0], item[0])):
            lines.append(f"# {self._share(value)}{printable(name) or '(no name)'}: {reason}")
        if len(lines) == 1:
            lines = ["# Nothing is missing."]
        return "\n".join(lines) + "\n"

    def _share(self, value: float) -> str:
        return f"{100 * value / self._total:.1f} %, " if self._total else ""


def why(row: MappingRow, kind: str) -> str:
    """What a missing file would add."""
    if row.symbolized_locations and kind == "debuginfo":
        return "would add lines and inlined functions" + (", and names" if row.misses else "")
    if not row.files:
        return TEXTS[row.misses[0][0]] if row.misses else "not found"
    return "has the addresses of the code" if kind == "executable" else "has names and lines"
