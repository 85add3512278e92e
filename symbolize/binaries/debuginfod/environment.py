"""The variables that elfutils documents for debuginfod clients. Read only when a user asks for it."""

import re
from collections.abc import Mapping
from dataclasses import replace

from symbolize.binaries.debuginfod.cache import default_folder
from symbolize.binaries.debuginfod.server import check_header, parse_servers
from symbolize.binaries.debuginfod.types import Limits, Settings
from symbolize.core.errors import UsageError
from symbolize.core.files import os_error_text

MAX_HEADERS_FILE = 1 << 16
FOREVER = 2e6
"""Seconds that mean no limit; sockets take no more."""


def read_environment(variables: Mapping[str, str]) -> Settings:
    """What the variables set; `problems` says what was left out, a sentence each."""
    servers, problems = parse_servers(variables.get("DEBUGINFOD_URLS", "").split())
    refusals = {server.refusal for server in servers}  # which the client reports with their servers
    problems = [problem for problem in problems if problem not in refusals]
    if not servers:
        problems.append("DEBUGINFOD_URLS names no server")
    limits = Limits()
    if (number := read_number(variables, "DEBUGINFOD_TIMEOUT", problems)) is not None:
        # Zero or less is no limit; a stalled download still ends by its rate.
        limits = replace(limits, answer_time=float(number) if number > 0 else FOREVER)
    if (number := read_number(variables, "DEBUGINFOD_MAXTIME", problems)) is not None:
        limits = replace(limits, total_time=float(number) if number > 0 else FOREVER)
    if (number := read_number(variables, "DEBUGINFOD_MAXSIZE", problems)) is not None and number > 0:
        limits = replace(limits, max_size=number)
    if (number := read_number(variables, "DEBUGINFOD_RETRY_LIMIT", problems)) is not None:
        limits = replace(limits, retries=max(0, min(number, 10)))
    headers = {}
    if path := variables.get("DEBUGINFOD_HEADERS_FILE"):
        headers = read_headers(path, "DEBUGINFOD_HEADERS_FILE", problems)
    return Settings(
        servers,
        variables.get("DEBUGINFOD_CACHE_PATH") or default_folder(variables),
        limits,
        headers,
        read_proxies(variables),
        bool(variables.get("DEBUGINFOD_PROGRESS") or variables.get("DEBUGINFOD_VERBOSE")),
        problems,
    )


def read_number(variables: Mapping[str, str], name: str, problems: list[str]) -> int | None:
    """The whole number in a variable, None if it is not set or none."""
    text = variables.get(name, "").strip()
    if not text:
        return None
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        problems.append(f"{name} is no whole number and was ignored")
        return None
    return int(text)


def read_proxies(variables: Mapping[str, str]) -> dict[str, str]:
    """Proxies by scheme, as curl reads them: HTTP_PROXY is not one of them, a web server may set it for its guests."""
    found = {}
    for key, names in {
        "http": ("http_proxy",),
        "https": ("https_proxy", "HTTPS_PROXY"),
        "all": ("all_proxy", "ALL_PROXY"),
        "no": ("no_proxy", "NO_PROXY"),
    }.items():
        if text := next(filter(None, (variables.get(name, "").strip() for name in names)), ""):
            found[key] = text
    return found


def read_headers(path: str, name: str, problems: list[str]) -> dict[str, str]:
    """Request headers, one a line, of the file at `path`, which is what `name` says. Their values may be secrets, so
    that no problem shows one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_HEADERS_FILE)
    except (OSError, ValueError) as error:
        problems.append(f"{name} {path} cannot be read ({os_error_text(error)})")
        return {}
    headers = {}
    for number, line in enumerate(text.splitlines(), 1):
        field, colon, value = line.partition(":")
        if not line.strip():
            continue
        try:
            if not colon or not value.strip():
                raise UsageError("no header")
            check_header(field, value.strip())
        except UsageError:
            problems.append(f"{name} {path}: line {number} is no header, NAME: VALUE")
            continue
        headers[field] = value.strip()
    return headers
