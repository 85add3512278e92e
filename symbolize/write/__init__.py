"""Writing profiles."""

from symbolize.write.pprof import encode, write

__all__ = ["encode", "write"]
