"""What the bars of the cache share: an origin that answers as a bar says and counts, an evenkeel with a cache in front of it, verdicts."""

import asyncio
import contextlib
import json
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time

from lab import Process, wait_until
from reload_lab import Folder, Running


class Verdicts:
    """A line for each figure; the exit code of the bar."""

    def __init__(self):
        self.short = []

    def __call__(self, name, is_fine, text):
        """`is_fine`: None where the figure is told and not judged."""
        print(f"{'--   ' if is_fine is None else 'ok   ' if is_fine else 'SHORT'} {name}: {text}", flush=True)
        if is_fine is False:
            self.short.append(name)

    def end(self):
        sys.exit(bool(self.short))


class Shared:
    """Numbers that processes see of one another; each is written by one of them."""

    def __init__(self, count):
        self.memory = mmap.mmap(-1, 8 * count)

    def __getitem__(self, at):
        return struct.unpack_from("q", self.memory, 8 * at)[0]

    def __setitem__(self, at, value):
        struct.pack_into("q", self.memory, 8 * at, value)

    def add(self, at, value=1):
        self[at] += value


def descriptors(count):
    """So many files may be open."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = count if most == resource.RLIM_INFINITY else min(count, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


class Child:
    """A process of the bar's own, which is forked and runs `work`."""

    alive = []

    def __init__(self, work):
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                code = work() or 0
            except KeyboardInterrupt:
                pass
            except BaseException as error:  # noqa: BLE001
                sys.stderr.write(f"a child of the bar: {error!r}\n")
            finally:
                sys.stdout.flush()
                os._exit(code)
        Child.alive.append(self)

    def wait(self):
        """Its exit code."""
        Child.alive.remove(self)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def end(self):
        if self in Child.alive:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    @staticmethod
    def end_all():
        for child in list(Child.alive):
            child.end()


class Origin(Child):
    """Answers with what `script(path, number, reader, writer)` writes, a coroutine; `number`: the how manieth request it is, from 1. What
    gives False has its connection reset."""

    def __init__(self, script, shared=None):
        # With its protocol named asyncio sets TCP_NODELAY.
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(4096)
        self.port = self.socket.getsockname()[1]
        # 0 is the number of requests, the others are the script's.
        self.shared = shared or Shared(8)
        self.script = script
        super().__init__(lambda: asyncio.run(self.serve()))

    @property
    def requests(self):
        return self.shared[0]

    async def serve(self):
        server = await asyncio.start_server(self.connection, sock=self.socket, backlog=4096)
        async with server:
            await server.serve_forever()

    async def connection(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.shared.add(0)
                path = head.split(b" ", 2)[1].decode()
                if await self.script(path, self.requests, reader, writer) is False:
                    writer.transport.abort()
                    return
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@contextlib.contextmanager
def ground():
    """A folder. All that is started on it ends with it."""
    folder = Folder()
    try:
        yield folder
    finally:
        Child.end_all()
        Process.end_all()
        folder.end()


def head(length, *lines):
    """That of an answer which may be stored for an hour."""
    more = "".join(f"{line}\r\n" for line in lines)
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return f"HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\n{framing}\r\n{more}\r\n".encode()


def pattern(seed, length):
    """Bytes that tell their place: no two pieces of 4 KiB are the same."""
    out = bytearray()
    for number in range(-(-length // 4096)):
        out += struct.pack("<QQ", seed, number) * 256
    return bytes(out[:length])


class Cached(Running):
    """evenkeel with one listener, one target, and a cache."""

    def __init__(self, folder, port, cache="{ttl: off}", store="{}", workers=2, more="", target=""):
        self.socket = folder.file("admin.sock")
        super().__init__(f"log_format: json\nworkers: {workers}\nwatch: off\nadmin: {{socket: {self.socket}}}\n"
                         f"state_dir: {folder.file('state')}\ncache_store: {store}\n"
                         f"listeners:\n  front:\n    bind: 127.0.0.1:0\n    routes: [{{target: web, cache: {cache}{more}}}]\n"
                         f"targets:\n  web: {{health_check: off, {target}backends: [{{host: 127.0.0.1, port: {port}}}]}}\n", folder)
        self.front = self.port("front")

    def purge(self, **what):
        """Purges; gives how long the API took, in milliseconds."""
        body = json.dumps(what).encode()
        began = time.monotonic()
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(20)
            one.connect(self.socket)
            one.sendall(f"POST /api/v1/cache/purge HTTP/1.1\r\nHost: bar\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            answer = b""
            while piece := one.recv(65536):
                answer += piece
        took = (time.monotonic() - began) * 1000
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the purge was refused: {answer.decode()}")
        return took


def crowd(count, work):
    """Runs work(number) in so many threads. What fails in one of them fails here."""
    errors = []

    def run(number):
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Wire:
    """One kept connection that takes bodies without looking at all of them, as fast as they come."""

    room = memoryview(bytearray(1 << 20))

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, path, more=""):
        """(whether it was a hit, bytes of the body, the first of them)."""
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: bar\r\n{more}\r\n".encode())
        held = b""
        while b"\r\n\r\n" not in held:
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError("the connection ended in a head")
            held += piece
        lines, _, begin = held.partition(b"\r\n\r\n")
        if not lines.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(lines[:40].decode())
        length = int(lines.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        # Its first bytes may come behind its head.
        while len(begin) < min(length, 16):
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError("the connection ended in a body")
            begin += piece
        left = length - len(begin)
        while left > 0:
            count = self.socket.recv_into(self.room, min(left, len(self.room)))
            if not count:
                raise ConnectionError("the connection ended in a body")
            left -= count
        return b"evenkeel; hit" in lines, length, begin

    def close(self):
        self.socket.close()




__all__ = ["Cached", "Child", "Folder", "Origin", "Shared", "Verdicts", "Wire", "crowd", "descriptors", "head", "pattern", "wait_until"]
