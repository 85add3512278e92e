"""The reports on the profiles of one run: where they go, in which form, and one table where there are several."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import TYPE_CHECKING, Final

from symbolize.cli.console import print_error, print_output
from symbolize.cli.options import merges_all
from symbolize.cli.outputs import kept_text
from symbolize.core.errors import UsageError, printable
from symbolize.core.terminal import DEFAULT_WIDTH, Style, cells, has_colour, width_of, wrapped
from symbolize.formats.files import STANDARD_OUTPUT, output_file
from symbolize.formats.outputs import PPROF, Output

if TYPE_CHECKING:
    from symbolize.formats.model import LoadedProfile
    from symbolize.report import Report
    from symbolize.report.advice import Advice
    from symbolize.report.text import ReportRow

FORMS: Final = ("text", "json", "html", "none")
VIEWERS: Final = {
    "html": "in any browser",
    "svg": "in any browser",
    "speedscope": "at https://www.speedscope.app",
    "firefox": "at https://profiler.firefox.com",
}
"""Where each kind of output can be looked at."""
MAX_NAMELESS: Final = 3
"""Profiles without names that are listed."""
MAX_WARNINGS: Final = 10
"""Warnings of several profiles that are printed; -v prints all."""


def form_of(options: argparse.Namespace) -> str:
    """The form of the report: that of --report, else the one that the ending of --report-file names, else text."""
    if options.report is not None:
        return str(options.report)
    ending = os.path.splitext(options.report_file or "")[1].lstrip(".")
    return ending if ending in FORMS else "text"


def check_report(options: argparse.Namespace) -> None:
    """Raise UsageError if the report would get into the profile, or would not be written."""
    form = form_of(options)
    if options.output == STANDARD_OUTPUT and form in ("json", "html") and options.report_file is None:
        raise UsageError(f"-o - is the profile itself: name a file for the {form} report with --report-file")
    if form == "none" and options.report_file is not None:
        raise UsageError("--report none writes no report, and --report-file asks for one")


class Reports:
    """Prints or writes the reports of a run, each when its profile is done; of several as a table at the end.

    Text that would get into a profile on standard output goes to standard error.
    """

    def __init__(self, options: argparse.Namespace, output: Output | None) -> None:
        self._output = output
        self._form = form_of(options)
        self._file: str | None = options.report_file
        self._quiet: bool = options.quiet
        self._verbose: bool = options.verbose
        self._hint = "" if options.binaries or options.debuginfod else "; name a folder with --binaries"
        self._sources: int = len(options.profiles)
        self._merges: bool = merges_all(options)
        self._to_errors = options.output == STANDARD_OUTPUT
        self._pieces: list[str] = []
        self._waiting: list[dict[str, object]] = []
        self._rows: list[ReportRow] = []
        self._advice: Advice | None = None
        self._only: Report | None = None
        self._warnings: list[str] = []
        self._nameless: list[str] = []
        self._symbols: list[str] = []
        self._replaced: set[str] = set()
        self._kept: list[str] = []

    @property
    def _is_text(self) -> bool:
        return self._form == "text" and (not self._quiet or self._file is not None)

    def will_write(self, output: str) -> None:
        """Note whether an output replaces a file."""
        if output != STANDARD_OUTPUT and os.path.isfile(output):
            self._replaced.add(output)

    def keeps(self, output: str) -> None:
        """Note that a file with names is not replaced by one without."""
        self._kept.append(output)

    def add(self, report: Report, source: str, loaded: LoadedProfile, output: str, several: bool) -> None:
        """Report on a profile, one of `several` perhaps, that was written to `output` (empty: it was not). Failures are
        printed even with --quiet."""
        title = title_of(source, loaded, several)
        if self._quiet:
            for failure in report.failures:
                print_error(f"symbolize: {printable(title)}: {printable(failure.sentence)}; run again")
        if not report.percent and not report.symbolized_locations:  # names may be of another sample type only
            self._nameless.append(title)
        if self._quiet and self._file is None:
            return
        self._note(report, source, loaded, output)
        if self._file is not None and not self._quiet:  # nobody reads a file of a run that went well
            for caution in report.cautions[:MAX_WARNINGS]:
                print_error(f"symbolize: warning: {printable(f'{title}: {caution}')}")
        is_kept = output in self._kept
        if self._form == "json":
            from symbolize.report.json import as_dict, render

            data = as_dict(report, profile_name(source, loaded, several), output, loaded, is_kept=is_kept)
            if self._merges:  # what becomes of the output is known at the end
                self._waiting.append(data)
            else:
                self._put(render(data))
        elif self._form == "html":
            from symbolize.cli.hints import OPTION_HINTS
            from symbolize.report.html import section

            self._pieces.append(section(report, title, output, OPTION_HINTS, is_kept=is_kept))
        elif self._is_text and not several:
            self._put(self._text(report) + self._written([output]))
        elif self._is_text and self._verbose:
            self._put(f"{printable(title)}:\n{self._text(report)}\n")

    def _note(self, report: Report, source: str, loaded: LoadedProfile, output: str) -> None:
        """Keep what the table at the end needs."""
        from symbolize.cli.hints import OPTION_HINTS
        from symbolize.report.advice import Advice
        from symbolize.report.text import ReportRow

        parts = [source] if self._sources > 1 or not loaded.subject else []
        subject = ": ".join([*parts, *filter(None, [loaded.subject])])
        self._only = None if self._rows else report
        self._rows.append(ReportRow.of(report, subject, loaded.what, output))
        self._advice = self._advice or Advice(OPTION_HINTS)
        self._advice.add(report)
        self._warnings += (f"{subject}: {text}" for text in report.cautions)

    def wrote_symbols(self, output: str, addresses: int, modules: int) -> None:
        """Report on the symbols that were written for a trace."""
        if self._is_text and output != STANDARD_OUTPUT:
            binaries = f"{modules:,} binar{'y' if modules == 1 else 'ies'}"
            self._symbols.append(f"wrote {printable(output)}: {addresses:,} addresses of {binaries}\n")

    def finish(self, several: bool) -> None:
        """Print or write what is left when all profiles are done. Raises OutputError."""
        if several and self._is_text and self._rows:
            self._put(self._table())
        for data in self._waiting:
            from symbolize.report.json import render

            self._put(render(data | {"kept": data["output"] in self._kept}))
        if self._symbols:
            self._put("".join(self._symbols))
        if self._form == "html" and self._pieces:
            from symbolize.report.html import page

            document = page(self._pieces, self._rows)
            self._pieces = []
            self._put(document)
        if self._file is not None and self._pieces:
            with output_file(self._file) as file:
                file.write("".join(self._pieces).encode(errors="backslashreplace"))
        if not self._quiet:
            self._warn_of_nameless()
        if self._kept:
            print_error(f"symbolize: {kept_text(self._kept)}")

    def _warn_of_nameless(self) -> None:
        if len(self._nameless) == 1:
            what = f"{self._nameless[0]}: NOTHING WAS SYMBOLIZED, the result has no names"
        elif self._nameless:
            names = ", ".join(self._nameless[:MAX_NAMELESS]) + ", ..." * (len(self._nameless) > MAX_NAMELESS)
            what = f"NOTHING WAS SYMBOLIZED in {len(self._nameless)} of {len(self._rows)} profiles ({names})"
        else:
            return
        print_error(f"symbolize: warning: {printable(what)}{self._hint}")

    def _put(self, text: str) -> None:
        """Print a piece of the report, or keep it for the file."""
        if self._file is not None:
            self._pieces.append(text)
        elif self._to_errors:
            print_error(text.removesuffix("\n"))
        else:
            print_output(text, flush=True)

    @property
    def _look(self) -> tuple[bool, int]:
        """Colour, and the width of the text."""
        if self._file is not None:
            return False, DEFAULT_WIDTH
        stream = sys.stderr if self._to_errors else sys.stdout
        return has_colour(stream), width_of(stream)

    def _text(self, report: Report) -> str:
        from symbolize.cli.hints import OPTION_HINTS
        from symbolize.report.text import render

        colour, width = self._look
        return render(report, verbose=self._verbose, colour=colour, hints=OPTION_HINTS, width=width)

    def _table(self) -> str:
        """The table of several profiles, with the hints for all."""
        from symbolize.report.text import profile_table, without_common_folder

        if self._only is not None and not self._verbose:  # the others could not be read
            return self._text(self._only) + self._written([self._rows[0].output])
        assert self._advice is not None
        colour, width = self._look
        style = Style(colour)
        rows = without_common_folder(self._rows)
        lines: list[str] = []
        count = len(self._warnings) if self._verbose else MAX_WARNINGS
        warnings = [*self._advice.first, *self._warnings[:count]]
        if len(self._warnings) > count:
            warnings.append(f"and {len(self._warnings) - count} more, which -v prints")
        for text in warnings:
            lines += map(style.warning, wrapped(f"warning: {printable(text)}", width, "    ", ""))
        lines += [*([""] if warnings else []), *profile_table(rows, style, width), *self._advice.lines(style, width)]
        return "\n".join(lines) + "\n" + self._written([row.output for row in self._rows])

    def _written(self, outputs: list[str]) -> str:
        """What was written, and how to look at it."""
        from symbolize.report.text import common_folder

        outputs = [each for each in dict.fromkeys(outputs) if each not in ("", STANDARD_OUTPUT, *self._kept)]
        if not outputs:
            return ""
        colour, width = self._look
        folder = common_folder(outputs)
        several = f"{len(outputs)} profiles" + (f" to {folder}/" if folder else "")
        shown = printable(shlex.quote(outputs[0]))
        line = self._how_to_look(shown, "it" if len(outputs) == 1 else "one")
        if cells(line) > width:
            line = line.replace("   or: ", "\n        or: ")
        replaced = len(self._replaced.intersection(outputs))
        if len(outputs) == 1:
            written = f"{'replaced' if replaced else 'wrote'} {printable(outputs[0])}"
        else:
            written = f"wrote {printable(several)}" + (f", {replaced} of them replaced" if replaced else "")
        return f"\n{written}\n" + "".join(f"{Style(colour).dim(each)}\n" for each in line.split("\n") if each)

    def _how_to_look(self, output: str, it: str) -> str:
        """What shows an output to a person; empty for data that other programs take."""
        kind = "" if self._output is None else self._output.name
        if kind == PPROF:
            return f"look at {it}: symbolize view {output} --open   or: go tool pprof -http=: {output}"
        return f"look at {it} {VIEWERS[kind]}" if kind in VIEWERS else ""


def title_of(source: str, loaded: LoadedProfile, several: bool) -> str:
    """What a person calls a profile: the input, and whose profile of a trace it is."""
    return f"{source}: {loaded.title}" if several and loaded.title else source


def profile_name(source: str, loaded: LoadedProfile, several: bool) -> str:
    """What machines call a profile: the input, and of a trace the name of its profile."""
    return f"{source} ({loaded.name})" if several and loaded.name else source
