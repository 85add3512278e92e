"""Names that came with a profile against those that a binary has at the same places: is it the build that ran?"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt64, distinct_inverse, pair, unpair
from symbolize.evidence.choice import Agreement
from symbolize.names import (
    LINKER_MARK,
    LINKER_PREFIX,
    demangle,
    drop_clone_notes,
    drop_template_arguments,
    function_key,
    is_mangled,
    public_name,
    same_function,
    simplify,
    split_suffix,
    strip_version,
)
from symbolize.profile import NONE, Profile
from symbolize.symbols import Frames, FunctionsAt

SHARED_MARK = b" [DEDUPED]"
MAX_JUDGED = 1024
"""So many functions, spread over all, are compared to judge a file."""
MAX_NAME = 1 << 16
"""Longer names are compared as they are."""
PSEUDO = b"@plt"
"""What simpleperf calls all stubs of linkage tables."""

MAX_SHOWN = 120
"""Characters of a name in a message."""
MAX_DECLARATION = 1 << 12
"""Parameters of longer declarations are not compared."""
UNSAID = b"..."
"""A parameter list of this alone may denote any."""

_HASH = re.compile(rb"::h[0-9a-f]{16}\Z")
_BLANKS = re.compile(rb"\s+")
_AFTER_PARAMETERS = re.compile(rb"(?:\s*(?:\b(?:const|volatile|noexcept|restrict)\b|&|\[[^\[\]]*\]))*\s*\Z")
_SPELLINGS = (
    (re.compile(rb"\bstd::__[a-z0-9_]+::"), b"std::"),
    (re.compile(rb"std::basic_string<char(?:, ?std::char_traits<char>, ?std::allocator<char>)? ?>"), b"std::string"),
    (re.compile(rb"decltype\(nullptr\)|\bstd::nullptr_t\b"), b"nullptr_t"),
    (re.compile(rb"\{anonymous\}|`anonymous namespace'"), b"(anonymous namespace)"),
)
"""What demanglers spell in several ways, and one of them."""
_IMPLIED_INT = frozenset({b"long", b"short", b"unsigned", b"signed"})
_TOKEN = re.compile(rb"\w+|[^\w\s]")


class Name(NamedTuple):
    """A name as it came: the linked one, empty if it is not known, and that for people."""

    linked: bytes
    shown: bytes


class ExistingNames(NamedTuple):
    """The functions that came with some locations: `names`, and for each location which of them, or NONE."""

    names: list[Name]
    of_location: Int64

    def with_unnamed(self, count: int) -> "ExistingNames":
        """The same with so many locations more that came without names."""
        return self._replace(of_location=np.append(self.of_location, np.full(count, NONE, np.int64)))


def united(parts: Sequence[ExistingNames | None], counts: Sequence[int]) -> ExistingNames:
    """The names of several runs of locations, one run after another, of `counts` locations each."""
    names: list[Name] = []
    pieces = [np.zeros(0, np.int64)]
    for part, count in zip(parts, counts, strict=True):
        if part is None:
            pieces.append(np.full(count, NONE, np.int64))
        else:
            pieces.append(np.where(part.of_location == NONE, NONE, part.of_location + len(names)))
            names += part.names
    return ExistingNames(names, np.concatenate(pieces))


def some_of(embedded: ExistingNames) -> Int64:
    """The locations whose names are compared to judge a file: all that have one, unless the functions are too many."""
    step = -(-len(embedded.names) // MAX_JUDGED) or 1
    return np.flatnonzero((embedded.of_location != NONE) & (embedded.of_location % step == 0))


def existing_names(profile: Profile, rows: Int64) -> ExistingNames:
    """The functions that the locations `rows` came with, of each the outermost."""
    locations, functions, strings = profile.locations, profile.functions, profile.strings
    last = locations.line_offsets[rows + 1] - 1
    has_line = last >= locations.line_offsets[rows]
    function = np.full(len(rows), NONE, np.int64)
    function[has_line] = locations.lines.function[last[has_line]]
    used, which = distinct_inverse(function)
    names: list[Name] = []
    place = np.full(len(used), NONE, np.int64)
    for i, row in enumerate(used.tolist()):
        name = Name(strings[functions.system_name[row]], strings[functions.name[row]]) if row >= 0 else Name(b"", b"")
        if name.shown and name.shown != PSEUDO:
            place[i] = len(names)
            names.append(name)
    return ExistingNames(names, place[which] if len(used) else function)


def compare_names(embedded: ExistingNames, addresses: UInt64, found: FunctionsAt, silence: bool) -> Agreement:
    """How the functions in a binary agree with those that came with the profile (R164, name agreement).

    `found` is what the binary has for the locations of `embedded`, which have the `addresses`. Where it has nothing,
    that speaks against it if `silence` says so: it does not where a file has lost its symbols.

    A function is at the same address if its name is that of a symbol at most of its addresses. Three quarters of the
    functions have to be; fewer mean another build, which is rejected. Two are proof; one alone may be at the same
    address in another build.
    """
    named = embedded.of_location != NONE
    if not silence:
        named &= found.number >= 0
    keys, which = distinct_inverse(pair(embedded.of_location[named], found.number[named]))
    counts = np.bincount(which, minlength=len(keys))
    right, wrong = np.zeros(len(embedded.names), np.int64), np.zeros(len(embedded.names), np.int64)
    example = ""
    for key, (name, number), count in zip(
        range(len(keys)), zip(*(column.tolist() for column in unpair(keys)), strict=True), counts.tolist(), strict=True
    ):
        others = found.names[number] if number >= 0 else []
        if any(is_named(embedded.names[name], other) for other in others):
            right[name] += count
            continue
        wrong[name] += count
        if not example:
            own = embedded.names[name]
            address = int(addresses[named][np.flatnonzero(which == key)[0]])
            there = text(others[0]) if others else "no function"
            example = f"at {address:#x} the profile has {text(own.linked or own.shown)}, the file {there}"
    functions = int((right > wrong).sum())
    return Agreement(functions, int((right + wrong > 0).sum()), int(right.sum()), example)


def disagreeing(embedded: ExistingNames, found: FunctionsAt) -> Bool:
    """At which locations a binary has a function other than the one that came with the profile: bool[n].

    A name with the mark that several functions share the code is another one in any case: it says more. The name from
    the profile is kept there, even if the file is proven (R167, names that came along stay).
    """
    result: Bool = (embedded.of_location != NONE) & (found.number >= 0)
    here = np.flatnonzero(result)
    keys, which = distinct_inverse(pair(embedded.of_location[here], found.number[here]))
    names, numbers = (column.tolist() for column in unpair(keys))
    differs = [
        embedded.names[name].shown.endswith(SHARED_MARK)
        or not any(is_named(embedded.names[name], other) for other in found.names[number])
        for name, number in zip(names, numbers, strict=True)
    ]
    result[here] = np.array(differs, np.bool_)[which]
    return result


def unconfirmed(
    parts: Sequence[ExistingNames | None], counts: Sequence[int], order: Int64, frames: Frames
) -> tuple[Bool, list[int]]:
    """At which locations the names that came along do not agree with what was found, and at how many of each part.

    The locations are those of all parts, of `counts` each, in `order`, as are the `frames`.
    """
    if all(part is None for part in parts):
        return np.zeros(len(order), np.bool_), [0] * len(parts)
    embedded = united(parts, counts)
    differs = disagreeing(ExistingNames(embedded.names, embedded.of_location[order]), frames.outermost())
    part = np.repeat(np.arange(len(parts)), counts)[order]
    return differs, np.bincount(part[differs], minlength=len(parts)).tolist()


def is_named(name: Name, found: bytes) -> bool:
    """Whether `found`, linked or for people, is a name of the function that came with the profile as `name`.

    Clone suffixes, versions, marks of recorders and of the dynamic linker do not count. Linked names are compared if
    both are there, else the texts that they encode, with what the shorter of them leaves out left out. Parameters
    that both spell have to be the same (R241, compared parameters).
    """
    own, other = name.linked or name.shown, found
    if own == other or max(len(own), len(other)) > MAX_NAME:
        return own == other
    own, other = bare(own), bare(other)
    if same_function(own, other):
        return True
    if is_mangled(own) and is_mangled(other):
        return function_key(own) == function_key(other)
    if not is_mangled(own) and not is_mangled(other):
        base, other_base = (split_suffix(each)[0] for each in (own, other))
        if public_name(base) == public_name(other_base):
            return True
    full = [_HASH.sub(b"", each) for each in demangle([own, other], "full")]
    if _BLANKS.sub(b"", full[0]) == _BLANKS.sub(b"", full[1]):
        return True
    if is_mangled(own) or is_mangled(other) or b"(" in own or b"(" in other:
        if _plain(own) != _plain(other):
            return False
        lists = parameters(full[0]), parameters(full[1])
        return None in lists or lists[0] == lists[1]
    return False


def parameters(declaration: bytes) -> list[list[bytes]] | None:
    """The parameters that the text of a declaration ends with, each as its words, sorted; None if it spells none.

    Sorted, `char const*` is `const char *`. Names of the standard library are compared without the namespaces that its
    versions have inside of `std`. `f(int)` is not `_Z1fd`, `f(const char *)` is `_Z1fPKc`; where one name spells none
    the qualified names alone count (R241, compared parameters).
    """
    if len(declaration) > MAX_DECLARATION:
        return None
    text = declaration
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    text = text[: _AFTER_PARAMETERS.search(text, max(0, len(text) - 200)).start()]  # type: ignore[union-attr]
    if not text.endswith(b")"):
        return None
    depth, end, found = 0, len(text) - 1, []
    for at in range(len(text) - 1, -1, -1):
        letter = text[at : at + 1]
        if letter in (b")", b">", b"]", b"}"):
            depth += 1
        elif letter in (b"(", b"<", b"[", b"{"):
            depth -= 1
            if depth == 0 and letter == b"(":
                found.append(text[at + 1 : end])
                break
        elif letter == b"," and depth == 1:
            found.append(text[at + 1 : end])
            end = at
    name = text[:at].rstrip()
    # What is in these brackets is a part of the name.
    if depth or not name or name.endswith((b"operator", b"::", b"decltype")) or found == [UNSAID]:
        return None
    words = [sorted(_TOKEN.findall(each)) for each in reversed(found)]
    words = [each if _IMPLIED_INT.isdisjoint(each) else [word for word in each if word != b"int"] for each in words]
    return [] if words in ([[]], [[b"void"]]) else words


def bare(name: bytes) -> bytes:
    """A name without what recorders and Android's dynamic linker put around it, and without its version."""
    name = name.removesuffix(SHARED_MARK).removeprefix(LINKER_MARK).removeprefix(LINKER_PREFIX)
    return strip_version(drop_clone_notes(name))


def _plain(name: bytes) -> bytes:
    """The qualified name alone, whether `name` is linked, the text of a whole declaration or one of DWARF."""
    if is_mangled(name):
        return _HASH.sub(b"", demangle([name], "default")[0])
    return _HASH.sub(b"", drop_template_arguments(simplify(name, keep_templates=True)))


def text(name: bytes) -> str:
    """A name for a message."""
    shown = demangle([name], "default")[0].decode(errors="replace")
    return shown if len(shown) <= MAX_SHOWN else shown[:MAX_SHOWN] + "…"
