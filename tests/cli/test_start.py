"""What a command imports before it answers, which is most of the time of a small job."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fixture_files import FIXTURES

PROFILE = FIXTURES / "profiles/gperftools/ledger-gcc-pie.prof"
BINARY = FIXTURES / "bin/gcc-pie/ledger"
PROGRAM = """
import sys
from symbolize.cli import main
try: main(sys.argv[1:])
except SystemExit: pass
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "most", "foreign"),
    [
        pytest.param(["--version"], 26, {"numpy", "json", "shutil"}, id="version"),
        pytest.param(["addr", BINARY, "0x1"], 133, {"elftools", "capstone", "symbolize.profile"}, id="addr"),
        pytest.param([PROFILE, "-b", BINARY.parent], 187, {"elftools", "capstone", "symbolize.dwarf"}, id="profile"),
    ],
)
def test_modules(arguments: list[object], most: int, foreign: set[str], tmp_path: Path) -> None:
    """Where the table is kept, no more modules are imported than today. Import a new one where it is used; if it is
    used by all, raise the number."""
    environment = {**os.environ, "PYTHONPATH": str(FIXTURES.parent), "XDG_CACHE_HOME": str(tmp_path)}
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env=environment,
        )
    modules = run.stderr.splitlines()[-1].split()
    own = [name for name in modules if name.startswith("symbolize")]
    assert not foreign & set(modules)
    assert len(own) <= most, "\n".join(own)
