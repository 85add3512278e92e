"""The command line: arguments and terminal only, every command a thin call into the library."""

from symbolize.cli.main import main

__all__ = ["main"]
