"""Names of D functions and data (https://dlang.org/spec/abi.html#name_mangling), spelled as c++filt spells them.

Read are names of compilers of today, with back references, and of those up to 2.076, with lengths of template
instances. The text of back references is limited (R260).
"""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_OUTPUT = 1 << 20
_MAX_DEPTH = 120
_MAX_STEPS = 1 << 15

_NUMBER = re.compile(rb"[0-9]{1,9}(?![0-9])")
_BACK_REFERENCE = re.compile(rb"Q([A-Z]{0,6})([a-z])")
_TEMPLATE = re.compile(rb"__[TU]")
_FAKE_PARENT = re.compile(rb"__S[0-9]+")
_REAL = re.compile(rb"(N?)([0-9A-Fa-f])([0-9A-Fa-f]*)P(N?)([0-9]*)")
_TYPES = {
    ord("n"): b"typeof(null)", ord("v"): b"void", ord("g"): b"byte", ord("h"): b"ubyte", ord("s"): b"short",
    ord("t"): b"ushort", ord("i"): b"int", ord("k"): b"uint", ord("l"): b"long", ord("m"): b"ulong", ord("f"): b"float",
    ord("d"): b"double", ord("e"): b"real", ord("o"): b"ifloat", ord("p"): b"idouble", ord("j"): b"ireal",
    ord("q"): b"cfloat", ord("r"): b"cdouble", ord("c"): b"creal", ord("b"): b"bool", ord("a"): b"char",
    ord("u"): b"wchar", ord("w"): b"dchar",
}  # fmt: skip
_WRAPPERS = {b"O": b"shared(", b"x": b"const(", b"y": b"immutable(", b"Ng": b"inout(", b"Nh": b"__vector("}
_MODIFIERS = {b"x": b" const", b"y": b" immutable", b"O": b" shared", b"Ng": b" inout"}
_ATTRIBUTES = {
    ord("a"): b"pure ", ord("b"): b"nothrow ", ord("c"): b"ref ", ord("d"): b"@property ", ord("e"): b"@trusted ",
    ord("f"): b"@safe ", ord("i"): b"@nogc ", ord("j"): b"return ", ord("l"): b"scope ", ord("m"): b"@live ",
}  # fmt: skip
_CONVENTIONS = {
    ord("F"): b"", ord("U"): b"extern(C) ", ord("W"): b"extern(Windows) ", ord("V"): b"extern(Pascal) ",
    ord("R"): b"extern(C++) ", ord("Y"): b"extern(Objective-C) ",
}  # fmt: skip
_STORAGE = {b"M": b"scope ", b"Nk": b"return ", b"I": b"in ", b"J": b"out ", b"K": b"ref ", b"L": b"lazy "}
# Identifiers of what the compiler makes, with what follows them: what is written in front of the name of the rest.
_SPECIAL = {
    b"__initZ": b"initializer for ",
    b"__vtblZ": b"vtable for ",
    b"__ClassZ": b"ClassInfo for ",
    b"__InterfaceZ": b"Interface for ",
    b"__ModuleInfoZ": b"ModuleInfo for ",
}
_METHODS = {b"__ctor": b"this", b"__dtor": b"~this"}
_POSTBLIT, _POSTBLIT_SIZE = b"__postblitMFZ", len(b"__postblit")
_MAX_DIGITS = 19  # of a value of 64 bits
_SUFFIXES = {ord("h"): b"u", ord("t"): b"u", ord("k"): b"u", ord("l"): b"L", ord("m"): b"uL"}
_CHARACTERS = {ord("a"): (b"\\x", 2), ord("u"): (b"\\u", 4), ord("w"): (b"\\U", 8)}
_ESCAPES = {ord("\t"): b"\\t", ord("\n"): b"\\n", ord("\r"): b"\\r", ord("\f"): b"\\f", ord("\v"): b"\\v"}


class _MalformedError(Exception):
    """The name is not one of the grammar, or costs too much."""


def demangle(name: bytes, parameters: bool = True, arguments: bool = True) -> bytes | None:
    """Return the text of a name that starts with `_D`, or None if it is malformed or expands to too much (R260).

    Without `parameters` those of the function are left out, and those of functions around it are empty; without
    `arguments` those of templates are left out.

    Names are spelled as c++filt spells them. A back reference leads to what is in front of it, and the expansion of all
    has limits.
    """
    if name == b"_Dmain":
        return b"D main"
    reader = DDemangler(name, parameters, arguments)
    try:
        text = reader.mangled(reader.parameters)
    except _MalformedError:
        return None
    return text if reader.at == len(name) else None


class DDemangler:
    """One name, read from `at` on. Methods return the text of what they pass over."""

    def __init__(self, name: bytes, parameters: bool, arguments: bool) -> None:
        self.name = name
        self.parameters = parameters
        self.arguments = arguments
        self.at = 0
        self.depth = 0
        self.steps = 0
        self.copied = 0
        self.last_reference = len(name)
        self.known: dict[tuple[str, int, int], tuple[tuple[bytes, ...] | None, int]] = {}
        self.kept = 0
        self.limited = 0

    def enter(self) -> None:
        """Count a level and a step."""
        self.depth += 1
        self.steps += 1
        if self.depth > _MAX_DEPTH or self.steps > _MAX_STEPS:
            self.limited += 1
            raise _MalformedError

    def bounded(self, text: bytes) -> bytes:
        """The text, unless it is too long: with back references a short name expands to any length."""
        if len(text) > MAX_OUTPUT:
            raise _MalformedError
        return text

    def peek(self) -> int:
        """The next character, 0 at the end."""
        return self.name[self.at] if self.at < len(self.name) else 0

    def eat(self, byte: int) -> bool:
        """Pass a character if it is there."""
        if self.peek() != byte:
            return False
        self.at += 1
        return True

    def expect(self, condition: object) -> None:
        """Stop if a condition of the grammar does not hold."""
        if not condition:
            raise _MalformedError

    def take(self, table: dict[bytes, bytes]) -> bytes | None:
        """The text of the next one or two characters by a table; None, and nothing passed, if they are not in it."""
        size = 2 if self.peek() == ord("N") else 1
        text = table.get(self.name[self.at : self.at + size])
        if text is not None:
            self.at += size
        return text

    def number(self) -> int:
        """Decimal digits."""
        found = _NUMBER.match(self.name, self.at)
        if found is None:
            raise _MalformedError
        self.at = found.end()
        return int(found[0])

    def reference(self) -> int:
        """A back reference: the position that it leads to."""
        found = _BACK_REFERENCE.match(self.name, self.at)
        if found is None:
            raise _MalformedError
        distance = 0
        for digit in found[1]:
            distance = 26 * distance + digit - ord("A")
        distance = 26 * distance + found[2][0] - ord("a")
        self.expect(0 < distance <= self.at)
        target = self.at - distance
        self.at = found.end()
        return target

    def at_name(self) -> bool:
        """Whether a component of a qualified name follows."""
        byte = self.peek()
        if ord("0") <= byte <= ord("9"):
            return True
        if byte == ord("_"):
            return _TEMPLATE.match(self.name, self.at) is not None
        if byte != ord("Q") or _BACK_REFERENCE.match(self.name, self.at) is None:
            return False
        start = self.at
        target = self.reference()
        self.at = start
        return ord("0") <= self.name[target] <= ord("9")

    def mangled(self, parameters: bool) -> bytes:
        """`_D`, a qualified name, and its type, which is not shown, or `Z`."""
        self.expect(self.name.startswith(b"_D", self.at))
        self.at += 2
        text = self.qualified(True, parameters)
        if not self.eat(ord("Z")):
            self.type()
        return text

    def qualified(self, with_modifiers: bool, parameters: bool = True) -> bytes:
        """Components, those that are functions with their parameters."""
        self.enter()
        text = b""
        count = 0
        signature = b""
        while True:
            while self.peek() == ord("0"):  # anonymous
                self.at += 1
            if not self.at_name():
                self.expect(count and self.name[self.at - 1] == ord("0"))
                break
            if count:
                # Parameters of a function around another name are left out with those of the last.
                text += (signature if parameters or not signature else b"()") + b"."
            count += 1
            signature = b""
            special = self.special(text)
            text = special if special is not None else text + self.identifier()
            if self.peek() == ord("M") or self.peek() in _CONVENTIONS:
                signature = self.signature(with_modifiers)
            text = self.bounded(text)
            if not self.at_name():
                break
        self.depth -= 1
        return text + signature if parameters else text

    def special(self, text: bytes) -> bytes | None:
        """The text of a name whose last component is one of the compiler's; None, and nothing passed, if it is not."""
        start = self.at
        if not text or not ord("0") <= self.peek() <= ord("9"):
            return None
        size = self.number()
        for identifier, words in _SPECIAL.items():
            if size == len(identifier) - 1 and self.name.startswith(identifier, self.at):
                self.at += size
                return words + text[:-1]
        self.at = start
        return None

    def signature(self, with_modifiers: bool) -> bytes:
        """The parameters of a function; nothing, and nothing passed, if the name does not go on behind them."""
        start = self.at
        found = self.tried(self.called)
        if found is None:
            return b""
        if self.at == len(self.name):
            self.at = start
            return b""
        parameters, modifiers = found
        return parameters + (modifiers if with_modifiers else b"")

    def called(self) -> tuple[bytes, ...]:
        """The parameters of a function, and the modifiers of what it is called for."""
        modifiers = self.modifiers() if self.eat(ord("M")) else b""
        return self.function()[2], modifiers

    def tried(self, read: Callable[[], tuple[bytes, ...]]) -> tuple[bytes, ...] | None:
        """What `read` gives from here; None, and nothing passed, if the name is something else there.

        That is found out once for each position: where trials nest, each would double the time of those inside.
        """
        start, depth, limited = self.at, self.depth, self.limited
        key = read.__name__, start, self.last_reference
        if key in self.known:
            texts, self.at = self.known[key]
            return texts
        texts = None
        try:
            texts = read()
        except _MalformedError:
            if self.steps > _MAX_STEPS:
                raise
            self.at, self.depth = start, depth
        kept = sum(map(len, texts or ()))
        # What was too deep here may not be so for another trial.
        if self.limited == limited and self.kept + kept <= MAX_OUTPUT:
            self.kept += kept
            self.known[key] = texts, self.at
        return texts

    def modifiers(self) -> bytes:
        """`const`, `immutable`, `shared`, `inout` of what a function is called for."""
        text = b""
        while (modifier := self.take(_MODIFIERS)) is not None:
            text += modifier
        return text

    def function(self) -> tuple[bytes, bytes, bytes]:
        """The calling convention, the attributes and the parameters of a function."""
        convention = _CONVENTIONS.get(self.peek())
        if convention is None:
            raise _MalformedError
        self.at += 1
        attributes = b""
        while self.peek() == ord("N") and self.name[self.at + 1 : self.at + 2]:
            attribute = _ATTRIBUTES.get(self.name[self.at + 1])
            if attribute is None:  # of the first parameter
                break
            attributes += attribute
            self.at += 2
        parameters: list[bytes] = []
        while True:
            kind = self.peek()
            if kind in b"XYZ":
                self.at += 1
                break
            storage = b""
            while (word := self.take(_STORAGE)) is not None:
                storage += word
            parameters.append(storage + self.type())
        if kind == ord("Y"):
            parameters.append(b"...")
        end = b"...)" if kind == ord("X") else b")"
        return convention, attributes, self.bounded(b"(" + b", ".join(parameters) + end)

    def function_type(self) -> bytes:
        """A function with the type that it returns."""
        convention, attributes, parameters = self.function()
        return convention + self.type() + parameters + b" " + attributes

    def identifier(self) -> bytes:
        """One component."""
        if self.peek() == ord("Q"):
            end = self.reference()
            self.at, end = end, self.at
            text = self.plain(self.number())
            self.at = end
            return text
        if _TEMPLATE.match(self.name, self.at):
            return self.template(None)
        size = self.number()
        if size >= len(b"__T1a") and _TEMPLATE.match(self.name, self.at):
            return self.template(size)
        fake = _FAKE_PARENT.match(self.name, self.at, self.at + size)
        if fake is not None and size >= len(b"__S1") and fake.end() == self.at + size:
            # What tells equal names in one function apart.
            self.at += size
            self.enter()
            text = self.identifier()
            self.depth -= 1
            return text
        return self.plain(size)

    def plain(self, size: int) -> bytes:
        """An identifier of some characters."""
        if not size:
            raise _MalformedError
        if size == _POSTBLIT_SIZE and self.name.startswith(_POSTBLIT, self.at):
            self.at += len(_POSTBLIT)
            return b"this(this)"
        text = self.raw(size)
        if self.copied > MAX_OUTPUT:
            raise _MalformedError
        return _METHODS.get(text, text)

    def raw(self, size: int) -> bytes:
        """Some characters as they are."""
        if size > len(self.name) - self.at:
            raise _MalformedError
        self.copied += size
        self.at += size
        return self.name[self.at - size : self.at]

    def template(self, size: int | None) -> bytes:
        """An instance of a template, of a length that may be known."""
        self.enter()
        start = self.at
        self.at += 3
        self.expect(self.at_name())
        text = self.identifier()
        arguments: list[bytes] = []
        while not self.eat(ord("Z")):
            arguments.append(self.template_argument())
        self.expect(size is None or self.at - start == size)
        self.depth -= 1
        return self.bounded(text + b"!(" + b", ".join(arguments) + b")") if self.arguments else text

    def template_argument(self) -> bytes:
        """A type, value, symbol, or name of another language."""
        self.eat(ord("H"))  # specialized
        kind = self.peek()
        self.at += 1
        if kind == ord("T"):
            return self.type()
        if kind == ord("S"):
            return self.symbol()
        if kind == ord("X"):
            return self.raw(self.number())
        self.expect(kind == ord("V"))
        of = self.peek()
        if of == ord("Q"):
            start = self.at
            of = self.name[self.reference()]
            self.at = start
        return self.value(self.type(), of)

    def symbol(self) -> bytes:
        """A symbol as an argument of a template.

        Compilers up to 2.076 put its length in front of it, which may run into the length that it begins with: as many
        digits count as lead to a symbol of that length.
        """
        if self.name.startswith(b"_D", self.at):
            return self.mangled(True)
        if self.peek() == ord("Q"):
            return self.qualified(False)
        start = self.at
        size = self.number()
        end_of_digits = self.at
        for split in range(end_of_digits, start, -1):
            length = int(self.name[start:split])
            self.at = split
            found = self.tried(self.symbol_here)
            if found is not None and self.at - split == length:
                return found[0]
        self.at = start
        found = self.tried(self.symbol_here)
        if found is None or not size:
            raise _MalformedError
        return found[0]

    def symbol_here(self) -> tuple[bytes, ...]:
        """A symbol without a length in front of it."""
        if self.name.startswith(b"_D", self.at):
            return (self.mangled(True),)
        self.expect(self.at_name())
        return (self.qualified(False),)

    def type(self) -> bytes:
        """A type."""
        self.enter()
        text = self.bounded(self.any_type())
        self.depth -= 1
        return text

    def any_type(self) -> bytes:
        """The same, unlimited."""
        wrapper = self.take(_WRAPPERS)
        if wrapper is not None:
            return wrapper + self.type() + b")"
        kind = self.peek()
        if kind in _CONVENTIONS:
            return self.function_type() + b"function"
        self.at += 1
        if kind in _TYPES:
            return _TYPES[kind]
        if kind in b"CSEIT":
            return self.qualified(False)
        if kind == ord("A"):
            return self.type() + b"[]"
        if kind == ord("P"):
            return self.type() if self.peek() in _CONVENTIONS else self.type() + b"*"
        if kind == ord("G"):
            start = self.at
            self.number()
            size = self.name[start : self.at]
            return self.type() + b"[" + size + b"]"
        if kind == ord("H"):
            key = self.type()
            return self.type() + b"[" + key + b"]"
        if kind == ord("D"):
            modifiers = self.modifiers()
            text = self.referenced(True) if self.peek() == ord("Q") else self.function_type()
            return text + b"delegate" + modifiers
        if kind == ord("Q"):
            self.at -= 1
            return self.referenced(False)
        if kind == ord("B"):
            return b"Tuple!(" + b", ".join([self.type() for _ in self.counted()]) + b")"
        rest = self.name[self.at : self.at + 1]
        self.at += 1
        if kind == ord("z") and rest in (b"i", b"k"):
            return b"cent" if rest == b"i" else b"ucent"
        if kind == ord("N") and rest == b"n":
            return b"typeof(*null)"
        raise _MalformedError

    def counted(self) -> range:
        """As many elements as a number says, and no more than there are characters."""
        count = self.number()
        self.expect(count <= len(self.name))
        return range(count)

    def referenced(self, is_function: bool) -> bytes:
        """The type that a back reference leads to; references in it lead further back, or they would never end."""
        start, last = self.at, self.last_reference
        self.expect(start < last)
        self.enter()
        target = self.reference()
        end = self.at
        self.last_reference = start
        self.at = target
        text = self.function_type() if is_function else self.type()
        self.at = end
        self.last_reference = last
        self.depth -= 1
        return text

    def value(self, name: bytes, of: int) -> bytes:
        """A value of a type, of which the name and the first character are given."""
        self.enter()
        text = self.bounded(self.any_value(name, of))
        self.depth -= 1
        return text

    def any_value(self, name: bytes, of: int) -> bytes:
        """The same, unlimited."""
        kind = self.peek()
        if ord("0") <= kind <= ord("9"):
            return self.integer(of)
        self.at += 1
        if kind == ord("n"):
            return b"null"
        if kind in b"Ni":
            return (b"-" if kind == ord("N") else b"") + self.integer(of)
        if kind == ord("e"):
            return self.real()
        if kind == ord("c"):
            text = self.real()
            self.expect(self.eat(ord("c")))
            return text + b"+" + self.real() + b"i"
        if kind in b"awd":
            return self.string(kind)
        if kind == ord("A") and of == ord("H"):
            pairs = [self.value(b"", 0) + b":" + self.value(b"", 0) for _ in self.counted()]
            return b"[" + b", ".join(pairs) + b"]"
        if kind in b"AS":
            values = b", ".join([self.value(b"", 0) for _ in self.counted()])
            return b"[" + values + b"]" if kind == ord("A") else name + b"(" + values + b")"
        if kind == ord("f"):
            return self.mangled(True)
        raise _MalformedError

    def integer(self, of: int) -> bytes:
        """A number, character or truth value."""
        start = self.at
        while ord("0") <= self.peek() <= ord("9"):
            self.at += 1
        digits = self.name[start : self.at]
        if of in _CHARACTERS or of == ord("b"):
            self.expect(0 < len(digits) <= _MAX_DIGITS)
            value = int(digits)
            if of == ord("b"):
                return b"true" if value else b"false"
            if of == ord("a") and ord(" ") <= value <= ord("~"):
                return b"'%c'" % value
            prefix, width = _CHARACTERS[of]
            return b"'" + prefix + b"%0*x" % (width, value) + b"'"
        return digits + _SUFFIXES.get(of, b"")

    def real(self) -> bytes:
        """A number of a floating-point type."""
        for word, text in ((b"NAN", b"NaN"), (b"INF", b"Inf"), (b"NINF", b"-Inf")):
            if self.name.startswith(word, self.at):
                self.at += len(word)
                return text
        found = _REAL.match(self.name, self.at)
        if found is None:
            raise _MalformedError
        self.at = found.end()
        sign, first, rest, exponent_sign, exponent = (part.replace(b"N", b"-") for part in found.groups())
        return sign + b"0x" + first + b"." + rest + b"p" + exponent_sign + exponent

    def string(self, kind: int) -> bytes:
        """Characters in hexadecimal digits."""
        size = self.number()
        start = self.at + 1
        digits = self.name[start : start + 2 * size]
        self.expect(self.peek() == ord("_") and len(digits) == 2 * size)
        self.at = start + 2 * size
        text = bytearray(b'"')
        try:
            characters = bytes.fromhex(digits.decode("ascii"))
        except (UnicodeDecodeError, ValueError):
            raise _MalformedError from None
        for i, character in enumerate(characters):
            if ord(" ") <= character <= ord("~"):
                text.append(character)
            else:
                text += _ESCAPES.get(character, b"\\x" + digits[2 * i : 2 * i + 2])
        return bytes(text) + b'"' + (b"" if kind == ord("a") else bytes([kind]))
