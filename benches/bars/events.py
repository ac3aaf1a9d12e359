#!/usr/bin/env python3
"""Traffic through one steady target while 300 others flap at level debug, beside standard error that nobody takes: on a full disk,
closed, or not read. Each run with it stands beside one of the same length whose standard error is read. Builds nothing."""

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from lab import BUILT, Process, accepts, free_port, wait_until  # noqa: E402

# How long SIGTERM may take: nothing is under way by then.
END = 5


class Flapping:
    """Ports that listen and do not, in turn, each for some tenths of a second, from a process of their own."""

    def __init__(self, count):
        self.sockets = [self.bound(0) for _ in range(count)]
        self.ports = [one.getsockname()[1] for one in self.sockets]
        self.child = os.fork()
        if self.child == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                self.flap()
            finally:
                os._exit(1)
        for one in self.sockets:
            one.close()

    @staticmethod
    def bound(port):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", port))
        return one

    def flap(self):
        chance, up = random.Random(1), [False] * len(self.ports)
        while True:
            for place in range(len(self.ports)):
                if chance.random() < 0.5:
                    continue
                if up[place]:
                    self.sockets[place].close()
                    self.sockets[place] = self.bound(self.ports[place])
                else:
                    self.sockets[place].listen(64)
                up[place] = not up[place]
            time.sleep(0.3)

    def end(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


def full_pipe():
    """A pipe into which nothing more goes, and its reading end, which nobody reads."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"\n" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


class Keel(Process):
    """evenkeel with its standard error as `kind` says."""

    def __init__(self, program, config, port, kind):
        self.reader = self.kept = None
        if kind == "full":
            stderr = os.open("/dev/full", os.O_WRONLY)
        elif kind == "closed":
            reader, stderr = os.pipe()
            os.close(reader)
        elif kind == "unread":
            self.kept, stderr = full_pipe()
        else:
            reader, stderr = os.pipe()
            # Counts lines, so that a run in which nothing flapped is seen.
            self.reader = subprocess.Popen(["wc", "-l"], stdin=reader, stdout=subprocess.PIPE)
            os.close(reader)
        self.process = subprocess.Popen([program, "--config", config], stdout=subprocess.DEVNULL, stderr=stderr)
        Process.started.append(self)
        os.close(stderr)
        wait_until("evenkeel", lambda: accepts(port))

    def finish(self):
        """Exit code, how long the end took, and how many lines were read. None: it did not end in time."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = None
        took = time.monotonic() - began
        lines = int(self.reader.communicate()[0]) if self.reader else 0
        if self.kept is not None:
            os.close(self.kept)
        return code, took, lines


def run(options, config, port, kind):
    """One run: what the clients saw, and how it ended."""
    keel = Keel(options.evenkeel, config, port, kind)
    load = [options.rig, "clients", f"127.0.0.1:{port}", "--rate", str(options.rate), "--seconds", str(options.seconds), "--after", "1"]
    try:
        done = subprocess.run(load, stdout=subprocess.PIPE, timeout=options.seconds + 30)
        seen = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        # Requests without an answer: nothing to compare, and the worst there is.
        seen = {"requests": 0, "errors": options.rate * options.seconds, "p99_us": float("inf"), "slow": options.rate * options.seconds}
    seen["end"], seen["took"], seen["lines"] = keel.finish()
    return seen


def judge(kind, pairs):
    """Prints the verdict of one variant: "Unharmed", as measurements of traffic beside a change are judged."""
    ratio = statistics.median(seen["p99_us"] / max(beside["p99_us"], 1) for seen, beside in pairs)
    more = statistics.median(seen["p99_us"] - beside["p99_us"] for seen, beside in pairs) / 1000
    total = {what: [sum(pair[which][what] for pair in pairs) for which in (0, 1)] for what in ("requests", "errors", "slow")}
    late = sum(seen["end"] != 0 for seen, _ in pairs)
    slowest = max(seen["took"] for seen, _ in pairs)
    lines = min(beside["lines"] for _, beside in pairs)
    good = (ratio <= 1.10 or more <= 1) and all(total[what][0] <= total[what][1] for what in ("errors", "slow")) and not late and lines > 100
    print(f"{'ok  ' if good else 'FAIL'} {kind}: {len(pairs)} pairs, median of p99 ratios {ratio:.3f}, median difference {more:+.2f} ms; "
          f"with / without: requests {total['requests'][0]} / {total['requests'][1]}, failures {total['errors'][0]} / {total['errors'][1]}, "
          f"over 100 ms {total['slow'][0]} / {total['slow'][1]}; SIGTERM did not end it in time {late} times (slowest {slowest:.2f} s); "
          f"at least {lines} events where they were read", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9, help="of each variant (9)")
    parser.add_argument("--seconds", type=int, default=15, help="of each run (15)")
    parser.add_argument("--rate", type=int, default=1000, help="requests/s (1000)")
    parser.add_argument("--targets", type=int, default=300, help="that flap (300)")
    parser.add_argument("--only", nargs="+", choices=["full", "closed", "unread"], default=["full", "closed", "unread"])
    parser.add_argument("--evenkeel", default=os.path.join(BUILT, "evenkeel"), help="another binary")
    parser.add_argument("--rig", default=os.path.join(BUILT, "rig"), help="another rig")
    options = parser.parse_args()
    flapping = Flapping(options.targets)
    backend = subprocess.Popen([options.rig, "backend"], stdout=subprocess.PIPE, text=True)
    try:
        steady = int(backend.stdout.readline().rsplit(":", 1)[1].split()[0])
        port = free_port()
        health = "health_check: {interval: 100ms, timeout: 100ms, rise: 1, fall: 1}"
        text = (f"logging: debug\naccess_log: off\ntargets:\n  steady: {{protocol: http, listener: {port}, health_check: off, "
                f"backends: [{{host: 127.0.0.1, port: {steady}}}]}}\n")
        text += "".join(f"  flapping{number}: {{protocol: tcp, listener: 0, {health}, backends: [{{host: 127.0.0.1, port: {one}}}]}}\n"
                        for number, one in enumerate(flapping.ports))
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            config.write(text)
            config.flush()
            pairs = {kind: [] for kind in options.only}
            for number in range(options.pairs):
                for kind in options.only:
                    # Which of the two comes first changes from pair to pair.
                    order = [kind, "read"] if number % 2 else ["read", kind]
                    seen = {one: run(options, config.name, port, one) for one in order}
                    pairs[kind].append((seen[kind], seen["read"]))
        good = [judge(kind, pairs[kind]) for kind in options.only]
    finally:
        flapping.end()
        backend.terminate()
        backend.wait()
        Process.end_all()
    raise SystemExit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
