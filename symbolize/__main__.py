"""`python -m symbolize`."""

import sys

from symbolize.cli import main

sys.exit(main())
