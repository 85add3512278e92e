"""Names for obfuscated Java code: DeobfuscationMapping packets, and to which code each belongs."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from symbolize.formats.perfetto.wire import Damaged, fields, message, spans
from symbolize.profile.attachments import ClassMap, ClassNames, JavaNames, Obfuscation
from symbolize.proto import perfetto_trace_tags as tags

MAX_BYTES: Final = 1 << 28
"""Bytes of all packets with names."""
MAX_CLASSES: Final = 1 << 20
MAX_METHODS: Final = 1 << 22
"""Classes and other fields of all packets, and methods and line ranges in the classes that are asked for."""
MAX_PACKAGES: Final = 1 << 8
MAX_NAME: Final = (1 << 16) - 1
"""Bytes of a name; those of Java have no more."""
MAX_APPS: Final = 1 << 16
MAX_USERS: Final = 16
"""Users that one process had."""

APP_IDS: Final = 100_000
"""User ids of Android are those of apps, plus so much for each user of the device."""

APP_PATH: Final = re.compile(rb"/data/app/(?:~~[^/]*/)?([^/-]+)-[^/]*/")
SHARED_CODE: Final = b"/memfd:"
"""What the name of code begins with that is compiled at run time, in memory."""

TOO_MANY: Final = "packets of names for obfuscated Java code were left out because the trace has too many"

LINES: Final = (
    tags.OBFUSCATED_MEMBER_OBFUSCATED_LINE_START,
    tags.OBFUSCATED_MEMBER_OBFUSCATED_LINE_END,
    tags.OBFUSCATED_MEMBER_SOURCE_LINE_START,
    tags.OBFUSCATED_MEMBER_SOURCE_LINE_END,
)


class PackageNames:
    """The names of one package ("": of any): classes are found by a hash of their obfuscated name, and read when they
    are asked for.

    A DeobfuscationMapping has what a ProGuard map has, without arguments and files. Packets count for the whole trace,
    wherever they are. Those of one package are one map; a class that two of them have in the same bytes is in it once
    (R231, deobfuscation packets).
    """

    def __init__(self, package: bytes, methods: list[int]) -> None:
        shown = package.decode("utf-8", "backslashreplace")[:256]
        self.source = f"the trace's names for {shown}" if package else "the trace's names for any package"
        self._methods = methods
        self._packets: list[bytes] = []
        self._parts: list[Any] = []
        self._table: Any = None

    def add(self, data: bytes, classes: Sequence[tuple[int, int, int]]) -> None:
        """Take a packet with its classes: hash of the name, and from where to where."""
        columns = np.array(classes, np.int64).reshape(-1, 3)
        self._parts.append(np.column_stack((columns, np.full(len(columns), len(self._packets)))))
        self._packets.append(data)
        self._table = None

    def fill(self, wanted: Collection[bytes], into: ClassMap) -> None:
        """Add the classes with the obfuscated names `wanted` (R231, deobfuscation packets)."""
        if self._table is None:
            table = np.concatenate(self._parts)
            self._table = table[np.argsort(table[:, 0], kind="stable")]
            self._parts = [self._table]
        names = list(wanted)
        hashes = np.array([hash(name) for name in names], np.int64)
        first = np.searchsorted(self._table[:, 0], hashes, side="left").tolist()
        last = np.searchsorted(self._table[:, 0], hashes, side="right").tolist()
        for name, begin, end in zip(names, first, last, strict=True):
            known: list[bytes] = []
            for _, at, stop, packet in self._table[begin:end].tolist():
                record = self._packets[packet][at:stop]
                # A class may be there twice; two that differ make it ambiguous (R174, contradicting maps).
                if record not in known and len(known) < 2 and _name_of(record) == name:
                    known.append(record)
                    self._read(name, record, into)

    def _read(self, name: bytes, record: bytes, into: ClassMap) -> None:
        """Add a class."""
        known = message(record).get(tags.OBFUSCATED_CLASS_DEOBFUSCATED_NAME)
        if not known or len(known) > MAX_NAME:
            return
        added = into.add(name, known)
        try:
            for tag, value in fields(record, is_strict=True):
                if tag == tags.OBFUSCATED_CLASS_OBFUSCATED_METHODS:
                    if self._methods[0] <= 0:
                        if not added.has_gaps:
                            into.problems.append(f"{self.source}: absurdly many methods in the classes asked for")
                        added.has_gaps = True
                        return
                    self._methods[0] -= 1
                    _read_method(value, added)
        except Damaged:
            added.has_gaps = True


def _read_method(data: bytes, into: ClassNames) -> None:
    """Add an ObfuscatedMember: names, and lines where it has any."""
    values = message(data)
    obfuscated = values.get(tags.OBFUSCATED_MEMBER_OBFUSCATED_NAME)
    name = values.get(tags.OBFUSCATED_MEMBER_DEOBFUSCATED_NAME)
    if not obfuscated or not name or len(obfuscated) > MAX_NAME or len(name) > MAX_NAME:
        into.has_gaps = True
        return
    first, last, source_first, source_last = (values[line] & 0xFFFFFFFF if line in values else -1 for line in LINES)
    into.add(obfuscated, name, b"", first, last if last >= 0 else first, source_first, source_last)


def _name_of(record: bytes) -> bytes:
    """The obfuscated name in an ObfuscatedClass."""
    return next((name for tag, name in fields(record) if tag == tags.OBFUSCATED_CLASS_OBFUSCATED_NAME), b"")


class Java:
    """The names for obfuscated Java code in a trace: names by package, and the packages of users and processes."""

    def __init__(self, notes: Counter[str]) -> None:
        self._notes = notes
        self._packages: dict[bytes, PackageNames] = {}
        self._bytes_left = MAX_BYTES
        self._classes = 0
        self._methods = [MAX_METHODS]
        self._apps: dict[int, set[bytes]] = {}
        self._app_count = 0
        self._users: dict[tuple[int, int], set[int]] = {}

    def mapping(self, data: bytes) -> None:
        """A DeobfuscationMapping packet."""
        if len(data) > self._bytes_left:
            self._notes[TOO_MANY] += 1
            return
        package, classes, count, is_whole = _index(data, MAX_CLASSES - self._classes)
        self._classes += count
        if not is_whole:
            self._notes["packets of names for obfuscated Java code were read in part"] += 1
        known = self._packages.get(package)
        if known is None:
            if len(self._packages) >= MAX_PACKAGES:
                self._notes[TOO_MANY] += 1
                return
            known = self._packages[package] = PackageNames(package, self._methods)
        self._bytes_left -= len(data)
        known.add(data, classes)

    def packages(self, data: bytes) -> None:
        """A PackagesList packet: which packages an app has."""
        for tag, value in fields(data):
            if tag == tags.PACKAGES_LIST_PACKAGES:
                package = message(value)
                name, uid = package.get(tags.PACKAGE_INFO_NAME), package.get(tags.PACKAGE_INFO_UID)
                if name and len(name) <= MAX_NAME and self._app_count < MAX_APPS and uid is not None:
                    self._app_count += 1
                    self._apps.setdefault(uid % APP_IDS, set()).add(name)

    def user(self, instance: int, pid: int, user: int) -> None:
        """Which user a process runs as."""
        if len(self._users) < MAX_APPS:
            users = self._users.setdefault((instance, pid), set())
            if len(users) < MAX_USERS:
                users.add((user & 0xFFFFFFFF) % APP_IDS)

    def names_for(self, paths: Sequence[bytes], processes: Collection[tuple[int, int | None]]) -> Obfuscation | None:
        """The names for code in mappings with these paths, of these processes (instance and pid); None if there are
        none (R232, packages of names).

        Code in mappings below `/data/app/` has those of the package whose folder `PACKAGE-...` it is in; other code,
        and code that was compiled in memory (`/memfd:`), those of the package whose user (PackagesList) its process is
        of (ProcessTree), both modulo 100,000, because what is above counts the users of the device. In a profile of
        several processes the package must have all of them; compiled code whose process is not known may be of any
        package. Names without a package are for all code; where the package is unknown those of packages are not used.
        """
        if not self._packages:
            return None
        rows = {package: row for row, package in enumerate(self._packages)}
        # In a profile of several processes it is unknown which of them ran code without a path of its own.
        known = [self._packages_of(process) for process in processes]
        by_user = _chosen(rows, set.intersection(*known) if known else set())
        applies: list[tuple[int, ...]] = []
        for path in paths:
            if found := APP_PATH.search(path):
                applies.append(_chosen(rows, {found[1]}))
            elif path.startswith(SHARED_CODE) and not any(known):
                applies.append(tuple(rows.values()))
            else:
                applies.append(by_user)
        maps: list[JavaNames] = list(self._packages.values())
        return Obfuscation(maps, [*applies, by_user])

    def _packages_of(self, process: tuple[int, int | None]) -> set[bytes]:
        """The packages of the users that a process ran as."""
        instance, pid = process
        if pid is None:
            return set()
        return {package for user in self._users.get((instance, pid), ()) for package in self._apps.get(user, ())}


def _chosen(rows: dict[bytes, int], packages: set[bytes]) -> tuple[int, ...]:
    """The rows of some packages and of what is for any."""
    return tuple(row for package, row in rows.items() if not package or package in packages)


def _index(data: bytes, limit: int) -> tuple[bytes, list[tuple[int, int, int]], int, bool]:
    """Package and classes of a DeobfuscationMapping, as `PackageNames.add` takes them, how many of `limit` fields it
    has, and whether that is all of it."""
    package = b""
    classes: list[tuple[int, int, int]] = []
    count = end = 0
    try:
        for tag, begin, end in islice(spans(data), max(limit, 0)):
            count += 1
            if tag == tags.DEOBFUSCATION_MAPPING_OBFUSCATED_CLASSES:
                classes.append((hash(_name_of(data[begin:end])), begin, end))
            elif tag == tags.DEOBFUSCATION_MAPPING_PACKAGE_NAME:
                package = data[begin:end][:MAX_NAME]
    except Damaged:
        return package, classes, count, False
    return package, classes, count, end == len(data)
