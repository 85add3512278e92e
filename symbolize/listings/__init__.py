"""Symbols from sources that list functions themselves, as columns; functions over buffers, no files."""

from symbolize.listings.listing import Listing

__all__ = ["Listing"]
