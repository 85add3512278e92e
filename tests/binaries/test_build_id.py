"""Build ids as text."""

import pytest

from symbolize.binaries import has_build_id, is_build_id, module_prefix, same_build_id


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
