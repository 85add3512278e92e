"""Small recordings of perf that have every kind of record, in both byte orders."""

from collections.abc import Iterator

from tests.support import perf_writer as w
from tests.support.perf_writer import BIG, LITTLE, Event, Format

KERNEL = 0xFFFF_FFFF_8100_0000


def made_recordings() -> Iterator[bytes]:
    """The recordings: files and pipes, compressed or not, with stack dumps, with deferred callchains."""
    for form in (LITTLE, BIG):
        yield from _processes(form)
        yield from _stacks(form)


def _processes(form: Format) -> Iterator[bytes]:
    """Two processes, the kernel, and a feature section of each kind."""
    kind = w.IP | w.TID | w.TIME | w.CPU | w.PERIOD | w.CALLCHAIN | w.IDENTIFIER
    events = [Event(ids=(1, 2), name="cpu-clock", sample_type=kind), Event(1, 1, ids=(3,), sample_type=kind)]
    first = events[0]
    bpf = form.pack("QIHH", KERNEL + 0x2000000, 64, 1, 0) + b"bpf_prog_x\0"
    records = [
        form.comm(first, 7, "app", w.EXEC, id=1),
        form.mmap2(first, 7, 0x400000, 0x10000, "/bin/app", 0x1000, b"\x12" * 20, id=1),
        form.mmap(first, -1, KERNEL, 0x1000000, "[kernel.kallsyms]_text", KERNEL, w.KERNEL, id=1),
        form.fork(first, 8, 7, time=5),
        form.mmap2(first, 8, 0x408000, 0x1000, "//anon", id=1),
        form.record(w.FINISHED_ROUND),
        *(
            form.sample(events[i % 2], w.KERNEL if i % 3 == 0 else w.USER, id=1 + 2 * (i % 2), ip=0x400100 + i,
                        pid=7 + i % 2, time=10 + i * 7 % 11, cpu=i % 2,
                        chain=[w.KERNEL_CHAIN, KERNEL, KERNEL + 16, w.USER_CHAIN, 0x400200, 0x408300])
            for i in range(6)
        ),
        form.side(first, w.KSYMBOL, bpf, id=1),
        form.side(first, w.LOST, form.pack("QQ", 1, 5), id=1),
        form.fork(first, 7, 1, kind=w.EXIT, time=40),
    ]  # fmt: skip
    features = {
        2: form.build_id("/bin/app", b"\x34" * 20, w.USER | w.HAS_SIZE),
        3: form.text("host"),
        6: form.text("x86_64"),
        11: form.pack("I", 1) + form.text("perf"),
        12: form.names(events),
        21: form.pack("QQ", 10, 30),
        29: form.pack("IIQQ", 1, 0, 1 << 60, 5),
    }
    whole = b"".join(records)
    yield form.file(events, records, features)
    yield form.pipe(events, records, features)
    yield form.pipe(events, form.compressed([whole[:300], whole[300:777], whole[777:]]), features)
    yield form.file(events, form.compressed([whole], w.COMPRESSED2), features)


def _stacks(form: Format) -> Iterator[bytes]:
    """Samples of all fields with copies of their stacks, and deferred callchains."""
    kind = w.IP | w.TID | w.TIME | w.PERIOD | w.READ | w.CALLCHAIN | w.RAW | w.BRANCHES | w.CGROUP | w.AUX | w.CODE_PAGE
    kind |= w.USER_REGISTERS | w.USER_STACK
    event = Event(sample_type=kind, registers=w.X86_64, stack=64, read_format=0xF, branches=1 << 17, ids=(1,))
    read, branches = form.pack("QQQQQ", 1, 2, 3, 4, 1), form.pack("QQQQQ", 1, 0, 0x400200, 0x400300, 1)
    samples = [
        form.sample(event, w.KERNEL if i % 2 else w.USER, ip=0x400100, pid=7, time=i, read=read, raw=b"abcd",
                    registers=range(20), stack=b"stack678" * 4, branches=branches, cgroup=4)
        for i in range(4)
    ]  # fmt: skip
    start = [form.comm(event, 7, "app", w.EXEC), form.mmap2(event, 7, 0x400000, 0x10000, "/bin/app")]
    yield form.file([event], [*start, *samples])
    yield form.pipe([event], [*start, *form.compressed(samples)])
    event = Event(sample_type=w.IP | w.TID | w.TIME | w.CALLCHAIN)
    chain = [w.KERNEL_CHAIN, KERNEL, w.DEFERRED_CHAIN, 99]
    rest = form.side(event, w.DEFERRED, form.pack("Q", 99) + form.words([0x400500, 0x400600]), pid=7, time=2)
    yield form.file([event], [
        form.mmap2(event, 7, 0x400000, 0x10000, "/bin/app"),
        form.sample(event, w.KERNEL, ip=KERNEL, pid=7, time=1, chain=chain), rest,
    ])  # fmt: skip
