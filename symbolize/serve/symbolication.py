"""Mozilla's symbolication API, version 5, as the Firefox Profiler, samply and Tecken's clients speak it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import UInt64
from symbolize.core.budget import json_cost
from symbolize.core.errors import SymbolizeError, UsageError
from symbolize.core.files import os_error_text
from symbolize.names import Mode
from symbolize.resolve.module import Module
from symbolize.serve.modules import HeldModule

MAX_JOBS: Final = 10
MAX_FRAMES: Final = 500_000
"""Frames of a request; the largest ones of Firefox have some 100,000."""
MAX_COST: Final = 128 * MAX_FRAMES
"""Bytes that the JSON of a request may take when it is read: a frame is a list of two numbers."""
MAX_MODULES: Final = 1024
"""Modules that a request asks about."""
MAX_MAP: Final = 1 << 13
"""Modules that a job lists."""
MAX_ANSWER: Final = 128 << 20
"""Bytes of an answer."""
MAX_OFFSET: Final = 1 << 63
VADDRS: Final = 1 << 64
MASK32: Final = (1 << 32) - 1
DEBUG_NAME: Final = re.compile(r"[A-Za-z0-9_.+{}@<> ~\-\[\]:]{0,1000}")
MODULE_ID: Final = re.compile("[0-9a-f]{4,128}")

Key = tuple[str, str]
"""The debug name and Breakpad id of a module."""
NO_MODULE: Final[Key] = ("<unknown>", "")


class RequestTooLarge(UsageError):
    """A request for more than one answer may have."""


class SymbolicationJob(NamedTuple):
    """The modules of a job, and its stacks: pairs of module (-1: none) and offset from the module's first byte."""

    modules: list[Key]
    stacks: list[list[tuple[int, int]]]


class SymbolicationRequest(NamedTuple):
    """The jobs of a request, and the offsets that they ask for of each module."""

    jobs: list[SymbolicationJob]
    asked: dict[Key, dict[int, None]]

    @property
    def build_ids(self) -> dict[Key, str]:
        """The ids of the modules to look up, without those that are none."""
        ids = {key: key[1].lower() for key in self.asked}
        return {key: text for key, text in ids.items() if MODULE_ID.fullmatch(text) and text.strip("0")}


class FoundFrames(NamedTuple):
    """The module of an id if there is one, or what went wrong."""

    module: HeldModule | None = None
    problem: str = ""


def read_request(data: bytes) -> SymbolicationRequest:
    """A request as it came. Raises UsageError for one that is none."""
    if json_cost(data) > MAX_COST:
        raise RequestTooLarge(f"the request has more than {MAX_FRAMES} frames")
    jobs = jobs_of(parsed(data))
    asked: dict[Key, dict[int, None]] = {}
    frames = 0
    for job in jobs:
        for stack in job.stacks:
            frames += len(stack)
            for number, offset in stack:
                if number >= 0:
                    of = asked.setdefault(job.modules[number], {})
                    if offset >= 0:
                        of[offset] = None
    if frames > MAX_FRAMES:
        raise RequestTooLarge(f"the request has more than {MAX_FRAMES} frames")
    if len(asked) > MAX_MODULES:
        raise RequestTooLarge(f"the request asks about more than {MAX_MODULES} modules")
    return SymbolicationRequest(jobs, asked)


def parsed(data: bytes) -> Any:
    """A body of JSON. Raises UsageError."""
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        raise UsageError(f"the body is not JSON from character {error.pos} on") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the body is not JSON: {os_error_text(error)}") from error


class SymbolicationAnswer:
    """The answer to a request, with the modules that were `found` by their ids.

    Frames that nothing is known of have their module and offset only. A module that fails is an error of its own, in
    `module_errors`, and never one of the request. `named` of all `frames` have a function.
    """

    def __init__(self, request: SymbolicationRequest, found: Mapping[str, FoundFrames], mode: Mode) -> None:
        self._request = request
        self._known: dict[Key, bool] = {}
        self._errors: dict[Key, str] = {}
        self._texts: dict[Key, dict[int, bytes]] = {}
        self.frames = self.named = 0
        self._size = 0
        ids = request.build_ids
        for key, asked in request.asked.items():
            module, problem = found[ids[key]] if key in ids else FoundFrames()
            if module is not None and asked:
                try:
                    self._texts[key] = frames_at(module, [*asked], mode)
                except SymbolizeError as error:
                    module, problem = None, str(error)
            self._known[key] = module is not None
            if problem:
                self._errors[key] = problem

    def json(self, debug: Mapping[str, Any] | None = None) -> bytes:
        """The answer, with figures for who asked for them. Raises TooLarge."""
        results = b",".join(b"".join(self._result(job)) for job in self._request.jobs)
        more = b"" if debug is None else b',"debug":' + as_json({**debug, "frames": self.frames, "named": self.named})
        return b'{"results":[' + results + b"]" + more + b"}"

    def _result(self, job: SymbolicationJob) -> Iterator[bytes]:
        # Module -1 is the last one.
        begins = [b',"module":' + as_json(name) + b',"module_offset":"' for name, _ in (*job.modules, NO_MODULE)]
        texts = [self._texts.get(key, {}) for key in (*job.modules, NO_MODULE)]
        yield b'{"stacks":['
        yield b",".join(self._stack(stack, begins, texts) for stack in job.stacks)
        names = {key: "/".join(key) for key in job.modules}
        yield b'],"found_modules":' + as_json({name: self._known.get(key) for key, name in names.items()})
        errors = {
            name: [{"name": "SymbolFileError", "message": self._errors[key]}]
            for key, name in names.items()
            if key in self._errors
        }
        if errors:
            yield b',"module_errors":' + as_json(errors)
        yield b"}"

    def _stack(
        self, stack: Sequence[tuple[int, int]], begins: Sequence[bytes], texts: Sequence[Mapping[int, bytes]]
    ) -> bytes:
        result = []
        size = 0
        for number, (module, offset) in enumerate(stack):
            text = texts[module].get(offset)
            self.named += text is not None
            frame = b'{"frame":%d%b%#x"%b' % (number, begins[module], offset, text or b"}")
            result.append(frame)
            size += len(frame)
            if self._size + size > MAX_ANSWER:
                raise RequestTooLarge("the answer is too large: ask for fewer frames")
        self._size += size
        self.frames += len(stack)
        return b"[" + b",".join(result) + b"]"


def as_json(value: Any) -> bytes:
    """A value as JSON, without blanks and in ASCII."""
    return json.dumps(value, separators=(",", ":")).encode()


def frames_at(module: Module, offsets: Sequence[int], mode: Mode) -> dict[int, bytes]:
    """What is known of some offsets of a module, as the rest of a JSON object: function, where it begins, file and line
    of the outermost frame, and the frames inlined there, the innermost first. Offsets are looked up as they are:
    Firefox moved return addresses into their calls.

    An offset that leads out of 64 bits has no name (R415, offsets of frames).
    """
    base = module.base
    offsets = [offset for offset in offsets if offset + base < VADDRS]
    vaddrs: UInt64 = np.array(offsets, np.uint64) + np.uint64(base)
    answer, (begin, end) = module.answer(vaddrs), module.function_bounds(vaddrs)
    frames = answer.frames
    rows, which = np.unique(frames.function, return_inverse=True)
    called = [quoted(b',"function":', name) for name in answer.shown(rows.astype(np.int64), mode).names]
    # By their numbers + 1: a line without a file is none.
    paths = {int(row) + 1: quoted(b',"file":', frames.files[int(row)]) for row in np.unique(frames.file) if row >= 0}
    # Most frames share function, file and line with others: each of these is written once.
    file_of, of_file = np.unique((which.astype(np.int64) << 32) + frames.file + 1, return_inverse=True)
    line_of, number = np.unique((of_file.astype(np.int64) << 32) + frames.line, return_inverse=True)
    written = []
    for key, line in zip(file_of[line_of >> 32].tolist(), (line_of & MASK32).tolist(), strict=True):
        text = called[key >> 32]
        if path := paths.get(key & MASK32):
            text += path + b',"line":%d' % line if line else path
        written.append(text)
    shown = [written[each] for each in number.tolist()]
    function = which.tolist()
    starts, begins, ends = frames.offsets.tolist(), begin.tolist(), end.tolist()
    result: dict[int, bytes] = {}
    for row, (offset, vaddr) in enumerate(zip(offsets, vaddrs.tolist(), strict=True)):
        first, last = starts[row], starts[row + 1] - 1
        if last < first:
            continue
        text = shown[last]
        if called[function[last]]:
            text += b',"function_offset":"%#x"' % (vaddr - begins[row])
            if ends[row]:
                text += b',"function_size":"%#x"' % (ends[row] - begins[row])
        if first < last:
            inlines = [fields[1:] for fields in shown[first:last]]
            text += b',"inlines":[{' + b"},{".join(inlines) + b"}]"
        result[offset] = text + b"}"
    return result


def quoted(field: bytes, text: bytes) -> bytes:
    """A field of a JSON object behind others; nothing for an empty text."""
    return field + encode_basestring_ascii(text.decode(errors="replace")).encode() if text else b""


def jobs_of(request: Any) -> list[SymbolicationJob]:
    """The jobs of a request: those of `jobs`, else the request is one. Raises UsageError for anything else."""
    if not isinstance(request, dict):
        raise UsageError("the request is not a JSON object")
    jobs = request.get("jobs", [request])
    if not isinstance(jobs, list) or not jobs or len(jobs) > MAX_JOBS:
        raise UsageError(f"jobs: not a list of 1 to {MAX_JOBS}")
    return [job_of(job, f"job {number}") for number, job in enumerate(jobs)]


def job_of(job: Any, name: str) -> SymbolicationJob:
    """One job of a request. Raises UsageError."""
    if not isinstance(job, dict) or not all(isinstance(job.get(each), list) for each in ("memoryMap", "stacks")):
        raise UsageError(f"{name}: has no memoryMap or no stacks")
    if len(job["memoryMap"]) > MAX_MAP:
        raise UsageError(f"{name}: the memoryMap has more than {MAX_MAP} modules")
    modules = []
    for module in job["memoryMap"]:
        if not isinstance(module, list) or len(module) != 2 or not all(isinstance(each, str) for each in module):
            raise UsageError(f"{name}: a module is not a pair of debug name and id")
        if not DEBUG_NAME.fullmatch(module[0]):
            raise UsageError(f"{name}: a debug name has other characters than letters, digits and _.+{{}}@<> ~-[]:")
        modules.append((module[0], module[1]))
    return SymbolicationJob(modules, [stack_of(stack, len(modules), name) for stack in job["stacks"]])


def stack_of(stack: Any, modules: int, name: str) -> list[tuple[int, int]]:
    """One stack of a job with so many modules. Raises UsageError."""
    if not isinstance(stack, list):
        raise UsageError(f"{name}: a stack is not a list")
    for frame in stack:
        if type(frame) is not list or len(frame) != 2 or type(frame[0]) is not int or type(frame[1]) is not int:
            raise UsageError(f"{name}: a frame is not a pair of the number of a module and an offset")
        if not -1 <= frame[0] < modules:
            raise UsageError(f"{name}: a frame is of a module that the memoryMap has not")
        if not -1 <= frame[1] < MAX_OFFSET:
            raise UsageError(f"{name}: a frame has an offset that no module has")
    return stack


SOURCE_FIELDS = ("debugName", "debugId", "moduleOffset", "file")
MAX_DIGITS = 18
"""Characters of an offset of 64 bits, `0x` too."""


class SourceRequest(NamedTuple):
    """Which file is wanted, and the frame that has to be in it."""

    file: str
    build_id: str
    frames: SymbolicationRequest

    @classmethod
    def read(cls, request: Any) -> "SourceRequest":
        """A request, as JSON values. Raises UsageError for one that is none."""
        if not isinstance(request, dict) or any(not isinstance(request.get(each), str) for each in SOURCE_FIELDS):
            raise UsageError(f"the request lacks one of {', '.join(SOURCE_FIELDS)}")
        name, debug_id, where, file = (request[each] for each in SOURCE_FIELDS)
        try:
            offset = int(where, 16) if len(where) <= MAX_DIGITS else -1
        except ValueError:
            offset = -1
        if not DEBUG_NAME.fullmatch(name):
            raise UsageError("debugName has characters that no name of a module has")
        if not 0 <= offset < MAX_OFFSET:
            raise UsageError("moduleOffset is no hexadecimal number of an offset")
        key = name, debug_id
        return cls(
            file,
            debug_id.lower(),
            SymbolicationRequest([SymbolicationJob([key], [[(0, offset)]])], {key: {offset: None}}),
        )

    def is_named_in(self, answer: SymbolicationAnswer) -> bool:
        """Whether a frame at the offset is of the file."""
        (result,) = parsed(answer.json())["results"]
        ((frame,),) = result["stacks"]
        return any(each.get("file") == self.file for each in (frame, *frame.get("inlines", [])))
