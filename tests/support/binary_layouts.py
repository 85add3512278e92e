"""Every layout of docs/finding-binaries.md, built from real files."""

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import zstandard

from symbolize.elf import read_build_id
from tests.support.fixture_files import BINARIES

STRIPPED = BINARIES / "gcc-split/stripped/spectra"
DEBUG = BINARIES / "gcc-split/debug/spectra.debug"
ID = read_build_id(str(STRIPPED)) or ""
PADDED = ID.ljust(40, "0")
RECORDED = "/opt/spectra/bin/spectra"

Build = Callable[[Path], None]


def put(source: Path, target: Path) -> None:
    """Copy a file, with all folders above the copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def packed(source: Path, target: Path) -> None:
    """Compress a file as the symbol stores of Sentry have it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(zstandard.compress(source.read_bytes()))


def gdb_tree(root: Path) -> None:
    """`.build-id` below the folder of debug files, with links to the binaries."""
    put(DEBUG, root / f"usr/lib/debug/.build-id/{ID[:2]}/{ID[2:]}.debug")
    put(STRIPPED, root / "usr/bin/spectra")
    link = root / f"usr/lib/debug/.build-id/{ID[:2]}/{ID[2:]}"
    link.symlink_to(os.path.relpath(root / "usr/bin/spectra", link.parent))


def bare_tree(root: Path) -> None:
    """The root is a `.build-id` folder."""
    put(DEBUG, root / f"{ID[:2]}/{ID[2:]}.debug")
    put(STRIPPED, root / f"{ID[:2]}/{ID[2:]}")


def client_cache(root: Path) -> None:
    """The cache of debuginfod clients: readable by nobody else, other entries are misses."""
    put(DEBUG, root / ID / "debuginfo")
    put(STRIPPED, root / ID / "executable")
    os.chmod(root / ID / "debuginfo", 0o400)
    (root / ID / "source-12345678-#src#spectra.cc").write_text("int main() {}")
    (root / ("bb" * 20)).mkdir()
    (root / ("bb" * 20) / "debuginfo").touch()


def bucket(root: Path) -> None:
    """The bucket of Parca."""
    client_cache(root)
    (root / ID / "metadata").write_text('{"state": "uploaded"}')


def llvm_cache(root: Path) -> None:
    """The cache of LLVM's client: names tell nothing."""
    put(DEBUG, root / "llvmcache-13267898123234323421")
    put(STRIPPED, root / "llvmcache-87345678123434323421")


def unified(root: Path) -> None:
    """Sentry's unified store, uncompressed."""
    put(DEBUG, root / f"{ID[:2]}/{ID[2:]}/debuginfo")
    put(STRIPPED, root / f"{ID[:2]}/{ID[2:]}/executable")


def unified_zstd(root: Path) -> None:
    """Sentry's unified store as symsorter compresses it."""
    packed(DEBUG, root / f"{ID[:2]}/{ID[2:]}/debuginfo")
    packed(STRIPPED, root / f"{ID[:2]}/{ID[2:]}/executable")


def unified_gzip(root: Path) -> None:
    """The same with gzip."""
    for name, source in (("debuginfo", DEBUG), ("executable", STRIPPED)):
        target = root / f"{ID[:2]}/{ID[2:]}/{name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.compress(source.read_bytes()))


def symstore(root: Path) -> None:
    """The SSQP layout of Microsoft's symbol stores."""
    put(STRIPPED, root / f"spectra/elf-buildid-{ID}/spectra")
    put(DEBUG, root / f"_.debug/elf-buildid-sym-{ID}/_.debug")


def symstore_index2(root: Path) -> None:
    """The same below folders of two letters."""
    (root).mkdir(exist_ok=True)
    (root / "index2.txt").touch()
    symstore(root / "sp")


def sysroot(root: Path) -> None:
    """Full recorded paths below the root: perf's symfs, Android's symbols, an unpacked image."""
    put(STRIPPED, root / RECORDED.lstrip("/"))
    put(DEBUG, root / "usr/lib/debug/opt/spectra/bin/spectra.debug")


def flat(root: Path) -> None:
    """All files in one folder."""
    put(STRIPPED, root / "spectra")
    put(DEBUG, root / "spectra.debug")


def binary_cache(root: Path) -> None:
    """simpleperf's binary_cache: padded ids."""
    put(STRIPPED, root / PADDED / "spectra")
    put(DEBUG, root / PADDED / "spectra.debug")


def binary_cache_list(root: Path) -> None:
    """A binary_cache with its list, one entry of which is wrong."""
    put(STRIPPED, root / "data/app/spectra")
    put(DEBUG, root / "data/app/spectra.debug")
    lines = [f"0x{PADDED}=/data/app/spectra", f"0x{'12' * 20}=/data/app/spectra", "0xzz=../../x", "no line"]
    (root / "build_id_list").write_text("\n".join(lines))


def binary_cache_2023(root: Path) -> None:
    """simpleperf's binary_cache of 2023, as samply knows it."""
    put(STRIPPED, root / f"{PADDED}-spectra")
    put(DEBUG, root / f"{PADDED}-spectra.debug")


def perf_cache(root: Path) -> None:
    """perf's ~/.debug: files under their full path and id, found by links."""
    put(STRIPPED, root / f"opt/spectra/bin/spectra/{ID}/elf")
    put(DEBUG, root / f"opt/spectra/bin/spectra/{ID}/debug")
    (root / f".build-id/{ID[:2]}").mkdir(parents=True)
    (root / f".build-id/{ID[:2]}/{ID[2:]}").symlink_to(f"../../opt/spectra/bin/spectra/{ID}")


def beside_binary(root: Path) -> None:
    """A debug file in `.debug` beside its binary."""
    put(STRIPPED, root / "bin/spectra")
    put(DEBUG, root / "bin/.debug/spectra.debug")


def kernel_tree(root: Path) -> None:
    """Where distributions keep kernels: here with a file that is none, found by its build id alone."""
    put(STRIPPED, root / "boot/vmlinux-6.1.0-13-amd64")
    put(DEBUG, root / "usr/lib/debug/boot/vmlinux-6.1.0-13-amd64")


def any_tree(root: Path) -> None:
    """No layout at all."""
    put(STRIPPED, root / "a/b/c/renamed")
    put(DEBUG, root / "x/y/also renamed")


LAYOUTS: list[Build] = [
    gdb_tree, bare_tree, client_cache, bucket, llvm_cache, unified, unified_zstd, unified_gzip, symstore,
    symstore_index2, sysroot, flat, binary_cache, binary_cache_list, binary_cache_2023, perf_cache, beside_binary,
    kernel_tree, any_tree,
]  # fmt: skip
