"""Bars about clients and backends that mean harm: stuck half-way states, and slow heads, bodies and readers in crowds."""

import os
import signal
import socket
import struct
import threading
import time

from lab import Backend, Client, Keel, Process

HOUR = "    timeouts: {head: 1h, keep_alive: 1h, first_byte: 1h, idle: 1h, tunnel: 1h, connect: 1h}\n    limits: {body_rate: off}\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LENGTH = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n"
CHUNKS = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"

# What a client sends before it stops. tests/e2e/stuck_states.rs has these states and more, with what ends each of them.
SAID = [b"", b"\r\n", b"GE", b"GET /a", b"GET / HTTP/1", b"GET / HTTP/1.1\r", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHo",
        b"GET / HTTP/1.1\r\nHost: a", b"GET / HTTP/1.1\r\nHost: a\r", b"GET / HTTP/1.1\r\nHost: a\r\n\r", GET, GET + b"\r\n",
        GET + b"GET /b HT", LENGTH, LENGTH + b"abcde", CHUNKS, CHUNKS + b"5", CHUNKS + b"5\r", CHUNKS + b"5;a=", CHUNKS + b"5\r\nab",
        CHUNKS + b"5\r\nabcde", CHUNKS + b"5\r\nabcde\r", CHUNKS + b"5\r\nabcde\r\n0\r\n", CHUNKS + b"5\r\nabcde\r\n0\r\nA: b",
        b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        b"GET /bytes/1000000000000 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /chunked/1000000000000 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /close/1000000000000 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /upgrade HTTP/1.1\r\nHost: a\r\n" + UPGRADE + b"\r\n"]
# What a backend answers before it stops.
ANSWERED = [b"", b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nConte", b"HTTP/1.1 200 OK\r\nA: b\r\n\r", b"HTTP/1.1 103 Early Hints\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhe",
            b"HTTP/1.1 200 OK\r\n\r\nhello", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\n" + UPGRADE + b"\r\n"]


class Halves:
    """A backend that answers GET /N with ANSWERED[N] and no more, and reads no more either."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.held = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            one, _ = self.listener.accept()
            self.held.append(one)
            head = b""
            while b"\r\n\r\n" not in head:
                head += one.recv(65536)
            one.sendall(ANSWERED[int(head.split(b" ")[1][1:])])


def stuck(verdict, copies=20):
    """Every state `copies` times at once, on one process; processor time as the kernel has it."""
    deaf = socket.create_server(("127.0.0.1", 0), backlog=1024)
    halves = Halves()
    with_hour = {"more": HOUR, "top": "workers: 2\n"}
    keels = [Keel([Backend(1).port], **with_hour), Keel([halves.port], **with_hour), Keel([deaf.getsockname()[1]], **with_hour)]
    held, kinds = [], 0

    def hold(keel, said, then=None):
        for _ in range(copies):
            one = Client(keel.port)
            one.socket.sendall(said)
            if then:
                then(one.socket)
            held.append(one)

    def push(one):
        one.setblocking(False)
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            try:
                one.send(b"a" * 65536)
            except BlockingIOError:
                time.sleep(0.005)

    for said in SAID:
        hold(keels[0], said)
        kinds += 1
    for number in range(len(ANSWERED)):
        upgrade = UPGRADE if number == len(ANSWERED) - 1 else b""
        hold(keels[1], b"GET /%d HTTP/1.1\r\nHost: a\r\n%s\r\n" % (number, upgrade))
        kinds += 1
    hold(keels[2], GET)
    hold(keels[2], b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000\r\n\r\n", push)
    hold(keels[2], b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n", push)
    kinds += 3
    idle = Keel([Backend(1).port], **with_hour)
    time.sleep(3)
    seconds = 10
    before = [keel.cpu_exact() for keel in [*keels, idle]]
    time.sleep(seconds)
    spent = [100 * (keel.cpu_exact() - was) / seconds for keel, was in zip([*keels, idle], before)]
    used = sum(spent[:-1])
    good = all(keel.process.poll() is None for keel in keels) and Client(idle.port).request()[0] == 200
    verdict("stuck", good and kinds >= 30 and used < 1,
            f"{kinds} states, {len(held)} connections at once on {len(keels)} processes: {used:.2f} % of a core together; "
            f"one with nothing to do uses {spent[-1]:.2f} %")


# How one slow client of each kind begins and what it does every second.
class SlowHead:
    receive = None

    def begin(self, number):
        return b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "

    def go_on(self, one):
        one.send(b"a")


class SlowBody:
    receive = None

    def begin(self, number):
        # By length, inside a chunk, inside a chunk line: each is held in another place.
        return [b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n", CHUNKS + b"fffff\r\n", CHUNKS + b"5;"][number % 3]

    def go_on(self, one):
        one.send(b"a")


class SlowRead:
    receive = 4096

    def begin(self, number):
        return [b"GET /bytes/100000000 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /chunked/100000000 HTTP/1.1\r\nHost: a\r\n\r\n"][number % 2]

    def go_on(self, one):
        if not one.recv(64):
            raise ConnectionResetError


def crowd(kind, port, count, report):
    """Keeps `count` slow clients going for ever; one that is cut comes back. Runs in a process of its own."""
    slots, cuts = [None] * count, 0
    while True:
        began = time.monotonic()
        for number in range(count):
            try:
                if slots[number] is None:
                    one = socket.socket()
                    if kind.receive:
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, kind.receive)
                    one.connect(("127.0.0.1", port))
                    one.setblocking(False)
                    one.send(kind.begin(number))
                    slots[number] = one
                else:
                    kind.go_on(slots[number])
            except BlockingIOError:
                pass
            except OSError:
                if slots[number]:
                    slots[number].close()
                    cuts += 1
                slots[number] = None
        os.write(report, struct.pack("ii", sum(one is not None for one in slots), cuts))
        time.sleep(max(0.0, 1 - (time.monotonic() - began)))


def slow(verdict, name, kind, count, seconds=40):
    backend = Backend(1)
    keel = Keel([backend.port], top="workers: 2\n")
    for _ in range(64):
        Client(keel.port).request()
    before = keel.rss_kib()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            crowd(kind, keel.port, count, writer)
        finally:
            os._exit(1)
    os.close(writer)
    most, tally, stop, state = [before], [0, 0], threading.Event(), [0, 0]

    def watch():
        while not stop.wait(0.1):
            most[0] = max(most[0], keel.rss_kib())

    def listen():
        while True:
            piece = os.read(reader, 8)
            if len(piece) < 8:
                return
            state[:] = struct.unpack("ii", piece)

    slowest = [0.0]

    def serve(new):
        client = None
        while not stop.is_set():
            began = time.monotonic()
            try:
                client = client or Client(keel.port)
                good = client.request()[0] == 200
            except OSError:
                good = False
            slowest[0] = max(slowest[0], time.monotonic() - began)
            tally[0] += 1
            tally[1] += good
            if new or not good:
                if client:
                    client.close()
                client = None
            time.sleep(0.01)

    threads = [threading.Thread(target=work, args=args, daemon=work is listen)
               for work, args in [(watch, ()), (listen, ()), (serve, (False,)), (serve, (True,))]]
    end = time.monotonic() + 60
    threads[1].start()
    while state[0] < count and time.monotonic() < end:
        time.sleep(0.05)
    full = state[0]
    for thread in (threads[0], *threads[2:]):
        thread.start()
    cpu = keel.cpu_exact()
    time.sleep(seconds)
    cpu = 100 * (keel.cpu_exact() - cpu) / seconds
    stop.set()
    for thread in (threads[0], *threads[2:]):
        thread.join()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    growth = (most[0] - before) / 1024
    share = 100 * tally[1] / max(tally[0], 1)
    good = full >= 0.99 * count and share >= 99 and growth < 150 and tally[0] > 100
    verdict(f"{name}, {count}", good,
            f"{full} slow clients, {state[1]} times cut and back; the good ones: {tally[1]} of {tally[0]} served ({share:.2f} %), the "
            f"slowest in {1000 * slowest[0]:.0f} ms; memory {before / 1024:.0f} MiB, growth {growth:.0f} MiB; {cpu:.0f} % of a core")


def bars(verdict):
    """The bars of this file, by name."""
    kinds = {"slow-head": SlowHead(), "slow-body": SlowBody(), "slow-read": SlowRead()}

    def both(name):
        for count in (800, 4000):
            slow(verdict, name, kinds[name], count)
            Process.end_all()

    return {"stuck": lambda: stuck(verdict), **{name: (lambda name=name: both(name)) for name in kinds}}
