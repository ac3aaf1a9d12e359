"""Python in front of evenkeel: `python.py http|https PORT BACKEND_PORT CA_FILE` makes one check after the other
and writes a line of JSON for each. Run by `clients` in the e2e tests."""

import gzip
import hashlib
import http.client
import socket
import struct

import python_hostile  # noqa: F401, registers its checks
import python_tls  # noqa: F401, registers its checks
from harness import check, expect, main, pattern, raises

MEGABYTES = 10_000_000


@check
def get(keel):
    answer, body = keel.get()
    expect((answer.status, answer.version, body), (200, 11, b"Hello from fake-1"))
    expect(answer.getheader("Content-Length"), "17")


@check
def head(keel):
    answer, body = keel.get("/bytes/1000", "HEAD")
    expect((answer.status, answer.getheader("Content-Length"), body), (200, "1000", b""))


@check
def post_with_length(keel):
    answer, body = keel.get("/echo", "POST", body=b"some\r\nbody\0")
    expect((answer.status, body), (200, b"some\r\nbody\0"))
    expect(answer.getheader("Content-Length"), "11")


@check
def post_in_chunks(keel):
    pieces = iter([b"one", b"two", b"three"])
    answer, body = keel.get("/echo", "POST", body=pieces, encode_chunked=True)
    expect((answer.getheader("Transfer-Encoding"), body), ("chunked", b"onetwothree"))


@check
def put_of_nothing(keel):
    expect("Content-Length: 0" in keel.received("PUT", body=b""), True)


@check
def delete_with_a_body(keel):
    expect(keel.get("/echo", "DELETE", body=b"why")[1], b"why")


@check
def get_with_a_body(keel):
    expect(keel.get("/echo", "GET", body=b"odd, but framed")[1], b"odd, but framed")


@check
def options_of_the_server(keel):
    expect(keel.get("*", "OPTIONS")[0].status, 200)


@check
def patch_and_methods_of_ones_own(keel):
    for method in ("PATCH", "PROPFIND", "BREW"):
        expect(keel.received(method)[0], f"{method} /head HTTP/1.1")


@check
def expect_continue_is_answered_before_the_body(keel):
    with keel.raw() as raw:
        raw.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        expect(raw.answer().status, 100)
        raw.send("body")
        expect(raw.answer().body, b"body")


@check
def expect_refused_needs_no_body(keel):
    keel.fake.behave("early=1&status=417")
    with keel.raw() as raw:
        raw.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n")
        expect(raw.answer().status, 417)


@check
def early_hints_come_before_the_answer(keel):
    with keel.raw() as raw:
        raw.send("GET /early-hints HTTP/1.1\r\nHost: a\r\n\r\n")
        hints = raw.answer()
        expect((hints.status, hints.headers["link"]), (103, "</style.css>; rel=preload"))
        expect(raw.answer().body, b"Hello from fake-1")


@check
def trailers_go_both_ways(keel):
    with keel.raw() as raw:
        raw.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
        raw.send("5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n")
        answer = raw.answer()
        expect((answer.body, answer.trailers), (b"hello", ["X-Sum: 42"]))
        raw.send("GET /chunked/1000?trailer=1 HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = raw.answer()
        expect((answer.body, answer.trailers), (pattern(1000), ["X-Trailer: fake-1"]))


@check
def answers_without_a_body_keep_the_connection(keel):
    connection = keel.connection()
    for status in (204, 304, 204, 200):
        connection.request("GET", f"/status/{status}")
        answer = connection.getresponse()
        expect((answer.status, answer.read()), (status, b"Hello from fake-1" if status == 200 else b""))
    connection.close()


@check
def every_status_arrives(keel):
    for status in (201, 206, 302, 404, 418, 429, 500, 503, 599, 999):
        expect(keel.get(f"/status/{status}")[0].status, status)


@check
def one_connection_for_many_requests(keel):
    before = keel.fake.stats()["requests"]
    with keel.raw() as raw:
        for length in (1, 100, 0, 10_000):
            raw.send(f"GET /bytes/{length} HTTP/1.1\r\nHost: a\r\n\r\n")
            expect(raw.answer().body, pattern(length))
    expect(keel.fake.stats()["requests"], before + 4)


@check
def pipelined_requests_are_answered_in_order(keel):
    with keel.raw() as raw:
        raw.send("".join(f"GET /bytes/{n} HTTP/1.1\r\nHost: a\r\n\r\n" for n in range(1, 21)))
        for length in range(1, 21):
            expect(raw.answer().body, pattern(length))


@check
def connection_close_ends_it(keel):
    with keel.raw() as raw:
        raw.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        expect(raw.answer().headers["connection"], "close")
        raw.expect_end()


@check
def http_1_0(keel):
    with keel.raw() as raw:
        raw.send("GET /chunked/1000 HTTP/1.0\r\n\r\n")
        answer = raw.answer()
        expect((answer.status, "transfer-encoding" in answer.headers, answer.body), (200, False, pattern(1000)))
        raw.expect_end()
    with keel.raw() as raw:
        for _ in range(2):
            raw.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            expect(raw.answer().headers["connection"].lower(), "keep-alive")


@check
def the_absolute_form_names_the_host(keel):
    answer = keel.ask("GET http://origin.test/head HTTP/1.1\r\nHost: other.test\r\n\r\n")
    lines = answer.body.decode().split("\r\n")
    expect((lines[0], "Host: origin.test" in lines), ("GET /head HTTP/1.1", True))


@check
def the_backend_learns_who_asks_and_how(keel):
    lines = keel.received(headers={"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "gopher"})
    expect([line for line in lines if "1.2.3.4" in line or "gopher" in line], [])
    named = dict(line.split(": ", 1) for line in lines if ": " in line)
    expect((named["X-Forwarded-For"], named["X-Forwarded-Proto"]), ("127.0.0.1", keel.scheme))


@check
def ten_megabytes_up(keel):
    body = pattern(MEGABYTES)
    expect(keel.get("/count", "POST", body=body)[1], b"10000000")
    pieces = (body[at : at + 77_777] for at in range(0, MEGABYTES, 77_777))
    expect(keel.get("/count", "POST", body=pieces, encode_chunked=True)[1], b"10000000")


@check
def ten_megabytes_down(keel):
    whole = hashlib.sha256(pattern(MEGABYTES)).hexdigest()
    for framing in ("bytes", "chunked", "close"):
        body = keel.get(f"/{framing}/{MEGABYTES}")[1]
        expect((framing, hashlib.sha256(body).hexdigest()), (framing, whole))


@check
def ten_megabytes_both_ways_at_once(keel):
    body = pattern(MEGABYTES)
    with keel.raw() as raw:
        raw.send(f"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {MEGABYTES}\r\n\r\n")
        raw.send_while_reading(body)
        answer = raw.answer()
        expect(hashlib.sha256(answer.body).hexdigest(), hashlib.sha256(body).hexdigest())


@check
def compressed_bodies_pass_untouched(keel):
    body = gzip.compress(b"the same again and again " * 1000)
    expect(keel.get("/echo", "POST", body=body, headers={"Content-Encoding": "gzip"})[1], body)
    expect("Accept-Encoding: gzip, br" in keel.received(headers={"Accept-Encoding": "gzip, br"}), True)


@check
def a_head_byte_by_byte(keel):
    with keel.raw() as raw:
        for byte in b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello":
            raw.send(bytes([byte]))
        expect(raw.answer().body, b"hello")


@check
def a_reader_that_pauses_holds_the_backend_back(keel):
    length = 3 * MEGABYTES
    with keel.raw() as raw:
        raw.send(f"GET /bytes/{length} HTTP/1.1\r\nHost: a\r\n\r\n")
        before = keel.fake.stats()["bytes_out"]
        sent = keel.fake.sent_until_it_stalls()
        expect(sent - before < length, True)
        expect(hashlib.sha256(raw.answer().body).digest(), hashlib.sha256(pattern(length)).digest())


@check
def a_slow_backend_is_waited_for(keel):
    expect(keel.get("/bytes/50?piece=10&every=10")[1], pattern(50))
    expect(keel.get("/delay/100")[1], b"Hello from fake-1")


def leave(raw, how):
    """Goes away in the middle: as a program that ends, or as one that is killed."""
    if how == "reset":
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.socket.close()


@check
def an_upload_that_stops_is_an_abort_at_the_backend(keel):
    for how in ("end", "reset"):
        before = keel.fake.stats()
        raw = keel.raw()
        raw.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n")
        raw.send(pattern(100_000))
        keel.fake.wait("half of it is there", lambda now: now["bytes_in"] - before["bytes_in"] > 100_000)
        leave(raw, how)
        keel.fake.wait(f"{how} is seen", lambda now: now["aborted"] == before["aborted"] + 1)


@check
def a_download_that_stops_is_an_abort_at_the_backend(keel):
    for how in ("end", "reset"):
        before = keel.fake.stats()
        raw = keel.raw()
        raw.send("GET /bytes/1000000000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        raw.take(100_000)
        leave(raw, how)
        keel.fake.wait(f"{how} is seen", lambda now: now["aborted"] == before["aborted"] + 1)


@check
def websockets_echo(keel):
    with keel.raw() as raw:
        raw.send(
            "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        answer = raw.answer()
        expect((answer.status, answer.headers["upgrade"]), (101, "websocket"))
        expect(answer.headers["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        raw.send(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58")
        expect(raw.take(7), b"\x81\x05Hello")
        big = pattern(60_000)
        raw.send(b"\x82\xfe" + struct.pack(">H", len(big)) + b"\0\0\0\0" + big)
        expect(raw.take(4 + len(big)), b"\x82\x7e" + struct.pack(">H", len(big)) + big)
        raw.send(b"\x88\x82\0\0\0\0\x03\xe8")
        expect(raw.take(4), b"\x88\x02\x03\xe8")
        raw.expect_end()


@check
def protocols_that_are_not_listed_are_no_upgrade(keel):
    answer = keel.ask("GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: chess\r\n\r\n")
    expect(answer.status, 426)
    answer = keel.ask(
        "GET /head HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n"
    )
    expect((answer.status, b"h2c" in answer.body, b"HTTP2" in answer.body), (200, False, False))


@check
def cut_answers_are_seen_to_be_cut(keel):
    for path, fault in (
        ("/bytes/1000", "close-mid-body"),
        ("/bytes/1000", "reset-mid-body"),
        ("/chunked/1000", "close-mid-body"),
        ("/chunked/1000", "reset-mid-body"),
        ("/", "length-too-long"),
    ):
        keel.fake.behave(f"fault={fault}&times=1")
        raises((http.client.IncompleteRead, OSError, ValueError), lambda: keel.get(path))


@check
def bad_backends_are_502(keel):
    for fault in ("close-unanswered", "close-mid-head", "bare-line-feeds", "garbage", "two-lengths"):
        keel.fake.behave(f"fault={fault}")
        answer, body = keel.get(f"/{fault}", "POST", body=b"x")
        expect((fault, answer.status), (fault, 502))


if __name__ == "__main__":
    main()
