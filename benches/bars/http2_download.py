#!/usr/bin/env python3
"""A download of 1 GB beside a hundred small requests a second on the same connection of HTTP/2: each is answered soon, and nothing is lost.

Over TLS and over prior knowledge; with windows in which all of it fits, and with windows of 1 MiB that are opened again as they are used.
Small requests are sent when they are due, whatever the answers do, and their time counts from then. `--bytes N`, `--only NAME`."""

import argparse
import sys
import time

sys.dont_write_bytecode = True

import http2_lab as h2  # noqa: E402
from http2_client import MOST, Connection, Loop, Verdicts, certificate, percentile, trust  # noqa: E402
from lab import Process  # noqa: E402
from reload_lab import Fakes, Folder, Running  # noqa: E402

RATE = 100
# What fake_backend's generated bodies are: these over and over.
PATTERN = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY"
ROUND = PATTERN * (2 + 16 * 1024 // len(PATTERN))
MIB = 1 << 20
# Where from, and the windows of a stream and of the connection.
RUNS = {"TLS, large windows": ("secure", MOST, MOST), "TLS, 1 MiB windows": ("secure", MIB, MIB),
        "prior knowledge, large windows": ("plain", MOST, MOST), "prior knowledge, 1 MiB windows": ("plain", MIB, MIB)}


class Download:
    """What one connection sees."""

    def __init__(self, port, context, window, whole, length):
        self.length, self.large, self.right = length, None, True
        self.times, self.failed, self.begun, self.took = [], 0, 0, None
        self.loop = Loop()
        self.connection = self.loop.add(Connection(port, context, window, whole, over=self.over, taken=self.taken))

    def taken(self, stream, payload):
        if stream is self.large:
            at = stream.content % len(PATTERN)
            self.right = self.right and payload == ROUND[at:at + len(payload)]

    def over(self, connection, stream):
        is_good = stream.ended and stream.status == 200
        if stream is self.large:
            self.took = time.monotonic() - stream.due
            self.right = self.right and is_good
        elif is_good:
            self.times.append(time.monotonic() - stream.due)
        else:
            self.failed += 1

    def run(self, least):
        """Until the download is over, and at least so many seconds."""
        self.loop.run_until(lambda: self.connection.greeted, 5)
        if self.length:
            self.large = self.connection.request(h2.request(b"/bytes/%d" % self.length))
        begin = time.monotonic()
        due = begin
        while not self.connection.closed and (self.length and self.took is None or time.monotonic() < begin + least):
            if time.monotonic() >= due:
                self.begun += 1
                self.connection.request(h2.request(b"/bytes/100"), due)
                due += 1 / RATE
                self.loop.stir(self.connection)
            self.loop.turn(min(0.05, due - time.monotonic()))
        self.loop.run_until(lambda: not self.connection.streams, 5)
        self.failed += len(self.connection.streams)
        self.connection.end()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bytes", type=int, default=1_000_000_000)
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--only", choices=list(RUNS))
    options = options.parse_args()
    verdict, folder = Verdicts(), Folder()
    try:
        tls, trusted = certificate(folder)
        backends = f"    health_check: off\n    backends: [{{host: 127.0.0.1, port: {Fakes(1).ports[0]}}}]\n"
        keel = Running(f"log_format: json\ntargets:\n  plain:\n    protocol: http\n    listener: 0\n    http2: on\n{backends}"
                       f"  secure:\n    protocol: https\n    listener: 0\n    tls: {tls}\n{backends}", folder)
        for name in [name for name in RUNS if options.only in (None, name) for _ in range(options.rounds)]:
            listener, window, whole = RUNS[name]
            context = trust(trusted) if listener == "secure" else None
            port = keel.port(listener)
            calm = Download(port, context, window, whole, 0)
            calm.run(2)
            busy = Download(port, context, window, whole, options.bytes)
            busy.run(0)
            got, p99 = busy.large.content, percentile(busy.times, 0.99)
            verdict(name, got == options.bytes and busy.right and not busy.failed and p99 <= 20,
                    f"{got} of {options.bytes} bytes, each as it should be: {busy.right}, {got / busy.took / 1e6:.0f} MB/s; "
                    f"small ones: {len(busy.times)} of {busy.begun}, p50 {percentile(busy.times, 0.5):.1f} ms, p99 {p99:.1f} ms (bar: 20), "
                    f"most {percentile(busy.times, 1):.1f} ms; "
                    f"p99 without the download {percentile(calm.times, 0.99):.1f} ms; RSS {keel.rss_kib() // 1024} MiB")
    finally:
        Process.end_all()
        folder.end()
    verdict.exit()


if __name__ == "__main__":
    main()
