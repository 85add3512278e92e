"""Binaries and debug information from debuginfod servers. Knows no profiles; the network is only used when asked for.

Not imported by `symbolize.binaries`: who wants it imports it from here.
"""

from symbolize.binaries.debuginfod.cache import ClientCache, default_folder
from symbolize.binaries.debuginfod.client import Debuginfod
from symbolize.binaries.debuginfod.sections import NEEDED
from symbolize.binaries.debuginfod.server import Server
from symbolize.binaries.debuginfod.types import Fetched, Limits, Progress, Status
from symbolize.binaries.remote import Kind

__all__ = [
    "NEEDED",
    "ClientCache",
    "Debuginfod",
    "Fetched",
    "Kind",
    "Limits",
    "Progress",
    "Server",
    "Status",
    "default_folder",
]
