"""What is measured in rounds, as data: the load, the backends, and the budgets by peer."""

import os
import pathlib
from dataclasses import dataclass, field

import load
from lab import agreed, check, check_bytes
from process import Failure, Program
from report import Row

HERE = pathlib.Path(__file__).resolve().parent
BODY = 128
SMALL = 13
LARGE = 64 * 1024
# Where no budget against a peer is given: ahead of it.
AHEAD = 1.0


@dataclass
class Scenario:
    """One row measured in rounds. `load` is called with the lab and a running proxy; `haproxy`, `nginx`, `varnish` and
    `floor` are the least ratios of their CPU to ours."""

    name: str
    text: str
    load: object
    haproxy: float = AHEAD
    nginx: float = AHEAD
    varnish: float = AHEAD
    floor: float = AHEAD
    mode: str = "http"
    backend: list = field(default_factory=list)
    length: int = BODY
    threads: int = 1
    logs: bool = False
    # The backend answers once, and is gone while it is measured.
    cached: bool = False
    # Backends are asked over HTTP/2, by those who can.
    multiplexes: bool = False
    # What the load insists on, where it leaves no choice.
    suite: str = ""
    # The server of a load that is not HTTP.
    server: str = ""
    unit: str = "µs"
    inverse: float = 0.0

    def run(self, lab):
        if self.server:
            points = lab.server(self.server)
        elif self.multiplexes:
            points = lab.answering(self.length)
        else:
            points = lab.backends("--body", self.length, *self.backend)
        source = Program.running[-1]
        sides = lab.begin(self.mode, points, self.threads, logs=self.logs, cached=self.length if self.cached else 0,
                          multiplexes=self.multiplexes)
        budgets = {peer: getattr(self, peer) for peer in ["haproxy", "nginx", "varnish", "floor"]}
        row = Row(self.name, self.text, self.unit, budgets=budgets, inverse=self.inverse)
        row.notes = self.check(lab, sides)
        if self.cached:
            # Whoever still answers has it from nowhere else than its cache.
            source.end()
            self.check(lab, sides)
        row.cells = lab.rounds(sides, lambda side: self.load(lab, side))
        row.memory = {side.name: side.program.memory_kib("VmHWM") for side in sides}
        for side in sides if self.logs else []:
            # No record is shorter than 50 bytes, and no cell than a second.
            if os.path.getsize(side.records) < 50 * row.cells[side.name][0].rate:
                raise Failure(f"{side.name} has not written what happened")
        Program.end_all()
        return [row]

    def check(self, lab, sides):
        """Everybody answers rightly; gives what there is to say of TLS."""
        tls = lab.files[0] if self.mode == "https" else None
        suites = {}
        for side in sides:
            if self.server:
                check_bytes(side, self.server)
                continue
            check(side, tls, self.length)
            if self.name.startswith("upload"):
                check(side, tls, method="POST", body=b"x" * 1024**2)
            if tls:
                suites[side.name] = self.suite or agreed(side, tls)
        if len(set(suites.values())) == 1:
            return list(suites.values())[:1]
        return [f"{name}: {suite}" for name, suite in suites.items()]


def url(side, scheme="http"):
    return f"{scheme}://localhost:{side.port}/" if scheme == "https" else f"http://127.0.0.1:{side.port}/"


def keep_alive(connections, scheme="http"):
    return lambda lab, side: load.wrk(url(side, scheme), lab.load_cores, lab.options.seconds, connections)


def multiplexed(connections, streams):
    return lambda lab, side: load.streams(url(side, "https"), lab.load_cores, lab.options.seconds, connections, streams)


def close(lab, side):
    return load.bombard(url(side), lab.load_cores, 125, lab.options.seconds, headers=["Connection: close"])


def upload(lab, side):
    return load.wrk(url(side), lab.load_cores, lab.options.seconds, 16, HERE / "upload.lua")


def upload_in_pieces(lab, side):
    return load.upload(url(side), lab.load_cores, lab.options.seconds, 16, lab.upload)


def handshakes(*more):
    return lambda lab, side: load.handshakes(lab.options.rig, side, lab.load_cores, lab.files[0], lab.options.seconds, BODY, *more)


def pingpong(lab, side):
    return load.pingpong(lab.options.rig, side, lab.load_cores, lab.log, lab.options.seconds, 64)


def bulk(lab, side):
    return load.bulk(lab.options.rig, side, lab.load_cores, lab.log, lab.options.seconds)


FIXED = "TLSv1.3 TLS_AES_128_GCM_SHA256, X25519"
SCENARIOS = [
    Scenario("keep-alive-1", "keep-alive, 1 connection", keep_alive(1)),
    Scenario("keep-alive-64", "keep-alive, 64 connections", keep_alive(64), haproxy=1.20),
    Scenario("keep-alive-512", "keep-alive, 512 connections", keep_alive(512), haproxy=1.40),
    Scenario("access-log", "keep-alive, 64 connections, each proxy with an access log", keep_alive(64), logs=True),
    Scenario("close", "Connection: close, 125 connections", close, nginx=0.97),
    Scenario("64k", "answers of 64 KiB, 64 connections", keep_alive(64), haproxy=1.35, length=LARGE),
    Scenario("64k-chunked", "chunked answers of 64 KiB, 64 connections", keep_alive(64), haproxy=1.35, length=LARGE,
             backend=["--chunked"]),
    Scenario("upload", "uploads of 1 MiB, 16 connections", upload, haproxy=1.5),
    Scenario("upload-pieces", "the same from a client that sends little at a time", upload_in_pieces),
    Scenario("tls", "TLS, keep-alive, 64 connections", keep_alive(64, "https"), haproxy=1.20, mode="https"),
    Scenario("tls-64k", "TLS, answers of 64 KiB, 64 connections", keep_alive(64, "https"), haproxy=1.6, mode="https", length=LARGE),
    Scenario("tls-full", "a full TLS handshake and a request", handshakes(), haproxy=1.5, mode="https", suite=FIXED),
    Scenario("tls-resumed", "a resumed TLS session and a request", handshakes("--resume"), mode="https", suite=FIXED),
    Scenario("h2-32x32", "HTTP/2 over TLS, 13 bytes, 32 connections of 32 streams", multiplexed(32, 32), haproxy=1.5,
             mode="https", length=SMALL),
    Scenario("h2-64x1", "HTTP/2 over TLS, 13 bytes, 64 connections of 1 stream", multiplexed(64, 1), haproxy=1.15,
             mode="https", length=SMALL),
    Scenario("h2-64k", "HTTP/2 over TLS, answers of 64 KiB, 16 connections of 4 streams", multiplexed(16, 4), haproxy=1.8,
             mode="https", length=LARGE),
    Scenario("h2-h2-32x32", "HTTP/2 on both sides, 13 bytes, 32 connections of 32 streams", multiplexed(32, 32), haproxy=2.0,
             mode="https", length=SMALL, multiplexes=True),
    Scenario("h2-h2-64k", "HTTP/2 on both sides, answers of 64 KiB, 16 connections of 4 streams", multiplexed(16, 4), haproxy=2.0,
             mode="https", length=LARGE, multiplexes=True),
    Scenario("tcp-pingpong", "TCP, 128 bytes back and forth, 64 connections", pingpong, haproxy=0.97, mode="tcp", server="pingpong"),
    Scenario("tcp-bulk", "TCP, as much as goes through, 2 connections each way", bulk, haproxy=2.5, mode="tcp", server="bulk",
             unit="GiB/CPU s", inverse=1e6),
    Scenario("2-threads", "two threads, keep-alive, 64 connections", keep_alive(64), haproxy=1.15, threads=2),
    Scenario("2-threads-close", "two threads, Connection: close, 125 connections", close, haproxy=1.2, threads=2),
    Scenario("hit", "hits of 13 bytes, 64 connections", keep_alive(64), nginx=1.2, varnish=1.2, floor=0.85, length=SMALL,
             backend=["--cacheable"], cached=True),
    Scenario("hit-64k", "hits of 64 KiB, 64 connections", keep_alive(64), nginx=1.2, varnish=1.2, floor=0.85, length=LARGE,
             backend=["--cacheable"], cached=True),
]
