#!/usr/bin/env python3
"""Events through `compress: on`: how long each takes from the backend to its client in each coding. And what a line of 16 KiB with thousands of
codings costs. Needs node for brotli and the program zstd for zstd; what is missing is skipped, visibly. Builds nothing; takes about 40 s."""

import argparse
import asyncio
import base64
import json
import random
import re
import shutil
import socket
import subprocess
import sys
import time
import zlib

sys.dont_write_bytecode = True

from cache_lab import Cached, Origin, Verdicts, ground, head  # noqa: E402
from lab import Client  # noqa: E402

MOST_MS = 50
MESSAGES, LINE = 100, 16_000
# What a line of thousands of codings may cost more than a line of the same length that nobody reads.
MOST_US = 25
TEXT = b"<p>all work and no play</p>\n" * 60

UNBROTLI = """
const zlib = require("zlib");
const pieces = JSON.parse(require("fs").readFileSync(0)).map(piece => Buffer.from(piece, "base64"));
const options = {finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH};
const lengths = pieces.map((_, at) => zlib.brotliDecompressSync(Buffer.concat(pieces.slice(0, at + 1)), options).length);
console.log(JSON.stringify({lengths, text: zlib.brotliDecompressSync(Buffer.concat(pieces)).toString()}));
"""


async def answer(path, _, __, writer):
    if path.startswith("/page"):
        writer.write(head(len(TEXT), "Content-Type: text/html", *(["Vary: Accept-Encoding"] if "vary" in path else [])) + TEXT)
        return
    chance = random.Random(11)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for number in range(MESSAGES):
        await asyncio.sleep(chance.choice([0, 0.001, 0.02, 0.05]))
        filler = "%x" % chance.getrandbits(4 * chance.choice([8, 200, 2000]))
        event = f"id: {number}\ndata: {time.monotonic_ns()} {filler}\n\n".encode()
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))
    writer.write(b"0\r\n\r\n")


def taken(port, coding):
    """Pieces of the compressed body as they came: (when, bytes)."""
    pieces = []
    with socket.create_connection(("127.0.0.1", port), 20) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.sendall(f"GET /events HTTP/1.1\r\nHost: bar\r\nAccept-Encoding: {coding}\r\n\r\n".encode())
        held = b""
        while b"\r\n\r\n" not in held:
            held += one.recv(65536)
        lines, _, held = held.partition(b"\r\n\r\n")
        if f"content-encoding: {coding}".encode() not in lines.lower():
            raise SystemExit(f"it is not {coding}: {lines.decode()}")
        while True:
            at, content, is_over = time.monotonic_ns(), b"", False
            while not is_over and (found := re.match(rb"([0-9a-fA-F]+)\r\n", held)):
                begin, size = found.end(), int(found[1], 16)
                if len(held) < begin + size + 2:
                    break
                is_over = size == 0
                content += held[begin:begin + size]
                held = held[begin + size + 2:]
            if content:
                pieces.append((at, content))
            if is_over:
                return pieces
            piece = one.recv(65536)
            if not piece:
                raise SystemExit("the events were cut")
            held += piece


def gzip_lengths(pieces):
    decoder, text, lengths = zlib.decompressobj(31), b"", []
    for piece in pieces:
        text += decoder.decompress(piece)
        lengths.append(len(text))
    return lengths, text.decode() if decoder.eof else ""


def brotli_lengths(pieces):
    given = json.dumps([base64.b64encode(piece).decode() for piece in pieces])
    said = json.loads(subprocess.run(["node", "-e", UNBROTLI], input=given, capture_output=True, text=True, check=True).stdout)
    return said["lengths"], said["text"]


def zstd_lengths(pieces):
    # Of what has no end it writes all that it can decode, up to a border of 128 KiB: all events together are shorter than that.
    decoded = lambda to: subprocess.run(["zstd", "-dc"], input=b"".join(pieces[:to]), capture_output=True).stdout  # noqa: E731
    texts = [decoded(at + 1) for at in range(len(pieces))]
    return [len(text) for text in texts], texts[-1].decode()


def events(port, coding, lengths_of):
    """How late each message was, in milliseconds."""
    pieces = taken(port, coding)
    lengths, text = lengths_of([content for _, content in pieces])
    late = []
    for found in re.finditer(r"id: (\d+)\ndata: (\d+) [0-9a-f]+\n\n", text):
        if int(found[1]) != len(late):
            raise SystemExit(f"{coding}: message {found[1]} in the place of {len(late)}")
        when = next(at for (at, _), length in zip(pieces, lengths) if length >= found.end())
        late.append((when - int(found[2])) / 1e6)
    if len(late) != MESSAGES:
        raise SystemExit(f"{coding}: {len(late)} of {MESSAGES} messages")
    return late, sum(len(content) for _, content in pieces), len(text)


def cost(keel, path, line, count):
    """Microseconds of CPU of a request with this line, and the status of its answer."""
    client = Client(keel.front)

    def ask():
        client.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: bar\r\n{line}\r\n\r\n".encode())
        held = client.held
        while b"\r\n\r\n" not in held:
            held += client.socket.recv(65536)
        lines, _, held = held.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)content-length: *(\d+)", lines)
        while (len(held) < int(found[1])) if found else not held.endswith(b"0\r\n\r\n"):
            held += client.socket.recv(65536)
        client.held = b""
        return int(lines[9:12])

    status = {ask() for _ in range(20)}
    before = keel.cpu_exact()
    status |= {ask() for _ in range(count)}
    spent = keel.cpu_exact() - before
    client.close()
    return spent / count * 1e6, status


def bombs(keel, path, count, verdict, name):
    filled = lambda text: (text * (LINE // len(text) + 1))[:LINE - 6].rsplit(",", 1)[0] + ", gzip"  # noqa: E731
    lines = {"as usual": "Accept-Encoding: gzip, deflate, br;q=0.5", "of no meaning": f"Accept-Encoding: gzip\r\nX-Filler: {'x' * LINE}",
             "commas": "Accept-Encoding: " + "," * (LINE - 4) + "gzip", "one coding": f"Accept-Encoding: {filled('gzip,')}",
             "weights": f"Accept-Encoding: {filled('gzip;q=0.001,br;q=0.002,')}",
             "names": "Accept-Encoding: " + ",".join(f"x{number}" for number in range(2400)) + ",gzip",
             "any": f"Accept-Encoding: {filled('*;q=0.5,')}"}
    least, statuses = {}, {}
    # Least of some, as others use the machine too.
    for _ in range(5):
        for which, line in lines.items():
            spent, statuses[which] = cost(keel, path, line, count)
            least[which] = min(spent, least.get(which, spent))
    more = {which: least[which] - least["of no meaning"] for which in lines}
    worst = max(more[which] for which in list(lines)[2:])
    told = ", ".join(f"{which} {least[which]:.0f} ({'/'.join(map(str, sorted(statuses[which])))})" for which in lines)
    verdict(f"cache events, bomb, {name}", worst <= MOST_US,
            f"{worst:.0f} µs of CPU a request more than a line of {LINE} bytes that nobody reads (bar: {MOST_US}); µs (status): {told}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of events; the best one counts")
    parser.add_argument("--requests", type=int, default=400, help="of each kind of line, five times")
    given = parser.parse_args()
    verdict = Verdicts()
    with ground() as folder:
        origin = Origin(answer)
        keel = Cached(folder, origin.port, more=", compress: on")
        for coding, lengths_of, program in [("gzip", gzip_lengths, None), ("br", brotli_lengths, "node"), ("zstd", zstd_lengths, "zstd")]:
            if program and not shutil.which(program):
                verdict(f"cache events, {coding}", None, f"skipped: {program} is not here")
                continue
            runs = [events(keel.front, coding, lengths_of) for _ in range(given.runs)]
            late, coded, plain = min(runs, key=lambda run: max(run[0]))
            verdict(f"cache events, {coding}", max(late) <= MOST_MS,
                    f"{MESSAGES} messages, the latest after {max(late):.2f} ms (bar: {MOST_MS} ms), median {sorted(late)[MESSAGES // 2]:.2f} ms; all of "
                    f"{given.runs} runs {max(max(run[0]) for run in runs):.2f} ms; {plain} bytes as {coded}")
        bombs(keel, "/page", given.requests, verdict, "compressed hit")
        bombs(keel, "/page/vary", given.requests, verdict, "compressed hit that varies")
    verdict.end()


if __name__ == "__main__":
    main()
