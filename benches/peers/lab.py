"""One run: backends, proxies and load around each other, round by round."""

import http.client
import os
import socket
import ssl

import machine
from process import Failure, Program, Unheard, accepts, free_port, wait_until, write
from proxies import Site
from report import Cell

# One load without an answer must not end a run of many rounds.
ATTEMPTS = 3


class Lab:
    """What all scenarios share: where things run, how long, and who takes part."""

    def __init__(self, folder, proxies, options):
        self.folder, self.proxies, self.options = folder, proxies, options
        self.proxy_core, self.load_cores, self.both_cores = machine.cores()
        self.files = machine.issue(folder)
        self.upload = os.path.join(folder, "upload")
        with open(self.upload, "wb") as file:
            file.write(b"x" * 1024**2)
        self.log = os.path.join(folder, "load.log")
        self.count = 0

    def place(self, name):
        self.count += 1
        return os.path.join(self.folder, f"{self.count}-{name}")

    def rig(self, *args):
        """A program of benches/rig on the load's side that runs until it is ended."""
        return Program([self.options.rig, *map(str, args)], self.load_cores, self.place("rig"))

    def backends(self, *args, hosts=("127.0.0.1", "127.0.0.1")):
        """Backends in one process of the cheapest kind; one port for each time that an address is named."""
        ports, order = {}, []
        for host in hosts:
            number = order.count(host)
            order.append(host)
            ports.setdefault(number, free_port())
        listen = [part for port in ports.values() for part in ("--listen", f"0.0.0.0:{port}")]
        program = self.rig("backend", *listen, *args)
        for port in ports.values():
            wait_until("the backend", lambda: accepts(port) or not program.alive())
        if not program.alive():
            raise Failure(f"the backend did not start: {program.text()}")
        seen, points = {}, []
        for host in hosts:
            points.append((host, ports[seen.get(host, 0)]))
            seen[host] = seen.get(host, 0) + 1
        return points

    def answering(self, length):
        """A backend that speaks HTTP/2 and writes the answers of a turn together: evenkeel, with an answer of its own."""
        port, folder = free_port(), self.place("answering")
        os.makedirs(folder)
        text = (f"workers: 1\nlisteners:\n  web:\n    bind: 127.0.0.1:{port}\n    protocol: http\n    http2: on\n"
                f"    routes: [{{respond: {{status: 200, body: {'x' * length}}}}}]\n")
        args = [self.proxies[0].program, "--config", write(folder, "evenkeel.yaml", text)]
        program = Program(args, self.load_cores, os.path.join(folder, "log"))
        wait_until("the backend", lambda: accepts(port) or not program.alive())
        if not program.alive():
            raise Failure(f"the backend did not start: {program.text()}")
        return [("127.0.0.1", port)]

    def server(self, kind):
        """The other side of `rig pingpong` and `rig bulk`."""
        port = free_port()
        program = self.rig(kind, "--serve", f"127.0.0.1:{port}")
        wait_until(kind, lambda: accepts(port) or not program.alive())
        return [("127.0.0.1", port)]

    def begin(self, mode, backends, threads=1, kept=300, only=None, logs=False, cached=0, multiplexes=False):
        """Every proxy, or the first `only`, in front of these backends; `cached` as a `Site` has it."""
        cores = self.proxy_core if threads == 1 else self.both_cores
        site = Site(mode, backends, self.files, threads, logs or self.options.logs, self.options.descriptors, kept, cached,
                    multiplexes)
        members = [proxy for proxy in self.proxies if proxy.takes_part(cached, multiplexes)]
        return [proxy.begin(self.place(proxy.name), site, cores) for proxy in members[:only]]

    def measure(self, running, load):
        """A cell: the proxy's CPU while `load` runs, for each unit of what it did."""
        for _ in range(ATTEMPTS):
            before = running.program.cpu_ns()
            try:
                seen = load(running)
                break
            except Unheard as unheard:
                failure = unheard
        else:
            raise failure
        running.program.settle()
        spent = seen.spent or running.program.cpu_ns() - before
        if not running.program.alive():
            raise Failure(f"{running.name} has ended: {running.program.text()[-500:]}")
        if not seen.units:
            raise Failure(f"{running.name} served nothing")
        return Cell(spent / 1e3 / seen.units, seen.units / seen.seconds, seen.p50, seen.p99, seen.errors)

    def rounds(self, sides, load, rounds=None):
        """A B C, A B C, …: what changes on the machine meets all of them. The first round warms up and is thrown away."""
        cells = {side.name: [] for side in sides}
        for number in range((rounds or self.options.rounds) + 1):
            for side in sides:
                cell = self.measure(side, load)
                if number:
                    cells[side.name].append(cell)
        return cells


def check(running, tls=None, length=None, method="GET", body=None, count=8):
    """Right status and right length, on one connection and on new ones."""
    def connect():
        if not tls:
            return http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
        return http.client.HTTPSConnection("localhost", running.port, timeout=20, context=ssl.create_default_context(cafile=tls))

    one = connect()
    for headers in [{}] * count + [{"Connection": "close"}]:
        one.request(method, "/", body=body, headers=headers)
        answer = one.getresponse()
        got = answer.read()
        if answer.status != 200 or (length is not None and len(got) != length):
            raise Failure(f"{running.name} answers {answer.status} with {len(got)} bytes instead of 200 with {length}")
    one.close()


def check_bytes(running, kind):
    """The same over TCP, with the servers of rig: an echo, or a source that sends what it is asked for."""
    with socket.create_connection(("127.0.0.1", running.port), 20) as one, one.makefile("rb") as answers:
        for asked in [b"x" * 128, b"y" * 128] if kind == "pingpong" else [b"d"]:
            one.sendall(asked)
            wanted = asked if kind == "pingpong" else b"x" * 1024**2
            if answers.read(len(wanted)) != wanted:
                raise Failure(f"{running.name} does not give back what was sent")


def agreed(running, authority):
    """The version and suite of a TLS session, as a client with OpenSSL's defaults agrees on it."""
    context = ssl.create_default_context(cafile=authority)
    with socket.create_connection(("127.0.0.1", running.port), 20) as plain, \
            context.wrap_socket(plain, server_hostname="localhost") as secure:
        return f"{secure.version()} {secure.cipher()[0]}"
