"""Names of closures, the classes behind lambdas, as linkers and c++filt spell them (rule R264).

gcc gives a lambda of a function that is not inline no linked name and its class no name at all; but the class stands in
the function, and what it is called with is a list of types.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from symbolize.dwarf.names import read_die
from symbolize.dwarf.sources import NOWHERE, OFFSET_MASK, SOURCE_SHIFT, Sources

TAG_CLASS, TAG_ENUM, TAG_PARAMETER, TAG_BLOCK = 0x02, 0x04, 0x05, 0x0B
TAG_POINTER, TAG_REFERENCE, TAG_STRUCTURE, TAG_SUBROUTINE_TYPE, TAG_TYPEDEF = 0x0F, 0x10, 0x13, 0x15, 0x16
TAG_UNION, TAG_UNSPECIFIED, TAG_BASE, TAG_CONST, TAG_SUBPROGRAM = 0x17, 0x18, 0x24, 0x26, 0x2E
TAG_TEMPLATE_TYPE, TAG_VOLATILE, TAG_UNSPECIFIED_TYPE, TAG_RVALUE_REFERENCE = 0x2F, 0x35, 0x3B, 0x42
AT_SIBLING, AT_NAME, AT_PRODUCER, AT_ABSTRACT_ORIGIN, AT_ARTIFICIAL = 0x01, 0x03, 0x25, 0x31, 0x34
AT_COLUMN, AT_FILE, AT_LINE, AT_EXTERNAL, AT_SPECIFICATION = 0x39, 0x3A, 0x3B, 0x3F, 0x47
AT_TYPE, AT_OBJECT_POINTER = 0x49, 0x64

REFERENCES = frozenset(
    {AT_SIBLING, AT_NAME, AT_PRODUCER, AT_ABSTRACT_ORIGIN, AT_SPECIFICATION, AT_TYPE, AT_OBJECT_POINTER}
)
"""Attributes whose values are references to DIEs or strings of the source."""
CLASSES = (TAG_CLASS, TAG_STRUCTURE, TAG_UNION, TAG_ENUM)
SUFFIXES = {TAG_POINTER: b"*", TAG_REFERENCE: b"&", TAG_RVALUE_REFERENCE: b"&&", TAG_CONST: b" const"}
SUFFIXES |= {TAG_VOLATILE: b" volatile"}
BASE_NAMES = {
    b"short int": b"short",
    b"short unsigned int": b"unsigned short",
    b"long int": b"long",
    b"long unsigned int": b"unsigned long",
    b"long long int": b"long long",
    b"long long unsigned int": b"unsigned long long",
    b"__int128 unsigned": b"unsigned __int128",
}
"""What c++filt calls base types that gcc calls otherwise."""

CONSTRUCTOR = b"<lambda>"
"""What gcc calls the constructors of a closure."""
OBJECT = b"__closure"
"""What gcc calls the object in the function of a closure."""
CALL = b"operator()"
AUTO = b"auto:"
MAX_CHAIN = 16
MAX_NESTED_TYPES = 4
"""How deep types of functions may be parameters of each other."""
MAX_TYPES = 64
"""So many types are followed from a parameter; more are corrupt."""
BYTES_PER_DIE = 4
MORE_DIES = 1 << 16
"""DIEs that are read to name what is local to functions, for all that are named at a time: one for so many bytes of
debug information, and in addition."""
_PRODUCER = re.compile(rb"GNU C\+\+\d* (\d+)\.")
_ABI = re.compile(rb"-fabi-version=(\d+)")
ABI_OF_SIGNATURES, GCC_OF_SIGNATURES = 18, 13
"""The C++ ABI of gcc, and the release with it as the default, from which lambdas are counted by their types."""


def joined(texts: list[bytes | None]) -> bytes | None:
    """A list of types, None if one of them cannot be told."""
    known = [text for text in texts if text is not None]
    return b", ".join(known) if len(known) == len(texts) else None


class Die(NamedTuple):
    """A DIE: its attributes by number (strings and DIEs as references), and where what follows them begins."""

    reference: int
    tag: int
    has_children: bool
    after: int
    attributes: dict[int, int]


NO_DIE = Die(0, 0, False, 0, {})


class Closure(NamedTuple):
    """A closure: where it is declared, and the types of its parameters, None if these cannot be told."""

    place: tuple[int, int, int]
    parameters: bytes | None


class Closures:
    """Reads the closures of functions of one binary; `qualified` gives the name of a class with its scopes, if any."""

    def __init__(self, sources: Sources, qualified: Callable[[int], bytes]) -> None:
        self._sources = sources
        self._qualify = qualified
        self._left = sources.size // BYTES_PER_DIE + MORE_DIES
        self._depth = 0
        self._numbered: dict[int, dict[int, bytes]] = {}
        self._types: dict[int, bytes] = {}

    @property
    def is_cut_off(self) -> bool:
        """Whether DIEs were left out, because there were absurdly many."""
        return self._left < 0

    def name(self, function: int, structure: int) -> bytes:
        """The name of the class `structure` in `function`, `{lambda(int)#1}`; empty if it is no closure of gcc's.

        Closures are counted in order of their places in the source; up to gcc 12 all of a function, since then those of
        the same types.
        """
        if function not in self._numbered:
            self._numbered[function] = self._number(function)
        return self._numbered[function].get(structure, b"")

    def _number(self, function: int) -> dict[int, bytes]:
        found: list[tuple[Closure, int]] = []
        self._collect(function, found)
        by_types = self._counts_by_types(function) if found else False
        names: dict[int, bytes] = {}
        counts: dict[bytes | None, int] = {}
        for number, (closure, structure) in enumerate(sorted(found), 1):
            parameters = closure.parameters
            counts[parameters] = counts.get(parameters, 0) + 1
            if parameters is None:
                names[structure] = b"{lambda#%d}" % number
            else:
                names[structure] = b"{lambda(%s)#%d}" % (parameters, counts[parameters] if by_types else number)
        return names

    def _collect(self, parent: int, found: list[tuple[Closure, int]]) -> None:
        """Add the closures below a function, or below a block in it."""
        waiting = [parent]
        while waiting:
            for child in self._children(waiting.pop()):
                if child.tag == TAG_BLOCK:
                    waiting.append(child.reference)
                elif child.tag in (TAG_CLASS, TAG_STRUCTURE) and AT_NAME not in child.attributes:
                    closure = self._closure(child)
                    if closure is not None:
                        found.append((closure, child.reference))

    def _closure(self, structure: Die) -> Closure | None:
        """The closure that a class without a name is, None if it is another one."""
        call, is_closure = None, False
        for child in self._children(structure.reference):
            if child.tag == TAG_SUBPROGRAM:
                name = self._string(child)
                is_closure |= name == CONSTRUCTOR
                if name.startswith(CALL):
                    call = child, name
        if call is None or not (is_closure or self._string(self._this(call[0])) == OBJECT):
            return None
        place = tuple(structure.attributes.get(attribute, 0) for attribute in (AT_FILE, AT_LINE, AT_COLUMN))
        parameters = self.parameters(call[0].reference) if call[1] == CALL else self._generic(call[0].reference)
        return Closure((place[0], place[1], place[2]), parameters)

    def _this(self, function: Die) -> Die:
        """The parameter of a member function that is the object, a DIE of no tag if it is none."""
        return self._completed(self._read(function.attributes.get(AT_OBJECT_POINTER)))

    def parameters(self, function: int) -> bytes | None:
        """The types of the parameters of a function as c++filt has them, None if one of them cannot be told."""
        if self._depth == MAX_NESTED_TYPES:
            return None
        self._depth += 1
        texts = [self._parameter(child) for child in self._formal(function)]
        self._depth -= 1
        return joined(texts)

    def _parameter(self, parameter: Die) -> bytes | None:
        """The type of a parameter, None if it cannot be told."""
        if parameter.tag == TAG_UNSPECIFIED:
            return b"..."
        return self._type(parameter.attributes.get(AT_TYPE), is_parameter=True)

    def _formal(self, function: int) -> list[Die]:
        """The parameters of a function that its source has, and the mark of those that it does not name."""
        children = list(self._children(function))
        found = [self._completed(child) for child in children if child.tag == TAG_PARAMETER]
        rest = [child for child in children if child.tag == TAG_UNSPECIFIED][:1]
        return [*(parameter for parameter in found if not parameter.attributes.get(AT_ARTIFICIAL)), *rest]

    def _generic(self, function: int) -> bytes | None:
        """The types of the parameters of a generic lambda by an instance of it: `auto:1&`.

        None if not all are `auto`, because then those of the instance do not tell which are.
        """
        children = [child for child in self._children(function) if child.tag == TAG_TEMPLATE_TYPE]
        arguments = {self._string(child): child.attributes.get(AT_TYPE) for child in children}  # each stands twice
        parameters = self._formal(function)
        if len(arguments) != len(parameters) or not all(name.startswith(AUTO) for name in arguments):
            return None
        pairs = enumerate(zip(arguments.values(), parameters, strict=True), 1)
        return joined([self._auto(AUTO + b"%d" % number, *pair) for number, pair in pairs])

    def _auto(self, name: bytes, target: int | None, parameter: Die) -> bytes | None:
        """The type of a parameter of a generic lambda whose instance has the type `target` for `auto`."""
        reference = parameter.attributes.get(AT_TYPE)
        behind: list[bytes] = []
        for _ in range(MAX_TYPES):
            if reference == target:
                # Only of `auto&&` the argument is a reference itself.
                forwarding = self._read(target).tag == TAG_REFERENCE
                return name + (b"&&" if forwarding else b"".join(behind[::-1]))
            die = self._read(reference)
            if die.tag not in SUFFIXES:
                return None
            if behind or die.tag not in (TAG_CONST, TAG_VOLATILE):
                behind.append(SUFFIXES[die.tag])
            reference = die.attributes.get(AT_TYPE)
        return None

    def signature(self, function: int) -> bytes | None:
        """What c++filt has behind the name of a function without a linked name: parameters, and whether it is const.

        None where such a function is not mangled, as `main` and those of C, which have no scopes either.
        """
        die = self._completed(self._read(function))
        this = self._this(die)
        if die.attributes.get(AT_EXTERNAL) and this.tag != TAG_PARAMETER:
            return None
        is_const = False
        for _ in range(MAX_TYPES):
            this = self._read(this.attributes.get(AT_TYPE))
            if this.tag not in (TAG_CONST, TAG_POINTER):
                break
            is_const = this.tag == TAG_CONST  # the last one, of what the object pointer points to
        return b"(%s)%s" % (self.parameters(function) or b"", b" const" if is_const else b"")

    def _type(self, reference: int | None, is_parameter: bool = False) -> bytes | None:
        """A type as c++filt has it, None if it cannot be told; `const` of a parameter itself is no part of a type."""
        behind: list[bytes] = []
        for _ in range(MAX_TYPES):
            die = self._read(reference)
            if reference is None:
                return b"void" + b"".join(behind[::-1])
            if die.tag in SUFFIXES:
                if behind or not is_parameter or die.tag not in (TAG_CONST, TAG_VOLATILE):
                    behind.append(SUFFIXES[die.tag])
            elif die.tag in (TAG_BASE, TAG_UNSPECIFIED_TYPE):
                name = self._string(die)
                return BASE_NAMES.get(name, name) + b"".join(behind[::-1])
            elif die.tag in CLASSES:
                text = self._qualified(die.reference)
                return text + b"".join(behind[::-1]) if text else None
            elif die.tag == TAG_SUBROUTINE_TYPE:
                result, parameters = self._type(die.attributes.get(AT_TYPE)), self.parameters(die.reference)
                if result is None or parameters is None:
                    return None
                return b"%s (%s)(%s)" % (result, b"".join(behind[::-1]), parameters)
            elif die.tag != TAG_TYPEDEF:
                return None
            reference = die.attributes.get(AT_TYPE)
        return None

    def _qualified(self, reference: int) -> bytes:
        """The name of a class with its scopes; empty if it has none."""
        if reference not in self._types:
            self._types[reference] = self._qualify(reference)
        return self._types[reference]

    def _counts_by_types(self, function: int) -> bool:
        """Whether the compiler of a function counts lambdas of each signature by themselves."""
        source = self._sources.get(function >> SOURCE_SHIFT)
        if source is None:
            return False
        begins = np.asarray(source.reader.units.first_die)
        unit = int(np.searchsorted(begins, np.uint64(function & OFFSET_MASK), side="right")) - 1
        root = self._read(source.tagged_one(int(begins[max(unit, 0)])))
        producer = self._sources.string(root.attributes.get(AT_PRODUCER, NOWHERE))
        abi, release = _ABI.search(producer), _PRODUCER.match(producer)
        if abi is not None and int(abi[1]):
            return int(abi[1]) >= ABI_OF_SIGNATURES
        return release is not None and int(release[1]) >= GCC_OF_SIGNATURES

    def _string(self, die: Die) -> bytes:
        """The name of a DIE, empty if it has none."""
        return self._sources.string(die.attributes[AT_NAME]) if AT_NAME in die.attributes else b""

    def _completed(self, die: Die) -> Die:
        """A DIE with the attributes that the ones have which it refers to."""
        attributes = dict(die.attributes)
        for _ in range(MAX_CHAIN):
            following = die.attributes.get(AT_ABSTRACT_ORIGIN, die.attributes.get(AT_SPECIFICATION))
            if following is None:
                break
            die = self._read(following)
            attributes = die.attributes | attributes
        return die._replace(attributes=attributes)

    def _children(self, parent: int) -> Iterator[Die]:
        """The children of a DIE."""
        die = self._read(parent)
        depth = int(die.has_children)
        while depth > 0:
            die = self._read(die.after)
            if die.tag == 0:
                depth -= 1
                if die.after == 0:
                    return
                continue
            if depth == 1:
                yield die
            if die.has_children:
                if die.attributes.get(AT_SIBLING, 0) > die.reference:
                    die = die._replace(after=die.attributes[AT_SIBLING])
                else:
                    depth += 1

    def _read(self, reference: int | None) -> Die:
        """The DIE at a reference; one of no tag, which ends a list of children, if there is none."""
        self._left -= 1
        source = self._sources.get(reference >> SOURCE_SHIFT) if reference is not None and self._left >= 0 else None
        found = (
            read_die(source.reader, reference & OFFSET_MASK) if source is not None and reference is not None else None
        )
        if source is None or reference is None or found is None:
            return NO_DIE
        tag, has_children, after, attributes = found
        for attribute in REFERENCES & attributes.keys():
            attributes[attribute] = source.tagged_one(attributes[attribute])
        return Die(reference, tag, has_children, source.tagged_one(after), attributes)
