"""Rows of profiles for a data warehouse: a Parquet file for each profile of a batch, in partitions as Hive has them.

The name of a file follows from that of the output, its partition from the profile. Before a worker writes a file it
notes its name in the storage that workers share; what is noted and not in the manifest when a run begins or ends is
removed (R410, rows of a batch): no profile has two files, whatever was killed and changed in between.

The folder follows from the day and the service of the profile; a file that the input had before, in another folder, is
removed. A result of an earlier run that is kept (R279, results of earlier runs) gives the rows too.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from symbolize.batch.manifest import RowFile
from symbolize.core.errors import InputError
from symbolize.core.files import os_error_text
from symbolize.formats.rows import WarehouseRow, common_labels, shown_labels, write_rows
from symbolize.profile import Profile
from symbolize.storage.backend import Storage
from symbolize.storage.input_names import ENDING as OUTPUT_ENDING
from symbolize.storage.inputs import local_path
from symbolize.storage.urls import modified_at

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
