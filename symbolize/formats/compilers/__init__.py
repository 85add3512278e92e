"""Profiles that compilers read: how often the code of a program was sampled, as each of them counts it."""
