"""What upgrade.py asks of the process beside requests on connections of HTTP/1.1 that stay: a process for each kind, ended by the end of its standard input; then it prints what came of it.

`upgrade_load.py http2 PORT TLS_PORT CA`, `secured TLS_PORT CA`, `others HTTP_PORT TCP_PORT UDP_PORT`, and `echo` as the backend of the last two."""

import asyncio
import base64
import json
import os
import socket
import ssl
import sys
import threading
import time

sys.dont_write_bytecode = True
import http2_lab as h2  # noqa: E402
from http2_client import Connection, Loop, trust  # noqa: E402

HTTP2, NEW, SECURED, SOCKETS, EACH, SHORT, FLOWS = 400, 200, 80, 40, 5, 100, 40
PATIENCE = 5.0


def ends():
    """Is set when standard input ends."""
    over = threading.Event()

    def wait():
        sys.stdin.read()
        over.set()
    threading.Thread(target=wait, daemon=True).start()
    return over


def http2(port, secure, ca):
    """Four connections, two of them with TLS: whoever is told to go away opens another one."""
    over, loop, wanted = ends(), Loop(), [(int(port), None), (int(port), None), (int(secure), trust(ca)), (int(secure), trust(ca))]
    good, failed = [0], []

    def done(_, stream):
        if stream.ended and stream.status == 200:
            good[0] += 1
        else:
            failed.append(f"status {stream.status}, reset {stream.code}")

    opened = lambda one: loop.add(Connection(one[0], one[1], over=done))  # noqa: E731
    connections, due, turn, away = [opened(one) for one in wanted], time.monotonic(), 0, 0
    while not over.is_set():
        while time.monotonic() >= due:
            due, turn = due + 1 / HTTP2, turn + 1
            place = turn % len(wanted)
            if not connections[place].may_ask():
                connections[place], away = opened(wanted[place]), away + 1
            connections[place].request(h2.request(b"/bytes/300"))
            loop.stir(connections[place])
        loop.turn(min(0.002, max(0.0, due - time.monotonic())))
    loop.run_until(lambda: not any(one.streams for one in loop.known.values()), PATIENCE)
    print(json.dumps({"good": good[0], "failed": failed[:5], "failures": len(failed), "others": away}))


def secured(port, ca):
    """New connections with TLS, each of which wants to continue the session before."""
    over, lock, said = ends(), threading.Lock(), {"good": 0, "failures": 0, "failed": [], "resumed": 0, "first": [0, 0]}
    begun = time.monotonic()

    def client():
        context, session = trust(ca, "http/1.1"), None
        while not over.is_set():
            time.sleep(4 / SECURED)
            try:
                with socket.create_connection(("127.0.0.1", int(port)), PATIENCE) as plain, \
                        context.wrap_socket(plain, server_hostname="localhost", session=session) as one:
                    one.sendall(b"GET /bytes/300 HTTP/1.1\r\nHost: bar\r\nConnection: close\r\n\r\n")
                    answer = b""
                    while more := one.recv(65536):
                        answer += more
                    if not answer.startswith(b"HTTP/1.1 200"):
                        raise OSError(f"answered {answer[:60]}")
                    was, session = session, one.session
                    with lock:
                        said["good"] += 1
                        if was:
                            said["resumed"] += one.session_reused
                            if time.monotonic() - begun < 4.5:
                                said["first"][0] += one.session_reused
                                said["first"][1] += 1
            except (OSError, ssl.SSLError) as error:
                with lock:
                    said["failures"] += 1
                    said["failed"].append(str(error))
    clients = [threading.Thread(target=client) for _ in range(4)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    said["failed"] = said["failed"][:5]
    print(json.dumps(said))


def text_frame(text, masked=True):
    mask = b"\1\2\3\4"
    payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))
    return bytes([0x81, 0x80 | len(text)]) + mask + payload


class Others:
    """New connections of HTTP/1.1, WebSockets, TCP and UDP."""

    def __init__(self, http, tcp, udp):
        self.http, self.tcp, self.udp, self.over = http, tcp, udp, False
        self.said = {kind: {"good": 0, "failures": 0, "failed": []} for kind in ("new", "websocket", "tcp", "udp")}
        self.said["websocket"].update(reconnects=0, cut=0)

    def good(self, kind):
        self.said[kind]["good"] += 1

    def failed(self, kind, why):
        self.said[kind]["failures"] += 1
        self.said[kind]["failed"].append(f"{time.time():.3f} {type(why).__name__} {why}"[:120])

    async def at_rate(self, rate, what):
        due, tasks = time.monotonic(), set()
        while not self.over:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due += 1 / rate
            task = asyncio.ensure_future(what())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)

    async def new(self):
        try:
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.http)
                writer.write(b"GET / HTTP/1.1\r\nHost: bar\r\nConnection: close\r\n\r\n")
                answer = await reader.read(-1)
                writer.close()
            if not answer.startswith(b"HTTP/1.1 200"):
                raise OSError(f"answered {answer[:60]}")
            self.good("new")
        except (OSError, TimeoutError) as error:
            self.failed("new", error)

    async def short(self):
        """A connection of TCP with three questions."""
        try:
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.tcp)
                for number in range(3):
                    line = f"{number}\n".encode()
                    writer.write(line)
                    if await reader.readline() != line:
                        raise OSError("another answer")
                    await asyncio.sleep(0.03)
                writer.close()
            self.good("tcp")
        except (OSError, TimeoutError) as error:
            self.failed("tcp", error)

    async def websocket(self):
        """Asks again and again on one; when the other side closes it, on another one."""
        said, number, writer = self.said["websocket"], 0, None
        while not self.over:
            try:
                async with asyncio.timeout(PATIENCE):
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.http)
                    key = base64.b64encode(os.urandom(16)).decode()
                    writer.write(f"GET /ws HTTP/1.1\r\nHost: bar\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
                    head = await reader.readuntil(b"\r\n\r\n")
                if not head.startswith(b"HTTP/1.1 101"):
                    raise OSError(f"answered {head[:60]}")
                while not self.over:
                    number += 1
                    text = str(number).encode()
                    writer.write(text_frame(text))
                    async with asyncio.timeout(PATIENCE):
                        first, length = await reader.readexactly(2)
                        payload = await reader.readexactly(length & 0x7F)
                    if first == 0x88:
                        # It says that it goes away, in words of the protocol.
                        break
                    if payload != text:
                        raise OSError(f"another answer: {payload[:20]}")
                    self.good("websocket")
                    await asyncio.sleep(1 / EACH)
                said["reconnects"] += not self.over
            except asyncio.IncompleteReadError:
                said["cut"] += 1
            except (OSError, TimeoutError) as error:
                self.failed("websocket", error)
            finally:
                if writer:
                    writer.close()

    async def flow(self, place):
        """A client of UDP, whose port changes now and then."""
        loop, number = asyncio.get_running_loop(), place
        while not self.over:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                one.setblocking(False)
                one.connect(("127.0.0.1", self.udp))
                for _ in range(20 * EACH):
                    if self.over:
                        break
                    number += 1
                    question = str(number).encode()
                    one.send(question)
                    try:
                        async with asyncio.timeout(1.0):
                            while await loop.sock_recv(one, 100) != question:
                                pass
                        self.good("udp")
                    except (OSError, TimeoutError) as error:
                        self.failed("udp", error)
                    await asyncio.sleep(1 / EACH)

    async def all(self, over):
        async def end():
            while not over.is_set():
                await asyncio.sleep(0.1)
            self.over = True
        sockets = [self.websocket() for _ in range(SOCKETS)]
        flows = [self.flow(place * 1_000_000) for place in range(FLOWS)]
        await asyncio.gather(end(), self.at_rate(NEW, self.new), self.at_rate(SHORT, self.short), *sockets, *flows)


def others(*ports):
    over, load = ends(), Others(*map(int, ports))
    asyncio.run(load.all(over))
    for kind in load.said.values():
        kind["failed"] = kind["failed"][:5]
    print(json.dumps(load.said))


class EchoDatagrams(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.transport.sendto(data, address)


def echo(tcp, udp):
    """Says everything back."""
    async def serve(reader, writer):
        while line := await reader.read(65536):
            writer.write(line)
        writer.close()

    async def run():
        loop = asyncio.get_running_loop()
        await asyncio.start_server(serve, "127.0.0.1", int(tcp))
        await loop.create_datagram_endpoint(EchoDatagrams, ("127.0.0.1", int(udp)))
        await asyncio.Event().wait()
    asyncio.run(run())


if __name__ == "__main__":
    {"http2": http2, "secured": secured, "others": others, "echo": echo}[sys.argv[1]](*sys.argv[2:])
