"""Mappings of the kernel."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import symbolize
from symbolize import Reason, Symbolizer
from symbolize.binaries.finder import SpecialFile
from symbolize.evidence.kernels import RecordedKernel, shifts
from symbolize.report import HINTS
from symbolize.report.model import MappingRow
from symbolize.resolve.providers.kernel import list_files
from tests.support import perf_writer as w
from tests.support.kernel_image import KERNEL_ID, LINKED, SIZE, vmlinux
from tests.support.pprof_writer import Mapping, Place
from tests.support.whole_runs import run

MOVED = 0x1C60_0000
TOP = 2**64
RELEASE = "6.1.0-56-cloud-amd64"


def places(shift: int = MOVED, numbers: Sequence[int] = (3, 70, 400)) -> list[Place]:
    """Places in some functions of a kernel that was moved."""
    return [Place(LINKED + shift + 0x1000 * i + 5, 1) for i in numbers]


def mapping(name: str, at: int = LINKED + MOVED, offset: int | None = None, build_id: str = KERNEL_ID) -> Mapping:
    """A mapping of the kernel as recorders write it: the address of its beginning is also the file offset."""
    return Mapping(at, 0xFFFF_FFFF_C000_0000, at if offset is None else offset, name, build_id)


class TestVmlinux:
    """An image of the kernel."""

    @pytest.mark.parametrize(
        ("name", "at"),
        [
            ("[kernel.kallsyms]_text", LINKED + MOVED),
            ("[kernel.kallsyms]_stext", LINKED + MOVED + 0x1000),
            ("[guest.kernel.kallsyms]_text", LINKED + MOVED),
            ("[guest.kernel.kallsyms.123]_text", LINKED + MOVED),
            ("/usr/lib/debug/boot/vmlinux-" + RELEASE, LINKED + MOVED),
            ("vmlinux", LINKED + MOVED),
        ],
    )
    @pytest.mark.parametrize("offset", [None, 0])
    def test_moved_by_the_symbol_in_the_name(self, tmp_path: Path, name: str, at: int, offset: int | None) -> None:
        """Where the mapping begins at a symbol that its name tells, that says how far the kernel moved (rule R124)."""
        vmlinux(tmp_path / "any" / "name")
        if not name.startswith("["):
            vmlinux(tmp_path / "any" / "name", stext=0)
        names, report = run([mapping(name, at, offset)], places(), tmp_path)
        assert names == ["f3", "f70", "f400"]
        assert report.mappings[0].verified
        assert report.mappings[0].files == [str(tmp_path / "any" / "name")]

    @pytest.mark.parametrize("name", ["[kernel.kallsyms]", "[kernel]", "[kernel.vmlinux]", "/proc/kcore"])
    @pytest.mark.parametrize("begins_at", [0, 0x900])
    @pytest.mark.full
    def test_the_symbol_under_which_addresses_fall_into_functions(
        self, tmp_path: Path, name: str, begins_at: int
    ) -> None:
        """Without a symbol in the name `_stext` and `_text` are tried (rule R124)."""
        vmlinux(tmp_path / "vmlinux", stext=0x900)
        names, report = run([mapping(name, LINKED + MOVED + begins_at)], places(), tmp_path)
        # The kernel is moved by whole pages, so both symbols tell the same here; further apart they do not.
        assert names == ["f3", "f70", "f400"]
        vmlinux(tmp_path / "vmlinux", stext=0x17F000)
        names, report = run([mapping(name, LINKED + MOVED + 0x17F000)], places(numbers=(384, 400, 500)), tmp_path)
        assert names == ["f384", "f400", "f500"]
        assert "_stext at" in report.mappings[0].tried[-1][1]

    def test_mapping_that_tells_no_address(self, tmp_path: Path) -> None:
        """A mapping from 0 on: the address of the symbol is the file offset, or else the kernel is as linked."""
        vmlinux(tmp_path / "vmlinux")
        whole = Mapping(0, TOP - 1, LINKED + MOVED, "[kernel.kallsyms]_text", KERNEL_ID)
        assert run([whole], places(), tmp_path)[0] == ["f3", "f70", "f400"]
        assert run([whole._replace(offset=0)], places(0), tmp_path)[0] == ["f3", "f70", "f400"]

    def test_neither_symbol_fits(self, tmp_path: Path) -> None:
        """Addresses that no shift brings into functions are refused, and the report says so."""
        vmlinux(tmp_path / "vmlinux")
        between = [Place(LINKED + MOVED + 0x1000 * i + 0x900, 1) for i in (3, 70, 400)]
        names, report = run([mapping("[kernel.kallsyms]")], between, tmp_path)
        assert names == ["", "", ""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.MISFIT]
        assert "_stext" in report.mappings[0].detail
        assert "_text" in report.mappings[0].detail

    def test_addresses_elsewhere_stay_without_names(self, tmp_path: Path) -> None:
        """Code of modules in the mapping of the kernel is not that of vmlinux."""
        vmlinux(tmp_path / "vmlinux")
        names, report = run([mapping("[kernel.kallsyms]_text")], [*places(), Place(0xFFFF_FFFF_BFFF_0000, 1)], tmp_path)
        assert names == ["f3", "f70", "f400", ""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.OUTSIDE_SEGMENTS]

    @pytest.mark.parametrize(
        "path",
        [
            f"boot/vmlinux-{RELEASE}",
            f"usr/lib/debug/boot/vmlinux-{RELEASE}",
            f"usr/lib/debug/lib/modules/{RELEASE}/vmlinux",
            f"lib/modules/{RELEASE}/build/vmlinux",
            f"usr/lib/debug/boot/vmlinux-{RELEASE}.debug",
            f"flat/vmlinux-{RELEASE}",
        ],
    )
    def test_by_release(self, tmp_path: Path, path: str) -> None:
        """Without a build id the release tells the kernel, here by the path of a module; it is not verified."""
        vmlinux(tmp_path / path)
        vmlinux(tmp_path / "boot" / "vmlinux-5.10.0-1-amd64", "ff" * 20, stext=0x4000)
        module = Mapping(0xFFFF_FFFF_C060_0000, 0xFFFF_FFFF_C061_0000, 0, f"/lib/modules/{RELEASE}/kernel/net/x.ko")
        names, report = run([mapping("[kernel.kallsyms]_text", build_id=""), module], places(), tmp_path)
        assert names == ["f3", "f70", "f400"]
        assert not report.mappings[0].verified

    def test_only_one_or_none(self, tmp_path: Path) -> None:
        """Without build id and release the only kernel in the folders is taken; of two none is."""
        recorded = mapping("[kernel.kallsyms]_text", build_id="")
        vmlinux(tmp_path / "boot" / f"vmlinux-{RELEASE}")
        assert run([recorded], places(), tmp_path)[0] == ["f3", "f70", "f400"]
        vmlinux(tmp_path / "boot" / "vmlinux-5.10.0-1-amd64", "ff" * 20)
        names, report = run([recorded], places(), tmp_path)
        assert names == ["", "", ""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.AMBIGUOUS]

    def test_other_build(self, tmp_path: Path) -> None:
        """A kernel with another build id is not used, and not for a guest either."""
        vmlinux(tmp_path / "vmlinux", "ff" * 20)
        names, report = run([mapping("[kernel.kallsyms]_text")], places(), tmp_path)
        assert names == ["", "", ""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.BUILD_ID_DIFFERS]
        names, report = run([mapping("[guest.kernel.kallsyms]_text", build_id="")], places(), tmp_path)
        assert names == ["", "", ""]

    def test_without_symbols(self, tmp_path: Path) -> None:
        """A stripped kernel says that it is stripped."""
        vmlinux(tmp_path / "vmlinux", symbols=False)
        _, report = run([mapping("[kernel.kallsyms]_text")], places(), tmp_path)
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.NO_SYMBOLS]


def kallsyms(path: Path, shift: int = MOVED, *, hidden: bool = False) -> Path:
    """The list of the symbols of the running kernel, with a module."""
    lines = [(LINKED + shift, "T", "_text"), (LINKED + shift, "T", "_stext")]
    lines += [(LINKED + shift + 0x1000 * i, "t", f"f{i}") for i in range(1, 512)]
    lines += [(LINKED + shift + SIZE, "T", "_etext"), (0xFFFF_FFFF_C060_0000, "t", "nft_do_chain\t[nf_tables]")]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{0 if hidden else address:016x} {kind} {name}\n" for address, kind, name in lines))
    return path


class TestKallsyms:
    """Lists of symbols where vmlinux is missing."""

    @pytest.mark.parametrize(
        "path",
        [
            "kallsyms",
            "proc/kallsyms",
            f"[kernel.kallsyms]/{KERNEL_ID}/kallsyms",
            f".build-id/{KERNEL_ID[:2]}/{KERNEL_ID[2:]}/kallsyms",
        ],
    )
    def test_found(self, tmp_path: Path, path: str) -> None:
        """Wherever `kallsyms` lies, it names kernel and modules; only that perf keeps it for the build id proves that
        it is the right one."""
        kallsyms(tmp_path / path)
        module = Mapping(0xFFFF_FFFF_C060_0000, 0xFFFF_FFFF_C061_0000, 0, "[nf_tables]")
        names, report = run(
            [mapping("[kernel.kallsyms]_text"), module], [*places(), Place(0xFFFF_FFFF_C060_0010, 2)], tmp_path
        )
        assert names == ["f3", "f70", "f400", "nft_do_chain"]
        assert [row.files for row in report.mappings] == [[str(tmp_path / path)]] * 2
        assert [row.verified for row in report.mappings] == [KERNEL_ID[2:] in path, False]

    def test_vmlinux_is_better(self, tmp_path: Path) -> None:
        """Where the image of the build is there, it is used."""
        kallsyms(tmp_path / "kallsyms")
        vmlinux(tmp_path / "vmlinux")
        assert run([mapping("[kernel.kallsyms]_text")], places(), tmp_path)[1].mappings[0].verified

    def test_of_another_build(self, tmp_path: Path) -> None:
        """A list that perf keeps for another build id does not count."""
        kallsyms(tmp_path / "[kernel.kallsyms]" / ("ff" * 20) / "kallsyms")
        names, report = run([mapping("[kernel.kallsyms]_text")], places(), tmp_path)
        assert names == ["", "", ""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.NOT_FOUND]

    def test_from_another_run(self, tmp_path: Path) -> None:
        """A list from another start of the kernel is moved; the modules are somewhere else then, and stay unnamed."""
        kallsyms(tmp_path / "kallsyms", MOVED + 0x40_0000)
        kernel = mapping("[kernel.kallsyms]_text")._replace(limit=0xFFFF_FFFF_C100_0000)
        modules = [Place(each, 1) for each in (0xFFFF_FFFF_BFFF_0000, 0xFFFF_FFFF_C060_0010 - 0x40_0000)]
        names, report = run([kernel], [*places(), *modules], tmp_path)
        assert names == ["f3", "f70", "f400", "", ""]
        assert "moved by -0x400000" in report.mappings[0].tried[-1][1]

    def test_system_map(self, tmp_path: Path) -> None:
        """`System.map` has the addresses of vmlinux; that of the release is taken."""
        kallsyms(tmp_path / "boot" / f"System.map-{RELEASE}", 0)
        (tmp_path / "boot" / "System.map-5.10").write_text(f"{LINKED:x} T _text\n{LINKED + SIZE:x} T _etext\n")
        module = Mapping(0xFFFF_FFFF_C060_0000, 0xFFFF_FFFF_C061_0000, 0, f"/lib/modules/{RELEASE}/kernel/net/x.ko")
        names, _ = run([mapping("[kernel.kallsyms]_text"), module], places(), tmp_path)
        assert names == ["f3", "f70", "f400"]

    def test_lists_of_several_kernels(self, tmp_path: Path) -> None:
        """Of the lists of several builds or runs none is taken where nothing tells which; that of the run fits as it
        is. Addresses fall into functions of any kernel (rule R124)."""
        other = "".join(f"{LINKED + 0x1000 * i:x} T g{i}\n" for i in range(500))
        (tmp_path / "System.map-5.10").write_text(f"{LINKED:x} T _text\n{other}{LINKED + SIZE - 0x1000:x} T _etext\n")
        kallsyms(tmp_path / f"System.map-{RELEASE}", 0)
        names, report = run([mapping("[kernel.kallsyms]_text")], places(), tmp_path)
        assert names == ["", "", ""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.AMBIGUOUS]
        assert "System.map-5.10" in report.mappings[0].detail
        kallsyms(tmp_path / "run" / "kallsyms")
        kallsyms(tmp_path / "another run" / "kallsyms", MOVED + 0x40_0000)
        names, report = run([mapping("[kernel.kallsyms]_text")], places(), tmp_path)
        assert names == ["f3", "f70", "f400"]
        assert report.mappings[0].files == [str(tmp_path / "run" / "kallsyms")]

    @pytest.mark.parametrize("path", ["kallsyms", "boot/System.map", "[guest.kernel.kallsyms]/kallsyms"])
    @pytest.mark.parametrize("is_guest", [False, True])
    def test_of_guests_and_hosts(self, tmp_path: Path, path: str, is_guest: bool) -> None:
        """Without a build id a list of the host never names the kernel of a guest, nor one of a guest the host's
        (rule R124)."""
        kallsyms(tmp_path / path)
        name = "[guest.kernel.kallsyms]_text" if is_guest else "[kernel.kallsyms]_text"
        names, report = run([mapping(name, build_id="")], places(), tmp_path)
        assert names == (["f3", "f70", "f400"] if path.startswith("[guest") == is_guest else [""] * 3)
        vmlinux(tmp_path / "vmlinux")
        if not report.symbolized_locations:
            assert (run([mapping(name, build_id="")], places(), tmp_path)[0] == [""] * 3) == is_guest

    def test_hidden_addresses(self, tmp_path: Path) -> None:
        """A list that was read without the right to see addresses is a reason of its own (rule R124)."""
        kallsyms(tmp_path / "kallsyms", hidden=True)
        names, report = run([mapping("[kernel.kallsyms]_text")], places(), tmp_path)
        assert names == ["", "", ""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.RESTRICTED]
        assert "all addresses are 0" in report.mappings[0].detail

    def test_of_another_machine(self, tmp_path: Path) -> None:
        """A list in whose functions the addresses do not lie is refused."""
        (tmp_path / "kallsyms").write_text("c0008000 T _text\nc0008010 T _etext\n")
        names, report = run([mapping("[kernel.kallsyms]_text")], places(), tmp_path)
        assert names == ["", "", ""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.MISFIT]

    def test_nothing_there(self, tmp_path: Path) -> None:
        """Without any source the report names what would help."""
        names, report = run([mapping("[nf_tables]", build_id="")], places(), tmp_path)
        assert names == ["", "", ""]
        assert [reason for reason, _, _ in report.mappings[0].misses] == [Reason.NOT_A_FILE]
        assert "kallsyms" in HINTS[Reason.NOT_A_FILE]


class TestOtherKernels:
    """What refutes a vmlinux or a list of symbols (rule R465)."""

    def named(
        self, root: Path, *, release: str = "", machine: str = "", end: int = LINKED + MOVED + SIZE
    ) -> tuple[list[str], MappingRow]:
        """The names in a recording of perf, which says such things of its kernel, and the row of the kernel."""
        form, event = w.LITTLE, w.Event()
        start = LINKED + MOVED
        records = [form.mmap(event, -1, start, end - start, "[kernel.kallsyms]_text", start, w.KERNEL)]
        records += [form.comm(event, 7, "app")]
        records += [
            form.sample(event, w.KERNEL, pid=7, time=9, ip=LINKED + MOVED + 0x1000 * i + 5, chain=[])
            for i in (3, 70, 400)
        ]
        features = {4: form.text(release), 6: form.text(machine)}
        profile = symbolize.load(io.BytesIO(form.file([event], records, features)))
        assert (profile.machine, profile.kernel_release) == (machine, release)
        with Symbolizer([root]) as symbolizer:
            result = symbolizer.symbolize(profile)
        lines, text = result.profile.locations.lines, result.profile.strings.text
        (row,) = (row for row in result.report.mappings if row.locations)
        return [text(each) for each in result.profile.functions.name[lines.function]], row

    def refuted(self, root: Path, why: str, **facts: Any) -> None:
        """Assert that nothing is named, for a reason."""
        names, row = self.named(root, **facts)
        assert names == []
        assert [reason for reason, _, _ in row.misses] == [Reason.MISFIT]
        assert why in row.detail

    def test_release(self, tmp_path: Path) -> None:
        """A list whose own name has another release than the recording is refused; one that has the same, or none,
        is not."""
        path = kallsyms(tmp_path / f"System.map-{RELEASE}", 0)
        self.refuted(tmp_path, f"release {RELEASE}", release="6.18.44")
        names, row = self.named(tmp_path, release=RELEASE)
        assert names == ["f3", "f70", "f400"]
        assert row.outcome.sureness == "unverified: same release of the kernel"
        path.rename(tmp_path / "System.map")
        assert self.named(tmp_path, release="6.18.44")[0] == ["f3", "f70", "f400"]
        folder = tmp_path / "lib" / "modules" / RELEASE
        folder.mkdir(parents=True)
        (tmp_path / "System.map").rename(folder / "System.map")
        self.refuted(tmp_path, f"release {RELEASE}", release="6.18.44")

    def test_release_of_vmlinux(self, tmp_path: Path) -> None:
        """Without a build id a vmlinux of another release is none; one without a release in its name may be."""
        vmlinux(tmp_path / f"vmlinux-{RELEASE}")
        names, row = self.named(tmp_path, release="6.18.44")
        assert names == []
        assert [reason for reason, _, _ in row.misses] == [Reason.NOT_FOUND]
        vmlinux(tmp_path / "vmlinux")
        assert self.named(tmp_path, release="6.18.44")[0] == ["f3", "f70", "f400"]
        assert self.named(tmp_path, release=RELEASE)[0] == ["f3", "f70", "f400"]

    def test_machine(self, tmp_path: Path) -> None:
        """The machine of a vmlinux and the bits of a list have to be those of the recording."""
        vmlinux(tmp_path / "vmlinux")
        self.refuted(tmp_path, "aarch64", machine="aarch64")
        assert self.named(tmp_path, machine="x86_64")[0] == ["f3", "f70", "f400"]
        # A kernel of 64 bits may call itself one of 32 where a program of 32 bits asks.
        assert self.named(tmp_path, machine="i686")[0] == ["f3", "f70", "f400"]
        (tmp_path / "vmlinux").unlink()
        (tmp_path / "kallsyms").write_text("c0008000 T _text\nc0009000 T f\nc1008000 T _etext\n")
        self.refuted(tmp_path, "32 bits")

    def test_bits_of_a_recording(self, tmp_path: Path) -> None:
        """A list of 64 bits is refused for a kernel whose addresses have 32, however far it would be moved."""
        kallsyms(tmp_path / "kallsyms")
        recorded = Mapping(0xC000_8000, 0xC100_0000, 0xC000_8000, "[kernel.kallsyms]_text", KERNEL_ID)
        names, report = run([recorded], [Place(0xC000_B005)], tmp_path)
        assert names == [""]
        assert "64 bits" in report.mappings[0].detail

    def test_length(self, tmp_path: Path) -> None:
        """A list of another length of code is refused, if the recording ends where the code does: at no border of
        pages. The end may be that of the data too."""
        for path in (kallsyms(tmp_path / "kallsyms"), vmlinux(tmp_path / "vmlinux", etext=SIZE)):
            self.refuted(tmp_path, "0x200000 bytes of code", end=LINKED + MOVED + SIZE + 8)
            assert self.named(tmp_path)[0] == ["f3", "f70", "f400"]
            assert self.named(tmp_path, end=0xFFFF_FFFF_C000_0000)[0] == ["f3", "f70", "f400"]
            path.unlink()
        path = kallsyms(tmp_path / "kallsyms")
        path.write_text(path.read_text().replace(" f511\n", f" f511\n{LINKED + MOVED + SIZE + 8:016x} D _edata\n"))
        names, row = self.named(tmp_path, end=LINKED + MOVED + SIZE + 8)
        assert names == ["f3", "f70", "f400"]
        assert row.outcome.sureness == "unverified: same length of the kernel"

    @pytest.mark.parametrize("shift", [MOVED + 0x10_0000, MOVED - 0x1000, MOVED - LINKED + 0xFFFF_8000_0800_0000])
    def test_shift(self, tmp_path: Path, shift: int) -> None:
        """A list for which the kernel would be moved as none is, is refused."""
        kallsyms(tmp_path / "kallsyms", shift)
        self.refuted(tmp_path, "moved", end=0xFFFF_FFFF_C000_0000)

    def test_files_that_are_called_like_a_list(self, tmp_path: Path) -> None:
        """A file that only is called like a list is none: nothing is said of it."""
        (tmp_path / "kallsyms.py").write_text('"""The kernel\'s list of its symbols."""\n')
        (tmp_path / "System.map-tools").write_text("how to read it\n")
        names, row = self.named(tmp_path)
        assert names == []
        assert [reason for reason, _, _ in row.misses] == [Reason.NOT_FOUND]
        kallsyms(tmp_path / "kallsyms")
        assert self.named(tmp_path)[0] == ["f3", "f70", "f400"]

    def test_lists_that_give_the_same_names(self, tmp_path: Path) -> None:
        """Lists that differ elsewhere are one; those that differ in what is asked are a choice that nothing decides."""
        kallsyms(tmp_path / "kallsyms")
        other = kallsyms(tmp_path / "more" / "kallsyms")
        other.write_text(other.read_text().replace("t f5\n", "t other\n"))
        assert self.named(tmp_path)[0] == ["f3", "f70", "f400"]
        other.write_text(other.read_text().replace("t f70\n", "t g70\n"))
        names, row = self.named(tmp_path)
        assert names == []
        assert [reason for reason, _, _ in row.misses] == [Reason.AMBIGUOUS]

    @pytest.mark.parametrize(("shift", "wanted"), [(0, "nft_do_chain"), (0x20_0000, "")])
    def test_modules(self, tmp_path: Path, shift: int, wanted: str) -> None:
        """A list that does not fit the kernel of the recording as it is names no modules either."""
        kallsyms(tmp_path / "kallsyms", MOVED + shift)
        module = Mapping(0xFFFF_FFFF_C060_0000, 0xFFFF_FFFF_C061_0000, 0, "[nf_tables]")
        kernel = mapping("[kernel.kallsyms]_text", build_id="")
        assert run([kernel, module], [Place(0xFFFF_FFFF_C060_0010)], tmp_path)[0] == [wanted]

    def test_releases_of_merged_profiles(self) -> None:
        """Profiles of different kernels are of none together."""
        form, event = w.LITTLE, w.Event()
        profiles = []
        for release in ("6.1.0", "6.18.44"):
            records = [form.sample(event, w.KERNEL, pid=7, ip=LINKED, chain=[])]
            features = {4: form.text(release), 6: form.text("x86_64")}
            profiles.append(symbolize.load(io.BytesIO(form.file([event], records, features))))
        merged = symbolize.merge(profiles)
        assert (merged.machine, merged.kernel_release) == ("x86_64", "")


class TestShifts:
    """Candidates for where the kernel was moved to."""

    def shifts(self, anchor: str, start: int, file_offset: int, symbols: dict[str, int]) -> list[int]:
        """How far a kernel may have been moved."""
        recorded = RecordedKernel("", "", anchor, start, 0, file_offset, LINKED)
        return [shift.distance for shift in shifts(recorded, symbols)]

    def test_order(self) -> None:
        """The symbol in the name decides; else `_stext` comes first, then `_text`, then the kernel as linked (rule
        R124)."""
        known = {"_stext": LINKED + 0x20_0000, "_text": LINKED}
        at = LINKED + MOVED
        assert self.shifts("_text", at, at, known) == [MOVED]
        assert self.shifts("", at, 0, known) == [MOVED - 0x20_0000, MOVED, 0]
        assert self.shifts("", 0, 0x1000, known) == [0]
        assert self.shifts("_other", at, at, known) == [MOVED - 0x20_0000, MOVED, 0]

    def test_start_rounded_to_a_page(self) -> None:
        """A kernel is moved by whole pages, even where its mapping was rounded."""
        assert self.shifts("_stext", LINKED + MOVED, 0, {"_stext": LINKED + 0x10}) == [MOVED]

    @pytest.mark.parametrize(
        ("text", "distance", "is_possible"),
        [
            (LINKED, 0x20_0000, True), (LINKED, 0x1_0000, False), (LINKED, -0x20_0000, True),
            (LINKED, -0x1_0000_0000, False), (0xFFFF_8000_0800_0000, 0x1_0000, True),
            (0xFFFF_8000_0800_0000, 0x1000, False), (0xFFFF_8000_0800_0000, 0x7FFF_7900_0000, False),
        ],
    )  # fmt: skip
    def test_distances(self, text: int, distance: int, is_possible: bool) -> None:
        """Kernels of x86-64 are moved by multiples of 2 MiB and stay in the last 2 GiB, others by those of 64 KiB."""
        assert self.shifts("_text", text + distance, 0, {"_text": text}) == ([distance % TOP] if is_possible else [])


A, B = "ab" * 20, "cd" * 20
LISTS = [
    "kallsyms",
    f"[kernel.kallsyms]/{A}/kallsyms",
    f"x/[kernel.kallsyms]/{B}/kallsyms",
    f".build-id/{A[:2]}/{A[2:]}/kallsyms",
    f"{B[:2]}/{B[2:]}/kallsyms",
    f"{A}/other/kallsyms",
    f"[guest.kernel.kallsyms]/{A}/kallsyms",
    "[guest.kernel.kallsyms.7]/x/kallsyms",
]
MAPS = ["boot/System.map", "boot/System.map-6.1", "System.map-6.2"]


@pytest.mark.parametrize(
    ("build_id", "release", "is_guest", "chosen", "is_proof"),
    [
        (A, "6.1", False, [1, 3], True),
        (B, "6.1", False, [2, 4], True),
        ("ef" * 20, "6.1", False, [0, 5, 9, 10], False),  # of no other build
        ("", "6.1", False, [0, 1, 2, 3, 4, 5, 9, 10], False),
        ("", "", False, [0, 1, 2, 3, 4, 5, 8, 9, 10], False),
        (A, "6.1", True, [6], True),
        (B, "6.1", True, [7], False),
        ("", "6.1", True, [6, 7], False),
    ],
)
def test_which_lists_count(build_id: str, release: str, is_guest: bool, chosen: list[int], is_proof: bool) -> None:
    """A list that is kept for a build id, in one folder or two, counts for that one; those of guests for guests; and
    that of the release comes in place of one that does not say of which it is."""

    class Files:
        def of_kind(self, kind: str) -> list[SpecialFile]:
            return [SpecialFile(f"/{path}", 0, path) for path in (LISTS if kind == "kallsyms" else MAPS)]

    found = list_files(Files(), build_id, release, is_guest)  # type: ignore[arg-type]
    assert [(file.relative, proves) for file, proves in found] == [([*LISTS, *MAPS][row], is_proof) for row in chosen]
