"""Names of the entries of procedure linkage tables (rule R263)."""

import struct
import time
from typing import Any

import numpy as np
import pytest

from symbolize.elf import ElfImage, read_plt
from symbolize.names import demangle
from symbolize.symbols import Binary, build_table
from tests.support.elf_writer import (
    ALLOC,
    EXEC,
    GLOBAL,
    LOCAL,
    RELA,
    UNDEF,
    WEAK,
    Section,
    Symbol,
    elf_file,
    text,
)
from tests.support.lookup import frames_of
from tests.support.plt_files import LAYOUTS, file_of


def entries(image: ElfImage) -> list[list[Any]]:
    """The entries of a file: vaddr, size and name."""
    table = read_plt(image)
    if table is None:
        return []
    return sorted(
        [int(at), int(size), table.text(int(name)).decode()]
        for at, size, name in zip(table.vaddr, table.size, table.name, strict=True)
    )


def resolverless(layout: dict[str, Any]) -> list[list[Any]]:
    """The entries of a layout without those of resolvers, which machines without addends keep in the words."""
    return [entry for entry in layout["entries"] if layout["machine"] != "EM_ARM" or entry[2][0] != "*"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_linkers(name: str) -> None:
    """Every entry is named by the relocation of the word that it jumps through (rule R263)."""
    layout = LAYOUTS[name]
    found = entries(file_of(layout))
    assert [entry for entry in found if entry in resolverless(layout)] == resolverless(layout)
    assert len(found) <= len(layout["entries"])


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_order_of_relocations_does_not_matter(name: str) -> None:
    """Names follow words, not the order of relocations; what no relocation is of has no name (rule R263)."""
    layout = LAYOUTS[name]
    turned = layout | {"words": layout["words"][::-1]}
    assert entries(file_of(turned)) == entries(file_of(layout))
    lost = layout | {"words": [row for row in layout["words"] if row[2] != "ext1"]}
    assert [e for e in entries(file_of(lost)) if e[2] == "ext1@plt"] == []
    assert [e for e in resolverless(layout) if e[2] != "ext1@plt"] == [
        e for e in entries(file_of(lost)) if e[2] in ("ext2@plt", "ext3@plt") or e in resolverless(layout)
    ]


def test_lookup() -> None:
    """The whole entry has the name, without file and line, and is not folded; the first entry has none (rule R263)."""
    layout = LAYOUTS["x86-64"]
    table = build_table([file_of(layout)])
    at, size, name = next(entry for entry in layout["entries"] if entry[2] == "ext2@plt")
    for vaddr in (at, at + size - 1):
        (frames,) = frames_of(table, [vaddr])
        assert [tuple(frame) for frame in frames] == [(name, "", 0, 0, 0)]
    begin = next(at for section, at, _ in layout["code"] if section == ".plt")
    assert frames_of(table, [begin]) == [[]]
    assert not table.lookup(np.array([at], np.uint64)).folded.any()


def test_entries_are_no_functions_of_the_file() -> None:
    """A file with nothing but entries has no names of its own and counts as stripped."""
    layout = LAYOUTS["x86-64 now"]
    image = file_of(layout)
    assert not build_table([image]).has_names
    assert Binary([image]).is_stripped


def test_symbols_come_first() -> None:
    """Where a symbol is already, it stays (rule R263), such as mold's `ext1$plt`."""
    layout = LAYOUTS["x86-64 now"]
    at, size, _ = layout["entries"][0]
    section = layout["code"][0][0]
    table = build_table([file_of(layout, [Symbol("stub", at, size, section=section)])])
    assert [frame.name for (frame,) in frames_of(table, [at, layout["entries"][1][0]])] == [
        "stub",
        layout["entries"][1][2],
    ]


def test_debug_file_and_binary() -> None:
    """The debug file has no code of entries; the binary has, in either order (rule R263)."""
    layout = LAYOUTS["aarch64"]
    for turned in (False, True):
        debug, binary = file_of(layout, [Symbol("f", 0, 4, section=".plt")], nobits=True), file_of(layout)
        assert entries(debug) == []
        table = build_table([binary, debug] if turned else [debug, binary])
        for at, _, name in layout["entries"]:
            assert [frame.name for frame in frames_of(table, [at])[0]] == [name]


@pytest.mark.parametrize("name", ["x86-64", "aarch64", "riscv64", "s390x"])
def test_resolvers(name: str) -> None:
    """An indirect function is called by its public name or, if no symbol has its resolver's address, by that address,
    as objdump and gdb do (rule R263)."""
    layout = LAYOUTS[name]
    (resolver,) = (row[3] for row in layout["words"] if not row[2])
    (entry,) = (entry for entry in entries(file_of(layout)) if entry[2] == f"*ABS*+{resolver:#x}@plt")
    names = [("chosen_by_mistake", GLOBAL), ("chosen", GLOBAL), ("local", LOCAL), ("weak", WEAK)]
    known = layout | {"resolvers": [(resolver, *each) for each in names]}
    code = [*layout["code"], ["resolvers", resolver & ~0xFFF | 0x800, "00" * 0x800]]
    assert entry[0] < resolver
    assert [*entry[:2], "chosen@plt"] in entries(file_of(known | {"code": code}))


@pytest.mark.parametrize("name", [name for name in LAYOUTS if LAYOUTS[name]["machine"] == "EM_AARCH64"])
def test_words_below_the_code(name: str) -> None:
    """The distance in pages to a word is signed (rule R263)."""
    layout, pages = LAYOUTS[name], 0x40
    ((section, at, data),) = layout["code"]
    code = np.frombuffer(bytes.fromhex(data), "<u4").copy()
    for row in np.flatnonzero(code & 0x9F00001F == 0x90000010).tolist():  # adrp x16
        word = int(code[row])
        distance = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
        distance -= pages
        assert distance < 0
        code[row] = word & 0x9F00001F | (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5
    moved = layout | {"code": [[section, at + (pages << 12), code.tobytes().hex()]]}
    assert entries(file_of(moved)) == [[at + (pages << 12), *rest] for at, *rest in entries(file_of(layout))]


def test_a_base_in_doubt() -> None:
    """Where entries jump through words of relocations from either of two tables, none has a name (rule R263)."""
    layout = LAYOUTS["i386 lld"]
    (_, first), (_, second) = layout["tables"]
    twins = [[word + (first - second), number, "ext1", addend] for word, number, _, addend in layout["words"]]
    assert entries(file_of(layout))
    assert entries(file_of(layout | {"words": [*layout["words"], *twins]})) == []


def test_words_with_an_addend_have_no_name() -> None:
    """A relocation with an addend puts something beside the function there (rule R263)."""
    layout = LAYOUTS["riscv64"]
    moved = [[word, number, name, 8 if name == "ext2" else addend] for word, number, name, addend in layout["words"]]
    assert "ext2@plt" not in {name for _, _, name in entries(file_of(layout | {"words": moved}))}


def test_readable_names() -> None:
    """The name of the function is made readable, and `@plt` stays, in every mode but none (rule R114)."""
    assert demangle([b"_ZN1a1fEi@plt"]) == [b"a::f@plt"]
    assert demangle([b"_ZN1a1fEi@plt"], "full") == [b"a::f(int)@plt"]
    assert demangle([b"f@plt", b"*ABS*+0x10@plt"]) == [b"f@plt", b"*ABS*+0x10@plt"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_cut_and_damaged(name: str) -> None:
    """Code that is cut anywhere, or damaged, raises nothing and names nothing that is not there."""
    layout = LAYOUTS[name]
    known = {entry[2] for entry in layout["entries"]}
    section, at, data = layout["code"][-1]
    for length in range(0, len(data) // 2, 7):
        cut = layout | {"code": [[section, at, data[: 2 * length]]]}
        assert {entry[2] for entry in entries(file_of(cut))} <= known
    noise = np.random.default_rng(1).integers(0, 256, 4096, np.uint8).tobytes().hex()
    assert {entry[2] for entry in entries(file_of(layout | {"code": [[section, at, noise]]}))} <= known


def test_absurd_names() -> None:
    """Names that overlap do not add up without bounds."""
    count = 2000
    words = [[0x10000 + 8 * i, 7, "x", 0] for i in range(count)]
    code = b"".join(
        b"\xff\x25" + struct.pack("<i", 0x10000 + 8 * i - (0x1000 + 8 * i + 6)) + b"\x90\x90" for i in range(count)
    )
    layout = LAYOUTS["x86-64 now"] | {"code": [[".plt.got", 0x1000, code.hex()]], "resolvers": []}
    assert len(entries(file_of(layout | {"words": words}))) == count
    long = [[word, number, "x" * 100_000, 0] for word, number, _, _ in words]
    assert len(entries(file_of(layout | {"words": long}))) < count


def test_other_machines_and_objects() -> None:
    """Machines whose entries are not known, and object files, have none."""
    assert read_plt(ElfImage.parse(memoryview(elf_file([text()], machine=8)), "test")) is None
    assert read_plt(ElfImage.parse(memoryview(elf_file([text()], kind=1)), "test")) is None


@pytest.mark.parametrize("name", [name for name in LAYOUTS if LAYOUTS[name]["machine"] == "EM_PPC64"])
def test_several_tables_of_contents(name: str) -> None:
    """Where r2 may differ between functions entries of PowerPC 64 have no names (rule R263)."""
    assert entries(file_of(LAYOUTS[name], table_size=1 << 16))
    assert entries(file_of(LAYOUTS[name], table_size=(1 << 16) + 8)) == []


def hostile(code: bytes, words: list[int], name: str = "ext") -> ElfImage:
    """A file of x86-64 with `code` as its linkage table at 0x10000000, and a relocation for each of `words`."""
    rows = np.zeros(len(words), np.dtype([("word", "<u8"), ("info", "<u8"), ("addend", "<i8")]))
    rows["word"], rows["info"] = words, 1 << 32 | 7
    table = Section(".rela.plt", rows.tobytes(), RELA, ALLOC, link=".dynsym")
    code_section = Section(".plt", code, 1, ALLOC | EXEC, 0x1000_0000)
    return ElfImage.parse(memoryview(elf_file([code_section, table], dynamic=[Symbol(name, section=UNDEF)])), "test")


def test_entries_within_each_other() -> None:
    """Of jumps whose instructions overlap the sizes stay sound (rule R263)."""
    code = bytes.fromhex("f30f1efa 41bb ff25 0102 ff25 10000000") + bytes(16)
    near, far = (0x1000_0000 + end + int.from_bytes(code[end - 4 : end], "little") for end in (16, 12))
    assert entries(hostile(code, [near, far])) == [[0x1000_0000, 6, "ext@plt"], [0x1000_0006, 6, "ext@plt"]]


def test_work_for_names_is_bounded() -> None:
    """A long name is not searched for its end once for each relocation."""
    image = hostile(b"\xff\x25\0\0\0\0\0\0", list(range(0x1000_0006, 0x1000_0006 + 200_000)), "x" * 4_000_000)
    begin = time.process_time()
    read_plt(image)
    assert time.process_time() - begin < 5
