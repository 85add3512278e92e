"""Prints what is found in the stacks of seeds of the fuzzer, with and without damage: to compare two modes."""

import hashlib
import sys

from symbolize.core.cursor import COMPILED
from tools.fuzz.stacks import found_in


def digest(seed: int) -> str:
    """What is found with a seed, as a few letters."""
    return hashlib.sha256(repr(found_in(seed)).encode()).hexdigest()


if __name__ == "__main__":
    print(COMPILED)
    for seed in range(int(sys.argv[1])):
        print(digest(seed), seed)
