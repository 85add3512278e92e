"""`symbolize help [COMMAND]`: all options of a command."""

from collections.abc import Sequence

from symbolize.cli.arguments import Parser
from symbolize.cli.commands import COMMANDS, parser_of
from symbolize.cli.options import EXIT_DONE, print_output


def run_help(arguments: Sequence[str]) -> int:
    """Print the long help of a command; the exit code."""
    options = help_parser().parse_args(arguments)
    print_output(parser_of(options.command or "").format_help(), flush=True)
    return EXIT_DONE


def help_parser() -> Parser:
    """The arguments of the command."""
    result = Parser("symbolize help", "Show all options of a command, as its --help does.", ["[COMMAND]"])
    result.add_argument("command", metavar="COMMAND", nargs="?", choices=COMMANDS, help="one of the commands")
    return result
