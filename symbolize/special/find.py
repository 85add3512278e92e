"""Which special source answers for a mapping."""

from collections.abc import Sequence

from symbolize.binaries import BinaryIndex, SpecialFiles
from symbolize.binaries.recorded_names import is_no_file, plain_names
from symbolize.elf import ElfImage
from symbolize.special.breakpad import SymbolFiles
from symbolize.special.jit import CompiledCode, is_anonymous, is_compiled
from symbolize.special.kernel import Kernels, Opener, is_kernel, release_in
from symbolize.special.members import Members, is_in_archive
from symbolize.special.modules import Modules, module_name
from symbolize.special.source import Recorded, Source, UInt64
from symbolize.special.vdso import find_vdso, is_vdso


class SpecialSources:
    """The special sources below the roots of `index`; `opener` opens binaries. Files are read when they are needed.

    `prepare` tells what a profile says about itself, before its mappings are asked for.
    """

    def __init__(self, index: BinaryIndex, opener: Opener) -> None:
        self._index = index
        self._open = opener
        self._files = SpecialFiles(index.roots)
        self._kernels = Kernels(index, self._files, opener)
        self._modules = Modules(index, self._files, opener)
        self._members = Members(index, self._files, opener)
        self._compiled = CompiledCode(self._files)
        self._symbol_files = SymbolFiles(self._files)
        self._all = self._compiled, self._kernels, self._modules, self._members, self._symbol_files
        self._mappings: Sequence[Recorded] = ()
        self._processes: set[int] = set()
        self._release = ""

    @property
    def problems(self) -> list[str]:
        """What could not be read, a sentence each."""
        return self._files.problems

    def prepare(self, mappings: Sequence[Recorded], processes: set[int]) -> None:
        """All mappings of a profile, without locations, and the processes it is of, as far as it tells."""
        self._mappings = mappings
        releases = {release_in(mapping.filename) for mapping in mappings} - {""}
        self._release = releases.pop() if len(releases) == 1 else ""
        self._processes = processes

    def find(self, mapping: Recorded) -> Source | None:
        """The source for a mapping that is known by its name to have no file of its own; None if an ordinary lookup
        has to answer."""
        if is_kernel(mapping.filename):
            return self._kernels.find(mapping, self._release)
        if is_vdso(mapping.filename):
            return find_vdso(self._index, self._open, mapping)
        if not mapping.build_id and is_anonymous(mapping.filename):
            return self._compiled.find(mapping.filename, mapping.addresses, self._processes)
        if is_in_archive(mapping.filename):
            return self._members.find(mapping)
        if module_name(mapping.filename):
            return self._module(mapping)
        return None

    def _module(self, mapping: Recorded) -> Source | None:
        """A kernel module, by build id the one of the index; where there is none, the list of the kernel's symbols."""
        if mapping.build_id and self._index.with_build_id(mapping.build_id):
            return None
        source = self._modules.find(mapping, self._release)
        return source if source is not None else self._kernels.module(mapping, self._release)

    def symbols_for(self, mapping: Recorded, images: Sequence[ElfImage]) -> Source | None:
        """A symbol file for a mapping whose binary is not there, or has no symbols and consists of `images`."""
        if is_no_file(mapping.filename) and not mapping.build_id:
            return None
        name = plain_names(mapping.filename)[-1].rpartition("/")[2]
        return self._symbol_files.find(mapping, name, self._mappings, images)

    def compiled(self, mapping: Recorded) -> Source | None:
        """The source for a mapping of code that was compiled at run time, whatever it is called; not of bytecode."""
        name = mapping.filename
        if not is_anonymous(name) and not is_compiled(name):
            return None
        return self._compiled.find(name, mapping.addresses, self._processes)

    def without_mapping(self, addresses: UInt64) -> Source | None:
        """The source for addresses that lie in no mapping."""
        return self._compiled.find("", addresses, self._processes) if len(addresses) else None

    @property
    def count(self) -> int:
        """How many files are kept of what was read."""
        return sum(each.count for each in self._all)

    def close(self) -> None:
        """Let go of what was read."""
        for each in self._all:
            each.close()
