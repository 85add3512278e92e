"""Rows of profiles for a data warehouse: for each profile of a batch a Parquet file with the values by function, file
and line, in partitions as Hive has them.

All files have the same columns, so that queries take any number of them together (R411, columns of rows). The name of a
file follows from that of the output, its partition from the profile. Before a worker writes a file it notes its name in
the storage that workers share; what is noted and not in the manifest when a run begins or ends is removed (R410, rows
of a batch): no profile has two files, whatever was killed and changed in between.

The folder follows from the day and the service of the profile; a file that the input had before, in another folder, is
removed. A result of an earlier run that is kept (R279, results of earlier runs) gives the rows too.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

import numpy as np

from symbolize.analysis import stacks_of
from symbolize.analysis.totals import code_totals
from symbolize.batch.manifest import RowFile
from symbolize.core.arrays import Int32, Int64, distinct, distinct_inverse, pair, unpair
from symbolize.core.errors import InputError, printable
from symbolize.core.files import os_error_text
from symbolize.profile import NONE, Profile
from symbolize.storage.backend import Storage
from symbolize.storage.inputs import ENDING as OUTPUT_ENDING
from symbolize.storage.inputs import local_path
from symbolize.storage.urls import modified_at

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE: Final = 1 << 17
"""Rows of a row group."""
LARGEST: Final = 2.0**63
"""The first number that is too large for a column of values."""
MAX_NAME: Final = 4096
"""Characters of a name; longer ones are cut, and distinguished by a hash."""
MAX_LABELS: Final = 64
"""Labels of a row."""
MAX_TEXT: Final = 1024
"""Characters of a label's value."""
RESOURCE: Final = "resource: "
"""What comments begin with that are attributes of an OTLP resource: `resource: service.name=shop`."""
NOTES: Final = "rows"
"""The folder, in the storage that workers share, for the names of files that are being written."""
ENDING: Final = ".parquet"
UNKNOWN: Final = "__HIVE_DEFAULT_PARTITION__"
"""The value of a partition that is not known; engines read it as null."""
SERVICE_LABEL: Final = "service.name"
MAX_VALUE: Final = 200
"""Bytes of the value of a partition, escaped."""
PLAIN: Final = "-_.~@"
"""Characters of values that are not escaped, besides ASCII letters and digits."""
ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")
MAX_BASE: Final = 80
"""Characters that the name of a file has of that of the output."""
DAY: Final = re.compile(r"(?:^|/)date=([0-9]{4}-[0-9]{2}-[0-9]{2})/")
SERVICE: Final = re.compile(r"(?:^|/)service=([^/]+)/")


class WarehouseRow(NamedTuple):
    """What all rows of a profile have: its name, and the labels that all of its samples have."""

    profile: str
    labels: dict[str, str]


def write_rows(profile: Profile, row: WarehouseRow, file: BinaryIO) -> None:
    """Write the rows of a profile as Parquet. Needs pyarrow. Raises InputError for a table that is too large."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = schema_of()
    with parquet.ParquetWriter(file, schema, compression="zstd", store_schema=False) as writer:
        for columns in chunks(profile, row):
            writer.write_table(pa.table(columns, schema=schema), row_group_size=ROWS_AT_ONCE)


def schema_of() -> "pa.Schema":
    """The columns; `flat` and `cumulative` are null where they exceed 64 bits."""
    import pyarrow as pa

    text, value = pa.dictionary(pa.int32(), pa.string()), pa.int64()
    return pa.schema(
        {
            "profile": text,
            "time": pa.timestamp("us", tz="UTC"),
            "sample_type": text,
            "unit": text,
            "function": text,
            "module": text,
            "build_id": text,
            "file": text,
            "line": pa.int32(),
            "flat": value,
            "cumulative": value,
            "labels": pa.map_(pa.string(), pa.string()),
        }
    )


def chunks(profile: Profile, row: WarehouseRow) -> Iterator[dict[str, "pa.Array"]]:
    """The columns of the rows of a profile, ROWS_AT_ONCE at a time, in the order of their texts: that of the strings of
    a profile depends on how names were found."""
    import pyarrow as pa

    stacks = stacks_of(profile)
    builds, build_of = builds_of(profile)
    totals = code_totals(stacks, build_of)
    rows_of = {
        "function": (stacks.names.names, totals.name),
        "module": (stacks.names.modules, totals.name),
        "build_id": (builds, totals.build),
        "file": (stacks.files, totals.file),
    }
    texts, ranks = {}, {}
    for title, (each, of_code) in rows_of.items():
        texts[title], rank = ranked(each)
        ranks[title] = rank[of_code]
    order = np.lexsort((totals.line, *reversed(ranks.values())))
    time = profile.time_nanos // 1000 if profile.time_nanos > 0 else None
    for number, (kind, unit) in enumerate(stacks.types):
        has_value = (totals.flat[:, number] != 0) | (totals.cumulative[:, number] != 0)
        of_type = order[has_value[order]]
        for begin in range(0, len(of_type), ROWS_AT_ONCE):
            rows = of_type[begin : begin + ROWS_AT_ONCE]
            same = np.zeros(len(rows), np.int32)
            yield {
                "profile": texts_at(same, pa.array([row.profile])),
                "time": pa.array([time], pa.timestamp("us", tz="UTC")).take(pa.array(same)),
                "sample_type": texts_at(same, pa.array([cut(kind)])),
                "unit": texts_at(same, pa.array([cut(unit)])),
                **{title: texts_at(ranks[title][rows], texts[title]) for title in texts},
                "line": pa.array(totals.line[rows], mask=totals.line[rows] == 0),
                "flat": whole(totals.flat[rows, number]),
                "cumulative": whole(totals.cumulative[rows, number]),
                "labels": repeated(row.labels, len(rows)),
            }


def ranked(texts: Iterable[str]) -> tuple["pa.Array", Int32]:
    """The distinct texts in order, and which of them each is."""
    import pyarrow as pa

    given = [cut(text) for text in texts]
    distinct_texts = sorted({*given})
    number = {text: row for row, text in enumerate(distinct_texts)}
    return pa.array(distinct_texts, "string"), np.array([number[text] for text in given], np.int32)


def texts_at(rows: Int32, texts: "pa.Array") -> "pa.Array":
    """A column with those of some texts that are at `rows`, null for empty ones."""
    import pyarrow as pa
    from pyarrow import compute

    is_empty = compute.equal(texts, "").to_numpy(zero_copy_only=False)
    return pa.DictionaryArray.from_arrays(pa.array(rows, mask=is_empty[rows]), texts)


def cut(text: str) -> str:
    """A text that is printable, and not too long: one of MAX_NAME characters recurs in many rows.

    What is cut gets a hash, so that no two become one (R411, columns of rows).
    """
    if len(text) > MAX_NAME:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        text = f"{text[:MAX_NAME]}~{digest}"
    return printable(text)


def whole(values: Any) -> "pa.Array":
    """Values as whole numbers, which they are; null for those that are too large.

    Sums are exact up to 2^53 and have 53 bits above (R411, columns of rows).
    """
    import pyarrow as pa

    is_large = np.abs(values) >= LARGEST
    return pa.array(np.where(is_large, 0, values).astype(np.int64), mask=is_large)


def repeated(labels: dict[str, str], count: int) -> "pa.Array":
    """A column with the same labels in each row."""
    import pyarrow as pa

    offsets = np.arange(count + 1, dtype=np.int32) * len(labels)
    keys, values = (np.tile(np.array([*texts], object), count) for texts in (labels.keys(), labels.values()))
    return pa.MapArray.from_arrays(offsets, pa.array(keys, "string"), pa.array(values, "string"))


def builds_of(profile: Profile) -> tuple[list[str], Int32]:
    """The distinct build ids, the first of which is "", and the number of that of each location, and of samples without
    a stack: int32[n + 1]."""
    numbers, of_mapping = distinct_inverse(np.concatenate(([0], profile.mappings.build_id)))
    of_mapping = np.concatenate((of_mapping[1:], of_mapping[:1]))  # the last is that of no mapping
    texts = [profile.strings.text(number) for number in numbers.tolist()]
    return texts, of_mapping[np.append(profile.locations.mapping, NONE)].astype(np.int32)


def common_labels(profile: Profile) -> dict[str, str]:
    """The labels that all samples have with the same value, and the attributes of the resource in comments."""
    found: dict[str, str] = {}
    for number in profile.comments:
        comment = profile.strings.text(number)
        key, is_attribute, value = comment.removeprefix(RESOURCE).partition("=")
        if is_attribute and comment.startswith(RESOURCE):
            found.setdefault(key, value)
    samples, labels = profile.samples, profile.samples.labels
    counts = np.diff(samples.label_offsets)
    if not len(samples) or not counts.all():
        return found
    sample: Int64 = np.repeat(np.arange(len(samples)), counts)
    keys, key_of = distinct_inverse(labels.key)
    in_samples = np.bincount(unpair(distinct(pair(key_of, sample)))[0], minlength=len(keys))
    is_everywhere = (in_samples == len(samples)) & (np.bincount(key_of, minlength=len(keys)) == len(samples))
    for key in np.flatnonzero(is_everywhere)[:MAX_LABELS].tolist():
        own = key_of == key
        text, number, unit = labels.text[own], labels.number[own], labels.unit[own]
        if all((column == column[0]).all() for column in (text, number, unit)):
            value = profile.strings.text(int(text[0])) if text[0] else str(int(number[0]))
            found[profile.strings.text(int(keys[key]))] = value
    return found


def shown_labels(labels: dict[str, str]) -> dict[str, str]:
    """Labels for rows: printable, and neither too many nor too long."""
    return {printable(key)[:MAX_TEXT]: printable(labels[key])[:MAX_TEXT] for key in sorted(labels)[:MAX_LABELS]}


class Warehouse:
    """The files with rows below `url`. `shared` is the storage that workers share; `service_label` names the label
    that has the service of a profile. Raises UsageError as `Storage.of` does."""

    def __init__(self, url: str, shared: Storage, service_label: str = SERVICE_LABEL) -> None:
        self.storage = Storage.of(url)
        self._shared = shared
        self._service_label = service_label
        self.url = self.storage.url

    def write(self, profile: Profile, output: str, uri: str) -> RowFile:
        """Write the rows of a profile that has the output `output` and came from the input at `uri`.

        Raises OutputError, and InputError if the profile has too many rows or the time of the input cannot be read.
        """
        labels = common_labels(profile)
        name = f"{self._partition(profile, labels, output, uri)}/{file_name(output)}"
        with self._shared.write(self._note(name)) as note:
            note.write(json.dumps([self.url, name]).encode())
        with self.storage.write(name) as file:
            write_rows(profile, WarehouseRow(output, shown_labels(labels)), file)
            size = file.tell()
        return RowFile(self.url, name, size)

    def has(self, file: RowFile) -> bool:
        """Whether a recorded file is as it was; those elsewhere and in object stores are taken to be."""
        is_here = file.storage == self.url and self.storage.is_local
        return not is_here or self.storage.size(file.name) == file.size

    def remove(self, name: str) -> None:
        """Remove a file. Raises OutputError."""
        self.storage.remove(name)

    def settle(self, is_recorded: Callable[[str, str], bool]) -> None:
        """Remove files that were written and are not recorded, by storage and name. Raises OutputError, InputError."""
        for note in [*self._shared.names(NOTES)]:
            with self._shared.open(note) as file:
                data = file.read(1 << 16)
            with suppress(ValueError, TypeError):
                url, name = map(str, json.loads(data))
                if url != self.url:
                    continue  # of a run with another folder, and removed by the next one with that
                if name.endswith(ENDING) and not is_recorded(url, name):
                    self.storage.remove(name)
            self._shared.remove(note)

    def _note(self, name: str) -> str:
        """The name of the note for a file."""
        return f"{NOTES}/{digest_of(self.url + '//' + name)}"

    def _partition(self, profile: Profile, labels: dict[str, str], output: str, uri: str) -> str:
        """The folders of the rows of a profile."""
        service = self._service(profile, labels) or service_of(output)
        return f"date={day_of(profile, output, uri)}/service={escaped(service)}"

    def _service(self, profile: Profile, labels: dict[str, str]) -> str:
        """The service that the profile names: by a label that all samples have, the resource, or a comment `KEY=NAME`;
        empty if it names none."""
        key = self._service_label
        if key in labels:
            return labels[key]
        comments = map(profile.strings.text, profile.comments)
        return next((each.removeprefix(f"{key}=") for each in comments if each.startswith(f"{key}=")), "")


def file_name(output: str) -> str:
    """The name of the file for an output, unique and in one folder with those of all others."""
    base = ODD.sub("-", output.rpartition("/")[2].removesuffix(OUTPUT_ENDING)).lstrip("._")[:MAX_BASE]
    return f"{base or 'profile'}-{digest_of(output)}{ENDING}"


def service_of(output: str) -> str:
    """The service by the name of an output: a folder `service=NAME`, or the first one."""
    named = SERVICE.search(output)
    if named is not None:
        return unquote_to_bytes(named[1]).decode("utf-8", "backslashreplace")
    return output.partition("/")[0] if "/" in output else ""


def day_of(profile: Profile, output: str, uri: str) -> str:
    """The day of a profile, in UTC: by its own time, by a folder `date=DAY` of the output, or by the time of its input.
    Raises InputError."""
    if profile.time_nanos > 0:
        return day(profile.time_nanos / 1e9)
    named = DAY.search(output)
    with suppress(ValueError):
        if named is not None:
            return date.fromisoformat(named[1]).isoformat()
    path = local_path(uri)
    try:
        modified = modified_at(uri) if path is None else os.stat(path).st_mtime
    except OSError as error:
        raise InputError(uri, f"cannot be read: {os_error_text(error)}") from error
    return UNKNOWN if modified is None else day(modified)


def day(seconds: float) -> str:
    """The day of a time since 1970, in UTC; UNKNOWN for one that calendars do not have."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return UNKNOWN


def escaped(value: str) -> str:
    """The value of a partition as the name of a folder has it, percent-encoded and not too long; those that were cut
    end in a hash."""
    text = quote(value, PLAIN, errors="replace")
    if len(text) > MAX_VALUE:
        ending = "~" + digest_of(value)
        whole = unquote_to_bytes(re.sub("%.?$", "", text[: MAX_VALUE - len(ending)])).decode("utf-8", "ignore")
        text = quote(whole, PLAIN) + ending
    return UNKNOWN if not text.strip(".") else text


def digest_of(text: str) -> str:
    """A hash of a text for a name."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]
