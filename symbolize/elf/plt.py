"""Names procedure linkage table entries by the relocations of the words that they jump through (R263, names of PLT
entries).

The code of an entry gives the word of the global offset table, a dynamic relocation its function. The order of entries
or relocations is not used.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Int64, UInt8, UInt32, UInt64, distinct, is_among
from symbolize.elf.dynamic import DT_PLTGOT, Loaded, dynamic_tags
from symbolize.elf.headers import SHF_ALLOC, SHT_CREL, SHT_REL, SHT_RELA
from symbolize.elf.image import ElfImage, Section
from symbolize.elf.relocate import Relocations, read_relocations
from symbolize.elf.symbols import (
    MORE_NAMES,
    NAMES_PER_BYTE,
    STB_GLOBAL,
    STB_LOCAL,
    STT_FUNC,
    STT_GNU_IFUNC,
    Symbols,
    read_symbols,
    symbol_rows,
    table_bytes,
)

MARK = b"@plt"
TABLES = (".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt")
AMONG_CODE = (".init", ".text", ".fini")
MAX_ENTRIES = 1 << 20
"""More entries, or words that they jump through, than any program has."""

# Instructions as they are read below: opcodes, or masks and values of whole words.
JMP_WORD, JMP_WORD_EBX = 0x25FF, 0xA3FF
"""`jmp *disp32`, relative to rip in 64 bits, and `jmp *disp32(%ebx)`."""
BND, MOV_R11D, MOV_ECX, ENDBR64, ENDBR32 = b"\xf2", b"\x41\xbb", b"\xb9", b"\xf3\x0f\x1e\xfa", b"\xf3\x0f\x1e\xfb"
MOV_REX, MOV_RIP_R11 = 0x8B4C, 0x1D
"""`mov disp32(%rip), %r11`: prefix with opcode, and the operands."""
ADRP_X16_MASK, ADRP_X16 = 0x9F00001F, 0x90000010
LDR_X17_MASK, LDR_X17 = 0xFFC003FF, 0xF9400211
BTI_C = b"\x5f\x24\x03\xd5"
ARM_MASK = 0xFFFFF000
ADD_IP_PC, ADD_IP_IP, LDR_PC_IP_BACK = 0xE28FC000, 0xE28CC000, 0xE5BCF000
"""`add ip, pc, #n`, `add ip, ip, #n` and `ldr pc, [ip, #n]!`."""
LDR_IP_PC_4, ADD_IP_IP_PC, LDR_PC_IP = 0xE59FC004, 0xE08CC00F, 0xE59CF000
BX_PC = b"\x78\x47"
AUIPC_T3_MASK, AUIPC_T3 = 0xFFF, 0xE17
LOAD_T3_MASK, LD_T3, LW_T3 = 0xFFFFF, 0xE3E03, 0xE2E03
STD_R2_24_R1, MTCTR_R12, BCTR = 0xF8410018, 0x7D8903A6, 0x4E800420
ADDIS_R12_R2_MASK, ADDIS_R12_R2 = 0xFFFF0000, 0x3D820000
LD_R12_MASK, LD_R12_R2, LD_R12_R12 = 0xFFFF0003, 0xE9820000, 0xE98C0000
LARL_R1, LG_R1_R1 = 0xC010, b"\xe3\x10\x10\x00\x00\x04"

TOC_BIAS = 0x8000
"""How far behind its begin r2 points into .got (PPC64 ELFv2 §3.4)."""
TOC_SIZE = 1 << 16
"""What code of the small model reaches from r2. For a larger .got r2 may differ between functions (multiple TOCs)."""


class Words(NamedTuple):
    """The types of dynamic relocations that bind a word of the global offset table to a function."""

    named: tuple[int, ...]
    """JUMP_SLOT, GLOB_DAT."""
    resolved: int
    """IRELATIVE: the function that a resolver chooses, whose address is the addend."""


WORDS = {
    "EM_X86_64": Words((7, 6), 37),
    "EM_386": Words((7, 6), 42),
    "EM_AARCH64": Words((1026, 1025), 1032),
    "EM_ARM": Words((22, 21), 160),
    "EM_RISCV": Words((5, 2), 58),  # there is no GLOB_DAT: R_RISCV_64
    "EM_PPC64": Words((21, 20), 248),
    "EM_S390": Words((11, 10), 61),
}


class Entries(NamedTuple):
    """Entries of a section: their offsets, the vaddrs of the words that they jump through, and their largest `size`."""

    begin: Int64
    word: UInt64
    size: int


def read_plt(image: ElfImage) -> Symbols | None:
    """The procedure linkage table entries of a file as symbols `name@plt`; None without any, as in debug files.

    Which word an entry jumps through is decoded from its instructions. Its function is that of the JUMP_SLOT or
    GLOB_DAT relocation of the word; of a word that a resolver fills (IRELATIVE) the indirect function with this
    resolver, else `*ABS*+0x…@plt`, as objdump and gdb have it. The first entry, which looks functions up, has no name,
    nor has one whose instructions or word are not known (R263, names of PLT entries).

    Read are files that have the code and section headers, for x86-64, i386, AArch64, ARM, RISC-V, S/390 (64 bits) and
    PowerPC 64 (little-endian, with a `.got` of 64 KiB at most: for a larger one the register that words are found by
    may differ between functions).
    """
    if image.machine not in DECODERS or image.is_relocatable:
        return None
    names, decode = DECODERS[image.machine]
    contents = list(code_of(image, names))
    if not contents:
        return None
    functions = functions_of_words(image)
    words = np.array(sorted(functions), np.uint64)
    begins, sizes, ends, found = [], [], [], []
    for section, code in contents if len(words) else []:
        for entries in decode(code, section.vaddr, image, words):
            index = np.minimum(np.searchsorted(words, entries.word), len(words) - 1)
            known = np.flatnonzero(words[index] == entries.word)[:MAX_ENTRIES]
            begin = entries.begin[known]
            size = int(np.diff(distinct(begin)).min(initial=entries.size))
            begins.append(begin.astype(np.uint64) + np.uint64(section.vaddr))
            sizes.append(np.full(len(begin), size, np.uint64))
            ends.append(np.full(len(begin), section.vaddr + section.size, np.uint64))
            found.append(words[index[known]])
    texts = [functions[word] + MARK for words_there in found for word in words_there.tolist()]
    if not texts:
        return None
    if sum(map(len, texts)) > NAMES_PER_BYTE * len(image.data) + MORE_NAMES:
        image.note("names of entries of procedure linkage tables are absurdly long; these are left out")
        return None
    strings = b"\0" + b"".join(text + b"\0" for text in texts)
    lengths = np.array([len(text) + 1 for text in texts], np.int64)
    count = len(texts)
    kind, binding = np.full(count, STT_FUNC, np.uint8), np.full(count, STB_LOCAL, np.uint8)
    name, file = 1 + np.cumsum(lengths) - lengths, np.zeros(count, np.int64)
    columns = (np.concatenate(begins), np.concatenate(sizes), kind, binding, np.concatenate(ends), name, file)
    return Symbols(*columns, strings, dynamic=True, stubs=True)


def fitting(image: ElfImage, sections: Iterable[Section]) -> Iterator[Section]:
    """Sections that together are no larger than the file; many headers could name the same bytes."""
    left = len(image.data)
    for section in sections:
        left -= section.size
        if left >= 0:
            yield section


def code_of(image: ElfImage, names: Sequence[str]) -> Iterator[tuple[Section, UInt8]]:
    """The sections of these names that have code, and that."""
    for section in fitting(image, (s for s in image.sections if s.name in names and s.is_code)):
        raw = image.raw(section)
        if raw is not None and section.vaddr + section.size < 1 << 63:
            yield section, np.frombuffer(raw, np.uint8)


def functions_of_words(image: ElfImage) -> dict[int, bytes]:
    """The function that the dynamic linker puts into each word of the global offset table, by the word's vaddr."""
    kinds = WORDS[image.machine]
    dynamic = image.find(".dynsym")
    table = image.sections.index(dynamic) if dynamic is not None else -1
    names = symbol_names(image)
    found: dict[int, bytes] = {}
    resolvers: dict[int, int] = {}
    kinds_of_table = (SHT_REL, SHT_RELA, SHT_CREL)
    for section in fitting(image, (s for s in image.sections if s.type in kinds_of_table and s.flags & SHF_ALLOC)):
        try:
            rows = read_relocations(image, section)
        except ValueError:
            continue
        if section.link == table:
            found |= jump_words(rows, kinds.named, names)
        resolvers |= resolved_words(rows, kinds.resolved, image)
    if resolvers:
        known = indirect_functions(image)
        # What has no name is called as objdump and gdb do it.
        found |= {word: known.get(at, b"*ABS*+%#x" % at) for word, at in resolvers.items()}
    return found


def symbol_names(image: ElfImage) -> Callable[[int], bytes]:
    """What gives the name of a dynamic symbol by its number, empty if it has none."""
    found = table_bytes(image, ".dynsym")
    if found is None:
        return lambda number: b""
    offsets, strings = symbol_rows(image, found[0])["name"], bytes(found[1])
    left = NAMES_PER_BYTE * len(strings) + MORE_NAMES  # names may overlap

    def name(number: int) -> bytes:
        nonlocal left
        begin = int(offsets[number]) if number < len(offsets) else len(strings)
        end = strings.find(b"\0", begin) if left >= 0 else -1
        left -= max((end if end >= 0 else len(strings)) - begin, 0)
        return strings[begin:end] if end >= 0 and left >= 0 else b""

    return name


def jump_words(rows: Relocations, types: Iterable[int], names: Callable[[int], bytes]) -> dict[int, bytes]:
    """The words that relocations of these types fill, with the names of their symbols."""
    chosen = is_among(rows.type, np.array(list(types), np.uint64)) & (rows.symbol > 0)
    if rows.addend is not None:
        chosen &= rows.addend == 0
    filled = np.flatnonzero(chosen)[:MAX_ENTRIES]
    pairs = zip(rows.offset[filled].tolist(), rows.symbol[filled].tolist(), strict=True)
    return {word: name for word, symbol in pairs if (name := names(symbol))}


def resolved_words(rows: Relocations, number: int, image: ElfImage) -> dict[int, int]:
    """The words that a resolver fills, with its vaddr, which without addends is in the word."""
    chosen = np.flatnonzero(rows.type == np.uint64(number))[:MAX_ENTRIES]
    words = rows.offset[chosen].tolist()
    if rows.addend is not None:
        return dict(zip(words, rows.addend[chosen].tolist(), strict=True))
    loaded = Loaded(image)
    return {word: held[0] for word in words if (held := loaded.words(word, 1))}


def indirect_functions(image: ElfImage) -> dict[int, bytes]:
    """The names of indirect functions by the vaddrs of their resolvers; of several the public and shortest one."""
    known: dict[int, tuple[bool, int, bytes]] = {}
    for table in (read_symbols(image, ".symtab"), read_symbols(image, ".dynsym")):
        for row in np.flatnonzero(table.type == STT_GNU_IFUNC).tolist() if table is not None else []:
            assert table is not None
            text = table.text(int(table.name[row])).partition(b"@")[0]
            order = int(table.binding[row]) != STB_GLOBAL, len(text), text
            at = int(table.vaddr[row])
            known[at] = min(known.get(at, order), order)
    return {at: text for at, (_, _, text) in known.items()}


def fields(code: UInt8, kind: str) -> NDArray[Any]:
    """The numbers of a kind that begin at each byte of `code`."""
    size = np.dtype(kind).itemsize
    return np.ndarray((max(len(code) - size + 1, 0),), kind, np.append(code, np.zeros(size, np.uint8)), strides=(1,))


def at(vaddr: int, begin: Int64, distance: NDArray[Any]) -> UInt64:
    """The vaddrs so far from `begin` in the code at `vaddr`, modulo 2⁶⁴."""
    return np.uint64(vaddr) + begin.astype(np.uint64) + distance.astype(np.int64).view(np.uint64)


def behind(code: UInt8, begin: Int64, pattern: bytes, size: int = 0) -> Int64:
    """`begin`, moved to the instruction before it where that begins with `pattern`; `size` is its size, if larger."""
    size = size or len(pattern)
    found = begin >= size
    for i, byte in enumerate(pattern):
        found &= code[np.maximum(begin - size + i, 0)] == byte
    return np.where(found, begin - size, begin)


def decode_x86_64(code: UInt8, vaddr: int, image: ElfImage, words: UInt64) -> Iterator[Entries]:
    """`jmp *word(%rip)`, with `bnd`, behind `endbr64` or `mov $number, %r11d`; `mov word(%rip), %r11` of retpolines."""
    pairs, numbers = fields(code, "<u2"), fields(code, "<i4")
    jump = np.flatnonzero(pairs[: max(len(code) - 5, 0)] == JMP_WORD)
    begin = behind(code, jump, BND)
    begin = behind(code, begin, MOV_R11D, 6)
    yield Entries(behind(code, begin, ENDBR64), at(vaddr, jump + 6, numbers[jump + 2]), 16)
    operands = code[2 : max(len(code) - 4, 2)]
    load = np.flatnonzero((pairs[: max(len(code) - 6, 0)] == MOV_REX) & (operands == MOV_RIP_R11))
    yield Entries(load, at(vaddr, load + 7, numbers[load + 3]), 32)


def decode_386(code: UInt8, vaddr: int, image: ElfImage, words: UInt64) -> Iterator[Entries]:
    """`jmp *word` or, in position-independent code, `jmp *word(%ebx)`, with ebx at the global offset table."""
    numbers = fields(code, "<u4")
    base = table_of_386(image, words)
    for opcode, begin in ((JMP_WORD, 0), (JMP_WORD_EBX, base)):
        if begin is not None:
            jump = jumps_of_386(code, opcode)
            first = behind(code, behind(code, jump, MOV_ECX, 5), ENDBR32)
            yield Entries(first, numbers[jump + 2].astype(np.uint64) + np.uint64(begin) & np.uint64(0xFFFFFFFF), 16)


def jumps_of_386(code: UInt8, opcode: int) -> Int64:
    """Where jumps through a word are."""
    return np.flatnonzero(fields(code, "<u2")[: max(len(code) - 5, 0)] == opcode)


def table_of_386(image: ElfImage, words: UInt64) -> int | None:
    """What `ebx` is in entries: what they jump through most words with, of all that linkers take; None in doubt."""
    tables = [section.vaddr for section in image.sections if section.name in (".got", ".got.plt")]
    hits = dict.fromkeys((dynamic_tags(image).get(DT_PLTGOT, 0), *tables), 0)
    for _, code in code_of(image, TABLES):
        distance = fields(code, "<u4")[jumps_of_386(code, JMP_WORD_EBX) + 2].astype(np.uint64)
        for base in hits:
            hits[base] += int(is_among(distance + np.uint64(base) & np.uint64(0xFFFFFFFF), words).sum())
    best = [base for base, count in hits.items() if count == max(hits.values())]
    return best[0] if len(best) == 1 else None


def instructions(code: UInt8, count: int) -> list[UInt32]:
    """Runs of `count` instructions of four bytes: the first of each, the second of each and so on."""
    words = fields(code, "<u4")[::4].astype(np.uint32)
    return [words[i : max(len(words) - count + 1 + i, i)] for i in range(count)]


def decode_aarch64(code: UInt8, vaddr: int, image: ElfImage, words: UInt64) -> Iterator[Entries]:
    """`adrp x16, word` and `ldr x17, [x16, word]`, perhaps behind `bti c`."""
    page, load = instructions(code, 2)
    chosen = np.flatnonzero(((page & ADRP_X16_MASK) == ADRP_X16) & ((load & LDR_X17_MASK) == LDR_X17))
    page, load = page[chosen].astype(np.int64), load[chosen].astype(np.int64)
    pages = (page >> 5 & 0x7FFFF) << 2 | page >> 29 & 3
    pages -= (pages >> 20) << 21  # signed
    word = at(vaddr & ~0xFFF, ((vaddr & 0xFFF) + 4 * chosen) >> 12 << 12, (pages << 12) + (load >> 10 & 0xFFF) * 8)
    yield Entries(behind(code, 4 * chosen, BTI_C), word, 24)


def decode_arm(code: UInt8, vaddr: int, image: ElfImage, words: UInt64) -> Iterator[Entries]:
    """Additions to `ip`, the first of pc, and `ldr pc, [ip, word]!`, perhaps behind `bx pc` of Thumb code; lld's form
    for far words is `ldr ip, [pc, #4]`, `add ip, ip, pc`, `ldr pc, [ip]` and the distance."""
    if image.big_endian:
        return

    def rotated(instruction: UInt32) -> Int64:
        value, by = (instruction & 0xFF).astype(np.int64), (instruction >> 8 & 0xF).astype(np.int64) * 2
        return (value << 32 - by | value >> by) & 0xFFFFFFFF

    for additions in (2, 3):
        first, *others, load = instructions(code, additions + 1)
        found = ((first & ARM_MASK) == ADD_IP_PC) & ((load & ARM_MASK) == LDR_PC_IP_BACK)
        for other in others:
            found &= (other & ARM_MASK) == ADD_IP_IP
        chosen = np.flatnonzero(found)
        distance = (load[chosen] & 0xFFF).astype(np.int64)
        for addition in (first, *others):
            distance += rotated(addition[chosen])
        word = at(vaddr, 4 * chosen + 8, distance) & np.uint64(0xFFFFFFFF)
        begin = behind(code, 4 * chosen, BX_PC, 4)
        for from_thumb in (True, False):
            rows = np.flatnonzero((begin < 4 * chosen) == from_thumb)
            yield Entries(begin[rows], word[rows], 4 * (additions + 1 + from_thumb))
    first, second, third, far = instructions(code, 4)
    chosen = np.flatnonzero((first == LDR_IP_PC_4) & (second == ADD_IP_IP_PC) & (third == LDR_PC_IP))
    yield Entries(4 * chosen, at(vaddr, 4 * chosen + 12, far[chosen]) & np.uint64(0xFFFFFFFF), 16)


def decode_riscv(code: UInt8, vaddr: int, image: ElfImage, words: UInt64) -> Iterator[Entries]:
    """`auipc t3, word` and `ld t3, word(t3)`, or `lw` in 32 bits."""
    high, low = instructions(code, 2)
    load = LD_T3 if image.is_64 else LW_T3
    chosen = np.flatnonzero(((high & AUIPC_T3_MASK) == AUIPC_T3) & ((low & LOAD_T3_MASK) == load))
    distance: Int64 = (high[chosen] & np.uint32(0xFFFFF000)).view(np.int32).astype(np.int64)
    distance += low[chosen].view(np.int32) >> 20
    mask = (1 << (64 if image.is_64 else 32)) - 1
    yield Entries(4 * chosen, at(vaddr, 4 * chosen, distance) & np.uint64(mask), 16)


def decode_ppc64(code: UInt8, vaddr: int, image: ElfImage, words: UInt64) -> Iterator[Entries]:
    """`std r2, 24(r1)`, `addis r12, r2, word`, `ld r12, word(r12)`, `mtctr r12` and `bctr`, where the word is near
    `ld r12, word(r2)` alone (ELFv2). Calls in functions do not store r2 there and then."""
    table = image.find(".got")
    if table is None or table.size > TOC_SIZE or image.big_endian:
        return
    for near in (True, False):
        save, *high, load, move, branch = instructions(code, 4 if near else 5)
        found = (save == STD_R2_24_R1) & ((load & LD_R12_MASK) == (LD_R12_R2 if near else LD_R12_R12))
        found &= (move == MTCTR_R12) & (branch == BCTR)
        for addition in high:
            found &= (addition & ADDIS_R12_R2_MASK) == ADDIS_R12_R2
        chosen = np.flatnonzero(found)
        distance = (load[chosen] & np.uint32(0xFFFC)).astype(np.uint16).view(np.int16).astype(np.int64)
        for addition in high:
            distance += (addition[chosen] << np.uint32(16)).view(np.int32)
        word = at(table.vaddr + TOC_BIAS, np.zeros(len(chosen), np.int64), distance)
        yield Entries(4 * chosen, word, 16 if near else 20)


def decode_s390(code: UInt8, vaddr: int, image: ElfImage, words: UInt64) -> Iterator[Entries]:
    """`larl %r1, word` and `lg %r1, 0(%r1)`."""
    if not image.is_64:
        return
    numbers = fields(code, ">i4")
    found = fields(code, ">u2")[: max(len(code) - 11, 0)] == LARL_R1
    for i, byte in enumerate(LG_R1_R1, 6):
        found &= code[i : i + len(found)] == byte
    chosen = np.flatnonzero(found)
    yield Entries(chosen, at(vaddr, chosen, 2 * numbers[chosen + 2].astype(np.int64)), 32)


Decoder = Callable[[UInt8, int, ElfImage, UInt64], Iterator[Entries]]
DECODERS: dict[str, tuple[tuple[str, ...], Decoder]] = {
    "EM_X86_64": (TABLES, decode_x86_64),
    "EM_386": (TABLES, decode_386),
    "EM_AARCH64": (TABLES, decode_aarch64),
    "EM_ARM": (TABLES, decode_arm),
    "EM_RISCV": (TABLES, decode_riscv),
    "EM_PPC64": (AMONG_CODE, decode_ppc64),
    "EM_S390": (TABLES, decode_s390),
}
"""The sections that entries are in, and what finds them there, by machine."""
