"""Whole commands over damaged profiles and damaged files of all kinds: exit codes, and lines that say why."""

import gzip
import io
import lzma
import os
import random
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import zstandard

from symbolize.cli.console import EXIT_DONE, EXIT_FAILED, EXIT_SOME
from symbolize.cli.main import main
from symbolize.elf import ElfImage
from symbolize.resolve.addresses import page_ceil, page_floor
from tests.support.elf_writer import ALLOC, ET_EXEC, EXEC, NOTE, Section, Segment, Symbol, build_id_note, elf_file
from tests.support.gsym_writer import EXAMPLE, gsym_file
from tests.support.hostile_names import HOSTILE
from tests.support.jitdump_writer import dump, lines, load
from tests.support.kallsyms import LINES
from tests.support.messages import profile_pb2
from tests.support.pprof_writer import Line, Place, profile
from tests.support.pprof_writer import Mapping as Mapped
from tests.support.proguard_maps import R8
from tools.fuzz import corpus, profiles, texts
from tools.fuzz.mutate import mutate_bytes, mutate_file, mutate_text

ROOT = Path(__file__).parents[2]
FOLDER = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp")
MAX_SIZE = 30_000
ID = bytes(range(1, 21))
BASE, JIT, KERNEL, MODULE = 0x7A12_3400_0000, 0x7F12_3400_0000, 0xFFFF_FFFF_8100_0000, 0xFFFF_FFFF_C010_0000
KINDS = {"split": "a.dwo", "package": "opt/app.so.dwp", "supplementary": "common.debug"}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "xz": lambda data: lzma.compress(data, preset=0),
    "gz": lambda data: gzip.compress(data, 1),
    "zst": lambda data: zstandard.ZstdCompressor(level=1).compress(data),
}
CACHE_LIMIT = "--cache-limit=20M"


class Scene(NamedTuple):
    """A profile and the files below the root that it is symbolized with, by their paths; `start` as in a
    `profiles.Sample`."""

    profile: profiles.Sample
    files: Mapping[str, bytes]
    options: Sequence[str] = ()


def pprof(mappings: Sequence[Mapped], addresses: Sequence[Sequence[int]], are_called: bool = True) -> profiles.Sample:
    """A profile with some addresses in each mapping, on a stack each, and all on one stack if they are call sites."""
    places = [Place(each, row + 1) for row, some in enumerate(addresses) for each in some]
    stacks: list[tuple[list[Place], list[int]]] = [([each], [2]) for each in places]
    return profiles.Sample("pprof", profile(mappings, [*stacks, (places, [1])] if are_called else stacks))


def loaded(data: bytes, is_64: bool, big_endian: bool, end: int) -> bytes:
    """A file without program headers with one, of a segment up to the address `end`; addresses are offsets in it."""
    made, word = elf_file([], [Segment(0, end)], is_64=is_64, big_endian=big_endian), 8 if is_64 else 4
    header, row = (64, 56) if is_64 else (52, 32)
    place = len(data).to_bytes(word, "big" if big_endian else "little")
    counts = slice(54, 58) if is_64 else slice(42, 46)
    result = bytearray(data) + made[header : header + row]
    result[24 + word : 24 + 2 * word] = place
    result[counts] = made[counts]
    return bytes(result)


def of_binary(sample: corpus.Sample) -> Scene:
    """An ELF file that is mapped, with the files that go with it."""
    with ElfImage.parse(memoryview(sample.data), "sound") as image:
        if not image.segments and not image.is_relocatable:
            end = max(image.code_ranges[1].tolist(), default=0)
            return of_binary(sample._replace(data=loaded(sample.data, image.is_64, image.big_endian, end)))
        ranges = list(zip(*(column.tolist() for column in image.code_ranges), strict=True))
        mappings, addresses = [], []
        for each in [segment for segment in image.segments if segment.executable][:2]:
            begin, end = page_floor(each.vaddr), page_ceil(each.vaddr + each.file_size)
            base = 0 if image.kind == "ET_EXEC" else BASE
            offset = page_floor(each.file_offset)
            mappings.append(Mapped(base + begin, base + end, offset, "/opt/app.so", image.build_id or ""))
            inside = [(max(low, begin), min(high, end)) for low, high in ranges if low < end and high > begin]
            addresses.append([base + low + (high - low) * k // 5 for low, high in inside[:3] for k in range(5)])
    files = {"opt/app.so": sample.data}
    if sample.companion:
        files[KINDS[sample.kind]] = sample.companion
    return Scene(pprof(mappings, addresses, are_called=False), files)


def kernel_file() -> bytes:
    """A kernel with a function."""
    text = Section(".text", bytes(0x2000), flags=ALLOC | EXEC, address=KERNEL)
    note = Section(".notes", build_id_note(ID), NOTE, ALLOC, address=KERNEL + 0x2000)
    marks = [Symbol(name, KERNEL, type=0) for name in ("_text", "_stext")]
    symbols = [*marks, Symbol("f", KERNEL + 0x10, 0x800)]
    return elf_file([text, note], [Segment(KERNEL, 0x2000, 5, 0x1000)], symbols, kind=ET_EXEC)


def special() -> list[Scene]:
    """Mappings without a file of their own: kernel, modules, vdso, archives, compiled code; and symbol files."""
    kernel = Mapped(KERNEL, KERNEL + 0x10_0000, KERNEL, "[kernel.kallsyms]_text")
    vmlinux = kernel_file()
    inside = [KERNEL + 0x10 * each for each in range(1, 8)]
    module = next(each.data for each in corpus.samples() if each.name == "module")
    modular = Mapped(MODULE, MODULE + 0x4000, 0, "/lib/modules/6.1/kernel/net/nf-net.ko")
    driver = [MODULE + 0x10 * each for each in range(1, 8)]
    anonymous = Mapped(JIT, JIT + 0x10000, 0, "//anon")
    run = [JIT + each for each in (0, 4, 0x10, 0x104)]
    jit = dump(lines(JIT, [(JIT, 8, b"/a.js"), (JIT + 4, 9, b"\xff")]), load(JIT, 0x40, 1, b"hot"))
    perf_map = f"{JIT:x} 100 Interpreter\n{JIT + 0x100:x} 40 void Main::run(int)\n".encode()
    app = Mapped(BASE, BASE + 0x4000, 0, "/opt/app", "00112233445566778899aabbccddeeff00112233")
    walk = (ROOT / "fixtures" / "bin" / "headers" / "stripped" / "libwalk-x86_64.so").read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("lib/x86_64/libwalk.so", walk)
        made.writestr("lib/x86_64/other.so.dbg", walk, zipfile.ZIP_DEFLATED)
    begin = out.getvalue().index(walk[:64])
    archived = [
        Mapped(BASE, BASE + 0x1000, offset, f"/data/app/base.apk{member}")
        for member, offset in (("!/lib/x86_64/libwalk.so", 0), ("", begin))
    ]
    with ElfImage.parse(memoryview(walk), "walk") as image:
        walked = [BASE + int(image.code_ranges[0][0]) + 16 * each for each in range(8)]
    vdso = Mapped(JIT, JIT + 0x2000, 0, "[vdso]")
    text = Section(".text", bytes(0x1000), flags=ALLOC | EXEC, address=0x200)
    vdso_file = elf_file([text], [Segment(0, 0x1200)], [Symbol("__vdso_gettimeofday", 0x400, 0x100)])
    hostile = [Mapped(BASE + row * 4096, BASE + row * 4096 + 4096, 0, name) for row, name in enumerate(HOSTILE)]
    return [
        Scene(pprof([kernel], [inside]), {"boot/vmlinux-6.1": vmlinux}),
        Scene(pprof([kernel, modular], [inside, driver]), {"proc/kallsyms": LINES, "boot/System.map-6.1": LINES}),
        *(
            Scene(pprof([modular], [driver]), {f"lib/modules/6.1/kernel/nf-net.ko.{ending}": module})
            for ending in PACKERS
        ),
        Scene(pprof([anonymous], [run]), {"tmp/perf-77.map": perf_map}),
        Scene(pprof([anonymous], [run]), {"jit-77.dump": jit, "tmp/perf-77.map": perf_map}),
        Scene(pprof([app], [[BASE + each for each in (0x1000, 0x100A, 0x1020, 0x3004)]]), {"app.sym": texts.BREAKPAD}),
        *(
            Scene(pprof([app], [[BASE + 0x1008, BASE + 0x100A]]), {"app.gsym": gsym_file(EXAMPLE, version, "<")})
            for version in (1, 2)
        ),
        *(Scene(pprof([each], [walked], False), {"base.apk": out.getvalue()}) for each in archived),
        Scene(pprof([vdso], [[JIT + 0x404, JIT + 0x410]]), {"vdso64.so": vdso_file}),
        Scene(pprof(hostile, [[BASE + row * 4096 + 8] for row in range(len(hostile))]), {"vmlinux": vmlinux}),
        Scene(
            profiles.Sample("java", java()),
            {"mapping.txt": R8.encode()},
            ("--proguard-map={root}/mapping.txt", "--annotate"),
        ),
    ]


def java() -> bytes:
    """A profile with obfuscated Java names."""
    names = ("a.a.a.a", 4), ("a.a.b.a", 1), ("void a.a.a.g(int)", 2), ("com.acme.Main.main", 0)
    frames = tuple(Line(name, "", line) for name, line in names)
    return profile([Mapped(0x1000, 0x2000, 0, "base.vdex")], [([Place(0x1010, 1, frames)], [1])])


@cache
def scenes() -> list[Scene]:
    """All of them; half of those that are chosen from are mapped binaries."""
    made = special()
    binaries = [each for each in corpus.samples() if len(each.data) < MAX_SIZE]
    made += [of_binary(each) for each in binaries]
    recorded = ROOT / "fixtures" / "simpleperf"
    library = {"data/libfilters.so": (recorded / "binaries" / "libfilters.so").read_bytes()}
    made += [
        Scene(each, library, options)
        for each in profiles.samples()
        for options in ((), ("--emit=module-symbols",), ("--nearest-line", "--demangle=templates"))
        if len(each.data) < MAX_SIZE
    ]
    return made


def damaged(chance: random.Random, name: str, data: bytes) -> bytes:
    """A file below the root, damaged in the way of its kind."""
    ending = name.rpartition(".")[2]
    if ending in PACKERS:
        inner = PACKERS[ending](mutate_file(chance, data) if chance.random() < 0.7 else data)
        return mutate_bytes(chance, inner) if chance.random() < 0.3 else inner
    if data[:4] == b"\x7fELF":
        return mutate_file(chance, data)
    return mutate_text(chance, data) if data[:1].isalnum() else mutate_bytes(chance, data)


def command_target(seed: int) -> int:
    """A command with a damaged profile, damaged files or both: exit codes as promised, and lines for people."""
    chance = random.Random(seed)
    scene = chance.choice(scenes())
    what = chance.random()
    data = profiles.mutate(chance, scene.profile) if what < 0.4 else scene.profile.data
    files = dict(scene.files)
    for name, contents in files.items():
        if what > 0.3 and (len(files) == 1 or chance.random() < 0.7):
            files[name] = damaged(chance, name, contents)
        elif name.rpartition(".")[2] in PACKERS:
            files[name] = PACKERS[name.rpartition(".")[2]](contents)
    folder = FOLDER / f"fuzz-command-{os.getpid()}"
    root = folder / "root"
    for name, contents in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(contents)
    root.mkdir(parents=True, exist_ok=True)
    (folder / "out").mkdir()
    (folder / "input").write_bytes(data)
    try:
        run(chance, folder, [root / name for name in files], [each.format(root=root) for each in scene.options])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return len(data) + sum(map(len, files.values()))


def run(chance: random.Random, folder: Path, files: Sequence[Path], options: Sequence[str]) -> None:
    """A command over what is in `folder`, and what has to hold of its end."""
    root, way = folder / "root", chance.random()
    are_symbols = "--emit=module-symbols" in options
    out = folder / ("symbols" if are_symbols else "out")
    cache_options = [f"--cache={folder.parent / 'fuzz-command-cache'}-{os.getpid()}", CACHE_LIMIT]
    more = cache_options if chance.random() < 0.3 else ["--no-cache"]
    good = (EXIT_DONE, EXIT_FAILED)
    if way < 0.75:
        arguments = [
            str(folder / "input"),
            "-o",
            f"{out}{'' if are_symbols else '/'}",
            f"--binaries={root}",
            *options,
            *more,
        ]
        arguments += chance.choice(([], ["--report=json"], ["-v"], [f"--missing={folder}/missing"]))
        arguments += chance.choice(([], ["--demangle=full"], [f"--folded-report={folder}/folded"], ["--nearest-line"]))
    elif way < 0.87 and files:
        arguments = ["inspect", str(chance.choice(files)), f"--binaries={root}", *chance.choice(([], ["--json"]))]
    elif way < 0.96:
        arguments = [
            "plan",
            str(folder / "input"),
            f"--binaries={root}",
            *more,
            *chance.choice(([], ["--json"], ["-v"])),
        ]
    else:
        good = (EXIT_DONE, EXIT_FAILED, EXIT_SOME)
        arguments = ["index", str(root), "--jobs=1", f"--cache={folder}/cache"]
    shown, said = io.StringIO(), io.StringIO()
    with redirect_stderr(said), redirect_stdout(shown), patch.dict(os.environ, {"XDG_CACHE_HOME": str(folder)}):
        code_ = main(arguments)
    assert code_ in good, f"exit code {code_}: {said.getvalue()[-300:]}"
    text = said.getvalue()
    assert "Traceback" not in text, text[-600:]
    assert "out of memory" not in text, text[-600:]
    if code_:
        last = (text or shown.getvalue()).splitlines()[-1:]
        assert last, "no word of what failed"
    if way < 0.75 and code_ == EXIT_FAILED:
        assert text.splitlines()[-1].startswith("symbolize: "), text[-600:]
    for path in out.rglob("*"):
        if path.is_file():
            profile_pb2.Profile.FromString(gzip.decompress(path.read_bytes()))
