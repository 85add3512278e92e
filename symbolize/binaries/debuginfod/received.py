"""Checks of a file that was fetched: whoever sent it, it has to be the one that was asked for, and all of it."""

import os

from symbolize.binaries.build_id import same_build_id
from symbolize.core.errors import InputError, printable
from symbolize.elf import ElfImage

ELF_MAGIC = b"\x7fELF"


class Wrong(Exception):
    """The file that came is not the one that was asked for."""


def check_head(head: bytes) -> None:
    """Check the first bytes of an ELF file. Raises Wrong for a page of a proxy, or anything of any size."""
    if not ELF_MAGIC.startswith(head[: len(ELF_MAGIC)]):
        raise Wrong("refused: not an ELF file")


def verify_file(path: str, build_id: str) -> None:
    """Check that what came is the file with a build id, and all of it. Raises Wrong."""
    if not os.path.getsize(path):
        raise Wrong("refused: an empty file came")
    try:
        with ElfImage.open(path) as image:
            if image.build_id is None or not same_build_id(image.build_id, build_id):
                raise Wrong(f"refused: has {image.build_id or 'no build id'}, wanted {build_id}")
            cut = [
                problem for problem in image.problems if "section headers" in problem or "program headers" in problem
            ]
            if cut:
                raise Wrong(f"refused: {cut[0]}")
            for section in image.sections:
                if section.has_bytes and section.file_offset + section.size > len(image.data):
                    raise Wrong(f"refused: cut off, section {printable(section.name)} reaches past the end")
    except InputError as error:
        raise Wrong(f"refused: {error.problem}") from None
