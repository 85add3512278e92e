"""Profiles with copies of stacks: made ones, and those that the programs of fixtures/unwind write."""

import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symbolize.profile import Locations, Mappings, Profile, Samples, StackDumps, ValueType
from symbolize.profile.attachments import REGISTERS

FIXTURES = Path(__file__).parents[2] / "fixtures" / "unwind"
PC = {"x86-64": 16, "aarch64": 32}
SP = {"x86-64": 7, "aarch64": 31}
EXACT = 1 << 63
"""A mark of noted addresses at which code was interrupted: they are no return addresses."""


class Dump(NamedTuple):
    """Registers by their numbers and the memory from the stack pointer on."""

    registers: Sequence[int]
    stack: bytes
    is_full: bool = False
    is_32bit: bool = False


class Mapped(NamedTuple):
    """An executable mapping."""

    name: str
    start: int
    limit: int
    file_offset: int = 0
    build_id: str = ""


def profile_of(machine: str, dumps: Sequence[Dump], mappings: Sequence[Mapped]) -> Profile:
    """A profile of one sample for each dump, which has its leaf only; all are of one address space."""
    count, profile = len(dumps), Profile()
    add = profile.strings.add
    profile.sample_types = [ValueType(add(b"cpu"), add(b"count"))]
    profile.mappings = Mappings.zeros(len(mappings))
    for row, mapped in enumerate(mappings):
        profile.mappings.start[row], profile.mappings.limit[row] = mapped.start, mapped.limit
        profile.mappings.file_offset[row] = mapped.file_offset
        profile.mappings.filename[row] = add(mapped.name.encode())
        profile.mappings.build_id[row] = add(mapped.build_id.encode())
    registers = np.array([dump.registers for dump in dumps], np.uint64).reshape(count, REGISTERS[machine])
    leaf, leaf_of = np.unique(registers[:, PC[machine]], return_inverse=True)
    inside = [[row for row, each in enumerate(mappings) if each.start <= pc < each.limit] for pc in leaf.tolist()]
    profile.locations = Locations(
        leaf,
        np.array([rows[0] if rows else -1 for rows in inside], np.int32),
        np.zeros(len(leaf), np.bool_),
        np.zeros(len(leaf) + 1, np.int64),
    )
    rows = np.arange(count)
    values = np.ones((count, 1), np.int64)
    profile.samples = Samples(np.arange(count + 1), leaf_of.astype(np.int32), values, np.zeros(count + 1, np.int64))
    sizes = [len(dump.stack) for dump in dumps]
    profile.stack_dumps = StackDumps(
        machine,
        memoryview(b"".join(dump.stack for dump in dumps)),
        rows,
        np.cumsum([0, *sizes[:-1]]),
        np.array(sizes, np.int64),
        registers,
        np.array([dump.is_32bit for dump in dumps], np.bool_),
        np.array([dump.is_full for dump in dumps], np.bool_),
        np.zeros(count, np.int32),
        np.array([0, len(mappings)]),
        np.arange(len(mappings), dtype=np.int32),
    )
    return profile


def stacks(profile: Profile) -> list[list[int]]:
    """The addresses of each stack, the leaf first."""
    samples = profile.samples
    addresses = profile.locations.address[samples.locations].tolist()
    offsets = samples.location_offsets.tolist()
    return [addresses[begin:end] for begin, end in pairwise(offsets)]


def noted(machine: str) -> list[tuple[Dump, list[int]]]:
    """What the fixture of a machine wrote: each dump with the stack that it has, by the notes of the program."""
    data = (FIXTURES / f"{machine}.dump").read_bytes()
    found, at = [], 0
    while at < len(data):
        count, notes, size = struct.unpack_from("<3Q", data, at)
        words = struct.unpack_from(f"<{count + notes}Q", data, at + 24)
        at += 24 + 8 * len(words) + size
        callers = [pc & ~EXACT if pc & EXACT else pc - 1 for pc in reversed(words[count:])]
        found.append((Dump(words[:count], data[at - size : at]), [words[PC[machine]], *callers]))
    return found


def fixture_profile(machine: str) -> tuple[Profile, list[list[int]]]:
    """A profile of all dumps of a fixture, and the stacks that it is to have."""
    found = noted(machine)
    code = {
        "x86-64": Mapped("/opt/x86-64", 0x401000, 0x402000, 0x1000),
        "aarch64": Mapped("/opt/aarch64", 0x400000, 0x401000),
    }
    return profile_of(machine, [dump for dump, _ in found], [code[machine]]), [stack for _, stack in found]
