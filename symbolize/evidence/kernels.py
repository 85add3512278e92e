"""Is this vmlinux, or list of symbols, of the kernel that ran, and where was that moved to?"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from symbolize.core.arrays import TOP

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


class Shift(NamedTuple):
    """How far memory is above the vaddrs of a kernel image, modulo 2⁶⁴, and what says so."""

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


def compare(recorded: RecordedKernel, file: KernelFile) -> Comparison:
    """Compare what identifies a kernel, the strongest first: machine, bits of addresses, release, length of the code
    (R465, other kernels)."""
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
        found.setdefault(0, Shift(0, "as linked"))
    text = next(iter(anchors.values()), 0)
    return [shift for shift in found.values() if is_possible(shift.distance, text, is_64=recorded.is_64)]


def is_possible(distance: int, text: int, *, is_64: bool) -> bool:
    """Whether a kernel whose code begins at `text` may be moved so far, modulo 2⁶⁴."""
    if not distance or not text or not is_64:
        return True
    is_high = text >= HIGHEST_CODE
    return (text + distance & TOP >= HIGHEST_CODE) == is_high and distance % (STEP if is_high else LOOSE_STEP) == 0
