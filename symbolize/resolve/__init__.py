"""Which binary answers for a mapping, of all that may: one choice for every kind of evidence. Knows no formats."""

from symbolize.resolve.choice import Candidate, Choice, Verdict, choose
from symbolize.resolve.opened import OpenBinaries
from symbolize.resolve.placing import calls_of, judge, place_in_images

__all__ = ["Candidate", "Choice", "OpenBinaries", "Verdict", "calls_of", "choose", "judge", "place_in_images"]
