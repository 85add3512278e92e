"""The class of a difference between symbolize and the other engines, by a rule."""

from collections.abc import Mapping, Sequence

import numpy as np
from answers import Answer, plain, same_file, same_function
from subjects import Subject

from symbolize.elf import ElfImage, read_symbols

CLASSES = {
    "equal": "all that at least two engines agree on, scopes and folders included",
    "path": "R46: the same file, spelled through other folders",
    "padding": "R38: no function and no sized symbol covers the address; others extend the row or the symbol before",
    "inlined": "R19: others give the innermost inlined function the name of the function around it",
    "symbol": "R6: others take the symbol where it is spelled otherwise than the function in DWARF",
    "label": "R110: others take a label without size that lies inside a sized symbol, there or behind the end of that",
    "alias": "R118: both names are symbols with one address",
    "dropped copy": "R6: debug information of a copy that the linker dropped claims the code of another symbol; "
    "others take the symbol",
    "no majority": "no two engines agree on anything",
    "unexplained": "no rule accounts for it",
}


class Judge:
    """Finds classes, with the symbols of the binary."""

    def __init__(self, subject: Subject) -> None:
        start, end, self.at, self.labels = [], [], dict[str, set[int]](), dict[str, set[int]]()
        for path in subject.files:
            with ElfImage.open(path) as image:
                for table in (".symtab", ".dynsym"):
                    symbols = read_symbols(image, table)
                    if symbols is None:
                        continue
                    start.append(symbols.vaddr)
                    end.append(symbols.vaddr + symbols.size)
                    for name, vaddr, size in zip(symbols.name, symbols.vaddr.tolist(), symbols.size, strict=True):
                        known = self.at if size else self.labels
                        known.setdefault(plain(symbols.text(int(name)).decode(errors="replace")), set()).add(vaddr)
        self.start = np.concatenate(start)
        self.end = np.concatenate(end)

    def covering(self, vaddr: int) -> set[int]:
        """Where the symbols with a size start that cover an address."""
        return set(self.start[(self.start <= vaddr) & (vaddr < self.end)].tolist())

    def is_elsewhere(self, vaddr: int, our: Answer, others: Sequence[Answer]) -> bool:
        """Whether our outermost function has its symbols elsewhere, and that of others is a symbol over the address."""
        covering, own = self.covering(vaddr), self.at.get(plain(our[-1].function), set())
        names = {plain(other[-1].function) for other in others if other}
        return bool(own) and not own & covering and all(self.at.get(name, set()) & covering for name in names)

    def is_label(self, name: str, vaddr: int) -> bool:
        """Whether `name` is a symbol without size, at `vaddr` or before, inside a symbol that has one."""
        return any(label <= vaddr and self.covering(label) for label in self.labels.get(name, ()))

    def spelling(
        self,
        our: Answer,
        function: Sequence[Answer],
        file: Sequence[Answer],
        line: Sequence[Answer],
        chain: Sequence[Answer],
    ) -> str:
        """The class of an answer that agrees, as far as the last components of names go, with the engines of each
        field: whether the rest of its names is that of one of them."""
        if (
            function
            and our
            and not any(same_function(our[0].function, other[0].function) for other in function if other)
        ):
            return "unexplained"
        if chain and not any(
            all(same_function(a.function, b.function) for a, b in zip(our[1:], other[1:], strict=True))
            for other in chain
        ):
            return "unexplained"
        files = [(our[:1], [other[:1] for other in file]), (our[1:], [other[1:] for other in chain])]
        for ours, others in files:
            if ours and others:
                if not any(
                    all(same_file(a.file, b.file) for a, b in zip(ours, other, strict=True)) for other in others
                ):
                    return "path"
        return "equal"

    def difference(
        self, vaddr: int, our: Answer, others: Sequence[Answer], differing: Mapping[str, Sequence[Answer]]
    ) -> str:
        """The class of a difference; `differing` are the fields, each with the engines that make up the majority."""
        if not our:
            if self.covering(vaddr):
                return "unexplained"
            if "function" not in differing:
                return "padding"
            names = {plain(other[0].function) for other in differing["function"]}
            return "label" if all(self.is_label(name, vaddr) for name in names) else "unexplained"
        kind = "unexplained"
        if set(differing) == {"function"}:
            kinds = [self.function_class(vaddr, our, other) for other in differing["function"]]
            kind = max(kinds, key=list(CLASSES).index)
        voters = [other for some in differing.values() for other in some]
        return "dropped copy" if kind == "unexplained" and self.is_elsewhere(vaddr, our, voters) else kind

    def function_class(self, vaddr: int, our: Answer, other: Answer) -> str:
        """The class of a difference in the innermost function alone."""
        one, two = our[0].function, other[0].function if other else ""
        if len(our) > 1 and same_function(our[-1].function, two):
            return "inlined"
        if two == one + ".abi0" or two == one.replace("·", "."):
            return "symbol"
        if self.is_label(plain(two), vaddr):
            return "label"
        if self.covering(vaddr) & self.at.get(plain(one), set()) & self.at.get(plain(two), set()):
            return "alias"
        return "unexplained"
