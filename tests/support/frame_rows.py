"""Rows of call frame information: as `readelf --debug-dump=frames-interp` prints them, and as they are read here."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symbolize.elf import ElfImage
from symbolize.elf.call_frames import FrameSection, frame_section
from symbolize.unwind import constants as c
from symbolize.unwind.rows import RowReader, find_rows

X86 = [
    *(f"r{name}" for name in ("ax", "dx", "cx", "bx", "si", "di", "bp", "sp")),
    *(f"r{i}" for i in range(8, 16)),
    "rip",
]
ARM = [*(f"x{i}" for i in range(31)), "sp", "pc"]
FDE = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)")


class Row(NamedTuple):
    """A row: where it begins, its CFA, and the rules of registers by their names, as readelf writes them."""

    vaddr: int
    cfa: str
    rules: dict[str, str]


def readelf_rows(path: Path, section: str = ".eh_frame") -> Iterator[Row]:
    """The rows of all FDEs of a section, in file order; unspecified rules are left out."""
    command = ["readelf", "--debug-dump=frames-interp", "--wide", str(path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # fails for other sections
    columns: list[str] = []
    begin = end = -1
    is_wanted = False
    for line in shown.splitlines():
        if line.startswith("Contents of the"):
            is_wanted = f" {section} " in line
            continue
        if found := FDE.match(line):
            begin, end = int(found[1], 16), int(found[2], 16)
        elif " CIE " in line or not line.strip() or line.endswith("ZERO terminator"):
            begin = begin if " CIE " not in line else -1
        elif line.split()[0] == "LOC":
            columns = line.split()[2:]
        elif begin >= 0 and is_wanted and re.match(r"^[0-9a-f]{8,16} ", line):
            vaddr, cfa, *rules = re.sub(r"\br\d+ \((\w+)\)", r"\1", line).split()
            if begin <= int(vaddr, 16) < end:
                named = zip(columns, rules, strict=True)
                yield Row(int(vaddr, 16), cfa, {name: rule for name, rule in named if rule != "u"})


def names_of(image: ElfImage) -> list[str]:
    """The names of the registers of a machine."""
    return X86 if image.machine == "EM_X86_64" else ARM


def our_rows(section: FrameSection, names: list[str], vaddrs: list[int]) -> list[Row | None]:
    """What is read here at some vaddrs, None where nothing is."""
    wanted = np.array(vaddrs, np.uint64)
    order = np.argsort(wanted, kind="stable")
    place = np.searchsorted(section.begin, wanted[order], side="right") - 1
    rows = np.zeros((len(vaddrs), c.FIRST_RULE + 2 * len(names)), np.uint64)
    found = np.zeros(len(vaddrs), np.uint8)
    reader = RowReader(section, len(names))
    find_rows(reader, section.position[place].data, wanted[order].data, rows.data, found.data)
    result: list[Row | None] = [None] * len(vaddrs)
    for i, row, ok in zip(order.tolist(), rows.tolist(), found.tolist(), strict=True):
        if ok:
            result[i] = described(vaddrs[i], row, names)
    return result


def described(vaddr: int, row: list[int], names: list[str]) -> Row:
    """A row in readelf's words."""

    def signed(value: int) -> str:
        return f"{value - (1 << 64) if value >> 63 else value:+d}"

    register = names[row[c.CFA_REGISTER]] if row[c.CFA_RULE] == c.REGISTER else ""
    cfa = "exp" if row[c.CFA_RULE] == c.EXPRESSION else register + signed(row[c.CFA_VALUE])
    rules = {}
    for number, name in enumerate(names):
        kind, value = row[c.FIRST_RULE + 2 * number], row[c.FIRST_RULE + 2 * number + 1]
        text = {
            c.UNSPECIFIED: "",
            c.UNDEFINED: "",
            c.SAME_VALUE: "s",
            c.OFFSET: "c" + signed(value),
            c.VAL_OFFSET: "v" + signed(value),
            c.REGISTER: names[value] if kind == c.REGISTER else "",
            c.EXPRESSION: "exp",
            c.VAL_EXPRESSION: "vexp",
        }[kind]
        if text:
            rules["ra" if number == row[c.RETURN_COLUMN] else name] = text
    return Row(vaddr, cfa, rules)


def differences(path: Path, section: str = ".eh_frame") -> tuple[int, list[tuple[Row, Row | None]]]:
    """How many rows readelf prints of a file, and those that are read differently here."""
    expected = list(readelf_rows(path, section))
    with ElfImage.open(path) as image:
        found = frame_section(image, section)
        assert found is not None
        names = names_of(image)
        ours = our_rows(found, names, [row.vaddr for row in expected])
    known = {*names, "ra"}
    pairs = [
        (row._replace(rules={name: rule for name, rule in row.rules.items() if name in known}), our)
        for row, our in zip(expected, ours, strict=True)
    ]
    return len(pairs), [(row, our) for row, our in pairs if row != our]
