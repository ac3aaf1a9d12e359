"""The row of a backend that has no sibling: it misbehaves for a while, and then no more."""

import asyncio
import collections
import socket
import struct
import time

from faults import ask, words
from stand import Program, Row, free_port

FAULT_SECONDS = 3
INTERVAL = 0.05
WATCHED = 6
GIVEN_UP = 20
AT_ONCE = 4
BARS = {"off": 2, "on": 3}

GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Backend: alone\r\n\r\nfine\n"


class Backend:
    """Answers well, or in the way of its fault; all in this process, so that a fault begins and ends at one moment."""

    def __init__(self):
        self.port, self.fault, self.server, self.hole = free_port(), "", None, []
        self.streams = set()

    async def listen(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port)

    def reset_all(self):
        for writer in list(self.streams):
            reset(writer)

    async def begin(self, fault):
        self.fault = fault
        # What rests in a pool would be served as before.
        self.reset_all()
        if fault in ("refuse", "black hole"):
            self.server.close()
        if fault == "black hole":
            # A queue of connections that nobody accepts and that is full: what comes behind is dropped.
            hole = socket.socket()
            hole.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            hole.bind(("127.0.0.1", self.port))
            hole.listen(0)
            self.hole = [hole]
            for _ in range(4):
                stuffing = socket.socket()
                stuffing.setblocking(False)
                stuffing.connect_ex(("127.0.0.1", self.port))
                self.hole.append(stuffing)

    async def end(self):
        fault, self.fault = self.fault, ""
        for each in self.hole:
            each.close()
        self.hole = []
        if fault in ("refuse", "black hole"):
            await self.listen()

    async def serve(self, reader, writer):
        self.streams.add(writer)
        try:
            if self.fault == "reset at connect":
                reset(writer)
                return
            while True:
                await reader.readuntil(b"\r\n\r\n")
                if not await self.answer(writer):
                    break
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            # Whoever asked has gone, or the run has ended.
            pass
        finally:
            self.streams.discard(writer)
            writer.close()

    async def answer(self, writer):
        """Whether the connection goes on."""
        fault = self.fault
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
        if fault == "hang before the head":
            await asyncio.sleep(3600)
        elif fault == "reset in the head":
            await send(writer, head[:20])
            reset(writer)
        elif fault == "reset in the body":
            await send(writer, head + b"half")
            reset(writer)
        elif fault == "cut body":
            await send(writer, head + b"half")
        elif fault == "cut chunks":
            await send(writer, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhe")
        elif fault == "close after 100 ms":
            await asyncio.sleep(0.1)
        elif fault == "slow drip":
            for byte in GOOD:
                await send(writer, bytes([byte]))
                await asyncio.sleep(0.1)
            return True
        elif fault == "garbage":
            await send(writer, b"\x16\x03\x01 this is no answer\r\n\r\n")
        elif fault == "500s":
            await send(writer, b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
            return True
        else:
            await send(writer, GOOD)
            return True
        return False


async def send(writer, data):
    writer.write(data)
    await writer.drain()


def reset(writer):
    link = writer.get_extra_info("socket")
    if link is not None:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


FAULTS = ["refuse", "reset at connect", "black hole", "hang before the head", "reset in the head", "reset in the body", "cut body",
          "cut chunks", "close after 100 ms", "slow drip", "garbage", "500s"]


async def one_request(port, seen):
    sent, error = time.monotonic(), ""
    try:
        async with asyncio.timeout(GIVEN_UP):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                error, _, _ = await ask(reader, writer)
            finally:
                writer.close()
    except TimeoutError:
        error = "no answer"
    except (asyncio.IncompleteReadError, ValueError):
        error = "cut"
    except OSError:
        error = "reset"
    seen.append((sent, time.monotonic(), error))


async def one(fault, backend, port, turn):
    """(requests, seconds from the fault's end to the first good answer of a request sent since, and to the last bad one)"""
    async with turn:
        seen, tasks = [], set()

        async def load(until):
            due = time.monotonic()
            while (now := time.monotonic()) < until:
                task = asyncio.create_task(one_request(port, seen))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                due = max(due + INTERVAL, now)
                await asyncio.sleep(due - time.monotonic())

        await load(time.monotonic() + 1)
        await backend.begin(fault)
        await load(time.monotonic() + FAULT_SECONDS)
        await backend.end()
        over = time.monotonic()
        await load(over + WATCHED)
        while tasks:
            await asyncio.wait(tasks)
    since = [(sent, done, error) for sent, done, error in seen if sent >= over]
    good = [done - over for _, done, error in since if not error]
    # Sent after the end, and nevertheless not answered well.
    bad = [sent - over for sent, _, error in since if error]
    return seen, min(good, default=None), max(bad, default=0.0), over


async def every(ports, backends):
    turn = asyncio.Semaphore(AT_ONCE)
    keys = list(ports)
    found = await asyncio.gather(*[one(fault_of(key), backends[key], ports[key], turn) for key in keys])
    return dict(zip(keys, found))


def fault_of(key):
    return next(fault for fault in FAULTS if key.startswith(name(fault)))


def name(fault):
    return fault.replace(" ", "-") + "-probes"


async def run(stand):
    backends, targets = {}, {}
    for fault in FAULTS:
        for probes in BARS:
            backend = Backend()
            await backend.listen()
            key = f"{name(fault)}-{probes}"
            backends[key] = backend
            targets[key] = (["health_check: off"] if probes == "off" else [], [backend.port])
    ports = await asyncio.to_thread(stand.evenkeel, targets)
    found = await every(ports, backends)
    await asyncio.to_thread(Program.end_all)
    for backend in backends.values():
        backend.server.close()
        backend.reset_all()
    return found


def alone(stand, _):
    """The only backend misbehaves for 3 s under a request every 50 ms, then no more; defaults, without and with probes"""
    found = asyncio.run(run(stand))
    row = Row(["fault", "probes", "requests", "errors", "first good answer after", "last bad one sent after", "at most", ""])
    for fault in FAULTS:
        for probes, bar in BARS.items():
            seen, good, bad, _ = found[f"{name(fault)}-{probes}"]
            errors = collections.Counter(error for _, _, error in seen if error)
            fine = row.want(good is not None and good < bar and bad < bar, f"{fault}, probes {probes}: {good} s, {bad:.2f} s")
            row.lines.append([fault, probes, str(len(seen)), words(errors), "never" if good is None else f"{good * 1000:.0f} ms",
                              f"{bad * 1000:.0f} ms", f"{bar} s", fine])
    return row
