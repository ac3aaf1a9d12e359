"""What only TLS can get wrong: versions, names, sessions, and how a connection ends."""

import ssl

from harness import PATIENCE, Raw, check, expect, pattern, raises

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def only(keel, version):
    version = VERSIONS[version]
    return keel.context(minimum_version=version, maximum_version=version)


def hello(raw):
    raw.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    expect(raw.answer().body, b"Hello from fake-1")


@check(only="https")
def tls_versions(keel):
    for version in VERSIONS:
        with Raw(keel.tls(only(keel, version))) as raw:
            expect(raw.socket.version(), version)
            hello(raw)


@check(only="https")
def old_versions_are_refused(keel):
    context = keel.context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    raises(ssl.SSLError, lambda: keel.tls(context))


@check(only="https")
def sessions_are_resumed(keel):
    for version in VERSIONS:
        context, session = only(keel, version), None
        for round in range(20):
            with Raw(keel.tls(context, session=session)) as raw:
                expect((version, round, raw.socket.session_reused), (version, round, round > 0))
                hello(raw)
                # TLS 1.3 sends its tickets behind the handshake: they are here once an answer is.
                session = raw.socket.session


@check(only="https")
def an_unknown_issuer_is_noticed(keel):
    raises(ssl.SSLCertVerificationError, lambda: keel.tls(ssl.create_default_context()))


@check(only="https")
def a_wrong_name_is_noticed(keel):
    error = raises(ssl.SSLCertVerificationError, lambda: keel.tls(name="elsewhere.test"))
    expect("elsewhere.test" in error.verify_message, True)


@check(only="https")
def an_address_is_a_name_too(keel):
    with Raw(keel.tls(name="127.0.0.1")) as raw:
        hello(raw)


@check(only="https")
def alpn(keel):
    for offers, chosen in ((["h2", "http/1.1"], "http/1.1"), (["http/1.0", "http/1.1"], "http/1.1"), (["http/1.0"], "http/1.0")):
        context = keel.context()
        context.set_alpn_protocols(offers)
        with Raw(keel.tls(context)) as raw:
            expect(raw.socket.selected_alpn_protocol(), chosen)
            hello(raw)
    with Raw(keel.tls()) as raw:
        expect(raw.socket.selected_alpn_protocol(), None)
        hello(raw)


@check(only="https")
def a_hello_byte_by_byte(keel):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = keel.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with keel.tcp() as connected:

        def push(size):
            data = outgoing.read()
            for at in range(0, len(data), size):
                connected.sendall(data[at : at + size])

        def step(action):
            while True:
                try:
                    result = action()
                    push(1)
                    return result
                except ssl.SSLWantReadError:
                    push(1)
                    data = connected.recv(65536)
                    expect(bool(data), True)
                    incoming.write(data)

        step(tls.do_handshake)
        step(lambda: tls.write(b"GET / HTTP/1.0\r\n\r\n"))
        answer = b""
        while b"Hello from fake-1" not in answer:
            answer += step(lambda: tls.read(65536))
        expect(answer.startswith(b"HTTP/1.1 200 "), True)


@check(only="https")
def requests_in_one_record_and_a_request_in_many(keel):
    request = b"GET /bytes/7 HTTP/1.1\r\nHost: a\r\n\r\n"
    with keel.raw() as raw:
        raw.send(request * 50)
        for _ in range(50):
            expect(raw.answer().body, pattern(7))
        for byte in request:
            raw.send(bytes([byte]))
        expect(raw.answer().body, pattern(7))


@check(only="https")
def clear_http_on_the_tls_port_is_told_so(keel):
    with Raw(keel.tcp()) as raw:
        raw.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = raw.answer()
        expect((answer.status, b"TLS" in answer.body or b"HTTPS" in answer.body), (400, True))
        raw.expect_end()


@check(only="https")
def no_tls_at_all_is_closed(keel):
    with Raw(keel.tcp()) as raw:
        raw.send(b"\0" * 100)
        # An alert may come before the end.
        expect(len(raw.rest()) < 100, True)


@check(only="https")
def an_end_is_announced_and_a_cut_is_not(keel):
    # suppress_ragged_eofs=False: an end without close_notify is an error.
    with keel.raw() as raw:
        raw.send("GET /close/1000 HTTP/1.1\r\nHost: a\r\n\r\n")
        expect(raw.answer().body, pattern(1000))
    keel.fake.behave("fault=reset-mid-body&times=1")
    with keel.raw() as raw:
        raw.send("GET /close/1000 HTTP/1.1\r\nHost: a\r\n\r\n")
        raises((ssl.SSLEOFError, ConnectionResetError), raw.answer)


@check(only="https")
def a_client_that_announces_its_end_gets_its_answer(keel):
    with keel.raw() as raw:
        raw.send("GET /bytes/100000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = raw.answer()
        expect(answer.body, pattern(100_000))
        raw.socket.settimeout(PATIENCE)
        raw.socket.unwrap()


@check(only="http")
def tls_on_the_clear_port_is_closed(keel):
    raises((ssl.SSLError, OSError), lambda: keel.tls(ssl.create_default_context()))


@check(only="http")
def a_client_that_has_sent_its_end_gets_its_answer(keel):
    with keel.raw() as raw:
        raw.send("GET /bytes/100000 HTTP/1.1\r\nHost: a\r\n\r\n")
        raw.socket.shutdown(1)
        expect(raw.answer().body, pattern(100_000))
        raw.expect_end()
