"""What the checks of Python's clients of HTTP/2 share: httpx for whole requests, and the frames of `h2` for what it does not show."""

import socket
import struct

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
import httpx

from harness import PATIENCE, Keel, expect


class Http2(Keel):
    """evenkeel, over HTTP/2."""

    @property
    def https(self):
        return True

    @property
    def origin(self):
        return f"https://localhost:{self.port}"

    def client(self, context=None, kind=httpx.Client, **more):
        """One of httpx's, which keeps its connections. It offers HTTP/1.1 too."""
        context = context or self.context()
        return kind(http2=True, verify=context, base_url=self.origin, timeout=PATIENCE, trust_env=False, **more)

    def get(self, path="/", method="GET", body=None, headers={}, **more):
        """One request on a connection of its own."""
        with self.client(**more) as client:
            return checked(client.request(method, path, content=body, headers=headers))

    def received(self, method="GET", headers={}, **more):
        return lines(self.get("/head", method, headers=headers, **more))

    def hello(self, path="/"):
        answer = self.get(path)
        expect((answer.status_code, answer.content), (200, b"Hello from fake-1"))

    def frames(self, **more):
        """A connection for frames as they are."""
        context = self.context()
        context.set_alpn_protocols(["h2"])
        return Frames(self.tls(context, suppress_ragged_eofs=False), **more)


def checked(answer):
    """The same, if it came over HTTP/2. Its `port` is the client's: the same for all that came over one connection."""
    expect(answer.http_version, "HTTP/2")
    answer.port = answer.extensions["network_stream"].get_extra_info("client_addr")[1]
    return answer


def lines(answer):
    """The head of a request as the backend received it."""
    expect(answer.status_code, 200)
    return answer.text.split("\r\n")


class Answer:
    """One answer, or as much of it as came."""

    def __init__(self):
        self.before, self.status, self.headers, self.trailers = [], None, {}, {}
        self.pieces, self.ended, self.reset = [], False, None

    @property
    def body(self):
        return b"".join(self.pieces)


class Frames:
    """A connection on which a check sends the frames that it likes."""

    def __init__(self, connected, window=1 << 24):
        expect(connected.selected_alpn_protocol(), "h2")
        self.socket = connected
        config = h2.config.H2Configuration(
            header_encoding="latin-1", validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self.h2 = h2.connection.H2Connection(config)
        self.h2.local_settings = h2.settings.Settings(
            client=True, initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window, h2.settings.SettingCodes.ENABLE_PUSH: 0}
        )
        self.answers, self.goaway, self.over = {}, None, False
        self.settings = None
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(1 << 28)
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.socket.sendall(data)

    def ask(self, path="/", method="GET", headers=(), ends=True):
        """Begins a request; gives its stream."""
        pseudo = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
        return self.ask_with(pseudo + list(headers), ends)

    def ask_with(self, fields, ends=True):
        """The same with these fields and no others."""
        stream = self.h2.get_next_available_stream_id()
        self.answers[stream] = Answer()
        self.h2.send_headers(stream, fields, end_stream=ends)
        self.flush()
        return stream

    def send(self, stream, data, ends=False):
        """Sends a part of a body as its windows allow. False: the stream was closed before."""
        view = memoryview(data)
        while view or ends:
            answer = self.answers[stream]
            if answer.reset is not None:
                return False
            most = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if view and most <= 0:
                self.take()
                continue
            piece, view = view[:most], view[most:]
            self.h2.send_data(stream, bytes(piece), end_stream=ends and not view)
            self.flush()
            if not view:
                break
        return True

    def trailers(self, stream, fields):
        self.h2.send_headers(stream, fields, end_stream=True)
        self.flush()

    def reset(self, stream, code=h2.errors.ErrorCodes.CANCEL):
        self.h2.reset_stream(stream, code)
        self.flush()

    def take(self):
        """Takes what has come, and waits until something has."""
        data = self.socket.recv(65536)
        if not data:
            self.over = True
            raise AssertionError(f"the connection has ended: {self.goaway}")
        for event in self.h2.receive_data(data):
            self.note(event)
        self.flush()

    def note(self, event):
        if isinstance(event, h2.events.RemoteSettingsChanged):
            self.settings = {int(code): changed.new_value for code, changed in event.changed_settings.items()}
        if isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = event.error_code
        answer = self.answers.get(getattr(event, "stream_id", None))
        if answer is None:
            return
        if isinstance(event, h2.events.InformationalResponseReceived):
            fields = dict(event.headers)
            answer.before.append((int(fields[":status"]), fields))
        elif isinstance(event, h2.events.ResponseReceived):
            answer.headers = dict(event.headers)
            answer.status = int(answer.headers[":status"])
        elif isinstance(event, h2.events.DataReceived):
            answer.pieces.append(event.data)
            self.took(event)
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = dict(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = event.error_code

    def took(self, event):
        """Gives the room back that this has taken."""
        if not self.answers[event.stream_id].ended and event.flow_controlled_length:
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    def until(self, condition):
        while not condition():
            self.take()

    def answer(self, stream):
        """The whole answer, or what was there of it when its stream was reset."""
        answer = self.answers[stream]
        self.until(lambda: answer.ended or answer.reset is not None)
        return answer

    def refused(self, stream, code=h2.errors.ErrorCodes.PROTOCOL_ERROR):
        """The stream must be reset with this, without an answer."""
        answer = self.answer(stream)
        expect((answer.reset, answer.status), (code, None))

    def goodbye(self):
        """Says that no more requests will come (GOAWAY)."""
        self.socket.sendall(b"\0\0\x08\x07" + bytes(5) + bytes(8))

    def hello(self):
        """The connection goes on."""
        answer = self.answer(self.ask())
        expect((answer.status, answer.body), (200, b"Hello from fake-1"))

    def leave(self, how):
        """Goes away in the middle: as a program that ends, or as one that is killed."""
        if how == "reset":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
