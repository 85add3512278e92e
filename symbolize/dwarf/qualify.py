"""Names of functions as their DIEs and the scopes around them give them."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import Int64, UInt16, UInt32, UInt64, distinct, distinct_inverse, is_among, views
from symbolize.core.records import record
from symbolize.core.string_array import StringArray
from symbolize.dwarf.constants import *
from symbolize.dwarf.decode import Dwarf
from symbolize.dwarf.names import Ancestors, Resolved, find_ancestors, find_below, read_die, resolve
from symbolize.dwarf.sources import Source

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

CLOSURE_CONSTRUCTOR = b"<lambda>"
"""What gcc calls the constructors of a closure."""
CLOSURE_OBJECT = b"__closure"
"""What gcc calls the object in the function of a closure."""
CLOSURE_CALL = b"operator()"
CLOSURE_AUTO = b"auto:"
CLOSURE_MAX_NESTED_TYPES = 4
"""How deep types of functions may be parameters of each other."""
CLOSURE_MAX_TYPES = 64
"""So many types are followed from a parameter; more are corrupt."""
CLOSURE_BYTES_PER_DIE = 4
CLOSURE_MORE_DIES = 1 << 16
"""DIEs that are read to name what is local to functions: one for so many bytes of debug information, and in addition.
"""
CLOSURE_OPERATOR = b"}::operator()"
"""What follows the number of a closure in the text of a linked name."""
_CLOSURE_NUMBER = re.compile(rb"#(\d+)\Z")
_PRODUCER = re.compile(rb"GNU C\+\+\d* (\d+)\.")
_ABI = re.compile(rb"-fabi-version=(\d+)")
ABI_OF_SIGNATURES, GCC_OF_SIGNATURES = 18, 13
"""The C++ ABI of gcc, and the release with it as the default, from which lambdas are counted by their types."""
UNSCOPED_LANGUAGES = np.array(
    [DW_LANG_C89, DW_LANG_C, DW_LANG_C99, DW_LANG_C11, DW_LANG_C17, DW_LANG_C23, DW_LANG_Mips_Assembler], np.uint16
)
"""Languages whose names have no scopes."""

ANONYMOUS = {
    DW_TAG_namespace: b"(anonymous namespace)",
    DW_TAG_class_type: b"(anonymous class)",
    DW_TAG_structure_type: b"(anonymous struct)",
    DW_TAG_union_type: b"(anonymous union)",
    DW_TAG_enumeration_type: b"(anonymous enum)",
}
"""Names of scopes without a name, by tag."""

NAMELESS = frozenset(ANONYMOUS.values())
FUNCTIONS = (DW_TAG_subprogram, DW_TAG_inlined_subroutine)

SCOPED_BY_FUNCTIONS = frozenset(
    {
        DW_LANG_C_plus_plus,
        DW_LANG_C_plus_plus_03,
        DW_LANG_C_plus_plus_11,
        DW_LANG_C_plus_plus_14,
        DW_LANG_C_plus_plus_17,
        DW_LANG_C_plus_plus_20,
        DW_LANG_C_plus_plus_23,
        DW_LANG_C_plus_plus_26,
    }
)
"""Languages in which what is local to a function has it as a scope."""

MAX_NESTED_FUNCTIONS = 8
"""How deep functions may be local to each other."""

MAX_SOURCE_HOPS = 4
"""How often a chain may lead to another file or to a type unit."""

MAX_UNITS = 1 << 40
"""No section has as many units."""

SCOPES_PER_NAME = 16
MORE_SCOPES = 1 << 16
"""Scopes around all functions that are named at a time: so many for each, and in addition."""

NAMES_PER_BYTE = 8
MORE_NAMES = 1 << 20
"""Bytes that qualified names may take, for each byte of debug information and in addition."""

TOO_MUCH = "names of functions lead to absurdly much debug information; some are missing or not qualified"

MAX_SCOPE_HOPS = 16
"""How often a class that is defined away from its declaration may lead to another scope."""


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
    """Reads the closures of functions of one binary; `qualified` gives the name of a class with its scopes, if any.

    gcc gives lambdas of functions that are not inline neither a linked name nor a name of their class, so the name is
    made as c++filt spells it: `shop::total(int)::{lambda(int)#1}::operator()` (R264, local classes and lambdas). Such a
    class has no name, and a function `operator()` whose object gcc calls `__closure`, or constructors called
    `<lambda>`. The types are those of the parameters of `operator()`, those of a generic lambda `auto:1` if all of them
    are; where one is unknown there is `{lambda#1}`.

    The number is the position among the lambdas of the function in order of the source, from gcc 13 (C++ ABI 18) on
    among those of the same types. The compiler counts a lambda in a discarded statement (`if constexpr`) or an
    unevaluated operand, of which there is no debug information. Linked names, of DWARF or of symbols where the function
    of a closure has its code in the same unit, then have numbers ahead of the count. How far ahead never falls in order
    of the source: a number between two such names is that of the count where it is as far ahead at both, and left out
    where that differs: `{lambda(int)}`. The count holds before the first linked name and behind the last one if these
    agree with it. Where there is none, numbers behind a lambda that is not there are too low.
    """

    def __init__(self, dwarf: Dwarf, qualified: Callable[[int], bytes]) -> None:
        self._dwarf = dwarf
        self._sources = dwarf.sources
        self._qualify = qualified
        self._left = dwarf.sources.size // CLOSURE_BYTES_PER_DIE + CLOSURE_MORE_DIES
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
        found = {_CLOSURE_NUMBER.search(self._dwarf.readable(name).rpartition(CLOSURE_OPERATOR)[0]) for name in linked}
        numbers = {int(match[1]) for match in found if match is not None}
        return numbers.pop() if len(numbers) == 1 else 0

    def _closure(self, structure: Die) -> Closure | None:
        """The closure that a class without a name is, None if it is another one."""
        call, is_closure = None, False
        for child in self._below(structure.reference, DW_TAG_subprogram):
            name = self._string(child)
            is_closure |= name == CLOSURE_CONSTRUCTOR
            if name.startswith(CLOSURE_CALL):
                call = child, name
        if call is None or not (is_closure or self._string(self._this(call[0])) == CLOSURE_OBJECT):
            return None
        declared_at = tuple(
            structure.attributes.get(attribute, 0)
            for attribute in (DW_AT_decl_file, DW_AT_decl_line, DW_AT_decl_column)
        )
        parameters = self.parameters(call[0].reference) if call[1] == CLOSURE_CALL else self._generic(call[0].reference)
        return Closure(declared_at, structure.reference, call[0], parameters)

    def _this(self, function: Die) -> Die:
        """The parameter of a member function that is the object, a DIE of no tag if it is none."""
        return self._completed(self._read(function.attributes.get(DW_AT_object_pointer)))

    def parameters(self, function: int) -> bytes | None:
        """The types of the parameters of a function as c++filt has them, None if one of them is unknown."""
        if self._depth == CLOSURE_MAX_NESTED_TYPES:
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
        if len(arguments) != len(parameters) or not all(name.startswith(CLOSURE_AUTO) for name in arguments):
            return None
        pairs = enumerate(zip(arguments.values(), parameters, strict=True), 1)
        return joined([self._auto(CLOSURE_AUTO + b"%d" % number, *pair) for number, pair in pairs])

    def _auto(self, name: bytes, target: int | None, parameter: Die) -> bytes | None:
        """The type of a parameter of a generic lambda whose instance has the type `target` for `auto`."""
        reference = parameter.attributes.get(DW_AT_type)
        behind: list[bytes] = []
        for _ in range(CLOSURE_MAX_TYPES):
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
        for _ in range(CLOSURE_MAX_TYPES):
            this = self._read(this.attributes.get(DW_AT_type))
            if this.tag not in (DW_TAG_const_type, DW_TAG_pointer_type):
                break
            is_const = this.tag == DW_TAG_const_type  # the last one, of what the object pointer points to
        return b"(%s)%s" % (self.parameters(function) or b"", b" const" if is_const else b"")

    def _type(self, reference: int | None, is_parameter: bool = False) -> bytes | None:
        """A type as c++filt has it, None if it is unknown; `const` of a parameter itself is no part of a type."""
        behind: list[bytes] = []
        for _ in range(CLOSURE_MAX_TYPES):
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


@record
class ResolvedFunctions:
    """Functions, a row each: linkage name (empty: none), qualified name, declaration."""

    linkage: StringArray
    name: StringArray
    decl_file: UInt32
    decl_line: UInt32
    decl_unit: Int64

    def take(self, rows: Int64) -> "ResolvedFunctions":
        """Some rows."""
        linkage, name = self.linkage.only(rows), self.name.only(rows)
        return ResolvedFunctions(linkage, name, self.decl_file[rows], self.decl_line[rows], self.decl_unit[rows])


@record
class _Resolved:
    """What `resolve` finds of some DIEs. Strings and `target` are references (see `Sources`), `unit` is a unit of the
    target's source and `decl_unit` one of the binary; `language` is that of `unit`."""

    linkage: UInt64
    name: UInt64
    decl_file: UInt32
    decl_line: UInt32
    decl_unit: Int64
    unit: Int64
    target: UInt64
    tag: UInt16
    onward: UInt64
    signature: UInt64

    @classmethod
    def of(cls, found: Resolved) -> "_Resolved":
        """The columns of `found`."""
        return cls(*(np.asarray(getattr(found, name)) for name in cls.__dataclass_fields__))


def resolve_functions(dwarf: Dwarf, dies: UInt64, nesting: int = 0) -> ResolvedFunctions:
    """Names and declarations of the functions whose DIEs are `dies` (references, see `Sources`).

    A function without a linkage name gets its plain name, qualified by the scopes around its declaration (R15,
    qualified names), but for the innermost of `nesting` functions that are local to each other.
    """
    resolved = resolve_references(dwarf, dies)
    linkage = dwarf.sources.strings(resolved.linkage)
    names = dwarf.sources.strings(resolved.name)
    scoped = ~is_among(_languages(dwarf, resolved), UNSCOPED_LANGUAGES)
    bare = np.flatnonzero((linkage.lengths() == 0) & (names.lengths() > 0) & (resolved.unit >= 0) & scoped)
    bytes_left = NAMES_PER_BYTE * dwarf.sources.size + MORE_NAMES
    rows, qualified = [], []
    scopes, around = _scopes(dwarf, resolved.target[bare], resolved.unit[bare])
    if around:
        _add_functions(dwarf, scopes, around, _languages(dwarf, resolved)[bare], nesting)
    for i, name, scope in zip(bare.tolist(), names.take(bare), scopes, strict=True):
        if scope:
            bytes_left -= sum(map(len, scope)) + len(name)
            if bytes_left < 0:
                dwarf.problems.append(TOO_MUCH)
                break
            rows.append(i)
            qualified.append(b"::".join([*scope, name]))
    names = names.with_changed(np.array(rows, np.int64), qualified)
    return ResolvedFunctions(linkage, names, resolved.decl_file, resolved.decl_line, resolved.decl_unit)


def resolve_references(dwarf: Dwarf, dies: UInt64) -> _Resolved:
    """Resolve DIEs, along chains that lead from one source to another (R16, kinds of references; R91, supplementary
    files)."""
    result = _Resolved.of(Resolved(dies))
    rows, references = np.arange(len(dies)), dies
    for _ in range(MAX_SOURCE_HOPS):
        numbers = references >> np.uint64(SOURCE_SHIFT)
        rows_onward, onward = [], []
        for number in distinct(numbers).tolist():
            source = dwarf.sources.get(number)
            if source is None:
                continue
            here = np.flatnonzero(numbers == number)
            leaving, following = _resolve_in(dwarf, source, rows[here], references[here], result)
            rows_onward.append(leaving)
            onward.append(following)
        rows = np.concatenate(rows_onward) if rows_onward else rows[:0]
        if not len(rows):
            break
        references = np.concatenate(onward)
    return result


def _resolve_in(
    dwarf: Dwarf, source: Source, rows: Int64, references: UInt64, result: _Resolved
) -> tuple[Int64, UInt64]:
    """Add to the rows of `result` what one source has of DIEs there; which go on elsewhere, and with which DIEs."""
    columns = Resolved(references - np.uint64(source.number << SOURCE_SHIFT))
    if not resolve(source.reader, columns):
        dwarf.problems.append(TOO_MUCH)
    found = _Resolved.of(columns)
    for mine, new in ((result.linkage, found.linkage), (result.name, found.name)):
        fresh = (mine[rows] == np.uint64(NOWHERE)) & (new != np.uint64(NOWHERE))
        mine[rows[fresh]] = source.tagged(new[fresh])
    fresh = (result.decl_line[rows] == 0) & (found.decl_line > 0)
    result.decl_line[rows[fresh]] = found.decl_line[fresh]
    declared = found.decl_unit >= 0
    declared[declared] = source.file_unit[found.decl_unit[declared]] >= 0
    fresh = (result.decl_unit[rows] < 0) & declared
    result.decl_unit[rows[fresh]] = source.file_unit[found.decl_unit[fresh]]
    result.decl_file[rows[fresh]] = found.decl_file[fresh]
    read = found.unit >= 0
    result.unit[rows[read]] = found.unit[read]
    result.target[rows[read]] = source.tagged(found.target[read])
    result.tag[rows[read]] = found.tag[read]
    leaves = (found.onward != np.uint64(NOWHERE)) & (found.onward >> np.uint64(SOURCE_SHIFT) != 0)
    following = found.onward
    for k in np.flatnonzero(found.signature != np.uint64(NOWHERE)).tolist():
        die = dwarf.sources.type_die(source, int(found.signature[k]))
        if die is not None:
            leaves[k], following[k] = True, die
    return rows[leaves], following[leaves]


def _languages(dwarf: Dwarf, resolved: _Resolved) -> UInt16:
    """The language of each function, 0 where it is not known (R17, language of a function).

    It is that of the unit with the DIE at the end of the chain, which may be in another unit or file than the inlined
    code.
    """
    result = np.zeros(len(resolved.unit), np.uint16)
    numbers = resolved.target >> np.uint64(SOURCE_SHIFT)
    for number in distinct(numbers).tolist():
        source = dwarf.sources.get(number)
        rows = np.flatnonzero((numbers == number) & (resolved.unit >= 0))
        if source is not None and len(rows):
            result[rows] = np.asarray(source.reader.units.language)[resolved.unit[rows]]
    return result


def _add_functions(
    dwarf: Dwarf,
    scopes: list[list[bytes]],
    around: dict[int, tuple[int, int]],
    language: UInt16,
    nesting: int,
) -> None:
    """Prepend the functions that classes are local to, as c++filt does (R264, local classes and lambdas); `around` has
    for some rows the function and the class in it.

    A function without a linked name is followed by its parameters if it is local to its file, and has no scopes if it
    is not, as `main`.
    """
    rows = [i for i in around if int(language[i]) in SCOPED_BY_FUNCTIONS]
    if not rows or nesting == MAX_NESTED_FUNCTIONS:
        return
    closures = Closures(dwarf, lambda reference: _type_name(dwarf, reference))
    functions, which = distinct_inverse(np.array([around[i][0] for i in rows], np.uint64))
    named = resolve_functions(dwarf, functions, nesting + 1)
    texts: list[bytes] = []
    for function, linkage, name in zip(functions.tolist(), named.linkage, named.name, strict=True):
        if linkage or not name:
            texts.append(dwarf.readable(linkage))
        else:
            signature = closures.signature(function)
            texts.append(name.rpartition(b"::")[2] if signature is None else name + signature)
    for i, k in zip(rows, which.tolist(), strict=True):
        if scopes[i][0] in NAMELESS:
            scopes[i][0] = closures.name(*around[i]) or scopes[i][0]
        if texts[k]:
            scopes[i].insert(0, texts[k])
    if closures.is_cut_off:
        dwarf.problems.append(TOO_MUCH)


def _type_name(dwarf: Dwarf, die: int) -> bytes:
    """The name of a type with its scopes; empty if it has none, or is local to a function."""
    resolved = resolve_references(dwarf, np.array([die], np.uint64))
    name = dwarf.sources.string(int(resolved.name[0]))
    if not name or resolved.unit[0] < 0:
        return b""
    (scopes,), around = _scopes(dwarf, resolved.target, resolved.unit)
    return b"" if around else b"::".join([*scopes, name])


def _scopes(dwarf: Dwarf, dies: UInt64, units: Int64) -> tuple[list[list[bytes]], dict[int, tuple[int, int]]]:
    """The names of the scopes around each DIE, outermost first; `units` are units of the DIEs' sources. For scopes that
    are local to a function also, by row, that function and the scope next to it, as references.

    A scope with DW_AT_specification or DW_AT_signature has the scopes of the declaration or type that it refers to.
    """
    scopes: list[list[bytes]] = [[] for _ in range(len(dies))]
    around: dict[int, tuple[int, int]] = {}
    waiting = np.arange(len(dies))
    for _ in range(MAX_SCOPE_HOPS):
        if not len(waiting):
            break
        order = np.argsort(dies, kind="stable")
        dies, units, waiting = dies[order], units[order], waiting[order]
        targets, which = distinct_inverse(dies)
        unit_of = np.empty(len(targets), np.int64)
        unit_of[which] = units
        number_of = (targets >> np.uint64(SOURCE_SHIFT)).astype(np.int64)
        unit_key = np.where(unit_of >= 0, number_of * MAX_UNITS + unit_of, -1)
        found = Ancestors(SCOPES_PER_NAME * len(targets) + MORE_SCOPES)
        tags: list[int] = []
        for key in distinct(unit_key[unit_key >= 0]).tolist():
            source = dwarf.sources.get(key // MAX_UNITS)
            if source is not None:
                run = np.flatnonzero(unit_key == key)
                offsets = targets[run] - np.uint64(source.number << SOURCE_SHIFT)
                find_ancestors(source.reader, key % MAX_UNITS, *views(offsets), int(run[0]), found)
                tags += [source.number << SOURCE_SHIFT] * (found.count - len(tags))
        if found.cut_off:
            dwarf.problems.append(TOO_MUCH)
        parents, scope_of = distinct_inverse(
            np.bitwise_or(np.asarray(found.die)[: found.count], np.array(tags, np.uint64))
        )
        inside = np.asarray(found.target)[: found.count]
        resolved = resolve_references(dwarf, parents)
        names = [*dwarf.sources.strings(resolved.name)]
        chains: list[list[bytes]] = [[] for _ in range(len(targets))]
        onward: dict[int, int] = {}
        outermost: dict[int, int] = {}
        local: dict[int, tuple[int, int]] = {}
        scope, tag, moved = parents.tolist(), resolved.tag.tolist(), (resolved.target != parents).tolist()
        for k, target in zip(scope_of.tolist(), inside.tolist(), strict=True):
            if target in onward:
                continue
            if tag[k] in FUNCTIONS:
                if target in outermost:  # else a class refers to a function, which is corrupt
                    local[target] = scope[k], outermost[target]
                continue
            outermost[target] = scope[k]
            chains[target].append(names[k] or ANONYMOUS.get(tag[k], b"(anonymous)"))
            if moved[k]:
                onward[target] = k
        for i, chain in zip(waiting.tolist(), (chains[w] for w in which.tolist()), strict=True):
            scopes[i] = chain[::-1] + scopes[i]
        around |= {row: local[w] for row, w in zip(waiting.tolist(), which.tolist(), strict=True) if w in local}
        again = np.array([i for i, w in enumerate(which.tolist()) if w in onward], np.int64)
        next_scope = np.array([onward[int(which[i])] for i in again.tolist()], np.int64)
        waiting = waiting[again]
        dies, units = resolved.target[next_scope], resolved.unit[next_scope]
    return scopes, around
