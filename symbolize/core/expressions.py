"""Regular expressions of callers."""

import re
import warnings

from symbolize.core.errors import UsageError


def compiled(name: str, pattern: str, written: str = "") -> re.Pattern[str]:
    """The expression that the parameter `name` has, which was `written` another way if that is given. Raises UsageError
    for one that is none."""
    try:
        with warnings.catch_warnings():  # of sets that may mean something else in later versions of Python
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{name}: {(written or pattern)!r} is not a regular expression: {error}") from error
