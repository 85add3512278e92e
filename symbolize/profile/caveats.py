"""What a reader of names has to know: comments of a profile that say which binaries are not proved."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from symbolize.profile.model import Profile

PREFIX: Final = b"not proved to be what ran: "
"""What such comments begin with."""


def caveats_of(profile: Profile) -> list[str]:
    """The sentences that came with a profile, or were made when it was symbolized."""
    texts = (profile.strings[number] for number in profile.comments)
    return [text.decode(errors="replace") for text in texts if text.startswith(PREFIX)]


def with_caveats(profile: Profile, caveats: Sequence[str]) -> Profile:
    """The profile with these sentences instead of earlier ones."""
    kept = [number for number in profile.comments if not profile.strings[number].startswith(PREFIX)]
    if len(kept) == len(profile.comments) and not caveats:
        return profile
    added = profile.strings.add_all([text.encode() for text in caveats]).tolist()
    return replace(profile, comments=[*kept, *added])
