"""Mozilla's symbolication API, version 5, as the Firefox Profiler, samply and Tecken's clients speak it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import UInt64
from symbolize.core.errors import SymbolizeError, UsageError
from symbolize.names import Mode, demangle
from symbolize.resolve.module import Module
from symbolize.serve.modules import Modules

MAX_JOBS: Final = 10
MAX_OFFSET: Final = 1 << 63
DEBUG_NAME: Final = re.compile(r"[A-Za-z0-9_.+{}@<> ~\-\[\]:]*")
MODULE_ID: Final = re.compile("[0-9A-Fa-f]{4,128}")

Key = tuple[str, str]
"""The debug name and Breakpad id of a module."""


class Job(NamedTuple):
    """The modules of a job, and its stacks: pairs of module (-1: none) and offset from the module's first byte."""

    modules: list[Key]
    stacks: list[list[tuple[int, int]]]


def symbolicated(request: Any, modules: Modules, mode: Mode) -> dict[str, Any]:
    """The answer to a request, both as JSON values. Raises UsageError for a request that is none.

    Frames that nothing is known of have their module and offset only. A module that fails is an error of its own, in
    `module_errors`, and never one of the request.
    """
    jobs = jobs_of(request)
    offsets: dict[Key, dict[int, None]] = {}
    for job in jobs:
        for key in job.modules:
            offsets.setdefault(key, {})
        for stack in job.stacks:
            for number, offset in stack:
                if number >= 0 and offset >= 0:
                    offsets[job.modules[number]][offset] = None
    found, errors = {}, {}
    frames: dict[Key, dict[int, dict[str, Any]]] = {}
    for key, asked in offsets.items():
        try:
            module = modules.find(key[1].lower()) if MODULE_ID.fullmatch(key[1]) else None
            found[key] = module is not None
            if module is not None and asked:
                frames[key] = frames_at(module, [*asked], mode)
        except SymbolizeError as error:
            found[key] = False
            errors["/".join(key)] = [{"name": "SymbolFileError", "message": str(error)}]
    results = []
    for job in jobs:
        named = {"/".join(key): found[key] for key in job.modules}
        result = {"stacks": [answered(job, stack, frames) for stack in job.stacks], "found_modules": named}
        if failed := {name: errors[name] for name in named if name in errors}:
            result["module_errors"] = failed
        results.append(result)
    return {"results": results}


def answered(job: Job, stack: Sequence[tuple[int, int]], frames: Mapping[Key, Mapping[int, Any]]) -> list[Any]:
    """The frames of a stack as they are answered."""
    result = []
    for number, (module, offset) in enumerate(stack):
        key = job.modules[module] if module >= 0 else ("<unknown>", "")
        where = {"frame": number, "module": key[0], "module_offset": hex(offset)}
        result.append(where | frames.get(key, {}).get(offset, {}))
    return result


def frames_at(module: Module, offsets: Sequence[int], mode: Mode) -> dict[int, dict[str, Any]]:
    """What is known of some offsets of a module: function, where it begins, file and line of the outermost frame, and
    the frames inlined there, the innermost first. Offsets are looked up as they are: Firefox moved return addresses
    into their calls."""
    base = np.uint64(module.base)
    vaddrs: UInt64 = np.array(offsets, np.uint64) + base
    names = module.names(vaddrs)
    frames, functions = names.frames, names.frames.functions
    rows, which = np.unique(frames.function, return_inverse=True)
    chosen = functions.take(rows.astype(np.int64))
    linked = [linkage or name for linkage, name in zip(chosen.linkage, chosen.name, strict=True)]
    readable = [name.decode(errors="replace") for name in demangle(linked, mode)]
    paths = {int(row): frames.files[int(row)].decode(errors="replace") for row in np.unique(frames.file) if row >= 0}
    result: dict[int, dict[str, Any]] = {}
    starts, lines, files = frames.offsets.tolist(), frames.line.tolist(), frames.file.tolist()
    begins, ends = names.begin.tolist(), names.end.tolist()
    for row, offset in enumerate(offsets):
        first, last = starts[row], starts[row + 1]
        if first == last:
            continue
        shown = []
        for frame in range(first, last):
            one: dict[str, Any] = {"function": readable[which[frame]]} if readable[which[frame]] else {}
            if files[frame] >= 0:
                one["file"] = paths[files[frame]]
                if lines[frame]:
                    one["line"] = lines[frame]
            shown.append(one)
        outermost = shown.pop()
        if "function" in outermost:
            outermost["function_offset"] = hex(int(vaddrs[row]) - begins[row])
            if ends[row]:
                outermost["function_size"] = hex(ends[row] - begins[row])
        result[offset] = outermost | ({"inlines": shown} if shown else {})
    return result


def jobs_of(request: Any) -> list[Job]:
    """The jobs of a request: those of `jobs`, else the request is one. Raises UsageError for anything else."""
    if not isinstance(request, dict):
        raise UsageError("the request is not a JSON object")
    jobs = request.get("jobs", [request])
    if not isinstance(jobs, list) or not jobs or len(jobs) > MAX_JOBS:
        raise UsageError(f"jobs: not a list of 1 to {MAX_JOBS}")
    return [job_of(job, f"job {number}") for number, job in enumerate(jobs)]


def job_of(job: Any, name: str) -> Job:
    """One job of a request. Raises UsageError."""
    if not isinstance(job, dict) or not all(isinstance(job.get(each), list) for each in ("memoryMap", "stacks")):
        raise UsageError(f"{name}: has no memoryMap or no stacks")
    modules = []
    for module in job["memoryMap"]:
        if not is_pair(module, str):
            raise UsageError(f"{name}: a module is not a pair of debug name and id")
        if not DEBUG_NAME.fullmatch(module[0]):
            raise UsageError(f"{name}: a debug name has other characters than letters, digits and _.+{{}}@<> ~-[]:")
        modules.append((module[0], module[1]))
    for stack in job["stacks"]:
        if not isinstance(stack, list):
            raise UsageError(f"{name}: a stack is not a list")
        for frame in stack:
            if not is_pair(frame, int) or not -1 <= frame[0] < len(modules) or not -1 <= frame[1] < MAX_OFFSET:
                raise UsageError(f"{name}: a frame is not a pair of the number of a module and an offset")
    return Job(modules, [[(module, offset) for module, offset in stack] for stack in job["stacks"]])


def is_pair(value: Any, kind: type) -> bool:
    """Whether a JSON value is a list of two values of a kind; true and false are no numbers."""
    return isinstance(value, list) and len(value) == 2 and all(type(each) is kind for each in value)
