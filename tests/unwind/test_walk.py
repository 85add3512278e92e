"""Made stacks: where they lead, and why they end."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolize import Symbolizer
from symbolize.core.reasons import Reason
from symbolize.unwind import constants as c
from symbolize.unwind.constants import MAX_FRAMES
from tests.support.elf_writer import AARCH64, X86_64
from tests.support.frame_writer import ARM_START, CODE, X86_START, Cie, Fde, block, framed_file, offset
from tests.support.line_writer import sleb
from tests.support.made_stacks import (
    ARM_CALL,
    BARE,
    BASE,
    CALL,
    CALLER,
    FILE,
    FRAME,
    LEAF,
    ROOT,
    ROOT_RULES,
    SOUND,
    STACK,
    code_of,
    only,
    program_file,
    registers,
    returns,
    unwound,
    words,
)
from tests.support.stack_dumps import PC, SP, Dump, profile_of, stacks


def test_complete_stack(tmp_path: Path) -> None:
    """A leaf, its caller, and a root without a return address (R309, ends of stacks)."""
    profile = unwound(tmp_path, program_file(), [Dump(registers(), SOUND)])
    assert stacks(profile) == [[BASE + LEAF + 4, returns(CALLER) - 1, returns(ROOT) - 1]]
    assert profile.warnings == []
    assert profile.locations.mapping.tolist() == [0, 0, 0]


ENDS = {
    "at the end of the copy of the stack": ([LEAF, CALLER], program_file(), Dump(registers(), SOUND[:24], True)),
    "because memory beside the copy": ([LEAF, CALLER], program_file(), Dump(registers(), SOUND[:24])),
    "in code without call frame information: prog 1": (
        [LEAF, BARE],
        program_file(),
        Dump(registers(x6=1), words(returns(BARE), 1, 2, 3)),
    ),
    "whose call frame information is damaged": ([LEAF], program_file(b"\x1c"), Dump(registers(), SOUND)),
    "outside of all executable mappings": ([LEAF], program_file(), Dump(registers(), words(0x1234, 0))),
    "would not be above the last one": (
        [LEAF, CALLER],
        program_file(caller=bytes([c.DW_CFA_def_cfa, 3, 0])),
        Dump(registers(x3=STACK), SOUND),
    ),
    "the value of a register is not known": (
        [LEAF, CALLER],
        program_file(bytes([c.DW_CFA_undefined, 3]), bytes([c.DW_CFA_def_cfa, 3, 0])),
        Dump(registers(x3=STACK + 32), SOUND),
    ),
    "because no stack was recorded": ([LEAF], program_file(), Dump(registers(), b"")),
    "because 32-bit code is not unwound": ([LEAF], program_file(), Dump(registers(), SOUND, is_32bit=True)),
    "in files of another machine: prog 1": (
        [LEAF],
        framed_file([Cie([Fde(LEAF, 0x100)])], machine=AARCH64),
        Dump(registers(), SOUND),
    ),
}


@pytest.mark.parametrize("text", ENDS)
def test_ends(text: str, tmp_path: Path) -> None:
    """Stacks that end early have the frames up to there, and a warning says why (R309, ends of stacks)."""
    functions, data, dump = ENDS[text]
    found, warning = only(unwound(tmp_path, data, [dump]))
    assert found == functions
    assert warning.startswith("1 of 1 stacks end ")
    assert text in warning


def test_return_address_that_is_not_kept(tmp_path: Path) -> None:
    """Without a rule for it a return address is in its register only before the next call, and never in the pc (R307,
    rules of frames)."""
    unknown = "because the value of a register is not known"
    data = framed_file([Cie([Fde(LEAF, 0x100)], bytes([c.DW_CFA_def_cfa, 7, 8]))], code_of())
    found, warning = only(unwound(tmp_path, data, [Dump(registers(), SOUND)]))
    assert (found, unknown in warning) == ([LEAF], True)
    functions = [Fde(LEAF, 0x100), Fde(CALLER, 0x100, bytes([c.DW_CFA_def_cfa_offset, 16]))]
    data = framed_file([Cie(functions, ARM_START, return_register=30)], code_of(ARM_CALL), machine=AARCH64)
    dump = Dump(registers("aarch64", x30=returns(CALLER)), SOUND)
    found, warning = only(unwound(tmp_path, data, [dump], "aarch64"))
    assert (found, unknown in warning) == ([LEAF, CALLER], True)
    data = program_file(bytes([c.DW_CFA_register, 16, 40]))
    found, warning = only(unwound(tmp_path, data, [Dump(registers(), SOUND)]))
    assert (found, unknown in warning) == ([LEAF], True)


def test_return_address_below_the_stack_pointer(tmp_path: Path) -> None:
    """What would have returned already is no caller of itself."""
    data = program_file(bytes([c.DW_CFA_def_cfa_offset, 0]))
    found, warning = only(unwound(tmp_path, data, [Dump(registers(), SOUND)]))
    assert (found, "would not be above the last one" in warning) == ([LEAF], True)


def test_values_without_a_type(tmp_path: Path) -> None:
    """Stacks of a profile that has no sample types are counted in warnings too."""
    profile = profile_of("x86-64", [Dump(registers(), SOUND)] * 2, [FILE])
    profile.sample_types = []
    profile.samples.values = np.zeros((2, 0), np.int64)
    with Symbolizer() as symbolizer:
        symbolizer.match(profile)
    assert profile.warnings == ["2 of 2 stacks end in files that were not found, or may not be those that ran: prog 2"]


def test_depth(tmp_path: Path) -> None:
    """Endless recursion ends after as many frames as perf has."""
    stack = words(*[returns(CALLER)] * 1000)
    profile = unwound(tmp_path, program_file(caller=b""), [Dump(registers(), stack)])
    assert len(stacks(profile)[0]) == MAX_FRAMES
    assert "after 127 frames" in profile.warnings[0]


def test_cut_stacks_are_labelled(tmp_path: Path) -> None:
    """Samples whose stacks are cut have a label, and equal ones are one sample (R311, cut stacks)."""
    cut, whole = Dump(registers(), SOUND[:24], True), Dump(registers(), SOUND)
    profile = unwound(tmp_path, program_file(), [whole, cut, whole, cut, cut])
    text, samples = profile.strings.text, profile.samples
    assert samples.values[:, 0].tolist() == [2, 3]
    assert np.diff(samples.label_offsets).tolist() == [0, 1]
    assert (text(samples.labels.key[0]), text(samples.labels.text[0])) == ("unwind_error", "memory_invalid")
    assert profile.warnings == ["3 of 5 stacks end at the end of the copy of the stack (a larger one can be recorded)"]


def test_registers_are_found(tmp_path: Path) -> None:
    """Registers that a function saved are those of its caller, by each kind of rule (R307, rules of frames)."""
    rules = {
        "memory": offset(3, 2),
        "distance": bytes([c.DW_CFA_val_offset_sf, 3, 0x7D]),
        "register": bytes([c.DW_CFA_register, 3, 12]),
        "address": block(c.DW_CFA_expression, bytes([c.DW_OP_lit0 + 16, c.DW_OP_minus]), 3),
        "value": block(c.DW_CFA_val_expression, bytes([c.DW_OP_plus_uconst, 24]), 3),
        "same": bytes([c.DW_CFA_same_value, 3]),
    }
    cfa = STACK + 24
    values = {"x3": cfa + 24, "x12": cfa + 24}
    for name, rule in rules.items():
        kept = values["x3"] if name == "same" else 0
        stack = words(7, cfa + 24, returns(CALLER), 1, returns(ROOT), returns(ROOT), 0)
        data = program_file(FRAME + rule, bytes([c.DW_CFA_def_cfa, 3, 0]))
        found = only(unwound(tmp_path, data, [Dump(registers(x3=kept, x12=values["x12"]), stack)]))
        assert found == ([LEAF, CALLER, ROOT], ""), name


def test_restored_registers(tmp_path: Path) -> None:
    """At the end of a function its registers are those of the caller again, though the rules do not say so."""
    leaf = offset(6, 3)  # saved below the stack pointer of now
    data = program_file(leaf, bytes([c.DW_CFA_def_cfa, 6, 16]))
    dump = Dump(registers(x6=STACK + 16), words(returns(CALLER), 1, 2, returns(ROOT), 0))
    assert only(unwound(tmp_path, data, [dump])) == ([LEAF, CALLER, ROOT], "")


def test_registers_of_callers_are_never_restored(tmp_path: Path) -> None:
    """A caller is in the middle of a call: what it saved stays there, even below its stack pointer."""
    kept = STACK + 56  # the frame pointer of who called it, below the stack pointer that it has while it calls
    functions = [
        Fde(LEAF, 0x100, FRAME),
        Fde(CALLER, 0x100, bytes([c.DW_CFA_def_cfa_offset, 16]) + offset(6, 5)),
        Fde(ROOT, 0x100, ROOT_RULES),
    ]
    stack = words(kept, 1, returns(CALLER), 3, returns(BARE), 5, 6, 0, returns(ROOT), 0)
    dump = Dump(registers(x6=1), stack)
    assert only(unwound(tmp_path, framed_file([Cie(functions)], code_of()), [dump])) == ([LEAF, CALLER, BARE, ROOT], "")


def test_frame_pointers(tmp_path: Path) -> None:
    """Code without rules is left by its frame pointer, if that leads to a call (R310, frame pointers)."""
    stack = words(1, 2, STACK + 48, returns(CALLER), 4, 5, 0, returns(ROOT), 0)
    pointed = registers(pc=BASE + BARE + 4, x6=STACK + 16)
    data = program_file(caller=bytes([c.DW_CFA_def_cfa, 6, 16]))
    assert only(unwound(tmp_path, data, [Dump(pointed, stack)])) == ([BARE, CALLER, ROOT], "")
    wrong = words(1, 2, STACK + 48, returns(CALLER) + 0x20, 4, 5, 0, returns(ROOT), 0)
    found, warning = only(unwound(tmp_path, data, [Dump(pointed, wrong)]))
    assert found == [BARE]
    assert "leads to no call" in warning


@pytest.mark.parametrize(("machine", "is_known"), [("x86-64", True), ("aarch64", False)])
def test_stack_pointer_behind_a_frame_pointer(machine: str, is_known: bool, tmp_path: Path) -> None:
    """On x86-64 the stack pointer of a caller is right above what the frame pointer points to; on aarch64 it may be
    anywhere (R310, frame pointers)."""
    root = Fde(ROOT, 0x100, bytes([c.DW_CFA_undefined, 16 if is_known else 30]))
    if is_known:
        data = framed_file([Cie([Fde(CALLER, 0x100, FRAME), root])], code_of())
        values = registers(pc=BASE + BARE + 4, x6=STACK + 16)
    else:
        caller = Fde(CALLER, 0x100, FRAME + offset(30, 1))
        data = framed_file([Cie([caller, root], ARM_START, return_register=30)], code_of(ARM_CALL), machine=AARCH64)
        values = registers(machine, BASE + BARE + 4, x29=STACK + 16)
    stack = words(1, 2, STACK + 48, returns(CALLER), 4, 5, returns(ROOT), 0)
    found, warning = only(unwound(tmp_path, data, [Dump(values, stack)], machine))
    assert found == [BARE, CALLER, ROOT][: 3 if is_known else 2]
    assert ("the value of a register is not known" in warning) != is_known


LOST = {
    "by rule": bytes([c.DW_CFA_undefined, 3]),
    "with memory beside the copy": bytes([c.DW_CFA_offset_extended_sf, 3]) + sleb(-100),
}


@pytest.mark.parametrize("rule", LOST)
def test_lost_registers(rule: str, tmp_path: Path) -> None:
    """A register that is lost in one frame is unknown in all above it, and costs only those that need it (R307, rules
    of frames)."""
    dump = Dump(registers(x3=STACK + 64), SOUND)
    assert only(unwound(tmp_path, program_file(LOST[rule]), [dump])) == ([LEAF, CALLER, ROOT], "")
    needed = program_file(LOST[rule], root=bytes([c.DW_CFA_def_cfa, 3, 0]))
    found, warning = only(unwound(tmp_path, needed, [dump]))
    assert (found, "the value of a register is not known" in warning) == ([LEAF, CALLER, ROOT], True)


def test_outermost_frame_pointer(tmp_path: Path) -> None:
    """A frame pointer of 0 is that of the outermost frame, which nothing may have called."""
    stack = words(0, BASE + BARE + 1, 7)
    found = only(unwound(tmp_path, program_file(), [Dump(registers(pc=BASE + BARE + 4, x6=STACK), stack)]))
    assert found == ([BARE, BARE], "")


def test_signal_frames(tmp_path: Path) -> None:
    """What a signal interrupted is looked up at its pc, which may be the first byte of a function (R313, signal
    frames)."""
    cies = [
        Cie([Fde(LEAF, 0x100), Fde(ROOT, 0x100, ROOT_RULES)]),
        Cie([Fde(CALLER, 0x100, FRAME)], augmentation=b"zRS"),
    ]
    stack = words(returns(CALLER), 1, 2, BASE + LEAF, returns(ROOT), 0)
    profile = unwound(tmp_path, framed_file(cies, code_of()), [Dump(registers(), stack)])
    assert stacks(profile) == [[BASE + LEAF + 4, returns(CALLER) - 1, BASE + LEAF, returns(ROOT) - 1]]


def test_authenticated_addresses(tmp_path: Path) -> None:
    """Return addresses of aarch64 may be signed in their upper bits (R312, authenticated addresses)."""
    framed = bytes([c.DW_CFA_def_cfa_offset, 16]) + offset(29, 2) + offset(30, 1)
    functions = [
        Fde(LEAF, 0x100),
        Fde(CALLER, 0x100, framed + bytes([c.DW_CFA_AARCH64_negate_ra_state])),
        Fde(ROOT, 0x100, bytes([c.DW_CFA_undefined, 30])),
    ]
    data = framed_file([Cie(functions, ARM_START, return_register=30)], code_of(ARM_CALL), machine=AARCH64)
    dump = Dump(registers("aarch64", x30=returns(CALLER)), words(STACK + 32, returns(ROOT) | 0x3E << 48, 0, 0))
    assert only(unwound(tmp_path, data, [dump], "aarch64")) == ([LEAF, CALLER, ROOT], "")


def test_without_binaries() -> None:
    """Without binaries stacks stay as they are, and a warning says why."""
    profile = profile_of("x86-64", [Dump(registers(), SOUND)] * 2, [FILE])
    assert profile.stack_dumps is not None
    profile.warnings = ["the clock is not known", profile.stack_dumps.warning]
    with Symbolizer() as symbolizer:
        symbolizer.match(profile)
    assert stacks(profile) == [[BASE + LEAF + 4]]
    assert profile.warnings == [
        "the clock is not known",
        "2 of 2 stacks end in files that were not found, or may not be those that ran: prog 2",
    ]


def test_other_machines() -> None:
    """Dumps of machines that are not known are dropped with a warning."""
    profile = profile_of("x86-64", [Dump(registers(), SOUND)], [FILE])
    assert profile.stack_dumps is not None
    profile.stack_dumps.machine = "riscv64"
    with Symbolizer() as symbolizer:
        symbolizer.match(profile)
    assert profile.stack_dumps is None
    assert profile.warnings == ["1 stacks of riscv64 lack their callers: only x86-64 and aarch64 are read"]


def test_refused_binary(tmp_path: Path) -> None:
    """A file that only has the right name is not used where the callers that it leads to are not behind calls (R316,
    evidence of callers)."""
    functions = [Fde(LEAF, 0x100), Fde(CALLER, 0x100), Fde(ROOT, 0x100, ROOT_RULES)]
    data = framed_file([Cie(functions)], code_of(b""))
    stack = words(*(returns(CALLER) + 2 * i for i in range(20)), returns(ROOT), 0)
    (tmp_path / "prog").write_bytes(data)
    profile = profile_of("x86-64", [Dump(registers(), stack)], [FILE])
    with Symbolizer(tmp_path) as symbolizer:
        resolutions = symbolizer.match(profile)
    assert stacks(profile) == [[BASE + LEAF + 4]]
    assert "in files that were not found, or may not be those that ran: prog 1" in profile.warnings[0]
    assert resolutions.all[0].binary is None
    assert "another build" in resolutions.all[0].detail
    assert resolutions.reasons.tolist() == [Reason.MISFIT]


def test_the_last_time_only_proven_binaries_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that only has the right name leads nowhere when nothing can be taken back any more (R316, evidence of
    callers)."""
    functions = [Fde(LEAF, 0x100), Fde(CALLER, 0x100), Fde(ROOT, 0x100, ROOT_RULES)]
    (tmp_path / "prog").write_bytes(framed_file([Cie(functions)], code_of(CALL)))
    stack = words(returns(CALLER), returns(ROOT), 0)
    for rounds, depth in ((3, 3), (1, 1)):
        monkeypatch.setattr("symbolize.pipeline.MAX_UNWINDING", rounds)
        profile = profile_of("x86-64", [Dump(registers(), stack)], [FILE])
        with Symbolizer(tmp_path) as symbolizer:
            symbolizer.match(profile)
        assert len(stacks(profile)[0]) == depth


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=300), st.integers(0, 1 << 30))
def test_any_stack(stack: bytes, seed: int) -> None:
    """Whatever is on a stack, its frames are in executable mappings."""
    from symbolize.unwind import ListedCode, unwind

    dice = np.random.default_rng(seed)
    values = [int(value) for value in dice.integers(STACK, STACK + 400, 17)]
    values[PC["x86-64"]], values[SP["x86-64"]] = BASE + LEAF + 4, STACK
    profile = profile_of("x86-64", [Dump(values, stack)], [FILE])
    result = unwind(profile, lambda mapping: ListedCode(lambda addresses, times: None)).profile
    assert all(FILE.start <= address < FILE.limit for address in stacks(result)[0])


STUBS = {
    "x86-64": (b"\xff\x35\0\0\0\0\xff\x25\0\0\0\0" + bytes(4), b"\xff\x25\0\0\0\0\x68\0\0\0\0\xe9\0\0\0\0", (0,)),
    "aarch64": (
        bytes.fromhex("f07bbfa9 d00b0090 11fe47f9 10e23f91 20021fd6 1f2003d5 1f2003d5 1f2003d5"),
        bytes.fromhex("d00b00b0 110240f9 10020091 20021fd6"),
        (0, 4, 8, 12),
    ),
}


@pytest.mark.parametrize("machine", STUBS)
@pytest.mark.parametrize("has_header", [True, False])
def test_stubs(machine: str, has_header: bool, tmp_path: Path) -> None:
    """Linkage stubs without rules lead to who called them, the code before the first one to nobody (R310, frame
    pointers)."""
    header, stub, places = STUBS[machine]
    is_arm = machine == "aarch64"
    start, call = (ARM_START, ARM_CALL) if is_arm else (X86_START, CALL)
    code = bytearray(code_of(call))
    plt = (header if has_header else b"") + stub * 2
    code[BARE - CODE : BARE - CODE + len(plt)] = plt
    root = Fde(ROOT, 0x100, bytes([c.DW_CFA_undefined, 30 if is_arm else 16]))
    data = framed_file(
        [Cie([root], start, return_register=30 if is_arm else 16)],
        bytes(code),
        machine=AARCH64 if is_arm else X86_64,
        stubs=(BARE, len(plt)),
    )
    first = len(header) if has_header else 0
    inside = [at + place for at in range(first, len(plt), len(stub)) for place in places]
    for at in range(0, len(plt), 4 if is_arm else 1):
        values = {"x30": returns(ROOT)} if is_arm else {}
        dump = Dump(registers(machine, BASE + BARE + at, **values), words(returns(ROOT), 0))
        found, _ = only(unwound(tmp_path, data, [dump], machine))
        assert found == ([BARE, ROOT] if at in inside else [BARE]), at


def test_stubs_at_the_end_of_memory(tmp_path: Path) -> None:
    """A section that would reach beyond the last address does no harm."""
    data = framed_file([Cie([Fde(LEAF, 0x100)])], code_of(), stubs=((1 << 64) - 8, 0x100))
    dump = Dump(registers(pc=BASE + BARE + 4), SOUND)
    assert only(unwound(tmp_path, data, [dump]))[0] == [BARE]
