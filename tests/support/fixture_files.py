"""The committed profiles and binaries, and what independent tools say of them."""

import gzip
import json
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from tests.support.messages import profile_pb2
from tests.support.needs import find

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
BINARIES = FIXTURES / "bin"
PARTS = FIXTURES / "parts"
GPERFTOOLS = sorted((FIXTURES / "profiles" / "gperftools").glob("*.prof"))
PERF = sorted((FIXTURES / "profiles" / "perf").glob("*.pb.gz"))

Frame = tuple[str, str, int, int]
"""Linked name, file, line and column."""


def variant(profile: Path) -> str:
    """The build whose binaries a profile was recorded from: `spectra-gcc-pie.prof` gives `gcc-pie`."""
    return profile.name.split(".")[0].split("-", 1)[1]


def read_pprof(path: Path) -> Any:
    """A pprof file, decoded by protobuf."""
    return profile_pb2.Profile.FromString(gzip.decompress(path.read_bytes()))


@cache
def segments(path: Path) -> tuple[tuple[int, int, int], ...]:
    """File offset, vaddr and size in the file of each executable PT_LOAD."""
    with path.open("rb") as file:
        return tuple(
            (each["p_offset"], each["p_vaddr"], each["p_filesz"])
            for each in ELFFile(file).iter_segments()
            if each["p_type"] == "PT_LOAD" and each["p_flags"] & 1
        )


def vaddr_of(address: int, mapping: Any, loaded: Path) -> int:
    """The vaddr of a runtime address, by the segment of the file `loaded` that holds its file offset."""
    place = address - mapping.memory_start + mapping.file_offset
    (vaddr,) = (v + place - offset for offset, v, size in segments(loaded) if offset <= place < offset + size)
    return vaddr


def llvm_frames(path: Path, vaddrs: Iterable[int]) -> dict[int, list[Frame]]:
    """The frames that llvm-symbolizer finds at each vaddr, leaf first, with linked names."""
    asked = sorted(set(vaddrs))
    command = [find("llvm-symbolizer-19"), f"--obj={path}", "--no-demangle", "--output-style=JSON"]
    text = subprocess.run(
        command, input="".join(f"{v:#x}\n" for v in asked), capture_output=True, text=True, check=True
    ).stdout
    answers = [json.loads(line) for line in text.splitlines()]
    return {
        vaddr: [(s["FunctionName"], s["FileName"], s["Line"], s["Column"]) for s in answer["Symbol"]]
        for vaddr, answer in zip(asked, answers, strict=True)
    }


def frames_of(profile: Any, location: Any) -> list[Frame]:
    """The lines of a location in a decoded pprof file, as `llvm_frames` gives them."""
    functions = {function.id: function for function in profile.function}
    text = [value.decode() for value in profile.string_table]
    return [
        (text[(f := functions[line.function_id]).system_name], text[f.filename], line.line, line.column)
        for line in location.line
    ]
