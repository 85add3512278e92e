"""The arrows between the rooms of the package, read off its import statements."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "symbolize"

FOUNDATION = {"arrays", "errors", "parallel", "regular", "texts"}
"""What every room may use."""

ALLOWED = {
    "annotate": {"profile"},
    "arrays": set(),
    "batch": {"__init__", "binaries", "load", "pipeline", "profile", "reasons", "report", "symbols", "write"},
    "binaries": {"elf", "reasons"},
    "cli": {
        "binaries",
        "batch",
        "cursor",
        "inspection",
        "load",
        "pipeline",
        "prebuild",
        "profile",
        "reasons",
        "report",
        "symbols",
        "write",
        "__init__",
    },
    "cursor": set(),
    "deobfuscate": {"names", "profile"},
    "dwarf": {"cursor"},
    "elf": {"cursor"},
    "embedded": {"names", "profile", "symbols"},
    "errors": set(),
    "expand": {"names", "profile", "symbols"},
    "fold": {"profile", "symbols"},
    "inspection": {"binaries", "dwarf", "elf", "listings", "symbols"},
    "in_file": {"elf", "embedded", "match", "resolve", "symbols"},
    "listings": {"cursor"},
    "load": {"cursor", "profile", "proto"},
    "match": {"elf", "profile"},
    "names": set(),
    "parallel": set(),
    "profile": set(),
    "prebuild": {"binaries", "elf", "symbols"},
    "proto": set(),
    "prune": {"names", "profile"},
    "reasons": set(),
    "regular": set(),
    "report": {"profile", "reasons"},
    "resolve": {"binaries", "elf", "embedded", "match", "reasons", "symbols"},
    "special": {"binaries", "elf", "listings", "match", "reasons", "symbols"},
    "symbols": {"cursor", "dwarf", "elf", "listings", "names"},
    "texts": set(),
    "write": {"profile", "proto"},
}
"""For each room the rooms it may know besides the foundation. `pipeline`, which knows the order of the stages, and
the package's own `__init__` and `__main__` may know any."""

FREE = {"pipeline", "__init__", "__main__"}


def room_of(module: str) -> str:
    """The room of a module: `symbolize.elf.image` is in `elf`, and what the package exports in `__init__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(path: Path) -> Iterator[str]:
    """The modules of the package that a file imports, wherever in it the statement stands."""
    own = [*path.relative_to(PACKAGE.parent).with_suffix("").parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "symbolize")
        elif isinstance(node, ast.ImportFrom):
            base = [*own[: len(own) - node.level], *(node.module or "").split(".")] if node.level else []
            module = ".".join(filter(None, base)) if node.level else node.module or ""
            if module == "symbolize":
                yield from (f"symbolize.{name.name}" if room_exists(name.name) else module for name in node.names)
            elif module.split(".")[0] == "symbolize":
                yield module


def room_exists(name: str) -> bool:
    """Whether the package has a module or folder of this name."""
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


def arrows() -> Iterator[tuple[str, str, str]]:
    """File, its room, and a room that it imports from."""
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        room = relative.parts[0].removesuffix(".py")
        for module in imports(path):
            yield str(relative), room, room_of(module)


def test_imports_keep_to_the_arrows() -> None:
    """No room imports what it must not know."""
    wrong = [
        f"{file} imports {target}"
        for file, room, target in arrows()
        if room not in FREE and target not in {room, *FOUNDATION, *ALLOWED[room]}
    ]
    assert wrong == []


def test_every_arrow_is_seen() -> None:
    """The reader of import statements finds those that are certain to be there."""
    found = {(room, target) for _, room, target in arrows()}
    assert {("binaries", "elf"), ("symbols", "dwarf"), ("cli", "pipeline"), ("load", "profile")} <= found


@pytest.mark.parametrize(
    "source",
    [
        "import symbolize.elf",
        "def f():\n    from symbolize import elf",
        "from symbolize.elf.image import Segment",
        "from ..elf import Segment",
    ],
)
def test_reader_of_imports(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form of import statement is understood."""
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path / "symbolize")
    (tmp_path / "symbolize" / "elf").mkdir(parents=True)
    (tmp_path / "symbolize" / "load").mkdir()
    path = tmp_path / "symbolize" / "load" / "x.py"
    path.write_text(source)
    assert [room_of(module) for module in imports(path)] == ["elf"]


@pytest.mark.parametrize("module", ["symbolize.cli", "symbolize"])
def test_start_without_numpy(module: str) -> None:
    """`--help` and usage errors do not wait for numpy: importing the command does not import it."""
    code = f"import sys, {module}; print([m for m in ('numpy', 'elftools', 'google.protobuf') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert run.stdout == "[]\n"
