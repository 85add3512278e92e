"""Debug files by build id, as debuginfod serves them, and their upload."""

import os
from typing import BinaryIO, Final

from symbolize.analysis.sources import Sources
from symbolize.binaries import is_build_id, plain_build_id
from symbolize.binaries.entries import Entry
from symbolize.core.errors import InputError, UsageError
from symbolize.core.files import atomic_file, is_regular
from symbolize.elf import ElfImage
from symbolize.elf.probe import DWARF, HEADER_BYTES, SYMTAB, identify_open
from symbolize.serve.modules import Modules

KINDS: Final = ("debuginfo", "executable")
MAX_SECTION_NAME: Final = 256
CHUNK: Final = 1 << 20


def checked_build_id(text: str) -> str:
    """A build id of a URL, in lower case. Raises UsageError for text that is none."""
    if not is_build_id(text.lower()):
        raise UsageError("not a build id: an even number of hex digits, 4 to 128")
    return plain_build_id(text)


def file_of(modules: Modules, build_id: str, kind: str) -> str | None:
    """The path of the file with debug information ("debuginfo") or with code ("executable") of a build, None if there
    is none."""
    entries = [entry for entry in modules.files(build_id) if "!" not in entry.path and is_wanted(entry, kind)]
    best = min(entries, key=lambda entry: entry.rank, default=None)
    if best is None or not is_regular(os.stat(best.path)):
        return None
    return best.path


def is_wanted(entry: Entry, kind: str) -> bool:
    """Whether a file is one of a kind: files with symbols but no DWARF are debug files too."""
    return entry.has_code if kind == "executable" else bool(entry.offers & (DWARF | SYMTAB))


def section_of(modules: Modules, build_id: str, name: str) -> bytes | None:
    """The bytes of a section as they are in the file, of the debug file, else of the one with the code."""
    if len(name) > MAX_SECTION_NAME:
        raise UsageError("the name of a section is too long")
    for kind in KINDS:
        path = file_of(modules, build_id, kind)
        if path is None:
            continue
        image = ElfImage.open(path)
        try:
            section = image.find(name)
            contents = image.raw(section) if section is not None else None
            if contents is not None:
                data = bytes(contents)
                image.check()
                return data
        finally:
            image.close()
    return None


def source_of(modules: Modules, sources: Sources, build_id: str, path: str) -> str | None:
    """The path of a source file that the debug information of a build names; None if it names no such file, or there is
    none below the folders with sources."""
    module = modules.find(build_id)
    if module is None:
        return None
    with module.used() as binary:
        files = binary.table().files
        names = {os.path.normpath(name) for name in files}
    wanted = os.path.normpath(path)
    return sources.find(wanted) if os.fsencode(wanted) in names else None


class Uploads:
    """Debug files that clients sent, in the layout `.build-id/XX/REST` below `folder`; `limit` bytes each."""

    def __init__(self, folder: str, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def path(self, build_id: str, kind: str) -> str:
        """Where a file of a build is kept."""
        suffix = ".debug" * (kind == "debuginfo")
        return os.path.join(self.folder, ".build-id", build_id[:2], build_id[2:] + suffix)

    def receive(self, build_id: str, kind: str, body: BinaryIO) -> bool:
        """Keep what was sent, once it is known to be an ELF file with the build id; whether it is new. A file that is
        there already is not replaced. Raises UsageError for another file, OSError."""
        path = self.path(build_id, kind)
        if os.path.lexists(path):
            return False
        try:
            found = identify_open(body.fileno(), "upload", os.pread(body.fileno(), HEADER_BYTES, 0))
        except InputError as error:
            raise UsageError(f"the file is damaged: {error.problem}") from error
        if found is None:
            raise UsageError("the file is no ELF file")
        if found.build_id != build_id:
            raise UsageError(f"the file has the build id {found.build_id or 'none'}, not {build_id}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        body.seek(0)
        with atomic_file(path) as file:
            while chunk := body.read(CHUNK):
                file.write(chunk)
        return True
