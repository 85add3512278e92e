"""Reading simpleperf reports: samples a second and peak memory, beside a reader that decodes with protobuf.

    python benchmarks/reports.py [--samples N] [--depth N] [--stacks N] [--kept FILE]

A synthetic report is made, loaded and converted in processes of their own. The reader beside it decodes each record
with the protobuf package and walks its frames, and nothing more.
"""

import argparse
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.messages import report_sample_pb2 as schema  # noqa: E402

FILES, SYMBOLS, THREADS = 40, 200, 8
READ_BY_PROTOBUF = 20_000


def framed(record: schema.Record) -> bytes:
    """A record as it stands in a file."""
    raw = record.SerializeToString()
    return struct.pack("<I", len(raw)) + raw


def make(path: Path, samples: int, depth: int, stacks: int) -> None:
    """Write a report of `samples` samples with `depth` frames, `stacks` of them different."""
    rng = random.Random(1)
    sites = [(rng.randrange(1 << 28), rng.randrange(FILES), rng.randrange(-1, SYMBOLS)) for _ in range(20_000)]
    chains = []
    with path.open("wb") as out:
        out.write(b"SIMPLEPERF\x01\x00")
        out.write(framed(schema.Record(meta_info=schema.MetaInfo(event_type=[b"cpu-clock:u"], trace_offcpu=False))))
        for i in range(samples):
            number = i if i < stacks else rng.randrange(stacks)
            if number == len(chains):
                sample = schema.Sample()
                for vaddr, file, symbol in rng.choices(sites, k=depth):
                    sample.callchain.add(vaddr_in_file=vaddr, file_id=file, symbol_id=symbol)
                chains.append(sample.SerializeToString())
            chain = chains[number]
            # The root of a stack tells what kind of thread it is of.
            thread = 1000 + number % THREADS
            rest = schema.Sample(time=10**12 + i * 250_000, thread_id=thread, event_count=250_000)
            rest.event_type_id = 0
            body = rest.SerializeToString() + chain
            out.write(framed_raw(body))
        out.write(framed(schema.Record(lost=schema.LostSituation(sample_count=samples, lost_count=0))))
        for i in range(FILES):
            names = [b"scope%d::function%d(int)" % (i, n) for n in range(SYMBOLS)]
            out.write(framed(schema.Record(file=schema.File(id=i, path=b"/system/lib64/lib%d.so" % i, symbol=names))))
        for i in range(THREADS):
            thread = schema.Thread(thread_id=1000 + i, process_id=1000, thread_name=b"worker-%d" % i)
            out.write(framed(schema.Record(thread=thread)))
        out.write(bytes(4))


def framed_raw(sample: bytes) -> bytes:
    """A record of an encoded sample."""
    size, length = len(sample), b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    record = b"\x0a" + length + bytes([size]) + sample
    return struct.pack("<I", len(record)) + record


def read_with_protobuf(path: Path, limit: int) -> float:
    """Samples a second of a reader that decodes each record and walks its frames."""
    data = path.read_bytes() if path.stat().st_size < 1 << 26 else path.open("rb").read(1 << 26)
    at, count, total = 12, 0, 0
    begin = time.perf_counter()
    while count < limit:
        size = int.from_bytes(data[at : at + 4], "little")
        if not size or at + 4 + size > len(data):
            break
        record = schema.Record.FromString(data[at + 4 : at + 4 + size])
        at += 4 + size
        if record.WhichOneof("record_data") == "sample":
            sample = record.sample
            count += 1
            for frame in sample.callchain:
                total += frame.vaddr_in_file + frame.file_id + frame.symbol_id
    return count / (time.perf_counter() - begin)


def measured(path: Path, what: str) -> tuple[float, float]:
    """Seconds and peak MB of a fresh process that does `what` to the report."""
    code = (
        f"import sys, time, resource; sys.path.insert(0, {str(ROOT)!r})\n"
        "from symbolize import Symbolizer, load, write\n"
        f"begin = time.perf_counter()\n{what.format(path=str(path))}\nseconds = time.perf_counter() - begin\n"
        "print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, peak = run.stdout.split()
    return float(seconds), float(peak)


def main() -> None:
    """Make a report and print what reading it costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--depth", type=int, default=30)
    parser.add_argument("--stacks", type=int, default=50_000, help="how many different ones")
    parser.add_argument("--kept", type=Path, help="keep the report in this file, and use it if it is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.kept or Path(folder) / "synthetic.trace"
        if not path.exists():
            make(path, options.samples, options.depth, options.stacks)
        print(f"{options.samples} samples, {options.depth} frames, {path.stat().st_size >> 20} MB")
        slow = max(read_with_protobuf(path, READ_BY_PROTOBUF) for _ in range(3))
        print(f"protobuf: {slow:,.0f} samples/s")
        for name, what in (
            ("load", "load({path!r})"),
            ("convert", "write(Symbolizer().symbolize(load({path!r})).profile, '/dev/null')"),
        ):
            seconds, peak = min(measured(path, what) for _ in range(3))
            rate = options.samples / seconds
            print(
                f"{name}: {seconds:.2f} s, {rate:,.0f} samples/s, {rate / slow:.1f} times protobuf, peak {peak:.0f} MB"
            )


if __name__ == "__main__":
    main()
