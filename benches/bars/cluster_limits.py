#!/usr/bin/env python3
"""A limit for all over three nodes of a cluster: 1,000 requests a second, of which eight tenths are asked of one node, and that is another one every 20 s. What passes in
each 10 s: within 5 % where nothing moved, within 15 % where it did. See README.md beside this file. Needs `etcd` (Debian's etcd-server); builds nothing."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True
from lab import Backend, Process, accepts, free_port, program, wait_until  # noqa: E402

RATE, ASKED, PHASES, WINDOW = 1000, 1500, 3, 10


class Node(Process):
    def __init__(self, name, etcd, backend, folder):
        self.port, self.metrics = free_port(), free_port()
        path = os.path.join(folder, f"{name}.yaml")
        with open(path, "w") as config:
            config.write(f"""name: {name}
state_dir: {folder}/{name}
cluster: {{name: bar, node: {name}, lease: 5s, etcd: {{endpoints: ['http://127.0.0.1:{etcd}']}}}}
metrics: {{listener: '127.0.0.1:${{METRICS}}'}}
rate_limits: {{all: {{rate: {RATE}/s, burst: 100, by: global}}}}
targets: {{web: {{protocol: http, listener: '127.0.0.1:${{PORT}}', health_check: off, rate_limit: all, backends: [{{host: 127.0.0.1, port: {backend}}}]}}}}
""")
        os.environ["PORT"], os.environ["METRICS"] = str(self.port), str(self.metrics)
        super().__init__(program("evenkeel"), "--config", path)
        wait_until(name, lambda: accepts(self.port) and accepts(self.metrics) or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise SystemExit(self.text())

    def scrape(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=5) as answer:
            return answer.read().decode()

    def passed(self):
        return sum(float(value) for value in re.findall(r'^evenkeel_requests_total\{[^}]*class="2xx"[^}]*\} (\S+)', self.scrape(), re.M))


def etcd(folder):
    if not shutil.which("etcd"):
        raise SystemExit("needs `etcd`: apt install etcd-server")
    port, peer = free_port(), free_port()
    Process("etcd", "--data-dir", f"{folder}/etcd", "--listen-client-urls", f"http://127.0.0.1:{port}", "--advertise-client-urls",
            f"http://127.0.0.1:{port}", "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls",
            f"http://127.0.0.1:{peer}", "--initial-cluster", f"default=http://127.0.0.1:{peer}")
    wait_until("etcd", lambda: accepts(port))
    return port


def main():
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        backend, store = Backend(1), etcd(folder)
        nodes = [Node(name, store, backend.port, folder) for name in "abc"]
        wait_until("three nodes", lambda: all("evenkeel_cluster_nodes 3" in node.scrape() for node in nodes))
        for phase in range(PHASES):
            shares = [0.8 if number == phase % 3 else 0.1 for number in range(3)]
            clients = [subprocess.Popen([program("rig"), "clients", f"127.0.0.1:{node.port}", "--rate", str(int(ASKED * share)), "--seconds",
                                         str(2 * WINDOW)], stdout=subprocess.DEVNULL) for node, share in zip(nodes, shares)]
            for half in range(2):
                before, begun = sum(node.passed() for node in nodes), time.monotonic()
                time.sleep(WINDOW - 0.2)
                rate = (sum(node.passed() for node in nodes) - before) / (time.monotonic() - begun)
                off, most = rate / RATE - 1, 0.15 if half == 0 else 0.05
                print(f"{'moved ' if half == 0 else 'steady'} {shares}: {rate:7.1f}/s, {off:+.1%} (within {most:.0%})", flush=True)
                if abs(off) > most:
                    failed.append((phase, half))
            for client in clients:
                client.wait()
        Process.end_all()
    raise SystemExit(f"out of bounds: {failed}" if failed else 0)


if __name__ == "__main__":
    try:
        main()
    finally:
        Process.end_all()
