"""A listener of thousands of routes, of which a reload changes one: how long that takes, and what it costs whoever serves meanwhile."""

import random
import statistics
import threading
import time

from lab import Client
from reload_lab import Fakes, Folder, Running

# From the signal to the event.
MOST = 1.0
# Of a worker's own CPU time, in one turn of its loop.
STALL_MS = 5
# Nothing is under way any more that long after the event.
REST = 0.3

# What the routes of a host match beside it. The last but one is what reloads change.
ROUTES = ["path: /", "path_prefix: /api", "path_prefix: /api/v1", "path_prefix: /api/v1/users, method: [GET, HEAD]",
          "path_prefix: /api, header: {X-Beta: yes}", "path_prefix: /static", "path: /favicon.ico", "path_prefix: /search, query: {v: 2}",
          "path_regex: '^/v[0-9]+/'", "path_prefix: /"]


def text(hosts, port, changed):
    lines = ["log_format: json", "logging: debug", "watch: off", "listeners:", "  front:", "    bind: 127.0.0.1:0", "    routes:"]
    for host in range(hosts):
        for number, route in enumerate(ROUTES):
            if number == 7 and host in changed:
                route = "path_prefix: /search, query: {v: 3}"
            lines.append(f"    - {{name: h{host}r{number}, match: {{host: h{host:04}.example, {route}}}, target: t{number % 4}}}")
    lines.append("targets:")
    lines += [f"  t{number}: {{health_check: off, backends: [{{host: 127.0.0.1, port: {port}}}]}}" for number in range(4)]
    return "\n".join(lines) + "\n"


class Asking(threading.Thread):
    """One request after the other, each for any host."""

    def __init__(self, port, hosts):
        super().__init__()
        self.port, self.hosts, self.took, self.bad, self.over = port, hosts, [], 0, threading.Event()
        self.start()

    def run(self):
        chance, client = random.Random(1), Client(self.port)
        while not self.over.is_set():
            began = time.monotonic()
            status = client.request(path=f"http://h{chance.randrange(self.hosts):04}.example/api/v1/x")[0]
            self.took.append(time.monotonic() - began)
            self.bad += status != 200
            time.sleep(0.002)

    def end(self):
        self.over.set()
        self.join()


def spent(before, after):
    """Milliseconds of CPU of the worker that has spent most."""
    return max(after[name] - before[name] for name in after) / 1e6


def run(options, verdict):
    folder = Folder()
    try:
        backend = Fakes(1)
        changed = set()
        began = time.monotonic()
        keel = Running(text(options.hosts, backend.ports[0], changed), folder)
        verdict("routes, start", None, f"{10 * options.hosts} routes of {options.hosts} hosts: listens after {time.monotonic() - began:.2f} s, resident "
                f"{keel.rss_kib() / 1024:.0f} MiB")
        time.sleep(1)
        since = len(keel.look())
        took, costs, odd = [], [], []
        for number in range(options.reloads):
            changed ^= {number * 37 % options.hosts}
            other = text(options.hosts, backend.ports[0], changed)
            begun = keel.workers()
            said, seconds = keel.reload(other)
            time.sleep(REST)
            costs.append(spent(begun, keel.workers()))
            took.append(seconds)
            if not said["message"].startswith("reloaded: "):
                odd.append(said["message"])
        turns = [event["fields"]["longest_turn_us"] / 1000 for event in keel.look()[since:] if "longest_turn_us" in event["fields"]]
        verdict("routes, load", max(took) <= MOST and not odd,
                f"from the signal to the event {statistics.median(took):.2f} s (slowest {max(took):.2f} s, bar: {MOST:.0f} s); refused or without effect "
                f"{len(odd)} {odd[:2]}; resident {keel.rss_kib() / 1024:.0f} MiB")
        verdict("routes, no stall", max(costs + turns) < STALL_MS,
                f"CPU of a worker's thread for a whole reload, which is at least its longest turn: median {statistics.median(costs):.2f} ms, most "
                f"{max(costs):.2f} ms (bar: {STALL_MS} ms); the longest turn as the process tells {max(turns or [0]):.2f} ms")
        asking = Asking(keel.port("front"), options.hosts)
        for number in range(options.reloads):
            changed ^= {number * 41 % options.hosts}
            keel.reload(text(options.hosts, backend.ports[0], changed))
        asking.end()
        times = sorted(asking.took)
        verdict("routes, requests", asking.bad == 0 and bool(times),
                f"{asking.bad} of {len(times)} requests failed beside {options.reloads} reloads; p99 {1000 * times[len(times) * 99 // 100]:.1f} ms, longest "
                f"{1000 * times[-1]:.1f} ms")
    finally:
        folder.end()
