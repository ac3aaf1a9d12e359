"""Backends that misbehave, and the proxies in front of them: each is begun with what a row wants and ended with it."""

import http.client
import json
import os
import pathlib
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))

from process import Failure, Program, accepts, free_port, raise_limits, run, wait_until  # noqa: E402

ROOT = HERE.parents[1]
BUILT = pathlib.Path(os.environ.get("BUILT") or pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release")
CORES = os.sched_getaffinity(0)


@dataclass
class Row:
    """What one row found: a table, and what falls short of the bar."""

    head: list
    lines: list = field(default_factory=list)
    short: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def want(self, holds, what):
        """Notes what falls short; gives the word for a cell."""
        if not holds:
            self.short.append(what)
        return "ok" if holds else "SHORT"


class Backend:
    """One fake at its port, which it keeps over ends and beginnings of its process."""

    def __init__(self, stand, name, args=()):
        self.stand, self.name, self.args, self.port = stand, name, list(args), free_port()
        self.program = None
        self.begin()

    def begin(self, *more):
        self.launch(*more)
        wait_until(f"{self.name} listens", lambda: accepts(self.port))

    def launch(self, *more):
        self.program = Program([BUILT / "fake_backend", "--id", self.name, "--port", str(self.port), *self.args, *more], CORES,
                               self.stand.folder / f"{self.name}.log")

    def end(self):
        self.program.end()

    def ask(self, method, query=""):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, f"/_fake?{query}")
            answer = connection.getresponse()
            text = answer.read().decode()
        except OSError as error:
            raise Failure(f"{self.name}: {error}") from None
        finally:
            connection.close()
        if answer.status != 200:
            raise Failure(f"{self.name}: {text.strip()}")
        return text

    def behave(self, query):
        self.ask("POST", query)

    def stat(self, name):
        return int(re.search(rf"^{name}=(\d+)$", self.ask("GET"), re.MULTILINE)[1])


class Stand:
    """Where one row's programs run; leaving it ends them all."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.peers = {name: shutil.which(name) or f"/usr/sbin/{name}" for name in ["nginx", "haproxy"]}
        self.peers = {name: path for name, path in self.peers.items() if os.access(path, os.X_OK)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        Program.end_all()

    def backends(self, name, *each):
        """One backend for each list of flags."""
        return [Backend(self, f"{name}-{number}", args) for number, args in enumerate(each)]

    def evenkeel(self, targets, workers=2):
        """`targets`: the keys of each in YAML's flow form (all but protocol and listener), and its backends. Gives their ports."""
        listeners = {name: free_port() for name in targets}
        text = f"workers: {workers}\naccess_log: {{path: {self.folder}/access.log, format: json}}\ntargets:\n"
        for name, (keys, backends) in targets.items():
            points = ", ".join(f"{{host: 127.0.0.1, port: {port}, name: {label}}}" for label, port in places(backends))
            lines = ["protocol: http", f"listener: {listeners[name]}", *keys, f"backends: [{points}]"]
            text += f"  {name}:\n" + "".join(f"    {line}\n" for line in lines)
        self.start("evenkeel", [BUILT / "evenkeel", "--config", self.write("evenkeel.yaml", text)], listeners.values())
        return listeners

    def records(self):
        """The access log of the evenkeel that ran here, once that has ended."""
        with open(self.folder / "access.log") as lines:
            return [json.loads(line) for line in lines]

    def haproxy(self, sections):
        """`sections`: lines of each `backend` section and its backends. Gives their ports; none where it is not installed."""
        if "haproxy" not in self.peers:
            return {}
        listeners = {name: free_port() for name in sections}
        text = "global\n    nbthread 2\n    maxconn 4000\ndefaults\n    mode http\n    timeout connect 3s\n    timeout client 60s\n"
        text += "    timeout server 60s\n"
        for name, (keys, backends) in sections.items():
            servers = [f"server {label} 127.0.0.1:{port}" for label, port in places(backends)]
            lines = [f"bind 127.0.0.1:{listeners[name]}", f"default_backend {name}"]
            text += f"frontend front_{name}\n" + "".join(f"    {line}\n" for line in lines)
            text += f"backend {name}\n" + "".join(f"    {line}\n" for line in [*keys, *servers])
        self.start("haproxy", [self.peers["haproxy"], "-db", "-f", self.write("haproxy.cfg", text)], listeners.values())
        return listeners

    def nginx(self, sections):
        """`sections`: lines of each `upstream`, lines of its `location`, a suffix for each `server`, its backends. Gives their
        ports; none where it is not installed."""
        if "nginx" not in self.peers:
            return {}
        listeners = {name: free_port() for name in sections}
        temporary = "".join(f"    {name}_temp_path {self.folder}/{name};\n"
                            for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        text = ("user root;\n" if os.getuid() == 0 else "") + f"worker_processes 1;\ndaemon off;\npid {self.folder}/nginx.pid;\n"
        text += f"error_log {self.folder}/error.log crit;\nevents {{ worker_connections 4000; }}\nhttp {{\n    access_log off;\n{temporary}"
        for name, (upstream, location, suffix, backends) in sections.items():
            servers = [f"server 127.0.0.1:{port}{suffix};" for _, port in places(backends)]
            text += f"    upstream {name} {{\n" + "".join(f"        {line}\n" for line in [*upstream, *servers, "keepalive 32;"]) + "    }\n"
            proxied = [f"proxy_pass http://{name};", "proxy_http_version 1.1;", 'proxy_set_header Connection "";', *location]
            text += f"    server {{\n        listen 127.0.0.1:{listeners[name]};\n        location / {{\n"
            text += "".join(f"            {line}\n" for line in proxied) + "        }\n    }\n"
        path = self.write("nginx.conf", text + "}\n")
        self.start("nginx", [self.peers["nginx"], "-c", path, "-e", self.folder / "error.log"], listeners.values())
        return listeners

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def start(self, name, args, ports):
        program = Program(args, CORES, self.folder / f"{name}.log")
        for port in ports:
            wait_until(f"{name} listens", lambda port=port: accepts(port) or not program.alive())
        if not program.alive():
            raise Failure(f"{name} did not start: {program.text().strip()[-1500:]}")


def places(backends):
    """(name, port) of each; a bare number is a port where nobody listens."""
    return [(f"nobody-{each}", each) if isinstance(each, int) else (each.name, each.port) for each in backends]


def load(ports, seconds, rate, after=0.0, paths=1):
    """What `rig clients` told about each of these listeners, all loaded at the same time."""

    def one(numbered):
        number, port = numbered
        args = [BUILT / "rig", "clients", f"127.0.0.1:{port}", "--rate", str(rate), "--seconds", str(seconds), "--after", str(after),
                "--paths", str(paths), "--seed", str(number)]
        return json.loads(run(list(map(str, args)), CORES, seconds=seconds + 120))

    with ThreadPoolExecutor(len(ports)) as pool:
        return dict(zip(ports, pool.map(one, enumerate(ports.values(), 1))))


def share(part, whole):
    return f"{100 * part / max(whole, 1):.2f} %"


def statuses(told):
    """`200: 5, 503: 2`; an answer that never came is a `-`."""
    return ", ".join(f"{'-' if status == '0' else status}: {count}" for status, count in told["statuses"].items())
