"""Traces of Perfetto: heap dumps of heapprofd, CPU samples of traced_perf and of Chromium (Perfetto wire format).

Compiled: `wire` reads messages field by field; `scan` walks the packets and keeps the state of sequences (`sequences`,
`interned_state`) with a `packet_reader`; `heaps`, `cpu` and `stack_samples` read samples, which `samples` and `totals`
add up. `packets` reads what is rare. They fill a `trace`, which has tables of `dumps`, `sessions` and `processes`;
`build` makes profiles of it, and `load` calls all of them. Field tags are constants of `proto/perfetto_trace_tags`.
"""
