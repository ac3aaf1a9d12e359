#!/usr/bin/env python3
"""Five nodes of a cluster in front of 100 workers with one slot each (`owner: soft`): one node gets ten times as many requests as each other one, and that is another node every
60 s; at the end two minutes in which nothing flips. No request is lost, ownership follows within 15 s, without flips at most two backends move in a minute, and from five seconds after a
flip on no worker is busy for 20 points more of a second than another one, at the median over all seconds. `--load 0.5`, `--latency 0.02` (s) try others. See README.md beside this file. Needs `etcd` (Debian's etcd-server); builds nothing."""

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
from cluster_limits import etcd  # noqa: E402
from lab import Process, accepts, free_port, program, wait_until  # noqa: E402

NODES, WORKERS, LATENCY, LOAD, APART = "abcde", 100, 0.05, 0.7, 20
FLIP, FLIPS, REST, FOLLOWS, SPILLS = 60, 5, 120, 15, 5
HEAVY, FLOOR = 10 / (10 + len(NODES) - 1), 4


class Node(Process):
    def __init__(self, name, store, first, folder):
        self.name, self.port, self.metrics = name, free_port(), free_port()
        path = os.path.join(folder, f"{name}.yaml")
        workers = ", ".join(f"{{name: w{number}, host: 127.0.0.1, port: {first + number}}}" for number in range(WORKERS))
        with open(path, "w") as config:
            config.write(f"""name: {name}
state_dir: {folder}/{name}
workers: 1
cluster: {{name: bar, node: {name}, etcd: {{endpoints: ['http://127.0.0.1:{store}']}}}}
metrics: {{listener: '127.0.0.1:${{METRICS}}'}}
targets:
  web: {{protocol: http, listener: '127.0.0.1:${{PORT}}', health_check: off, max_in_flight: 1, queue: {{timeout: 30s}}, balance: least_connections,
    owner: soft, backends: [{workers}]}}
""")
        os.environ["PORT"], os.environ["METRICS"] = str(self.port), str(self.metrics)
        super().__init__(program("evenkeel"), "--config", path)
        wait_until(name, lambda: accepts(self.port) and accepts(self.metrics) or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise SystemExit(self.text())

    def metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=5) as answer:
            found = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)", answer.read().decode(), re.M)
        return sum(float(value) for value in found)


def workers(folder):
    """So many neighbouring ports of one process."""
    while True:
        first = free_port()
        process = Process(program("fake_backend"), "--id", "w", "--port", str(first), "--count", str(WORKERS), "--slots", "1", "--latency",
                          str(int(LATENCY * 1000)))
        wait_until("the workers", lambda: accepts(first + WORKERS - 1) or process.process.poll() is not None)
        if process.process.poll() is None:
            return first


class Worker:
    """One that says for how long it has worked, over a connection that stays."""

    def __init__(self, port):
        self.asked = http.client.HTTPConnection("127.0.0.1", port, timeout=5)

    def worked(self):
        """Seconds, and when that was."""
        self.asked.request("GET", "/_fake")
        said = self.asked.getresponse().read().decode()
        return int(re.search(r"^busy_us=(\d+)", said, re.M).group(1)) / 1e6, time.monotonic()


class Busy(threading.Thread):
    """How busy workers are in each second: the difference between the busiest and the idlest, in points."""

    def __init__(self, first):
        super().__init__(daemon=True)
        self.workers, self.seen, self.over = [Worker(first + number) for number in range(WORKERS)], [], False

    def run(self):
        before, due = [worker.worked() for worker in self.workers], time.monotonic()
        while not self.over:
            due += 1
            time.sleep(max(0.0, due - time.monotonic()))
            now = [worker.worked() for worker in self.workers]
            # Each over its own second: a hundred of them are not asked at once.
            shares = [(worked - old) / (then - at) * 100 for (worked, then), (old, at) in zip(now, before)]
            self.seen.append((due, max(shares) - min(shares)))
            before = now


def load(nodes, heavy, seconds):
    rate = LOAD * WORKERS / LATENCY
    shares = [HEAVY if node is heavy else (1 - HEAVY) / (len(nodes) - 1) for node in nodes]
    return [subprocess.Popen([program("rig"), "clients", f"127.0.0.1:{node.port}", "--rate", str(rate * share), "--seconds", str(seconds)],
                             stdout=subprocess.PIPE) for node, share in zip(nodes, shares)]


def outcome(clients):
    """How many requests were served and lost, and the mean and the 99th percentile of how long they took at the node that had most."""
    lines = [json.loads(client.communicate()[0]) for client in clients]
    return lines


def main():
    global LATENCY, LOAD
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--load", type=float, default=LOAD, help="of what all workers can do")
    said.add_argument("--latency", type=float, default=LATENCY, help="of a request, in seconds")
    args = said.parse_args()
    LATENCY, LOAD = args.latency, args.load
    failed, wanted = [], min(WORKERS * HEAVY, WORKERS - FLOOR * (len(NODES) - 1))
    with tempfile.TemporaryDirectory() as folder:
        first, store = workers(folder), etcd(folder)
        nodes = [Node(name, store, first, folder) for name in NODES]
        wait_until("all nodes", lambda: all(node.metric("evenkeel_cluster_nodes") == len(NODES) for node in nodes))
        moves = lambda: sum(node.metric("evenkeel_cluster_owner_moves_total") for node in nodes)  # noqa: E731
        time.sleep(12)
        busy = Busy(first)
        for flip in range(FLIPS + 1):
            is_last = flip == FLIPS
            heavy = nodes[(flip if not is_last else flip - 1) % len(nodes)]
            begun, span = time.monotonic(), REST if is_last else FLIP
            clients, before, followed = load(nodes, heavy, span), moves(), None
            if flip == 0:
                time.sleep(1)
                busy.start()
            while time.monotonic() - begun < span:
                if followed is None and abs(heavy.metric("evenkeel_cluster_owned_backends") - wanted) <= 1 + 0.1 * wanted:
                    followed = time.monotonic() - begun
                time.sleep(0.25)
            lines = outcome(clients)
            spread = sorted(points for at, points in busy.seen if begun + SPILLS <= at <= begun + span)
            lost = sum(count for line in lines for status, count in line["statuses"].items() if status != "200")
            moved = moves() - before
            what = "rest" if is_last else f"flip {flip + 1} to {heavy.name}"
            print(f"{what}: {lost} lost of {sum(sum(line['statuses'].values()) for line in lines)}, {moved:.0f} moved, owned after "
                  f"{'never' if followed is None else f'{followed:.1f} s'}, busiest less idlest worker in a second: median {spread[len(spread) // 2]:.0f}, "
                  f"most {spread[-1]:.0f} points", flush=True)
            if lost:
                failed.append((what, "lost"))
            if followed is None or followed > FOLLOWS:
                failed.append((what, "owned"))
            if is_last and moved > 2 * REST / 60:
                failed.append((what, "moved"))
            if spread[len(spread) // 2] > APART:
                failed.append((what, "apart"))
        busy.over = True
        Process.end_all()
    raise SystemExit(f"out of bounds: {failed}" if failed else 0)


if __name__ == "__main__":
    try:
        main()
    finally:
        Process.end_all()
