"""The page in a real browser, used by mouse and keyboard."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symbolize
from symbolize.analysis import Filters, FrameFlag, LineTotals, Sources, function_totals, stacks_of
from symbolize.cli import main
from symbolize.page import Picture, page_pieces, picture_of
from symbolize.profile import Profile
from tests.support.browser import Page, browser
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.pictures import HOSTILE, large_picture, tree_of, with_slices
from tests.support.threads import Sample, threaded

pytestmark = [pytest.mark.process, pytest.mark.full, pytest.mark.needs("chromium")]

WIDE, NARROW = (1280, 800), (390, 844)
ROW = 20
MARGIN = 18
DEMO = {
    "start": {
        "main": {
            "parse": {"read": 300, "lib!inflate": {"memcpy": 100}},
            "draw": {"lib!inflate": 150, "fill": {"memcpy": 50}},
        }
    },
    "thread": {"[lib]": 400},
}
FLAGS = {
    "fill": FrameFlag.INLINED,
    "memcpy": FrameFlag.CALLED | FrameFlag.FOLDED,
    "[lib]": FrameFlag.CALLED | FrameFlag.UNSYMBOLIZED,
}
TEXT = "int read() {\n  int n = 0;\n  return work(n);\n}\n" + "\n" * 60 + "int parse() {\n  return read();\n}\n"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture(autouse=True)
def _plain(tab: Page) -> Iterator[None]:
    """Each test begins with a wide, light window, and leaves a page without errors and requests."""
    tab.resize(*WIDE)
    tab.media(prefers_color_scheme="light")
    yield
    assert tab.problems() == []


def show(tab: Page, folder: Path, picture: Picture, fragment: str = "") -> Path:
    path = folder / "page.html"
    with path.open("wb") as file:
        file.writelines(page_pieces(picture))
    tab.open(path, fragment)
    return path


def demo(**changes: Any) -> Picture:
    files = {"read": "/src/io.c", "parse": "/src/io.c", "draw": "/src/draw.c"}
    values = np.array([[300.0], [400.0], [50.0]])
    file, line = np.array([1, 1, 2], np.int32), np.array([3, 66, 7])
    lines = LineTotals(["", "/src/io.c", "/src/draw.c"], np.zeros(3, np.int32), file, line, values, values)
    options = {"flags": FLAGS, "files": files, "lines": lines, "sources": {"/src/io.c": TEXT}} | changes
    options |= {"frame_lines": {"read": 3, "parse": 66, "draw": 7}}
    return tree_of(DEMO, **options)


def crumbs(tab: Page) -> list[str]:
    return tab.text("#crumbs").split("\n")


def selected(tab: Page) -> str:
    return tab.text("#details strong")


def click_row(tab: Page, row: int, share: float) -> None:
    """Click into the picture: a row from its top, at a share of its width."""
    box = tab.box("#stage")
    tab.mouse("click", box["x"] + share * box["width"], box["y"] + (row + 0.5) * ROW)


def fragment(tab: Page) -> str:
    return str(tab.run("location.hash"))


def table(tab: Page) -> list[list[str]]:
    """The cells that are shown of the table of functions, without what the buttons to the source say."""
    while not tab.run("document.querySelector('#more').hidden"):
        tab.click("#more")
    return tab.run(  # type: ignore[no-any-return]
        """[...document.querySelectorAll('#table tbody tr')].map(row => [...row.cells].map(cell =>
            (cell.querySelector('button') ?? cell).textContent))"""
    )


def test_first_look(tab: Page, tmp_path: Path) -> None:
    """Title, total, coverage, legend; opened as a file, without a request, an error or a warning."""
    show(tab, tmp_path, demo(title="cpu <b>profile</b>"))
    assert tab.text("h1") == "cpu <b>profile</b>" == tab.run("document.title")
    assert tab.text("#summary") == "1 µs cpu · 60.0 % of samples in named code"
    assert tab.text("#legend").split("\n") == ["program", "lib"]
    assert crumbs(tab) == ["all"]


def test_zoom_and_back(tab: Page, tmp_path: Path) -> None:
    """A click zooms in; the path, Escape, - and the browser's own button lead back; the address keeps the zoom."""
    path = show(tab, tmp_path, demo())
    click_row(tab, 2, 0.1)
    assert crumbs(tab) == ["all", "›", "start", "›", "main"] or "".join(crumbs(tab)).replace("›", "") == "allstartmain"
    assert selected(tab) == "main"
    assert "total here\n600 ns (60.0 %)" in tab.text("#details")
    click_row(tab, 3, 0.1)
    assert selected(tab) == "parse"
    zoomed = fragment(tab)
    tab.key("-")
    assert selected(tab) == "main"
    tab.run("history.back()")
    tab.wait(f"location.hash === {zoomed!r}")
    assert tab.text("#crumbs [aria-current]") == "parse"
    tab.click("#crumbs li:nth-child(2) button")
    assert tab.text("#crumbs [aria-current]") == "start"
    tab.key("Escape")
    assert tab.text("#crumbs [aria-current]") == "all"
    tab.open(path, zoomed)
    assert tab.text("#crumbs [aria-current]") == "parse"


def test_arrow_keys(tab: Page, tmp_path: Path) -> None:
    """They move a selection, whose values are shown and announced; Enter zooms into it."""
    show(tab, tmp_path, demo())
    names = []
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        tab.key(key)
        names.append(selected(tab))
    assert names == ["all cpu", "start", "thread", "start", "main", "parse", "read", "parse"]
    assert tab.text("#live") == (
        "parse, total here 400 ns (40.0 %), self here 0 (0.0 %), function flat 0 (0.0 %), function cum 400 ns (40.0 %)"
    )
    tab.key("Enter")
    assert tab.text("#crumbs [aria-current]") == "parse"
    tab.key("0")
    assert crumbs(tab) == ["all"]
    tab.key("u")
    tab.key("ArrowUp")
    assert selected(tab) == "read"


def test_tooltip(tab: Page, tmp_path: Path) -> None:
    """Name, file, module, values with units and percentages; gone when the pointer leaves."""
    show(tab, tmp_path, demo())
    box = tab.box("#stage")
    tab.mouse("mouseMoved", box["x"] + 20, box["y"] + 3.5 * ROW)
    expected = "parse|/src/io.c · program|total here|400 ns (40.0 %)|self here|0 (0.0 %)|function flat|0 (0.0 %)"
    assert re.sub("\n+", "|", tab.text("#tooltip")) == f"{expected}|function cum|400 ns (40.0 %)"
    tab.mouse("mouseMoved", 5, 5)
    assert tab.run("document.querySelector('#tooltip').hidden")


def test_search(tab: Page, tmp_path: Path) -> None:
    """The share of the total in stacks with a match; the table shows matching functions only."""
    show(tab, tmp_path, demo())
    tab.key("/")
    tab.type("inflate|^read")
    tab.wait("document.querySelector('#matches').textContent.startsWith('55.0 % in 2 functions')")
    assert "search=inflate" in fragment(tab)
    tab.key("Enter")
    tab.key("t")
    assert [row[4] for row in table(tab)] == ["read", "inflate"]
    tab.key("Escape")
    tab.key("Escape")
    assert tab.text("#matches") == ""
    tab.key("/")
    tab.type("inflate(")
    tab.wait("document.querySelector('#matches').textContent === '0.0 % in 0 functions, as plain text'")
    tab.key("Escape")
    tab.key("/")
    tab.type("(a|aa)+$")
    tab.wait("document.querySelector('#matches').textContent === '0.0 % in 0 functions, as plain text'")
    tab.key("Escape")


def test_case_counts_if_it_is_typed(tab: Page, tmp_path: Path) -> None:
    show(tab, tmp_path, tree_of({"Read": 1, "read": 3}), "#search=read")
    assert tab.text("#matches") == "100.0 % in 2 functions"
    show(tab, tmp_path, tree_of({"Read": 1, "read": 3}), "#search=Read")
    assert tab.text("#matches") == "25.0 % in 1 function"


def test_inverted(tab: Page, tmp_path: Path) -> None:
    """From leaves to callers: a leaf has the values of all stacks that end in it."""
    show(tab, tmp_path, demo())
    tab.key("i")
    assert crumbs(tab) == ["all, inverted"]
    names = []
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown"):
        tab.key(key)
        names.append((selected(tab), tab.text("#details dd").split(" (")[0]))
    assert names == [
        ("all cpu", "1 µs"),
        ("[lib]", "400 ns"),
        ("read", "300 ns"),
        ("inflate", "150 ns"),
        ("memcpy", "150 ns"),
        ("inflate", "100 ns"),
    ]
    tab.key("i")
    assert crumbs(tab) == ["all"]


def test_focus_shows_callers_and_callees(tab: Page, tmp_path: Path) -> None:
    """All stacks of a function: callers above, callees below, each with their share of it."""
    show(tab, tmp_path, demo())
    tab.key("t")
    tab.run("[...document.querySelectorAll('td.name button')].find(b => b.textContent === 'inflate').click()")
    assert selected(tab) == "inflate"
    assert "total here\n250 ns (25.0 %)" in tab.text("#details")
    names = []
    for key in ("ArrowDown", "ArrowUp", "ArrowUp", "ArrowRight", "ArrowUp"):
        tab.key(key)
        names.append((selected(tab), tab.text("#details dd").split(" (")[0]))
    assert names == [
        ("memcpy", "100 ns"),
        ("inflate", "250 ns"),
        ("draw", "150 ns"),
        ("parse", "100 ns"),
        ("main", "100 ns"),
    ]
    tab.key("Enter")
    assert "zoom=%5E" in fragment(tab)
    tab.key("Escape")
    tab.key("Escape")
    assert crumbs(tab) == ["all"]


def test_recursion_counts_once(tab: Page, tmp_path: Path) -> None:
    """A function that recurs has the value of a stack once in cum, and once in the picture of its callers."""
    show(tab, tmp_path, tree_of({"main": {"f": {"g": {"f": 70, "h": 30}}}}), "#view=table")
    assert table(tab)[:2] == [
        ["70 ns", "70.0 %", "100 ns", "100.0 %", "f", "program"],
        ["30 ns", "30.0 %", "30 ns", "30.0 %", "h", "program"],
    ]
    tab.run("document.querySelector('td.name button').click()")
    assert "total here\n100 ns (100.0 %)" in tab.text("#details")


def test_table_sorts(tab: Page, tmp_path: Path) -> None:
    """By any column, both ways, and says so."""
    show(tab, tmp_path, demo(), "#view=table")
    assert tab.text("th[aria-sort=descending]") == "Flat %"
    tab.click("th.name button")
    names = [row[4] for row in table(tab)]
    assert names == sorted(names)
    assert tab.text("th[aria-sort=ascending]") == "Function"
    tab.click("th.name button")
    assert [row[4] for row in table(tab)] == names[::-1]
    assert tab.text("#row-count") == "10 functions"


def test_difference(tab: Page, tmp_path: Path) -> None:
    """Base, new, change; what appeared and vanished."""
    base = {"main": {"read": 200, "write": 100, "gone": 50}}
    new = {"main": {"read": 100, "write": 300, "new": 50}}
    show(tab, tmp_path, tree_of(new, base=base))
    assert tab.text("#summary").startswith("cpu: 450 ns · base: 350 ns · change: +100 ns · 100.0 %")
    assert tab.text("#legend").split("\n")[0] == "gone"
    assert "width: base plus new" in tab.text("#legend")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        tab.key(key)
    assert selected(tab) == "write"
    assert tab.text("#details dl").split("\n") == (
        ["new", "300 ns (66.7 %)", "base", "100 ns (28.6 %)", "change", "+200 ns", "share", "+38.1 points"]
    )
    tab.key("t")
    assert {row[8]: row[:4] for row in table(tab)} == {
        "write": ["100 ns", "300 ns", "+200 ns", "+38.1 points"],
        "read": ["200 ns", "100 ns", "−100 ns", "−34.9 points"],
        "new": ["0", "50 ns", "+50 ns", "+11.1 points"],
        "gone": ["50 ns", "0", "−50 ns", "−14.3 points"],
        "main": ["0", "0", "0", "0.0 points"],
    }


def test_source(tab: Page, tmp_path: Path) -> None:
    """Lines with their values; a function leads to its heaviest line, and what has no values is folded."""
    show(tab, tmp_path, demo(), "#view=source")
    tab.wait("document.querySelector('#source tbody tr')")
    assert tab.run("document.querySelector('#file').value") == "/src/io.c"
    rows = tab.run("[...document.querySelectorAll('.hot')].map(row => [...row.cells].map(cell => cell.textContent))")
    assert rows == [["300 ns", "300 ns", "3", "  return work(n);"], ["400 ns", "400 ns", "66", "  return read();"]]
    before = tab.run("document.querySelectorAll('#source tbody tr').length")
    tab.click(".fold button")
    assert tab.run("document.querySelectorAll('#source tbody tr').length") > before
    tab.key("t")
    tab.run("document.querySelector('[aria-label=\"Source of read\"]').click()")
    tab.wait("document.querySelector('.target')")
    assert tab.text(".target th") == "3"
    tab.run("(f => { f.value = '/src/draw.c'; f.dispatchEvent(new Event('change')) })(document.querySelector('#file'))")
    tab.wait("document.querySelector('#source-message').textContent.startsWith('The text of this file')")
    assert tab.text("#source tbody").split() == ["50", "ns", "50", "ns", "7"]


def test_source_opens_from_a_frame(tab: Page, tmp_path: Path) -> None:
    show(tab, tmp_path, demo())
    click_row(tab, 4, 0.1)
    assert selected(tab) == "read"
    tab.key("s")
    tab.wait("document.querySelector('.target')")
    assert tab.text(".target th") == "3"
    assert "line=3" in fragment(tab)


def test_colors_by_resolution(tab: Page, tmp_path: Path) -> None:
    """The legend names the kinds of frames in the picture."""
    show(tab, tmp_path, demo(), "#color=kind")
    folded = "folded: code that several functions share"
    assert tab.text("#legend").split("\n") == ["named", "inlined", folded, "unsymbolized"]


def test_help(tab: Page, tmp_path: Path) -> None:
    """? lists the keys; Escape closes the list and nothing else."""
    show(tab, tmp_path, demo())
    click_row(tab, 2, 0.1)
    tab.key("?")
    assert tab.run("document.querySelector('#help').open")
    assert "upside down" in tab.text("#keys")
    tab.key("Escape")
    tab.wait("!document.querySelector('#help').open")
    assert tab.text("#crumbs [aria-current]") == "main"


def test_copy(tab: Page, tmp_path: Path) -> None:
    show(tab, tmp_path, demo())
    tab.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    click_row(tab, 2, 0.1)
    tab.key("c")
    tab.wait("document.querySelector('#copy').textContent === 'Copied'")
    assert tab.run("navigator.clipboard.readText()") == "main"
    tab.call("Browser.resetPermissions")
    tab.run("navigator.clipboard.writeText = async () => { throw new Error(); }; symbolizePage.graph.copySelected()")
    assert tab.run("String(getSelection())") == "main"
    tab.run("symbolizePage.graph.copySelected(), symbolizePage.graph.select(null)")  # while it is being copied
    tab.run("new Promise(requestAnimationFrame)")
    assert tab.problems() == []


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("view", ["graph", "table", "peek", "source"])
def test_fits_the_window(tab: Page, tmp_path: Path, size: tuple[int, int], view: str) -> None:
    """Nothing sticks out sideways, also with long names."""
    tab.resize(*size)
    names = {"namespace_with_a_long_name::" * 8 + f"f{i}": 1 for i in range(5)}
    show(tab, tmp_path, tree_of({"main": names}), f"#view={view}&zoom=0.1")
    assert tab.run("document.documentElement.scrollWidth") <= size[0]
    assert tab.run(f"document.querySelector('#{view}').scrollWidth") <= size[0]
    if view == "graph":
        assert tab.box("#stage")["height"] > 250


@pytest.mark.parametrize("size", [(844, 390), (640, 400), (320, 568)], ids="{0[0]}x{0[1]}".format)
def test_low_window(tab: Page, tmp_path: Path, size: tuple[int, int]) -> None:
    """Of a telephone on its side, or with large letters: the page scrolls down, and what scrolls in it stays high."""
    tab.resize(*size)
    for view in ("graph", "table", "peek", "source"):
        show(tab, tmp_path, demo(), f"#view={view}&sandwich=2")
        assert tab.run("document.documentElement.scrollWidth") <= size[0]
        assert tab.box("#stage" if view == "graph" else f"#{view} .scroll")["height"] >= 240


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(tab: Page, tmp_path: Path, scheme: str) -> None:
    """Text has the contrast of WCAG's level AA on every fill and every background of its theme."""
    tab.media(prefers_color_scheme=scheme)
    show(tab, tmp_path, demo())
    pairs = tab.run(
        """(() => {
            const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
            const rgb = (color) => {
                context.fillStyle = color;
                context.fillRect(0, 0, 1, 1);
                return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
            };
            const { colors } = symbolizePage;
            const { theme } = colors;
            const fills = [colors.moduleFills, colors.kindFills, colors.changeFills, theme.match].flat(2);
            const result = fills.map((fill) => [fill, rgb(theme.text), rgb(fill)]);
            result.push(["faint", rgb(theme.faintText), rgb(theme.faint)]);
            for (const selector of ["h1", "#summary", "#legend li", "#details p", "[aria-pressed=true]", "label"]) {
                let under = document.querySelector(selector);
                const ink = getComputedStyle(under).color;
                while (getComputedStyle(under).backgroundColor === "rgba(0, 0, 0, 0)") under = under.parentElement;
                result.push([selector, rgb(ink), rgb(getComputedStyle(under).backgroundColor)]);
            }
            return result;
        })()"""
    )
    assert len(pairs) > 80

    def luminance(color: list[int]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (each / 255 for each in color)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for name, ink, paper in pairs:
        low, high = sorted((luminance(ink), luminance(paper)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, name


def test_dark_and_light(tab: Page, tmp_path: Path) -> None:
    """The browser's scheme, until the switch chooses another."""
    show(tab, tmp_path, demo())
    paper = "getComputedStyle(document.body).backgroundColor"
    light = tab.run(paper)
    tab.media(prefers_color_scheme="dark")
    dark = tab.run(paper)
    assert light != dark
    tab.click("#theme")
    assert tab.run(paper) == light
    tab.key("d")
    assert tab.run(paper) == dark


def test_controls_have_names(tab: Page, tmp_path: Path) -> None:
    """What a screen reader can reach has a role and a name."""
    for view in ("graph", "table", "peek", "source"):
        show(tab, tmp_path, demo(), f"#view={view}")
        tree = tab.call("Accessibility.getFullAXTree")["nodes"]
        shown = [node for node in tree if not node["ignored"]]
        reachable = [
            node
            for node in shown
            if any(each["name"] == "focusable" and each["value"]["value"] for each in node.get("properties", []))
            and node["role"]["value"] not in ("RootWebArea", "generic", "MenuListPopup")
        ]
        assert len(reachable) > 6
        assert [node for node in reachable if not node.get("name", {}).get("value")] == []
        roles = {node["role"]["value"] for node in shown}
        assert {"graph": "application"}.get(view, "table") in roles


def test_hostile_names(tab: Page, tmp_path: Path) -> None:
    """Names are text: no element comes of them, nothing runs, what is invisible is shown as such."""
    picture = tree_of({name: {"child": i + 1} for i, name in enumerate(HOSTILE)}, title=HOSTILE[1])
    path = show(tab, tmp_path, picture, "#view=table&search=" + "%3Cimg|script|o")
    tab.open(path, "#view=table")
    names = [row[4] for row in table(tab)]
    assert {name for name in HOSTILE if "\t" not in name and "\ud800" not in name} <= set(names)
    assert "tab\ufffdhere\ufffdline\ufffdright to left\ufffd\ufffd[31m" in names
    tab.key("g")
    for key in ["ArrowDown"] * 2 + ["ArrowRight"] * len(HOSTILE):
        tab.key(key)
    tab.open(path, "#zoom=99.-1.x&type=77&sandwich=999&labels=9.9,x&time=7.3&sort=__proto__&view=<b>&__proto__=1")
    labels = [{"thread": name or "none", "pod": name} for name in HOSTILE if "\ud800" not in name]
    profile = threaded([Sample(["main"], 1 + i, each, time=i) for i, each in enumerate(labels)])
    show(tab, tmp_path, picture_of(stacks_of(profile), "labels"), "#labels=0.2,1.1")
    assert tab.text("#track-names").count("<img src=x onerror=") == 1
    assert tab.run("window.attacked") is None
    assert tab.run("document.images.length + document.querySelectorAll('script').length") == 2


def test_negative_values(tab: Page, tmp_path: Path) -> None:
    """Drawn by their size, with their sign in the numbers; the legend says so."""
    show(tab, tmp_path, tree_of({"main": {"freed": -300, "kept": 100}}, unit="bytes"))
    assert "widths add up absolute values" in tab.text("#legend")
    click_row(tab, 2, 0.3)
    assert selected(tab) == "freed"
    assert tab.text("#details dd").startswith("-300 B")


def test_values_that_cancel(tab: Page, tmp_path: Path) -> None:
    """Branches and stacks whose sum is 0 are drawn; the summary has the sum and what percentages are of."""
    picture = tree_of({"main": {"kept": 400, "freed": -300, "swap": 0}}, unit="bytes")
    sizes = picture.tree.sizes.copy()
    sizes[-1] = 100  # two stacks that end in `swap`
    show(tab, tmp_path, replace(picture, tree=replace(picture.tree, sizes=sizes), totals=np.array([800.0])))
    assert tab.text("#summary").startswith("100 B net of 800 B cpu")
    for place, name in ((0.2, "kept"), (0.7, "freed"), (0.95, "swap")):
        click_row(tab, 2, place)
        assert selected(tab) == name
        tab.key("Escape")


def test_many_small_frames(tab: Page, tmp_path: Path) -> None:
    """What is too narrow to draw is one rectangle that says so."""
    show(tab, tmp_path, tree_of({"main": {"large": 5000} | {f"small{i}": 1 for i in range(5000)}}))
    click_row(tab, 2, 0.7)
    assert tab.text("#crumbs [aria-current]") == "main"
    for key in ("ArrowDown", "ArrowRight"):
        tab.key(key)
    assert selected(tab) == "5,000 smaller frames"
    assert "total here\n5 µs (50.0 %)" in tab.text("#details")


def test_empty_profile(tab: Page, tmp_path: Path) -> None:
    """Without samples there is a page that says so."""
    show(tab, tmp_path, tree_of({}))
    assert tab.text("#summary") == "0 cpu · no samples"
    for key in ("ArrowDown", "i", "t", "s", "g", "0", "Escape", "f", "c", "+", "-"):
        tab.key(key)


def test_printing_keeps_the_picture(tab: Page, tmp_path: Path) -> None:
    """One page, light, and the view is as before afterwards."""
    tab.media(prefers_color_scheme="dark")
    show(tab, tmp_path, demo())
    paper = tab.run("getComputedStyle(document.body).backgroundColor")
    height = tab.run("document.querySelector('canvas').height")
    pdf = tab.call("Page.printToPDF", printBackground=True)["data"]
    assert len(pdf) > 1000
    tab.wait(f"document.querySelector('canvas').height === {height}")
    assert tab.run("getComputedStyle(document.body).backgroundColor") == paper


def ledger() -> Profile:
    profile = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
    return symbolize.symbolize(profile, BINARIES / "gcc-pie").profile


def census() -> Profile:
    return symbolize.load(FIXTURES / "profiles" / "go" / "census.pb.gz")


NUMBER = re.compile(r"(-?[\d.]+)(\w*)")
SCALES = {"": 1, "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}


def amount(text: str) -> float:
    """A value in nanoseconds, or a count."""
    match = NUMBER.fullmatch(text.replace(" ", "").replace(",", ""))
    assert match is not None, text
    return float(match[1]) * SCALES[match[2]]


@pytest.mark.needs("go")
@pytest.mark.parametrize("make", [ledger, census])
def test_totals_are_those_of_pprof(tab: Page, tmp_path: Path, make: Any) -> None:
    """The table has the functions of our own totals, which are those of `go tool pprof -top`, with the same values."""
    profile = make()
    stacks = stacks_of(profile)
    show(tab, tmp_path, picture_of(stacks, "p", sources=Sources([str(FIXTURES / "src")])), "#view=table")
    shown = [(row[4], amount(row[0]), amount(row[2])) for row in table(tab)]
    expected = {row.name: row for row in function_totals(stacks).heaviest(stacks.default)}
    assert {name for name, _, _ in shown} == expected.keys()
    for name, flat, cumulative in shown:
        assert flat == pytest.approx(expected[name].flat, rel=0.006)
        assert cumulative == pytest.approx(expected[name].cumulative, rel=0.006)
    symbolize.write(profile, tmp_path / "p.pb.gz")
    command = ["go", "tool", "pprof", "-top", "-nodecount=0", "-nodefraction=0", "-symbolize=none"]
    top = subprocess.run([*command, str(tmp_path / "p.pb.gz")], capture_output=True, text=True, check=True)
    rows = [line.split(maxsplit=5) for line in top.stdout.partition("cum%\n")[2].splitlines()]
    theirs = {row[5].removesuffix(" (inline)"): (amount(row[0]), amount(row[3])) for row in rows}
    assert theirs == {
        name: (pytest.approx(flat, rel=0.006), pytest.approx(cumulative, rel=0.006)) for name, flat, cumulative in shown
    }


def functions(profile: Profile, **filters: str) -> list[tuple[str, Any, Any]]:
    """Name, flat and cumulative value of each function, as `symbolize top` with these filters has them."""
    stacks = stacks_of(profile, Filters(**filters))
    near = [(row.name, row.flat, row.cumulative) for row in function_totals(stacks).heaviest(stacks.default)]
    return [(name, pytest.approx(flat, rel=0.006), pytest.approx(total, rel=0.006)) for name, flat, total in near]


def shown_functions(tab: Page) -> list[tuple[str, float, float]]:
    """The same as the page has them."""
    return [(row[4], amount(row[0]), amount(row[2])) for row in table(tab)]


def choose(tab: Page, field: str, text: str) -> None:
    """Choose the option of a selector that begins with a text, or set a field."""
    tab.run(
        f"""(field => {{
            const option = [...(field.options ?? [])].find(each => each.text.startsWith({text!r}));
            field.value = option ? option.value : {text!r};
            field.dispatchEvent(new Event(option ? "change" : "input"));
        }})(document.querySelector({field!r}))"""
    )


def test_thread_is_what_tagfocus_leaves(tab: Page, tmp_path: Path) -> None:
    """The selector of a key of labels; percentages are of what it chooses; Escape ends it."""
    profile = symbolize.load(FIXTURES / "profiles" / "perf_data" / "threads.data")
    path = show(tab, tmp_path, picture_of(stacks_of(profile), "p"), "#view=table")
    tab.click("#show-filters")
    choose(tab, "[title=thread]", "spectra 32410")
    assert sorted(shown_functions(tab)) == sorted(functions(profile, tagfocus="tid=32410"))
    assert "thread spectra 32410" in tab.text("#summary")
    tab.key("g")
    tab.key("ArrowDown")
    assert tab.text("#details dd").endswith("(100.0 %)")
    tab.open(path, fragment(tab))
    assert tab.text("#show-filters") == "Filters (1)"
    tab.run("document.activeElement.blur()")
    tab.key("Escape")
    assert fragment(tab) == ""


@pytest.mark.parametrize(
    "filters",
    [
        {"focus": "Parser::(sum|accept)"},
        {"ignore": r"digest\.c|so\.1$"},
        {"hide": "^ledger::|even_step"},
        {"focus": "(?i)parser", "ignore": "skip_", "hide": "product|libstdc"},
    ],
    ids=str,
)
def test_filters_are_those_of_the_command(tab: Page, tmp_path: Path, filters: dict[str, str]) -> None:
    """Focus, ignore and hide find names, source files and modules, and leave the values that `symbolize top` has."""
    profile = ledger()
    show(tab, tmp_path, picture_of(stacks_of(profile), "p"), "#view=table")
    tab.click("#show-filters")
    for name, text in filters.items():
        choose(tab, f"#filter-{name}", text)
        tab.wait(f"location.hash.includes('{name}=')")
    assert len(table(tab)) > 5
    assert sorted(shown_functions(tab)) == sorted(functions(profile, **filters))
    tab.run("symbolizePage.state.set({ ignore: '(a|aa)+$' })")
    assert "ignore (a|aa)+$, as plain text" in tab.text("#summary")
    tab.click("#clear-filters")
    assert sorted(shown_functions(tab)) == sorted(functions(profile))


def test_filters_that_are_typed_quickly(tab: Page, tmp_path: Path) -> None:
    """What was typed into a field is kept when the next one is typed into at once."""
    show(tab, tmp_path, demo())
    tab.click("#show-filters")
    tab.run("""for (const [name, text] of [["focus", "parse"], ["ignore", "draw"]]) {
        const field = document.querySelector(`#filter-${name}`);
        field.focus();
        field.value = text;
        field.dispatchEvent(new Event("input"));
    }""")
    tab.wait("location.hash === '#focus=parse&ignore=draw'")
    assert tab.run("document.querySelector('#filter-focus').value") == "parse"


def test_long_caveats_leave_room_for_the_picture(tab: Page, tmp_path: Path) -> None:
    """A caveat is one line, which Enter opens, as it opens nothing else then."""
    tab.resize(*NARROW)
    show(tab, tmp_path, replace(demo(), caveats=["not proved to be what ran: " + "libexample.so, 1.0 %; " * 40]))
    assert tab.box(".caveat")["height"] < 30
    tab.run("document.querySelector('.caveat summary').focus()")
    tab.key("Enter")
    assert tab.box(".caveat")["height"] > 200
    assert tab.run("document.documentElement.scrollWidth") <= NARROW[0]


def test_filters_of_samples_without_a_stack(tab: Page, tmp_path: Path) -> None:
    """They have no frames, so that any filter drops them, as the command does."""
    profile = threaded([Sample((), 5, {}), Sample(("main", "a", "b"), 7, {}), Sample(("main", "c"), 4, {})])
    show(tab, tmp_path, picture_of(stacks_of(profile), "p"), "#view=table&ignore=%5Ea%24&hide=c")
    assert shown_functions(tab) == functions(profile, ignore="^a$", hide="c")
    tab.run("symbolizePage.state.set({ ignore: '', hide: '^main|c' })")
    assert shown_functions(tab) == functions(profile, hide="^main|c")


def test_time_is_chosen_by_dragging_and_by_keys(tab: Page, tmp_path: Path) -> None:
    """Tracks by thread; the values are those of the samples in the range. A name chooses a thread."""
    samples = [
        Sample(("main", "work" if at % 3 else "wait"), 10 + at, {"tid": 1 + (at % 4 == 0)}, 1_000_000 * at)
        for at in range(512)
    ]
    path = show(tab, tmp_path, picture_of(stacks_of(threaded(samples)), "p"))
    assert tab.text("#track-names").split("\n") == ["1", "2"]
    box = tab.box("#lanes")
    for kind, share in (("mousePressed", 0.25), ("mouseMoved", 0.4), ("mouseMoved", 0.5), ("mouseReleased", 0.5)):
        where = {"x": box["x"] + share * box["width"] + 1, "y": box["y"] + 5}
        tab.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **where)

    def expected(first: int, last: int, tid: int = 0) -> str:
        total = sum(each.value for each in samples[first : last + 1] if tid in (0, each.labels["tid"]))
        return f"{total / 1000:.{2 if total < 10_000 else 1 if total < 100_000 else 0}f} µs"

    assert fragment(tab) == "#time=128.256"
    assert tab.text("#summary").startswith(expected(128, 256))
    share = sum(each.value for each in samples[128:257]) / sum(each.value for each in samples)
    assert f"· {100 * share:.1f} % of all samples ·" in tab.text("#summary")
    assert tab.text("#range") == "128 ms to 256 ms of 511 ms"
    tab.click("#track-names button:nth-child(2)")
    assert tab.text("#summary").startswith(expected(128, 256, tid=2))
    tab.open(path, fragment(tab))
    assert tab.text("#summary").startswith(expected(128, 256, tid=2))
    tab.click("#track-names button:nth-child(2)")
    tab.run("document.querySelector('#lanes').focus()")
    tab.key("ArrowRight")
    assert fragment(tab) == "#time=138.266"
    assert tab.text("#live") == "138 ms to 266 ms of 511 ms"
    tab.key("Escape")
    assert fragment(tab) == "" and tab.text("#summary").startswith(expected(0, 511))


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_filters_and_tracks_fit_the_window(tab: Page, tmp_path: Path, size: tuple[int, int]) -> None:
    """Open and with many threads, they leave place for the picture."""
    tab.resize(*size)
    show(tab, tmp_path, with_slices(demo()), "#labels=0.1&time=0.100")
    assert tab.text("#track-names").split("\n")[-1].endswith(" others") or tab.box("#tracks")["height"] < 260
    assert tab.run("document.documentElement.scrollWidth") <= size[0]
    assert tab.box("#stage")["height"] >= 140


def peeked(text: str) -> dict[str, tuple[list[tuple[str, float]], list[tuple[str, float]]]]:
    """Callers and callees with their values by function, of what `pprof -peek` prints."""
    found = {}
    for block in re.split(r"^-+\+-+$", text, flags=re.MULTILINE)[2:]:
        edges: tuple[list[tuple[str, float]], list[tuple[str, float]]] = ([], [])
        name = ""
        for line in block.strip("\n").splitlines():
            left, _, context = line.partition(" | ")
            text = context.strip().removesuffix(" (inline)")
            if context.startswith("  "):
                edges[bool(name)].append((text, amount(left.split()[0])))
            else:
                name = text
        if name:
            found[name] = edges
    return found


@pytest.mark.needs("go")
@pytest.mark.parametrize("make", [ledger, census])
def test_callers_and_callees_are_those_of_pprof(tab: Page, tmp_path: Path, make: Any) -> None:
    """With the values of the calls, also where functions recur."""
    profile = make()
    symbolize.write(profile, tmp_path / "p.pb.gz")
    command = ["go", "tool", "pprof", "-symbolize=none", "-peek", ".", str(tmp_path / "p.pb.gz")]
    theirs = peeked(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert len(theirs) > 10
    show(tab, tmp_path, picture_of(stacks_of(profile), "p"), "#view=peek")
    rows = """[...document.querySelectorAll('#peek tbody')].map(body => [...body.rows].slice(1)
        .filter(row => row.cells.length > 1)
        .map(row => [row.querySelector('button')?.textContent, row.cells[0].textContent]))"""
    names = tab.run("symbolizePage.data.names")
    for name, edges in theirs.items():
        tab.run(f"symbolizePage.peek.open({names.index(name)})")
        callers, _, callees = tab.run(rows)
        for ours, expected in zip((callers, callees), edges, strict=True):
            near = [(other, pytest.approx(value, rel=0.006)) for other, value in sorted(expected)]
            assert sorted((other, amount(value)) for other, value in ours) == near, name


def test_peek_leads_from_function_to_function(tab: Page, tmp_path: Path) -> None:
    """Each name to its own callers and callees; a difference has both values."""
    show(tab, tmp_path, demo(), "#view=table")
    tab.run("document.querySelector('[aria-label=\"Callers of inflate\"]').click()")
    assert re.sub(r"\s+", " ", tab.text("#peek table")).split("Callers ")[1] == (
        "150 ns 15.0 % 60.0 % draw program 100 ns 10.0 % 40.0 % parse program "
        "Function 250 ns 25.0 % 100.0 % inflate lib 150 ns 15.0 % 60.0 % in itself "
        "Callees 100 ns 10.0 % 40.0 % memcpy program"
    )
    tab.run("[...document.querySelectorAll('#peek button')].find(each => each.textContent === 'memcpy').click()")
    assert [name for name in ("inflate", "fill") if name not in tab.text("#peek")] == []
    show(tab, tmp_path, tree_of({"main": {"f": 30}}, base={"main": {"f": 10}}), "#view=peek&sandwich=0")
    assert re.sub(r"\s+", " ", tab.text("#peek tbody:last-child")) == "Callees 10 ns 30 ns +20 ns 0.0 points f program"


def test_focus_stays_where_a_key_was_pressed(tab: Page, tmp_path: Path, with_code: Path) -> None:
    """On the line that was chosen, else on what scrolls around what was replaced."""
    show(tab, tmp_path, demo(), "#view=peek")
    tab.run("document.querySelector('#peek td button').focus()")
    tab.key("Enter")
    assert tab.run("document.activeElement.closest('#peek')?.id") == "peek"
    tab.open(with_code, "#view=source")
    tab.wait("document.querySelector('#instructions tr[data-instruction]')")
    tab.run("document.querySelector('#source tr[data-line=\"35\"] button').focus()")
    tab.key("Enter")
    tab.wait("document.querySelector('tr.target')?.dataset.line === '35'")
    assert tab.run("document.activeElement.textContent") == "35"
    tab.run("document.querySelector('#instructions .place button').focus()")
    tab.key("Enter")
    tab.wait("location.hash.includes('code=')")
    tab.wait("document.activeElement.closest('#instructions')")


def test_peek_keeps_its_function_and_the_graph(tab: Page, tmp_path: Path) -> None:
    """The function that is selected in the graph stays when other samples are chosen, and the graph stays zoomed."""
    profile = symbolize.load(FIXTURES / "profiles" / "perf_data" / "threads.data")
    show(tab, tmp_path, picture_of(stacks_of(profile), "p"))
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        tab.key(key)
    before, zoomed, name = fragment(tab), crumbs(tab), selected(tab)
    tab.click("[data-view=peek]")
    assert tab.text("#peek tbody:nth-of-type(2) button") == name
    tab.run("symbolizePage.state.set({ time: '0.400' })")
    assert tab.text("#peek tbody:nth-of-type(2) button") == name
    tab.run("symbolizePage.state.set({ time: '' })")
    tab.key("g")
    assert crumbs(tab) == zoomed and fragment(tab).startswith(before)


def test_table_of_many_functions(tab: Page, tmp_path: Path) -> None:
    """More rows are added to those that are there."""
    show(tab, tmp_path, tree_of({"main": {f"f{i}": i + 1 for i in range(3000)}}), "#view=table")
    first = "document.querySelector('#table tbody tr')"
    tab.run(f"{first}.dataset.old = 1")
    assert tab.text("#row-count") == "200 of 3,001 functions"
    tab.run("document.querySelector('#more').click()")
    assert tab.text("#row-count") == "1,200 of 3,001 functions"
    assert tab.run("document.querySelector('#table tbody').rows.length") == 1200
    assert tab.run(f"{first}.dataset.old") == "1"
    tab.run("symbolizePage.table.limit = 1e6; symbolizePage.update()")
    assert tab.text("#row-count") == "3,001 functions"


def test_long_source(tab: Page, tmp_path: Path) -> None:
    """A long fold opens step by step."""
    values, count = np.array([[3.0]]), 300_000
    file = np.array([1], np.int32)
    lines = LineTotals(["", "/src/io.c"], 0 * file, file, np.array([count]), values, values)
    show(tab, tmp_path, demo(lines=lines, sources={"/src/io.c": "int n;\n" * count}), "#view=source")
    tab.wait("document.querySelector('.fold')")
    tab.click(".fold button")
    assert tab.text(".fold") == "Show lines 2001 to 299987"
    assert tab.run("document.querySelector('[data-line=\"2000\"] .code').textContent") == "int n;"


def test_unknown_view(tab: Page, tmp_path: Path) -> None:
    """An address of another version shows the graph."""
    show(tab, tmp_path, demo(), "#view=other")
    assert not tab.run("document.querySelector('#graph').hidden")


def test_shares_are_of_the_whole_profile(tab: Page, tmp_path: Path) -> None:
    """Also where filters left less, as in `symbolize top`: in the summary, the graph, the search and the table."""
    stacks = stacks_of(ledger(), Filters(focus="even_step"))
    show(tab, tmp_path, picture_of(stacks, "p"), "#search=even_step")
    assert tab.text("#summary") == "476 ms of 1.51 s cpu · 100.0 % of samples in named code"
    assert tab.text("#matches") == "31.5 % in 1 function"
    tab.key("ArrowDown")
    assert tab.text("#details dd") == "476 ms (31.5 %)"
    tab.key("t")
    assert [row[:4] for row in table(tab)] == [["328 ms", "21.7 %", "476 ms", "31.5 %"]]


@pytest.fixture(scope="module")
def with_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with source and instructions."""
    path = tmp_path_factory.mktemp("code") / "code.html"
    profile, build = FIXTURES / "profiles" / "gperftools" / "spectra-gcc-pie.prof", str(BINARIES / "gcc-pie")
    options = ["-b", build, "--source", str(FIXTURES / "src"), "--disassembly", "-o", str(path), "-q", "--no-cache"]
    assert main(["view", str(profile), *options]) == 0
    return path


def instructions(tab: Page) -> list[list[str]]:
    """The instructions that are shown: flat, cum, address, text, and whether they are of the line."""
    return tab.run(  # type: ignore[no-any-return]
        """[...document.querySelectorAll('#instructions tr[data-instruction]')].map(row =>
            [...[...row.cells].map(cell => cell.textContent), row.classList.contains('target') ? 'line' : ''])"""
    )


def test_instructions_of_a_line(tab: Page, with_code: Path) -> None:
    """What a line became in each function, with the values by address; a click on another line shows its own."""
    tab.open(with_code, "#view=source")
    tab.wait("document.querySelector('#instructions tr[data-instruction]')")
    assert tab.text("#code-message") == "Values by address, of the whole profile."
    assert tab.run("document.querySelector('#code').selectedOptions[0].text") == "of line 28"
    rows = instructions(tab)
    assert ["68 ms", "68 ms", "23de", "add rdx, 1", "line"] in rows
    heads = tab.run("[...document.querySelectorAll('#instructions .function')].map(row => row.textContent)")
    assert [head.split("  ")[0] for head in heads] == ["resonance::(anonymous namespace)::fast_fourier"]
    assert heads[0].endswith("libresonance.so 0x2390–0x24d1")
    assert "libm.so.6" in tab.text("#no-code")
    assert sum(1 for row in rows if row[-1]) == 20
    tab.click("#source tr[data-line='35'] button")
    tab.wait("location.hash.includes('line=35')")
    assert ["", "496 ms", "242c", "call 0x2390 <resonance::(anonymous namespace)::fast_fourier>", "line"] in (
        instructions(tab)
    )
    tab.run("history.back()")
    tab.wait("document.querySelector('#code').selectedOptions[0].text === 'of line 28'")


def test_instructions_of_a_function(tab: Page, with_code: Path) -> None:
    """The table leads to the code of a function; folded stretches open; the place above leads to its line."""
    tab.open(with_code, "#view=table&search=^resonance::transform")
    tab.click("#table .to-source")
    tab.wait("document.querySelector('#instructions tr[data-instruction]')")
    assert tab.run("document.querySelector('#code').selectedOptions[0].text.startsWith('resonance::transform 0x')")
    shown_at_first = len(instructions(tab))
    tab.run("document.querySelectorAll('#instructions .fold button').forEach(button => button.click())")
    rows = instructions(tab)
    assert shown_at_first < len(rows)
    addresses = [int(row[2], 16) for row in rows]
    assert addresses == sorted(addresses) and addresses[0] == 0x2970
    tab.run(
        "[...document.querySelectorAll('#instructions .place button')].find(b => b.textContent.includes('.h:')).click()"
    )
    tab.wait("document.querySelector('#file').value.endsWith('.h')")
    assert tab.run("document.querySelector('#code').selectedOptions[0].text.startsWith('resonance::transform 0x')")


def test_place_of_an_instruction_in_a_file_without_values(tab: Page, with_code: Path) -> None:
    """The line of that file is shown, and never one of another file, whatever the address says."""
    tab.open(with_code, "#view=source")
    tab.wait("document.querySelector('#instructions tr[data-instruction]')")
    path, line = tab.run(
        """(({ instructions, byFile }) => {
            const isWithoutValues = (i) => byFile.get(instructions.path(i))?.lines.size === 0;
            const i = Array.from(instructions.line, (_, i) => i).find(isWithoutValues);
            instructions.open(instructions.blocks.find(({ last }) => i < last), i);
            return [instructions.path(i), instructions.line[i]];
        })(symbolizePage.source)"""
    )
    tab.wait(f"document.querySelector('#file').value === {path!r}")
    assert tab.run("document.querySelector('#source tr.target[data-line]').dataset.line") == str(line)
    tab.open(with_code, "#view=source&file=/other&line=30")
    tab.wait("document.querySelector('#instructions tr[data-instruction]')")
    assert tab.run("document.querySelector('#source tr.target[data-line]')") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_instructions_fit(tab: Page, with_code: Path, size: tuple[int, int], scheme: str) -> None:
    """Source and instructions both have room, and the page is not wider than the window."""
    tab.resize(*size)
    tab.media(prefers_color_scheme=scheme)
    tab.open(with_code, "#view=source")
    tab.wait("document.querySelector('#instructions tr[data-instruction]')")
    assert tab.run("document.documentElement.scrollWidth") <= size[0]
    source, code = tab.box("#source .scroll"), tab.box("#instructions .scroll")
    assert min(source["height"], code["height"]) >= 100 and min(source["width"], code["width"]) >= 370


def test_large_profile(tab: Page, tmp_path: Path) -> None:
    """100,000 stacks make a page of a few megabytes, in which one can zoom in and out."""
    path = show(tab, tmp_path, large_picture())
    assert path.stat().st_size < 5 << 20
    for key in ["ArrowDown", *["ArrowDown", "Enter"] * 8]:
        tab.key(key)
    assert len(crumbs(tab)) > 4
    for key in "--------":
        tab.key(key)
    assert crumbs(tab) == ["all"]
