#!/usr/bin/env python3
"""The page with 1,000 backends at 1,000 requests a second, in a real Chromium, and a hundred pages at once. See README.md beside this
file. `--minutes 3` is shorter. Needs Debian's `chromium`; builds nothing."""

import socket
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
from browser import Browser  # noqa: E402
from lab import Client, Keel, Process, accepts, free_port, program, wait_until  # noqa: E402

BACKENDS, RATE = 1_000, 1_000
FAILED = []


def bar(text, is_met):
    print(f"{'ok  ' if is_met else 'MISS'} {text}", flush=True)
    if not is_met:
        FAILED.append(text)


def load(port, per_second, stop):
    """An open loop: each request has its time, whatever became of the one before."""
    client, start, number = Client(port), time.monotonic(), 0
    while not stop.is_set():
        client.request(path=f"/{number}")
        number += 1
        time.sleep(max(0.0, start + number / per_second - time.monotonic()))


class Page:
    """A page that reads the stream and looks at nothing."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.socket.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        self.bytes = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        while piece := self.socket.recv(1 << 18):
            self.bytes += len(piece)


def spent(keel, seconds):
    """Of a core: all threads, and workers alone, over so many seconds."""
    before = keel.cpu_by_thread()
    time.sleep(seconds)
    after = keel.cpu_by_thread()
    used = {who: (after[who] - before.get(who, 0)) / seconds for who in after}
    return sum(used.values()), sum(one for (name, _), one in used.items() if name[9:].isdigit())


def lag(port):
    """How many looks at the workers' loops found them late by more than 5 ms, and how many there were."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20).read().decode()
    lines = [line for line in text.splitlines() if line.startswith("evenkeel_worker_lag_seconds_bucket")]
    count = lambda edge: sum(int(line.rsplit(" ", 1)[1]) for line in lines if f'le="{edge}"' in line)
    return count("+Inf") - count("0.005"), count("+Inf")


def main():
    minutes = float(sys.argv[sys.argv.index("--minutes") + 1]) if "--minutes" in sys.argv else 10
    port, admin = free_port(), free_port()
    Process(program("fake_backend"), "--id", "b", "--protocol", "http", "--port", str(port), "--count", str(BACKENDS), "--spread-addresses")
    wait_until("the backends", lambda: accepts(port))
    hosts = [(f"127.0.{number >> 8}.{number & 255}", port) for number in range(1, BACKENDS + 1)]
    keel = Keel(hosts, top=f"workers: 2\nadmin: {{listener: 127.0.0.1:{admin}}}", health="health_check: {path: /health, interval: 5s}")
    stop = threading.Event()
    for _ in range(4):
        threading.Thread(target=load, args=(keel.port, RATE / 4, stop), daemon=True).start()
    time.sleep(8)
    alone, workers_alone = spent(keel, 20)
    page = Page(admin)
    time.sleep(3)
    with_one, _ = spent(keel, 20)
    bar(f"server CPU for one page: {100 * (with_one - alone):.2f} % of a core (at most 2 %), {page.bytes / 1e6:.1f} MB in 23 s", with_one - alone <= 0.02)
    pages = [page, *(Page(admin) for _ in range(99))]
    time.sleep(3)
    late = lag(admin)
    with_all, workers_with_all = spent(keel, 20)
    late = [after - before for after, before in zip(lag(admin), late)]
    print(f"     100 pages: {100 * (with_all - alone):.1f} % of a core more, workers {100 * workers_alone:.2f} % -> {100 * workers_with_all:.2f} %; "
          f"{late[0]} of {late[1]} looks at the workers found them late by more than 5 ms of wall time")
    bar(f"workers take no more beside 100 pages ({100 * (workers_with_all - workers_alone):+.2f} % of a core, at most 1 %)", workers_with_all - workers_alone <= 0.01)
    bar("all of 100 pages are told", all(one.bytes > 10_000 for one in pages))
    for one in pages:
        one.socket.shutdown(socket.SHUT_RDWR)
    browser = Browser()
    browser.open(f"http://127.0.0.1:{admin}/")
    wait_until("the page", lambda: browser.eval("document.querySelectorAll('.dot').length > 100"))
    paint = browser.eval("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    shown = browser.eval("performance.getEntriesByName('shown')[0]?.startTime ?? null")
    bar(f"first paint: {paint:.0f} ms (at most 1,000)" + (f", first numbers at {shown:.0f} ms" if shown else ""), paint <= 1_000)
    time.sleep(15)
    tasks = browser.tasks(lambda: time.sleep(20))
    bar(f"worst task: {tasks[-1]:.1f} ms of {len(tasks)} in 20 s (at most 50)", tasks[-1] <= 50)
    # It has all of its history after five minutes.
    time.sleep(min(330, minutes * 30))
    heaps = []
    for _ in range(5):
        heaps.append(browser.heap() / 1e6)
        time.sleep(minutes * 60 / 5)
    nodes = browser.eval("document.querySelectorAll('*').length")
    bar(f"memory of the page over {minutes:g} min: {' '.join(f'{one:.1f}' for one in heaps)} MB, {nodes} elements", heaps[-1] <= heaps[0] * 1.1 + 0.5)
    stop.set()
    browser.end()
    Process.end_all()
    sys.exit(1 if FAILED else 0)


main()
