"""What files are that hold nothing that is read here, by their first bytes."""

from typing import Final

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
    (b"!<arch>\ndebian-binary", "a Debian package: `dpkg-deb -x x.deb folder` unpacks it"),
    (b"!<arch>\n", "a static library, whose code has no addresses yet"),
    (b"\xed\xab\xee\xdb", "an RPM package: `rpm2cpio x.rpm | cpio -id` unpacks it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it"),
    (b"Rar!", "a rar archive: unpack it"),
    (b"%PDF-", "a PDF file"),
    (b"\x89PNG", "a picture"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"memray", "a recording of memray, whose frames have names: `memray flamegraph` shows it"),
    (b"version https://git-lfs.github.com/spec/", "a pointer of git-lfs to the file: `git lfs pull` fetches it"),
    (b"gmon\1\0\0\0", "data of gprof, which has no stacks: `gprof PROGRAM gmon.out` shows it"),
    (b"gmon\0\0\0\1", "data of gprof, which has no stacks: `gprof PROGRAM gmon.out` shows it"),
    (b"Nettrace", "a trace of .NET: `dotnet-trace convert --format Speedscope x.nettrace` makes what speedscope opens"),
    (b"hdrbhetb", "an event log of GHC, whose events have names: `eventlog2html x.eventlog` shows it"),
    (b"num_symbols:", "the answer of /pprof/symbol: fetch /pprof/profile or /pprof/heap"),
)
"""How files begin, and what they are."""

TAR: Final = b"ustar"
TAR_OFFSET: Final = 257
HEAD: Final = TAR_OFFSET + len(TAR)
"""Bytes that decide."""


def known_kind(head: bytes) -> str:
    """What a file is that begins so, and behind a colon what to do with it; empty if that is not known."""
    if head[TAR_OFFSET:].startswith(TAR):
        return "a tar archive: unpack it"
    return next((what for magic, what in MAGIC if head.startswith(magic)), "")
