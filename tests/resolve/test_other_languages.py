"""Rust and Go describe no calls: callers decide nothing there, and do no harm."""

from pathlib import Path

import pytest

from symbolize import Options, Profile, Result, Symbolizer
from symbolize.formats import encode
from tests.support.called import Program
from tests.support.needs import find

RUST = """
use std::hint::black_box;
#[no_mangle] #[inline(never)] pub extern "C" fn leaf(n: u64) -> u64 { black_box(n) * 3 }
#[no_mangle] #[inline(never)] pub extern "C" fn middle(n: u64) -> u64 { black_box(n); leaf(n + 1) }
#[no_mangle] #[inline(never)] pub extern "C" fn outer(n: u64) -> u64 { black_box(n); middle(n * 2) }
#[no_mangle] #[inline(never)] pub extern "C" fn alike(n: u64) -> u64 { leaf(n + 4) * 5 + 1 }
#[no_mangle] #[inline(never)] pub extern "C" fn equal(n: u64) -> u64 { leaf(n + 4) * 5 + 1 }
#[no_mangle] #[inline(never)] pub extern "C" fn starts(n: u64) -> u64 { outer(n) + alike(n) }
#[no_mangle] #[inline(never)] pub extern "C" fn others(n: u64) -> u64 { equal(n) + 9 }
fn main() { let n = std::env::args().count() as u64; println!("{}", starts(n) + others(n)); }
"""
GO = """
package main

import "os"

//go:noinline
func leaf(n int) int { return n * 3 }

//go:noinline
func middle(n int) int { return leaf(n + 1) }

//go:noinline
func outer(n int) int { return middle(n * 2) }

func main() { os.Exit(outer(len(os.Args))) }
"""


def symbolized(profile: Profile, folder: Path) -> Result:
    """The profile with all that callers decide, which is the same as without."""
    with Symbolizer(folder) as symbolizer:
        plain = symbolizer.symbolize(profile)
    with Symbolizer(folder, Options(tail_calls=True, check_stacks=True)) as symbolizer:
        result = symbolizer.symbolize(profile)
    assert encode(result.profile) == encode(plain.profile)
    assert all(row.outcome.stack_check is None for row in result.report.mappings)
    return result


def names(result: Result) -> list[list[str]]:
    """The functions on the stacks."""
    return [[frame.function for frame in stack if not frame.is_inlined] for stack in result.profile.stacks()]


@pytest.mark.needs("rustc", "gcc")
def test_rust(tmp_path: Path) -> None:
    """Nothing is put back. Of two functions that the compiler made one, each stack has the same, marked as folded."""
    program = Program(tmp_path, [find("rustc"), "-O", "-g", "-Ccodegen-units=1"], prog_rs=RUST)
    begin = program.begin
    assert begin["alike"] == begin["equal"]
    through = [begin["leaf"] + 1, program.call("starts", "outer")]
    alike, equal = (
        [begin[name] + 1, program.call(by, name)] for by, name in (("starts", "alike"), ("others", "equal"))
    )
    result = symbolized(program.recorded(through, alike, equal), tmp_path)
    found = names(result)
    assert found[0] == ["leaf", "starts"] and [stack[1] for stack in found[1:]] == ["starts", "others"]
    assert found[1][0] == found[2][0] and found[1][0] in ("alike", "equal")
    assert result.profile.locations.is_folded.any()


@pytest.mark.full  # where nothing of Go is compiled yet
@pytest.mark.needs("go")
def test_go(tmp_path: Path) -> None:
    """Nothing is put back."""
    program = Program(tmp_path, ["go", "build"], main_go=GO)
    outer, middle = program.call("main.main", "main.outer"), program.call("main.outer", "main.middle")
    stacks = [[program.begin["main.leaf"] + 1, middle, outer], [program.begin["main.leaf"] + 1, outer]]
    result = symbolized(program.recorded(*stacks), tmp_path)
    assert names(result) == [["main.leaf", "main.outer", "main.main"], ["main.leaf", "main.main"]]
