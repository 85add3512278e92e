"""The inspection of a file of any kind."""

import os
from collections.abc import Sequence

from symbolize.binaries import BinaryIndex, SpecialFiles, decompress
from symbolize.binaries.unpack import is_packed
from symbolize.core.errors import InputError
from symbolize.core.files import os_error_text
from symbolize.elf import ElfImage
from symbolize.inspection.binary import inspect_elf
from symbolize.inspection.lists import inspect_archive, inspect_list, list_readers
from symbolize.inspection.model import Inspection
from symbolize.inspection.profiles import content_head, inspect_profile

HEAD = 4096
ELF_MAGIC = b"\x7fELF"
MAX_PACKED, MAX_UNPACKED = 256 << 20, 1 << 30
"""Bytes of the largest compressed file that is read, and of its content."""


def inspect(path: str, folders: Sequence[str] = (), cache_folder: str | None = None) -> Inspection:
    """What the file at `path` offers, with the other files of its build below `folders`, by default its own folder and
    the subfolders; or what is in a profile or trace. Raises InputError if it cannot be read or is of no known kind.
    `cache_folder` is for the index of `folders`."""
    if os.path.isdir(path):  # which perf recorded into
        return inspect_profile(path)
    files = SpecialFiles(BinaryIndex(()))
    head = files.head(path, HEAD)
    if files.problems:
        raise InputError(path, files.problems[0].removeprefix(f"{path}: "))
    if not head:
        raise InputError(path, "the file is empty")
    size = os.stat(path).st_size
    if head.startswith(ELF_MAGIC):
        try:
            image = ElfImage.open(path)
        except OSError as error:
            raise InputError(path, os_error_text(error)) from error
        with image:
            index = index_for(path, folders, cache_folder)
            try:
                result = inspect_elf(image, size, index)
            finally:
                index.close()
                image.check()
        if folders:
            result.problems += index.problems
        return result
    if is_packed(head):
        content = content_head(path)
        return inspect_profile(path) if content and not content.startswith(ELF_MAGIC) else inspect_packed(path, files)
    if head.startswith(b"PK"):
        return inspect_archive(path, size)
    for kind, limit, reader in list_readers(os.path.basename(path), head):
        data = files.read(path, limit)
        if data is None:
            raise InputError(path, files.problems[0].removeprefix(f"{path}: "))
        return inspect_list(path, kind, len(data), *reader(data))
    try:
        return inspect_profile(path)
    except InputError as error:
        problem = error.problem.replace("is not a profile:", "is no binary, list of symbols or profile:")
        raise InputError(path, problem, error.offset) from error


def index_for(path: str, folders: Sequence[str], cache_folder: str | None) -> BinaryIndex:
    """The index of the files that may belong to the one at `path`, which is among them."""
    if folders:
        return BinaryIndex([*folders, path], cache_folder)
    return BinaryIndex([os.path.dirname(path) or ".", path], depth=1)


def inspect_packed(path: str, files: SpecialFiles) -> Inspection:
    """Inspect a file that is compressed as a whole, as kernel modules and files of symbol stores are."""
    data = files.read(path, MAX_PACKED)
    if data is None:
        raise InputError(path, files.problems[0].removeprefix(f"{path}: "))
    unpacked = decompress(data, MAX_UNPACKED, path)
    if not unpacked.startswith(ELF_MAGIC):
        raise InputError(path, "is compressed and holds no ELF file")
    with ElfImage.parse(memoryview(unpacked), path) as image:
        result = inspect_elf(image, len(data), None)
    result.kind = "compressed ELF"
    return result
