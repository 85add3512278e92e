# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""The parser of Itanium C++ linkage names (Itanium C++ ABI, 5.1 External Names).

Besides what the ABI says, names of old releases of GCC and Clang are read, and what they and libiberty added: clone
suffixes, transactional clones. The methods are in the order of the ABI: names, types and template arguments,
expressions. A method passes over what it reads and returns the node of it; `Demangler` says how a name is refused.
"""

from __future__ import annotations

import cython

from symbolize.names import itanium_codes

if not cython.compiled:
    from symbolize.names.demangler import MAX_NAME
    from symbolize.names.itanium_lexer import MAX_LOOKUPS, CppLexer
    from symbolize.names.itanium_nodes import *
    from symbolize.names.rust import is_legacy

_MIN_NAME = cython.declare(cython.int, len("_Z1a"))
_NO_LIST = cython.declare(cython.int, -1)  # template arguments of which none has been read yet
_NO_WORD = cython.declare(cython.int, itanium_codes.NO_WORD)
_BUILTIN = cython.declare(list, itanium_codes.BUILTIN)
_BUILTIN_BEHIND_D = cython.declare(list, itanium_codes.BUILTIN_BEHIND_D)
_ELABORATED = cython.declare(dict, itanium_codes.ELABORATED)
_EXPRESSIONS = cython.declare(dict, itanium_codes.EXPRESSIONS)
_OPERATOR_NAMES = cython.declare(dict, itanium_codes.OPERATOR_NAMES)
_STD = cython.declare(cython.int, itanium_codes.word(b"std"))
_SPECIAL_NAMES = cython.declare(dict, itanium_codes.SPECIAL_NAMES)


@cython.final
@cython.cclass
class CppParser(CppLexer):
    """Makes the nodes of a name at a time."""

    def parse(self, name: bytes) -> cython.int:
        """The node of a whole name that starts with `_Z`; 0 if it is malformed, unknown or costs too much."""
        size = len(name)
        self.refused = size > MAX_NAME
        if size < _MIN_NAME or self.refused or name[0] != ord("_") or name[1] != ord("Z") or is_legacy(name):
            return 0
        self.load(name)
        self.reading = -1
        node = 0
        while not node and (self.reading < 0 or (self.ambiguous and not self.refused and self.reading < LAST_READING)):
            self.reading += 1
            node = self.parse_whole()
        return node

    def parse_whole(self) -> cython.int:
        """The same in one of the readings that a name may have (see `unresolved`)."""
        self.bad = self.refused = self.generic = self.forwarding = self.converting = self.ambiguous = self.leveled = (
            False
        )
        self.templated = self.special = False
        self.depth = self.lookups = self.quals = 0
        self.params = self.outer = self.forwards = self.last_name = self.substitutions = 0
        self.at = len(b"_Z")
        self.count = 4
        node = self.encoding(True)
        if self.at != self.size:
            self.suffix()
        return 0 if self.bad else node

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
            # Clang's attribute `enable_if`.
            self.at += 2
            self.slice()
            if self.text[self.at] != ord("I"):
                return self.fail()
            name = self.node(ENABLE_IF, name, self.arguments(False), 0)
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

    def special_name(self) -> cython.int:
        """What the compiler makes for a class, function or variable (5.1.4)."""
        group = self.text[self.at]
        letter = self.text[self.at + 1]
        self.at += 2
        if group == ord("T") and letter == ord("C"):
            # A vtable for the construction of a base.
            node = self.a_type()
            self.number()
            self.expect(ord("_"))
            return self.node(CONSTRUCTION, self.a_type(), node, 0)
        if group == ord("G") and letter == ord("R"):
            # The object that a reference with a name extends the life of; old names have a plain number.
            node = self.a_name(False)
            number = 0
            if self.text[self.at] and self.text[self.at] != ord("."):
                number = self.number() if self.text[self.size - 1] != ord("_") else self.sequence()
            return self.node(REFERENCE_TEMPORARY, self.node(NUMBER, number, 0, 0), node, 0)
        if group == ord("G") and letter == ord("T"):
            letter = self.text[self.at]
            self.at += 1
        recipe = _SPECIAL_NAMES.get(group << 8 | letter)
        if recipe is None:
            return self.fail()
        if letter in b"hv":
            self.at -= 1
            self.offset()
        elif letter == ord("c"):
            self.offset()
            self.offset()
        return self.make(recipe[0], recipe[1], recipe[2])

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
            self.at += 2
            node = self.node(BINDING, self.list(ord("E"), ord("s")), 0, 0)
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

    def structor(self, state: cython.bint) -> cython.int:
        """A constructor, one inherited from the class that follows, or a destructor."""
        tilde = self.word(b"~") if self.text[self.at] == ord("D") else 0
        byte = self.text[self.at + 1]
        self.at += 2
        if byte == ord("I") and not tilde:
            byte = self.text[self.at]
            self.at += 1
            self.a_type()
        if byte not in b"012345" or byte == (ord("3") if tilde else ord("0")) or not self.last_name:
            return self.fail()
        if state:
            self.special = True
        return self.node(STRUCTOR, tilde, self.last_name, 0)

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
            node = self.word(b'operator"" ' if byte == ord("l") else b"operator ")
            return self.node(PREFIXED, node, self.source_name(), 0)
        found = _OPERATOR_NAMES.get(byte << 8 | next_byte)
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
        self.ordinal()
        return self.word(b"{block}")

    def closure(self) -> cython.int:
        """The type of a lambda: its template parameters, constraints and parameters, `E` and a number."""
        head = 0
        generic, leveled = self.generic, self.leveled
        self.enter()
        self.generic = True
        self.leveled = False
        templates = self.declarations()
        if self.text[self.at] == ord("Q"):
            self.constraint()
        if not self.eat(ord("v")):
            while self.text[self.at] not in b"EQ" and not self.bad:
                head = self.append(head, self.a_type())
        if self.text[self.at] == ord("Q"):
            self.constraint()
        self.expect(ord("E"))
        self.generic, self.leveled = generic, leveled
        self.depth -= 1
        head = self.node(SIGNATURE, head, 0, 0)
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
                if self.ambiguous and self.reading != CLANG_READING and self.repeats(node):
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

    def local(self, state: cython.bint) -> cython.int:
        """`Z` a function `E` and what is in it, or `s` for a string literal."""
        params = self.params
        default = 0
        self.at += 1
        around = self.encoding(False)
        self.expect(ord("E"))
        if self.eat(ord("s")):
            self.discriminator()
            return self.node(LOCAL, around, self.word(b"string literal"), 0)
        # Parameters of templates are those of the entity, not those of what mentions it.
        self.params = 0
        if self.eat(ord("d")):
            default = self.node(NUMBER, self.ordinal() + 1, 0, 0)
        node = self.a_name(state)
        self.discriminator()
        if not state:
            self.params = params
        return self.node(LOCAL, around, node, default)

    def lookup(self, node: cython.int, index: cython.int) -> cython.int:
        """The template argument of an index in a list; 0 if there is none (yet)."""
        if node <= 0:
            return 0
        self.lookups += index + 1
        if self.lookups > MAX_LOOKUPS:
            return self.refuse()
        return self.item(node, index)

    def parameter(self) -> cython.int:
        """`T_`, `T0_` and so on: a template parameter.

        In constraints, also those of parameters, those of templates around the innermost one are `T_`, its own `TL0__`
        and so on.
        """
        node = 0
        kind = PARAMETER | PACKED | SHAPED
        level = 0
        self.at += 1
        if self.eat(ord("L")):
            level = self.number() + 1
            self.expect(ord("_"))
        index = self.ordinal()
        if not level and (self.forwarding or (self.leveled and not self.generic)):
            # The constraint of a parameter is not printed. What refers back to it may be of the innermost template.
            kind = FORWARD | PACKED | SHAPED | (not self.forwarding) << EXTRA
            self.forwards = node = self.node(kind, index, 0, self.forwards)
            return node
        if self.leveled and not level and self.outer:
            node = self.lookup(self.outer, index)
            kind |= 1 << EXTRA
        elif self.leveled or not level:
            node = self.lookup(self.params, index)
        if not node and not self.generic:
            return self.fail()
        return self.node(kind, index, node, 0)

    def arguments(self, state: cython.bint) -> cython.int:
        """`I` or `J`, template arguments, `E`; with `state` they are the arguments of parameters from here on."""
        head = 0
        last_name = self.last_name
        self.at += 1
        self.enter()
        if state:
            self.outer = self.params if self.params > 0 else 0
            self.params = _NO_LIST
        while self.text[self.at] != ord("E") and not self.bad:
            if self.text[self.at] == ord("Q"):
                self.constraint()
                break
            head = self.append(head, self.argument())
            if state:
                self.params = head
        self.expect(ord("E"))
        self.depth -= 1
        self.last_name = last_name
        return head

    def template(self, node: cython.int, state: cython.bint) -> cython.int:
        """The template arguments of a name that has been read."""
        node = self.join(TEMPLATE, node, self.arguments(state), 0)
        if state:
            self.templated = True
        return node

    def argument(self) -> cython.int:
        """A type, a value, an expression, or a pack of them, with the declaration of its parameter if that is given."""
        byte = self.text[self.at]
        if byte == ord("L"):
            return self.expression()
        if byte == ord("X"):
            self.at += 1
            node = self.expression()
            self.expect(ord("E"))
            return node
        if byte in b"IJ":
            node = self.arguments(False)
            return self.node(PACK | self.nodes[node] & PACKED, node, 0, 0)
        if self.at_declaration():
            leveled = self.leveled
            self.leveled = True
            self.declaration()
            self.leveled = leveled
            node = self.argument() if self.enter() else 0
            self.depth -= 1
            return node
        return self.a_type()

    def at_declaration(self) -> cython.bint:
        """Whether the declaration of a template parameter follows, and not the use of one."""
        return self.text[self.at] == ord("T") and self.text[self.at + 1] in b"ykntp"

    def declarations(self) -> cython.int:
        """The declarations of template parameters that follow."""
        head = 0
        while self.at_declaration() and not self.bad:
            head = self.append(head, self.declaration())
        return head

    def declaration(self) -> cython.int:
        """The declaration of a template parameter: a type, constrained or not, a value, a template, or a pack."""
        byte = self.text[self.at + 1]
        self.enter()
        self.at += 2
        if byte == ord("y"):
            node = self.node(TYPE_PARAMETER, 0, 0, 0)
        elif byte == ord("k"):
            node = self.join(TYPE_PARAMETER, self.a_name(False), 0, 0)
        elif byte == ord("n"):
            # Templates around the innermost one have been instantiated in the types of values, but not in constraints.
            leveled = self.leveled
            self.leveled = False
            node = self.join(VALUE_PARAMETER, self.a_type(), 0, 0)
            self.leveled = leveled
        elif byte == ord("p"):
            if not self.at_declaration():
                return self.fail()
            node = self.join(PACK_OF_PARAMETERS, self.declaration(), 0, 0)
        else:
            node = self.node(TEMPLATE_PARAMETER, self.declarations(), 0, 0)
            if self.text[self.at] == ord("Q"):
                self.constraint()
            self.expect(ord("E"))
        self.depth -= 1
        return node

    def constraint(self) -> cython.int:
        """`Q` an expression: a requires-clause."""
        generic = self.generic
        leveled = self.leveled
        self.at += 1
        self.generic = self.leveled = True
        node = self.expression()
        self.generic, self.leveled = generic, leveled
        return node

    def a_type(self) -> cython.int:
        """A type (5.1.5)."""
        byte = self.text[self.at]
        # Simple types first: they need no more.
        if ord("a") <= byte <= ord("z") and byte not in b"ru":
            node: cython.int = _BUILTIN[byte]
            if node < 0:
                return self.fail()
            self.at += 1
            return self.node(WORD, node, 0, 0)
        if not self.enter():
            return 0
        if byte == ord("S"):
            node = self.substituted_type()
        elif byte in b"PRO":
            self.at += 1
            kind = POINTER if byte == ord("P") else REFERENCE if byte == ord("R") else RVALUE_REFERENCE
            node = self.add(self.wrap(kind, self.a_type()))
        elif byte in b"KVr":
            node = self.add(self.qualified_type())
        elif byte == ord("U"):
            byte = self.text[self.at + 1]
            node = self.add(self.qualified_type() if ord("1") <= byte <= ord("9") else self.a_name(False))
        elif byte == ord("T"):
            node = self.parameter_type()
        elif byte == ord("D"):
            node = self.more_types()
        elif byte == ord("F"):
            node = self.add(self.function_type())
        elif byte == ord("A"):
            self.at += 1
            node = 0 if self.eat(ord("_")) else self.dimension()
            node = self.add(self.join(ARRAY | SHAPED, node, self.a_type(), 0))
        elif byte == ord("M"):
            self.at += 1
            node = self.add(self.join(MEMBER_POINTER | SHAPED, self.a_type(), self.a_type(), 0))
        elif byte in b"CG":
            self.at += 1
            node = self.a_type()
            node = self.add(
                self.join(SUFFIXED, node, self.word(b" _Complex" if byte == ord("C") else b" _Imaginary"), 0)
            )
        elif byte == ord("u"):
            self.at += 1
            node = self.slice()
            if self.text[self.at] == ord("I"):
                node = self.join(TRANSFORMED, node, self.arguments(False), 0)
            self.add(node)
        else:
            node = self.add(self.a_name(False))
        self.depth -= 1
        return node

    def wrap(self, kind: cython.int, node: cython.int) -> cython.int:
        """A pointer, reference or qualified type, which has two sides where what it is made of has."""
        return self.node(kind | self.nodes[node] & (PACKED | SHAPED), node, 0, 0)

    def substituted_type(self) -> cython.int:
        """A type that begins with `S`."""
        if self.text[self.at + 1] == ord("t"):
            return self.add(self.a_name(False))
        node = self.substitution()
        if self.kind(node) == MODULE:
            node = self.unqualified(False, 0, node)
            if self.text[self.at] != ord("I"):
                return self.add(node)
            self.add(node)
        return self.applied(node)

    def applied(self, node: cython.int) -> cython.int:
        """A type, with template arguments if they follow; else a pack does, which old releases of GCC begin with `I` as
        well."""
        kind = self.kind(node)
        if self.text[self.at] != ord("I"):
            return node
        if kind in (PARAMETER, FORWARD):
            # Behind the type of a conversion operator its own arguments follow.
            if self.converting:
                return node
            kind = self.kind(self.nodes[node + 2])
        return node if POINTER <= kind <= VECTOR or kind == TEMPLATE else self.add(self.template(node, False))

    def parameter_type(self) -> cython.int:
        """A template parameter, a template that is one, or a class with the word in front of it."""
        if ord("a") <= self.text[self.at + 1] <= ord("z"):
            found = _ELABORATED.get(self.text[self.at + 1])
            if found is None:
                return self.fail()
            self.at += 2
            node = self.node(WORD, found, 0, 0)
            return self.add(self.node(PREFIXED, node, self.a_name(False), 0))
        return self.applied(self.add(self.parameter()))

    def qualified_type(self) -> cython.int:
        """A type with qualifiers, all of which together are one candidate for back references."""
        arguments = 0
        start = self.at
        byte = self.text[self.at]
        if byte == ord("U"):
            self.at += 1
            name = self.slice()
            if self.text[self.at] == ord("I"):
                arguments = self.arguments(False)
            node = self.qualified_type() if self.enter() else 0
            self.depth -= 1
            return self.join(VENDOR_QUALIFIED, node, name, arguments)
        while byte in b"rVK":
            self.at += 1
            byte = self.text[self.at]
        if self.at > start and (byte == ord("F") or (byte == ord("D") and self.text[self.at + 1] in b"oOwx")):
            # Qualifiers of what the function is called for.
            self.at = start
            return self.function_type()
        quals = self.at
        node = self.a_type()
        while quals > start:
            quals -= 1
            byte = self.text[quals]
            node = self.wrap(QUALIFIED, node)
            self.nodes[node] |= (CONST if byte == ord("K") else VOLATILE if byte == ord("V") else RESTRICT) << EXTRA
        return node

    def function_type(self) -> cython.int:
        """Qualifiers, exception specification, `F`, the return type and the parameters, `E`."""
        head = 0
        exceptions = 0
        quals = self.qualifiers()
        byte = self.text[self.at + 1] if self.text[self.at] == ord("D") else 0
        if byte in b"oOw":
            self.at += 2
        if byte == ord("o"):
            exceptions = self.word(b" noexcept")
        elif byte == ord("O"):
            exceptions = self.join(ENCLOSED, self.word(b" noexcept("), self.expression(), 0)
            self.expect(ord("E"))
        elif byte == ord("w"):
            exceptions = self.join(ENCLOSED, self.word(b" throw("), self.list(ord("E"), ord("t")), 0)
        if self.text[self.at] == ord("D") and self.text[self.at + 1] == ord("x"):
            self.at += 2
            exceptions = self.join(SUFFIXED, self.word(b" transaction_safe"), exceptions, 0)
        self.expect(ord("F"))
        self.eat(ord("Y"))
        returned = self.a_type()
        while not self.eat(ord("E")) and not self.bad:
            byte = self.text[self.at]
            if byte == ord("v"):
                self.at += 1
            elif byte in b"RO" and self.text[self.at + 1] == ord("E"):
                quals |= LVALUE if byte == ord("R") else RVALUE
                self.at += 1
            else:
                head = self.append(head, self.a_type())
        return self.join(FUNCTION | SHAPED, returned, self.join(SIGNATURE | quals << EXTRA, head, 0, exceptions), 0)

    def dimension(self) -> cython.int:
        """A number or an expression, `_`."""
        node = self.digits() if ord("0") <= self.text[self.at] <= ord("9") else self.expression()
        self.expect(ord("_"))
        return node

    def decltype(self) -> cython.int:
        """`Dt` or `DT`, an expression, `E`."""
        self.at += 2
        # Clang 19 has no encoding for an element of a pack and leaves the expression out.
        node = self.expression() if self.text[self.at] != ord("E") else self.node(LIST, 0, 0, 0)
        self.expect(ord("E"))
        return self.join(ENCLOSED, self.word(b"decltype ("), node, 0)

    def more_types(self) -> cython.int:
        """Types that begin with `D`."""
        byte = self.text[self.at + 1]
        if byte in b"tT":
            return self.add(self.decltype())
        if byte in b"oOwx":
            return self.add(self.function_type())
        self.at += 2
        if byte == ord("p"):
            return self.add(self.node(EXPANSION, self.a_type(), 0, 0))
        if byte == ord("v"):
            return self.add(self.vector_type())
        if byte == ord("F"):
            return self.float_type()
        if byte in b"BU":
            node = self.word(b"_BitInt(" if byte == ord("B") else b"unsigned _BitInt(")
            return self.add(self.join(ENCLOSED, node, self.dimension(), 0))
        if byte in b"kK":
            node = self.a_name(False)
            return self.join(CONSTRAINED, node, self.word(b"auto" if byte == ord("k") else b"decltype(auto)"), 0)
        if byte == ord("y"):
            return self.add(self.join(SELECTED, self.a_type(), self.expression(), 0))
        found: cython.int = _BUILTIN_BEHIND_D[byte]
        return self.node(WORD, found, 0, 0) if found >= 0 else self.fail()

    def vector_type(self) -> cython.int:
        """Behind `Dv`: a number or an expression, `_`, the type of the elements, or `p` for pixels."""
        if ord("1") <= self.text[self.at] <= ord("9"):
            size = self.digits()
        else:
            self.eat(ord("_"))  # in front of an expression that begins with a digit
            size = self.expression()
        self.expect(ord("_"))
        of = self.word(b"pixel") if self.eat(ord("p")) else self.a_type()
        return self.join(VECTOR, of, size, 0)

    def expression(self) -> cython.int:
        """An expression."""
        byte = self.text[self.at]
        if byte == ord("L"):
            return self.literal()
        if not self.enter():
            return 0
        if byte == ord("T"):
            node = self.parameter()
            # A template that is a parameter, applied to arguments.
            if self.text[self.at] == ord("I"):
                node = self.template(node, False)
        elif ord("1") <= byte <= ord("9"):
            node = self.unresolved_component()
        elif byte == ord("f"):
            node = self.parameter_or_fold()
        else:
            recipe = _EXPRESSIONS.get(byte << 8 | self.text[self.at + 1])
            if recipe is None:
                node = self.other_expression()
            else:
                self.at += 2
                node = self.make(recipe[0], recipe[1], recipe[2])
        self.depth -= 1
        return node

    def make(self, kind: cython.int, fields: bytes, index: cython.int) -> cython.int:
        """A node by a recipe of `itanium_codes`, whose letters say what the fields are."""
        if kind == POSTFIX and self.eat(ord("_")):
            kind = UNARY
        node = self.node(kind, 0, 0, 0)
        for i in range(len(fields)):
            of: cython.uchar = fields[i]
            if of == ord("e"):
                field = self.expression()
            elif of == ord("w"):
                field = self.node(WORD, index, 0, 0)
            elif of == ord("t"):
                field = self.a_type()
            elif of == ord("n"):
                field = self.a_name(False)
            elif of == ord("f"):
                field = self.encoding(False)
            elif of == ord("u"):
                field = self.unresolved()
            elif of == ord("s"):
                field = self.source_name()
            elif of == ord("a"):
                field = self.argument()
            elif of == ord("m"):
                field = self.module(0)
            elif of == ord("o"):
                field = self.part()
            elif of == ord("."):
                field = self.word(b".")
            else:
                field = self.list(ord("E"), ord("a") if of == ord("A") else ord("e")) if of != ord("0") else 0
            self.nodes[node + 1 + i] = field
            self.nodes[node] |= self.nodes[field] & PACKED
        if kind in (EXPANSION, PACK_SIZE, LIST_SIZE, PREFIXED):
            self.nodes[node] = kind  # its packs are no others'
        return node

    def other_expression(self) -> cython.int:
        """Expressions that are not made by a recipe."""
        byte = self.text[self.at]
        letter = self.text[self.at + 1]
        if (byte == ord("s") and letter == ord("r")) or (byte in b"od" and letter == ord("n")):
            return self.unresolved()
        if byte == ord("u"):
            self.at += 1
            return self.join(TRANSFORMED, self.source_name(), self.list(ord("E"), ord("a")), 0)
        self.at += 2
        if byte == ord("c") and letter == ord("v"):
            node = self.a_type()
            if self.eat(ord("_")):
                return self.join(CAST, node, self.join(ARGUMENTS, self.list(ord("E"), ord("e")), 0, 0), 0)
            return self.join(CAST, node, self.expression(), 0)
        if byte == ord("g") and letter == ord("s"):
            letter = self.text[self.at]
            if letter == ord("n") or (letter == ord("d") and self.text[self.at + 1] != ord("n")):
                return self.join(UNARY, self.word(b"::"), self.expression(), 0)  # `::new` and `::delete`
            return self.join(UNARY, self.word(b"::"), self.unresolved(), 0)
        if byte == ord("t") and letter == ord("r"):
            return self.word(b"throw")
        if byte == ord("n") and letter in b"wa":
            return self.new(letter == ord("a"))
        if byte == ord("r") and letter in b"qQ":
            return self.requirements(letter == ord("Q"))
        return self.fail()

    def list(self, end: cython.uchar, of: cython.uchar) -> cython.int:
        """Expressions, `a` template arguments, `t` types or `s` identifiers up to a character."""
        head = 0
        while not self.eat(end) and not self.bad:
            if of == ord("e"):
                item = self.expression()
            elif of == ord("a"):
                item = self.argument()
            else:
                item = self.a_type() if of == ord("t") else self.source_name()
            head = self.append(head, item)
        return head

    def parameter_or_fold(self) -> cython.int:
        """`fp`, `fL`: a parameter of the function; `fl`, `fr`, `fL`, `fR`: a fold expression."""
        letter = self.text[self.at + 1]
        byte = self.text[self.at + 2]
        self.at += 2
        if letter == ord("p") or (letter == ord("L") and ord("0") <= byte <= ord("9")):
            if letter == ord("L"):
                self.number()
                self.expect(ord("p"))
            elif byte == ord("T"):
                self.at += 1
                return self.node(ARGUMENT, 0, 0, 0)
            self.qualifiers()
            return self.node(ARGUMENT, self.ordinal() + 1, 0, 0)
        found = _EXPRESSIONS.get(byte << 8 | self.text[self.at + 1])
        if found is None or found[2] == _NO_WORD or letter not in b"lrLR":
            return self.fail()
        self.at += 2
        operator = self.node(WORD, found[2], 0, 0)
        node = self.expression()
        if letter in b"LR":
            return self.join(FOLD, operator, node, self.expression())
        return self.node(FOLD | (LEFT_FOLD if letter == ord("l") else RIGHT_FOLD) << EXTRA, operator, node, 0)

    def new(self, array: cython.bint) -> cython.int:
        """Behind `nw` or `na`: placement arguments, `_`, a type, `pi` and an initializer, `E`."""
        initializer = 0
        placement = self.list(ord("_"), ord("e"))
        of = self.a_type()
        if self.text[self.at] == ord("p") and self.text[self.at + 1] == ord("i"):
            self.at += 2
            initializer = self.join(ARGUMENTS, self.list(ord("E"), ord("e")), 0, 0)
        elif self.text[self.at] == ord("i"):
            initializer = self.expression()
        else:
            self.expect(ord("E"))
        operator = self.word(b"new[] " if array else b"new ")
        return self.join(NEW, operator, self.join(SIGNATURE, placement, initializer, 0), of)

    def requirements(self, with_parameters: cython.bint) -> cython.int:
        """A requires expression: parameters, `_`, requirements, `E`."""
        head = 0
        parameters = self.list(ord("_"), ord("t")) if with_parameters else 0
        while not self.eat(ord("E")) and not self.bad:
            byte = self.text[self.at]
            self.at += 1
            if byte == ord("X"):
                node = self.expression()
                kind = NEEDS_EXPRESSION | self.eat(ord("N")) << EXTRA
                node = self.join(kind, node, self.a_name(False) if self.eat(ord("R")) else 0, 0)
            elif byte == ord("T"):
                node = self.join(NEEDS_TYPE, self.a_type(), 0, 0)
            elif byte == ord("Q"):
                node = self.join(NEEDS_CONSTRAINT, self.expression(), 0, 0)
            else:
                return self.fail()
            head = self.append(head, node)
        return self.join(REQUIRES, parameters, head, 0)

    def unresolved(self) -> cython.int:
        """A name that is looked up when the template is instantiated.

        By the ABI, and by Clang, `sr` goes with a type, or with scopes up to an `E`; `srN` with a type and scopes in it
        up to an `E`. None of the scopes can be referred back to. GCC writes a type behind `sr` whatever its name, which
        can be referred back to in all its parts. Names of both look alike, so they are read in more than one way until
        the rest of the name makes sense: `srN` as GCC's, then as Clang's; scopes up to an `E` as such, then as GCC's.
        """
        if self.text[self.at] == ord("g") and self.text[self.at + 1] == ord("s"):
            self.at += 2
            return self.join(UNARY, self.word(b"::"), self.unresolved(), 0)
        if self.text[self.at] != ord("s") or self.text[self.at + 1] != ord("r"):
            return self.unresolved_component()
        self.at += 2
        if self.text[self.at] == ord("N"):
            self.ambiguous = True
            if self.reading == CLANG_READING:
                self.at += 1
                return self.unresolved_in_scopes(self.a_type())
        elif ord("1") <= self.text[self.at] <= ord("9") and not self.bad:
            self.ambiguous = True
            at, count, last_name = self.at, self.count, self.last_name
            if self.reading != OLD_READING:
                substitutions = self.substitutions
                node = self.unresolved_in_scopes(self.unresolved_component())
                if not self.bad or self.refused:
                    return node
                self.bad = False
                self.substitutions = substitutions
            self.at, self.count, self.last_name = at, count, last_name
        node = self.a_type()
        return self.join(MEMBER, node, self.unresolved_component(), 0)

    def unresolved_in_scopes(self, node: cython.int) -> cython.int:
        """Scopes in the one given, `E`, and a name in them."""
        while ord("1") <= self.text[self.at] <= ord("9") and not self.bad:
            node = self.join(MEMBER, node, self.unresolved_component(), 0)
        self.expect(ord("E"))
        return self.join(MEMBER, node, self.unresolved_component(), 0)

    def unresolved_component(self) -> cython.int:
        """An identifier, `on` and an operator, or `dn` and a destructor, with template arguments if it has some."""
        byte = self.text[self.at]
        if byte == ord("o") and self.text[self.at + 1] == ord("n"):
            self.at += 2
            node = self.operator_name(False)
        elif byte == ord("d") and self.text[self.at + 1] == ord("n"):
            self.at += 2
            byte = self.text[self.at]
            node = self.unresolved_component() if ord("1") <= byte <= ord("9") else self.a_type()
            return self.join(PREFIXED, self.word(b"~"), node, 0)
        elif ord("1") <= byte <= ord("9"):
            node = self.source_name()
        else:
            return self.fail()
        if self.text[self.at] == ord("B"):
            node = self.tags(node)
        return self.template(node, False) if self.text[self.at] == ord("I") else node

    def literal(self) -> cython.int:
        """A number, null pointer, string, lambda, or the name of a function or object."""
        self.at += 1
        if self.text[self.at] == ord("_") and self.text[self.at + 1] == ord("Z"):
            self.at += 1
        if self.eat(ord("Z")):
            node = self.encoding(False)
            self.expect(ord("E"))
            return node
        node = self.a_type()
        if self.eat(ord("E")):
            if self.kind(node) == ARRAY:
                return self.join(STRING, node, 0, 0)
            return self.join(LAMBDA_VALUE, node, 0, 0) if self.kind(node) != WORD else node
        negative = self.eat(ord("n"))
        start = self.at
        byte = self.text[start]
        while ord("0") <= byte <= ord("9") or ord("a") <= byte <= ord("z") or byte == ord("_"):
            self.at += 1
            byte = self.text[self.at]
        if self.at == start:
            return self.fail()
        node = self.join(LITERAL | negative << EXTRA, node, self.node(NAME, start, self.at, 0), 0)
        self.expect(ord("E"))
        return node
