"""Engines run tasks in other processes, of this machine or of a cluster. They know nothing of profiles."""
