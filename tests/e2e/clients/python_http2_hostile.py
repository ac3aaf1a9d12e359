"""What must be refused over HTTP/2, and the limits to the byte: the cases of `python_hostile.py` without those about chunks, codings and
bare line feeds between lines (there are frames instead) and about the version in a request line (there is none)."""

from h2.errors import ErrorCodes
from harness import check, expect


def pseudo(method="GET", path="/", **more):
    fields = {":method": method, ":scheme": "https", ":authority": "a", ":path": path}
    fields.update({f":{name}": value for name, value in more.items()})
    return [(name, value) for name, value in fields.items() if value is not None]


def malformed(keel, *requests, ends=True):
    """Streams with these heads are reset, the backend sees none of them, and the connection goes on."""
    before = keel.fake.stats()["requests"]
    for fields in requests:
        # Each on a connection of its own: a malformed head is dear, and what a connection may cost is bounded.
        with keel.frames() as frames:
            answer = frames.answer(frames.ask_with(fields, ends))
            expect((fields, answer.reset, answer.status), (fields, ErrorCodes.PROTOCOL_ERROR, None))
            expect(keel.fake.stats()["requests"], before)
            frames.hello()
            before += 1


def refused(keel, fields, status):
    """The request is answered so, the backend never sees it, and the connection goes on."""
    before = keel.fake.stats()["requests"]
    with keel.frames() as frames:
        answer = frames.answer(frames.ask_with(fields))
        expect((answer.status, keel.fake.stats()["requests"]), (status, before))
        frames.hello()


@check
def line_ends_in_values(keel):
    malformed(keel, *(pseudo() + [("x", value)] for value in ("a\nb", "a\r\nb: c", "a\r", "\n")))


@check
def lengths_that_differ(keel):
    for lengths in (["3", "4"], ["3, 4"], ["+3"], ["x"]):
        malformed(keel, pseudo("POST") + [("content-length", length) for length in lengths], ends=False)


@check
def bodies_of_another_length(keel):
    for length, body in (("3", b"abcd"), ("5", b"abcd")):
        with keel.frames() as frames:
            stream = frames.ask("/count", "POST", [("content-length", length)], ends=False)
            frames.send(stream, body, ends=True)
            answer = frames.answer(stream)
            expect((length, answer.reset, answer.status), (length, ErrorCodes.PROTOCOL_ERROR, None))
            frames.hello()


@check
def a_length_without_a_body(keel):
    malformed(keel, pseudo("POST") + [("content-length", "5")])


@check
def fields_about_the_connection(keel):
    fields = (("transfer-encoding", "chunked"), ("connection", "close"), ("keep-alive", "timeout=5"), ("upgrade", "h2c"))
    malformed(keel, *(pseudo("POST") + [field] for field in fields + (("proxy-connection", "close"), ("te", "gzip"))))


@check
def hosts(keel):
    malformed(keel, pseudo(authority=None), pseudo(authority="a b"), pseudo(authority=""), pseudo(authority="user@a"))
    malformed(keel, pseudo() + [("host", "b")], pseudo(authority=None) + [("host", "a"), ("host", "b")])
    with keel.frames() as frames:
        answer = frames.answer(frames.ask_with(pseudo(path="/head", authority=None) + [("host", "b")]))
        expect(b"\r\nhost: b\r\n" in answer.body.lower(), True)


@check
def header_names_and_values(keel):
    malformed(keel, *(pseudo() + [(name, "y")] for name in ("X", "x ", "x\0", "", "x\xa0", "x:")))
    malformed(keel, *(pseudo() + [("x", value)] for value in ("a\0b", " y", "y ")))


@check
def pseudo_header_fields(keel):
    malformed(keel, *(pseudo(**{name: None}) for name in ("method", "scheme", "path")))
    malformed(keel, *([field] + pseudo() for field in ((":status", "200"), (":method", "GET"), (":odd", "x"))))
    malformed(keel, [("x", "y")] + pseudo(), pseudo(scheme="gopher"))


@check
def request_lines(keel):
    malformed(keel, *(pseudo(method) for method in ("GE T", "G@T", "", "GET\r\n")))
    malformed(keel, *(pseudo(path=path) for path in ("/a b", "", "a", "http://a/", "/a\r\n", "/#a", "*")))


@check
def trailers_that_are_none(keel):
    for fields in ([(":path", "/")], [("X-Sum", "1")], [("x", "a\nb")]):
        with keel.frames() as frames:
            stream = frames.ask("/count", "POST", ends=False)
            frames.send(stream, b"hello")
            frames.trailers(stream, fields)
            answer = frames.answer(stream)
            expect((fields, answer.reset, answer.status), (fields, ErrorCodes.PROTOCOL_ERROR, None))
            frames.hello()


@check
def connect(keel):
    refused(keel, [(":method", "CONNECT"), (":authority", "a:443")], 405)


@check
def a_smuggled_request_stays_a_body(keel):
    inner = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    before = keel.fake.stats()["requests"]
    expect(keel.get("/echo", body=inner).content, inner)
    expect(keel.get("/echo", body=iter([b"0\r\n\r\n", inner])).content, b"0\r\n\r\n" + inner)
    expect(keel.fake.stats()["requests"], before + 2)


def sent(*lines):
    """How long a head is as a backend gets it: without the empty line."""
    return sum(len(line) + 2 for line in ("GET / HTTP/1.1", "host: a", *lines))


@check
def the_largest_head(keel):
    # 32 KiB, the default of limits.head_size.
    most = 32 * 1024 - sent("x: ")
    with keel.frames() as frames:
        expect(frames.answer(frames.ask_with(pseudo() + [("x", "x" * most)])).status, 200)
    refused(keel, pseudo() + [("x", "x" * (most + 1))], 431)


@check
def the_most_header_lines(keel):
    # A hundred, the default of limits.headers.
    fields = [(f"x-{number}", str(number)) for number in range(100)]
    with keel.frames() as frames:
        expect(frames.answer(frames.ask_with(pseudo() + fields)).status, 200)
    refused(keel, pseudo() + fields + [("x", "y")], 431)


@check
def the_longest_target(keel):
    with keel.frames() as frames:
        expect(frames.answer(frames.ask("/" + "p" * 20_000)).status, 200)
    refused(keel, pseudo(path="/" + "p" * 40_000), 414)
