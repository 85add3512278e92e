"""Binaries and debug information from debuginfod servers. Knows no profiles; the network is only used when asked for.

Not imported by `symbolize.binaries`: who wants it imports it from here.
"""

from symbolize.binaries.debuginfod.cache import ClientCache
from symbolize.binaries.debuginfod.client import Debuginfod
from symbolize.binaries.debuginfod.sections import NEEDED
from symbolize.binaries.debuginfod.server import FetchOptions, Limits, Progress, Server
from symbolize.binaries.links import default_folder
from symbolize.binaries.remote import Fetched, Kind, Status

__all__ = [
    "NEEDED",
    "ClientCache",
    "Debuginfod",
    "FetchOptions",
    "Fetched",
    "Kind",
    "Limits",
    "Progress",
    "Server",
    "Status",
    "default_folder",
]
