"""Which texts stand in for names that a producer did not know, and what they say instead (R452, stand-ins)."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.string_array import StringArray

MAX_TEXT: Final = 1 << 10
"""Longer texts are names."""
FIRST_CODE: Final = 1 << 12
"""The headers of a file are below."""


class StandIn(NamedTuple):
    """What a text says of a function whose name its producer did not know, empty and None where it does not.

    `offset` is an address in the file `module`, or in that with the `build_id`: a vaddr or what a recorder takes for
    one, unless it counts the bytes of the file (`is_in_bytes`); of a kernel, and without a module, it is an address of
    the process. `function_start` is the vaddr of a function, which is no address that was sampled (0: unknown).
    `may_be_name` says that a function may be called so: then it is one where its source file is known.
    """

    module: bytes = b""
    build_id: bytes = b""
    offset: int | None = None
    is_in_bytes: bool = False
    may_be_name: bool = False
    function_start: int = 0

    @property
    def is_in_function(self) -> bool:
        """Whether it is a place in a function, as `main+0x1a` is, where nothing says that `main` is a file: a file has
        its headers there."""
        return self.may_be_name and bool(self.module) and (self.offset or 0) < FIRST_CODE


_MODULE = rb"(?P<module>\[[^\[\]]+\]|[^\s()<>\[\]:;!`|@+]+(?:\+\+[^\s()<>\[\]:;!`|@+]*)*)"
_FILE = rb"(?P<module>/[^\[\]:;]*[^\s\[\]:;]|[^\s()<>\[\]:;!`|@/]+\.(?:so(?:\.[\w.]+)?|ko|exe|dll|dylib))"
_OFFSET = rb"(?P<offset>[0-9a-fA-F]{1,16})"
_DIGITS = rb"(?=[0-9a-fA-F]*[0-9])(?P<offset>[0-9a-fA-F]{%d,16})"
_ID = rb"(?P<build_id>[0-9a-fA-F]{8,128})"
_UNKNOWN = (
    rb"(?:unknown|unresolved|unsymbolized|unnamed|no[ _-]symbols?|missing[ _-]symbols?)"
    rb"(?:[ _-](?:function|symbol|module|method|address|frame|location|code))?"
)
_LIBRARY = rb"[^\s()<>\[\]]+(?:\.so\b[^\s\]]*|\.ko|\.exe|\.dll|\.dylib)"
_Facts = dict[str, bool]
_SURE: _Facts = {}
_MAYBE: _Facts = {"may_be_name": True}
_IN_BYTES: _Facts = {"is_in_bytes": True}
_PATTERNS: Final = (
    (rb"\?{1,3}|<remote>|(?i:\[%b\]|<%b>|\(%b\)|unknown (?:function|symbol))" % ((_UNKNOWN,) * 3), _SURE),
    (rb"(?i:%b)" % _UNKNOWN, _MAYBE),
    (rb"0[xX]%b|\[0x(?P<address>[0-9a-f]{1,16})\]" % _OFFSET, _SURE),
    (rb"<%b>" % (_DIGITS % 4), _SURE),
    (_DIGITS % 9, _MAYBE),
    (rb"(?i:fun_|func_|sub_|fcn\.|loc_)%b" % (_DIGITS % 4), _MAYBE),
    (rb"_{2,3}lldb_unnamed_symbol_?[0-9a-f]*(?:\$\$%b)?" % _MODULE, _SURE),
    (rb"unknown \(\[buildid:%b\]\) <0x%b>" % (_ID, _OFFSET), _IN_BYTES),
    (rb"buildid:%b\+0x%b" % (_ID, _OFFSET), _IN_BYTES),
    (rb"unknown \((?P<module>[^()]+)\) <0x%b>" % _OFFSET, _IN_BYTES),
    (rb"%b@%b\+0x%b" % (_MODULE, _ID, _OFFSET), _SURE),
    (rb"\[(?P<module>[^\[\]\s:]+)\+0x%b\]" % _OFFSET, _SURE),
    (rb"%b\[\+(?:0x)?%b\]" % (_MODULE, _OFFSET), _SURE),
    (rb"%b(?:\+(?:0x)?| 0x)%b" % (_FILE, _OFFSET), _SURE),
    (rb"(?P<module>\[[^\[\]]+\])\+0x%b" % _OFFSET, _SURE),
    (rb"%b\(\+0x%b\)(?: ?\[0x[0-9a-f]+\])?" % (_MODULE, _OFFSET), _SURE),
    (rb"(?!.*\+0x[0-9a-f]{16}\Z)%b\+0x%b" % (_MODULE, _OFFSET), _MAYBE),  # but no hidden class of Java
    (rb"%b 0x%b" % (_MODULE, _OFFSET), _MAYBE),
    (rb"(?P<module>.+)!sub_(?P<function>[0-9a-f]{1,16})", _SURE),
    (rb"%b(?:`|!)(?:0x[0-9a-fA-F]{1,16}|\?)" % _MODULE, _SURE),
    (rb"\?\?\?\s+\(in (?P<module>[^()]+)\)(?:\s+load address 0x[0-9a-f]+ \+ 0x%b\b.*)?" % _OFFSET, _SURE),
    (rb"\[(?P<module>%b|/[^\[\]]+)\]" % _LIBRARY, _SURE),
    (rb"(?P<module>/[^\[\]:;]*\.(?:so(?:\.[\w.]+)?|ko|exe|dll|dylib))", _SURE),
    (rb"(?P<module>\[(?:(?:unknown|not_walkable|no)_\w+|Missed (?:User|Kernel) Stack|\.L\w+)\])", _SURE),
    (rb"(?P<module>\[(?:(?:guest\.)?kernel(?:\.kallsyms)?|vdso|vsyscall|heap|stack|anon[^\[\]]*)\])", _SURE),
    (rb"\[(?P<module>\[[^\[\]]+\]|perf-\d+\.map)\]", _SURE),
    (rb"\[(?:unknown|(?P<module>\[(?:guest\.)?kernel[^\[\]]*\])) <%b>\]" % _OFFSET, _SURE),
    (rb"\[(?P<module>\[[^\[\]]+\]|[^\[\]<>]+) <[0-9a-f]{1,16}>\]", _SURE),
    (rb"(?P<label>\.L[A-Za-z_]*[0-9][\w.$]*)", _SURE),
)
"""What stand-ins look like, and what is so of all that look like it; the first that matches counts."""

_ANNOTATION: Final = re.compile(rb"(?<=.)_\[[ijk]\]\Z", re.DOTALL)
"""What stackcollapse scripts and bcc put behind names of inlined, compiled and kernel functions."""

_SIGNS: Final = np.zeros(256, np.bool_)
_SIGNS[list(b"?[<(./0123456789")] = True
"""First bytes of some."""
_SMALL: Final = 0x20202020
"""What makes letters small."""
_FIRST: Final = b"unkn,unre,unsy,unna,no_s,no-s,no s,miss,fun_,func,sub_,fcn.,loc_,___l,__ll,buil"
_IS_DIGIT: Final = np.zeros(256, np.bool_)
_IS_DIGIT[list(b"0123456789abcdefABCDEF")] = True
"""Addresses begin with these."""
_BEGINNINGS: Final = np.array([int.from_bytes(each, "little") | _SMALL for each in _FIRST.split(b",")], np.uint32)
"""The first four bytes of others."""
_IN_SOME: Final = np.zeros(256, np.bool_)
_IN_SOME[list(b"+`!")] = True
"""Bytes in the others, beside `0x`."""


@cache
def _compiled_patterns() -> Sequence[tuple[re.Pattern[bytes], _Facts]]:
    """_PATTERNS, compiled when a text is first looked at: few profiles have one."""
    return [(re.compile(pattern, re.DOTALL), facts) for pattern, facts in _PATTERNS]


def stand_in(text: bytes) -> StandIn | None:
    """What a text that came with a profile says where it stands in for a name; None if it is a name.

    A text that may be a name is one where the source file is known, and `name+0xoffset` where the location is in
    another module, and, if nothing says that the name is that of a file, where a file has its headers: `main+0x1a` is a
    place in a function (R452, stand-ins).
    """
    if len(text) > MAX_TEXT:
        return None
    text = _ANNOTATION.sub(b"", text)
    for pattern, facts in _compiled_patterns():
        if match := pattern.fullmatch(text):
            found = match.groupdict()
            offset, label = found.get("offset") or found.get("address"), found.get("label")
            return StandIn(
                b"[%b]" % label if label else found.get("module") or b"",
                (found.get("build_id") or b"").lower(),
                int(offset, 16) if offset else None,
                function_start=int(found.get("function") or b"0", 16),
                **facts,
            )
    return None


def of_function(module: bytes, start: int) -> bytes:
    """What stands in for the name of a function of which only the begin is known, a vaddr of its file."""
    return b"%b!sub_%x" % (module, start)


def says_nothing(text: bytes) -> bool:
    """Whether a text stands in for a name, or for that of a source file, and tells nothing of where it is."""
    found = stand_in(text)
    return found is not None and found._replace(may_be_name=False) == StandIn()


def stand_ins(texts: StringArray) -> Iterator[tuple[int, StandIn]]:
    """The rows of the texts that stand in for names, with what they say. Most texts are names, which are not looked at
    one by one."""
    for row in np.flatnonzero(_candidates(texts)).tolist():
        if (found := stand_in(texts[row])) is not None:
            yield row, found


def _candidates(texts: StringArray) -> np.ndarray:
    """Which texts may be stand-ins, by their first bytes and by the signs in them: bool[n]."""
    begin, end = texts.places()
    data = texts.data
    result = np.zeros(len(texts), np.bool_)
    inside = end > begin
    result[inside] = _SIGNS[data[begin[inside]]]
    at = begin[end - begin >= len(b"unkn")]
    if len(at):
        four = [data[at + each] for each in range(4)]
        first = sum(each.astype(np.uint32) << np.uint32(8 * i) for i, each in enumerate(four))
        is_number = np.logical_and.reduce([_IS_DIGIT[each] for each in four])
        result[end - begin >= 4] |= np.isin(first | np.uint32(_SMALL), _BEGINNINGS) | is_number
    is_mark = _IN_SOME[data]
    is_mark[:-1] |= (data[:-1] == ord("0")) & ((data[1:] | 0x20) == ord("x"))
    marks = np.flatnonzero(is_mark)
    return result | (np.searchsorted(marks, begin) < np.searchsorted(marks, end))
