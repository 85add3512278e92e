"""What any package may use and none may write again. Knows nothing of profiles or ELF."""

import importlib.util
import os
import sys

if not importlib.util.find_spec("cython"):
    compiled = importlib.util.find_spec("symbolize.core.cursor")
    if importlib.util.find_spec("symbolize.core.cython_shadow"):
        # Where nothing was compiled, setup.py put a copy of what `import cython` needs here.
        sys.modules["cython"] = importlib.import_module("symbolize.core.cython_shadow")
    elif compiled is not None and (compiled.origin or "").endswith(".py"):
        raise ImportError(
            f"{os.path.dirname(__path__[0])} has the sources of symbolize, which are not compiled: run Python in "
            "another folder, or with -P, to import what is installed; or compile them with `pip install -e .`"
        )
