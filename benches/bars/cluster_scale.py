#!/usr/bin/env python3
"""1, 2, 3 and 5 nodes of a cluster, each with 8 % of a core (a cgroup of its own), which compress what light backends say; requests come by themselves, to all nodes alike. T(N) is
the highest rate at which the slowest hundredth of requests takes at most twice as long as where there are few: T(5) is at least 4.5 times T(1), and at 70 % of it that time grows by at
most 20 % from one node to five. Where load, backends and etcd use more than 40 % of the machine the result is void. See README.md beside this file. Needs root, cgroups (v1) and
`etcd` (Debian's etcd-server); builds nothing."""

import asyncio
import os
import random
import sys
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True
from cluster_limits import etcd  # noqa: E402
from lab import Backend, Process, accepts, free_port, program, wait_until  # noqa: E402

COUNTS, QUOTA, PERIOD, SPAN, STEP = (1, 2, 3, 5), 0.08, 50_000, 12.0, 1.12
CGROUP = "/sys/fs/cgroup/cpu"


class Node(Process):
    def __init__(self, name, store, backends, folder):
        self.port, self.metrics, self.group = free_port(), free_port(), os.path.join(CGROUP, f"evenkeel-bar-{name}")
        path = os.path.join(folder, f"{name}.yaml")
        places = ", ".join(f"{{host: 127.0.0.1, port: {backend.port}}}" for backend in backends)
        with open(path, "w") as config:
            config.write(f"""name: {name}
state_dir: {folder}/{name}
workers: 1
cluster: {{name: bar, node: {name}, etcd: {{endpoints: ['http://127.0.0.1:{store}']}}}}
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

    def gone(self):
        self.end()
        os.rmdir(self.group)


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


def p99(nodes, rate, span=SPAN):
    times = asyncio.run(offer(nodes, rate, span))
    return times[int(len(times) * 0.99)]


def main():
    failed, found = [], {}
    with tempfile.TemporaryDirectory() as folder:
        backends = [Backend(number, "--latency-shape", "1.5", "--latency-scale", "60", "--size", "49152") for number in range(3)]
        for count in COUNTS:
            state = os.path.join(folder, str(count))
            os.makedirs(state)
            store = etcd(state)
            nodes = [Node("abcde"[number], store, backends, state) for number in range(count)]
            wait_until("all nodes", lambda: all(node.nodes() == count for node in nodes), 60)
            for node in nodes:
                node.bound()
            time.sleep(2)
            calm = p99(nodes, 3.0 * count, 20.0)
            rate, best, begun = 8.0 * count, 0.0, time.monotonic()
            spent = os.times(), sum(process.cpu_seconds() for process in Process.started if process not in nodes and process.process.poll() is None)
            misses = 0
            while misses < 2:
                took = p99(nodes, rate)
                if took <= 2 * calm:
                    best, misses = rate, 0
                else:
                    misses += 1
                rate *= STEP
            spent_after = os.times(), sum(process.cpu_seconds() for process in Process.started if process not in nodes and process.process.poll() is None)
            own = sum(spent_after[0][:2]) - sum(spent[0][:2]) + spent_after[1] - spent[1]
            share = own / (time.monotonic() - begun) / os.cpu_count()
            at70 = p99(nodes, 0.7 * best, 30.0)
            found[count] = best, at70
            print(f"{count} nodes: few {calm * 1000:.0f} ms, T = {best:.0f}/s, at 70 % {at70 * 1000:.0f} ms; load, backends and etcd {share:.0%} of the machine",
                  flush=True)
            if share > 0.4:
                failed.append((count, "void"))
            for node in nodes:
                node.gone()
    first, last = found[COUNTS[0]], found[COUNTS[-1]]
    print(f"T(5) = {last[0] / first[0]:.2f} x T(1); at 70 % {last[1] / first[1] - 1:+.0%}")
    if last[0] < 4.5 * first[0]:
        failed.append("T")
    if last[1] > 1.2 * first[1]:
        failed.append("time")
    raise SystemExit(f"out of bounds: {failed}" if failed else 0)


if __name__ == "__main__":
    try:
        main()
    finally:
        Process.end_all()
        for name in "abcde":
            if os.path.isdir(os.path.join(CGROUP, f"evenkeel-bar-{name}")):
                os.rmdir(os.path.join(CGROUP, f"evenkeel-bar-{name}"))
