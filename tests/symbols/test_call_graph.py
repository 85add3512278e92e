"""Chains of tail calls, where there are absurdly many."""

from symbolize.symbols.call_graph import MAX_STEPS, UNKNOWN, CallGraph, Chain, Definition, TailCall

WIDTH = 5000


class Wide(CallGraph):
    """Functions of which each calls very many others, and the last of these calls one more."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.asked = 0
        self._reaches = {}

    def _definition(self, function: int) -> Definition | None:
        calls = range(function * self.width, (function + 1) * self.width)
        return Definition(function, True, UNKNOWN, [TailCall(each, each) for each in calls])

    def key(self, function: int) -> bytes:
        self.asked += 1
        return b"f%d" % function


def found(graph: Wide, last: int) -> tuple[list[Chain], bool]:
    """The chains that lead from function 1 to the function `last`."""
    return graph.chains(1, lambda function: function == last)


def test_of_few_all_are_found() -> None:
    """Two functions call three others each, and so on: one chain leads to each, and not all are followed to the end."""
    assert found(Wide(3), 14) == ([((1, 4), (4, 14))], False)


def test_of_very_many_few_are_looked_at() -> None:
    """Whatever a file says of calls, the work is bounded, and what was not looked at is not known."""
    graph = Wide(WIDTH)
    assert found(graph, WIDTH + 1) == ([], False)
    assert not graph.reach(1).is_whole
    assert graph.asked <= 2 * MAX_STEPS
