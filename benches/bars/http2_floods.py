"""Floods of HTTP/2 beside a good client: 16 connections each, and whoever is closed comes again at once.

evenkeel has one processor, all else the other. The good client asks a hundred times a second on a connection of its own, whatever the answers
do, and makes another connection when its own is lost. Attackers ask the same backend as it does; only answers of a megabyte that are not read
come from a second one, since 2,048 of them at once keep half a processor busy for three seconds, and it would be this that is measured. `--seconds N` for each flood (30), `--only NAME`.
"""

import argparse
import multiprocessing
import os
import re
import select
import sys
import threading
import time
import urllib.request

import http2_lab as h2
from lab import Backend, Keel, Process

# More than all streams of all attackers, so that those that only wait take no place from the good ones; what was reset has to stop.
LIMIT = 3000
MEMORY = 64 << 20
CONNECTIONS = 16
HELLO = h2.PREFACE + h2.settings(push=0) + h2.frame(h2.SETTINGS, h2.ACK, 0)
GET = h2.request()
POST = h2.request(b"/", b"POST")
BIG = h2.request(b"/bytes/1000000")


def heads(number, block, flags=h2.END_HEADERS | h2.END_STREAM):
    return h2.frame(h2.HEADERS, flags, 2 * number + 1, block)


def stream(number):
    return 2 * number + 1


def each(make):
    """A flood that is the same for each stream: so many at a time."""
    return lambda turn: b"".join(make(number) for number in range(200 * turn, 200 * turn + 200))


def once_then(first, again):
    """Something at the beginning of the connection, then the same again and again."""
    return lambda turn: first if turn == 0 else again


OPEN = heads(0, POST, h2.END_HEADERS)
BOMB = b"\x40\x01x\x7f\x91\x1e" + b"y" * 4000 + b"\xbe" * 12000

FLOODS = {
    "rapid reset": each(lambda n: heads(n, GET) + h2.reset(stream(n))),
    "rapid reset of uploads": each(lambda n: heads(n, POST, h2.END_HEADERS) + h2.frame(h2.DATA, 0, stream(n), b"x" * 100)
                                   + h2.reset(stream(n))),
    "made to reset: window of nothing": each(lambda n: heads(n, GET) + h2.window(stream(n), 0)),
    "made to reset: window too large": each(lambda n: heads(n, GET) + h2.window(stream(n), 0x7FFFFFFF)),
    "made to reset: DATA behind the end": each(lambda n: heads(n, GET) + h2.frame(h2.DATA, 0, stream(n), b"x")),
    "made to reset: wrong length": each(lambda n: heads(n, POST + h2.literal(b"content-length", b"1"), h2.END_HEADERS)
                                        + h2.frame(h2.DATA, 1, stream(n), b"xx")),
    "malformed heads": each(lambda n: heads(n, GET + h2.literal(b"te", b"x"))),
    "streams too many": each(lambda n: heads(n, POST, h2.END_HEADERS)),
    "CONTINUATION, empty": once_then(HELLO + h2.frame(h2.HEADERS, 0, 1, GET), h2.frame(h2.CONTINUATION, 0, 1) * 200),
    "CONTINUATION, large": once_then(HELLO + h2.frame(h2.HEADERS, 0, 1, GET), h2.frame(h2.CONTINUATION, 0, 1, b"\0\1x\1y" * 3000)),
    "HPACK bomb": each(lambda n: heads(n, BOMB) if n % 20 == 0 else b""),
    "empty DATA": once_then(HELLO + OPEN, h2.frame(h2.DATA, 0, 1) * 500),
    "padding alone": once_then(HELLO + OPEN, h2.frame(h2.DATA, h2.PADDED, 1, b"\x0f" + b"\0" * 15) * 200),
    "DATA of one byte": once_then(HELLO + OPEN, h2.frame(h2.DATA, 0, 1, b"x") * 500),
    "SETTINGS": once_then(HELLO + OPEN, h2.settings(window=1000) * 200),
    "PING": once_then(HELLO, h2.frame(h2.PING, 0, 0, b"12345678") * 300),
    "PRIORITY": once_then(HELLO, (h2.frame(h2.PRIORITY, 0, 5, b"\0\0\0\x03\1") + h2.frame(h2.PRIORITY_UPDATE, 0, 0, b"\0\0\0\5u=1")) * 200),
    "WINDOW_UPDATE": once_then(HELLO + OPEN, (h2.window(0, 1) + h2.window(1, 1)) * 200),
    "unknown frames": once_then(HELLO, h2.frame(0x42, 0, 1, b"what") * 300),
    "zero window": once_then(h2.PREFACE + h2.settings(window=0) + b"".join(heads(n, BIG) for n in range(128)), b""),
    "reads nothing": once_then(h2.PREFACE + h2.settings(window=0x7FFFFFFF) + h2.window(0, 0x7FFF0000)
                               + b"".join(heads(n, BIG) for n in range(128)), b""),
    "uploads that nobody waits for": once_then(HELLO + b"".join(
        heads(n, h2.request(b"/delay/60000", b"POST"), h2.END_HEADERS) for n in range(8)), h2.frame(h2.DATA, 0, 1, b"x" * 16000) * 4),
    "half a head": once_then(HELLO + h2.frame(h2.HEADERS, 0, 1, GET), b""),
}
# These need the greeting in front of their first turn; the others bring it.
GREETED = [name for name in FLOODS if FLOODS[name](0)[:3] != h2.PREFACE[:3]]


class Attacker:
    """One connection, again and again."""

    def __init__(self, port, name, number):
        # Each from an address of its own, as a flood comes, and so with ports enough to come again.
        self.source = f"127.0.1.{number + 1}"
        self.port, self.flood, self.greets = port, FLOODS[name], name in GREETED
        self.reads = name != "reads nothing"
        self.came = 0
        self.begin()

    def begin(self):
        self.came += 1
        self.turn, self.out, self.socket = 0, HELLO if self.greets else b"", None
        try:
            self.socket = h2.connect(self.port, False, self.source)
        except OSError:
            pass

    def step(self, readable, writable):
        try:
            if readable and self.reads and not self.socket.recv(1 << 20):
                raise ConnectionError
            if writable:
                if not self.out:
                    self.out = self.flood(self.turn)
                    self.turn += 1
                sent = self.socket.send(self.out) if self.out else 0
                self.out = self.out[sent:]
        except BlockingIOError:
            pass
        except OSError:
            self.socket.close()
            self.begin()

    def wants_to_write(self):
        return bool(self.out) or self.turn < 3 or bool(self.flood(1))


def only_idles(process):
    """From now on it has what the others leave of the processor."""
    for thread in os.listdir(f"/proc/{process}/task"):
        os.sched_setscheduler(int(thread), os.SCHED_IDLE, os.sched_param(0))


def attack(port, name, stop, came):
    """All connections of one flood, in a process of its own.

    It takes what the good client and its backend leave of their common processor: what counts is how long evenkeel takes, not how long
    a client of Python waits for its turn.
    """
    only_idles(os.getpid())
    all_of_them = [Attacker(port, name, number) for number in range(CONNECTIONS)]
    while not stop.is_set():
        alive = [one for one in all_of_them if one.socket]
        reading = [one.socket for one in alive if one.reads]
        readable, writable, _ = select.select(reading, [one.socket for one in alive if one.wants_to_write()], [], 0.2)
        for one in all_of_them:
            if one.socket is None:
                one.begin()
            else:
                one.step(one.socket in readable, one.socket in writable)
    came.value = sum(one.came for one in all_of_them)


class Good:
    """A hundred requests a second, sent when they are due. How long each took; those that got no 200 are infinitely late."""

    def __init__(self, port):
        self.port, self.times, self.due, self.stopped = port, [], {}, False
        self.lock = threading.Lock()
        self.open()

    def open(self):
        self.socket, self.next = h2.connect(self.port), 1
        # What all answers take of the connection's window is given at once.
        self.socket.sendall(HELLO + h2.window(0, 1 << 30))
        threading.Thread(target=self.listen, args=(self.socket,), daemon=True).start()

    def listen(self, one):
        frames = h2.Frames()
        try:
            while piece := one.recv(65536):
                for kind, flags, number, payload in frames.feed(piece):
                    self.take(one, kind, flags, number, payload)
        except OSError:
            pass
        with self.lock:
            if one is self.socket:
                lost = list(self.due.values())
                self.due.clear()
                self.times += [float("inf")] * len(lost)
                self.socket = None

    def take(self, one, kind, flags, number, payload):
        if kind == h2.SETTINGS and not flags & h2.ACK:
            one.sendall(h2.frame(h2.SETTINGS, h2.ACK, 0))
        if kind == h2.HEADERS and not payload.lstrip(b"\x20").startswith(b"\x88") or kind == h2.RST_STREAM:
            with self.lock:
                if self.due.pop(number, None):
                    self.times.append(float("inf"))
        elif kind in (h2.DATA, h2.HEADERS) and flags & h2.END_STREAM:
            with self.lock:
                if begun := self.due.pop(number, None):
                    self.times.append(time.monotonic() - begun)

    def run(self, seconds):
        begin = time.monotonic()
        for nth in range(int(seconds * 100)):
            due = begin + nth / 100
            time.sleep(max(0, due - time.monotonic()))
            try:
                if self.socket is None:
                    self.open()
                with self.lock:
                    number, self.next = self.next, self.next + 2
                    self.due[number] = due
                self.socket.sendall(h2.frame(h2.HEADERS, 5, number, GET))
            except (OSError, AttributeError):
                with self.lock:
                    self.times.append(float("inf"))
        end = time.monotonic() + 3
        while self.due and time.monotonic() < end:
            time.sleep(0.01)
        with self.lock:
            self.times += [float("inf")] * len(self.due)
            self.due.clear()
            times, self.times = sorted(self.times), []
        return times


def percentile(times, part):
    return times[min(len(times) - 1, int(len(times) * part))] * 1000


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=30)
    options.add_argument("--only", choices=list(FLOODS))
    options = options.parse_args()
    os.sched_setaffinity(0, {0})
    backend, stalled = Backend(1, "--latency", "2"), Backend(1)
    rest = (f"    max_in_flight: {LIMIT}\n    queue: {{size: 10000, timeout: 5s}}\n    health_check: off\n"
            "    backends: [{host: 127.0.0.1, port: %d}]\n")
    keel = Keel(config=lambda port: f"workers: 1\nlisteners:\n  web:\n    bind: 127.0.0.1:{port}\n    protocol: http\n    http2: on\n"
                "    limits: {connections_per_client: off}\n"
                "    routes: [{match: {path_prefix: /bytes}, target: stalled}, {target: web}]\n"
                f"targets:\n  web:\n{rest % backend.port}  stalled:\n{rest % stalled.port}")
    os.sched_setaffinity(keel.process.pid, {0})
    os.sched_setaffinity(0, {1})
    for one in (backend, stalled):
        os.sched_setaffinity(one.process.pid, {1})
    only_idles(stalled.process.pid)
    good = Good(keel.port)
    good.run(2)
    # What a hundred connections have cost, the process keeps.
    baseline = good.run(10)
    calm, idle = percentile(baseline, 0.99), keel.rss_kib()
    print(f"without: p50 {percentile(baseline, 0.5):.1f} ms, p99 {calm:.1f} ms, RSS {idle} KiB")
    failed = []
    for name in [options.only] if options.only else FLOODS:
        stop, came = multiprocessing.Event(), multiprocessing.Value("q", 0)
        attacker = multiprocessing.Process(target=attack, args=(keel.port, name, stop, came))
        attacker.start()
        peak, ended = [0], threading.Event()

        def watch():
            while not ended.wait(0.1):
                peak[0] = max(peak[0], keel.rss_kib())

        watcher = threading.Thread(target=watch)
        watcher.start()
        times = good.run(options.seconds)
        stop.set()
        attacker.join()
        ended.set()
        watcher.join()
        end = time.monotonic() + 10
        while keel.rss_kib() > idle + 20 * 1024 and time.monotonic() < end:
            time.sleep(0.1)
        served = sum(one != float("inf") for one in times) / len(times)
        p99, back = percentile(times, 0.99), keel.rss_kib()
        holds = (served >= 0.99 and p99 <= max(5 * calm, 5) and peak[0] <= idle + (MEMORY + (20 << 20)) / 1024
                 and back <= idle + 20 * 1024)
        failed += [] if holds else [name]
        print(f"{'ok ' if holds else 'NO '} {name}: {served:.2%} good, p99 {p99:.1f} ms, connections {came.value}, "
              f"RSS most +{(peak[0] - idle) / 1024:.1f} MiB, afterwards +{(back - idle) / 1024:.1f} MiB", flush=True)
    for one in (backend, stalled):
        with urllib.request.urlopen(f"http://127.0.0.1:{one.port}/_fake") as answer:
            most = int(re.search(r"most\W+(\d+)", answer.read().decode()).group(1))
        print(f"requests at a backend at once, at most: {most} (limit {LIMIT})")
        failed += [] if most <= LIMIT else ["the limit of a backend"]
    Process.end_all()
    if failed:
        sys.exit(f"not held: {', '.join(failed)}")


if __name__ == "__main__":
    main()
