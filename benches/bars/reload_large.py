"""A config of thousands of backends, of which a reload changes one: what that costs whoever serves meanwhile."""

import json
import statistics
import subprocess
import time

import lab
from lab import wait_until
from reload_lab import STATES, Fakes, Folder, Running, knows

# Of a worker's own CPU time, in one turn of its loop.
STALL_MS = 5
# Nothing is under way any more that long after the event.
REST = 0.3


class Config:
    """So many targets on unix sockets, each with so many backends, which are all addresses of one process."""

    def __init__(self, folder, targets, backends, port, ping):
        self.folder, self.targets, self.backends, self.port, self.ping = folder, targets, backends, port, ping
        self.moved = {}
        self.top = "watch: off\n" if knows(lab.program("evenkeel"), "watch: off") else ""

    def address(self, target, backend):
        number = target * self.backends + backend
        # Each backend has two addresses, of which one is in force.
        second = 1 + self.moved.get((target, backend), 0)
        return f"127.{second}.{number // 250}.{number % 250 + 1}"

    def move(self, number):
        """Another address for one backend of one target, and what a reload says of that: one is gone, one is new."""
        place = (number * 37 % self.targets, number % self.backends)
        before = self.address(*place)
        self.moved[place] = 1 - self.moved.get(place, 0)
        name = f"backend t{place[0]:04}/"
        return [f"+ {name}{self.address(*place)}:{self.port}", f"- {name}{before}:{self.port}"]

    def text(self):
        text = [f"{self.top}log_format: json\nlogging: debug\ntargets:\n  ping:\n    protocol: http\n    listener: 0\n    health_check: off\n    backends: "
                f"[{{host: 127.0.0.1, port: {self.ping}}}]\n"]
        for target in range(self.targets):
            text.append(f"  t{target:04}:\n    protocol: http\n    listener: \"unix:{self.folder.file(f't{target:04}')}\"\n"
                        f"    health_check: {{interval: 1h, timeout: 10s}}\n    backends:\n")
            text += [f"      - {{host: {self.address(target, backend)}, port: {self.port}}}\n" for backend in range(self.backends)]
        return "".join(text)


def spent(before, after):
    """Milliseconds of CPU of the worker that has spent most."""
    return max(after[name] - before[name] for name in after) / 1e6


def pings(keel, seconds, work=None):
    """Clients that ask one after the other, and what `work` does meanwhile."""
    rig = subprocess.Popen([lab.program("rig"), "clients", f"127.0.0.1:{keel.port('ping')}", "--clients", "4", "--seconds", str(seconds)],
                           stdout=subprocess.PIPE, text=True)
    if work:
        work()
    return json.loads(rig.communicate()[0])


def run(options, verdict):
    folder = Folder()
    try:
        everywhere = Fakes(1, "--address", "0.0.0.0")
        config = Config(folder, options.targets, options.backends, everywhere.ports[0], Fakes(1).ports[0])
        count = options.targets * options.backends
        began = time.monotonic()
        keel = Running(config.text(), folder)
        started = time.monotonic() - began
        wait_until("the first verdicts", lambda: len(keel.said("backend t")) >= count, 120)
        verdict("large, start", None, f"{count} backends in {options.targets} targets: listens after {started:.1f} s, all verdicts after "
                f"{time.monotonic() - began:.1f} s, resident {keel.rss_kib() / 1024:.0f} MiB")
        # Probes are an hour apart, so that only those of the reload are seen, and who asks for the counters.
        probes = lambda: int(Fakes.counters(everywhere.ports[0])["connections"])  # noqa: E731
        time.sleep(3)
        usual = keel.workers()
        time.sleep(3)
        idle = spent(usual, keel.workers()) / 3

        since, resident = len(keel.look()), keel.rss_kib() / 1024
        took, costs, touched, churn, memory = [], [], [], [], []
        for number in range(options.reloads):
            wanted = config.move(number)
            before, begun, cpu = probes(), keel.workers(), keel.cpu_exact()
            said, seconds = keel.reload(config.text())
            time.sleep(REST)
            costs.append(spent(begun, keel.workers()))
            churn.append(probes() - before - 1)
            memory.append(keel.rss_kib() / 1024)
            took.append((seconds, keel.cpu_exact() - cpu))
            touched.append(sorted(line.split(" (")[0] for line in said["fields"].get("keys", "").splitlines()) == wanted)
        turns = [event["fields"]["longest_turn_us"] / 1000 for event in keel.look()[since:] if "longest_turn_us" in event["fields"]]
        told = f"; the longest turn as the process tells {max(turns):.2f} ms" if turns else ""
        verdict("large, no stall", min(max(costs), max(turns or costs)) < STALL_MS,
                f"CPU of a worker's thread for a whole reload, which is at least its longest turn: median {statistics.median(costs):.2f} ms, most "
                f"{max(costs):.2f} ms (bar: {STALL_MS} ms; at rest {idle * (REST + statistics.median(one for one, _ in took)):.2f} ms in that time){told}")
        wait_until("the last verdicts", lambda: len([event for event in keel.said("backend t", since) if " is up" in event["message"]]) >= options.reloads, 60)
        changes = [event["message"] for event in keel.look()[since:] if STATES.match(event["message"])]
        verdict("large, touches one", all(touched) and len(changes) <= options.reloads and max(churn) <= 1,
                f"one backend is gone and one is new, and nothing else: {sum(touched)} of {options.reloads} reloads; changes of state {len(changes)}; "
                f"backends probed by a reload: most {max(churn)}")
        verdict("large, load", None, f"from the signal to the event {statistics.median(one for one, _ in took):.2f} s (slowest "
                f"{max(one for one, _ in took):.2f} s), CPU of all threads {statistics.median(one for _, one in took):.2f} s each; resident "
                f"{resident:.0f} MiB before, {memory[0]:.0f} after the first, {memory[len(memory) // 2]:.0f} after {len(memory) // 2 + 1}, {memory[-1]:.0f} "
                f"after {options.reloads} reloads")

        def reloads():
            for number in range(options.reloads, 2 * options.reloads):
                config.move(number)
                keel.reload(config.text())

        seconds = statistics.median(one for one, _ in took) * options.reloads * 1.2 + 2
        without, beside = pings(keel, seconds), pings(keel, seconds, reloads)
        verdict("large, gaps", None if beside["errors"] == 0 else False,
                f"4 clients that ask one after the other, with reloads / without: p99 {beside['p99_us'] / 1000:.2f} / {without['p99_us'] / 1000:.2f} ms, "
                f"longest {beside['max_us'] / 1000:.1f} / {without['max_us'] / 1000:.1f} ms, over 100 ms {beside['slow']} / {without['slow']}, failures "
                f"{beside['errors']} / {without['errors']}")
    finally:
        folder.end()
