"""Sources of names for mappings that no file on disk was mapped for: kernel, vdso, archives, compiled code."""

from symbolize.special.find import SpecialSources
from symbolize.special.source import Recorded, Source

__all__ = ["Recorded", "Source", "SpecialSources"]
