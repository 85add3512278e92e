"""What the evidence says of a file: whether it is the build that ran."""

from enum import IntEnum


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
        """That of a file by its identity alone: its build id, or only its name."""
        return cls.PROVED if is_proof else cls.UNVERIFIED

    @property
    def text(self) -> str:
        """The word for it: "proved", "supported", "unverified", "refuted"."""
        return self.name.lower()
