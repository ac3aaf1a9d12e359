#!/usr/bin/env python3
"""Webhooks: a backend dies and comes back, with a receiver that is well and with one that is down for 60 s while evenkeel is killed.
See README.md beside this file. Builds nothing."""

import argparse
import datetime
import hashlib
import hmac
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

from lab import Process, accepts, free_port, program, wait_until  # noqa: E402

SECRET = "0123456789abcdef0123456789abcdef"
PATH = "/T0/a-path-that-nobody-sees"
# From the line of the log to the request.
AT_MOST = 1.0


class Receiver:
    """Keeps what it is sent, with the moment; may be down."""

    def __init__(self):
        self.port, self.seen, self.server = free_port(), [], None

    def up(self):
        seen = self.seen

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                signature = self.headers.get("Evenkeel-Signature", "")
                seen.append((time.time(), self.path, signature, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def down(self):
        self.server.shutdown()
        self.server.server_close()

    def messages(self):
        return [json.loads(body) for *_, body in self.seen]


def is_signed(signature, body):
    found = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", signature)
    if not found:
        return False
    expected = hmac.new(SECRET.encode(), found[1].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, found[2]) and abs(time.time() - int(found[1])) < 300


def backend(port):
    fake = Process(program("fake_backend"), "--port", str(port))
    wait_until("the backend listens", lambda: accepts(port))
    return fake


def told(line):
    """When the log has told it."""
    at = json.loads(line)["timestamp"].replace("Z", "+00:00")
    return datetime.datetime.fromisoformat(at).timestamp()


class Bar:
    def __init__(self, seconds):
        self.seconds, self.failed, self.logs = seconds, False, []
        self.folder = tempfile.mkdtemp(prefix="evenkeel-bar-")
        self.receiver, self.ports = Receiver(), [free_port(), free_port()]
        self.listener = free_port()
        self.config = os.path.join(self.folder, "evenkeel.yaml")
        with open(os.path.join(self.folder, "hook.key"), "w") as file:
            file.write(SECRET + "\n")
        backends = "".join(f"      - {{name: b{n}, host: 127.0.0.1, port: {port}}}\n" for n, port in enumerate(self.ports))
        with open(self.config, "w") as file:
            file.write(f"name: bar\nstate_dir: state\nlog_format: json\nwatch: off\nadmin: {{socket: admin.sock}}\n"
                       f"webhooks: [{{url: 'http://127.0.0.1:{self.receiver.port}{PATH}', secret_file: hook.key}}]\n"
                       f"targets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:{self.listener}\n"
                       f"    health_check: {{interval: 100ms, fall: 2, rise: 2}}\n    backends:\n{backends}")

    def start(self):
        process = Process(program("evenkeel"), "--config", self.config)
        wait_until("evenkeel listens", lambda: accepts(self.listener))
        self.logs.append(process)
        return process

    def line(self, process, kind, count=1):
        lines = lambda: [line for line in process.text().splitlines() if f'"kind":"{kind}"' in line and '"b0"' in line]
        wait_until(f"{kind} is told", lambda: len(lines()) >= count, 30)
        return lines()[count - 1]

    def judge(self, name, is_good, more=""):
        self.failed |= not is_good
        print(f"{'ok  ' if is_good else 'FAIL'}  {name}{': ' if more else ''}{more}", flush=True)

    def run(self):
        self.receiver.up()
        fakes = [backend(port) for port in self.ports]
        process = self.start()
        self.line(process, "backend_up")
        # What is well at the start is no news.
        for count, (kind, act) in enumerate([("backend_down", "kill"), ("backend_up", "start")], 1):
            if act == "kill":
                fakes[0].end(signal.SIGKILL)
            else:
                fakes[0] = backend(self.ports[0])
            at = told(self.line(process, kind, 1 if act == "kill" else 2))
            wait_until(f"{kind} comes", lambda: len(self.receiver.seen) >= count, 5)
            late = self.receiver.seen[count - 1][0] - at
            self.judge(f"{kind}: one POST at most {AT_MOST:.0f} s after the log", late <= AT_MOST, f"{late * 1000:.1f} ms")
        time.sleep(1)
        events = [message["event"] for message in self.receiver.messages()]
        self.judge("one POST each", events == ["backend_down", "backend_up"], str(events))
        self.down_and_killed(process, fakes)

    def down_and_killed(self, process, fakes):
        self.receiver.down()
        began, before = time.monotonic(), len(self.receiver.seen)
        fakes[0].end(signal.SIGKILL)
        self.line(process, "backend_down", 2)
        fakes[0] = backend(self.ports[0])
        self.line(process, "backend_up", 3)
        # On the disk within a moment; then it dies without a word.
        time.sleep(self.seconds / 6)
        process.end(signal.SIGKILL)
        time.sleep(self.seconds / 6)
        process = self.start()
        time.sleep(max(0, self.seconds - (time.monotonic() - began)))
        self.judge("nothing came while the receiver was down", len(self.receiver.seen) == before)
        self.receiver.up()
        up = time.monotonic()
        wait_until("both come", lambda: len({m["id"] for m in self.receiver.messages()[before:]}) >= 2, 60)
        took = time.monotonic() - up
        # A message too many would come right behind them.
        time.sleep(2)
        messages = self.receiver.messages()[before:]
        first = list(dict.fromkeys((message["id"], message["event"]) for message in messages))
        events = [event for _, event in first]
        self.judge(f"down for {self.seconds:.0f} s and killed meanwhile: both come, in order", events == ["backend_down", "backend_up"],
                   f"{events}, {len(messages)} requests, {took:.1f} s after it was up")
        self.judge("each with its one id", len({identity for identity, _ in first}) == 2 == len(set(events)))
        objects = {message["object"] for message in self.receiver.messages()}
        self.judge("of the backend, by the node", objects == {"web/b0"} and messages[0]["node"] == "bar", str(objects))
        signed = [path == PATH and is_signed(signature, body) for _, path, signature, body in self.receiver.seen]
        self.judge("all are signed", all(signed), f"{len(signed)}")
        status = subprocess.run([program("evenkeel"), "status", "--json", "--socket", os.path.join(self.folder, "admin.sock")],
                                capture_output=True, text=True).stdout
        hook = json.loads(status)["webhooks"][0]
        self.judge("the status says so", hook["waiting"] == 0 and hook["delivered"] >= 2 and hook["failed"] > 0, json.dumps(hook))
        everything = status + "".join(log.text() for log in self.logs)
        self.judge("nothing that is said has the URL's path", PATH not in everything and PATH.split("/")[2] not in everything)

    def end(self):
        for process in Process.started:
            process.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seconds", type=float, default=60, help="for how long the receiver is down")
    bar = Bar(words.parse_args().seconds)
    try:
        bar.run()
    finally:
        bar.end()
    sys.exit(bar.failed)


if __name__ == "__main__":
    main()
