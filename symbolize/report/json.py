"""The report as JSON for machines."""

import json
from typing import Any, Protocol

from symbolize.analysis.tables import valid
from symbolize.core.reasons import TEXTS, Reason
from symbolize.report.model import MappingRow, Report

SCHEMA_VERSION = 2
PLAN_VERSION = 1
TABLE_VERSION = 1
PROFILE_DETAILS = "sample_count", "leaf_value", "symbolized_leaf_value", "shared_value", "decided_value"
MAPPING_DETAILS = "approximate_lines", "without_lines", "had_names", "tried", "wanted"
"""The fields of a profile and of a mapping that the report on many profiles leaves out."""


class Subject(Protocol):
    """What a profile in a trace is of; all empty for other inputs."""

    @property
    def kind(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def process(self) -> str: ...


def as_dict(
    report: Report, profile: str, output: str, subject: Subject | None = None, *, is_kept: bool = False
) -> dict[str, object]:
    """The report on the input `profile`, written to `output` unless what was there `is_kept`, as plain data."""
    of = subject if subject is not None and subject.kind else None
    return {
        "schema_version": SCHEMA_VERSION,
        "profile": profile,
        "of": {"kind": of.kind, "detail": of.detail, "pid": of.pid, "process": of.process} if of is not None else None,
        "output": output,
        "kept": is_kept,
        **figures(report),
        "mappings": [mapping(row) for row in report.mappings],
        "failures": failures(report),
        "server_failures": server_failures(report),
        "top_functions": [
            {"name": function.name, "flat": function.flat, "cumulative": function.cumulative} for function in report.top
        ],
        "caveats": report.caveats,
        "warnings": report.warnings,
    }


def coverage(report: Report) -> dict[str, object]:
    """What was found and what was not, as plain data: the short form for the report on many profiles, without what is
    wrong with the run."""
    return {
        **{field: value for field, value in figures(report).items() if field not in PROFILE_DETAILS},
        "mappings": [
            {field: value for field, value in mapping(row).items() if field not in MAPPING_DETAILS}
            for row in report.mappings
            if row.locations
        ],
        "failures": failures(report),
        "server_failures": server_failures(report),
        "caveats": report.caveats,
        "warnings": report.own_warnings,
    }


def figures(report: Report) -> dict[str, object]:
    """How much is in a profile, and how much of it has names."""
    return {
        "samples": report.samples,
        "sample_count": report.sample_count,
        "sample_type": report.sample_type,
        "unit": report.unit,
        "sample_value": report.sample_value,
        "locations": report.locations,
        "symbolized_locations": report.symbolized_locations,
        "value": report.value,
        "symbolized_value": report.symbolized_value,
        "symbolized_percent": round(report.percent, 4),
        "leaf_value": report.leaf_value,
        "symbolized_leaf_value": report.symbolized_leaf_value,
        "leaf_percent": round(report.leaf_percent, 4),
        "shared_value": report.shared_value,
        "decided_value": report.decided_value,
    }


def as_plan(report: Report, profile: str) -> dict[str, object]:
    """What would be used for the input `profile` and what would be missed, as plain data."""
    return {
        "schema_version": PLAN_VERSION,
        "profile": profile,
        "locations": report.locations,
        "covered_percent": round(report.percent, 4),
        "mappings": [{**mapping(row), "table": row.outcome.state} for row in report.mappings],
        "warnings": report.warnings,
    }


def folded(report: Report, profile: str) -> dict[str, object]:
    """The code of the input `profile` that several functions share, the heaviest first, as plain data."""
    return {
        "profile": profile,
        "sample_type": report.sample_type,
        "unit": report.unit,
        "folded": [
            {
                "binary": row.binary,
                "begin": f"{row.code.begin:#x}",
                "end": f"{row.code.end:#x}",
                "shown": row.shown,
                "value": row.value,
                "decided": row.decided,
                "locations": len(row.rows),
                "evidence": row.code.evidence.text,
                "functions": [
                    {"name": text(shown), "linkage_name": text(each.name), "file": text(each.path), "line": each.line}
                    for shown, each in zip(row.names, row.code.functions, strict=True)
                ],
            }
            for row in report.folded
        ],
    }


def text(name: bytes) -> str:
    """A name as text, whatever its bytes are."""
    return name.decode(errors="replace")


def mapping(row: MappingRow) -> dict[str, object]:
    """One mapping as plain data."""
    outcome = row.outcome
    return {
        "name": row.name,
        "build_id": row.build_id,
        "files": row.files,
        "verified": outcome.verified,
        "verdict": outcome.verdict.text,
        "evidence": outcome.evidence,
        "locations": row.locations,
        "symbolized_locations": row.symbolized_locations,
        "value": row.value,
        "symbolized_value": row.symbolized_value,
        "flat": row.flat,
        "symbolized_flat": row.symbolized_flat,
        "cumulative": row.cumulative,
        "had_names": row.had_names,
        "without_lines": {"locations": row.without_lines, "value": row.without_lines_value},
        "misses": misses(row),
        "approximate_lines": {"locations": row.approximate_lines, "value": row.approximate_value},
        "is_local": outcome.is_local,
        "calls": outcome.stack_check._asdict() if outcome.stack_check is not None else None,
        "detail": outcome.detail,
        "tried": [{"place": place, "outcome": what} for place, what in outcome.tried],
        "problems": row.problems,
        "wanted": {"build_id": outcome.wanted_id, "files": list(outcome.wanted)} if outcome.wanted else None,
    }


def failures(report: Report) -> list[dict[str, str]]:
    """What failed, so that names or lines may be missing, as plain data."""
    return [{"reason": reason.code, "place": place, "text": text} for reason, place, text in report.failures]


def server_failures(report: Report) -> list[dict[str, str]]:
    """The servers among what failed."""
    failed = (failure for failure in report.failures if failure.reason is Reason.SERVER_FAILED)
    return [{"server": place, "text": text} for _, place, text in failed]


def misses(row: MappingRow) -> list[dict[str, object]]:
    """Why locations of a mapping have no names, as plain data."""
    return [
        {"reason": reason.code, "text": TEXTS[reason], "locations": locations, "value": value}
        | {"flat": row.missed_flat.get(reason, 0.0)}
        for reason, locations, value in row.misses
    ]


def bounded(value: Any, limit: int, cuts: list[dict[str, object]], path: str = "") -> Any:
    """Plain data with at most `limit` items of each list; `cuts` gets the path and the length of those that had
    more."""
    if isinstance(value, dict):
        return {valid(key): bounded(each, limit, cuts, f"{path}.{valid(key)}") for key, each in value.items()}
    if isinstance(value, list):
        if len(value) > limit:
            cuts.append({"field": path.removeprefix("."), "total": len(value)})
        return [bounded(each, limit, cuts, f"{path}[{row}]") for row, each in enumerate(value[:limit])]
    return valid(value) if isinstance(value, str) else value


def render(data: dict[str, object]) -> str:
    """One line of ASCII JSON, so that the reports on several profiles are JSON lines, and no name steers a terminal."""
    return json.dumps(data) + "\n"
