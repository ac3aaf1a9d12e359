#!/usr/bin/env python3
"""The bars that take too long, or need other programs, to be tests. See README.md beside this file."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import hostile  # noqa: E402
from lab import Backend, Client, Keel, Process, accepts, free_port, together, wait_until  # noqa: E402

FAILED = []


def verdict(name, good, text):
    print(f"{'ok  ' if good else 'FAIL'}  {name}: {text}", flush=True)
    if not good:
        FAILED.append(name)


def bombardier():
    program = shutil.which("bombardier") or os.path.expanduser("~/go/bin/bombardier")
    if not os.path.exists(program):
        return verdict("bombardier", False, "not installed: run benches/bars/install-bombardier")
    keel = Keel([Backend(1).port, Backend(2).port])
    for name, more in [("Connection: close", ["-H", "Connection: close"]), ("keep-alive", [])]:
        command = [program, "-c", "125", "-n", "200000", "--fasthttp", "--print", "r", *more, f"http://127.0.0.1:{keel.port}"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rate = re.search(r"Reqs/sec\s+(\S+)", printed).group(1)
        good = "2xx - 200000," in printed and "others - 0" in printed
        codes = " ".join(re.findall(r"\dxx - \d+|others - \d+", printed))
        verdict(f"bombardier, {name}", good, f"{codes}; {rate} requests/s")


def large():
    keel = Keel([Backend(1).port])
    url, size = f"http://127.0.0.1:{keel.port}", 10 * 1024**3
    Client(keel.port).request()
    before = keel.rss_kib()
    most = [before]
    stop = threading.Event()

    def watch():
        while not stop.wait(0.1):
            most[0] = max(most[0], keel.rss_kib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    down = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", f"{url}/bytes/{size}"],
                          capture_output=True, text=True).stdout
    up = subprocess.run(f"head -c {size} /dev/zero | curl -s -X POST -T - -H Expect: {url}/count",
                        shell=True, capture_output=True, text=True).stdout
    stop.set()
    watcher.join()
    growth = (most[0] - before) / 1024
    good = down == f"200 {size}" and up == str(size) and growth < 20
    verdict("large", good, f"answer {down}, upload {up}, memory {before} KiB, growth {growth:.1f} MiB")


def idle():
    keel = Keel([Backend(1).port])
    count = 5000
    warm = [Client(keel.port) for _ in range(64)]
    for client in warm:
        client.request()
    before = keel.rss_kib()
    clients = [Client(keel.port) for _ in range(count)]
    for client in clients:
        client.request()
    each = (keel.rss_kib() - before) / count
    verdict("idle", each < 8, f"{count} connections after a request each: {each:.2f} KiB of resident memory per connection")


def ulimit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    keel = Keel([Backend(1).port], descriptors=256)
    clients = [Client(keel.port) for _ in range(1000)]
    served = refused = closed = 0
    for client in clients:
        try:
            status, _, body = client.request()
        except OSError:
            status = 0
        if status == 200:
            served += 1
        elif status == 503 and b"too_many_connections" in body:
            refused += 1
        else:
            closed += 1
    before = keel.cpu_seconds()
    time.sleep(3)
    cpu = (keel.cpu_seconds() - before) / 3
    for client in clients:
        client.close()
    wait_until("recovery", lambda: Client(keel.port).request()[0] == 200)
    lines = keel.text().count("accept failed")
    verdict("ulimit", served > 0 and closed == 0 and cpu < 0.05 and lines <= 1,
            f"256 descriptors, 1,000 connections: {served} served, {refused} got 503, {closed} closed; "
            f"{100 * cpu:.1f} % of a core while full; {lines} lines of log; recovers")


def load(port, seconds, threads=16, post_every=0, health=None):
    """Keep-alive load; gives (requests, statuses other than 200 by count)."""
    end = time.monotonic() + seconds

    def work(number):
        done, bad, client = 0, [], None
        while time.monotonic() < end:
            try:
                client = client or Client(port)
                method = ("POST", "/echo", b"x" * 64) if post_every and done % post_every == 0 else ("GET", "/", b"")
                status, _, _ = client.request(*method)
            except OSError:
                status = 0
            done += 1
            if status != 200:
                bad.append((time.monotonic(), status))
                if client:
                    client.close()
                client = None
        return done, bad

    results = together(threads, work)
    return sum(done for done, _ in results), sorted(sum((bad for _, bad in results), []))


def kill():
    first, second = Backend(1, "--latency", "5"), Backend(2, "--latency", "5")
    keel = Keel([first.port, second.port], health="health_check: {interval: 500ms}")
    result = []
    loader = threading.Thread(target=lambda: result.append(load(keel.port, 6)))
    loader.start()
    time.sleep(2)
    killed = time.monotonic()
    first.end(signal.SIGKILL)
    time.sleep(2)
    port = first.port
    Backend(1, port=port)
    loader.join()
    requests, bad = result[0]
    late = [at - killed for at, _ in bad if at - killed > 0.5]
    client = Client(keel.port)
    wait_until("recovery", lambda: client.request()[2] == b"Hello from fake-1")
    verdict("kill", len(bad) <= 16 and not late,
            f"{requests} requests of 16 clients, {len(bad)} failed (at most 16 were in flight), none later than 0.5 s; it is back in use")


def refusing():
    keel = Keel([Backend(1).port, free_port()])
    requests, bad = load(keel.port, 5)
    verdict("refusing", not bad, f"{requests} requests, {len(bad)} failed")


def sick():
    for name in ["hang", "status 500"]:
        good, other = Backend(1), Backend(2)
        keel = Keel([good.port, other.port], health="health_check: {interval: 1s, timeout: 500ms, fall: 3, path: /health}",
                    more="    timeouts: {first_byte: 1s}\n")
        wait_until("both", lambda: keel.text().count("is up") == 2)
        began = time.monotonic()
        query = "fault=hang" if name == "hang" else "status=500"
        Client(other.port).request("POST", f"/_fake?{query}")
        wait_until("out", lambda: "is down" in keel.text())
        took = time.monotonic() - began
        Client(other.port).request("POST", "/_fake?reset=1")
        wait_until("back", lambda: keel.text().count("is up") == 3)
        verdict(f"sick, {name}", took <= 3.1, f"out after {took:.2f} s (fall × interval: 3 s), and back in")


def idle_close():
    ports = [Backend(number, "--idle-close", "50").port for number in (1, 2)]
    keel = Keel(ports)
    end = time.monotonic() + 60

    def work(number):
        """Pauses around 50 ms, so that requests keep meeting connections that are just being closed."""
        client, done, bad = Client(keel.port), 0, []
        while time.monotonic() < end:
            method = ("POST", "/echo", b"x" * 64) if done % 2 else ("GET", "/", b"")
            try:
                status = client.request(*method)[0]
            except OSError:
                status = 0
            done += 1
            if status != 200:
                bad.append(status)
                client = Client(keel.port)
            time.sleep((done * 7 + number * 3) % 70 / 1000)
        return done, bad

    results = together(16, work)
    requests, bad = sum(done for done, _ in results), sum((bad for _, bad in results), [])
    verdict("idle-close", not bad, f"{requests} requests in 60 s, {len(bad)} failed {bad[:5]}")


def shutdown():
    keel = Keel([Backend(1, "--latency", "3").port])
    lost, served = [], [0]

    def loop(number):
        try:
            client = Client(keel.port)
        except OSError:
            return
        while True:
            try:
                status, head, _ = client.request()
            except (ConnectionResetError, BrokenPipeError) as error:
                return lost.append(repr(error))
            if status == 0:
                # An end without a byte of an answer, at a moment when we had sent a request: was the end here first?
                return lost.append(f"end after {head!r}") if head else None
            served[0] += 1
            if status != 200:
                return lost.append(status)
            if b"connection: close" in head.lower():
                return None

    def opener():
        while True:
            try:
                client = Client(keel.port)
            except OSError:
                return
            try:
                status = client.request()[0]
            except OSError as error:
                return lost.append(f"new connection: {error!r}")
            if status != 200:
                lost.append(f"new connection: {status}")
            served[0] += 1
            client.close()

    threads = [threading.Thread(target=loop, args=(number,)) for number in range(64)] + [threading.Thread(target=opener)]
    for thread in threads:
        thread.start()
    time.sleep(2)
    code = keel.end()
    for thread in threads:
        thread.join()
    last = keel.text().strip().splitlines()[-1]
    verdict("shutdown under load", not lost and code == 0, f"{served[0]} answers, {len(lost)} lost {lost[:3]}; exit {code}; {last}")

    for name, idle_clients, most in [("no connection", 0, 0.1), ("idle connections", 8, 1.2)]:
        keel = Keel([Backend(1).port])
        clients = [Client(keel.port) for _ in range(idle_clients)]
        for client in clients:
            client.request()
        time.sleep(0.2)
        began = time.monotonic()
        code = keel.end()
        took = time.monotonic() - began
        verdict(f"shutdown with {name}", took < most and code == 0, f"{1000 * took:.0f} ms (bar: {1000 * most:.0f} ms), exit {code}")


BARS = {"bombardier": bombardier, "large": large, "idle": idle, "ulimit": ulimit, "kill": kill, "refusing": refusing,
        "sick": sick, "idle-close": idle_close, "shutdown": shutdown, **hostile.bars(verdict)}

if __name__ == "__main__":
    wanted = sys.argv[1:] or list(BARS)
    unknown = [name for name in wanted if name not in BARS]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are: {', '.join(BARS)}")
    for name in wanted:
        try:
            BARS[name]()
        finally:
            Process.end_all()
    raise SystemExit(1 if FAILED else 0)
