"""What any package may use and none may write again. Knows nothing of profiles or ELF."""

import importlib.util
import sys

# Where nothing was compiled, setup.py put a copy of what `import cython` needs here.
if importlib.util.find_spec("symbolize.core.cython_shadow") and not importlib.util.find_spec("cython"):
    sys.modules["cython"] = importlib.import_module("symbolize.core.cython_shadow")
