"""Tables made of a listing: what it says is what a lookup answers."""

import numpy as np

from symbolize.symbol_files import SymbolList
from symbolize.symbols.elf_symbols import symbol_layer
from symbolize.symbols.symbol_list_binary import symbol_list_table


def test_functions_answer_between_their_bounds_only() -> None:
    """Gaps between functions stay without a name, and so does what follows the last."""
    begin, end = np.array([0x10, 0x20, 0x40], np.uint64), np.array([0x20, 0x30, 0x48], np.uint64)
    table = symbol_list_table(SymbolList.of_functions(begin, end, [b"a", b"b", b"c"]), symbol_layer([]))
    vaddrs = np.array([0xF, 0x10, 0x1F, 0x20, 0x2F, 0x30, 0x3F, 0x40, 0x47, 0x48], np.uint64)
    frames = table.lookup(vaddrs)
    names = [
        frames.functions.linkage[frames.function[first]] if count else b""
        for first, count in zip(frames.offsets.tolist(), np.diff(frames.offsets).tolist(), strict=False)
    ]
    assert names == [b"", b"a", b"a", b"b", b"b", b"", b"", b"c", b"c", b""]


def test_inlined_functions_have_the_line_of_the_row_and_of_the_call() -> None:
    """The innermost frame has the place of its row, the one around it the place of the call."""
    listing = SymbolList(
        start=np.array([0x100, 0x110, 0x118, 0x120], np.uint64),
        node=np.array([0, 1, 0, -1], np.int32),
        row_start=np.array([0x100, 0x110, 0x118], np.uint64),
        row_file=np.array([0, 1, 0], np.int32),
        row_line=np.array([3, 77, 5], np.uint32),
        node_parent=np.array([-1, 0], np.int32),
        node_function=np.array([0, 1], np.int32),
        node_call_file=np.array([-1, 0], np.int32),
        node_call_line=np.array([0, 4], np.uint32),
        function_linkage=[b"", b""],
        function_name=[b"main.run", b"lib.step"],
        function_decl_file=np.array([0, 1], np.int32),
        function_decl_line=np.array([2, 70], np.uint32),
        files=[b"/src/run.go", b"/src/step.go"],
    )
    table = symbol_list_table(listing, symbol_layer([]))
    frames = table.lookup(np.array([0x114, 0x11A], np.uint64))
    shown = [
        (frames.functions.name[function], frames.files[file], line)
        for function, file, line in zip(
            frames.function.tolist(), frames.file.tolist(), frames.line.tolist(), strict=True
        )
    ]
    assert frames.offsets.tolist() == [0, 2, 3]
    assert shown == [
        (b"lib.step", b"/src/step.go", 77),
        (b"main.run", b"/src/run.go", 4),
        (b"main.run", b"/src/run.go", 5),
    ]
