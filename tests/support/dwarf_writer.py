"""Builds DWARF in memory, for the inputs that no compiler writes on demand.

Debug information is nested values: a `Unit` holds a tree of `die(...)`, whose attributes are Python values (a form
is chosen) or `As(form, value)`. References name labels, in any unit and in any order; range lists, indexed strings
and indexed addresses go to tables of their own and may be replaced by raw numbers (`Index`, plain integers) to
write what is wrong. `dwarf_sections` turns units into sections.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from elftools.dwarf.enums import ENUM_DW_AT, ENUM_DW_FORM, ENUM_DW_TAG

from tests.support.elf_writer import Section, Strings
from tests.support.line_writer import FIXED, Format, Lines, line_program, number, sleb, uleb

COMPILE, TYPE, PARTIAL, SKELETON, SPLIT, SPLIT_TYPE = 1, 2, 3, 4, 5, 6
C_PLUS_PLUS, C = 0x1A, 0x1D


class As(NamedTuple):
    """A value in a certain form: a name such as "data4" or a number."""

    form: str | int
    value: Any


class Ref(NamedTuple):
    """The DIE with a label."""

    label: str


class Index(int):
    """The raw index of an indexed form, or the raw offset of a string or of a range list."""


@dataclass(frozen=True)
class Die:
    """A debugging information entry; `attributes` are name or number, and value."""

    tag: str | int
    attributes: tuple[tuple[str | int, Any], ...]
    children: tuple["Die", ...] = ()
    label: str = ""
    sibling: bool = False


def die(tag: str | int, *children: Die, label: str = "", sibling: bool = False, **attributes: Any) -> Die:
    """A DIE. `sibling` adds DW_AT_sibling; attributes called `_0x2007` go by number."""
    named = ((int(name[1:], 16) if name.startswith("_0x") else name, value) for name, value in attributes.items())
    return Die(tag, tuple(named), children, label, sibling)


def function(name: str, low: int, size: int, *children: Die, **attributes: Any) -> Die:
    """A subprogram with low_pc and a length."""
    return die("subprogram", *children, name=name, low_pc=low, high_pc=size, **attributes)


def inlined(origin: str, ranges: Any, *children: Die, line: int = 0, **attributes: Any) -> Die:
    """An inlined_subroutine of the DIE labelled `origin`: its ranges, the line it is called on."""
    return die(
        "inlined_subroutine", *children, abstract_origin=Ref(origin), ranges=ranges, call_line=line, **attributes
    )


@dataclass
class Unit:
    """A unit of .debug_info. `shared` units with one key have one abbreviation table (rule R73).

    `bases` says where the base attributes stand in the root: "first", "last" (rule R67) or "none"; `code` maps
    abbreviation numbers 1, 2, 3 … to codes (rule R71); `tail` follows the last DIE, `padding` the unit. `signature` is
    that of a type, which is the DIE labelled `type`, or a dwo id. Type units before DWARF 5 go to .debug_types.
    """

    root: Die
    format: Format = field(default_factory=Format)
    lines: Lines | None = None
    kind: int = COMPILE
    shared: str = ""
    bases: str = "last"
    code: Callable[[int], int] = int
    tail: bytes = b""
    padding: bytes = b""
    header_version: int | None = None
    signature: int = 0
    type: str = ""


DEFAULT_FORMS = {"low_pc": "addr", "entry_pc": "addr", "high_pc": "udata", "stmt_list": "sec_offset"}
LEBS = {"udata", "strx", "addrx", "rnglistx", "loclistx", "GNU_addr_index", "GNU_str_index"}
BASES = (("str_offsets_base", "strx"), ("addr_base", "addrx"), ("rnglists_base", "rnglistx"))


class Writer:
    """The debug sections while they grow. Values that are not known yet are patched in at the end."""

    def __init__(self) -> None:
        self.sections = {name: bytearray() for name in ("info", "types", "abbrev", "line", "ranges", "rnglists")}
        self.sections |= {"addr": bytearray(), "str_offsets": bytearray()}
        self.strings = {"strp": Strings(b""), "line_strp": Strings(b"")}
        self.labels: dict[str, int] = {}
        self.patches: list[tuple[str, int, Callable[[], bytes]]] = []
        self.shared: dict[str, tuple[int, dict[Any, int]]] = {}

    def later(self, section: str, size: int, value: Callable[[], bytes]) -> None:
        """Leave room for `size` bytes that are known at the end."""
        self.patches.append((section, len(self.sections[section]), value))
        self.sections[section] += bytes(size)

    def finish(self) -> dict[str, bytes]:
        """The contents of all sections."""
        for section, place, value in self.patches:
            raw = value()
            self.sections[section][place : place + len(raw)] = raw
        contents = {name: bytes(data) for name, data in self.sections.items()}
        return contents | {form[:-1]: bytes(strings.data) for form, strings in self.strings.items()}


class UnitWriter:
    """Writes one unit, with its part of the indexed tables."""

    def __init__(self, writer: Writer, unit: Unit) -> None:
        self.writer, self.unit, self.format = writer, unit, unit.format
        self.section = "types" if unit.kind == TYPE and unit.format.version < 5 else "info"
        self.info = writer.sections[self.section]
        self.start = len(self.info)
        self.codes: dict[Any, int] = {}
        self.strings: list[int] = []
        self.addresses: list[int] = []
        self.lists: list[Any] = []
        self.bases: dict[str, int] = {}

    def write(self) -> None:
        """Append the unit to all sections."""
        writer, unit, fmt = self.writer, self.unit, self.format
        root = unit.root
        if unit.lines is not None:
            offset = len(writer.sections["line"])
            writer.sections["line"] += line_program(unit.lines, fmt, writer.strings)
            root = replace(root, attributes=(*root.attributes, ("stmt_list", offset)))
        used = set(forms_of(root))
        bases = tuple(
            (name, Ref("base:" + name)) for name, kind in BASES if any(form.startswith(kind) for form in used)
        )
        if unit.bases != "none":
            first = unit.bases == "first"
            root = replace(root, attributes=(bases + root.attributes) if first else (root.attributes + bases))
        length_size = 12 if fmt.dwarf64 else 4
        writer.later(self.section, length_size, lambda: fmt.length(end - self.start - length_size))
        version = fmt.version if unit.header_version is None else unit.header_version
        self.info += fmt.uint(version, 2)
        abbrev = lambda: fmt.uint(abbrev_offset, fmt.offset_size)  # noqa: E731
        if fmt.version >= 5:
            self.info += bytes([unit.kind, fmt.address_size])
            writer.later(self.section, fmt.offset_size, abbrev)
        else:
            writer.later(self.section, fmt.offset_size, abbrev)
            self.info += bytes([fmt.address_size])
        if self.section == "types" or (fmt.version >= 5 and unit.kind in (TYPE, SKELETON, SPLIT, SPLIT_TYPE)):
            self.info += fmt.uint(unit.signature, 8)
            if unit.kind in (TYPE, SPLIT_TYPE):
                place = lambda: fmt.uint(writer.labels.get(unit.type, self.start) - self.start, fmt.offset_size)  # noqa: E731
                writer.later(self.section, fmt.offset_size, place)
        if unit.shared in writer.shared:
            abbrev_offset, self.codes = writer.shared[unit.shared]
        self.die(root)
        self.info += unit.tail
        end = len(self.info)
        self.info += unit.padding
        if unit.shared not in writer.shared:
            abbrev_offset = self.write_abbrevs()
            if unit.shared:
                writer.shared[unit.shared] = abbrev_offset, self.codes
        self.write_tables()

    def die(self, entry: Die) -> None:
        """Append a DIE with its subtree."""
        if entry.label:
            self.writer.labels[entry.label] = len(self.info)
        attributes = [(name, self.with_form(name, value)) for name, value in entry.attributes]
        after = f"after:{len(self.info)}"
        if entry.sibling:
            attributes.insert(0, ("sibling", As("ref4", Ref(after))))
        constant = lambda value: value.value if value.form == "implicit_const" else None  # noqa: E731
        shape = tuple((name, "indirect" if self.format.indirect else v.form, constant(v)) for name, v in attributes)
        key = (entry.tag, bool(entry.children), shape)
        if key not in self.codes:
            assert self.unit.shared not in self.writer.shared, "the first unit of a shared table has to use all of it"
            self.codes[key] = len(self.codes) + 1
        self.info += uleb(self.unit.code(self.codes[key]))
        for _, (form, value) in attributes:
            if self.format.indirect:
                self.info += uleb(number(ENUM_DW_FORM, "DW_FORM_", form))
            self.value(form, value)
        if entry.children:
            for child in entry.children:
                self.die(child)
            self.info += b"\0"
        self.writer.labels[after] = len(self.info)

    def with_form(self, name: str | int, value: Any) -> As:
        """`value` with the form that it gets if it names none."""
        old = self.format.version < 4
        if isinstance(value, As):
            return value
        if (isinstance(name, str) and name.endswith("_base")) or name in ("ranges", "stmt_list"):
            return As(("data8" if self.format.dwarf64 else "data4") if old else "sec_offset", value)
        if isinstance(value, bool):
            return As("flag" if old else "flag_present", value)
        if isinstance(value, str | bytes):
            return As("string", value)
        if isinstance(value, Ref):
            return As("ref4", value)
        return As(DEFAULT_FORMS.get(str(name), "udata"), value)

    def value(self, form: str | int, value: Any) -> None:
        """Append one attribute value."""
        fmt, later = self.format, self.writer.later
        if isinstance(value, Ref):
            self.reference(str(form), value.label)
        elif isinstance(value, list):  # a range list
            self.lists.append(value)
            number_of_list = len(self.lists) - 1
            if form == "rnglistx":
                self.info += uleb(number_of_list)
            else:
                size = FIXED.get(str(form), fmt.offset_size)
                later(self.section, size, lambda: fmt.uint(self.bases[f"list {number_of_list}"], size))
        elif form in ("strp", "line_strp") and not isinstance(value, int):
            self.info += fmt.uint(self.writer.strings[str(form)].add(value), fmt.offset_size)
        elif isinstance(form, str) and form.startswith(("strx", "addrx", "GNU_str_index", "GNU_addr_index")):
            index = value if isinstance(value, Index) else self.indexed(form, value)
            self.info += fmt.uint(index, FIXED[form]) if form in FIXED else uleb(index)
        elif form == "string":
            self.info += (value.encode() if isinstance(value, str) else value) + b"\0"
        elif form in ("flag_present", "implicit_const"):
            pass
        elif form == "sdata":
            self.info += sleb(value)
        elif form in ("block", "exprloc"):
            self.info += uleb(len(value)) + value
        elif form in ("block1", "block2", "block4"):
            self.info += fmt.uint(len(value), int(form[-1])) + value
        elif isinstance(value, bytes):  # raw, as of data16 or of a form that nobody knows
            self.info += value
        elif form in LEBS or form == "ref_udata":
            self.info += uleb(value)
        elif form == "addr":
            self.info += fmt.uint(value, fmt.address_size)
        elif form == "ref_addr":
            self.info += fmt.uint(value, fmt.address_size if fmt.version <= 2 else fmt.offset_size)
        else:
            self.info += fmt.uint(value, FIXED[str(form)] if form in FIXED else fmt.offset_size)

    def reference(self, form: str, label: str) -> None:
        """Append a reference to a label, which may not be known yet."""
        fmt, labels = self.format, self.writer.labels
        if label.startswith("base:"):
            size = FIXED.get(form, fmt.offset_size)
            self.writer.later(self.section, size, lambda: fmt.uint(self.bases[label[5:]], size))
        elif form == "ref_addr":
            size = fmt.address_size if fmt.version <= 2 else fmt.offset_size
            self.writer.later(self.section, size, lambda: fmt.uint(labels[label], size))
        elif form == "ref_udata":
            self.writer.later(self.section, 5, lambda: uleb(labels[label] - self.start, 5))
        else:
            size = FIXED[form]
            self.writer.later(self.section, size, lambda: fmt.uint(labels[label] - self.start, size))

    def indexed(self, form: str, value: Any) -> int:
        """The index of a string or address in the unit's table."""
        if "addr" in form:
            self.addresses.append(value)
            return len(self.addresses) - 1
        self.strings.append(self.writer.strings["strp"].add(value))
        return len(self.strings) - 1

    def write_abbrevs(self) -> int:
        """Append the abbreviation table; its offset."""
        out = self.writer.sections["abbrev"]
        offset = len(out)
        for (tag, children, shape), code in self.codes.items():
            out += uleb(self.unit.code(code)) + uleb(number(ENUM_DW_TAG, "DW_TAG_", tag)) + bytes([children])
            for name, form, constant in shape:
                out += uleb(number(ENUM_DW_AT, "DW_AT_", name)) + uleb(number(ENUM_DW_FORM, "DW_FORM_", form))
                out += sleb(constant) if constant is not None else b""
            out += b"\0\0"
        out += b"\0"
        return offset

    def write_tables(self) -> None:
        """Append the unit's range lists, indexed strings and indexed addresses."""
        fmt, sections = self.format, self.writer.sections
        if fmt.version < 5:
            for i, entries in enumerate(self.lists):
                self.bases[f"list {i}"] = len(sections["ranges"])
                for entry in [*entries, (0, 0)]:
                    begin, end = ((1 << 64) - 1, entry[1]) if entry[0] == "base" else entry
                    sections["ranges"] += fmt.uint(begin, fmt.address_size) + fmt.uint(end, fmt.address_size)
        else:
            lists = [b"".join(map(self.range_entry, entries)) + b"\0" for entries in self.lists]
            table, offset = bytearray(), fmt.offset_size * len(lists)
            for entries in lists:
                table += fmt.uint(offset, fmt.offset_size)
                offset += len(entries)
            header = fmt.uint(5, 2) + bytes([fmt.address_size, 0]) + fmt.uint(len(lists), 4)
            self.table("rnglists", "rnglists_base", header, bytes(table) + b"".join(lists))
            place = self.bases["rnglists_base"] + len(table)
            for i, entries in enumerate(lists):
                self.bases[f"list {i}"] = place
                place += len(entries)
        strings = b"".join(fmt.uint(offset, fmt.offset_size) for offset in self.strings)
        self.table("str_offsets", "str_offsets_base", fmt.uint(5, 2) + bytes(2), strings)
        addresses = b"".join(fmt.uint(address, fmt.address_size) for address in self.addresses)
        self.table("addr", "addr_base", fmt.uint(5, 2) + bytes([fmt.address_size, 0]), addresses)

    def table(self, section: str, base: str, header: bytes, body: bytes) -> None:
        """Append a table with a DWARF 5 header; GNU's tables of DWARF 4 have none."""
        if self.format.version >= 5 and body:
            self.writer.sections[section] += self.format.length(len(header) + len(body)) + header
        self.bases[base] = len(self.writer.sections[section])
        self.writer.sections[section] += body

    def range_entry(self, entry: tuple[Any, ...]) -> bytes:
        """An entry of .debug_rnglists: (begin, end), or a kind with its operands."""
        kinds = ["end", "basex", "startx_endx", "startx_length", "offset_pair", "base", "start_end", "start_length"]
        kind, *operands = entry if isinstance(entry[0], str) else ("start_end", *entry)
        result = bytes([kinds.index(kind)])
        for i, operand in enumerate(operands):
            if kind in ("base", "start_end") or (kind == "start_length" and i == 0):
                result += self.format.uint(operand, self.format.address_size)
            elif kind in ("basex", "startx_endx") or (kind == "startx_length" and i == 0):
                result += uleb(operand if isinstance(operand, Index) else self.indexed("addrx", operand))
            else:
                result += uleb(operand)
        return result


def forms_of(entry: Die) -> Iterable[str]:
    """The forms that are used below a DIE, range entries through indexed addresses counting as "addrx"."""
    for _, value in entry.attributes:
        if isinstance(value, As):
            yield str(value.form)
        lists = value.value if isinstance(value, As) else value
        if isinstance(lists, list) and any(str(item[0]) in ("basex", "startx_endx", "startx_length") for item in lists):
            yield "addrx"
    for child in entry.children:
        yield from forms_of(child)


def dwarf_contents(units: Sequence[Unit]) -> dict[str, bytes]:
    """The contents of the debug sections, by name without `.debug_`."""
    writer = Writer()
    for unit in units:
        UnitWriter(writer, unit).write()
    return writer.finish()


def dwarf_sections(units: Sequence[Unit], ending: str = "") -> list[Section]:
    """The debug sections of these units, without the empty ones; `ending` is ".dwo" for those of split units."""
    return [Section(f".debug_{name}{ending}", data) for name, data in dwarf_contents(units).items() if data]
