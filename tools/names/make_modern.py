"""Makes modern.tsv: names of C++20 to C++26 with the texts of llvm-cxxfilt 19, which knows all but a few of them.

    python -m tools.names.make_modern

Compiles features.cpp and module.cppm with clang++-19. The table has a row a name: the name, the text of llvm-cxxfilt-19
(empty where it has none), our texts in modes full and default, and how the two full ones compare: `equal`, `style` (see
`plain`), or the reason of `REASONS` why ours is right. A difference without a reason is an error, so whoever changes
the texts looks at each.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from symbolize.names import demangle

FOLDER = Path(__file__).parents[2] / "tests" / "names" / "modern"
TABLE = FOLDER / "modern.tsv"
SOURCES = (("features.cpp", "-std=c++26"), ("module.cppm", "-std=c++20"))

_ARGUMENT = re.compile(rb"\{parm#(\d+)\}|\bfp(\d*)\b")
_CLOSURE = re.compile(rb"\{lambda(.*?)\}|'lambda\d*'")
_FLOAT = re.compile(rb"\((?:float|double)\)\[[0-9a-f]+\]|-?0x[0-9a-f.]+p[-+]\d+f?")
_NOISE = re.compile(rb"[() {}]|\.\.\.|#\d+|'lambda\d*'|lambda|\(\.\w+\)$")

BINDING = (
    "llvm-cxxfilt takes parameters of templates for others, or prints what they are called instead of what they are"
)
UNEXPANDED = "llvm-cxxfilt writes the type of a pack and three dots where each element has a type"
EXPANDED = "llvm-cxxfilt repeats the operand of a fold expression or the elements of a counted pack"
DEFAULT_ARGUMENT = "llvm-cxxfilt does not say in which default argument the lambda is"
CALLED = "a function that is called in an expression is named without its parameters, as GNU does"
LOCAL = "the return type of a function around another entity is not a part of its name"
UNKNOWN = "llvm-cxxfilt cannot read it"
REASONS = {
    b"_Z16abbreviated_packITpTk4PairIiEJciEEvDpT_": UNEXPANDED,
    b"_Z16constrained_packITpTk3AnyJicEEvDpT_": UNEXPANDED,
    b"_Z6foldedIJiiEEvDpT_Qfraa3AnyIS0_E": EXPANDED,
    b"_Z7countedIJiiEEDTplsZT_sZfp_EDpT_": EXPANDED,
    b"_Z8requiredIiQgtstT_Li1EEvS0_": BINDING,
    b"_ZN6HolderIiE6methodEvQ4PairIT_S1_E": BINDING,
    b"_ZN6HolderIiEC2EvQ3AnyIT_E": BINDING,
    b"_ZN6HolderIiED2EvQ3AnyIT_E": BINDING,
    b"_ZN6HolderIiEF10befriendedES0_Q3AnyIT_E": BINDING,
    b"_ZN6HolderIiEFltES0_S0_Q3AnyIT_E": BINDING,
    b"_ZN6HolderIiEcviEvQ3AnyIT_E": BINDING,
    b"_ZNH9recursiveMUlT_iE_clIS1_EEDaS0_i": BINDING,
    b"_ZNK18constrained_lambdaMUlTk3AnyT_T0_E_clIiiEEDaS0_S1_Q3AnyIS0_E": BINDING,
    b"_ZNK7genericMUlDpT_E_clIJicEEEDaS1_": BINDING,
    b"_ZZ11in_templateIiEDaT_ENKUlS0_iE_clIcEEDaS0_i": BINDING,
    b"_ZZ8capturedIJiiEEDaDpT_ENKUlTyTniTtTyETpTyT_T1_IS2_EDpT2_E_clIiLi3E3BoxJdEEEDaS2_S4_S6_": BINDING,
    b"_ZZN7Members6methodEiEd_NKUlT_E_clIiEEDaS0_": DEFAULT_ARGUMENT,
    b"_Z9destroyedI4RichEDTcmcmcmcldtfp_dnT_Ecldtfp_onpsLi1EEclL_ZnwmELi1EELi1EES1_": CALLED,
    b"_ZZ13returns_arrayIiERA3_iT_E1a": LOCAL,
}


def plain(text: bytes) -> bytes:
    """A text without what is style.

    GNU's texts and LLVM's differ in parentheses and spaces of expressions and in spaces between angle brackets, in what
    they call parameters in expressions (`{parm#1}`, `fp`), lambdas (`{lambda(int)#1}`, `'lambda'(int)`), null pointers,
    vectors, temporaries and thread-local helpers, in how values of floating-point types and pre-increments are
    written, and in the note on a clone, which symbolize drops (R115).
    """
    text = re.sub(rb" \(\.\w+\)$", b"", text)
    text = _ARGUMENT.sub(lambda m: b"fp%d" % (int(m[1]) - 1 if m[1] else int(m[2]) + 1 if m[2] else 0), text)
    for gnu, llvm in (
        (b"(decltype(nullptr))0", b"nullptr"),
        (b"decltype(nullptr)", b"nullptr"),
        (b"__vector(4)", b"vector[4]"),
        (b"reference temporary #0 for", b"reference temporary for"),
        (b"TLS init function", b"thread-local initialization routine"),
        (b"TLS wrapper function", b"thread-local wrapper routine"),
    ):
        text = text.replace(gnu, llvm)
    text = text.replace(b"fp0++,fp0++", b"fp0++, fp0++")
    text = _FLOAT.sub(b"float", text)
    return _NOISE.sub(b"", text.replace(b"new[]", b"new"))


def names_of(source: str, standard: str, folder: Path) -> list[bytes]:
    """The C++ names that are defined by a source, without those of the standard library."""
    target = folder / "out.o"
    command = ["clang++-19", standard, "-Wno-everything", "-c", FOLDER / source, "-o", target]
    subprocess.run(command, check=True)
    lines = subprocess.run(["nm", "-P", target], check=True, capture_output=True).stdout.splitlines()
    names = sorted(line.split()[0] for line in lines)
    return [name for name in names if name.startswith(b"_Z") and not re.match(rb"_ZN?K?S|_ZT[IVS]", name)]


def main() -> int:
    """Write the table; 1 if a difference has no reason."""
    with tempfile.TemporaryDirectory() as folder:
        names = [name for source, standard in SOURCES for name in names_of(source, standard, Path(folder))]
    result = subprocess.run(["llvm-cxxfilt-19"], input=b"\n".join(names), check=True, capture_output=True)
    status = 0
    with TABLE.open("wb") as table:
        for name, llvm, full, default in zip(
            names, result.stdout.splitlines(), demangle(names, "full"), demangle(names, "default"), strict=True
        ):
            if llvm == name:
                llvm, how = b"", UNKNOWN
            elif llvm == full:
                how = "equal"
            elif plain(llvm) == plain(full):
                how = "style"
            else:
                how = REASONS.get(name, "")
            if not how:
                print(name, llvm, full, plain(llvm), plain(full), sep="\n  ", file=sys.stderr)
                status = 1
            table.write(b"\t".join([name, llvm, full, default, how.encode()]) + b"\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
