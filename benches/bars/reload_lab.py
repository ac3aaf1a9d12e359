"""What the bars of reload.py share: an evenkeel whose config is rewritten while it runs, and the site that it serves."""

import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time

import lab
from lab import Client, Process, wait_until

# How long a reload may take until it counts as unanswered.
PATIENCE = 30


class Folder:
    """A temporary folder, gone when the bars end."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="evenkeel-bar-")

    def file(self, *names):
        return os.path.join(self.path, *names)

    def end(self):
        shutil.rmtree(self.path, ignore_errors=True)


def knows(program, line):
    """Whether this build knows a key of the top level."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(f"{line}\ntargets:\n  a: {{protocol: tcp, listener: 0, backends: [{{host: 127.0.0.1, port: 1}}]}}\n")
        file.flush()
        return subprocess.run([program, "check", file.name], capture_output=True).returncode == 0


class Fakes(Process):
    """So many backends in one process. `ports` are theirs, `counters` what each has seen."""

    def __init__(self, count, *more):
        super().__init__(lab.program("fake_backend"), "--port", "0", "--count", str(count), "--list", *more)
        wait_until("the backends", lambda: self.text().count("listens on") == count)
        self.ports = [int(port) for port in re.findall(r":(\d+)$", self.text(), re.M)]

    @staticmethod
    def counters(port):
        client = Client(port)
        _, _, body = client.request(path="/_fake")
        client.close()
        return {name: value for name, _, value in (line.partition("=") for line in body.decode().splitlines())}

    @staticmethod
    def requests(port):
        """Requests of clients: neither probes nor ours for the counters."""
        return int(Fakes.counters(port)["requests"])


class Running(Process):
    """evenkeel with a config that can be rewritten. Its events are read as they come."""

    def __init__(self, text, folder, *more):
        self.config = folder.file("evenkeel.yaml")
        self.write(text)
        self.events, self.read = [], 0
        # Perhaps under another program that looks on.
        super().__init__(*getattr(self, "under", ()), lab.program("evenkeel"), "--config", self.config, *more)
        wait_until("evenkeel", lambda: self.said("listening") or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise SystemExit(self.text())
        # Addresses are told all at once; the first event behind them may take as long as it likes.
        wanted = len(re.findall(r"^ +listener: |\{protocol: \w+, listener: ", text, re.M))
        wait_until("the listeners", lambda: len(self.said("listening")) >= wanted)

    def write(self, text):
        """As an editor does: the file that is read is always whole."""
        with open(self.config + ".new", "w") as file:
            file.write(text)
        os.replace(self.config + ".new", self.config)

    def look(self):
        """Reads the events that have come; gives all."""
        with open(f"/proc/self/fd/{self.log.fileno()}", "rb") as log:
            log.seek(self.read)
            text = log.read()
        whole = text.rfind(b"\n") + 1
        self.read += whole
        for line in text[:whole].decode(errors="replace").splitlines():
            try:
                self.events.append(json.loads(line))
            except json.JSONDecodeError:
                self.events.append({"message": line, "fields": {}, "level": "?"})
        return self.events

    def said(self, beginning, since=0):
        """The events from place `since` on that begin so."""
        return [event for event in self.look()[since:] if event["message"].startswith(beginning)]

    def port(self, listener):
        """The TCP port that a listener has."""
        for event in self.said("listening"):
            if event["fields"]["listener"] == listener:
                return int(event["fields"]["address"].rsplit(":", 1)[1])
        raise SystemExit(f"nobody listens for {listener}: {self.text()}")

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)

    def reload(self, text=None):
        """Has the config read again, and gives what was said and how long that took."""
        if text is not None:
            self.write(text)
        since, began = len(self.look()), time.monotonic()
        self.hang_up()
        wait_until("the reload", lambda: self.said("reload", since), PATIENCE)
        return self.said("reload", since)[0], time.monotonic() - began

    def workers(self):
        """Nanoseconds of CPU that each worker's thread has spent."""
        spent, folder = {}, f"/proc/{self.process.pid}/task"
        for task in os.listdir(folder):
            with open(f"{folder}/{task}/comm") as comm:
                name = comm.read().strip()
            if re.fullmatch(r"evenkeel-\d+", name):
                with open(f"{folder}/{task}/schedstat") as stat:
                    spent[name] = int(stat.read().split()[0])
        return spent


# Changes of a backend's or a target's state, as the events say them.
STATES = re.compile(r"backend \S+ is |target \S+: (no backend left|on backups|back after)")


class Site:
    """A config whose first targets never change, while those beside them do.

    web, secure and raw carry the load. Of sick and broken one backend each is out, by its probes and by its breaker. The others
    change with every call of `change`."""

    OTHERS = 10
    STEADY = ("web", "secure", "raw", "sick", "broken")

    def __init__(self, folder, seed=1):
        self.folder, self.chance = folder, random.Random(seed)
        self.steady = Fakes(2)
        self.tcp = Fakes(2, "--protocol", "tcp", "--tcp", "echo")
        self.dead = Fakes(1, "--unhealthy").ports[0]
        self.failing = Fakes(1, "--status", "500").ports[0]
        self.pool = Fakes(8)
        subprocess.run([lab.program("rig"), "certificate", folder.path], check=True)
        self.top = "watch: off\n" if knows(lab.program("evenkeel"), "watch: off") else ""
        self.most = 9000
        self.others = {f"other{number}": self.other() for number in range(self.OTHERS)}
        self.passing = 0

    def other(self):
        ports = self.chance.sample(self.pool.ports, 3)
        return {"backends": {port: 1 for port in ports}, "connect": 1000, "connections": 1000, "body": 1024, "balance": "round_robin",
                "fall": 3}

    def change(self):
        """Changes some of what the load has nothing to do with."""
        chance = self.chance
        for _ in range(3):
            name = chance.choice([name for name in self.others if name.startswith("other")])
            other = self.others[name]
            what = chance.choice(["backend", "all backends", "weight", "timeout", "connections", "body", "balance", "check", "target", "max"])
            if what == "backend":
                other["backends"].pop(chance.choice(list(other["backends"])))
                left = [port for port in self.pool.ports if port not in other["backends"]]
                other["backends"][chance.choice(left)] = 1
            elif what == "all backends":
                left = [port for port in self.pool.ports if port not in other["backends"]]
                other["backends"] = {port: 1 for port in chance.sample(left, 3)}
            elif what == "weight":
                port = chance.choice(list(other["backends"]))
                other["backends"][port] = other["backends"][port] % 9 + 1
            elif what == "balance":
                names = ["round_robin", "least_connections", "power_of_two", "ring_hash", "maglev", "random"]
                other["balance"] = chance.choice([one for one in names if one != other["balance"]])
            elif what == "target":
                # One that comes and goes, with its listener; never the same name twice.
                gone = [name for name in self.others if name.startswith("passing")]
                if len(gone) > 2:
                    self.others.pop(gone[0])
                self.passing += 1
                self.others[f"passing{self.passing}"] = self.other()
            elif what == "max":
                self.most = chance.randint(8000, 9500)
            else:
                key, step = {"timeout": ("connect", 1), "connections": ("connections", 1), "body": ("body", 1), "check": ("fall", 1)}[what]
                other[key] += step
        # Never the same text twice, whatever chance has chosen.
        self.others["other0"]["connect"] += 1
        return self.text()

    def text(self):
        backends = "".join(f"      - {{host: 127.0.0.1, port: {port}}}\n" for port in self.steady.ports)
        tcp = "".join(f"      - {{host: 127.0.0.1, port: {port}}}\n" for port in self.tcp.ports)
        first = self.steady.ports[0]
        text = f"""{self.top}log_format: json
logging: debug
max_connections: {self.most}
targets:
  web:
    protocol: http
    listener: 0
    health_check: {{interval: 1s, path: /health}}
    timeouts: {{keep_alive: 1h}}
    backends:
{backends}  secure:
    protocol: https
    listener: 0
    tls: {{cert_file: cert.pem, cert_key: key.pem}}
    health_check: {{interval: 1s, path: /health}}
    timeouts: {{keep_alive: 1h}}
    backends:
{backends}  raw:
    protocol: tcp
    listener: 0
    health_check: {{interval: 1s}}
    backends:
{tcp}  sick:
    protocol: http
    listener: 0
    health_check: {{interval: 500ms, path: /health}}
    backends: [{{host: 127.0.0.1, port: {first}}}, {{host: 127.0.0.1, port: {self.dead}}}]
  broken:
    protocol: http
    listener: 0
    health_check: off
    outlier: off
    breaker: {{failures: 3, open: 1h, statuses: [500]}}
    backends: [{{host: 127.0.0.1, port: {first}}}, {{host: 127.0.0.1, port: {self.failing}}}]
"""
        for name, other in self.others.items():
            backends = "".join(f"      - {{host: 127.0.0.1, port: {port}, weight: {weight}}}\n" for port, weight in other["backends"].items())
            text += f"""  {name}:
    protocol: http
    listener: 0
    balance: {other["balance"]}
    health_check: {{interval: 500ms, fall: {other["fall"]}, path: /health}}
    timeouts: {{connect: {other["connect"]}ms, keep_alive: 1h}}
    limits: {{connections: {other["connections"]}, body: {other["body"]}}}
    backends:
{backends}"""
        return text

    def start(self):
        """evenkeel at rest: every verdict is there, the breaker of broken is open."""
        keel = Running(self.text(), self.folder)
        up = 6 + sum(len(other["backends"]) for other in self.others.values())
        wait_until("the first verdicts", lambda: len([event for event in keel.look() if " is up" in event["message"]]) >= up)
        wait_until("the dead one", lambda: [event for event in keel.look() if event["message"].startswith(f"backend sick/127.0.0.1:{self.dead} is down")])
        client = Client(keel.port("broken"))
        wait_until("the breaker", lambda: client.request() and [event for event in keel.look() if "breaker open" in event["message"]])
        client.close()
        return keel


class Load:
    """Everything that users do, by `rig crowd`: 1,000 WebSockets (a tenth of them with TLS), 50 TCP tunnels and 500 requests/s."""

    def __init__(self, keel, folder, seconds, scale=1.0, after=2, seed=1):
        rates = {"get": 230, "post": 110, "down": 10, "up": 10, "tls": 80, "handshakes": 20, "sessions": 40}
        lasting = {"websockets": 900, "tls-websockets": 100, "tunnels": 50}
        command = [lab.program("rig"), "crowd", "--http", f"127.0.0.1:{keel.port('web')}", "--https", f"127.0.0.1:{keel.port('secure')}",
                   "--tcp", f"127.0.0.1:{keel.port('raw')}", "--trust", folder.file("cert.pem"), "--seconds", str(seconds), "--after",
                   str(after), "--seed", str(seed)]
        for name, rate in rates.items():
            command += [f"--{name}", str(rate * scale)]
        for name, count in lasting.items():
            command += [f"--{name}", str(int(count * scale))]
        self.count = int(lasting["websockets"] * scale) + int(lasting["tls-websockets"] * scale)
        self.rig = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.rig.stdout.readline()
        if line != "ready\n":
            raise SystemExit(f"the load did not begin: {line}")

    def result(self):
        return json.loads(self.rig.communicate()[0].splitlines()[-1])

    def end(self):
        if self.rig.poll() is None:
            self.rig.kill()
        self.rig.wait()


class Asking(threading.Thread):
    """A client that asks targets in turn, so many times a second; `bad` are the answers that were no 200, by target."""

    def __init__(self, ports, rate):
        super().__init__()
        self.ports, self.pause = ports, 1 / rate
        self.requests, self.bad, self.over = 0, [], threading.Event()
        self.begun = time.monotonic()
        self.start()

    def run(self):
        clients = {}
        while not self.over.wait(self.pause):
            for name, port in list(self.ports.items()):
                try:
                    clients[name] = clients.get(name) or Client(port)
                    status, head, _ = clients[name].request()
                except OSError as error:
                    status, head = repr(error), b""
                self.requests += 1
                if status != 200:
                    self.bad.append((round(time.monotonic() - self.begun, 2), name, status))
                if name in clients and (status != 200 or b"connection: close" in head.lower()):
                    clients.pop(name).close()

    def end(self):
        self.over.set()
        self.join()


class Memory(threading.Thread):
    """Resident memory once a second, until the end."""

    def __init__(self, process):
        super().__init__()
        self.process, self.seen, self.over = process, [], threading.Event()
        self.start()

    def run(self):
        begun = time.monotonic()
        while not self.over.wait(1):
            self.seen.append((time.monotonic() - begun, self.process.rss_kib() / 1024))

    def end(self):
        """What the straight line through all but the first fifth rises from its beginning to its end, in MiB."""
        self.over.set()
        self.join()
        kept = self.seen[len(self.seen) // 5:]
        if len(kept) < 3:
            return 0.0
        slope = statistics.linear_regression(*zip(*kept)).slope
        return slope * (kept[-1][0] - kept[0][0])

