"""Thread profiles as text: the stack of every thread at one moment (R336, threads)."""

import re
from typing import Final

import numpy as np

from symbolize.core.arrays import offsets_of
from symbolize.formats.gperftools import reader as gperftools
from symbolize.formats.legacy.frames import PROFILER
from symbolize.formats.legacy.text import MAP_TITLE, Text, attach_map, without_leaves
from symbolize.formats.samples import Label, fill_samples, set_labels, value_type
from symbolize.profile.model import Profile

TITLE: Final = re.compile(rb"--- threadz \d+ ---|--- Thread ")
THREAD: Final = re.compile(rb"--- Thread ([0-9a-fA-F]+) \(name: (.*)/(\d{1,18})\) stack: ---")
UNNAMED: Final = re.compile(rb"--- Thread ([0-9a-fA-F]+)\b")
FRAMES: Final = re.compile(rb"(?:[\w ]{1,40}:|@)?\s*((?:0[xX][0-9a-fA-F]+(?:[\s,:]+|\Z))+)")
"""The addresses in a line, before which may be what they are of, and after the last of which may be its name."""

ADDRESS: Final = re.compile(rb"0[xX]([0-9a-fA-F]+)")

SAME: Final = b"same as previous thread"
END: Final = b"---- no stack trace for"
MAX_ADDRESS: Final = (1 << 64) - 1
MAX_FRAMES: Final = 1 << 22


class Threads:
    """The threads that were read so far: a stack and the labels of each."""

    def __init__(self) -> None:
        self.stacks: list[list[int]] = []
        self.labels: list[list[Label]] = []
        self.size = 0

    def begin(self, line: bytes) -> bool:
        """Begin the thread of a title; False if it is none."""
        title = THREAD.match(line)
        if title is not None:
            self.labels.append([(b"thread", title[2]), (b"tid", int(title[3]))])
        elif UNNAMED.match(line):
            self.labels.append([])
        else:
            return False
        self.stacks.append([])
        return True

    def add(self, line: bytes) -> None:
        """Add the addresses of a line to the last thread."""
        if SAME in line and len(self.stacks) > 1 and not self.stacks[-1]:
            self.stacks[-1] = [*self.stacks[-2]]
            self.size += len(self.stacks[-1])
        elif found := FRAMES.match(line):
            addresses = [
                each for each in (int(digits, 16) for digits in ADDRESS.findall(found[1])) if each <= MAX_ADDRESS
            ]
            self.stacks[-1] += addresses
            self.size += len(addresses)


def load(text: Text) -> Profile:
    """Read what begins with `--- threadz` or `--- Thread`."""
    threads = Threads()
    at = text.begin
    while at < len(text.data):
        line, behind = text.line_at(at)
        if MAP_TITLE.search(line) or line.startswith(END):
            break
        if not line.startswith(b"---"):
            if threads.stacks and line:
                threads.add(line)
        elif not threads.begin(line) and threads.stacks:
            break
        if threads.size > MAX_FRAMES:
            raise text.error(f"has more than {MAX_FRAMES} stack frames", at)
        at = behind
    profile = Profile(warnings=text.warnings)
    offsets = offsets_of([len(each) for each in threads.stacks])
    addresses = np.array([address for stack in threads.stacks for address in stack], np.uint64)
    counts = np.ones(len(threads.stacks), np.uint64)
    found = gperftools.Records.of(offsets, counts, without_leaves(offsets, addresses)).without_doubled_leaves()
    fill_samples(profile, found.offsets, found.frames, found.addresses, np.ones((len(counts), 1), np.int64))
    profile.sample_types = [value_type(profile, b"thread", b"count")]
    profile.period_type, profile.period = value_type(profile, b"thread", b"count"), 1
    profile.drop_frames = profile.strings.add(PROFILER)
    set_labels(profile, threads.labels)
    attach_map(profile, text, at)
    return profile
