"""Whole commands over random addresses: without a cache, with one, and how their cost grows."""

from dataclasses import replace

import peers as p
from bench import NAN, WARM, Bench, against, cost_rows
from measure import Result
from page import COSTS, Part, Target, mib, ratio, seconds
from subjects import Subject


def cold(bench: Bench) -> Part:
    """Whole commands without a cache."""
    part = Part(
        "Cold: whole commands without a cache",
        "symbolize reads a pprof profile of random `.text` addresses and writes a symbolized one; its peers read the "
        "addresses and print functions, lines and inline frames, demangled. Ratios are symbolize divided by the peer. "
        "eu-addr2line is slow and gets at most 1,000 addresses.",
        ("binary, addresses", "command", *COSTS, "wall ratio:", "peak ratio:"),
    )
    third = 1 / 3
    limits = {("ceph-mon", 10_000): (0.25, third), ("vmlinux", 10_000): (third, third)}
    limits |= {("ceph-mon", 100): (third, third), ("vmlinux", 100): (1.0, third)}
    for subject in bench.subjects:
        for count, names in ((10_000, (p.LLVM, p.GNU)), (1000, (p.LLVM, p.GNU, p.ELFUTILS)), (100, (p.LLVM,))):
            if bench.quick and count == 1000:
                continue
            results = bench.cold(subject, count, names)
            ours, llvm = results[p.OURS], results.get(p.LLVM, Result(p.LLVM))
            part.rows += cost_rows(f"{subject.key}, {count:,}", results, ours)
            for figure, limit in zip(("wall", "memory"), limits.get((subject.key, count), ()), strict=False):
                what = f"cold, {count:,} addresses, {'peak' if figure == 'memory' else figure}"
                part.targets.append(against(what, subject, ours, llvm, figure, limit))
        if subject.key == "ceph-mon":
            part.targets.append(floor(bench, subject, 1.25))
    return part


def floor(bench: Bench, subject: Subject, limit: float) -> Target:
    """A cold run against start-up and inflating the sections, which no run can go below."""
    start = start_up(bench, subject)
    inflating = bench.measured(bench.ours.probe("inflate", subject.debug)).get("seconds", NAN)
    ours = bench.cold(subject, 10_000)[p.OURS].median()
    least = f"{seconds(start)} start-up + {seconds(inflating)} inflating"
    what = "cold, 10,000 addresses, wall, to start-up and inflating alone"
    return Target(what, subject.key, seconds(ours), least, ours / (start + inflating), limit)


def start_up(bench: Bench, subject: Subject) -> float:
    """Seconds of a command that has nothing to look up."""
    empty, _, _ = subject.inputs(bench.folder, 1)
    return bench.race([bench.ours.start(empty, bench.folder / "out.pb.gz")])["start-up"].median()


def warm(bench: Bench) -> Part:
    """Whole commands with the table in the cache."""
    part = Part(
        "Warm: the table is in the cache",
        "Whole commands again, 10,000 addresses. symbolize finds the table of the binary in its cache; symbolic opens "
        "a symcache from Python and llvm-gsymutil a GSYM file; llvm-symbolizer has no cache.",
        ("binary", "command", *COSTS, "wall ratio:", "peak ratio:"),
    )
    if not bench.ours.has_index:
        part.missing.append("symbolize has no cache yet")
    limits = {"ceph-mon": 0.1, "vmlinux": 1 / 3}
    for subject in bench.subjects:
        profile, addresses, count = subject.inputs(bench.folder, 10_000)
        bench.convert(subject)
        contenders = bench.peers.lookups(subject, addresses)
        contenders += bench.peers.converted_lookups(subject, bench.folder, addresses)
        if cache := bench.filled_cache(subject):
            contenders.insert(0, bench.ours.lookup(subject, profile, bench.folder / "out.pb.gz", cache))
        results = bench.race(contenders)
        ours, llvm = results.get(WARM, Result(WARM)), results.get(p.LLVM, Result(p.LLVM))
        part.rows += cost_rows(subject.key, results, ours if ours.runs else None)
        wall, peak = ours.median(), ours.median("memory")
        start = start_up(bench, subject)
        what, most = f"warm, {count:,} addresses, wall beyond start-up", seconds(start)
        part.targets.append(Target(what, subject.key, seconds(wall), f"{most} start-up", wall - start, 0.05, "s"))
        part.targets.append(Target(f"warm, {count:,} addresses, peak", subject.key, mib(peak), "", peak, 150, "MiB"))
        if subject.key in limits:
            part.targets.append(against(f"warm, {count:,} addresses", subject, ours, llvm, "wall", limits[subject.key]))
    return part


def scale(bench: Bench) -> Part:
    """Cost against the number of addresses."""
    counts = [10**power for power in range(2, 5 if bench.quick else 7)]
    part = Part(
        "Cost against the number of addresses",
        "Wall times of whole commands, medians of three; the ratio is that of cold to llvm-symbolizer.",
        ("binary, addresses", "cold:", "peak:", "warm:", "llvm-symbolizer:", "peak:", "wall ratio:"),
    )
    for subject in bench.subjects:
        for count in counts:
            profile, addresses, real = subject.inputs(bench.folder, count)
            if real < count:
                continue
            output = bench.folder / "out.pb.gz"
            contenders = [bench.ours.lookup(subject, profile, output), *bench.peers.lookups(subject, addresses)]
            if cache := bench.filled_cache(subject):
                contenders.append(bench.ours.lookup(subject, profile, output, cache))
            results = bench.race(contenders, 3)
            ours, llvm = results[p.OURS], results.get(p.LLVM, Result(p.LLVM, trouble="not there"))
            warmed = seconds(results[WARM].median()) if WARM in results else "not there"
            cells = [seconds(ours.median()), mib(ours.median("memory")), warmed]
            theirs = llvm.trouble or seconds(llvm.median())
            cells += [theirs, mib(llvm.median("memory")), ratio(ours.median(), llvm.median())]
            part.rows.append([f"{subject.key}, {count:,}", *cells])
    return part


def processors(bench: Bench) -> Part:
    """The same command with one processor and with two, and what follows for more."""
    part = Part(
        "Processors",
        "10,000 addresses, cold. Two processors save the half of what can be shared; from that, times for more are "
        "predicted.",
        ("binary", "1:", "2:", "shared:", "4, predicted:", "8, predicted:"),
    )
    for subject in bench.subjects:
        profile, _, _ = subject.inputs(bench.folder, 10_000)
        ours = bench.ours.lookup(subject, profile, bench.folder / "out.pb.gz")
        bound = [replace(ours, name=among, command=["taskset", "-c", among, *ours.command]) for among in ("0", "0,1")]
        one, two = (result.median() for result in bench.race(bound).values())
        shared = 2 * (one - two)
        predicted = [seconds(one - shared + shared / count) for count in (4, 8)]
        part.rows.append([subject.key, seconds(one), seconds(two), f"{shared / one:.0%}", *predicted])
    return part
