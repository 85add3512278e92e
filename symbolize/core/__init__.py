"""What any package may use and none may write again. Knows nothing of profiles or ELF."""
