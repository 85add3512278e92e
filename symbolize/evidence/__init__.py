"""Is this file the build that ran? The kinds of evidence, their weights, and the verdict."""
