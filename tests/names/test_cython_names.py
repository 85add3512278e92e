"""R491, Cython names: functions that Cython compiled, by the names that it writes into their tracebacks."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from symbolize.names import MODES, shown_names
from symbolize.names.cython_names import python_name
from tests.support.cython_source import tracebacks

FOLDER: Final = Path(__file__).with_name("cython")
MODULES: Final = {"names.pyx": "my_pkg.sub.mod1", "pair.pyx": "a.pair"}


def check(pairs: list[tuple[str, str]]) -> None:
    """Names are right or as linked, which those alone are that have no number where there may be one."""
    assert len(pairs) > 90
    shown = {linked: python_name(linked.encode()).decode() for linked, _ in pairs}
    assert {linked: name for linked, name in pairs if name != shown[linked] != linked} == {}
    raw = [linked for linked, name in shown.items() if linked == name]
    assert all("__pyx_pf_" in linked or "2d" in linked or "_lambda" in linked for linked in raw)
    assert len(raw) < len(pairs) / 5


def test_golden() -> None:
    """The functions of Cython 0.29.37 and 3.3.1."""
    rows = (FOLDER / "golden.tsv").read_text().splitlines()
    check([(linked, name) for linked, name in (row.split("\t") for row in rows)])


def test_installed_release(tmp_path: Path) -> None:
    """The functions of the Cython that is installed."""
    pytest.importorskip("Cython")
    found: list[tuple[str, str]] = []
    for file, module in MODULES.items():
        made = tmp_path / f"{module}.c"
        command = [sys.executable, "-m", "cython", "-3", "--module-name", module, str(FOLDER / file), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True)
        found += tracebacks(made.read_text())
    check(found)


@pytest.mark.parametrize(
    ("linked", "name"),
    [
        ("__pyx_f_3pkg_3mod_5Class_meth", "pkg.mod.Class.meth"),
        ("__pyx_pw_3pkg_3mod_5Class_1meth", "pkg.mod.Class.meth"),
        ("__pyx_pw_3pkg_3mod_3put_all", "pkg.mod.put_all"),
        ("__pyx_pf_3mod_f", "mod.f"),
        ("__pyx_pf_3pkg_3mod_1A___init__", "pkg.mod.A.__init__"),
        ("__pyx_pf_3mod_15SequenceMatcher_15__reduce_cython__", "mod.SequenceMatcher.__reduce_cython__"),
        ("__pyx_pw_3pkg_8__init___1run", "pkg.__init__.run"),
        ("__pyx_pw_3pkg_3mod_3Log_1p", "pkg.mod.Log.p"),
        ("__pyx_fuse_0_1__pyx_f_3pkg_3mod_f", "pkg.mod.f"),
        ("__pyx_getprop_3pkg_3mod_1A_size", "pkg.mod.A.size"),
        ("__pyx_specialmethod___pyx_pw_3mod_1A_3__next__", "mod.A.__next__"),
        ("__pyx_memoryview___pyx_pf_15View_dot_MemoryView_10memoryview_20copy", "View.MemoryView.memoryview.copy"),
        ("__pyx_pw_3mod_3f__pyx_fuse_0g", "mod.f__pyx_fuse_0g"),
        *((each, "") for each in (
            "__pyx_pf_3pkg_3mod_f", "__pyx_pf_3pkg_3mod_3put_all", "__pyx_pw_3pkg_3mod_3put_2d",
            "__pyx_pw_3pkg_3mod_3log_1p", "__pyx_pw_3pkg_3mod_7average_3x3_of",
            "__pyx_pw_3pkg_3mod_6lister_lambda2", "__pyx_pw_3mod_1__pyx_fuse_0_1f", "__pyx_gb_3mod_2generator",
            "__pyx_tp_dealloc_3mod_A", "__pyx_pymod_exec_mod", "__Pyx_PyObject_Call", "__pyx_f_3mod_", "__pyx_f_f",
            "__pyx_pw_1f", "__pyx_f_9mod_f", "__pyx_f_03mod_f", "__pyx_f_99999999999999999999mod_f", "__pyx_f_3m-d_f",
            "__pyx_f_3mod_f(int)", "__pyx_f_7a_dot__dot_b_f", "__pyx_f_" + "1a_" * 70 + "f",
            "__pyx_pw_3mod_1" + "__pyx_fuse_0__pyx_f_3mod_" * 5000 + "f", "__pyx_pw_9999" + "_dot_" * 9999,
        )),
    ],
)  # fmt: skip
def test_spellings(linked: str, name: str) -> None:
    """What Cython makes of names, and what may be two names or is none."""
    assert python_name(linked.encode()).decode() == (name or linked)


def test_modes() -> None:
    """Functions of C and C++, with clone suffixes and by DWARF alone, have their name but in `full` and `none`; the
    linked name stays."""
    linkage = [b"__pyx_pw_3mod_1f.cold", b"_ZL16__pyx_pw_3mod_1fP7_objectS0_", b"", b"__pyx_pf_3a_b_f"]
    plain = [b"", b"", b"__pyx_pf_3mod_f", b""]
    shown = {mode: shown_names(linkage, plain, mode) for mode in MODES}
    for mode in ("default", "templates"):
        assert shown[mode][0] == [b"mod.f", b"mod.f", b"mod.f", b"a_b.f"]
    assert all(linked == [*linkage[:2], plain[2], linkage[3]] for _, linked in shown.values())
    assert shown["full"][0][0] == b"__pyx_pw_3mod_1f"
    assert shown["none"][0] == shown["none"][1]
