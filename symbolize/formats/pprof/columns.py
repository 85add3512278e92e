# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""The tables of a pprof profile as columns, which `read_columns` fills and `write_columns` encodes.

A string is its number in a string table; a mapping, function or location is its row in its table, -1 where there is
none. Offsets have one entry more than their table has rows.
"""

import cython


@cython.cclass
class PprofMappings:
    """Mappings: start, limit and file offset in `numbers` (uint64[3, n]), file name and build id in `texts`
    (int32[2, n]), and in `flags` (uint8[4, n]) whether there are functions, file names, lines and inlined frames."""

    def __init__(self, numbers: cython.ulonglong[:, ::1], texts: cython.int[:, ::1], flags: cython.uchar[:, ::1]):
        self.numbers = numbers
        self.texts = texts
        self.flags = flags


@cython.cclass
class PprofFunctions:
    """Functions: `names`, `system_names` and `filenames` (int32[n]), and `start_lines` (int64[n])."""

    def __init__(
        self,
        names: cython.int[::1],
        system_names: cython.int[::1],
        filenames: cython.int[::1],
        start_lines: cython.longlong[::1],
    ) -> None:
        self.names = names
        self.system_names = system_names
        self.filenames = filenames
        self.start_lines = start_lines


@cython.cclass
class PprofLines:
    """Lines of locations: `functions` (int32[n]), and the numbers of `lines` and `columns` (int64[n])."""

    def __init__(self, functions: cython.int[::1], lines: cython.longlong[::1], columns: cython.longlong[::1]) -> None:
        self.functions = functions
        self.lines = lines
        self.columns = columns


@cython.cclass
class PprofLocations:
    """Locations: `addresses` (uint64[n]), `mappings` (int32[n]), `folded` (uint8[n]); `lines`, those of row i from
    `offsets[i]` up to `offsets[i + 1]` (int64[n + 1]), leaf first."""

    def __init__(
        self,
        lines: PprofLines,
        addresses: cython.ulonglong[::1],
        mappings: cython.int[::1],
        folded: cython.uchar[::1],
        offsets: cython.longlong[::1],
    ) -> None:
        self.lines = lines
        self.addresses = addresses
        self.mappings = mappings
        self.folded = folded
        self.offsets = offsets


@cython.cclass
class PprofLabels:
    """Labels of samples: the strings `keys`, `texts` and `units` (int32[n]), and `numbers` (int64[n])."""

    def __init__(
        self, keys: cython.int[::1], texts: cython.int[::1], numbers: cython.longlong[::1], units: cython.int[::1]
    ) -> None:
        self.keys = keys
        self.texts = texts
        self.numbers = numbers
        self.units = units


@cython.cclass
class PprofSamples:
    """Samples: the locations of row i are `stack[offsets[i]:offsets[i + 1]]` (int32, leaf first), its values are
    `values[i * width:(i + 1) * width]` (int64), its `labels` from `label_offsets[i]` up to `label_offsets[i + 1]`;
    both offsets are int64[n + 1]."""

    def __init__(
        self,
        width: cython.Py_ssize_t,
        labels: PprofLabels,
        offsets: cython.longlong[::1],
        stack: cython.int[::1],
        values: cython.longlong[::1],
        label_offsets: cython.longlong[::1],
    ) -> None:
        self.width = width
        self.labels = labels
        self.offsets = offsets
        self.stack = stack
        self.values = values
        self.label_offsets = label_offsets
