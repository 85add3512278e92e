"""Prints whether the package runs compiled, and a digest of the profile that it makes of each file.

python tests/support/dump_profiles.py FILE...
"""

import hashlib
import sys
from pathlib import Path

from symbolize.core.cursor import COMPILED
from symbolize.formats import encode, load


def digest(path: str | Path) -> str:
    """A digest of the profile in a file."""
    return hashlib.sha256(encode(load(path))).hexdigest()


if __name__ == "__main__":
    print(COMPILED)
    for path in sys.argv[1:]:
        print(digest(path))
