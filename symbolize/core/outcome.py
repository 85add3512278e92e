"""What came of a mapping, as it is found out and as it is reported."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from symbolize.core.arrays import NONE
from symbolize.core.reasons import Failure
from symbolize.core.verdict import Verdict


class StackCheck(NamedTuple):
    """Sample values of the callers in a mapping that were judged: those that call the next function on their stack
    (`confirmed`), that call one which leads to it by tail calls (`explained`), and that cannot have called it."""

    confirmed: float
    explained: float
    contradicted: float

    @property
    def judged(self) -> float:
        """The value of all of them."""
        return self.confirmed + self.explained + self.contradicted

    @property
    def share(self) -> float:
        """The share that agrees, 0 to 1; 1 if none was judged."""
        return (self.confirmed + self.explained) / self.judged if self.judged else 1.0


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class MappingOutcome:
    """The result for one mapping of the profile, or for the locations without one (NONE).

    `verdict` says whether the `files` are of the build that ran, `evidence` in words what that is known by; `detail`
    says why no file was used. `tried` are paths and servers with their outcome. `wanted` are the files of the binary
    with the build id `wanted_id` that are missing: "executable", "debuginfo". `state` of a plan says whether the
    symbol table is there. `failures` are servers and files that may have missing names and failed. `stack_check` says
    how well stacks agree with the call sites of files. `is_local`: files of this machine were used that nobody gave.
    """

    mapping: int = NONE
    files: Sequence[str] = ()
    verdict: Verdict = Verdict.UNVERIFIED
    evidence: str = ""
    detail: str = ""
    tried: Sequence[tuple[str, str]] = ()
    problems: Sequence[str] = ()
    wanted: Sequence[str] = ()
    wanted_id: str = ""
    state: str = ""
    failures: Sequence[Failure] = ()
    stack_check: StackCheck | None = None
    is_local: bool = False

    @property
    def verified(self) -> bool:
        """Whether the files are proved to be of the build that ran."""
        return self.verdict is Verdict.PROVED

    @property
    def sureness(self) -> str:
        """The verdict, and what it is known by, in words."""
        return self.verdict.by(self.evidence)

    def alone(self) -> "MappingOutcome":
        """The outcome without what subclasses add: reports outlive the binaries and arrays of a run."""
        return MappingOutcome(**{name: getattr(self, name) for name in FIELDS})


FIELDS: Final = tuple(each.name for each in fields(MappingOutcome))
