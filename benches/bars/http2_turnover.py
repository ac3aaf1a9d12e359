#!/usr/bin/env python3
"""32 connections with 32 streams each, half of them with TLS, while evenkeel ends connections: 100 reloads, each of which changes
something of the targets and half of which change `http2` or `tls` so that connections end; then `http2.max_age: 1s` for 20 s; then SIGTERM.

Clients honour GOAWAY: what they ask for next goes to a new connection, and streams up to the last one are waited for. No stream that was
accepted fails, every connection that ends has said so before, and clients come back. `--reloads N`, `--seconds N` for the second part."""

import argparse
import collections
import multiprocessing
import signal
import sys
import time

sys.dont_write_bytecode = True

import http2_lab as h2  # noqa: E402
from http2_client import FIRST, MOST, Connection, Loop, Verdicts, certificate, trust  # noqa: E402
from lab import Process  # noqa: E402
from reload_lab import Fakes, Folder, Running  # noqa: E402

CONNECTIONS = 32
STREAMS = 32
# Of these each client asks in turn: at once, in pieces over some time, and with a body.
GETS = [h2.request(b"/bytes/1000"), h2.request(b"/delay/20"), h2.request(b"/bytes/20000?piece=4000&every=5")]
POST = h2.request(b"/echo", b"POST", (b"content-length", b"30000"))
APART = 0.2


class Clients:
    """Some of the connections, turned by one process. Each place has a connection that is asked, and maybe older ones that finish."""

    def __init__(self, ports, contexts):
        self.loop, self.places, self.turns = Loop(), list(zip(ports, contexts)), 0
        self.seen, self.faults, self.over = collections.Counter(), collections.Counter(), False
        self.asked = [None] * len(ports)
        # Those that were made and have not ended.
        self.alive = []

    def open(self, place):
        port, context = self.places[place]
        try:
            one = self.loop.add(Connection(port, context, FIRST * 4, MOST, over=self.ended))
        except OSError as error:
            if not self.over:
                self.faults[f"no connection: {error!r}"] += 1
            return None
        self.seen["connections"] += 1
        self.alive.append(one)
        return one

    def ended(self, connection, stream):
        last = min(connection.goaways, default=MOST)
        if stream.ended and stream.status == 200:
            self.seen["served"] += 1
        elif stream.number > last:
            # It was told that this one was not looked at: asking again is safe.
            self.seen["not accepted"] += 1
        elif connection.closed and not connection.goaways:
            self.faults["cut with its connection, which had said nothing"] += 1
        else:
            self.faults[f"status {stream.status}, {'ended' if stream.ended else 'reset' if stream.code is not None else 'cut'} "
                        f"{'' if stream.code is None else stream.code}, GOAWAY {[hex(one) for one in connection.goaways]}"] += 1

    def ask(self, place):
        one = self.asked[place]
        if one is None or one.closed or one.goaways:
            if self.over:
                return
            one = self.asked[place] = self.open(place)
        while one and one.may_ask() and len(one.streams) < STREAMS and not self.over:
            self.turns += 1
            if self.turns % 4:
                one.request(GETS[self.turns % 4 - 1])
            else:
                one.request(POST, upload=30000)
        if one and not one.closed:
            self.loop.stir(one)

    def look(self):
        """Counts the connections that have ended."""
        for one in [one for one in self.alive if one.closed or one.goaways and not one.streams]:
            self.alive.remove(one)
            self.seen["ended"] += 1
            self.seen["ended after two GOAWAYs"] += len(one.goaways) == 2
            if not one.goaways or any(one.codes):
                self.faults[f"connection ended, GOAWAYs {one.goaways} {one.codes}"] += 1
            if not one.closed:
                # It is ours to close: nothing is to come.
                self.seen["closed by the client"] += 1
                self.loop.known.pop(one.fileno(), None)
                one.end()

    def run(self, phase, seconds=None):
        """Until the phase is over, or evenkeel has ended all; then what was asked for is waited for."""
        while phase.value == 0:
            for place in range(len(self.places)):
                self.ask(place)
            self.loop.turn(0.01)
            self.look()
        self.over = True
        self.loop.run_until(lambda: not any(one.streams for one in self.alive), 15)
        self.look()
        for one in self.alive:
            if one.streams:
                self.faults["without an answer"] += len(one.streams)


def client(ports, contexts, phase, results):
    contexts = [path and trust(path) for path in contexts]
    clients = Clients(ports, contexts)
    clients.run(phase)
    results.put((dict(clients.seen), dict(clients.faults)))


class Crowd:
    """All connections, in two processes: one for each listener."""

    def __init__(self, keel, trusted):
        self.phase, self.results = multiprocessing.Value("i", 0), multiprocessing.Queue()
        half = CONNECTIONS // 2
        self.children = [multiprocessing.Process(target=client, args=([port] * half, [path] * half, self.phase, self.results))
                         for port, path in ((keel.port("plain"), None), (keel.port("secure"), trusted))]
        for child in self.children:
            child.start()

    def end(self):
        self.phase.value = 1
        seen, faults = collections.Counter(), collections.Counter()
        for _ in self.children:
            one, two = self.results.get(timeout=60)
            seen.update(one)
            faults.update(two)
        for child in self.children:
            child.join()
        return seen, faults


def text(ports, tls, number=0, max_age="off"):
    """The config after so many reloads. Every other one ends connections: by `http2` of both targets, and by `tls` of one."""
    ends = number // 2
    http2 = f"{{max_streams: {128 - ends % 2}, max_age: {max_age}}}"
    tls = tls if ends % 4 < 2 else tls.replace("}", ", min_version: 1.3}")
    rest = (f"    listener: 0\n    health_check: off\n    http2: {http2}\n    timeouts: {{connect: {1000 + number}ms}}\n"
            f"    limits: {{connections_per_client: off}}\n    backends:\n"
            + "".join(f"      - {{host: 127.0.0.1, port: {port}, weight: {1 + (number + place) % 3}}}\n" for place, port in enumerate(ports)))
    return f"log_format: json\nwatch: off\ntargets:\n  plain:\n    protocol: http\n{rest}  secure:\n    protocol: https\n    tls: {tls}\n{rest}"


def tell(verdict, name, seen, faults, more, holds=True):
    """`holds`: what else has to be so."""
    verdict(name, not faults and seen["served"] > 0 and holds,
            f"{seen['served']} streams served, {sum(faults.values())} faults {dict(faults.most_common(4)) or ''}, "
            f"{seen['not accepted']} not accepted and told so; {seen['connections']} connections made,"
            f" {seen['ended']} ended with GOAWAY, {seen['ended after two GOAWAYs']} of them in two steps; {more}")


def reloads(folder, ports, tls, trusted, options, verdict):
    keel = Running(text(ports, tls), folder)
    crowd = Crowd(keel, trusted)
    time.sleep(1)
    refused = []
    for number in range(1, options.reloads + 1):
        due = time.monotonic() + APART
        said, _ = keel.reload(text(ports, tls, number))
        refused += [said["message"]] if "refused" in said["message"] else []
        time.sleep(max(0, due - time.monotonic()))
    time.sleep(2)
    seen, faults = crowd.end()
    tell(verdict, "reloads", seen, faults,
         f"{options.reloads} reloads, {options.reloads // 2} of them with other http2 or tls; refused {refused[:2]}",
         not refused and seen["ended"] >= CONNECTIONS * options.reloads // 4)
    return keel


def ages(folder, ports, tls, trusted, options, verdict):
    keel = Running(text(ports, tls, max_age="1s"), folder)
    crowd = Crowd(keel, trusted)
    time.sleep(options.seconds)
    seen, faults = crowd.end()
    tell(verdict, "max_age: 1s", seen, faults, f"{options.seconds:g} s", seen["ended"] >= CONNECTIONS * options.seconds / 3)
    keel.end()


def drain(folder, ports, tls, trusted, options, verdict):
    keel = Running(text(ports, tls), folder)
    crowd = Crowd(keel, trusted)
    time.sleep(2)
    begun = time.monotonic()
    # Who finds no listener any more does not come back: only what was accepted counts.
    keel.process.send_signal(signal.SIGTERM)
    code = keel.process.wait(30)
    took = time.monotonic() - begun
    seen, faults = crowd.end()
    refused = sum(faults.pop(fault) for fault in list(faults) if fault.startswith("no connection"))
    tell(verdict, "SIGTERM", seen, faults, f"exit {code} after {took:.2f} s, {refused} connections were refused behind it", code == 0 and took < 10)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--reloads", type=int, default=100)
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--only", choices=["reloads", "ages", "drain"])
    options = options.parse_args()
    verdict, folder = Verdicts(), Folder()
    try:
        tls, trusted = certificate(folder)
        for name, part in {"reloads": reloads, "ages": ages, "drain": drain}.items():
            if options.only in (None, name):
                part(folder, Fakes(3).ports, tls, trusted, options, verdict)
                Process.end_all()
    finally:
        Process.end_all()
        folder.end()
    verdict.exit()


if __name__ == "__main__":
    main()
