"""What the evidence says of a file: whether it is the build that ran."""

from enum import IntEnum
from typing import Final

from symbolize.core.errors import UsageError


class Verdict(IntEnum):
    """Whether a file is the build that ran, the weakest first."""

    REFUTED = 0
    """Another build: it names nothing."""
    UNVERIFIED = 1
    """Nothing speaks against it, and too little for it: it only has the right name, path or place."""
    SUPPORTED = 2
    """What was sampled fits it, and hardly any other code; a build that shares all that was sampled would fit too."""
    PROVED = 3
    """Its build id was recorded with the mapping, or names that came along are where it has them."""

    @classmethod
    def by_identity(cls, is_proof: bool) -> "Verdict":
        """The verdict on a file by its identity alone: its build id, or only its name."""
        return cls.PROVED if is_proof else cls.UNVERIFIED

    @property
    def text(self) -> str:
        """The word for it: "proved", "supported", "unverified", "refuted"."""
        return self.name.lower()

    def by(self, evidence: str) -> str:
        """The word for it, and behind it what it is known by, if anything is said of that."""
        return self.text + (f": {evidence}" if evidence else "")


ACCEPTABLE: Final = ("proved", "supported", "unverified")
"""The verdicts that may name, by their words, the strongest first."""


def accepted(word: str) -> Verdict:
    """The least verdict that names, by its word. Raises UsageError for another word."""
    if word not in ACCEPTABLE:
        raise UsageError(f"accept: unknown verdict {word!r}; there are {', '.join(ACCEPTABLE)}")
    return Verdict[word.upper()]
