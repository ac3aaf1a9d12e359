#!/usr/bin/env python3
"""Another config while it serves: what users notice of it. One bar after the other, each with its verdict. See README.md beside
this file. Builds nothing."""

import argparse
import resource
import signal
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True

import reload_access  # noqa: E402
import reload_dead  # noqa: E402
import reload_large  # noqa: E402
import reload_routes  # noqa: E402
import reload_tls  # noqa: E402
from lab import Process  # noqa: E402
from reload_lab import STATES, Asking, Fakes, Folder, Load, Memory, Site  # noqa: E402

FAILED = []


def verdict(name, good, text):
    """`good` is None where something is told and not judged."""
    print(f"{'--  ' if good is None else 'ok  ' if good else 'FAIL'}  {name}: {text}", flush=True)
    if good is False:
        FAILED.append(name)


class Reloading(threading.Thread):
    """A reload of something unrelated each second, until it is told to end."""

    def __init__(self, keel, site, pause=1.0):
        super().__init__()
        self.keel, self.site, self.pause = keel, site, pause
        self.took, self.odd, self.over = [], [], threading.Event()
        self.start()

    def run(self):
        due = time.monotonic()
        while not self.over.wait(max(0, due - time.monotonic())):
            due += self.pause
            said, took = self.keel.reload(self.site.change())
            self.took.append(took)
            if not said["message"].startswith("reloaded: ") or not said["fields"].get("differing"):
                self.odd.append(said["message"])

    def end(self):
        self.over.set()
        self.join()

    def text(self):
        took = sorted(self.took) or [0]
        return f"{len(self.took)} reloads, {1000 * statistics.median(took):.0f} ms each (slowest {1000 * took[-1]:.0f} ms)"


def failures(seen):
    kinds = ["get", "post", "down", "up", "tls", "handshake", "session"]
    return ", ".join(f"{kind} {seen[kind]['failed']} of {seen[kind]['begun']}" for kind in kinds)


def soak(options):
    folder = Folder()
    site = Site(folder)
    keel = site.start()
    load = Load(keel, folder, options.seconds, options.scale)
    try:
        quiet = len(keel.look())
        steady = Asking({name: keel.port(name) for name in ("sick", "broken")}, 2)
        others = Asking({name: keel.port(name) for name in site.others}, 2)
        before = [Fakes.requests(port) for port in (site.dead, site.failing)]
        memory, began = Memory(keel), keel.rss_kib() / 1024
        reloading = Reloading(keel, site)
        seen = load.result()
        reloading.end()
        for asking in (steady, others):
            asking.end()
        rise = memory.end()
        after = [Fakes.requests(port) for port in (site.dead, site.failing)]
        end = keel.rss_kib() / 1024
    finally:
        load.end()
    code = keel.end()
    told = "; ".join(seen["told"][:5])
    wanted = int(options.seconds) - 2
    verdict("soak, reloads", len(reloading.took) >= wanted and not reloading.odd,
            f"{reloading.text()}; refused or without effect {len(reloading.odd)} {reloading.odd[:2]}")
    lasting = seen["websockets_lost"] + seen["tunnels_lost"]
    verdict("soak, disconnects", lasting == 0,
            f"{seen['websockets_lost']} of {load.count} WebSockets and {seen['tunnels_lost']} of the tunnels ended; {seen['messages']['timed']} "
            f"messages came back (p99 {seen['messages']['p99_us'] / 1000:.1f} ms, more than a second late {seen['late']}) {told}")
    verdict("soak, requests", seen["all"]["failed"] == 0 and seen["all"]["begun"] > 0,
            f"{seen['all']['failed']} of {seen['all']['begun']} failed ({failures(seen)}); p99 {seen['all']['p99_us'] / 1000:.1f} ms")
    verdict("soak, keep-alive", seen["unannounced"] == 0,
            f"{seen['unannounced']} connections closed without Connection: close, {seen['announced']} with it")
    verdict("soak, what changes", not others.bad, f"{len(others.bad)} of {others.requests} requests to the targets that change failed {others.bad[:5]}")
    verdict("soak, memory", rise < 4, f"resident {began:.1f} MiB at the beginning, {end:.1f} MiB at the end; the straight line behind the first "
            f"fifth rises by {rise:+.2f} MiB (bar: 4)")
    alive = [event["fields"]["alive"] for event in keel.look() if "alive" in event["fields"]]
    verdict("soak, snapshots alive", None if not alive else set(alive) == {1},
            f"after each of {len(alive)} reloads {sorted(set(alive))}" if alive else "this build does not tell")
    changes = [event["message"] for event in keel.look()[quiet:] if STATES.match(event["message"])]
    changes = [one for one in changes if any(f" {name}/" in one or f" {name}:" in one for name in Site.STEADY)]
    lost = [later - earlier for earlier, later in zip(before, after)]
    verdict("soak, states", not changes and lost == [0, 0] and not steady.bad,
            f"{len(changes)} changes of state of what no reload changed {changes[:3]}; requests to the dead backend {lost[0]}, to the one whose "
            f"breaker is open {lost[1]}; {len(steady.bad)} of {steady.requests} requests to their targets failed {steady.bad[:3]}")
    verdict("soak, end", code == 0, f"exit {code} on SIGTERM")
    folder.end()


def unharmed(options):
    pairs, took = [], []

    def run(with_reloads, number):
        folder = Folder()
        site = Site(folder, seed=number)
        keel = site.start()
        load = Load(keel, folder, options.seconds, options.scale, after=2, seed=number)
        try:
            reloading = Reloading(keel, site) if with_reloads else None
            seen = load.result()
            if reloading:
                reloading.end()
                took.extend(reloading.took)
        finally:
            load.end()
            Process.end_all()
            folder.end()
        return seen

    for number in range(options.pairs):
        # Which of the two comes first changes from pair to pair.
        seen = {which: run(which, number + 1) for which in ([True, False] if number % 2 else [False, True])}
        pairs.append((seen[True], seen[False]))
        print("      pair", number + 1, "p99 in ms with / without:", ", ".join(
            f"{group} {seen[True][group]['p99_us'] / 1000:.2f} / {seen[False][group]['p99_us'] / 1000:.2f}" for group in ("all", "small", "messages")),
            flush=True)
    for group in ("all", "small", "messages"):
        p99 = [(one[group]["p99_us"], other[group]["p99_us"]) for one, other in pairs]
        ratio = statistics.median(one / max(other, 1) for one, other in p99)
        more = statistics.median(one - other for one, other in p99) / 1000
        slow, lost = ([sum(pair[which][group][what] for pair in pairs) for which in (0, 1)] for what in ("slow", "failed"))
        good = (ratio <= 1.10 or more <= 1) and slow[0] <= slow[1] and lost[0] <= lost[1]
        timed = [sum(pair[which][group]["timed"] for pair in pairs) for which in (0, 1)]
        verdict(f"unharmed, {group}", good, f"{len(pairs)} pairs, median of p99 ratios {ratio:.3f}, median difference {more:+.2f} ms; with / without: "
                f"timed {timed[0]} / {timed[1]}, failures {lost[0]} / {lost[1]}, over 100 ms {slow[0]} / {slow[1]}")
    lost = [sum(sum(pair[which][what] for what in ("websockets_lost", "tunnels_lost", "unannounced")) for pair in pairs) for which in (0, 1)]
    verdict("unharmed, connections", lost[0] <= lost[1], f"ended without a word, with / without: {lost[0]} / {lost[1]}; {len(took)} reloads")


BARS = {"soak": soak, "unharmed": unharmed, "dead": lambda options: reload_dead.run(options, verdict),
        "certificates": lambda options: reload_tls.run(options, verdict), "large": lambda options: reload_large.run(options, verdict),
        "routes": lambda options: reload_routes.run(options, verdict), "access": lambda options: reload_access.run(options, verdict)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    bars = parser.add_subparsers(dest="bar", required=True)
    one = bars.add_parser("soak", help="1,000 WebSockets and 500 requests/s, and a reload each second")
    one.add_argument("--seconds", type=float, default=600)
    one.add_argument("--scale", type=float, default=1, help="of the load (1)")
    one = bars.add_parser("unharmed", help="the same load in pairs of runs, with reloads and without")
    one.add_argument("--pairs", type=int, default=9)
    one.add_argument("--seconds", type=float, default=20, help="of each run (20)")
    one.add_argument("--scale", type=float, default=1, help="of the load (1)")
    one = bars.add_parser("dead", help="a backend that was dead before a reload, HAProxy beside it")
    one.add_argument("--reloads", type=int, default=10)
    one = bars.add_parser("certificates", help="20 names swapped at a time under full handshakes, and pairs that do not fit")
    one.add_argument("--names", type=int, default=20)
    one.add_argument("--swaps", type=int, default=50)
    one.add_argument("--wrong", type=int, default=50)
    one.add_argument("--apart", type=float, default=2.5, help="seconds between two (2.5)")
    one.add_argument("--rate", type=float, default=150, help="full handshakes a second (150)")
    one.add_argument("--signal", action="store_true", help="send SIGHUP behind the last rename instead of leaving it to `watch`")
    one = bars.add_parser("large", help="10,000 backends in 1,000 targets")
    one.add_argument("--targets", type=int, default=1000)
    one.add_argument("--backends", type=int, default=10, help="of each target (10)")
    one.add_argument("--reloads", type=int, default=20)
    one = bars.add_parser("access", help="a list of 100,000 networks")
    one.add_argument("--reloads", type=int, default=20)
    one = bars.add_parser("routes", help="10,000 routes of 1,000 hosts")
    one.add_argument("--hosts", type=int, default=1000)
    one.add_argument("--reloads", type=int, default=20)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        BARS[options.bar](options)
    finally:
        Process.end_all()
    raise SystemExit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
