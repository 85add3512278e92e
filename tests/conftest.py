"""What holds for all tests."""

import gc
import os
import signal
from collections.abc import Iterator

import pytest


def pytest_configure() -> None:
    """Commands that tests start keep their compiled modules, or each of thousands compiles them again."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    """Spare collections of garbage, of which a batch makes many, the hundred thousands of objects of the tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _children_hear_ctrl_c() -> Iterator[None]:
    """Processes that tests start have SIGINT's default disposition, also under `nohup` and in jobs of a CI.

    A signal that is ignored stays so in what a process starts; one that is caught, by whatever, does not.
    """
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: None)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands keep their symbol tables in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def _no_warning_of_a_slow_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are those of an installation with the compiled core, also where the tests run without it."""
    monkeypatch.setattr("symbolize.core.cursor.COMPILED", True)


@pytest.fixture(autouse=True)
def _no_folders_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the folders that a test names are searched."""
    for variable in ("PPROF_BINARY_PATH", "PERFETTO_BINARY_PATH", "ANDROID_PRODUCT_OUT"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands have the options that a test gives them."""
    monkeypatch.setenv("SYMBOLIZE_NO_CONFIG", "1")
