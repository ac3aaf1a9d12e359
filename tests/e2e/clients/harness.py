"""What the checks of Python's clients share: where evenkeel and its backend are, raw sockets, and the loop
that runs the checks. Standard library only."""

import http.client
import json
import select
import socket
import ssl
import sys
import time
import traceback
import urllib.request

PATIENCE = 20  # seconds; nothing on loopback takes longer
CHECKS = []


def check(function=None, *, only=None):
    """Registers a check. Its name is the function's; `only` keeps it to one scheme."""

    def register(function):
        CHECKS.append((function.__name__.replace("_", "-"), only, function))
        return function

    return register(function) if function else register


def expect(left, right):
    if left != right:
        raise AssertionError(f"{short(left)} instead of {short(right)}")


def short(value):
    text = repr(value)
    return text if len(text) < 300 else f"{text[:300]}... ({len(value)} long)"


def raises(kind, action):
    """The exception of this kind that the action must raise."""
    try:
        result = action()
    except kind as error:
        return error
    raise AssertionError(f"{short(result)} instead of an error")


def pattern(length):
    """The bytes that a fake sends."""
    cycle = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY"
    return (cycle * (length // len(cycle) + 1))[:length]


class Fake:
    """The backend, asked directly and in clear."""

    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}/_fake"

    def stats(self):
        with urllib.request.urlopen(self.address, timeout=PATIENCE) as answer:
            lines = answer.read().decode().splitlines()
        pairs = dict(line.split("=", 1) for line in lines)
        return {key: int(value) for key, value in pairs.items() if value.isdigit()}

    def behave(self, query):
        with urllib.request.urlopen(f"{self.address}?{query}", data=b"", timeout=PATIENCE) as answer:
            expect(answer.status, 200)

    def wait(self, what, condition):
        """Waits until its counters fulfil the condition."""
        deadline = time.monotonic() + PATIENCE
        while not condition(stats := self.stats()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not in time: {what}; {stats}")
            time.sleep(0.005)
        return stats

    def sent_until_it_stalls(self):
        """How many bytes it has sent when it sends no more."""
        sent = []

        def stalled(now):
            # Each look is answered with a few hundred bytes, which count too.
            sent.append(now["bytes_out"] - 400 * len(sent))
            return len(sent) > 30 and sent[-1] <= sent[-30]

        self.wait("the backend is held back", stalled)
        return sent[-1]


class Keel:
    """evenkeel, over http or https."""

    def __init__(self, scheme, port, fake_port, ca_file):
        self.scheme, self.port = scheme, port
        self.fake = Fake(fake_port)
        self.ca_file = ca_file

    @property
    def https(self):
        return self.scheme == "https"

    def context(self, **changes):
        context = ssl.create_default_context(cafile=self.ca_file)
        for key, value in changes.items():
            setattr(context, key, value)
        return context

    def connection(self, context=None):
        """One of http.client's, to the listener."""
        if self.https:
            return http.client.HTTPSConnection(
                "localhost", self.port, timeout=PATIENCE, context=context or self.context()
            )
        return http.client.HTTPConnection("localhost", self.port, timeout=PATIENCE)

    def get(self, path="/", method="GET", body=None, headers={}, **more):
        """One request on a connection of its own: status, headers, body."""
        connection = self.connection()
        try:
            connection.request(method, path, body=body, headers=headers, **more)
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def received(self, method="GET", headers={}, **more):
        """The head of a request as the backend received it, in lines."""
        answer, body = self.get("/head", method, headers=headers, **more)
        expect(answer.status, 200)
        return body.decode("latin-1").split("\r\n")

    def hello(self, path="/"):
        """An ordinary request must be answered."""
        answer, body = self.get(path)
        expect((answer.status, body), (200, b"Hello from fake-1"))

    def tcp(self):
        connected = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected

    def tls(self, context=None, name="localhost", session=None, **more):
        context = context or self.context()
        return context.wrap_socket(self.tcp(), server_hostname=name, session=session, **more)

    def raw(self):
        """A connection for bytes as they are."""
        return Raw(self.tls(suppress_ragged_eofs=False) if self.https else self.tcp())

    def ask(self, request):
        """The final answer to these bytes, on a connection of its own."""
        with self.raw() as raw:
            raw.send(request)
            return raw.final()


class Answer:
    """One answer off a raw connection."""

    def __init__(self, head):
        self.head = head
        start, *lines = head.decode("latin-1").split("\r\n")
        self.version, status, *_ = start.split(" ", 2)
        self.status = int(status)
        self.headers = {}
        for line in filter(None, lines):
            key, value = line.split(":", 1)
            self.headers[key.lower()] = value.strip()
        self.body = b""
        self.trailers = []


class Raw:
    """A connection on which a check writes what it likes."""

    def __init__(self, connected):
        self.socket = connected
        self.held = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))

    def send_while_reading(self, data):
        """Sends all of it and takes what comes meanwhile. One thread: OpenSSL's sockets bear no second one."""
        view, pieces = memoryview(data), [self.held]
        self.socket.setblocking(False)
        while view:
            try:
                view = view[self.socket.send(view[:65536]) :]
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                select.select([self.socket], [self.socket], [], PATIENCE)
            try:
                pieces.append(self.socket.recv(65536))
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                pass
        self.socket.settimeout(PATIENCE)
        self.held = b"".join(pieces)

    def fill(self):
        data = self.socket.recv(65536)
        self.held += data
        return data

    def until(self, mark):
        while mark not in self.held:
            if not self.fill():
                raise AssertionError(f"the end came before {mark!r}: {short(self.held)}")
        taken, self.held = self.held.split(mark, 1)
        return taken + mark

    def take(self, count):
        pieces, have = [self.held], len(self.held)
        while have < count:
            data = self.socket.recv(65536)
            if not data:
                raise AssertionError(f"the end came {count - have} bytes early")
            pieces.append(data)
            have += len(data)
        whole = b"".join(pieces)
        self.held = whole[count:]
        return whole[:count]

    def rest(self):
        while self.fill():
            pass
        taken, self.held = self.held, b""
        return taken

    def answer(self, to="GET"):
        answer = Answer(self.until(b"\r\n\r\n"))
        if to == "HEAD" or answer.status < 200 or answer.status in (204, 304):
            return answer
        if answer.headers.get("transfer-encoding") == "chunked":
            while size := int(self.until(b"\r\n").strip().split(b";")[0], 16):
                answer.body += self.take(size)
                expect(self.take(2), b"\r\n")
            while (line := self.until(b"\r\n")) != b"\r\n":
                answer.trailers.append(line.decode("latin-1").strip())
        elif "content-length" in answer.headers:
            answer.body = self.take(int(answer.headers["content-length"]))
        else:
            answer.body = self.rest()
        return answer

    def final(self, to="GET"):
        while (answer := self.answer(to)).status < 200:
            pass
        return answer

    def expect_end(self):
        """Nothing more may come, and the end must be a clean one."""
        expect(self.rest(), b"")


def main(kind=Keel):
    scheme, port, fake_port, ca_file = sys.argv[1:5]
    keel = kind(scheme, int(port), int(fake_port), ca_file)
    for name, only, function in CHECKS:
        if only not in (None, scheme):
            continue
        try:
            keel.fake.behave("reset=1")
            function(keel)
            # Whatever happened, the next one must not feel it.
            keel.fake.behave("reset=1")
            keel.hello("/next")
            print(json.dumps({"check": name, "ok": True}), flush=True)
        except Exception:
            print(json.dumps({"check": name, "ok": False, "why": traceback.format_exc()}), flush=True)
    print(json.dumps({"done": True}), flush=True)
