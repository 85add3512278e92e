"""The committed constants and descriptors are those that the schemas give."""

import runpy
from pathlib import Path

import pytest

from tests.support.tools import package

ROOT = Path(__file__).resolve().parents[1]
COMMITTED = {
    ".binpb": ROOT / "protos",
    "_tags.py": ROOT / "symbolize" / "proto",
    "_tags.pxi": ROOT / "symbolize" / "proto",
}


@pytest.mark.parametrize("suffix", COMMITTED)
def test_committed_files_are_current(tmp_path: Path, suffix: str) -> None:
    """Generating them anew changes nothing."""
    package("grpc_tools")
    runpy.run_path(str(ROOT / "protos" / "generate.py"))["generate"](tmp_path, tmp_path)
    generated = {path.name: path.read_bytes() for path in tmp_path.glob(f"*{suffix}")}
    assert generated
    assert generated == {path.name: path.read_bytes() for path in COMMITTED[suffix].glob(f"*{suffix}")}
