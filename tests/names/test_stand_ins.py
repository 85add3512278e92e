"""R452, stand-ins: which texts stand in for names, and what they say."""

import random
from pathlib import Path

import pytest

from symbolize.core.string_array import StringArray
from symbolize.names.stand_ins import StandIn, stand_in, stand_ins

TABLE = Path(__file__).parent / "stand_ins.tsv"
NAMES = """
main operator+ operator() a::b+0x6 f<int>+0x5 (anonymous)::f std::ops::add <alloc::vec::Vec<T>>::drop f[abi:cxx11] x+y
fun_1 fun_add sub_face func unknown_thing unknownX nullptr missing no deadbeef 0xyz 4a 1.5 $d $x
lambda$0 <lambda> <init> Foo$$Lambda+0x00007f1234567890 LambdaForm$MH+0x0000000800c03000 f(int)+0x5
main_[k] _[k] face decaf4
[GC] [app] [truncated] [[] (root) (program) ./a.js /a/b.py py::f:/x.py /usr/bin/python3 Foo.bar runtime.mcall _start
a@plt memcpy@GLIBC_2.2.5 unix`trap+0x2c7 ntdll!RtlUserThreadStart+0x21 map!sub_face!x map!sub_add2s
"""


def spellings() -> list[tuple[str, StandIn]]:
    """The spellings of the table and what each says."""
    found = []
    for line in TABLE.read_text().splitlines():
        if not line.startswith("#"):
            text, _, module, build_id, offset, note = line.split("\t")
            number = int(offset, 16) if offset else None
            start, number = (number or 0, None) if note == "function" else (0, number)
            said = StandIn(module.encode(), build_id.encode(), number, note == "bytes", note == "maybe", start)
            found.append((text, said))
    return found


@pytest.mark.parametrize(("text", "said"), spellings())
def test_spellings(text: str, said: StandIn) -> None:
    """Each spelling is known, with what it says of module, build and offset."""
    assert stand_in(text.encode()) == said


@pytest.mark.parametrize("text", NAMES.split())
def test_names(text: str) -> None:
    """What a function may well be called is a name."""
    assert stand_in(text.encode()) is None


def test_many_at_once() -> None:
    """Those of many texts are found as one by one."""
    texts = [text.encode() for text in (*(text for text, _ in spellings()), *NAMES.split(), "", "un", "f" * 2000)]
    random.Random(1).shuffle(texts)
    expected = {row: found for row, text in enumerate(texts) if (found := stand_in(text)) is not None}
    assert len(expected) > 40
    assert dict(stand_ins(StringArray.of(texts))) == expected
    assert dict(stand_ins(StringArray.of([b"", b""]))) == {}
    assert dict(stand_ins(StringArray.of([]))) == {}
