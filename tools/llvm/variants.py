"""The programs of the matrix that one compiler and one linker make: compilers, levels, DWARF, linkers, processors."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.llvm.compare_llvm import SEED

SOURCES = Path(__file__).parent / "matrix_sources"
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

    @property
    def group(self) -> str:
        """What is counted together."""
        compiler, _, rest = self.name.partition(".")
        if rest.startswith("random"):
            return "random combinations"
        is_other = any(flag.startswith("--target") for flag in self.compile) or rest.startswith(("m32", "aarch64"))
        return compiler + ", other processors" if is_other else compiler

    @property
    def files(self) -> tuple[str, ...]:
        """What symbolize is given."""
        return ("program",)

    @property
    def asked(self) -> str:
        """What the other engines are asked with."""
        return "program"

    @property
    def own(self) -> str:
        """Which symbols are of the program itself; empty if it is small."""
        return ""

    def build(self, folder: Path) -> str:
        """Build it in `folder` unless it is there; why that failed, or nothing."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "program"
        if path.exists():
            return ""
        if shutil.which(self.link[0]) is None:
            return f"no {self.link[0]}"
        quiet = os.environ | {"GOFLAGS": "", "GO111MODULE": "off"}
        objects = []
        for source in self.sources:
            if not self.compile:
                objects.append(str(SOURCES / source))
                continue
            target = folder / (source + ".o")
            unfit = ("-fuse-ld", "-nostdlib", "-Wl,") + (
                ("-flto", "-gdwarf-2", "-gdwarf-3") if source.endswith(".S") else ()
            )
            flags = [flag for flag in self.compile[1:] if not flag.startswith(unfit)]
            command = [self.compile[0], *flags, "-w", "-c", str(SOURCES / source), "-o", str(target)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
            if done.returncode:
                return done.stderr[:300]
            objects.append(str(target))
        gcc = "gcc" in self.link[0] or "g++" in self.link[0]
        tools = [f"{'' if gcc else '-Clink-arg='}-B{folder.parent / 'tools'}"] if gcc or "rustc" in self.link[0] else []
        link = [*self.link, *tools, "-o", str(path), *objects]
        done = subprocess.run(link, capture_output=True, text=True, cwd=folder, env=quiet)
        return "" if not done.returncode and path.exists() else done.stderr[:300] or "failed"


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
