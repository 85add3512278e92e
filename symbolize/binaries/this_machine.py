"""The files of this machine that mappings of a profile may be, where the profile says that they are: without a folder
to walk.

Names out of a profile lead to a file only through `FileSystem.regular`, which looks at no mount but those of local file
systems: a device, a FIFO, an automount and a server that does not answer are never touched. Nothing is written.
"""

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from symbolize.binaries.build_id import is_build_id, same_build_id
from symbolize.binaries.finder import plain_names
from symbolize.binaries.index import BinaryIndex
from symbolize.binaries.index_update import File, Folder
from symbolize.binaries.links import SYSTEM, default_folder, is_plain_name
from symbolize.binaries.remote import Attempt, Fetched, Kind
from symbolize.core.files import open_regular, read_limited
from symbolize.core.mapped_names import is_no_file
from symbolize.elf import ElfError
from symbolize.elf.headers import MAX_NOTES_BYTES, gnu_build_id
from symbolize.elf.probe import CODE, DWARF, HEADER_BYTES, SYMTAB, Ident, identify_open

KALLSYMS: Final = "/proc/kallsyms"
"""The symbols of the running kernel, where they are in memory."""
NOTES: Final = "/sys/kernel/notes"
"""The notes of the running kernel, one of which is its build id."""
MODULES: Final = "/proc/modules"
"""The modules of the running kernel, and where they are."""
MODULE_NOTES: Final = "/sys/module/{}/notes/.note.gnu.build-id"
MODULE_FOLDER: Final = "/lib/modules/{}"
KERNELS: Final = (
    f"{SYSTEM}/boot/vmlinux-{{0}}",
    f"{SYSTEM}/lib/modules/{{0}}/vmlinux",
    f"{MODULE_FOLDER.format('{0}')}/build/vmlinux",
    "/boot/vmlinux-{0}",
)
"""Where distributions, and builds, put the kernel of a release with its symbols."""
PROC: Final = "/proc"
LOCAL: Final = re.compile(
    "ext[234]|xfs|btrfs|f2fs|zfs|bcachefs|jfs|reiserfs|nilfs2|ubifs|erofs|squashfs|overlay|aufs|"
    "tmpfs|ramfs|rootfs|virtiofs|iso9660|vfat"
)
"""Types of file systems that answer by themselves. Others are looked at where programs are, at the root, and where the
user is."""
OF_KERNEL: Final = re.compile("|proc|sysfs|dev.*|autofs|.*debugfs|tracefs|cgroup.*|securityfs|configfs|bpf|pstore")
"""Types whose files do something when they are opened, and none: nothing is known of the place."""
ROOT: Final = "/"
POINT: Final = 4
"""The field of a mount table that has the mount point."""
MAX_MOUNTS: Final = 1 << 22
"""Bytes of a mount table that are read."""
MAX_PATH: Final = 4096
MAX_LINKS: Final = 40
"""Links on the way to a file that are followed, as many as Linux follows (path_resolution(7))."""
MAX_PARTS: Final = 256
MAX_WANTED: Final = 1 << 12
"""Mappings of a profile whose files are looked for."""
MAX_NAMESPACES: Final = 64
"""Mount namespaces of containers that are looked into."""
MAX_IN_CONTAINERS: Final = 1 << 13
"""Paths that are looked for in them, in all together."""
MAX_LIST: Final = 1 << 23
"""Bytes of a list of the kernel's modules, and of a map of our memory."""
MAX_VDSO: Final = 1 << 18
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")


class FileSystem:
    """The files below `root` that local file systems have, by a mount table (proc_pid_mountinfo(5)) whose mount points
    are seen from there. Without a table there are none. What is not `ours` may have anything mounted anywhere."""

    def __init__(self, root: str = "/", mounts: str = "/proc/self/mountinfo", *, ours: bool = True) -> None:
        self._root = root
        self._mounts = read_mounts(mounts)
        self._trusted = {"/"} if ours else set()
        with suppress(OSError):  # the current folder was removed
            self._trusted |= {self._mount_of(os.getcwd())} if ours else set()

    def regular(self, path: str) -> tuple[str, os.stat_result] | None:
        """The path of the regular file at an absolute path, all links followed, and its status; None if there is none,
        or the way to it leaves the local file systems."""
        if len(path) > MAX_PATH:
            return None
        done: list[str] = []
        left = parts_of(path)
        links = 0
        while left and len(left) + len(done) <= MAX_PARTS:
            part = left.pop()
            if part == "..":
                del done[-1:]
                continue
            here = "/" + "/".join([*done, part])
            if not self._is_local(here):
                return None
            try:
                status = os.lstat(self.place(here))
                target = os.readlink(self.place(here)) if stat.S_ISLNK(status.st_mode) else None
            except (OSError, ValueError):
                return None
            if target is not None:
                links += 1
                if links > MAX_LINKS:
                    return None
                done = [] if target.startswith("/") else done
                left += parts_of(target)
            elif left:
                if not stat.S_ISDIR(status.st_mode):
                    return None
                done.append(part)
            else:
                return (here, status) if stat.S_ISREG(status.st_mode) else None
        return None

    def place(self, path: str) -> str:
        """Where this process finds a path of the file system."""
        return os.path.join(self._root, path.lstrip("/"))

    def _is_local(self, path: str) -> bool:
        """Whether what is at a path, none of whose folders is a link, may be looked at."""
        mount = self._mount_of(path)
        kind = self._mounts.get(mount, "")
        return LOCAL.fullmatch(kind) is not None or (mount in self._trusted and OF_KERNEL.fullmatch(kind) is None)

    def _mount_of(self, path: str) -> str:
        """Where the file system is mounted that has a path."""
        while path not in self._mounts and path != "/":
            path = os.path.dirname(path)
        return path


def parts_of(path: str) -> list[str]:
    """The names on the way along a path, the last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def read_mounts(path: str) -> dict[str, str]:
    """The type of the file system at each mount point of a mount table; of several that are mounted at one place the
    last one counts. Empty if the table cannot be read, or is too long."""
    mounts = {}
    with suppress(OSError):
        for line in (read_limited(path, MAX_MOUNTS) or b"").split(b"\n"):
            before, _, behind = line.partition(b" - ")
            if len(fields := before.split(b" ")) > POINT and behind:
                point = _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), fields[POINT])
                mounts[os.fsdecode(point)] = os.fsdecode(behind.split(b" ")[0])
    return mounts


class WantedFile(NamedTuple):
    """A mapping whose file is wanted: its recorded name and build id, either of which may be empty, and whether that is
    a claim: read later, by path."""

    filename: str
    build_id: str
    is_claim: bool = False


class RecordingTimes(NamedTuple):
    """The times of a recording, in seconds since 1970: when it had begun (0: unknown), the earliest that is known of
    it, and when its file was written (infinite: unknown)."""

    begun: float
    earliest: float
    written: float


class ThisMachine:
    """The files that were looked for, for one profile at a time; `folders` hands them out as a walk below `roots` does,
    `fetch` as servers do. `paths` has the path of each recorded name whose file is there, `problems` a sentence for
    what does not count."""

    def __init__(self) -> None:
        self._system = FileSystem()
        self._index: BinaryIndex | None = None
        self._listed: dict[str, os.stat_result] = {}
        self._sought: set[str] = set()
        self.paths: dict[str, str] = {}
        self.problems: list[str] = []

    @property
    def roots(self) -> Sequence[str]:
        """The root of the file system, if files are listed."""
        return (ROOT,) if self._listed else ()

    def look_for(
        self,
        index: BinaryIndex,
        wanted: Sequence[WantedFile],
        kernels: Iterable[str],
        times: RecordingTimes,
    ) -> None:
        """List, for an index of these files, what the mappings of a profile may be, the heaviest first, by name and
        then by build id; their debug files; and the list of the running kernel, if its build id is one of `kernels`. A
        claim is void if the file was written after the recording began, and a path without a build id if it was written
        or replaced after that, or after the profile. Where a file was written after the profile, the recorded build may
        be kept elsewhere: a copy of it counts that is older than the recording."""
        self._listed, self.paths, self.problems = {}, {}, []
        self._system, self._index = FileSystem(), index
        void, void_paths, since = set[WantedFile](), set[str](), set[WantedFile]()
        wanted = list(dict.fromkeys(wanted))
        if len(wanted) > MAX_WANTED:
            self.problems.append(f"{len(wanted) - MAX_WANTED:,} light mappings were not looked for on this machine")
        wanted = wanted[:MAX_WANTED]
        for each in wanted:
            found = next(filter(None, map(self._list, paths_of(each.filename, each.build_id))), None)
            if found is not None and is_younger(self._listed[found], each, times):
                was_later = each.is_claim and self._listed[found].st_mtime > times.written
                (since if was_later else void).add(each)
                void_paths.add(found)
            elif found is not None:
                self.paths[each.filename] = found
        for path in sorted(void_paths):
            del self._listed[path]
            self.problems.append(f"{path}: was written or replaced after the recording began, not used")
        self.paths = {name: path for name, path in self.paths.items() if path not in void_paths}
        if any(is_build_id(each) and same_build_id(each, running_kernel_id()) for each in kernels):
            with suppress(OSError):  # it is no file of a local file system
                self._listed[KALLSYMS] = os.stat(KALLSYMS)
            for place in KERNELS:
                self._list(place.format(os.uname().release))
        with_ids = [each for each in wanted if is_build_id(each.build_id) and each not in void]
        self._sought = {each.build_id for each in with_ids}
        for place in module_files(self._system, {each.filename for each in with_ids}):
            self._list(place)
        index.walk_again()
        if not (self._listed or with_ids):
            return
        lacking: list[WantedFile] = []
        for each in with_ids:
            if not any(entry.has_code for entry in index.with_build_id(each.build_id)):
                kept = set(filter(None, map(self._list, kept_places(each.build_id))))
                if each in since:  # the file may have been replaced while perf recorded, and perf keeps the new one
                    young = {copy for copy in kept if is_younger(self._listed[copy], each, times)}
                    kept -= young
                    for copy in young:
                        del self._listed[copy]
                    if not kept:
                        continue
                for place in debug_places(each.build_id):
                    self._list(place)
                lacking += [each] if not (each.is_claim or kept) else []
        self._look_in_containers(lacking)
        for entry in [entry for same in index.binaries() for entry in same if not entry.has_dwarf]:
            folder = os.path.dirname(entry.path)
            linked = (folder, f"{folder}/.debug", f"{SYSTEM}{folder}") if is_plain_name(entry.link) else ()
            places = [*(f"{place}/{entry.link}" for place in linked), f"{entry.path}.dwp"]
            places += debug_places(entry.build_id) if entry.build_id else []
            for place in places:
                self._list(place)
        index.walk_again()
        for path in [entry.path for same in index.binaries() for entry in same if entry.has_dwarf]:
            for place in supplements(path):
                self._list(place)
        index.walk_again()

    def _look_in_containers(self, wanted: Sequence[WantedFile]) -> None:
        """List the files at recorded paths in the containers that run, of mappings with build ids that prove: anybody
        may run a container with any file."""
        left = MAX_IN_CONTAINERS
        files = dict.fromkeys(
            (path, each.build_id) for each in wanted for path in paths_of(each.filename, each.build_id)
        )
        for number, system in enumerate(containers() if files else ()):
            if number == MAX_NAMESPACES:
                self.problems.append(f"more than {MAX_NAMESPACES} containers run, the others were not looked into")
                return
            for path, build_id in files:
                if left <= 0:
                    self.problems.append(f"more than {MAX_IN_CONTAINERS:,} paths in containers were not looked at")
                    return
                left -= 1
                found = system.regular(path)
                if found is not None and offered(system.place(found[0]), build_id):
                    self._listed[system.place(found[0])] = found[1]

    def fetch(self, build_id: str, kind: str) -> Fetched:
        """The file of this machine with a build id: one that was looked for, or is where debuggers look."""
        known = [entry.path for entry in self._index.with_build_id(build_id)] if self._index is not None else []
        places = () if build_id in self._sought else (*debug_places(build_id), *kept_places(build_id))
        looked_at = map(self._system.regular, places)
        offers = {path: offered(path, build_id) for path in (*known, *(found[0] for found in looked_at if found))}
        for part in (DWARF, SYMTAB) if kind == "debuginfo" else (CODE,):
            if path := next((path for path, parts in offers.items() if parts & part), ""):
                return Fetched(path, "found", [Attempt("this machine", f"found {path}")])
        return Fetched(None, "missing", [Attempt("this machine", f"no {kind} of {build_id}")])

    def prefetch(self, wanted: Iterable[tuple[str, Sequence[Kind], float]]) -> None:
        """Do nothing: the files are here."""

    def folders(self, root: str) -> Iterator[Folder]:
        """The listed files, folder by folder."""
        by_folder: dict[str, list[File]] = {}
        for path, status in sorted(self._listed.items()):
            folder, _, name = path.rpartition("/")
            by_folder.setdefault(folder, []).append(File(name, status))
        for folder, files in by_folder.items():
            yield Folder(folder or root, f"{folder.lstrip('/')}/" if folder else "", False, files)

    def _list(self, path: str) -> str | None:
        """List the regular file at a path, if there is one, and return where it is behind all links."""
        found = self._system.regular(path)
        if found is None:
            return None
        self._listed[found[0]] = found[1]
        return found[0]


def is_younger(status: os.stat_result, wanted: WantedFile, times: RecordingTimes) -> bool:
    """Whether the times of a file say that it is not the one that was recorded. With a build id that proves they do not
    count.

    Packages, `cp -p` and `rsync -a` put files with an old time of writing in the place of others; the time of the
    status says when. That changes too when perf links a file into its cache: then the file has two links.
    """
    if wanted.is_claim:
        return status.st_mtime >= times.begun
    replaced = status.st_ctime if status.st_nlink == 1 else 0.0
    return not wanted.build_id and max(status.st_mtime, replaced) > times.earliest


def paths_of(filename: str, build_id: str) -> list[str]:
    """The paths that a recorded name may denote: without a build id only the one that it is. What is called `/x
    (deleted)`, or was at `/x` in a container, is not the file that is at `/x` here."""
    names = plain_names(filename) if build_id else [filename]
    return [name for name in names if name[:1] == "/" and not is_no_file(name)]


def identified(path: str) -> Ident | None:
    """What a file is and offers; None if it is no ELF file that can be read."""
    with suppress(ElfError, OSError), open(open_regular(path), "rb", buffering=0) as file:
        return identify_open(file.fileno(), path, file.read(HEADER_BYTES))
    return None


def offered(path: str, build_id: str) -> int:
    """What a file has, as the bits of `elf.probe`; 0 if it cannot be read or has another build id."""
    ident = identified(path)
    return ident.offers if ident is not None and same_build_id(ident.build_id, build_id) else 0


def supplements(path: str) -> list[str]:
    """Where the file may be with what dwz took out of a debug file, as that names it and by its build id."""
    ident = identified(path)
    name, _, build_id = (ident.alternate if ident is not None else b"").partition(b"\0")
    by_id = debug_places(build_id.hex()) if is_build_id(build_id.hex()) else []
    return [os.path.join(os.path.dirname(path), os.fsdecode(name)), *by_id] if name else []


def containers() -> Iterator[FileSystem]:
    """The file systems that running processes see, of each mount namespace but ours one. For root only what root set
    up: in a namespace of a user of its own anybody may mount a file system that does not answer."""
    with suppress(OSError):
        ours, user = (os.stat(f"{PROC}/self/ns/{kind}").st_ino for kind in ("mnt", "user"))
        seen = {ours}
        for process in sorted((name for name in os.listdir(PROC) if name.isdecimal()), key=int):
            with suppress(OSError):  # it ended, or is not for us
                namespace, owner = (os.stat(f"{PROC}/{process}/ns/{kind}").st_ino for kind in ("mnt", "user"))
                if namespace not in seen and (owner == user or os.geteuid()):
                    seen.add(namespace)
                    yield FileSystem(f"{PROC}/{process}/root", f"{PROC}/{process}/mountinfo", ours=False)


def module_files(system: FileSystem, names: Iterable[str]) -> Iterator[str]:
    """Where the modules of the running kernel are that are recorded as `[NAME]`."""
    wanted = {name[1:-1].replace("-", "_") for name in names if name[:1] == "["}
    folder = MODULE_FOLDER.format(os.uname().release)
    found = system.regular(f"{folder}/modules.dep") if wanted else None
    for line in lines_of(found[0]) if found is not None else ():
        path = line.partition(":")[0]
        if os.path.basename(path).partition(".ko")[0].replace("-", "_") in wanted:
            yield os.path.join(folder, path)


def lines_of(path: str) -> list[str]:
    """The lines of a list of the system; none if it cannot be read, or is too long."""
    with suppress(OSError):
        return os.fsdecode(read_limited(path, MAX_LIST) or b"").split("\n")
    return []


def is_loaded(name: str, build_id: str, start: int) -> bool:
    """Whether the kernel has a module of this name and build id at this address: then its symbols are where they were,
    whenever that was."""
    loaded = [(line.partition(" ")[0], line.rpartition(" 0x")[2].partition(" ")[0]) for line in lines_of(MODULES)]
    if not start or (name, f"{start:x}") not in [(each, place.lstrip("0")) for each, place in loaded]:
        return False
    return is_build_id(build_id) and same_build_id(id_in_notes(MODULE_NOTES.format(name)), build_id)


def own_vdso() -> bytes:
    """The vdso, which the kernel maps into each process; empty if it cannot be read."""
    with suppress(OSError, ValueError):
        ends = next(line.split()[0].split("-") for line in lines_of("/proc/self/maps") if line.endswith("[vdso]"))
        begin, end = (int(each, 16) for each in ends)
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            memory.seek(begin)
            return memory.read(min(end - begin, MAX_VDSO))
    return b""


def running_kernel_id() -> str:
    """The build id of the running kernel, empty if that is not known."""
    return id_in_notes(NOTES)


def id_in_notes(path: str) -> str:
    """The build id in a file of the kernel with notes, empty if there is none."""
    with suppress(OSError):
        return gnu_build_id(memoryview(read_limited(path, MAX_NOTES_BYTES) or b""), sys.byteorder == "big") or ""
    return ""


def debug_places(build_id: str) -> list[str]:
    """Where debuggers and debuginfod's client keep the debug file of a build."""
    start, rest = build_id[:2].lower(), build_id[2:].lower()
    return [f"{SYSTEM}/.build-id/{start}/{rest}.debug", f"{cached(build_id)}/debuginfo"]


def kept_places(build_id: str) -> list[str]:
    """Where debuginfod's client and perf keep the binary of a build."""
    start, rest = build_id[:2].lower(), build_id[2:].lower()
    kept = os.path.expanduser(f"~/.debug/.build-id/{start}/{rest}")
    return [f"{cached(build_id)}/executable", *(f"{kept}/{kind}" for kind in ("elf", "vdso"))]


def cached(build_id: str) -> str:
    """The folder of a build in the cache of debuginfod's client."""
    folder = os.environ.get("DEBUGINFOD_CACHE_PATH") or default_folder()
    return os.path.join(os.path.abspath(folder), build_id.lower())
