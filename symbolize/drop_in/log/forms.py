"""The forms of frames in texts: how each is found in a line, and what its address means.

R385, addresses in texts: sanitizers print addresses that are inside of the call, glibc and the kernel return addresses.
R510, addresses of each form: so do others, and which of their frames stopped where they are.
"""

import re
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple

LONGEST: Final = 4096
"""Bytes of a line that is looked at; longer ones are no frames, but in JSON."""
LONGEST_JSON: Final = 1 << 18
MAX_PATH: Final = 1024
MAX_TRIED: Final = 4
"""Matches in a line of which the first that is a frame counts."""
KERNEL_FORM: Final = "kernel"


class At(Enum):
    """What the address of a frame is: an instruction that was executed, one in the call, or where a call returns to.

    WARNING is where the kernel warned: an instruction that traps or, on machines without one, where the call of the
    function returns to that prints the warning.
    """

    EXACT = "exact"
    CALL = "call"
    RETURN = "return"
    WARNING = "warning"


class Base(Enum):
    """What an offset counts from: vaddr 0, or where the first byte of the file is in memory."""

    VADDR = "vaddr"
    FILE = "file"


class NameStyle(Enum):
    """Where the names go: behind the frame, in brackets if a line may have several, into the frame as a sanitizer has
    them, into a string of JSON or, as a member of its own, into an object of JSON."""

    BEHIND = "behind"
    BRACKETS = "brackets"
    SANITIZER = "sanitizer"
    THREAD = "thread sanitizer"
    STRING = "string"
    MEMBER = "member"


class TraceFrame(NamedTuple):
    """A frame in a text: the file by its recorded path or name and by its build id (each may be empty), and
    an offset, a symbol with an offset and maybe a size, or an address in memory, as far as the text has them.

    What is before `start` stays before the names, what is behind `end` stays behind them. `has_name`: the text names
    the function already. `is_main`: it is in the program itself, which the text does not name. `follows`: it is right
    behind the frame before it, which it called. `known`: a symbol and the offset from it, which are evidence.
    `is_demangled`: the symbol is not as it is linked.
    """

    form: str
    start: int
    end: int
    at: At
    file: str = ""
    build_id: str = ""
    base: Base = Base.VADDR
    offset: int | None = None
    address: int | None = None
    symbol: bytes = b""
    size: int = 0
    has_name: bool = False
    style: NameStyle = NameStyle.BEHIND
    is_main: bool = False
    loaded_at: int = 0
    follows: bool = False
    known: tuple[bytes, int] | None = None
    is_demangled: bool = False


class Form(NamedTuple):
    """How frames of a producer look: a line with one of the `markers` has frames where `pattern` matches.

    Its groups are fields of `TraceFrame`; `known` is the name of the function if there is one, `number` the place on
    the stack and `end` where the names go, else the end of the match. `completed` is the frame with what no group says,
    or None if it is none after all; it gets the match and the line before.
    """

    name: str
    markers: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    at: At
    base: Base = Base.VADDR
    style: NameStyle = NameStyle.BEHIND
    is_exact_first: bool = False
    completed: Callable[[TraceFrame, re.Match[bytes], bytes], TraceFrame | None] | None = None
    has_several: bool = False
    longest: int = LONGEST


NO_NAMES: Final = {b"", b"??", b"n/a", b"<unknown>", b"<null>", b"<unknown function>"}
UNNAMED: Final = re.compile(rb"___lldb_unnamed_symbol")
TRAMPOLINE: Final = re.compile(rb"<signal handler called>|\b__restore_rt\b|\b__kernel_rt_sigreturn\b")
"""What a line has in front of the frame that a signal interrupted, whose address is exact."""
EXACT: Final = re.compile(
    rb"(?:\b(?:RIP|EIP|NIP)\b:?|\b(?:IP|PC|TPC|pc|epc|ERA|Krnl PSW)\s{0,3}:|\b(?:EIP|PC|pc|ip) is at|"
    rb"\bIAOQ\[[01]\]:|\[ERET {0,2}\]:|\bidling at|\b(?:interrupt|Exception): [^\n:]{1,40} at|"
    rb"\bKFENCE: \S{1,20} (?:read|write) in)"
    rb"[\s:]{0,4}(?:[0-9a-f]{4}:)?(?:[\s(\[<]{0,4}(?:0x)?[0-9a-f]{8,16}[>\]]{0,2}:?){0,2}[\s(\[<]{0,3}\Z"
)
"""What the kernel prints right in front of the address at which it stopped, which is none to return to: of x86,
PowerPC, m68k, SPARC, arm64, RISC-V and MIPS, LoongArch, s390, PA-RISC and ARC; where a processor idles, where an
interrupt came, and of an access that trapped."""
MAX_BEFORE: Final = 128
"""Bytes of a line that are looked at for that."""
LINK: Final = re.compile(rb"\b(?:lr|ra|LR|RP|PR|RPC|BLINK)\b")
"""What it prints before the address that a register has to return to."""
EXACT_LINE: Final = b"Last Breaking-Event-Address:"
"""What s390 has in the line before the address of a jump."""
PROGRAM_COUNTER: Final = b" (P"
"""What arm64 has behind a frame that an exception came in."""
WARNING: Final = re.compile(
    rb"WARNING: (?:CPU: \d{1,6} PID: \d{1,10} |\S{1,1024}:\d{1,7} )?at (?:\S{1,1024}:\d{1,7} )?\Z"
)
OLD_WARNING: Final = b"()"
"""What is behind the function in warnings of kernels that called a function for them on each machine."""
BORDER: Final = re.compile(rb"[()\s]")
BUILD_ID: Final = re.compile(rb"\(BuildId: ([0-9a-fA-F]{4,128})\)")
GOROUTINE: Final = re.compile(rb"\bgoroutine \d{1,20} [^\n]{0,200}\[[^\n]{1,200}\]:\s*$")
JVM_FIRST: Final = (b"Native frames:", b"# Problematic frame:")
WORD: Final = re.compile(rb"[\w.$]{1,512}")
SOURCES: Final = (
    *(".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hh", ".hpp", ".inl"),
    *(".py", ".pyx", ".rs", ".s", ".S"),
)
"""How names of source files end, which addr2line has in place of the library."""


def kernel_frame(frame: TraceFrame, match: re.Match[bytes], before: bytes) -> TraceFrame | None:
    """A frame of the kernel: a return address with the name of the function that has the byte before
    (`sprint_backtrace` in `kernel/kallsyms.c`), but where it stopped or warned."""
    module = (match["module"] or b"").decode()
    offset = frame.offset or 0
    if offset > frame.size:
        return None
    at = kernel_address(match, before)
    if not (1 if at is At.RETURN else 0) <= offset < frame.size + (at is At.RETURN):
        return None
    return frame._replace(file=f"{module}.ko" if module else "vmlinux", at=at, has_name=True)


def kernel_address(match: re.Match[bytes], before: bytes) -> At:
    """What the address of the kernel's frame is, by what is around it."""
    text, begin, end = match.string, match.start(), match.end()
    begin_of_line = text.rfind(b"\n", 0, begin) + 1
    warning = text.rfind(b"WARNING: ", begin_of_line, begin)
    if warning >= 0 and WARNING.match(text, warning, begin):
        return At.RETURN if text.startswith(OLD_WARNING, end) else At.WARNING
    is_exact = EXACT.search(text, max(begin_of_line, begin - MAX_BEFORE), begin) or EXACT_LINE in before
    return At.EXACT if is_exact or text.startswith(PROGRAM_COUNTER, end) else At.RETURN


def glibc_frame(frame: TraceFrame, match: re.Match[bytes], _before: bytes) -> TraceFrame | None:
    """A frame of glibc: its path is looked for backwards, because from each byte on, a long line takes too long. A
    program that is not position independent has no offset."""
    line_begin = match.string.rfind(b"\n", 0, match.start()) + 1
    before = match.string[max(match.start() - MAX_PATH, line_begin) : match.start()]
    if not frame.address or frame.offset == 0:
        return None
    return frame._replace(file=path_text(BORDER.split(before)[-1]), has_name=bool(frame.symbol))


def android_frame(frame: TraceFrame, match: re.Match[bytes], _before: bytes) -> TraceFrame | None:
    """A frame of a tombstone; a library in an archive has its name behind `!`."""
    build_id = BUILD_ID.search(match["more"])
    file = "" if frame.file.endswith((".apk", ".jar", ".zip")) else frame.file.rpartition("!")[2]
    name = b"+" in match["more"].partition(b" (BuildId")[0]
    return frame._replace(file=file, build_id=build_id[1].decode() if build_id else "", has_name=name)


def pytorch_frame(frame: TraceFrame, match: re.Match[bytes], _before: bytes) -> TraceFrame | None:
    """A frame of PyTorch: its offset counts from a function if that has a name, which is demangled."""
    if match["known"] in NO_NAMES:
        return frame
    return frame._replace(symbol=match["known"], is_demangled=not WORD.fullmatch(match["known"]))


def pytorch_error_frame(frame: TraceFrame, match: re.Match[bytes], _before: bytes) -> TraceFrame | None:
    """A frame of PyTorch's errors, in the call and decimal; with TORCH_DISABLE_ADDR2LINE unset it has a line instead
    (`CapturedTraceback`, `torch/csrc/profiler/unwind/unwind.cpp`)."""
    offset = int(match["decimal"])
    return None if frame.file.endswith(SOURCES) or not offset else frame._replace(offset=offset)


def jvm_frame(frame: TraceFrame, _match: re.Match[bytes], before: bytes) -> TraceFrame:
    """A frame of the JVM: the first one is where the signal came. If there was none, as behind `Internal Error`, the
    code in front of the address says that it is a return address."""
    return frame._replace(at=At.EXACT) if before.startswith(JVM_FIRST) else frame


def bare_frame(frame: TraceFrame, _match: re.Match[bytes], before: bytes) -> TraceFrame:
    """A line with an address: exact is the first line of a stack. All are indented, also those with names."""
    return frame if before[:1] in (b" ", b"\t") and before.strip() else frame._replace(at=At.EXACT)


def crash_frame(frame: TraceFrame, match: re.Match[bytes], before: bytes) -> TraceFrame:
    """Where a Go program got a signal (`PC=`), or an address on its stack; the first one of a goroutine is where its
    thread got the signal (`traceback` in `runtime/traceback.go`)."""
    return frame._replace(at=At.EXACT if match["stop"] or GOROUTINE.search(before) else At.RETURN)


def no_lines(frame: TraceFrame, match: re.Match[bytes], _before: bytes) -> TraceFrame | None:
    """The frame, unless it has a line already."""
    return None if b" at " in (match["known"] or b"") else frame


FORMS: Final = (
    Form(
        "Android",
        (b" pc 0",),
        re.compile(
            rb"#(?P<number>\d{2,3}) {1,2}pc (?P<offset>[0-9a-f]{8,16}) {1,8}(?P<file>[^\s()]{1,1024})(?P<more>[^\n]*)"
        ),
        At.CALL,  # Unwinder::FillInFrame of libunwindstack takes the adjustment from all frames but the first
        completed=android_frame,
    ),
    Form(
        "PyTorch",
        (b" + 0x",),
        re.compile(
            rb"frame #(?P<number>\d{1,4}): (?P<known>(?:[^\n#]|(?<!frame )#){1,3000}) \+ 0x(?P<offset>[0-9a-f]{1,16}) "
            rb"\(0x(?P<address>[0-9a-f]{1,16}) in (?P<file>[^()\n]{1,1024})\)"
        ),
        At.RETURN,
        completed=pytorch_frame,
    ),
    Form(
        "PyTorch",
        (b" from /",),
        re.compile(
            rb"#(?P<number>\d{1,4}) (?P<known>(?:[^\n #]| (?!from /)|#(?!\d{1,4} )){1,3000}) from "
            rb"(?P<file>/[^:\n]{1,1024}):(?P<decimal>\d{1,18})$",
            re.MULTILINE,
        ),
        At.CALL,
        completed=pytorch_error_frame,
    ),
    Form(
        "Python",
        (b'Binary file "',),
        re.compile(
            rb'Binary file "(?P<file>[^"\n]{1,1024})"(?:, at (?P<symbol>[^+\s]{0,512})\+0x(?P<offset>[0-9a-f]{1,16}))? '
            rb"\[0x(?P<address>[0-9a-f]{1,16})\]"
        ),
        At.RETURN,  # counts from the load bias, and has no offset if that is 0 (Python/traceback.c)
    ),
    Form(
        "JVM",
        (b"+0x",),
        re.compile(
            rb"(?<![\w#])[CV]  \[(?P<file>[^\[\]\n]{1,1024})\+0x(?P<offset>[0-9a-f]{1,16})\]"
            rb"(?:  (?P<known>[^\n]{1,2000})\+0x(?P<known_offset>[0-9a-f]{1,16}))?"
        ),
        At.RETURN,
        Base.FILE,
        completed=jvm_frame,
    ),
    Form(
        "systemd-coredump",
        (b" + 0x",),
        re.compile(
            rb"#(?P<number>\d{1,3}) {1,3}0x(?P<address>[0-9a-f]{16}) (?P<known>[^\s()]{1,2000}) "
            rb"\((?P<file>(?!n/a )[^\s()]{1,1024}) \+ 0x(?P<offset>[0-9a-f]{1,16})\)"
        ),
        At.RETURN,
        Base.FILE,
        is_exact_first=True,
    ),
    Form(
        "lldb",
        (b"frame #",),
        re.compile(
            rb"frame #(?P<number>\d{1,4}): 0x(?P<address>[0-9a-f]{8,16})"
            rb"(?: (?P<file>[^\n`]{1,1024}+))?(?:`(?P<known>[^\n]{1,2000}+))?$",
            re.MULTILINE,
        ),
        At.RETURN,
        is_exact_first=True,
        completed=no_lines,
    ),
    Form(
        "gdb",
        (b"() from ", b"?? ()"),
        re.compile(
            rb"(?:#(?P<number>\d{1,5}) {1,6})?(?<![\w])0x(?P<address>[0-9a-f]{8,16}) in "
            rb"(?P<known>(?:[^\n()0]|0(?!x[0-9a-f]{8})){1,1000}) \(\)(?: from (?P<file>[^\n]{1,1024}+))?$",
            re.MULTILINE,
        ),
        At.RETURN,
        is_exact_first=True,
    ),
    Form(
        "Rust",
        (b" - <unknown>",),
        re.compile(rb"\b\d{1,5}: {1,24}0x(?P<address>[0-9a-f]{1,16}) - (?P<known><unknown>)"),
        At.RETURN,
    ),
    Form(
        "Go",
        (b"pc=0x", b"PC=0x", b" called from 0x"),
        re.compile(
            rb"(?:\bunexpected return pc for \S{1,500} called from |^(?:[^\n]{0,80}non-Go function at |\s{0,9})pc=|"
            rb"(?P<stop>\bPC=|\[signal [^\n]{1,120} pc=))0x(?P<address>[0-9a-f]{1,16})(?(stop)(?:(?= m=)|\])|$)",
            re.MULTILINE,
        ),
        At.RETURN,
        completed=crash_frame,
    ),
    Form(
        "Node",
        (b'"pc":',),
        re.compile(
            rb'"pc": ?"0x(?P<address>[0-9a-f]{1,16})",\s{0,80}"symbol": ?"'
            rb'(?P<known>[^"\\\n]{0,3000}) \[(?P<file>[^\[\]"\\\n]{1,1024})\](?P<end>)"'
        ),
        At.RETURN,
        style=NameStyle.STRING,
        has_several=True,
        longest=LONGEST_JSON,
    ),
    Form(
        "MongoDB",
        (b'"o":"',),
        re.compile(
            rb'\{(?:"a":"(?P<address>[0-9A-F]{1,16})",)?"b":"(?P<loaded_at>[0-9A-F]{1,16})",'
            rb'"o":"(?P<offset>[0-9A-F]{1,16})"(?:,"s":"(?P<known>[^"\\\n]{1,3000})")?'
            rb'(?:,"(?:C|s\+)":"[^"\\\n]{1,3000}"){0,2}(?P<end>)\}'
        ),
        At.RETURN,
        Base.FILE,
        style=NameStyle.MEMBER,
        has_several=True,
        longest=LONGEST_JSON,
    ),
    Form(
        "sanitizer",
        (b"+0x",),
        re.compile(
            rb"(?P<start>#\d{1,4} 0x[0-9a-fA-F]{1,16} ) ?(?:in (?P<known>(?:[^\n#]|#(?!\d{1,4} 0x)){1,3000}?) ?)?"
            rb"\((?P<file>[^()\n]{1,1024})\+0x(?P<offset>[0-9a-fA-F]{1,16})\)"
            rb"(?: \(BuildId: (?P<id>[0-9a-fA-F]{4,128})\))?(?P<end>\s{0,8})$",
            re.MULTILINE,
        ),
        At.CALL,  # GetPreviousInstructionPc of sanitizer_stacktrace.cpp, also of the first frame
        style=NameStyle.SANITIZER,
    ),
    Form(
        "sanitizer",
        (b" <null> (",),
        re.compile(
            rb"(?P<start>#\d{1,4} )(?P<known>(?:[^\n#]|#(?!\d{1,4} )){1,3000}) <null> \((?P<file>[^()\n]{1,1024})"
            rb"\+0x(?P<offset>[0-9a-fA-F]{1,16})\)(?: \(BuildId: (?P<id>[0-9a-fA-F]{4,128})\))?"
        ),
        At.CALL,
        style=NameStyle.THREAD,
    ),
    Form(
        "glibc",
        (b"+0x", b"() [0x"),
        re.compile(
            rb"(?<=[^()\s])\((?:(?P<symbol>[^()+\s]{0,512})\+0x(?P<offset>[0-9a-fA-F]{1,16}))?\)"
            rb" ?\[0x(?P<address>[0-9a-fA-F]{1,16})\]"
        ),
        At.RETURN,
        completed=glibc_frame,
    ),
    Form(
        "glibc",
        (b"[0x",),
        # a program at a fixed address
        re.compile(rb"(?:^|(?<=\s))(?P<file>[^\s()\[\]]{1,1024})\[0x(?P<address>[0-9a-f]{5,16})\]$", re.MULTILINE),
        At.RETURN,
    ),
    Form(
        KERNEL_FORM,
        (b"+0x",),
        re.compile(
            rb"(?<![\w.$+])(?P<symbol>[A-Za-z_][\w.$]{0,255})\+0x(?P<offset>[0-9a-fA-F]{1,8})/"
            rb"0x(?P<size>[0-9a-fA-F]{1,8})(?: \[(?P<module>[\w-]{1,64})(?: (?P<id>[0-9a-f]{4,128}))?\])?(?![\w+/])"
        ),
        At.RETURN,
        completed=kernel_frame,
    ),
)

SEASTAR: Final = Form(
    "seastar",
    (b"acktrace:",),
    re.compile(rb"(?<!\S)(?:(?P<file>/\S{1,1024})\+)?0x(?P<offset>[0-9a-f]{3,16})(?!\S)"),
    At.CALL,  # backtrace() of seastar's util/backtrace.hh takes 1 from each address
    style=NameStyle.BRACKETS,
    has_several=True,
)
"""Addresses behind `Backtrace:` in its line, or in the lines that follow and have nothing else."""
SEASTAR_LINES: Final = re.compile(
    rb"\s*(?:/\S{1,1024}\+)?0x[0-9a-f]{3,16}(?:\s+(?:/\S{1,1024}\+)?0x[0-9a-f]{3,16})*\s*"
)

ADDRESS: Final = Form(
    "address",
    (),
    re.compile(
        rb"^\s{1,40}(?:0x(?=[0-9a-f]{5})|(?=[0-9a-f]{8}))(?P<address>[0-9a-f]{5,16})(?P<end>)"
        rb"(?: \(?\[unknown\]\)?| \(\[unknown\]\))?\s{0,8}$",
        re.MULTILINE,
    ),
    At.RETURN,
    completed=bare_frame,
)
"""A line with an address alone, as `ustack(raw)` of bpftrace and bcc's tools have them: it counts where a table of the
text says what was there."""


def frames_of(form: Form, text: bytes, begin: int, end: int, before: bytes) -> Iterator[TraceFrame]:
    """The frames of a form in a line, which is `text[begin:end]` and follows the line `before`."""
    if end - begin > form.longest:
        return
    reach = end + LONGEST if form.style is NameStyle.STRING else end  # the name is in the next line
    for match in islice(form.pattern.finditer(text, begin, reach), None if form.has_several else MAX_TRIED):
        if match.start() >= end:
            return
        frame = frame_of(form, match, before)
        if frame is None:
            continue
        yield frame
        if not form.has_several:
            return


def frame_of(form: Form, match: re.Match[bytes], before: bytes) -> TraceFrame | None:
    """What a form's match says (R510, addresses of each form): the address of the first frame of a debugger, and of one
    that a signal interrupted, is exact."""
    groups = match.groupdict()

    def number(name: str) -> int | None:
        text = groups.get(name)
        return int(text, 16) if text else None

    is_first = form.is_exact_first and (not groups.get("number") or int(groups["number"]) == 0)
    is_exact = is_first or (form.at is At.RETURN and TRAMPOLINE.search(before) is not None)
    known = groups.get("known") or b""
    symbol = groups.get("symbol") or b""
    frame = TraceFrame(
        form.name,
        match.end("start") if "start" in groups else match.start(),
        match.start("end") if "end" in groups else match.end(),
        At.EXACT if is_exact else form.at,
        path_text(groups.get("file") or b""),
        (groups.get("id") or b"").decode(),
        form.base,
        number("offset"),
        number("address"),
        symbol,
        number("size") or 0,
        bool(symbol) or (known not in NO_NAMES and not UNNAMED.match(known)),
        form.style,
        loaded_at=number("loaded_at") or 0,
        known=(known, number("known_offset") or 0) if groups.get("known_offset") else None,
    )
    return form.completed(frame, match, before) if form.completed else frame


def path_text(path: bytes) -> str:
    """A recorded path, which is never opened by itself."""
    return path.decode(errors="surrogateescape")
