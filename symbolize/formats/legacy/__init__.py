"""The text profiles of gperftools, jemalloc, Go and of tools that write like these."""
