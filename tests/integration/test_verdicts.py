"""How sure a binary is: who may name, what is said of it in every output, and one binary without a memory map."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

import symbolize
from symbolize import Profile, Reason
from symbolize.cli.main import main
from symbolize.core.verdict import Verdict
from symbolize.elf import read_build_id
from symbolize.formats.outputs import OUTPUTS, Output
from symbolize.profile import IdOrigin, caveats_of, with_caveats
from symbolize.serve.profiles import short
from tests.support.fixture_files import BINARIES, GPERFTOOLS
from tests.support.made_builds import leaf, of_tool, program

CAVEAT = "not proved to be what ran: "
BUILD = "gcc-nopie-dwarf4"
RECORDED = next(path for path in GPERFTOOLS if path.name == f"ledger-{BUILD}.prof")
FOLDER = BINARIES / BUILD


def without_map(profile: Profile) -> Profile:
    """A profile as text formats have it that record no memory map: only what was in the program itself."""
    program = profile.locations.mapping == 0
    result = symbolize.load(RECORDED)
    result.samples = profile.samples.taken(np.ones(len(profile.samples), np.bool_), program)
    result.mappings = type(profile.mappings)()
    result.locations.mapping = np.full(len(profile.locations), -1, np.int32)
    return result


class TestAccept:
    """The least verdict that names."""

    @pytest.mark.parametrize(("accept", "names"), [("unverified", True), ("supported", True), ("proved", False)])
    def test_supported(self, accept: str, names: bool) -> None:
        """A profile without build ids, whose program fits what was sampled."""
        report = symbolize.symbolize(RECORDED, FOLDER, symbolize.Options(accept=accept)).report
        (row,) = (row for row in report.mappings if row.name.endswith("/ledger"))
        assert (row.symbolized_locations > 0) is names
        if names:
            assert row.verdict is Verdict.SUPPORTED and "call sites lie in a call" in row.evidence
        else:
            assert [reason for reason, _, _ in row.misses] == [Reason.UNCONFIRMED]
            assert f"{FOLDER / 'ledger'} is supported: " in row.detail

    def test_command(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        """--fail-under counts what was accepted; another word is a usage error."""
        arguments = [str(RECORDED), "-b", str(FOLDER), "-o", str(tmp_path / "o.pb.gz"), "--fail-under", "50"]
        assert main([*arguments, "--accept", "supported"]) == 0
        assert main([*arguments, "--accept", "proved"]) == 3
        assert "--accept says how sure a file has to be" in " ".join(capsys.readouterr().out.split())
        with pytest.raises(symbolize.UsageError, match="proved, supported, unverified"):
            symbolize.Options(accept="refuted")


class TestCaveats:
    """What is not proved is said where names are shown."""

    def test_a_path_that_is_no_text(self, tmp_path: Path) -> None:
        """A mapping without a name is called by the file, whatever bytes its path has."""
        build_id = "5a" * 20
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/tool\xff")).write_bytes(program(build_id=build_id))
        made = of_tool([leaf(number) for number in range(64)], name="", build_id=build_id)
        made.id_origins = np.full(len(made.mappings), IdOrigin.READ_LATER, np.uint8)
        result = symbolize.symbolize(made, tmp_path)
        (text,) = caveats_of(result.profile)
        assert "tool\\xdcff, 100.0 % (supported: " in text

    def test_each_once(self) -> None:
        """A sentence that a profile has already is there once; earlier ones stay where earlier names do."""
        made = symbolize.symbolize(RECORDED, FOLDER).profile
        (text,) = caveats_of(made)
        assert caveats_of(with_caveats(made, [text], keeps_earlier=True)) == [text]
        assert caveats_of(with_caveats(made, [f"{text}!"], keeps_earlier=True)) == [text, f"{text}!"]
        assert caveats_of(with_caveats(made, [f"{text}!"], keeps_earlier=False)) == [f"{text}!"]
        assert caveats_of(with_caveats(made, [], keeps_earlier=False)) == []

    @pytest.mark.parametrize("output", [each for each in OUTPUTS if each.name not in ("folded", "csv", "parquet")])
    def test_outputs(self, output: Output, tmp_path: Path) -> None:
        """Each output that has a place for it has the sentence, with the share of the value."""
        path = tmp_path / f"x{output.endings[0]}"
        symbolize.symbolize(RECORDED, FOLDER).write(path)
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        assert f"{CAVEAT}ledger, ".encode() in data and b" % (supported: " in data

    def test_reading_again(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The sentence comes along with a symbolized profile, is shown of it, and stands once after another run."""
        first, second = tmp_path / "a.pb.gz", tmp_path / "b.pb.gz"
        symbolize.symbolize(RECORDED, FOLDER).write(first)
        for command in ("top", "tree"):
            assert main([command, str(first)]) == 0
            assert CAVEAT in capsys.readouterr().err
        symbolize.symbolize(first, FOLDER).write(second)
        again = symbolize.load(second)
        assert sum(again.strings.text(number).startswith(CAVEAT) for number in again.comments) == 1

    def test_server(self) -> None:
        """The header of a profile that is sent back has the sentence, and stays short."""
        report = symbolize.symbolize(RECORDED, FOLDER).report
        assert json.loads(short(report))["caveats"] == report.caveats != []
        report.own_warnings = ["\N{SNOWMAN}" * 1000] * 100
        assert len(short(report)) <= 8 << 10 and json.loads(short(report))["caveats"] == report.caveats

    def test_what_is_proved(self, tmp_path: Path) -> None:
        """Nothing is said of it."""
        profile = symbolize.load(RECORDED)
        names = profile.strings.texts(profile.mappings.filename.tolist())
        (at,) = (row for row, name in enumerate(names) if name.endswith("/ledger"))
        build_id = read_build_id(str(FOLDER / "ledger")) or ""
        profile.mappings.build_id = profile.mappings.build_id.copy()
        profile.mappings.build_id[at] = profile.strings.add(build_id.encode())
        symbolize.symbolize(profile, FOLDER).write(tmp_path / "x.speedscope.json")
        assert json.loads((tmp_path / "x.speedscope.json").read_text())["exporter"] == "symbolize"


class TestOneBinaryWithoutMap:
    """R373: addresses of a profile without a memory map are those of the only binary."""

    def test_program_at_fixed_addresses(self) -> None:
        """It is named as a file; the names are those that the profile with its map gets."""
        profile = without_map(symbolize.load(RECORDED))
        found = symbolize.symbolize(profile, FOLDER / "ledger")
        assert found.report.leaf_percent == 100.0
        assert found.report.caveats[0].startswith(f"{CAVEAT}ledger, 100.0 % (")
        whole = symbolize.symbolize(RECORDED, FOLDER).profile
        names = {frame.address: frame.function for stack in whole.stacks() for frame in stack}
        assert {
            frame.address: frame.function for stack in found.profile.stacks() for frame in stack
        }.items() <= names.items()

    def test_a_folder_names_no_binary(self) -> None:
        """Which of its files it was is not known."""
        report = symbolize.symbolize(without_map(symbolize.load(RECORDED)), FOLDER).report
        assert [reason for row in report.mappings for reason, _, _ in row.misses] == [Reason.NO_MAPPING]

    @pytest.mark.parametrize(
        ("other", "why"),
        [
            (BINARIES / "gcc-pie" / "ledger", "position-independent"),
            (BINARIES / "clang-nopie-dwarf4-lld" / "ledger", "is refused"),
            (FOLDER / "spectra", "is refused"),
        ],
    )
    def test_another_binary(self, other: Path, why: str) -> None:
        """One that may be anywhere, and one that what was sampled does not fit, name nothing."""
        report = symbolize.symbolize(without_map(symbolize.load(RECORDED)), other).report
        assert report.symbolized_locations == 0
        assert why in report.mappings[0].detail
