#!/usr/bin/env python3
"""Addresses that are blocked at run time, on four workers with 10,000 routes: how long until they are out. See README.md beside this file."""

import argparse
import json
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time

from lab import Backend, Client, Process, free_port, program, wait_until, accepts

# From the request to the API.
MOST_MS = 100
# Of each kind, so that every worker has some.
MANY = 8


class Asked:
    """One request to the admin API."""

    def __init__(self, path, method, line, body=None):
        began = time.monotonic()
        data = b"" if body is None else json.dumps(body).encode()
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(20)
            one.connect(path)
            one.sendall(f"{method} {line} HTTP/1.1\r\nHost: bar\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
            answer = b""
            while piece := one.recv(65536):
                answer += piece
        self.ms = (time.monotonic() - began) * 1000
        head, _, text = answer.partition(b"\r\n\r\n")
        self.status = int(head.split(b" ")[1])
        self.body = json.loads(text)


def connect(port, own):
    one = socket.socket()
    one.bind((own, 0))
    one.settimeout(20)
    one.connect(("127.0.0.1", port))
    return one


def status(port, own):
    """0: closed or reset without an answer."""
    with connect(port, own) as one:
        try:
            one.sendall(b"GET / HTTP/1.1\r\nHost: h1.example\r\nConnection: close\r\n\r\n")
            answer = one.recv(65536)
        except OSError:
            return 0
    return int(answer.split(b" ")[1]) if answer else 0


class Watch(threading.Thread):
    """Waits for the end of one connection."""

    def __init__(self, one):
        super().__init__()
        self.one, self.ended = one, None
        self.start()

    def run(self):
        try:
            while self.one.recv(65536):
                pass
        except OSError:
            pass
        self.ended = time.monotonic()


class Load(threading.Thread):
    """A steady client that nobody blocks."""

    def __init__(self, port):
        super().__init__()
        self.port, self.count, self.bad, self.over = port, 0, 0, threading.Event()
        self.start()

    def run(self):
        client = Client(self.port)
        while not self.over.wait(0.005):
            self.count += 1
            self.bad += client.request()[0] != 200


def config(port, backend, slow, more=""):
    routes = "".join(f"    - {{match: {{host: h{number // 10}.example, path_prefix: /p{number % 10}}}, target: web}}\n" for number in range(10000))
    return (f"name: bar\nworkers: 4\nwatch: off\nlogging: warn\nlisteners:\n  front:\n    bind: 127.0.0.1:{port}\n    routes:\n{routes}"
            f"    - {{match: {{path_prefix: /slow}}, target: slow}}\n    - {{match: {{path_prefix: /}}, target: web}}\n"
            f"targets:\n  web: {{health_check: off{more}, backends: [{{host: 127.0.0.1, port: {backend}}}]}}\n"
            f"  slow: {{health_check: off, backends: [{{host: 127.0.0.1, port: {slow}}}]}}\n")


def start(folder, port):
    keel = Process(program("evenkeel"), "--config", f"{folder}/evenkeel.yaml")
    wait_until("evenkeel", lambda: accepts(port) or keel.process.poll() is not None)
    if keel.process.poll() is not None:
        raise SystemExit(keel.text())
    return keel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    failed = []

    def verdict(name, is_fine, text):
        print(f"{'ok  ' if is_fine else 'FAIL'}  {name}: {text}", flush=True)
        if not is_fine:
            failed.append(name)

    entries = "/api/v1/access/blocked/entries"
    with tempfile.TemporaryDirectory() as folder:
        backend, slow, port = Backend(1), Backend(2, "--latency", "600000"), free_port()
        admin = f"{folder}/admin.sock"

        def write(more=""):
            text = config(port, backend.port, slow.port, more)
            with open(f"{folder}/evenkeel.yaml", "w") as file:
                file.write(f"state_dir: {folder}/state\nadmin: {{socket: {admin}}}\n{text}")

        write()
        keel = start(folder, port)
        load = Load(port)
        answers, ends, refusals, let_in = [], [], [], 0
        for number in range(options.rounds):
            own = f"127.0.1.{number + 1}"
            watches = []
            for kind in range(2 * MANY):
                one = connect(port, own)
                if kind % 2:
                    one.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
                else:
                    one.sendall(b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
                    if not one.recv(65536).startswith(b"HTTP/1.1 101"):
                        raise SystemExit("no WebSocket")
                watches.append(Watch(one))
            time.sleep(0.05)
            if number % 2:
                write(f", timeouts: {{total: {60 + number}s}}")
                keel.process.send_signal(signal.SIGHUP)
                time.sleep(0.05)
            began = time.monotonic()
            asked = Asked(admin, "POST", entries, {"network": own})
            answered = time.monotonic()
            let_in += sum(status(port, own) == 200 for _ in range(MANY))
            refusals.append((answered - began) * 1000)
            for watch in watches:
                watch.join(20)
                if watch.ended is None:
                    raise SystemExit(f"{own}: not cut")
            if asked.status != 201:
                raise SystemExit(f"{asked.status} {asked.body}")
            answers.append(asked.ms)
            ends.append(max((watch.ended - began) * 1000 for watch in watches))
        for name, times in [("answer", answers), ("cut", ends), ("refused", refusals)]:
            verdict(f"blocked, {name}", max(times) <= MOST_MS,
                    f"median {statistics.median(times):.1f} ms, slowest {max(times):.1f} ms of {len(times)} (bar: {MOST_MS} ms)")
        verdict("blocked, nobody after", let_in == 0, f"{let_in} of {options.rounds * MANY} connections let in after the answer")
        Asked(admin, "POST", entries, {"network": "127.0.2.1", "for": 1})
        began = time.monotonic()
        wait_until("it is let in again", lambda: status(port, "127.0.2.1") == 200)
        took = time.monotonic() - began
        verdict("blocked, time", 0.8 <= took <= 1.3, f"`for: 1` was over after {took:.2f} s")
        load.over.set()
        load.join()
        verdict("blocked, others", load.bad == 0, f"{load.bad} of {load.count} requests of others failed")
        keel.process.kill()
        keel.process.wait()
        began = time.monotonic()
        keel = start(folder, port)
        seen = [status(port, f"127.0.1.{number + 1}") for number in range(options.rounds)]
        verdict("blocked, kill -9", all(one == 403 for one in seen),
                f"{sum(one == 403 for one in seen)} of {len(seen)} still out after a start of {time.monotonic() - began:.1f} s")
    Process.end_all()
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
