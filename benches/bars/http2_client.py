"""A client of HTTP/2 that keeps to the protocol: windows, GOAWAY, TLS. One thread turns any number of its connections."""

import select
import socket
import ssl
import struct
import subprocess
import threading
import time

import http2_lab as h2
import lab

# What windows are until something else is said, and the most that they can be (RFC 9113 §6.9).
FIRST = 65_535
MOST = 0x7FFFFFFF
FRAME = 16 * 1024
# What is read of one connection before another one has its turn.
TURN = 1 << 20
STATUSES = (200, 204, 206, 304, 400, 404, 500)


def status_of(block):
    """The status that a head begins with: in the table, or a literal that is not compressed; 0: neither."""
    at = 0
    while at < len(block) and block[at] & 0xE0 == 0x20:
        # The size of a table (RFC 7541 §6.3).
        if block[at] & 0x1F == 0x1F:
            at += 1
            while block[at] & 0x80:
                at += 1
        at += 1
    if at >= len(block):
        return 0
    if 0x88 <= block[at] <= 0x8E:
        return STATUSES[block[at] - 0x88]
    if block[at] in range(0x08, 0x0F) or block[at] in range(0x18, 0x1F) or block[at] in range(0x48, 0x4F):
        text = block[at + 2:at + 2 + (block[at + 1] & 0x7F)]
        return int(text) if text.isdigit() else 0
    return 0


def trust(path, protocol="h2"):
    """TLS that trusts the certificates in a file and asks for one protocol."""
    context = ssl.create_default_context(cafile=path)
    context.set_alpn_protocols([protocol])
    return context


def connect(port, context=None, receive=None):
    """A connection that blocks. `receive`: bytes that the kernel may keep of what it has read."""
    plain = socket.socket()
    plain.settimeout(20)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if receive:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    plain.connect(("127.0.0.1", port))
    return context.wrap_socket(plain, server_hostname="localhost") if context else plain


class Stream:
    """One request and what has come of its answer."""

    def __init__(self, number, due, credit, upload):
        self.number, self.due, self.credit, self.left = number, due, credit, upload
        self.status, self.content, self.eaten = 0, 0, 0
        # The last frame came; or it was reset with this code.
        self.ended, self.code = False, None

    def is_over(self):
        return self.ended or self.code is not None


class Connection:
    """One connection. It gives windows of `window` bytes for each stream and of `whole` for all, and opens them again when half is used
    up, unless `refills` is false. `over(connection, stream)` is called for each stream that has ended, however it did."""

    def __init__(self, port, context=None, window=FIRST, whole=FIRST, refills=True, over=None, taken=None, receive=None):
        self.window, self.whole, self.refills = window, whole, refills
        self.over, self.taken = over or (lambda connection, stream: None), taken
        self.socket = connect(port, context, receive)
        self.is_secure = context is not None
        self.socket.setblocking(False)
        self.frames, self.out = h2.Frames(), bytearray(h2.PREFACE + h2.settings(push=0, window=window))
        if whole > FIRST:
            self.out += h2.window(0, whole - FIRST)
        self.streams, self.next = {}, 1
        self.most, self.initial, self.credit, self.eaten = 100, FIRST, FIRST, 0
        # Last numbers of the GOAWAYs that came, and their codes; whether the connection was ended.
        self.goaways, self.codes, self.closed = [], [], False
        self.greeted = False

    def fileno(self):
        return self.socket.fileno()

    def request(self, block, due=None, upload=0):
        """Sends a head; `upload` bytes follow as windows allow."""
        number, self.next = self.next, self.next + 2
        stream = Stream(number, time.monotonic() if due is None else due, self.initial, upload)
        self.streams[number] = stream
        self.out += h2.frame(h2.HEADERS, h2.END_HEADERS | (0 if upload else h2.END_STREAM), number, block)
        return stream

    def may_ask(self):
        return not self.goaways and not self.closed and len(self.streams) < self.most

    def pump(self, most=1 << 20):
        """Puts what uploads may send into the output, as long as that is short. True: there was something."""
        before = len(self.out)
        for stream in list(self.streams.values()):
            while stream.left and len(self.out) < most:
                count = min(FRAME, stream.left, stream.credit, self.credit)
                if count <= 0:
                    break
                stream.left -= count
                stream.credit -= count
                self.credit -= count
                self.out += h2.frame(h2.DATA, 0 if stream.left else h2.END_STREAM, stream.number, bytes(count))
        return len(self.out) > before and not self.closed

    def write(self):
        try:
            while self.out and not self.closed:
                with memoryview(self.out) as view:
                    count = self.socket.send(view[:1 << 18])
                del self.out[:count]
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass
        except OSError:
            self.end()

    def read(self):
        """Takes what there is, but no more than a turn's worth. What is left in TLS's own buffer is taken at once: no select knows it."""
        count = 0
        try:
            while not self.closed and (count < TURN or self.is_secure and self.socket.pending()):
                piece = self.socket.recv(1 << 18)
                if not piece:
                    return self.end()
                count += len(piece)
                for frame in self.frames.feed(piece):
                    self.take(*frame)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            self.end()

    def end(self):
        """The connection is over: so are its streams."""
        if not self.closed:
            self.closed = True
            self.socket.close()
            for stream in list(self.streams.values()):
                self.finish(stream)

    def finish(self, stream):
        self.streams.pop(stream.number, None)
        self.over(self, stream)

    def take(self, kind, flags, number, payload):
        stream = self.streams.get(number)
        if kind == h2.DATA:
            self.eat(stream, number, flags, payload)
        elif kind == h2.HEADERS and stream:
            status = status_of(payload)
            if status >= 200:
                stream.status = status
            if flags & h2.END_STREAM:
                stream.ended = True
                self.finish(stream)
        elif kind == h2.RST_STREAM and stream:
            # What is behind a whole answer only says that the rest of the request is not wanted.
            stream.code = int.from_bytes(payload, "big")
            self.finish(stream)
        elif kind == h2.WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if number == 0:
                self.credit += more
            elif stream:
                stream.credit += more
        elif kind == h2.SETTINGS and not flags & h2.ACK:
            self.set(payload)
        elif kind == h2.PING and not flags & h2.ACK:
            self.out += h2.frame(h2.PING, h2.ACK, 0, payload)
        elif kind == h2.GOAWAY:
            last, code = struct.unpack(">II", payload[:8])
            self.goaways.append(last & MOST)
            self.codes.append(code)

    def eat(self, stream, number, flags, payload):
        count = len(payload)
        if stream:
            if self.taken:
                self.taken(stream, payload)
            stream.content += count
        if self.refills:
            self.eaten += count
            if self.eaten >= self.whole // 2:
                self.out += h2.window(0, self.eaten)
                self.eaten = 0
            if stream and not flags & h2.END_STREAM:
                stream.eaten += count
                if stream.eaten >= self.window // 2:
                    self.out += h2.window(number, stream.eaten)
                    stream.eaten = 0
        if stream and flags & h2.END_STREAM:
            stream.ended = True
            self.finish(stream)

    def set(self, payload):
        for name, value in struct.iter_unpack(">HI", payload):
            if name == 3:
                self.most = value
            elif name == 4:
                for stream in self.streams.values():
                    stream.credit += value - self.initial
                self.initial = value
        self.greeted = True
        self.out += h2.frame(h2.SETTINGS, h2.ACK, 0)


class Loop:
    """Connections that one thread turns."""

    def __init__(self):
        self.poller, self.known = select.epoll(), {}

    def add(self, connection):
        self.known[connection.fileno()] = connection
        self.poller.register(connection.fileno(), 0)
        self.stir(connection)
        return connection

    def stir(self, connection):
        """Sends what was asked for from outside of a turn."""
        number = connection.fileno()
        connection.pump()
        connection.write()
        while not connection.out and connection.pump():
            connection.write()
        if connection.closed:
            self.known.pop(number, None)
        else:
            self.poller.modify(number, select.EPOLLIN | (select.EPOLLOUT if connection.out else 0))

    def turn(self, seconds):
        for number, events in self.poller.poll(max(0.0, seconds)):
            connection = self.known.get(number)
            if connection is None:
                continue
            if events & ~select.EPOLLOUT:
                connection.read()
            if connection.closed:
                self.known.pop(number, None)
            else:
                self.stir(connection)

    def run_until(self, condition, seconds):
        """False: it has not come true in time."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            self.turn(0.05)
        return True


class Peak(threading.Thread):
    """The most resident memory of a process, until the end."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.most, self.over = process, process.rss_kib(), threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.05):
            self.most = max(self.most, self.process.rss_kib())

    def end(self):
        self.over.set()
        self.join()
        return self.most


def certificate(folder):
    """A pair in a folder of reload_lab, as `tls` of a target there; and where to find what trusts it."""
    subprocess.run([lab.program("rig"), "certificate", folder.path], check=True)
    return "{cert_file: cert.pem, cert_key: key.pem}", folder.file("cert.pem")


def percentile(times, part):
    """In milliseconds."""
    times = sorted(times)
    return times[min(len(times) - 1, int(len(times) * part))] * 1000 if times else float("inf")


class Verdicts:
    """Prints what was measured, and knows at the end whether all of it held."""

    def __init__(self):
        self.failed = []

    def __call__(self, name, holds, text):
        print(f"{'ok ' if holds else 'NO '} {name}: {text}", flush=True)
        self.failed += [] if holds else [name]

    def exit(self):
        raise SystemExit(f"not held: {', '.join(self.failed)}" if self.failed else 0)
