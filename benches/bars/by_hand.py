#!/usr/bin/env python3
"""Changes by hand: 300 kills of a real process, and 100,000 interleavings in memory. Both are tests; this runs them at full length.
See README.md beside this file."""

import os
import subprocess
import sys

RUNS = [
    ("100,000 interleavings", {"EVENKEEL_INTERLEAVINGS": "100000"}, ["--lib", "--", "reload::kept::tests::interleavings::whatever"]),
    ("300 kills", {"EVENKEEL_KILLS": "300"}, ["--test", "e2e", "--", "by_hand_kills::"]),
]


def main():
    cargo = sys.argv[1:] or ["cargo"]
    failed = False
    for name, variables, words in RUNS:
        done = subprocess.run([*cargo, "test", "--release", *words], env={**os.environ, **variables})
        failed |= done.returncode != 0
        print(f"{'FAIL' if done.returncode else 'ok  '}  {name}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
