#!/usr/bin/env python3
"""Upgrades of a process that serves 2,000 requests/s on connections that stay, and as many more as four clients have answered one after the other on a new connection each, 5 s apart, with
`shutdown_timeout: 10s`: no request fails, and each process that was replaced ends by itself. `--times 20` (default 100). See README.md beside this file. Builds nothing."""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from lab import Backend, Process, accepts, free_port, program, wait_until  # noqa: E402

RATE, APART = 2000, 5.0


def upgrade(admin):
    done = subprocess.run([program("evenkeel"), "upgrade", "--json", "--socket", admin], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise SystemExit(f"no upgrade: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


class Newcomer(threading.Thread):
    """Asks on a new connection each time."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.over, self.served, self.failed = port, False, 0, []

    def run(self):
        while not self.over:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 10) as one:
                    one.sendall(b"GET / HTTP/1.1\r\nHost: bar\r\nConnection: close\r\n\r\n")
                    answer = b""
                    while more := one.recv(65536):
                        answer += more
                if not answer.startswith(b"HTTP/1.1 200"):
                    raise OSError(f"answered {answer[:40]}")
                self.served += 1
            except OSError as error:
                self.failed.append(str(error))
            time.sleep(0.005)


def is_there(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def main():
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--times", type=int, default=100)
    times, heirs = said.parse_args().times, []
    with tempfile.TemporaryDirectory() as folder:
        backends, port, admin = [Backend(number) for number in range(3)], free_port(), os.path.join(folder, "admin.sock")
        places = ", ".join(f"{{host: 127.0.0.1, port: {backend.port}}}" for backend in backends)
        path = os.path.join(folder, "evenkeel.yaml")
        with open(path, "w") as config:
            config.write(f"""name: bar
state_dir: {folder}/state
workers: 2
shutdown_timeout: 10s
admin: {{socket: {admin}}}
targets: {{web: {{protocol: http, listener: '127.0.0.1:{port}', health_check: {{path: /health, interval: 1s}}, backends: [{places}]}}}}
""")
        keel = Process(program("evenkeel"), "--config", path)
        try:
            wait_until("evenkeel", lambda: accepts(port) or keel.process.poll() is not None)
            span = int(times * APART) + 5
            load = subprocess.Popen([program("rig"), "clients", f"127.0.0.1:{port}", "--rate", str(RATE), "--seconds", str(span)], stdout=subprocess.PIPE)
            newcomers = [Newcomer(port) for _ in range(4)]
            for newcomer in newcomers:
                newcomer.start()
            took = []
            for number in range(times):
                time.sleep(APART)
                begun = time.monotonic()
                heirs.append(upgrade(admin)["process"])
                took.append(time.monotonic() - begun)
            line = json.loads(load.communicate()[0])
            for newcomer in newcomers:
                newcomer.over = True
                newcomer.join()
            failed = sum(count for status, count in line["statuses"].items() if status != "200")
            strange = [error for newcomer in newcomers for error in newcomer.failed]
            served = sum(newcomer.served for newcomer in newcomers)
            wait_until("all but the last have ended", lambda: keel.process.poll() is not None and not any(map(is_there, heirs[:-1])), 30)
            took.sort()
            print(f"{times} upgrades, each in {took[len(took) // 2] * 1000:.0f} ms, at most {took[-1] * 1000:.0f} ms: {failed} of {line['requests']} requests on connections that "
                  f"stay failed, {len(strange)} of {served + len(strange)} on new ones; p99 {line['p99_us'] / 1000:.1f} ms, longest {line['max_us'] / 1000:.0f} ms", flush=True)
            if failed or strange:
                raise SystemExit(f"requests failed: {line['statuses']} {strange[:5]}")
        finally:
            for heir in filter(is_there, heirs):
                os.kill(heir, 9)


if __name__ == "__main__":
    try:
        main()
    finally:
        Process.end_all()
