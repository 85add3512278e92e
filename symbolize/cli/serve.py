"""`symbolize serve`: a symbol server over folders of binaries."""

from __future__ import annotations

import argparse
import gc
import ipaddress
import os
import re
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

from symbolize.cli.arguments import Parser
from symbolize.cli.console import EXIT_DONE, EXIT_FAILED, print_error
from symbolize.cli.options import (
    add_accept,
    add_cache_options,
    add_demangle,
    add_list,
    at_least_one,
    byte_size,
    check_servers,
    number,
    open_cache,
    positive,
    take_stores,
)
from symbolize.cli.symbolizing import asked_for
from symbolize.core.errors import OutputError, UsageError, printable
from symbolize.core.files import no_such, os_error_text
from symbolize.core.parallel import own_import_path

TOKEN = "SYMBOLIZE_TOKEN"
GRACE = 30
"""Seconds that requests have to end when the server is stopped."""
KEEP_ALIVE = 15
BACKLOG = 1024
PORTS = 1 << 16
GRPC_URLS = ("grpc://", "grpcs://")
HEALTH_SECONDS = 10
"""Seconds after which a worker that does not answer the one that started it is replaced."""
TOKEN_CHARACTERS = re.compile(r"[A-Za-z0-9._~-]{8,200}")


def run_serve(arguments: Sequence[str]) -> int:
    """Run the server until it is stopped; the exit code."""
    gc.enable()  # the command may run for months
    options = serve_parser().parse_args(arguments)
    token = os.environ.pop(TOKEN, "")
    check(options, token)
    with tempfile.TemporaryDirectory(prefix="symbolize-serve-") as folder:
        metrics = os.path.join(folder, "metrics")
        os.mkdir(metrics)
        # prometheus_client reads it when it is imported: the workers add up their metrics in this folder.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics
        before = signal.signal(signal.SIGTERM, end)
        try:
            return serve(options, token, folder)
        finally:
            signal.signal(signal.SIGTERM, before)
            del os.environ["PROMETHEUS_MULTIPROC_DIR"]


def end(*_: Any) -> None:
    """End in order on SIGTERM, which uvicorn raises once more when it has ended: the folder is to be removed."""
    sys.exit(EXIT_DONE)


def serve(options: argparse.Namespace, token: str, shared: str) -> int:
    """Run the server with `options`; `shared` is a folder that is removed afterwards."""
    try:
        from symbolize.serve.protocol import allow_descriptors
        from symbolize.serve.request_filter import PROFILER
        from symbolize.serve.worker import ServerSettings, check_settings
        from symbolize.symbols import DEFAULT_LIMIT
    except ImportError as error:
        packages = "starlette uvicorn httptools prometheus-client"
        raise UsageError(f"serve needs {error.name}, which is not installed: pip install {packages}") from error
    cache = None if options.no_cache else open_cache(options)
    settings = ServerSettings(
        binaries=options.binaries,
        cache=cache.location if cache is not None else os.path.join(shared, "cache"),
        cache_limit=cache.limit if cache is not None else DEFAULT_LIMIT,
        shared=shared,
        debuginfod=options.debuginfod,
        options=asked_for(options),
        sources=options.source_path,
        uploads=options.uploads or "",
        upload_limit=options.upload_limit,
        uploads_limit=options.uploads_limit,
        body_limit=options.body_limit,
        wait_seconds=options.max_wait,
        memory_limit=options.memory_limit,
        forward=options.forward or "",
        authorizes=options.forward_authorization,
        headers=options.forward_headers or "",
        otlp_grpc=join_address(*options.otlp_grpc) if options.otlp_grpc else "",
        token=token,
        hosts=[host.lower() for host in options.allow_host] if is_loopback("--host", options.host) else None,
        origins=options.origin or [PROFILER],
        access_log=options.access_log or "",
    )
    try:
        problems = check_settings(settings)
    except OSError as error:
        raise OutputError(f"--access-log {options.access_log}: {os_error_text(error)}") from error
    for problem in problems:
        print_error(f"symbolize: {printable(problem)}")
    check_address("--host {} --port {}", options.host, options.port)
    places = f"http://{join_address(options.host, options.port)}"
    if options.otlp_grpc:
        check_address("--otlp-grpc {}:{}", *options.otlp_grpc)
        places += f" and grpc://{settings.otlp_grpc}"
    settings.leave()
    allow_descriptors()
    print_error(f"symbolize: serving on {places}, {options.workers} workers")
    try:
        run_workers(options)
    except SystemExit as error:  # uvicorn has codes of its own
        return EXIT_FAILED if error.code else EXIT_DONE
    return EXIT_DONE


def run_workers(options: argparse.Namespace) -> None:
    """Run the server in as many processes as `options` say, in this one if that is one. Raises SystemExit."""
    import uvicorn

    from symbolize.serve.protocol import GuardedProtocol

    # A single worker is this process, which starts others itself.
    with own_import_path() if options.workers > 1 else nullcontext():
        uvicorn.run(
            "symbolize.serve.worker:app",
            factory=True,
            host=options.host,
            port=options.port,
            workers=options.workers,
            http=GuardedProtocol,
            ws="none",
            access_log=False,
            log_level="error",
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
            timeout_worker_healthcheck=HEALTH_SECONDS,
            proxy_headers=False,
            server_header=False,
        )


def check_address(option: str, host: str, port: int) -> None:
    """Raise OutputError if nobody can listen there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            raise OutputError(f"{option.format(host, port)}: {os_error_text(error)}") from error


def check(options: argparse.Namespace, token: str) -> None:
    """Raise UsageError for options that contradict each other, or would open the server to everybody."""
    if not options.binaries and not options.debuginfod:
        raise UsageError("serve needs --binaries DIR or --debuginfod URL")
    check_servers(options.debuginfod)
    if options.otlp_grpc is not None:
        options.otlp_grpc = options.otlp_grpc[0] or options.host, options.otlp_grpc[1]
        if not options.forward:
            raise UsageError("--otlp-grpc needs --forward")
    for option, host in (("--host", options.host), ("--otlp-grpc", (options.otlp_grpc or [options.host])[0])):
        if not is_loopback(option, host) and not token:
            raise UsageError(f"{option} {host}: a server that others reach needs a token in {TOKEN}")
    if options.otlp_grpc or (options.forward or "").startswith(GRPC_URLS):
        check_grpc("--otlp-grpc" if options.otlp_grpc else "--forward grpc://")
    if token and not TOKEN_CHARACTERS.fullmatch(token):
        raise UsageError(f"the token in {TOKEN} is not 8 to 200 letters, digits and ._~-")
    if options.forward_authorization and (token or not options.forward):
        raise UsageError("--forward-authorization needs --forward, and cannot be with a token of this server")
    if options.forward_headers is not None and not options.forward:
        raise UsageError("--forward-headers needs --forward")
    if options.uploads is not None and not token:
        raise UsageError(f"--uploads needs a token in {TOKEN}")
    for option, port in (("--port", options.port), ("--otlp-grpc", (options.otlp_grpc or ["", 1])[1])):
        if not 0 < port < PORTS:
            raise UsageError(f"{option} {port}: is not from 1 to {PORTS - 1}")
    if options.uploads is not None and not os.path.isdir(options.uploads):
        raise UsageError(f"--uploads {options.uploads}: {no_such(options.uploads, 'folder')}")


def check_grpc(option: str) -> None:
    """Raise UsageError unless gRPC is installed, and keep it from writing what it thinks."""
    if find_spec("grpc") is None:
        raise UsageError(f"{option} needs the extra grpc, which is not installed: pip install grpcio")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would write a line for each request that is none


def grpc_address(text: str) -> tuple[str, int]:
    """The host, empty for that of the server, and the port of an address. Raises ValueError."""
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), number(port)


def is_loopback(option: str, host: str) -> bool:
    """Whether only this machine reaches an address. Raises UsageError for what is no address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise UsageError(f"{option} {host}: is no IP address") from None


def join_address(host: str, port: int) -> str:
    """An address and a port as a URL has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def serve_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize serve",
        "Serve names, symbolized profiles and debug files over HTTP: Mozilla's symbolication API, debuginfod, and "
        "profiles in and out.",
        ["--binaries DIR [OPTIONS]"],
        brief=(
            *("--binaries", "--debuginfod", "--source-path", "--uploads", "--host", "--port", "--workers"),
            *("--forward", "--otlp-grpc", "--origin", "--access-log", "--cache"),
        ),
        epilog=f"Requests need the token in {TOKEN} if there is one. Exit codes: 0 stopped, 1 failed, 2 usage.",
    )
    result.conclusions.append(take_stores)
    add_file_options(result.group("Binaries"))
    add_server_options(result.group("Server"))
    add_demangle(result.group("Names"), "full")
    add_accept(result.group("Names"))
    add_cache_options(result)
    return result


def add_file_options(group: argparse._ArgumentGroup) -> None:
    """The options for the files that are served."""
    add_list(
        group,
        "--binaries",
        "-b",
        metavar="DIR",
        help="folder with binaries and debug files, or a URL (s3://, gs://) that is asked by build ID;\nmay be given "
        "several times",
    )
    add_list(
        group,
        "--debuginfod",
        metavar="URL",
        help="server to ask for what is missing there; may be given several times",
    )
    add_list(group, "--source-path", metavar="DIR", help="folder with source files that may be sent")
    group.add_argument("--uploads", metavar="DIR", help="folder for debug files that clients send by PUT")
    group.add_argument(
        "--upload-limit",
        metavar="SIZE",
        type=byte_size,
        default=4 << 30,
        help="size of a file that is sent (default: 4G)",
    )
    group.add_argument(
        "--uploads-limit",
        metavar="SIZE",
        type=byte_size,
        default=100 << 30,
        help="size of all files that are sent (default: 100G)",
    )


def add_server_options(group: argparse._ArgumentGroup) -> None:
    """The options for who is answered, where and how."""
    group.add_argument(
        "--host", metavar="ADDRESS", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    group.add_argument("--port", metavar="N", type=number, default=8080, help="port to listen on (default: 8080)")
    group.add_argument("--workers", metavar="N", type=at_least_one, default=2, help="worker processes (default: 2)")
    group.add_argument(
        "--body-limit",
        metavar="SIZE",
        type=byte_size,
        default=256 << 20,
        help="size of a profile that is sent (default: 256M)",
    )
    group.add_argument(
        "--max-wait",
        metavar="SECONDS",
        type=positive,
        default=5.0,
        help="time that a request for names or of a profile may wait; others are refused with 503\n(default: 5)",
    )
    group.add_argument(
        "--memory-limit",
        metavar="SIZE",
        type=byte_size,
        default=4 << 30,
        help="private memory for one profile (default: 4G), which is refused with 413 if it takes more",
    )
    group.add_argument(
        "--otlp-grpc",
        metavar="[ADDRESS]:PORT",
        type=grpc_address,
        help="take OTLP profiles over gRPC there too, as collectors send them; needs --forward and the extra grpc",
    )
    group.add_argument(
        "--forward",
        metavar="URL",
        help="server that OTLP profiles are passed on to, with names added: http(s)://HOST/PATH, or\n"
        "grpc://HOST:PORT, grpcs:// with TLS",
    )
    group.add_argument(
        "--forward-authorization", action="store_true", help="pass on the Authorization of the clients with them"
    )
    group.add_argument(
        "--forward-headers",
        metavar="FILE",
        help="headers to send with them, NAME: VALUE a line, as API keys and tenants",
    )
    add_list(
        group,
        "--allow-host",
        metavar="NAME",
        help="further name by which a server on a loopback address is asked; may be given several times",
    )
    add_list(
        group,
        "--origin",
        metavar="ORIGIN",
        help="origin of web pages that may ask, * for all; may be given several times (default:\nhttps://profiler.firefox.com)",
    )
    group.add_argument("--access-log", metavar="FILE", help="append a JSON line for each request; - is standard error")
