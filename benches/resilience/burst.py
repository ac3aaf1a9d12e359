"""The row of the queue: ten backends that have one request at a time, and ten times as many requests at once."""

import selectors
import socket
import time
from dataclasses import dataclass

from stand import Failure, Row

BURST = 100
# A worker that gets no processor for so long sees requests later than they came.
UNSEEN = 0.02


@dataclass
class Case:
    """So many backends with one slot of `service` seconds, a queue of `size`, and a request every `gap` seconds."""

    backends: int
    service: float
    size: int
    gap: float


class Answer:
    """What came of one request. Times are seconds of the monotonic clock."""

    def __init__(self, number, sent):
        self.number, self.sent, self.done, self.head = number, sent, None, b""

    @property
    def status(self):
        return int(self.head[9:12]) if self.done else 0

    @property
    def wait(self):
        return (self.done - self.sent) * 1000


def burst(port, count, gap):
    """Opens so many connections, sends a request on each `gap` seconds after the one before, and gives all answers."""
    sockets = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(count)]
    selector = selectors.DefaultSelector()
    answers = []
    due = time.monotonic()
    end = due + 60
    try:
        while len(answers) < count or any(not answer.done for answer in answers):
            now = time.monotonic()
            if now > end:
                raise Failure("requests without an answer after 60 s")
            while len(answers) < count and now >= due:
                one = sockets[len(answers)]
                answer = Answer(len(answers), time.monotonic())
                one.sendall(b"GET / HTTP/1.1\r\nHost: burst\r\n\r\n")
                one.setblocking(False)
                selector.register(one, selectors.EVENT_READ, answer)
                answers.append(answer)
                due = answer.sent + gap
            pause = max(due - time.monotonic(), 0) if len(answers) < count else 1
            ready = selector.select(pause)
            # One moment for all that came together: which of them was first, nobody can tell.
            now = time.monotonic()
            for key, _ in ready:
                piece = key.fileobj.recv(65536)
                key.data.head += piece
                if b"\r\n\r\n" in key.data.head or not piece:
                    key.data.done = now
                    selector.unregister(key.fileobj)
    finally:
        for one in sockets:
            one.close()
    return answers


def inversions(answers, later=0, sooner=0):
    """Pairs of which one was sent more than `later` seconds after the other and answered more than `sooner` seconds before it."""
    return sum(late.sent - early.sent > later and early.done - late.done > sooner
               for number, early in enumerate(answers) for late in answers[number + 1:])


CASES = {"one": Case(1, 0.02, 1000, 0.002), "ten": Case(10, 0.1, 1000, 0.001), "short": Case(10, 0.1, 10, 0)}


def queue(stand, _):
    """Backends with one slot, `max_in_flight: 1`, two workers, a burst of 100: ten for each of ten backends"""
    own, targets = {}, {}
    for name, case in CASES.items():
        each = ["--slots", "1", "--latency", str(case.service * 1000)]
        own[name] = stand.backends(name, *[each] * case.backends)
        targets[name] = (["health_check: off", "max_in_flight: 1", f"queue: {{size: {case.size}, timeout: 30s}}"], own[name])
    ports = stand.evenkeel(targets)
    row = Row(["backends", "queue", "200", "503", "most at one backend", "overtaken", "out of turn", "slowest 200", "slowest 503", ""])
    for name, case in CASES.items():
        answers = burst(ports[name], BURST, case.gap)
        good = [answer for answer in answers if answer.status == 200]
        full = [answer for answer in answers if answer.status == 503]
        most = max(backend.stat("most") for backend in own[name])
        # Two backends that are done at the same moment answer in either order.
        jumped = inversions(good, UNSEEN, case.service / 2)
        slowest = max((answer.wait for answer in full), default=0)
        room = min(case.backends + case.size, BURST)
        problems = [f"{most} at one backend"] if most > 1 else []
        problems += [f"{jumped} out of turn"] if jumped else []
        problems += [f"{len(good)} times 200 instead of {room}"] if len(good) != room else []
        problems += [f"{len(full)} times 503 instead of {BURST - room}"] if len(full) != BURST - room else []
        problems += [f"503 after {slowest:.0f} ms"] if slowest >= 50 else []
        bare = sum(b"\r\nretry-after:" not in answer.head.lower() for answer in full)
        problems += [f"{bare} of the 503 without Retry-After"] if bare else []
        fine = row.want(not problems, f"{name}: {', '.join(problems)}")
        row.lines.append([f"{case.backends} of {case.service * 1000:.0f} ms", str(case.size), str(len(good)), str(len(full)), str(most),
                          str(inversions(good)), str(jumped), f"{max((answer.wait for answer in good), default=0):.0f} ms",
                          f"{slowest:.1f} ms" if full else "–", fine])
    row.notes.append("overtaken: pairs of requests of which the later one was answered first. Out of turn: of these, sent more than "
                     f"{UNSEEN * 1000:.0f} ms later and answered more than half a service earlier. Requests come every 2 ms, every 1 ms, all at once")
    row.notes.append("bar: all 200 that find room, none out of turn, never two at a backend; 503 in less than 50 ms, with Retry-After")
    return row
