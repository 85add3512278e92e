"""Tasks for tests of the batch engines, importable by worker processes."""

import ctypes
import mmap
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from symbolize.core.errors import InputError
from symbolize.storage.urls import wait_for


def double(number: int) -> int:
    """Twice `number`."""
    return 2 * number


def kill_self(number: int = signal.SIGKILL) -> None:
    """Die of a signal."""
    os.kill(os.getpid(), number)


def kill_self_once(marker: str) -> str:
    """Die of SIGKILL, but not when tried again."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "alive"
    os.kill(os.getpid(), signal.SIGKILL)
    return "unreachable"


def wait_for_store(seconds: float) -> str:
    """Wait for a store that answers after so many seconds."""
    try:
        return wait_for(60, lambda: time.sleep(seconds) or "answered")  # type: ignore[func-returns-value]
    except TimeoutError as error:
        return str(error)


def leave(status: int) -> None:
    """End the worker without a word."""
    os._exit(status)


def sleep(seconds: float) -> float:
    """Wait."""
    time.sleep(seconds)
    return seconds


def process_after(seconds: float) -> int:
    """Wait; the number of the worker's process."""
    time.sleep(seconds)
    return os.getpid()


def refuse_to_start() -> None:
    """End a worker before its first task."""
    os._exit(1)


def sleep_natively(seconds: int) -> None:
    """Wait in native code that keeps the interpreter's lock."""
    ctypes.PyDLL(None).sleep(seconds)


def note_and_sleep_natively(path: str) -> None:
    """Write the worker's process id to `path`, then be stuck in native code."""
    Path(path + ".new").write_text(str(os.getpid()))
    os.rename(path + ".new", path)
    sleep_natively(1000)


def allocate(size: int) -> int:
    """Touch `size` bytes of private memory."""
    return len(bytearray(size))


def read_mapped(path: str) -> int:
    """Touch every page of a mapped file."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        return sum(data[at] for at in range(0, len(data), 4096)) + len(data)


def fail(argument: str) -> None:
    """Raise an error with more than one line."""
    if argument == "input":
        raise InputError("a.pb.gz", "cut off", 12)
    raise ValueError(f"first\nsecond {argument}")


def exit_politely(_: Any) -> None:
    """Raise SystemExit."""
    sys.exit(3)


def unpicklable(_: Any) -> Any:
    """A value that cannot travel."""
    return lambda: None
