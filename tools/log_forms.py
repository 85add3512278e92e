"""Stack traces of the real producers through `symbolize log`, compared with what their own decoders say.

`python -m tools.log_forms [FORM...]` prints, for each form whose producer is installed, how many texts were made and
how many got just the functions and lines that the truth has: gdb with symbols, or the producer with its own symbolizer.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

SOURCE: Final = """
#include <execinfo.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __cplusplus
#include <backtrace/Backtrace.h>
#include <memory>
static void android(void) {
  std::unique_ptr<Backtrace> found(Backtrace::Create(getpid(), gettid()));
  found->Unwind(0);
  for (size_t i = 0; i < found->NumFrames(); i++) puts(found->FormatFrameData(i).c_str());
}
#endif
static int *volatile nowhere;
static const char *mode;
static void show(void) {
#ifdef __cplusplus
  if (!strcmp(mode, "android")) { android(); fflush(stdout); _exit(0); }
#endif
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
GO: Final = """
package main
/*
#define _GNU_SOURCE
#include <stdint.h>
#include <ucontext.h>
struct asked { uintptr_t context, signal, *found, limit; };
__attribute__((noinline)) static int leaf(int n, volatile int *p) { return *p + n; }
__attribute__((noinline)) static int middle(int n, volatile int *p) {
  int found = n ? middle(n - 1, p) : leaf(n, p);
  return found + 1;
}
static int enter(int n) { int found = middle(n, 0); return found + 1; }
static void walk(void *words) {
  struct asked *asked = words;
  ucontext_t *at = (ucontext_t *)asked->signal;
  uintptr_t n = 0, *pointer = at ? (uintptr_t *)at->uc_mcontext.gregs[REG_RBP] : 0;
  if (at) asked->found[n++] = at->uc_mcontext.gregs[REG_RIP];
  for (; n + 1 < asked->limit && pointer && pointer[0] - (uintptr_t)pointer < 4096; pointer = (uintptr_t *)pointer[0])
    asked->found[n++] = pointer[1];
  asked->found[n] = 0;
}
static void *walker(void) { return walk; }
*/
import "C"
import ("io"; "os"; "runtime"; "strconv")
func main() {
	maps, _ := os.Open("/proc/self/maps")
	io.Copy(os.Stderr, maps)
	runtime.SetCgoTraceback(0, C.walker(), nil, nil)
	n, _ := strconv.Atoi(os.Args[1])
	C.enter(C.int(n + 2))
}
"""
ADDON: Final = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
void napi_fatal_error(const char *, size_t, const char *, size_t);
static inline __attribute__((always_inline)) int deep(void) {
  napi_fatal_error("trace", 5, "on purpose", 10);
  return 1;
}
__attribute__((noinline)) int middle(int n) {
  int found = n ? middle(n - 1) : deep();
  return found + 1;
}
void *napi_register_module_v1(void *env, void *exports) {
  static volatile int kept;
  char text[4096];
  int maps = open("/proc/self/maps", 0);
  for (long size; (size = read(maps, text, sizeof text)) > 0;) kept = write(1, text, size);
  kept = middle(atoi(getenv("DEPTH")));
  return exports;
}
"""
TORCH: Final = """
#include <c10/util/Backtrace.h>
#include <c10/util/Exception.h>
#include <cstring>
#define SHOWN extern "C" __attribute__((visibility("default")))
static inline __attribute__((always_inline)) int deep(const char **out) {
  if (!out) TORCH_CHECK(false, "on purpose");
  *out = ::strdup(c10::get_backtrace(0, 64, false).c_str());
  return 1;
}
__attribute__((noinline)) int middle(int n, const char **out) {
  int found = n ? middle(n - 1, out) : deep(out);
  return found + 1;
}
SHOWN const char *frames_of(int n) {
  static const char *text;
  static volatile int kept;
  kept = middle(n, &text);
  return text;
}
SHOWN const char *error_of(int n) {
  static volatile int kept;
  try { kept = middle(n, nullptr); } catch (const c10::Error &error) { return ::strdup(error.what()); }
  return "";
}
"""
TEXTS: Final = 10
KINDS: Final = ("address", "leak", "hwaddress", "memory", "thread", "undefined")
ANDROID: Final = Path("/usr/include/android/backtrace/Backtrace.h")
SYSTEMD_COREDUMP: Final = Path("/lib/systemd/systemd-coredump")
COREDUMP_SOCKET: Final = Path("/run/systemd/coredump")
NAMED: Final = re.compile(r"([\w:]+)(?:\([^()\n]*\))? (?:at )?/?\S*?/trace\.(?:c|rs|cpp|go):(\d+)")
GDB_FRAME: Final = re.compile(r"(?:in |#\d+ +)([\w:]+) \([^\n]*\) at \S*?trace\.\w+:(\d+)")
PLAIN: Final[list[str | Path]] = ["gcc", "-g", "-O2", "-fno-optimize-sibling-calls"]
LIBRARY: Final[list[str | Path]] = [*PLAIN, "-shared", "-fPIC"]
Frames = list[tuple[str, str]]
Texts = list[tuple[str, Frames]]


def run(words: Sequence[str | Path], **environment: str) -> str:
    """What a command prints, on either output."""
    output = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment}, check=False
    ).stdout
    return output.decode(errors="replace")


class Workshop:
    """The programs, with and without symbols, in a folder."""

    def __init__(self, folder: Path, is_fixed: bool = False) -> None:
        self.folder, self.is_fixed = folder, is_fixed
        folder.chmod(0o755)  # systemd-coredump reads the programs as a user of its own
        self.named = folder / "named"
        self.named.mkdir()

    def build(self, name: str, text: str, suffix: str, command: Sequence[str | Path]) -> Path:
        """The stripped program; the one with symbols has the same name in `named`."""
        source = self.folder / f"trace{suffix}"
        source.write_text(text)
        options = ["-no-pie"] * self.is_fixed
        subprocess.run([*command, *options, source, "-o", self.named / name], check=True, capture_output=True)
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


def llvm_truth(program: Path, vaddrs: Iterable[int]) -> Frames:
    """The frames of the source at addresses, as llvm-symbolizer has them."""
    words = ["llvm-symbolizer-19", f"--obj={program}", *map(hex, vaddrs)]
    return re.findall(r"([\w:]+)(?:\.[\w.]+)?(?:\([^()\n]*\))?\n\S*trace\.\w+:(\d+)", run(words) if words[2:] else "")


def loaded_at(text: str, name: str) -> int:
    """Where a file begins in memory, by /proc/PID/maps in a text."""
    found = re.search(rf"^([0-9a-f]+)-\S+ \S+ 00000000 .*/{re.escape(name)}$", text, re.MULTILINE)
    return int(found[1], 16) if found else 0


def c_program(shop: Workshop) -> Path:
    """The program in C."""
    return shop.build("trace", SOURCE, ".c", PLAIN)


def gdb(shop: Workshop) -> Texts:
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


def lldb(shop: Workshop) -> Texts:
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


def glibc(shop: Workshop) -> Texts:
    """Frames of `backtrace_symbols_fd`."""
    program = c_program(shop)

    def truth(text: str) -> Frames:
        found = re.findall(r"trace(?:\(\+0x([0-9a-f]+)\))?\[0x([0-9a-f]+)\]", text)
        return llvm_truth(shop.named / "trace", (int(offset or address, 16) - 1 for offset, address in found))

    texts = [run([program, str(n), "glibc"]) for n in range(TEXTS)]
    return [(text, truth(text)) for text in texts]


def android(shop: Workshop) -> Texts:
    """Frames of Android's libunwindstack, by its libbacktrace."""
    folder = "/usr/lib/x86_64-linux-gnu/android"
    options = [f"-I{ANDROID.parent.parent}", f"-L{folder}", f"-Wl,-rpath,{folder}"]
    libraries = ["-Wl,--no-as-needed", "-lbacktrace", "-lbase"]
    program = shop.build("trace", SOURCE, ".cpp", ["g++", *PLAIN[1:], *options, *libraries])
    texts = [run([program, str(n), "android"]) for n in range(TEXTS)]
    found = [[int(each, 16) for each in re.findall(r" pc (\w+)  \S*/trace\b", text)] for text in texts]
    return [(text, llvm_truth(shop.named / "trace", vaddrs)) for text, vaddrs in zip(texts, found, strict=True)]


def rust(shop: Workshop) -> Texts:
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


def jvm(shop: Workshop) -> Texts:
    """Reports of the JVM on a crash in a library."""
    library = shop.build("libtrace.so", JNI, ".c", LIBRARY)
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
            found = re.findall(r"C  \[libtrace\.so\+0x([0-9a-f]+)\]", part)
            truth += llvm_truth(shop.named / "libtrace.so", (int(each, 16) - (n > 0) for n, each in enumerate(found)))
        result.append((text, truth))
    return result


def go(shop: Workshop) -> Texts:
    """Crashes of Go programs in C, of whose stack Go has the addresses only."""
    (shop.folder / "go.mod").write_text("module trace")
    (shop.folder / "trace.go").write_text(GO)
    flags = " ".join(map(str, [*PLAIN[1:], "-fno-omit-frame-pointer"]))
    building = {**os.environ, "CGO_CFLAGS": flags, "GOFLAGS": "-buildvcs=false"}
    program = shop.named / "trace"
    subprocess.run(["go", "build", "-o", program, "."], cwd=shop.folder, env=building, check=True)
    subprocess.run(["strip", "-o", shop.folder / "trace", program], check=True)

    def truth(text: str) -> Frames:
        stops = [int(each, 16) for each in re.findall(r"(?:\[signal .* pc=|\bPC=)0x([0-9a-f]+)", text)]
        calls = [int(each, 16) for each in re.findall(r"non-Go function at pc=0x([0-9a-f]+)", text)]
        return llvm_truth(program, stops + calls[:1] + [each - 1 for each in calls[1:]])

    texts = [run([shop.folder / "trace", str(n)], GOTRACEBACK="all") for n in range(TEXTS)]
    return [(text, truth(text)) for text in texts]


def systemd(shop: Workshop) -> Texts:
    """What systemd-coredump writes to the journal; it has to be what the kernel gives core files to, and root runs
    this."""
    program = c_program(shop)
    journal = Path("/run/systemd/journal/socket")
    journal.parent.mkdir(parents=True, exist_ok=True)
    texts = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(journal))  # fails where a journal runs, whose socket stays
        try:
            journal.chmod(0o666)
            log.settimeout(30)
            with subprocess.Popen(
                ["systemd-socket-activate", "--seqpacket", "--accept", "-l", COREDUMP_SOCKET, SYSTEMD_COREDUMP],
                stderr=subprocess.DEVNULL,
            ) as server:
                while not COREDUMP_SOCKET.exists():
                    time.sleep(0.01)
                for n in range(TEXTS):
                    run(["prlimit", "--core=unlimited", program, str(n)])
                    message = log.recv(1 << 20).partition(b"MESSAGE\n")[2][8:]
                    text = message.partition(b"\nCODE_FILE=")[0].decode()
                    texts.append((text, gdb_truth(shop.named / "trace", str(n))))
                server.terminate()
        finally:
            journal.unlink()
            COREDUMP_SOCKET.unlink(missing_ok=True)
    return texts


def bpftrace(shop: Workshop) -> Texts:
    """Stacks of bpftrace in a stripped program, with its modules in front; of one or two frames, as at the begin of a
    function, there is too little evidence for names."""
    program = shop.build("trace", SOURCE, ".c", [*PLAIN, "-fno-omit-frame-pointer"])
    result: Texts = []
    while len(result) < TEXTS:
        with subprocess.Popen([program, str(len(result)), "work"]) as running:
            script = f"profile:hz:99 /pid == {running.pid}/ {{ print(ustack()); exit(); }}"
            stacks = run(["bpftrace", "-e", script])
            text = Path(f"/proc/{running.pid}/maps").read_text() + stacks
            running.kill()
        begin = 0 if shop.is_fixed else loaded_at(text, "trace")
        stack = re.findall(r"(?<=\n\n) {8}0x([0-9a-f]+)$|^ {8}0x([0-9a-f]+)$", text, re.MULTILINE)
        vaddrs = [int(first, 16) - begin if first else int(rest, 16) - begin - 1 for first, rest in stack]
        if len(stack) > 2:
            result.append((text, llvm_truth(shop.named / "trace", vaddrs)))
    return result


def node(shop: Workshop) -> Texts:
    """Reports of Node on a fatal error in an addon."""
    addon = shop.build("trace.node", ADDON, ".c", LIBRARY)
    options = ["--report-on-fatalerror", "--report-filename=stdout"]
    script = "process.dlopen({exports: {}}, process.argv[1])"
    texts = [run(["node", *options, "-e", script, addon], DEPTH=str(n)) for n in range(TEXTS)]

    def truth(text: str) -> Frames:
        found = re.findall(r'"pc": "0x([0-9a-f]+)",\s+"symbol": ".*\[.*/trace\.node\]"', text)
        begin = loaded_at(text, "trace.node")
        return llvm_truth(shop.named / "trace.node", (int(each, 16) - begin - 1 for each in found))

    return [(text, truth(text)) for text in texts]


def torch(function: str, visibility: str = "hidden") -> Callable[[Workshop], Texts]:
    """Backtraces of PyTorch, of an error or by themselves; TORCH_PYTHON is the Python that has it."""

    def texts(shop: Workshop) -> Texts:
        python = os.environ["TORCH_PYTHON"]
        folder = run([python, "-W", "ignore", "-c", "import torch; print(torch.__path__[0])"]).split()[-1]
        options = [
            f"-I{folder}/include",
            f"-fvisibility={visibility}",
            f"-L{folder}/lib",
            "-Wl,--no-as-needed",
            "-lc10",
        ]
        library = shop.build("libtrace.so", TORCH, ".cpp", ["g++", *LIBRARY[1:], *options])
        program = (
            f"import ctypes, torch; f = ctypes.CDLL({str(library)!r}).{function}; f.restype = ctypes.c_char_p;"
            f"[print(f(n).decode(), chr(12)) for n in range({TEXTS})]"
        )
        variables = {"TORCH_SHOW_CPP_STACKTRACES": "1", "TORCH_DISABLE_ADDR2LINE": "1"}
        found = run([python, "-W", "ignore", "-c", program], **variables).split("\f")[:TEXTS]

        entry = int(re.findall(rf"^(\w+) T {function}$", run(["nm", shop.named / "libtrace.so"]), re.MULTILINE)[0], 16)

        def truth(text: str) -> Frames:
            frames = re.findall(r"(\S+) \+ 0x(\w+) \(0x(\w+) in \S*/libtrace\.so\)", text)
            begins = [int(address, 16) - int(offset, 16) for name, offset, address in frames if name == function]
            calls = [int(address, 16) - begins[0] + entry - 1 for _, _, address in frames]
            calls += [int(each) for each in re.findall(r"^#\d+ .* from \S*/libtrace\.so:(\d+)$", text, re.MULTILINE)]
            return llvm_truth(shop.named / "libtrace.so", calls)

        return [(text, truth(text)) for text in found]

    return texts


def sanitizer(kind: str) -> Callable[[Workshop], Texts]:
    """Reports of a sanitizer, with its own symbolizer as the truth."""

    def texts(shop: Workshop) -> Texts:
        program = shop.named / f"trace-{kind}"
        (shop.folder / "trace.c").write_text(SOURCE)
        options = ["-g", "-O1", f"-fsanitize={kind}", "-Wl,--build-id", "-fno-omit-frame-pointer"]
        options += ["-fsanitize-hwaddress-experimental-aliasing"] * (kind == "hwaddress")
        subprocess.run(["clang-19", *options, shop.folder / "trace.c", "-o", program], check=True)
        names = [f"{each}_OPTIONS" for each in ("ASAN", "TSAN", "MSAN", "UBSAN", "LSAN", "HWASAN")]
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


FORMS: Final[dict[str, tuple[str, Callable[[Workshop], Texts]]]] = {
    "gdb": ("gdb", gdb),
    "lldb": ("lldb-19", lldb),
    "glibc": ("llvm-symbolizer-19", glibc),
    "android": (str(ANDROID), android),
    "rust": ("rustc", rust),
    "jvm": ("javac", jvm),
    "go": ("go", go),
    "systemd": (str(SYSTEMD_COREDUMP), systemd),
    "bpftrace": ("bpftrace", bpftrace),
    "node": ("node", node),
    "torch": (os.environ.get("TORCH_PYTHON", ""), torch("frames_of")),
    "torch:names": (os.environ.get("TORCH_PYTHON", ""), torch("frames_of", "default")),
    "torch:error": (os.environ.get("TORCH_PYTHON", ""), torch("error_of")),
    **{f"sanitizer:{kind}": ("clang-19", sanitizer(kind)) for kind in KINDS},
}


FIXED: Final = ("gdb", "lldb", "glibc", "android", "systemd", "bpftrace")
"""Forms that are tried with a program at a fixed address too."""


def main(words: Sequence[str]) -> int:
    """Print a line for each form; the exit code is 1 if a text got other names than the truth has."""
    failed = False
    forms = [*FORMS, *(f"{form}:fixed" for form in FIXED)]
    for form in forms:
        tool, texts = FORMS[form.removesuffix(":fixed")]
        if (words and form not in words) or not (shutil.which(tool) or Path(tool).is_file()):
            continue
        with tempfile.TemporaryDirectory() as folder:
            shop = Workshop(Path(folder), form.endswith(":fixed"))
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
