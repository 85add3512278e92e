"""What is damaged: small sound files of all kinds, with the files that go with them, and linkage names."""

from collections.abc import Iterator
from pathlib import Path

from tools.fuzz.shapes import Sample, shapes

ROOT = Path(__file__).parents[2]
MAX_SIZE = 80_000


def samples() -> list[Sample]:
    """All sound files: those made in memory, and the small ones of the fixtures."""
    result = shapes()
    for path in sorted((ROOT / "fixtures" / "bin").rglob("*")):
        if path.is_file() and path.stat().st_size < MAX_SIZE:
            result.append(Sample(str(path.relative_to(ROOT)), path.read_bytes()))
    parts = ROOT / "fixtures" / "parts"
    for folder in ("gcc-dwarf5", "clang-dwarf5"):
        for path in sorted((parts / folder / "dwo").iterdir()):
            name = f"{path.relative_to(ROOT)}"
            result.append(Sample(name, (parts / folder / "ledger.debug").read_bytes(), path.read_bytes(), "split"))
    return result


OTHER_NAMES = (
    b"main.(*Ledger[go.shape.int]).Add-fm",
    b"type..eq.[2]interface {}",
    b"vendor/golang.org/x/net/http2.(*Framer).ReadFrame",
    b"$s4main7LibraryC5countSivg",
    b"_$s4main1aSSvp",
    b"-[NSObject(Category) initWithCoder:]",
    b"void com.app.Main.run(int, a.b[]) [DEDUPED]",
    b"Java_com_app_Main_run__I",
    b"LazyCompile:~f /a b.js:1",
    b"?run@Main@@QEAAXH@Z",
    b"camlStdlib__List__map_123",
    b"ghczmprim_GHCziTypes_ZMZN_info",
    b"__dl__ZN6soinfo5matchEv",
    b"operator new(unsigned long)@plt",
    b"f.constprop.0.isra.1.cold@@GLIBC_2.34",
)
"""Names of languages whose names are shown as they are, or that only have suffixes to be taken off."""


def names() -> Iterator[bytes]:
    """Linkage names of all kinds: C++, Rust, D, and others."""
    tables = ROOT / "tests" / "names"
    for path in (tables / "golden.tsv", tables / "modern" / "modern.tsv", tables / "modern" / "dlang.tsv"):
        for line in path.read_bytes().splitlines():
            name = line.split(b"\t")[0]
            if name and len(name) < 2000:
                yield name
    yield from OTHER_NAMES
