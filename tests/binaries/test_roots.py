"""Folders of binaries that the environment names."""

import gzip
import os
from pathlib import Path

import pytest

from symbolize.binaries import roots_from_environment
from symbolize.cli import main
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.messages import profile_pb2

PROFILE = FIXTURES / "profiles/gperftools/ledger-gcc-pie.prof"


def test_lists_of_folders(tmp_path: Path) -> None:
    """PPROF_BINARY_PATH and PERFETTO_BINARY_PATH are lists, ANDROID_PRODUCT_OUT has `symbols`; each folder once."""
    for name in ("a", "b", "c", "out/symbols"):
        (tmp_path / name).mkdir(parents=True)
    a, b, c, missing = (str(tmp_path / name) for name in ("a", "b", "c", "missing"))
    environment = {
        "PPROF_BINARY_PATH": os.pathsep.join((a, "", missing, b)),
        "PERFETTO_BINARY_PATH": os.pathsep.join((b, c)),
        "ANDROID_PRODUCT_OUT": str(tmp_path / "out"),
        "HOME": a,
    }
    roots, notes = roots_from_environment(environment)
    assert roots == [a, b, c, str(tmp_path / "out/symbols")]
    assert notes == [f"PPROF_BINARY_PATH: {missing}: no such folder or file, not searched"]
    assert roots_from_environment({}) == ([], [])
    assert roots_from_environment({"ANDROID_PRODUCT_OUT": a})[1] != []


@pytest.mark.parametrize("variable", ["PPROF_BINARY_PATH", "PERFETTO_BINARY_PATH"])
def test_command(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command searches them after those of --binaries, and without --binaries too; missing ones are told at -v."""
    monkeypatch.setenv(variable, os.pathsep.join((str(tmp_path / "missing"), str(BINARIES / "gcc-pie"))))
    out = tmp_path / "out.pb.gz"
    for arguments in ([], ["-b", str(tmp_path)], ["-v"]):
        assert main([str(PROFILE), "-o", str(out), *arguments]) == 0
        message = profile_pb2.Profile.FromString(gzip.decompress(out.read_bytes()))
        assert len(message.function) > 20
        assert (f"{variable}: {tmp_path}/missing: no such folder" in capsys.readouterr().err) == ("-v" in arguments)
