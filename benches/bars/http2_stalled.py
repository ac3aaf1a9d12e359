#!/usr/bin/env python3
"""A thousand connections of HTTP/2 that take all the memory they are given, and a good client on the same worker.

`uploads`: each sends as much as windows allow on several streams, to a backend that reads nothing of them. `heads`: to one that reads the
head. `no window`: large answers are asked for, and no window is given. `nothing read`: windows without end, and the socket is not read.
Memory stays within that at rest, `http2.memory` and 20 MB; the good client, on a connection and to a backend of its own, gets every answer;
and 10 s after they are gone, memory is what it was, and 20 MB. `--connections N`, `--seconds N`, `--only NAME`."""

import argparse
import multiprocessing
import os
import resource
import select
import signal
import socket
import sys
import time

sys.dont_write_bytecode = True

import http2_lab as h2  # noqa: E402
from http2_client import FIRST, MOST, Connection, Loop, Peak, Verdicts, percentile  # noqa: E402
from lab import Process  # noqa: E402
from reload_lab import Fakes, Folder, Running  # noqa: E402

SPARE = 20_000_000
RATE = 100
ENDLESS = 1 << 40
# What is asked for, the windows that are given, and whether the socket is read.
KINDS = {"uploads": ("unread", FIRST, FIRST, True), "heads": ("head", FIRST, FIRST, True),
         "no window": ("large", 0, FIRST, True), "nothing read": ("large", MOST, MOST, False)}


class Deaf:
    """A backend in a process of its own that accepts, and reads nothing or one head. Its kernel keeps little, so that what waits, waits in
    the balancer."""

    def __init__(self, reads):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen(4096)
        self.port = listener.getsockname()[1]
        self.child = os.fork()
        if self.child == 0:
            try:
                self.serve(listener, reads)
            finally:
                os._exit(1)
        listener.close()

    @staticmethod
    def serve(listener, reads):
        poller, known = select.epoll(), {}
        poller.register(listener, select.EPOLLIN)
        while True:
            for number, events in poller.poll():
                if number == listener.fileno():
                    one, _ = listener.accept()
                    known[one.fileno()] = one
                    poller.register(one, (select.EPOLLIN if reads else select.EPOLLRDHUP) | select.EPOLLONESHOT)
                    continue
                one = known[number]
                try:
                    gone = events & (select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP) or not one.recv(256)
                except OSError:
                    gone = True
                if gone:
                    known.pop(number).close()
                else:
                    poller.modify(one, select.EPOLLRDHUP | select.EPOLLONESHOT)

    def end(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


def crowd(ports, kind, count, streams, begun, stop, told):
    """The connections, in a process of their own. `begun`: all of them are there, idle."""
    what, window, whole, reads = KINDS[kind]
    loop, ended = Loop(), []
    over = lambda connection, stream: ended.append((stream.status, stream.code))  # noqa: E731
    receive = None if reads else 16 * 1024
    connections = [loop.add(Connection(ports[what], None, window, whole, over=over, receive=receive)) for _ in range(count)]
    loop.run_until(lambda: all(one.greeted or one.closed for one in connections), 20)
    begun.set()
    while not stop.is_set() and told.value == 0:
        loop.turn(0.05)
    for one in connections:
        for _ in range(streams):
            if what == "large":
                one.request(h2.request(b"/bytes/100000000"))
            else:
                one.request(h2.request(b"/", b"POST"), upload=ENDLESS)
        if one.closed:
            continue
        loop.stir(one)
        if not reads:
            loop.poller.unregister(one.fileno())
    while not stop.is_set():
        loop.turn(0.05)
    sent = sum(ENDLESS - stream.left for one in connections for stream in one.streams.values() if what != "large")
    got = sum(stream.content for one in connections for stream in one.streams.values())
    print(f"    {sum(len(one.streams) for one in connections)} streams at the end, {len(ended)} ended before {sorted(set(ended), key=str)[:4]}; "
          f"{sum(one.closed for one in connections)} connections were closed; {sent >> 20} MiB sent, {got >> 20} MiB got", flush=True)
    os._exit(0)


class Good:
    """So many requests a second on one connection, sent when they are due."""

    def __init__(self, port):
        self.loop, self.times, self.failed, self.begun = Loop(), [], [], 0
        self.connection = self.loop.add(Connection(port, over=self.over))

    def over(self, connection, stream):
        if stream.ended and stream.status == 200:
            self.times.append(time.monotonic() - stream.due)
        else:
            self.failed.append((stream.status, stream.code))

    def run(self, seconds, condition=lambda: False):
        begin = due = time.monotonic()
        end = begin + seconds
        while due < end and not condition() and not self.connection.closed:
            # Those that are due while as many are open as may be wait, and their time counts.
            if time.monotonic() >= due and self.connection.may_ask():
                self.begun += 1
                self.connection.request(h2.request(b"/bytes/1000"), due)
                due += 1 / RATE
                self.loop.stir(self.connection)
            self.loop.turn(0.01 if time.monotonic() >= due and not self.connection.may_ask() else min(0.05, due - time.monotonic()))

    def tell(self):
        """What has come since the last time: whether all of it was good, and a text."""
        self.loop.run_until(lambda: not self.connection.streams, 5)
        unanswered = len(self.connection.streams) + self.connection.closed
        text = (f"{len(self.times)} of {self.begun} good {self.failed[:3] or ''}, p50 {percentile(self.times, 0.5):.1f} ms, "
                f"p99 {percentile(self.times, 0.99):.1f} ms, most {percentile(self.times, 1):.1f} ms")
        good = len(self.times) == self.begun and not unanswered and self.begun > 0
        self.times, self.failed, self.begun = [], [], 0
        return good, text


def run(kind, options, verdict):
    folder, deaf = Folder(), []
    try:
        deaf = [Deaf(False), Deaf(True)]
        places = {"good": Fakes(1).ports[0], "large": Fakes(1).ports[0], "unread": deaf[0].port, "head": deaf[1].port}
        text = "log_format: json\nworkers: 1\ntargets:\n" + "".join(
            f"  {name}:\n    protocol: http\n    listener: 0\n    http2: {{memory: {options.memory}MiB}}\n    health_check: off\n"
            "    limits: {connections_per_client: off}\n"
            f"    backends: [{{host: 127.0.0.1, port: {port}}}]\n" for name, port in places.items())
        keel = Running(text, folder)
        good = Good(keel.port("good"))
        good.run(3)
        _, calm = good.tell()
        idle = keel.rss_kib()
        peak = Peak(keel)
        begun, stop, told = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Value("i", 0)
        ports = {name: keel.port(name) for name in places}
        child = multiprocessing.Process(target=crowd, args=(ports, kind, options.connections, options.streams, begun, stop, told))
        child.start()
        good.run(30, begun.is_set)
        connected = keel.rss_kib()
        good.tell()
        told.value = 1
        good.run(min(5, options.seconds))
        soon_good, soon = good.tell()
        good.run(max(0, options.seconds - 5))
        all_good, beside = good.tell()
        stop.set()
        good.run(0.5, lambda: not child.is_alive())
        child.join(30)
        most = peak.end()
        since = time.monotonic()
        good.run(10, lambda: keel.rss_kib() <= idle + SPARE / 1024)
        back, took = keel.rss_kib(), time.monotonic() - since
        bound = ((options.memory << 20) + SPARE) / 1024
        rise = lambda kib: f"{(kib - idle) / 1024:+.1f} MiB"  # noqa: E731
        verdict(f"{kind}, memory", most - idle <= bound and child.exitcode == 0,
                f"idle {idle / 1024:.1f} MiB; with {options.connections} connections {rise(connected)}; at most {rise(most)} "
                f"(bar: {bound / 1024:+.1f})")
        verdict(f"{kind}, good client", all_good and soon_good,
                f"while they come: {soon}; beside them: {beside}; without them: {calm}")
        verdict(f"{kind}, afterwards", back - idle <= SPARE / 1024, f"{rise(back)} after {took:.1f} s (bar: +19.1 MiB within 10 s)")
    finally:
        for one in deaf:
            one.end()
        Process.end_all()
        folder.end()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--connections", type=int, default=1000)
    options.add_argument("--streams", type=int, default=4)
    options.add_argument("--memory", type=int, default=64, help="http2.memory in MiB (64)")
    options.add_argument("--seconds", type=float, default=15)
    options.add_argument("--only", choices=list(KINDS))
    options = options.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    verdict = Verdicts()
    for kind in [options.only] if options.only else KINDS:
        run(kind, options, verdict)
    verdict.exit()


if __name__ == "__main__":
    main()
