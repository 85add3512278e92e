"""Build ids as text."""

import pytest

from symbolize.binaries import is_build_id, same_build_id


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
