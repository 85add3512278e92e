"""What recorded names say is mapped (R453, memory without a file)."""

import pytest

from symbolize.core.mapped_names import (
    RUN_TIME,
    Mapped,
    base_name,
    is_foreign,
    is_no_file,
    mapped_by,
    module_name,
    plain_spelling,
)

SPELLINGS = [
    ("/lib/x.so", Mapped.FILE),
    ("app", Mapped.FILE),
    ("/lib/x.so (deleted)", Mapped.FILE),
    (r"C:\Program Files\Chrome\chrome.dll", Mapped.FILE),
    ("/home/perf-1.mapping", Mapped.FILE),
    ("/anonymous", Mapped.FILE),
    ("/opt/jit/x.so", Mapped.FILE),
    ("", Mapped.NAMELESS),
    ("//anon", Mapped.ANONYMOUS),
    ("/anon", Mapped.ANONYMOUS),
    ("[anon:dart-code]", Mapped.ANONYMOUS),
    ("/[anon:dart-code]", Mapped.ANONYMOUS),
    ("[anon]", Mapped.ANONYMOUS),
    ("[heap]", Mapped.ANONYMOUS),
    ("/[heap]", Mapped.ANONYMOUS),
    ("[stack:12]", Mapped.ANONYMOUS),
    ("[unknown]", Mapped.ANONYMOUS),
    ("/dev/zero (deleted)", Mapped.ANONYMOUS),
    ("/anon_hugepage (deleted)", Mapped.ANONYMOUS),
    ("/SYSV00000000", Mapped.ANONYMOUS),
    ("/memfd:jit-cache (deleted)", Mapped.SHARED),
    ("anon_inode:[perf_event]", Mapped.SHARED),
    ("/anon_inode:[perf_event]", Mapped.SHARED),
    ("/dev/ashmem/dalvik", Mapped.SHARED),
    ("/tmp/perf-12.map", Mapped.LISTED),
    ("perf-12.map", Mapped.LISTED),
    ("/tmp/.debug/jit/jit-12.dump", Mapped.LISTED),
    ("[JIT] tid 812", Mapped.LISTED),
    ("[JIT app cache]", Mapped.CODE_CACHE),
    ("./TemporaryFile-abcd", Mapped.CODE_CACHE),
    ("/memfd:x_jit_zygote_cache:7", Mapped.CODE_CACHE),
    ("/tmp/jitted-12-3.so", Mapped.INJECTED),
    ("[vdso]", Mapped.VDSO),
    ("/[vdso]", Mapped.VDSO),
    ("[vdso32]", Mapped.VDSO),
    ("linux-vdso.so.1", Mapped.VDSO),
    ("linux-gate.so.1", Mapped.VDSO),
    ("/dev/dri/card0", Mapped.DEVICE),
    ("[kernel.kallsyms]", Mapped.OTHER),
    ("[nf_tables]", Mapped.OTHER),
]


@pytest.mark.parametrize(("name", "kind"), SPELLINGS)
def test_spellings(name: str, kind: Mapped) -> None:
    """Each spelling of the kernel, recorders and converters is known, as text and as bytes."""
    assert mapped_by(name) is kind
    assert mapped_by(name.encode()) is kind
    assert mapped_by(plain_spelling(name)) is kind
    assert is_no_file(name) == (kind not in (Mapped.FILE, Mapped.INJECTED, Mapped.NAMELESS))


def test_run_time_code() -> None:
    """Files and the vdso hold none that was made at run time."""
    assert {kind for _, kind in SPELLINGS} - set(RUN_TIME) == {Mapped.FILE, Mapped.VDSO, Mapped.DEVICE, Mapped.OTHER}


@pytest.mark.parametrize(
    ("path", "name", "foreign"),
    [
        ("/lib/x.so", "x.so", False),
        (r"C:\Program Files\a\chrome.dll", "chrome.dll", True),
        (r"\\server\share\x.exe", "x.exe", True),
        ("C:/a/x", "x", True),
        (r"/tmp/odd\name", r"odd\name", False),
        ("/usr/lib/libSystem.dylib", "libSystem.dylib", True),
        ("/System/Library/Frameworks/AppKit.framework/AppKit", "AppKit", True),
        ("/opt/wine/ntdll.dll", "ntdll.dll", True),
        ("/opt/wine/ntdll.dll.so", "ntdll.dll.so", False),
        ("x.so", "x.so", False),
    ],
)
def test_paths(path: str, name: str, foreign: bool) -> None:
    """Paths of Windows are separated by backslashes; others may have them in names."""
    assert base_name(path) == name
    assert is_foreign(path) is foreign


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("[kernel]", "[kernel]"),
        ("[kernel.kallsyms]", "[kernel]"),
        ("[kernel.kallsyms]_text", "[kernel]"),
        ("[kernel.kallsyms]_stext", "[kernel]"),
        ("[kernel.vmlinux]", "[kernel]"),
        ("[guest.kernel.kallsyms.123]_text", "[guest.kernel]"),
        ("[nf_conntrack]", "[nf_conntrack]"),
        ("/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko", "ext4.ko"),
        ("/usr/bin/[kernel]", "[kernel]"),
        ("", ""),
    ],
)
def test_modules(path: str, name: str) -> None:
    """The kernel has one name, however it was recorded; its modules keep theirs (R480, name of the kernel)."""
    assert module_name(path) == name
