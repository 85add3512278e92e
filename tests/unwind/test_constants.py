"""The numbers of call frame information, for compiled modules and for interpreted ones."""

import re
from pathlib import Path

import elftools.dwarf.constants
import elftools.dwarf.dwarf_expr

import symbolize.unwind
from symbolize.unwind import constants

FOLDER = Path(symbolize.unwind.__path__[0])
NUMBERS = {name: value for name, value in vars(constants).items() if isinstance(value, int)}


def test_none_is_unused() -> None:
    """Each number is used by a module of the package."""
    sources = [path.read_text() for path in FOLDER.glob("*.py") if path.name != "constants.py"]
    words = set(re.findall(r"\w+", "\n".join(sources)))
    assert set(NUMBERS) <= words


def test_names() -> None:
    """The names that DWARF gives have the values that pyelftools knows."""
    known = {**vars(elftools.dwarf.constants), **elftools.dwarf.dwarf_expr.DW_OP_name2opcode}
    shared = {name: known[name] for name in NUMBERS if name in known}
    assert len(shared) > 55
    assert {name: NUMBERS[name] for name in shared} == shared
