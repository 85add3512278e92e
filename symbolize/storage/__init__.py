"""Where inputs are found, and files and symbol tables are put: folders and object stores. Knows nothing of profiles."""
