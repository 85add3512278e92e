"""What files are that hold no profile of a format read here, and which command makes one of them (R344, other
recordings)."""

import re
from typing import Final

from symbolize.core.errors import printable
from symbolize.core.file_kinds import known_kind
from symbolize.formats.folded.reader import has_two_counts, has_types

HAS_NAMES: Final = ", whose frames have names: "
GO_SERVER: Final = "the error message of a server of Go: "

TEXTS: Final = (
    (
        rb"goroutine \d+ \[",
        "stacks of goroutines as Go writes them with debug=2: fetch /debug/pprof/goroutine without debug",
    ),
    (rb"go 1\.\d+ trace\0", "an execution trace of Go, which is no profile: look at it with `go tool trace`"),
    (
        rb"(?:# callgrind format\s|(?:version: \d+\s+)?creator: )",
        f"output of Callgrind{HAS_NAMES}`callgrind_annotate` shows it",
    ),
    (rb"desc: [^\n]*\n+cmd: [^\n]*\n+time_unit:", f"output of Massif{HAS_NAMES}`ms_print` shows it"),
    (
        rb"v [0-9a-f]+(?: [0-9a-f]+)?\n[XI] ",
        "a recording of heaptrack: convert it with `heaptrack_print --print-flamegraph x.folded -f x.zst`",
    ),
    (
        rb"MOJ[\x01-\x0f]",
        "a recording of austin: convert it with `mojo2austin x.mojo x.folded` of austin-python",
    ),
    (
        rb"\x04\x08\{.:\x0cversion",
        "a dump of stackprof: fold it with `stackprof --stackcollapse x.dump > x.folded`",
    ),
    (rb"\xdc\xdfJSLB", "a profile of the Firefox Profiler in slabs (.jslb): save it as .json.gz"),
    (rb"v8-version,", f"a log of `node --prof`{HAS_NAMES}`node --prof-process x.log` shows it"),
    (rb"Flat profile:\n|Call graph \(explanation follows\)", "a report of gprof, which is no profile"),
    (rb"JOB \"[^\n]*\nDATE \"", "a heap profile of GHC, which has no stacks: `hp2ps x.hp` shows it"),
    (
        rb"\s*[^\n]*Time and Allocation Profiling Report",
        f"a report of GHC{HAS_NAMES}run with +RTS -pj and open the x.prof with speedscope",
    ),
    (
        rb"PeriodType: [^\n]*\n|(?:File: [^\n]*\n|Build ID: [^\n]*\n)*Type: \w+\n(?:Time|Duration|Showing|-{9})",
        "a report of `pprof`: give the profile that it was made of",
    ),
    (
        rb"(?:magic: SIMPLEPERF\n[^\n]*\n)?sample(?: \d+)?:\n\s+event_type",
        "text of `simpleperf report-sample`: give what it writes with --protobuf --show-callchain",
    ),
    (
        rb"Cmdline: [^\n]*\nArch: ",
        "output of `simpleperf report`: give what `simpleperf report-sample --protobuf --show-callchain` writes",
    ),
    (
        rb"\s*0x[0-9a-f]+(?:@[^\n]*)? \[0x[0-9a-f]+\]: event: \d+\n",
        "a dump of perf.data: give the file itself, or what `perf script` prints without -D",
    ),
    (
        rb"(?:Sampling at|Tracing) [^\n]* stack\b",
        "stacks of a tool of bcc: run it with -f, which folds them",
    ),
    (
        rb"\s*#[^\n]*\n(?:#[^\n]*\n)*#\s*(?:Samples:|Overhead\s)",
        "output of `perf report`: give what `perf script` prints",
    ),
    (
        rb"\s*(?:Attaching \d+ probes?\.\.\.\s+)?@\w*\[\s",
        "stacks of bpftrace: fold them with `stackcollapse-bpftrace.pl x.txt > x.folded`",
    ),
    (
        rb"CPU\s+ID\s+FUNCTION:NAME|\s*[\w.+-]+`[^\s`]+(?:\+0x[0-9a-f]+)?\n",
        "stacks of DTrace: fold them with `stackcollapse.pl x.txt > x.folded`",
    ),
    (rb"Analysis of sampling |Sampling process ", f"a report of `sample` on macOS{HAS_NAMES}open it with speedscope"),
    (rb"<\?xml[^>]*>\s*<trace-", f"an export of Instruments{HAS_NAMES}look at it with Instruments"),
    (
        rb"profile duration exceeds server's WriteTimeout",
        f"{GO_SERVER}ask for fewer ?seconds=, or give the server a longer WriteTimeout",
    ),
    (
        rb"Could not enable (?:CPU profiling|tracing)\b",
        f"{GO_SERVER}another one is recorded there, try again later",
    ),
    (
        rb"(?:4\d\d|5\d\d) [ -~]+|Unknown profile\b",
        "the error message of a server: check the URL that it came from",
    ),
)
"""How texts begin, as patterns, and what they are."""

IN_BROWSER: Final = "open it in the browser's developer tools"

JSON: Final = (
    (rb'"\$schema"\s*:\s*"https?://www\.speedscope\.app/', f"a file of speedscope{HAS_NAMES}open it with speedscope"),
    (rb'"linux-perf-json-version"\s*:', "perf.data as JSON: give the file itself, or what `perf script` prints"),
    (rb'"node_fields"\s*:', f"a heap snapshot of V8, whose objects have names: {IN_BROWSER}"),
    (rb'"selfSize"\s*:', f"a heap profile of V8{HAS_NAMES}{IN_BROWSER}"),
    (rb'"(?:hitCount|callFrame|callUID)"\s*:', f"a CPU profile of V8{HAS_NAMES}{IN_BROWSER}"),
    (rb'"timeline-record-type-|"sampleStackTraces"\s*:', f"a recording of Safari{HAS_NAMES}open it with speedscope"),
    (
        rb'"gc_samples"\s*:',
        "a profile of stackprof: fold its dump with `stackprof --stackcollapse x.dump > x.folded`",
    ),
    (rb'"cost_centres"\s*:', f"a profile of GHC{HAS_NAMES}open it with speedscope"),
    (rb'"(?:traceEvents|ph)"\s*:', "a trace of Chrome as JSON, which has names: open it with ui.perfetto.dev"),
)
"""What JSON contains, and what it is."""

JSON_STARTS: Final = (b"{", b"[{", b"[\n", b"[ ", b'["')
HTML: Final = re.compile(rb"\s*<(?:!doctype html|html|head)\b", re.IGNORECASE)
TITLE: Final = re.compile(rb"<title[^>]*>\s*([^<]{1,80})", re.IGNORECASE)

ELF: Final = b"\x7fELF"
ELF_TYPE: Final = 16
ET_CORE: Final = 4
BIG_ENDIAN: Final = 2

DESCRIBED: Final = 4096
"""Bytes that decide what an unknown input is called."""


def describe(data: bytes | memoryview) -> str:
    """What data of no known profile format looks like, for a person, and behind a colon what to do with it."""
    head = bytes(data[:DESCRIBED])
    if head.startswith(ELF):
        return _elf(head)
    if known := known_kind(head):
        return known
    for pattern, what in TEXTS:
        if re.match(pattern, head):
            return what
    if HTML.match(head):
        title = TITLE.search(head)
        shown = f" with the title {printable(title[1].strip().decode('utf-8', 'replace'))!r}" if title else ""
        return f"an HTML page{shown}: a server sent it instead of a profile"
    if not any(head):
        return "nothing but zeros"
    return _text(head, bytes(data))


def _elf(head: bytes) -> str:
    """What an ELF file is."""
    is_big = head[5:6] == bytes([BIG_ENDIAN])
    kind = int.from_bytes(head[ELF_TYPE : ELF_TYPE + 2], "big" if is_big else "little")
    if kind == ET_CORE:
        return "a core file, which is one moment and no profile: `gdb PROGRAM x.core` shows its stacks"
    return "an ELF binary"


def _text(head: bytes, data: bytes) -> str:
    """What a text without a known beginning is, or what is none. Of JSON all of `data` counts: keys have no order."""
    try:
        # A character may be cut in two at the end of the head.
        text = head.decode("utf-8") if len(head) < DESCRIBED else head[:-4].decode("utf-8", "ignore")
    except UnicodeDecodeError:
        return "random data"
    if len(text.encode()) < len(head) - 8 or any(each < " " and each not in "\t\n\r\f\x1b" for each in text):
        return "random data"
    if has_two_counts(head):
        return "the difference of two recordings as folded stacks: give one of the two recordings"
    if has_types(head):
        return "folded stacks with several counts: give the profile that they were made of"
    if not head.lstrip().startswith(JSON_STARTS):
        return "a text file"
    return next((what for pattern, what in JSON if re.search(pattern, data)), "JSON")
