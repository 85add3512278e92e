"""What recorded names of mappings say is mapped: a file, or memory that no file is in.

The kernel, recorders and converters spell the same memory in several ways. This is the one place that knows them (R453,
memory without a file).
"""

import re
from enum import IntEnum
from typing import Final


class Mapped(IntEnum):
    """What is mapped, by the recorded name."""

    FILE = 0
    NAMELESS = 1
    """There is no name."""
    ANONYMOUS = 2
    """Memory without a file: executable, it holds code that was made at run time."""
    SHARED = 3
    """Memory that has a name of its own, and may be a copy of a file."""
    LISTED = 4
    """Code that was made at run time, called after the file that lists it."""
    CODE_CACHE = 5
    """Code that Android's runtime compiled, as simpleperf calls it."""
    INJECTED = 6
    """The file that `perf inject` made of a function that was compiled at run time."""
    VDSO = 7
    DEVICE = 8
    OTHER = 9
    """Other names in brackets: the kernel, its modules, types of frames."""


_ENDINGS: Final = (" (deleted)", "\\040(deleted)")
_JOINED: Final = re.compile(r"/(?=\[|anon_inode:)")
"""What Perfetto's trace processor puts before all names, whose parts between slashes it joins anew."""
_JOINED_ANON: Final = "/anon"
_PATTERNS: Final = (
    (Mapped.INJECTED, r"(?:.*/)?jitted-\d+-\d+\.so"),
    (Mapped.LISTED, r"(?:.*/)?perf-\d+\.map|(?:.*/)?jit[^/]*\.dump|\[JIT\] tid \d+"),
    (Mapped.CODE_CACHE, r"\[JIT .*|(?:.*/)?TemporaryFile-[^/]*|.*_jit_(?:app|zygote)_cache:.*"),
    (Mapped.ANONYMOUS, r"//anon.*|\[anon\b.*|\[heap\]|\[stack.*|\[unknown\]|/dev/zero.*|/anon_hugepage.*|/SYSV.*"),
    (Mapped.SHARED, r"/memfd:.*|anon_inode:?.*|/dev/ashmem/.*"),
    (Mapped.VDSO, r"\[vdso(?:32|x32|64)?\]|linux-vdso.*|linux-gate.*"),
    (Mapped.DEVICE, r"/dev/.*"),
    (Mapped.OTHER, r"\[.*"),
)
_NAMES: Final = re.compile("|".join(f"({pattern})" for _, pattern in _PATTERNS), re.DOTALL)
_SPECIAL: Final = ("//", "/[", "/anon", "/dev/", "/memfd:", "/SYSV")
_SPECIAL_BASES: Final = ("perf-", "jit", "TemporaryFile-")
_CACHE: Final = "_jit_"
"""How all paths but those of files begin, their last parts, and what is in the others."""
KERNEL: Final = r"\[(?P<guest>guest\.)?kernel(?:\.kallsyms|\.vmlinux)?(?:\.\d+)?\](?P<anchor>[A-Za-z_]\w*)?"
"""What perf calls the kernel. The name of a symbol behind the brackets is what its mapping begins at."""
_KERNEL: Final = re.compile(KERNEL)
KERNEL_NAME: Final = re.compile(KERNEL + r"|(?:.*/)?vmlinux(?:-(?P<release>[^/]*?))?(?:\.debug)?|/proc/kcore")
"""What a kernel is called in profiles."""
_RELEASE: Final = re.compile(r"(?:^|/)(?:lib/modules|usr/lib/modules|usr/lib/debug/lib/modules)/([^/]+)/")
_WINDOWS: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_FOREIGN: Final = re.compile(r"\.(?:dll|exe|sys|pdb|dylib)\Z|\.framework/|\.app/Contents/", re.IGNORECASE)

FILES: Final = (Mapped.FILE, Mapped.INJECTED)
RUN_TIME: Final = (
    Mapped.NAMELESS,
    Mapped.ANONYMOUS,
    Mapped.SHARED,
    Mapped.LISTED,
    Mapped.CODE_CACHE,
    Mapped.INJECTED,
)
"""What may hold code that was made at run time."""


def plain_spelling(name: str) -> str:
    """A recorded name as the kernel spells it: `[heap]` for `/[heap]`, `//anon` for `/anon`."""
    if name == _JOINED_ANON:
        return "/" + name
    return name[1:] if _JOINED.match(name) else name


def mapped_by(name: str | bytes) -> Mapped:
    """What is mapped under a recorded name.

    Perfetto joins the parts of all names by slashes: `/[heap]` is `[heap]`, `/anon` is `//anon` (R453, memory without a
    file).
    """
    text = name if isinstance(name, str) else name.decode("latin-1")
    base = text[text.rfind("/") + 1 :]
    if text[:1] == "/" and not (text.startswith(_SPECIAL) or base.startswith(_SPECIAL_BASES) or _CACHE in text):
        return Mapped.FILE  # as nearly all are
    text = plain_spelling(text)
    for ending in _ENDINGS:
        text = text.removesuffix(ending)
    if not text:
        return Mapped.NAMELESS
    match = _NAMES.fullmatch(text)
    return _PATTERNS[match.lastindex - 1][0] if match is not None and match.lastindex else Mapped.FILE


def is_no_file(name: str | bytes) -> bool:
    """Whether a recorded name denotes memory without a file; no name denotes nothing."""
    return mapped_by(name) not in (*FILES, Mapped.NAMELESS)


def is_foreign(name: str) -> bool:
    """Whether a recorded name is that of a program or library of Windows or macOS."""
    return _WINDOWS.match(name) is not None or _FOREIGN.search(name) is not None


def base_name(path: str) -> str:
    """The last part of a recorded path, of one of Windows too."""
    return re.split(r"[\\/]", path)[-1] if _WINDOWS.match(path) else path.rpartition("/")[2]


def module_name(path: str) -> str:
    """What frames are shown to be in, by the recorded path of their mapping: its last part, and `[kernel]` for each
    spelling of the kernel, but not of its modules (R480, name of the kernel)."""
    match = _KERNEL.fullmatch(path)
    if match is None:
        return base_name(path)
    return "[guest.kernel]" if match["guest"] else "[kernel]"


def release_in(filename: str) -> str:
    """The release of the kernel in a recorded path of a module or of vmlinux; empty if it has none."""
    if match := _RELEASE.search(filename):
        return match[1]
    match = KERNEL_NAME.fullmatch(filename)
    return (match["release"] or "") if match else ""
