"""What files are that hold no profile of a format read here, and which command makes one of them (R344, other
recordings)."""

import re
from typing import Final

from symbolize.core.errors import printable
from symbolize.load.legacy.folded import has_two_counts

MAGIC: Final = (
    (b"FLR\0", "a Java flight recording: convert it with `jfrconv -o pprof x.jfr x.pb.gz` of async-profiler"),
    (b"JAVA PROFILE 1.0.", "a heap dump of Java, which has no addresses: open it with Eclipse MAT"),
    (b"MDMP", "a minidump, which is one moment and no profile: `minidump-stackwalk x.dmp SYMBOLS` shows its stacks"),
    (b"MZ", "a Windows program"),
    (b"\xfe\xed\xfa\xce", "a Mach-O binary, which is not read"),
    (b"\xfe\xed\xfa\xcf", "a Mach-O binary, which is not read"),
    (b"\xce\xfa\xed\xfe", "a Mach-O binary, which is not read"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O binary, which is not read"),
    (b"\xca\xfe\xba\xbe\0\0\0\x02", "a Mach-O binary for several machines, which is not read"),
    (b"\xca\xfe\xba\xbe", "a Java class"),
    (b"\xfd7zXZ\x00", "xz compressed, which is not read: unpack it with `xz -d`"),
    (b"BZh", "bzip2 compressed, which is not read: unpack it with `bzip2 -d`"),
    (b"PK\x03\x04", "a zip archive: unpack it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it"),
    (b"Rar!", "a rar archive: unpack it"),
    (b"%PDF-", "a PDF file"),
    (b"\x89PNG", "a picture"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"memray", "a recording of memray, whose frames have names: `memray flamegraph` shows it"),
    (b"version https://git-lfs.github.com/spec/", "a pointer of git-lfs to the file: `git lfs pull` fetches it"),
    (b"num_symbols:", "the answer of /pprof/symbol: fetch /pprof/profile or /pprof/heap"),
)
"""How files begin, and what they are."""

HAS_NAMES: Final = ", whose frames have names: "

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
        rb"(?:4\d\d|5\d\d) [ -~]+|Unknown profile\b|Could not enable CPU profiling\b",
        "the error message of a server: check the URL that it came from",
    ),
)
"""How texts begin, as patterns, and what they are."""

JSON: Final = (
    (rb'"\$schema"\s*:\s*"https?://www\.speedscope\.app/', f"a file of speedscope{HAS_NAMES}open it with speedscope"),
    (rb'"callFrame"\s*:', f"a CPU profile of V8{HAS_NAMES}open it in the browser's developer tools"),
    (rb'"preprocessedProfileVersion"\s*:', "a file of the Firefox Profiler: open it with `samply load x.json`"),
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
TAR: Final = b"ustar"
TAR_OFFSET: Final = 257

DESCRIBED: Final = 4096
"""Bytes that decide what an unknown input is called."""


def describe(data: bytes | memoryview) -> str:
    """What data of no known profile format looks like, for a person, and behind a colon what to do with it."""
    head = bytes(data[:DESCRIBED])
    if head.startswith(ELF):
        return _elf(head)
    for magic, what in MAGIC:
        if head.startswith(magic):
            return what
    if head[TAR_OFFSET:].startswith(TAR):
        return "a tar archive: unpack it"
    for pattern, what in TEXTS:
        if re.match(pattern, head):
            return what
    if HTML.match(head):
        title = TITLE.search(head)
        shown = f" with the title {printable(title[1].strip().decode('utf-8', 'replace'))!r}" if title else ""
        return f"an HTML page{shown}: a server sent it instead of a profile"
    if not any(head):
        return "nothing but zeros"
    return _text(head)


def _elf(head: bytes) -> str:
    """What an ELF file is."""
    is_big = head[5:6] == bytes([BIG_ENDIAN])
    kind = int.from_bytes(head[ELF_TYPE : ELF_TYPE + 2], "big" if is_big else "little")
    if kind == ET_CORE:
        return "a core file, which is one moment and no profile: `gdb PROGRAM x.core` shows its stacks"
    return "an ELF binary"


def _text(head: bytes) -> str:
    """What a text without a known beginning is, or what is none."""
    try:
        # A character may be cut in two at the end of the head.
        text = head.decode("utf-8") if len(head) < DESCRIBED else head[:-4].decode("utf-8", "ignore")
    except UnicodeDecodeError:
        return "random data"
    if len(text.encode()) < len(head) - 8 or any(each < " " and each not in "\t\n\r\f\x1b" for each in text):
        return "random data"
    if has_two_counts(head):
        return "the difference of two recordings as folded stacks: give one of the two recordings"
    if not head.lstrip().startswith(JSON_STARTS):
        return "a text file"
    return next((what for pattern, what in JSON if re.search(pattern, head)), "JSON")
