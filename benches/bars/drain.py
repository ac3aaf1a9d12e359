#!/usr/bin/env python3
"""5,000 WebSockets to a backend that a reload takes out, with a window of 60 s; their clients connect again as soon as they are told.
Requests beside it, to the same target and to another one. Builds nothing."""

import argparse
import asyncio
import collections
import os
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from lab import BUILT, Process, accepts, free_port, wait_until  # noqa: E402

ASK = b"GET / HTTP/1.1\r\nHost: bar\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
AWAY = b"\x88\x02\x03\xe9"
ANSWER = b"\x88\x82\0\0\0\0\x03\xe9"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Backends:
    """Three backends in a process of their own; what they were told is a line in a file for each of them."""

    def __init__(self):
        self.ports = [free_port() for _ in range(3)]
        self.told = tempfile.NamedTemporaryFile("r")
        self.child = os.fork()
        if self.child == 0:
            try:
                asyncio.run(self.serve())
            finally:
                os._exit(1)
        for port in self.ports:
            wait_until("a backend", lambda port=port: accepts(port))

    async def serve(self):
        log = open(self.told.name, "a", buffering=1)
        for number, port in enumerate(self.ports):
            handle = lambda reader, writer, number=number: self.connection(number, reader, writer, log)  # noqa: E731
            await asyncio.start_server(handle, "127.0.0.1", port, backlog=4096)
        await asyncio.Event().wait()

    async def connection(self, number, reader, writer, log):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if b"websocket" not in head:
                    writer.write(PLAIN)
                    continue
                writer.write(SWITCHED)
                frame = await reader.readexactly(8)
                mask, payload = frame[2:6], frame[6:]
                code = bytes(payload[at] ^ mask[at] for at in range(2))
                log.write(f"{number} {int.from_bytes(code, 'big') if frame[:2] == ANSWER[:2] else 'other'}\n")
                writer.write(AWAY)
                await reader.read()
                return
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def end(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


class Crowd:
    """Clients of WebSockets that are asked for a message never, and want to be connected always."""

    def __init__(self, port):
        self.port, self.open = port, 0
        self.ends, self.again, self.faults = [], [], collections.Counter()

    async def client(self):
        for turn in range(2):
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(ASK)
                head = await reader.readuntil(b"\r\n\r\n")
            except (OSError, asyncio.IncompleteReadError) as error:
                self.faults[f"connect: {type(error).__name__}"] += 1
                return
            if b" 101 " not in head:
                self.faults[head.split(b"\r\n")[0].decode()] += 1
                return
            self.open += 1
            if turn == 1:
                self.again.append(time.monotonic())
            try:
                came = await reader.readexactly(4)
                self.ends.append((time.monotonic(), came == AWAY))
                writer.write(ANSWER)
                if await reader.read():
                    self.faults["bytes behind the Close"] += 1
            except ConnectionResetError:
                self.faults["reset"] += 1
            except asyncio.IncompleteReadError:
                self.faults["an end without a Close"] += 1
            self.open -= 1
            writer.close()


class Beside:
    """Requests on a connection of their own, one after the other."""

    def __init__(self, port):
        self.port, self.asked, self.failed = port, 0, 0

    async def run(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while True:
            self.asked += 1
            writer.write(b"GET / HTTP/1.1\r\nHost: bar\r\n\r\n")
            answer = await reader.readexactly(len(b"HTTP/1.1 200"))
            head = answer + await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(2)
            self.failed += not (head.startswith(b"HTTP/1.1 200") and body == b"ok" and b"close" not in head)
            await asyncio.sleep(0.05)

    async def keep(self):
        try:
            await self.run()
        except (OSError, asyncio.IncompleteReadError):
            self.failed += 1


def config(web, other, window, backends):
    return (f"targets:\n  web:\n    protocol: http\n    listener: {web}\n    health_check: off\n    drain_timeout: {window}s\n"
            f"    backends: [{{host: 127.0.0.1, port: {backends[0]}}}]\n"
            f"  other:\n    protocol: http\n    listener: {other}\n    health_check: off\n"
            f"    backends: [{{host: 127.0.0.1, port: {backends[1]}}}]\n")


async def bar(count, window):
    backends = Backends()
    first, second, third = backends.ports
    web, other = free_port(), free_port()
    file = tempfile.NamedTemporaryFile("w", suffix=".yaml")

    def write(backend):
        file.seek(0)
        file.truncate()
        file.write(config(web, other, window, (backend, third)))
        file.flush()

    write(first)
    keel = Process(os.path.join(BUILT, "evenkeel"), "--config", file.name)
    wait_until("evenkeel", lambda: accepts(web))
    crowd, beside = Crowd(web), [Beside(port) for port in [web, other] * 5]
    clients = []
    for _ in range(count):
        clients.append(asyncio.create_task(crowd.client()))
        if len(clients) % 50 == 0:
            await asyncio.sleep(0.02)
    while crowd.open < count:
        await asyncio.sleep(0.1)
    requests = [asyncio.create_task(one.keep()) for one in beside]
    await asyncio.sleep(1)
    before, cpu = time.monotonic(), keel.cpu_exact()
    write(second)
    keel.process.send_signal(signal.SIGHUP)
    while len(crowd.ends) + sum(crowd.faults.values()) < count and time.monotonic() < before + window + 10:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)
    cpu = keel.cpu_exact() - cpu
    ends = [end - before for end, _ in crowd.ends]
    seconds = collections.Counter(int(at - before) for at in crowd.again)
    peak, mean = max(seconds.values(), default=0), count / window
    told = sum(away for _, away in crowd.ends)
    with open(backends.told.name) as lines:
        heard = sum(line.split() == ["0", "1001"] for line in lines)
    asked, failed = sum(one.asked for one in beside), sum(one.failed for one in beside)
    ok = lambda good: "ok   " if good else "FAIL "  # noqa: E731
    last = max(ends, default=0)
    print(f"{ok(len(ends) == count and window - 1 <= last <= window + 1)} drain, end: {len(ends)} of {count} tunnels over, the first after "
          f"{min(ends, default=0):.2f} s, the last after {last:.2f} s (bar: {window} ± 1 s)")
    print(f"{ok(peak <= 1.5 * mean)} drain, peak: at most {peak} reconnects in a second, least {min(seconds.values(), default=0)}, "
          f"{mean:.1f} on average (bar: 1.5 times that)")
    print(f"{ok(told == count and heard == count)} drain, 1001: {told} clients and {heard} times the backend were told")
    print(f"{ok(not crowd.faults and crowd.open == count)} drain, clients: {crowd.open} are connected again; faults {dict(crowd.faults)}")
    print(f"{ok(failed == 0)} drain, beside: {failed} of {asked} requests failed")
    print(f"--    drain, cost: {cpu:.2f} s of processor time in all")
    for task in clients + requests:
        task.cancel()
    keel.end(signal.SIGKILL)
    backends.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tunnels", type=int, default=5000)
    parser.add_argument("--window", type=int, default=60, help="in seconds")
    given = parser.parse_args()
    try:
        asyncio.run(bar(given.tunnels, given.window))
    finally:
        Process.end_all()


if __name__ == "__main__":
    main()
