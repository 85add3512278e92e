# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""Rust names, spelled as rustc-demangle spells them: v0 (RFC 2603) and the legacy scheme (R116, Rust names)."""

from __future__ import annotations

import re
import sys

import cython

if not cython.compiled:
    from symbolize.names.demangler import MAX_NAME, Demangler

_MIN_NAME = cython.declare(cython.Py_ssize_t, len("_R0a"))
_MAX_ESCAPE = cython.declare(cython.Py_ssize_t, len("u10ffff$"))
_MAX_CODE_POINT = cython.declare(cython.Py_ssize_t, sys.maxunicode)
_LETTERS = cython.declare(cython.Py_ssize_t, 26)  # names of lifetimes
_DIGITS_32, _DIGITS_64 = 8, 16  # hexadecimal digits of numbers
_MAX_LIFETIMES = cython.declare(cython.Py_ssize_t, 256)
_MAX_INTEGER = cython.declare(cython.Py_ssize_t, 1 << 56)
# Steps that a character of Punycode counts for, which takes Python's codec to decode.
_PUNYCODE_STEPS = cython.declare(cython.int, 32)
# 16 characters of an identifier count for a step.
_STEP_SHIFT = cython.declare(cython.int, 4)
_HASH_SIZE = cython.declare(cython.int, len("17h0123456789abcdefE"))
_LLVM, _HEX_DIGITS = b".llvm.", b"0123456789abcdefABCDEF"

_BASIC = {
    b"b": b"bool", b"c": b"char", b"e": b"str", b"u": b"()", b"a": b"i8", b"s": b"i16", b"l": b"i32", b"x": b"i64",
    b"n": b"i128", b"i": b"isize", b"h": b"u8", b"t": b"u16", b"m": b"u32", b"y": b"u64", b"o": b"u128", b"j": b"usize",
    b"f": b"f32", b"d": b"f64", b"z": b"!", b"p": b"_", b"v": b"...",
}  # fmt: skip
_BASIC_TYPES = cython.declare(list, [_BASIC.get(bytes([letter])) for letter in range(256)])
_CODE_POINT = re.compile(rb"u[0-9a-f]{1,6}")
# What legacy names have between two `$`.
_escapes = {b"u%x" % code: bytes([code]) for code in range(0x80)} | {
    b"SP": b"@", b"BP": b"*", b"RF": b"&", b"LT": b"<", b"GT": b">", b"LP": b"(", b"RP": b")", b"C": b",",
}  # fmt: skip
_ESCAPES = cython.declare(dict, _escapes)
_NAMESPACES = {ord("C"): b"closure", ord("S"): b"shim"}
_CHARACTER_ESCAPES = {ord("\t"): b"\\t", ord("\r"): b"\\r", ord("\n"): b"\\n", ord("'"): b"\\'", ord("\\"): b"\\\\"}


@cython.ccall
@cython.exceptval(-1, check=True)
def is_legacy(name: bytes) -> cython.bint:
    """Whether a name is nested and ends in the component that tells Rust's from C++ names: `17h`, 16 digits, `E`."""
    size = len(name)
    if size < _HASH_SIZE + 4 or name[size - 1] != ord("E") or name[size - 18] != ord("h"):
        return False
    if name[size - 19] != ord("7") or name[size - 20] != ord("1") or name[2] != ord("N"):
        return False
    for i in range(size - 17, size - 1):
        byte = name[i]
        if not (ord("0") <= byte <= ord("9") or ord("a") <= byte <= ord("f")):
            return False
    return name[0] == ord("_") and name[1] == ord("Z")


@cython.final
@cython.cclass
class RustDemangler(Demangler):
    """Demangles a name at a time.

    Where it is `muted`, the text of what is read is dropped, and back references are not followed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.generics = self.muted = self.is_punycode = False
        self.lifetimes = self.start = 0

    def demangle(self, name: bytes, generics: bool) -> bytes | None:
        """The path that a name spells, or None if it is not one of Rust's, malformed or costs too much.

        The hash of a legacy name is left out; without `generics` so are the generic arguments of a v0 name, of which
        the brackets stay, as in pprof. A vendor suffix (`.llvm.`) is passed over.
        """
        size = len(name)
        if size < _MIN_NAME or size > MAX_NAME or name[0] != ord("_"):
            return None
        if name[1] == ord("Z"):
            if name[size - 1] != ord("E"):
                size = name.rfind(_LLVM)
                if size < 0 or size + len(_LLVM) == len(name) or name[size + len(_LLVM) :].strip(_HEX_DIGITS):
                    return None
                name = name[:size]
            # What looks like a clone suffix (R115) or a version (R114) is one.
            if not is_legacy(name) or b"@" in name or name.startswith(b".arch_", name.rfind(b".")):
                return None
            self.load(name)
            self.at = 3
            self.legacy(self.size - _HASH_SIZE)
        elif name[1] == ord("R"):
            self.load(name)
            self.generics = generics
            self.muted = False
            self.lifetimes = 0
            self.at = 2
            self.path(True)
            if ord("A") <= self.text[self.at] <= ord("Z"):
                # The crate that instantiated a generic function.
                self.muted_path()
            if self.at < self.size and not (
                self.text[self.at] in b".$" and name.isascii() and b"@" not in name  # may be a version
            ):
                self.bad = True
        else:
            return None
        if self.bad or self.used == 0:
            return None
        return bytes(self.printed[: self.used])

    def legacy(self, end: cython.int) -> cython.int:
        """Lengths and components up to the one of the hash."""
        while self.at < end and not self.bad:
            size = self.length()
            if not size or size > end - self.at:
                return self.fail()
            if self.used:
                self.put_word(b"::")
            self.component(self.at, self.at + size)
            self.at += size
        return 0

    def component(self, at: cython.int, end: cython.int) -> cython.int:
        """A component with its escapes undone."""
        # An identifier cannot begin with an escape; the compiler puts an underscore in front.
        if end - at > 1 and self.text[at] == ord("_") and self.text[at + 1] == ord("$"):
            at += 1
        start = at
        while at < end:
            if self.text[at] == ord(".") and at + 1 < end and self.text[at + 1] == ord("."):
                self.put_slice(start, at)
                self.put_word(b"::")
                at += 2
                start = at
            elif self.text[at] == ord("$"):
                self.put_slice(start, at)
                start = at
                size = self.escape(at + 1, end)
                at += 1 + size
                if size:
                    start = at
            else:
                at += 1
        return self.put_slice(start, end)

    def escape(self, at: cython.int, end: cython.int) -> cython.int:
        """Print what is meant by the characters behind a `$`; return how many they are, 0 if it is no escape."""
        close = at
        if self.text[at] == ord("$"):
            return 0
        while close < end and self.text[close] != ord("$") and close - at < _MAX_ESCAPE:
            close += 1
        if close >= end or self.text[close] != ord("$"):
            return 0
        word = bytes(self.text[at:close])
        text = _ESCAPES.get(word)
        if text is None:
            if self.text[at] != ord("u") or not _CODE_POINT.fullmatch(word):
                return 0
            try:
                text = chr(int(word[1:], 16)).encode()
            except ValueError:
                return 0
        self.put_word(text)
        return close - at + 1

    def integer(self) -> cython.Py_ssize_t:
        """A base-62 number, at most `_MAX_INTEGER`: the disambiguators of crates are larger, but not printed."""
        value = 0
        if self.eat(ord("_")):
            return 0
        while True:
            byte = self.text[self.at]
            if ord("0") <= byte <= ord("9"):
                value = value * 62 + byte - ord("0")
            elif ord("a") <= byte <= ord("z"):
                value = value * 62 + byte - ord("a") + 10
            elif ord("A") <= byte <= ord("Z"):
                value = value * 62 + byte - ord("A") + 36
            elif byte == ord("_"):
                self.at += 1
                return min(value + 1, _MAX_INTEGER)
            else:
                return self.fail()
            self.at += 1
            value = min(value, _MAX_INTEGER)

    def tagged_integer(self, tag: cython.uchar) -> cython.Py_ssize_t:
        """A number behind a letter, or 0 without the letter."""
        return self.integer() + 1 if self.eat(tag) else 0

    def identifier(self) -> cython.int:
        """Read the bounds of an identifier, which is between `start` and `at` then; return its size."""
        self.is_punycode = self.eat(ord("u"))
        size = self.length()
        self.eat(ord("_"))
        if size > self.size - self.at or (self.is_punycode and not size):
            return self.fail()
        self.start = self.at
        self.at += size
        return size

    def put_identifier(self) -> cython.int:
        """Print the identifier that was read last."""
        used: cython.int = self.used
        byte: cython.uchar = ord("_")
        # A back reference may print one again and again, and the text of arguments may be dropped again.
        self.count_steps((self.at - self.start) >> _STEP_SHIFT)
        if used + self.at - self.start > len(self.out):
            self.reserve(self.at - self.start)
        if self.bad:
            return 0
        for i in range(self.start, self.at):
            byte = self.text[i]
            if not (
                ord("a") <= byte <= ord("z")
                or ord("A") <= byte <= ord("Z")
                or ord("0") <= byte <= ord("9")
                or byte == ord("_")
            ):
                return self.fail()
            self.out[used] = byte
            used += 1
        if not self.is_punycode:
            self.used = used
            return 0
        return self.fail() if byte == ord("_") else self.put_punycode()

    def put_punycode(self) -> cython.int:
        """Print an identifier with characters beyond ASCII, which are encoded behind its last `_`."""
        self.count_steps(_PUNYCODE_STEPS * (self.at - self.start))
        if self.bad or self.muted:
            return 0
        letters, _, encoded = bytes(self.text[self.start : self.at]).rpartition(b"_")
        try:
            return self.put_word((letters + b"-" + encoded if letters else encoded).decode("punycode").encode())
        except ValueError:
            return self.fail()

    def follow(self) -> cython.int:
        """Go to the target of a back reference, behind its `B`; return where to continue, 0 if it is not followed."""
        start = self.at - 3
        target = self.integer()
        end = self.at
        if target >= start:
            return self.fail()
        if self.muted or self.bad:
            return 0
        self.at = target + 2
        return end

    def put_lifetime(self, index: cython.Py_ssize_t) -> cython.int:
        """Print a lifetime by its De Bruijn index; 0 is one that is erased."""
        depth = self.lifetimes - index
        if index == 0:
            return self.put_word(b"'_")
        if depth < 0:
            return self.fail()
        self.put(ord("'"))
        return self.put(ord("a") + depth) if depth < _LETTERS else self.put_word(b"_%d" % depth)

    def path(self, in_value: cython.bint) -> cython.int:
        """A path; `in_value` it has `::` in front of its generic arguments."""
        byte = self.text[self.at]
        if not self.enter():
            return 0
        self.at += 1
        if byte == ord("C"):
            self.tagged_integer(ord("s"))
            self.identifier()
            self.put_identifier()
        elif byte == ord("N"):
            self.nested(in_value)
        elif byte == ord("I"):
            self.path(in_value)
            self.put_word(b"::<" if in_value else b"<")
            self.generic_arguments()
            self.put(ord(">"))
        elif byte == ord("B"):
            end = self.follow()
            if end:
                self.path(in_value)
                self.at = end
        elif byte in b"MXY":
            if byte != ord("Y"):
                self.tagged_integer(ord("s"))
                self.muted_path()
            self.put(ord("<"))
            self.type()
            if byte != ord("M"):
                self.put_word(b" as ")
                self.path(False)
            self.put(ord(">"))
        else:
            return self.fail()
        self.depth -= 1
        return 0

    def muted_path(self) -> cython.int:
        """A path that is not printed."""
        used = self.used
        muted = self.muted
        self.muted = True
        self.path(False)
        self.muted = muted
        self.used = used
        return 0

    def nested(self, in_value: cython.bint) -> cython.int:
        """A namespace, the path around it, a disambiguator, and an identifier."""
        namespace = self.text[self.at]
        if not (ord("A") <= namespace <= ord("Z") or ord("a") <= namespace <= ord("z")):
            return self.fail()
        self.at += 1
        self.path(in_value)
        number = self.tagged_integer(ord("s"))
        size = self.identifier()
        if self.bad:
            return 0
        if namespace >= ord("a"):
            if size:
                self.put_word(b"::")
                self.put_identifier()
            return 0
        self.put_word(b"::{")
        self.put_word(_NAMESPACES.get(namespace) or bytes([namespace]))
        if size:
            self.put(ord(":"))
            self.put_identifier()
        if number >= _MAX_INTEGER:
            return self.fail()
        return self.put_word(b"#%d}" % number)

    def generic_arguments(self) -> cython.int:
        """Lifetimes, constants and types up to `E`, whose text is dropped without `generics`."""
        used = self.used
        separator = b""
        while not self.bad and not self.eat(ord("E")):
            self.count_steps(1)
            self.put_word(separator)
            separator = b", "
            if self.eat(ord("L")):
                self.put_lifetime(self.integer())
            elif self.eat(ord("K")):
                self.constant()
            else:
                self.type()
        if not self.generics:
            self.used = used
        return 0

    def type(self) -> cython.int:
        """A type."""
        count = 0
        byte = self.text[self.at]
        if not self.enter():
            return 0
        basic = _BASIC_TYPES[byte]
        self.at += 1
        if basic is not None:
            self.put_word(basic)
        elif byte in b"RQ":
            self.put(ord("&"))
            index = self.integer() if self.eat(ord("L")) else 0
            if index:
                self.put_lifetime(index)
                self.put(ord(" "))
            if byte == ord("Q"):
                self.put_word(b"mut ")
            self.type()
        elif byte in b"PO":
            self.put_word(b"*const " if byte == ord("P") else b"*mut ")
            self.type()
        elif byte in b"AS":
            self.put(ord("["))
            self.type()
            if byte == ord("A"):
                self.put_word(b"; ")
                self.constant()
            self.put(ord("]"))
        elif byte == ord("T"):
            self.put(ord("("))
            while not self.bad and not self.eat(ord("E")):
                if count:
                    self.put_word(b", ")
                self.type()
                count += 1
            self.put_word(b",)" if count == 1 else b")")
        elif byte == ord("F"):
            lifetimes = self.binder()
            self.function_type()
            self.lifetimes = lifetimes
        elif byte == ord("D"):
            self.put_word(b"dyn ")
            lifetimes = self.binder()
            self.trait_bounds()
            self.lifetimes = lifetimes
            if not self.eat(ord("L")):
                return self.fail()
            index = self.integer()
            if index:
                self.put_word(b" + ")
                self.put_lifetime(index)
        elif byte == ord("B"):
            end = self.follow()
            if end:
                self.type()
                self.at = end
        else:
            self.at -= 1
            self.path(False)
        self.depth -= 1
        return 0

    def binder(self) -> cython.int:
        """The lifetimes of a higher-ranked type; return how many were bound before."""
        before = self.lifetimes
        count = self.tagged_integer(ord("G"))
        if count > _MAX_LIFETIMES:
            return self.refuse()
        if count:
            self.count_steps(count)
            self.put_word(b"for<")
            for i in range(count):
                self.put_word(b", " if i else b"")
                self.lifetimes += 1
                self.put_lifetime(1)
            self.put_word(b"> ")
        return before

    def function_type(self) -> cython.int:
        """`U` if it is unsafe, `K` and the ABI, parameters, `E`, what it returns."""
        separator = b""
        if self.eat(ord("U")):
            self.put_word(b"unsafe ")
        if self.eat(ord("K")):
            self.put_word(b'extern "')
            used = self.used
            if self.eat(ord("C")):
                self.put(ord("C"))
            elif not self.identifier() or self.is_punycode:
                return self.fail()
            else:
                self.put_identifier()
            for i in range(used, self.used):
                if self.out[i] == ord("_"):
                    self.out[i] = ord("-")
            self.put_word(b'" ')
        self.put_word(b"fn(")
        while not self.bad and not self.eat(ord("E")):
            self.put_word(separator)
            separator = b", "
            self.type()
        self.put(ord(")"))
        if not self.eat(ord("u")):
            self.put_word(b" -> ")
            self.type()
        return 0

    def open_path(self) -> cython.bint:
        """The path of a trait. True if it has generic arguments, whose closing bracket is left out then."""
        opened = False
        if not self.enter():
            return False
        if self.eat(ord("B")):
            end = self.follow()
            if end:
                opened = self.open_path()
                self.at = end
        elif self.eat(ord("I")):
            self.path(False)
            self.put(ord("<"))
            self.generic_arguments()
            opened = True
        else:
            self.path(False)
        self.depth -= 1
        return opened

    def trait_bounds(self) -> cython.int:
        """Traits and their associated types up to `E`."""
        separator = b""
        while not self.bad and not self.eat(ord("E")):
            self.count_steps(1)
            self.put_word(separator)
            separator = b" + "
            opened = self.open_path()
            used = self.used
            while not self.bad and self.eat(ord("p")):
                self.put_word(b", " if opened else b"<")
                used += not opened
                opened = True
                self.identifier()
                self.put_identifier()
                self.put_word(b" = ")
                self.type()
            if not self.generics:
                self.used = used
            if opened:
                self.put(ord(">"))
        return 0

    def constant(self) -> cython.int:
        """The value of a constant: its type and hexadecimal digits, `p` for one that is not known."""
        byte = self.text[self.at]
        if not self.enter():
            return 0
        self.at += 1
        if byte == ord("B"):
            end = self.follow()
            if end:
                self.constant()
                self.at = end
        elif byte == ord("p"):
            self.put(ord("_"))
        elif byte == ord("b"):
            byte = self.text[self.at]
            if not (self.eat(ord("0")) or self.eat(ord("1"))) or not self.eat(ord("_")):
                return self.fail()
            self.put_word(b"true" if byte == ord("1") else b"false")
        elif byte == ord("c"):
            self.character()
        elif byte in b"htmyoj":
            self.number()
        elif byte in b"aslxni":
            if self.eat(ord("n")):
                self.put(ord("-"))
            self.number()
        else:
            return self.fail()
        self.depth -= 1
        return 0

    def number(self) -> cython.int:
        """An integer, one of more than 64 bits in hexadecimal."""
        digits = self.nibbles()
        if self.bad:
            return 0
        return self.put_word(b"0x" + digits if len(digits) > _DIGITS_64 else b"%d" % int(digits, 16))

    def character(self) -> cython.int:
        """A character, escaped unless it is one of ASCII that prints as itself."""
        digits = self.nibbles()
        if self.bad or len(digits) > _DIGITS_32:
            return self.fail()
        value: cython.Py_ssize_t = int(digits, 16)
        if value > _MAX_CODE_POINT:
            return self.fail()
        text = _CHARACTER_ESCAPES.get(value)
        if text is None:
            text = b"%c" % value if ord(" ") <= value <= ord("~") else b"\\u{%x}" % value
        return self.put_word(b"'" + text + b"'")

    def nibbles(self) -> bytes:
        """Hexadecimal digits, at least one, with a `_` behind them."""
        start = self.at
        byte = self.text[start]
        while ord("0") <= byte <= ord("9") or ord("a") <= byte <= ord("f"):
            self.at += 1
            byte = self.text[self.at]
        if byte != ord("_") or self.at == start:
            self.fail()
        self.at += 1
        return bytes(self.text[start : self.at - 1])
