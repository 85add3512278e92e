"""perf.data as Linux perf writes it, in files and pipes."""
