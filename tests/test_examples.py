"""The examples of the documentation fit the program, and what reads them: systemd, cron, Kubernetes, CI."""

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symbolize.cli.batch import batch_parser, shard_of
from symbolize.cli.commands import COMMANDS, parser_of
from symbolize.cli.console import EXIT_BELOW, EXIT_SOME, EXIT_USAGE
from symbolize.core.errors import UsageError
from tests.support.docs_examples import DOCS, PAGES, ROOT
from tests.support.examples import EXAMPLES, FILES, PROGRAM, commands
from tests.support.needs import package

yaml = package("yaml")

UNITS = sorted(path.name for path in EXAMPLES.glob("*.service"))
MANIFESTS = sorted(path.name for path in EXAMPLES.glob("kubernetes-*.yaml"))
FOUND = list(commands({*COMMANDS}))
CONFIGURATION = {"grafana-dashboard.json", "grafana-serve.json", "otlp-collector.yaml", "prometheus-rules.yaml"}
"""Examples that other programs read, without a command."""
USER = 10001
"""The user of the image."""


def options_of(file: str, name: str = "batch") -> Any:
    """The options of the only command of an example."""
    (found,) = (each for each in FOUND if each.file == file)
    assert found.name == name
    return parser_of(name).parse_args(found.arguments)


def test_commands() -> None:
    """The program takes each command."""
    refused = []
    for example in FOUND:
        try:
            parser_of(example.name).parse_args(example.arguments)
        except (SystemExit, UsageError) as error:
            refused.append(f"{example.file}: {example.arguments}: {error}")
    assert not refused, "\n".join(refused)


def test_every_example_has_a_command_and_a_page() -> None:
    """No example is without one, or is mentioned nowhere."""
    assert {path.name for path in FILES} - CONFIGURATION == {each.file for each in FOUND}
    text = "".join(path.read_text() for path in PAGES)
    assert [path.name for path in EXAMPLES.iterdir() if f"examples/{path.name}" not in text] == []


def test_crontab() -> None:
    """The line of the table has five times, and prints errors alone."""
    (line,) = (line for line in (EXAMPLES / "crontab").read_text().splitlines() if re.match(r"[\d*]", line))
    *times, _ = line.split(None, 5)
    assert all(re.fullmatch(r"[\d*/,-]+", time) for time in times)
    assert options_of("crontab").quiet


def settings_of(name: str) -> dict[str, str]:
    """The settings of a unit."""
    return dict(re.findall(r"^(\w+)=(.*)$", (EXAMPLES / name).read_text(), re.MULTILINE))


def test_units() -> None:
    """A unit may write what its command writes and nothing else, and is not repeated after a wrong command line."""
    wrong = []
    for name in UNITS:
        settings = settings_of(name)
        options = options_of(name, "serve" if "serve" in name else "batch")
        logs = getattr(options, "log_json", None)
        checks = {
            "ProtectSystem": (settings.get("ProtectSystem"), "strict"),
            "NoNewPrivileges": (settings.get("NoNewPrivileges"), "yes"),
            "RestartPreventExitStatus": (settings.get("RestartPreventExitStatus"), str(EXIT_USAGE)),
            "CacheDirectory": (f"/var/cache/{settings.get('CacheDirectory')}", options.cache),
            "ReadWritePaths": (settings.get("ReadWritePaths"), getattr(options, "out", None)),
            "LogsDirectory": (logs and f"/var/log/{settings.get('LogsDirectory')}", logs and str(Path(logs).parent)),
        }
        wrong += [f"{name}: {key}: {found}, not {wanted}" for key, (found, wanted) in checks.items() if found != wanted]
    assert not wrong, "\n".join(wrong)


def test_units_start_as_they_should() -> None:
    """The nightly one ends, the others run for ever; for a batch, 4 is no failure of the unit."""
    nightly, watch = settings_of("symbolize-nightly.service"), settings_of("symbolize-watch.service")
    assert (nightly["Type"], nightly["Restart"]) == ("oneshot", "on-failure")
    assert {each["SuccessExitStatus"] for each in (nightly, watch)} == {str(EXIT_SOME)}
    assert (watch["Type"], watch["Restart"]) == ("simple", "always")
    assert watch["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert options_of("symbolize-watch.service").watch
    assert settings_of("symbolize-serve.service")["Type"] == "simple"


@pytest.mark.needs("systemd-analyze")
def test_systemd_reads_the_units(tmp_path: Path) -> None:
    """systemd finds nothing wrong with the units."""
    for path in (*EXAMPLES.glob("*.service"), *EXAMPLES.glob("*.timer")):
        text = path.read_text().replace("/opt/symbolize/bin/symbolize", "/bin/true")
        (tmp_path / path.name).write_text(re.sub("Documentation=.*\n", "", text))
    units = [str(path) for path in sorted(tmp_path.iterdir())]
    assert len(units) == len(UNITS) + 1
    run = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "symbolize-" not in run.stderr


def documents(name: str) -> dict[str, Any]:
    """The objects of a manifest by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all((EXAMPLES / name).read_text())}


def job_of(name: str) -> Any:
    """The specification of a job, or of what a CronJob starts."""
    found = documents(name)
    return found["CronJob"]["spec"]["jobTemplate"]["spec"] if "CronJob" in found else found["Job"]["spec"]


def pod_of(name: str) -> Any:
    """The specification of the pods of a manifest."""
    found = documents(name)
    spec = found["Deployment"]["spec"] if "Deployment" in found else job_of(name)
    return spec["template"]["spec"]


RIGHTS = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
    "automountServiceAccountToken": False,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "limits": ["cpu", "memory"],
    "requests": ["cpu", "memory"],
}


def test_pods_have_no_rights() -> None:
    """They run as the user of the image, write to volumes alone, and have limits."""
    wrong = []
    for name in MANIFESTS:
        pod = pod_of(name)
        (container,) = pod["containers"]
        resources = {kind: sorted(amounts) for kind, amounts in container["resources"].items()}
        said = pod | pod["securityContext"] | container["securityContext"] | resources
        wrong += [f"{name}: {key} is not {value}" for key, value in RIGHTS.items() if said.get(key) != value]
    assert not wrong, "\n".join(wrong)


def test_pods_may_write_where_they_have_to() -> None:
    """Temporary files and caches are on volumes of limited size, and the paths of the command are on volumes."""
    wrong = []
    for name in MANIFESTS:
        pod = pod_of(name)
        (container,) = pod["containers"]
        mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        variables = {each["name"]: each.get("value") for each in container["env"]}
        folders = [mounted[variables[variable]] for variable in ("TMPDIR", "XDG_CACHE_HOME")]
        paths = [word for word in container["command"] if word.startswith("/")]
        wrong += [f"{name}: {volume}" for volume in {*mounted.values()} ^ {*volumes}]
        wrong += [f"{name}: {folder}" for folder in folders if "sizeLimit" not in volumes[folder]["emptyDir"]]
        wrong += [f"{name}: {path}" for path in paths if not any(Path(path).is_relative_to(root) for root in mounted)]
        assert paths
    assert not wrong, "\n".join(wrong)


def test_indexed_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of the command are those of the job."""
    job = job_of("kubernetes-job.yaml")
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "63")
    shard = shard_of(options_of("kubernetes-job.yaml").shard)
    assert (shard.number, shard.parts) == (63, job["completions"])
    assert job["completionMode"] == "Indexed"
    assert job["backoffLimitPerIndex"] > 0


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        ("kubernetes-job.yaml", {EXIT_USAGE: "FailJob", EXIT_BELOW: "FailIndex", EXIT_SOME: "FailIndex"}),
        ("kubernetes-cronjob.yaml", dict.fromkeys((EXIT_USAGE, EXIT_BELOW, EXIT_SOME), "FailJob")),
    ],
)
def test_exit_codes_of_jobs(name: str, actions: dict[int, str]) -> None:
    """A wrong command line ends a job, and what would end the same way again is not repeated."""
    job = job_of(name)
    (container,) = job["template"]["spec"]["containers"]
    rules = [rule for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert {rule["onExitCodes"]["containerName"] for rule in rules} == {container["name"]}
    assert {code: rule["action"] for rule in rules for code in rule["onExitCodes"]["values"]} == actions
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert str(options_of(name).jobs) == container["resources"]["limits"]["cpu"]


def test_served_pods() -> None:
    """Service, probes and command have one port, and the token that the address needs is a secret."""
    found, pod = documents("kubernetes-serve.yaml"), pod_of("kubernetes-serve.yaml")
    (container,) = pod["containers"]
    options = options_of("kubernetes-serve.yaml", "serve")
    (port,) = container["ports"]
    assert port["containerPort"] == options.port and options.host == "0.0.0.0"
    assert {container[probe]["httpGet"]["port"] for probe in ("readinessProbe", "livenessProbe")} == {port["name"]}
    assert found["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == labels == found["Deployment"]["spec"]["selector"]["matchLabels"]
    (token,) = (each for each in container["env"] if each["name"] == "SYMBOLIZE_TOKEN")
    assert "secretKeyRef" in token["valueFrom"] and "value" not in token
    text = (DOCS / "serve.md").read_text()
    assert all(container[probe]["httpGet"]["path"] in text for probe in ("readinessProbe", "livenessProbe"))


def leaves(value: Any, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """The paths of all values that are neither mappings nor lists, with the values."""
    if isinstance(value, dict | list) and value:
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, (*path, key))
    else:
        yield (*path, repr(value))


@pytest.mark.needs("kubectl")
def test_kubectl_knows_every_field(tmp_path: Path) -> None:
    """The types of Kubernetes have every field: kubectl, which drops others, gives back all of what it reads."""
    dropped = []
    for name in MANIFESTS:
        for kind, document in documents(name).items():
            if kind == "Service":
                continue  # kubectl changes only what has pods without asking a cluster
            path = tmp_path / f"{kind}.json"
            path.write_text(json.dumps(document))
            command = ["kubectl", "set", "env", "--local", "-f", str(path), "ADDED=1", "-o", "json"]
            environment = os.environ | {"KUBECONFIG": os.devnull, "HOME": str(tmp_path)}
            run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            assert run.returncode == 0, run.stderr
            dropped += [f"{name}: {leaf}" for leaf in {*leaves(document)} - {*leaves(json.loads(run.stdout))}]
    assert not dropped, "\n".join(dropped)


def test_workflow() -> None:
    """The workflow has jobs whose steps use or run something, by the versions of this project's own workflows, and may
    not write to the repository."""
    workflow = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert steps
    assert all(("uses" in step) != ("run" in step) for step in steps)
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())
    own = "".join(path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    pinned = dict(re.findall(r"uses: ([\w/-]+)@(\S+)", own))
    for step in steps:
        action, _, version = step.get("uses", "").partition("@")
        assert pinned.get(action, version) == version
    kept = next(step["with"]["path"] for step in steps if step.get("uses", "").startswith("actions/upload-artifact"))
    written = " ".join(word for each in FOUND if each.file == "github-actions.yml" for word in each.arguments)
    assert all(name in written for name in kept.split())


def test_image() -> None:
    """The recipe of the image copies what is not left out, installs extras that exist, and runs as the user that the
    manifests name."""
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.partition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    known = {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "LABEL", "RUN", "USER", "WORKDIR"}
    assert {name for name, _, _ in lines} <= known
    found = {name: [rest.strip() for each, _, rest in lines if each == name] for name in known}
    arguments = dict(each.split("=") for each in found["ARG"] if "=" in each)
    assert {*re.findall(r"\$\{(\w+)\}", text)} == {*arguments}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {*arguments["EXTRAS"].split(",")}
    assert extras <= {*project["optional-dependencies"]} and {"cloud", "serve"} <= extras
    assert all(name in (DOCS / "packaging.md").read_text() for name in extras)
    assert found["USER"] == [f"{USER}:{USER}"] and json.loads(found["ENTRYPOINT"][0]) == [PROGRAM]
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert all((ROOT / name).exists() for name in kept)
    assert {"pyproject.toml", "setup.py", PROGRAM} <= kept


def test_batch_with_rows_is_what_a_warehouse_needs() -> None:
    """The command of the guide on data warehouses is one."""
    (line,) = re.findall(r"^symbolize (batch s3://.*)$", (DOCS / "guides" / "warehouse.md").read_text(), re.MULTILINE)
    options = batch_parser().parse_args(line.split()[1:])
    assert options.parquet and options.state
