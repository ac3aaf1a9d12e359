"""Rows that are more than CPU for each request: growth with backends and connections, memory of idle connections,
added latency, and what is left behind."""

import os
import subprocess
from dataclasses import dataclass

import load
from lab import check
from process import Failure, Program
from report import Cell, Row
from scenarios import BODY, url

MANY = 1000
CROWD, FEW = 9500, 100
IDLE = 9000
# TIME_WAIT in /proc/net/tcp.
TIME_WAIT = "06"


@dataclass
class Special:
    """A row, or some, that a function of its own measures."""

    name: str
    text: str
    work: object

    def run(self, lab):
        try:
            return self.work(lab, self)
        finally:
            Program.end_all()


def backends(lab, self):
    """The same program behind 2 addresses and behind 1,000, so that nothing but the proxy's own work can grow.
    Some growth is the kernel's: 1,000 connections are in use instead of some 60."""
    hosts = [f"127.0.{1 + number // 250}.{1 + number % 250}" for number in range(MANY)]
    few, many = lab.begin("http", lab.backends("--body", BODY)), lab.begin("http", lab.backends("--body", BODY, hosts=hosts))
    for side in few + many:
        check(side, length=BODY)
    pairs = {one.name: (one, other) for one, other in zip(few, many)}

    def work(side):
        return load.wrk(url(side), lab.load_cores, lab.options.seconds, 64)

    costs = Row("1000-backends-cost", f"keep-alive, 64 connections, {MANY} backends", budgets={"haproxy": 1.0, "nginx": 1.0})
    growth = Row(self.name, self.text, "×", most=1.05)
    growth.cells, costs.cells = {name: [] for name in pairs}, {name: [] for name in pairs}
    for number in range(lab.options.rounds + 1):
        for name, (one, other) in pairs.items():
            small, large = lab.measure(one, work), lab.measure(other, work)
            if number:
                growth.cells[name].append(Cell(large.cost / small.cost, errors=small.errors + large.errors))
                costs.cells[name].append(large)
    return [costs, growth]


def crowd(lab, self):
    """CPU for each request with many connections over that with few. Its inverse is what becomes of the requests/s
    that one share of CPU pays for. Connects are not in it: they have rows of their own."""
    many = min(CROWD, (lab.options.descriptors - 1000) // 2)
    sides = lab.begin("http", lab.backends("--body", BODY), kept=2000)
    for side in sides:
        check(side, length=BODY)
    costs = Row("crowd-cost", f"keep-alive, {many} connections", budgets={"haproxy": 1.0, "nginx": 1.0})
    growth = Row(self.name, f"growth of CPU for each request, {FEW} → {many} connections", "×", most=1.35,
                 budgets={"haproxy": 1.0, "nginx": 1.0})
    growth.cells, costs.cells = {side.name: [] for side in sides}, {side.name: [] for side in sides}

    def work(count):
        # In the warm-up every connection has had some answers, so all that grows has grown.
        warm = "2" if count == many else "0.3"
        return lambda side: load.pingpong(lab.options.rig, side, lab.load_cores, lab.log, lab.options.seconds, count, "--http",
                                          "--warm", warm)

    for number in range(max(3, lab.options.rounds // 3) + 1):
        for side in sides:
            small, large = lab.measure(side, work(FEW)), lab.measure(side, work(many))
            if number:
                growth.cells[side.name].append(Cell(large.cost / small.cost, errors=small.errors + large.errors))
                costs.cells[side.name].append(large)
    costs.memory = {side.name: side.program.memory_kib("VmHWM") for side in sides}
    return [costs, growth]


def idle(mode, most):
    def work(lab, self):
        """Resident memory with and without the connections, for each of them. All have had an answer before."""
        count = min(IDLE, lab.options.descriptors - 1000)
        row = Row(self.name, self.text, "KiB", most=most)
        tls = lab.files[0] if mode == "https" else None
        for side in lab.begin(mode, lab.backends("--body", BODY)):
            check(side, tls, BODY)
            # What the first requests allocate once is no connection's.
            scheme = "https" if tls else "http"
            load.wrk(url(side, scheme), lab.load_cores, 1, 64)
            side.program.settle()
            before = side.program.memory_kib("Rss")
            args = [lab.options.rig, "idle", "--connect", f"127.0.0.1:{side.port}", "--connections", str(count), "--seconds", "2"]
            lost, after = held(args + (["--tls", tls] if tls else []), lab, side)
            row.cells[side.name] = [Cell((after - before) / count, errors=lost)]
            side.program.end()
        return [row]

    return work


def held(args, lab, side):
    """(connections lost, KiB of resident memory while all are held)."""
    with open(lab.log, "ab") as errors:
        process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                                   start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, lab.load_cores))
    try:
        if process.stdout.readline().strip() != "held":
            with open(lab.log) as errors:
                raise Failure(f"{side.name}: {errors.read().strip()[-500:]}")
        side.program.settle()
        after = side.program.memory_kib("Rss")
        return load.json.loads(process.stdout.readline())["lost"], after
    finally:
        process.kill()
        process.wait()


def latency(lab, self):
    """One connection, one request at a time: the middle latency through the proxy less that without it."""
    points = lab.backends("--body", BODY)
    sides = lab.begin("http", points)
    for side in sides:
        check(side, length=BODY)
    row = Row(self.name, self.text, most=100)
    row.cells = {side.name: [] for side in sides}

    def p50(side):
        return load.pingpong(lab.options.rig, side, lab.load_cores, lab.log, 1, 1, "--http")

    direct = Direct(Program.running[0], points[0][1])
    for number in range(min(5, lab.options.rounds) + 1):
        base = p50(direct).p50
        for side in sides:
            seen = p50(side)
            if number:
                row.cells[side.name].append(Cell(seen.p50 - base, seen.units / seen.seconds, seen.p50, seen.p99, seen.errors))
    return [row]


@dataclass
class Direct:
    """The backend itself, in a proxy's place."""

    program: object
    port: int
    name: str = "direct"


def leftovers(lab, self):
    """Ours alone: three runs back to back, and then the sockets in TIME_WAIT that we have closed: at the listener, or
    towards a backend. Those of clients and backends have other ports on our side's place."""
    count = 500_000
    points = lab.backends("--body", BODY)
    side = lab.begin("http", points, only=1)[0]
    check(side, length=BODY)
    row = Row(self.name, self.text, "sockets", most=49)
    errors = 0
    for _ in range(3):
        seen = load.bombard(url(side), lab.load_cores, 200, requests=count)
        errors += seen.errors + abs(count - seen.errors - int(seen.units))
    left = waiting(side.port, {port for _, port in points})
    row.cells[side.name] = [Cell(left, seen.units / seen.seconds, seen.p50, seen.p99, errors)]
    row.memory[side.name] = side.program.memory_kib("VmHWM")
    return [row]


def waiting(listener, backends):
    """Sockets in TIME_WAIT whose own port is the listener's, or whose peer is a backend."""
    found = 0
    with open("/proc/net/tcp") as lines:
        for line in list(lines)[1:]:
            _, local, peer, state = line.split()[:4]
            if state == TIME_WAIT:
                found += int(local.split(":")[1], 16) == listener or int(peer.split(":")[1], 16) in backends
    return found


SPECIALS = [
    Special("1000-backends", f"growth of CPU for each request, 2 → {MANY} backends", backends),
    Special("crowd", "", crowd),
    Special("idle", f"resident memory of each of {IDLE} idle connections", idle("http", 1.5)),
    Special("idle-tls", f"resident memory of each of {IDLE} idle TLS connections", idle("https", 12)),
    Special("latency", "added latency, 1 connection, median", latency),
    Special("leftovers", "TIME_WAIT after 3 × 500,000 requests, 200 connections", leftovers),
]
