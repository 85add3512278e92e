"""What failed, so that another run may find names or lines that this one misses (R285, names missed by failures)."""

from typing import NamedTuple, Self

from symbolize.core.errors import ReadFailure
from symbolize.core.mapped import ChangedFile
from symbolize.core.reasons import Reason


def reason_of(failure: ReadFailure) -> Reason:
    """The reason of what is missed because something could not be read."""
    return Reason.CHANGED if isinstance(failure, ChangedFile) else Reason.READ_FAILED


class Failure(NamedTuple):
    """Why names or lines may be missing (a reason that is a failure), the server or file, and what happened there."""

    reason: Reason
    place: str
    text: str

    @classmethod
    def of(cls, failure: ReadFailure) -> Self:
        """That of a file."""
        return cls(reason_of(failure), failure.source, failure.problem)

    @property
    def sentence(self) -> str:
        """What a person reads."""
        verb = " failed" if self.reason is Reason.SERVER_FAILED else ""
        return f"{self.place}{verb}: {self.text}"
