"""Put faults into modules, one at a time, and list those that no test notices.

    python tools/mutations.py made MODULE... --tests PATH... [--count N] [--seed N]
    python tools/mutations.py sample [--count N] [--seed N] [--last PATH...] [--results FILE]
    python tools/mutations.py listed [NAME...]

`made` puts small changes of one expression or statement into modules: a comparison turned round, a constant off by one,
a condition left out, a statement skipped. The seed chooses them. `sample` does so in all packages, in each of them as
often as it has lines. For all of them it runs the tests that import the module, then, for those that went by, the tests
of the package, then all others (or those at `--last`). Each result is at once a line of JSON in `--results`; a run that
is started again goes on from there. `listed` takes those of `tools/faults.toml`, which
people chose by reading, with the tests that are to notice. What that file lists as equivalent, because no input can
show the difference, is left out of both.

Compiled modules are compiled again in place, so run it in a checkout of its own; all files are restored after each
fault. The exit code is 0 when at least 95 % were noticed.
"""

import argparse
import ast
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).parent / "faults.toml"
SEED = 20261203
NO_TESTS = 5
"""Exit code of pytest where none was chosen."""
ENOUGH = 0.95
"""Share of the faults that the tests have to notice."""
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
}
CALLS = {"any": "all", "all": "any", "min": "max", "max": "min"}


class Fault(NamedTuple):
    """A change of the text of a module from byte `begin` to `end`, and the tests that are to notice."""

    module: Path
    line: int
    begin: int
    end: int
    new: bytes
    tests: tuple[str, ...] = ()
    name: str = ""

    @property
    def change(self) -> tuple[str, str, str, str]:
        """The module, the line of code in which it begins, the old text and the new one."""
        source = self.module.read_bytes()
        line = source.splitlines()[self.line - 1].decode().strip()
        module = str(self.module.resolve().relative_to(ROOT.resolve()))
        return module, line, source[self.begin : self.end].decode(), self.new.decode()

    def describe(self) -> str:
        """The place, the old text and the new one, in a line."""
        shown = [" ".join(text.split())[:100] for text in self.change[2:]]
        return f"{self.name} {self.module}:{self.line}: {shown[0]} -> {shown[1]}".lstrip()


def faults_of(module: Path) -> list[Fault]:
    """All faults that can be put into a module. Annotations, decorators, messages and declarations are left alone."""
    source = module.read_bytes()
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))

    def at(node: ast.expr | ast.stmt, new: str) -> Fault:
        assert node.end_lineno is not None and node.end_col_offset is not None
        begin = starts[node.lineno - 1] + node.col_offset
        return Fault(module, node.lineno, begin, starts[node.end_lineno - 1] + node.end_col_offset, new.encode())

    return sorted({at(node, new) for node, new in _changes(ast.parse(source))}, key=lambda fault: fault[1:5])


def listed_faults(names: list[str]) -> Iterator[Fault]:
    """The faults of the list, or those with these names. Raises SystemExit for one whose text is not there once."""
    for each in tomllib.loads(LIST.read_text())["fault"]:
        if names and each["name"] not in names:
            continue
        module = ROOT / each["module"]
        source, old = module.read_bytes(), each["old"].encode()
        if source.count(old) != 1:
            sys.exit(f"{each['name']}: not once in {each['module']}: {each['old']}")
        begin = source.index(old)
        line = source.count(b"\n", 0, begin) + 1
        yield Fault(module, line, begin, begin + len(old), each["new"].encode(), tuple(each["tests"]), each["name"])


def equivalent_changes() -> dict[tuple[str, str, str, str], str]:
    """Why no input can show some changes, see `Fault.change`."""
    listed = tomllib.loads(LIST.read_text())["equivalent"]
    return {(each["module"], each["line"], each["old"], each["new"]): each["reason"] for each in listed}


def sampled_faults(count: int, seed: int) -> Iterator[Fault]:
    """Faults in all packages: of each as large a share of `count` as it has of the lines. Tests are those of the
    package, then all. Equal seeds give equal faults in equal order."""
    choose = random.Random(seed)
    packages: dict[str, list[Path]] = {}
    for module in sorted((ROOT / "symbolize").rglob("*.py")):
        packages.setdefault(module.relative_to(ROOT).parts[1], []).append(module)
    lines = Counter(
        {name: sum(len(each.read_bytes().splitlines()) for each in found) for name, found in packages.items()}
    )
    for name, _ in lines.most_common():
        tests = [each for each in (ROOT / "tests" / name, ROOT / "tests") if each.is_dir()]
        faults = [fault for module in packages[name] for fault in faults_of(module)]
        choose.shuffle(faults)
        share = max(1, round(count * lines[name] / lines.total()))
        for fault in faults[:share]:
            yield fault._replace(tests=tuple(map(str, tests)))


def importers(module: Path) -> list[str]:
    """The files of tests that import a module, or something of it."""
    package, _, name = ".".join(module.resolve().relative_to(ROOT.resolve()).with_suffix("").parts).rpartition(".")
    imports = re.compile(rf"\b{package}\.{name}\b|from {package} import (\([^)]*|.*)\b{name}\b")
    return [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if imports.search(path.read_text())
    ]


def try_in_rounds(faults: list[Fault], last: list[str], results: Path, options: argparse.Namespace) -> tuple[int, int]:
    """How many faults of a sample were noticed, and how many there are. All are tried with the quickest tests, then
    those that are left with more; `results` gets a line after each."""
    known: dict[str, dict[str, str | int]] = {}
    if results.exists():
        known = {each["fault"]: each for each in map(json.loads, results.read_text().splitlines())}
    for number in range(3):
        for fault in faults:
            text = f"{fault.change[0]}:{fault.line}:{fault.begin}-{fault.end}: {fault.change[2]} -> {fault.change[3]}"
            before = known.get(text, {"verdict": "", "rounds": 0})
            if before["verdict"] in ("noticed", "refused") or int(before["rounds"]) > number:
                continue
            folder = [path for path in fault.tests[:-1] if number == 1]
            paths = [importers(fault.module), folder, last or fault.tests[-1:]][number]
            by = try_fault(fault._replace(tests=(*paths,)), options) if paths else ""
            verdict = "refused" if by is None else "noticed" if by else "survived"
            known[text] = {"fault": text, "verdict": verdict, "rounds": number + 1, "by": by or ""}
            with results.open("a") as file:
                file.write(json.dumps(known[text]) + "\n")
            print(verdict, number + 1, text, by, flush=True)
    verdicts = Counter(each["verdict"] for each in known.values())
    return verdicts["noticed"], verdicts["noticed"] + verdicts["survived"]


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    for node in _code_of(tree):
        match node:
            case ast.Compare(left, [op], [right]):
                yield node, f"{ast.unparse(left)} {COMPARISONS[type(op)]} {ast.unparse(right)}"
            case ast.BoolOp(op, values):
                word = " or " if isinstance(op, ast.And) else " and "
                yield node, "(" + word.join(f"({ast.unparse(value)})" for value in values) + ")"
                for left_out in range(len(values)):
                    kept = [value for number, value in enumerate(values) if number != left_out]
                    yield node, "(" + ast.unparse(ast.BoolOp(op, kept) if len(kept) > 1 else kept[0]) + ")"
            case ast.UnaryOp(ast.Not(), operand):
                yield node, f"({ast.unparse(operand)})"
            case ast.BinOp(left, op, right) if type(op) in OPERATORS and not isinstance(
                left, ast.Constant | ast.JoinedStr
            ):
                yield node, f"(({ast.unparse(left)}) {OPERATORS[type(op)]} ({ast.unparse(right)}))"
            case ast.Constant(value) if type(value) is int:
                yield node, str(value + 1)
            case ast.Constant(value) if type(value) is bool:
                yield node, str(not value)
            case ast.Call(ast.Name(name), _, _) if name in CALLS:
                yield node.func, CALLS[name]
            case ast.If(test) | ast.While(test) | ast.IfExp(test):
                if isinstance(node, ast.If | ast.IfExp):
                    yield test, f"(True or {ast.unparse(test)})"
                yield test, f"(False and {ast.unparse(test)})"
            case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant) or value.value is not None:
                yield node, "return None"
            case ast.Continue():
                yield node, "break"
            case ast.Break():
                yield node, "continue"
            case ast.Raise() | ast.AugAssign() | ast.Expr(ast.Call()):
                yield node, "pass"


def _code_of(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run and decide something."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr | ast.Raise):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from _code_of(child)


COMPILE = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]


def is_compiled(module: Path) -> bool:
    """Whether there is a compiled module of this source, which would run instead."""
    return any(module.parent.glob(f"{module.stem}.*.so"))


def is_included(module: Path) -> bool:
    """Whether compiled modules have the numbers of this one as constants."""
    return module.with_suffix(".pxi").exists()


def run(command: list[str], timeout: float | None) -> tuple[int, str]:
    """Exit code of a command, and what it wrote; -1 if it took longer. Its children end with it."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, text=True, errors="replace"
    )
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return -1, ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def try_fault(fault: Fault, options: argparse.Namespace) -> str | None:
    """The test that notices, "" if none does; None if the compiler does, so that it is no fault."""
    source = fault.module.read_bytes()
    changed = source[: fault.begin] + fault.new + source[fault.end :]
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    with restored(fault.module):
        fault.module.write_bytes(changed)
        if (is_compiled(fault.module) or is_included(fault.module)) and run(COMPILE, None)[0]:
            return None
        for path in fault.tests if options.command != "sample" else [fault.tests]:
            code, output = run(pytest(options, [path] if isinstance(path, str) else [*path]), options.timeout)
            if code not in (0, NO_TESTS):
                failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
                return failed[1] if failed else f"exit code {code}"
    return ""


def pytest(options: argparse.Namespace, paths: list[str]) -> list[str]:
    """The command that runs tests. The one of the list is left out: it sees the text of a line only."""
    own = ["--ignore", "tests/test_mutations.py"]
    return [sys.executable, "-m", "pytest", "-x", "-q", "-n", options.workers, "-p", "no:cacheprovider", *own, *paths]


@contextlib.contextmanager
def restored(module: Path) -> Iterator[None]:
    """Puts a module back, and what was compiled of it, with their times: so nothing has to be compiled again but what
    includes its numbers."""
    place = module.resolve().relative_to(ROOT.resolve()).with_suffix("")

    def compiled() -> list[Path]:
        return [*module.parent.glob(f"{module.stem}.*.so"), *(ROOT / "build").rglob(f"{place}.*")]

    kept = [(path, path.read_bytes(), path.stat()) for path in [module, *compiled()]]
    try:
        yield
    finally:
        for path in compiled():  # also what was not there before
            path.unlink()
        for path, data, status in kept:
            path.write_bytes(data)
            path.chmod(status.st_mode)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        if is_included(module):
            run(COMPILE, None)


def main() -> int:
    """Run the faults that the arguments choose."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timeout", type=float, default=600, help="seconds after which a fault counts as noticed")
    parser.add_argument("--workers", default="auto", help="processes that run tests, as of pytest -n (%(default)s)")
    parser.add_argument("--unchecked", action="store_true", help="do not try whether the tests pass without a fault")
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("made", help="make faults in modules")
    made.add_argument("modules", nargs="+", type=Path, help="modules to put faults into, of one package at best")
    made.add_argument(
        "--tests", nargs="+", required=True, help="what pytest runs, one after the other, quick ones first"
    )
    sample = commands.add_parser("sample", help="make faults in all packages")
    for each in (made, sample):
        each.add_argument("--count", type=int, default=20, help="how many faults (%(default)s)")
        each.add_argument("--seed", type=int, default=SEED)
    sample.add_argument("--last", nargs="+", default=[], metavar="PATH", help="tests to run last (all)")
    sample.add_argument("--results", type=Path, default=Path("sample.jsonl"), help="where results go (%(default)s)")
    commands.add_parser("listed", help="take faults of the list").add_argument("names", nargs="*")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that the source is restored
        signal.signal(number, lambda *_: sys.exit("ended"))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests inherit it, and some interrupt themselves
    match options.command:
        case "made":
            faults = [
                fault._replace(tests=tuple(options.tests)) for each in options.modules for fault in faults_of(each)
            ]
            random.Random(options.seed).shuffle(faults)
        case "sample":
            faults = list(sampled_faults(options.count, options.seed))
        case _:
            faults = list(listed_faults(options.names))
    equivalent = equivalent_changes()
    faults = [fault for fault in faults if fault.change not in equivalent]
    tests = sorted({path for fault in faults for path in fault.tests})
    if not options.unchecked and run(pytest(options, tests), None)[0]:
        parser.error("the tests fail without any fault")
    tried = noticed = 0
    if options.command == "sample":
        noticed, tried = try_in_rounds(faults, options.last, options.results, options)
        faults = []
    for fault in faults:
        if options.command == "made" and tried == options.count:
            break
        text = fault.describe()
        outcome = try_fault(fault, options)
        if outcome is None:
            continue
        tried += 1
        noticed += bool(outcome)
        print("noticed " if outcome else "SURVIVED", text, flush=True)
    print(f"{noticed} of {tried} noticed")
    return 0 if noticed >= ENOUGH * tried else 1


if __name__ == "__main__":
    sys.exit(main())
