"""R371: how far lists of calls are complete, in programs that are compiled here."""

import subprocess
from pathlib import Path

import pytest

from symbolize import Options, Symbolizer, load
from symbolize.core.outcome import StackCheck
from symbolize.elf import ElfImage, jumps_through_tables
from symbolize.profile import Profile
from tests.support.called import Program
from tests.support.needs import find

FIXTURES = Path(__file__).parents[2] / "fixtures"

ONE = """
extern "C" void *memcpy(void *, const void *, unsigned long);
volatile int sink;
struct Other { int run(int); };
int plain(int);
__attribute__((noinline)) int target(int n) { sink += n; return n; }
__attribute__((noinline)) int listed(int n) { sink++; return target(n + 1); }
__attribute__((noinline)) int outer(int n, Other *o) { sink++; if (n & 1) return listed(n); return o->run(n); }
__attribute__((noinline)) int busy(int n, Other *o) { int r = plain(n); r += o->run(r); return r + plain(r) * 2; }
int main(int c, char **) { Other o; return outer(c, &o) + busy(c, &o); }
"""
TWO = """
extern volatile int sink;
int target(int);
struct Other { int run(int); };
int Other::run(int n) { sink += 3; return target(n + 2); }
int plain(int n) { sink -= n; return n + sink; }
"""
TABLE = """
volatile int sink;
__attribute__((noinline)) int target(int n) { sink += n; return n; }
__attribute__((noinline)) int listed(int n) { sink++; return target(n + 1); }
__attribute__((noinline)) static int other(int n) { sink += 2; return target(n + 3); }
static int more(int n) { return n + sink; }
int (*const table[])(int) = {other, more, other, more};
__attribute__((noinline)) int outer(int n) { sink++; if (n & 4) return listed(n); return table[n & 3](n); }
__attribute__((noinline)) int direct(int n) { sink++; return listed(n); }
int main(int c, char **v) { int r = outer(c); return direct(r) + outer(r); }
"""
SPLIT = """
volatile int sink;
void far(void) __attribute__((cold));
__attribute__((noinline)) int leaf(int n) { sink += n; return n; }
__attribute__((noinline)) int first(int n) {
  int r = leaf(n);
  if (n > 1000) { far(); r += leaf(r); far(); sink = 3; far(); }
  return r + leaf(r) * 2;
}
"""
BETWEEN = """
extern volatile int sink;
int leaf(int), first(int);
__attribute__((optimize(0))) int use(int n) { int r = leaf(n) + 1; return r + leaf(r); }
__attribute__((optimize(0))) void far(void) { sink++; }
__attribute__((optimize(0))) int main(int c, char **v) { return first(c) + use(c); }
"""


def looked_up(profile: Profile, folder: Path) -> tuple[list[list[str]], StackCheck]:
    """The functions on the stacks of a profile with tail calls, and what is found of its callers."""
    with Symbolizer(folder, Options(tail_calls=True, check_stacks=True)) as symbolizer:
        result = symbolizer.symbolize(profile)
    (found,) = [row.outcome.stack_check for row in result.report.mappings if row.outcome.stack_check is not None]
    return [[frame.function for frame in stack] for stack in result.profile.stacks()], found


@pytest.mark.needs("clang-19")
def test_members(tmp_path: Path) -> None:
    """`outer` may have gone by `Other::run`, of which clang lists no call: nothing is put back. Nor is a stack
    contradicted where that was called."""
    program = Program(tmp_path, [find("clang-19"), "-O2", "-g"], two_cc=TWO, one_cc=ONE)
    target, run = program.begin["_Z6targeti"], program.begin["_ZN5Other3runEi"]
    outer, busy = program.call("main", "_Z5outeriP5Other"), program.call("main", "_Z4busyiP5Other")
    inside = program.call("_Z4busyiP5Other", "_ZN5Other3runEi")
    stacks, check = looked_up(program.recorded([target, outer], [run, inside, busy]), tmp_path)
    assert stacks == [["target", "main"], ["Other::run", "busy", "main"]]
    assert check.confirmed > 0 and check.contradicted == 0


@pytest.mark.needs("clang-19", "objcopy")
def test_members_are_no_evidence_of_a_build(tmp_path: Path) -> None:
    """Where `Other::run` was called, of which clang lists no call, nothing speaks against the build that ran."""
    two = TWO.replace("target(n + 2)", "target(n + 2) + 1")
    program = Program(tmp_path, [find("clang-19"), "-O2", "-g"], two_cc=two, one_cc=ONE)
    target = program.begin["_Z6targeti"], program.call("_ZN5Other3runEi", "_Z6targeti")
    profile = program.recorded([*target, program.call("main", "_Z5outeriP5Other")])
    subprocess.run(["objcopy", "--only-keep-debug", program.path, tmp_path / "debug"], check=True)
    (tmp_path / "debug").replace(program.path)
    with Symbolizer(tmp_path) as symbolizer:
        (row,) = symbolizer.symbolize(profile).report.mappings
    assert row.evidence == "1 of 1 callers call the next function on their stacks"


@pytest.mark.needs("clang-19")
@pytest.mark.parametrize("options", [["-fno-pie", "-no-pie"], ["-fPIE", "-pie"]])
def test_tables_of_functions(options: list[str], tmp_path: Path) -> None:
    """clang does not list jumps through tables at fixed addresses, which only code that cannot be moved has."""
    program = Program(tmp_path, [find("clang-19"), "-O2", "-g", *options], one_c=TABLE)
    with ElfImage.open(program.path) as image:
        jumps = jumps_through_tables(image)
    assert jumps is not None and len(jumps) == ("-no-pie" in options)
    target = program.begin["target"]
    stacks, check = looked_up(
        program.recorded([target, program.call("main", "outer")], [target, program.call("main", "direct")]), tmp_path
    )
    assert stacks == [["target", "main"], ["target", "listed [tail call]", "direct [tail call]", "main"]]
    assert check.contradicted == 0


@pytest.mark.needs("objcopy")
def test_jumps_are_not_known_without_code(tmp_path: Path) -> None:
    """A debug file of a program at a fixed address has no code to look at."""
    source = FIXTURES / "bin" / "tails" / "clang-tails" / "tails"
    subprocess.run(["objcopy", "--only-keep-debug", source, tmp_path / "tails"], check=True)
    for path, is_known in ((source, True), (tmp_path / "tails", False)):
        with ElfImage.open(path) as image:
            assert (jumps_through_tables(image) is not None) == is_known


@pytest.mark.needs("gcc")
def test_code_between_the_parts_of_a_function(tmp_path: Path) -> None:
    """`first` lists its calls, before and behind those of functions that were compiled without such lists."""
    program = Program(tmp_path, ["gcc", "-O2", "-g", "-fno-ipa-icf", "-no-pie"], one_c=SPLIT, two_c=BETWEEN)
    begin = program.begin
    assert begin["first.cold"] < begin["use"] < begin["main"] < begin["first"]
    use, leaf = program.call("main", "use"), program.call("use", "leaf")
    far = program.call("first.cold", "far")
    stacks, check = looked_up(program.recorded([begin["leaf"], leaf, use], [begin["far"], far]), tmp_path)
    assert stacks == [["leaf", "use", "main"], ["far", "first"]]
    assert check.confirmed > 0 and check.contradicted == 0


def test_recorded_by_clang() -> None:
    """`spectra` calls members of the classes of its library, with sound stacks."""
    recorded = load(FIXTURES / "profiles" / "gperftools" / "spectra-clang-pie.prof")
    with Symbolizer(FIXTURES / "bin" / "clang-pie", Options(check_stacks=True)) as symbolizer:
        found = [
            row.outcome.stack_check
            for row in symbolizer.symbolize(recorded).report.mappings
            if row.outcome.stack_check is not None
        ]
    assert len(found) == 2 and all(each.confirmed > 0 and each.contradicted == 0 for each in found)
