"""Small programs that are compiled, and stacks in them: where functions begin, and where their calls return to."""

import io
import subprocess
from collections.abc import Sequence
from pathlib import Path

from symbolize import Profile, load
from symbolize.elf import ElfImage, read_symbols
from tests.support.gperftools_writer import profile

CALL = 0xE8
BASE = 0x550000000000


class Program:
    """An x86-64 program, compiled of sources by a command such as `gcc -O2 -g`; the last of them is linked first."""

    def __init__(self, folder: Path, command: Sequence[str], **sources: str) -> None:
        folder.mkdir(exist_ok=True)
        for name, text in sources.items():
            (folder / name.replace("_", ".")).write_text(text)
        self.path = folder / "prog"
        files = [str(folder / name.replace("_", ".")) for name in reversed(sources)]
        subprocess.run([*command, "-o", self.path, *files], check=True, cwd=folder)
        with ElfImage.open(self.path) as image:
            symbols = read_symbols(image, ".symtab")
            (code,) = (segment for segment in image.segments if segment.executable)
            data = bytes(image.data[code.file_offset : code.file_offset + code.file_size])
            base = 0 if image.kind == "ET_EXEC" else BASE
        assert symbols is not None
        names = [symbols.text(name).decode() for name in symbols.name.tolist()]
        self.begin = {name: vaddr + base for name, vaddr in zip(names, symbols.vaddr.tolist(), strict=True)}
        self._code, self._first = data, code.vaddr + base
        self._offset = code.file_offset

    def call(self, caller: str, callee: str, number: int = 0) -> int:
        """Where a call of a function in another one returns to: the first one, or a later `number`."""
        at = self.begin[caller] - self._first
        while True:
            at = self._code.index(CALL, at) + 1
            back = self._first + at + 4
            if back + int.from_bytes(self._code[at : at + 4], "little", signed=True) == self.begin[callee]:
                if not number:
                    return back
                number -= 1

    def maps(self, file: str = "/opt/prog", shift: int = 0) -> str:
        """The memory map of a process with the program, its addresses that much above those of `begin` and `call`."""
        first = self._first + shift
        return f"{first:x}-{first + len(self._code):x} r-xp {self._offset:08x} 00:00 0 {file}\n"

    def recorded(self, *stacks: Sequence[int]) -> Profile:
        """A profile of stacks, from the leaf on."""
        return load(io.BytesIO(profile([(1, stack) for stack in stacks], self.maps().encode())))
