"""The numbers of DWARF, for compiled modules and for interpreted ones."""

import re
from pathlib import Path

import elftools.dwarf.constants
import elftools.dwarf.enums

import symbolize.dwarf
from symbolize.dwarf import constants

FOLDER = Path(symbolize.dwarf.__path__[0])
NUMBERS = {name: value for name, value in vars(constants).items() if isinstance(value, int)}


def test_none_is_unused() -> None:
    """Each number is used by a module of the package."""
    sources = [path.read_text() for path in FOLDER.glob("*.py") if path.name != "constants.py"]
    words = set(re.findall(r"\w+", "\n".join(sources)))
    assert set(NUMBERS) <= words


def test_names() -> None:
    """The names that DWARF gives have the values that pyelftools knows."""
    known = {name: value for name, value in vars(elftools.dwarf.constants).items() if name in NUMBERS}
    for table in vars(elftools.dwarf.enums).values():
        known |= {name: table[name] for name in NUMBERS if isinstance(table, dict) and name in table}
    assert len(known) > 130
    assert {name: NUMBERS[name] for name in known} == known
