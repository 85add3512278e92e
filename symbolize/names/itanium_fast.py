# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""The scopes and base name of an Itanium C++ linkage name, read off its grammar without the text of the rest.

A `Walker` answers what `simplify` makes of the C++ runtime's text in mode `default`, or None for "ask the runtime".
It knows the part of the grammar that most names keep to and leaves all else to the runtime (Itanium C++ ABI: 5.1.2
General Structure, 5.1.3 Operator Encodings, 5.1.4 Other Special Functions and Entities, 5.1.5 Type Encodings, 5.1.6
Expressions, and behind them Scope Encoding, Closure Types and Compression).

The runtime rejects a name that is wrong anywhere, so the whole name is parsed: substitutions are counted as the runtime
counts them, and a template parameter must have an argument. Texts that `simplify` cannot take apart, such as a
declarator around the name, are left to it as well. Releases of the runtime differ; if it prints one of the probes
otherwise, nothing is answered.

What a name stands for is weighed while it is read, back references and packs included, and none is answered that weighs
too much (R117). The weight is an upper bound of the whole text, yet far nearer to it than what `itanium` has to guess
before it asks. So names are answered that the runtime is not asked for, and, as no text is made of template arguments,
some that are too long for it.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from functools import cache

import cython

from symbolize.names import itanium

MAX_NAME = cython.declare(cython.int, 8192)
_MAX_TEXT = cython.declare(cython.int, 32768)
_MAX_DEPTH = cython.declare(cython.int, 200)
_MAX_STEPS = cython.declare(cython.int, 8000)
_MAX_WEIGHT = cython.declare(cython.longlong, 1 << 19)
_MAX_SUBSTITUTIONS = cython.declare(cython.int, 2048)

# What a component has, or has in a part of it.
_PARAMETER = cython.declare(cython.int, 1)  # a template parameter, whose argument is not put in
_PACK = cython.declare(cython.int, 2)  # one that stands for a pack and is not expanded
_DECLARATOR = cython.declare(cython.int, 4)  # a type that is not written from left to right
_REFERENCE = cython.declare(cython.int, 8)  # a reference, which other references may collapse with
_SILENT = cython.declare(cython.int, 16)  # a text that was not kept
_COMPOUND = cython.declare(cython.int, 32)  # a pointer, reference or qualified type: no scope and no template
_NO_TYPE = cython.declare(cython.int, 64)  # an operator, constructor or destructor
_NAMESPACE = cython.declare(cython.int, 128)  # an anonymous namespace, in which something must follow
_DECLTYPE = cython.declare(cython.int, 256)  # a type whose text, an expression, is not put in

_CONST = cython.declare(cython.int, 1)
_OTHER_QUALIFIER = cython.declare(cython.int, 2)

_BUILTIN = {
    ord("a"): b"signed char", ord("b"): b"bool", ord("c"): b"char", ord("d"): b"double", ord("e"): b"long double",
    ord("f"): b"float", ord("g"): b"__float128", ord("h"): b"unsigned char", ord("i"): b"int",
    ord("j"): b"unsigned int", ord("l"): b"long", ord("m"): b"unsigned long", ord("n"): b"__int128",
    ord("o"): b"unsigned __int128", ord("s"): b"short", ord("t"): b"unsigned short", ord("v"): b"void",
    ord("w"): b"wchar_t", ord("x"): b"long long", ord("y"): b"unsigned long long", ord("z"): b"...",
}  # fmt: skip
_BUILTIN_TABLE = cython.declare(list, [_BUILTIN.get(letter) for letter in range(256)])
_OPERATORS = {
    code[0] << 8 | code[1]: b"operator" + (b" " + text if text[:1].isalpha() else text)
    for code, text in (
        (b"nw", b"new"), (b"na", b"new[]"), (b"dl", b"delete"), (b"da", b"delete[]"), (b"co", b"~"), (b"pl", b"+"),
        (b"ps", b"+"), (b"mi", b"-"), (b"ng", b"-"), (b"ml", b"*"), (b"de", b"*"), (b"dv", b"/"), (b"rm", b"%"),
        (b"an", b"&"), (b"ad", b"&"), (b"or", b"|"), (b"eo", b"^"), (b"aS", b"="), (b"pL", b"+="), (b"mI", b"-="),
        (b"mL", b"*="), (b"dV", b"/="), (b"rM", b"%="), (b"aN", b"&="), (b"oR", b"|="), (b"eO", b"^="),
        (b"ls", b"<<"), (b"rs", b">>"), (b"lS", b"<<="), (b"rS", b">>="), (b"eq", b"=="), (b"ne", b"!="),
        (b"lt", b"<"), (b"gt", b">"), (b"le", b"<="), (b"ge", b">="), (b"nt", b"!"), (b"aa", b"&&"), (b"oo", b"||"),
        (b"pp", b"++"), (b"mm", b"--"), (b"cm", b","), (b"pm", b"->*"), (b"pt", b"->"), (b"cl", b"()"), (b"ix", b"[]"),
    )
}  # fmt: skip
# The text, the text in front of a constructor or destructor, and how much of its end names the class.
_ABBREVIATIONS = {
    ord("a"): (b"std::allocator", b"std::allocator", 9),
    ord("b"): (b"std::basic_string", b"std::basic_string", 12),
    ord("s"): (b"std::string", b"std::basic_string", 12),
    ord("i"): (b"std::istream", b"std::basic_istream", 13),
    ord("o"): (b"std::ostream", b"std::basic_ostream", 13),
    ord("d"): (b"std::iostream", b"std::basic_iostream", 14),
}
_IDENTIFIER = bytes(chr(byte).isalnum() or byte in b"_$" for byte in range(128)) + bytes(128)

# Names and full texts, by which runtimes and their releases differ.
PROBES = (
    (b"_Z3fooIZ3barvEUlvE_EvT_S1_", b"void foo<bar()::{lambda()#1}>(bar()::{lambda()#1}, bar()::{lambda()#1})"),
    (b"_Z3fooIZ3barvEUlvE_EvT_S2_", None),
    (b"_Z1fN3fooUlvE_3barES0_", b"f(foo::{lambda()#1}::bar, foo::{lambda()#1})"),
    (b"_Z1fN3fooUlvE_3barES1_", b"f(foo::{lambda()#1}::bar, foo::{lambda()#1}::bar)"),
    (b"_ZZNK3fooB5cxx11EvENKUlPKcS0_RjE0_clES0_", b"foo[abi:cxx11]() const::{lambda(char const*, char const*, "
     b"unsigned int&)#2}::operator()(char const*) const"),
    (b"_ZN12_GLOBAL__N_13foo3barILb1EJiPFvvEEEEvDpOT0_", b"void (anonymous namespace)::foo::bar<true, int, void (*)()>"
     b"(int&&, void (*&&)())"),
    (b"_ZN3fooD4Ev", b"foo::~foo()"),
    (b"_ZN3fooD5Ev", b"foo::~foo()"),
    (b"_ZN3fooC5Ev", b"foo::foo()"),
    (b"_ZNSsC1ERKSs", b"std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string("
     b"std::string const&)"),
    (b"_Z1fI1AENSt9enable_ifIXaasrT_1bntsrSt8is_arrayIT_E5valueEvE4typeES2_", b"std::enable_if<A::b&&"
     b"(!std::is_array<A>::value), void>::type f<A>(A)"),
    (b"_Z1fI1AENSt9enable_ifIXsr3stdE1vIT_EEvE4typeES2_", b"std::enable_if<std::v<A>, void>::type f<A>(A)"),
    (b"_Z5beginI1AEDTcldtfp_5beginEERT_", b"decltype (({parm#1}.begin)()) begin<A>(A&)"),
    (b"_ZN1ACI2N1B1CEEi", b"A::C(int)"),
    (b"_Z1fILDn0ELin5EEvDnDiDsDu", b"void f<(decltype(nullptr))0, -5>(decltype(nullptr), char32_t, char16_t, char8_t)"),
)  # fmt: skip


@cython.final
@cython.cclass
class Walker:
    """One parse at a time; its buffers serve all names. Not for two threads at once.

    Text is only appended to `out`, so that substitutions can point into it. A method that parses appends the
    text of its component and returns its flags. Where template arguments are left out of the middle of a text,
    the text in front of them is repeated behind them: such methods take the place where that text starts and
    leave in `begin` where it starts now.
    """

    def __init__(self) -> None:
        # All attributes have values here for the uncompiled class.
        self.keeping = self.missed = self.bad = self.silent = self.anonymous = False
        self.params_packs = self.params_length = self.params_flags = self.params_weight = 0
        self.params_even = True
        self.params_values = self.args_values = 0
        self.last_start = self.last_end = self.last_operator = 0
        self.closure = self.templated = self.special = False
        self.quals = self.expanded = self.conditions = 0
        self.structor = self.variant = -1
        self.args_count = self.args_packs = self.args_length = self.args_flags = self.args_weight = 0
        self.text = memoryview(bytearray(MAX_NAME + 16))
        self.printed = bytearray(_MAX_TEXT)
        self.out = memoryview(self.printed)
        self.sub_start = memoryview(array("i", bytes(4 * _MAX_SUBSTITUTIONS)))
        self.sub_end = memoryview(array("i", bytes(4 * _MAX_SUBSTITUTIONS)))
        self.sub_flags = memoryview(array("i", bytes(4 * _MAX_SUBSTITUTIONS)))
        self.sub_context = memoryview(array("i", bytes(4 * _MAX_SUBSTITUTIONS)))
        self.sub_weight = memoryview(array("q", bytes(8 * _MAX_SUBSTITUTIONS)))

    def demangle(self, name: bytes) -> bytes | None:
        """The text of `name` in mode `default`; None if the runtime is to be asked."""
        if not self.load(name):
            return None
        # Texts of template arguments and parameters are of use only if the name itself refers back to them.
        self.missed = False
        self.keeping = False
        self.parse()
        if self.missed:
            self.keeping = True
            self.parse()
        if self.bad:
            return None
        return bytes(self.printed[self.begin : self.used])

    def same(self, a: bytes, b: bytes) -> bool | None:
        """Tell whether the runtime prints one text for two different names; None if it is to be asked.

        It does for the variants of a constructor or destructor (5.1.4).
        """
        at: cython.Py_ssize_t
        text = self.demangle(a)
        if text is None:
            return None
        at = self.variant
        if at >= 0 and len(a) == len(b) and a[:at] == b[:at] and a[at + 1 :] == b[at + 1 :]:
            return True if self.demangle(b) is not None else None
        other = self.demangle(b)
        # Where texts without parameters differ, so do those with them.
        return None if other is None or other == text else False

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def parse(self) -> cython.int:
        self.bad = False
        self.used = self.begin = self.depth = self.steps = self.substitutions = self.contexts = self.context = 0
        self.params = self.conditions = 0
        self.weight = 0
        self.variant = -1
        self.uncounted = self.expanding = self.silent = False
        self.at = 2
        if self.text[2] == 0x54 or self.text[2] == 0x47:  # T, G
            self.special_name()
        else:
            self.encoding(0, True)
        if self.at != self.size:
            self.bad = True
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def load(self, name: bytes) -> cython.bint:
        """Take a name in; False if it is too long or not C++."""
        i: cython.Py_ssize_t
        size: cython.Py_ssize_t = len(name)
        if size < 4 or size > MAX_NAME or name[0] != 0x5F or name[1] != 0x5A:
            return False
        # A Rust name ends in a component of 17 letters.
        if (
            size > 24
            and name[size - 1] == 0x45
            and name[size - 18] == 0x68
            and name[size - 19] == 0x37
            and name[size - 20] == 0x31
        ):
            return False
        for i in range(size):
            self.text[i] = name[i]
        for i in range(size, size + 8):
            self.text[i] = 0
        self.size = size
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def fail(self) -> cython.int:
        self.bad = True
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put(self, byte: cython.uchar) -> cython.int:
        if self.silent:
            return 0
        if self.used >= _MAX_TEXT:
            return self.fail()
        self.out[self.used] = byte
        self.used += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put_word(self, word: bytes) -> cython.int:
        i: cython.Py_ssize_t
        if self.silent:
            return 0
        size: cython.Py_ssize_t = len(word)
        if self.used + size > _MAX_TEXT:
            return self.fail()
        for i in range(size):
            self.out[self.used + i] = word[i]
        self.used += cython.cast(cython.int, size)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def copy(self, start: cython.int, end: cython.int) -> cython.int:
        """Repeat a part of the text at its end."""
        i: cython.int
        if self.silent:
            return 0
        if self.used + (end - start) > _MAX_TEXT:
            return self.fail()
        for i in range(start, end):
            self.out[self.used] = self.out[i]
            self.used += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def step(self, count: cython.int, weight: cython.longlong) -> cython.int:
        """Count components of the runtime's tree, and bytes of its text, from above."""
        self.steps += count
        self.weight += weight
        if self.steps > _MAX_STEPS or self.weight > _MAX_WEIGHT:
            self.bad = True
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def add(self, start: cython.int, flags: cython.int, weight: cython.longlong) -> cython.int:
        """Enter a substitution candidate, whose text reaches from `start` to the end."""
        index: cython.int = self.substitutions
        if index >= _MAX_SUBSTITUTIONS:
            return self.fail()
        self.sub_start[index] = start
        self.sub_end[index] = self.used
        self.sub_flags[index] = flags | _SILENT if self.silent else flags
        self.sub_context[index] = self.context
        self.sub_weight[index] = self.weight - weight
        self.substitutions = index + 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def special_name(self) -> cython.int:
        """Tables, guards and thunks (5.1.4); here the parameters of what a thunk leads to are printed."""
        byte: cython.uchar = self.text[3]
        guard: cython.bint = self.text[2] == 0x47
        flags: cython.int
        self.at = 4
        self.step(2, 32)
        if not guard and (byte == 0x56 or byte == 0x54 or byte == 0x49 or byte == 0x53):  # TV, TT, TI, TS
            if byte == 0x56:
                self.put_word(b"vtable for ")
            elif byte == 0x54:
                self.put_word(b"VTT for ")
            elif byte == 0x49:
                self.put_word(b"typeinfo for ")
            else:
                self.put_word(b"typeinfo name for ")
            flags = self.a_type(0)
            return self.fail() if flags & ~(_REFERENCE | _COMPOUND) else 0
        if (guard and byte == 0x56) or (not guard and (byte == 0x48 or byte == 0x57)):  # GV, TH, TW
            if guard:
                self.put_word(b"guard variable for ")
            elif byte == 0x48:
                self.put_word(b"TLS init function for ")
            else:
                self.put_word(b"TLS wrapper function for ")
            flags = self.a_name(0, False)
            return self.fail() if flags or self.quals or self.special else 0
        if guard:
            return self.fail()
        if byte == 0x68:  # Th
            self.put_word(b"non-virtual thunk to ")
            self.offset()
        elif byte == 0x76:  # Tv
            self.put_word(b"virtual thunk to ")
            self.offset()
            self.offset()
        else:
            return self.fail()
        return self.whole_encoding()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def offset(self) -> cython.int:
        if self.text[self.at] == 0x6E:  # n
            self.at += 1
        self.number()
        if self.text[self.at] != 0x5F:
            return self.fail()
        self.at += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def whole_encoding(self) -> cython.int:
        """A function that is no template, with its parameters."""
        count: cython.int = 0
        flags: cython.int = self.a_name(0, False)
        quals: cython.int = self.quals
        if self.bad or flags or quals & _OTHER_QUALIFIER or self.templated:
            return self.fail()
        self.put(0x28)
        if self.text[self.at] == 0x76 and self.at + 1 == self.size:  # v
            self.at += 1
        else:
            while self.text[self.at] != 0 and not self.bad:
                if count:
                    self.put(0x2C)
                    self.put(0x20)
                flags = self.a_type(self.begin)
                if flags & ~(_REFERENCE | _COMPOUND):
                    return self.fail()
                count += 1
            if count == 0:
                return self.fail()
        self.put(0x29)
        if quals:
            self.put_word(b" const")
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def encoding(self, start: cython.int, top: cython.bint) -> cython.int:
        """A name with the types of its function, if it is one (5.1.2); special names are left to the runtime.

        An enclosing function prints as `f()`, with its qualifiers.
        """
        end: cython.int
        lead: cython.int
        quals: cython.int
        flags: cython.int
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            return self.fail()
        self.step(4, 4)
        self.last_operator = 0
        flags = self.a_name(start, False)
        if top:
            self.variant = self.structor
        if self.bad or flags != 0:
            return self.fail()
        if not top and self.last_operator and self.last_operator != 0x636C:  # cl
            # `operator<(int)::x`: the parameters are not taken for such behind some operators.
            return self.fail()
        start = self.begin
        end = self.used
        quals = self.quals
        byte: cython.uchar = self.text[self.at]
        if byte == 0 or byte == 0x45:  # E
            if quals != 0 or self.special or top == (byte != 0):
                return self.fail()
        else:
            self.signature(top)
            if self.bad or (quals & _OTHER_QUALIFIER and not top):
                return self.fail()
            if top:
                self.begin = start
                self.used = end
            else:
                if self.used > end:
                    lead = self.used
                    self.copy(start, end)
                    start = lead
                self.put_word(b"()")
                if quals:
                    self.put_word(b" const")
        self.begin = start
        self.depth -= 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def signature(self, top: cython.bint) -> cython.int:
        """The return type, which function templates have, and the parameters."""
        flags: cython.int
        count: cython.int = 0
        byte: cython.uchar
        context: cython.int = self.context
        params: cython.int = self.params
        packs: cython.ulonglong = self.params_packs
        length: cython.int = self.params_length
        even: cython.bint = self.params_even
        values: cython.ulonglong = self.params_values
        params_flags: cython.int = self.params_flags
        weight: cython.longlong = self.params_weight
        expanding: cython.bint = self.expanding
        silent: cython.bint = self.silent
        self.silent = not self.keeping
        self.contexts += 1
        self.context = self.contexts
        self.expanding = False
        self.params = 0
        if self.templated:
            self.params = self.args_count
            self.params_packs = self.args_packs
            self.params_length = self.args_length
            self.params_even = self.args_even
            self.params_values = self.args_values
            self.params_flags = self.args_flags
            self.params_weight = self.args_weight
            if not self.special:
                flags = self.a_type(self.used)
                if flags & _PACK:
                    return self.fail()
                if flags & _PARAMETER:
                    flags |= self.params_flags
                # Such a return type stands on both sides of the name.
                if top and flags & _DECLARATOR:
                    return self.fail()
        while not self.bad:
            byte = self.text[self.at]
            if byte == 0 or byte == 0x45:  # E
                break
            if self.a_type(self.used) & _PACK:
                return self.fail()
            self.step(1, 2)
            count += 1
        if count == 0 or top != (self.text[self.at] == 0):
            return self.fail()
        self.context = context
        self.params = params
        self.params_packs = packs
        self.params_length = length
        self.params_even = even
        self.params_values = values
        self.params_flags = params_flags
        self.params_weight = weight
        self.expanding = expanding
        self.silent = silent
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def a_name(self, start: cython.int, in_type: cython.bint) -> cython.int:
        """A name of any kind (5.1.2). Tells in attributes what a signature behind it means."""
        flags: cython.int
        lead: cython.int = self.used - start
        weight: cython.longlong = self.weight
        abbreviated: cython.bint = False
        byte: cython.uchar = self.text[self.at]
        if byte == 0x4E:  # N
            return self.nested(start, in_type)
        if byte == 0x5A:  # Z
            return self.local(start, in_type)
        self.begin = start
        if byte == 0x53:  # S
            if self.text[self.at + 1] == 0x74:  # t
                self.at += 2
                byte = self.text[self.at]
                self.put_word(b"std::")
                self.step(2, 5)
                flags = self.unqualified(start)
            elif in_type:
                abbreviated = True
                flags = self.abbreviation(False)
            else:
                return self.fail()
        else:
            flags = self.unqualified(start)
        start = self.begin
        # An anonymous namespace has something in it.
        if (self.anonymous and not abbreviated) or (in_type and 0x61 <= byte <= 0x7A):
            return self.fail()
        closure: cython.bint = self.closure and not abbreviated
        templated: cython.bint = False
        if self.text[self.at] == 0x49:  # I
            if closure:
                return self.fail()
            if not abbreviated:
                self.add(start + lead, flags | _NO_TYPE if 0x61 <= byte <= 0x7A else flags, weight)
            flags |= self.arguments(start)
            start = self.begin
            templated = True
        self.templated = templated
        self.structor = -1
        self.special = False
        self.closure = closure
        self.quals = 0
        self.begin = start
        return flags

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def nested(self, start: cython.int, in_type: cython.bint) -> cython.int:
        """`N` qualifiers, scopes and the last component, `E`."""
        flags: cython.int = 0
        quals: cython.int = 0
        lead: cython.int = self.used - start
        weight: cython.longlong = self.weight
        templated: cython.bint = False
        special: cython.bint = False
        structor: cython.Py_ssize_t = -1
        # Behind constructors, destructors and operators come template arguments at most.
        last: cython.bint = False
        # Whether the class is known that a constructor would be named after.
        classed: cython.bint = False
        inherited: cython.bint = False
        first: cython.bint = True
        byte: cython.uchar
        next_byte: cython.uchar
        self.at += 1
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            return self.fail()
        if self.text[self.at] == 0x56:  # V
            self.at += 1
            quals = _OTHER_QUALIFIER
        if self.text[self.at] == 0x4B:  # K
            self.at += 1
            quals |= _CONST
        if self.text[self.at] == 0x52 or self.text[self.at] == 0x4F:  # R, O
            self.at += 1
            quals |= _OTHER_QUALIFIER
        if in_type and quals:
            return self.fail()
        while not self.bad:
            byte = self.text[self.at]
            next_byte = self.text[self.at + 1]
            if byte == 0x45:  # E
                if first:
                    return self.fail()
                self.at += 1
                break
            if last and byte != 0x49:
                return self.fail()
            self.step(1, 2)
            if byte == 0x49:  # I
                if first or templated:
                    return self.fail()
                flags |= self.arguments(start)
                start = self.begin
                templated = True
            elif byte == 0x53:  # S
                if not first:
                    return self.fail()
                classed = True
                if next_byte == 0x74:  # t
                    self.at += 2
                    self.put_word(b"std")
                    next_byte = self.text[self.at]
                    if not 0x31 <= next_byte <= 0x39:
                        return self.fail()
                elif next_byte >= 0x61:
                    flags |= self.abbreviation(True)
                else:
                    flags |= self.reference()
                    classed = False
                    if flags & _NAMESPACE:
                        flags &= ~_NAMESPACE
                        next_byte = self.text[self.at]
                        if next_byte == 0x45 or next_byte == 0x49:  # E, I
                            return self.fail()
                    if flags & (_COMPOUND | _REFERENCE | _DECLARATOR):
                        return self.fail()
            elif byte == 0x54:  # T
                if not first:
                    return self.fail()
                flags |= self.parameter()
            else:
                templated = False
                if not first:
                    self.put(0x3A)
                    self.put(0x3A)
                if byte == 0x43:  # C
                    if next_byte == 0x49:  # I
                        self.at += 1
                        next_byte = self.text[self.at + 1]
                        inherited = True
                    if not classed or in_type or not 0x31 <= next_byte <= 0x35:
                        return self.fail()
                    structor = self.at + 1
                    self.at += 2
                    if inherited:
                        start = self.inherited_from(start)
                    self.copy(self.last_start, self.last_end)
                    special = last = True
                elif byte == 0x44:  # D
                    if not classed or in_type or not 0x30 <= next_byte <= 0x35 or next_byte == 0x33:
                        return self.fail()
                    structor = self.at + 1
                    self.at += 2
                    self.put(0x7E)
                    self.copy(self.last_start, self.last_end)
                    special = last = True
                elif byte == 0x63 and next_byte == 0x76:  # cv
                    # In an expression it would be a cast.
                    if in_type or self.conditions:
                        return self.fail()
                    self.at += 2
                    self.put_word(b"operator ")
                    if self.a_type(start) & ~(_COMPOUND | _REFERENCE):
                        return self.fail()
                    start = self.begin
                    special = last = True
                else:
                    classed = 0x31 <= byte <= 0x39
                    flags |= self.unqualified(start)
                    start = self.begin
                    last = 0x61 <= byte <= 0x7A
                    if last and (in_type or first):
                        return self.fail()
                    if self.anonymous:
                        classed = False
                        next_byte = self.text[self.at]
                        if next_byte == 0x45 or next_byte == 0x49 or next_byte == 0x42:  # E, I, B
                            return self.fail()
            first = False
            if byte != 0x53 and self.text[self.at] != 0x45:
                if last:
                    self.add(start + lead, flags | _NO_TYPE, weight)
                elif byte != 0x49 and self.anonymous:
                    self.add(start + lead, flags | _NAMESPACE, weight)
                else:
                    self.add(start + lead, flags, weight)
        self.depth -= 1
        self.templated = templated
        self.special = special
        self.structor = structor
        self.closure = False
        self.quals = quals
        self.begin = start
        return flags

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def inherited_from(self, start: cython.int) -> cython.int:
        """The class whose constructor is inherited, which the runtime names the constructor after.

        Its text may be referred to, so that the one from `start` on is repeated behind it. Returns where that is.
        """
        end: cython.int = self.used
        moved: cython.int
        byte: cython.uchar = self.text[self.at]
        named: cython.bint = byte == 0x4E or 0x31 <= byte <= 0x39 or (byte == 0x53 and self.text[self.at + 1] == 0x74)
        if not named or self.silent:
            return self.fail()
        self.last_start = self.last_end = 0
        if self.a_type(end) & ~_PARAMETER or self.closure or self.last_start == self.last_end:
            return self.fail()
        moved = self.used
        self.copy(start, end)
        return moved

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def local(self, start: cython.int, in_type: cython.bint) -> cython.int:
        """`Z` an enclosing function `E` and what it encloses."""
        flags: cython.int
        self.at += 1
        self.encoding(start, False)
        if self.bad or self.text[self.at] != 0x45:
            return self.fail()
        self.at += 1
        self.put(0x3A)
        self.put(0x3A)
        byte: cython.uchar = self.text[self.at]
        # String literals, default arguments, and what no compiler writes.
        if byte == 0x73 or byte == 0x64 or byte == 0x5A or byte == 0x53:
            return self.fail()
        flags = self.a_name(self.begin, in_type)
        if self.text[self.at] == 0x5F:
            # A discriminator.
            byte = self.text[self.at + 1]
            if self.closure or not 0x30 <= byte <= 0x39 or 0x30 <= self.text[self.at + 2] <= 0x39:
                return self.fail()
            self.at += 2
        return flags

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def unqualified(self, start: cython.int) -> cython.int:
        """An identifier, operator or closure."""
        byte: cython.uchar = self.text[self.at]
        self.begin = start
        self.closure = False
        self.anonymous = False
        if 0x31 <= byte <= 0x39:
            self.source_name()
        elif byte == 0x4C:  # L
            self.at += 1
            self.source_name()
            if self.text[self.at] == 0x5F:
                return self.fail()
        elif 0x61 <= byte <= 0x7A:
            self.operator_name()
        elif byte == 0x55:  # U
            return self.closure_name(start)
        else:
            return self.fail()
        if self.text[self.at] == 0x42:  # B
            if self.anonymous:
                return self.fail()
            self.tags()
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def number(self) -> cython.int:
        """Decimal digits; -1 if there are none, or too many to be of use."""
        value: cython.int = 0
        byte: cython.uchar = self.text[self.at]
        if not 0x30 <= byte <= 0x39:
            return self.fail()
        while 0x30 <= byte <= 0x39:
            value = value * 10 + (byte - 0x30)
            if value > 9999:
                return self.fail()
            self.at += 1
            byte = self.text[self.at]
        return value

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def source_name(self) -> cython.int:
        """A length and an identifier of that length; `last_start`, `last_end` are where it stands."""
        i: cython.Py_ssize_t
        byte: cython.uchar
        start: cython.int = self.used
        at: cython.Py_ssize_t
        if self.text[self.at] == 0x30:
            return self.fail()
        size: cython.int = self.number()
        if self.bad or size > self.size - self.at or start + size > _MAX_TEXT:
            return self.fail()
        at = self.at
        self.at = at + size
        self.step(1, size + 24)
        if (
            size >= 10
            and self.text[at] == 0x5F
            and self.text[at + 1] == 0x47
            and self.text[at + 2] == 0x4C
            and self.text[at + 3] == 0x4F
            and self.text[at + 4] == 0x42
            and self.text[at + 5] == 0x41
            and self.text[at + 6] == 0x4C
            and self.text[at + 7] == 0x5F
            and self.text[at + 9] == 0x4E
        ):
            byte = self.text[at + 8]
            if byte == 0x5F or byte == 0x24 or byte == 0x2E:  # _ $ .
                for i in range(at, at + size):
                    if self.text[i] >= 0x80 or not _IDENTIFIER[self.text[i]]:
                        return self.fail()
                self.put_word(b"(anonymous namespace)")
                self.last_start = start
                self.last_end = self.used
                self.anonymous = True
                return 0
        silent: cython.bint = self.silent
        for i in range(size):
            byte = self.text[at + i]
            if not (
                0x61 <= byte <= 0x7A or byte == 0x5F or 0x30 <= byte <= 0x39 or 0x41 <= byte <= 0x5A or byte == 0x24
            ):
                return self.fail()
            if not silent:
                self.out[start + i] = byte
        if not silent:
            self.used = start + size
        self.last_start = start
        self.last_end = self.used
        # In the text these words would be read as what they are.
        if size >= 8:
            at = at + size - 8
            if self.text[at] == 0x6F and self.text[at + 3] == 0x72 and self.text[at + 5] == 0x74:  # o..r.t
                return self.fail()
            if self.text[at] == 0x64 and self.text[at + 3] == 0x6C and self.text[at + 4] == 0x74:  # d..lt
                return self.fail()
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def tags(self) -> cython.int:
        """ABI tags."""
        start: cython.int = self.last_start
        end: cython.int = self.last_end
        while self.text[self.at] == 0x42 and not self.bad:
            self.at += 1
            self.step(2, 8)
            self.put_word(b"[abi:")
            self.source_name()
            self.put(0x5D)
        self.last_start = start
        self.last_end = end
        self.anonymous = False
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def operator_name(self) -> cython.int:
        """An operator (5.1.3), other than conversions and literals."""
        self.last_operator = self.text[self.at] << 8 | self.text[self.at + 1]
        text = _OPERATORS.get(self.last_operator)
        if text is None:
            return self.fail()
        self.at += 2
        self.step(2, 20)
        return self.put_word(text)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def closure_name(self, start: cython.int) -> cython.int:
        """A lambda, whose parameters stay in the text, or an unnamed type."""
        flags: cython.int
        count: cython.int = 0
        number: cython.int = 1
        byte: cython.uchar = self.text[self.at + 1]
        lead: cython.int = self.used - start
        weight: cython.longlong = self.weight
        self.at += 2
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            return self.fail()
        self.step(4, 32)
        if byte == 0x6C:  # l
            self.put_word(b"{lambda(")
            if self.text[self.at] == 0x76 and self.text[self.at + 1] == 0x45:  # vE
                self.at += 1
            else:
                while self.text[self.at] != 0x45 and not self.bad:
                    if count:
                        self.put(0x2C)
                        self.put(0x20)
                    flags = self.a_type(start)
                    self.step(1, 2)
                    if flags & ~(_REFERENCE | _COMPOUND):
                        return self.fail()
                    start = self.begin
                    count += 1
                if count == 0:
                    return self.fail()
            self.at += 1
            self.put_word(b")#")
        elif byte == 0x74:  # t
            self.put_word(b"{unnamed type#")
        else:
            return self.fail()
        if self.text[self.at] != 0x5F:
            number = self.number() + 2
        if self.bad or self.text[self.at] != 0x5F:
            return self.fail()
        self.at += 1
        self.put_word(b"%d" % number)
        self.put(0x7D)
        if byte == 0x74:
            # Releases of the runtime differ in whether it counts twice; what is counted from here on is not known.
            self.uncounted = True
            self.add(start + lead, 0, weight)
        self.depth -= 1
        self.begin = start
        self.closure = True
        self.anonymous = False
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def abbreviation(self, nested: cython.bint) -> cython.int:
        """`Sa`, `Ss` and the like."""
        abbreviation = _ABBREVIATIONS.get(self.text[self.at + 1])
        if abbreviation is None:
            return self.fail()
        self.at += 2
        self.step(2, 80)
        byte: cython.uchar = self.text[self.at]
        if byte == 0x42:  # B
            return self.fail()
        short, full, size = abbreviation
        if nested and (byte == 0x43 or byte == 0x44):  # C, D
            self.put_word(full)
        elif byte == 0x49 and short is not full:  # I
            return self.fail()
        else:
            self.put_word(short)
        self.last_end = self.used
        self.last_start = self.used - cython.cast(cython.int, size)
        if short is not full and not (byte == 0x43 or byte == 0x44):
            # The last component of the short text is another word, which no constructor is named after.
            self.last_start = self.last_end
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def reference(self) -> cython.int:
        """`S_`, `S0_`: a substitution counted from the left."""
        index: cython.int = 0
        flags: cython.int
        byte: cython.uchar
        self.at += 1
        byte = self.text[self.at]
        if byte != 0x5F:
            while byte != 0x5F:
                if 0x30 <= byte <= 0x39:
                    index = index * 36 + (byte - 0x30)
                elif 0x41 <= byte <= 0x5A:
                    index = index * 36 + (byte - 0x37)
                else:
                    return self.fail()
                if index >= _MAX_SUBSTITUTIONS:
                    return self.fail()
                self.at += 1
                byte = self.text[self.at]
            index += 1
        self.at += 1
        if index >= self.substitutions or self.uncounted:
            return self.fail()
        flags = self.sub_flags[index]
        if flags & _NO_TYPE:
            return self.fail()
        if flags & _PARAMETER and self.sub_context[index] != self.context:
            return self.fail()
        if flags & _PACK and not (self.expanding and self.params_even):
            return self.fail()
        self.step(1, self.sub_weight[index])
        if not self.silent:
            if flags & _SILENT:
                self.missed = True
                return self.fail()
            self.copy(self.sub_start[index], self.sub_end[index])
        return flags & ~_SILENT

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def parameter(self) -> cython.int:
        """`T_`, `T0_`: a parameter of the function template whose signature this is; it must have an argument."""
        index: cython.int = 0
        self.at += 1
        if self.text[self.at] != 0x5F:
            index = self.number() + 1
        if self.bad or self.text[self.at] != 0x5F or index >= self.params or index >= 60:
            return self.fail()
        self.at += 1
        self.step(2, self.params_weight)
        if (self.params_packs >> index) & 1:
            # Packs that are expanded together have the same length.
            if not self.expanding or (self.expanded >= 0 and self.expanded != index and not self.params_even):
                return self.fail()
            self.expanded = index
            return _PARAMETER | _PACK
        if (self.params_values >> index) & 1:
            return _PARAMETER | _DECLARATOR
        return _PARAMETER

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def arguments(self, start: cython.int) -> cython.int:
        """Template arguments, which are left out of the text."""
        flags: cython.int
        moved: cython.int
        end: cython.int = self.used
        last_start: cython.int = self.last_start
        last_end: cython.int = self.last_end
        silent: cython.bint = self.silent
        self.silent = not self.keeping
        flags = self.argument_list(True)
        self.silent = silent
        self.last_start = last_start
        self.last_end = last_end
        self.begin = start
        if self.used > end:
            moved = self.used
            self.copy(start, end)
            self.begin = moved
        return flags & (_PARAMETER | _PACK)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def argument_list(self, top: cython.bint) -> cython.int:
        """`I` arguments `E`, or a pack of them, `J` arguments `E`; what they are is left in `args_...`."""
        flags: cython.int = 0
        count: cython.int = 0
        packs: cython.ulonglong = 0
        values: cython.ulonglong = 0
        longest: cython.int = -1
        even: cython.bint = True
        weight: cython.longlong = self.weight
        byte: cython.uchar
        self.at += 1
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            return self.fail()
        self.step(2, 4)
        while not self.bad:
            byte = self.text[self.at]
            if byte == 0x45:  # E
                self.at += 1
                break
            if byte == 0x4A or byte == 0x49:  # J, I
                if not top or count >= 60:
                    return self.fail()
                flags |= self.argument_list(False)
                packs |= cython.cast(cython.ulonglong, 1) << count
                if longest >= 0 and self.args_count != longest:
                    even = False
                longest = max(longest, self.args_count)
            elif byte == 0x4C:  # L
                if count < 60:
                    values |= cython.cast(cython.ulonglong, 1) << count
                flags |= self.literal()
            elif byte == 0x58:  # X
                self.at += 1
                if count < 60:
                    values |= cython.cast(cython.ulonglong, 1) << count
                flags |= self.expression()
                if self.bad or self.text[self.at] != 0x45:
                    return self.fail()
                self.at += 1
            else:
                flags |= self.a_type(self.used)
            self.step(1, 2)
            count += 1
        self.depth -= 1
        self.args_count = count
        self.args_packs = packs
        self.args_length = longest
        self.args_even = even
        self.args_values = values
        self.args_flags = flags
        self.args_weight = self.weight - weight
        return flags

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def expression(self) -> cython.int:
        """An expression of those that conditions and `decltype` are made of, without `<` and `>` as operators.

        Its text is not put in.
        """
        flags: cython.int
        code: cython.int
        byte: cython.uchar = self.text[self.at]
        weight: cython.longlong = self.weight
        self.step(1, 4)
        if byte == 0x54:  # T
            return self.parameter()
        if byte == 0x4C:  # L
            return self.literal()
        if 0x31 <= byte <= 0x39:
            return self.plain_name()
        code = byte << 8 | self.text[self.at + 1]
        if code == 0x6164:  # ad
            self.at += 2
            if self.text[self.at] != 0x4C or self.text[self.at + 1] != 0x5F:  # L_
                return self.fail()
            return self.literal()
        if code == 0x6670:  # fp
            self.at += 2
            if self.text[self.at] != 0x5F:
                self.number()
            if self.text[self.at] != 0x5F:
                return self.fail()
            self.at += 1
            self.step(1, 16)
            return 0
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            return self.fail()
        self.conditions += 1
        self.step(2, 16)
        if code == 0x7372:  # sr
            flags = self.unresolved_name()
        elif code == 0x7370:  # sp
            if self.expanding or not self.params:
                return self.fail()
            self.at += 2
            self.expanding = True
            self.expanded = -1
            flags = self.expression()
            self.expanding = False
            if not flags & _PACK:
                return self.fail()
            flags &= ~_PACK
            self.step(1, (self.weight - weight) * self.params_length)
        elif code == 0x6E74:  # nt
            self.at += 2
            flags = self.expression()
        elif code == 0x636C:  # cl
            self.at += 2
            flags = self.expression()
            while self.text[self.at] != 0x45 and not self.bad:  # E
                flags |= self.expression()
                self.step(1, 2)
            self.at += 1
        elif code == 0x6474:  # dt
            self.at += 2
            flags = self.expression()
            if not 0x31 <= self.text[self.at] <= 0x39:
                return self.fail()
            flags |= self.plain_name()
        elif (
            code == 0x6161  # aa
            or code == 0x6F6F  # oo
            or code == 0x6571  # eq
            or code == 0x6E65  # ne
            or code == 0x706C  # pl
            or code == 0x6D69  # mi
            or code == 0x6D6C  # ml
        ):
            self.at += 2
            flags = self.expression()
            if not self.bad:
                flags |= self.expression()
        else:
            return self.fail()
        self.conditions -= 1
        self.depth -= 1
        return flags

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def unresolved_name(self) -> cython.int:
        """`sr` a type and a member of it; where names come first, `E` stands between them and the member."""
        flags: cython.int = 0
        byte: cython.uchar
        self.at += 2
        byte = self.text[self.at]
        if 0x31 <= byte <= 0x39:
            while 0x31 <= self.text[self.at] <= 0x39 and not self.bad:
                flags |= self.plain_name()
            if self.text[self.at] != 0x45:
                return self.fail()
            self.at += 1
        elif byte == 0x4E or byte == 0x53 or byte == 0x54:  # N, S, T
            flags = self.a_type(self.used) & (_PARAMETER | _PACK)
        else:
            return self.fail()
        return flags | self.plain_name()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def plain_name(self) -> cython.int:
        """An identifier in an expression, with its template arguments if it has some."""
        self.anonymous = False
        self.step(1, 2)
        self.source_name()
        if self.bad or self.anonymous or self.text[self.at] == 0x42:  # B
            return self.fail()
        if self.text[self.at] != 0x49:  # I
            return 0
        return self.argument_list(True) & (_PARAMETER | _PACK)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def literal(self) -> cython.int:
        """An integer, enumerator, null pointer or the name of a function or object (5.1.6)."""
        flags: cython.int
        byte: cython.uchar
        self.at += 1
        self.step(3, 8)
        if self.text[self.at] == 0x5F:
            if self.text[self.at + 1] != 0x5A:
                return self.fail()
            self.at += 2
            self.encoding(self.used, False)
        else:
            byte = self.text[self.at]
            # Values of floating-point types are not digits.
            if byte == 0x76 or byte == 0x7A or byte == 0x66 or byte == 0x64 or byte == 0x65 or byte == 0x67:
                return self.fail()
            flags = self.a_type(self.used)
            if flags & ~_COMPOUND:
                return self.fail()
            if self.text[self.at] == 0x6E:
                self.at += 1
            byte = self.text[self.at]
            if not 0x30 <= byte <= 0x39:
                return self.fail()
            while 0x30 <= byte <= 0x39:
                self.at += 1
                self.weight += 1
                byte = self.text[self.at]
        if self.bad or self.text[self.at] != 0x45:
            return self.fail()
        self.at += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def a_type(self, start: cython.int) -> cython.int:
        """A type (5.1.5)."""
        flags: cython.int = 0
        lead: cython.int = self.used - start
        weight: cython.longlong = self.weight
        candidate: cython.bint = True
        byte: cython.uchar = self.text[self.at]
        next_byte: cython.uchar
        self.begin = start
        # Simple types first: they need no more.
        if 0x61 <= byte <= 0x7A:
            text = _BUILTIN_TABLE[byte]
            if text is None:
                return self.fail()
            self.at += 1
            self.step(1, 24)
            if self.silent:
                return 0
            return self.put_word(text)
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            return self.fail()
        self.step(1, 4)
        if byte == 0x53:  # S
            next_byte = self.text[self.at + 1]
            if next_byte == 0x5F or 0x30 <= next_byte <= 0x39 or 0x41 <= next_byte <= 0x5A:
                flags = self.reference()
                if flags & _NAMESPACE:
                    return self.fail()
                if self.text[self.at] == 0x49:  # I
                    if flags & (_COMPOUND | _REFERENCE | _DECLARATOR):
                        return self.fail()
                    flags |= self.arguments(start)
                    start = self.begin
                else:
                    candidate = False
            else:
                flags = self.a_name(start, True)
                start = self.begin
                candidate = next_byte == 0x74 or self.templated
        elif byte == 0x4E or byte == 0x5A or 0x31 <= byte <= 0x39:  # N, Z
            flags = self.a_name(start, True)
            start = self.begin
        elif byte == 0x52 or byte == 0x4F:  # R, O
            self.at += 1
            flags = self.a_type(start)
            start = self.begin
            if flags & _REFERENCE:
                flags |= _DECLARATOR
            flags |= _REFERENCE | _COMPOUND
            self.put(0x26)
            if byte == 0x4F:
                self.put(0x26)
        elif byte == 0x50:  # P
            self.at += 1
            flags = self.a_type(start)
            start = self.begin
            if flags & _REFERENCE:
                flags |= _DECLARATOR
            flags |= _COMPOUND
            self.put(0x2A)
        elif byte == 0x4B or byte == 0x56:  # K, V
            self.at += 1
            next_byte = self.text[self.at]
            if next_byte == 0x4B or next_byte == 0x56 or next_byte == 0x72:
                return self.fail()
            if next_byte == 0x46:  # F
                flags = self.function_type()
            else:
                flags = self.a_type(start)
                start = self.begin
                if flags & _DECLTYPE:
                    return self.fail()
                if flags & _COMPOUND and not self.silent:
                    next_byte = self.out[self.used - 1]
                    # What is qualified already the runtime does not qualify again.
                    if next_byte != 0x2A and next_byte != 0x26:  # *, &
                        return self.fail()
            if flags & _REFERENCE:
                flags |= _DECLARATOR
            flags |= _COMPOUND
            self.put_word(b" const" if byte == 0x4B else b" volatile")
            self.step(0, 8)
        elif byte == 0x54:  # T
            flags = self.parameter()
            if self.text[self.at] == 0x49:
                return self.fail()
        elif byte == 0x46:  # F
            flags = self.function_type()
        elif byte == 0x41:  # A
            self.at += 1
            flags = _DECLARATOR
            if self.text[self.at] == 0x54:  # T
                flags |= self.parameter()
            else:
                while 0x30 <= self.text[self.at] <= 0x39:
                    self.at += 1
                    self.weight += 1
            if self.text[self.at] != 0x5F:
                return self.fail()
            self.at += 1
            self.step(2, 4)
            flags |= self.a_type(start)
            start = self.begin
        elif byte == 0x4D:  # M
            self.at += 1
            flags = self.a_type(self.used)
            flags |= self.a_type(self.used) | _DECLARATOR
            self.begin = start
        elif byte == 0x44:  # D
            next_byte = self.text[self.at + 1]
            self.at += 2
            candidate = False
            if next_byte == 0x70:  # p
                if self.expanding or not self.params:
                    return self.fail()
                self.expanding = True
                self.expanded = -1
                flags = self.a_type(start)
                start = self.begin
                self.expanding = False
                if not flags & _PACK:
                    return self.fail()
                flags = flags & ~_PACK | _DECLARATOR
                self.step(1, (self.weight - weight) * self.params_length)
                candidate = True
            elif next_byte == 0x54 or next_byte == 0x74:  # T, t
                flags = self.expression() & (_PARAMETER | _PACK) | _DECLTYPE | _COMPOUND
                if self.text[self.at] != 0x45:  # E
                    return self.fail()
                self.at += 1
                candidate = True
            elif next_byte == 0x6E:  # n
                self.put_word(b"decltype(nullptr)")
            elif next_byte == 0x69:  # i
                self.put_word(b"char32_t")
            elif next_byte == 0x73:  # s
                self.put_word(b"char16_t")
            elif next_byte == 0x75:  # u
                self.put_word(b"char8_t")
            elif next_byte == 0x61:  # a
                self.put_word(b"auto")
            else:
                return self.fail()
            self.step(1, 20)
        else:
            return self.fail()
        if candidate:
            self.add(start + lead, flags, weight)
        self.depth -= 1
        self.begin = start
        return flags

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def function_type(self) -> cython.int:
        """`F` the return type and the parameters `E`."""
        flags: cython.int
        count: cython.int = 0
        start: cython.int = self.begin
        self.at += 1
        self.step(2, 8)
        flags = self.a_type(self.used)
        while self.text[self.at] != 0x45 and not self.bad:
            flags |= self.a_type(self.used)
            self.step(1, 2)
            count += 1
        if count == 0:
            return self.fail()
        self.at += 1
        self.begin = start
        return flags & (_PARAMETER | _PACK) | _DECLARATOR


_spare: list[Walker] = []
_MAX_SPARE = 4


def borrow() -> Walker | None:
    """A walker that nobody else uses; None where the runtime is another or the sources are not compiled."""
    if not cython.compiled or not _agrees(itanium.runtimes()):
        return None
    try:
        return _spare.pop()
    except IndexError:
        return Walker()


def give_back(walker: Walker | None) -> None:
    """Let others use a walker."""
    if walker is not None and len(_spare) < _MAX_SPARE:
        _spare.append(walker)


@cache
def _agrees(runtimes: Hashable) -> bool:
    """Tell whether the runtimes print what a walker leaves parts out of."""
    return all(itanium.demangle(name) == text for name, text in PROBES)
