"""Finds the class of a difference between our frames and those of llvm-symbolizer, see docs/correctness.md.

A class says why llvm-symbolizer may differ. That ours is right where it does is not taken on trust: every such answer
has to be the frames of one function that the DWARF, as llvm-dwarfdump prints it, or the symbols have at the address,
in name, scopes, place, declaration and chain (`Judge.supports`); where we give none, no function may be there; and
code that we call folded has to have several functions (`Judge.several`).
"""

import re
import shutil
import subprocess
from bisect import bisect_right
from functools import cache, cached_property
from pathlib import Path

from symbolize.elf import ElfImage, read_symbols
from symbolize.elf.call_frames import frame_ranges
from tests.support.dumped import Dumped, Named, Step, tidy
from tests.support.lookup import Frame
from tools.llvm.recipes import CROSS

STUB = re.compile(r"[0-9a-f]{8}\.plt_call\.(.*)")
"""How GNU ld calls what it puts before the linkage table on PowerPC."""
LAMBDA = r"\{lambda(\(.*\))?#[1-9]\d*\}"
CLOSURES = ("(anonymous struct)", "(anonymous class)")
"""The class of a lambda, which has no name."""

CLASSES = {
    "equal": "every field of every frame is the same",
    "qualified": "R15: llvm-symbolizer prints the bare name of a function without linkage name",
    "local": "R264: llvm-symbolizer prints the bare name of what is local to a function and has no linkage name",
    "entry": "R263: we name the entries of linkage tables, which llvm-symbolizer has no name for",
    "alias": "R118: both names are symbols with one address",
    "symbol": "R6, R114: llvm-symbolizer takes the symbol whose name is spelled otherwise than the function's in DWARF",
    "path": "R46: llvm-symbolizer leaves `/./` in",
    "padding": "R38: no function covers the address, and we extend no row beyond its sequence",
    "unsized": "R109: llvm-symbolizer takes a symbol without size to the next one, we end it with its FDE",
    "folded": "R119, R161: several functions or variants are this code; llvm-symbolizer names one with another's lines",
    "label": "R110: llvm-symbolizer takes a label without size in a sized function, also behind that function",
    "no-code": "R104, R106: llvm-symbolizer takes a symbol of data without size, such as `_end`, or a temporary",
    "claim": "R61: no unit claims the address, so llvm-symbolizer has its symbol only",
    "empty": "R8: a function of length zero; llvm-symbolizer knows its symbol only",
    "file-symbol": "R120: DWARF knows the function but not the file; llvm-symbolizer takes the FILE symbol's",
}


class Judge:
    """Finds the class of a difference; `symbols` are name, start, end and FILE symbol of those of the binary.

    `image` is the file that llvm-symbolizer is asked with, `code` the one with unwind tables if that is another one.
    Frames `of_profile` have system names, which without a linkage name are plain ones, and may leave the line of the
    declaration open.
    """

    def __init__(self, image: ElfImage, code: ElfImage | None = None, of_profile: bool = False) -> None:
        self.starts: dict[str, set[int]] = {}
        self.places: dict[str, list[tuple[int, int]]] = {}
        self.symbols: list[tuple[str, int, int, str]] = []
        self.frames = [(int(begin), int(end)) for begin, end in zip(*frame_ranges(code or image), strict=True)]
        self.sections = [(s.vaddr, s.vaddr + s.size) for s in image.sections if s.is_code]
        self.dumped = Dumped(Path(image.path))
        self.code = Path((code or image).path)
        self.bytes = [(s.vaddr, s.size, s.file_offset) for s in (code or image).sections if s.is_code]
        self.tables = [s.name for s in (code or image).sections if s.is_code and "plt" in s.name]
        self.of_profile = of_profile
        for name in (".symtab", ".dynsym"):
            table = read_symbols(image, name)
            for i in range(0 if table is None else len(table)):
                assert table is not None
                symbol = table.text(int(table.name[i])).decode(errors="replace")
                symbol = unversioned(symbol)
                start, size, file = int(table.vaddr[i]), int(table.size[i]), int(table.file[i])
                self.starts.setdefault(symbol, set()).add(start)
                self.places.setdefault(symbol, []).append((start, start + size))
                self.symbols.append((symbol, start, start + size, table.text(file).decode() if file else ""))

    def classify(self, vaddr: int, ours: list[Frame], theirs: list[Frame], folded: bool) -> str | None:
        """The class of an address, None if the difference is not allowed. Several differences count as the last.

        `folded` tells whether we say that several functions share the code.
        """
        if folded and not self.several(vaddr):
            return None
        kind = self.class_of(vaddr, ours, theirs)
        if kind == "equal":
            return kind
        if not ours:
            covered = any(start <= vaddr < end for _, start, end, _ in self.symbols)
            return None if covered or self.dumped.candidates(vaddr) else kind
        if not self.supports(vaddr, ours):
            return None
        if kind is None and theirs:
            shared = self.at(vaddr, ours[-1].name) & self.at(vaddr, unversioned(theirs[-1].name))
            return "folded" if folded or (shared and ours[-1].name != theirs[-1].name) else None
        return kind

    def supports(self, vaddr: int, ours: list[Frame]) -> bool:
        """Whether our answer is, in all its frames, that of one function at the address, or of a symbol where no
        function is."""
        candidates = self.dumped.candidates(vaddr)
        if candidates:
            return any(self.is_candidate(vaddr, ours, steps) for steps in candidates)
        if self.is_entry(vaddr, ours):
            return True
        if len(ours) != 1 or not self.at(vaddr, ours[0].name):
            return False
        if ours[0].start_line:  # a function of length zero (R8)
            declared = {line for _, line in self.dumped.definitions(ours[0].name)}
            if not self.is_empty(vaddr, ours[0].name) or ours[0].start_line not in declared:
                return False
        files = {file for symbol, _, _, file in self.symbols if symbol == ours[0].name}  # R120
        places = [*((file, 0, 0) for file in {"", *files})]
        places += [(row.file, row.line, row.column) for row in self.dumped.rows(vaddr)]
        return (tidy(ours[0].file), ours[0].line, ours[0].column) in places

    def is_candidate(self, vaddr: int, ours: list[Frame], steps: list[Step]) -> bool:
        """Whether all frames are those of a candidate."""
        if len(ours) != len(steps):
            return False
        for our, step in zip(ours, steps, strict=True):
            place = tidy(our.file), our.line, our.column
            if place != (step.file, step.line, step.column):
                return False
            if our.start_line != step.decl_line and not (self.of_profile and not our.start_line):
                return False
            if not self.is_name(vaddr, our.name, step, step is steps[-1]):
                return False
        return True

    def is_name(self, vaddr: int, name: str, step: Step, outermost: bool) -> bool:
        """Whether a name is that of a function: its linkage name, else its name with all scopes (R15); of the outermost
        one also a symbol there that is a spelling of it (R6)."""
        named = step.named
        if self.of_profile and not named.linkage and name == named.name:
            return True
        is_local = named.local_to is not None and named.language.startswith("DW_LANG_C_plus_plus")
        if is_local and not named.linkage:
            if re.fullmatch(spellings(named), name.replace(" ", "")):
                return True
        elif name == (named.linkage or named.qualified):
            return True
        if not outermost or not self.at(vaddr, name):
            return False
        base = name.partition(".")[0]
        if named.linkage:
            linkage = named.linkage.partition(".")[0]
            return base == linkage or demangled(base) == demangled(linkage)
        plain = named.name.partition("<")[0] or named.name
        alone = {symbol for symbol, start, end, _ in self.symbols if start == step.entry < end} == {name}
        return plain in demangled(base) or alone

    def several(self, vaddr: int) -> bool:
        """Whether several functions are the code at an address: in DWARF, by rows of several sequences, or by symbols
        of one place: of C those that have definitions of their own, because others may be aliases."""
        candidates = self.dumped.candidates(vaddr)
        functions = {(s[-1].decl_file, s[-1].decl_line, s[-1].named) for s in candidates}
        if len(functions) > 1 or len(self.dumped.rows(vaddr)) > 1:
            return True
        covering = [(start, name, file) for name, start, end, file in self.symbols if start <= vaddr < end]
        nearest = max((start for start, _, _ in covering), default=0)
        here = {(name.partition(".")[0], file) for start, name, file in covering if start == nearest}
        names = {name for name, _ in here}
        if len(names) < len({(name, file) for name, file in here if file}):
            return True  # of two files, with one name
        defined = {(name, at) for name in names for at in self.dumped.definitions(name)} if candidates else set()
        typed = {name for name in names if name.startswith(("_Z", "_R")) or not candidates}
        return len(defined) > 1 or len({demangled(name) for name in typed}) > 1

    def at(self, vaddr: int, name: str) -> set[int]:
        """Where the symbols called so start that are at or before an address, and reach to it if they have a size."""
        return {
            start for symbol, start, end, _ in self.named(name) if start <= vaddr < max(end, vaddr + (start == end))
        }

    def named(self, name: str) -> list[tuple[str, int, int, str]]:
        """The symbols called so."""
        return [symbol for symbol in self.symbols if symbol[0] == name] if name in self.starts else []

    def class_of(self, vaddr: int, ours: list[Frame], theirs: list[Frame]) -> str | None:
        """The class of an address where one function has the code."""
        if ours == theirs:
            return "equal"
        if not ours:
            return self.class_of_none(vaddr, theirs[0]) if len(theirs) == 1 else None
        if self.is_entry(vaddr, ours) and (not theirs or theirs[0].line == 0):
            return "entry"
        if len(ours) == len(theirs) == 1 and self.is_nearer(vaddr, ours[0], theirs[0]):
            return "unsized"
        if len(theirs) == 1 and theirs[0][2:] == (0, 0, 0) and self.is_symbol(vaddr, ours[-1], theirs[0]):
            return "claim"
        if len(ours) == 1 == len(theirs) and ours[0][:4] == theirs[0][:4] and self.is_empty(vaddr, ours[0].name):
            return "empty"
        if len(ours) != len(theirs):
            return None
        found = set()
        for depth, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            if our[2:] != their[2:]:
                return None
            found.add(self.file_class(vaddr, our, their))
            found.add(self.name_class(vaddr, our.name, their.name, depth == len(ours) - 1))
        return None if None in found else max(found - {"equal"}, key=list(CLASSES).index)

    def class_of_none(self, vaddr: int, their: Frame) -> str | None:
        """The class of an address where we have nothing."""
        name = unversioned(their.name)
        if not name:
            return "padding"
        if not their.line and (self.behind_frame(vaddr, name) or (STUB.fullmatch(name) and self.is_filler(vaddr))):
            return "unsized"
        if name not in self.starts and (name.startswith(".L") or not their.line):
            return "no-code"
        return "label" if self.in_function(name) else None

    def is_entry(self, vaddr: int, ours: list[Frame]) -> bool:
        """Whether we give, without a place, the entry of a linkage table that objdump or a linker's label has there
        (R263)."""
        index = bisect_right(self.entries, vaddr, key=lambda entry: entry[0]) - 1
        if index < 0:
            return False
        name = self.entries[index][1]
        resolver = re.fullmatch(r"\*ABS\*\+0x([0-9a-f]+)@plt", name)  # of an indirect function
        starts = {int(resolver[1], 16)} if resolver else set()
        names = {name, *(symbol + "@plt" for symbol, start, _, _ in self.symbols if start in starts)}
        return ours in [[Frame(each)] for each in names]

    @cached_property
    def entry_points(self) -> set[int]:
        """Where symbols start."""
        return {start for _, start, _, _ in self.symbols}

    @cached_property
    def entries(self) -> list[tuple[int, str]]:
        """The labels in linkage tables by objdump, each up to the next; those of no function are empty."""
        found: dict[int, str] = {}
        sections = [f"--section={name}" for name in self.tables]
        for tool in ("objdump", *(f"{triple}-objdump" for triple in CROSS.values())) if sections else ():
            if shutil.which(tool) is None:
                continue
            run = subprocess.run([tool, "-d", *sections, self.code], capture_output=True, text=True)
            for start, name in re.findall(r"^([0-9a-f]+) <(.*)>:$", run.stdout, re.MULTILINE):
                is_entry = name.endswith("@plt")
                found.setdefault(int(start, 16), unversioned(name.removesuffix("@plt")) + "@plt" if is_entry else "")
            if tool == "objdump":
                found |= self.resolved_entries(run.stdout)
        labels = {start: STUB.fullmatch(name) for name, start, _, _ in self.symbols}
        if any(labels.values()):
            found |= {start: unversioned(label[1]) + "@plt" if label else "" for start, label in labels.items()}
        return sorted(found.items())

    def resolved_entries(self, disassembly: str) -> dict[int, str]:
        """The entries of x86-64 that jump to what a resolver returns, which objdump labels in dynamic programs only."""
        run = subprocess.run(["readelf", "-rW", self.code], capture_output=True, text=True)
        resolver = dict(re.findall(r"^0*([0-9a-f]+) .* R_X86_64_IRELATIVE? +([0-9a-f]+)$", run.stdout, re.MULTILINE))
        found = {}
        start = None
        for line in disassembly.splitlines():
            if match := re.match(r" *([0-9a-f]+):\t[^\t]*\t(endbr64|.*jmp .*# ([0-9a-f]+))", line):
                start = int(match[1], 16) if start is None else start
                if match[3] in resolver:
                    found[start] = f"*ABS*+0x{resolver[match[3]]}@plt"
                start = None if match[3] else start
        return found

    def is_nearer(self, vaddr: int, our: Frame, their: Frame) -> bool:
        """Whether both are symbols alone, and theirs has no size and begins before ours."""
        if our[1:] != ("", 0, 0, 0) or their.line:
            return False
        unsized = {start for start, end in self.places.get(unversioned(their.name), ()) if start == end <= vaddr}
        return max(unsized, default=vaddr) < max(self.at(vaddr, our.name), default=0)

    def behind_frame(self, vaddr: int, name: str) -> bool:
        """Whether a symbol without size is called `name` that ends before `vaddr`, by FDE or section."""
        starts = {start for start, end in self.places.get(name, ()) if start == end}
        ends = [end for begin, end in self.frames if any(begin <= start < end for start in starts)]
        if any(begin <= start < end <= vaddr for begin, end in self.sections for start in starts):
            return True
        if any(not any(begin <= start < end for begin, end in self.sections) for start in starts):
            return True
        return any(end <= vaddr for end in ends) and not any(begin <= vaddr < end for begin, end in self.frames)

    def is_filler(self, vaddr: int) -> bool:
        """Whether there are zeros from an address to the next symbol, or to the end of the section."""
        for start, size, offset in self.bytes:
            if start <= vaddr < start + size:
                end = min({begin for begin in self.entry_points if vaddr < begin < start + size} | {start + size})
                with self.code.open("rb") as file:
                    file.seek(offset + vaddr - start)
                    return not any(file.read(end - vaddr))
        return False

    def is_symbol(self, vaddr: int, our: Frame, their: Frame) -> bool:
        """Whether `their` is what the symbol table alone says of our outermost function."""
        named = self.name_class(vaddr, our.name, their.name, True) is not None
        files = {file for symbol, start, end, file in self.symbols if start <= vaddr < end}
        return named and (our.line > 0 or our.start_line > 0) and their.file in files

    def is_empty(self, vaddr: int, name: str) -> bool:
        """Whether the symbol `name` stands at `vaddr` and has no size."""
        return any(start == end == vaddr for start, end in self.places.get(name, ()))

    def in_function(self, name: str) -> bool:
        """Whether a symbol without size is called `name` that lies in one with a size."""
        starts = {start for start, end in self.places.get(name, ()) if start == end}
        return bool(starts) and any(begin < start < end for start in starts for _, begin, end, _ in self.symbols)

    def file_class(self, vaddr: int, our: Frame, their: Frame) -> str | None:
        """The class of a difference in files."""
        if our.file == their.file:
            return "equal"
        if not our.file and their.line == 0:
            files = {file for _, start, end, file in self.symbols if start <= vaddr < end or start == end <= vaddr}
            return "file-symbol" if their.file in files else None
        return "path" if same_file(our.file, their.file) else None

    def name_class(self, vaddr: int, our: str, their: str, outermost: bool) -> str | None:
        """The class of a difference in names; only the outermost function has a symbol."""
        if our == their:
            return "equal"
        if our.endswith("::" + their):
            scope = without_arguments(our.removesuffix("::" + their))
            return "local" if re.search(r"\{lambda|\((?!anonymous )", scope) else "qualified"
        if not outermost:
            return None
        plain = unversioned(their)
        if plain == our:
            return "symbol"
        if self.at(vaddr, our) & self.at(vaddr, plain):
            return "alias"
        if self.in_function(plain):
            return "label"
        if re.fullmatch(re.escape(our) + r"\.\d+", their):  # a nested function of C
            return "symbol"
        if their in (our + ".abi0", our.replace("·", "."), our + "_"):  # Go, Fortran
            return "symbol"
        # An inherited constructor is called like its class in DWARF and like the class it comes from in the symbol.
        constructor = re.sub(r"<.*?>(?=::|$)", "", our).split("::")
        return "symbol" if re.search(r"CI[12]", their) and len(set(constructor[-2:])) == 1 else None


def same_file(one: str, other: str) -> bool:
    """Whether two paths are the same but for `/./`."""
    return one.replace("/./", "/") == other.replace("/./", "/")


def without_arguments(name: str) -> str:
    """A name without what is in angle brackets."""
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    return name


def spellings(named: Named) -> str:
    """A regular expression for the names of a function in C++, without spaces: with the function that it is local to
    before its scopes, and lambdas as c++filt spells them, but for parameters and numbers (R264)."""
    is_call = named.name.startswith("operator()")
    scopes = [LAMBDA if is_call and scope in CLOSURES else re.escape(scope.replace(" ", "")) for scope in named.scopes]
    own = "::".join([*scopes, re.escape(named.name.replace(" ", ""))])
    around = named.local_to
    if around is None:
        return own
    if around.linkage.startswith("_Z"):
        function = demangled(f"_ZZ{around.linkage[2:].partition('.')[0]}E1x").removesuffix("::x")
        return re.escape(function.replace(" ", "")) + "::" + own
    return f"({spellings(around)}|{re.escape(around.name)})(\\(.*\\)(const)?)?::{own}"


def unversioned(name: str) -> str:
    """The name of a symbol without its version (R114), which is a word; other languages have `@` in their names."""
    return re.sub(r"(?<=.)@@?[A-Za-z_][\w.+-]*$", "", name)


@cache
def demangled(name: str) -> str:
    """A linkage name as llvm-cxxfilt shows it; other names as they are."""
    tool = shutil.which("llvm-cxxfilt-19") or shutil.which("llvm-cxxfilt")
    if tool is None or not name.startswith(("_Z", "_R", "_D")):
        return name
    return subprocess.run([tool, name], capture_output=True, text=True).stdout.strip()
