"""The options of GNU addr2line, of binutils 2.40."""

from collections.abc import Sequence
from typing import Final

from symbolize.core.errors import UsageError, did_you_mean
from symbolize.drop_in.llvm_options import ToolOptions, expanded, next_word

LONG: Final = {
    "addresses": "a",
    "basenames": "s",
    "demangle": "C",
    "exe": "e",
    "functions": "f",
    "help": "h",
    "inlines": "i",
    "no-recurse-limit": "r",
    "no-recursion-limit": "r",
    "pretty-print": "p",
    "recurse-limit": "R",
    "recursion-limit": "R",
    "section": "j",
    "target": "b",
    "version": "v",
}
"""The letters of the long options; a beginning that is of one option alone is enough."""
VALUED: Final = "bej"


def parsed(words: Sequence[str]) -> ToolOptions:
    """The options in the words of a command line. Raises UsageError for what is unknown."""
    result = ToolOptions(style="GNU", object="a.out", kind="none", demangle=False, inlines=False)
    waiting = list(reversed(expanded(words)))
    while waiting:
        word = waiting.pop()
        if word == "--":
            result.inputs += waiting[::-1]
            break
        if word.startswith("--"):
            apply(result, *long_option(word, waiting))
        elif word.startswith("-") and word != "-":
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter in VALUED:
                    apply(result, letter, letters or next_word(f"-{letter}", waiting))
                    break
                apply(result, "h" if letter == "H" else "v" if letter == "V" else letter, "")
        else:
            result.inputs.append(word)
    return result


def long_option(word: str, waiting: list[str]) -> tuple[str, str]:
    """The letter of a long option, and its value. Raises UsageError."""
    name, equals, value = word[2:].partition("=")
    matching = {LONG[name]} if name in LONG else {letter for each, letter in LONG.items() if each.startswith(name)}
    if not name or not matching:
        raise UsageError(f"unrecognized option '{word}'{did_you_mean(name, LONG)}")
    if len(matching) > 1:
        raise UsageError(f"option '{word}' is ambiguous")
    letter = matching.pop()
    if letter in VALUED and not equals:
        value = next_word(word, waiting)
    if equals and letter not in (*VALUED, "C"):
        raise UsageError(f"option '--{name}' doesn't allow an argument")
    return letter, value


def apply(options: ToolOptions, letter: str, value: str) -> None:
    """Take an option. Raises UsageError for one that does not exist. The format of a file is what it is, and names are
    read without a limit on recursion that could be removed."""
    flags = {"a": "addresses", "s": "basenames", "C": "demangle", "i": "inlines", "p": "pretty"}
    if letter in flags:
        setattr(options, flags[letter], True)
    elif letter == "f":
        options.kind = "linkage"
    elif letter == "e":
        options.object = value
    elif letter == "j":
        options.section = value
    elif letter == "h":
        options.action = "help"
    elif letter == "v":
        options.action = "version"
    elif letter not in "bRr":
        raise UsageError(f"invalid option -- '{letter}'")
