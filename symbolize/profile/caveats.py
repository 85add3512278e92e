"""What a reader of names has to know: comments of a profile that say which binaries are not proved."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from symbolize.core.errors import printable
from symbolize.profile.model import Profile

NOT_PROVED: Final = "not proved to be what ran: "
"""What such comments begin with."""


def caveats_of(profile: Profile) -> list[str]:
    """The sentences that came with a profile, or were made when it was symbolized."""
    return [profile.strings.text(row) for row in profile.comments if is_caveat(profile, row)]


def is_caveat(profile: Profile, row: int) -> bool:
    """Whether a comment, given by its row among the strings, is such a sentence."""
    return profile.strings[row].startswith(NOT_PROVED.encode())


def with_caveats(profile: Profile, caveats: Sequence[str], *, keeps_earlier: bool) -> Profile:
    """The profile with these sentences, beside earlier ones or instead of them."""
    earlier = set() if keeps_earlier else {row for row in profile.comments if is_caveat(profile, row)}
    if not earlier and not caveats:
        return profile
    added = profile.strings.add_all([printable(text).encode() for text in caveats]).tolist()
    kept = [each for each in profile.comments if each not in earlier and each not in added]
    return replace(profile, comments=[*kept, *added])
