"""evenkeel under callgrind between a client and a backend that send exactly what they are told."""

import pathlib
import socket
import threading

from lab import PATIENCE, Failure, Process, environment

CONFIG = """\
workers: 1
trusted_proxies: [127.0.0.1]
access_log: {{path: {folder}/access.log, format: json}}
targets:
"""
TARGET = """\
  {name}:
    protocol: http
    listener: 127.0.0.1:0
    health_check: off
    breaker: off
    outlier: off
    retries: off
    {more}
    backends: [{{host: 127.0.0.1, port: {port}}}]
"""
# What of a request each listener reads. Clients of the first two are trusted to speak for others.
LISTENERS = {
    "client": ["balance: maglev", "hash_key: client_ip"],
    "forwarded": ["balance: maglev", "hash_key: client_ip", "forwarded: rfc7239"],
    "plain": [],
    "sticky": ["sticky: {cookie: evenkeel, key: 0123456789abcdef0123456789abcdef}"],
    "cookie": ["balance: maglev", "hash_key: {cookie: session}"],
    "query": ["balance: maglev", "hash_key: {query: user}"],
    "header": ["balance: maglev", "hash_key: {header: X-User}"],
    "path": ["balance: maglev", "hash_key: path"],
}
TRUSTED, STRANGER = "127.0.0.1", "127.0.0.2"
# Requests of each measurement; one more goes before them.
REQUESTS = 4


class Backend:
    """Answers every request with `answer`, as it stands; counts the connections it was sent them on."""

    def __init__(self):
        self.answer, self.close, self.used = b"", False, 0
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        came, first = b"", True
        with connection:
            try:
                while piece := connection.recv(1 << 20):
                    came += piece
                    if not came.endswith(b"\r\n\r\n"):
                        continue
                    self.used += first
                    came, first = b"", False
                    connection.sendall(self.answer)
                    if self.close:
                        return
            except OSError:
                pass


class Seen:
    """What one kind came to."""

    def __init__(self, instructions, status, client_closed, backend_closed):
        self.instructions, self.status = instructions, status
        self.closed = (client_closed, backend_closed)


class Foil:
    """A running evenkeel whose instructions can be read at any time."""

    def __init__(self, evenkeel, folder):
        self.folder, self.backend, self.parts = pathlib.Path(folder), Backend(), 0
        self.folder.mkdir()
        config = self.folder / "foil.yaml"
        made = CONFIG.format(folder=self.folder)
        for name, more in LISTENERS.items():
            made += TARGET.format(name=name, more="\n    ".join(more), port=self.backend.port)
        config.write_text(made)
        command = ["valgrind", "--tool=callgrind", "--dump-line=no", f"--callgrind-out-file={self.folder}/counts"]
        command += ["--vgdb=no", "--dump-before=shutdown", evenkeel, "--config", config]
        self.proxy = Process(command, "stderr", cwd=self.folder, env=environment())
        self.ports = {}
        for name in LISTENERS:
            # The second is how versions before this one said it.
            found = self.proxy.wait_for(
                rf'listening [^\s,]+:(\d+)\b.* listener {name}$|listening .*listener="{name}" address=\S+:(\d+)'
            )
            self.ports[name] = int(found[1] or found[2])
        # What counting itself costs.
        self.poke = 0
        for _ in range(3):
            self.count()
        self.poke = self.count()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proxy.__exit__()
        self.backend.socket.close()

    def count(self):
        """Instructions since the last call."""
        # Refused: the end of the answer is sent by a call of `shutdown`, and callgrind writes what it has before that.
        with socket.create_connection(("127.0.0.1", self.ports["plain"]), PATIENCE, (STRANGER, 0)) as poke:
            poke.sendall(b"\0")
            while poke.recv(1 << 16):
                pass
        total = 0
        while (file := self.folder / f"counts.{self.parts + 1}").exists():
            self.parts += 1
            totals = [line for line in file.read_text(errors="replace").splitlines() if line.startswith("totals:")]
            total += int(totals[-1].split()[1])
            file.unlink()
        if not total:
            raise Failure("callgrind has written no counts")
        return total - self.poke

    def measure(self, kind, closed=(False, False)):
        """What one request of this kind costs. `closed`: whether client and backend close each connection, where the
        proxy would not."""
        request, answer = kind.request, kind.answer
        if closed[0]:
            request = request[:-2] + b"Connection: close\r\n\r\n"
        self.backend.answer, self.backend.close = answer, closed[1]
        if closed[1]:
            self.backend.answer = answer[:-2] + b"Connection: close\r\n\r\n"
        client = Client(self.ports[kind.listener], TRUSTED if kind.listener in ("client", "forwarded") else STRANGER)
        client.ask(request)
        self.count()
        opened, used = client.opened, self.backend.used
        for _ in range(REQUESTS):
            status = client.ask(request)
        cost = self.count() / REQUESTS
        client.close()
        if self.proxy.process.poll() is not None:
            raise Failure(f"evenkeel ended:\n{self.proxy.tail()}")
        return Seen(cost, status, client.opened > opened, self.backend.used > used)


class Client:
    """Sends requests on one connection as long as that stays open."""

    def __init__(self, port, source):
        self.port, self.source, self.socket, self.opened = port, source, None, 0

    def ask(self, request):
        """Sends a request and reads its answer; gives the status."""
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port), PATIENCE, (self.source, 0))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.opened += 1
        self.socket.sendall(request)
        came = b""
        while b"\r\n\r\n" not in came:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise Failure(f"closed without an answer: {request[:80]}")
            came += piece
        head, _, body = came.partition(b"\r\n\r\n")
        length = 0
        if (at := head.lower().find(b"\r\ncontent-length:")) >= 0:
            length = int(head[at + 17 :].split(b"\r\n", 1)[0])
        closes = any(line.lower().startswith(b"connection:") and b"close" in line.lower() for line in head.split(b"\r\n"))
        while closes or len(body) < length:
            piece = self.socket.recv(1 << 20)
            if not piece:
                break
            body += piece
        if closes:
            self.close()
        return int(head.split(b" ", 2)[1])

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None
