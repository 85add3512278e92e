"""The batch command over an object store, as a process of its own."""

from pathlib import Path

import pytest

from tests.support.batch_runs import files_below, make_inputs, outputs, run
from tests.support.buckets import Bucket
from tests.support.fixture_files import BINARIES


@pytest.mark.full
def test_inputs_outputs_and_tables_in_a_bucket(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes out is what a run over folders makes, also where the tables come out of the bucket."""
    inputs = make_inputs(tmp_path / "in")
    binaries = ("--binaries", BINARIES / "gcc-pie", "--jobs", "1")
    assert run(inputs, *binaries, "--out", tmp_path / "out", "--cache", tmp_path / "cache").returncode == 0
    for name in files_below(inputs):
        bucket.put(f"in/{name}", data=(inputs / name).read_bytes())
    for number in (1, 2):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"machine-{number}"))
        done = run(
            *(f"{bucket.url}/in/", *binaries, "--out", f"{bucket.url}/out-{number}", "--cache", f"{bucket.url}/tables"),
            *("--state", tmp_path / f"state-{number}"),
        )
        assert done.returncode == 0, done.stderr
        prefix, keys = f"out-{number}/", bucket.keys()
        made = [key for key in keys if key.startswith(prefix)]
        found = {key.removeprefix(prefix): bucket.system.cat_file(f"{bucket.url}/{key}") for key in made}
        assert found == outputs(tmp_path / "out")
    assert any(key.endswith(".symtab") for key in keys)
