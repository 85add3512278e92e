"""The alerts and the dashboard of the documentation fit the metrics."""

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

RULES = DOCS / "examples" / "prometheus-rules.yaml"
DASHBOARD = DOCS / "examples" / "grafana-dashboard.json"
KNOWN = {PREFIX + name: labels for name, _, _, labels in METRICS}
HISTOGRAMS = {f"{PREFIX}{name}_bucket" for name, kind, _, _ in METRICS if kind == "histogram"}
ADDED = {"job", "instance", "le"}
"""Labels that Prometheus adds."""


def rules() -> Iterator[dict[str, Any]]:
    """The alerts."""
    yaml = package("yaml")
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]


def panels() -> list[dict[str, Any]]:
    """The panels of the dashboard."""
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


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


def test_dashboard() -> None:
    """Each panel shows metrics that exist; no two overlap."""
    places: set[tuple[int, int]] = set()
    for panel in panels():
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
    texts = [alert["expr"] for alert in rules()] + [target["expr"] for panel in panels() for target in panel["targets"]]
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


@pytest.mark.needs("promtool")
def test_prometheus_reads_them(tmp_path: Path) -> None:
    """Prometheus' own tool accepts the alerts, and the expressions of the dashboard."""
    yaml = package("yaml")
    expressions = [target["expr"].replace("$job", ".*") for panel in panels() for target in panel["targets"]]
    records = [{"record": f"panel:{number}", "expr": each} for number, each in enumerate(expressions)]
    shown = tmp_path / "dashboard.yaml"
    shown.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": records}]}))
    for path in (RULES, shown):
        ended = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
