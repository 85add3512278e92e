"""Tables of whole binaries: making them, their size, lookups in them; and the decoder behind them."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import peers as p
from bench import NAN, Bench, against
from measure import Contender, Result
from page import COSTS, Part, Target, cost_cells, ratio, seconds, size
from subjects import Subject


def whole_table(bench: Bench) -> Part:
    """Making the table of a whole binary, and its size."""
    part = Part(
        "The table of a whole binary",
        "`symbolize index` beside symbolic's `make_symcache` and `llvm-gsymutil --convert`, each from the debug file "
        "to a file on disk. The size is that of all files written. Inflating is of the needed sections alone, one "
        "after the other, without start-up.",
        ("binary", "command", *COSTS, "size:", "of all DWARF:", "of needed:"),
    )
    if not bench.ours.has_index:
        part.missing.append("symbolize has no `index` yet")
    for subject in bench.subjects:
        contenders = bench.peers.conversions(subject, bench.folder)
        if bench.ours.has_index:
            contenders += [bench.ours.index(subject, bench.cache(subject, jobs), jobs) for jobs in (1, 2)]
        results = bench.race(contenders, min(3, bench.runs))
        files = {p.SYMBOLIC: p.symcache(subject, bench.folder)}
        for jobs in (1, 2):
            files[f"{p.OURS}, {p.count(jobs)}"] = bench.cache(subject, jobs)
            files[f"{p.GSYM}, {p.count(jobs)}"] = p.gsym(subject, bench.folder)
        for name, result in results.items():
            stored, sizes = bytes_of(files[name]) if result.runs else NAN, subject.sizes
            shares = [f"{stored / part_of:.1%}" if stored == stored else "" for part_of in (sizes.dwarf, sizes.needed)]
            part.rows.append([subject.key, name, *cost_cells(result), size(stored), *shares])
        part.targets += table_targets(bench, subject, results, files)
    return part


def table_targets(
    bench: Bench, subject: Subject, results: Mapping[str, Result], files: Mapping[str, Path]
) -> list[Target]:
    """What is wanted of making a table."""
    targets = []
    is_small = subject.key in ("libpython", "words", "go-compile")
    for jobs, limit in ((1, 0.6 if is_small else 1 / 3), (2, 0.6 if is_small else 0.2)):
        name = f"{p.OURS}, {p.count(jobs)}"
        ours = results.get(name, Result(name))
        for peer in (p.SYMBOLIC, f"{p.GSYM}, {p.count(jobs)}"):
            other = results.get(peer, Result(peer))
            targets.append(against(f"whole table, threads: {jobs}", subject, ours, other, "wall", limit))
    ours = results.get(f"{p.OURS}, 1 thread", Result(p.OURS))
    if subject.is_compressed():
        inflating = bench.measured(bench.ours.probe("inflate", subject.debug)).get("seconds", NAN)
        wall, least = ours.median(), f"{seconds(inflating)} (inflating)"
        targets.append(Target("whole table, threads: 1", subject.key, seconds(wall), least, wall / inflating, 2.5))
    stored = bytes_of(files[f"{p.OURS}, 1 thread"]) if ours.runs else NAN
    share, dwarf = stored / subject.sizes.dwarf, size(subject.sizes.dwarf)
    targets.append(Target("size of the table to all DWARF", subject.key, size(stored), dwarf, share, 0.2))
    return targets


def bytes_of(path: Path) -> int:
    """The size of a file, or of all files in a folder."""
    paths = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in paths if file.is_file())


def lookups(bench: Bench) -> Part:
    """Lookups in a table that is open."""
    count = 100_000 if bench.quick else 1_000_000
    part = Part(
        "Lookups in an open table",
        f"{count:,} random `.text` addresses, ascending, in one call in one thread, inline chains included, names not "
        "demangled; the best of five calls. symbolic is called from Python once per address.",
        ("binary", "frames an address:", "addresses/s:", "first call:", "symbolic, addresses/s:", "ratio:"),
    )
    for subject in bench.subjects:
        ours = bench.measured(bench.ours.probe("lookup", count, *subject.files))
        bench.convert(subject)
        theirs, symcache = NAN, p.symcache(subject, bench.folder)
        if bench.peers.symbolic and symcache.exists():
            _, addresses, _ = subject.inputs(bench.folder, 10_000 if bench.quick else 100_000)
            command = [bench.peers.symbolic, p.HERE / "with_symbolic.py", "rate", symcache, str(subject.base)]
            theirs = bench.measured(Contender("rate", command, addresses, keep_output=True)).get("rate", NAN)
        if not ours:
            part.missing.append(f"{subject.key}: lookups of symbolize failed")
            continue
        rate = ours["rate"] / 1e6
        cells = [f"{ours['frames']:.2f}", f"{rate:.2f} M", seconds(ours["first"]), f"{theirs / 1e6:.3f} M"]
        part.rows.append([subject.key, *cells, ratio(ours["rate"], theirs)])
        target = Target("lookups, addresses/s", subject.key, f"{rate:.2f} M", "", rate, 5, "M/s", at_least=True)
        part.targets.append(target)
    return part


def decoder(bench: Bench) -> Part:
    """The DWARF decoder by itself, which decoder.py measures."""
    part = Part(
        "The decoder",
        "DIEs and line rows per second of processor time in one thread over the whole file, the best of five runs "
        "(`benchmarks/decoder.py`).",
        ("binary", "DIEs:", "DIEs/s:", "rows:", "rows/s:"),
    )
    script = p.HERE / "decoder.py"
    if not script.exists():
        part.missing.append("there is no decoder.py yet")
        return part
    for subject in bench.subjects:
        contender = Contender("decoder", [sys.executable, script, subject.debug], keep_output=True)
        result = bench.race([contender], 1)["decoder"]
        output = result.runs[0].output if result.runs else ""
        found = [re.search(rf"([\d.]+ M) {unit}: ([\d.]+) M/s", output) for unit in ("DIEs", "rows")]
        if not all(found):
            part.missing.append(f"{subject.key}: {result.trouble or 'no figures in the output of decoder.py'}")
            continue
        cells = []
        for match, unit, least in zip(found, ("DIEs", "rows"), (120, 40), strict=True):
            assert match
            cells += [match[1], f"{match[2]} M"]
            what, rate = f"decoder, {unit}/s", float(match[2])
            part.targets.append(Target(what, subject.key, f"{rate:g} M", "", rate, least, "M/s", at_least=True))
        part.rows.append([subject.key, *cells])
    return part
