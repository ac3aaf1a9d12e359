"""A backend that was known to be dead before a reload: how many requests it gets after one. HAProxy, as it comes, beside it."""

import os
import re
import shutil
import subprocess
import time

from lab import Client, Process, accepts, free_port, wait_until
from reload_lab import Fakes, Folder, Running, knows
import lab

# After each reload, and how many of them in a second.
REQUESTS, RATE = 300, 100


def ask(port):
    """So many requests on connections of their own, evenly; gives how many were answered well."""
    due, good = time.monotonic(), 0
    for _ in range(REQUESTS):
        time.sleep(max(0, due - time.monotonic()))
        due += 1 / RATE
        try:
            client = Client(port)
            good += client.request(more="Connection: close\r\n")[0] == 200
            client.close()
        except OSError:
            pass
    return good


def evenkeel(folder, ports, reloads):
    top = "watch: off\n" if knows(lab.program("evenkeel"), "watch: off") else ""

    def text(number):
        backends = "".join(f"      - {{host: 127.0.0.1, port: {port}}}\n" for port in ports)
        return (f"{top}log_format: json\ntargets:\n  web:\n    protocol: http\n    listener: 0\n    health_check: {{path: /health}}\n"
                f"    backends:\n{backends}"
                f"  other:\n    protocol: http\n    listener: 0\n    timeouts: {{connect: {1000 + number}ms}}\n"
                f"    backends: [{{host: 127.0.0.1, port: {ports[0]}}}]\n")

    keel = Running(text(0), folder)
    wait_until("the verdict", lambda: keel.said(f"backend web/127.0.0.1:{ports[1]} is down") and keel.said(f"backend web/127.0.0.1:{ports[0]} is up"))
    found = []
    for number in range(reloads):
        before = Fakes.requests(ports[1])
        said, _ = keel.reload(text(number + 1))
        if not said["message"].startswith("reloaded: "):
            raise SystemExit(said["message"])
        good = ask(keel.port("web"))
        found.append((Fakes.requests(ports[1]) - before, REQUESTS - good))
    keel.end()
    return found


class HaProxy(Process):
    def __init__(self, config, *more):
        super().__init__(shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", config, *more)


def haproxy(folder, ports, reloads):
    port, config = free_port(), folder.file("haproxy.cfg")
    servers = "".join(f"    server s{number} 127.0.0.1:{at} check\n" for number, at in enumerate(ports))
    with open(config, "w") as file:
        file.write(f"""global
    stats socket {folder.file("stats")} expose-fd listeners
defaults
    mode http
    timeout connect 3s
    timeout client 60s
    timeout server 60s
frontend web
    bind 127.0.0.1:{port}
    default_backend all
backend all
    balance roundrobin
    option httpchk GET /health
{servers}""")

    def is_down():
        before = Fakes.requests(ports[1])
        for _ in range(4):
            client = Client(port)
            client.request()
            client.close()
        return Fakes.requests(ports[1]) == before

    running = HaProxy(config)
    wait_until("haproxy", lambda: accepts(port))
    found = []
    for _ in range(reloads):
        wait_until("the verdict", is_down, 30)
        before = Fakes.requests(ports[1])
        # As its unit of systemd does it: a successor with the listening sockets of the one before, which then ends softly.
        successor = HaProxy(config, "-x", folder.file("stats"), "-sf", str(running.process.pid))
        running.process.wait(30)
        running = successor
        ask(port)
        found.append(Fakes.requests(ports[1]) - before)
    running.end()
    return found


def run(options, verdict):
    folder = Folder()
    try:
        good, dead = Fakes(1).ports[0], Fakes(1, "--unhealthy").ports[0]
        found = evenkeel(folder, [good, dead], options.reloads)
        sent, bad = [one for one, _ in found], sum(failed for _, failed in found)
        verdict("dead", not any(sent) and not bad, f"requests to the dead backend, of {REQUESTS} after each of {options.reloads} reloads: {sent}; "
                f"{bad} failed")
        if shutil.which("haproxy") or os.path.exists("/usr/sbin/haproxy"):
            said = subprocess.run([shutil.which("haproxy") or "/usr/sbin/haproxy", "-v"], capture_output=True, text=True).stdout
            version = re.search(r"version (\S+)", said).group(1)
            found = haproxy(folder, [good, dead], min(options.reloads, 5))
            verdict("dead, beside it", None, f"HAProxy {version}, `-sf` and checks with their defaults: "
                    f"{found} of {REQUESTS}")
        else:
            verdict("dead, beside it", None, "HAProxy is not installed")
    finally:
        folder.end()
