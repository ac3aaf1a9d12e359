"""Python in front of evenkeel over HTTP/2: `python_http2.py http2 PORT BACKEND_PORT CA_FILE` makes one check after the other and writes a
line of JSON for each. Run by `clients` in the e2e tests. The cases are those of `python.py` that have a form in HTTP/2.

Left out: pipelining (streams instead), Connection: close (no field is about the connection), HTTP/1.0, the absolute form (there is none),
WebSockets and other upgrades (not offered), and the ends of connections without a length (streams have an end of their own)."""

import asyncio
import gzip
import hashlib

import h2.settings
import struct

import httpx
import python_http2_hostile  # noqa: F401, registers its checks
import python_http2_tls  # noqa: F401, registers its checks
from harness import check, expect, main, pattern, raises
from harness_http2 import Answer, Http2, checked, lines

MEGABYTES = 10_000_000


@check
def get(keel):
    answer = keel.get()
    expect((answer.status_code, answer.http_version, answer.content), (200, "HTTP/2", b"Hello from fake-1"))
    expect(answer.headers["Content-Length"], "17")


@check
def head(keel):
    answer = keel.get("/bytes/1000", "HEAD")
    expect((answer.status_code, answer.headers["Content-Length"], answer.content), (200, "1000", b""))


@check
def post_with_length(keel):
    answer = keel.get("/echo", "POST", body=b"some\r\nbody\0")
    expect((answer.status_code, answer.content), (200, b"some\r\nbody\0"))
    expect(answer.headers["Content-Length"], "11")


@check
def post_of_unknown_length(keel):
    answer = keel.get("/echo", "POST", body=iter([b"one", b"two", b"three"]))
    expect(("transfer-encoding" in answer.headers, answer.content), (False, b"onetwothree"))
    expect("Transfer-Encoding: chunked" in keel.received("POST", body=iter([b"one"])), True)


@check
def put_of_nothing(keel):
    named = [line.lower() for line in keel.received("PUT", body=b"")]
    expect("content-length: 0" in named, True)


@check
def delete_with_a_body(keel):
    expect(keel.get("/echo", "DELETE", body=b"why").content, b"why")


@check
def get_with_a_body(keel):
    expect(keel.get("/echo", "GET", body=b"odd, but framed").content, b"odd, but framed")


@check
def options_of_the_server(keel):
    with keel.frames() as frames:
        expect(frames.answer(frames.ask("*", "OPTIONS")).status, 200)


@check
def patch_and_methods_of_ones_own(keel):
    for method in ("PATCH", "PROPFIND", "BREW"):
        expect(keel.received(method)[0], f"{method} /head HTTP/1.1")


@check
def expect_continue_is_answered_before_the_body(keel):
    with keel.frames() as frames:
        stream = frames.ask("/echo", "POST", [("content-length", "4"), ("expect", "100-continue")], ends=False)
        answer = frames.answers[stream]
        frames.until(lambda: answer.before)
        expect(answer.before[0][0], 100)
        frames.send(stream, b"body", ends=True)
        expect(frames.answer(stream).body, b"body")


@check
def expect_refused_needs_no_body(keel):
    keel.fake.behave("early=1&status=417")
    with keel.frames() as frames:
        stream = frames.ask("/", "POST", [("content-length", "1000"), ("expect", "100-continue")], ends=False)
        answer = frames.answer(stream)
        expect((answer.before, answer.status, answer.body), ([], 417, b"Hello from fake-1"))
        keel.fake.behave("reset=1")
        frames.hello()


@check
def an_answer_before_the_upload_is_over(keel):
    for times in range(5):
        keel.fake.behave("early=1&status=413&close=1&times=1")
        answer = keel.get("/", "POST", body=pattern(5_000_000))
        expect((times, answer.status_code, answer.content), (times, 413, b"Hello from fake-1"))


@check
def early_hints_come_before_the_answer(keel):
    with keel.frames() as frames:
        answer = frames.answer(frames.ask("/early-hints"))
        expect([(status, fields["link"]) for status, fields in answer.before], [(103, "</style.css>; rel=preload")])
        expect((answer.status, answer.body), (200, b"Hello from fake-1"))
    # httpx passes over them.
    expect(keel.get("/early-hints").content, b"Hello from fake-1")


@check
def trailers_go_both_ways(keel):
    with keel.frames() as frames:
        stream = frames.ask("/echo", "POST", [("trailer", "X-Sum")], ends=False)
        frames.send(stream, b"hello")
        frames.trailers(stream, [("x-sum", "42")])
        answer = frames.answer(stream)
        expect((answer.body, answer.trailers), (b"hello", {"x-sum": "42"}))
        answer = frames.answer(frames.ask("/chunked/1000?trailer=1", headers=[("te", "trailers")]))
        expect((answer.body, answer.trailers), (pattern(1000), {"x-trailer": "fake-1"}))
    # httpx passes over them.
    expect(keel.get("/chunked/1000?trailer=1").content, pattern(1000))


@check
def answers_without_a_body_keep_the_connection(keel):
    with keel.client() as client:
        ports = set()
        for status in (204, 304, 204, 200):
            answer = checked(client.get(f"/status/{status}"))
            expect((answer.status_code, answer.content), (status, b"Hello from fake-1" if status == 200 else b""))
            ports.add(answer.port)
        expect(len(ports), 1)


@check
def every_status_arrives(keel):
    with keel.client() as client:
        for status in (201, 206, 302, 404, 418, 429, 500, 503, 599, 999):
            expect(checked(client.get(f"/status/{status}")).status_code, status)


@check
def one_connection_for_many_requests(keel):
    before = keel.fake.stats()["requests"]
    with keel.client() as client:
        answers = [checked(client.get(f"/bytes/{length}")) for length in (1, 100, 0, 10_000)]
    expect([answer.content for answer in answers], [pattern(length) for length in (1, 100, 0, 10_000)])
    expect(len({answer.port for answer in answers}), 1)
    expect(keel.fake.stats()["requests"], before + 4)


@check
def a_hundred_requests_at_once_on_one_connection(keel):
    lengths = [number * 997 for number in range(100)]

    async def all_at_once():
        async with keel.client(kind=httpx.AsyncClient) as client:
            # The first one has the connection made that all others share.
            first = checked(await client.get("/"))
            answers = await asyncio.gather(*(client.get(f"/bytes/{length}") for length in lengths))
            return first, [checked(answer) for answer in answers]

    first, answers = asyncio.run(all_at_once())
    expect([len(answer.content) for answer in answers], lengths)
    expect(all(answer.content == pattern(len(answer.content)) for answer in answers), True)
    expect({answer.port for answer in answers}, {first.port})


@check
def answers_come_in_the_order_in_which_they_are_ready(keel):
    with keel.frames() as frames:
        slow, quick = frames.ask("/delay/300"), frames.ask("/bytes/10")
        expect(frames.answer(quick).body, pattern(10))
        expect((frames.answers[slow].status, frames.answer(slow).body), (None, b"Hello from fake-1"))


@check
def the_authority_names_the_host(keel):
    named = [line.lower() for line in keel.received(headers={"Host": "origin.test"})]
    expect(("host: origin.test" in named, len([line for line in named if line.startswith("host:")])), (True, 1))


@check
def the_backend_learns_who_asks_and_how(keel):
    received = keel.received(headers={"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Proto": "gopher"})
    expect([line for line in received if "1.2.3.4" in line or "gopher" in line], [])
    named = dict(line.split(": ", 1) for line in received if ": " in line)
    expect((named["X-Forwarded-For"], named["X-Forwarded-Proto"]), ("127.0.0.1", "https"))
    expect(named["Via"], "2.0 evenkeel")


@check
def headers_with_many_values(keel):
    with keel.client() as client:
        many = [("X-Many", "one"), ("X-Many", "two, three"), ("X-Many", "")]
        received = lines(checked(client.get("/head", headers=many)))
        expect([line for line in received if line.startswith("x-many:")], ["x-many: one", "x-many: two, three", "x-many: "])
    # Cookies come in crumbs, and go on as one line.
    with keel.frames() as frames:
        answer = frames.answer(frames.ask("/head", headers=[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")]))
        expect(b"\r\ncookie: a=1; b=2\r\n" in answer.body, True)


@check
def ten_megabytes_up(keel):
    body = pattern(MEGABYTES)
    expect(keel.get("/count", "POST", body=body).content, b"10000000")
    pieces = (body[at : at + 77_777] for at in range(0, MEGABYTES, 77_777))
    expect(keel.get("/count", "POST", body=pieces).content, b"10000000")


@check
def ten_megabytes_down(keel):
    whole = hashlib.sha256(pattern(MEGABYTES)).hexdigest()
    for framing in ("bytes", "chunked", "close"):
        body = keel.get(f"/{framing}/{MEGABYTES}").content
        expect((framing, hashlib.sha256(body).hexdigest()), (framing, whole))


@check
def ten_megabytes_both_ways_at_once(keel):
    body = pattern(MEGABYTES)
    with keel.frames() as frames:
        # httpx reads nothing while it sends.
        stream = frames.ask("/echo", "POST", [("content-length", str(MEGABYTES))], ends=False)
        frames.send(stream, body, ends=True)
        answer = frames.answer(stream)
        expect((answer.reset, hashlib.sha256(answer.body).hexdigest()), (None, hashlib.sha256(body).hexdigest()))


@check
def compressed_bodies_pass_untouched(keel):
    body = gzip.compress(b"the same again and again " * 1000)
    expect(keel.get("/echo", "POST", body=body, headers={"Content-Encoding": "gzip"}).content, body)
    expect("accept-encoding: gzip, br" in keel.received(headers={"Accept-Encoding": "gzip, br"}), True)


@check
def packed_answers(keel):
    with keel.client(headers={"Accept-Encoding": "gzip"}) as client:
        for length, coding in ((100_000, "gzip"), (10, None)):
            answer = checked(client.get(f"/packed/bytes/{length}"))
            expect((answer.headers.get("Content-Encoding"), answer.content), (coding, pattern(length)))


@check
def redirects(keel):
    with keel.client(follow_redirects=True) as client:
        answer = checked(client.get("/moved"))
        expect(([before.status_code for before in answer.history], answer.content), ([302], pattern(5)))
        expect(checked(client.post("/moved-for-good", content=b"the body again")).content, b"the body again")


@check
def cookies_of_an_answer(keel):
    with keel.client() as client:
        expect(checked(client.get("/cookies")).headers.get_list("set-cookie"), ["a=1", "b=2"])
        expect("cookie: a=1; b=2" in lines(checked(client.get("/head"))), True)


@check
def a_connection_byte_by_byte(keel):
    with keel.frames() as frames:
        stream = frames.h2.get_next_available_stream_id()
        frames.answers[stream] = Answer()
        frames.h2.send_headers(
            stream, [(":method", "POST"), (":scheme", "https"), (":authority", "a"), (":path", "/echo"), ("content-length", "5")]
        )
        frames.h2.send_data(stream, b"hello", end_stream=True)
        for byte in frames.h2.data_to_send():
            frames.socket.sendall(bytes([byte]))
        expect(frames.answer(stream).body, b"hello")


@check
def a_reader_that_pauses_holds_the_backend_back_and_nobody_else(keel):
    length = 3 * MEGABYTES
    with keel.frames(window=1 << 20) as frames:
        taken, frames.took = [], lambda event: taken.append(event) if event.stream_id == stream else None
        before = keel.fake.stats()["bytes_out"]
        stream = frames.ask(f"/bytes/{length}")
        # Its window is used up; others are still answered.
        frames.until(lambda: len(frames.answers[stream].body) >= 1 << 20)
        sent = keel.fake.sent_until_it_stalls()
        expect(sent - before < length, True)
        frames.hello()
        del frames.took
        for event in taken:
            frames.took(event)
        frames.flush()
        expect(hashlib.sha256(frames.answer(stream).body).digest(), hashlib.sha256(pattern(length)).digest())


@check
def a_slow_backend_is_waited_for(keel):
    expect(keel.get("/bytes/50?piece=10&every=10").content, pattern(50))
    expect(keel.get("/delay/100").content, b"Hello from fake-1")


def give_up(frames, stream, how):
    """Leaves in the middle: one stream, or the connection."""
    if how == "stream":
        frames.reset(stream)
        frames.hello()
        frames.socket.close()
    else:
        frames.leave(how)


@check
def an_upload_that_stops_is_an_abort_at_the_backend(keel):
    for how in ("stream", "end", "reset"):
        before = keel.fake.stats()
        frames = keel.frames()
        stream = frames.ask("/", "POST", [("content-length", "500000")], ends=False)
        frames.send(stream, pattern(100_000))
        keel.fake.wait("half of it is there", lambda now: now["bytes_in"] - before["bytes_in"] > 100_000)
        give_up(frames, stream, how)
        keel.fake.wait(f"{how} is seen", lambda now: now["aborted"] == before["aborted"] + 1)


@check
def a_download_that_stops_is_an_abort_at_the_backend(keel):
    for how in ("stream", "end", "reset"):
        before = keel.fake.stats()
        frames = keel.frames()
        stream = frames.ask("/bytes/1000000000000")
        frames.until(lambda: len(frames.answers[stream].body) > 100_000)
        give_up(frames, stream, how)
        keel.fake.wait(f"{how} is seen", lambda now: now["aborted"] == before["aborted"] + 1)
    before = keel.fake.stats()
    with keel.client() as client:
        with client.stream("GET", "/chunked/1000000000000") as answer:
            expect(next(answer.iter_raw())[:10], pattern(10))
        # httpx resets no stream: it takes no more of it until the connection ends.
        expect(checked(client.get("/")).content, b"Hello from fake-1")
    keel.fake.wait("httpx has left", lambda now: now["aborted"] == before["aborted"] + 1)


@check
def a_request_that_is_given_up_is_an_abort_at_the_backend(keel):
    before = keel.fake.stats()
    keel.fake.behave("fault=hang&times=1")
    with keel.frames() as frames:
        stream = frames.ask()
        keel.fake.wait("the backend has it", lambda now: now["requests"] == before["requests"] + 1)
        frames.reset(stream)
        keel.fake.wait("the abort is seen", lambda now: now["aborted"] == before["aborted"] + 1)
        frames.hello()


def websocket(frames, path="/chat", protocol="websocket"):
    """Asks for one (RFC 8441)."""
    pseudo = [(":method", "CONNECT"), (":protocol", protocol), (":scheme", "https"), (":authority", "a"), (":path", path)]
    return frames.ask_with([*pseudo, ("sec-websocket-version", "13")], ends=False)


@check
def websockets_echo(keel):
    with keel.frames() as frames:
        frames.hello()
        expect(frames.settings.get(int(h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL)), 1)
        stream = websocket(frames)
        answer = frames.answers[stream]
        frames.until(lambda: answer.status is not None)
        expect((answer.status, answer.headers.get("upgrade"), answer.headers.get("sec-websocket-accept")), (200, None, None))
        frames.send(stream, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58")
        frames.until(lambda: len(answer.body) >= 7)
        expect(answer.body, b"\x81\x05Hello")
        # Others share the connection meanwhile.
        frames.hello()
        big = pattern(60_000)
        frames.send(stream, b"\x82\xfe" + struct.pack(">H", len(big)) + b"\0\0\0\0" + big)
        echoed = b"\x82\x7e" + struct.pack(">H", len(big)) + big
        frames.until(lambda: len(answer.body) >= 7 + len(echoed))
        expect(answer.body[7:] == echoed, True)
        frames.send(stream, b"\x88\x82\0\0\0\0\x03\xe8")
        expect(frames.answer(stream).body[-4:], b"\x88\x02\x03\xe8")
        expect((answer.ended, answer.reset), (True, None))
        frames.hello()


@check
def a_websocket_that_is_given_up_ends_at_the_backend(keel):
    before = keel.fake.stats()
    with keel.frames() as frames:
        stream = websocket(frames)
        frames.until(lambda: frames.answers[stream].status is not None)
        frames.reset(stream)
        keel.fake.wait("its end is seen", lambda now: now["open"] <= before["open"])
        frames.hello()


@check
def protocols_that_nobody_knows_make_no_tunnel(keel):
    with keel.frames() as frames:
        expect(frames.answer(websocket(frames, protocol="connect-udp")).status, 405)
        # Without the setting's other half, and with what an extended CONNECT must not have.
        pseudo = [(":method", "GET"), (":protocol", "websocket"), (":scheme", "https"), (":authority", "a"), (":path", "/chat")]
        frames.refused(frames.ask_with(pseudo, ends=False))
        frames.refused(frames.ask_with([(":method", "CONNECT"), (":protocol", "websocket"), (":authority", "a")], ends=False))
        frames.hello()


@check
def cut_answers_are_seen_to_be_cut(keel):
    with keel.client() as client:
        ports = set()
        for path, fault in (
            ("/bytes/1000", "close-mid-body"),
            ("/bytes/1000", "reset-mid-body"),
            ("/chunked/1000", "close-mid-body"),
            ("/chunked/1000", "reset-mid-body"),
            ("/", "length-too-long"),
        ):
            keel.fake.behave(f"fault={fault}&times=1")
            raises(httpx.RemoteProtocolError, lambda: client.get(path))
            # The connection goes on.
            ports.add(checked(client.get("/")).port)
        expect(len(ports), 1)


@check
def bad_backends_are_502(keel):
    with keel.client() as client:
        for fault in ("close-unanswered", "close-mid-head", "bare-line-feeds", "garbage", "two-lengths"):
            keel.fake.behave(f"fault={fault}")
            answer = checked(client.post(f"/{fault}", content=b"x"))
            expect((fault, answer.status_code, "proxy-status" in answer.headers), (fault, 502, True))


if __name__ == "__main__":
    main(Http2)
