"""What the letters of Itanium C++ linkage names stand for: words, and how expressions and special names are read.

Itanium C++ ABI: 5.1.3 Operator Encodings, 5.1.4 Other Special Functions and Entities, 5.1.5 Type Encodings and
Compression, 5.1.6 Expressions.
"""

from __future__ import annotations

import threading

from symbolize.names.itanium_nodes import *

WORDS: list[bytes] = []
"""The texts of `WORD` nodes."""
PLACES: dict[bytes, int] = {}
"""Where each text is in `WORDS`."""
NO_WORD = -1
_LOCK = threading.Lock()


def word(text: bytes) -> int:
    """The index of a text of the language in `WORDS`."""
    with _LOCK:
        if text not in PLACES:
            WORDS.append(text)
            PLACES[text] = len(WORDS) - 1
    return PLACES[text]


def _pair(code: bytes) -> int:
    """Two letters as the number that they are looked up by."""
    return code[0] << 8 | code[1]


_BUILTIN = {
    b"a": b"signed char", b"b": b"bool", b"c": b"char", b"d": b"double", b"e": b"long double", b"f": b"float",
    b"g": b"__float128", b"h": b"unsigned char", b"i": b"int", b"j": b"unsigned int", b"l": b"long",
    b"m": b"unsigned long", b"n": b"__int128", b"o": b"unsigned __int128", b"s": b"short", b"t": b"unsigned short",
    b"v": b"void", b"w": b"wchar_t", b"x": b"long long", b"y": b"unsigned long long", b"z": b"...",
}  # fmt: skip
_BEHIND_D = {
    b"d": b"decimal64", b"e": b"decimal128", b"f": b"decimal32", b"h": b"half", b"i": b"char32_t", b"s": b"char16_t",
    b"u": b"char8_t", b"a": b"auto", b"c": b"decltype(auto)", b"n": b"decltype(nullptr)",
}  # fmt: skip
_CHARACTERS = b"char, std::char_traits<char>"
# The abbreviated text, and in front of a constructor or destructor the name of the class and its template arguments.
_ABBREVIATIONS = {
    b"a": (b"std::allocator", b"allocator", b""),
    b"b": (b"std::basic_string", b"basic_string", b""),
    b"s": (b"std::string", b"basic_string", _CHARACTERS + b", std::allocator<char>"),
    b"i": (b"std::istream", b"basic_istream", _CHARACTERS),
    b"o": (b"std::ostream", b"basic_ostream", _CHARACTERS),
    b"d": (b"std::iostream", b"basic_iostream", _CHARACTERS),
}
_ABBREVIATED = {
    letter: (word(text), word(name), word(b"std::" + name), word(arguments) if arguments else NO_WORD)
    for letter, (text, name, arguments) in _ABBREVIATIONS.items()
}
_LETTERS = [bytes([i]) for i in range(256)]
BUILTIN = [word(_BUILTIN[i]) if i in _BUILTIN else NO_WORD for i in _LETTERS]
BUILTIN_BEHIND_D = [word(_BEHIND_D[i]) if i in _BEHIND_D else NO_WORD for i in _LETTERS]
ABBREVIATED = [_ABBREVIATED.get(i) for i in _LETTERS]
"""The words of the text, of the class, of the class with its scope, and of the arguments."""
ELABORATED = {ord("s"): word(b"struct "), ord("u"): word(b"union "), ord("e"): word(b"enum ")}

_OPERATORS = {
    _pair(code): text
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
OPERATOR_NAMES = {code: word(b"operator" + b" " * text[:1].isalpha() + text) for code, text in _OPERATORS.items()}

# A recipe: the kind of a node, what its fields are by the letters of `CppParser.make`, and the word that a `w` is.
_OF_OPERATORS = (
    (UNARY, b"we", b"ps ng ad de co nt"),
    (BINARY, b"wee", b"pl mi ml dv rm an or eo aS pL mI mL dV rM aN oR eO"),
    (BINARY, b"wee", b"ls rs lS rS eq ne lt gt le ge ss aa oo cm pm"),
    (POSTFIX, b"we", b"pp mm"),
)
_SPELLED = (
    (UNARY, b"we", b"dl", b"delete "), (UNARY, b"we", b"da", b"delete[] "), (UNARY, b"we", b"te", b"typeid "),
    (UNARY, b"we", b"sz", b"sizeof "), (UNARY, b"we", b"az", b"alignof "), (UNARY, b"we", b"tw", b"throw "),
    (UNARY, b"we", b"aw", b"co_await "), (UNARY | 1 << EXTRA, b"we", b"nx", b"noexcept"),
    (UNARY | 1 << EXTRA, b"wt", b"st", b"sizeof "), (UNARY, b"wt", b"at", b"alignof "),
    (UNARY, b"wt", b"ti", b"typeid "), (BINARY, b"wee", b"ds", b".*"), (BINARY, b"weu", b"dt", b"."),
    (BINARY, b"weu", b"pt", b"->"), (NAMED_CAST, b"wte", b"dc", b"dynamic_cast"),
    (NAMED_CAST, b"wte", b"sc", b"static_cast"), (NAMED_CAST, b"wte", b"cc", b"const_cast"),
    (NAMED_CAST, b"wte", b"rc", b"reinterpret_cast"),
)  # fmt: skip
_WITHOUT_WORD = (
    (INDEX, b"ee", b"ix"), (CONDITION, b"eee", b"qu"), (CALL, b"el", b"cl"), (CALL, b"ul", b"cp"),
    (BRACED, b"tl", b"tl"), (BRACED, b"0l", b"il"), (DESIGNATED, b".se", b"di"), (DESIGNATED, b"0ee", b"dx"),
    (DESIGNATED_RANGE, b"eee", b"dX"), (EXPANSION, b"e", b"sp"), (PACK_SIZE, b"e", b"sZ"), (LIST_SIZE, b"A", b"sP"),
    (SELECTED, b"ee", b"sy"), (SUBOBJECT, b"teo", b"so"),
)  # fmt: skip
EXPRESSIONS = {
    _pair(code): (kind, fields, word(_OPERATORS[_pair(code)]))
    for kind, fields, codes in _OF_OPERATORS
    for code in codes.split()
}
EXPRESSIONS |= {_pair(code): (kind, fields, word(text)) for kind, fields, code, text in _SPELLED}
EXPRESSIONS |= {_pair(code): (kind, fields, NO_WORD) for kind, fields, code in _WITHOUT_WORD}
SPECIAL_NAMES = {
    _pair(code): (PREFIXED, b"w" + of, word(text))
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
