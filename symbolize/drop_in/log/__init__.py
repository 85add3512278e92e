"""Puts names into the stack traces of a text, and leaves everything else as it is."""

from symbolize.drop_in.log.text import Log

__all__ = ["Log"]
