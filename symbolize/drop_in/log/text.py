"""A text with stack traces, read block by block: its frames get names, every other byte stays.

Whole blocks are searched for a few markers, and only the lines with one are looked at: most text has none.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from symbolize.core.errors import printable
from symbolize.core.line_scan import LineMarkers
from symbolize.drop_in.binaries import Binaries
from symbolize.drop_in.log.forms import (
    ADDRESS,
    FORMS,
    KERNEL_FORM,
    LINK,
    LONGEST,
    MAX_BEFORE,
    SEASTAR,
    SEASTAR_LINES,
    At,
    TraceFrame,
    frames_of,
)
from symbolize.drop_in.log.modules import MODULE_MARKERS, TextModules
from symbolize.drop_in.log.names import TextNames, target_of, with_names
from symbolize.names import Mode

HELD: Final = 1 << 20
"""Bytes that wait for a table of modules behind them."""
LONGEST_WAIT: Final = 1.0
"""Seconds that they wait, also if more comes all the time."""
ALL_FORMS: Final = (*FORMS, SEASTAR)
MARKED: Final = [(marker, form) for form in ALL_FORMS for marker in form.markers]
MARKERS: Final = LineMarkers(list(dict.fromkeys([*(marker for marker, _ in MARKED), *MODULE_MARKERS])))
MAX_KEPT: Final = 1 << 18
"""Marked lines that are remembered from the survey."""
PC_ALONE: Final = re.compile(rb'"pc": ?"0x[0-9a-f]{1,16}",\s*\Z')
ADDRESS_LINES: Final = re.compile(rb"^[ \t]{1,40}(?:0x[0-9a-f]{5,16}|[0-9a-f]{8,16})(?: \(?\[|\s{0,8}$)", re.MULTILINE)


class FoundFrame(NamedTuple):
    """A frame in a block, and where its line begins there."""

    line: int
    frame: TraceFrame


class Log:
    """Names for the frames of one text, from `binaries`; what could not be used is a line that `tell` gets, once.

    With `waits` the text comes as a stream: the lines from a frame on whose address nothing explains yet are held back
    until a table comes, for at most HELD bytes and LONGEST_WAIT seconds, or until `named` gets an empty block, as when
    nothing comes any more.
    Else `survey` gets the whole text first, and nothing has to wait.
    """

    def __init__(self, binaries: Binaries, mode: Mode, tell: Callable[[str], None], waits: bool = True) -> None:
        self._names, self._tell, self._waits = TextNames(binaries, mode), tell, waits
        self._modules = TextModules()
        self._place = 0
        self._held = b""
        self._held_since = 0.0
        self._before = b""
        self._last: TraceFrame | None = None
        self._breaks = 0
        self._marked: dict[tuple[int, int], list[int]] = {}
        self._kept = 0
        self._told: set[str] = set()
        self._stopped: TraceFrame | None = None
        self._counts: Counter[tuple[str, str]] = Counter()

    def survey(self, block: bytes) -> None:
        """Take what the next block of whole lines says of modules."""
        lines = MARKERS.lines(block)
        if len(lines) <= MAX_KEPT - self._kept:
            self._marked[self._place, len(block)] = lines
            self._kept += len(lines)
        self._read_modules(block, lines, self._place)
        self._place += len(block)

    def begin(self) -> None:
        """Begin with the text again, after the survey."""
        self._place = 0

    def named(self, block: bytes) -> bytes:
        """The next block of whole lines with names, as far as they can be decided; an empty one ends the wait."""
        text = self._held + block
        lines = self._marked.get((self._place, len(text)))
        if lines is None:
            lines = MARKERS.lines(text)
        if self._waits:
            self._read_modules(text, lines, self._place, len(self._held))
        found = list(frames_in(text, lines, self._modules.has_tables, self._before))
        end = unfinished(text) if block else len(text)
        now = time.monotonic()
        if not self._held:
            self._held_since = now
        if self._waits and block and len(text) <= HELD and now - self._held_since <= LONGEST_WAIT:
            end = next((line for line, frame in found if line < end and self._is_open(frame, line)), end)
        self._held = text[end:]
        result = self._filled(text[:end], [each for each in found if each.line < end])
        self._place += end
        self._before = line_before(text, end) if end else self._before
        return result

    def _read_modules(self, text: bytes, lines: Iterable[int], place: int, begin: int = 0) -> None:
        """Take what the marked lines of a text that begins at `place` say of modules, from `begin` on."""
        self._modules.resume(text, begin, place + begin)
        for line in lines:
            if line >= begin:
                self._modules.read(text, line, line_end(text, line), place + line)

    def _is_open(self, frame: TraceFrame, line: int) -> bool:
        """Whether a table that may come decides what a frame is."""
        target = target_of(frame, self._modules, self._place + line)
        return frame.offset is None and (target is None or target.row is None)

    def _filled(self, text: bytes, found: list[FoundFrame]) -> bytes:
        """A text with the names of its frames."""
        if not found:
            self._breaks += bool(text)
            return text
        frames = list(self._in_stacks(text, found))
        targets = [target_of(frame, self._modules, self._place + line) for line, frame in found]
        places = self._names.places(frames, targets)
        parts: list[bytes] = []
        done = 0
        for frame, place in zip(frames, places, strict=True):
            self._counts[frame.form, place if isinstance(place, str) else ""] += 1
            change = None if isinstance(place, str) else with_names(text, frame, place)
            if change is not None:
                begin, end, names = change
                parts += [text[done:begin], names]
                done = end
        for problem in self._names.problems:
            if problem not in self._told:
                self._told.add(problem)
                self._tell(problem)
        self._names.problems.clear()
        return b"".join([*parts, text[done:]])

    def _as_stopped(self, text: bytes, found: FoundFrame) -> TraceFrame:
        """A frame; that of the kernel is exact with which a backtrace begins behind the same place where the kernel
        stopped. Further ones return there: code may stop right behind a call (R510, addresses of each form)."""
        frame = found.frame
        if frame.form != KERNEL_FORM or LINK.search(text, max(found.line, frame.start - MAX_BEFORE), frame.start):
            return frame
        is_same = self._stopped is not None and place_of(frame) == place_of(self._stopped)
        self._stopped = frame if frame.at is At.EXACT else None
        return frame._replace(at=At.EXACT) if is_same else frame

    def _in_stacks(self, text: bytes, found: Iterable[FoundFrame]) -> Iterator[TraceFrame]:
        """The frames, each with whether it is of the same stack as the one before it, as far as one can tell: in the
        same or the next line, also of the text before, and not the first one."""
        done = 0
        for each in found:
            frame = self._as_stopped(text, each)
            breaks = self._breaks + text.count(b"\n", done, frame.start)
            is_next = self._last is not None and self._last.form == frame.form and breaks <= 1
            yield frame._replace(follows=is_next and frame.at is not At.EXACT)
            self._last, self._breaks, done = frame, 0, frame.end
        self._breaks = text.count(b"\n", done)

    def summary(self) -> str:
        """How many frames of which form have names, and why the others have none; empty if there were no frames."""
        forms = dict.fromkeys(form for form, _ in self._counts)
        total = {form: sum(count for (each, _), count in self._counts.items() if each == form) for form in forms}
        reasons: Counter[str] = Counter()
        for (_, reason), count in self._counts.items():
            reasons[reason] += count
        if not forms:
            return ""
        named = ", ".join(f"{form} {self._counts[form, '']} of {total[form]}" for form in forms)
        others = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common() if reason)
        return printable(f"frames with names: {named}" + (f"; without: {others}" if others else ""))


def place_of(frame: TraceFrame) -> tuple[str, bytes, int | None, int]:
    """Where a frame is, by its file, symbol and offset."""
    return frame.file, frame.symbol, frame.offset, frame.size


def line_end(block: bytes, line: int) -> int:
    """Where a line ends, without its line break."""
    end = block.find(b"\n", line)
    return len(block) if end < 0 else end


def line_before(block: bytes, line: int) -> bytes:
    """The end of the line in front of the one that begins at `line`, with its line break."""
    return block[max(block.rfind(b"\n", 0, max(line - 1, 0)) + 1, line - LONGEST) : line]


def unfinished(text: bytes) -> int:
    """Where the lines at the end begin whose frames go on in the next block: an address of Node without its symbol, or
    a backtrace of seastar in lines of its own."""
    last = text.rfind(b"\n", 0, max(len(text) - 1, 0)) + 1
    if len(text) - last <= LONGEST and PC_ALONE.search(text, last):
        return last
    found = text.rfind(b"acktrace:", max(len(text) - LONGEST, 0))
    behind = found + len(b"acktrace:")
    if found >= 0 and b"\n" in text[behind:] and (text[behind:].isspace() or SEASTAR_LINES.fullmatch(text, behind)):
        return text.rfind(b"\n", 0, found) + 1
    return len(text)


def frames_in(block: bytes, lines: Iterable[int], has_tables: bool, first_before: bytes = b"") -> Iterator[FoundFrame]:
    """The frames in the marked lines of a block, in order. A line has frames of one form, the first one that fits;
    lines with nothing but an address count if the text has a table (`has_tables`). `first_before` is the line in front
    of the block."""
    bare = {match.start() for match in ADDRESS_LINES.finditer(block)} if has_tables else set()
    done = -1
    for line in sorted(bare.union(lines)):
        if line <= done:
            continue
        end = line_end(block, line)
        text = block[line:end]
        before = line_before(block, line) if line else first_before
        forms = [form for marker, form in MARKED if marker in text]
        for form in forms + ([ADDRESS] if line in bare else []):
            if form is SEASTAR:
                found = [FoundFrame(at, frame) for at, frame in seastar_frames(block, line, end)]
            else:
                stop = end - text.endswith(b"\r")
                found = [FoundFrame(line, frame) for frame in frames_of(form, block, line, stop, before)]
            if found:
                yield from found
                done = found[-1].line
                break


def seastar_frames(block: bytes, line: int, end: int) -> Iterator[tuple[int, TraceFrame]]:
    """The frames of a backtrace of seastar: behind `Backtrace:`, or in the lines that follow it."""
    begin = block.find(b"acktrace:", line, end) + len(b"acktrace:")
    while end - begin <= LONGEST and (not block[begin:end].strip() or SEASTAR_LINES.fullmatch(block, begin, end)):
        for frame in frames_of(SEASTAR, block, begin, end, b""):
            yield line, frame._replace(is_main=not frame.file)
        if end >= len(block):
            return
        line = begin = end + 1
        end = line_end(block, line)
        if not block[begin:end].strip():
            return
