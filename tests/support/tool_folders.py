"""Folders in which other programs find llvm-symbolizer or addr2line: links to this program, or to the real ones."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

from tests.support.fixture_files import segments
from tests.support.pprof_writer import Mapping, Place, profile

BIAS = 0x555555554000
"""Where the kernel loads position-independent programs without randomization."""
PROGRAM = """#!{python}
import os, sys
sys.path[:0] = {path!r}
with open({mark!r}, "a") as mark:
    print(os.path.basename(sys.argv[0]), *sys.argv[1:], file=mark)
from symbolize.cli import main
sys.exit(main())
"""
PPROF = """package main

import (
	"fmt"
	"os"

	"github.com/google/pprof/driver"
)

func main() {
	if err := driver.PProf(&driver.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
"""


class Tools(NamedTuple):
    """A folder of programs, and a file with a line for each start of the one that stands in for a tool."""

    folder: Path
    mark: Path

    @property
    def starts(self) -> list[str]:
        """The name and the arguments of each start so far."""
        return self.mark.read_text().splitlines() if self.mark.exists() else []

    def environment(self, **more: str) -> dict[str, str]:
        """Variables under which nothing but the tools of the folder is found."""
        home = str(self.folder)
        kept = self.folder.parent.parent / "cache"  # of all tests of a run
        return {"PATH": home, "HOME": home, "LC_ALL": "C", "SYMBOLIZE_CACHE": str(kept), **more}


def stand_in(folder: Path, name: str, *others: str) -> Tools:
    """A folder where this program goes by the `name` of a tool, by a link, and leaves a mark; `others` are real."""
    tools = real(folder, *others)
    program = folder / "symbolize"
    path = [each for each in sys.path if each]
    program.write_text(PROGRAM.format(python=sys.executable, path=path, mark=str(tools.mark)))
    program.chmod(0o755)
    (folder / name).symlink_to(program)
    return tools


def real(folder: Path, *names: str) -> Tools:
    """A folder with the named tools of this machine; `NAME=PROGRAM` has another name than the program."""
    folder.mkdir()
    for each in names:
        name, _, program = each.partition("=")
        (folder / name).symlink_to(shutil.which(program or name) or program)
    return Tools(folder, folder / "mark")


def build_pprof(folder: Path) -> Path:
    """pprof, of the sources that come with Go: `go tool pprof` is another front end, which asks no other tools."""
    run = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True)
    (folder / "src").mkdir()
    for each in Path(run.stdout.strip(), "src", "cmd", "vendor").iterdir():
        (folder / "src" / each.name).symlink_to(each)
    (folder / "main.go").write_text(PPROF)
    variables = {**os.environ, "GO111MODULE": "off", "GOPATH": str(folder), "GOFLAGS": ""}
    subprocess.run(["go", "build", "-o", "pprof", "main.go"], cwd=folder, env=variables, check=True)
    return folder / "pprof"


def function_bounds(path: Path) -> dict[str, tuple[int, int]]:
    """First vaddr and size of each function symbol of a file."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
        return {
            each.name: (each["st_value"], each["st_size"])
            for each in table.iter_symbols()
            if each["st_info"]["type"] == "STT_FUNC" and each["st_size"] and each["st_shndx"] != "SHN_UNDEF"
        }


def addresses_inside(bounds: dict[str, tuple[int, int]], count: int) -> list[int]:
    """Vaddrs in functions, spread over these, the same in every run."""
    chosen = random.Random(count)
    ranges = sorted(set(bounds.values()))
    found = {first + chosen.randrange(size) for first, size in chosen.choices(ranges, k=count)}
    return sorted(found)


def address_only(path: Path, vaddrs: list[int]) -> bytes:
    """A pprof profile of a program with a sample at each vaddr, of a value of its own, and no names."""
    with path.open("rb") as file:
        bias = BIAS if ELFFile(file)["e_type"] == "ET_DYN" else 0
    mappings, starts = [], []
    for offset, vaddr, size in segments(path):
        page = vaddr & -0x1000
        starts.append((vaddr, vaddr + size))
        mappings.append(Mapping(page + bias, (vaddr + size + 0xFFF & -0x1000) + bias, offset & -0x1000, str(path)))
    stacks = []
    for number, vaddr in enumerate(vaddrs):
        (mapping,) = (row for row, (begin, end) in enumerate(starts, 1) if begin <= vaddr < end)
        stacks.append(([Place(vaddr + bias, mapping)], [1000 + number]))
    return profile(mappings, stacks)
