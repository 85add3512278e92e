"""How well stacks, and callers in them, agree with the call sites of a binary."""

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


class CallerAgreement(NamedTuple):
    """How many of the callers in a mapping that were judged call the next function on a stack of theirs, or one that
    leads to it by tail calls."""

    agreeing: int
    judged: int

    @property
    def text(self) -> str:
        """In words."""
        if self.judged == 1:
            return f"the only caller {'calls' if self.agreeing else 'does not call'} the next function on its stacks"
        return f"of {self.judged} callers {self.agreeing} call the next function on their stacks"
