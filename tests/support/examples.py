"""The commands in the examples of the documentation, by the file that has them."""

import re
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.docs_examples import DOCS

EXAMPLES = DOCS / "examples"
FILES = sorted(path for path in EXAMPLES.iterdir() if path.suffix != ".timer")
"""The examples that run something."""
PROGRAM = "symbolize"
SEPARATORS = {"|", "||", "&&", ";", ">", ">>"}


class Example(NamedTuple):
    """A command of an example: the name of the file, the command of the program (empty: profiles), its arguments."""

    file: str
    name: str
    arguments: list[str]


def commands(names: set[str]) -> Iterator[Example]:
    """All commands in the examples; `names` are those of the program."""
    for path in FILES:
        for words in (lines_of_yaml if path.suffix in (".yaml", ".yml") else lines_of_text)(path.read_text()):
            for command in split(words):
                if command and command[0].rpartition("/")[2] == PROGRAM:
                    arguments = command[1:]
                    name = arguments.pop(0) if arguments and arguments[0] in names else ""
                    yield Example(path.name, name, arguments)


def lines_of_text(text: str) -> Iterator[list[str]]:
    """The commands of a unit of systemd or a table of cron."""
    for line in text.splitlines():
        if match := re.match(r"Exec\w+=[-@+!:]*(.*)|(?:[\d*/,-]+\s+){5}(.*)", line):
            yield shlex.split(match[1] or match[2])


def lines_of_yaml(text: str) -> Iterator[list[str]]:
    """The commands of containers, and the lines of steps that run in a shell."""
    import yaml

    for document in yaml.safe_load_all(text):
        for value in values(document):
            if isinstance(value.get("command"), list):
                yield [*value["command"], *value.get("args", ())]
            if isinstance(value.get("run"), str):
                for line in value["run"].replace("\\\n", " ").splitlines():
                    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
                    lexer.whitespace_split = True
                    yield list(lexer)


def values(value: Any) -> Iterator[dict[str, Any]]:
    """All mappings in a document."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from values(each)


def split(words: list[str]) -> Iterator[list[str]]:
    """The commands of a line, without what they are redirected to."""
    command: list[str] = []
    is_target = False
    for word in words:
        if word in SEPARATORS:
            if word not in (">", ">>"):
                yield command
                command = []
            is_target = word in (">", ">>")
        elif is_target:
            is_target = False
        else:
            command.append(word)
    yield command
