"""A name whose addresses are backends, with a DNS server that other people wrote, killed, wiped and restarted under load.

dnsmasq (or unbound, with `--unbound`) answers on loopback; evenkeel serves HTTP from the backends that it names, and a client asks all the time.
Wanted: no request fails, whatever becomes of DNS, and traffic follows the answers that are good.

    cargo build --release && python3 benches/bars/discovery.py
"""

import argparse
import http.client
import os
import shutil
import socket
import tempfile
import threading
import time

from lab import Process, free_port, program, wait_until

NAME = "app.internal"


class Dns:
    """A DNS server on a port of its own, that knows what a file says."""

    def __init__(self, folder, kind):
        self.folder, self.kind, self.port, self.process = folder, kind, free_port(), None

    def say(self, addresses):
        self.addresses = addresses

    def start(self):
        if self.kind == "dnsmasq":
            hosts = os.path.join(self.folder, "hosts")
            with open(hosts, "w") as out:
                out.writelines(f"{address} {NAME}\n" for address in self.addresses)
            self.process = Process(
                shutil.which("dnsmasq") or "/usr/sbin/dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null",
                f"--port={self.port}", "--listen-address=127.0.0.1", "--bind-interfaces", f"--addn-hosts={hosts}", "--local-ttl=1",
                "--local=/internal/", "--log-facility=-", "--user=root", "--pid-file=",
            )
        else:
            conf = os.path.join(self.folder, "unbound.conf")
            with open(conf, "w") as out:
                out.write(f'server:\n  interface: 127.0.0.1@{self.port}\n  port: {self.port}\n  do-daemonize: no\n  username: ""\n  chroot: ""\n'
                          f'  directory: "{self.folder}"\n  pidfile: ""\n  use-syslog: no\n  do-not-query-localhost: no\n  local-zone: "internal." static\n')
                out.writelines(f'  local-data: "{NAME}. 1 IN A {address}"\n' for address in self.addresses)
                out.write("remote-control:\n  control-enable: no\n")
            self.process = Process(shutil.which("unbound") or "/usr/sbin/unbound", "-d", "-c", conf)

    def kill(self):
        self.process.process.kill()
        self.process.process.wait()


class Load:
    """Clients that ask all the time, and count who answers and what fails."""

    def __init__(self, port):
        self.port, self.over = port, False
        self.served, self.failed = {}, []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.ask, daemon=True) for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def ask(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        while not self.over:
            try:
                connection.request("GET", "/")
                answer = connection.getresponse()
                text = answer.read().decode()
                with self.lock:
                    if answer.status == 200:
                        self.served[text] = self.served.get(text, 0) + 1
                    else:
                        self.failed.append(f"{answer.status} {text[:80]}")
            except OSError as error:
                with self.lock:
                    self.failed.append(repr(error))
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            time.sleep(0.002)

    def since(self, seconds):
        """Who has answered in so many seconds from now on."""
        with self.lock:
            self.served = {}
        time.sleep(seconds)
        with self.lock:
            return sorted(text.split()[-1] for text in self.served)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--unbound", action="store_true", help="unbound in the place of dnsmasq")
    parser.add_argument("--away", type=float, default=20, help="seconds for which DNS is away")
    options = parser.parse_args()
    folder = tempfile.mkdtemp()
    port, listen = free_port(), free_port()
    # One port at three addresses, so that a name can stand for them.
    for number in (1, 2, 3):
        Process(program("fake_backend"), "--address", f"127.0.0.{number}", "--port", str(port), "--id", f"at-{number}")
    dns = Dns(folder, "unbound" if options.unbound else "dnsmasq")
    dns.say(["127.0.0.1", "127.0.0.2"])
    dns.start()
    wait_until("DNS listens", lambda: answers(dns.port))
    config = os.path.join(folder, "evenkeel.yaml")
    with open(config, "w") as out:
        out.write(f"resolver: {{servers: '127.0.0.1:{dns.port}', timeout: 500ms, hold: 2s, ttl_max: 1s}}\nadmin: {{socket: {folder}/admin.sock}}\n"
                  f"targets: {{web: {{protocol: http, listener: 127.0.0.1:{listen}, health_check: {{interval: 200ms}}, "
                  f"backends: [{{dns: {NAME}, port: {port}}}]}}}}\n")
    keel = Process(program("evenkeel"), "-c", config)
    wait_until("evenkeel listens", lambda: "listening" in keel.text())
    load, bad = Load(listen), []

    def check(what, wanted, seconds=2.0):
        end = time.monotonic() + 30
        seen = load.since(seconds)
        while seen != wanted and time.monotonic() < end:
            seen = load.since(seconds)
        failed = len(load.failed)
        print(f"{what}: {', '.join(seen)} answer, {failed} requests failed so far", flush=True)
        if seen != wanted or failed:
            bad.append(what)

    check("from the start", ["at-1", "at-2"])
    dns.kill()
    check(f"killed, for {options.away:.0f} s", ["at-1", "at-2"], options.away)
    dns.say([])
    dns.start()
    check(f"wiped (NXDOMAIN), for {options.away:.0f} s", ["at-1", "at-2"], options.away)
    dns.kill()
    dns.say(["127.0.0.2", "127.0.0.3"])
    dns.start()
    check("back with others", ["at-2", "at-3"])
    dns.kill()
    dns.say(["127.0.0.3"])
    dns.start()
    check("restarted with one", ["at-3"])
    load.over = True
    text = keel.text()
    for line in text.splitlines():
        if "DNS" in line:
            print("  " + line)
    for failure in load.failed[:5]:
        print("  " + failure)
    print("ok" if not bad else f"BAD: {', '.join(bad)}")
    raise SystemExit(1 if bad else 0)


def answers(port):
    """Whether a DNS server answers there."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in NAME.split("."))
    question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00\x00\x01\x00\x01"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(0.2)
        try:
            one.sendto(question, ("127.0.0.1", port))
            one.recv(4096)
            return True
        except OSError:
            return False


if __name__ == "__main__":
    try:
        main()
    finally:
        Process.end_all()
