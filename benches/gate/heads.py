"""Heads that try to cost much, each beside a plain one of the same size."""

import dataclasses

# Bytes of a request's head, just below the default of `limits.head_size`, and of an answer's.
SIZE = 32 * 1024 - 64
# What heads of short lines are filled up to: as many lines of usual length have about this.
SHORT = 8 * 1024
# Header lines of a request by default, and a few less than an answer may have.
LINES = 100
ANSWER_LINES = 500
PLAIN = b"GET /some/path?with=query HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"


@dataclasses.dataclass
class Kind:
    """One adversary. `listener` is the one of the foil's that makes most of it."""

    name: str
    request: bytes
    listener: str = "plain"
    answer: bytes = ANSWER

    def __post_init__(self):
        # A head of a few hundred bytes costs little, whatever is in it.
        self.request = padded(self.request, SHORT, PLAIN)
        self.answer = padded(self.answer, SIZE, ANSWER)

    def plain(self):
        """What is ordinary and of the same size: lines of usual length, or longer ones where there would be too many."""
        request = filled(len(self.request)) if len(self.request) > len(PLAIN) + 40 else PLAIN
        answer = filled(len(self.answer), ANSWER, ANSWER_LINES) if len(self.answer) > len(ANSWER) + 40 else ANSWER
        return Kind("plain", request, self.listener, answer)


# What browsers send: names and values as they are met.
USUAL = [
    (b"Accept-Language", b"en-US,en;q=0.9,de;q=0.8"),
    (b"Accept-Encoding", b"gzip, deflate, br, zstd"),
    (b"Cache-Control", b"max-age=0"),
    (b"Cookie", b"session=0123456789abcdef0123456789abcdef; theme=dark; consent=yes"),
    (b"Sec-Fetch-Site", b"same-origin"),
    (b"sec-ch-ua-platform", b'"Linux"'),
    (b"X-Trace-Id", b"5b8efff798038103d269b633813fc60c"),
]


def filled(size, head=PLAIN, most=LINES):
    """A plain head of exactly `size` bytes: usual lines, each as long as it must be for `most` of them to do."""
    lines, left, count = [], size - len(head), most - 4
    while left > 0:
        name, value = USUAL[len(lines) % len(USUAL)]
        room = left // max(1, count - len(lines))
        while len(name) + len(value) + 4 < room:
            value += b", " + value[: max(0, room - len(name) - len(value) - 6)]
        length = len(name) + len(value) + 4
        # The last line takes what would be too little for another one.
        if left - length < 60:
            value = (value * (left // len(value) + 1))[: left - len(name) - 4].replace(b" ", b"-")
            length = left
        lines.append(name + b": " + value + b"\r\n")
        left -= length
    made = head[:-2] + b"".join(lines) + b"\r\n"
    assert len(made) == size, (len(made), size)
    return made


def padded(head, size, plain):
    """The same head with a long plain line more, if it is an adversary and shorter than `size`."""
    if head == plain or len(head) > size - 20:
        return head
    return head[:-2] + b"Accept: " + b"text/html, " * ((size - len(head) - 10) // 11) + b"*/*\r\n\r\n"


def with_lines(*lines, head=PLAIN):
    return head[:-2] + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def long_line(start, fill, end=b"", size=SIZE, head=PLAIN):
    """A head of which one line takes what is left: `start`, then `fill` over and over."""
    room = size - len(with_lines(start + end, head=head))
    return with_lines(start + (fill * (room // len(fill) + 1))[:room] + end, head=head)


def many_lines(start, fill, count=LINES - 4, size=SIZE, head=PLAIN):
    """The same spread over as many lines as there may be."""
    room = (size - len(head)) // count - len(start) - 2
    return with_lines(*[start + (fill * (room // len(fill) + 1))[:room]] * count, head=head)


def request_line(target, size=SIZE):
    rest = PLAIN[PLAIN.index(b" HTTP/1.1") :]
    room = size - len(rest) - 4
    return b"GET " + (target[0] + target[1] * (room // len(target[1]) + 1))[:room] + rest


def host(fill, size=SIZE):
    head = b"GET / HTTP/1.1\r\n\r\n"
    return long_line(b"Host: a", fill, size=size, head=head)


LISTS = {"letters": b"a,", "commas": b",", "blanks": b", ", "word": b"a", "names": b"x-a, x-b,"}
# Fields of which a value is read, in requests.
READ = ["Connection", "TE", "Upgrade", "Keep-Alive", "Transfer-Encoding", "Content-Length"]
# Those that are only known.
KNOWN = ["Expect", "Trailer", "Via", "Date", "X-Forwarded-For", "Forwarded", "X-Forwarded-Host", "X-Request-Id", "Client-Cert", "Retry-Attempt"]


def requests():
    """Every adversary that a client can be."""
    for field in READ + KNOWN:
        for name, value in LISTS.items():
            if field in READ or name == "letters":
                yield Kind(f"{field} {name}", long_line(field.encode() + b": ", value))
        yield Kind(f"{field} lines", many_lines(field.encode() + b": ", b"a,"))
    yield Kind("Connection nominates", with_lines(b"Connection: " + b", ".join([b"x-%02d-name" % n for n in range(32)]), *[b"x-%02d-named: %s" % (n % 99, b"v" * 300) for n in range(90)]))
    yield Kind("Connection nominates alike", with_lines(b"Connection: " + b",".join([b"x-%02d-name" % n for n in range(32)]), *[b"x-%02d-name: %s" % (n, b"v" * 300) for n in range(1, 92)]))
    yield Kind("Upgrade of a connection", long_line(b"Upgrade: ", b"a,", head=with_lines(b"Connection: upgrade")))
    yield Kind("TE trailers", long_line(b"TE: ", b"a,", b",trailers"))
    yield Kind("Transfer-Encoding gzip", long_line(b"Transfer-Encoding: ", b"gzip,"))
    yield Kind("Content-Length digits", long_line(b"Content-Length: ", b"0"))
    yield Kind("Content-Length lines", many_lines(b"Content-Length: ", b"0"))
    yield Kind("Host letters", host(b"a"))
    yield Kind("Host escapes", host(b"%41"))
    yield Kind("Host brackets", host(b"[", 4000))
    yield Kind("Host below", host(b"a", 1000))
    yield Kind("Host below with escapes", host(b"%41", 1000))
    yield Kind("Host lines", many_lines(b"Host: ", b"a"))
    yield Kind("target letters", request_line((b"/", b"a")))
    yield Kind("target escapes", request_line((b"/", b"%41")))
    yield Kind("target slashes", request_line((b"/", b"/")))
    yield Kind("target absolute", request_line((b"http://", b"a")))
    yield Kind("target absolute escapes", request_line((b"http://", b"%41")))
    yield Kind("target absolute path", request_line((b"http://h/", b"?")))
    yield Kind("method", PLAIN.replace(b"GET ", b"G" * (SIZE - len(PLAIN)) + b" "))
    yield Kind("method marks", PLAIN.replace(b"GET ", b"!" * (SIZE - len(PLAIN)) + b" "))
    for name, byte in {"letters": b"a", "marks": b"!", "underscores": b"_", "digits": b"0", "mixed": b"a!"}.items():
        yield Kind(f"name {name}", with_lines(byte * (SIZE // len(byte)) + b": v"))
        yield Kind(f"names {name}", with_lines(*[(byte * 300)[:300] + b": v"] * (LINES - 4)))
        yield Kind(f"short names {name}", with_lines(*[(byte * 16)[:16] + b": v"] * (LINES - 4)))
    for name, fill in {"tabs": b"\t", "blanks": b" ", "both": b" \t", "high": b"\xff", "quotes": b'"', "apart": b"a\t"}.items():
        yield Kind(f"value {name}", long_line(b"x:", fill, b"v"))
        yield Kind(f"value then {name}", long_line(b"x: v", fill))
        yield Kind(f"values {name}", many_lines(b"x:", fill))
    yield Kind("tiny lines", with_lines(*[b"a:"] * (LINES - 4)))
    yield Kind("tiny usual lines", with_lines(*[b"a: b"] * (LINES - 4)))
    yield Kind("too many lines", long_line(b"", b"a:b\r\n")[:-4].rsplit(b"\r\n", 1)[0] + b"\r\n\r\n")
    yield Kind("alternating", with_lines(*[b"Keep-Alive: a", b"a: b"] * (LINES // 2 - 2)))
    yield Kind("alternating aliases", with_lines(*[b"X_Forwarded_For: a", b"X_Forward_For: b"] * (LINES // 2 - 2)))
    for field in ["User-Agent", "Referer", "Cookie", "Accept", "Range", "Authorization", "Proxy-Authorization"]:
        for name, fill in {"high": b"\xff", "quotes": b'"', "tabs": b"\t.", "marks": b"\xe2\x80\x8e", "letters": b"a"}.items():
            yield Kind(f"{field} {name}", long_line(field.encode() + b": ", fill, head=PLAIN.replace(b"User-Agent: curl/8.5.0\r\n", b"")))
    both = [b"%s: %s" % (field, b"\xff" * 4096) for field in (b"User-Agent", b"Referer")]
    yield Kind("everything logged", with_lines(*both, head=PLAIN.replace(b"User-Agent: curl/8.5.0\r\n", b"").replace(b"/some", b"/%22" * 1000)))
    for name, fill in {"semicolons": b";", "empty": b"=;", "other": b"a=b;", "ours": b"evenkeel=AAAAAAAAAAAAAAAAAAAAAA;", "short": b"evenkeel=b;",
                       "word": b"a", "blanks": b" "}.items():
        for listener in ["sticky", "cookie"]:
            yield Kind(f"{listener} {name}", long_line(b"Cookie: a=b;", fill), listener)
            yield Kind(f"{listener} lines {name}", many_lines(b"Cookie: a=b;", fill), listener)
    for name, fill in {"ands": b"&", "other": b"a=b&", "word": b"a", "near": b"user&"}.items():
        yield Kind(f"query {name}", request_line((b"/?", fill)), "query")
    yield Kind("header near", with_lines(*[b"x-usex: b"] * (LINES - 4)), "header")
    yield Kind("header long", long_line(b"x-user: ", b"a"), "header")
    yield Kind("path long", request_line((b"/", b"a")), "path")
    for name, fill in {"commas": b",", "addresses": b"127.0.0.1,", "v6": b"::1,", "words": b"a,", "word": b"a", "quotes": b'a="', "for": b"for=127.0.0.1,",
                       "semicolons": b";", "escapes": b'a="\\"",'}.items():
        for field, listener in [("X-Forwarded-For", "client"), ("Forwarded", "forwarded")]:
            yield Kind(f"{listener} {name}", long_line(field.encode() + b": ", fill, b"127.0.0.1"), listener)
            yield Kind(f"{listener} lines {name}", many_lines(field.encode() + b": ", fill), listener)
    for name, fill in {"dashes": b"-", "digits": b"0"}.items():
        yield Kind(f"X-Request-Id {name}", long_line(b"X-Request-Id: ", fill), "client")
        yield Kind(f"Retry-Attempt {name}", long_line(b"Retry-Attempt: ", fill), "client")
        yield Kind(f"Retry-Attempt lines {name}", many_lines(b"Retry-Attempt: ", fill), "client")


def answers():
    """Every adversary that a backend can be."""
    def kind(name, answer, request=PLAIN):
        return Kind(f"answer {name}", request, "sticky", answer)

    def line(name, start, fill, end=b"", head=ANSWER):
        return kind(name, long_line(start, fill, end, head=head))

    for field in ["Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade", "Via", "Trailer", "Retry-After", "Date", "Set-Cookie", "Cache-Control"]:
        head = ANSWER
        if field == "Date":
            head = ANSWER.replace(b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", b"")
        if field == "Retry-After":
            head = ANSWER.replace(b"200 OK", b"503 No")
        if field == "Transfer-Encoding":
            head = ANSWER.replace(b"Content-Length: 0\r\n", b"")
        for name, value in {**LISTS, "zeros": b"0", "pairs": b"timeout=,", "blank": b" a"}.items():
            yield line(f"{field} {name}", field.encode() + b": ", value, head=head)
            if name in ("letters", "blank"):
                yield kind(f"{field} lines {name}", many_lines(field.encode() + b": ", value, ANSWER_LINES - 4, head=head))
    yield kind("Set-Cookie short lines", with_lines(*[b"Set-Cookie: a"] * (ANSWER_LINES - 4), head=ANSWER))
    dated = ANSWER.replace(b"200 OK", b"503 No").replace(b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", b"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n")
    yield line("Date beside Retry-After", b"Date: ", b"0", head=dated)
    yield kind("nominates", with_lines(b"Connection: " + b", ".join([b"x-%02d-name" % n for n in range(32)]),
                                       *[b"x-%02d-named: %s" % (n % 99, b"v" * 45) for n in range(ANSWER_LINES - 10)], head=ANSWER))
    yield kind("reason", ANSWER.replace(b"OK", b"K" * SIZE))
    yield kind("reason tabs", ANSWER.replace(b"OK", b"\t" * SIZE))
    for name, byte in {"letters": b"a", "marks": b"!", "underscores": b"_"}.items():
        yield kind(f"name {name}", with_lines(byte * SIZE + b": v", head=ANSWER))
        yield kind(f"names {name}", with_lines(*[byte * 60 + b": v"] * (ANSWER_LINES - 4), head=ANSWER))
    for name, fill in {"tabs": b"\t", "blanks": b" ", "both": b" \t", "high": b"\xff", "apart": b"a\t"}.items():
        yield line(f"value {name}", b"x:", fill, b"v")
        yield line(f"value then {name}", b"x: v", fill)
        yield kind(f"values {name}", many_lines(b"x:", fill, ANSWER_LINES - 4, head=ANSWER))
    yield kind("tiny lines", with_lines(*[b"a:"] * (ANSWER_LINES - 4), head=ANSWER))
    yield kind("alternating", with_lines(*[b"Keep-Alive: a", b"a: b"] * (ANSWER_LINES // 2 - 2), head=ANSWER))


KINDS = [*requests(), *answers()]
