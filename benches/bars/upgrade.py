#!/usr/bin/env python3
"""Upgrades of a process under 2,000 requests/s of everything, 5 s apart with `shutdown_timeout: 10s`: HTTP/1.1 and HTTP/2 on connections that stay, new connections with and without TLS, WebSockets that come
again when they are closed, TCP and UDP. Nothing fails, no counter falls from one scrape to the next, sessions of TLS are resumed as before, and at most one datagram is lost in each upgrade.
`--times 20` (default 100). See README.md beside this file. Builds nothing."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
from lab import Backend, Process, accepts, free_port, program, wait_until  # noqa: E402

RATE, APART, HERE = 1000, 5.0, os.path.dirname(os.path.abspath(__file__))


def upgrade(admin):
    done = subprocess.run([program("evenkeel"), "upgrade", "--json", "--socket", admin], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise SystemExit(f"no upgrade: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def is_there(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Scraper(threading.Thread):
    """Reads all metrics four times a second: whatever only grows does."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.over, self.scrapes, self.gaps, self.fallen, self.before = port, threading.Event(), 0, 0, [], {}

    def read(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            text, now, grows = answer.read().decode(), {}, False
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                grows = not line.endswith(" gauge")
            elif grows and not line.startswith("#"):
                series, value = line.rsplit(" ", 1)
                now[series] = float(value)
        return now

    def run(self):
        while not self.over.wait(0.25):
            try:
                now = self.read()
            except OSError:
                # Whoever has just been followed tells nothing any more.
                self.gaps += 1
                continue
            self.fallen += [f"{series}: {value}, then {now.get(series)}" for series, value in self.before.items() if now.get(series, -1) < value]
            self.before, self.scrapes = now, self.scrapes + 1


class Load:
    """One of upgrade_load.py."""

    def __init__(self, *words):
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "upgrade_load.py"), *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def end(self):
        return json.loads(self.process.communicate(b"", 60)[0])


def main():
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--times", type=int, default=100)
    times, heirs, loads = said.parse_args().times, [], []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program("rig"), "certificate", folder], check=True)
        backends, admin = [Backend(number) for number in range(3)], os.path.join(folder, "admin.sock")
        port, secure, tcp, udp, metrics, echo = (free_port() for _ in range(6))
        Process(sys.executable, os.path.join(HERE, "upgrade_load.py"), "echo", str(echo), str(echo))
        wait_until("the backend of TCP", lambda: accepts(echo))
        places = ", ".join(f"{{host: 127.0.0.1, port: {backend.port}}}" for backend in backends)
        path = os.path.join(folder, "evenkeel.yaml")
        with open(path, "w") as config:
            config.write(f"""name: bar
state_dir: {folder}/state
workers: 2
shutdown_timeout: 10s
admin: {{socket: {admin}}}
metrics: {{listener: '127.0.0.1:{metrics}'}}
listeners:
  web: {{bind: '127.0.0.1:{port}', protocol: http, http2: on, routes: [{{target: web}}]}}
  secure: {{bind: '127.0.0.1:{secure}', protocol: https, tls: {{cert_file: cert.pem, cert_key: key.pem}}, routes: [{{target: web}}]}}
targets:
  web: {{health_check: {{path: /health, interval: 1s}}, backends: [{places}]}}
  raw: {{protocol: tcp, listener: '127.0.0.1:{tcp}', backends: [{{host: 127.0.0.1, port: {echo}}}]}}
  datagrams: {{protocol: udp, listener: '127.0.0.1:{udp}', backends: [{{host: 127.0.0.1, port: {echo}}}]}}
""")
        keel = Process(program("evenkeel"), "--config", path)
        try:
            wait_until("evenkeel", lambda: accepts(port) and accepts(metrics) or keel.process.poll() is not None)
            span = int(times * APART) + 5
            rig = subprocess.Popen([program("rig"), "clients", f"127.0.0.1:{port}", "--rate", str(RATE), "--seconds", str(span)], stdout=subprocess.PIPE)
            authority = os.path.join(folder, "cert.pem")
            loads = [Load("http2", port, secure, authority), Load("secured", secure, authority), Load("others", port, tcp, udp)]
            scraper = Scraper(metrics)
            scraper.start()
            took = []
            for _ in range(times):
                time.sleep(APART)
                begun = time.monotonic()
                heirs.append(upgrade(admin)["process"])
                took.append(time.monotonic() - begun)
            line = json.loads(rig.communicate()[0])
            http2, secured, others = (load.end() for load in loads)
            loads = []
            wait_until("all but the last have ended", lambda: keel.process.poll() is not None and not any(map(is_there, heirs[:-1])), 30)
            scraper.over.set()
            scraper.join()
            took.sort()
            print(f"{times} upgrades, each in {took[len(took) // 2] * 1000:.0f} ms, at most {took[-1] * 1000:.0f} ms", flush=True)
            kept = sum(count for status, count in line["statuses"].items() if status != "200")
            print(f"HTTP/1.1, kept: {kept} of {line['requests']} failed; p99 {line['p99_us'] / 1000:.1f} ms, longest {line['max_us'] / 1000:.0f} ms")
            rows = {"HTTP/2": http2, "TLS, new": secured, "HTTP/1.1, new": others["new"], "WebSocket messages": others["websocket"], "TCP connections": others["tcp"]}
            for what, one in rows.items():
                print(f"{what}: {one['failures']} of {one['good'] + one['failures']} failed {one['failed'] or ''}")
            sockets, datagrams = others["websocket"], others["udp"]
            print(f"HTTP/2 connections opened again: {http2['others']}; WebSockets closed and opened again: {sockets['reconnects']}, cut without a word: {sockets['cut']}")
            first, asked = secured["first"]
            before, since = first / max(asked, 1), secured["resumed"] / max(secured["good"] - 4, 1)
            print(f"TLS sessions resumed: {before:.1%} before the first upgrade, {since:.1%} in all")
            print(f"datagrams lost: {datagrams['failures']} of {datagrams['good'] + datagrams['failures']} {datagrams['failed'] or ''}")
            print(f"scrapes: {scraper.scrapes}, {scraper.gaps} of them again; series that have fallen: {len(scraper.fallen)} {scraper.fallen[:3]}", flush=True)
            failed = kept + sum(one["failures"] for one in rows.values()) + sockets["cut"]
            if failed or scraper.fallen or datagrams["failures"] > times or since < before - 0.02:
                raise SystemExit("not met")
        finally:
            for load in loads:
                load.process.kill()
            for heir in filter(is_there, heirs):
                os.kill(heir, 9)


if __name__ == "__main__":
    try:
        main()
    finally:
        Process.end_all()
