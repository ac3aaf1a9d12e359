#!/usr/bin/env python3
"""Copies of requests for a shadow that is dead, slow or closing: what clients notice, what it costs in memory, and whether the share of the
requests that is copied stays what it is. See README.md beside this file. Builds nothing."""

import argparse
import math
import random
import socket
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True

from added import Admin  # noqa: E402
from lab import Client, Process, together, wait_until  # noqa: E402
from reload_lab import Fakes, Folder, Memory, Running  # noqa: E402

# Kept connections, and requests in a second on each.
CONNECTIONS, RATE = 8, 40
# Bytes of a body that is copied, by its length and in chunks, whose lines count.
LONGEST, LONGEST_CHUNKED = 64 * 1024, 64 * 1024 - 64
# Seconds at the beginning that are not timed: connections are opened.
WARM = 1
# Seconds after which a copy has ended at the latest, and some more.
COPY = 40
# Of a share, in standard deviations: by chance one in 16,000 is further off.
SIGMAS = 4
# A slow one answers after so many milliseconds.
SLOW = 10_000
# How a shadow may be sick, and all that is looked at.
SICK = ["dead", "slow", "closing"]
BARS = ["share", "memory", *SICK]
FAILED = []


def verdict(name, good, text):
    print(f"{'ok  ' if good else 'FAIL'}  {name}: {text}", flush=True)
    if not good:
        FAILED.append(name)


class Shadow:
    """Who gets the copies."""

    def __init__(self, kind):
        more = {"well": (), "slow": ("--latency", str(SLOW)), "closing": ("--fault", "close-unanswered")}
        self.kind = kind
        self.fake = None if kind == "dead" else Fakes(1, "--id", kind, *more[kind])
        # Bound and not listening: nobody else gets the port, and whoever connects is refused.
        self.held = socket.socket()
        self.held.bind(("127.0.0.1", 0))
        self.port = self.fake.ports[0] if self.fake else self.held.getsockname()[1]

    def requests(self):
        """That have come to it."""
        return Fakes.requests(self.port)


class Stand:
    """evenkeel with one route, whose requests are copied or not. No breaker and no outlier detection spares the shadow a copy."""

    def __init__(self, web, shadow, mirror):
        self.folder = Folder()
        self.keel = Running(f"""log_format: json
watch: off
access_log: off
admin: {{socket: {self.folder.file("admin.sock")}}}
listeners:
  front:
    bind: 127.0.0.1:0
    routes:
      - {{name: all, target: web, mirror: {mirror}}}
targets:
  web: {{health_check: off, backends: [{{host: 127.0.0.1, port: {web}}}]}}
  shadow: {{health_check: off, outlier: off, breaker: off, backends: [{{host: 127.0.0.1, port: {shadow.port}}}]}}
""", self.folder)
        self.admin = Admin(self.folder.file("admin.sock"))
        self.port = self.keel.port("front")

    def copies(self):
        """How many were chosen, how many answered, and why the others were not."""
        copies = self.admin.ask("GET", "/api/v1/targets/shadow")[1].get("copies") or {"chosen": 0, "answered": 0, "by_cause": {}}
        return copies["chosen"], copies["answered"], copies["by_cause"]

    def rest(self):
        """Waits until no copy is under way."""
        def is_over():
            chosen, answered, causes = self.copies()
            return chosen == answered + sum(causes.values())
        wait_until("the end of the copies", is_over, COPY)
        return self.copies()

    def end(self):
        code = self.keel.end()
        self.folder.end()
        if code != 0:
            raise SystemExit(f"evenkeel ended with {code}: {self.keel.text()[-2000:]}")


class Asker:
    """One kept connection's requests, always the same for a seed: two of three are GET, the others POST with up to 64 KiB, some in chunks."""

    BODY = bytes(64 * 1024)

    def __init__(self, port, seed):
        self.port, self.chance, self.client = port, random.Random(seed), None
        self.asked, self.failed = 0, []

    def ask(self):
        """Sends one, and gives when and when its answer was there."""
        chance, began = self.chance, None
        kind = chance.random()
        size = min(int(chance.expovariate(1 / 16384)), LONGEST) if kind < 0.9 else LONGEST
        self.asked += 1
        try:
            self.client = self.client or Client(self.port)
            began = time.monotonic()
            if kind < 2 / 3:
                status, _, text = self.client.request()
            elif kind < 0.75:
                body = self.BODY[:min(size, LONGEST_CHUNKED) or 1]
                head = b"POST / HTTP/1.1\r\nHost: bar\r\nTransfer-Encoding: chunked\r\n\r\n"
                self.client.socket.sendall(head + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
                status, _, text = self.client.answer()
            else:
                status, _, text = self.client.request("POST", "/", self.BODY[:size])
            if status != 200 or not text.startswith(b"Hello from web"):
                self.lose(f"{status} {text[:60]}")
        except OSError as error:
            self.lose(repr(error))
        return began or time.monotonic(), time.monotonic()

    def lose(self, why):
        self.failed.append(why)
        if self.client:
            self.client.close()
        self.client = None


class Load(threading.Thread):
    """Requests on one connection, one after the other at a rate. What is late for the answer before it is timed from when it was due."""

    def __init__(self, port, seed, seconds):
        super().__init__()
        self.asker, self.seconds, self.times = Asker(port, seed), seconds, []
        self.start()

    def run(self):
        # Not all in the same moment.
        begun = time.monotonic() + self.asker.chance.random() / RATE
        free = begun
        for number in range(int((WARM + self.seconds) * RATE)):
            due = begun + number / RATE
            is_late = free > due
            time.sleep(max(0, due - time.monotonic()))
            began, free = self.asker.ask()
            if number >= WARM * RATE:
                self.times.append(free - (due if is_late else began))


def load(port, seconds):
    """What clients saw of a run."""
    loads = [Load(port, seed, seconds) for seed in range(CONNECTIONS)]
    for one in loads:
        one.join()
    times = sorted(time for one in loads for time in one.times)
    failed = [why for one in loads for why in one.asker.failed]
    return {"asked": sum(one.asker.asked for one in loads), "failed": len(failed), "why": failed[:3], "slow": sum(time > 0.1 for time in times),
            "p50": times[len(times) // 2] * 1000, "p99": times[int(len(times) * 0.99)] * 1000}


def unharmed(web, shadow, options):
    pairs, chosen, asked, answered, causes = [], 0, 0, 0, {}
    for number in range(options.pairs):
        seen = {}
        # Which of the two comes first changes from pair to pair.
        for is_copied in ([True, False] if number % 2 else [False, True]):
            stand = Stand(web, shadow, "{target: shadow}" if is_copied else "off")
            seen[is_copied] = load(stand.port, options.seconds)
            if is_copied:
                of_run, were_answered, ended = stand.copies()
                chosen, asked, answered = chosen + of_run, asked + seen[True]["asked"], answered + were_answered
                causes = {cause: causes.get(cause, 0) + ended.get(cause, 0) for cause in {**causes, **ended}}
            stand.end()
        pairs.append((seen[True], seen[False]))
        with_it, without = pairs[-1]
        print(f"      {shadow.kind}, pair {number + 1} with / without: p99 {with_it['p99']:.2f} / {without['p99']:.2f} ms, median "
              f"{with_it['p50']:.2f} / {without['p50']:.2f} ms, over 100 ms {with_it['slow']} / {without['slow']}, failures "
              f"{with_it['failed']} / {without['failed']} {with_it['why'] + without['why'] or ''}", flush=True)
    ratio = statistics.median(one["p99"] / other["p99"] for one, other in pairs)
    more = statistics.median(one["p99"] - other["p99"] for one, other in pairs)
    slow, lost = ([sum(pair[which][what] for pair in pairs) for which in (0, 1)] for what in ("slow", "failed"))
    # A run in which nothing was copied, or the shadow was not what it is to be, shows nothing.
    is_sick = chosen == asked and (answered == 0 if shadow.kind != "slow" else causes.get("mirror_full", 0) > 0)
    verdict(f"{shadow.kind}, unharmed", (ratio <= 1.10 or more <= 1) and slow[0] <= slow[1] and lost[0] <= lost[1] and is_sick,
            f"{len(pairs)} pairs, median of p99 ratios {ratio:.3f}, median difference {more:+.2f} ms; with / without: failures "
            f"{lost[0]} / {lost[1]}, over 100 ms {slow[0]} / {slow[1]}; of {asked} requests {chosen} were to be copied, {answered} copies "
            f"were answered, others not: {causes}")


def shares(web, shadows, options):
    """A tenth is copied, whatever becomes of it."""
    stands = {kind: Stand(web, shadow, "{target: shadow, share: 10%}") for kind, shadow in shadows.items()}
    before = {kind: shadow.requests() for kind, shadow in shadows.items() if kind != "dead"}
    count = int(options.seconds * 100)
    asked, lost = {}, {}

    def ask(port, seed):
        one = Asker(port, seed)
        for _ in range(count):
            one.ask()
        return one

    for kind, stand in stands.items():
        ended = together(CONNECTIONS, lambda number: ask(stand.port, 100 + number))
        asked[kind], lost[kind] = sum(one.asked for one in ended), sum(len(one.failed) for one in ended)
    for kind, stand in stands.items():
        chosen, answered, causes = stand.rest()
        got = shadows[kind].requests() - before[kind] if kind != "dead" else 0
        # Those that the shadow had no part in.
        dropped = {cause: number for cause, number in causes.items() if cause in ("mirror_full", "mirror_too_long", "mirror_unfinished")}
        tried = answered + sum(number for cause, number in causes.items() if cause not in dropped)
        share, bound = 100 * chosen / asked[kind], SIGMAS * 100 * math.sqrt(0.1 * 0.9 / asked[kind])
        if kind == "well":
            share = 100 * got / asked[kind]
            is_kept, arrived = got == answered, f"{got} have arrived"
        elif kind == "closing":
            # One on a kept connection that ended may be sent again on a new one; none is kept here.
            is_kept, arrived = got == tried and not answered, f"{got} have arrived"
        elif kind == "slow":
            # Those that waited for 30 s are let go of; that is found out when their turn comes.
            is_kept, arrived = answered <= got <= tried, f"{got} have arrived"
        else:
            is_kept, arrived = tried == causes.get("connect_failed", 0), "none can arrive"
        is_kept = is_kept and chosen == tried + sum(dropped.values()) and abs(share - 10) <= bound
        verdict(f"{kind}, share", is_kept and not lost[kind], f"of {asked[kind]} requests {chosen} were to be copied: {tried} tried and "
                f"{sum(dropped.values())} dropped; {arrived}; {share:.2f} % (bar: 10 ± {bound:.2f}, {SIGMAS} standard deviations); "
                f"{answered} answered, others not: {causes}; {lost[kind]} requests failed")
        stand.end()


def memory(web, shadow, options):
    """With everything copied to a slow shadow, once as many copies wait as may and the first that waited too long are gone. What waits is
    another lot every 30 s, of bodies that are longer or shorter: a straight line is drawn through several of those."""
    stand = Stand(web, shadow, "{target: shadow}")
    warm, seconds, rise, before = options.seconds * 2.5, options.seconds * 10, [], stand.keel.rss_kib() / 1024

    def watch():
        time.sleep(WARM + warm)
        rise.append(stand.keel.rss_kib() / 1024)
        seen = Memory(stand.keel)
        time.sleep(seconds - 1)
        rise.append(seen.end())

    watching = threading.Thread(target=watch)
    watching.start()
    seen = load(stand.port, warm + seconds)
    watching.join()
    chosen, answered, causes = stand.copies()
    after = stand.keel.rss_kib() / 1024
    verdict("slow, memory", rise[1] < 4 and causes.get("mirror_full", 0) > 0 and not seen["failed"],
            f"resident {before:.1f} MiB at the start, {rise[0]:.1f} after {warm:.0f} s, {after:.1f} after {seconds:.0f} s more; slope "
            f"{rise[1]:+.2f} MiB over those (bar: below 4); of {seen['asked']} requests {chosen} were to be copied, {answered} copies were "
            f"answered, others not: {causes}; {seen['failed']} requests failed {seen['why'] or ''}")
    stand.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9, help="of runs with and without a mirror, for each shadow (9)")
    parser.add_argument("--seconds", type=float, default=15, help="of each run; the others are as much longer or shorter (15)")
    parser.add_argument("--only", nargs="+", choices=BARS, default=BARS)
    options = parser.parse_args()
    try:
        web = Fakes(1, "--id", "web").ports[0]
        shadows = {kind: Shadow(kind) for kind in ("well", *SICK)}
        if "share" in options.only:
            shares(web, shadows, options)
        if "memory" in options.only:
            memory(web, shadows["slow"], options)
        for kind in SICK:
            if kind in options.only:
                unharmed(web, shadows[kind], options)
    finally:
        Process.end_all()
    raise SystemExit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
