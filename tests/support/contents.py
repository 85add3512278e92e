"""Contents of inputs that come in given pieces."""

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from symbolize.formats.content import Content
from symbolize.formats.model import DEFAULTS, LoadedProfile, LoadOptions
from symbolize.profile.model import Profile

Reader = Callable[[Content, LoadOptions], list[LoadedProfile]]


class Pieces:
    """A content named `x` that comes in these pieces, however small."""

    name = "x"

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    def pieces(self, *, is_recording: bool = False) -> Iterator[bytes]:
        """The pieces, once."""
        return iter(self._pieces)

    def whole(self) -> memoryview:
        """All pieces together."""
        return memoryview(b"".join(self._pieces))


def read_pieces(read: Reader, pieces: Iterable[bytes], options: LoadOptions = DEFAULTS) -> Profile:
    """The only profile that a reader gives for these pieces."""
    (loaded,) = read(cast(Content, Pieces(pieces)), options)
    return loaded.make()
