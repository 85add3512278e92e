"""Links a small library in many ways and keeps what its procedure linkage tables are: plt_layouts.json.

    python -m tools.make_plt_layouts

needs gcc for all processors, clang, lld, gold and mold. Names are those that the linkers' own symbols or objdump give.
"""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from symbolize.elf import ElfImage, read_plt
from symbolize.elf.headers import SHF_ALLOC
from symbolize.elf.image import Section
from symbolize.elf.plt import AMONG_CODE, TABLES, WORDS, symbol_names
from symbolize.elf.relocate import read_relocations

LAYOUTS = Path(__file__).parents[1] / "tests" / "elf" / "plt_layouts.json"
SOURCE = """
extern int ext1(int), ext2(int), ext3(int);
int (*table[])(int) = { ext3, ext2 };
#ifdef CHOSEN
static int impl(int x) { return x; }
static void *pick(void) { return impl; }
__attribute__((visibility("hidden"))) int chosen(int) __attribute__((ifunc("pick")));
#else
#define chosen(x) 0
#endif
int f(int x) { return ext1(x) + ext2(x) + ext3(x) + chosen(x) + (ext1 == table[0]); }
int g(int x) { return ext1(x + 1) * 2 + ext2(x); }
"""
CLANG, LLD = "clang-19", f"--ld-path={shutil.which('ld.lld-19')}"
MOLD = f"--ld-path={shutil.which('mold')}"
COMMANDS = {
    "x86-64": ("gcc", "-DCHOSEN"),
    "x86-64 now": ("gcc", "-Wl,-z,now"),
    "x86-64 ibt": ("gcc", "-fcf-protection=full", "-Wl,-z,ibtplt"),
    "x86-64 gold": ("gcc", "-fuse-ld=gold"),
    "x86-64 gold ibt": ("gcc", "-fuse-ld=gold", "-fcf-protection=full"),
    "x86-64 lld": (CLANG, LLD),
    "x86-64 lld ibt": (CLANG, LLD, "-fcf-protection=full", "-Wl,-z,force-ibt"),
    "x86-64 lld retpoline": (CLANG, LLD, "-Wl,-z,retpolineplt"),
    "x86-64 lld retpoline now": (CLANG, LLD, "-Wl,-z,retpolineplt", "-Wl,-z,now"),
    "x86-64 mold": (CLANG, MOLD, "-DCHOSEN"),
    "i386": (CLANG, "--target=i386-linux-gnu", "-fuse-ld=bfd", "-Wl,-m,elf_i386"),
    "i386 now ibt": (
        CLANG, "--target=i386-linux-gnu", "-fuse-ld=bfd", "-Wl,-z,now,-m,elf_i386", "-fcf-protection=full",
    ),
    "i386 lld": (CLANG, "--target=i386-linux-gnu", LLD),
    "i386 mold": (CLANG, "--target=i386-linux-gnu", MOLD, "-Wl,-m,elf_i386"),
    "aarch64": ("aarch64-linux-gnu-gcc", "-DCHOSEN"),
    "aarch64 bti pac": (
        "aarch64-linux-gnu-gcc", "-mbranch-protection=standard", "-Wl,-z,force-bti,-z,pac-plt",
    ),
    "aarch64 lld": (CLANG, "--target=aarch64-linux-gnu", LLD),
    "aarch64 lld bti": (CLANG, "--target=aarch64-linux-gnu", LLD, "-mbranch-protection=standard", "-Wl,-z,force-bti"),
    "aarch64 lld pac": (CLANG, "--target=aarch64-linux-gnu", LLD, "-Wl,-z,pac-plt"),
    "arm": ("arm-linux-gnueabihf-gcc", "-DCHOSEN", "-O2"),
    "arm lld": (CLANG, "--target=arm-linux-gnueabihf", LLD),
    "arm mold": (CLANG, "--target=arm-linux-gnueabihf", MOLD),
    "riscv64": ("riscv64-linux-gnu-gcc", "-DCHOSEN"),
    "riscv64 lld": (CLANG, "--target=riscv64-linux-gnu", LLD),
    "s390x": ("s390x-linux-gnu-gcc", "-DCHOSEN"),
    "s390x lld": (CLANG, "--target=s390x-linux-gnu", LLD),
    "ppc64le": ("powerpc64le-linux-gnu-gcc", "-Wl,--emit-stub-syms"),
    "ppc64le now": ("powerpc64le-linux-gnu-gcc", "-Wl,--emit-stub-syms,-z,now"),
    "ppc64le lld": (CLANG, "--target=powerpc64le-linux-gnu", LLD),
}  # fmt: skip
OBJDUMPS = {"EM_X86_64": "", "EM_386": "", "EM_AARCH64": "llvm", "EM_ARM": "arm-linux-gnueabihf-"}
OBJDUMPS |= {"EM_RISCV": "riscv64-linux-gnu-", "EM_S390": "s390x-linux-gnu-"}
STUB = re.compile(r"(?:[0-9a-f]+\.plt_call\.|__plt_)?(\w+?)(?:\$plt|\$pltgot)?")


def layout_of(path: Path, stripped: Path) -> dict[str, Any]:
    """What is kept of a library; without .symtab, so that its resolvers have no names."""
    with ElfImage.open(stripped) as image:
        rows = []
        names = symbol_names(image)
        kinds = WORDS[image.machine]
        for section in image.sections:
            if section.type in ("SHT_REL", "SHT_RELA") and section.flags & SHF_ALLOC:
                found = read_relocations(image, section)
                addends = found.addend.tolist() if found.addend is not None else [0] * len(found.type)
                for word, number, symbol, addend in zip(
                    found.offset.tolist(), found.type.tolist(), found.symbol.tolist(), addends, strict=True
                ):
                    if number in (*kinds.named, kinds.resolved):
                        rows.append([word, number, names(symbol).decode(), addend])
        used = AMONG_CODE if image.machine == "EM_PPC64" else TABLES
        code = [s for s in image.sections if s.name in used and s.is_code and s.size]
        return {
            "machine": image.machine,
            "is_64": image.is_64,
            "big_endian": image.big_endian,
            "code": [[s.name, s.vaddr, bytes(image.raw(s) or b"").hex()] for s in code],
            "tables": [[s.name, s.vaddr] for s in image.sections if s.name in (".got", ".got.plt")],
            "words": rows,
            "entries": entries_of(path, image, code),
        }


def entries_of(path: Path, image: ElfImage, code: list[Section]) -> list[list[Any]]:
    """The entries that another program knows, ours checked against them: vaddr, size and name."""
    table = read_plt(image)
    assert table is not None
    ours = {
        int(at): (int(size), table.text(int(name)).decode())
        for at, size, name in zip(table.vaddr, table.size, table.name, strict=True)
    }
    known: dict[int, str] = {}
    if image.machine in OBJDUMPS:
        tool = "llvm-objdump-19" if OBJDUMPS[image.machine] == "llvm" else OBJDUMPS[image.machine] + "objdump"
        wanted = [argument for section in code for argument in ("-j", section.name)]
        output = subprocess.run([tool, "-d", *wanted, str(path)], capture_output=True, text=True, check=True).stdout
        known = {int(at, 16): name for at, name in re.findall(r"^([0-9a-f]+) <(\S+@plt)>:", output, re.M)}
    for line in subprocess.run(
        ["llvm-nm-19", str(path)], capture_output=True, text=True, check=True
    ).stdout.splitlines():
        at, _, name = line.rpartition(" t ")
        if at and int(at, 16) in ours and (match := STUB.fullmatch(name)):
            known[int(at, 16)] = match[1] + "@plt"
    for at, name in known.items():
        assert ours.get(at, (0, ""))[1] == name, (path, hex(at), name, ours)
    print(f"{path.name}: {len(ours)} entries, {len(known)} of them known to another program")
    return [[at, *ours[at]] for at in sorted(ours)]


def main() -> None:
    """Write all layouts."""
    layouts = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "a.c")
        source.write_text(SOURCE)
        for name, command in COMMANDS.items():
            library = Path(folder, name)
            flags = ("-shared", "-nostdlib", "-fPIC", "-O1", "-o", str(library), str(source))
            subprocess.run([command[0], *flags, *command[1:]], check=True)
            stripped = Path(folder, name + " stripped")
            subprocess.run(["llvm-strip-19", "-o", str(stripped), str(library)], check=True)
            layouts[name] = layout_of(library, stripped)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(layout)}" for name, layout in layouts.items())
    LAYOUTS.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
