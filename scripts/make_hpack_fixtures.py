#!/usr/bin/env python3
"""Writes fixtures/hpack/connections.txt: lists of header lines as another encoder codes them, and what its table holds then.

The encoder is the package `hpack`. Every run writes the same: names, values and sizes come from a seed.
"""

import pathlib
import random

import hpack

FILE = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "hpack" / "connections.txt"
HEAD = """\
# Made by scripts/make_hpack_fixtures.py with Python's `hpack`. A connection is a number of lists, each for one block:
#   size N          the encoder was told to use a table of N bytes, once or twice before the block
#   block HEX       the block
#   table N M       what the encoder's table counts behind it, and of how many lines
#   NAME: VALUE     a line that the block stands for, with escapes as in Rust; the name ends with the first ": " behind its first byte
"""

METHODS = ["GET", "GET", "GET", "POST", "PUT", "DELETE", "OPTIONS"]
HOSTS = ["example.com", "www.example.com", "static.example.com", "api.example.com:8443"]
WORDS = "alpha beta gamma delta index images style report account search checkout v1 v2 de en fr".split()
AGENTS = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36",
    "curl/8.14.1",
]
STATUSES = ["200", "200", "200", "204", "206", "301", "302", "304", "400", "403", "404", "500", "503"]
TYPES = ["text/html; charset=utf-8", "application/json", "image/png", "text/css", "font/woff2"]


def escape(data):
    shown = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x5C: "\\\\"}
    return "".join(shown.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"\\x{b:02x}") for b in data)


def word(chance):
    return chance.choice(WORDS)


def path(chance):
    parts = "/".join(word(chance) for _ in range(chance.randrange(4)))
    query = f"?{word(chance)}={chance.randrange(10**6)}" if chance.random() < 0.3 else ""
    return f"/{parts}{query}"


def request(chance):
    lines = [(":method", chance.choice(METHODS)), (":scheme", chance.choice(["https", "https", "http"]))]
    lines += [(":authority", chance.choice(HOSTS)), (":path", path(chance))]
    chance.shuffle(lines)
    more = [
        ("user-agent", chance.choice(AGENTS)),
        ("accept", chance.choice(["*/*", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"])),
        ("accept-encoding", chance.choice(["gzip, deflate", "gzip, deflate, br, zstd"])),
        ("cookie", f"session={chance.getrandbits(128):032x}"),
        ("cookie", f"theme={word(chance)}"),
        ("authorization", f"Bearer {chance.getrandbits(96):024x}"),
        ("x-trace", f"{chance.getrandbits(64):016x}"),
        (f"x-{word(chance)}-{word(chance)}", word(chance)),
        ("te", "trailers"),
        ("content-length", str(chance.randrange(10**5))),
        ("priority", f"u={chance.randrange(8)}, i"),
    ]
    return lines + chance.sample(more, chance.randrange(1, 7))


def answer(chance):
    more = [
        ("content-type", chance.choice(TYPES)),
        ("content-length", str(chance.randrange(10**6))),
        ("date", f"Mon, {chance.randrange(10, 28)} Nov 2023 10:{chance.randrange(10, 60)}:07 GMT"),
        ("server", "nginx/1.26.2"),
        ("etag", f'"{chance.getrandbits(48):x}"'),
        ("set-cookie", f"id={chance.getrandbits(64):x}; Path=/; HttpOnly"),
        ("location", f"https://example.com{path(chance)}"),
        ("vary", "Accept-Encoding"),
        ("cache-control", chance.choice(["no-store", "max-age=60", "public, max-age=31536000, immutable"])),
        (f"x-{word(chance)}", f"{word(chance)} {{}}|~^<>`$@#[]\\{chance.randrange(100)}"),
        ("alt-svc", 'h3=":443"; ma=86400'),
    ]
    return [(":status", chance.choice(STATUSES))] + chance.sample(more, chance.randrange(1, 8))


def noise(chance):
    """Any bytes at all: what is malformed stays in the table like everything else."""
    some = lambda most: bytes(chance.choice([chance.randrange(256), chance.randrange(97, 123)]) for _ in range(chance.randrange(most)))
    return [(b"x" + some(12).replace(b":", b""), some(40)) for _ in range(chance.randrange(1, 5))]


def symbols(chance):
    """Each byte in each place of a word of bits."""
    start = chance.randrange(256)
    return [(b"all", bytes((start + at) % 256 for at in range(256)))]


# What is coded, how many lists, the sizes that the encoder is told to use.
CONNECTIONS = [
    (request, 40, []),
    (answer, 40, []),
    (request, 30, [0, 100, 256, 512, 4096]),
    (answer, 30, [0, 64, 300, 1024, 4096]),
    (request, 20, [0]),
    (answer, 25, [200]),
    (noise, 40, [0, 80, 4096]),
    (symbols, 8, []),
]


def connection(number, make, count, sizes):
    chance = random.Random(number)
    encoder = hpack.Encoder()
    out = [f"connection {make.__name__}"]
    for _ in range(count):
        told = []
        if sizes and chance.random() < 0.3:
            # Told the same size twice in a row, this encoder forgets to write it.
            told = chance.sample(sizes, min(len(sizes), chance.choice([1, 1, 2])))
        for size in told:
            out.append(f"size {size}")
            encoder.header_table_size = size
        lines = [
            tuple(part if isinstance(part, bytes) else part.encode() for part in line) for line in make(chance)
        ]
        secret = {b"authorization", b"cookie"}
        coded = [hpack.NeverIndexedHeaderTuple(*line) if line[0] in secret else line for line in lines]
        block = encoder.encode(coded, huffman=chance.random() < 0.8)
        out.append(f"block {block.hex()}")
        table = encoder.header_table
        out.append(f"table {table._current_size} {len(table.dynamic_entries)}")
        out += [f"{escape(name)}: {escape(value)}" for name, value in lines]
    return "\n".join(out) + "\n"


FILE.parent.mkdir(exist_ok=True)
FILE.write_text(HEAD + "".join(connection(at, *row) for at, row in enumerate(CONNECTIONS)))
