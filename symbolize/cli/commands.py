"""The commands: what each is for, and which module has it. None is imported before it is chosen."""

from __future__ import annotations

import argparse
import importlib
import os
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple


class Command(NamedTuple):
    """Module in this package, with the functions `run_NAME` and `NAME_parser`, and a line on what the command does."""

    module: str
    summary: str


COMMANDS: Final = {
    "view": Command("view", "write a page with flame graph, tables and source lines"),
    "top": Command("terminal", "print the functions with the most value"),
    "tree": Command("terminal", "print the call tree, the heaviest branch first"),
    "list": Command("terminal", "print source lines of functions with their values"),
    "diff": Command("terminal", "print what grew and shrank between two profiles"),
    "batch": Command("batch", "symbolize thousands of profiles, on all cores or a cluster"),
    "plan": Command("profiles", "show which binaries would be used and which are missing"),
    "inspect": Command("inspect", "show what a binary, debug file, profile or trace contains"),
    "index": Command("cache", "build the symbol tables of a folder in advance"),
    "serve": Command("serve", "serve names and debug files over HTTP"),
    "addr": Command("addr", "print the frames at addresses of a binary"),
    "as": Command("drop_in", "answer in the place of llvm-symbolizer or addr2line"),
    "log": Command("addr", "put names into stack traces of a text"),
    "cache": Command("cache", "show, check or clean the cache of symbol tables"),
    "completion": Command("help", "print the completion script for bash, zsh or fish"),
    "help": Command("help", "show the options of a command"),
}
"""By their first argument, in the order of the help. Without one of them, profiles are symbolized."""


TOOLS: Final = ("llvm-symbolizer", "llvm-addr2line", "addr2line")
"""The tools that `symbolize as` stands in for."""
TOOL_NAME: Final = re.compile(r"(?:[\w.]+-)*?(llvm-symbolizer|llvm-addr2line|addr2line)(?:-[\d.]+)?", re.ASCII)


def tool_of(program: str) -> str:
    """Which of the tools a program goes by the name of, as in `x86_64-linux-gnu-addr2line` or `llvm-symbolizer-19`;
    empty for any other name."""
    match = TOOL_NAME.fullmatch(os.path.basename(program))
    return match[1] if match is not None else ""


def run_of(name: str) -> Callable[[Sequence[str]], int]:
    """The function that runs a command; without a `name` profiles are symbolized."""
    run: Callable[[Sequence[str]], int] = getattr(_module(name), f"run_{name or 'profiles'}")
    return run


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a command; without a `name` the one for symbolizing profiles."""
    result: argparse.ArgumentParser = getattr(_module(name), f"{name}_parser" if name else "parser")()
    return result


def _module(name: str) -> object:
    return importlib.import_module(f"symbolize.cli.{COMMANDS[name].module if name else 'profiles'}")
