"""What the server is, for people: a page that needs nothing else."""

import html
from collections.abc import Mapping
from typing import Final

POLICY: Final = (
    "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3em .8em .3em 0;"
    "border-bottom:1px solid #8884;vertical-align:top}code{font-size:.9em}:root{color-scheme:light dark}"
)
ROUTES: Final = {
    "POST /symbolicate/v5": "names of frames: Mozilla's symbolication API",
    "POST /source/v1": "the source file of a frame",
    "POST /symbolize": "a profile in any format; symbolized",
    "POST /v1development/profiles": "OTLP profiles, passed on with names",
    "GET /buildid/ID/debuginfo": "a debug file; also executable, section/NAME, source/PATH: debuginfod",
    "POST /walk": "has the folders walked now",
    "PUT /buildid/ID/debuginfo": "keeps a debug file; also executable",
    "GET /healthz, /readyz, /metrics": "whether it runs, whether it takes requests, metrics for Prometheus",
}


def page(facts: Mapping[str, str]) -> str:
    """The page."""
    rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in facts.items())
    routes = "".join(
        f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(text)}</td></tr>"
        for name, text in ROUTES.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>symbolize: a symbol server</title>'
        f"<style>{STYLE}</style></head><body><h1>symbolize: a symbol server</h1><table>{rows}</table>"
        f"<h2>Requests</h2><table>{routes}</table></body></html>\n"
    )


def text(facts: Mapping[str, str]) -> str:
    """The same for terminals."""
    lines = ["symbolize: a symbol server", *(f"{name}: {value}" for name, value in facts.items()), ""]
    return "\n".join([*lines, *(f"{name}  {value}" for name, value in ROUTES.items())]) + "\n"
