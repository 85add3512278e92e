"""OTLP messages as agents send them, made with the classes of opentelemetry-proto."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from symbolize.elf import ElfImage
from tests.support.needs import package

profiles_pb2 = package("opentelemetry.proto.profiles.v1development.profiles_pb2")
common_pb2 = package("opentelemetry.proto.common.v1.common_pb2")

GNU = "process.executable.build_id.gnu"
GO = "process.executable.build_id.go"
HASH = "process.executable.build_id.htlhash"


def parse(data: bytes) -> Any:
    """A message of opentelemetry-proto."""
    return profiles_pb2.ProfilesData.FromString(data)


def any_value(value: Any) -> Any:
    """An AnyValue."""
    if isinstance(value, bool):
        return common_pb2.AnyValue(bool_value=value)
    if isinstance(value, int):
        return common_pb2.AnyValue(int_value=value)
    if isinstance(value, float):
        return common_pb2.AnyValue(double_value=value)
    if isinstance(value, bytes):
        return common_pb2.AnyValue(bytes_value=value)
    if isinstance(value, list):
        return common_pb2.AnyValue(array_value=common_pb2.ArrayValue(values=map(any_value, value)))
    if isinstance(value, dict):
        pairs = [common_pb2.KeyValue(key=key, value=any_value(each)) for key, each in value.items()]
        return common_pb2.AnyValue(kvlist_value=common_pb2.KeyValueList(values=pairs))
    return common_pb2.AnyValue(string_value=value)


def hash_of(path: Path) -> str:
    """The hash by which the eBPF profiler knows a file: of its first and last 4096 bytes and its length."""
    data = path.read_bytes()
    return hashlib.sha256(data[:4096] + data[-4096:] + len(data).to_bytes(8, "big")).hexdigest()[:32]


class Maker:
    """Makes a message whose tables have each row once."""

    def __init__(self) -> None:
        self.message = profiles_pb2.ProfilesData()
        self.tables = self.message.dictionary
        self._rows: dict[tuple[Any, ...], int] = {}
        self.tables.string_table.append("")
        self.tables.link_table.add(trace_id=bytes(16), span_id=bytes(8))
        for table in ("mapping", "location", "function", "attribute", "stack"):
            getattr(self.tables, f"{table}_table").add()

    def text(self, text: str) -> int:
        """The number of a string."""
        if text not in self.tables.string_table:
            self.tables.string_table.append(text)
        return list(self.tables.string_table).index(text)

    def add(self, table: str, **fields: Any) -> int:
        """The row of a table with these fields."""
        rows = getattr(self.tables, f"{table}_table")
        key = table, repr(sorted(fields.items(), key=lambda each: each[0]))
        if key not in self._rows:
            self._rows[key] = len(rows)
            rows.add(**fields)
        return self._rows[key]

    def attribute(self, key: str, value: Any, unit: str = "") -> int:
        """The row of an attribute."""
        return self.add("attribute", key_strindex=self.text(key), value=any_value(value), unit_strindex=self.text(unit))

    def attributes(self, values: dict[str, Any]) -> list[int]:
        """The rows of some attributes."""
        return [self.attribute(key, value) for key, value in values.items()]

    def mapping(self, name: str, start: int, limit: int, offset: int, **attributes: Any) -> int:
        """The row of a mapping."""
        rows = self.attributes(attributes)
        return self.add(
            "mapping",
            memory_start=start,
            memory_limit=limit,
            file_offset=offset,
            filename_strindex=self.text(name),
            attribute_indices=rows,
        )

    def native(self, path: Path, name: str = "", ids: Sequence[str] = (GNU, HASH)) -> int:
        """The mapping of the code of an ELF file, as the eBPF profiler has it: by vaddrs, with its base name."""
        with ElfImage.open(str(path)) as image:
            (segment,) = [each for each in image.segments if each.executable]
            known = {GNU: image.build_id, HASH: hash_of(path)}
        start, offset = segment.vaddr & ~0xFFF, segment.file_offset & ~0xFFF
        end = segment.vaddr + segment.memory_size
        return self.add(
            "mapping",
            memory_start=start,
            memory_limit=end,
            file_offset=offset,
            filename_strindex=self.text(name or path.name),
            attribute_indices=self.attributes({each: known[each] for each in ids}),
        )

    def frame(
        self, kind: str, mapping: int, address: int, lines: Iterable[tuple[str, str, int]] = (), **attributes: Any
    ) -> int:
        """The row of a location; lines are functions, files and numbers."""
        rows = [
            profiles_pb2.Line(
                function_index=self.add("function", name_strindex=self.text(name), filename_strindex=self.text(file)),
                line=line,
            )
            for name, file, line in lines
        ]
        own = {"profile.frame.type": kind} if kind else {}
        own |= {key.replace("__", "."): value for key, value in attributes.items()}
        return self.add(
            "location", mapping_index=mapping, address=address, lines=rows, attribute_indices=self.attributes(own)
        )

    def stack(self, *locations: int) -> int:
        """The row of a stack."""
        return self.add("stack", location_indices=locations)

    def resource(self, **attributes: Any) -> Any:
        """A resource with one scope; underscores are periods."""
        resource = self.message.resource_profiles.add()
        for key, value in attributes.items():
            resource.resource.attributes.add(key=key.replace("_", "."), value=any_value(value))
        return resource.scope_profiles.add()

    def profile(
        self, scope: Any, kind: tuple[str, str], period: tuple[str, str, int] = ("", "", 0), **fields: Any
    ) -> Any:
        """A profile of a scope."""
        profile = scope.profiles.add(period=period[2], **fields)
        profile.sample_type.type_strindex, profile.sample_type.unit_strindex = map(self.text, kind)
        profile.period_type.SetInParent()
        profile.period_type.type_strindex, profile.period_type.unit_strindex = map(self.text, period[:2])
        return profile

    def encode(self) -> bytes:
        """The message."""
        return self.message.SerializeToString()
