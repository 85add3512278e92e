"""Runs one command and prints what it cost, as JSON. A process of its own, and a small one.

    python -I -S launch.py SECONDS STDIN STDOUT COMMAND...

Linux counts the memory of the process that starts another one into the peak of the new one, so that a large starter
would hide the peak of a small command. What a command leaves behind is waited for: its CPU and memory count, `wall` is
that of the command, `ended` that of all.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36


def stop(*_: object) -> None:
    """End the waiting."""
    raise TimeoutError


def main() -> None:
    """Run the command to its end, or until SECONDS have passed."""
    limit, source, target, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with open(source, "rb") as stdin, open(target, "wb") as stdout, open(target + ".errors", "wb") as stderr:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr)
        signal.signal(signal.SIGALRM, stop)
        signal.alarm(int(limit))
        wall = ended = cpu = memory = 0.0
        timed_out = False
        try:
            while True:
                pid, status, usage = os.wait3(0)
                ended = time.perf_counter() - start
                cpu, memory = cpu + usage.ru_utime + usage.ru_stime, max(memory, usage.ru_maxrss)
                if pid == process.pid:
                    wall, process.returncode = ended, os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            pass
        except TimeoutError:
            timed_out = True
            process.kill()
            process.wait()
    cost = {"wall": wall, "ended": ended, "cpu": cpu, "memory": memory / 1024}
    print(json.dumps({"code": process.returncode, "timed_out": timed_out, "cost": cost}))


if __name__ == "__main__":
    main()
