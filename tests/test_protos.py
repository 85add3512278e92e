"""The committed protobuf modules and constants are those that the schemas give."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMMITTED = ROOT / "symbolize" / "proto"


@pytest.mark.parametrize("suffix", ["_pb2.py", "_pb2.pyi", "_tags.py", "_tags.pxi"])
def test_committed_modules_are_current(tmp_path: Path, suffix: str) -> None:
    """Generating them anew changes nothing but the compiler's version."""
    pytest.importorskip("grpc_tools")
    runpy.run_path(str(ROOT / "protos" / "generate.py"))["generate"](tmp_path)
    generated = {path.name: meaningful(path) for path in tmp_path.glob(f"*{suffix}")}
    assert generated
    assert generated == {path.name: meaningful(path) for path in COMMITTED.glob(f"*{suffix}")}


def meaningful(path: Path) -> list[str]:
    """The lines that depend on the schema: of protoc's module only the serialized descriptor."""
    lines = path.read_text().splitlines()
    return [line for line in lines if "AddSerializedFile" in line] if path.name.endswith("_pb2.py") else lines
