#!/usr/bin/env python3
"""Changes by hand: 300 kills of a real process, and 100,000 interleavings in memory. Both are tests; this runs them at full length,
or at the one that the variable of each says. See README.md beside this file."""

import os
import subprocess
import sys

RUNS = [
    ("interleavings", "EVENKEEL_INTERLEAVINGS", "100000", ["--lib", "--", "kept::tests::interleavings::whatever"]),
    ("kills", "EVENKEEL_KILLS", "300", ["--test", "e2e", "--", "by_hand_kills::"]),
]


def main():
    cargo = sys.argv[1:] or ["cargo"]
    failed = False
    for name, variable, full, words in RUNS:
        count = os.environ.get(variable, full)
        command = [*cargo, "test", "--release", *words, "--nocapture"]
        done = subprocess.run(command, env={**os.environ, variable: count})
        failed |= done.returncode != 0
        print(f"{'FAIL' if done.returncode else 'ok  '}  {count} {name}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
