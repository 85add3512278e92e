"""A store in this process that fails as a test wants: what the libraries of stores raise, without a server."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event
from types import TracebackType
from typing import Any, Self

import pytest

RAISED: dict[str, Exception] = {
    "denied": PermissionError("Access Denied"),
    "no-bucket": FileNotFoundError("The specified bucket does not exist"),
    "overloaded": OSError(16, "Please reduce your request rate"),
    "breaks": ConnectionResetError("Server disconnected"),
    "stops": OSError("Response payload is not completed"),
    "down": ConnectionRefusedError("Could not connect to the endpoint"),
    "credentials": RuntimeError("Unable to locate credentials"),
}
"""What a request raises that fails so; a store that hangs or is slow does not answer."""

ROLES: dict[str, Callable[[str, str], bool]] = {
    "listing": lambda method, path: method == "ls" and path.startswith("/bucket/in"),
    "input": lambda method, path: method != "ls" and path.startswith("/bucket/in/"),
    "output": lambda method, path: path.startswith("/bucket/out"),
    "cache": lambda method, path: path.startswith("/bucket/tables"),
}
"""Which requests are for what."""


def hasty(has_failed: Callable[[], bool]) -> Callable[[float, Callable[[], Any]], Any]:
    """`call_within` for which the time is up once a request got no answer, however slow the machine is."""
    threads = ThreadPoolExecutor()

    def within(seconds: float, call: Callable[[], Any]) -> Any:
        future = threads.submit(call)
        while not wait([future], 0.05).done:
            if has_failed():
                raise TimeoutError(f"no answer in {seconds:g} s")
        return future.result()

    return within


class FailingStore:
    """The objects of `memory://`, in place of fsspec's own while the block lasts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from fsspec.implementations.memory import MemoryFileSystem

        self._monkeypatch = monkeypatch
        self._fails: Callable[[str, str], bool] = lambda method, path: False
        self._how = ""
        self._over = Event()
        self._waits = False
        self.system = MemoryFileSystem(skip_instance_cache=True)

        def request(method: str) -> Callable[..., Any]:
            made = getattr(MemoryFileSystem, method)

            def asked(system: Any, path: str, *arguments: Any, **options: Any) -> Any:
                self._answer(method, MemoryFileSystem._strip_protocol(path))
                return made(system, path, *arguments, **options)

            return asked

        for method in ("ls", "info", "_open", "pipe_file", "rm_file"):
            monkeypatch.setattr(MemoryFileSystem, method, request(method))

    def _answer(self, method: str, path: str) -> None:
        if self._how and self._fails(method, path):
            if self._how in RAISED:
                raise RAISED[self._how]
            self._waits = True
            self._over.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.system.store.clear()
        self.system.pseudo_dirs[:] = [""]

    def put(self, path: str, data: bytes) -> None:
        """Make an object."""
        self.system.pipe_file(path, data)

    def get(self, path: str) -> bytes:
        """The bytes of an object."""
        return bytes(self.system.cat_file(path))

    @contextmanager
    def failing(self, role: str, how: str) -> Iterator[None]:
        """While this lasts, requests of a role fail."""
        self._fails, self._how = ROLES[role], how
        with self._monkeypatch.context() as patched:
            patched.setattr("symbolize.storage.urls.call_within", hasty(lambda: self._waits))
            yield
        self._how = ""
        self._over.set()
