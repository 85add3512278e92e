"""The committed constants and descriptors are those that the schemas give."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
IN_PACKAGE = ROOT / "symbolize" / "proto"
COMMITTED = {".binpb": [ROOT / "protos", IN_PACKAGE], "_tags.py": [IN_PACKAGE]}


@pytest.mark.needs("grpc_tools")
def test_committed_files_are_current(tmp_path: Path) -> None:
    """Generating them anew changes nothing."""
    runpy.run_path(str(ROOT / "protos" / "generate.py"))["generate"](tmp_path, tmp_path)
    made = {path.name: path.read_bytes() for suffix in COMMITTED for path in tmp_path.glob(f"*{suffix}")}
    kept = {
        path.name: path.read_bytes()
        for suffix, folders in COMMITTED.items()
        for folder in folders
        for path in folder.glob(f"*{suffix}")
    }
    assert {name.partition("_tags")[2] or name[-6:] for name in made} == {".binpb", ".py"}
    old = [name for name in sorted({*made, *kept}) if made.get(name) != kept.get(name)]
    assert not old, "\n".join(old)
