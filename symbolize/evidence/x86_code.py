# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Where instructions of x86-64 begin, and where they jump: as far as compilers write them (Intel SDM, volume 2, A.3).

What is not in the tables below, as AVX, the x87 and what systems use, is left to capstone, which takes longer to import
than a small program to look up. On what is here both agree, also on what is no instruction.
"""

import cython
import numpy as np

ONE_BYTE = (
    b"mmmmbz??mmmmbz??mmmmbz??mmmmbz??mmmmbzs?mmmmbzs?mmmmbzs?mmmmbzs?"
    b"????????????????nnnnnnnnnnnnnnnn???mss??zZbcnnnnjjjjjjjjjjjjjjjj"
    b"cZ?cmmmmmmmm?a??nnnnnnnnnn?nnnnn????nnnnbznnnnnnbbbbbbbbvvvvvvvv"
    b"cc?n??dD?n??n???mmmm????????????bbbj????kJ?j????3?21nntTnnnnnnif"
)  # fmt: skip
TWO_BYTES = (
    b"?????n?????n????mmhammha???????m????????mmmammmm?n??????????????"
    b"mmmmmmmmmmmmmmmmrm??mmmmmmmmmmmmmmmmmmmmmmmmxxmmc???mmm?????xxmm"
    b"JJJJJJJJJJJJJJJJmmmmmmmmmmmmmmmm??nmcm?????mcm?mmm?m??mm??8mmmmm"
    b"mmc?c?c?nnnnnnnnxmmmmmxrmmmmmmmmmmmmmmxammmmmmmm?mmmmmm?mmmmmmm?"
)  # fmt: skip
"""What follows each opcode of one byte, and each behind 0F, four rows of the manual's tables a line:

- `n`: nothing; `b`: 8 bits; `z`: 32, or 16 behind the prefix 66; `v`: the same, but 64 with REX.W; `?`: not known here
- `m`: a ModR/M byte; `a`: one for memory; `r`: for a register; `x`: if 66 is before it; `h`: for registers only without
- `c`, `Z`: a ModR/M byte, and 8 bits or as `z`; `d`, `D`: if its register field is 0; `8`: if that is at least 4
- `t`, `T`: as `d` and `D` for TEST, a ModR/M byte for the others of group 3; `i`, `f`: groups 4 and 5
- `j`, `J`: a jump by 8 or 32 bits; `k`: a call; `s`: the prefix of a segment; `1` to `3`: REP, REPNE, LOCK
"""
REPEATED = b"\xa4\xa5\xa6\xa7\xaa\xab\xac\xad\xae\xaf\xc3"
"""Opcodes of one byte behind F3: those on strings, and RET."""
SCALAR = {
    0xF3: b"\x10\x11\x12\x16\x2a\x2c\x2d\x51\x52\x53\x58\x59\x5a\x5b\x5c\x5d\x5e\x5f\x6f\x7e\x7f\xb8\xbc\xbd\xe6",
    0xF2: b"\x10\x11\x12\x2a\x2c\x2d\x51\x58\x59\x5a\x5c\x5d\x5e\x5f\x7c\x7d\xd0\xe6",
}
"""Those behind 0F that have a ModR/M byte also behind these prefixes."""
SCALAR_8 = b"\x70\xc2"
"""Those that have 8 bits more."""
LOCKED = b"\x00\x01\x08\x09\x10\x11\x18\x19\x20\x21\x28\x29\x30\x31\x86\x87", b"\xab\xb0\xb1\xb3\xbb\xc0\xc1"
"""Opcodes of one byte, and behind 0F, that may be locked in memory; so may INC, DEC, and 83 with
8 bits."""
LONGEST = cython.declare(cython.Py_ssize_t, 15)
OPERAND_SIZE = cython.declare(cython.int, 0x66)
ESCAPE = cython.declare(cython.int, 0x0F)
REX = cython.declare(cython.int, 0x40)
REX_MASK = cython.declare(cython.int, 0xF0)
ENDBR = cython.declare(cython.int, 0x1E)
ENDBR_64 = cython.declare(cython.int, 0xFA)
SIB = cython.declare(cython.int, 4)
DISPLACEMENT = cython.declare(cython.int, 5)
REGISTER = cython.declare(cython.int, 3)
CMP = cython.declare(cython.int, 7)
FIRST_REGISTER = cython.declare(cython.int, 0xC0)
"""The first ModR/M byte of a register; before it the register field of CMP, which cannot be locked, and the codes in
that byte for a SIB byte, a displacement alone, and registers."""


def marked(**opcodes: bytes) -> bytes:
    """What follows each of 256 opcodes, by those of each kind; the others are unknown."""
    kinds = {opcode: kind for kind, those in opcodes.items() for opcode in those}
    return "".join(kinds.get(opcode, "?") for opcode in range(256)).encode()


TABLES = b"".join(
    (
        *(ONE_BYTE, TWO_BYTES),
        *(marked(n=REPEATED), marked(m=SCALAR[0xF3], c=SCALAR_8)),
        *(marked(), marked(m=SCALAR[0xF2], c=SCALAR_8)),
        *(marked(a=LOCKED[0], l=b"\x83", o=b"\xfe\xff"), marked(a=LOCKED[1])),
    )
)
"""Two tables each for no prefix, F3, F2 and F0 (LOCK)."""
REP = cython.declare(cython.int, 1)
REPNE = cython.declare(cython.int, 2)
LOCK = cython.declare(cython.int, 3)


@cython.cclass
class X86Function:
    """What was decoded: `count` instructions from `starts` (int64[n]) up to `end`, offsets into the code; the offsets
    that `jump_count` of them jump to, `jumps` (int64[n]); and whether one jumps to where a register or memory says.

    `size` is the length of the function; jumps into it are left out. The arrays are writable and as long as the code.
    """

    def __init__(self, starts: cython.longlong[::1], jumps: cython.longlong[::1], size: cython.longlong) -> None:
        self.starts = starts
        self.jumps = jumps
        self.size = size
        self.count = self.jump_count = self.end = 0
        self.is_open = False

    @cython.ccall
    def decode(self, code: cython.const[cython.uchar][::1], tables: cython.const[cython.uchar][::1]) -> cython.bint:
        """Decode all of `code`; False at the first instruction that is not in the tables or is cut off."""
        end: cython.Py_ssize_t
        with cython.nogil:
            while self.end < len(code):
                end = self.read(code, tables)
                if not self.end < end <= min(self.end + LONGEST, len(code)):
                    return False
                self.starts[self.count] = self.end
                self.count += 1
                self.end = end
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read(self, code: cython.const[cython.uchar][::1], tables: cython.const[cython.uchar][::1]) -> cython.Py_ssize_t:
        """The end of the instruction at `end`, 0 if it is not in the tables; beyond the code if it is cut off."""
        at: cython.Py_ssize_t = self.end
        size: cython.Py_ssize_t = len(code)
        group: cython.int = 0
        is_short: cython.bint = False
        has_segment: cython.bint = False
        byte: cython.int = code[at]
        kind: cython.int
        while True:
            kind = tables[byte]
            if byte == OPERAND_SIZE:
                is_short = True
            elif kind == ord("s") and not has_segment:
                has_segment = True
            elif kind in (ord("1"), ord("2"), ord("3")) and not group:
                group = kind - ord("0")
            else:
                break
            at += 1
            if at == size:
                return 0
            byte = code[at]
        rex: cython.int = byte if byte & REX_MASK == REX else 0
        if rex:
            at += 1
            if at == size:
                return 0
            byte = code[at]
        table: cython.int = 2 * group
        if byte == ESCAPE:
            at += 1
            if at == size or (is_short and group in (REP, REPNE)):
                return 0
            byte = code[at]
            table += 1
            if byte == ENDBR and group == REP and not rex and at + 1 < size and code[at + 1] == ENDBR_64:
                return at + 2  # ENDBR64
        at += 1
        kind = tables[256 * table + byte]
        wide: cython.Py_ssize_t = 2 if is_short and not rex & 8 else 4
        if kind in (ord("n"), ord("b"), ord("z"), ord("v"), ord("k"), ord("j"), ord("J")):
            if has_segment:
                return 0
            if kind == ord("n"):
                return at
            if kind == ord("b"):
                return at + 1
            if kind == ord("z"):
                return at + wide
            if kind == ord("v"):
                return at + (8 if rex & 8 else wide)
            if kind == ord("k"):
                return at + 4
            return 0 if is_short or rex else self.jump(code, at, 1 if kind == ord("j") else 4)
        if at == size:
            return 0
        if has_segment and code[at] >= FIRST_REGISTER and kind != ord("f"):
            return 0
        immediate: cython.Py_ssize_t = self.immediate(kind, code[at], is_short, wide)
        return 0 if immediate < 0 else behind_operand(code, at) + immediate

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def jump(
        self, code: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, width: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The end of a jump by the distance in the `width` bytes from `at`; where it leads is noted."""
        distance: cython.longlong = 0
        i: cython.Py_ssize_t
        if at + width > len(code):
            return 0
        for i in range(width):
            distance |= cython.cast(cython.longlong, code[at + i]) << 8 * i
        if distance >> (8 * width - 1):
            distance -= cython.cast(cython.longlong, 1) << 8 * width
        distance += at + width
        if not 0 <= distance < self.size:
            self.jumps[self.jump_count] = distance
            self.jump_count += 1
        return at + width

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def immediate(
        self, kind: cython.int, modrm: cython.int, is_short: cython.bint, wide: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """The bytes behind the operand of a ModR/M byte; -1 if the opcode has no instruction of it in the tables."""
        field: cython.int = modrm >> 3 & 7
        is_memory: cython.bint = modrm < FIRST_REGISTER
        if kind == ord("c") or (kind == ord("d") and not field) or (kind == ord("8") and field >= 4):
            return 1
        if kind == ord("l") and is_memory and field != CMP:
            return 1
        if kind == ord("Z") or (kind == ord("D") and not field):
            return wide
        if kind in (ord("t"), ord("T")) and field != 1:
            return 0 if field else 1 if kind == ord("t") else wide
        if kind == ord("f") and (field == 1 or field & 1 == 0):
            self.is_open = self.is_open or field == 4
            return 0
        fits: cython.bint = (
            kind == ord("m")
            or (kind == ord("i") and field < 2)
            or (kind == ord("o") and field < 2 and is_memory)
            or (kind == ord("a") and is_memory)
            or (kind == ord("r") and not is_memory)
            or (kind == ord("x") and is_short)
            or (kind == ord("h") and (is_memory or not is_short))
        )
        return 0 if fits else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def behind_operand(code: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The end of the operand whose ModR/M byte is at `at`, by its SIB byte and displacement; beyond the code if it is
    cut off."""
    modrm: cython.int = code[at]
    mode: cython.int = modrm >> 6
    base: cython.int = modrm & 7
    at += 1
    if mode == REGISTER:
        return at
    if base == SIB:
        if at == len(code):
            return at + 1
        base = code[at] & 7
        at += 1
    return at + (1 if mode == 1 else 4 if mode == 2 or base == DISPLACEMENT else 0)


def decoded(code: bytes, size: int) -> X86Function | None:
    """The instructions in `code`, the first bytes of a function of `size`; None if one of them is not in the tables."""
    starts, jumps = (np.empty(len(code), np.int64) for _ in range(2))
    found = X86Function(starts, jumps, size)
    return found if found.decode(code, TABLES) else None
