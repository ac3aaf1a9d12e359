#!/usr/bin/env python3
"""An upload over a path of 50 ms (a relay that delays each direction by 25 ms), over HTTP/1.1 and over HTTP/2, in pairs: HTTP/2 reaches at
least 80 % of HTTP/1.1's rate.

`--link MB` is what the path carries in a second, as its narrowest part does; `--link 0`: whatever the relay moves. A relay takes bytes before
they have arrived, so with 0 HTTP/1.1 does not notice the distance at all, while windows of HTTP/2 are counted from end to end: that shows
how far they reach, and is told without a verdict. `--bytes N`, `--pairs N`, `--tls`, `--window-max SIZE`."""

import argparse
import collections
import os
import select
import signal
import socket
import statistics
import sys
import time

sys.dont_write_bytecode = True

import http2_lab as h2  # noqa: E402
from http2_client import Connection, Loop, Verdicts, certificate, connect, trust  # noqa: E402
from lab import Process, program  # noqa: E402
from reload_lab import Folder, Running  # noqa: E402

DELAY = 0.025
SHARE = 0.8
PIECE = 1 << 18


class Way:
    """One direction of a connection: what is under way in it, and when that arrives."""

    def __init__(self, source, target, link):
        self.source, self.target, self.link = source, target, link
        self.held, self.free, self.ended = collections.deque(), 0.0, False

    def read(self, now):
        piece = self.source.recv(PIECE)
        # A link sends one byte behind the other; the delay comes on top.
        self.free = max(now, self.free) + (len(piece) / self.link if self.link else 0)
        self.held.append((self.free + DELAY, memoryview(piece)))
        self.ended = not piece

    def write(self, now):
        """Passes on what has arrived. True: the target takes no more now."""
        while self.held and self.held[0][0] <= now:
            due, piece = self.held.popleft()
            if not len(piece):
                self.target.shutdown(socket.SHUT_WR)
                return False
            try:
                count = self.target.send(piece)
            except BlockingIOError:
                count = 0
            if count < len(piece):
                self.held.appendleft((due, piece[count:]))
                return True
        return False

    def due(self):
        return self.held[0][0] if self.held else float("inf")


class Relay:
    """A process that delays each direction and holds back nothing: it takes all that comes."""

    def __init__(self, target, link):
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.child = os.fork()
        if self.child == 0:
            try:
                self.serve(listener, target, link)
            finally:
                os._exit(1)
        listener.close()

    @staticmethod
    def serve(listener, target, link):
        while True:
            client, _ = listener.accept()
            far = socket.create_connection(("127.0.0.1", target))
            for one in (client, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                one.setblocking(False)
            try:
                Relay.connection([Way(client, far, link), Way(far, client, link)])
            except OSError:
                pass
            client.close()
            far.close()

    @staticmethod
    def connection(ways):
        full = [False, False]
        while not all(way.ended and not way.held for way in ways):
            now = time.monotonic()
            wait = min((way.due() for way, stuck in zip(ways, full) if not stuck), default=float("inf")) - now
            readable, writable, _ = select.select([way.source for way in ways if not way.ended],
                                                  [way.target for way, stuck in zip(ways, full) if stuck], [], min(1, max(0, wait)))
            now = time.monotonic()
            for place, way in enumerate(ways):
                if way.source in readable:
                    way.read(now)
                if not full[place] or way.target in writable:
                    full[place] = way.write(now)

    def end(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


def by_http1(port, context, length):
    """Seconds from the first byte to the whole answer."""
    one, zeros = connect(port, context), bytes(PIECE)
    begun = time.monotonic()
    one.sendall(b"POST / HTTP/1.1\r\nHost: bar\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % length)
    one.settimeout(120)
    for at in range(0, length, PIECE):
        one.sendall(zeros[:length - at])
    answer = b"".join(iter(lambda: one.recv(65536), b""))
    took = time.monotonic() - begun
    one.close()
    if b" 200 " not in answer[:20]:
        raise SystemExit(f"HTTP/1.1: {answer[:200]!r}")
    return took


def by_http2(port, context, length):
    loop, done = Loop(), []
    connection = loop.add(Connection(port, context, over=lambda connection, stream: done.append(stream)))
    begun = time.monotonic()
    connection.request(h2.request(b"/", b"POST", (b"content-length", b"%d" % length)), upload=length)
    loop.stir(connection)
    loop.run_until(lambda: done, 120)
    took = time.monotonic() - begun
    connection.end()
    if not done or done[0].status != 200 or not done[0].ended:
        raise SystemExit(f"HTTP/2: status {done and done[0].status}, reset {done and done[0].code}, GOAWAY {connection.goaways}")
    return took


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bytes", type=int, default=200_000_000)
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--link", type=float, nargs="*", default=[20, 40, 0])
    options.add_argument("--tls", action="store_true")
    options.add_argument("--window-max", default="4MiB")
    options = options.parse_args()
    verdict, folder, relays = Verdicts(), Folder(), []
    try:
        tls, trusted = certificate(folder)
        backend = Process(program("rig"), "backend")
        keel = None
        while "127.0.0.1:" not in backend.text():
            time.sleep(0.01)
        rest = (f"    health_check: off\n    http2: {{window_max: {options.window_max}}}\n"
                f"    backends: [{{host: 127.0.0.1, port: {backend.text().split('127.0.0.1:')[1].split()[0]}}}]\n")
        keel = Running(f"log_format: json\ntargets:\n  plain:\n    protocol: http\n    listener: 0\n{rest}"
                       f"  secure:\n    protocol: https\n    listener: 0\n    tls: {tls}\n{rest}", folder)
        target = keel.port("secure" if options.tls else "plain")
        one, two = (trust(trusted, "http/1.1"), trust(trusted)) if options.tls else (None, None)
        for link in options.link:
            relay = Relay(target, link * 1e6)
            relays.append(relay)
            pairs = []
            for number in range(options.pairs):
                pair = {}
                for which in ("1", "2") if number % 2 else ("2", "1"):
                    took = by_http1(relay.port, one, options.bytes) if which == "1" else by_http2(relay.port, two, options.bytes)
                    pair[which] = options.bytes / took / 1e6
                pairs.append(pair)
            median = statistics.median(pair["2"] / pair["1"] for pair in pairs)
            text = (f"{options.pairs} pairs of {options.bytes / 1e6:.0f} MB: HTTP/2 at {median:.0%} of HTTP/1.1 (median; bar: {SHARE:.0%}); "
                    f"MB/s of HTTP/2 and HTTP/1.1: {', '.join('{:.1f}/{:.1f}'.format(pair['2'], pair['1']) for pair in pairs)}")
            if link:
                verdict(f"50 ms, {link:g} MB/s", median >= SHARE, text)
            else:
                print(f"--  50 ms, as fast as the relay is: {text}", flush=True)
    finally:
        for relay in relays:
            relay.end()
        Process.end_all()
        folder.end()
    verdict.exit()


if __name__ == "__main__":
    main()
