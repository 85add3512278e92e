"""Counts the instructions of fixed tasks inside the compiled modules: a gate against drift that clocks cannot see.

    python benchmarks/instructions.py check [FILE]    # 1 if a task takes 3 % more than FILE says
    python benchmarks/instructions.py record [FILE]

FILE is `benchmarks/instructions.json` unless it is said. Times on a machine with other work move by 5 % by themselves;
these counts, of `valgrind --tool=callgrind`, are the same in each run. Code of other compilers takes others, so only
records of the same versions are compared. A task that takes fewer is named, so that the record follows, and fails
nothing. The last task is a small command, counted with Python and all libraries.
"""

import argparse
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

import symbolize  # noqa: E402
from symbolize.dwarf.columns import Nodes, Ranges  # noqa: E402
from symbolize.dwarf.decode import Dwarf  # noqa: E402
from symbolize.dwarf.die_walk import walk_units  # noqa: E402
from symbolize.elf import ElfImage, read_symbols  # noqa: E402
from symbolize.formats import load  # noqa: E402
from symbolize.names import demangle  # noqa: E402
from symbolize.symbols import Binary, SymbolTable  # noqa: E402
from symbolize.symbols.split_dwarf_files import debug_sections  # noqa: E402

RECORD = Path(__file__).with_suffix(".json")
FIXTURES = ROOT / "fixtures"
BINARY = FIXTURES / "bin/gcc-pie/ledger"
LOADED = {
    "gperftools": "profiles/gperftools/ledger-gcc-pie.prof",
    "pprof": "profiles/perf/spectra-gcc-pie.pb.gz",
    "otlp": "profiles/otlp/spectra-gcc-pie.otlp",
    "perf.data": "profiles/perf_data/threads.data/data",
    "simpleperf": "simpleperf/mixer.proto",
    "perf script": "legacy/plain.perf-script",
}
"""An input of each reader."""
NAMED = {
    "unwinding": ("profiles/perf_data/dwarf.data", "bin/gcc-pie"),
    "folded code": ("profiles/callers/gcc-lld.prof", "bin/callers/gcc-lld"),
    "builds judged": ("profiles/perf/ledger-clang-nopie-dwarf4-lld.pb.gz", "bin/clang-nopie-dwarf4-lld"),
}
"""A profile and the folder of its binaries, where more is decided than what stands at an address."""
COMMAND = "a whole command"
LIMIT = 0.03
"""Share of a change that is too much."""
MARK = "getloadavg"
"""A function of libc that nothing else calls: callgrind writes down what it counted where it is called."""
OBJECT = re.compile(r"(c?)ob=\((\d+)\)(?: (.+))?")


@cache
def image() -> ElfImage:
    """The binary that is decoded."""
    return ElfImage.open(BINARY)


@cache
def dwarf() -> Dwarf:
    """Its debug information."""
    return Dwarf(debug_sections(image()), image().code_ranges)


@cache
def table() -> SymbolTable:
    """Its table."""
    return Binary([image()]).table()


def walk_dies() -> None:
    """The DIEs of all units."""
    walk_units(dwarf().reader, dwarf().holding_code(), Nodes(), Ranges())


def look_up() -> None:
    """Each byte of `.text`."""
    text = image().find(".text")
    assert text is not None
    table().lookup(np.arange(text.vaddr, text.vaddr + text.size, dtype=np.uint64))


def demangle_symbols() -> None:
    """The names of all symbols."""
    symbols = read_symbols(image(), ".symtab")
    assert symbols is not None
    demangle([symbols.text(int(name)) for name in symbols.name], "default")


def named(profile: str, binaries: str) -> symbolize.Result:
    """A profile with names, without kept tables."""
    with symbolize.Symbolizer([FIXTURES / binaries], cache=None) as symbolizer:
        return symbolizer.symbolize(load(FIXTURES / profile))


@cache
def result() -> symbolize.Result:
    """What is written."""
    return named(LOADED["pprof"], "bin/gcc-pie")


def write(emit: str) -> None:
    """An output of it."""
    symbolize.write(result().profile, io.BytesIO(), emit=emit)


def tasks() -> dict[str, Callable[[], object]]:
    """What is counted, by name, in the order it is done."""
    return {
        "DIE walk": walk_dies,
        "line programs": lambda: dwarf().files.read_rows(dwarf().holding_code()),
        "table of a binary": table,
        "lookup": look_up,
        "demangling": demangle_symbols,
        **{f"reading {name}": partial(load, FIXTURES / path) for name, path in LOADED.items()},
        **{name: partial(named, *files) for name, files in NAMED.items()},
        "names for pprof": result,
        **{f"writing {emit}": partial(write, emit) for emit in ("pprof", "otlp", "folded")},
    }


def run() -> None:
    """Do each task between two marks."""
    for task in tasks().values():
        os.getloadavg()
        task()
    os.getloadavg()


def callgrind(folder: Path, *command: str | Path) -> list[Counter[str]]:
    """The instructions of each program and library up to each mark, and from the last one to the end, of a Python
    process with one processor."""
    out = folder / "counts"
    unwanted = ("PYTHONDONTWRITEBYTECODE", "DEBUGINFOD_URLS")
    environment = {key: value for key, value in os.environ.items() if key not in unwanted}
    environment |= {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT), "HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    python = [sys.executable, *command]
    subprocess.run(python, env=environment, stdout=subprocess.DEVNULL, check=True)  # keeps byte code
    counting = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--dump-before={MARK}", *python]
    one = {min(os.sched_getaffinity(0))}
    done = subprocess.run(
        counting, env=environment, capture_output=True, preexec_fn=partial(os.sched_setaffinity, 0, one)
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, counting))}: {done.stderr.decode(errors='replace')[-2000:]}")
    parts = sorted(folder.glob("counts.*"), key=lambda path: int(path.suffix[1:]))
    return [by_object(part.read_text(errors="replace").splitlines()) for part in (*parts, out)]


def by_object(lines: Iterable[str]) -> Counter[str]:
    """The instructions of each program and library, of the lines of a file of callgrind's."""
    names, counts, at, is_call = dict[str, str](), Counter[str](), "", False
    for line in filter(None, lines):
        if line[0] in "+-*0123456789":
            if not is_call:  # else it says what the called function took, which its own lines say too
                counts[names[at]] += int(line.split()[1])
            is_call = False
        elif line.startswith("calls="):
            is_call = True
        elif found := OBJECT.match(line):
            called, number, name = found.groups()
            names.setdefault(number, name)
            at = at if called else number
    return counts


def counted() -> dict[str, int]:
    """The instructions of each task inside the compiled modules, and all of a command."""
    own = str(Path(symbolize.__file__).parent) + "/"
    with tempfile.TemporaryDirectory() as folder:
        _, *parts, _ = callgrind(Path(folder), __file__, "run")
    counts = {
        name: sum(count for path, count in part.items() if path.startswith(own))
        for name, part in zip(tasks(), parts, strict=True)
    }
    with tempfile.TemporaryDirectory() as folder:
        profile, options = FIXTURES / LOADED["gperftools"], ("-q", "--no-cache", "-b", BINARY.parent, "-o", os.devnull)
        (whole,) = callgrind(Path(folder), "-m", "symbolize", profile, *options)
    return {**counts, COMMAND: whole.total()}


def versions() -> dict[str, str]:
    """What counts depend on: what made the compiled modules, then what else a command runs."""
    with ElfImage.open(Path(sys.modules["symbolize.core.cursor"].__file__ or "")) as module:
        compiler = bytes(module.contents(".comment") or b"").split(b"\0")[0].decode()
    translator = next((name for name in sys.modules if name.startswith("_cython_")), "")
    return {
        "compiler": compiler,
        "Cython": translator.removeprefix("_cython_"),
        "Python": f"{platform.python_version()} of {platform.python_compiler()}",
        "numpy": np.__version__,
        "libc": " ".join(platform.libc_ver()),
    }


def differing(old: Mapping[str, str], new: Mapping[str, str], names: Iterable[str]) -> str:
    """The versions that are others than those of a record."""
    return ", ".join(f"{name} {new[name]} instead of {old.get(name)}" for name in names if new[name] != old.get(name))


def changes(old: Mapping[str, int], new: Mapping[str, int]) -> tuple[list[str], bool]:
    """The tasks that changed by more than the limit, a line each, and whether one takes more or has no record."""
    lines, is_more = [], False
    for name in dict.fromkeys([*old, *new]):
        before, now = old.get(name, 0), new.get(name, 0)
        if not before or abs(now / before - 1) > LIMIT:
            share = f"{now / before - 1:+.1%}" if before else "no record"
            lines.append(f"{name}: {before:,} instructions recorded, {now:,} now ({share})")
            is_more |= now > before
    return lines, is_more


def check(file: Path) -> int:
    """Compare with a record; 1 if a task takes too many."""
    record = json.loads(file.read_text())
    old, here = record["versions"], versions()
    if other := differing(old, here, ("compiler", "Cython", "Python")):
        print(f"not compared with {file.name}: {other}")
        return 0
    new = counted()
    if other := differing(old, here, ("numpy", "libc")):
        print(f"{COMMAND} is not compared with {file.name}: {other}")
        del record["counts"][COMMAND], new[COMMAND]
    lines, is_more = changes(record["counts"], new)
    print("\n".join(lines) or f"no task takes {LIMIT:.0%} more or fewer instructions than {file.name} says")
    if lines:
        print(f"the limit is {LIMIT:.0%}; if this is meant: python benchmarks/instructions.py record")
    return int(is_more)


def main() -> int:
    """Count and compare, or record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "record", "run"])
    parser.add_argument("file", type=Path, nargs="?", default=RECORD)
    options = parser.parse_args()
    if options.what == "run":
        run()
    elif shutil.which("valgrind") is None:
        print("not counted: valgrind is not there")
    elif options.what == "check":
        return check(options.file)
    else:
        options.file.write_text(json.dumps({"versions": versions(), "counts": counted()}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
