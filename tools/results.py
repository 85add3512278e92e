"""Record checksums of what a batch makes of the profiles of fixtures/, for the version of results.

    python -m tools.results

A test compares them. When an existing one differs, outputs of earlier runs are out of date, and this refuses to record
it until `RESULTS` in symbolize/batch/job.py is raised.
"""

import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from symbolize.batch.job import RESULTS

ROOT: Final = Path(__file__).parent.parent
FIXTURES: Final = ROOT / "fixtures"
RECORD: Final = ROOT / "tests" / "batch" / "results.json"
WITHOUT: Final = "profiles/go/*"
"""Profiles of a program that is not committed."""


def recorded() -> dict[str, Any]:
    """The version of results, and the checksums of its outputs by name."""
    record: dict[str, Any] = json.loads(RECORD.read_text())
    return record


def results() -> dict[str, Any]:
    """The same of this checkout."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        arguments = ["profiles", "--binaries", "bin", "--out", str(out), "--no-cache", "--quiet", "--exclude", WITHOUT]
        done = subprocess.run([sys.executable, "-m", "symbolize", "batch", *arguments], cwd=FIXTURES, check=False)
        if done.returncode not in (0, 4):  # 4: some of the files are no profiles
            sys.exit(done.returncode)
        outputs = {str(path.relative_to(out)): gzip.decompress(path.read_bytes()) for path in out.rglob("*.pb.gz")}
    checksums = {name: hashlib.sha256(data).hexdigest()[:16] for name, data in sorted(outputs.items())}
    return {"version": RESULTS, "outputs": checksums}


def needs_version(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether outputs differ that have the same version."""
    old, new = before["outputs"], now["outputs"]
    return before["version"] == now["version"] and any(new[name] != old[name] for name in old.keys() & new.keys())


if __name__ == "__main__":
    now = results()
    if RECORD.exists() and needs_version(recorded(), now):
        sys.exit("outputs have changed: raise RESULTS in symbolize/batch/job.py, then record again")
    RECORD.write_text(json.dumps(now, indent=1) + "\n")
