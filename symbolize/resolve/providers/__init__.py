"""Providers of names for mappings that no file on disk was mapped for: kernel, vdso, archives, compiled code."""

from symbolize.resolve.providers.find import SymbolProviders

__all__ = ["SymbolProviders"]
