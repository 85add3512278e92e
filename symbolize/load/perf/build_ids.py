"""Which build id of the table of a recording is that of a mapping."""

import re
from collections.abc import Sequence
from typing import Final

from symbolize.load.perf.header import BuildId

KERNEL: Final = re.compile(rb"\[kernel[^]]*\]\w*|(?:.*/)?vmlinux[^/]*|/proc/kcore")
MODULE: Final = re.compile(rb"\[([\w-]+)\]|(?:.*/)?([^/]+)\.ko(?:\.(?:gz|xz|zst))?")


class BuildIds:
    """The table of build ids by the names that mappings have (R293, names in the table of build ids)."""

    def __init__(self, entries: Sequence[BuildId]) -> None:
        self._by_name: dict[bytes, bytes] = {}
        self._modules: dict[bytes, bytes] = {}
        self._kernel = b""
        for entry in entries:
            if not entry.build_id or entry.is_guest:
                continue
            if entry.is_kernel and KERNEL.fullmatch(entry.name):
                self._kernel = self._kernel or entry.build_id
            elif entry.is_kernel and (module := module_name(entry.name)):
                self._modules.setdefault(module, entry.build_id)
            else:
                self._by_name.setdefault(entry.name, entry.build_id)

    def find(self, name: bytes) -> bytes:
        """The build id of the file of a mapping, empty if it is not known."""
        if name.startswith(b"[kernel.kallsyms]"):
            return self._kernel
        return self._by_name.get(name) or self._modules.get(module_name(name), b"")


def module_name(name: bytes) -> bytes:
    """The name of the kernel module that a file or mapping is of, empty if it is none."""
    match = MODULE.fullmatch(name)
    return (match[1] or match[2]).replace(b"-", b"_") if match else b""
