#!/usr/bin/env python3
"""1, 2, 3 and 5 nodes of a cluster, each with 8 % of a core (a cgroup of its own), which compress what light backends say; requests come by themselves, to all nodes alike. T(N) is
the highest rate at which the slowest hundredth of requests takes at most twice as long as where there are few: T(5) is at least 4.5 times T(1), and at 70 % of it that time grows by at
most 20 % from one node to five (medians of three). Where load, backends and etcd use more than 40 % of the machine the result is void. See README.md beside this file. Needs root, cgroups (v1) and
`etcd` (Debian's etcd-server); builds nothing."""

import asyncio
import os
import random
import sys
import tempfile
import time
import urllib.request
from statistics import median

sys.dont_write_bytecode = True
from cluster_limits import etcd  # noqa: E402
from lab import Backend, Process, accepts, free_port, program, wait_until  # noqa: E402

COUNTS, QUOTA, PERIOD, SPAN, TURNS = (1, 2, 3, 5), 0.08, 50_000, 10.0, 3
FIRST, COARSE, FINE = 100.0, 1.25, 1.03
CGROUP = "/sys/fs/cgroup/cpu"


class Node(Process):
    def __init__(self, name, cluster, store, backends, folder):
        self.port, self.metrics, self.group = free_port(), free_port(), os.path.join(CGROUP, f"evenkeel-bar-{name}")
        path = os.path.join(folder, f"{name}.yaml")
        places = ", ".join(f"{{host: 127.0.0.1, port: {backend.port}}}" for backend in backends)
        with open(path, "w") as config:
            config.write(f"""name: {name}
state_dir: {folder}/{name}
workers: 1
cluster: {{name: {cluster}, node: {name}, etcd: {{endpoints: ['http://127.0.0.1:{store}']}}}}
metrics: {{listener: '127.0.0.1:${{METRICS}}'}}
targets: {{web: {{protocol: http, listener: '127.0.0.1:${{PORT}}', health_check: {{path: /health, interval: 2s}}, compress: on, backends: [{places}]}}}}
""")
        os.environ["PORT"], os.environ["METRICS"] = str(self.port), str(self.metrics)
        os.makedirs(self.group, exist_ok=True)
        for file, value in (("cpu.cfs_period_us", PERIOD), ("cpu.cfs_quota_us", int(PERIOD * QUOTA))):
            with open(os.path.join(self.group, file), "w") as knob:
                knob.write(str(value))
        super().__init__(program("evenkeel"), "--config", path)
        wait_until(name, lambda: accepts(self.port) and accepts(self.metrics) or self.process.poll() is not None, 60)
        if self.process.poll() is not None:
            raise SystemExit(self.text())

    def bound(self):
        with open(os.path.join(self.group, "cgroup.procs"), "w") as procs:
            procs.write(str(self.process.pid))

    def nodes(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=20) as answer:
            return next(int(line.split()[1]) for line in answer.read().decode().splitlines() if line.startswith("evenkeel_cluster_nodes "))


class Pool:
    """Connections to a node that wait for nothing."""

    def __init__(self, port):
        self.port, self.idle = port, []

    async def ask(self):
        begun = time.monotonic()
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /text HTTP/1.1\r\nHost: bar\r\nAccept-Encoding: gzip\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        lower = head.lower()
        if not head.startswith(b"HTTP/1.1 200") or b"content-encoding: gzip" not in lower:
            raise SystemExit(f"not what was asked for: {head[:200]}")
        if b"transfer-encoding: chunked" in lower:
            while True:
                size = int(await reader.readline(), 16)
                await reader.readexactly(size + 2)
                if size == 0:
                    break
        else:
            await reader.readexactly(int(lower.split(b"content-length:")[1].split(b"\r\n")[0]))
        self.idle.append((reader, writer))
        return time.monotonic() - begun


async def offer(nodes, rate, span):
    """How long requests have taken that came by themselves."""
    pools, asked, chance = [Pool(node.port) for node in nodes], [], random.Random(1)
    end = due = time.monotonic()
    end += span
    while True:
        due += chance.expovariate(rate)
        if due >= end:
            break
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        asked.append(asyncio.ensure_future(chance.choice(pools).ask()))
    times = await asyncio.gather(*asked)
    for pool in pools:
        for _, writer in pool.idle:
            writer.close()
    # The first quarter warms up.
    return sorted(times[len(times) // 4:])


class Cluster:
    """So many nodes, what they come to, and the highest share of the machine that everybody else took meanwhile."""

    def __init__(self, count, store, backends, folder):
        self.nodes = [Node(f"{count}{letter}", f"bar{count}", store, backends, folder) for letter in "abcde"[:count]]
        wait_until("all nodes", lambda: all(node.nodes() == count for node in self.nodes), 60)
        for node in self.nodes:
            node.bound()
        self.count, self.others, self.calm, self.best, self.rates, self.at70 = count, 0.0, 0.0, 0.0, [], []

    def p99(self, rate, span=SPAN):
        def spent():
            return sum(os.times()[:2]) + sum(process.cpu_seconds() for process in Process.started if not isinstance(process, Node))

        before, begun = spent(), time.monotonic()
        times = asyncio.run(offer(self.nodes, rate, span))
        self.others = max(self.others, (spent() - before) / (time.monotonic() - begun) / os.cpu_count())
        return times[int(len(times) * 0.99)]

    def keeps_up(self, rate):
        """Twice asked before it is no: this machine has others on it."""
        return any(self.p99(rate) <= 2 * self.calm for _ in range(2))

    def measure(self):
        """One more T, and the time at 70 % of it."""
        self.calm = self.calm or self.p99(15.0 * self.count, 30.0)
        low = self.best * 0.8 or FIRST * self.count
        while not self.keeps_up(low):
            low /= COARSE
        high = low * COARSE
        while self.keeps_up(high):
            low, high = high, high * COARSE
        while high > low * FINE:
            middle = (low * high) ** 0.5
            if self.keeps_up(middle):
                low = middle
            else:
                high = middle
        self.best = low
        self.rates.append(low)
        self.at70.append(self.p99(0.7 * low, 20.0))
        print(f"{self.count} nodes: few {self.calm * 1000:.0f} ms, T = {low:.0f}/s, at 70 % {self.at70[-1] * 1000:.0f} ms; "
              f"load, backends and etcd up to {self.others:.0%} of the machine", flush=True)


def main():
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        backends = [Backend(number, "--latency-shape", "1.5", "--latency-scale", "60", "--size", "49152") for number in range(3)]
        store = etcd(folder)
        clusters = [Cluster(count, store, backends, folder) for count in COUNTS]
        # In turn, since what else is on the machine comes and goes.
        for _ in range(TURNS):
            for cluster in clusters:
                cluster.measure()
    first, last = clusters[0], clusters[-1]
    rates = last.count, median(last.rates), median(last.rates) / median(first.rates)
    grows = median(last.at70) / median(first.at70) - 1
    print(f"medians: T({rates[0]}) = {rates[1]:.0f}/s = {rates[2]:.2f} x T(1); at 70 % {grows:+.0%}")
    failed += [(cluster.count, "void") for cluster in clusters if cluster.others > 0.4]
    if rates[2] < 4.5:
        failed.append("T")
    if grows > 0.2:
        failed.append("time")
    raise SystemExit(f"out of bounds: {failed}" if failed else 0)


if __name__ == "__main__":
    try:
        main()
    finally:
        Process.end_all()
        for name in (f"{count}{letter}" for count in COUNTS for letter in "abcde"):
            if os.path.isdir(os.path.join(CGROUP, f"evenkeel-bar-{name}")):
                os.rmdir(os.path.join(CGROUP, f"evenkeel-bar-{name}"))
