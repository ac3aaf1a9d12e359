"""The row of the twelve faults: one of three backends misbehaves for a while, and then no more."""

import asyncio
import collections
import random
import time
from dataclasses import dataclass

from stand import Program, Row

CLIENTS, RATE = 8, 100
FAULT_SECONDS = 2
RECOVERED_WITHIN = 2
# No request may take longer: the deadlines are 500 ms, and an answer that drips takes 2 s.
BOUND = 3
GIVEN_UP = 10
AT_ONCE = 4
FLAP = 0.3

GONE = {"connect_failed", "backend_closed", "answer_cut"}


@dataclass
class Fault:
    """`query` goes to the backend's control; or `process`, which is what happens to the process. `causes` may stand in the log."""

    name: str
    causes: set
    query: str = ""
    process: tuple = ()


FAULTS = [
    Fault("refuse", GONE, process=("end",)),
    Fault("reset_at_connect", GONE, process=("end", "begin")),
    Fault("reset_mid_head", {"backend_closed"}, "fault=reset-mid-head"),
    Fault("reset_mid_body", {"answer_cut"}, "fault=reset-mid-body"),
    Fault("hang_before_head", {"first_byte_timeout"}, "fault=hang"),
    Fault("hang_mid_body", {"answer_stalled"}, "size=1000&piece=500&every=60000"),
    Fault("garbage", {"bad_answer"}, "fault=garbage"),
    Fault("slow_drip", set(), "size=20&piece=1&every=100"),
    Fault("wrong_length", {"answer_cut"}, "fault=length-too-long"),
    Fault("early_close", {"backend_closed"}, "fault=close-unanswered"),
    Fault("500s", set(), "status=500"),
    Fault("flap", GONE, process=("flap",)),
]


@dataclass
class Seen:
    """One request as its client saw it: an error's word, or none."""

    sent: float
    done: float
    error: str
    backend: str


class Crowd:
    """Clients that keep their connections and ask at their own pace until told to stop."""

    def __init__(self, port):
        self.port, self.seen, self.going = port, [], True
        self.tasks = [asyncio.create_task(self.client()) for _ in range(CLIENTS)]

    async def client(self):
        interval = CLIENTS / RATE
        due = time.monotonic() + random.random() * interval
        streams = None
        while self.going:
            await asyncio.sleep(max(due - time.monotonic(), 0))
            sent = time.monotonic()
            due = max(due + interval, sent)
            error, backend, kept = "", "", False
            try:
                async with asyncio.timeout(GIVEN_UP):
                    if streams is None:
                        streams = await asyncio.open_connection("127.0.0.1", self.port)
                    error, backend, kept = await ask(*streams)
            except TimeoutError:
                error = "no answer"
            except asyncio.IncompleteReadError as cut:
                error = "cut" if cut.expected is not None else "closed"
            except OSError:
                error = "reset"
            self.seen.append(Seen(sent, time.monotonic(), error, backend))
            if not kept and streams:
                streams[1].close()
                streams = None
        if streams:
            streams[1].close()

    async def stop(self):
        self.going = False
        await asyncio.gather(*self.tasks)


async def ask(reader, writer):
    """One request and its answer: (an error's word or none, the backend, whether the connection goes on)."""
    writer.write(b"GET / HTTP/1.1\r\nHost: faults\r\n\r\n")
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    await reader.readexactly(int(fields.get("content-length", 0)))
    status = head[9:12]
    return "" if status == "200" else status, fields.get("x-backend", ""), fields.get("connection") != "close"


async def misbehave(backend, fault):
    """Does what the fault asks for, for as long as it lasts; gives the moment in which it is over."""
    end = time.monotonic() + FAULT_SECONDS
    if fault.query:
        await asyncio.to_thread(backend.behave, f"{fault.query}&spare-health=1")
        await asyncio.sleep(end - time.monotonic())
        await asyncio.to_thread(backend.behave, "reset=1")
        return time.monotonic()
    await asyncio.to_thread(backend.end)
    if "begin" in fault.process:
        # One whose connections are all reset would tell whoever looks whether it listens the same.
        backend.launch("--fault", "reset-on-accept")
    while "flap" in fault.process and time.monotonic() < end:
        await asyncio.sleep(FLAP)
        await asyncio.to_thread(backend.begin)
        await asyncio.sleep(FLAP)
        await asyncio.to_thread(backend.end)
    await asyncio.sleep(max(end - time.monotonic(), 0))
    await asyncio.to_thread(backend.end)
    await asyncio.to_thread(backend.begin)
    return time.monotonic()


async def one(fault, port, backends, turn):
    """(what clients saw, seconds from the fault's end to the next 200 of that backend or none)"""
    bad = backends[0]
    async with turn:
        crowd = Crowd(port)
        await served(crowd, bad.name, time.monotonic())
        over = await misbehave(bad, fault)
        back = await served(crowd, bad.name, over)
        await crowd.stop()
    return crowd.seen, back and back - over


async def served(crowd, backend, since):
    """The moment of the first 200 of this backend to a request that was sent since; none if that takes too long."""
    looked = 0
    while time.monotonic() < since + GIVEN_UP:
        for seen in crowd.seen[looked:]:
            if seen.sent >= since and not seen.error and seen.backend == backend:
                return seen.done
        looked = len(crowd.seen)
        await asyncio.sleep(0.005)
    return None


async def every(ports, own):
    turn = asyncio.Semaphore(AT_ONCE)
    found = await asyncio.gather(*[one(fault, ports[fault.name], own[fault.name], turn) for fault in FAULTS])
    return dict(zip(ports, found))


def faults(stand, _):
    """One of three backends misbehaves for 2 s under 100 requests/s of 8 clients, then no more"""
    keys = ["health_check: {path: /health, interval: 1s}", "timeouts: {first_byte: 500ms, idle: 500ms}"]
    own = {fault.name: stand.backends(fault.name.replace("_", "-"), [], [], []) for fault in FAULTS}
    ports = stand.evenkeel({fault.name: (keys, own[fault.name]) for fault in FAULTS})
    found = asyncio.run(every(ports, own))
    Program.end_all()
    logged = collections.defaultdict(collections.Counter)
    for record in stand.records():
        if record["cause"]:
            logged[record["target"]][record["cause"]] += 1
    row = Row(["fault", "requests", "errors that clients saw", "causes in the log", "longest wait", "back after", ""])
    for fault in FAULTS:
        seen, back = found[fault.name]
        errors = collections.Counter(each.error for each in seen if each.error)
        longest = max(each.done - each.sent for each in seen)
        causes = logged[fault.name]
        problems = ["not back in time"] if back is None or back >= RECOVERED_WITHIN else []
        problems += [f"a wait of {longest:.1f} s"] if longest >= BOUND or errors["no answer"] else []
        problems += [f"cause {cause}" for cause in causes if cause not in fault.causes]
        # Of an answer that the backend meant as it is there is no cause.
        told = errors.total() - (errors["500"] if fault.name == "500s" else 0)
        problems += [f"{told} errors, {causes.total()} in the log"] if told != causes.total() else []
        fine = row.want(not problems, f"{fault.name}: {', '.join(problems)}")
        row.lines.append([fault.name.replace("_", " "), str(len(seen)), words(errors), words(causes), f"{longest * 1000:.0f} ms",
                          "never" if back is None else f"{back * 1000:.0f} ms", fine])
    row.notes.append("errors: a status; `reset` or `cut` where an answer broke off with its connection. First byte and silence in a body have 500 ms")
    row.notes.append(f"bar: served again within {RECOVERED_WITHIN} s, no wait of {BOUND} s, each error in the log with a cause that fits")
    return row


def words(counter):
    return ", ".join(f"{count} × {word}" for word, count in counter.most_common()) or "0"
