"""Which package may import which, read off the import statements."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "symbolize"

FOUNDATION = {"core"}
"""What every package may use."""

ALLOWED = {
    "analysis": {"names", "profile"},
    "batch": {
        "__init__",
        "analysis",
        "binaries",
        "elf",
        "formats",
        "options",
        "pipeline",
        "profile",
        "report",
        "resolve",
        "storage",
        "symbols",
    },
    "binaries": {"elf"},
    "cli": {
        "__init__",
        "analysis",
        "batch",
        "binaries",
        "drop_in",
        "enrich",
        "inspection",
        "formats",
        "options",
        "page",
        "pipeline",
        "profile",
        "report",
        "serve",
        "storage",
        "symbols",
    },
    "core": set(),
    "drop_in": {"binaries", "elf", "evidence", "names", "resolve", "symbols"},
    "dwarf": set(),
    "elf": set(),
    "evidence": {"elf", "symbols"},
    "enrich": {"names", "profile", "symbols"},
    "formats": {"analysis", "names", "page", "profile", "proto", "symbol_files"},
    "inspection": {"analysis", "binaries", "dwarf", "elf", "formats", "profile", "symbol_files", "symbols"},
    "names": set(),
    "page": {"analysis", "profile"},
    "profile": set(),
    "proto": set(),
    "report": {"analysis", "profile"},
    "resolve": {"binaries", "elf", "evidence", "names", "profile", "storage", "symbol_files", "symbols"},
    "serve": {
        "analysis",
        "batch",
        "binaries",
        "elf",
        "formats",
        "names",
        "options",
        "pipeline",
        "report",
        "resolve",
        "storage",
        "symbols",
    },
    "storage": {"binaries", "formats", "symbols"},
    "symbol_files": set(),
    "symbols": {"dwarf", "elf", "names", "symbol_files"},
    "unwind": {"elf", "profile"},
}
"""For each package those that it may import besides the foundation. `pipeline`, which knows the order of the stages,
and the project's own `__init__` and `__main__` may import any."""

FREE = {"pipeline", "options", "__init__", "__main__"}


def package_of(module: str) -> str:
    """The package of a module: `symbolize.elf.image` is in `elf`, and what the project exports in `__init__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """The syntax of each module."""
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def imports(path: Path, tree: ast.Module) -> Iterator[str]:
    """The modules of the package that a file imports, wherever in it the statement stands."""
    own = [*path.relative_to(PACKAGE.parent).with_suffix("").parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "symbolize")
        elif isinstance(node, ast.ImportFrom):
            base = [*own[: len(own) - node.level], *(node.module or "").split(".")] if node.level else []
            module = ".".join(filter(None, base)) if node.level else node.module or ""
            if module == "symbolize":
                yield from (f"symbolize.{name.name}" if package_exists(name.name) else module for name in node.names)
            elif module.split(".")[0] == "symbolize":
                yield module


def package_exists(name: str) -> bool:
    """Whether the package has a module or folder of this name."""
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


def dependencies(trees: dict[Path, ast.Module]) -> Iterator[tuple[str, str, str]]:
    """File, its package, and a package that it imports from."""
    for path, tree in trees.items():
        relative = path.relative_to(PACKAGE)
        package = relative.parts[0].removesuffix(".py")
        for module in imports(path, tree):
            yield str(relative), package, package_of(module)


def test_imports_follow_the_table(trees: dict[Path, ast.Module]) -> None:
    """No package imports what it must not know."""
    wrong = [
        f"{file} imports {target}"
        for file, package, target in dependencies(trees)
        if package not in FREE and target not in {package, *FOUNDATION, *ALLOWED[package]}
    ]
    assert not wrong, "\n".join(wrong)


def test_imports_are_found(trees: dict[Path, ast.Module]) -> None:
    """The reader of import statements finds those that are certain to be there."""
    found = {(package, target) for _, package, target in dependencies(trees)}
    assert {("binaries", "elf"), ("symbols", "dwarf"), ("cli", "pipeline"), ("formats", "profile")} <= found


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
    path = tmp_path / "symbolize" / "formats" / "x.py"
    assert [package_of(module) for module in imports(path, ast.parse(source))] == ["elf"]


@pytest.mark.process
@pytest.mark.parametrize("module", ["symbolize.cli", "symbolize"])
def test_start_without_numpy(module: str) -> None:
    """`--help` and usage errors do not wait for numpy: importing the command does not import it."""
    code = f"import sys, {module}; print([m for m in ('numpy', 'elftools', 'google.protobuf') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert run.stdout == "[]\n"


def graph(trees: dict[Path, ast.Module]) -> dict[str, set[str]]:
    """The modules that each module imports, also within functions and for types only."""
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in trees}
    modules = {names[path].removesuffix(".__init__"): tree for path, tree in trees.items()}
    found: dict[str, set[str]] = {}
    for name, tree in modules.items():
        found[name] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                base = node.module.removeprefix("cython.cimports.")
                for alias in node.names:
                    one = f"{base}.{alias.name}"
                    found[name] |= {one if one in modules else base} & modules.keys()
    return found


def test_no_import_cycle(trees: dict[Path, ast.Module]) -> None:
    """No module imports another that imports it, by whatever way, wherever the statement is and whatever it is for."""
    left = graph(trees)
    while free := {name for name, targets in left.items() if not targets & left.keys() - {name}}:
        left = {name: targets for name, targets in left.items() if name not in free}
    assert sorted(left) == []
