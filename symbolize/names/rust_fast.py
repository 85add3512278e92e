# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""Rust names read off their grammar: what `rust` answers for them, or None for "ask `rust`".

The v0 grammar is the one of Rust's RFC 2603. Back references can ask for text without end, so a walker has narrow
limits of depth, steps and text (R117). What is wrong, larger than those or rare, such as Punycode, is left to `rust`.
"""

from __future__ import annotations

import cython

_MAX_NAME = cython.declare(cython.Py_ssize_t, 4000)
_MAX_TEXT = cython.declare(cython.Py_ssize_t, 16384)
_MAX_DEPTH = cython.declare(cython.int, 96)
_MAX_STEPS = cython.declare(cython.int, 5000)
_MAX_LIFETIMES = cython.declare(cython.longlong, 256)
_MAX_INTEGER = cython.declare(cython.longlong, 1 << 40)

_BASIC = {
    b"b": b"bool", b"c": b"char", b"e": b"str", b"u": b"()", b"a": b"i8", b"s": b"i16", b"l": b"i32", b"x": b"i64",
    b"n": b"i128", b"i": b"isize", b"h": b"u8", b"t": b"u16", b"m": b"u32", b"y": b"u64", b"o": b"u128", b"j": b"usize",
    b"f": b"f32", b"d": b"f64", b"z": b"!", b"p": b"_", b"v": b"...",
}  # fmt: skip
_BASIC_TABLE = cython.declare(list, [_BASIC.get(bytes([letter])) for letter in range(256)])
_HEX_DIGITS = b"0123456789abcdefABCDEF"
_ESCAPED = {b"SP": b"@", b"BP": b"*", b"RF": b"&", b"LT": b"<", b"GT": b">", b"LP": b"(", b"RP": b")", b"C": b","}


@cython.final
@cython.cclass
class Walker:
    """One parse at a time; its buffers serve all names. Not for two threads at once.

    The text of a name is 0-terminated. A method that finds something wrong sets `bad`, and every loop ends on it.
    """

    def __init__(self) -> None:
        self.text = memoryview(bytearray(_MAX_NAME + 1))
        self.size = self.at = self.used = 0
        self.printed = bytearray(_MAX_TEXT)
        self.out = memoryview(self.printed)
        self.bad = self.generics = False
        self.depth = self.steps = self.lifetimes = 0

    def demangle(self, name: bytes, generics: bool) -> bytes | None:
        """The path that `name` spells, a v0 name without the generic arguments if not `generics`; None if not known."""
        if not self.load(name):
            return None
        self.generics = generics
        self.used = self.depth = self.steps = self.lifetimes = 0
        self.bad = False
        if self.text[1] == 0x5A:  # Z
            self.at = 3
            self.legacy(self.size - 20)
        else:
            self.at = 2
            self.path(True)
            if 0x41 <= self.text[self.at] <= 0x5A:
                # The crate that instantiated a generic function.
                self.skip_path()
            if self.at != self.size:
                self.bad = True
        if self.bad or self.used == 0:
            return None
        return bytes(self.printed[: self.used])

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def load(self, name: bytes) -> cython.bint:
        """Take a name in; False if it is too long or no Rust name, or might have more to it."""
        i: cython.Py_ssize_t
        byte: cython.uchar
        legacy: cython.bint = name[1:2] == b"Z"
        size: cython.Py_ssize_t = len(name)
        if size < 4 or size > _MAX_NAME or name[0] != 0x5F:
            return False
        if legacy and name[size - 1] != 0x45:  # E
            # The clone suffix that most legacy names with one have (R115).
            size = name.rfind(b".llvm.")
            if size < 24 or size + 6 == len(name) or name[size + 6 :].strip(_HEX_DIGITS):
                return False
        if legacy:
            # A legacy name ends in the hash, `17h` sixteen digits `E`, by which C++ names are told apart.
            if (
                size < 24
                or name[size - 1] != 0x45
                or name[2] != 0x4E
                or name[size - 18] != 0x68
                or name[size - 19] != 0x37
                or name[size - 20] != 0x31
            ):
                return False
            for i in range(size - 17, size - 1):
                byte = name[i]
                if not (0x30 <= byte <= 0x39 or 0x61 <= byte <= 0x66):
                    return False
        elif name[1] != 0x52 or not 0x41 <= name[2] <= 0x5A:  # R
            return False
        for i in range(size):
            byte = name[i]
            if not (0x61 <= byte <= 0x7A or 0x30 <= byte <= 0x39 or 0x41 <= byte <= 0x5A or byte == 0x5F):
                if byte != 0x2E and byte != 0x24:  # . $
                    return False
                if not legacy:
                    # A vendor suffix (R116); one with an `@` in it might be a version.
                    size = i
                    break
            self.text[i] = byte
        self.text[size] = 0
        self.size = size
        if not legacy:
            return size == len(name) or (name.isascii() and b"@" not in name)
        # What looks like a clone suffix is one.
        return b".arch_" not in name

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def legacy(self, end: cython.Py_ssize_t) -> cython.int:
        """Lengths and components up to the one of the hash."""
        length: cython.Py_ssize_t
        start: cython.Py_ssize_t
        first: cython.bint = True
        while self.at < end and not self.bad:
            start = self.at
            length = 0
            while self.at < end and self.at < start + 5 and 0x30 <= self.text[self.at] <= 0x39:
                length = length * 10 + (self.text[self.at] - 0x30)
                self.at += 1
            if self.text[start] == 0x30 or self.at == start or length > end - self.at:
                return self.fail()
            if not first:
                self.put_word(b"::")
            first = False
            self.component(self.at, self.at + length)
            self.at += length
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def component(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        byte: cython.uchar
        size: cython.Py_ssize_t
        # An identifier cannot begin with an escape; the compiler puts an underscore in front.
        if end - at > 1 and self.text[at] == 0x5F and self.text[at + 1] == 0x24:
            at += 1
        while at < end:
            byte = self.text[at]
            if byte == 0x2E and at + 1 < end and self.text[at + 1] == 0x2E:
                self.put_word(b"::")
                at += 2
                continue
            if byte == 0x24:
                size = self.escape(at + 1, end)
                if size > 0:
                    at += size + 1
                    continue
            self.put(byte)
            at += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def escape(self, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Print what stands between two `$`, of which the first is in front of `at`; 0 if it is no escape."""
        close: cython.Py_ssize_t = at
        value: cython.int = 0
        byte: cython.uchar
        i: cython.Py_ssize_t
        while close < end and self.text[close] != 0x24 and close - at < 8:
            close += 1
        if close >= end or self.text[close] != 0x24:
            return 0
        word = _ESCAPED.get(bytes(self.text[at:close]))
        if word is not None:
            self.put_word(word)
            return close - at + 1
        if self.text[at] != 0x75 or not 2 <= close - at <= 7:  # u
            return 0
        for i in range(at + 1, close):
            byte = self.text[i]
            if 0x30 <= byte <= 0x39:
                value = value * 16 + (byte - 0x30)
            elif 0x61 <= byte <= 0x66:
                value = value * 16 + (byte - 0x57)
            else:
                return 0
        if value >= 0x80:
            self.fail()
            return 0
        self.put(cython.cast(cython.uchar, value))
        return close - at + 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def fail(self) -> cython.int:
        self.bad = True
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put(self, byte: cython.uchar) -> cython.int:
        if self.used >= _MAX_TEXT:
            return self.fail()
        self.out[self.used] = byte
        self.used += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put_word(self, word: bytes) -> cython.int:
        i: cython.Py_ssize_t
        size: cython.Py_ssize_t = len(word)
        if size > _MAX_TEXT - self.used:
            return self.fail()
        for i in range(size):
            self.out[self.used + i] = word[i]
        self.used += size
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def eat(self, byte: cython.uchar) -> cython.bint:
        if self.text[self.at] != byte:
            return False
        self.at += 1
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def enter(self) -> cython.bint:
        """Count a step one level down; False if there were too many of them."""
        self.depth += 1
        self.steps += 1
        if self.depth > _MAX_DEPTH or self.steps > _MAX_STEPS:
            self.bad = True
        return not self.bad

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def integer(self) -> cython.longlong:
        """A base-62 number, at most `_MAX_INTEGER`: the disambiguators of crates are larger, but not printed."""
        value: cython.longlong = 0
        byte: cython.uchar
        if self.eat(0x5F):
            return 0
        while True:
            byte = self.text[self.at]
            self.at += 1
            if byte == 0x5F:
                return min(value + 1, _MAX_INTEGER)
            value *= 62
            if 0x30 <= byte <= 0x39:
                value += byte - 0x30
            elif 0x61 <= byte <= 0x7A:
                value += byte - 0x57
            elif 0x41 <= byte <= 0x5A:
                value += byte - 0x1D
            else:
                self.at -= 1
                return self.fail()
            value = min(value, _MAX_INTEGER)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def tagged_integer(self, tag: cython.uchar) -> cython.longlong:
        return self.integer() + 1 if self.eat(tag) else 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def identifier(self) -> cython.Py_ssize_t:
        """The size of an identifier, which ends at `at` then."""
        size: cython.Py_ssize_t = 0
        byte: cython.uchar = self.text[self.at]
        if not 0x30 <= byte <= 0x39:
            return self.fail()
        self.at += 1
        size = byte - 0x30
        if size:
            while 0x30 <= self.text[self.at] <= 0x39:
                size = min(size * 10 + (self.text[self.at] - 0x30), _MAX_NAME)
                self.at += 1
        self.eat(0x5F)
        if size > self.size - self.at:
            return self.fail()
        self.at += size
        return size

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put_identifier(self, size: cython.Py_ssize_t) -> cython.int:
        i: cython.Py_ssize_t
        start: cython.Py_ssize_t = self.at - size
        if size > _MAX_TEXT - self.used:
            return self.fail()
        for i in range(size):
            self.out[self.used + i] = self.text[start + i]
        self.used += size
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def referred(self) -> cython.Py_ssize_t:
        """The place that a back reference, whose `B` is read, refers to."""
        start: cython.Py_ssize_t = self.at - 3
        place: cython.longlong = self.integer()
        if place >= start:
            return self.fail()
        return cython.cast(cython.Py_ssize_t, place) + 2

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def lifetime(self, index: cython.longlong) -> cython.int:
        depth: cython.longlong = self.lifetimes - index
        if index == 0:
            return self.put_word(b"'_")
        if depth < 0:
            return self.fail()
        self.put(0x27)
        if depth < 26:
            return self.put(cython.cast(cython.uchar, 0x61 + depth))
        return self.put_word(b"_%d" % depth)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def path(self, in_value: cython.bint) -> cython.int:
        after: cython.Py_ssize_t
        byte: cython.uchar = self.text[self.at]
        if not self.enter():
            return 0
        self.at += 1
        if byte == 0x43:  # C
            self.tagged_integer(0x73)
            self.put_identifier(self.identifier())
        elif byte == 0x4E:  # N
            self.nested(in_value)
        elif byte == 0x49:  # I
            self.path(in_value)
            if in_value:
                self.put_word(b"::")
            self.put(0x3C)
            self.generic_arguments()
            self.put(0x3E)
        elif byte == 0x42:  # B
            after = self.referred()
            if not self.bad:
                self.at, after = after, self.at
                self.path(in_value)
                self.at = after
        elif byte == 0x4D or byte == 0x58 or byte == 0x59:  # M, X, Y
            if byte != 0x59:
                self.tagged_integer(0x73)
                self.skip_path()
            self.put(0x3C)
            self.a_type()
            if byte != 0x4D:
                self.put_word(b" as ")
                self.path(False)
            self.put(0x3E)
        else:
            self.at -= 1
            return self.fail()
        self.depth -= 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def nested(self, in_value: cython.bint) -> cython.int:
        """A namespace, what it is in, and an identifier."""
        number: cython.longlong
        size: cython.Py_ssize_t
        namespace: cython.uchar = self.text[self.at]
        if not (0x41 <= namespace <= 0x5A or 0x61 <= namespace <= 0x7A):
            return self.fail()
        self.at += 1
        self.path(in_value)
        number = self.tagged_integer(0x73)
        size = self.identifier()
        if self.bad:
            return 0
        if namespace >= 0x61:
            if size:
                self.put_word(b"::")
                self.put_identifier(size)
            return 0
        if namespace == 0x43:  # C
            self.put_word(b"::{closure")
        elif namespace == 0x53:  # S
            self.put_word(b"::{shim")
        else:
            self.put_word(b"::{")
            self.put(namespace)
        if size:
            self.put(0x3A)
            self.put_identifier(size)
        if number >= _MAX_INTEGER:
            return self.fail()
        return self.put_word(b"#%d}" % number)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def generic_arguments(self) -> cython.int:
        """Arguments up to `E`, whose text is dropped without `generics`."""
        before: cython.Py_ssize_t = self.used
        first: cython.bint = True
        while not self.bad and not self.eat(0x45):
            if not first:
                self.put_word(b", ")
            first = False
            self.generic_argument()
        if not self.generics:
            self.used = before
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def generic_argument(self) -> cython.int:
        self.steps += 1
        if self.eat(0x4C):  # L
            return self.lifetime(self.integer())
        if self.eat(0x4B):  # K
            return self.constant()
        return self.a_type()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def a_type(self) -> cython.int:
        after: cython.Py_ssize_t
        index: cython.longlong
        count: cython.int = 0
        byte: cython.uchar = self.text[self.at]
        if not self.enter():
            return 0
        basic = _BASIC_TABLE[byte]
        self.at += 1
        if basic is not None:
            self.put_word(basic)
        elif byte == 0x52 or byte == 0x51:  # R, Q
            self.put(0x26)
            if self.eat(0x4C):  # L
                index = self.integer()
                if index:
                    self.lifetime(index)
                    self.put(0x20)
            if byte == 0x51:
                self.put_word(b"mut ")
            self.a_type()
        elif byte == 0x50 or byte == 0x4F:  # P, O
            self.put_word(b"*const " if byte == 0x50 else b"*mut ")
            self.a_type()
        elif byte == 0x41 or byte == 0x53:  # A, S
            self.put(0x5B)
            self.a_type()
            if byte == 0x41:
                self.put_word(b"; ")
                self.constant()
            self.put(0x5D)
        elif byte == 0x54:  # T
            self.put(0x28)
            while not self.bad and not self.eat(0x45):
                if count:
                    self.put_word(b", ")
                self.a_type()
                count += 1
            if count == 1:
                self.put(0x2C)
            self.put(0x29)
        elif byte == 0x46:  # F
            count = self.lifetimes
            self.binder()
            self.function_type()
            self.lifetimes = count
        elif byte == 0x44:  # D
            self.put_word(b"dyn ")
            count = self.lifetimes
            self.binder()
            self.dyn_trait()
            self.lifetimes = count
            if not self.eat(0x4C):  # L
                return self.fail()
            index = self.integer()
            if index:
                self.put_word(b" + ")
                self.lifetime(index)
        elif byte == 0x42:  # B
            after = self.referred()
            if not self.bad:
                self.at, after = after, self.at
                self.a_type()
                self.at = after
        else:
            self.at -= 1
            self.path(False)
        self.depth -= 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def binder(self) -> cython.int:
        """The lifetimes of a higher-ranked type."""
        i: cython.longlong
        count: cython.longlong = self.tagged_integer(0x47)  # G
        if count > _MAX_LIFETIMES:
            return self.fail()
        if count:
            self.put_word(b"for<")
            for i in range(count):
                if i:
                    self.put_word(b", ")
                self.lifetimes += 1
                self.lifetime(1)
            self.put_word(b"> ")
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def function_type(self) -> cython.int:
        size: cython.Py_ssize_t
        start: cython.Py_ssize_t
        i: cython.Py_ssize_t
        first: cython.bint = True
        if self.eat(0x55):  # U
            self.put_word(b"unsafe ")
        if self.eat(0x4B):  # K
            self.put_word(b'extern "')
            if self.eat(0x43):  # C
                self.put(0x43)
            else:
                size = self.identifier()
                if size == 0:
                    return self.fail()
                start = self.used
                self.put_identifier(size)
                for i in range(start, self.used):
                    if self.out[i] == 0x5F:
                        self.out[i] = 0x2D
            self.put_word(b'" ')
        self.put_word(b"fn(")
        while not self.bad and not self.eat(0x45):
            if not first:
                self.put_word(b", ")
            first = False
            self.a_type()
        self.put(0x29)
        if not self.eat(0x75):  # u
            self.put_word(b" -> ")
            self.a_type()
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def open_path(self) -> cython.bint:
        """The path of a trait. True if it has generic arguments, whose closing bracket is left out then."""
        after: cython.Py_ssize_t
        opened: cython.bint
        if not self.enter():
            return False
        if self.eat(0x42):  # B
            after = self.referred()
            if self.bad:
                return False
            self.at, after = after, self.at
            opened = self.open_path()
            self.at = after
        elif self.eat(0x49):  # I
            self.path(False)
            self.put(0x3C)
            self.generic_arguments()
            opened = True
        else:
            self.path(False)
            opened = False
        self.depth -= 1
        return opened

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def dyn_trait(self) -> cython.int:
        """Traits and their associated types up to `E`."""
        opened: cython.bint
        before: cython.Py_ssize_t
        first: cython.bint = True
        while not self.bad and not self.eat(0x45):
            if not first:
                self.put_word(b" + ")
            first = False
            opened = self.open_path()
            before = self.used
            while not self.bad and self.eat(0x70):  # p
                self.put_word(b", " if opened else b"<")
                opened = True
                self.put_identifier(self.identifier())
                self.put_word(b" = ")
                self.a_type()
            if not self.generics:
                self.used = before
                if opened and (before == 0 or self.out[before - 1] != 0x3C):
                    self.put(0x3C)
            if opened:
                self.put(0x3E)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def constant(self) -> cython.int:
        after: cython.Py_ssize_t
        byte: cython.uchar = self.text[self.at]
        if not self.enter():
            return 0
        self.at += 1
        if byte == 0x42:  # B
            after = self.referred()
            if not self.bad:
                self.at, after = after, self.at
                self.constant()
                self.at = after
        elif byte == 0x70:  # p
            self.put(0x5F)
        elif byte == 0x62:  # b
            byte = self.text[self.at]
            if (byte != 0x30 and byte != 0x31) or self.text[self.at + 1] != 0x5F:
                return self.fail()
            self.at += 2
            self.put_word(b"true" if byte == 0x31 else b"false")
        elif byte == 0x63:  # c
            self.character()
        elif byte == 0x68 or byte == 0x74 or byte == 0x6D or byte == 0x79 or byte == 0x6F or byte == 0x6A:  # htmyoj
            self.number()
        elif byte == 0x61 or byte == 0x73 or byte == 0x6C or byte == 0x78 or byte == 0x6E or byte == 0x69:  # aslxni
            if self.eat(0x6E):  # n
                self.put(0x2D)
            self.number()
        else:
            self.at -= 1
            return self.fail()
        self.depth -= 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def nibbles(self) -> cython.Py_ssize_t:
        """The number of hexadecimal digits that stood in front of `at` and its `_`; at least one."""
        start: cython.Py_ssize_t = self.at
        byte: cython.uchar = self.text[start]
        while 0x30 <= byte <= 0x39 or 0x61 <= byte <= 0x66:
            self.at += 1
            byte = self.text[self.at]
        if byte != 0x5F or self.at == start:
            return self.fail()
        self.at += 1
        return self.at - 1 - start

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def number(self) -> cython.int:
        i: cython.Py_ssize_t
        value: cython.ulonglong = 0
        byte: cython.uchar
        size: cython.Py_ssize_t = self.nibbles()
        start: cython.Py_ssize_t = self.at - 1 - size
        if self.bad:
            return 0
        if size > 16:
            self.put_word(b"0x")
        for i in range(start, start + size):
            byte = self.text[i]
            if size > 16:
                self.put(byte)
            else:
                value = value * 16 + (byte - (0x30 if byte <= 0x39 else 0x57))
        return 0 if size > 16 else self.put_word(b"%d" % value)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def character(self) -> cython.int:
        """A character that prints as itself; escapes are left to `rust`."""
        i: cython.Py_ssize_t
        value: cython.int = 0
        byte: cython.uchar
        size: cython.Py_ssize_t = self.nibbles()
        if self.bad or size > 2:
            return self.fail()
        for i in range(self.at - 1 - size, self.at - 1):
            byte = self.text[i]
            value = value * 16 + (byte - (0x30 if byte <= 0x39 else 0x57))
        if not 0x20 <= value <= 0x7E or value == 0x27 or value == 0x5C:  # ' \
            return self.fail()
        self.put(0x27)
        self.put(cython.cast(cython.uchar, value))
        return self.put(0x27)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def skip_path(self) -> cython.int:
        """A path that is not printed; so a back reference in it is not followed."""
        byte: cython.uchar = self.text[self.at]
        if not self.enter():
            return 0
        self.at += 1
        if byte == 0x43:  # C
            self.tagged_integer(0x73)
            self.identifier()
        elif byte == 0x4E:  # N
            byte = self.text[self.at]
            if not (0x41 <= byte <= 0x5A or 0x61 <= byte <= 0x7A):
                return self.fail()
            self.at += 1
            self.skip_path()
            self.tagged_integer(0x73)
            self.identifier()
        elif byte == 0x4D or byte == 0x58:  # M, X
            self.tagged_integer(0x73)
            self.skip_path()
            self.skip_type()
            if byte == 0x58:
                self.skip_path()
        elif byte == 0x59:  # Y
            self.skip_type()
            self.skip_path()
        elif byte == 0x49:  # I
            self.skip_path()
            while not self.bad and not self.eat(0x45):
                self.skip_argument()
        elif byte == 0x42:  # B
            self.referred()
        else:
            self.at -= 1
            return self.fail()
        self.depth -= 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def skip_argument(self) -> cython.int:
        if self.eat(0x4C):  # L
            self.integer()
            return 0
        if self.eat(0x4B):  # K
            return self.skip_constant()
        return self.skip_type()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def skip_type(self) -> cython.int:
        """A type of the few kinds that a path is made of when it is not printed; all others are left to `rust`."""
        byte: cython.uchar = self.text[self.at]
        if not self.enter():
            return 0
        self.at += 1
        if _BASIC_TABLE[byte] is not None:
            pass
        elif byte == 0x52 or byte == 0x51 or byte == 0x50 or byte == 0x4F or byte == 0x53:  # R, Q, P, O, S
            if self.text[self.at] == 0x4C:  # L
                return self.fail()
            self.skip_type()
        elif byte == 0x41:  # A
            self.skip_type()
            self.skip_constant()
        elif byte == 0x54:  # T
            while not self.bad and not self.eat(0x45):
                self.skip_type()
        elif byte == 0x42:  # B
            self.referred()
        elif byte == 0x44:  # D
            self.tagged_integer(0x47)  # G
            while not self.bad and not self.eat(0x45):
                self.skip_path()
                while not self.bad and self.eat(0x70):  # p
                    self.identifier()
                    self.skip_type()
            if not self.eat(0x4C):  # L
                return self.fail()
            self.integer()
        elif byte == 0x46:  # F
            return self.fail()
        else:
            self.at -= 1
            self.skip_path()
        self.depth -= 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def skip_constant(self) -> cython.int:
        byte: cython.uchar = self.text[self.at]
        self.at += 1
        if byte == 0x42:  # B
            self.referred()
        elif byte in b"htmyojbcaslxni":
            if byte in b"aslxni":
                self.eat(0x6E)  # n
            self.nibbles()
        elif byte != 0x70:  # p
            self.at -= 1
            return self.fail()
        return 0


_spare: list[Walker] = []
_MAX_SPARE = 4


def borrow() -> Walker:
    """A walker that nobody else uses."""
    try:
        return _spare.pop()
    except IndexError:
        return Walker()


def give_back(walker: Walker) -> None:
    """Let others use a walker."""
    if len(_spare) < _MAX_SPARE:
        _spare.append(walker)
