"""Traces of Perfetto: heap dumps of heapprofd, CPU samples of traced_perf and of Chromium (Perfetto wire format).

Compiled: `scan` walks the packets and keeps the state of sequences (`sequences`, `interned`); `heaps`, `cpu` and
`stack_samples` read what the packets carry, `samples` adds up samples of the CPU, `tables` holds what repeats, and
`common` is what all of them share. `trace` keeps what a trace says once, `dumps` the samples of its heaps, `build`
makes profiles, `load` puts all that together.
"""
