"""Traces of Perfetto: heap dumps of heapprofd, CPU samples of traced_perf and of Chromium (Perfetto wire format).

`scan` reads packets into `tables`, `trace` keeps what a trace says once, `build` makes profiles, `load` puts all that
together.
"""
