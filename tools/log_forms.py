"""Stack traces of the real producers through `symbolize log`, compared with what their own decoders say.

`python -m tools.log_forms [FORM...]` prints, for each form whose producer is installed, how many texts were made and
how many got just the functions and lines that the truth has: gdb with symbols, or the producer with its own symbolizer.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

SOURCE: Final = """
#include <execinfo.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int *volatile nowhere;
static const char *mode;
static void show(void) {
  if (!strcmp(mode, "glibc")) { void *all[64]; backtrace_symbols_fd(all, backtrace(all, 64), 1); _exit(0); }
}
static inline __attribute__((always_inline)) int deep(int n) {
  show();
  return *nowhere + n;
}
__attribute__((noinline)) int leaf(int n) { return deep(n) * 3; }
__attribute__((noinline)) int middle(int n) {
  int found = n ? middle(n - 1) : leaf(n);
  return found + 1;
}
__attribute__((noinline)) int compare(const void *a, const void *b) {
  int found = middle(*(const int *)a & 15);
  return found + *(const int *)b;
}
int main(int count, char **words) {
  char text[4096];
  long size;
  int maps = open("/proc/self/maps", 0);
  mode = count > 2 ? words[2] : "";
  if (!strcmp(mode, "work")) for (;;) { static int there; nowhere = &there; compare(&there, &there); }
  if (!strcmp(mode, "maps")) while ((size = read(maps, text, sizeof text)) > 0) write(1, text, size);
  int values[4] = {atoi(words[1]), 1, 2, 0};
  for (int i = 0; i < 4; i++) values[i] = atoi(words[1]);
  qsort(values, 4, sizeof *values, compare);
  return values[0];
}
"""
RUST: Final = """
use std::hint::black_box;
#[inline(never)] fn inner(n: usize, k: usize) -> usize {
    let v: Vec<usize> = vec![1; n % 2];
    if n == 0 { return v[k]; }
    black_box(inner(n - 1, k)) + 1
}
#[inline(never)] fn middle(n: usize) -> usize { black_box(inner(n, n + 5)) + 2 }
fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    std::io::copy(&mut std::fs::File::open("/proc/self/maps").unwrap(), &mut std::io::stderr()).unwrap();
    println!("{}", middle(n));
}
"""
JAVA: Final = """
public class Trace {
  static native void crash(int n);
  public static void main(String[] words) {
    System.load(words[0]);
    crash(Integer.parseInt(words[1]));
  }
}
"""
JNI: Final = """
static inline __attribute__((always_inline)) int deep(int *n) { return *n + 1; }
__attribute__((noinline)) int middle(int n) {
  int found = n ? middle(n - 1) : deep((int *)0);
  return found + 1;
}
void Java_Trace_crash(void *env, void *self, int n) {
  static volatile int kept;
  kept = middle(n);
}
"""
TEXTS: Final = 10
NAMED: Final = re.compile(r"([\w:]+)(?:\([^()\n]*\))? (?:at )?/?\S*?/trace\.(?:c|rs):(\d+)")
GDB_FRAME: Final = re.compile(r"(?:in |#\d+ +)([\w:]+) \([^\n]*\) at \S*?trace\.\w+:(\d+)")
Frames = list[tuple[str, str]]


def run(words: Sequence[str | Path], **environment: str) -> str:
    """What a command prints, on either output."""
    output = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment}, check=False
    ).stdout
    return output.decode(errors="replace")


class Workshop:
    """The programs, with and without symbols, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.named = folder / "named"
        self.named.mkdir()

    def build(self, name: str, text: str, suffix: str, command: Sequence[str]) -> Path:
        """The stripped program; the one with symbols has the same name in `named`."""
        source = self.folder / f"trace{suffix}"
        source.write_text(text)
        subprocess.run([*command, source, "-o", self.named / name], check=True, capture_output=True)
        subprocess.run(["strip", "-o", self.folder / name, self.named / name], check=True)
        return self.folder / name

    def names(self, text: str) -> Frames:
        """The functions and lines that `symbolize log` puts into a text."""
        path = self.folder / "log.txt"
        path.write_text(text)
        command = [sys.executable, "-m", "symbolize", "log", "--no-cache", path, "-b", self.named]
        found = subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")
        old = set(text.splitlines())
        return [each for line in found.splitlines() if line not in old for each in NAMED.findall(line)]


def gdb_truth(program: Path, *words: str) -> Frames:
    """The frames of a crash as gdb has them, with symbols."""
    return GDB_FRAME.findall(
        run(["gdb", "-batch", "-ex", "run", "-ex", "echo STACK\\n", "-ex", "bt", "--args", program, *words]).partition(
            "STACK\n"
        )[2]
    )


def c_program(shop: Workshop) -> Path:
    """The program in C."""
    return shop.build("trace", SOURCE, ".c", ["gcc", "-g", "-O2", "-fno-optimize-sibling-calls"])


def gdb(shop: Workshop) -> list[tuple[str, Frames]]:
    """Frames of gdb without symbols."""
    program = c_program(shop)
    stack = ["-ex", "echo STACK\\n", "-ex", "bt", "-ex", "info proc mappings"]
    return [
        (
            run(["gdb", "-batch", "-ex", "run", *stack, "--args", program, str(n)]).partition("STACK\n")[2],
            gdb_truth(shop.named / "trace", str(n)),
        )
        for n in range(TEXTS)
    ]


def lldb(shop: Workshop) -> list[tuple[str, Frames]]:
    """Frames of lldb without symbols."""
    program = c_program(shop)
    script = shop.folder / "script"
    script.write_text("run\nbt\nimage list\nquit\n")
    return [
        (
            run(["lldb-19", "-s", script, "--", program, str(n)]).partition("(lldb) bt")[2],
            gdb_truth(shop.named / "trace", str(n)),
        )
        for n in range(TEXTS)
    ]


def glibc(shop: Workshop) -> list[tuple[str, Frames]]:
    """Frames of `backtrace_symbols_fd`."""
    program = c_program(shop)

    def truth(text: str) -> Frames:
        found: Frames = []
        for address in re.findall(r"trace\(\+0x([0-9a-f]+)\)", text):
            symbols = run(["llvm-symbolizer-19", f"--obj={shop.named / 'trace'}", hex(int(address, 16) - 1)])
            found += re.findall(r"(\w+)\n\S*trace\.c:(\d+)", symbols)
        return found

    texts = [run([program, str(n), "glibc"]) for n in range(TEXTS)]
    return [(text, truth(text)) for text in texts]


def rust(shop: Workshop) -> list[tuple[str, Frames]]:
    """Backtraces of Rust without symbols."""
    program = shop.build("trace", RUST, ".rs", ["rustc", "-g", "-O"])

    def truth(text: str) -> Frames:
        return re.findall(r"trace::(\w+)(?:::h[0-9a-f]{16})?\n\s+at \S*/trace\.rs:(\d+)", text)

    return [
        (
            run([program, str(n)], RUST_BACKTRACE="full"),
            [
                (f"trace::{name}", line)
                for name, line in truth(run([shop.named / "trace", str(n)], RUST_BACKTRACE="full"))
            ],
        )
        for n in range(TEXTS)
    ]


def jvm(shop: Workshop) -> list[tuple[str, Frames]]:
    """Reports of the JVM on a crash in a library."""
    library = shop.build("libtrace.so", JNI, ".c", ["gcc", "-g", "-O2", "-shared", "-fPIC"])
    (shop.folder / "Trace.java").write_text(JAVA)
    subprocess.run(["javac", "-d", shop.folder, shop.folder / "Trace.java"], check=True)
    result = []
    for n in range(TEXTS):
        report = shop.folder / f"hs_err{n}.log"
        java = ["java", f"-XX:ErrorFile={report}", "-cp", shop.folder, "Trace"]
        run([*java, library, str(n)])
        text = report.read_text(errors="replace")
        truth: Frames = []
        stack = text.partition("# Problematic frame:")
        for part in (stack[2].partition("\n#\n")[0], stack[2].partition("Native frames:")[2].partition("\n\n")[0]):
            for number, offset in enumerate(re.findall(r"C  \[libtrace\.so\+0x([0-9a-f]+)\]", part)):
                address = hex(int(offset, 16) - (number > 0))
                symbols = run(["llvm-symbolizer-19", f"--obj={shop.named / 'libtrace.so'}", address])
                truth += re.findall(r"(\w+)\n\S*trace\.c:(\d+)", symbols)
        result.append((text, truth))
    return result


def sanitizer(kind: str) -> Callable[[Workshop], list[tuple[str, Frames]]]:
    """Reports of a sanitizer, with its own symbolizer as the truth."""

    def texts(shop: Workshop) -> list[tuple[str, Frames]]:
        program = shop.named / f"trace-{kind}"
        (shop.folder / "trace.c").write_text(SOURCE)
        options = ["-g", "-O1", f"-fsanitize={kind}", "-Wl,--build-id", "-fno-omit-frame-pointer"]
        subprocess.run(["clang-19", *options, shop.folder / "trace.c", "-o", program], check=True)
        names = ("ASAN_OPTIONS", "TSAN_OPTIONS", "MSAN_OPTIONS", "UBSAN_OPTIONS")
        plain = dict.fromkeys(names, "symbolize=0:print_stacktrace=1:handle_segv=1")
        own = {
            **dict.fromkeys(names, "print_stacktrace=1:handle_segv=1"),
            "LLVM_SYMBOLIZER_PATH": "/usr/bin/llvm-symbolizer-19",
        }
        own |= {name.replace("_OPTIONS", "_SYMBOLIZER_PATH"): "/usr/bin/llvm-symbolizer-19" for name in names}

        def truth(text: str) -> Frames:
            return re.findall(r"#\d+ (?:0x[0-9a-f]+ in )?(\w+) \S*trace\.c:(\d+)", text)

        return [(run([program, str(n)], **plain), truth(run([program, str(n)], **own))) for n in range(TEXTS)]

    return texts


FORMS: Final[dict[str, tuple[str, Callable[[Workshop], list[tuple[str, Frames]]]]]] = {
    "gdb": ("gdb", gdb),
    "lldb": ("lldb-19", lldb),
    "glibc": ("llvm-symbolizer-19", glibc),
    "rust": ("rustc", rust),
    "jvm": ("javac", jvm),
    **{f"sanitizer:{kind}": ("clang-19", sanitizer(kind)) for kind in ("address", "memory", "thread", "undefined")},
}


def main(words: Sequence[str]) -> int:
    """Print a line for each form; the exit code is 1 if a text got other names than the truth has."""
    failed = False
    for form, (tool, texts) in FORMS.items():
        if (words and form not in words) or shutil.which(tool) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            shop = Workshop(Path(folder))
            made = texts(shop)
            found = [(shop.names(text), truth) for text, truth in made]
        equal = sum(names == truth != [] for names, truth in found)
        print(f"{form}: {equal} of {len(made)} texts, {sum(len(truth) for _, truth in found)} frames", flush=True)
        failed |= equal < len(made)
        if equal < len(made):
            print(next((pair for pair in found if pair[0] != pair[1] or not pair[1]), None))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
