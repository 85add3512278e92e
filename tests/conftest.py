"""What holds for all tests."""

import pytest


@pytest.fixture(autouse=True)
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands keep their symbol tables in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def _no_warning_of_a_slow_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are those of an installation with the compiled core, also where the tests run without it."""
    monkeypatch.setattr("symbolize.cursor.COMPILED", True)


@pytest.fixture(autouse=True)
def _no_folders_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the folders that a test names are searched."""
    for variable in ("PPROF_BINARY_PATH", "PERFETTO_BINARY_PATH", "ANDROID_PRODUCT_OUT"):
        monkeypatch.delenv(variable, raising=False)
