"""What is run with damaged input. Each target takes a seed, and returns how many bytes of input it made of that."""

import os
import random
import struct
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from symbolize.elf import ElfError, ElfImage, inside_calls
from symbolize.names import demangle, same_function
from symbolize.names.demangling import MODES
from symbolize.symbols import Binary, TableCache, build_table
from symbolize.symbols.cache import facts_of
from symbolize.symbols.table import SymbolTable
from symbolize.symbols.table_file import PREFIX, DamagedTable, crc32, read_table
from tools.fuzz import corpus, loaders
from tools.fuzz.mutate import ANY, HOW_MANY, mutate_file, mutate_name
from tools.fuzz.profiles import firefox_target, merged_target, otlp_target, profile_target
from tools.fuzz.scenes import command_target
from tools.fuzz.served import served_target
from tools.fuzz.stacks import stack_target
from tools.fuzz.stores import index_target, manifest_target
from tools.fuzz.texts import text_target

FOLDER = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp")
NAMES_AT_ONCE = 50
LAST = (1 << 64) - 1


class OneCompanion:
    """Finds one file, in the part that `kind` names; implements `symbolize.symbols.split_dwarf_files.Finder`."""

    def __init__(self, path: str, kind: str) -> None:
        self._path, self._kind = path, kind

    def packages(self) -> Sequence[str]:
        """The file, if it is a package."""
        return [self._path] if self._kind == "package" else []

    def split(self, name: str, comp_dir: str) -> Sequence[str]:
        """The file, if it is a split unit."""
        return [self._path] if self._kind == "split" else []

    def supplementary(self, name: str, identifier: str) -> Sequence[str]:
        """The file, if it is a supplementary one."""
        return [self._path] if self._kind == "supplementary" else []


@cache
def samples() -> list[corpus.Sample]:
    """The sound files."""
    return corpus.samples()


def damaged_file(seed: int) -> corpus.Sample:
    """The sound file of a seed, it or its companion damaged."""
    chance = random.Random(seed)
    sample = chance.choice(samples())
    if sample.companion and chance.random() < 0.5:
        return sample._replace(companion=mutate_file(chance, sample.companion))
    return sample._replace(data=mutate_file(chance, sample.data))


def addresses(image: ElfImage) -> list[int]:
    """Addresses all over the code of a file, and some outside, ascending."""
    chosen = {0, 4, 0x1000, 0x1010, 0x1014, 0x1020, 0x1100, 0x2000, 1 << 63, LAST}
    for begin, end in zip(*(column[:8].tolist() for column in image.code_ranges), strict=True):
        chosen.update(begin + (end - begin) * k // 16 for k in range(17))
    return sorted(chosen)


def answers(table: SymbolTable, vaddrs: list[int]) -> object:
    """Everything that a table says of some addresses, in a form that can be compared."""
    array = np.array(vaddrs, np.uint64)
    frames = table.lookup(array)
    functions = frames.functions.take(frames.function.astype(np.int64))
    files = [frames.files[file] if file >= 0 else b"" for file in frames.file.tolist()]
    places = [column.tolist() for column in (frames.offsets, frames.line, frames.column, frames.folded)]
    declared = [frames.files[file] if file >= 0 else b"" for file in functions.decl_file.tolist()]
    named = [list(functions.linkage), list(functions.name), declared, functions.decl_line.tolist()]
    folded = [(code, rows.tolist()) for code, rows in table.folded(array)]
    return places, files, named, folded, table.doubtful(array).tolist(), table.problems


def look_up(sample: corpus.Sample) -> object:
    """Look addresses of a file up, in a table for them and in the whole one. ElfError is the only way out."""
    finder = None
    path = FOLDER / f"fuzz-companion-{os.getpid()}"
    if sample.companion:
        path.write_bytes(sample.companion)
        finder = OneCompanion(str(path), sample.kind)
    try:
        with ElfImage.parse(memoryview(sample.data), "damaged") as image:
            vaddrs = addresses(image)
            inside_calls(image, np.array(vaddrs, np.uint64))
            binary = Binary([image], finder)
            result = answers(binary.table(np.array(vaddrs, np.uint64)), vaddrs), answers(binary.table(), vaddrs)
            binary.close()
            return result
    except ElfError as error:
        assert "\n" not in str(error)
        return str(error)
    finally:
        path.unlink(missing_ok=True)


def file_target(seed: int) -> int:
    """A damaged ELF file."""
    sample = damaged_file(seed)
    look_up(sample)
    return len(sample.data) + len(sample.companion)


@cache
def linkage_names() -> list[bytes]:
    """The sound names."""
    return list(corpus.names())


def name_target(seed: int) -> int:
    """Some damaged linkage names, in all modes and against one another."""
    chance = random.Random(seed)
    damaged = [mutate_name(chance, chance.choice(linkage_names())) for _ in range(NAMES_AT_ONCE)]
    for mode in MODES:
        for text in demangle(damaged, mode):
            assert len(text) <= 1 << 20
    for a, b in pairwise(damaged):
        same_function(a, b)
    return sum(map(len, damaged))


@cache
def tables() -> list[tuple[bytes, list[int]]]:
    """Sound table files, each with addresses."""
    result = []
    folder = FOLDER / f"fuzz-tables-{os.getpid()}"
    store = TableCache(folder)
    for sample in samples():
        with ElfImage.parse(memoryview(sample.data), "sound") as image:
            store.store(build_table([image]), facts_of([image]))
            path = Path(store._path(facts_of([image]), ".symtab"))
            result.append((path.read_bytes(), addresses(image)))
            path.unlink()
    os.rmdir(store.folder)
    os.rmdir(folder)
    return result


def table_target(seed: int) -> int:
    """A table file with damaged contents and a checksum that agrees."""
    chance = random.Random(seed)
    sound, vaddrs = chance.choice(tables())
    body = bytearray(sound[PREFIX.size :])
    (header_size,) = struct.unpack_from("<I", sound, 12)
    for _ in range(chance.choice(HOW_MANY)):
        first, last = chance.choice(((0, header_size), (header_size, len(body)), (header_size, len(body))))
        part = body[first:last]
        if part:
            chance.choice(ANY[:4])(chance, part)
            body[first:last] = part
    header = bytearray(sound[: PREFIX.size])
    struct.pack_into("<QI", header, 16, PREFIX.size + len(body), crc32(bytes(body)))
    path = FOLDER / f"fuzz-table-{os.getpid()}"
    path.write_bytes(header + body)
    try:
        table, _ = read_table(str(path))
        answers(table, vaddrs)
        _ = [table.files[k] for k in range(len(table.files))]
    except DamagedTable:
        pass
    finally:
        path.unlink()
    return len(body)


TARGETS: dict[str, Callable[[int], int]] = {
    "files": file_target,
    "names": name_target,
    "texts": text_target,
    "commands": command_target,
    "served": served_target,
    "tables": table_target,
    "profiles": profile_target,
    "stacks": stack_target,
    "merged": merged_target,
    "otlp": otlp_target,
    "firefox": firefox_target,
    "index": index_target,
    "manifest": manifest_target,
    **loaders.TARGETS,
}
