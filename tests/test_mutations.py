"""The list of plausible wrong lines that tests are to notice."""

from pathlib import Path

from tools.mutations import ROOT, equivalent_changes, listed_faults


def test_the_list_fits_the_code() -> None:
    """Each line of the list is in the code, and the tests that are to notice its change are there."""
    faults = list(listed_faults([]))
    assert len({each.name for each in faults}) == len(faults) > 70
    for module, line, old, _ in equivalent_changes():
        assert old in line in [each.strip() for each in (ROOT / module).read_text().splitlines()], (module, line)
    assert [path for each in faults for path in each.tests if not (ROOT / Path(path.partition("::")[0])).exists()] == []
