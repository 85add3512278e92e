"""Which provider answers for a mapping."""

from collections.abc import Callable, Sequence

import numpy as np

from symbolize.binaries import BinaryIndex, SpecialFiles
from symbolize.binaries.finder import plain_names
from symbolize.core.arrays import Int64, UInt64, offsets_of
from symbolize.core.mapped_names import RUN_TIME, base_name, is_no_file, mapped_by, release_in
from symbolize.elf import ElfImage
from symbolize.elf.call_frames import FramesAt
from symbolize.profile import NONE, AddressKind, Profile
from symbolize.profile.attachments import SampleTimes
from symbolize.profile.sample_times import Borders, take_apart
from symbolize.resolve.mapping_record import NO_ADDRESSES, NO_ROWS, MappingRecord, processes, records_of
from symbolize.resolve.opened import OpenBinaries
from symbolize.resolve.providers.jit import CompiledCode, ListedFrames
from symbolize.resolve.providers.kernel import (
    KernelModules,
    Kernels,
    find_vdso,
    is_guest_kernel,
    is_kernel,
    is_vdso,
    module_name,
)
from symbolize.resolve.providers.members import Members, is_in_archive
from symbolize.resolve.providers.symbol_files import SymbolFiles
from symbolize.resolve.providers.symbol_lists import SymbolLists
from symbolize.resolve.resolution import Resolution


def is_run_time_code(mapping: MappingRecord) -> bool:
    """Whether a mapping is memory that may hold code compiled at run time, or none at all."""
    name = mapping.filename
    if mapping.kind == AddressKind.NO_BINARY:
        return mapped_by(name) in RUN_TIME
    if mapping.mapping == NONE:
        return True
    return not mapping.build_id and mapped_by(name) in RUN_TIME


class SymbolProviders:
    """What names mappings without a file of their own, below the roots of `index`; files are read when they are needed.

    `prepare` takes what a profile records of itself, before its mappings are asked for.
    """

    def __init__(self, index: BinaryIndex, opened: OpenBinaries) -> None:
        self._index = index
        self._opened = opened
        self._files = SpecialFiles(index)
        self._lists = SymbolLists(self._files)
        self._kernels = Kernels(index, self._files, opened, self._lists)
        self._modules = KernelModules(index, self._files, opened)
        self._members = Members(index, self._files, opened)
        self._compiled = CompiledCode(self._files, self._lists)
        self._symbol_files = SymbolFiles(self._files, self._lists)
        self._mappings: Sequence[MappingRecord] = ()
        self._processes: set[int] = set()
        self._machine = self._release = ""
        self._kernel: MappingRecord | None = None

    @property
    def problems(self) -> list[str]:
        """What could not be read, a sentence each."""
        return self._files.problems

    def prepare(self, profile: Profile, mappings: Sequence[MappingRecord]) -> None:
        """Take in what a profile says of itself: its kernel, its processes, and all its `mappings`."""
        self._mappings = [each.without_locations() for each in mappings]
        kernels = [each for each in self._mappings if is_kernel(each.filename) and not is_guest_kernel(each.filename)]
        self._kernel = kernels[0] if len(kernels) == 1 else None
        releases = {release_in(mapping.filename) for mapping in mappings} - {""}
        self._release = profile.kernel_release or (releases.pop() if len(releases) == 1 else "")
        self._machine = profile.machine
        self._processes = processes(profile)

    def take_apart(self, profile: Profile) -> Int64:
        """Let no location of a profile be an address at times when it was of different functions: which location each
        was. The profile is changed."""
        clock = profile.sample_times
        if clock is None or profile.stack_dumps is not None:  # callers that are not known yet have no times
            return np.arange(len(profile.locations))
        known = processes(profile)
        found = [
            self._compiled.borders(record, known, clock)
            for record in records_of(profile, with_names=False)
            if len(record.rows) and is_run_time_code(record)
        ]
        counts = np.concatenate([np.diff(each.offsets) for each in found]) if found else NO_ROWS
        rows = np.concatenate([each.rows for each in found]) if found else NO_ROWS
        times = np.concatenate([each.times for each in found]) if found else NO_ADDRESSES
        return take_apart(profile, Borders(rows, offsets_of(counts), times))

    def frames(self, clock: SampleTimes | None) -> Callable[[MappingRecord, UInt64, UInt64], FramesAt | None]:
        """What finds the call frame information at addresses of mappings that have no file, at times of a clock."""
        listed = ListedFrames(self._compiled, self._processes, clock)

        def find(mapping: MappingRecord, addresses: UInt64, times: UInt64) -> FramesAt | None:
            return listed.find(mapping, addresses, times) if is_run_time_code(mapping) else None

        return find

    def find(self, mapping: MappingRecord) -> Resolution | None:
        """What answers for a mapping that has no file of its own, by its kind or name; None if an ordinary lookup has
        to answer. Code that was compiled at run time counts whatever it is called; bytecode does not."""
        name = mapping.filename
        if is_run_time_code(mapping):
            return self._compiled.find(mapping, self._processes)
        if mapping.kind == AddressKind.NO_BINARY:
            return None
        if is_kernel(name):
            return self._kernels.find(mapping, self._machine, self._release)
        if is_vdso(name):
            return find_vdso(self._index, self._opened, mapping)
        if is_in_archive(name):
            return self._members.find(mapping)
        if module_name(name):
            return self._module(mapping)
        return None

    def absent(self, mapping: MappingRecord) -> str:
        """The list that is not there of a mapping of code compiled at run time; empty if none is known to lack."""
        return self._compiled.absent(mapping.filename, self._processes) if is_run_time_code(mapping) else ""

    def symbols_for(self, mapping: MappingRecord, images: Sequence[ElfImage]) -> Resolution | None:
        """A symbol file for a mapping whose binary is not there, or has no symbols and consists of `images`."""
        if is_no_file(mapping.filename) and not mapping.build_id:
            return None
        name = base_name(plain_names(mapping.filename)[-1])
        return self._symbol_files.find(mapping, name, self._mappings, images)

    @property
    def count(self) -> int:
        """How many files are kept of what was read."""
        return len(self._lists) + self._kernels.count

    def close(self) -> None:
        """Release what was read."""
        self._lists.close()
        self._kernels.close()

    def _module(self, mapping: MappingRecord) -> Resolution | None:
        """A kernel module, by build id the one of the index; where there is none, the list of the kernel's symbols."""
        if mapping.build_id and self._index.with_build_id(mapping.build_id):
            return None
        found = self._modules.find(mapping, self._release)
        if found is not None:
            return found
        return self._kernels.module(mapping, self._kernel, self._machine, self._release)
