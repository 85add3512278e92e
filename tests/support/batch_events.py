"""What a observer of a batch is told, made up."""

from typing import Any

from symbolize.batch.manifest import InputResult, Item, ProfileRow, State
from symbolize.batch.tasks import DecodeResult


def item(number: int = 1, uri: str = "", size: int = 1000) -> Item:
    """An input."""
    uri = uri or f"/in/{number}.prof"
    name = uri.rsplit("/", 1)[-1].removesuffix(".prof")
    return Item(number, uri, name, size, name)


def mapping(
    name: str = "/usr/bin/app",
    build_id: str = "ab12",
    locations: int = 10,
    value: float = 100.0,
    misses: list[tuple[str, int, float]] | None = None,
) -> dict[str, Any]:
    """A mapping as the coverage of a profile has it; `misses` are code, locations and value."""
    missed = [{"reason": code, "text": code, "locations": n, "value": v} for code, n, v in misses or []]
    return {
        "name": name,
        "build_id": build_id,
        "files": [name],
        "verified": True,
        "locations": locations,
        "symbolized_locations": locations - sum(miss["locations"] for miss in missed),
        "value": value,
        "symbolized_value": value - sum(miss["value"] for miss in missed),
        "misses": missed,
        "detail": "",
        "problems": [],
    }


def coverage(*mappings: dict[str, Any], sample_type: str = "cpu", unit: str = "nanoseconds") -> dict[str, Any]:
    """The coverage of a profile with these mappings."""
    value = sum(each["value"] for each in mappings)
    symbolized = sum(each["symbolized_value"] for each in mappings)
    return {
        "samples": 5,
        "sample_type": sample_type,
        "unit": unit,
        "locations": sum(each["locations"] for each in mappings),
        "symbolized_locations": sum(each["symbolized_locations"] for each in mappings),
        "value": value,
        "symbolized_value": symbolized,
        "symbolized_percent": round(100 * symbolized / value, 4) if value else 0.0,
        "mappings": list(mappings),
        "warnings": [],
    }


def done(number: int = 1, *coverages: dict[str, Any], seconds: float = 0.5, size: int = 700) -> InputResult:
    """An input that was symbolized, with a profile for each coverage."""
    rows = tuple(ProfileRow(f"{number}-{i}.pb.gz", size, each) for i, each in enumerate(coverages or (coverage(),)))
    return InputResult(number, State.DONE, rows, seconds=seconds)


def put_off(number: int = 1, seconds: float = 0.1) -> InputResult:
    """An input that waits for tables."""
    return InputResult(number, State.SCANNED, seconds=seconds)


def quarantined(number: int = 1, reason: str = "unreadable", detail: str = "") -> InputResult:
    """An input that was given up."""
    return InputResult(number, State.QUARANTINED, (), reason, detail or f"/in/{number}.prof: is empty", 0.2, 1)


def decoded(key: str = "ab12", failure: str = "") -> DecodeResult:
    """A binary whose table was made, or was not."""
    return DecodeResult(key, 0 if failure else 40, 0 if failure else 5000, 1.5, failure)
