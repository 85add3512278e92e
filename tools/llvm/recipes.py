"""Programs of the matrix that take more than compiling and linking: other languages, debug files, profiles, BOLT, dwz.

Each is a shell script that runs in an empty folder and leaves `program` there, and what else `Recipe` names. `$SRC` is
`matrix_sources`.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "matrix_sources"
MAX_SECONDS = 600

CROSS = {
    "aarch64": "aarch64-linux-gnu",
    "armhf": "arm-linux-gnueabihf",
    "riscv64": "riscv64-linux-gnu",
    "ppc64": "powerpc64-linux-gnu",
    "ppc64le": "powerpc64le-linux-gnu",
    "s390x": "s390x-linux-gnu",
    "x86-64": "x86_64-linux-gnu",
}
"""Processors, and how the tools of their GNU toolchains are called."""

SEPARATE = """
{triple}objcopy --only-keep-debug whole program.debug
{triple}objcopy --strip-all --add-gnu-debuglink=program.debug whole program
"""

PROGRAM_PARTS = "shapes.cpp other.cpp plain.c labels.S"


@dataclass(frozen=True)
class Recipe:
    """A program by a script: `files` are those that symbolize is given, `asked` the one that the other engines are.

    `tools` have to be installed. Of a large program half of the addresses are in functions whose symbols match `own`.
    """

    name: str
    script: str
    tools: tuple[str, ...]
    files: tuple[str, ...] = ("program",)
    asked: str = "program"
    own: str = ""
    is_hard: bool = False

    @property
    def group(self) -> str:
        """What is counted together."""
        return self.name.partition(".")[0]

    def build(self, folder: Path) -> str:
        """Build it in `folder` unless it is there; why that failed, or nothing."""
        missing = [tool for tool in self.tools if shutil.which(tool) is None]
        if missing:
            return f"no {', '.join(missing)}"
        folder.mkdir(parents=True, exist_ok=True)
        if all((folder / file).exists() for file in (*self.files, self.asked)):
            return ""
        env = os.environ | {"SRC": str(SOURCES), "HOME": str(folder), "ZIG_LOCAL_CACHE_DIR": str(folder)}
        command = ["sh", "-euc", self.script]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, timeout=MAX_SECONDS)
        return done.stderr[-300:] or "failed" if done.returncode else ""


def recipes() -> Iterator[Recipe]:
    """All of them."""
    yield from separate_files()
    yield from languages()
    yield from profiled()
    yield from rewritten()
    yield from several_files()


def compiled(cc: str, cxx: str, flags: str) -> str:
    """The script that compiles the C and C++ program to objects."""
    return f"""
for source in {PROGRAM_PARTS}; do
  case $source in *.cpp) compiler='{cxx}' ;; *) compiler='{cc}' ;; esac
  $compiler -w -DHOSTED -DNESTED {flags} -c $SRC/$source -o $source.o
done
"""


def separate_files() -> Iterator[Recipe]:
    """Shared objects of all processors, stripped, beside their debug files."""
    for name, triple in CROSS.items():
        for level, flags in {
            "O0": "-g -O0",
            "O2": "-g -O2",
            "4-Os": "-gdwarf-4 -Os -ffunction-sections -Wl,--gc-sections",
            "O3-lto": "-g -O3 -flto",
        }.items():
            if name == "ppc64" and "lto" in level:
                continue  # the assembly has no function descriptors, which calls across units need there
            script = compiled(f"{triple}-gcc", f"{triple}-g++", f"-fPIC {flags}")
            script += f"{triple}-g++ -shared {flags} *.o -o whole -Wl,--build-id\n"
            yield Recipe(
                f"{name}-debug-file.{level}",
                script + SEPARATE.format(triple=triple + "-"),
                (f"{triple}-gcc", f"{triple}-g++"),
                ("program", "program.debug"),
                # Where symbols are those of function descriptors, llvm-symbolizer needs the bytes of these.
                "whole" if name == "ppc64" else "program.debug",
            )


def languages() -> Iterator[Recipe]:
    """Languages whose functions and names are otherwise than those of C++."""
    for level in ("O0", "O2"):
        yield Recipe(f"gdc.{level}", f"gdc -g -{level} $SRC/frames.d -o program", ("gdc",), own="^_D6frames|^_Dmain")
        script = f"gnatmake -q -g -{level} $SRC/frames.adb -o program"
        yield Recipe(f"gnat.{level}", script, ("gnatmake",), own="frames")
        yield Recipe(
            f"gnat.debug-file-{level}",
            f"gnatmake -q -g -{level} $SRC/frames.adb -o whole\n" + SEPARATE.format(triple=""),
            ("gnatmake",),
            ("program", "program.debug"),
            "program.debug",
            own="frames",
        )
    script = "ghc -v0 -g -O1 -outputdir . $SRC/frames.hs -o program"
    yield Recipe("ghc.O1", script, ("ghc",), own="^Main_|^ZCMain")
    script = "cp $SRC/frames.ml . && ocamlopt -g frames.ml -o program"
    yield Recipe("ocaml.plain", script, ("ocamlopt",), own="^camlFrames")
    for name, flags in {"debug": "", "release": "-d:release", "small": "-d:release --opt:size --mm:orc"}.items():
        script = f"nim c --hints:off {flags} --debugger:native --nimcache:cache -o:program $SRC/frames.nim"
        yield Recipe(f"nim.{name}", script, ("nim",), own="frames")
    for name, flags in {"2": "-gw2", "3": "-gw3", "3-O3": "-gw3 -O3"}.items():
        yield Recipe(f"fpc.{name}", f"fpc -g {flags} -FU. -FE. -oprogram $SRC/frames.pas", ("fpc",), own=r"^P\$FRAMES")
    for name, flags in {"debug": "", "release": "--release"}.items():
        script = f"CRYSTAL_CACHE_DIR=$PWD/cache crystal build --debug {flags} $SRC/frames.cr -o program"
        yield Recipe(f"crystal.{name}", script, ("crystal",), own=r"Pair|Square|counted|checked|crystal_main")
    for name, flags in {"debug": "-O Debug", "safe": "-O ReleaseSafe", "fast": "-O ReleaseFast"}.items():
        script = f"zig build-exe {flags} -fno-strip $SRC/frames.zig --name program"
        # The other engines do not read the line tables of its own code generator, which makes debug builds.
        yield Recipe(f"zig.{name}", script, ("zig",), own="frames|main|exported", is_hard=name == "debug")


def profiled() -> Iterator[Recipe]:
    """clang with profiles: what runs often is laid out and inlined otherwise, what runs never is split off."""
    lld = "-fuse-ld=lld-19"
    for name, flags in {
        "pgo.O2": "-O2",
        "pgo.dwarf4": "-gdwarf-4 -O3",
        "split-functions.pgo": "-O2 -fsplit-machine-functions",
        "thinlto.pgo": f"-O2 -flto=thin {lld}",
        "split-functions.thinlto": f"-O2 -flto=thin -fsplit-machine-functions {lld}",
        "block-sections.pgo": f"-O2 -fbasic-block-sections=all -funique-basic-block-section-names {lld}",
    }.items():
        link = f"clang++-19 -g {flags} *.o -o"
        script = compiled("clang-19", "clang++-19", f"-g {flags} -fprofile-generate")
        script += f"{link} trained -fprofile-generate\n"
        script += "for count in '' 1 '1 2' '1 2 3' '1 2 3 4'; do ./trained $count || true; done\n"
        script += "llvm-profdata-19 merge -o counts *.profraw\n"
        script += compiled("clang-19", "clang++-19", f"-g {flags} -fprofile-use=counts") + f"{link} program\n"
        yield Recipe(name, script, ("clang++-19", "llvm-profdata-19", "ld.lld-19"))
    for name, flags in {
        "simple-names.O2": "-gsimple-template-names -O2",
        "simple-names.O0": "-gsimple-template-names -O0",
        "simple-names.dwarf4": "-gdwarf-4 -gsimple-template-names -Os",
        "block-sections.O2": f"-O2 -fbasic-block-sections=all {lld}",
        "block-sections.dwarf4": f"-gdwarf-4 -Os -fbasic-block-sections=all {lld} -Wl,--gc-sections",
        "thinlto.debug-file": f"-O2 -flto=thin -fPIC {lld}",
    }.items():
        script = compiled("clang-19", "clang++-19", f"-g {flags}") + f"clang++-19 -g {flags} *.o -o whole\n"
        yield Recipe(
            name,
            script + SEPARATE.format(triple=""),
            ("clang++-19", "ld.lld-19"),
            ("program", "program.debug"),
            "program.debug",
        )


def rewritten() -> Iterator[Recipe]:
    """Programs that BOLT has laid out anew, with and without their debug information."""
    moves = "-reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions -split-all-cold -split-eh -icf=1"
    for name, compiler, flags in (
        ("gcc", "gcc", "-g -O2 -fno-reorder-blocks-and-partition"),
        ("gcc4", "gcc", "-gdwarf-4 -O2 -fno-reorder-blocks-and-partition"),
        ("clang", "clang-19", "-g -O2"),
        ("clang4", "clang-19", "-gdwarf-4 -O1 -ffunction-sections"),
    ):
        cxx = compiler.replace("gcc", "g++").replace("clang", "clang++")
        script = compiled(compiler, cxx, flags) + f"{cxx} {flags} -Wl,--emit-relocs *.o -o whole\n"
        script += "bolt=$(readlink -f $(command -v llvm-bolt-19))\n"  # it looks for its libraries beside itself
        script += "$bolt whole -instrument --instrumentation-file=$PWD/counts -o trained\n"
        script += "./trained 1 2 || true\n"
        script += f"$bolt whole -data=counts {moves} -o program "
        for kind, extra in {"bolt": "", "bolt-updated": "-update-debug-sections"}.items():
            # The others do not read the bases in its range lists of DWARF 5.
            is_hard = bool(extra) and "dwarf-4" not in flags
            yield Recipe(f"{kind}.{name}", script + extra, (cxx, "llvm-bolt-19"), is_hard=is_hard)


def several_files() -> Iterator[Recipe]:
    """Debug files whose common parts dwz -m has put in a third one; llvm-symbolizer, which cannot read that, is asked
    with what they were before."""
    for name, cc, cxx, flags in (
        ("gcc", "gcc", "g++", "-g -O2"),
        ("gcc4", "gcc", "g++", "-gdwarf-4 -O2"),
        ("clang4", "clang-19", "clang++-19", "-gdwarf-4 -O2"),
    ):
        script = compiled(cc, cxx, flags) + f"{cxx} {flags} *.o -o whole -Wl,--build-id\n"
        script += compiled(cc, cxx, f"{flags} -fno-inline") + f"{cxx} {flags} *.o -o second -Wl,--build-id\n"
        script += SEPARATE.format(triple="") + "cp program.debug before.debug\n"
        script += "objcopy --only-keep-debug second second.debug\n"
        script += "dwz -m common.debug -M common.debug program.debug second.debug\n"
        script += "readelf -S program.debug | grep -q gnu_debugaltlink\n"
        files = ("program", "program.debug")
        yield Recipe(f"dwz-m.{name}", script, (cxx, "dwz"), files, "before.debug")
        single = script.partition("dwz -m")[0] + "dwz program.debug\n"
        yield Recipe(f"dwz.{name}", single, (cxx, "dwz"), files, "before.debug")
