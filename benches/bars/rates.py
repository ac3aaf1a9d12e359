#!/usr/bin/env python3
"""Rate limits over four workers. 1,000/s by one key on 64 connections for 10 s: as many pass as the burst and the time give, within 1 %, and
after a rest the burst exactly. Then 1,000,000 keys in a minute: memory stays at its bound, and a key that was over its limit before stays
limited. Builds nothing; takes about 80 s. `--keys 100000 --seconds 3` tries it out."""

import argparse
import socket
import sys
import time

sys.dont_write_bytecode = True

from lab import Client, Process, together  # noqa: E402
from reload_lab import Folder, Running  # noqa: E402

RATE, BURST, CONNECTIONS = 1_000, 200, 64

TEXT = """log_format: json
workers: 4
watch: off
rate_limits:
  steady: {rate: %d/s, burst: %d, by: global}
  once: {rate: 1/h, burst: 100, by: global}
  keys: {rate: 10/m, burst: 5, by: {header: X-Key}}
listeners:
  front:
    bind: 127.0.0.1:0
    routes:
      - {match: {path: /steady}, respond: {status: 204}, rate_limit: steady}
      - {match: {path: /once}, respond: {status: 204}, rate_limit: once}
      - {match: {path: /keys}, respond: {status: 204}, rate_limit: keys}
""" % (RATE, BURST)


def told(good, line):
    print(f"{'ok  ' if good else 'FAIL'}  {line}", flush=True)
    return good


def steady(port, seconds):
    """How many pass, of how many, between the first request and the last one."""
    begin = time.monotonic()
    end = begin + seconds

    def ask(_):
        client, passed, asked = Client(port), 0, 0
        while time.monotonic() < end:
            passed += client.request(path="/steady")[0] == 204
            asked += 1
        client.close()
        return passed, asked, time.monotonic()

    results = together(CONNECTIONS, ask)
    took = max(at for _, _, at in results) - begin
    return sum(passed for passed, _, _ in results), sum(asked for _, asked, _ in results), took


def burst(port):
    def ask(_):
        client = Client(port)
        passed = sum(client.request(path="/once")[0] == 204 for _ in range(10))
        client.close()
        return passed

    return sum(together(CONNECTIONS, ask))


def limited(port, key, count=10):
    client = Client(port)
    statuses = [client.request(path="/keys", more=f"X-Key: {key}\r\n")[0] for _ in range(count)]
    client.close()
    return statuses.count(204)


def flood(port, first, count, at_once=200):
    """Sends as many requests with a key of its own each, many on the way at a time; gives how many passed."""
    one = socket.create_connection(("127.0.0.1", port), 20)
    passed, held = 0, b""
    for begin in range(first, first + count, at_once):
        batch = range(begin, min(begin + at_once, first + count))
        one.sendall(b"".join(b"GET /keys HTTP/1.1\r\nHost: h\r\nX-Key: k%d\r\n\r\n" % key for key in batch))
        left = len(batch)
        while left:
            piece = one.recv(1 << 18)
            if not piece:
                raise SystemExit("a connection of the flood has ended")
            held += piece
            good = held.count(b"HTTP/1.1 204")
            if good + held.count(b"HTTP/1.1 429") == len(batch):
                passed, held, left = passed + good, b"", 0
    one.close()
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--keys", type=int, default=1_000_000)
    options = parser.parse_args()
    folder, good = Folder(), True
    try:
        keel = Running(TEXT, folder)
        port = keel.port("front")
        passed, asked, took = steady(port, options.seconds)
        due = BURST + RATE * took
        off = 100 * (passed - due) / due
        good &= told(abs(off) <= 1, f"{passed} of {asked} passed in {took:.2f} s on {CONNECTIONS} connections, {off:+.2f} % of {due:.0f} (bar: 1 %)")
        passed = burst(port)
        good &= told(passed == 100, f"{passed} of {CONNECTIONS * 10} at once passed (bar: the burst, 100)")

        limited(port, "offender")
        # A first few keys, so that what every limit and connection takes anyway is there.
        flood(port, 10_000_000, 20_000)
        before, begin = keel.rss_kib(), time.monotonic()
        share = options.keys // 8
        passed = sum(together(8, lambda number: flood(port, number * share, share)))
        took = time.monotonic() - begin
        # What the rate has given back meanwhile, and one more for the moment of asking.
        again, may = limited(port, "offender", 40), 10 * (time.monotonic() - begin) / 60 + 1
        grown = keel.rss_kib() - before
        good &= told(passed == share * 8, f"{passed} of {share * 8} new keys passed once each, in {took:.0f} s (bar: all, within 60 s)") and took <= 60
        good &= told(grown <= 2_048, f"memory has grown by {grown} KiB meanwhile (bar: 2,048, of which the table is none)")
        good &= told(again <= may, f"the offender got {again} requests (bar: {may:.1f}, what came back, and not its burst)")
    finally:
        Process.end_all()
        folder.end()
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
