"""Damaged answers of debuginfod servers, and damaged folders of what was downloaded."""

import gzip
import os
import random
import shutil
import zlib
from functools import cache
from pathlib import Path

from symbolize.binaries.debuginfod import Debuginfod, FetchOptions, Limits
from symbolize.elf import ElfError, ElfImage
from tests.support.http_server import HttpServer, Request
from tests.support.line_writer import Format
from tools.fuzz.mutate import mutate_bytes, mutate_file, mutate_text
from tools.fuzz.shapes import small_file

FOLDER = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp")
ID = bytes(range(20)).hex()
"""The build id of `SOUND`."""
SOUND = small_file(Format(4))
QUICK = Limits(
    connect_time=1.0, probe_time=1.0, answer_time=0.5, stall_time=0.1, min_rate=1, total_time=1.0, retries=1,
    first_wait=0.001, longest_wait=0.002, patience=0.1,
)  # fmt: skip
SECTIONS = (".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".symtab", ".strtab", ".note.gnu.build-id")
HEADS = (
    b'ETag: "abc"', b"Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT", b"Retry-After: 1", b"X-DEBUGINFOD-SIZE: 1944",
    b"Content-Range: bytes 0-99/1944", b"Transfer-Encoding: chunked", b"X-DEBUGINFOD-FILE: /usr/bin/app",
    b"Location: http://127.0.0.1:1/", b"Content-Type: text/html",
)  # fmt: skip
CODINGS = ("gzip", "deflate", "zstd")
WILD = (0.01, 0.05, 0.2)
"""How often each part of an answer is damaged, by seed."""
STATE = {"seed": 0}
"""The seed of what the server answers next."""


def answer(request: Request) -> None:
    """Answer a request, with much or little damage."""
    STATE["seed"] += 1
    chance = random.Random(~STATE["seed"])
    wild = WILD[(STATE["seed"] >> 8) % len(WILD)]

    def is_damaged() -> bool:
        return chance.random() < wild

    section = request.path.partition("/section/")[2]
    body = sections().get(section, b"") if section else SOUND
    if is_damaged():
        body = mutate_bytes(chance, body) if section else mutate_file(chance, body)
    status = chance.choice((206, 404, 302, 403, 416, 429, 500, 503, 999)) if is_damaged() else 200
    lines = [b"HTTP/1.1 %d Any" % status, b"Connection: close"]
    coding = chance.choice(CODINGS) if is_damaged() else ""
    if coding:
        body = gzip.compress(body) if coding == "gzip" else zlib.compress(body)
        lines.append(b"Content-Encoding: " + coding.encode())
    lines.append(b"Content-Length: %d" % (chance.choice((0, 7, 1 << 40)) if is_damaged() else len(body)))
    if is_damaged():
        lines += chance.sample(HEADS, chance.randrange(4))
    head = b"\r\n".join(lines) + b"\r\n\r\n"
    whole = (mutate_text(chance, head) if is_damaged() else head) + body
    request.send(whole[: chance.randrange(len(whole))] if is_damaged() else whole)


@cache
def server(process: int) -> str:
    """The URL of the server of a process."""
    running = HttpServer(answer)
    running.__enter__()  # for as long as the process lives
    return running.url


@cache
def sections() -> dict[str, bytes]:
    """The sections of the sound file."""
    with ElfImage.parse(memoryview(SOUND), "sound") as image:
        return {name: bytes(image.contents(name) or b"") for name in SECTIONS}


def served_target(seed: int) -> int:
    """A file and its sections from a server that answers with damage, and notes in the folder that are damaged: what is
    found is the binary that was asked for, and nothing is left half-written."""
    chance = random.Random(seed)
    STATE["seed"] = seed << 8
    folder = FOLDER / f"fuzz-served-{os.getpid()}"
    executable = Path(f"{folder}-executable")
    url = server(os.getpid())
    try:
        told: list[str] = []
        with Debuginfod([url], FetchOptions(cache=folder, limits=QUICK, tell=told.append)) as client:
            client.fetch(ID, "debuginfo")
        for path in [each for each in folder.rglob("*") if each.is_file()]:
            if chance.random() < 0.5:
                data = mutate_text(chance, path.read_bytes())
                path.unlink()
                path.write_bytes(data if path.suffix or "symbolize" in path.parts else b"")
        for control in ("cache_miss_s", "cache_clean_interval_s", "max_unused_age_s"):
            if chance.random() < 0.3:
                (folder / control).write_bytes(mutate_text(chance, b"3600"))
        with Debuginfod([url], FetchOptions(cache=folder, limits=QUICK, tell=told.append)) as client:
            fetched = client.fetch(ID, "executable" if chance.random() < 0.3 else "debuginfo")
            check(fetched.path)
            executable.write_bytes(SOUND)
            check(client.fetch_sections(ID, SECTIONS[:-1], executable).path)
        assert not any("\n" in line for line in told)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        executable.unlink(missing_ok=True)
    return 2 * len(SOUND)


def check(path: str | None) -> None:
    """Raise AssertionError unless the file, if there is one, has the build id that was asked for."""
    if path is None:
        return
    try:
        with ElfImage.open(path) as image:
            assert image.build_id == ID, image.build_id
    except ElfError as error:  # damaged behind the note, which the build id does not tell
        assert "\n" not in str(error)
