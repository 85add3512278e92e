"""What an action costs: memory and processor time, measured in a process of its own."""

import json
import os
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tools.fuzz.run import limit_memory, peak, reset_peak

needs_peak = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK),
    reason="the peak of memory cannot be reset: run it where /proc/self/clear_refs can be written",
)


class Cost(NamedTuple):
    """The most bytes of memory that an action took beyond what the process had, seconds of processor time, and what it
    returned."""

    memory: int
    seconds: float
    result: Any


def cost_of(action: Callable[[], object]) -> Cost:
    """What `action`, which returns what JSON knows, costs in a child of this process, whose imports it has. It must not
    raise."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(source)
            limit_memory()
            reset_peak()
            before, start = peak(), time.process_time()
            result = action()
            os.write(sink, json.dumps([peak() - before, time.process_time() - start, result]).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(sink)
    with os.fdopen(source, "rb") as pipe:
        result = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert result, "the action raised, or its process ended"
    return Cost(*json.loads(result))
