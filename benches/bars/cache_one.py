#!/usr/bin/env python3
"""1,000 clients ask for one thing that is not stored: one request to the backend, whatever clients and backend do meanwhile. Builds nothing;
takes about 2 minutes. `--clients 100` tries it out."""

import argparse
import asyncio
import collections
import socket
import sys
import time

sys.dont_write_bytecode = True

from cache_lab import Cached, Origin, Shared, Verdicts, descriptors, ground, head, pattern  # noqa: E402

MIB = 1 << 20
BODY = pattern(7, 10 * MIB)
SMALL = 30_000
# One client of so many reads slowly.
SLOW_ONE_OF = 20
SLOW_BYTES_A_SECOND = 2 * MIB
PATIENCE = 180
# What the bar tells the origin.
GO, GO_ON = 1, 2


async def told(shared, at):
    while not shared[at]:
        await asyncio.sleep(0.002)


class Answers:
    """The origin. A path is what it does, whether it says the length, how long that is, and a name."""

    def __init__(self, shared):
        self.seen, self.shared = collections.Counter(), shared

    async def __call__(self, path, _, __, writer):
        self.seen[path] += 1
        what, framing, length = path.split("/")[1:4]
        length = int(length)
        await told(self.shared, GO)
        if what == "dies" or what == "dies-once" and self.seen[path] == 1:
            return False
        writer.write(head(length if framing == "length" else None))
        for at in range(0, length, 65536):
            piece = BODY[at:min(at + 65536, length)]
            writer.write(piece if framing == "length" else b"%x\r\n%b\r\n" % (len(piece), piece))
            if at <= length // 2 < at + 65536:
                if what in ("waits", "breaks"):
                    await told(self.shared, GO_ON)
                if what == "breaks":
                    return False
            await writer.drain()
        if framing != "length":
            writer.write(b"0\r\n\r\n")
        return True


class Reader(asyncio.Protocol):
    """One client with one request. `end`: whole, cut, wrong or left."""

    def __init__(self, path, slow):
        self.path, self.slow = path, slow
        self.held, self.status, self.left, self.is_chunked, self.at = b"", 0, None, False, 0
        self.end, self.over = None, asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        transport.write(f"GET {self.path} HTTP/1.1\r\nHost: bar\r\n\r\n".encode())

    def data_received(self, data):
        if self.slow:
            self.transport.pause_reading()
            asyncio.get_running_loop().call_later(len(data) / SLOW_BYTES_A_SECOND, self.go_on)
        if not self.status:
            self.held += data
            lines, found, data = self.held.partition(b"\r\n\r\n")
            if not found:
                return
            self.held, self.status = b"", int(lines[9:12])
            lines = lines.lower()
            self.is_chunked = b"transfer-encoding: chunked" in lines
            self.left = 0 if self.is_chunked else int(lines.split(b"content-length: ")[1].split(b"\r\n")[0])
        if self.is_chunked:
            self.chunks(data)
        else:
            self.take(data)
            if self.left == 0:
                self.close("whole")

    def chunks(self, data):
        """`left` has two more than the bytes of the chunk that are left: those of its end."""
        while data:
            if self.left > 2:
                piece = data[:self.left - 2]
                self.take(piece)
                data = data[len(piece):]
            elif self.left > 0:
                gone = min(self.left, len(data))
                self.left, data = self.left - gone, data[gone:]
            else:
                self.held += data
                line, found, data = self.held.partition(b"\r\n")
                if not found:
                    return
                self.held, size = b"", int(line, 16)
                if size == 0:
                    return self.close("whole")
                self.left = size + 2

    def take(self, piece):
        self.left -= len(piece)
        if self.status == 200 and piece != BODY[self.at:self.at + len(piece)]:
            self.close("wrong")
        self.at += len(piece)

    def go_on(self):
        if self.end is None:
            self.transport.resume_reading()

    def close(self, end):
        self.end = self.end or end
        self.transport.abort()

    def connection_lost(self, _):
        self.end = self.end or "cut"
        self.over.set_result(None)


class Crowd:
    """All clients of one case."""

    def __init__(self, bar, path):
        self.bar, self.path, self.readers = bar, path, []
        bar.origin.shared[GO] = bar.origin.shared[GO_ON] = 0
        self.before, self.began = bar.origin.requests, time.monotonic()

    async def come(self, count, slow_one_of=0):
        loop = asyncio.get_running_loop()
        for number in range(count):
            slow = bool(slow_one_of) and number % slow_one_of == 1
            one = socket.socket()
            if slow:
                # What the kernel takes for it is not read by it.
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            one.setblocking(False)
            await loop.sock_connect(one, ("127.0.0.1", self.bar.keel.front))
            _, reader = await loop.create_connection(lambda slow=slow: Reader(self.path, slow), sock=one)
            self.readers.append(reader)

    async def asked(self):
        """The first one's request is with the origin, and evenkeel has read those of all others."""
        while self.bar.origin.requests == self.before:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.5)

    def tell(self, at):
        self.bar.origin.shared[at] = 1

    async def end(self):
        await asyncio.wait([reader.over for reader in self.readers], timeout=PATIENCE)
        ends = collections.Counter((reader.status, reader.end or "nothing") for reader in self.readers)
        said = ", ".join(f"{count} {status} {end}" for (status, end), count in sorted(ends.items()))
        slow = [reader for reader in self.readers if reader.slow]
        said += f" ({len(slow)} of them slow)" if slow else ""
        return self.bar.origin.requests - self.before, ends, f"{said}; {time.monotonic() - self.began:.1f} s"


class Bar:
    def __init__(self, clients, verdict, folder):
        self.clients, self.verdict, self.folder = clients, verdict, folder
        shared = Shared(3)
        self.origin = Origin(Answers(shared), shared)
        self.store("16MiB")

    def store(self, most):
        self.keel = Cached(self.folder, self.origin.port, store=f"{{memory: 256MiB, object: {most}}}")

    async def whole(self, name, path, slow_one_of=0, leaves=None):
        """All get the whole of it by one request. `leaves`: the first one goes in the middle, or before the head."""
        crowd = Crowd(self, path)
        await crowd.come(1)
        while self.origin.requests == crowd.before:
            await asyncio.sleep(0.005)
        await crowd.come(self.clients - 1, slow_one_of)
        await crowd.asked()
        first = crowd.readers[0]
        if leaves == "before":
            first.close("left")
            while self.origin.requests < crowd.before + 2 and crowd.readers[1].end is None:
                await asyncio.sleep(0.005)
        crowd.tell(GO)
        if leaves == "middle":
            while first.at == 0:
                await asyncio.sleep(0.005)
            first.close("left")
            await asyncio.sleep(0.2)
            crowd.tell(GO_ON)
        requests, ends, said = await crowd.end()
        good = ends[200, "whole"] == self.clients - bool(leaves)
        most = 2 if leaves == "before" else 1
        self.verdict(f"cache one, {name}", good and requests <= most, f"{requests} request(s) to the backend (bar: {most}) for {self.clients} clients: {said}")

    async def dies(self, name, path, wanted):
        """All get a whole answer, with one of these statuses: who has asked first may be told that it failed."""
        crowd = Crowd(self, path)
        await crowd.come(self.clients)
        await crowd.asked()
        crowd.tell(GO)
        requests, ends, said = await crowd.end()
        good = sum(count for (status, end), count in ends.items() if end == "whole" and status in wanted) == self.clients
        self.verdict(f"cache one, {name}", good and requests <= 2, f"{requests} request(s) to the backend (bar: 2) for {self.clients} clients: {said}")

    async def breaks(self, name, path):
        crowd = Crowd(self, path)
        await crowd.come(self.clients)
        await crowd.asked()
        crowd.tell(GO)
        while not all(reader.at for reader in crowd.readers):
            await asyncio.sleep(0.005)
        crowd.tell(GO_ON)
        requests, ends, said = await crowd.end()
        good = ends[200, "cut"] == self.clients
        self.verdict(f"cache one, {name}", good and requests == 1, f"{requests} request(s) to the backend (bar: 1) for {self.clients} clients: {said}")
        again = Crowd(self, path.replace("breaks", "whole"))
        again.tell(GO)
        again.path = path
        again.tell(GO_ON)
        await again.come(1)
        requests, _, said = await again.end()
        self.verdict(f"cache one, {name}, later", requests == 1, f"nothing of it is stored: {requests} request to the backend for one more client")

    async def run(self):
        await self.whole("small", f"/whole/length/{SMALL}/a")
        await self.whole("small, chunked", f"/whole/chunked/{SMALL}/a")
        await self.whole("the first client leaves in the middle", f"/waits/length/{4 * SMALL}/b", leaves="middle")
        await self.whole("the first client leaves before the head", f"/waits-not/length/{SMALL}/c", leaves="before")
        await self.dies("the backend dies before its head, once", f"/dies-once/length/{SMALL}/d", {200, 502})
        await self.dies("the backend dies before its head, always", f"/dies/length/{SMALL}/e", {502, 503, 504})
        await self.breaks("the backend dies in the body", f"/breaks/length/{MIB}/f")
        await self.breaks("the backend dies in the body, chunked", f"/breaks/chunked/{MIB}/g")
        await self.whole("10 MiB", f"/whole/length/{10 * MIB}/h")
        await self.whole("10 MiB, slow clients too", f"/whole/length/{10 * MIB}/i", SLOW_ONE_OF)
        await self.whole("10 MiB, slow clients too, the first one leaves", f"/waits/length/{10 * MIB}/j", SLOW_ONE_OF, "middle")
        self.verdict("cache one, memory", None, f"evenkeel has had {self.keel.status('VmHWM') / 1024:.0f} MiB resident at most, with 30 MiB stored")
        self.keel.end()
        # It keeps less than comes, and nobody knows that before.
        self.store("4MiB")
        await self.whole("10 MiB of which 4 are kept, slow clients too", f"/whole/chunked/{10 * MIB}/k", SLOW_ONE_OF)
        self.verdict("cache one, memory", None, f"evenkeel has had {self.keel.status('VmHWM') / 1024:.0f} MiB resident at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    given = parser.parse_args()
    descriptors(8192)
    verdict = Verdicts()
    with ground() as folder:
        asyncio.run(Bar(given.clients, verdict, folder).run())
    verdict.end()


if __name__ == "__main__":
    main()
