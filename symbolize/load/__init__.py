"""Reading profiles: one module a format; the content decides which."""

from symbolize.load.sniff import load

__all__ = ["load"]
