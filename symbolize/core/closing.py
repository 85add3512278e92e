"""What has to be closed, as a context manager."""

from abc import abstractmethod
from typing import Self


class Closeable:
    """A base for what `close` ends: the end of a `with` block closes it."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
