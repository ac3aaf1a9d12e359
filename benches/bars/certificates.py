#!/usr/bin/env python3
"""A folder of a thousand certificates: how long it takes to load, what that costs whoever serves, and what a full handshake costs beside a listener with
one name. Needs `valgrind` for the instructions. Builds no evenkeel; takes two minutes."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import lab  # noqa: E402
from cache_lab import Verdicts  # noqa: E402
from reload_lab import Fakes, Folder, Running  # noqa: E402

# All of a folder, in seconds, and one turn of a worker's loop in milliseconds of its own CPU time.
LOADED, STALL_MS = 1.0, 5.0
# Instructions of a full handshake beside those with one name.
MORE = 1.03


def config(folder, port, name):
    return (f"watch: off\nworkers: 1\nlog_format: json\nlisteners:\n  front:\n    bind: 127.0.0.1:0\n    protocol: https\n    tls: {{certificates: [{{dir: "
            f"{folder.file(name)}}}]}}\n    routes: [{{target: web}}]\ntargets:\n  web: {{health_check: off, backends: [{{host: 127.0.0.1, port: {port}}}]}}\n")


class Server(Running):
    """One of those under test, in a folder of its own."""

    def __init__(self, text, *under):
        self.own, self.under = Folder(), under
        super().__init__(text, self.own)
        lab.wait_until("the listener", lambda: self.said("listening"))


def counted(options, text, folder, names, seconds):
    """Instructions of a whole run with so many seconds of full handshakes, one after the other, and how many those were."""
    profile = folder.file("profile")
    server = Server(text, "valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", "--dump-line=no")
    words = [lab.program("rig"), "crowd", "--https", f"127.0.0.1:{server.port('front')}", "--trust", folder.file("sets", "ca.pem"),
             "--handshakes", str(options.rate), "--seconds", str(seconds)]
    for name in names:
        words += ["--host", name]
    seen = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1])["handshake"]
    server.end()
    if seen["failed"] or not seen["begun"]:
        raise SystemExit(f"handshakes failed: {seen}")
    with open(profile) as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(("summary:", "totals:"))), seen["begun"]


def handshakes(options, text, folder, names):
    """Instructions for one full handshake: a long run less a short one."""
    (few, first), (many, second) = [counted(options, text, folder, names, seconds) for seconds in (2, 2 + options.seconds)]
    return (many - few) / (second - first)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=1000)
    parser.add_argument("--reloads", type=int, default=10)
    parser.add_argument("--rate", type=int, default=15, help="full handshakes a second, under valgrind")
    parser.add_argument("--seconds", type=int, default=12, help="of handshakes that are counted")
    options = parser.parse_args()
    verdict = Verdicts()
    folder, names = Folder(), [f"name{number}.test" for number in range(options.names)]
    try:
        for name in ("sets", "many", "one"):
            os.mkdir(folder.file(name))
        hosts = [word for name in names for word in ("--host", name)]
        subprocess.run([lab.program("rig"), "certificate", folder.file("sets"), "--sets", "2", *hosts], check=True)
        for name in names:
            for kind in ("pem", "key"):
                shutil.copyfile(folder.file("sets", "0", f"{name}.{kind}"), folder.file("many", f"{name}.{kind}"))
        for kind in ("pem", "key"):
            shutil.copyfile(folder.file("sets", "0", f"{names[0]}.{kind}"), folder.file("one", f"{names[0]}.{kind}"))
        port = Fakes(1).ports[0]

        began = time.monotonic()
        many = Server(config(folder, port, "many"))
        started = time.monotonic() - began
        took, stalls = [], []
        for number in range(options.reloads):
            for kind in ("pem", "key"):
                target = folder.file("many", f"{names[number]}.{kind}")
                shutil.copyfile(folder.file("sets", "1", f"{names[number]}.{kind}"), target + ".new")
                os.replace(target + ".new", target)
            before = many.workers()
            said, seconds = many.reload()
            if "refused" in said["message"]:
                raise SystemExit(said["message"])
            time.sleep(0.3)
            after = many.workers()
            took.append(seconds)
            stalls.append(max(after[name] - before[name] for name in after) / 1e6)
        verdict("a folder loads", max(started, *took) <= LOADED,
                f"{options.names} certificates: started in {started:.2f} s, loaded again {options.reloads} times in {statistics.median(took):.2f} s, at most "
                f"{max(took):.2f} s (bar: {LOADED} s)")
        verdict("nobody waits for it", max(stalls) <= STALL_MS,
                f"each time the worker has spent {statistics.median(stalls):.2f} ms of CPU in all, at most {max(stalls):.2f} ms (bar: {STALL_MS} ms in one turn)")

        many.end()
        cost = {name: handshakes(options, config(folder, port, name), folder, all_of)
                for name, all_of in (("one", names[:1]), ("many", names))}
        ratio = cost["many"] / cost["one"]
        verdict("a handshake among many names", ratio <= MORE,
                f"{cost['many']:,.0f} instructions with {options.names} names, {cost['one']:,.0f} with one: {ratio:.3f} (bar: {MORE})")
    finally:
        lab.Process.end_all()
        folder.end()
    verdict.end()


if __name__ == "__main__":
    main()
