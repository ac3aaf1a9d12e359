"""The exchange that is measured: `rig drive` -> evenkeel -> `rig backend`, with a counter around evenkeel."""

import json
import os
import pathlib
import re
import signal
import subprocess
import threading

# Nothing here takes this long, not even under valgrind on a busy machine.
PATIENCE = 120


def pin(free):
    """Gives this thread, and all that it starts, one processor of those that are free, to itself.

    The client has sent a wave to its end before the worker sees the first of it, so how many requests share a call does not depend on
    who is faster; and a wave that is cut in two costs a turn of the event loop more.
    """
    os.sched_setaffinity(0, {free.pop()})


class Failure(Exception):
    """Something that keeps a measurement from being made; its text is for the user."""


class Scenario:
    """What is sent, and how many requests each of the two runs of a counter has."""

    def __init__(
        self, name, client=(), backend=(), tls=False, routes=0, limited=False, guarded=False, cache="", top="",
        multiplexes=False, instructions=(2_000, 8_000), calls=(320, 1_920),
    ):
        self.name = name
        self.client = list(client)
        self.backend = list(backend)
        self.tls = tls
        self.routes = routes
        self.limited = limited or guarded
        self.guarded = guarded
        self.cache = cache
        self.top = top
        # The backend is asked over HTTP/2.
        self.multiplexes = multiplexes
        # Multiples of a wave, 16 if `client` doesn't say otherwise: the last one is as full as the others.
        self.instructions = instructions
        self.calls = calls


SCENARIOS = [
    Scenario("keep-alive"),
    # Both against `keep-alive`. The backend takes the traces as well; nobody takes the numbers.
    Scenario("traced", top="tracing: {{otlp: 'http://127.0.0.1:{port}', sample: 1%}}\n"),
    Scenario("statsd", top="metrics: {{statsd: {{to: 'udp://127.0.0.1:9', interval: 1m}}}}\n"),
    Scenario("close", client=["--close"]),
    Scenario("tls", tls=True),
    Scenario("routes", routes=100),
    Scenario("limited", routes=100, limited=True),
    Scenario("tls-routes", tls=True, routes=100),
    Scenario("guarded", tls=True, routes=100, guarded=True),
    # `hit` against `keep-alive`; the others against `routes`. `unmatched`: every route but the one that is asked for has a cache;
    # `past`: that one has it too, and its answers are stored for nobody.
    Scenario("unmatched", routes=100, cache="{ttl: off}"),
    Scenario("past", routes=100, cache="{ttl: off}"),
    Scenario("hit", cache="{ttl_override: 1h}", backend=["--cacheable"]),
    Scenario("hit-routes", routes=100, cache="{ttl_override: 1h}", backend=["--cacheable"]),
    Scenario("64k", client=["--body", "65536"], backend=["--body", "65536"]),
    # HTTP/2 over TLS: 32 requests at a time on each of 32 connections, and one on each of 64. Waves are of 1,024 and of 64.
    Scenario(
        "h2", tls=True, client=["--connections", "32", "--streams", "32", "--body", "13"], backend=["--body", "13"],
        instructions=(4_096, 12_288), calls=(4_096, 20_480),
    ),
    Scenario(
        "h2-1", tls=True, client=["--connections", "64", "--streams", "1", "--body", "13"], backend=["--body", "13"],
        instructions=(1_920, 8_000), calls=(640, 10_240),
    ),
    # HTTP/2 on both sides. The backend writes the answers of a turn together, as those do that speak it.
    Scenario(
        "h2-h2", tls=True, client=["--connections", "32", "--streams", "32", "--body", "13"], multiplexes=True,
        instructions=(4_096, 12_288), calls=(4_096, 20_480),
    ),
]

CONFIG = """\
workers: 1
access_log: {{path: {folder}/{name}.log, format: json}}
targets:
  measured:
    protocol: {protocol}
    listener: 127.0.0.1:0
    health_check: off
    breaker: {{failures: 20, open: 5s, statuses: [500-599]}}
    outlier: {{failures: 5, max_ejected: 50%}}
    retries: {{attempts: 3, on: [connect, reset, 503], budget: 20%}}
    max_in_flight: 1000
    queue: {{size: 1000, timeout: 5s}}
    {tls}
    backends: [{{host: 127.0.0.1, port: {port}}}]
"""


# The same with a listener of its own; the request has the last route of the last host.
ROUTED = CONFIG.replace("    protocol: {protocol}\n    listener: 127.0.0.1:0\n", "").replace("    {tls}\n", "") + """\
{limits}{lists}listeners:
  front:
    bind: 127.0.0.1:0
    protocol: {protocol}
    {tls}
    {access}
    headers:
      request: {{set: {{X-Env: prod}}}}
      response: {{set: {{Strict-Transport-Security: max-age=31536000}}}}
    routes:
{routes}
"""

# One route for all.
CACHED = CONFIG.replace("    protocol: {protocol}\n    listener: 127.0.0.1:0\n", "").replace("    {tls}\n", "") + """\
listeners:
  front:
    bind: 127.0.0.1:0
    protocol: {protocol}
    routes: [{{target: measured, cache: {cache}}}]
"""

# An evenkeel that answers by itself.
ANSWERING = """\
workers: 1
listeners:
  answering:
    bind: 127.0.0.1:0
    protocol: http
    http2: on
    routes: [{respond: {status: 200, body: xxxxxxxxxxxxx}}]
"""

TLS = "tls: {cert_file: cert.pem, cert_key: key.pem}"
# Clients may show a certificate, and rig does not.
TLS_ASKING = "tls: {cert_file: cert.pem, cert_key: key.pem, client_ca: cert.pem, client_auth: optional}"

# A limit by the client's address on every route, which refuses nobody: what it costs is the difference to `routes`.
LIMITS = "rate_limits: {counted: {rate: 1000000/s, burst: 1000000}}\n"

# Lists that rig's address is not in: of the listener, and of every route.
LISTS = "access_lists: {crawlers: {deny: [192.0.2.0/24, 198.51.100.7, '2001:db8::/32']}}\n"


def routes(scenario):
    """So many routes in ten hosts, of which the last is the one that is asked for.

    Where they are guarded, each has a limit and a list, and before it comes one for the clients that have another certificate.
    """
    hosts = [f"www-{number}.example" for number in range(9)] + ["localhost"]
    paths = [f"/api/other-{number}" for number in range(scenario.routes // len(hosts) - 1)] + ["/api/items"]
    route = "      - {{match: {{host: {}, path_prefix: {}{}}}, target: measured{}}}"
    limit = ", rate_limit: counted" if scenario.limited else ""
    lists = ", access: {deny: [203.0.113.0/24]}" if scenario.guarded else ""
    robots = [', client_cert: {subject: "*CN=robot*"}'] if scenario.guarded else []
    cache = f", cache: {scenario.cache}" if scenario.cache else ""
    conditions = [*robots, ""]
    lines = [
        route.format(host, path, condition, limit + lists + cache) for host in hosts for path in paths for condition in conditions
    ]
    if scenario.name == "unmatched":
        lines[-1] = lines[-1].replace(cache, "")
    return "\n".join(lines)


class Process:
    """A process that is ended with its block, and what it says line by line."""

    def __init__(self, command, stream, **options):
        self.said = []
        options[stream] = subprocess.PIPE
        # A group of its own: what a counter has started ends with it, and with it who holds the stream.
        self.process = subprocess.Popen(
            [str(part) for part in command], text=True, errors="replace", start_new_session=True, **options
        )
        self.stream = getattr(self.process, stream)
        self.heard = threading.Condition()
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self):
        for line in self.stream:
            with self.heard:
                self.said.append(line.rstrip("\n"))
                self.heard.notify()
        with self.heard:
            self.said.append(None)
            self.heard.notify()

    def wait_for(self, pattern):
        """The match in the first line that has one; a process that ends before is a failure."""
        with self.heard:
            at = 0
            while True:
                while at < len(self.said):
                    if self.said[at] is None:
                        raise Failure(f"{self.name()} ended before it listened:\n" + self.tail())
                    if found := re.search(pattern, self.said[at]):
                        return found
                    at += 1
                if not self.heard.wait(PATIENCE):
                    raise Failure(f"{self.name()} does not get ready:\n" + self.tail())

    def name(self):
        return pathlib.Path(self.process.args[0]).name

    def tail(self):
        return "\n".join(line for line in self.said[-20:] if line is not None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.listener.join()
        self.stream.close()


class Lab:
    """A folder with a certificate, and the two binaries."""

    def __init__(self, evenkeel, rig, folder):
        self.evenkeel, self.rig, self.folder = evenkeel, rig, pathlib.Path(folder)
        subprocess.run([rig, "certificate", folder], check=True)

    def run(self, scenario, requests, counter, pids=lambda process: [process.pid]):
        """Sends `requests` through an evenkeel that runs under the command `counter`.

        `pids` tells which process is evenkeel: a counter may be its parent.
        """
        with self.backend(scenario) as backend:
            found = backend.wait_for(r"listening \S*:(\d+) |:(\d+)$")
            port = found[1] or found[2]
            config = self.folder / f"{scenario.name}.yaml"
            tls = (TLS_ASKING if scenario.routes else TLS) if scenario.tls else ""
            tls += "\n    upstream_protocol: h2" if scenario.multiplexes else ""
            protocol = "https" if scenario.tls else "http"
            text = ROUTED if scenario.routes else CACHED if scenario.cache else CONFIG
            config.write_text(
                scenario.top.format(port=port)
                + text.format(
                    folder=self.folder, name=scenario.name, protocol=protocol, tls=tls, port=port, cache=scenario.cache,
                    routes=routes(scenario), limits=LIMITS if scenario.limited else "",
                    lists=LISTS if scenario.guarded else "", access="access: [crawlers]" if scenario.guarded else "",
                )
            )
            command = [*counter, self.evenkeel, "--config", config]
            with Process(command, "stderr", cwd=self.folder, env=environment()) as proxy:
                address = proxy.wait_for(r"listening (?:.*address=)?([^\s,]+)")[1]
                self.drive(scenario, address, requests)
                for pid in pids(proxy.process):
                    os.kill(pid, signal.SIGINT)
                try:
                    code = proxy.process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    raise Failure("evenkeel does not end at SIGINT:\n" + proxy.tail()) from None
                if code != 0:
                    raise Failure(f"evenkeel ended with {code}:\n" + proxy.tail())

    def backend(self, scenario):
        if not scenario.multiplexes:
            return Process([self.rig, "backend", *scenario.backend], "stdout")
        config = self.folder / "answering.yaml"
        config.write_text(ANSWERING)
        return Process([self.evenkeel, "--config", config], "stderr", cwd=self.folder, env=environment())

    def drive(self, scenario, address, requests):
        tls = ["--tls", self.folder / "cert.pem"] if scenario.tls else []
        command = [self.rig, "drive", address, "--requests", str(requests), *tls, *scenario.client]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0 or json.loads(done.stdout)["errors"] != 0:
            raise Failure(f"{scenario.name}: rig drive failed:\n{done.stdout}{done.stderr}")


def environment():
    """What a shell happens to set changes neither the amount of work nor what is logged."""
    return {"PATH": os.environ.get("PATH", ""), "HOME": "/", "LC_ALL": "C"}
