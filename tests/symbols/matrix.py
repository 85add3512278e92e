"""Builds small programs with many toolchains and compares our frames with those of up to three other engines.

    python tests/symbols/matrix.py FOLDER [PATTERN]

builds every variant whose name contains PATTERN in FOLDER, asks symbolize, llvm-symbolizer, eu-addr2line and GNU
addr2line for (nearly) every byte of its code, and prints what differs. Variants whose tools are missing are left
out, and those that cannot be built are named. Set ADDR2LINE to an addr2line that knows all processors.
"""

import itertools
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symbolize.elf import ElfImage, read_symbols
from symbolize.names import demangle, last_component, split_suffix
from symbolize.symbols import build_table
from tests.support.lookup import Frame, frames_of
from tests.symbols.compare_llvm import CLASSES, SEED, Judge, ask_llvm, find_symbolizer

SOURCES = Path(__file__).parent / "matrix_sources"
MAX_ADDRESSES = 4000
LARGE = 1 << 20
SHOWN = 3
"""Differences of a kind that are shown of each binary."""

NAMED_OTHERWISE = ("alias", "symbol", "qualified", "folded")
VOTES_EXPECTED = ("padding", "label", "unsized", "claim")
"""Classes in which engines agree with each other by their rules for padding."""

EXPLAINED = "|".join((*CLASSES, "binaries", "not built", "addresses", "asked .*"))
"""What may be in the table."""

PROGRAM = ("shapes.cpp", "other.cpp", "plain.c", "labels.S")
FREESTANDING = ("-ffreestanding", "-nostdlib", "-fno-exceptions", "-fno-rtti", "-fno-stack-protector", "-fno-pic")
CLANGS = ("clang-14", "clang-16", "clang-19")
LINKERS = ("bfd", "gold", "lld", "mold")
LLD = "ld.lld-19"


@dataclass(frozen=True)
class Variant:
    """A way to build a program: `compile` and `link` are commands without files, `sources` what is compiled."""

    name: str
    compile: tuple[str, ...]
    link: tuple[str, ...]
    sources: tuple[str, ...] = PROGRAM

    @property
    def is_hard(self) -> bool:
        """Whether only llvm-symbolizer reads all of it: the others neither split units, nor sources in line tables,
        nor bases in range lists of DWARF 5."""
        return not {"-gsplit-dwarf", "-gembed-source", "-fdebug-ranges-base-address"}.isdisjoint(self.compile) or (
            "-Csplit-debuginfo=unpacked" in self.link
        )


class Opinion(NamedTuple):
    """What an engine says of a frame that all engines say: base name of the function, file without folder, line."""

    name: str
    file: str
    line: int


def hosted(name: str, compiler: str, *flags: str, link: Sequence[str] = ()) -> Variant:
    """A variant for this machine, with its libraries."""
    cxx = compiler.replace("gcc", "g++").replace("clang", "clang++")
    nested = ("-DNESTED", "-DIFUNC", "-DHOSTED")
    command = (compiler, *nested, *flags)
    return Variant(f"{compiler}.{name}", command, (cxx, *flags, *link))


def bare(name: str, compiler: str, *flags: str, link: Sequence[str] = ()) -> Variant:
    """A variant for this machine without libraries."""
    nested = () if {"-mcmodel=large", "-funique-internal-linkage-names"} & {*flags} else ("-DIFUNC",)
    command = (compiler, *FREESTANDING, "-DNESTED", *nested, *flags)
    return Variant(f"{compiler}.{name}", command, (compiler, "-nostdlib", "-static", "-no-pie", *flags, *link))


def cross(target: str, *flags: str, link: Sequence[str] = ()) -> Variant:
    """A variant for another processor, by clang and lld."""
    name = ".".join(f.strip("-").replace("=", "") for f in flags if not f.startswith("--"))
    extra = ("-mno-abicalls",) if target.startswith("mips") else ()
    if target.startswith(("arm", "thumb")):
        extra = ("-mfloat-abi=soft",)
    command = ("clang-19", f"--target={target}", *FREESTANDING, *extra, *flags)
    return Variant(f"clang-19.{target.split('-')[0]}.{name}", command, (LLD, "--unresolved-symbols=ignore-all", *link))


def variants() -> Iterator[Variant]:
    """All variants. Each axis is varied alone, and a fixed number of random combinations goes over all."""
    sections = ("-ffunction-sections", "-fdata-sections")
    for compiler in ("gcc", *CLANGS):
        for level in ("-O0", "-O1", "-O2", "-O3", "-Os"):
            yield bare(level[1:], compiler, "-g", level)
        yield hosted("hosted", compiler, "-g", "-O2")
        for version in (2, 3, 4, 5):
            yield bare(f"dwarf{version}", compiler, f"-gdwarf-{version}", "-O2")
        for name, flags in {
            "dwarf64": ("-gdwarf64", "-g"),
            "g1": ("-g1",),
            "no-columns": ("-g", "-gno-column-info"),
            "no-unwind": ("-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"),
            "types": ("-gdwarf-4", "-fdebug-types-section"),
            "types5": ("-gdwarf-5", "-fdebug-types-section"),
            "gz-zlib": ("-g", "-gz=zlib"),
            "gz-zstd": ("-g", "-gz=zstd"),
            "large": ("-g", "-mcmodel=large"),
        }.items():
            yield bare(name, compiler, *flags, "-O2")
        extra = {
            "entries": ("-fpatchable-function-entry=4,2", "-fcf-protection=full"),
            "frames": ("-pg", "-fstack-clash-protection"),
        }
        if compiler == "clang-19":
            extra |= {
                "blocks": (
                    "-fbasic-block-sections=all",
                    "-funique-basic-block-section-names",
                    f"-fuse-ld={shutil.which(LLD)}",
                ),
                "unique": ("-funique-internal-linkage-names",),
                "machine-split": ("-fsplit-machine-functions", "-mllvm", "-hot-cold-split"),
                "inline-tree": ("-gsplit-dwarf", "-fsplit-dwarf-inlining"),
                "ranges": ("-fdebug-ranges-base-address", "-gdwarf-aranges"),
                "simple-names": ("-gsimple-template-names",),
                "source": ("-gembed-source",),
                "relr": ("-fomit-frame-pointer", f"-fuse-ld={shutil.which(LLD)}"),
            }
        else:
            extra |= (
                {"sanitized": ("-fsanitize=undefined", "-fsanitize-trap=undefined")}
                if compiler != "gcc"
                else {
                    "reordered": (
                        "-freorder-functions",
                        "-fno-toplevel-reorder",
                        "-fipa-cp-clone",
                        "-fno-inline-small-functions",
                    ),
                }
            )
        for name, flags in extra.items():
            yield bare(name, compiler, "-g", "-O2", "-Wl,--unresolved-symbols=ignore-all", *flags)
        for version in (4, 5):
            yield bare(f"split{version}", compiler, f"-gdwarf-{version}", "-gsplit-dwarf", "-O2")
        for linker in LINKERS:
            fuse = fused(compiler, linker)
            for version in (4, 5):
                flags = (f"-gdwarf-{version}", "-O2", *sections)
                yield bare(f"gc-{linker}{version}", compiler, *flags, fuse, link=("-Wl,--gc-sections",))
                if linker in ("gold", "lld", "mold"):
                    link = ("-Wl,--gc-sections", "-Wl,--icf=all")
                    yield bare(f"icf-{linker}{version}", compiler, *flags, fuse, link=link)
            if linker == "lld":
                for value in ("0xffffffffffffffff", "0xfffffffffffffffe", "0x10"):
                    link = ("-Wl,--gc-sections", f"-Wl,-z,dead-reloc-in-nonalloc=.debug_*={value}")
                    yield bare(f"dead-{value}", compiler, "-g", "-O2", *sections, fuse, link=link)
            yield bare(f"pc0-{linker}", compiler, "-g", "-O2", fuse, link=("-Wl,-Ttext=0",))
            yield bare(
                f"high-{linker}", compiler, "-g", "-O2", "-mcmodel=large", fuse, link=("-Wl,-Ttext=0xffffffff80000000",)
            )
        lto = ("-flto", "-g", "-O2")
        if compiler == "gcc":
            for linker in ("bfd", "gold", "mold"):
                yield hosted(f"lto-{linker}", compiler, *lto, f"-fuse-ld={linker}")
            yield hosted("lto-partitioned", compiler, "-flto", "-g", "-O2", "-flto-partition=max")
        else:
            fuse = f"-fuse-ld={shutil.which(LLD)}"
            yield hosted("lto-lld", compiler, *lto, fuse)
            yield hosted("thinlto-lld", compiler, "-flto=thin", "-g", "-O2", fuse)
            yield hosted("lto-gold", compiler, *lto, "-fuse-ld=gold")
            yield hosted("lto4-lld", compiler, "-flto", "-gdwarf-4", "-O3", fuse)
            yield hosted("lto-split", compiler, "-flto=thin", "-gdwarf-5", "-gsplit-dwarf", "-O2", fuse)
    for target in (
        "i386-linux-gnu",
        "aarch64-linux-gnu",
        "arm-linux-gnueabi",
        "thumbv7-linux-gnueabi",
        "riscv64-linux-gnu",
        "riscv32-linux-gnu",
        "ppc64-linux-gnu",
        "ppc64le-linux-gnu",
        "s390x-linux-gnu",
        "mips-linux-gnu",
        "mips64el-linux-gnuabi64",
        "sparc64-linux-gnu",
        "loongarch64-linux-gnu",
    ):
        yield cross(target, "-g", "-O2")
        yield cross(target, "-gdwarf-4", "-O0")
        yield cross(target, "-gdwarf-5", "-O1", *sections, link=("--gc-sections",))
        yield cross(target, "-gdwarf-2", "-Os")
    for level in ("-O0", "-O2"):
        yield Variant(
            f"gcc.m32{level}", ("gcc", "-m32", *FREESTANDING, "-g", level), ("gcc", "-m32", "-nostdlib", "-static")
        )
        for version in (4, 5):
            compiler = ("aarch64-linux-gnu-gcc", *FREESTANDING, "-DNESTED", f"-gdwarf-{version}", level)
            link = (*compiler, "-static", "-Wl,--unresolved-symbols=ignore-all")
            yield Variant(f"gcc.aarch64-{version}{level}", compiler, link, ("plain.c", "labels.S"))
    for level in ("-O0", "-O2", "-O3", "-Os"):
        for version in (4, 5):
            command = ("gfortran", f"-gdwarf-{version}", level)
            yield Variant(f"gfortran.{version}{level}", command, command, ("numbers.f90",))
    yield Variant(
        "gfortran.lto", ("gfortran", "-g", "-O2", "-flto"), ("gfortran", "-g", "-O2", "-flto"), ("numbers.f90",)
    )
    for name, flags in {
        "debug": ("-Cdebuginfo=2",),
        "release": ("-Cdebuginfo=2", "-Copt-level=3"),
        "lines": ("-Cdebuginfo=1", "-Copt-level=2"),
        "size": ("-Cdebuginfo=2", "-Copt-level=s", "-Ccodegen-units=1"),
        "lto": ("-Cdebuginfo=2", "-Copt-level=3", "-Clto=fat"),
        "v0": ("-Cdebuginfo=2", "-Copt-level=2", "-Csymbol-mangling-version=v0"),
        "gc-lld": ("-Cdebuginfo=2", "-Copt-level=2", "-Clink-arg=-fuse-ld=lld"),
        "mold": ("-Cdebuginfo=2", "-Copt-level=2", "-Clink-arg=-fuse-ld=mold"),
        "split": ("-Cdebuginfo=2", "-Copt-level=2", "-Csplit-debuginfo=unpacked"),
        "no-symbols": ("-Copt-level=2",),
    }.items():
        yield Variant(f"rustc.{name}", (), (find_rustc(), *flags), ("frames.rs",))
    for name, flags in {"plain": (), "no-opt": ("-gcflags=all=-N -l",), "pie": ("-buildmode=pie",)}.items():
        yield Variant(f"go.{name}", (), ("go", "build", *flags), ("frames.go",))
    yield from combinations()


def combinations() -> Iterator[Variant]:
    """Random combinations over all axes, the same in every run."""
    chance = random.Random(SEED)
    for number in range(40):
        compiler = chance.choice(("gcc", *CLANGS))
        flags = [chance.choice(("-O1", "-O2", "-O3", "-Os")), f"-gdwarf-{chance.choice((3, 4, 5))}"]
        flags += [
            f
            for f in ("-ffunction-sections", "-fdebug-types-section", "-gno-column-info", "-gz=zlib")
            if chance.random() < 0.3
        ]
        flags += [f for f in ("-fomit-frame-pointer", "-falign-functions=64", "-gsplit-dwarf") if chance.random() < 0.2]
        linker = chance.choice(LINKERS)
        fuse = fused(compiler, linker)
        link = [f for f in ("-Wl,--gc-sections", "-Wl,-z,separate-code", "-Wl,--build-id") if chance.random() < 0.4]
        if "-gdwarf-3" in flags and "-gsplit-dwarf" in flags:  # llvm-symbolizer loses its range lists
            flags.remove("-gsplit-dwarf")
        if linker == "gold" and "-Wl,-z,separate-code" in link:
            link.remove("-Wl,-z,separate-code")
        yield bare(f"random{number}-{linker}", compiler, *flags, fuse, link=link)


def fused(compiler: str, linker: str) -> str:
    """The option that chooses a linker; gcc finds lld by the name `ld.lld` only, see `main`."""
    return f"-fuse-ld={shutil.which(LLD)}" if linker == "lld" and compiler != "gcc" else f"-fuse-ld={linker}"


def find_rustc() -> str:
    """The Rust compiler."""
    return shutil.which("rustc") or str(Path("~/.cargo/bin/rustc").expanduser())


def build(variant: Variant, folder: Path) -> Path | str:
    """The linked file, or why there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "program"
    if path.exists():
        return path
    if shutil.which(variant.link[0]) is None:
        return f"no {variant.link[0]}"
    quiet = os.environ | {"GOFLAGS": "", "GO111MODULE": "off"}
    objects = []
    for source in variant.sources:
        if not variant.compile:
            objects.append(str(SOURCES / source))
            continue
        target = folder / (source + ".o")
        unfit = ("-fuse-ld", "-nostdlib", "-Wl,") + (
            ("-flto", "-gdwarf-2", "-gdwarf-3") if source.endswith(".S") else ()
        )
        flags = [flag for flag in variant.compile[1:] if not flag.startswith(unfit)]
        command = [variant.compile[0], *flags, "-w", "-c", str(SOURCES / source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if done.returncode:
            return done.stderr[:300]
        objects.append(str(target))
    gcc = "gcc" in variant.link[0] or "g++" in variant.link[0]
    tools = [f"{'' if gcc else '-Clink-arg='}-B{folder.parent / 'tools'}"] if gcc or "rustc" in variant.link[0] else []
    link = [*variant.link, *tools, "-o", str(path), *objects]
    done = subprocess.run(link, capture_output=True, text=True, cwd=folder, env=quiet)
    return path if not done.returncode and path.exists() else done.stderr[:300]


class SplitFinder:
    """Finds `.dwo` files where they are recorded to be."""

    def packages(self) -> Sequence[str]:
        """No packages."""
        return ()

    def split(self, name: str, comp_dir: str) -> Sequence[str]:
        """The file as it is recorded; what was built here may be trusted."""
        return [str(path) for path in (Path(comp_dir) / name,) if path.exists()]

    def supplementary(self, name: str, identifier: str) -> Sequence[str]:
        """No supplementary file."""
        return ()


def addresses(image: ElfImage) -> list[int]:
    """Every byte of executable sections, or MAX_ADDRESSES random ones if they have more, fewer of large files."""
    ranges = [range(int(b), int(e)) for b, e in zip(*image.code_ranges, strict=True)]
    every = list(itertools.chain.from_iterable(ranges))
    count = MAX_ADDRESSES if len(image.data) < LARGE else MAX_ADDRESSES // 4
    return every if len(every) <= count else sorted(random.Random(SEED).sample(every, count))


def dead_addresses(image: ElfImage) -> list[int]:
    """Addresses outside of code that no function may answer for: near zero, beside and far from sections (R54, R56)."""
    begin, end = image.code_ranges
    near = [
        *range(0x20),
        *(int(b) - k for b in begin for k in (1, 2, 16)),
        *(int(e) + k for e in end for k in (0, 1, 15)),
    ]
    near += [int(s.vaddr) + 1 for s in image.sections if s.vaddr]
    top = 1 << 64
    near += [top - k for k in range(1, 20)] + [(1 << 32) - k for k in range(1, 20)]
    code = [(int(b), int(e)) for b, e in zip(begin, end, strict=True)]
    return sorted({a for a in near if 0 <= a < top and not any(b <= a < e for b, e in code)})


def padding(image: ElfImage, vaddrs: Sequence[int]) -> set[int]:
    """Those of `vaddrs` that lie behind the end of sized functions, with no symbol without size between."""
    table = read_symbols(image, ".symtab")
    if table is None or not len(table):
        return set()
    order = np.argsort(table.vaddr, kind="stable")
    starts, sizes = table.vaddr[order], table.size[order]
    reach = np.maximum.accumulate(starts + sizes)
    wanted = np.array(vaddrs, np.uint64)
    last = np.searchsorted(starts, wanted, side="right") - 1
    first = np.searchsorted(starts, starts[np.maximum(last, 0)])
    sizeless = np.concatenate(([0], np.cumsum(sizes == 0)))
    unsized = sizeless[last + 1] > sizeless[first]
    return set(wanted[(last >= 0) & ~unsized & (wanted >= reach[np.maximum(last, 0)])].tolist())


def ask_lines(command: Sequence[str], vaddrs: Sequence[int], env: dict[str, str]) -> list[list[Opinion]]:
    """What an addr2line says, which prints address, then function and place by turns."""
    text = "".join(f"{vaddr:#x}\n" for vaddr in vaddrs)
    output = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", env=env).stdout
    result: list[list[Opinion]] = []
    name = None
    for line in output.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line) and name is None:
            result.append([])
        elif name is None:
            name = re.sub(r" inlined at .*| \(inlined by\) ", "", line)
        else:
            place = re.match(r"(.*?):(\d+|\?)", line)
            file, number = (place[1], place[2]) if place else (line, "0")
            opinion = opinion_of(name, file, int(number) if number.isdigit() else 0)
            if opinion.name or opinion.line:
                result[-1].append(opinion)
            name = None
    return result


def opinion_of(name: str, file: str, line: int) -> Opinion:
    """A frame as far as all engines agree on how to write it."""
    file = "" if file.startswith("??") else file.rpartition("/")[2]
    return Opinion(base_name(name), file if line else "", line)


@cache
def base_name(name: str) -> str:
    """A name without scopes, versions and suffixes; empty if it is unknown."""
    plain = split_suffix(name.partition("@")[0].encode())[0]
    plain = re.sub(rb"\.\d+$", b"", plain)  # a function nested in another one
    return "" if plain in (b"", b"??") else last_component(demangle([plain], "default")[0]).decode(errors="replace")


def opinions(frames: Sequence[Frame]) -> list[Opinion]:
    """Our frames or those of llvm-symbolizer as opinions."""
    return [opinion_of(frame.name, frame.file, frame.line) for frame in frames]


def nameless(said: Sequence[Opinion]) -> list[Opinion]:
    """Opinions of the places alone."""
    return [opinion._replace(name="") for opinion in said]


def agree(one: Sequence[Opinion], other: Sequence[Opinion]) -> bool:
    """Whether two engines say the same; names of the symbol table have no scopes or clones."""
    if len(one) != len(other):
        return False
    return all(a.line == b.line and a.file == b.file and a.name == b.name for a, b in zip(one, other, strict=True))


@dataclass
class Outcome:
    """What came of a variant: how many addresses of each kind there are, and examples."""

    kinds: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, kind: str, example: str = "") -> None:
        """Count an address; the first examples of a kind are kept."""
        self.kinds[kind] += 1
        if example and self.kinds[kind] <= SHOWN:
            self.examples.append(f"{kind} {example}")


def compare(path: Path, symbolizer: str, is_hard: bool) -> Outcome:
    """Compare all engines over a file."""
    outcome = Outcome()
    finder = SplitFinder()
    with ElfImage.open(path) as image:
        vaddrs, dead = addresses(image), dead_addresses(image)
        whole = build_table([image], finder=finder)
        ours = frames_of(whole, vaddrs)
        if ours != frames_of(build_table([image], np.array(vaddrs, np.uint64), finder=finder), vaddrs):
            outcome.add("whole-and-part", "differ")
        folded = whole.lookup(np.array(vaddrs, np.uint64)).folded.tolist()
        for vaddr, frames in zip(dead, frames_of(whole, dead), strict=True):
            if frames:
                outcome.add("DEAD", f"{vaddr:#x} {frames}")
        between = padding(image, vaddrs)
        outcome.kinds["asked in padding"] += len(between)
        outcome.kinds["asked outside of code"] += len(dead)
        for vaddr, frames in zip(vaddrs, ours, strict=True):
            if vaddr in between and frames:
                outcome.add("PADDING", f"{vaddr:#x} {frames}")
        judge = Judge(image)
        if image.problems:
            outcome.add("PROBLEM", str(image.problems[:2]))
    theirs = ask_llvm(symbolizer, path, vaddrs)
    env = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
    eu = ask_lines(["eu-addr2line", "-a", "-f", "-i", "-e", str(path)], vaddrs, env)
    gnu = ask_lines([os.environ.get("ADDR2LINE", "addr2line"), "-a", "-f", "-i", "-e", str(path)], vaddrs, env)
    icf = ".icf" in path.parent.name  # the others take name and line of different functions (rule R161)
    for i, vaddr in enumerate(vaddrs):
        outcome.add("addresses")
        kind = judge.classify(vaddr, ours[i], theirs[i], folded[i])
        mine = opinions(ours[i])
        others = {"llvm": opinions(theirs[i])}
        if len(eu) == len(vaddrs) and not is_hard:
            others["eu"] = eu[i]
        if len(gnu) == len(vaddrs) and not is_hard:
            others["gnu"] = gnu[i]
        if kind in NAMED_OTHERWISE:  # the names differ by a rule, so the places decide
            mine, others = nameless(mine), {name: nameless(said) for name, said in others.items()}
        # Engines that take temporary labels for functions have no voice (rule R106).
        others = {name: said for name, said in others.items() if not any(o.name.startswith(".L") for o in said)}
        against = sorted(name for name, said in others.items() if not agree(mine, said))
        votes = sum(agree(others[one], others[two]) for one, two in itertools.combinations(against, 2))
        said = "\n".join(f"    {name:5}{others[name]}" for name in others)
        text = f"{vaddr:#x}\n    ours {ours[i]}\n    full {theirs[i]}\n{said}"
        has_lines = ours[i] and all(frame.line for frame in ours[i])
        if kind is None:
            outcome.add("unexplained by " + "+".join(against), text)
        elif votes and kind not in VOTES_EXPECTED and not folded[i] and has_lines and not icf:
            outcome.add(f"outvoted ({kind})", text)
        else:
            outcome.add(kind)
    return outcome


def main(arguments: Sequence[str]) -> int:
    """Build, compare and print; 1 if something has no class."""
    folder = Path(arguments[0]).resolve()
    pattern = arguments[1] if len(arguments) > 1 else ""
    symbolizer = find_symbolizer()
    if symbolizer is None:
        print("there is no llvm-symbolizer", file=sys.stderr)
        return 2
    tools = folder / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    if not (tools / "ld.lld").exists():
        (tools / "ld.lld").symlink_to(shutil.which(LLD) or LLD)
    total: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for variant in variants():
        if not re.search(pattern, variant.name):
            continue
        path = build(variant, folder / variant.name)
        if isinstance(path, str):
            print(f"{variant.name}: not built: {path.strip()}", flush=True)
            total["not built"] += 1
            continue
        outcome = compare(path, symbolizer, variant.is_hard)
        total += outcome.kinds
        total["binaries"] += 1
        print(f"{variant.name}: {dict(outcome.kinds)}", flush=True)
        for example in outcome.examples:
            key = re.sub(r"0x[0-9a-f]+|line=\d+|column=\d+", "", example)
            seen[key] += 1
            if seen[key] == 1:
                print("  " + example, flush=True)
    print("\n".join(f"{kind}: {count:,}" for kind, count in total.most_common()))
    return int(any(not re.fullmatch(EXPLAINED, kind) for kind in total))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
