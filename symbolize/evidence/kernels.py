"""Is this vmlinux, or list of symbols, of the kernel that ran, and where was that moved to (KASLR)?"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import TOP, Bool, UInt64, distinct
from symbolize.elf import ElfImage, inside_calls, read_symbols
from symbolize.symbols import Binary

PAGE: Final = 4096
LOWEST_KERNEL: Final = 1 << 30
"""No kernel has its code below this address. What is lower is a real file offset, or nothing."""
HIGHEST_CODE: Final = 0xFFFFFFFF80000000
"""Above are the kernels of x86-64 and riscv64, and no others; they are never moved out of there."""
STEP: Final = 1 << 21
LOOSE_STEP: Final = 1 << 16
"""Kernels above are moved by a multiple of the first, other kernels of 64 bits by one of the second."""
MAX_CODE: Final = 1 << 30
"""Bytes of the code of a kernel."""

MIN_CALL_SITES: Final = 8
"""Fewer call sites than this do not tell where a kernel was moved to."""
MIN_SHARE: Final = 0.5
"""Of the addresses in a kernel so many lie in functions, or it is another one. Code made at run time is elsewhere."""

MIN_NAMES, MIN_NAMED_SHARE, MAX_NAMES = 2, 0.75, 64
"""Functions that have to agree where names tell how far a kernel was moved, their share, and how many are looked at."""

ANCHORS: Final = ("_stext", "_text")
"""Symbols at which the code of a kernel begins, and so the mapping of one."""
ENDS: Final = ("_etext", "_edata")
"""Symbols at which the mapping of a kernel may end."""

MACHINES: Final = {
    "EM_X86_64": ("x86_64",),
    "EM_386": ("i386", "i486", "i586", "i686", "x86"),
    "EM_AARCH64": ("aarch64", "arm64"),
    "EM_ARM": ("arm",),
    "EM_RISCV": ("riscv",),
    "EM_PPC64": ("ppc64",),
    "EM_S390": ("s390",),
    "EM_LOONGARCH": ("loongarch",),
}
"""How the machines of ELF files that kernels are known for begin in the words of uname."""

OWN_RELEASE: Final = {
    ".modinfo": re.compile(rb"(?<!\w)vermagic=([\w.+~-]{1,64}) "),
    ".rodata": re.compile(rb"Linux version ([\w.+~-]{1,64}) \("),
}
"""Where a module, and the kernel, have the release that they are of."""


class RecordedKernel(NamedTuple):
    """What a recording says of the kernel: machine and release in the words of uname, the symbol at which its mapping
    begins, each empty if that is unknown, the mapping, and the highest address in it."""

    machine: str
    release: str
    anchor: str
    start: int
    limit: int
    file_offset: int
    highest: int

    @property
    def is_64(self) -> bool:
        """Whether its addresses have 64 bits."""
        return max(self.highest, self.start) >> 32 > 0 or self._is_wide

    @property
    def own_machine(self) -> str:
        """The machine; empty if it is one of 32 bits, as programs may be told by a kernel of 64 bits."""
        return self.machine if self._is_wide or not self.is_64 else ""

    @property
    def _is_wide(self) -> bool:
        return "64" in self.machine or self.machine == "s390x"

    @property
    def places(self) -> list[int]:
        """Where its mapping begins, as far as that is an address of the kernel."""
        return [place for place in dict.fromkeys((self.file_offset, self.start)) if place >= LOWEST_KERNEL]

    @property
    def length(self) -> int:
        """Bytes up to the symbol that its mapping ends at; 0 where it goes on to a border of pages, as up to the first
        module in old recordings."""
        ends_at_symbol = self.limit % PAGE and self.start >= LOWEST_KERNEL and self.limit - self.start < MAX_CODE
        return self.limit - self.start if ends_at_symbol else 0


class KernelFile(NamedTuple):
    """What a file says of a kernel: the machine of ELF and the release in its name, each empty if it does not,
    whether its addresses have 64 bits, and the vaddrs of those of ANCHORS and ENDS that it has."""

    machine: str
    release: str
    is_64: bool
    symbols: Mapping[str, int]


AS_LINKED: Final = "as linked"
"""What is said of a kernel for which nothing recorded says where it was."""


class Shift(NamedTuple):
    """The KASLR shift: how far memory is above the vaddrs of a kernel image, modulo 2⁶⁴, and what says so."""

    distance: int
    evidence: str


class Comparison(NamedTuple):
    """What a file and a recording say of one kernel: what `differs` refutes the file, empty if nothing does; `agrees`
    are the facts that are the same."""

    differs: str
    agrees: list[str]

    @property
    def text(self) -> str:
        """What is the same, in words."""
        return f"same {' and '.join(self.agrees)} of the kernel" if self.agrees else "nothing contradicts it"


def own_release(images: Iterable[ElfImage]) -> str:
    """The release of the kernel that files of one binary are, or are a module of, as their data say; empty if they do
    not, as debug files."""
    for image in images:
        for name, pattern in OWN_RELEASE.items():
            contents = image.contents(name)
            match = pattern.search(contents) if contents is not None else None
            if match is not None:
                return match[1].decode()
    return ""


def compare(recorded: RecordedKernel, file: KernelFile) -> Comparison:
    """Compare what identifies a kernel, the strongest first: machine, bits of addresses, release, length of the code
    (R465, other kernels).

    The length of the code is `_etext` or `_edata` less the symbol that the mapping begins at; it counts where the
    mapping ends at no border of pages. What is left is unverified: two releases of one branch may have all of this in
    common.
    """
    agrees: list[str] = []
    if recorded.own_machine and file.machine in MACHINES:
        if not recorded.machine.startswith(MACHINES[file.machine]):
            return Comparison(f"for {file.machine}, and {recorded.machine} was recorded", [])
        agrees.append("machine")
    if file.is_64 != recorded.is_64:
        own, other = ("64 bits", "32") if file.is_64 else ("32 bits", "64")
        return Comparison(f"for {own}, and the kernel that was recorded has {other}", [])
    if recorded.release and file.release:
        if file.release != recorded.release:
            return Comparison(f"of release {file.release}, and {recorded.release} was recorded", [])
        agrees.append("release")
    lengths = list(_lengths(recorded.anchor, file.symbols)) if recorded.length else []
    if lengths and recorded.length not in lengths:
        return Comparison(f"{lengths[0]:#x} bytes of code, and {recorded.length:#x} were recorded", [])
    if lengths:
        agrees.append("length")
    return Comparison("", agrees)


def _lengths(anchor: str, symbols: Mapping[str, int]) -> Iterator[int]:
    """How long a mapping may be that begins at `anchor`, or any of the anchors."""
    for end in ENDS:
        for begin in (anchor,) if anchor in symbols else ANCHORS:
            if begin in symbols and end in symbols:
                yield symbols[end] - symbols[begin]


def shifts(recorded: RecordedKernel, symbols: Mapping[str, int]) -> list[Shift]:
    """How far the kernel may have been moved from where it was linked, the likeliest first (R124, symbols of the
    kernel); none if no kernel is moved as it would have to be.

    A mapping of the kernel begins at one of the ANCHORS. Its name may say at which: then that decides. The address of
    the anchor may be recorded as the file offset. Where neither is an address, the kernel is taken as linked.
    """
    anchors = {name: symbols[name] for name in ANCHORS if symbols.get(name)}
    if recorded.anchor in symbols:
        anchors = {recorded.anchor: symbols[recorded.anchor]}
    found: dict[int, Shift] = {}
    for name, vaddr in anchors.items():
        for place in recorded.places:
            distance = (place - vaddr) & TOP
            if distance % PAGE:  # whole pages are moved: the start of the mapping was rounded
                distance = (place // PAGE * PAGE - vaddr // PAGE * PAGE) & TOP
            found.setdefault(distance, Shift(distance, f"{name} at {vaddr + distance & TOP:#x}"))
    if not (recorded.anchor in symbols and found):
        found.setdefault(0, Shift(0, AS_LINKED))
    text = next(iter(anchors.values()), 0)
    return [shift for shift in found.values() if is_possible(shift.distance, text, is_64=recorded.is_64)]


def is_possible(distance: int, text: int, *, is_64: bool) -> bool:
    """Whether a kernel whose code begins at `text` may be moved so far, modulo 2⁶⁴.

    Kernels of x86-64 and riscv64 from 0xffffffff80000000 on stay there and are moved by multiples of 2 MiB, others of
    64 bits by multiples of 64 KiB.
    """
    if not distance or not text or not is_64:
        return True
    is_high = text >= HIGHEST_CODE
    return (text + distance & TOP >= HIGHEST_CODE) == is_high and distance % (STEP if is_high else LOOSE_STEP) == 0


class KernelSymbols(NamedTuple):
    """Symbols of vmlinux: the vaddrs of its anchors by name, and begins and ends of its functions, ascending."""

    anchors: dict[str, int]
    begins: UInt64
    ends: UInt64


def read_kernel_symbols(binary: Binary, anchor: str) -> KernelSymbols:
    """The symbols of vmlinux by which it is located; `anchor` is one to look for besides ANCHORS."""
    known: dict[str, int] = {}
    begins, ends = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    for image in binary.images:
        if (table := read_symbols(image, ".symtab")) is not None:
            for name in (*ANCHORS, *ENDS, *([anchor] if anchor else [])):
                if name not in known and (vaddr := vaddr_of(table.strings, table.name, table.vaddr, name)) is not None:
                    known[name] = vaddr
            if not len(begins):
                order = np.argsort(table.vaddr, kind="stable")
                begins, sizes = table.vaddr[order], table.size[order]
                ends = np.maximum.accumulate(begins + np.minimum(sizes, ~begins))
    executable = [segment for segment in binary.images[0].segments if segment.executable]
    if not known and executable:
        known["_text"] = executable[0].vaddr  # the kernel's image begins there
    return KernelSymbols(known, begins, ends)


def shift_by_names(binary: Binary, begins: UInt64, names: Sequence[tuple[int, bytes]]) -> Shift | None:
    """Infer the KASLR shift from addresses whose symbol names are known; None if they are inconclusive.

    `begins` are the vaddrs of its functions, ascending. A kernel is moved by a multiple of 2 MiB, or else of 64 KiB.
    Three quarters of the functions that vmlinux has, and two at least, have to agree (R169, kernel shift by names).
    """
    wanted: dict[bytes, int] = {}
    for address, name in names:
        if len(wanted) < MAX_NAMES:
            wanted.setdefault(name, address)
    if not wanted:
        return None
    tables = [table for image in binary.images if (table := read_symbols(image, ".symtab")) is not None]
    known: list[tuple[int, int]] = []
    for name, address in wanted.items():
        found = (vaddr_of(table.strings, table.name, table.vaddr, name.decode(errors="replace")) for table in tables)
        vaddr = next((each for each in found if each is not None), None)
        if vaddr is not None:
            known.append((address, vaddr))
    if not known or not len(begins):
        return None
    addresses, vaddrs = (np.array(column, np.uint64) for column in zip(*known, strict=True))
    for step in (STEP, LOOSE_STEP):
        moved = (addresses - vaddrs) // np.uint64(step) * np.uint64(step)
        for distance in distinct(moved).tolist():
            place = np.searchsorted(begins, addresses - np.uint64(distance), side="right") - 1
            count = int(((place >= 0) & (begins[place] == vaddrs)).sum())
            if count >= max(MIN_NAMES, MIN_NAMED_SHARE * len(known)):
                return Shift(distance, f"{count} of {len(known)} functions are where the profile has them")
    return None


def choose_shift(
    image: ElfImage, symbols: KernelSymbols, is_call: Bool, places: Iterable[tuple[Shift, tuple[UInt64, Bool]]]
) -> Shift | None:
    """Where the kernel was moved to: the shift under which call sites lie in calls and addresses in functions.

    `places` are the shifts that may be, each with the vaddrs of all addresses and which of them lie in code, `is_call`
    says which are call sites. None if under none of them half of the addresses lie in functions.

    Addresses fall into functions of any kernel: of several lists that nothing refutes (R465, other kernels) those
    count that fit as they are, if any do, and none is used unless they give the same names (R124, symbols of the
    kernel).
    """
    begins, ends = symbols.begins, symbols.ends

    def score(vaddrs: UInt64, inside: Bool) -> tuple[float, float]:
        covered = inside
        if len(begins):
            at = np.searchsorted(begins, vaddrs, side="right") - 1
            covered = inside & (at >= 0) & (vaddrs < ends[np.maximum(at, 0)])
        sites = vaddrs[inside & is_call]
        calls = inside_calls(image, sites) if len(sites) >= MIN_CALL_SITES else None
        in_calls = float(calls.sum()) / max(int(is_call.sum()), 1) if calls is not None else 0.0
        # Anywhere else in the code a few of the sites happen to lie in a call.
        return in_calls if in_calls >= MIN_SHARE else 0.0, float(covered.mean()) if len(covered) else 0.0

    scores = [(score(*place), shift) for shift, place in places]
    best = max(scores, key=lambda each: each[0], default=None)  # the first of equals
    return best[1] if best is not None and best[0][1] >= MIN_SHARE else None


def vaddr_of(strings: bytes, names: np.ndarray, vaddrs: UInt64, name: str) -> int | None:
    """The vaddr of the symbol called `name`; the strings of a table may share their ends."""
    text = name.encode() + b"\0"
    places = []
    at = strings.find(text)
    while at >= 0:
        places.append(at)
        at = strings.find(text, at + 1)
    rows = np.flatnonzero(np.isin(names, np.array(places, np.int64)))
    return int(vaddrs[rows[0]]) if len(rows) else None
