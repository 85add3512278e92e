"""What `perf script` says of a recording, to compare with the profile of it.

The texts come from `perf script -F FIELDS --no-inline --no-demangle -i FILE`, with the fields below.
"""

import re
from collections import Counter

from symbolize.profile import Profile

FIELDS = "comm,pid,tid,time,period,event,ip,sym,dso"

SAMPLE = re.compile(r"(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+[\d.]+:\s+(?P<period>\d+) (?P<event>.+): *")
FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)")
NO_CODE = 4096
KERNEL_HALF = 1 << 63

Frame = tuple[int, str]
"""An address, in a file its offset there, and what it is in."""
Sample = tuple[str, int, int, str, tuple[Frame, ...]]


def samples_of_text(text: str) -> tuple[Counter[Sample], Counter[Sample], dict[Frame, str]]:
    """How often each sample is there, the sums of their periods, and the symbols of frames."""
    counts: Counter[Sample] = Counter()
    periods: Counter[Sample] = Counter()
    symbols: dict[Frame, str] = {}
    for block in text.strip("\n").split("\n\n"):
        head, *lines = block.split("\n")
        match = SAMPLE.fullmatch(head.strip() + " ")
        assert match is not None, head
        frames: list[Frame] = []
        for line in lines:
            found = FRAME.fullmatch(line)
            assert found is not None, line
            frame = int(found[1], 16), found[3]
            symbols[frame] = found[2]
            if frame[0] >= NO_CODE or not frames:
                frames.append(frame)
        key = match["comm"].strip(), int(match["pid"]), int(match["tid"]), match["event"].strip(), tuple(frames)
        counts[key] += 1
        periods[key] += int(match["period"])
    return counts, periods, symbols


def samples_of_profile(profile: Profile) -> tuple[Counter[Sample], Counter[Sample]]:
    """The same for a profile with the labels pid, tid and thread_comm. Callers are at their return addresses again."""
    counts: Counter[Sample] = Counter()
    periods: Counter[Sample] = Counter()
    text, samples, mappings = profile.strings.text, profile.samples, profile.mappings
    edges, labels = samples.location_offsets.tolist(), samples.label_offsets.tolist()
    events = [text(each.type).removesuffix("_sample") for each in profile.sample_types[::2]]
    for row, values in enumerate(samples.values.tolist()):
        here = range(labels[row], labels[row + 1])
        known = {text(samples.labels.key[i]): i for i in here}
        number = samples.labels.number
        pid, tid = (int(number[known[key]]) for key in ("pid", "tid"))
        comm = text(samples.labels.text[known["thread_comm"]]) if "thread_comm" in known else ""
        frames: list[Frame] = []
        was_kernel = False
        for depth, location in enumerate(samples.locations[edges[row] : edges[row + 1]].tolist()):
            mapping = int(profile.locations.mapping[location])
            name = text(mappings.filename[mapping])
            address = int(profile.locations.address[location])
            is_kernel = address >= KERNEL_HALF
            is_exact = depth == 0 or (was_kernel and not is_kernel)
            was_kernel = is_kernel
            address += not is_exact
            if name.startswith("/") and not name.startswith("/tmp/perf-"):
                address += int(mappings.file_offset[mapping]) - int(mappings.start[mapping])
            frames.append((address, "[kernel.kallsyms]" if name.startswith("[kernel") else name))
        for event, count, value in zip(events, values[::2], values[1::2], strict=True):
            if count:
                key = comm, pid, tid, event, tuple(frames)
                counts[key] += count
                periods[key] += value
    return counts, periods
