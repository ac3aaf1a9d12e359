"""HTTP/2 by hand: frames as bytes, and a client that knows no more than a bar needs."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
PRIORITY_UPDATE = 16
END_STREAM = ACK = 1
END_HEADERS = 4
PADDED = 8


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A line that nobody indexes, in clear; names and values of less than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request(path=b"/", method=b"GET", *lines):
    """A block with the usual pseudo-header fields."""
    fields = [(b":method", method), (b":scheme", b"http"), (b":path", path), (b":authority", b"bar"), *lines]
    return b"".join(literal(name, value) for name, value in fields)


def settings(**values):
    names = {"table": 1, "push": 2, "streams": 3, "window": 4, "frame": 5, "list": 6}
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", names[name], value) for name, value in values.items()))


def window(stream, more):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", more))


def reset(stream, code=8):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def connect(port, blocking=True, source=None):
    one = socket.create_connection(("127.0.0.1", port), 10, (source, 0) if source else None)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.setblocking(blocking)
    return one


class Frames:
    """Cuts what comes into frames."""

    def __init__(self):
        self.held = b""

    def feed(self, piece):
        held, at = self.held + piece if self.held else piece, 0
        while len(held) - at >= 9:
            end = at + 9 + int.from_bytes(held[at:at + 3], "big")
            if len(held) < end:
                break
            kind, flags, stream = struct.unpack_from(">BBI", held, at + 3)
            payload, at = held[at + 9:end], end
            yield kind, flags, stream & 0x7FFFFFFF, payload
        self.held = held[at:]
