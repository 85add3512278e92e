"""The documentation says what the code does: options, reasons, rules, examples and links."""

import doctest
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from symbolize.cli.arguments import ANYWHERE, OWN
from symbolize.cli.console import EXIT_BELOW, EXIT_DONE, EXIT_FAILED, EXIT_SOME, EXIT_USAGE
from symbolize.cli.profiles import parser
from symbolize.core.reasons import Reason
from symbolize.formats.open import FORMATS
from symbolize.names import Mode, shown_names
from symbolize.options import Options
from tests.support.binary_layouts import LAYOUTS
from tests.support.docs_examples import DOCS, PAGES, ROOT
from tools.rules import ROW, cited_by, citing_modules, next_number, with_modules

INTERRUPTED = 130
"""The exit code of a command that was interrupted, 128 and the number of the signal."""

LONGEST = 25
"""Words that the sentence of a rule may have."""

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    """The text of a page of the documentation."""
    return (DOCS / name).read_text()


def test_every_option_is_described() -> None:
    """The table of options has every spelling of every option, and its choices."""
    table = page("usage.md").partition("\n## Options\n")[2].partition("\n## ")[0]
    for action in parser()._actions:
        for name in [*action.option_strings] or [str(action.metavar)]:
            assert f"`{name}" in table
        for choice in action.choices or ():
            assert f"`{choice}`" in table


def test_no_option_is_made_up() -> None:
    """Options that the pages give `symbolize` exist."""
    known = {name for action in parser()._actions for name in action.option_strings}
    rows = re.findall(r"^\| (`-.*?) \|", page("usage.md"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(--?[\w-]+)", row)}
    assert rows
    assert named <= known


def test_every_command_is_described() -> None:
    """Each command has a row in the table of commands, and each of its options is on a page of the reference."""
    from symbolize.cli.commands import COMMANDS, parser_of

    table = page("commands.md").partition("\n## ")[0]
    assert [name for name in COMMANDS if f"`{name}`" not in table] == []
    reference = "".join(path.read_text() for path in sorted(DOCS.glob("*.md")))
    options = {
        name: [flag for action in parser_of(name)._actions for flag in action.option_strings] for name in COMMANDS
    }
    missing = [
        f"{name} {flag}"
        for name, flags in options.items()
        for flag in flags
        if flag.startswith("--") and not re.search(rf"`[^`\n]*{flag}\b", reference)
    ]
    assert missing == []


def test_settings_of_files() -> None:
    """The table of what files may set is what they may, in order."""
    table = page("settings.md").partition("\n| option | may be set by |\n")[2].partition("\n\n")[0]
    rows = [re.findall(r"`([a-z-]+)`", line.split(" | ")[0]) for line in table.splitlines()[1:]]
    assert rows == [[*ANYWHERE], [*OWN], []]


def test_fields_of_options() -> None:
    """The table of the library has each field of `Options`."""
    table = page("library.md").partition("\nThe fields of `Options`:\n")[2].partition("\n\nAnything")[0]
    cells = [line.split(" | ")[0] for line in table.splitlines()]
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == {each.name for each in fields(Options)}


@pytest.mark.parametrize("path", [ROOT / "README.md", DOCS / "formats.md"], ids=lambda path: path.name)
def test_formats_read_are_described(path: Path) -> None:
    """The table of formats has each, by its whole or its short name."""
    table = path.read_text().partition("\n| format |")[2].partition("\n\n")[0].replace("`", "")
    cells = [line.removeprefix("| ").split(" | ")[0] for line in table.splitlines()]
    read = [name for cell in cells for name in cell.split(", ")]
    missing = [
        each.name for each in FORMATS if not any(name.startswith((each.name, each.short or each.name)) for name in read)
    ]
    assert missing == []


def test_every_exit_code_is_described() -> None:
    """Exit codes of the command have a row each."""
    codes = {EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_BELOW, EXIT_SOME, INTERRUPTED}
    table = page("exit-codes.md").partition("\n## Codes\n")[2].partition("\n## ")[0]
    assert codes == {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}


def test_every_reason_is_described() -> None:
    """The table of reasons has a row for each, in order, and no other."""
    table = page("reasons.md").partition("\n## All reasons\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == [reason.code for reason in Reason]


def test_fields_of_the_json_report() -> None:
    """The tables of the report as JSON have the fields of its schema, in order."""
    schema = json.loads((ROOT / "symbolize" / "report" / "report.schema.json").read_text())
    fields = [*schema["properties"], *schema["$defs"]["mapping"]["properties"]]
    assert re.findall(r"^\| `(\w+)` \|", page("json-report.md"), re.MULTILINE) == fields


def test_fields_of_the_json_of_commands() -> None:
    """The tables of what commands print as JSON have the fields of the schema, in order."""
    defs = json.loads((ROOT / "symbolize" / "report" / "commands.schema.json").read_text())["$defs"]
    order = ["table", "profile", "functions", "calls", "lines", "changes", "spread", "plan", "inspect", "file"]
    fields = [field for name in order for field in defs[name]["properties"]]
    assert sorted(defs) == sorted(order)
    assert re.findall(r"^\| `(\w+)` \|", page("json-output.md"), re.MULTILINE) == fields


def test_names_in_each_mode() -> None:
    """The table of names is what is shown."""
    section = page("names.md").partition("\n## Demangling\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.+?) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    assert rows
    for linked, *cells in rows:
        wanted = [cells[0] if cell == "the same" else cell for cell in cells]
        modes: list[Mode] = ["default", "templates", "full"]
        assert [f"`{shown_names([linked.encode()], [b''], mode)[0][0].decode()}`" for mode in modes] == wanted


def test_every_layout_has_a_test() -> None:
    """Each row of the table of layouts names a test that is there, and each layout that is built has a row."""
    table = page("finding-binaries.md").partition("\n## Layouts\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[-1] for line in table.splitlines() if line.startswith("| ")][2:]
    sources = [*sorted((ROOT / "tests" / "binaries").glob("*.py")), ROOT / "tests" / "support" / "binary_layouts.py"]
    code = "".join(path.read_text() for path in sources)
    named = [re.findall(r"`(\w+)`", row) for row in rows]
    assert named
    assert all(named)
    assert [name for names in named for name in names if f"\ndef {name}(" not in code] == []
    assert {build.__name__ for build in LAYOUTS} <= {name for names in named for name in names}


def scripts() -> list[str]:
    """The scripts and modules that the documentation runs with `python`."""
    found = {name for path in PAGES for name in re.findall(r"\bpython3? ((?:-m )?[\w./]+)", path.read_text())}
    return sorted(
        name
        for name in found
        if name.startswith(
            ("-m tests.", "-m tools.site", "-m tools.snapshot", "benchmarks/", "fixtures/", "tests/", "tools/")
        )
    )


@pytest.mark.process
@pytest.mark.full
def test_documented_scripts_start() -> None:
    """Each script that a page tells to run starts as written, from the root of a checkout."""
    quiet = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    failed = []
    for script in scripts():
        command = [sys.executable, *script.split(), "--help"]
        run = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
        if run.returncode or not run.stdout.startswith("usage: "):
            failed.append(f"{script}: {run.stdout}{run.stderr}")
    assert not failed, "\n".join(failed)


def cited_rules() -> dict[int, str]:
    """The rules that code and tests cite, each with a file that does."""
    cited: dict[int, str] = {}
    for folder in ("symbolize", "tests"):
        for path in sorted((ROOT / folder).rglob("*.p*")):
            if path.suffix in (".py", ".pxd", ".pyi") and path != Path(__file__):
                cited |= dict.fromkeys(cited_by(path.read_text()), str(path.relative_to(ROOT)))
    return cited


def described_rules() -> list[tuple[int, str, str]]:
    """The rules that have a row: number, title, sentence."""
    return [(int(number), title, sentence) for number, title, sentence in ROW.findall(page("rules.md"))]


def test_every_rule_that_is_cited_is_described() -> None:
    """Each number in code and tests leads to a row."""
    described = {number for number, _, _ in described_rules()}
    assert {number: file for number, file in cited_rules().items() if number not in described} == {}


def test_every_rule_that_is_described_is_cited() -> None:
    """Each row is the rule of a module, and stands once."""
    described = [number for number, _, _ in described_rules()]
    assert sorted(described) == sorted(set(described))
    assert set(described) <= set(citing_modules())


def test_modules_of_rules_are_those_that_cite_them() -> None:
    """The last column is what `python -m tools.rules` writes."""
    assert page("rules.md") == with_modules(page("rules.md"), citing_modules())


def test_number_of_a_new_rule() -> None:
    """It is above all others, and the last column of its row may be empty."""
    text = "| R7, old | Holds. | `a.py` |\n| R3, older | Holds. | `a.py` |\n| R8, new | Holds. | |\n"
    assert next_number(text) == 9
    assert with_modules(text, {8: ["b.py"]}).endswith("| R8, new | Holds. | `b.py` |\n")


def test_rules_are_short() -> None:
    """Each row of the page is a rule, and says what holds in one sentence."""
    rows = [line for line in page("rules.md").splitlines() if line.startswith("| R")]
    assert len(rows) == len(described_rules())
    wrong = [number for number, _, words in described_rules() if not words.endswith(".") or ". " in words]
    long = [number for number, _, words in described_rules() if len(words.split()) > LONGEST]
    assert (wrong, long) == ([], [])


def test_citations_have_the_title() -> None:
    """The words of a citation, as in "(R54, discarded code)", are the title of the row, which is its own."""
    of_rule = {number: title for number, title, _ in described_rules()}
    assert len(set(of_rule.values())) == len(of_rule)
    wrong = []
    for path in [*sorted((ROOT / "symbolize").rglob("*.py")), *PAGES]:
        text = re.sub(r"\s+(?:# )?", " ", path.read_text())
        for number, words in re.findall(r"[(;] ?R(\d+), ([a-z][^();|]*)(?=[;)])", text):
            if words != of_rule.get(int(number)):
                wrong.append(f"{path.relative_to(ROOT)}: R{number}, {words}")
    assert wrong == []


def test_modules_named_in_words_exist() -> None:
    """Each word has a module or package, which is there."""
    entries = re.findall(r"^- \*\*.*?(?=\n\n|\n- |\Z)", page("words.md"), re.MULTILINE | re.DOTALL)
    named = [re.findall(r"`([a-z_]+/[\w/]*(?:\.py)?)`(?=[,.\s]|\Z)", entry.rpartition(". ")[2]) for entry in entries]
    without = [entry for entry, paths in zip(entries, named, strict=True) if not paths]
    assert without == []
    assert [path for paths in named for path in paths if not (ROOT / "symbolize" / path).exists()] == []


def test_citations_are_read() -> None:
    """One rule, several, and ranges in both spellings."""
    text = "(rules R2, R30 and R97–R99; R114-R117), not AR4 or R2D2"
    assert list(cited_by(text)) == [2, 30, 97, 98, 99, 114, 115, 116, 117]


def examples(pages: tuple[str, ...]) -> Iterator[str]:
    """The examples of Python on some pages."""
    text = "".join(map(page, pages))
    return (match[1] for match in re.finditer(r"^```pycon\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("pages", [("library.md", "library-data.md"), ("guides/notebooks.md",)], ids=" ".join)
def test_examples_run(pages: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples give what is printed below them, one after another in one session."""
    monkeypatch.chdir(ROOT)
    session: dict[str, Any] = {"output": tmp_path}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    said: list[str] = []
    for number, text in enumerate(examples(pages), 1):
        test = doctest.DocTestParser().get_doctest(text, session, f"example {number}", f"docs/{pages[-1]}", None)
        assert test.examples
        runner.run(test, out=said.append, clear_globs=False)
        session |= test.globs
    assert "".join(said) == ""
    assert runner.tries
    assert len(list(tmp_path.iterdir())) == "".join(examples(pages)).count("(output /")


@cache
def anchors(path: Path) -> set[str]:
    """The anchors that the headings of a page get on the usual hosts."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_resolve() -> None:
    """Relative links lead to files that are there, and to headings that are in them."""
    broken = []
    for path in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", path.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            found = (path.parent / file).resolve() if file else path
            if not found.exists() or (anchor and anchor not in anchors(found)):
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert not broken, "\n".join(broken)


SHORT = 250
"""Lines that a reader has the patience for."""


def test_pages_are_short() -> None:
    """A page on a subject has no other, and says what it is for before its first list, table or heading."""
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in PAGES if path.parent != ROOT}
    long = [name for name, text in texts.items() if text.count("\n") > SHORT and name != "docs/rules.md"]
    abrupt = [name for name, text in texts.items() if not re.match(r"# [^\n]+\n\n(?!```)[A-Z`\[]", text)]
    assert not long + abrupt, "\n".join([*(f"{name} is long" for name in long), *abrupt])


def test_formats_written_are_described() -> None:
    """The page on outputs has each form that `--emit` takes."""
    (emit,) = (action for action in parser()._actions if "--emit" in action.option_strings)
    assert set(emit.choices or ()) <= set(re.findall(r"\| `([\w-]+)` \|", page("output-formats.md")))
