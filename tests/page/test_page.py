"""The file of the page: what is in it, and what is not."""

import base64
import hashlib
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import symbolize
from symbolize import page
from symbolize.analysis import Sources, call_tree, difference, line_totals, stacks_of
from symbolize.cli.view import run_view
from symbolize.core.disassembly import CodeBlock, Disassembly, Instruction
from symbolize.formats.outputs import OUTPUTS, View, view_pieces
from symbolize.page import Instructions, Picture, heaviest_lines, mark_of, page_pieces, picture_of, preorder
from symbolize.profile import Profile, samples_mark
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.page_data import Elements, read_data, unpacked
from tests.support.pictures import HOSTILE, tree_of

CENSUS = FIXTURES / "profiles" / "go" / "census.pb.gz"
PARTS = Path(page.__file__).parent
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(|fetch\(|XMLHttpRequest|\bimport\b"
)


def page_of(picture: Picture) -> str:
    return b"".join(page_pieces(picture)).decode()


def test_policy_allows_the_script_and_style_of_the_page_only() -> None:
    """Nothing is loaded, and nothing but the page's own script and style runs."""
    text = page_of(tree_of({"main": {"a": 1}}))
    elements = Elements(text)
    (policy,) = [a["content"] or "" for n, a, _ in elements.found if a.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    script = elements.text_of("script")
    for rule, content in (("script-src", script), ("style-src", elements.text_of("style"))):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert rules["img-src"] == "data:"
    links = [a[key] for _, a, _ in elements.found for key in ("src", "href") if key in a]
    assert len(links) == 1 and (links[0] or "").startswith("data:image/svg+xml,")
    assert not [a for _, a, _ in elements.found if "style" in a or any(key.startswith("on") for key in a)]


def test_scripts_are_all_in_the_page_and_make_no_markup_of_data() -> None:
    """No script of the package is left out, none turns text into markup or code, none asks a server."""
    assert {path.name for path in PARTS.glob("*.js")} == set(page.SCRIPTS)
    for path in PARTS.glob("*.js"):
        source = path.read_text()
        assert FORBIDDEN.findall(source) == [], path.name
        assert "</script" not in source


def test_names_are_not_in_the_markup() -> None:
    """What a profile calls its functions, files and modules is only in the packed data; the title is escaped."""
    picture = tree_of(dict.fromkeys(HOSTILE, 1), title=HOSTILE[0])
    text = page_of(picture)
    assert all(name not in text for name in HOSTILE if "<" in name)
    plain = page_of(tree_of({"main": 1}, title="plain"))
    tags = [tag for tag, _, _ in Elements(text).found]
    assert tags == [tag for tag, _, _ in Elements(plain).found]
    header, _ = read_data(text)
    assert set(HOSTILE) <= set(header["names"])


def test_instructions_are_not_in_the_markup() -> None:
    """What files say of code is only in the packed data, and nothing of it is there unless it was asked for."""
    count, begin = len(HOSTILE), (1 << 64) - len(HOSTILE)
    lines = [Instruction(begin + row, 1, text, text, row, text) for row, text in enumerate(HOSTILE)]
    rows = np.arange(count)
    code = Disassembly([CodeBlock(HOSTILE[0], begin, 1 << 64, lines, rows, rows)], HOSTILE)
    values = np.ones((count, 1))
    plain = tree_of({"main": 1}, title="plain")
    text = page_of(replace(plain, instructions=Instructions(code, values, values, [0])))
    assert all(name not in text for name in HOSTILE if "<" in name)
    header, columns = read_data(text)
    assert [header["code"]["text"][row] for row in columns["code.text"]] == HOSTILE
    assert header["code"]["blocks"] == [[HOSTILE[0], f"{begin:x}", f"{1 << 64:x}", 0, count]]
    assert columns["code.distance"].tolist() == rows.tolist()
    without = page_of(plain)
    assert re.sub(r"id=.data.>[^<]*", "", without) == re.sub(r"id=.data.>[^<]*", "", text)
    header, columns = read_data(without)
    assert "code" not in header and not [name for name in columns if name.startswith("code")]


def test_title_of_any_name() -> None:
    """What cannot be shown of a file's name, or is no UTF-8, is shown as text."""
    elements = Elements(page_of(tree_of({"main": 1}, title="b\udcffd\u202e<b>")))
    assert elements.text_of("title") == elements.text_of("h1") == "b\\xdcffd\\x202e<b>"


def test_equal_pictures_give_equal_bytes() -> None:
    """Nothing of the time or the machine is in the page."""
    assert page_of(tree_of({"main": {"a": 1}})) == page_of(tree_of({"main": {"a": 1}}))


def test_data_has_the_whole_tree() -> None:
    """Frames, values and flags come out as they went in, in preorder."""
    stacks = stacks_of(symbolize.load(CENSUS))
    tree = call_tree(stacks)
    header, columns = read_data(page_of(picture_of(stacks, "census")))
    order, depth = preorder(tree.parent)
    assert [each[:2] for each in header["types"]] == [list(each) for each in stacks.types]
    assert [each[2:] for each in header["types"]] == [["", 1], ["time", 1]]
    assert header["names"] == [*tree.frames.names]
    assert columns["node.frame"][1:].tolist() == tree.frame[order][1:].tolist()
    assert columns["node.flags"].tolist() == tree.flags[order].tolist()
    assert (depth[:-1] + 1 - columns["node.pops"]).tolist() == depth[1:].tolist()
    nodes = np.cumsum(columns["value.step"].astype(np.int64))
    for kind in range(len(stacks.types)):
        own = np.zeros(len(tree))
        np.add.at(own, nodes, columns[f"value.own.{kind}"])  # a row for each set of labels
        assert own.tolist() == tree.values[order, kind].tolist()
    assert not header["rounded"]


def test_base_values_are_a_difference() -> None:
    """A page of two profiles has both values by node, and what percentages are of."""
    profile = symbolize.load(CENSUS)
    stacks = difference(stacks_of(profile), stacks_of(profile))
    header, columns = read_data(page_of(picture_of(stacks, "new", base_title="census.pb.gz")))
    assert header["difference"]
    assert header["baseTitle"] == "census.pb.gz"
    for kind in range(len(stacks.types)):
        assert columns[f"value.own.{kind}"].tolist() == columns[f"value.base.{kind}"].tolist()
    assert header["totals"][0] == header["totals"][1] == stacks_of(profile).totals.tolist()


def test_sources_are_embedded(tmp_path: Path) -> None:
    """The files that lines refer to are in the page, if they are found."""
    stacks = stacks_of(symbolize.load(CENSUS))
    (name,) = {each for each in stacks.files if each.endswith("main.go")}
    (tmp_path / "main.go").write_text("package main // </script>\n")
    text = page_of(picture_of(stacks, "census", sources=Sources([str(tmp_path)])))
    assert json.loads(unpacked(text, "sources")) == {name: "package main // </script>\n"}
    header, _ = read_data(text)
    assert header["sources"] == [name]


def test_heaviest_files_come_first() -> None:
    """So that they are in the page if not all fit."""
    stacks = stacks_of(symbolize.load(CENSUS))
    lines = line_totals(stacks)
    own = dict.fromkeys(lines.heaviest_files(stacks.default), 0.0)
    for file, value in zip(lines.file.tolist(), lines.flat[:, stacks.default].tolist(), strict=True):
        own[lines.files[file]] += value
    assert len(own) > 2
    assert [*own.values()] == sorted(own.values(), reverse=True)


def test_functions_lead_to_their_heaviest_lines() -> None:
    """A frame has a line of its own file, that with the largest cumulative value among its own."""
    stacks = stacks_of(symbolize.load(CENSUS))
    lines, own = heaviest_lines(stacks), line_totals(stacks, stacks.frames)
    assert np.count_nonzero(lines) > 10
    for row, line in enumerate(lines.tolist()):
        here = [
            (-own.cumulative[i, stacks.default], own.line[i])
            for i in np.flatnonzero(own.function == row)
            if own.files[own.file[i]] == stacks.names.files[row]
        ]
        assert line == (min(here)[1] if here else 0)


def test_profile_without_samples() -> None:
    """It has a page too."""
    header, columns = read_data(page_of(picture_of(stacks_of(Profile()), "empty")))
    assert header["names"] == [] and len(columns["node.frame"]) == 1


def test_view_writes_the_page() -> None:
    """`html` is one of the outputs."""
    (html,) = [output for output in OUTPUTS if output.name == "html"]
    text = b"".join(view_pieces(html, symbolize.load(CENSUS), View("census"))).decode()
    assert Elements(text).text_of("title") == "census"


def test_view_keeps_the_times_of_recordings(tmp_path: Path) -> None:
    """Of small ones, which have tracks then; a difference has neither threads nor times."""
    recording, out = str(FIXTURES / "profiles" / "perf_data" / "threads.data"), tmp_path / "p.html"
    options = ["-q", "-o", str(out), "-b", str(BINARIES / "gcc-pie"), "--no-cache"]
    for more, has_tracks in (([], True), (["--base", recording], False)):
        assert run_view([recording, *options, *more]) == 0
        header, _ = read_data(out.read_text())
        assert (header.get("slices", {}).get("bins", 1) > 100) == has_tracks
        assert header["difference"] != has_tracks


def test_pages_say_which_samples_have_names() -> None:
    """A page whose samples have none has no mark, so that it does not replace one that has (R279)."""
    (html,) = [output for output in OUTPUTS if output.name == "html"]
    for path, is_named in ((CENSUS, True), (FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof", False)):
        profile = symbolize.load(path)
        text = b"".join(view_pieces(html, profile, View("x"))).decode()
        assert (mark_of(samples_mark(profile)) in text) == is_named


def test_values_that_are_rounded_are_noted() -> None:
    """Above 2⁵³ the numbers of JavaScript are not exact."""
    assert read_data(page_of(tree_of({"main": 2.0**53})))[0]["rounded"] is False
    assert read_data(page_of(tree_of({"main": 2.0**53, "other": 2.0**30})))[0]["rounded"] is True


@pytest.mark.parametrize("count", [1, 2, 3, 50, 400])
def test_preorder(count: int) -> None:
    """Against the recursive definition."""
    rng = random.Random(count)
    parent = [-1] + [rng.randrange(node) for node in range(1, count)]
    children: dict[int, list[int]] = {node: [] for node in range(count)}
    for node in range(1, count):
        children[parent[node]].append(node)
    expected: list[tuple[int, int]] = []

    def visit(node: int, depth: int) -> None:
        expected.append((node, depth))
        for child in children[node]:
            visit(child, depth + 1)

    visit(0, 0)
    order, depth = preorder(np.array(parent, np.int32))
    assert list(zip(order.tolist(), depth.tolist(), strict=True)) == expected


def test_preorder_of_a_deep_tree() -> None:
    """As deep as recursion without limit makes it, and in a time that grows with the nodes only."""
    order, depth = preorder(np.arange(-1, 1_000_000, dtype=np.int32))
    assert order.tolist() == depth.tolist() == list(range(1_000_001))
