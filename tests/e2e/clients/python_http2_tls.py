"""HTTP/2 and TLS: versions, names, sessions, what is chosen by ALPN, and how a connection ends. What is about what
comes before HTTP (a hello in pieces, no TLS at all, HTTP in clear) is in `python_tls.py`: there is nothing of HTTP/2 in it."""

import ssl

import httpx
from harness import PATIENCE, Raw, check, expect, pattern, raises
from harness_http2 import Frames, checked

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def context(keel, offers=("h2",), **changes):
    context = keel.context(**changes)
    context.set_alpn_protocols(list(offers))
    return context


def only(keel, version):
    version = VERSIONS[version]
    return context(keel, minimum_version=version, maximum_version=version)


@check
def tls_versions(keel):
    for version in VERSIONS:
        with Frames(keel.tls(only(keel, version))) as frames:
            expect(frames.socket.version(), version)
            frames.hello()


@check
def old_versions_are_refused(keel):
    old = context(keel)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    raises(ssl.SSLError, lambda: keel.tls(old))


@check
def sessions_are_resumed(keel):
    for version in VERSIONS:
        own, session = only(keel, version), None
        for round in range(5):
            with Frames(keel.tls(own, session=session)) as frames:
                expect((version, round, frames.socket.session_reused), (version, round, round > 0))
                frames.hello()
                # TLS 1.3 sends its tickets behind the handshake: they are here once an answer is.
                session = frames.socket.session


@check
def an_unknown_issuer_is_noticed(keel):
    with keel.client(ssl.create_default_context()) as client:
        error = raises(httpx.ConnectError, lambda: client.get("/"))
        expect("CERTIFICATE_VERIFY_FAILED" in str(error), True)


@check
def a_wrong_name_is_noticed(keel):
    error = raises(ssl.SSLCertVerificationError, lambda: keel.tls(context(keel), name="elsewhere.test"))
    expect("elsewhere.test" in error.verify_message, True)


@check
def an_address_is_a_name_too(keel):
    with keel.client() as client:
        answer = checked(client.get(keel.origin.replace("localhost", "127.0.0.1")))
        expect(answer.content, b"Hello from fake-1")


@check
def alpn(keel):
    chosen = (["h2"], "h2"), (["http/1.1", "h2"], "h2"), (["http/1.1"], "http/1.1"), (["http/1.0"], "http/1.0"), ([], None)
    for offers, version in chosen:
        own = context(keel, offers) if offers else keel.context()
        with Raw(keel.tls(own)) as raw:
            expect((offers, raw.socket.selected_alpn_protocol()), (offers, version))
            if version == "h2":
                Frames(raw.socket).hello()
            else:
                raw.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                expect(raw.answer().body, b"Hello from fake-1")
    raises(ssl.SSLError, lambda: keel.tls(context(keel, ["h3"])))
    with keel.client(http1=False) as client:
        expect(checked(client.get("/")).status_code, 200)


@check
def who_was_promised_http_2_and_speaks_http_1_is_told_so(keel):
    with Raw(keel.tls(context(keel))) as raw:
        raw.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        # A GOAWAY with PROTOCOL_ERROR and the reason in words, and the end.
        expect(raw.rest().endswith(b"\0\0\0\x01this is not how HTTP/2 begins"), True)


@check
def requests_in_one_record(keel):
    with keel.frames() as frames:
        streams = []
        flush, frames.flush = frames.flush, lambda: None
        for _ in range(50):
            streams.append(frames.ask("/bytes/7"))
        frames.flush = flush
        frames.flush()
        for stream in streams:
            expect(frames.answer(stream).body, pattern(7))


@check
def an_end_is_announced(keel):
    # suppress_ragged_eofs=False: an end without close_notify is an error.
    with keel.frames() as frames:
        stream = frames.ask("/bytes/100000")
        frames.goodbye()
        expect(frames.answer(stream).body, pattern(100_000))
        frames.socket.unwrap()


@check
def a_client_that_announces_its_end_gets_its_answer(keel):
    with keel.frames() as frames:
        stream = frames.ask("/delay/300")
        frames.hello()
        # close_notify goes out; nothing waits for the other one.
        frames.socket.setblocking(False)
        raises(ssl.SSLWantReadError, frames.socket.unwrap)
        frames.socket.settimeout(PATIENCE)
        expect(frames.answer(stream).body, b"Hello from fake-1")
