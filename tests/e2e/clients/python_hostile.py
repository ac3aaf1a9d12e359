"""What must be refused, and the limits to the byte."""

from harness import check, expect


def refused(keel, request, status, reaches_backend=False):
    """The request is answered so, its connection ends, and the backend never sees it."""
    before = keel.fake.stats()["requests"]
    with keel.raw() as raw:
        raw.send(request)
        answer = raw.final()
        expect((request[:40], answer.status), (request[:40], status))
        expect(answer.headers["connection"], "close")
        raw.expect_end()
    if not reaches_backend:
        expect(keel.fake.stats()["requests"], before)


@check
def bare_line_feeds(keel):
    refused(keel, "GET / HTTP/1.1\nHost: a\n\n", 400)
    refused(keel, "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400)


@check
def lengths_that_differ(keel):
    refused(keel, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400)
    refused(keel, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 4\r\n\r\nabcd", 400)
    refused(keel, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", 400)


@check
def length_and_chunks(keel):
    head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    refused(keel, head + "0\r\n\r\n", 400)


@check
def unknown_codings(keel):
    refused(keel, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501)
    refused(keel, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400)


@check
def broken_chunks(keel):
    head = "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    for chunk in ("zz\r\n", "5 \r\nhello\r\n", "5\nhello\r\n", "2\r\nabc\r\n", "5;a\nb\r\nhello\r\n"):
        refused(keel, head + chunk, 400, reaches_backend=True)


@check
def hosts(keel):
    refused(keel, "GET / HTTP/1.1\r\n\r\n", 400)
    refused(keel, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400)
    refused(keel, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400)


@check
def header_names_and_values(keel):
    for line in ("X : y", "X\0: y", ": y", "X: a\0b", "X: a\rb", " X: y", "X\xa0: y"):
        refused(keel, f"GET / HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n", 400)


@check
def request_lines(keel):
    for line in ("GET  / HTTP/1.1", "GET / HTTP/1.1 ", "G@T / HTTP/1.1", "GET /a b HTTP/1.1", "GET / http/1.1"):
        refused(keel, f"{line}\r\nHost: a\r\n\r\n", 400)
    refused(keel, "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505)


@check
def connect(keel):
    refused(keel, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 405)


@check
def a_smuggled_request_stays_a_body(keel):
    inner = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    before = keel.fake.stats()["requests"]
    answer = keel.ask(f"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {len(inner)}\r\n\r\n{inner}")
    expect((answer.body, keel.fake.stats()["requests"]), (inner.encode(), before + 1))


@check
def the_largest_head(keel):
    # 32 KiB with the empty line, the default of limits.head_size.
    start, end = "GET / HTTP/1.1\r\nHost: a\r\nX: ", "\r\n\r\n"
    most = 32 * 1024 - len(start) - len(end)
    expect(keel.ask(start + "x" * most + end).status, 200)
    refused(keel, start + "x" * (most + 1) + end, 431)


@check
def the_most_header_lines(keel):
    # A hundred, the default of limits.headers; Host is one of them.
    lines = "".join(f"X-{n}: {n}\r\n" for n in range(99))
    expect(keel.ask(f"GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").status, 200)
    refused(keel, f"GET / HTTP/1.1\r\nHost: a\r\n{lines}X: y\r\n\r\n", 431)


@check
def the_longest_target(keel):
    path = "/" + "p" * 20_000
    expect(keel.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").status, 200)
    refused(keel, f"GET /{'p' * 40_000} HTTP/1.1\r\nHost: a\r\n\r\n", 414)
