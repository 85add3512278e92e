"""Lines of stack traces in texts: what sanitizers, glibc and the kernel print of a frame without its source line.

R385, addresses in texts: sanitizers print addresses that are inside of the call, glibc and the kernel return addresses.
"""

import re
from typing import Final, Literal, NamedTuple

Kind = Literal["sanitizer", "glibc", "kernel"]

LONGEST: Final = 4096
"""Bytes of a line that is looked at; longer ones are no frames."""

SANITIZER: Final = re.compile(
    rb"(?P<start>\s*#\d{1,4} 0x[0-9a-fA-F]{1,16} ) ?(?:in (?P<known>[^\n]+?) )?"
    rb"\((?P<module>[^()\n]{1,1024})\+0x(?P<offset>[0-9a-fA-F]{1,16})\)"
    rb"(?: \(BuildId: (?P<id>[0-9a-fA-F]{4,128})\))?(?P<end>\s*)"
)
GLIBC: Final = re.compile(
    rb"(?<=[^()\s])\((?P<symbol>[^()+\s]{0,512})\+0x(?P<offset>[0-9a-fA-F]{1,16})\)"
    rb" ?\[0x(?P<address>[0-9a-fA-F]{1,16})\]"
)
"""What follows the path of the file, which is looked for backwards: from each byte on, a long line takes too long."""
BORDER: Final = re.compile(rb"[()\s]")
MAX_PATH: Final = 1024
KERNEL: Final = re.compile(
    rb"(?<![\w.$+])(?P<symbol>[A-Za-z_][\w.$]{0,255})\+0x(?P<offset>[0-9a-fA-F]{1,8})/0x(?P<size>[0-9a-fA-F]{1,8})"
    rb"(?: \[(?P<module>[\w-]{1,64})(?: (?P<id>[0-9a-f]{4,128}))?\])?(?![\w+/])"
)
EXACT: Final = re.compile(rb"(?:RIP|EIP|NIP)\b|\bpc : |PC is at ")
"""What the kernel prints before the address at which it stopped, which is none to return to."""


class TraceLine(NamedTuple):
    """A frame in a line: the file by the base name of its recorded path and by its build id (each may be empty), and a
    vaddr, as it is to be looked up, or a symbol with an offset and maybe a size.

    The line up to `start` stays before the names, what is behind `end` stays behind them. `has_name` says that the line
    names the function already. `address` is where the frame was in memory, None if the line does not say it.
    """

    kind: Kind
    file: str
    build_id: str
    symbol: bytes
    offset: int
    size: int
    start: int
    end: int
    has_name: bool
    address: int | None = None


def trace_line(line: bytes) -> TraceLine | None:
    """The frame in a line; None if there is none whose file and address are certain."""
    if len(line) > LONGEST or b"0x" not in line:
        return None
    return sanitizer_line(line) or glibc_line(line) or kernel_line(line)


def sanitizer_line(line: bytes) -> TraceLine | None:
    """A frame that a sanitizer's runtime printed; the address is in the call already."""
    match = SANITIZER.fullmatch(line)
    if match is None:
        return None
    build_id = (match["id"] or b"").decode()
    file, offset, has_name = base_name(match["module"]), int(match["offset"], 16), match["known"] is not None
    return TraceLine("sanitizer", file, build_id, b"", offset, 0, match.end("start"), match.start("end"), has_name)


def glibc_line(line: bytes) -> TraceLine | None:
    """A frame of glibc's `backtrace_symbols`: a return address."""
    match = GLIBC.search(line)
    if match is None:
        return None
    offset, address, symbol = int(match["offset"], 16), int(match["address"], 16), match["symbol"]
    if not offset or not address:
        return None
    before = line[max(match.start() - MAX_PATH, 0) : match.start()]
    file, end = base_name(BORDER.split(before)[-1]), match.end()
    return TraceLine("glibc", file, "", symbol, offset - 1, 0, end, end, bool(symbol), address - 1)


def kernel_line(line: bytes) -> TraceLine | None:
    """A frame of the kernel's stack traces: a return address, but where it stopped."""
    match = KERNEL.search(line)
    if match is None:
        return None
    offset, size = int(match["offset"], 16), int(match["size"], 16)
    offset -= EXACT.search(line, 0, match.start()) is None
    if not 0 <= offset < size:
        return None
    module = (match["module"] or b"").decode()
    build_id = (match["id"] or b"").decode()
    file = f"{module}.ko" if module else "vmlinux"
    return TraceLine("kernel", file, build_id, match["symbol"], offset, size, match.end(), match.end(), True)


def base_name(path: bytes) -> str:
    """The last part of a recorded path, which is never opened by itself."""
    return path.rpartition(b"/")[2].decode(errors="surrogateescape")
