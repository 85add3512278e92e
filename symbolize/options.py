"""What a caller asked for: made once, by the library's user, a command or the settings of a service, and handed on."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from symbolize.core.errors import UsageError, check_flags, check_type
from symbolize.core.verdict import accepted
from symbolize.names import MODES

if TYPE_CHECKING:
    from symbolize.enrich.edits import Edits
    from symbolize.names import Mode
    from symbolize.resolve.arguments import Paths


@dataclass(frozen=True)
class Options:
    """How profiles are symbolized. Raises TypeError for a value of another type, UsageError for an unknown word.

    `demangle` is "default", "templates", "full" or "none", as pprof understands them. With `nearest_line` frames
    without a line get the nearest earlier one of their function, which the report counts (R170, nearest line). Java
    methods get the names of the source by `proguard_maps`, each "FILE" or "PACKAGE=FILE" (R171, Java methods).
    `annotate` appends to the names of Android's Java frames how their code ran (R234, suffixes of Java frames).

    `sample_type`, a name or number, is what samples are weighed by, and the default of the result. With `force` names
    that came with a profile are replaced wherever a lookup answers, otherwise only by better ones. `edits` are made to
    the result. With `tail_calls` frames that tail calls took off the stacks are put back where the debug information
    leaves no doubt (R360, frames of tail calls); with `check_stacks` the report says how well stacks agree with the
    calls in it (R361, stacks against call sites). `accept` is the least verdict on a binary that names: "proved",
    "supported" or "unverified". With `local` the files of this machine are used that the profile says its mappings were
    of, if they are supported at least.
    """

    demangle: "Mode" = "default"
    nearest_line: bool = False
    proguard_maps: "Paths" = ()
    annotate: bool = False
    sample_type: str | int = ""
    force: bool = False
    edits: "Edits | None" = None
    tail_calls: bool = False
    check_stacks: bool = False
    accept: str = "unverified"
    local: bool = False

    def __post_init__(self) -> None:
        if self.demangle not in MODES:
            raise UsageError(f"unknown demangling mode {self.demangle!r}; the modes are {', '.join(MODES)}")
        check_type("sample_type", self.sample_type, "a name or number", str, int)
        check_flags(**{each.name: getattr(self, each.name) for each in fields(self) if isinstance(each.default, bool)})
        if self.proguard_maps != ():
            from symbolize.resolve.arguments import as_paths

            maps = tuple(as_paths(self.proguard_maps, "proguard_maps"))
            object.__setattr__(self, "proguard_maps", maps)  # which can be handed on to other processes
        if self.edits is not None:
            from symbolize.enrich.edits import Edits

            check_type("edits", self.edits, "Edits", Edits)
        accepted(self.accept)


DEFAULTS = Options()
"""What is done where nothing else is asked for."""
