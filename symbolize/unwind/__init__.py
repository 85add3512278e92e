"""Unwinds copies of stacks by the call frame information of their binaries."""
