"""`symbolize help [COMMAND]`, all options of a command, and `symbolize completion SHELL`, a completion script for bash,
zsh or fish: both from the parsers of all commands.

Scripts are written here because a command is optional and profiles may be given in its place: shtab 1.13 offers either
the commands or the files then, and completes neither `--demangle=f` nor names with spaces.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from symbolize.cli.arguments import Parser, explanation, value_name
from symbolize.cli.commands import COMMANDS, parser_of
from symbolize.cli.console import EXIT_DONE, print_output

FILES: Final = frozenset({"BASE", "DIR", "FILE", "INPUT", "NEW", "OUT", "PROFILE"})
"""What the help calls values that are paths."""


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


def run_completion(arguments: Sequence[str]) -> int:
    """Print the script; the exit code."""
    shell = completion_parser().parse_args(arguments).shell
    print_output("\n".join(SCRIPTS[shell]()) + "\n", flush=True)
    return EXIT_DONE


def completion_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize completion",
        "Print a script that completes commands, options and their values in a shell.",
        ["bash|zsh|fish"],
        epilog='bash: eval "$(symbolize completion bash)" in ~/.bashrc, or write the script to '
        "~/.local/share/bash-completion/completions/symbolize.\n"
        "zsh: write the script to a file _symbolize in a folder of $fpath.\n"
        "fish: write the script to ~/.config/fish/completions/symbolize.fish.",
    )
    result.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPTS), help="bash, zsh or fish")
    return result


class Word(NamedTuple):
    """An option or argument as a shell completes it: its flags, what it is for, the name of its value, if it has one,
    the choices for it, and whether it is a path."""

    flags: list[str]
    summary: str
    value: str
    choices: list[str]
    is_path: bool


def words(name: str) -> list[Word]:
    """The options and arguments of a command."""
    return [word(action) for action in parser_of(name)._actions]


def word(action: argparse.Action) -> Word:
    """An option or argument."""
    value = "" if action.nargs == 0 else value_name(action)
    choices = [str(choice) for choice in action.choices or ()]
    flags = sorted(action.option_strings, key=len)
    return Word(flags, explanation(action, is_brief=True), value, choices, value in FILES)


def bash() -> Iterator[str]:
    """The script for bash, as macOS has it (3.2) and later."""
    yield from (
        "# bash completion of symbolize",
        "_symbolize() {",
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= words=",
        "    # `=` is a word of its own.",
        '    if [[ $current == "=" ]]; then current=',
        '    elif [[ $previous == "=" ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi',
        "    COMPREPLY=()",
        f'    local commands=" {" ".join(COMMANDS)} "',
        '    [[ $COMP_CWORD == 1 || $commands != *" ${COMP_WORDS[1]} "* ]] || command=${COMP_WORDS[1]}',
        "    case $command:$previous in",
    )
    for name in ("", *COMMANDS):
        for each in words(name):
            if each.flags and each.value:
                pattern = "|".join(f"{name}:{flag}" for flag in each.flags)
                action = f'words="{" ".join(each.choices)}"' if each.choices else "return" if each.is_path else ":"
                yield f"        {pattern}) {action} ;;"
    yield "        *) case $command:$current in"
    for name in ("", *COMMANDS):
        flags = " ".join(flag for each in words(name) for flag in each.flags)
        arguments = " ".join(choice for each in words(name) if not each.flags for choice in each.choices)
        yield f'            {name}:-*) words="{flags}" ;;'
        if arguments:
            yield f'            {name}:*) words="{arguments}" ;;'
    yield from (
        f'            *) [[ $COMP_CWORD != 1 ]] || words="{" ".join(COMMANDS)}" ;;',
        "        esac ;;",
        "    esac",
        "    # Without words readline completes the names of files; the first word may be a file too.",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "    if [[ $COMP_CWORD == 1 && $current != -* ]]; then",
        "        local file",
        "        compopt -o filenames 2>/dev/null",
        '        while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$current")',
        "    fi",
        "}",
        "complete -o bashdefault -o default -F _symbolize symbolize",
    )


def zsh() -> Iterator[str]:
    """The script for zsh, to be found by `compinit` or evaluated."""
    yield from ("#compdef symbolize", "", "_symbolize() {", "    local -a commands=(")
    yield from (f"        {quoted(f'{name}:{command.summary}')}" for name, command in COMMANDS.items())
    yield from (
        "    )",
        "    local command=",
        "    if (( CURRENT > 2 )) && [[ -n ${commands[(r)${words[2]}:*]} ]]; then",
        "        command=${words[2]}",
        "        shift words",
        "        (( CURRENT-- ))",
        "    fi",
        "    case $command in",
    )
    for name in ("", *COMMANDS):
        yield f"        {name or quoted('')}) _arguments -S \\"
        first = [] if name else [quoted("1: :{_describe command commands; _files}")]
        yield from (f"            {spec} \\" for each in words(name) for spec in zsh_specs(each))
        yield from (f"            {spec} \\" for spec in first)
        yield "            ;;"
    yield from ("    esac", "}", "")
    yield 'if [[ $zsh_eval_context[-1] == eval ]]; then compdef _symbolize symbolize; else _symbolize "$@"; fi'


def zsh_specs(each: Word) -> Iterator[str]:
    """What `_arguments` gets for an option, for each of its flags, or of an argument."""
    values = f"({' '.join(each.choices)})" if each.choices else "_files" if each.is_path else " "
    if not each.flags:
        yield quoted(f"*:{each.value}:{values}")
    summary = each.summary.replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    for flag in each.flags:
        long = "=" if flag.startswith("--") and each.value else ""
        yield quoted(f"*{flag}{long}[{summary}]" + (f":{each.value}:{values}" if each.value else ""))


def fish() -> Iterator[str]:
    """The script for fish."""
    yield from (
        "# fish completion of symbolize",
        "function __symbolize_command",
        "    set -l given (commandline -opc)",
        f"    set -l commands {' '.join(COMMANDS)}",
        '    if contains -- "$given[2]" $commands; echo $given[2]; end',
        "end",
        "complete -c symbolize -e",
        f"complete -c symbolize -n 'test (count (commandline -opc)) = 1' -a {quoted(' '.join(COMMANDS))}",
    )
    for name in ("", *COMMANDS):
        condition = f'test "$(__symbolize_command)" = "{name}"'
        start = f"complete -c symbolize -n {quoted(condition)}"
        for each in words(name):
            flags = [f"-s {flag[1:]}" if len(flag) == 2 else f"-l {flag[2:]}" for flag in each.flags]
            values = [f"-xa {quoted(' '.join(each.choices))}"] if each.choices else []
            values = values or (["-r"] if each.is_path else ["-x"] if each.value else [])
            if each.flags or each.choices:
                yield " ".join([start, *flags, *values, f"-d {quoted(each.summary)}"])


def quoted(text: str) -> str:
    """Text that a shell takes as it is."""
    import shlex

    return shlex.quote(text)


SCRIPTS: Final = {"bash": bash, "zsh": zsh, "fish": fish}
"""The generators by shell; each gives lines."""
