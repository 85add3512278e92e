"""Damaged texts, lists of functions and containers, straight to what reads them."""

import gzip
import io
import lzma
import os
import random
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import zstandard

from symbolize.binaries import is_build_id, read_members
from symbolize.binaries.archives import inflate, read_member
from symbolize.binaries.build_id import parse_build_id
from symbolize.binaries.debuginfod.download import retry_after
from symbolize.binaries.debuginfod.server import FetchOptions, read_environment
from symbolize.binaries.finder import plain_names
from symbolize.binaries.unpack import decompress
from symbolize.core.errors import InputError, UsageError
from symbolize.core.mapped_names import base_name, is_foreign, is_no_file, mapped_by, release_in
from symbolize.elf import ElfError, read_build_id
from symbolize.elf.probe import identify
from symbolize.formats import load as load_profile
from symbolize.formats import memory_map
from symbolize.formats.content import decompressed
from symbolize.names import (
    demangle_android_linker,
    encodes,
    function_key,
    is_linker_made,
    last_component,
    may_be_local,
    own_name,
    public_name,
    scope_text,
    simplify,
    simplify_plain,
    split_suffix,
    variants,
)
from symbolize.names.proguard import classes_in, parse_name, read_map
from symbolize.names.stand_ins import stand_in
from symbolize.resolve.providers.kernel import is_kernel, is_vdso, module_name
from symbolize.resolve.providers.members import is_in_archive
from symbolize.symbol_files import (
    CodeList,
    SymbolList,
    process_of,
    read_breakpad,
    read_gsym,
    read_jitdump,
    read_kallsyms,
    read_module,
    read_perf_map,
)
from symbolize.symbols import SymbolListBinary
from tests.support import gsym_writer
from tests.support.hostile_names import HOSTILE
from tests.support.jitdump_writer import dump, lines, load, record
from tests.support.kallsyms import LINES
from tests.support.lookup import frames_of
from tests.support.proguard_maps import R8
from tools.fuzz import corpus
from tools.fuzz.mutate import mutate_bytes, mutate_file, mutate_name, mutate_text

FOLDER = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp")
LIMIT = 1 << 24
"""Bytes that a packed file may expand to."""
ADDRESSES = sorted({0, 1, 0x1000, 0x1008, 0x3000, 0x400100, 0xFFFFFFFF81000040, 0xFFFFFFFFC0000100, (1 << 64) - 1})

BREAKPAD = b"""MODULE Linux x86_64 33221100554477668899AABBCCDDEEFF0 app
INFO CODE_ID 00112233445566778899aabbccddeeff00112233
FILE 0 /src/a.cc
FILE 1 /src/b.cc
INLINE_ORIGIN 0 inner()
INLINE_ORIGIN 1 deeper<int>(char)
FUNC 1000 40 0 outer(int)
INLINE 0 7 0 0 1008 10 1020 8
INLINE 1 9 1 1 100a 4
1000 8 3 0
1008 10 4 1
1018 28 5 0
FUNC m 1100 20 8 twice
1100 20 9 1
PUBLIC 3000 0 exported
PUBLIC m 3010 0 other
STACK CFI INIT 1000 40 .cfa: $rsp 8 +
"""
PERF_MAP = b"1000 20 old\n1008 10 py::run:/srv/app.py\n0x400100 0x8 LazyCompile:~f /a b.js:1\nfffffffffffffff0 40 top\n"
RECORDED = {".heap", ".dump", ".txt", ".perf-script"}
MAX_PROFILE = 4000
"""Bytes at the beginning and at the end of a recorded profile that are used."""

MADE_PROFILES = [
    b"--- contentionz 1 ---\ncycles/second = 3000000000\nsampling period = 100\nms since reset = 9\n7 3 @ 0x10 0x20\n",
    b"--- threadz 1 ---\n\n--- Thread 7f (name: main/12) stack: ---\n  PC: 0x401f1c: f(int)\n  0x402000\n"
    b"--- Thread 8f (name: b/13) stack: ---\n  [same as previous thread]\n---- no stack trace for 1\n",
    b"--- heapz 1 ---\nformat = java\nresolution = bytes\n 7048 1 @ 0x5 0x6\n 0x5 a.B.c (B.java:12)\n 0x6 GC\n",
    b"--- contentionz 1 ---\nformat = java\nresolution = ms\nsampling period = 9\n 7 1 @ 0x5\n 0x5 a.B.c (/lib/x.so)\n",
    b"--- symbol\nbinary=/bin/a\n0x10 f--inner\n---\n--- heap\nheap profile: 1: 2 [1: 2]\n3: 4 [5: 6] @ 0x11",
    b"heap profile: 1: 2 [3: 4] @ heap_v2/1000\n%warn x\n1: 2 [3: 4] @ 0x10 0x20\n0: 5 [0: 0] @ 0x10\n",
    b"main;app+0x1234;[libc.so.6];[unknown];leaf 12\nmain;x 3\n",
]
"""Kinds that nothing at hand writes."""

MAPS = b"""build=/usr/bin
00400000-00490000 r-xp 00000000 08:01 1234 $build/app with blanks
00690000-00691000 rw-p 00090000 08:01 1234 /usr/bin/app
I0101 12:00:00 7 a.cc:12] 7f1000000000-7f1000020000 r-xp 00001000 00:00 0 /lib/libc-2.31.so (deleted)
7f2000000000-7f2000001000: /lib/x.so (@1000) 0123456789abcdef
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]
ffffffffff600000-ffffffffff601000 r-xp 00000000 00:00 0 [vsyscall]
"""
ENVIRONMENT = b"""DEBUGINFOD_URLS=ima:enforcing https://a.example/ http://[::1]:8002/x ima:ignore file:///srv
DEBUGINFOD_TIMEOUT=90
DEBUGINFOD_MAXSIZE=100000
DEBUGINFOD_MAXTIME=10
HTTPS_PROXY=http://user:secret@proxy:3128
NO_PROXY=.example,10.0.0.0/8
"""


class Reader(NamedTuple):
    """What reads texts: `sound` ones to begin with, how they are damaged, and what is done with the result.

    `read` may raise those of `refusals`, with one line.
    """

    sound: list[bytes]
    damage: Callable[[random.Random, bytes], bytes]
    read: Callable[[bytes, Path], object]
    refusals: tuple[type[Exception], ...] = ()


def look_up(listing: SymbolList) -> None:
    """Look addresses of a list of functions up."""
    table = SymbolListBinary("damaged", listing).table()
    frames_of(table, sorted({*ADDRESSES, *listing.start[:8].tolist()}))
    assert not any("\n" in problem for problem in listing.problems)


def code(found: CodeList) -> None:
    """Look addresses of compiled code up."""
    found.count_at(np.array(ADDRESSES, np.uint64))
    look_up(found.listing)


def breakpad(data: bytes, _: Path) -> None:
    """Read a symbol file of Breakpad."""
    read_module(data[:4096])
    look_up(read_breakpad(data))


def jitdump(data: bytes, _: Path) -> None:
    """Read a jitdump."""
    process_of(data[:64])
    code(read_jitdump(data))


def proguard(data: bytes, path: Path) -> None:
    """Read a mapping file, and look names up in it."""
    path.write_bytes(data)
    known = read_map(str(path), {b"a.a.a", b"a.a.b", b"com.acme.util.Math", b"com.acme.Main"})
    for name in (b"a.a.a.a", b"a.a.a.g", b"void a.a.b.a(boolean)", b"com.acme.Main.main"):
        parsed = parse_name(name)
        assert parsed is not None
        for line in (0, 1, 4, 5, 0xFFFFFFFF):
            known.frames(parsed, line)


def maps(data: bytes, _: Path) -> None:
    """Read a memory map, and give addresses their mappings."""
    rows = memory_map.arrange(memory_map.parse(data).rows)
    owners = memory_map.assign(rows, np.array(ADDRESSES, np.uint64))
    assert ((owners >= -1) & (owners < len(rows))).all()


@cache
def text_profiles() -> list[bytes]:
    """Profiles as text of all kinds: those of the fixtures, without most of their rows, and made ones."""
    folder = Path(__file__).parents[2] / "fixtures" / "legacy"
    recorded = [path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in RECORDED]
    packed = [gzip.decompress(path.read_bytes()) for path in sorted(folder.glob("*.gz"))]
    return [each[:MAX_PROFILE] + b"\n" + each[-MAX_PROFILE:] for each in (*recorded, *packed)] + MADE_PROFILES


def text_profile(data: bytes, _: Path) -> None:
    """Read a profile as text."""
    load_profile(io.BytesIO(data))


def archive(data: bytes, path: Path) -> None:
    """Read the members of an archive, and what is in them."""
    path.write_bytes(data)
    for member in read_members(str(path), (".so", ".dbg")):
        contents = read_member(str(path), member, LIMIT)
        if not member.is_stored:
            inflate(contents, member.size, LIMIT, "")


def header(data: bytes, path: Path) -> None:
    """Read the head of a binary as the index does."""
    path.write_bytes(data)
    found = read_build_id(str(path))
    assert not found or is_build_id(found)
    identify(str(path))


def environment(data: bytes, _: Path) -> None:
    """Read the variables of debuginfod's client, and a header of a server."""
    text = data.decode("utf-8", "surrogateescape").replace("\0", "")
    found = read_environment(dict(line.split("=", 1) for line in text.split("\n") if "=" in line), FetchOptions())
    assert not any("\n" in problem for problem in found.problems)
    retry_after(text.split("\n")[0])


def recorded_name(data: bytes, _: Path) -> None:
    """Tell what sort of mapping a recorded name is."""
    name = data.decode("utf-8", "surrogateescape")
    plain_names(name)
    parse_build_id(name)
    for test in (
        is_no_file,
        mapped_by,
        base_name,
        is_foreign,
        is_kernel,
        release_in,
        is_in_archive,
        module_name,
        is_vdso,
    ):
        test(name)


def spelling(data: bytes, _: Path) -> None:
    """Take a name apart in all ways that there are."""
    for keeps in (True, False):
        simplify(data, keeps)
        simplify_plain(data, keeps)
    for each in (split_suffix, own_name, last_component, public_name, function_key, variants, scope_text):
        each(data)
    for test in (is_linker_made, may_be_local):
        test(data)
    stand_in(data)
    encodes(data, own_name(data))
    demangle_android_linker([data], "full")
    parsed = parse_name(data)
    if parsed is not None:
        list(classes_in(parsed))


def zipped(*methods: int) -> bytes:
    """A zip archive with two members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for number, method in enumerate(methods):
            made.writestr(f"lib/x86_64/lib{number}.so", b"\x7fELF" + bytes(300), method)
    return out.getvalue()


@cache
def readers() -> list[Reader]:
    """All of them."""
    jit = [
        dump(
            lines(0x1000, [(0x1000, 3, b"/a.js"), (0x1008, 4, b"\xff"), (0x100C, 9, b"/b.js")], order),
            load(0x1000, 0x10, 1, b"run", order),
            record(1, b"\0" * 56, order),
            order=order,
        )
        for order in "<>"
    ]
    gsym = [gsym_writer.gsym_file(gsym_writer.EXAMPLE, version, order) for version in (1, 2) for order in "<>"]
    some = [sample.data for sample in corpus.samples() if len(sample.data) < 8000]
    text = LINES * 20
    packed = [gzip.compress(text), lzma.compress(text), zstandard.compress(text)]
    names = [*corpus.names()]
    return [
        Reader([LINES], mutate_text, lambda data, _: look_up(read_kallsyms(data).listing)),
        Reader([PERF_MAP], mutate_text, lambda data, _: code(read_perf_map(data))),
        Reader([BREAKPAD], mutate_text, breakpad),
        Reader(gsym, mutate_bytes, lambda data, _: look_up(read_gsym(data))),
        Reader(jit, mutate_bytes, jitdump),
        Reader([R8.encode()], mutate_text, proguard, (InputError,)),
        Reader([MAPS], mutate_text, maps),
        Reader(text_profiles(), mutate_text, text_profile, (InputError,)),
        Reader([ENVIRONMENT], mutate_text, environment, (UsageError,)),
        Reader([zipped(0, 8), zipped(8)], mutate_bytes, archive, (ValueError, InputError)),
        Reader(packed, mutate_bytes, lambda data, _: decompress(data, LIMIT, ""), (InputError,)),
        Reader(
            [*packed, gzip.compress(packed[2])],
            mutate_bytes,
            lambda data, _: b"".join(decompressed([data], "damaged", 4 << 30)),
            (InputError,),
        ),
        Reader(some, mutate_file, header, (ElfError,)),
        Reader([name.encode() for name in HOSTILE], mutate_name, recorded_name),
        Reader(names, mutate_name, spelling),
    ]


def text_target(seed: int) -> int:
    """A damaged text, list of functions, container, header or name: it is read, or refused in one line."""
    chance = random.Random(seed)
    reader = chance.choice(readers())
    data = reader.damage(chance, chance.choice(reader.sound))
    path = FOLDER / f"fuzz-text-{os.getpid()}"
    try:
        reader.read(data, path)
    except reader.refusals as error:
        assert "\n" not in str(error)
    finally:
        path.unlink(missing_ok=True)
    return len(data)
