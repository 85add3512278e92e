"""Build ids as text."""

import pytest

from symbolize.binaries import IdKind, has_build_id, is_build_id, module_prefix, parse_build_id, same_build_id


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("ab12", True),
        ("AB12", True),
        ("0" * 38 + "01", True),
        ("f" * 128, True),
        ("f" * 130, False),
        ("f" * 129, False),
        ("abc", False),
        ("ab", False),
        ("", False),
        ("0000", False),
        ("../../etc", False),
        ("abcd/../", False),
        ("abcd\n", False),
        ("ａｂ12", False),
        ("٣٣٣٣", False),
        ("0xab12", False),
    ],
)
def test_is_build_id(text: str, valid: bool) -> None:
    """An even number of 4 to 128 ASCII hex digits, not all zero, is a build id; nothing else is."""
    assert is_build_id(text) is valid


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("abcd12", "abcd12", True),
        ("ABCD12", "abcd12", True),
        ("abcd12", "abcd1200000000", True),
        ("abcd10", "abcd100000", True),
        ("abcd12", "abcd13", False),
        ("abcd12", "abcd1201", False),
        ("abcd12", "00abcd12", False),
    ],
)
def test_same_build_id(a: str, b: str, same: bool) -> None:
    """Case and zeros at the end do not count, whichever of the two has them."""
    assert same_build_id(a, b) is same
    assert same_build_id(b, a) is same


GO_ID = "2-WExaB/cd_e/F0-1/xyz"
GUID = "00112233445566778899aabbccddeeff"


@pytest.mark.parametrize(
    ("text", "kind", "plain"),
    [
        ("ABCD12", IdKind.ELF, "abcd12"),
        ("0xabcd12", IdKind.ELF, "abcd12"),
        ("0XABCD12", IdKind.ELF, "abcd12"),
        ("00112233-4455-6677-8899-AABBCCDDEEFF", IdKind.ELF, GUID),
        (b"00112233445566778899aabbccddeeff".hex(), IdKind.ELF, GUID),
        (GO_ID, IdKind.GO, GO_ID),
        (GO_ID.encode().hex(), IdKind.GO, GO_ID),
        (GO_ID.encode().hex().upper(), IdKind.GO, GO_ID),
        ("htlhash:ABCD", IdKind.HASH, "htlhash:abcd"),
        (GUID + "0", IdKind.MODULE, GUID.upper() + "0"),
        (b"00112233445566778899AABBCCDDEEFF0".hex(), IdKind.MODULE, GUID.upper() + "0"),
        (GUID + "1", IdKind.FOREIGN, GUID.upper() + "1"),
        (GUID + "12f", IdKind.FOREIGN, GUID.upper() + "12F"),
        ("{00112233-4455-6677-8899-AABBCCDDEEFF}1", IdKind.FOREIGN, GUID.upper() + "1"),
        ("00112233-4455-6677-8899-aabbccddeeff-1", IdKind.FOREIGN, GUID.upper() + "1"),
    ],
)
def test_spellings(text: str, kind: IdKind, plain: str) -> None:
    """An id is known by its bytes, whatever its spelling, and has one here (R451, spellings of build ids)."""
    found = parse_build_id(text)
    assert found is not None
    assert (found.kind, found.text) == (kind, plain)
    assert same_build_id(text, plain)
    assert parse_build_id(plain) == found


@pytest.mark.parametrize(
    "text", ["", "abc", "0x", "zz12", "0000", "../../etc", "ab cd", "f" * 130, "a/b/c", GUID + "00g", "0" * 32 + "1"]
)
def test_no_spelling(text: str) -> None:
    """What spells no id is none."""
    assert parse_build_id(text) is None


FULL = "0123456789abcdef0123456789abcdef01234567"
MODULE = "67452301AB89EFCD0123456789ABCDEF0"


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        (MODULE, FULL[:32]),
        (MODULE.lower(), FULL[:32]),
        (MODULE[:32], ""),
        (MODULE[:32] + "1", ""),
        (MODULE + "0", ""),
        (FULL, ""),
        ("g" * 32 + "0", ""),
    ],
)
def test_module_ids(text: str, prefix: str) -> None:
    """33 digits with a zero behind tell the first 16 bytes of a build id, their numbers in the other byte order
    (rule R240)."""
    assert module_prefix(text) == prefix


@pytest.mark.parametrize(
    ("build_id", "module", "same"),
    [
        (FULL, MODULE, True),
        (FULL.upper(), MODULE.lower(), True),
        (FULL[:32], MODULE, True),
        (FULL[:32] + "ffffffff", MODULE, True),
        (FULL[:30] + "ee01234567", MODULE, False),
        ("0123456789abcdef", "67452301AB89EFCD" + "0" * 17, True),
        ("0123456789abcdef01", "67452301AB89EFCD" + "0" * 17, False),
        ("", MODULE, False),
        (MODULE, MODULE.lower(), True),
        (MODULE, "7" + MODULE[1:], False),
    ],
)
def test_module_ids_are_those_of_builds(build_id: str, module: str, same: bool) -> None:
    """A module id agrees with all build ids that begin with its 16 bytes, or are those without the zeros at their end
    (rule R240). Other ids of 16 bytes are no beginnings."""
    assert same_build_id(build_id, module) is same
    assert same_build_id(module, build_id) is same
    assert not same_build_id(FULL, FULL[:32])


@pytest.mark.parametrize(
    ("found", "wanted", "has"),
    [
        ("abcd12", "abcd12", True),
        ("abcd12", "ABCD1200", True),
        ("abcd13", "abcd12", False),
        ("abcd12", "", False),
        (None, "", True),
        (None, "abcd12", False),
        ("0000", "", True),
        ("0000", "abcd12", False),
        ("ab", "", True),
        ("ab", "abcd12", False),
    ],
)
def test_files_that_have_a_build_id(found: str | None, wanted: str, has: bool) -> None:
    """A file has the build id that is wanted of it, and where none is wanted, none that is one."""
    assert has_build_id(found, wanted) is has
