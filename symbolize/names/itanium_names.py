# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""Names of Itanium C++ linkage names.

Itanium C++ ABI: 5.1.2 General Structure, 5.1.3 Operator Encodings, 5.1.4 Other Special Functions and Entities, and
behind them Scope Encoding and Closure Types. Besides what the ABI says, names of old releases of GCC and Clang are
read, and what they and libiberty added: clone suffixes, transactional clones.
"""

from __future__ import annotations

import cython

from symbolize.names.itanium_tree import word

if not cython.compiled:
    from symbolize.names.itanium_nodes import *
    from symbolize.names.itanium_tree import MAX_LOOKUPS
    from symbolize.names.itanium_types import TypeParser

_STD = cython.declare(cython.int, word(b"std"))
_STRING_LITERAL = cython.declare(cython.int, word(b"string literal"))
_BLOCK = cython.declare(cython.int, word(b"{block}"))
_TILDE = cython.declare(cython.int, word(b"~"))
_OPERATOR = cython.declare(cython.int, word(b"operator "))
_LITERAL_OPERATOR = cython.declare(cython.int, word(b'operator"" '))
OPERATORS = {
    code[0] << 8 | code[1]: text
    for code, text in (
        (b"nw", b"new"), (b"na", b"new[]"), (b"dl", b"delete"), (b"da", b"delete[]"), (b"co", b"~"), (b"pl", b"+"),
        (b"ps", b"+"), (b"mi", b"-"), (b"ng", b"-"), (b"ml", b"*"), (b"de", b"*"), (b"dv", b"/"), (b"rm", b"%"),
        (b"an", b"&"), (b"ad", b"&"), (b"or", b"|"), (b"eo", b"^"), (b"aS", b"="), (b"pL", b"+="), (b"mI", b"-="),
        (b"mL", b"*="), (b"dV", b"/="), (b"rM", b"%="), (b"aN", b"&="), (b"oR", b"|="), (b"eO", b"^="),
        (b"ls", b"<<"), (b"rs", b">>"), (b"lS", b"<<="), (b"rS", b">>="), (b"eq", b"=="), (b"ne", b"!="),
        (b"lt", b"<"), (b"gt", b">"), (b"le", b"<="), (b"ge", b">="), (b"ss", b"<=>"), (b"nt", b"!"), (b"aa", b"&&"),
        (b"oo", b"||"), (b"pp", b"++"), (b"mm", b"--"), (b"cm", b","), (b"pm", b"->*"), (b"pt", b"->"),
        (b"cl", b"()"), (b"ix", b"[]"), (b"qu", b"?"), (b"aw", b"co_await"),
    )
}  # fmt: skip
_OPERATOR_WORDS = cython.declare(
    dict, {code: word(b"operator" + b" " * text[:1].isalpha() + text) for code, text in OPERATORS.items()}
)
# What special names are of, by the letters of `operand`.
_special = {
    code[0] << 8 | code[1]: (word(text), of[0])
    for code, of, text in (
        (b"TV", b"t", b"vtable for "), (b"TT", b"t", b"VTT for "), (b"TI", b"t", b"typeinfo for "),
        (b"TS", b"t", b"typeinfo name for "), (b"TF", b"t", b"typeinfo fn for "), (b"TJ", b"t", b"java Class for "),
        (b"TA", b"a", b"template parameter object for "), (b"TH", b"n", b"TLS init function for "),
        (b"TW", b"n", b"TLS wrapper function for "), (b"Th", b"f", b"non-virtual thunk to "),
        (b"Tv", b"f", b"virtual thunk to "), (b"Tc", b"f", b"covariant return thunk to "),
        (b"GV", b"n", b"guard variable for "), (b"GA", b"f", b"hidden alias for "),
        (b"Gt", b"f", b"transaction clone for "), (b"Gn", b"f", b"non-transaction clone for "),
        (b"GI", b"m", b"initializer for module "),
    )
}  # fmt: skip
_SPECIAL = cython.declare(dict, _special)


@cython.cclass
class NameParser(TypeParser):
    """Makes the nodes of names."""

    def parse(self) -> cython.int:
        """The node of the whole name behind its `_Z`; 0 if it is wrong or costs too much."""
        node = self.parse_whole()
        while self.bad and self.ambiguous and not self.refused and self.reading < LAST_READING:
            self.reading += 1
            self.reset()
            node = self.parse_whole()
        return 0 if self.bad else node

    def parse_whole(self) -> cython.int:
        """The same in one of the readings that a name may have (see `unresolved`)."""
        self.at = 2
        node = self.encoding(True)
        if self.at != self.size:
            self.suffix()
        return node

    def suffix(self) -> cython.int:
        """What compilers append to a name, behind a dot; versions of symbols are another matter (R114)."""
        byte = self.text[self.at + 1]
        if self.text[self.at] != ord(".") or byte == 0 or byte == ord("."):
            return self.fail()
        while self.at < self.size:
            if self.text[self.at] == ord("@"):
                return self.fail()
            self.at += 1
        return 0

    def encoding(self, top: cython.bint) -> cython.int:
        """A function with its signature, a variable, or what the compiler makes for one of them (5.1.2)."""
        byte = self.text[self.at]
        params, outer, forwards, quals = self.params, self.outer, self.forwards, self.quals
        templated, special, forwarding = self.templated, self.special, self.forwarding
        generic, leveled = self.generic, self.leveled
        self.enter()
        self.params = self.outer = self.forwards = self.quals = 0
        self.templated = self.special = self.forwarding = self.generic = self.leveled = False
        if byte in b"TG":
            node = self.special_name()
        else:
            node = self.a_name(True)
            self.resolve_forwards()
            byte = self.text[self.at]
            if not self.bad and byte not in b"\0E._":
                node = self.function(node, top)
        self.params, self.outer, self.forwards, self.quals = params, outer, forwards, quals
        self.templated, self.special, self.forwarding = templated, special, forwarding
        self.generic, self.leveled = generic, leveled
        self.depth -= 1
        return node

    def function(self, name: cython.int, top: cython.bint) -> cython.int:
        """The return type and the parameters behind the name of a function."""
        returned = 0
        head = 0
        constraint = 0
        quals = self.quals
        templated = self.templated and not self.special
        if self.text[self.at] == ord("U") and self.text[self.at + 1] == ord("a"):
            self.at += 2
            name = self.enable_if(name)
        if templated:
            returned = self.a_type()
            # The return type of a local function would read as that of the function around it.
            if not top and self.kind(name) == LOCAL:
                returned = 0
        if not self.eat(ord("v")):
            head = self.append(0, self.a_type())
            while self.text[self.at] not in b"\0E._Q" and not self.bad:
                head = self.append(head, self.a_type())
        if self.text[self.at] == ord("Q"):
            constraint = self.constraint()
        return self.node(ENCODING, name, returned, self.node(SIGNATURE | quals << EXTRA, head, constraint, 0))

    def enable_if(self, name: cython.int) -> cython.int:
        """`Ua9enable_if` template arguments: Clang's attribute."""
        self.slice()
        return self.node(ENABLE_IF, name, self.arguments(False), 0) if self.text[self.at] == ord("I") else self.fail()

    def special_name(self) -> cython.int:
        """What the compiler makes for a class, function or variable (5.1.4)."""
        group = self.text[self.at]
        letter = self.text[self.at + 1]
        self.at += 2
        if group == ord("T") and letter == ord("C"):
            return self.construction()
        if group == ord("G") and letter == ord("R"):
            return self.reference_temporary()
        if group == ord("G") and letter == ord("T"):
            letter = self.text[self.at]
            self.at += 1
        found = _SPECIAL.get(group << 8 | letter)
        if found is None:
            return self.fail()
        if letter in b"hv":
            self.at -= 1
            self.offset()
        elif letter == ord("c"):
            self.offset()
            self.offset()
        return self.node(PREFIXED, self.node(WORD, found[0], 0, 0), self.operand(found[1]), 0)

    def construction(self) -> cython.int:
        """A vtable for the construction of a base."""
        node = self.a_type()
        self.number()
        self.expect(ord("_"))
        return self.node(CONSTRUCTION, self.a_type(), node, 0)

    def reference_temporary(self) -> cython.int:
        """The object that a reference with a name extends the life of; old names have a plain number."""
        node = self.a_name(False)
        number = 0
        if self.text[self.at] and self.text[self.at] != ord("."):
            number = self.number() if self.text[self.size - 1] != ord("_") else self.sequence()
        return self.node(REFERENCE_TEMPORARY, self.node(NUMBER, number, 0, 0), node, 0)

    def offset(self) -> cython.int:
        """What a thunk adjusts by: behind `h` one number, behind `v` two."""
        if self.eat(ord("v")):
            self.signed()
        else:
            self.expect(ord("h"))
        return self.signed()

    def signed(self) -> cython.int:
        """A number with an underscore behind it that may be negative."""
        self.eat(ord("n"))
        self.number()
        return self.expect(ord("_"))

    def resolve_forwards(self) -> cython.int:
        """Give the parameters in the type of a conversion operator, or in a constraint, the arguments that followed
        it; those of a constraint need not be of the innermost template."""
        node = self.forwards
        while node and not self.bad:
            self.nodes[node + 2] = self.lookup(self.params, self.nodes[node + 1])
            if not self.nodes[node + 2] and self.nodes[node] >> EXTRA:
                self.nodes[node + 2] = self.lookup(self.outer, self.nodes[node + 1])
            elif not self.nodes[node + 2]:
                return self.fail()
            node = self.nodes[node + 3]
        self.forwards = 0
        return 0

    def a_name(self, state: cython.bint) -> cython.int:
        """A name; with `state`, that of a function, of which `params`, `quals`, `templated` and `special` are set."""
        node = 0
        scope = 0
        module = 0
        byte = self.text[self.at]
        if byte == ord("N"):
            return self.nested(state)
        if byte == ord("Z"):
            return self.local(state)
        if byte == ord("S") and self.text[self.at + 1] == ord("t"):
            self.at += 2
            scope = self.node(WORD, _STD, 0, 0)
        if self.text[self.at] == ord("S"):
            node = self.substitution()
            if self.kind(node) == MODULE:
                module = node
            elif self.bad or scope or self.text[self.at] != ord("I"):
                return self.fail()
            else:
                return self.template(node, state)
        node = self.unqualified(state, scope, module)
        if self.text[self.at] != ord("I") or self.bad:
            return node
        self.add(node)
        return self.template(node, state)

    def unqualified(self, state: cython.bint, scope: cython.int, module: cython.int) -> cython.int:
        """A name without scopes, put into the one given."""
        friend = False
        byte = self.text[self.at]
        if not ord("1") <= byte <= ord("9"):
            if byte == ord("W"):
                module = self.module(module)
            friend = self.eat(ord("F"))
            self.eat(ord("L"))
            byte = self.text[self.at]
        if ord("1") <= byte <= ord("9"):
            node = self.source_name()
        elif byte == ord("U"):
            node = self.unnamed(state)
        elif byte == ord("D") and self.text[self.at + 1] == ord("C"):
            node = self.binding()
        elif byte in b"CD":
            if not scope or module:
                return self.fail()
            node = self.structor(state)
        else:
            node = self.operator_name(state)
        if module:
            node = self.node(ENTITY, node, module, 0)
        if self.text[self.at] == ord("B"):
            node = self.tags(node)
        if friend:
            return self.join(FRIEND, scope, node, 0)
        return self.join(NESTED, scope, node, 0) if scope else node

    def module(self, module: cython.int) -> cython.int:
        """`W` names of a module and its partitions."""
        while self.eat(ord("W")) and not self.bad:
            partition = self.eat(ord("P"))
            module = self.add(self.node(MODULE | partition << EXTRA, module, self.source_name(), 0))
        return module

    def structor(self, state: cython.bint) -> cython.int:
        """A constructor, one inherited from the class that follows, or a destructor."""
        tilde = 0
        byte = self.text[self.at + 1]
        self.at += 2
        if self.text[self.at - 2] == ord("D"):
            tilde = self.node(WORD, _TILDE, 0, 0)
            if byte not in b"01245":
                return self.fail()
        else:
            if byte == ord("I"):
                byte = self.text[self.at]
                self.at += 1
                self.a_type()
            if not ord("1") <= byte <= ord("5"):
                return self.fail()
        if not self.last_name:
            return self.fail()
        if state:
            self.special = True
        return self.node(STRUCTOR, tilde, self.last_name, 0)

    def binding(self) -> cython.int:
        """`DC` names `E`: a structured binding."""
        head = 0
        self.at += 2
        while not self.eat(ord("E")) and not self.bad:
            head = self.append(head, self.source_name())
        return self.node(BINDING, head, 0, 0)

    def operator_name(self, state: cython.bint) -> cython.int:
        """An operator, conversion or literal (5.1.3)."""
        byte = self.text[self.at]
        next_byte = self.text[self.at + 1]
        if byte == ord("c") and next_byte == ord("v"):
            self.at += 2
            converting, forwarding = self.converting, self.forwarding
            self.converting = True
            self.forwarding = forwarding or state
            node = self.a_type()
            self.converting, self.forwarding = converting, forwarding
            if state:
                self.special = True
            return self.join(CONVERSION, node, 0, 0)
        if (byte == ord("l") and next_byte == ord("i")) or (byte == ord("v") and ord("0") <= next_byte <= ord("9")):
            self.at += 2
            node = self.node(WORD, _LITERAL_OPERATOR if byte == ord("l") else _OPERATOR, 0, 0)
            return self.node(PREFIXED, node, self.source_name(), 0)
        found = _OPERATOR_WORDS.get(byte << 8 | next_byte)
        if found is None:
            return self.fail()
        self.at += 2
        return self.node(WORD, found, 0, 0)

    def unnamed(self, state: cython.bint) -> cython.int:
        """The type of a lambda, another unnamed type, or a block."""
        byte = self.text[self.at + 1]
        self.at += 2
        if state:
            # Parameters in what follows are those of its own arguments.
            self.params = 0
        if byte == ord("t"):
            return self.node(UNNAMED, self.node(NUMBER, self.ordinal() + 1, 0, 0), 0, 0)
        if byte == ord("l"):
            return self.closure()
        if byte != ord("b"):
            return self.fail()
        return self.node(WORD, _BLOCK, self.ordinal(), 0)

    def closure(self) -> cython.int:
        """The type of a lambda: its template parameters, constraints and parameters, `E` and a number."""
        head = 0
        constraint = 0
        generic, leveled = self.generic, self.leveled
        self.enter()
        self.generic = True
        self.leveled = False
        templates = self.declarations()
        if self.text[self.at] == ord("Q"):
            constraint = self.constraint()
        if not self.eat(ord("v")):
            while self.text[self.at] not in b"EQ" and not self.bad:
                head = self.append(head, self.a_type())
        if self.text[self.at] == ord("Q"):
            constraint = self.constraint()
        self.expect(ord("E"))
        self.generic, self.leveled = generic, leveled
        self.depth -= 1
        head = self.node(SIGNATURE, head, constraint, 0)
        return self.node(LAMBDA, templates, head, self.node(NUMBER, self.ordinal() + 1, 0, 0))

    def nested(self, state: cython.bint) -> cython.int:
        """`N` qualifiers, scopes and a name `E`."""
        node = 0
        self.at += 1
        self.enter()
        quals = EXPLICIT_OBJECT if self.eat(ord("H")) else self.qualifiers()
        if state:
            self.quals = quals
        while not self.bad:
            byte = self.text[self.at]
            if byte == ord("E"):
                break
            if state:
                self.templated = False
            module = 0
            if byte == ord("I"):
                if not node or self.kind(node) == TEMPLATE:
                    return self.fail()
                node = self.template(node, state)
            elif byte == ord("T") or (byte == ord("D") and self.text[self.at + 1] in b"tT"):
                if node:
                    return self.fail()
                node = self.parameter() if byte == ord("T") else self.decltype()
            else:
                if byte == ord("S"):
                    if self.text[self.at + 1] == ord("t"):
                        self.at += 2
                        module = self.node(WORD, _STD, 0, 0)
                    else:
                        module = self.substitution()
                    if self.kind(module) != MODULE:
                        if node:
                            return self.fail()
                        node = module
                        continue
                node = self.unqualified(state, node, module)
                if self.ambiguous and self.repeats(node):
                    return self.fail()
            self.add(node)
            self.eat(ord("M"))
        self.expect(ord("E"))
        self.depth -= 1
        if not node or not self.substitutions:
            return self.fail()
        # The whole name is a candidate only as a type.
        self.substitutions -= 1
        return node

    def repeats(self, node: cython.int) -> cython.bint:
        """Whether a name in a scope could have been referred back to instead, had it been read as it should be."""
        name = self.nodes[node + 2]
        if self.reading == CLANG_READING or self.kind(node) != NESTED or self.kind(name) != NAME:
            return False
        at = self.nodes[name + 1]
        size = self.nodes[name + 2] - at
        self.lookups += self.substitutions
        if self.lookups > MAX_LOOKUPS:
            self.refuse()
        for i in range(self.substitutions):
            other = self.subs[i]
            if self.kind(other) == NESTED and self.nodes[other + 1] == self.nodes[node + 1]:
                other = self.nodes[other + 2]
                if self.kind(other) == NAME and self.nodes[other + 2] - self.nodes[other + 1] == size:
                    other = self.nodes[other + 1]
                    k = 0
                    while k < size and self.text[at + k] == self.text[other + k]:
                        k += 1
                    if k == size:
                        return True
        return False

    def local(self, state: cython.bint) -> cython.int:
        """`Z` a function `E` and what is in it, or `s` for a string literal."""
        params = self.params
        default = 0
        self.at += 1
        around = self.encoding(False)
        self.expect(ord("E"))
        if self.eat(ord("s")):
            self.discriminator()
            return self.node(LOCAL, around, self.node(WORD, _STRING_LITERAL, 0, 0), 0)
        # Parameters of templates are those of the entity, not those of what mentions it.
        self.params = 0
        if self.eat(ord("d")):
            default = self.node(NUMBER, self.ordinal() + 1, 0, 0)
        node = self.a_name(state)
        self.discriminator()
        if not state:
            self.params = params
        return self.node(LOCAL, around, node, default)

    def discriminator(self) -> cython.int:
        """What tells things of one name in a function apart, `_` a digit or `__` a number `_`; not printed."""
        at = self.at
        if self.text[at] != ord("_"):
            return 0
        if ord("0") <= self.text[at + 1] <= ord("9"):
            self.at += 2
        elif self.text[at + 1] == ord("_") and ord("0") <= self.text[at + 2] <= ord("9"):
            self.at += 2
            self.number()
            self.expect(ord("_"))
        return 0
