"""Stops a program at given functions and writes the stack of each stop as JSON; runs inside gdb, on x86-64.

    CALLS_REQUEST=request.json gdb -batch -nx -x tools/calls/gdb_stacks.py PROGRAM

The request has the `arguments` of the program for a shell, the `module`, the `vaddrs` of functions in it with how often
each is passed before it stops, the `vaddr` of the module that offset 0 of its file is mapped to, and pairs of vaddrs
that are `watched`: where a function begins, and a byte of its last instruction. The `answer` has the memory map, the
frames of each stop from the leaf on as kind, pc, linked name and stack pointer, and for these stack pointers when the
program passed which of the watched places with the pointer below it: the stack pointer, the vaddr, the time.
"""

import json
import os
from pathlib import Path
from typing import ClassVar

import gdb

SETTINGS = (
    "pagination off",
    "confirm off",
    "width 0",
    "print demangle off",
    "print asm-demangle off",
    "breakpoint always-inserted on",
    "debuginfod enabled off",
    "debug entry-values 1",
)
KINDS = {gdb.INLINE_FRAME: "inlined", gdb.TAILCALL_FRAME: "tail call"}
WORD = 8


class Watch(gdb.Breakpoint):
    """Notes when the program is at an address, by the stack pointer."""

    passed: ClassVar[dict[int, dict[int, int]]] = {}
    time: ClassVar[int] = 0

    def __init__(self, address: int, vaddr: int) -> None:
        super().__init__(f"*{address:#x}", internal=True)
        self.vaddr = vaddr

    def stop(self) -> bool:
        Watch.time += 1
        Watch.passed.setdefault(int(gdb.parse_and_eval("$sp")), {})[self.vaddr] = Watch.time
        return False


def stack() -> tuple[list[tuple[str, int, str, int]], list[tuple[int, int, int]]]:
    """The frames of the thread that stopped, and what was passed with their stack pointers."""
    frames, frame = [], gdb.newest_frame()
    while frame is not None:
        pointer = int(frame.read_register("rsp"))
        frames.append((KINDS.get(frame.type(), ""), frame.pc(), frame.name() or "", pointer))
        frame = frame.older()
    pointers = {pointer for *_, pointer in frames}
    passed = [(p, vaddr, time) for p in pointers for vaddr, time in Watch.passed.get(p - WORD, {}).items()]
    return frames, passed


def memory_map() -> str:
    """The memory map of the program."""
    return Path(f"/proc/{gdb.selected_inferior().pid}/maps").read_text()


def bias(request: dict) -> int:
    """The distance from the vaddrs of the module to its addresses."""
    for line in memory_map().splitlines():
        addresses, _, offset, *_, path = line.split(maxsplit=5)
        if path == request["module"] and int(offset, 16) == 0:
            return int(addresses.partition("-")[0], 16) - request["vaddr"]
    raise gdb.GdbError(f"{request['module']} is not mapped")


def watch(watched: list[tuple[int, int]], distance: int) -> None:
    """Watch where functions begin, and the last instructions."""
    architecture = gdb.selected_frame().architecture()
    for start in {start for start, _ in watched}:
        Watch(distance + start, start)
    for start, last in watched:
        instructions = architecture.disassemble(distance + start, distance + last)
        Watch(instructions[-1]["addr"], last)


def run(request: dict) -> dict:
    """Run the program to its end."""
    for setting in SETTINGS:
        gdb.execute(f"set {setting}")
    gdb.execute("tbreak main")
    gdb.execute(f"run {request['arguments']} < /dev/null > /dev/null 2> /dev/null")
    distance = bias(request)
    watch(request["watched"], distance)
    for vaddr, passes in request["vaddrs"]:
        gdb.Breakpoint(f"*{distance + vaddr:#x}", internal=True, temporary=True).ignore_count = passes
    stops, maps = [], memory_map()
    while True:
        gdb.execute("continue")
        if not gdb.selected_inferior().pid:
            return {"stops": stops, "maps": maps, "bias": distance}
        stops.append(stack())
        maps = memory_map()


if __name__ == "__main__":
    request = json.loads(Path(os.environ["CALLS_REQUEST"]).read_text())
    Path(request["answer"]).write_text(json.dumps(run(request)))
