"""The alerts and the dashboards of the documentation fit the metrics."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.needs import package

package("prometheus_client")

from symbolize.batch.monitoring.metrics import METRICS, PREFIX
from symbolize.core.reasons import Reason
from tests.support.docs_examples import DOCS


def metrics_of_serve() -> dict[str, tuple[str, ...]]:
    """The labels of the metrics of a server, by their names as they are shown."""
    package("prometheus_client")
    from prometheus_client import Counter
    from prometheus_client.metrics import MetricWrapperBase

    from symbolize.serve.metrics import ServerMetrics

    made = [each for each in vars(ServerMetrics()).values() if isinstance(each, MetricWrapperBase)]
    return {each._name + "_total" * isinstance(each, Counter): each._labelnames for each in made}


RULES = DOCS / "examples" / "prometheus-rules.yaml"
DASHBOARDS = [DOCS / "examples" / f"grafana-{name}.json" for name in ("dashboard", "serve")]
KNOWN = {PREFIX + name: labels for name, _, _, labels in METRICS} | metrics_of_serve()
HISTOGRAMS = {f"{PREFIX}{name}_bucket" for name, kind, _, _ in METRICS if kind == "histogram"}
HISTOGRAMS |= {"symbolize_http_seconds_bucket"}
ADDED = {"job", "instance", "le", "process"}
"""Labels that Prometheus adds, and of the metrics that all programs have."""


def rules(of: str = "") -> Iterator[dict[str, Any]]:
    """The alerts of a group, or all."""
    yaml = package("yaml")
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"] if of in ("", group["name"]) else ()


def panels(path: Path) -> list[dict[str, Any]]:
    """The panels of a dashboard."""
    found: list[dict[str, Any]] = json.loads(path.read_text())["panels"]
    return found


def shown() -> list[str]:
    """The expressions of all dashboards."""
    return [target["expr"] for path in DASHBOARDS for panel in panels(path) for target in panel["targets"]]


def check(expression: str) -> set[str]:
    """Check that metrics and labels exist; the metrics."""
    named = set(re.findall(r"\bsymbolize_\w+", expression))
    assert named
    assert named <= KNOWN.keys() | HISTOGRAMS, expression
    labels = {label for name in named for label in KNOWN.get(name.removesuffix("_bucket"), ())} | ADDED
    used = {each for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression) for each in group.split(", ")}
    used |= set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression))
    assert used <= labels, expression
    return named


def test_alerts() -> None:
    """Each names metrics and labels that exist, and says what happened."""
    alerts = list(rules())
    assert len({alert["alert"] for alert in alerts}) == len(alerts) > 5
    named: set[str] = set()
    for alert in alerts:
        named |= check(alert["expr"])
        assert alert["annotations"]["summary"]
        assert alert["labels"]["severity"] in ("page", "ticket")
    needed = ("last_progress_time_seconds", "last_look_time_seconds", "coverage_percent")
    assert {PREFIX + name for name in needed} <= named


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboard(path: Path) -> None:
    """Each panel shows metrics that exist; no two overlap."""
    places: set[tuple[int, int]] = set()
    for panel in panels(path):
        assert panel["title"]
        for target in panel["targets"]:
            check(target["expr"])
        place = panel["gridPos"]
        covered = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert places.isdisjoint(covered)
        assert max(x for x, _ in covered) < 24
        places |= covered


def test_values_of_labels() -> None:
    """Outcomes and reasons that the expressions compare with exist."""
    texts = [alert["expr"] for alert in rules()] + shown()
    outcomes = {value for text in texts for value in re.findall(r'outcome="([^"]*)"', text)}
    assert outcomes <= {reason.code for reason in Reason} | {"found", "missing", "failed"}


NIGHTS = {
    "symbolize_up": (0, 0),
    "symbolize_end_time_seconds": (3600, 90000),
    "symbolize_exit_code": (0, 1),
    'symbolize_inputs_quarantined{reason="unreadable"}': (3, 203),
    'symbolize_inputs_quarantined{reason="unreachable"}': (0, 0),
    'symbolize_quarantined_total{reason="unreadable"}': (3, 200),
    'symbolize_debuginfod_fetches_total{outcome="failed"}': (5, 5),
    "symbolize_tables_failed_total": (0, 0),
    "symbolize_inputs_done": (2000, 2000),
    "symbolize_coverage_percent": (94, 94),
    'symbolize_locations_total{outcome="symbolized"}': (900, 90),
    'symbolize_locations_total{outcome="not-found"}': (100, 110),
}
"""What a nightly job shows for a day, and after its second night, in which all was seen at once. No third follows."""


@pytest.mark.needs("promtool")
def test_nights(tmp_path: Path) -> None:
    """Alerts fire for a job whose metrics only change from night to night, and for a night that is missing."""
    yaml = package("yaml")
    bad = {"Failed", "Quarantine", "ServersFail", "CoverageDropped"}
    times = {"20h": {"ServersFail"}, "26h": bad, "45h": bad, "52h": {"Failed", "ServersFail", "NotRun"}}
    names = [alert["alert"].removeprefix("Symbolize") for alert in rules()]
    found = [
        {"eval_time": time, "alertname": f"Symbolize{name}", "exp_alerts": []}
        for time, expected in times.items()
        for name in names
        if name not in expected
    ]
    labels = {each["alert"]: each for each in rules()}
    for time, expected in times.items():
        for name in sorted(expected):
            rule = labels[f"Symbolize{name}"]
            seen = {"exp_labels": rule["labels"], "exp_annotations": rule["annotations"]}
            found.append({"eval_time": time, "alertname": rule["alert"], "exp_alerts": [seen]})
    series = [{"series": name, "values": f"{one}x287 {two}x400"} for name, (one, two) in NIGHTS.items()]
    case = {"interval": "5m", "input_series": series, "alert_rule_test": found}
    path = tmp_path / "nights.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "30m", "tests": [case]}))
    ended = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


SERVED = {
    "up": "1x30 0x60",
    "symbolize_http_in_flight": "1x30",
    'symbolize_work_seconds{lane="profiles"}': "0x10 200x20",
    'symbolize_work_seconds{lane="opening"}': "0x10 200x20",
    'symbolize_http_requests_total{path="/symbolize",status="200"}': "0+60x90",
    'symbolize_http_requests_total{path="/symbolize",status="503"}': "0+10x90",
    'symbolize_http_requests_total{path="/symbolize",status="499"}': "0+10x90",
    'symbolize_http_seconds_bucket{path="/symbolize",le="5.0"}': "0+60x90",
    'symbolize_http_seconds_bucket{path="/symbolize",le="10.0"}': "0+80x90",
    'symbolize_http_seconds_bucket{path="/symbolize",le="+Inf"}': "0+80x90",
    'symbolize_forwarded_total{status="200"}': "0+60x90",
    'symbolize_forwarded_total{status="repeated"}': "0+30x90",
    'symbolize_forwarded_total{status="none"}': "0+10x90",
}
"""What a server shows, minute by minute, in which everything goes wrong, and which is gone after half an hour."""
HEALTHY = {
    "up": "1x90",
    'symbolize_work_seconds{lane="profiles"}': "0x90",
    'symbolize_http_requests_total{path="/symbolize",status="503"}': "0+1x90",
    'symbolize_http_requests_total{path="/symbolize",status="499"}': "0+1x90",
    'symbolize_http_seconds_bucket{path="/symbolize",le="10.0"}': "0+61x90",
    'symbolize_http_seconds_bucket{path="/symbolize",le="+Inf"}': "0+61x90",
    'symbolize_forwarded_total{status="none"}': "0+1x90",
}
"""What another one shows instead."""


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("is_bad", [True, False])
def test_servers(tmp_path: Path, is_bad: bool) -> None:
    """Alerts fire for a server in which everything goes wrong, and for another one none does."""
    yaml = package("yaml")
    found = []
    for rule in rules("symbolize-serve"):
        name = rule["alert"].removeprefix("SymbolizeServe")
        labels = dict(rule["labels"])
        if name == "Stuck":
            labels["lane"] = "profiles"
        elif name in ("Slow", "ClientsLeave"):
            labels["path"] = "/symbolize"
        fired = [{"exp_labels": labels, "exp_annotations": rule["annotations"]}] if is_bad else []
        found.append(
            {"eval_time": "29m" if name == "Stuck" else "80m", "alertname": rule["alert"], "exp_alerts": fired}
        )
    assert len(found) == 6
    series = [{"series": name, "values": values} for name, values in (SERVED | ({} if is_bad else HEALTHY)).items()]
    case = {"interval": "1m", "input_series": series, "alert_rule_test": found}
    path = tmp_path / "server.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [case]}))
    ended = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.needs("promtool")
def test_prometheus_reads_them(tmp_path: Path) -> None:
    """Prometheus' own tool accepts the alerts, and the expressions of the dashboards."""
    yaml = package("yaml")
    records = [{"record": f"panel:{number}", "expr": each.replace("$job", ".*")} for number, each in enumerate(shown())]
    dashboards = tmp_path / "dashboards.yaml"
    dashboards.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": records}]}))
    for path in (RULES, dashboards):
        ended = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
