"""The rules that OpenTelemetry's own checker of profiles has, over the classes of opentelemetry-proto."""

from collections.abc import Iterator
from typing import Any


def problems(message: Any) -> list[str]:
    """What is wrong with a message, a sentence each; a sound one has none."""
    return [*_tables(message.dictionary), *_profiles(message)]


def _index(what: str, index: int, table: Any) -> Iterator[str]:
    if not 0 <= index < len(table):
        yield f"{what} {index} of {len(table)}"


def _unique(what: str, table: Any) -> Iterator[str]:
    rows = [row if isinstance(row, str) else row.SerializeToString(deterministic=True) for row in table]
    if len(set(rows)) != len(rows):
        yield f"{what}: a row twice"


def _attributes(what: str, indices: Any, tables: Any) -> Iterator[str]:
    keys = []
    for index in indices:
        yield from _index(f"{what}: attribute", index, tables.attribute_table)
        keys.append(tables.attribute_table[index].key_strindex)
        if index == 0:
            yield f"{what}: attribute 0"
    if len(set(keys)) != len(keys):
        yield f"{what}: a key twice"


def _tables(tables: Any) -> Iterator[str]:
    """Each table has a first row that is zero, its rows once, and what its rows refer to."""
    for name in ("mapping", "location", "function", "attribute", "stack"):
        table = getattr(tables, f"{name}_table")
        if not table or table[0].ByteSize():
            yield f"{name}_table[0] is not zero"
        if name != "mapping":  # pprof profiles may have two mappings that are the same
            yield from _unique(name, table)
    if not tables.string_table or tables.string_table[0]:
        yield "string_table[0] is not empty"
    yield from _unique("string", tables.string_table)
    links = [(link.trace_id, link.span_id) for link in tables.link_table]
    if not links or links[0] not in ((b"", b""), (bytes(16), bytes(8))) or len(set(links)) != len(links):
        yield "link_table"
    if any((len(trace), len(span)) != (16, 8) for trace, span in links[1:]):
        yield "an id of a link"
    strings = tables.string_table
    for mapping in tables.mapping_table:
        yield from _index("mapping: file name", mapping.filename_strindex, strings)
        yield from _attributes("mapping", mapping.attribute_indices, tables)
        if mapping.memory_start >= mapping.memory_limit and (mapping.memory_start or mapping.memory_limit):
            yield "mapping: start behind limit"
    for location in tables.location_table:
        yield from _index("location: mapping", location.mapping_index, tables.mapping_table)
        yield from _attributes("location", location.attribute_indices, tables)
        for line in location.lines:
            yield from _index("line: function", line.function_index, tables.function_table)
    for function in tables.function_table:
        for index in (function.name_strindex, function.system_name_strindex, function.filename_strindex):
            yield from _index("function: string", index, strings)
    for attribute in tables.attribute_table:
        yield from _index("attribute: key", attribute.key_strindex, strings)
        yield from _index("attribute: unit", attribute.unit_strindex, strings)
    for stack in tables.stack_table:
        for index in stack.location_indices:
            yield from _index("stack: location", index, tables.location_table)


def _profiles(message: Any) -> Iterator[str]:
    """No list of profiles is empty, and samples have one shape."""
    tables = message.dictionary
    if not message.resource_profiles:
        yield "no resource"
    for resource in message.resource_profiles:
        if not resource.scope_profiles:
            yield "no scope"
        for scope in resource.scope_profiles:
            if not scope.profiles:
                yield "no profile"
            for profile in scope.profiles:
                yield from _profile(profile, tables)


def _profile(profile: Any, tables: Any) -> Iterator[str]:
    for name in ("sample_type", "period_type"):
        if not profile.HasField(name):
            yield f"no {name}"
        for index in (getattr(profile, name).type_strindex, getattr(profile, name).unit_strindex):
            yield from _index(name, index, tables.string_table)
    yield from _attributes("profile", profile.attribute_indices, tables)
    shapes = set()
    for sample in profile.samples:
        yield from _index("sample: stack", sample.stack_index, tables.stack_table)
        yield from _index("sample: link", sample.link_index, tables.link_table)
        yield from _attributes("sample", sample.attribute_indices, tables)
        shapes.add((len(sample.values) > 0, len(sample.timestamps_unix_nano) > 0))
        if sample.values and sample.timestamps_unix_nano and len(sample.values) != len(sample.timestamps_unix_nano):
            yield "sample: values and times differ"
        for time in sample.timestamps_unix_nano:
            if not profile.time_unix_nano <= time < profile.time_unix_nano + profile.duration_nano:
                yield "sample: time outside of the profile"
    if len(shapes) > 1 or (False, False) in shapes:
        yield "samples: shapes"
