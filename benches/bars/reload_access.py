"""A list of 100,000 networks, of which a reload changes one: how long that takes, and what it costs whoever serves meanwhile."""

import os
import random
import statistics
import time

from reload_lab import Asking, Fakes, Folder, Running
from reload_routes import spent

# Networks in the file.
COUNT = 100_000
# From the signal to the event.
MOST = 1.0
# Of a worker's own CPU time, in one turn of its loop.
STALL_MS = 5
# Nothing is under way any more that long after the event.
REST = 0.3


def networks(changed):
    """Nobody who asks here is in any of them. What differs is the last line."""
    chance = random.Random(1)
    lines = ["# made by chance"]
    for number in range(COUNT - 1):
        if number % 2:
            lines.append(f"{11 + number % 90}.{chance.randrange(256)}.{chance.randrange(256)}.{chance.randrange(256)}")
        else:
            lines.append(f"2001:db8:{chance.randrange(65536):x}:{chance.randrange(65536):x}::/64")
    lines.append(f"192.0.2.{1 + changed}")
    return "\n".join(lines) + "\n"


def save(file, text):
    """As an editor does: the file that is read is always whole."""
    with open(file + ".new", "w") as new:
        new.write(text)
    os.replace(file + ".new", file)


def text(port, list_file):
    return "\n".join(["log_format: json", "logging: debug", "watch: off", "access_lists:", f"  bad: {{deny_file: {list_file}}}", "listeners:",
                      "  front:", "    bind: 127.0.0.1:0", "    access: bad", "    routes: [{target: t}]", "targets:",
                      f"  t: {{health_check: off, backends: [{{host: 127.0.0.1, port: {port}}}]}}"]) + "\n"


def run(options, verdict):
    folder = Folder()
    try:
        backend = Fakes(1)
        list_file = folder.file("bad.txt")
        save(list_file, networks(0))
        config = text(backend.ports[0], list_file)
        began = time.monotonic()
        keel = Running(config, folder)
        verdict("access, start", None, f"{COUNT} networks: listens after {time.monotonic() - began:.2f} s, resident {keel.rss_kib() / 1024:.0f} MiB")
        time.sleep(1)
        since = len(keel.look())
        took, costs, odd = [], [], []
        for number in range(options.reloads):
            save(list_file, networks(1 + number % 250))
            begun = keel.workers()
            said, seconds = keel.reload(config)
            time.sleep(REST)
            costs.append(spent(begun, keel.workers()))
            took.append(seconds)
            if not said["message"].startswith("reloaded: ") or not said["fields"].get("differing"):
                odd.append(said["message"])
        turns = [event["fields"]["longest_turn_us"] / 1000 for event in keel.look()[since:] if "longest_turn_us" in event["fields"]]
        verdict("access, load", max(took) <= MOST and not odd,
                f"from the signal to the event {statistics.median(took):.2f} s (slowest {max(took):.2f} s, bar: {MOST:.0f} s); refused or without effect "
                f"{len(odd)} {odd[:2]}; resident {keel.rss_kib() / 1024:.0f} MiB")
        verdict("access, no stall", max(costs + turns) < STALL_MS,
                f"CPU of a worker's thread for a whole reload, which is at least its longest turn: median {statistics.median(costs):.2f} ms, most "
                f"{max(costs):.2f} ms (bar: {STALL_MS} ms); the longest turn as the process tells {max(turns or [0]):.2f} ms")
        asking = Asking({"front": keel.port("front")}, 200)
        for number in range(options.reloads):
            save(list_file, networks(2 + number % 250))
            keel.reload(config)
        asking.end()
        verdict("access, requests", not asking.bad and asking.requests > 0, f"{len(asking.bad)} of {asking.requests} requests failed {asking.bad[:3]} beside {options.reloads} reloads")
    finally:
        folder.end()
