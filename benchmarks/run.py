"""Measures symbolize and its peers side by side, and prints the tables of docs/benchmarks.md.

python benchmarks/run.py [--quick] [--write PAGE] [--only PART...] [--binaries NAME...] [--file NAME=BINARY[,DEBUG]]
                         [--peers-python PYTHON]

Commands of a row run in turn, one round that is not counted, then `--runs`, of which the medians are printed. What is
missing (a peer, a binary, the right to record) is left out and said. The Python of --peers-python has the PyPI package
`symbolic`: `python3 -m venv DIR && DIR/bin/pip install symbolic`.
"""

import argparse
import shlex
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from page import goals, page, replace_section  # noqa: E402
from parts import PARTS, QUICK, Bench  # noqa: E402
from peers import Ours, Peers  # noqa: E402
from subjects import KNOWN, find_subjects  # noqa: E402

from symbolize.core.cursor import COMPILED  # noqa: E402


def arguments() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"three runs of {', '.join(QUICK)}")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page whose sections of these titles are replaced")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--binaries", nargs="+", metavar="NAME", help=f"of these only: {', '.join(KNOWN)}, or a --file")
    parser.add_argument("--file", action="append", default=[], metavar="NAME=BINARY[,DEBUG]", help="another binary")
    parser.add_argument("--runs", type=int, metavar="N", help="runs that count (default: 5, quick: 3)")
    parser.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="time for one command (default: 300)")
    parser.add_argument("--llvm", default="19", metavar="VERSION", help="of llvm-symbolizer (default: 19)")
    parser.add_argument("--peers-python", type=Path, metavar="PYTHON", help="a Python with the package symbolic")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "benchmarks", help="folder for programs that are built"
    )
    return parser


def main() -> None:
    """Measure and print."""
    options = arguments().parse_args()
    given = {
        name: list(map(Path, files.split(","))) for name, _, files in (text.partition("=") for text in options.file)
    }
    if not COMPILED:
        print("warning: the compiled modules are missing; build them first", file=sys.stderr)
    work = options.work.resolve()
    subjects, missing = find_subjects(work, given)
    if options.binaries:
        subjects = [subject for subject in subjects if subject.key in options.binaries]
        missing = {key: why for key, why in missing.items() if key in options.binaries}
    peers = Peers.find(options.llvm, options.peers_python, work)
    names = options.only or (QUICK if options.quick else PARTS)
    parts = []
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        runs = options.runs or (3 if options.quick else 5)
        bench = Bench(subjects, peers, Ours(), Path(folder), work, runs, options.limit)
        for name in names:
            start = time.perf_counter()
            parts.append(PARTS[name](bench))
            print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    if options.write:
        text = options.write.read_text()
        for section in (goals(parts), *(part.markdown for part in parts)):
            text = replace_section(text, section)
        options.write.write_text(text)
    shown = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    print(page(shlex.join(["python", "benchmarks/run.py", *shown]), peers.versions(), subjects, missing, parts))


if __name__ == "__main__":
    main()
