#!/usr/bin/env python3
"""Backends added and removed by hand under load: what clients notice. See README.md beside this file. Builds nothing."""

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True

import lab  # noqa: E402
from lab import Process  # noqa: E402
from reload_lab import Fakes, Folder, Running  # noqa: E402

FAILED = []


def verdict(name, good, text):
    print(f"{'ok  ' if good else 'FAIL'}  {name}: {text}", flush=True)
    if not good:
        FAILED.append(name)


def config(ports, folder):
    def target(name, ports):
        lines = "".join(f"      - {{name: b{port}, host: 127.0.0.1, port: {port}}}\n" for port in ports)
        return (f"  {name}:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: {{path: /health, interval: 300ms}}\n"
                f"    backends:\n{lines}")
    return (f"watch: off\nlogging: info\nlog_format: json\nstate_dir: {folder.file('state')}\nadmin: {{socket: {folder.file('admin.sock')}}}\n"
            f"targets:\n{target('web', ports[:2])}{target('other', ports[2:4])}")


class Admin:
    """The admin API over its socket."""

    def __init__(self, path):
        self.path = path

    def ask(self, method, path, body=None):
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(30)
        stream.connect(self.path)
        data = json.dumps(body).encode() if body is not None else b""
        kind = "Content-Type: application/json\r\n" if body is not None else ""
        stream.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answer = b""
        while piece := stream.recv(65536):
            answer += piece
        stream.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)


class Load(threading.Thread):
    """Requests on a kept connection, one after the other at a rate, each timed."""

    def __init__(self, port, rate):
        super().__init__()
        self.port, self.rate, self.over = port, rate, threading.Event()
        self.failed, self.times, self.by = 0, [], {}
        self.start()

    def run(self):
        client, due = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10), time.monotonic()
        while not self.over.is_set():
            due += 1 / self.rate
            time.sleep(max(0, due - time.monotonic()))
            began = time.monotonic()
            try:
                client.request("GET", "/")
                answer = client.getresponse()
                text = answer.read().decode()
                self.failed += answer.status != 200
                self.by.setdefault(text.rsplit("-", 1)[-1], began)
            except OSError:
                self.failed += 1
                client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            self.times.append(time.monotonic() - began)

    def end(self):
        self.over.set()
        self.join()
        return self


def upload(port, seconds, results):
    """A body that goes up for so long."""
    try:
        stream = socket.create_connection(("127.0.0.1", port), 10)
        stream.settimeout(30)
        pieces = int(seconds * 20)
        stream.sendall(f"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {pieces * 4096}\r\n\r\n".encode())
        for _ in range(pieces):
            stream.sendall(b"x" * 4096)
            time.sleep(1 / 20)
        answer = b""
        while piece := stream.recv(65536):
            answer += piece
        results.append(answer.startswith(b"HTTP/1.1 200"))
    except OSError as error:
        results.append(str(error))


def start():
    folder, fakes = Folder(), Fakes(5)
    os.mkdir(folder.file("state"), 0o700)
    keel = Running(config(fakes.ports, folder), folder)
    return folder, fakes, keel, Admin(folder.file("admin.sock"))


def added(options):
    folder, fakes, keel, admin = start()
    url = f"http://127.0.0.1:{fakes.ports[4]}"
    loads = [Load(keel.port("web"), 100) for _ in range(3)]
    time.sleep(1)
    late, duplicates, rounds, orders = [], [], 0, []
    for rounds in range(1, options.rounds + 1):
        for load in loads:
            load.by.clear()
        status, _ = admin.ask("POST", "/api/v1/targets/web/backends", {"url": url, "name": "new"})
        duplicates.append(admin.ask("POST", "/api/v1/targets/web/backends", {"url": url})[0])
        began = time.monotonic()
        while time.monotonic() - began < 10:
            facts = admin.ask("GET", "/api/v1/targets/web/backends/new")[1]
            if facts["state"] == "up" and any("5" in load.by for load in loads):
                break
            time.sleep(0.01)
        probed = (facts["last_probe"] or {}).get("good", (facts["last_probe"] or {}).get("passed", True))
        orders.append(status == 201 and facts["state"] == "up" and probed is not False)
        late.append(time.monotonic() - began)
        assert admin.ask("DELETE", "/api/v1/targets/web/backends/new")[0] == 200
        time.sleep(0.2)
    failed, asked = sum(load.end().failed for load in loads), sum(len(load.times) for load in loads)
    verdict("added", failed == 0 and all(orders), f"{rounds} times added and removed, {failed} of {asked} requests failed; first request "
            f"{1000 * statistics.median(late):.0f} ms later at the median, never before the first good probe (a test holds that: a backend "
            f"whose probe fails gets none)")
    verdict("duplicate", set(duplicates) == {409}, f"{sorted(set(duplicates))}")
    keel.end()
    folder.end()


def unready(_):
    """A backend whose probes fail is added: it gets no request."""
    folder, _, keel, admin = start()
    sick = Fakes(1, "--unhealthy")
    load = Load(keel.port("web"), 200)
    admin.ask("POST", "/api/v1/targets/web/backends", {"url": f"http://127.0.0.1:{sick.ports[0]}", "name": "sick"})
    time.sleep(3)
    load.end()
    got = Fakes.requests(sick.ports[0])
    verdict("added while sick", got == 0 and load.failed == 0, f"{got} of {len(load.times)} requests went to it, {load.failed} failed")
    keel.end()
    folder.end()


def removed(options):
    pairs, finished = [], []

    def run(is_removed):
        folder, fakes, keel, admin = start()
        results = []
        uploads = [threading.Thread(target=upload, args=(keel.port("web"), options.seconds * 0.6, results)) for _ in range(50)]
        for one in uploads:
            one.start()
        load = Load(keel.port("other"), 200)
        time.sleep(options.seconds * 0.2)
        if is_removed:
            status, answer = admin.ask("DELETE", f"/api/v1/targets/web/backends/b{fakes.ports[0]}")
            assert status == 200, answer
        time.sleep(options.seconds * 0.8)
        for one in uploads:
            one.join()
        load.end()
        if is_removed:
            finished.append((sum(one is True for one in results), [one for one in results if one is not True][:3]))
        keel.end()
        folder.end()
        Process.end_all()
        times = sorted(load.times)
        return {"p99": times[int(len(times) * 0.99)] * 1000, "slow": sum(one > 0.1 for one in times), "failed": load.failed}

    for number in range(options.pairs):
        seen = {which: run(which) for which in ([True, False] if number % 2 else [False, True])}
        pairs.append((seen[True], seen[False]))
        print(f"      pair {number + 1} p99 in ms with / without: {seen[True]['p99']:.2f} / {seen[False]['p99']:.2f}", flush=True)
    verdict("removed, uploads", all(done == 50 for done, _ in finished), f"of 50 in flight, finished in each run: {[done for done, _ in finished]} "
            f"{[odd for _, odd in finished if odd]}")
    ratio = statistics.median(one["p99"] / other["p99"] for one, other in pairs)
    more = statistics.median(one["p99"] - other["p99"] for one, other in pairs)
    slow, lost = ([sum(pair[which][what] for pair in pairs) for which in (0, 1)] for what in ("slow", "failed"))
    verdict("removed, unharmed", (ratio <= 1.10 or more <= 1) and slow[0] <= slow[1] and lost[0] <= lost[1],
            f"{len(pairs)} pairs, median of p99 ratios {ratio:.3f}, median difference {more:+.2f} ms; with / without: failures "
            f"{lost[0]} / {lost[1]}, over 100 ms {slow[0]} / {slow[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="of adding and removing (20)")
    parser.add_argument("--pairs", type=int, default=9, help="of runs with and without a removal (9)")
    parser.add_argument("--seconds", type=float, default=15, help="of each run (15)")
    options = parser.parse_args()
    try:
        added(options)
        unready(options)
        removed(options)
    finally:
        Process.end_all()
    raise SystemExit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
