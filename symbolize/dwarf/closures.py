"""Names of closures, the classes behind lambdas, as linkers and c++filt spell them (R264, local classes and lambdas).

gcc gives a lambda of a function that is not inline no linkage name and its class no name.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symbolize.dwarf.constants import *
from symbolize.dwarf.decode import Dwarf
from symbolize.dwarf.names import find_below, read_die

REFERENCES = frozenset(
    {
        DW_AT_name,
        DW_AT_producer,
        DW_AT_abstract_origin,
        DW_AT_specification,
        DW_AT_type,
        DW_AT_object_pointer,
        DW_AT_linkage_name,
    }
)
"""Attributes whose values are references to DIEs or strings of the source."""
CLASSES = (DW_TAG_class_type, DW_TAG_structure_type, DW_TAG_union_type, DW_TAG_enumeration_type)
SUFFIXES = {
    DW_TAG_pointer_type: b"*",
    DW_TAG_reference_type: b"&",
    DW_TAG_rvalue_reference_type: b"&&",
    DW_TAG_const_type: b" const",
}
SUFFIXES |= {DW_TAG_volatile_type: b" volatile"}
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
MAX_NESTED_TYPES = 4
"""How deep types of functions may be parameters of each other."""
MAX_TYPES = 64
"""So many types are followed from a parameter; more are corrupt."""
BYTES_PER_DIE = 4
MORE_DIES = 1 << 16
"""DIEs that are read to name what is local to functions: one for so many bytes of debug information, and in addition.
"""
OPERATOR = b"}::operator()"
"""What follows the number of a closure in the text of a linked name."""
_NUMBER = re.compile(rb"#(\d+)\Z")
_PRODUCER = re.compile(rb"GNU C\+\+\d* (\d+)\.")
_ABI = re.compile(rb"-fabi-version=(\d+)")
ABI_OF_SIGNATURES, GCC_OF_SIGNATURES = 18, 13
"""The C++ ABI of gcc, and the release with it as the default, from which lambdas are counted by their types."""


def joined(texts: list[bytes | None]) -> bytes | None:
    """A list of types, None if one of them is unknown."""
    known = [text for text in texts if text is not None]
    return b", ".join(known) if len(known) == len(texts) else None


class Die(NamedTuple):
    """A DIE: its attributes by number (strings and DIEs as references)."""

    reference: int
    tag: int
    attributes: dict[int, int]


NO_DIE = Die(0, 0, {})


class Closure(NamedTuple):
    """A closure: where it is declared, its class, its function, and the types of its parameters, None if unknown."""

    declared_at: tuple[int, ...]
    structure: int
    call: Die
    parameters: bytes | None


def calibrated(linked: list[int]) -> list[int]:
    """The numbers of closures in source order, 0 where they are unknown; `linked` are those of linkage names or 0.

    The compiler counts closures that are not in the debug information too, so a number may exceed the order. The excess
    never falls; between two closures with different excess, or behind the last one with some, it is unknown.
    """
    ahead = [number - order if number else None for order, number in enumerate(linked, 1)]
    known = [0, *(n for n in ahead if n is not None)]
    if known != sorted(known):
        return [0] * len(linked)
    numbers = []
    passed = 0
    for order, here in enumerate(ahead, 1):
        passed += here is not None
        before = known[passed]
        after = before if here is not None else known[passed + 1] if passed + 1 < len(known) else 0
        numbers.append(order + before if before == after else 0)
    return numbers


class Closures:
    """Reads the closures of functions of one binary; `qualified` gives the name of a class with its scopes, if any."""

    def __init__(self, dwarf: Dwarf, qualified: Callable[[int], bytes]) -> None:
        self._dwarf = dwarf
        self._sources = dwarf.sources
        self._qualify = qualified
        self._left = dwarf.sources.size // BYTES_PER_DIE + MORE_DIES
        self._depth = 0
        self._numbered: dict[int, dict[int, bytes]] = {}
        self._types: dict[int, bytes] = {}
        self._by_types: dict[int, bool] = {}

    @property
    def is_cut_off(self) -> bool:
        """Whether DIEs were left out, because there were absurdly many."""
        return self._left < 0

    def name(self, function: int, structure: int) -> bytes:
        """The name of the class `structure` in `function`, `{lambda(int)#1}`; empty if it is no closure of gcc.

        Closures are counted in order of declaration, up to gcc 12 all of a function, since then those of the same
        types. Where linkage names contradict that there is no number: `{lambda(int)}`.
        """
        if function not in self._numbered:
            self._numbered[function] = self._number(function)
        return self._numbered[function].get(structure, b"")

    def _number(self, function: int) -> dict[int, bytes]:
        classes = self._below(function, DW_TAG_class_type, DW_TAG_structure_type, through=DW_TAG_lexical_block)
        nameless = [self._closure(die) for die in classes if DW_AT_name not in die.attributes]
        found = sorted((closure for closure in nameless if closure is not None), key=lambda closure: closure[:2])
        by_types = self._counts_by_types(function) if found else False
        counted: dict[bytes | None, list[Closure]] = {}
        for closure in found:
            counted.setdefault(closure.parameters if by_types else None, []).append(closure)
        names: dict[int, bytes] = {}
        for closures in counted.values():
            numbers = calibrated([self._linked_number(closure.call) for closure in closures])
            for closure, number in zip(closures, numbers, strict=True):
                types = b"" if closure.parameters is None else b"(%s)" % closure.parameters
                names[closure.structure] = b"{lambda%s%s}" % (types, b"#%d" % number if number else b"")
        return names

    def _linked_number(self, call: Die) -> int:
        """The number of a closure in the linked names of its function, of DWARF and of symbols; 0 if it has none."""
        linked = (
            [self._sources.string(call.attributes[DW_AT_linkage_name])] if DW_AT_linkage_name in call.attributes else []
        )
        bodies = [call, *map(self._read, self._dwarf.bodies(call.reference))]
        for address in {body.attributes[DW_AT_low_pc] for body in bodies if DW_AT_low_pc in body.attributes}:
            linked += self._dwarf.linked_at(address)
        found = {_NUMBER.search(self._dwarf.readable(name).rpartition(OPERATOR)[0]) for name in linked}
        numbers = {int(match[1]) for match in found if match is not None}
        return numbers.pop() if len(numbers) == 1 else 0

    def _closure(self, structure: Die) -> Closure | None:
        """The closure that a class without a name is, None if it is another one."""
        call, is_closure = None, False
        for child in self._below(structure.reference, DW_TAG_subprogram):
            name = self._string(child)
            is_closure |= name == CONSTRUCTOR
            if name.startswith(CALL):
                call = child, name
        if call is None or not (is_closure or self._string(self._this(call[0])) == OBJECT):
            return None
        declared_at = tuple(
            structure.attributes.get(attribute, 0)
            for attribute in (DW_AT_decl_file, DW_AT_decl_line, DW_AT_decl_column)
        )
        parameters = self.parameters(call[0].reference) if call[1] == CALL else self._generic(call[0].reference)
        return Closure(declared_at, structure.reference, call[0], parameters)

    def _this(self, function: Die) -> Die:
        """The parameter of a member function that is the object, a DIE of no tag if it is none."""
        return self._completed(self._read(function.attributes.get(DW_AT_object_pointer)))

    def parameters(self, function: int) -> bytes | None:
        """The types of the parameters of a function as c++filt has them, None if one of them is unknown."""
        if self._depth == MAX_NESTED_TYPES:
            return None
        self._depth += 1
        texts = [self._parameter(child) for child in self._formal(function)]
        self._depth -= 1
        return joined(texts)

    def _parameter(self, parameter: Die) -> bytes | None:
        """The type of a parameter, None if it is unknown."""
        if parameter.tag == DW_TAG_unspecified_parameters:
            return b"..."
        return self._type(parameter.attributes.get(DW_AT_type), is_parameter=True)

    def _formal(self, function: int) -> list[Die]:
        """The parameters of a function that its source has, and the mark of those that it does not name."""
        children = self._below(function, DW_TAG_formal_parameter, DW_TAG_unspecified_parameters)
        found = [self._completed(child) for child in children if child.tag == DW_TAG_formal_parameter]
        rest = [child for child in children if child.tag == DW_TAG_unspecified_parameters][:1]
        return [*(parameter for parameter in found if not parameter.attributes.get(DW_AT_artificial)), *rest]

    def _generic(self, function: int) -> bytes | None:
        """The types of the parameters of a generic lambda by an instance of it, `auto:1&`; None if not all are
        `auto`."""
        children = self._below(function, DW_TAG_template_type_parameter)
        arguments = {
            self._string(child): child.attributes.get(DW_AT_type) for child in children
        }  # each is listed twice
        parameters = self._formal(function)
        if len(arguments) != len(parameters) or not all(name.startswith(AUTO) for name in arguments):
            return None
        pairs = enumerate(zip(arguments.values(), parameters, strict=True), 1)
        return joined([self._auto(AUTO + b"%d" % number, *pair) for number, pair in pairs])

    def _auto(self, name: bytes, target: int | None, parameter: Die) -> bytes | None:
        """The type of a parameter of a generic lambda whose instance has the type `target` for `auto`."""
        reference = parameter.attributes.get(DW_AT_type)
        behind: list[bytes] = []
        for _ in range(MAX_TYPES):
            if reference == target:
                # Only of `auto&&` the argument is a reference itself.
                forwarding = self._read(target).tag == DW_TAG_reference_type
                return name + (b"&&" if forwarding else b"".join(behind[::-1]))
            die = self._read(reference)
            if die.tag not in SUFFIXES:
                return None
            if behind or die.tag not in (DW_TAG_const_type, DW_TAG_volatile_type):
                behind.append(SUFFIXES[die.tag])
            reference = die.attributes.get(DW_AT_type)
        return None

    def signature(self, function: int) -> bytes | None:
        """The parameters and `const` of a function without a linkage name, as in c++filt; None if such ones are not
        mangled."""
        die = self._completed(self._read(function))
        this = self._this(die)
        if die.attributes.get(DW_AT_external) and this.tag != DW_TAG_formal_parameter:
            return None
        is_const = False
        for _ in range(MAX_TYPES):
            this = self._read(this.attributes.get(DW_AT_type))
            if this.tag not in (DW_TAG_const_type, DW_TAG_pointer_type):
                break
            is_const = this.tag == DW_TAG_const_type  # the last one, of what the object pointer points to
        return b"(%s)%s" % (self.parameters(function) or b"", b" const" if is_const else b"")

    def _type(self, reference: int | None, is_parameter: bool = False) -> bytes | None:
        """A type as c++filt has it, None if it is unknown; `const` of a parameter itself is no part of a type."""
        behind: list[bytes] = []
        for _ in range(MAX_TYPES):
            die = self._read(reference)
            if reference is None:
                return b"void" + b"".join(behind[::-1])
            if die.tag in SUFFIXES:
                if behind or not is_parameter or die.tag not in (DW_TAG_const_type, DW_TAG_volatile_type):
                    behind.append(SUFFIXES[die.tag])
            elif die.tag in (DW_TAG_base_type, DW_TAG_unspecified_type):
                name = self._string(die)
                return BASE_NAMES.get(name, name) + b"".join(behind[::-1])
            elif die.tag in CLASSES:
                text = self._qualified(die.reference)
                return text + b"".join(behind[::-1]) if text else None
            elif die.tag == DW_TAG_subroutine_type:
                result, parameters = self._type(die.attributes.get(DW_AT_type)), self.parameters(die.reference)
                if result is None or parameters is None:
                    return None
                return b"%s (%s)(%s)" % (result, b"".join(behind[::-1]), parameters)
            elif die.tag != DW_TAG_typedef:
                return None
            reference = die.attributes.get(DW_AT_type)
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
        first = source.tagged_one(int(begins[max(unit, 0)]))
        if first not in self._by_types:
            self._by_types[first] = self._unit_counts_by_types(first)
        return self._by_types[first]

    def _unit_counts_by_types(self, first: int) -> bool:
        """Whether the compiler of the unit with this root does so."""
        root = self._read(first)
        producer = self._sources.string(root.attributes.get(DW_AT_producer, NOWHERE))
        abi, release = _ABI.search(producer), _PRODUCER.match(producer)
        if abi is not None and int(abi[1]):
            return int(abi[1]) >= ABI_OF_SIGNATURES
        return release is not None and int(release[1]) >= GCC_OF_SIGNATURES

    def _string(self, die: Die) -> bytes:
        """The name of a DIE, empty if it has none."""
        return self._sources.string(die.attributes[DW_AT_name]) if DW_AT_name in die.attributes else b""

    def _completed(self, die: Die) -> Die:
        """A DIE with the attributes that the ones have which it refers to."""
        attributes = dict(die.attributes)
        for _ in range(MAX_CHAIN):
            following = die.attributes.get(DW_AT_abstract_origin, die.attributes.get(DW_AT_specification))
            if following is None:
                break
            die = self._read(following)
            attributes = die.attributes | attributes
        return die._replace(attributes=attributes)

    def _below(self, parent: int, *tags: int, through: int = 0) -> list[Die]:
        """The children of a DIE with one of `tags`, also those in children with the tag `through`, if given."""
        source = self._sources.get(parent >> SOURCE_SHIFT)
        if source is None or self._left < 0:
            return []
        wanted = sum(1 << tag for tag in tags)
        offsets, count = find_below(
            source.reader, parent & OFFSET_MASK, wanted, through and 1 << through, self._left + 1
        )
        self._left -= count
        return [self._read(source.tagged_one(offset)) for offset in offsets]

    def _read(self, reference: int | None) -> Die:
        """The DIE at a reference; one of no tag, which ends a list of children, if there is none."""
        self._left -= 1
        source = self._sources.get(reference >> SOURCE_SHIFT) if reference is not None and self._left >= 0 else None
        found = (
            read_die(source.reader, reference & OFFSET_MASK) if source is not None and reference is not None else None
        )
        if source is None or reference is None or found is None:
            return NO_DIE
        tag, attributes = found
        for attribute in REFERENCES & attributes.keys():
            attributes[attribute] = source.tagged_one(attributes[attribute])
        return Die(reference, tag, attributes)
