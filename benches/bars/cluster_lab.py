"""What cluster_chaos.py is made of: three members of etcd, nodes that can be killed, frozen and cut off, and a lab with all of it that says what was seen beside its bound."""

import asyncio
import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
from cluster_load import API, API_FIRST, SLOTS, SOFT, Clients, Turns, Works  # noqa: E402
from lab import Process, accepts, free_port, program, wait_until  # noqa: E402

PREFIX, STALL, NOTICED = "/evenkeel/bar", 5.0, 10


class Members:
    """Three members of etcd that act as one."""

    def __init__(self, folder, *more):
        if not shutil.which("etcd"):
            raise SystemExit("needs `etcd`: apt install etcd-server")
        self.folder, self.more = folder, more
        self.ports, self.peers, self.processes = [free_port() for _ in range(3)], [free_port() for _ in range(3)], [None] * 3
        for number in range(3):
            self.begin(number)
        wait_until("etcd", lambda: all(map(accepts, self.ports)))
        wait_until("a leader", lambda: self.leader() is not None)

    def begin(self, number):
        """Starts a member that is not there, with what it had."""
        to = lambda port: f"http://127.0.0.1:{port}"  # noqa: E731
        everybody = ",".join(f"m{one}={to(self.peers[one])}" for one in range(3))
        self.processes[number] = Process(
            "etcd", "--name", f"m{number}", "--data-dir", f"{self.folder}/m{number}", "--listen-client-urls", to(self.ports[number]),
            "--advertise-client-urls", to(self.ports[number]), "--listen-peer-urls", to(self.peers[number]), "--initial-advertise-peer-urls",
            to(self.peers[number]), "--initial-cluster", everybody, "--heartbeat-interval", "100", "--election-timeout", "1000", "--log-level", "warn",
            *self.more)

    def kill(self, number):
        self.processes[number].end(signal.SIGKILL)

    def pause(self, number, is_paused):
        self.processes[number].process.send_signal(signal.SIGSTOP if is_paused else signal.SIGCONT)

    def wipe(self):
        """All members, with nothing."""
        for number in range(3):
            self.kill(number)
        for number in range(3):
            shutil.rmtree(f"{self.folder}/m{number}")
            self.begin(number)

    def ask(self, path, question, number=0, token=None):
        headers = {"Authorization": token} if token else {}
        asked = urllib.request.Request(f"http://127.0.0.1:{self.ports[number]}/v3/{path}", json.dumps(question).encode(), headers)
        with urllib.request.urlopen(asked, timeout=5) as answer:
            return json.loads(answer.read())

    def leader(self):
        """Which of those that are there the others follow."""
        for number in range(3):
            try:
                found = self.ask("maintenance/status", {}, number)
            except OSError:
                continue
            if found.get("leader", "0") == found["header"]["member_id"]:
                return number
        return None

    @staticmethod
    def bytes(text):
        return base64.b64encode(text.encode()).decode()

    def empty(self):
        """Nothing is left of what the cluster keeps."""
        self.ask("kv/deleterange", {"key": self.bytes(PREFIX + "/"), "range_end": self.bytes(PREFIX + "0")})

    def put(self, name, value):
        return int(self.ask("kv/put", {"key": self.bytes(name), "value": self.bytes(value)})["header"]["revision"])

    def guard(self):
        """Whoever does not say who he is has no rights from now on. Gives what ends that."""
        self.ask("auth/user/add", {"name": "root", "password": "r"})
        self.ask("auth/role/add", {"name": "root"})
        self.ask("auth/user/grant", {"user": "root", "role": "root"})
        self.ask("auth/enable", {})
        token = self.ask("auth/authenticate", {"name": "root", "password": "r"})["token"]
        return lambda: self.ask("auth/disable", {}, token=token)


class Ways(threading.Thread):
    """The ways of one node to all members, which can be cut: what is sent then lies there until they are whole again."""

    def __init__(self, members):
        super().__init__(daemon=True)
        self.members, self.ports, self.loop, self.held = members, [], asyncio.new_event_loop(), set()
        self.start()
        wait_until("ways", lambda: len(self.ports) == 3)

    def run(self):
        asyncio.set_event_loop(self.loop)
        self.whole = asyncio.Event()
        self.whole.set()
        for port in self.members.ports:
            server = self.loop.run_until_complete(asyncio.start_server(self.serve(port), "127.0.0.1", 0))
            self.ports.append(server.sockets[0].getsockname()[1])
        self.loop.run_forever()

    def serve(self, port):
        async def pump(reader, writer):
            while piece := await reader.read(65536):
                await self.whole.wait()
                writer.write(piece)
                await writer.drain()

        async def one(reader, writer):
            await self.whole.wait()
            try:
                there, back = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return writer.close()
            pumps = [asyncio.ensure_future(pump(reader, back)), asyncio.ensure_future(pump(there, writer))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for each in pumps:
                each.cancel()
            for each in (writer, back):
                each.transport.abort()
        return one

    def cut(self, is_cut):
        self.loop.call_soon_threadsafe(self.whole.clear if is_cut else self.whole.set)


class Node:
    """One evenkeel, which may be started more than once."""

    def __init__(self, name, lab, etcd_ports, more_rules=""):
        # Every other one may be of another version.
        self.program = lab.args.other if lab.args.other and ord(name) % 2 == 0 else program("evenkeel")
        self.name, self.folder, self.socket = name, lab.folder, os.path.join(lab.folder, f"{name}.sock")
        self.ports, self.file = {"soft": free_port(), "api": free_port()}, os.path.join(lab.folder, f"{name}.yaml")
        places = ", ".join(f"'http://127.0.0.1:{port}'" for port in etcd_ports)
        self.own = (f"name: {name}\nstate_dir: {lab.folder}/{name}\nworkers: 1\nwatch: off\nadmin: {{socket: {self.socket}}}\n"
                    f"cluster: {{name: bar, node: {name}, lease: {lab.lease}s, etcd: {{endpoints: [{places}]}}}}\n")
        self.write(lab.targets())

    def write(self, targets):
        with open(self.file, "w") as config:
            config.write(self.own + targets)

    def begin(self, is_waited=True):
        self.begun = time.monotonic()
        os.environ.update(SOFT_AT=f"127.0.0.1:{self.ports['soft']}", API_AT=f"127.0.0.1:{self.ports['api']}", TMPDIR=self.folder)
        self.process = Process(self.program, "--config", self.file)
        if is_waited:
            there = lambda: all(map(accepts, self.ports.values())) and os.path.exists(self.socket)  # noqa: E731
            wait_until(self.name, lambda: there() or self.process.process.poll() is not None)
            if self.process.process.poll() is not None:
                raise SystemExit(self.process.text())
        return self

    def signal(self, how):
        self.process.process.send_signal(how)
        if how == signal.SIGKILL:
            self.process.process.wait()

    def ask(self, method, path, body=None, kind="application/json", patience=15):
        """Status and body of what its socket says."""
        connection = http.client.HTTPConnection("localhost", timeout=patience)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(patience)
        connection.sock.connect(self.socket)
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": kind} if text else {})
        answer = connection.getresponse()
        said = answer.read().decode()
        connection.close()
        return answer.status, json.loads(said) if "json" in (answer.getheader("Content-Type") or "") else said

    def answering(self):
        """The process that does."""
        try:
            return self.ask("GET", "/api/v1")[1]["pid"]
        except (OSError, http.client.HTTPException):
            return None

    def cluster(self):
        return self.ask("GET", "/api/v1/cluster")[1]

    def standing(self):
        return self.cluster()["standing"]

    def knows(self):
        """The names of the nodes that it knows, if it is one of them itself."""
        report = self.cluster()
        return sorted(node["name"] for node in report["nodes"]) if report["standing"] == "member" else []

    def metric(self, name):
        found = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)", self.ask("GET", "/metrics")[1], re.M)
        return sum(map(float, found))

    def events(self, kind):
        found = re.search(rf'^evenkeel_events_total\{{kind="{kind}"\}} (\S+)', self.ask("GET", "/metrics")[1], re.M)
        return int(float(found.group(1))) if found else 0

    def owned(self):
        return self.metric("evenkeel_cluster_owned_backends")

    def owners(self):
        """Which node prefers each backend, as far as this one knows."""
        return {one["backend"]: one["node"] for one in self.ask("GET", "/api/v1/cluster/owners")[1]["targets"][0]["backends"]}

    def weigh(self, weight, backend="api0"):
        """A change by hand; its status."""
        return self.ask("PATCH", f"/api/v1/targets/api/backends/{backend}", {"weight": weight})[0]

    def weight(self, backend="api0"):
        return self.ask("GET", f"/api/v1/targets/api/backends/{backend}")[1]["weight"]


class Lab:
    """A fresh etcd, fresh nodes, and who asks them."""

    def __init__(self, name, folder, args):
        self.name, self.folder, self.args, self.lease, self.bad = name, folder, args, args.lease, 0
        self.nodes, self.ways, self.dead, self.clients, self.heirs = [], {}, 0, None, []
        self.works = Works()

    def targets(self, more=""):
        soft = ", ".join(f"{{name: soft{place}, host: 127.0.0.{place}, port: {self.works.port}}}" for place in range(1, SOFT + 1))
        ports = [self.dead if self.dead and number == 0 else self.works.port for number in range(API)]
        api = ", ".join(f"{{name: api{number}, host: 127.0.0.{API_FIRST + number}, port: {port}}}" for number, port in enumerate(ports))
        checked = "health_check: {path: /health, interval: 500ms, timeout: 1s, fall: 2, rise: 1}"
        return (f"targets:\n  soft: {{protocol: http, listener: '${{SOFT_AT}}', {checked}, max_in_flight: {SLOTS}, queue: {{timeout: 30s}}, "
                f"balance: least_connections, owner: soft, backends: [{soft}]}}\n"
                f"  api: {{protocol: http, listener: '${{API_AT}}', {checked}{more}, backends: [{api}]}}\n")

    def begin(self, names=None, cut="", flags=()):
        """Etcd and nodes, of which some have ways to it that can be cut."""
        self.etcd = Members(self.folder, *flags)
        for name in names or "abcde"[:self.args.nodes]:
            if name in cut:
                self.ways[name] = Ways(self.etcd)
            self.nodes.append(Node(name, self, self.ways[name].ports if name in cut else self.etcd.ports).begin())
            # All but the first begin with what there is already.
            wait_until("a first revision", lambda: self.in_force(1))
        self.come_together(self.nodes, 30)
        wait_until("all backends up", lambda: all(self.up(node) == SOFT + API - bool(self.dead) for node in self.nodes))

    @staticmethod
    def up(node):
        return sum(one["state"] == "up" for target in ("soft", "api") for one in node.ask("GET", f"/api/v1/targets/{target}")[1]["backends"])

    def steady(self):
        """Begins with the load, and waits until ownership has come to rest."""
        self.clients, seen = Clients(self.nodes), None
        begun = since = time.monotonic()
        while time.monotonic() - since < 14 and time.monotonic() - begun < 60:
            now = [node.owners() for node in self.nodes]
            seen, since = (seen, since) if now == seen else (now, time.monotonic())
            time.sleep(0.5)
        self.turns, self.begun = Turns(self.nodes), time.monotonic()
        self.owners, self.gone = seen, {node: node.events("node_gone") for node in self.nodes}
        self.moves = sum(node.metric("evenkeel_cluster_owner_moves_total") for node in self.nodes)

    def others(self, node):
        return [one for one in self.nodes if one is not node]

    def come_together(self, nodes, seconds):
        """How long it takes until these know of these and no others."""
        begun, names = time.monotonic(), sorted(node.name for node in nodes)
        wait_until(f"nodes {names}", lambda: all(node.knows() == names for node in nodes), seconds)
        return time.monotonic() - begun

    def adopted(self, nodes, since, limit):
        """How long it takes until these prefer all backends between them."""
        names, taken = sorted(node.name for node in nodes), False
        while not taken and time.monotonic() - since < limit + 20:
            taken = all(node.knows() == names for node in nodes) and sum(node.owned() for node in nodes) == SOFT
            time.sleep(0.02)
        self.row("all backends of the dead adopted", time.monotonic() - since if taken else None, limit)

    def rest(self):
        """The load goes on until its time is over."""
        time.sleep(max(3.0, self.begun + self.args.seconds - time.monotonic()))

    def row(self, what, seen, limit=None, unit="s"):
        """A line: what was seen, at most the limit; without one, nothing is judged. `None`: it never came."""
        is_met = limit is None or seen is not None and seen <= limit
        text = "never" if seen is None else f"{seen:.2f} {unit}" if unit == "s" else f"{seen:g} {unit}"
        self.line(what, text, "" if limit is None else f"<= {limit:g}{' s' if unit == 's' else ''}", is_met if limit is not None else None)

    def line(self, what, seen, wanted, is_met):
        word = "--" if is_met is None else "ok" if is_met else "NOT MET"
        self.bad += is_met is False
        print(f"{self.name:<22} {what:<48} {seen:>24}  {wanted:<14} {word}", flush=True)

    def count(self, lost=0):
        """Ends the load, and says what became of it. `lost`: whether anybody was struck who may have lost what was under way on him."""
        least, most = self.turns.most()
        self.clients.end()
        record, clients = self.works.record(), self.clients
        served = [number for *_, number in record if number]
        self.row("requests that failed", len(clients.failed), 0, f"of {clients.sent}")
        for one in clients.failed[:5]:
            print(f"    {one[0] - self.begun:+.3f} s on {one[1]}, {one[2]} {one[3]}: {one[4]}")
        if lost or clients.lost:
            self.line("lost, under way on what was killed", f"{len(clients.lost)} ({clients.elsewhere} went elsewhere)", "", None if lost else False)
        self.row("answers that no backend gave", len(clients.good - set(served)), 0, "")
        self.row("numbers that backends had more than once", len(served) - len(set(served)), unit="")
        self.row("slowest answer", clients.slowest)
        self.line("a worker's time between two sleeps", f"{least:.1f} to {most:.1f} ms", f"<= {STALL:g} ms", least <= STALL)
        return record

    def nothing_moved(self, when=""):
        """Nobody was taken for dead, and no backend has another node."""
        self.row(f"nodes that were taken for gone{when}", sum(node.events("node_gone") - self.gone[node] for node in self.nodes), 0, "")
        moved = max(sum(now[one] != then[one] for one in now) for now, then in zip((node.owners() for node in self.nodes), self.owners))
        self.row(f"backends that were moved{when}", moved, 0, "")

    def told(self, kinds, word, since):
        """What all nodes say of it, each in one of these events."""
        end = time.monotonic() + NOTICED
        found = lambda node: next((line for line in node.process.text()[since[node]:].splitlines() if re.search(word, line)), None)  # noqa: E731
        while not all(map(found, self.nodes)) and time.monotonic() < end:
            time.sleep(0.05)
        lines = [found(node) for node in self.nodes]
        self.row(f"alarm on all nodes ({kinds})", None if None in lines else time.monotonic() - end + NOTICED, NOTICED)
        print(f"    {next(filter(None, lines), 'nobody says anything')[:220]}")

    def routes_stay(self):
        """All nodes have all backends, and serve."""
        backends = [sum(len(node.ask("GET", f"/api/v1/targets/{target}")[1]["backends"]) for target in ("soft", "api")) for node in self.nodes]
        self.line("backends on each node", str(backends), f"all {SOFT + API}", backends == [SOFT + API] * len(self.nodes))

    def said(self):
        return {node: len(node.process.text()) for node in self.nodes}

    def apply(self, node, number):
        """Another config for all; its status."""
        text = node.own + self.targets(f", max_in_flight: {1000 + number}")
        return node.ask("POST", "/api/v1/config/apply", text, "application/yaml")[0]

    def in_force(self, revision, nodes=None):
        return all(node.cluster().get("config", {}).get("revision", 0) >= revision for node in nodes or self.nodes)


class Writes(threading.Thread):
    """Changes by hand, one after the other, on one node."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.seen, self.is_over = node, [], False
        self.start()

    def run(self):
        turn = 0
        while not self.is_over:
            begun, turn = time.monotonic(), turn + 1
            try:
                status = self.node.weigh(turn % 2 + 1)
            except OSError:
                status = 0
            self.seen.append((begun, time.monotonic(), status))
            time.sleep(0.25)

    def resumed(self, since):
        """The longest time without one that was done, from then on; `None`: none was."""
        self.is_over = True
        self.join()
        done = [ended for _, ended, status in self.seen if status == 200 and ended > since]
        return max(later - earlier for earlier, later in zip([since] + done, done)) if done else None
