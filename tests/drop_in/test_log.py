"""`symbolize log` puts names into stack traces and leaves everything else as it is."""

import json
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from symbolize.drop_in.binaries import Binaries, Places
from symbolize.drop_in.log import Log
from symbolize.drop_in.log.forms import ADDRESS, LONGEST, SEASTAR_LINES, At, frames_of
from symbolize.drop_in.log.modules import TextModules
from symbolize.drop_in.log.text import (
    ALL_FORMS,
    HELD,
    LONGEST_WAIT,
    MARKERS,
    FoundFrame,
    frames_in,
    line_end,
    seastar_frames,
)
from symbolize.elf import ElfImage, inside_calls
from tests.support.drop_ins import SPECTRA, Output, other, own
from tests.support.elf_writer import ALLOC, ET_EXEC, EXEC, Section, Segment, Symbol, elf_file
from tests.support.fixture_files import FIXTURES
from tests.support.needs import find

BUILD_ID = "fddfb64b84f1b9151c2c4bfbd662e7eb392cb1d0"
MAIN = 0x2340
"""Where `main` of SPECTRA begins."""
HEADER = "/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/std_function.h"
INNER = f"std::function<double (double)>::function<main::$_1, void>(main::$_1&&) {HEADER}:452:19"
OUTER = "main /src/spectra/main.cc:116:22"


class Command:
    """`symbolize log`, in this process."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], patch: pytest.MonkeyPatch, cache: Path) -> None:
        self._capture, self._patch, self._cache = capture, patch, cache

    def __call__(self, lines: bytes | None, *words: str) -> Output:
        return own(["log", "--cache", str(self._cache), *words], lines, self._capture, self._patch)


@pytest.fixture
def log(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """The command under test."""
    return Command(capfdbinary, monkeypatch, tmp_path / "cache")


def return_addresses(path: Path, begin: int = MAIN, end: int = 0x2900) -> list[int]:
    """The addresses in a part of a file, by default `main` of SPECTRA, that calls return to, ascending."""
    with ElfImage.open(path) as image:
        places = np.arange(begin, end, dtype=np.uint64)
        calls = inside_calls(image, places)
        assert calls is not None
        inside = {int(place) for place, is_call in zip(places, calls, strict=True) if is_call}
    return sorted(place for place in inside if {place - 1, place - 5} <= inside)


def test_sanitizer(log: Command, tmp_path: Path) -> None:
    """A frame gets its names, with a line of its own for each inlined function; its address is in the call already
    (R385, addresses in texts)."""
    text = (
        "==1==ERROR: AddressSanitizer: \x00\xff weird\r\n"
        f"    #1 0x55d0c23d1  (/srv/spectra+0x23d1) (BuildId: {BUILD_ID})\n"
        "    #2 0x55d0c23d1  (/srv/spectra+0x23d1) (BuildId: 00112233)\n"
        "    #3 0x55d0c23d1 in already file.cc:1:2\n"
        f"    #4 0x1  (/srv/spectra+0x1) (BuildId: {BUILD_ID})\r\n"
        "no end"
    ).encode("latin-1")
    found = log(text, "-b", str(SPECTRA.parent))
    lines = text.split(b"\n")
    expected = [lines[0], *(f"    #1 0x55d0c23d1 in {each}".encode() for each in (INNER, OUTER)), *lines[2:]]
    assert found.out.split(b"\n") == expected
    assert found.code == 0


@pytest.mark.needs("llvm-symbolizer-19")
def test_glibc(log: Command, tmp_path: Path) -> None:
    """The line of the call is taken, not that of the instruction behind it, which a return address is of (R385,
    addresses in texts)."""
    address = return_addresses(SPECTRA)[0]
    line = f"./spectra(+{address:#x}) [0x5555{address:08x}]"
    reference = own_line(address - 1)
    found = log(f"{line}\n./spectra(main+0x92)[0x55550000023d2]\n".encode(), "-b", str(SPECTRA.parent))
    first, second = found.out.decode().splitlines()
    assert first.startswith(f"{line} ") and first.endswith(f" at {reference}")
    assert second == f"./spectra(main+0x92)[0x55550000023d2] {INNER} (inlined by) {OUTER}".replace(
        " /usr", " at /usr"
    ).replace(" /src", " at /src")
    assert found.err.count(b"found by its name only") == 1


@pytest.mark.parametrize("symbol", ["", "main"])
def test_address_of_another_build(symbol: str, log: Command) -> None:
    """Where the address in brackets is at another offset in its page than the frame would be in the file, the file is
    not the one that ran (R386, files of texts)."""
    vaddr = return_addresses(SPECTRA)[0]
    offset = vaddr - MAIN if symbol else vaddr
    for address, is_named in ((0x555500000000 + vaddr, True), (0x555500000001 + vaddr, False), (0, False)):
        line = f"./spectra({symbol}+{offset:#x}) [{address:#x}]".encode()
        assert (log(line, "-b", str(SPECTRA.parent)).out != line) == is_named


def own_line(vaddr: int) -> str:
    """File, line and column of the outermost function at an address of SPECTRA, as llvm-symbolizer has them."""
    return other([find("llvm-symbolizer-19"), f"--obj={SPECTRA}", hex(vaddr)]).out.decode().split("\n")[-3]


def test_name_alone_needs_a_call(log: Command) -> None:
    """Without a build id an address that is behind no call, or in another page, is another build's: the line stays."""
    address = return_addresses(SPECTRA)[0]
    text = (
        f"./spectra(+{address - 2:#x}) [0x5555{address - 2:08x}]\n./spectra(+{address:#x}) [0x555500000001]\n".encode()
    )
    assert log(text, "-b", str(SPECTRA.parent)).out == text


def test_kernel(log: Command, tmp_path: Path) -> None:
    """Functions are found by name and size, modules by their names; where the kernel stopped the address itself is
    looked up, else the one before it (R385, addresses in texts)."""
    shutil.copy(SPECTRA, tmp_path / "vmlinux")
    shutil.copy(SPECTRA, tmp_path / "snd-usb.ko")
    names = f"{INNER} (inlined by) {OUTER}".replace(" /usr", " at /usr").replace(" /src", " at /src")
    lines = [
        ("[   12.3] RIP: 0010:main+0x91/0x5d0", names),
        ("[   12.3]  main+0x92/0x5d0", names),
        ("[   12.3]  ? main+0x92/0x5d0 [snd_usb]", names),
        ("pc : main+0x91/0x5d0", names),
        ("[   12.3]  main+0x92/0x900", ""),
        ("[   12.3]  main+0x92/0x5c3", ""),  # the kernel counts up to the next function
        ("[   12.3]  main+0x92/0x5d0 [other]", ""),
        ("[   12.3]  nosuch+0x92/0x5d0", ""),
        ("[<ffffffff81234567>] 0xffffffff81234567", ""),
    ]
    found = log("".join(f"{line}\n" for line, _ in lines).encode(), "-b", str(tmp_path))
    assert found.out.decode().splitlines() == [f"{line} {more}".rstrip() for line, more in lines]


CALL, RETURN = 0x2381, 0x2382
"""The last byte of a call in `main`, and where that returns to."""
CALLED = INNER.replace("$_1", "$_0"), OUTER.replace("116", "115")
AT = " (inlined by) ".join(CALLED).replace(" /usr", " at /usr").replace(" /src", " at /src")
BASE = 0x555555554000
"""Where SPECTRA is in memory."""
UUID = "FDDFB64B-84F1-B915-1C2C-4BFBD662E7EB-392CB1D0"


def maps() -> str:
    """What /proc/PID/maps has of the code of SPECTRA."""
    with ElfImage.open(SPECTRA) as image:
        code = next(each for each in image.segments if each.executable)
    start, offset = BASE + (code.vaddr & ~0xFFF), code.file_offset & ~0xFFF
    end = BASE + ((code.vaddr + code.memory_size + 0xFFF) & ~0xFFF)
    return f"{start:x}-{end:x} r-xp {offset:08x} 08:01 1234                       /srv/spectra\n"


FORMS = {
    "Android": f"  #01 pc 0000000000002381  /data/spectra (main+65) (BuildId: {BUILD_ID})|\n",
    "Android in an archive": f"F DEBUG   :     #00 pc 0000000000002381  /a.apk!spectra (offset 0x1000)"
    f" (BuildId: {BUILD_ID})|\n",
    "PyTorch": f"frame #1: <unknown function> + 0x2382 ({BASE + RETURN:#x} in /srv/spectra)|\n",
    "PyTorch with a symbol": f"frame #1: main + 0x42 ({BASE + RETURN:#x} in /srv/spectra)|\n",
    "error of PyTorch": "#7 ?? from /srv/spectra:9089|\n#8 f(a, b)::{lambda()#1} from /srv/spectra:9089|\n"
    "#9 main from /src/spectra/main.cc:115\n#10 ?? from ??:0\n",
    "Python": f'  Binary file "/srv/spectra", at +0x2382 [{BASE + RETURN:#x}]|\n',
    "Python with a symbol": f'  Binary file "/srv/spectra", at main+0x42 [{BASE + RETURN:#x}]|\n',
    "JVM": "C  [spectra+0x2382]|\nJ 12 c2 A.b()V\nC  [spectra+0x2382]  main+0x42|\n",
    "systemd-coredump": f"Module /srv/spectra with build-id {BUILD_ID}\n"
    f"#0  0x{BASE + CALL:016x} n/a (spectra + 0x2381)|\n#1  0x{BASE + RETURN:016x} main (spectra + 0x2382)|\n",
    "lldb": f"  * frame #0: 0x{BASE + CALL:016x} spectra`___lldb_unnamed_symbol18 + 4|\n"
    f"    frame #1: 0x{BASE + RETURN:016x} spectra|\n(lldb) image list\n[  0] {UUID} 0x{BASE:016x} /srv/spectra \n",
    "gdb": f"#0  0x{BASE + CALL:016x} in ?? ()|\n#1  <signal handler called>\n#2  0x{BASE + CALL:016x} in ?? ()|\n"
    f"#3  0x{BASE + RETURN:016x} in main () from /srv/spectra|\nBuild ID: {BUILD_ID}\n"
    f"Module /srv/spectra with build-id {BUILD_ID}\n[maps]",
    "Rust": f"[maps]   0:     {BASE + RETURN:#x} - <unknown>|\n",
    "Go": f"Module /srv/spectra with build-id {BUILD_ID}\nPC={BASE + CALL:#x}| m=0 sigcode=1\n"
    f"non-Go function\n\tpc={BASE + RETURN:#x}|\n[maps]",
    "address": f"[maps]stack:\n        {BASE + CALL:x}?\n        {BASE + RETURN:x}|\n        0x{BASE + RETURN:x}|\n",
    "seastar": f"App with build-id {BUILD_ID}\nReactor stalled. Backtrace: 0x2381[] /x/spectra+0x2381[]\n"
    "Backtrace:\n  0x2381[]\n  0x2381[]\nno 0x2381\n",
    "kernel": f"CPU: 1 PID: 2 Comm: x Not tainted 6.1 #1 {BUILD_ID}\n main+0x42/0x5d0|\n",
    "kernel with its kind of preemption": f"CPU: 1 PID: 2 Comm: x Tainted: G W 6.16 #1 PREEMPT(lazy)  {BUILD_ID}\n"
    " main+0x42/0x5d0|\n",
}


STOPPED = (
    "RIP: 0010:{}",
    "RIP: 0010:[<ffffffff81234567>]  [<ffffffff81234567>] {}",
    "RIP  [<ffffffff81234567>] {}",
    "EIP is at {}",
    "IP: [<ffffffff81234567>] {}",
    "NIP [c0000000007f0ac4] {}",
    "--- interrupt: 300 at {}",
    "--- Exception: c01 (System Call) at {}",
    "pc : {}",
    "PC is at {}",
    "epc : {}",
    "epc   : ffffffff80234567 {}",
    "  ERA: 9000000000223344 {}",
    "Krnl PSW : 0704c00180000000 000000000012ab34 ({})",
    "Last Breaking-Event-Address:\n [<000000000012ab34>] {}",
    " IAOQ[1]: {}",
    "TPC: <{}>",
    "PC: [<00012344>] {}",
    "[ERET  ]: {}",
    "NMI backtrace for cpu 1 skipped: idling at {}",
    "BUG: KFENCE: use-after-free read in {}",
    " {} (P)",
    "WARNING: CPU: 0 PID: 9 at kernel/x.c:12 {}",
    "WARNING: CPU: 0 PID: 9 at {}",
    "WARNING: kernel/x.c:12 at {}, CPU#0: sh/9",
)
RETURNS = (
    " {}",
    " ? {}",
    "lr : {}",
    " ra : {}",
    "LR [c0000000007f0ac4] {}",
    " [<ffffffff80002222>] {}",
    "BUG: KASAN: use-after-free in {}",
    "(show_stack+0x0/0x14) from [<c000d5d0>] ({})",
    "alice-PC kernel:  {}",
    "WARNING: at kernel/x.c:12 {}()",
    "WARNING: can't access registers at {}",
)


BEHIND = "std_function.h:252"
"""What is in the names of the code behind the call."""


def kernel_names(log: Command, lines: Sequence[str], folder: Path) -> list[str]:
    """What the names of `main+0x1e3/0x5d0` in each line of a text are."""
    texts = [line.format("main+0x1e3/0x5d0|") for line in lines]
    found = log("\n".join(texts).replace("|", "").encode(), "-b", str(folder)).out.decode()
    pattern = "\n".join(re.escape(text).replace(r"\|", "(.*)") for text in texts)
    match = re.fullmatch(pattern, found)
    assert match is not None
    return list(match.groups())


def test_where_the_kernel_stopped(log: Command, tmp_path: Path) -> None:
    """Behind a call other code follows: what a machine prints of the place where it stopped, or warned, is looked up
    as it is, all others in the call (R510, addresses of each form)."""
    shutil.copy(SPECTRA, tmp_path / "vmlinux")
    exact, called = (kernel_names(log, lines, tmp_path) for lines in (STOPPED, RETURNS))
    assert exact == [exact[0]] * len(STOPPED)
    assert called == [called[0]] * len(RETURNS)
    assert BEHIND in exact[0] and "main" in called[0] and BEHIND not in called[0]


def test_backtrace_from_where_the_kernel_stopped(log: Command, tmp_path: Path) -> None:
    """A backtrace may begin with the place where the kernel stopped; the link register, and other backtraces, may have
    the same address, and return to it (R510, addresses of each form)."""
    shutil.copy(SPECTRA, tmp_path / "vmlinux")
    found = kernel_names(log, ["pc : {}", "lr : {}", "Call trace:\n {}", "freed by:\n {}"], tmp_path)
    assert [BEHIND in each for each in found] == [True, False, True, False]
    assert BEHIND not in kernel_names(log, [" {}"], tmp_path)[0]


def test_calls_that_the_kernel_replaced(log: Command, tmp_path: Path) -> None:
    """The kernel makes its calls of other code while it runs, so that a return address may be behind no call of the
    file: it is looked up in front of that nevertheless (R385, addresses in texts)."""
    shutil.copy(SPECTRA, tmp_path / "vmlinux")
    line = f"CPU: 1 PID: 2 Comm: x Not tainted 6.1 #1 {BUILD_ID}\n main+0x33/0x5d0"
    assert (
        f"{line} std::_Function_base::_Function_base() at {HEADER}:252:30"
        in log(line.encode(), "-b", str(tmp_path)).out.decode()
    )


@pytest.mark.parametrize(
    ("machine", "line", "is_exact"), [("ARM", -3, False), ("PPC64", -3, True), ("SPARCV9", 0, True)]
)
def test_machines_of_kernels(machine: str, line: int, is_exact: bool, log: Command, tmp_path: Path) -> None:
    """ARM warns by a call, PowerPC by a trap; SPARC keeps the address of the call (R510, addresses of each form)."""
    data = bytearray(SPECTRA.read_bytes())
    number = {"ARM": 40, "PPC64": 21, "SPARCV9": 43}[machine]
    data[18:20] = number.to_bytes(2, "little")  # e_machine
    (tmp_path / "vmlinux").write_bytes(data)
    lines = RETURNS if machine == "SPARCV9" else STOPPED
    assert (BEHIND in kernel_names(log, [lines[line]], tmp_path)[0]) == is_exact


def test_sizes_of_the_kernel(log: Command, tmp_path: Path) -> None:
    """The kernel counts up to the next symbol, also from one without a size. One other size may be a damaged line, two
    are another build's, of which nothing gets names (R386, files of texts)."""
    shutil.copy(SPECTRA, tmp_path / "vmlinux")
    right, unsized = "main+0x42/0x5d0", "deregister_tm_clones+0x5/0x30"
    others = ["main+0x42/0x5c3", "_start+0x12/0x40"]
    assert b"kernel 2 of 2" in log(f" {right}\n {unsized}\n".encode(), "-b", str(tmp_path)).err
    assert b"kernel 1 of 2" in log(f" {right}\n {others[0]}\n".encode(), "-b", str(tmp_path)).err
    text = "".join(f" {each}\n" for each in [right, *others]).encode()
    found = log(text, "-b", str(tmp_path))
    assert found.out == text
    assert b"vmlinux: is of another build" in found.err


@pytest.mark.parametrize(
    ("frame", "is_named"),
    [
        ("total+0x20/0x48", True),
        ("total+0x20/0x50", False),
        ("choose+0x8/0x80", True),
        ("choose+0x8/0x70", False),
        ("walk_once+0x8/0x1000", True),
    ],
)
def test_sizes_in_modules(frame: str, is_named: bool, log: Command, tmp_path: Path) -> None:
    """Behind the last function of a section the kernel puts another one, and counts the space between to the function
    (R386, files of texts)."""
    shutil.copy(SPECTRA.parent.parent / "objects/aarch64.o", tmp_path / "some-module.ko")
    found = log(f" {frame} [some_module]\n".encode(), "-b", str(tmp_path)).out.decode()
    assert (" at /src/walk/walk.c:" in found) == is_named


def test_file_without_a_line(log: Command, tmp_path: Path) -> None:
    """A symbol table has files too, and tools put symbols behind those of any file: a function that the text names gets
    no file without a line."""
    symbols = [Symbol("usercopy_64.c", type=4, binding=0, section=0xFFF1), Symbol("__pfx_f", 0x1000, 16, binding=0)]
    code = Section(".text", b"\x90" * 32, flags=ALLOC | EXEC, address=0x1000)
    (tmp_path / "vmlinux").write_bytes(elf_file([code], [Segment(0x1000, 32)], symbols, kind=ET_EXEC))
    found = log(b" ? __pfx_f+0x10/0x10\n", "-b", str(tmp_path))
    assert found.out == b" ? __pfx_f+0x10/0x10\n" and b"kernel 1 of 1" in found.err


def release_line(release: str) -> str:
    """What the kernel prints of itself in front of a backtrace."""
    return f"CPU: 1 UID: 0 PID: 9 Comm: a #1 b Tainted: G        W  OE      {release} #1  Debian 6.1-2\n"


def test_kernel_of_the_release(log: Command, tmp_path: Path) -> None:
    """Of several kernels and modules that of the release in the text counts, by the folder or the name of the file
    (R465, other kernels)."""
    other_build = SPECTRA.parent.parent / "gcc-pie" / "spectra"
    for release, file in (("6.1-a", SPECTRA), ("6.2", other_build)):
        (tmp_path / "lib/modules" / release / "kernel").mkdir(parents=True)
        shutil.copy(file, tmp_path / "lib/modules" / release / "kernel/loop.ko")
        shutil.copy(file, tmp_path / f"vmlinux-{release}")
    line = " main+0x42/0x5d0\n main+0x42/0x5d0 [loop]\n"
    for first in (release_line("6.1-a"), "Linux version 6.1-a (a@b) (gcc)\n"):
        assert log((first + line).encode(), "-b", str(tmp_path)).out.decode().count(AT) == 2
    for first in (release_line("6.2"), release_line("6.3"), ""):
        assert log((first + line).encode(), "-b", str(tmp_path)).out.decode() == first + line


def test_kernel_of_another_release(log: Command, tmp_path: Path) -> None:
    """A kernel that says itself that it is of another release is refused (R465, other kernels)."""
    data = bytearray(SPECTRA.read_bytes())
    with ElfImage.open(SPECTRA) as image:
        section = image.find(".rodata")
    assert section is not None
    banner = b"Linux version 6.1-a (a@b)"
    data[section.file_offset : section.file_offset + len(banner)] = banner
    (tmp_path / "vmlinux").write_bytes(data)
    text = " main+0x42/0x5d0\n"
    assert AT in log((release_line("6.1-a") + text).encode(), "-b", str(tmp_path)).out.decode()
    found = log((release_line("6.1-b") + text).encode(), "-b", str(tmp_path))
    assert AT not in found.out.decode()
    assert b"vmlinux: is of Linux 6.1-a, and the text is of 6.1-b" in found.err


@pytest.mark.parametrize("form", FORMS)
def test_form(form: str, log: Command, tmp_path: Path) -> None:
    """Each frame gets the names that its producer's address leads to (R510, addresses of each form), by a table that
    stands anywhere in the text (R511, tables in texts), in a file and in a stream."""
    pattern = FORMS[form].replace("[maps]", maps())
    text, expected = re.sub(r"\||\[\]|\?(?=\n)", "", pattern), pattern.replace("|", f" {AT}").replace("[]", f" [{AT}]")
    path = tmp_path / "log.txt"
    path.write_text(text)
    shutil.copy(SPECTRA, tmp_path / ("vmlinux" if form.startswith("kernel") else "spectra"))
    for found in (log(None, str(path), "-b", str(tmp_path)), log(text.encode(), "-b", str(tmp_path))):
        assert found.out.decode() == expected.replace("?\n", "\n")
        count = expected.count(AT)
        assert f" {count} of {count + pattern.count('?' + chr(10))}" in found.err.decode()


@pytest.mark.parametrize("form", FORMS)
def test_carriage_returns(form: str, log: Command, tmp_path: Path) -> None:
    """Texts whose lines end as on a terminal get the same names, in front of the carriage returns."""
    text = re.sub(r"\||\[\]|\?(?=\n)", "", FORMS[form].replace("[maps]", maps())).encode()
    shutil.copy(SPECTRA, tmp_path / ("vmlinux" if form == "kernel" else "spectra"))
    plain, returns = (log(each, "-b", str(tmp_path)).out for each in (text, text.replace(b"\n", b"\r\n")))
    assert returns.replace(b"\r\n", b"\n") == plain and plain != text


REPORT = json.dumps({"stack": [{"pc": f"0x{BASE + RETURN:016x}", "symbol": " [spectra]"}] * 2}, indent=2)
LIST = f"(lldb) image list\n[  0] {UUID[:-1]}1 {BASE - 0x100000:#018x} /x\n[  1] {UUID} {BASE:#018x} /spectra\n"


@pytest.mark.parametrize("form", [*FORMS, "Node", "list"])
def test_line_by_line(form: str, tmp_path: Path) -> None:
    """A text gets the same names however its lines come: what is in front of a frame, or behind it, may have come
    before, or may still have to come."""
    own_frame = f"frame #1: 0x{BASE + RETURN:016x} spectra\n"
    texts = FORMS | {"Node": f"[maps]{REPORT}\n", "list": f"{LIST}{own_frame}"}
    text = re.sub(r"\||\[\]|\?(?=\n)", "", texts[form].replace("[maps]", maps())).encode()
    shutil.copy(SPECTRA, tmp_path / ("vmlinux" if form == "kernel" else "spectra"))
    results = []
    for blocks in ([text], text.splitlines(keepends=True)):
        for waits in (True, False):
            with Binaries(Places(binaries=[str(tmp_path)]), None) as binaries:
                log = Log(binaries, "full", lambda _: None, waits)
                if not waits:
                    for block in blocks:
                        log.survey(block)
                    log.begin()
                results.append(b"".join(map(log.named, [*blocks, b""])))
    assert results == [results[0]] * 4 and results[0].count(b"main") > text.count(b"main")


def test_calls_across_blocks(tmp_path: Path) -> None:
    """Calls have to lead to the frame before them also where that came with the text before: line by line a file of
    another build is refused before it gives more than a few names (R386, files of texts)."""
    ledger = SPECTRA.parent.parent / "gcc-pie" / "ledger"
    shutil.copy(ledger, tmp_path)
    addresses = return_addresses(ledger, 0x21A0, 0x3BE8)[-60:]
    lines = [f"./ledger(+{each:#x}) [{BASE + each:#x}]\n".encode() for each in addresses]
    with Binaries(Places(binaries=[str(tmp_path)]), None) as binaries:
        for blocks, limit in (([b"".join(lines)], 0), (lines, len(lines) // 3)):
            named = b"".join(map(Log(binaries, "full", lambda _: None).named, [*blocks, b""]))
            assert sum(b" at /" in line for line in named.splitlines()) <= limit


def test_null_address(log: Command) -> None:
    """A return address of 0 has no call before it, whatever a table says is there."""
    text = b"00000000-7fffffff r-xp 00000000 00:00 0 /srv/spectra\n#1  0x0000000000000000 in ?? ()\n"
    assert log(text, "-b", str(SPECTRA.parent)).out == text


def test_json(log: Command) -> None:
    """Names go into strings of JSON, which stays JSON."""
    frame = {"a": f"{BASE + RETURN:X}", "b": f"{BASE:X}", "o": f"{RETURN:X}", "s+": "12"}
    somap = [{"b": f"{BASE:X}", "path": "/srv/spectra", "elfType": 3, "buildId": BUILD_ID.upper()}]
    line = json.dumps({"bt": {"backtrace": [frame, frame], "processInfo": {"somap": somap}}}, separators=(",", ":"))
    found = json.loads(log(line.encode() + b"\n", "-b", str(SPECTRA.parent)).out)
    assert [each["symbolized"] for each in found["bt"]["backtrace"]] == [AT, AT]
    symbol = f"a::b<{'c, ' * 99}>() [spectra]"
    report = {"stack": [{"pc": f"0x{BASE + RETURN:016x}", "symbol": symbol}] * 2}
    for indent, separators in ((2, None), (None, (",", ":"))):
        text = json.dumps(report, indent=indent, separators=separators) + "\n" + maps()
        found = log(text.encode(), "-b", str(SPECTRA.parent))
        named, _ = json.JSONDecoder().raw_decode(found.out.decode())
        assert [each["symbol"] for each in named["stack"]] == [f"{symbol} {AT}"] * 2


@pytest.mark.parametrize(
    "line",
    [
        f"#0  0x{BASE + RETURN:016x} in ?? ()",
        f"frame #0: 0x{BASE + RETURN:016x} spectra",
        f"   0:     {BASE + RETURN:#x} - <unknown>",
        "Backtrace: 0x2381 0x2381",
        f'{{"a":"{BASE + RETURN:X}","b":"{BASE:X}","o":"2382"}}',
    ],
)
def test_nothing_says_what_was_there(line: str, log: Command) -> None:
    """An address alone leads to no file, and is counted as such."""
    found = log(f"{line}\n".encode(), "-b", str(SPECTRA.parent))
    assert found.out.decode() == f"{line}\n"
    assert b"the text does not say what was there" in found.err


def test_another_build(log: Command) -> None:
    """A file of the right name whose code does not fit the frames names none of them, though one may be in a call
    (R386, files of texts)."""
    odd = "".join(f"C  [spectra+0x{RETURN + 1 + 16 * i:x}]\n" for i in range(6))
    text = f"C  [spectra+0x2382]\n{odd}".encode()
    found = log(text, "-b", str(SPECTRA.parent))
    assert found.out == text and b"JVM 0 of 7; without: 7: the file does not fit" in found.err


def test_nearest_table(log: Command, tmp_path: Path) -> None:
    """Of the tables of several processes the last one in front of a frame counts that has its address, else the next
    one (R511, tables in texts)."""
    shutil.copy(SPECTRA, tmp_path / "spectra")
    other_table = maps().replace("spectra", "other")
    frame = f"   0:     {BASE + RETURN:#x} - <unknown>\n"
    for tables, is_named in (
        ((maps(), "", ""), True),
        ((other_table, maps(), ""), True),
        ((maps(), other_table, ""), False),
        (("", "", maps()), True),
        ((other_table, "", maps()), False),
    ):
        before, again, behind = tables
        found = log(f"{before}x\n{again}{frame}{behind}".encode(), "-b", str(tmp_path))
        assert (AT in found.out.decode()) == is_named


def modules_of(text: bytes) -> TextModules:
    """What a text says of modules."""
    modules = TextModules()
    for line in MARKERS.lines(text):
        modules.read(text, line, line_end(text, line), line)
    return modules


def test_build_ids_that_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build id is the nearest one, or none, however many the text has: a stale one would prove the wrong build."""
    monkeypatch.setattr("symbolize.drop_in.log.modules.MAX_ROWS", 10)
    rows = [b"Module a with build-id " + bytes([b"abcdef"[i % 6]]) * 40 + b"\n" for i in range(25)]
    text = b"".join(rows)
    modules = modules_of(text)
    found = [modules.build_id("a", i * len(rows[0])) for i in range(25)]
    assert found == [""] * 20 + [row.split()[-1].decode() for row in rows[20:]]


def test_tables_that_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame in front of the oldest table that is remembered gets none of another process behind it."""
    monkeypatch.setattr("symbolize.drop_in.log.modules.MAX_TABLES", 2)
    tables = [maps().replace("spectra", name) for name in "abc"]
    modules = modules_of("".join(tables).encode())
    found = [modules.at(BASE + RETURN, i * len(tables[0])) for i in range(3)]
    assert [row and row.file for row in found] == [None, "/srv/b", "/srv/c"]


def test_repeated_lists() -> None:
    """A list of modules is read once, also if each of its lines looks like the first one, and so are build ids."""
    begin = time.process_time()
    modules_of(b"".join(b"[  0] ABCDEF12 0x%x /a\n" % (0x10000 + i) for i in range(2000)) + b"[\n" * 200_000)
    ids = b"".join(b"Module a with build-id %b\n" % ((b"ab", b"cd")[i % 2] * 10) for i in range(20_000))
    modules = modules_of(ids)
    for place in range(20_000):
        modules.build_id("a", place * 40)
    assert time.process_time() - begin < 4


def test_what_waits(tmp_path: Path) -> None:
    """A stream holds back what a table may still explain, from there on and as long as more comes; all else comes at
    once."""
    shutil.copy(SPECTRA, tmp_path / "spectra")
    with Binaries(Places(binaries=[str(tmp_path)]), None) as binaries:
        log = Log(binaries, "full", lambda _: None)
        frame = f"   0:     {BASE + RETURN:#x} - <unknown>".encode()
        assert log.named(b"a\n" + frame + b"\nb\n") == b"a\n"
        assert log.named(b"c\n") == b""
        assert log.named(maps().encode()) == frame + f" {AT}\nb\nc\n{maps()}".encode()
        assert log.named(frame + b"\n") == frame + f" {AT}\n".encode()
    with Binaries(Places(binaries=[str(tmp_path)]), None) as binaries:
        log = Log(binaries, "full", lambda _: None)
        assert log.named(frame + b"\n") == b""
        assert log.named(b"") == frame + b"\n"  # nothing more comes
        assert log.named(frame + b"\n") + log.named(b"x" * HELD + b"\n") == frame + b"\n" + b"x" * HELD + b"\n"


def test_wait_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that wait for a table come after a while also if the stream never pauses."""
    now = [100.0]
    monkeypatch.setattr("symbolize.drop_in.log.text.time.monotonic", lambda: now[0])
    with Binaries(Places(), None) as binaries:
        log = Log(binaries, "full", lambda _: None)
        frame = f"   0:     {BASE + RETURN:#x} - <unknown>\n".encode()
        assert log.named(b"a\n" + frame) == b"a\n"
        now[0] += LONGEST_WAIT
        assert log.named(b"b\n") == b""
        now[0] += 0.1
        assert log.named(b"c\n") == frame + b"b\nc\n"
        assert log.named(frame) == b""


def test_thread_sanitizer(log: Command) -> None:
    """A frame without an address gets its names where the thread sanitizer has them."""
    module = f"(spectra+0x2381) (BuildId: {BUILD_ID})"
    found = log(f"    #1 <null> <null> {module}\n    #2 main <null> {module}\n".encode(), "-b", str(SPECTRA.parent))
    assert found.out.decode().splitlines() == [f"    #{i} {each} {module}" for i in (1, 2) for each in CALLED]


@pytest.mark.parametrize(
    ("stack", "exact"),
    [
        (
            "goroutine 1 [syscall, 2 minutes]:\nnon-Go function at pc=0x4689a0\nnon-Go function at pc=0x4689d8\n",
            1,
        ),
        ("main.f(...)\nnon-Go function at pc=0x4689a0\n", 0),
        ("@[\n    55da5e1af390\n    0x401380\n]: 1\n    1000 4013\n", 1),
        ("@[\n    __strcmp_evex+56\n    55da5e1af390\n]: 1\n", 0),
    ],
)
def test_first_of_a_stack(stack: str, exact: int) -> None:
    """The first frame of a stack is where it stopped, the others are return addresses, also behind one with a name
    (R510, addresses of each form)."""
    text = stack.encode()
    found = [each.frame.at for each in frames_in(text, MARKERS.lines(text), has_tables=True)]
    assert found == [At.EXACT] * exact + [At.RETURN] * (len(found) - exact) and len(found) > 0


def test_signal_frames(log: Command) -> None:
    """A return address that follows no call is where a signal came, if the build is proved (R510, addresses of each
    form)."""
    module = f"Module spectra with build-id {BUILD_ID}\n"
    found = log(
        f'{module}  Binary file "spectra", at +{MAIN:#x} [{BASE + MAIN:#x}]\n'.encode(), "-b", str(SPECTRA.parent)
    )
    assert found.out.rstrip().endswith(b"] main at /src/spectra/main.cc:113")


def test_offset_from_the_first_byte(log: Command, tmp_path: Path) -> None:
    """Offsets of systemd's frames count from where a file begins in memory, which is not vaddr 0 in a program at a
    fixed address; Python's and glibc's have none there, and a symbol has its vaddr (R510, addresses of each form)."""
    place = tmp_path / ".build-id" / "aa" / "bbbbbb.debug"
    place.parent.mkdir(parents=True)
    code = Section(".text", bytes(0x40), flags=ALLOC | EXEC, address=0x401000)
    place.write_bytes(
        elf_file([code], [Segment(0x401000, 0x40, 5)], [Symbol("f", 0x401000, 16, section=".text")], kind=ET_EXEC)
    )
    frames = [
        b"#1  0x0000000000401008 n/a (p + 0x8)",
        *(b'  Binary file "/p"%b [0x401008]' % at for at in (b"", b", at f+0x8")),
        b"/x/p[0x401008]",
        b"a[0x401008] = 1, b[0x40]",
    ]
    found = log(b"Module /p with build-id aabbbbbb\n" + b"\n".join(frames), "-b", str(tmp_path))
    assert found.out.splitlines()[1:] == [
        *(each + b" f" for each in frames[:2]),
        frames[2],
        frames[3] + b" f",
        frames[4],
    ]
    assert b"systemd-coredump 1 of 1, Python 2 of 2, glibc 1 of 1" in found.err


def test_demangled_symbols(log: Command, tmp_path: Path) -> None:
    """A function of C++ is found by its whole name, of several with the same name, and beside its clone too; of the
    destructors of a class, the one whose address fits."""
    code = Section(".text", bytes(0x60), flags=ALLOC | EXEC, address=0x1000)
    symbols = [
        Symbol(f"_Z1f{kind}", 0x1000 + 16 * i, 16, section=".text") for i, kind in enumerate(["i", "l@@V_1.0", "c"])
    ]
    for i, name in enumerate(["_Z1fi.cold", "_ZN1AD0Ev", "_ZN1AD2Ev"], 3):
        symbols.append(Symbol(name, 0x1000 + 16 * i, 16, section=".text"))
    (tmp_path / "libp.so").write_bytes(elf_file([code], [Segment(0x1000, 0x60, 5)], symbols))
    frames = [
        (b"frame #1: f(int) + 0x8 (0x7f0000001008 in /libp.so)", 1),
        (b"frame #1: f(long) + 0x8 (0x7f0000001018 in /libp.so)", 1),
        (b"frame #1: f(char) + 0x8 (0x7f0000001018 in /libp.so)", 0),  # at another offset in its page
        (b"frame #1: A::~A() + 0x8 (0x7f0000001048 in /libp.so)", 1),
        (b"frame #1: A::~A() + 0x8 (0x7f0000001038 in /libp.so)", 0),
        (b"frame #1: f + 0x8 (0x7f0000001008 in /libp.so)", 0),
        (b"frame #1: f(short) + 0x8 (0x7f0000001008 in /libp.so)", 0),
    ]
    for line, count in frames:
        assert b"PyTorch %d of 1" % count in log(line, "-b", str(tmp_path)).err


def test_two_files_of_one_name(log: Command, tmp_path: Path) -> None:
    """The path below a folder decides, as a frame or a table has it; the name alone does not."""
    for folder, binary in (("srv", SPECTRA), ("old", FIXTURES / "bin" / "gcc-pie" / "spectra")):
        (tmp_path / folder).mkdir()
        shutil.copy(binary, tmp_path / folder / "spectra")
    frame = f"C  [spectra+{RETURN:#x}]"
    for text, is_named in (
        (f"{frame}\n", False),
        (f"{frame}\n{maps()}", True),
        (f"{frame}\n{maps()}{maps().replace('/srv', '/old').replace('5555', '6555')}", False),
        (f"/srv/spectra(+{RETURN:#x}) [{BASE + RETURN:#x}]\n", True),
        (f"/new/spectra(+{RETURN:#x}) [{BASE + RETURN:#x}]\n", False),
    ):
        assert (AT in log(text.encode(), "-b", str(tmp_path)).out.decode()) == is_named


def test_recorded_path_is_not_opened(log: Command) -> None:
    """Only folders that are given count, wherever the text says that a file is."""
    text = f"{SPECTRA}(main+0x42) [0x5555000002382]\n    #1 0x1  ({SPECTRA}+0x2381)\n".encode()
    found = log(text)
    assert found.out == text
    assert found.err == (
        b"symbolize: frames with names: glibc 0 of 1, sanitizer 0 of 1; "
        b"without: 2: there is no file of this build id or name\n"
    )


def test_file_and_stream(log: Command, tmp_path: Path) -> None:
    """A file is read as standard input is; one that is not there is an error of one line."""
    path = tmp_path / "log.txt"
    path.write_bytes(f"#1 0x55d0c2381  (/srv/spectra+0x2381) (BuildId: {BUILD_ID})".encode())
    found = log(None, str(path), "-b", str(SPECTRA.parent))
    inner, outer = found.out.decode().split("\n")  # a line each, the last one without an end as in the text
    assert (inner, outer) == tuple(f"#1 0x55d0c2381 in {each}" for each in CALLED)
    missing = log(None, str(tmp_path / "nosuch"))
    assert (missing.code, missing.out, missing.err.count(b"\n")) == (1, b"", 1)


def test_build_id_is_no_path(log: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the current folder that is called as a build id in the text is not opened."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SPECTRA, "abcd")
    text = b"    #1 0x55d0c2381  (/srv/spectra+0x2381) (BuildId: abcd)\n"
    assert log(text).out == text


def test_what_is_not_verified(log: Command, tmp_path: Path) -> None:
    """A message says which files may be of other builds, once, and only if they gave names."""
    place = tmp_path / ".build-id" / "aa" / "bbbbbb.debug"
    place.parent.mkdir(parents=True)
    code = Section(".text", bytes(0x40), flags=ALLOC | EXEC, address=0x1000)
    made = elf_file([code], [Segment(0x1000, 0x40, 5)], [Symbol("f", 0x1000, 16, section=".text")])
    for path in (place, tmp_path / "other"):
        path.write_bytes(made)
    nowhere = b"    #1 0x1  (/x+0x9999) (BuildId: aabbbbbb)\n./other(g+0x1)[0x1]\n"
    found = log(nowhere, "-b", str(tmp_path))
    assert found.out == nowhere and found.err.startswith(b"symbolize: frames with names: ")
    found = log(b"    #1 0x1  (/x+0x1004) (BuildId: aabbbbbb)\n" * 2, "-b", str(tmp_path))
    assert found.out == b"    #1 0x1 in f (/x+0x1004) (BuildId: aabbbbbb)\n" * 2
    assert found.err.count(b"symbolize: aabbbbbb: unverified: ") == 1


def test_name_of_a_file_on_a_terminal(log: Command, tmp_path: Path) -> None:
    """The message that names a file has no control characters of its name."""
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(SPECTRA, folder / "a\x1b[2Jb")
    found = log(b"./a\x1b[2Jb(main+0x42) [0x382]\n", "-b", str(folder))
    assert b"found by its name only" in found.err and b"\x1b" not in found.err


def test_hostile_text(log: Command) -> None:
    """Garbage, long lines and long names get through as they are."""
    rows = [
        random.Random(1).randbytes(4000),
        b"#1 0x1 (" * 400,
        b"(" * LONGEST,
        b"a+0x1/0x2" * 300,
        b"#0 0x" + b"f" * 60_000,
    ]
    rows += [b"#1 0x1  (" + b"x" * 900 + b"+0x2381)", b"f(+0x2381)[0x3d1]" * 90, b"\0" * 100, b"x" * 200_000]
    text = b"\n".join(rows)
    for part in (text[:60_000], text[-60_000:]):
        found = log(part, "-b", str(SPECTRA.parent))
        assert found.out == part and b"Traceback" not in found.err


@pytest.mark.parametrize(
    "line", [b"x" * (LONGEST + 1) + b" main+0x1/0x2", b"main+0x2/0x1", b"a.out(+0x0) [0x0]", b"0x12"]
)
def test_no_frames(line: bytes) -> None:
    """What only looks like a frame is none."""
    assert not found_in(line)


def found_in(block: bytes) -> list[FoundFrame]:
    """The frames of a block."""
    return list(frames_in(block, MARKERS.lines(block), has_tables=False))


WORDS = [
    *(b"#00 pc 00000000", b"frame #1: ", b"frame #1: 0x12345678 x", b'Binary file "a", at ', b"C  [a+0x1]  ", b"V  [a"),
    *(b"#1  0x0000000000001234 a (b ", b"#1 0x12345678 in ", b"0x12345678 in a () from ", b"1: 0x1 - ", b"[signal pc="),
    *(b'"pc": "0x1", "symbol": "', b'{"b":"1","o":"1","s":"', b"#1 0x1 in a (", b"#1 0x1 in #1 (", b"#1 a <null> ("),
    *(
        b"a(+0x1",
        b"a+0x1/0x1 [",
        b"Backtrace: 0x123 ",
        b"/a+0x123/b",
        b" /a+0x123",
        b"/a+",
        b"CPU: 1 Tainted: a #1 ",
        b"WARNING: a:1 at a+0x2/0x2 ",
        b"pc : a+0x0/0x2 ",
    ),
    *(b"Module a with build-id ", b"build id: 1", b'{"b":"1","path":"a"', b"1234567-1234567 r-xp ", b"0x12345  Yes "),
    *(
        b"[  0] ABCDEF12 0x12345 /",
        b"a.b$",
        b"(",
        b"a" * 50 + b" ",
        b" ",
        b"non-Go function at pc=",
        b"unexpected return pc for ",
    ),
]


@pytest.mark.parametrize("word", WORDS)
def test_hostile_lines(word: bytes) -> None:
    """No line takes long, whatever it repeats: each form and table at its worst, 40 lines."""
    ends = [
        b"",
        b" + 0x",
        b"+0x",
        b" 0x",
        b" acktrace: 0x123 !",
        b" <null> (",
        b"() [0x",
        b' "o":" "pc":',
        b"?? () uild-id ainted ",
    ]
    lines = [(word * (LONGEST // len(word)))[: LONGEST - 40] + end for end in ends]
    lines += [end.strip() + b" " + line for line, end in zip(lines, ends, strict=True)]
    begin = time.process_time()
    for line in lines * 2:
        text = line + b"\n"
        for form in (*ALL_FORMS, ADDRESS):
            list(frames_of(form, text, 0, len(line), b""))
        list(seastar_frames(b"Backtrace:" + text, 0, len(line) + 10))
        TextModules().read(text, 0, len(line), 0)
        SEASTAR_LINES.fullmatch(line)
    assert time.process_time() - begin < 2


SOURCE = """
struct Box { int *values; __attribute__((noinline)) int get(int i) { return values[i]; } };
inline __attribute__((always_inline)) int deep(Box &box, int i) { return box.get(i) + 1; }
__attribute__((noinline)) int use(Box &box, int i) { return deep(box, i) * 2; }
int main() { Box box{new int[4]}; delete[] box.values; return use(box, 1); }
"""


@pytest.mark.needs("clang++-19", "libclang_rt.asan", "llvm-symbolizer-19")
def test_real_report(log: Command, tmp_path: Path) -> None:
    """A report of the address sanitizer gets the frames that the sanitizer gives it with llvm-symbolizer."""
    (tmp_path / "a.cc").write_text(SOURCE)
    program = tmp_path / "program"
    command = [
        find("clang++-19"),
        "-g",
        "-O1",
        "-fsanitize=address",
        "-Wl,--build-id",
        "-fno-omit-frame-pointer",
        "a.cc",
        "-o",
        program,
    ]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    plain = {**os.environ, "ASAN_OPTIONS": "symbolize=0"}
    raw = subprocess.run([program], capture_output=True, env=plain, check=False).stderr
    named = {**os.environ, "ASAN_SYMBOLIZER_PATH": find("llvm-symbolizer-19")}
    expected = subprocess.run([program], capture_output=True, env=named, check=False).stderr
    found = log(raw, "-b", str(tmp_path)).out
    frames = re.compile(rb" in (.*a\.cc:.*)")
    assert frames.findall(found) == frames.findall(expected.partition(b"SUMMARY")[0]) != []
