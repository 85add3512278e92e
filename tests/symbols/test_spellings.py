"""The names by which a function is known."""

from symbolize.symbols import Function, name_key
from symbolize.symbols.functions import spellings


def test_linkage_table() -> None:
    """A sample in the entry of a linkage table is in a call of that function (R263, names of PLT entries)."""
    called = Function(b"_ZN3Box3putEi", b"Box::put", b"", 0)
    assert name_key(called) in spellings([b"_ZN3Box3putEi@plt"])
    assert name_key(Function(b"", b"LockSemaphoreInfo", b"", 0)) in spellings([b"LockSemaphoreInfo@plt"])
    assert name_key(called) not in spellings([b"_ZN3Box3getEi@plt"])
