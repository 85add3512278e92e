"""The v0 scheme: rust-demangler's parser and printer with the parts replaced that give wrong text.

Release 1.0 of rust-demangler swallows its own errors, prints lifetimes as numbers, rejects every ABI but "C",
writes `{closure:#0}`, forgets the `::` of a path in a back reference, decodes Punycode in module globals (two
threads mix up their names), reads past the end and follows back references without a limit. What is right is
inherited.
"""

from __future__ import annotations

from typing import Any

from rust_demangler import rust_v0

# A path of a real program takes some hundred steps; back references can ask for an exponential number.
_MAX_STEPS = 50_000
_MAX_LIFETIMES = 256
_NAMESPACES = {"C": "closure", "S": "shim"}
_CHAR_ESCAPES = {"\t": "\\t", "\r": "\\r", "\n": "\\n", "'": "\\'", "\\": "\\\\"}


class InvalidNameError(ValueError):
    """The name breaks the v0 grammar or a limit."""


def demangle(name: str, generics: bool, max_output: int) -> str:
    """Demangle a name that starts with `_R`; a vendor suffix (`.llvm.…`, R116) is ignored. Raises on a bad name."""
    path = name[2:].partition(".")[0].partition("$")[0]
    parser = _Parser(path, 0)
    printer = _Printer(parser, "", 0, _Budget(generics, max_output))
    printer.print_path(True)
    if parser.peek().isupper():
        # The crate that instantiated a generic function.
        parser.skip_path()
    if parser.next_val != len(path):
        raise InvalidNameError(name)
    return printer.out


class _Budget:
    """What all printers of one name share."""

    def __init__(self, generics: bool, max_output: int) -> None:
        self.generics = generics
        self.max_output = max_output
        self.steps = _MAX_STEPS

    def spend(self, printed: str) -> None:
        self.steps -= 1
        if self.steps < 0 or len(printed) > self.max_output:
            raise InvalidNameError("too large")


class _Identifier(rust_v0.Ident):  # type: ignore[misc]
    def try_small_punycode_decode(self) -> str | None:
        if not self.punycode:
            return None
        encoded = f"{self.ascii}-{self.punycode}" if self.ascii else self.punycode
        self.disp += encoded.encode("ascii").decode("punycode")
        return "Ok"


class _Parser(rust_v0.Parser):  # type: ignore[misc]
    def peek(self) -> str:
        return str(self.inn[self.next_val : self.next_val + 1])

    def next_func(self) -> str:
        character = self.peek()
        if not character:
            raise InvalidNameError(self.inn)
        self.next_val += 1
        return character

    def digit_62(self) -> int:
        if not self.peek().isalnum():
            raise InvalidNameError(self.inn)
        return int(super().digit_62())

    def ident(self) -> _Identifier:
        identifier = super().ident()
        return _Identifier(identifier.ascii, identifier.punycode)

    def backref(self) -> _Parser:
        return _Parser(self.inn, super().backref().next_val)


class _Printer(rust_v0.Printer):  # type: ignore[misc]
    out: str
    bound_lifetime_depth: int

    def __init__(self, parser: _Parser, out: str, bound: int, budget: _Budget) -> None:
        super().__init__(parser, out, bound)
        self.budget = budget

    def invalid(self) -> None:
        raise InvalidNameError(self.parser.inn)

    def parser_macro(self, method: str) -> Any:
        if method == "opt_integer_62('G')":
            return self.parser.opt_integer_62("G")
        return getattr(self.parser, method)()

    def backref_printer(self) -> _Printer:
        return _Printer(self.parser.backref(), self.out, self.bound_lifetime_depth, self.budget)

    def print_type(self) -> None:
        self.budget.spend(self.out)
        super().print_type()

    def print_path(self, in_value: bool) -> None:
        self.budget.spend(self.out)
        if self.eat("N"):
            self._print_nested(in_value)
        elif self.eat("I"):
            self.print_path(in_value)
            self.out += "::<" if in_value else "<"
            self._print_generic_args()
            self.out += ">"
        elif self.eat("B"):
            referred = self.backref_printer()
            referred.print_path(in_value)
            self.out = referred.out
        else:
            super().print_path(in_value)

    def _print_nested(self, in_value: bool) -> None:
        namespace = self.parser.namespace()
        self.print_path(in_value)
        disambiguator = self.parser.disambiguator()
        identifier = self.parser.ident()
        identifier.display()
        if namespace:
            kind = _NAMESPACES.get(namespace, namespace)
            self.out += f"::{{{kind}{':' if identifier.disp else ''}{identifier.disp}#{disambiguator}}}"
        elif identifier.disp:
            self.out += "::" + identifier.disp

    def _print_generic_args(self) -> None:
        before = self.out
        self.print_sep_list("print_generic_arg", ", ")
        if not self.budget.generics:
            self.out = before

    def print_generic_arg(self) -> None:
        self.budget.spend(self.out)
        super().print_generic_arg()

    def print_path_maybe_open_generics(self) -> bool:
        self.budget.spend(self.out)
        if self.eat("B"):
            referred = self.backref_printer()
            opened = referred.print_path_maybe_open_generics()
            self.out = referred.out
            return bool(opened)
        if self.eat("I"):
            self.print_path(False)
            self.out += "<"
            self._print_generic_args()
            return True
        self.print_path(False)
        return False

    def print_dyn_trait(self) -> None:
        opened = self.print_path_maybe_open_generics()
        before = self.out
        while self.eat("p"):
            self.out += ", " if opened else "<"
            opened = True
            identifier = self.parser.ident()
            identifier.display()
            self.out += identifier.disp + " = "
            self.print_type()
        if not self.budget.generics:
            self.out = before if before.endswith("<") or not opened else before + "<"
        if opened:
            self.out += ">"

    def print_lifetime_from_index(self, index: int) -> None:
        if index == 0:
            self.out += "'_"
            return
        depth = self.bound_lifetime_depth - index
        if depth < 0:
            self.invalid()
        self.out += f"'{chr(ord('a') + depth)}" if depth < 26 else f"'_{depth}"

    def in_binder(self, val: int) -> None:
        count = self.parser.opt_integer_62("G")
        if count > _MAX_LIFETIMES:
            self.invalid()
        outer = self.bound_lifetime_depth
        if count:
            self.out += "for<"
            for index in range(count):
                self.out += ", " if index else ""
                self.bound_lifetime_depth += 1
                self.print_lifetime_from_index(1)
            self.out += "> "
        if val == 1:
            self._print_function_type()
        else:
            self.print_sep_list("print_dyn_trait", " + ")
        self.bound_lifetime_depth = outer

    def _print_function_type(self) -> None:
        if self.eat("U"):
            self.out += "unsafe "
        if self.eat("K"):
            if self.eat("C"):
                abi = "C"
            else:
                identifier = self.parser.ident()
                if not identifier.ascii or identifier.punycode:
                    self.invalid()
                abi = identifier.ascii.replace("_", "-")
            self.out += f'extern "{abi}" '
        self.out += "fn("
        self.print_sep_list("print_type", ", ")
        self.out += ")"
        if not self.eat("u"):
            self.out += " -> "
            self.print_type()

    def print_const(self) -> None:
        self.budget.spend(self.out)
        if self.eat("B"):
            referred = self.backref_printer()
            referred.print_const()
            self.out = referred.out
        else:
            super().print_const()

    def print_const_char(self) -> None:
        character = chr(int(self.parser.hex_nibbles(), 16))
        if character in _CHAR_ESCAPES:
            self.out += f"'{_CHAR_ESCAPES[character]}'"
        elif " " <= character <= "~":
            self.out += f"'{character}'"
        else:
            self.out += f"'\\u{{{ord(character):x}}}'"
