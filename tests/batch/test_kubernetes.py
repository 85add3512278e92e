"""The manifest of the documentation fits the command."""

from pathlib import Path
from typing import Any

import pytest

from symbolize.cli.batch import batch_parser, shard_of
from symbolize.cli.options import EXIT_BELOW, EXIT_SOME, EXIT_USAGE

yaml = pytest.importorskip("yaml")

MANIFEST = Path(__file__).parents[2] / "docs" / "examples" / "kubernetes-job.yaml"


@pytest.fixture
def job() -> Any:
    """The specification of the job."""
    return yaml.safe_load(MANIFEST.read_text())["spec"]


def test_command_line(job: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is one, and its parts are those of the job."""
    (container,) = job["template"]["spec"]["containers"]
    program, command, *arguments = container["command"]
    assert (program, command) == ("symbolize", "batch")
    options = batch_parser().parse_args(arguments)
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "63")
    shard = shard_of(options.shard)
    assert (shard.number, shard.parts) == (63, 64)
    assert job["completions"] == 64 and job["completionMode"] == "Indexed"
    assert str(options.jobs) == container["resources"]["limits"]["cpu"]


def test_exit_codes(job: Any) -> None:
    """Wrong command lines end the job, and parts that would end the same way again are not repeated."""
    (container,) = job["template"]["spec"]["containers"]
    rules = [rule for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert {rule["onExitCodes"]["containerName"] for rule in rules} == {container["name"]}
    actions = {code: rule["action"] for rule in rules for code in rule["onExitCodes"]["values"]}
    assert actions == {EXIT_USAGE: "FailJob", EXIT_BELOW: "FailIndex", EXIT_SOME: "FailIndex"}
    assert job["backoffLimitPerIndex"] > 0
    assert job["template"]["spec"]["restartPolicy"] == "Never"
