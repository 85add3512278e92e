"""What is written into a profile after a lookup: frames, names, annotations."""
