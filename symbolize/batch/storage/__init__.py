"""Where inputs are found and files are put: folders and object stores. Knows nothing of profiles."""
