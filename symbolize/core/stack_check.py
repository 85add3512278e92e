"""How well stacks agree with the call sites of a binary."""

from typing import NamedTuple


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
