"""Runs one command and prints what it cost, as JSON. A process of its own, and a small one.

    python -I -S launch.py SECONDS STDIN STDOUT COMMAND...

Linux counts the memory of the process that starts another one into the peak of the new one, so that a large starter
would hide the peak of a small command.
"""

import json
import os
import signal
import subprocess
import sys
import time


def main() -> None:
    """Run the command to its end, or until SECONDS have passed."""
    limit, source, target, *command = sys.argv[1:]
    with open(source, "rb") as stdin, open(target, "wb") as stdout, open(target + ".errors", "wb") as stderr:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr)
        timed_out = False

        def stop(*_: object) -> None:
            nonlocal timed_out
            timed_out = True
            process.kill()

        signal.signal(signal.SIGALRM, stop)
        signal.alarm(int(limit))
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        signal.alarm(0)
        process.returncode = os.waitstatus_to_exitcode(status)
    cost = {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss / 1024}
    print(json.dumps({"code": process.returncode, "timed_out": timed_out, "cost": cost}))


if __name__ == "__main__":
    main()
