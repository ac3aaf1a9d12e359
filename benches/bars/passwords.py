#!/usr/bin/env python3
"""1,000 wrong passwords a second from 4 addresses, hashed by bcrypt at cost 10, beside the traffic of known users: that is unharmed (at least 9
interleaved pairs of runs with and without; the median of the pairs' p99 ratios at most 1.10, or 1 ms more; no more failures, no more requests
over 100 ms), and whoever comes for the first time meanwhile is let in within a second. Builds nothing."""

import argparse
import base64
import multiprocessing
import select
import socket
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True

from lab import Backend, Client, Keel, Process  # noqa: E402
from reload_lab import Folder  # noqa: E402

# The hash of `pw` at cost 10, as the system's crypt makes it.
HASH = "$2y$10$abcdefghijklmnopqrstuuj7m4XYqbm74SxoBcXyw8to0CQ061DVG"
KNOWN, FLOOD, ADDRESSES, RATE = 4, 1000, 4, 200


def shows(name, password):
    return f"Authorization: Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}\r\n"


def flood(port, seconds, told):
    """Wrong passwords at a fixed rate, whatever is answered: each from the next address, on a connection of it that waits for nothing, or on
    a new one where all wait. Tells how many were sent and what was answered. A process of its own, so that it takes nothing of its client's time."""
    lines = [Line(port, f"127.0.0.{2 + number}") for number in range(ADDRESSES)]
    resting = {line.own: [line] for line in lines}
    waiting, counts, sent, begun = select.epoll(), {}, 0, time.monotonic()
    by_number = {}
    end = begun + seconds
    while (now := time.monotonic()) < end:
        while sent < (now - begun) * FLOOD:
            own = f"127.0.0.{2 + sent % ADDRESSES}"
            line = resting[own].pop() if resting[own] else Line(port, own)
            line.socket.sendall(f"GET / HTTP/1.1\r\nHost: bar\r\n{shows('nobody', f'{own} {sent}')}\r\n".encode())
            if line.socket.fileno() not in by_number:
                by_number[line.socket.fileno()] = line
                waiting.register(line.socket, select.EPOLLIN)
            sent += 1
        for number, _ in waiting.poll(0.002):
            line = by_number[number]
            status = line.answer()[0]
            counts[status] = counts.get(status, 0) + 1
            if status == 0:
                waiting.unregister(number)
                by_number.pop(number).close()
            else:
                resting[line.own].append(line)
    told.send((sent, counts, len(by_number)))


class Line(Client):
    """A connection from one address of this machine."""

    def __init__(self, port, own):
        self.socket, self.own, self.held = socket.create_connection(("127.0.0.1", port), 20, (own, 0)), own, b""


def traffic(port, seconds):
    """Known users at a fixed rate: the times of their requests in ms, and how many failed."""
    end, taken, failed = time.monotonic() + seconds, [], []

    def ask(number):
        client = Client(port)
        line = shows(f"user{number}", "pw")
        begun, count = time.monotonic(), 0
        while time.monotonic() < end:
            before = time.monotonic()
            status = client.request(more=line)[0]
            taken.append(1000 * (time.monotonic() - before))
            if status != 200:
                failed.append(status)
            count += 1
            time.sleep(max(0, begun + count * KNOWN / RATE - time.monotonic()))
        client.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(KNOWN)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken.sort()
    return {"p99": taken[int(len(taken) * 0.99)], "failed": len(failed), "slow": sum(one > 100 for one in taken)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=15)
    options = parser.parse_args()
    folder = Folder()
    try:
        users = folder.file("users.htpasswd")
        names = [f"user{number}" for number in range(KNOWN)] + [f"new{number}" for number in range(options.pairs)]
        with open(users, "w") as file:
            file.writelines(f"{name}:{HASH}\n" for name in names)
        backend = Backend(1)
        keel = Keel([backend.port], more="    auth: staff\n", top=f"auth: {{staff: {{basic: {{users_file: {users}}}}}}}")
        for number in range(KNOWN):
            client = Client(keel.port)
            assert client.request(more=shows(f"user{number}", "pw"))[0] == 200
            client.close()
        pairs, first, counts, sent, most = [], [], {}, 0, 0
        for number in range(options.pairs):
            pair = {}
            for kind in ("with", "without") if number % 2 else ("without", "with"):
                others = []
                if kind == "with":
                    end, told = multiprocessing.Pipe(duplex=False)
                    others.append(multiprocessing.Process(target=flood, args=(keel.port, options.seconds, told)))

                    def login(name=f"new{number}"):
                        time.sleep(options.seconds / 2)
                        client, before = Client(keel.port), time.monotonic()
                        status = client.request(more=shows(name, "pw"))[0]
                        first.append((time.monotonic() - before, status))
                        client.close()

                    others.append(threading.Thread(target=login))
                for other in others:
                    other.start()
                pair[kind] = traffic(keel.port, options.seconds)
                for other in others:
                    other.join()
                if kind == "with":
                    one, answered, open_at_once = end.recv()
                    sent, most = sent + one, max(most, open_at_once)
                    for status, count in answered.items():
                        counts[status] = counts.get(status, 0) + count
            pairs.append(pair)
            print(f"pair {number + 1}: {pair}, first login {first[-1][0]:.3f} s ({first[-1][1]})", flush=True)
        ratio = statistics.median(pair["with"]["p99"] / pair["without"]["p99"] for pair in pairs)
        more = statistics.median(pair["with"]["p99"] - pair["without"]["p99"] for pair in pairs)
        total = {kind: {what: sum(pair[kind][what] for pair in pairs) for what in ("failed", "slow")} for kind in ("with", "without")}
        good = (ratio <= 1.10 or more <= 1) and all(total["with"][what] <= total["without"][what] for what in ("failed", "slow"))
        print(f"{'ok  ' if good else 'FAIL'}  unharmed: median of p99 ratios {ratio:.3f}, median difference {more:+.2f} ms, {total}")
        worst = max(taken for taken, _ in first)
        logins = worst <= 1 and all(status == 200 for _, status in first)
        print(f"{'ok  ' if logins else 'FAIL'}  first logins: {len(first)}, the slowest in {worst:.3f} s (bar: 1 s)")
        rate = sent / (options.pairs * options.seconds)
        flooded = rate >= 0.9 * FLOOD and set(counts) <= {401, 429} and sum(counts.values()) >= 0.99 * sent
        print(f"{'ok  ' if flooded else 'FAIL'}  the flood: {rate:.0f} a second from {ADDRESSES} addresses on at most {most} connections, answered {counts}")
    finally:
        Process.end_all()
        folder.end()
    raise SystemExit(0 if good and logins and flooded else 1)


if __name__ == "__main__":
    main()
