"""What the causes of alerts are made with: an evenkeel with a config of its own, its backends, and clients that go on until they are told."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

from lab import Client, Process, accepts, free_port, program, wait_until


class Fake:
    """A backend that can be ended, started again on its port, and told how to behave."""

    def __init__(self, *more, address="127.0.0.1"):
        self.port, self.more, self.address, self.process = free_port(), more, address, None
        self.start()

    def start(self):
        self.process = Process(program("fake_backend"), "--address", self.address, "--port", str(self.port), *self.more)
        wait_until("the backend", self.is_there, 60)

    def is_there(self):
        try:
            socket.create_connection((self.address, self.port), 1).close()
            return True
        except OSError:
            return False

    def kill(self):
        self.process.end(signal.SIGKILL)

    def behave(self, query):
        urllib.request.urlopen(f"http://{self.address}:{self.port}/_fake?{query}", data=b"", timeout=5).close()

    def row(self, more=""):
        return f"{{host: {self.address}, port: {self.port}{more}}}"


class Traffic:
    """Clients that ask for one of `paths` again and again, each `pause` seconds after the answer before."""

    def __init__(self, port, paths=("/",), clients=4, pause=0.02, more=""):
        self.port, self.paths, self.pause, self.more, self.is_over = port, paths, pause, more, False
        self.threads = [threading.Thread(target=self.ask, args=(number,), daemon=True) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def ask(self, number):
        client = None
        while not self.is_over:
            try:
                client = client or Client(self.port)
                number += 1
                status, head, _ = client.request(path=self.paths[number % len(self.paths)], more=self.more)
                if status == 0 or b"close" in head.lower():
                    client.close()
                    client = None
            except OSError:
                client = None
            time.sleep(self.pause)

    def end(self):
        self.is_over = True


class Bed:
    """An evenkeel of its own. `body` is its config but for what all of them have."""

    def __init__(self, body, stderr=None, limit=None, watch="off"):
        self.folder = tempfile.mkdtemp(prefix="evenkeel-alert-")
        self.path = os.path.join(self.folder, "evenkeel.yaml")
        self.metrics, self.front, self.keel, self.fakes, self.traffic = free_port(), free_port(), None, [], []
        self.stderr, self.watch, self.body = stderr, watch, body

    def fake(self, *more, **named):
        self.fakes.append(Fake(*more, **named))
        return self.fakes[-1]

    def ask(self, paths=("/",), **named):
        self.traffic.append(Traffic(self.front, paths, **named))
        return self.traffic[-1]

    def quiet(self):
        for each in self.traffic:
            each.end()
        self.traffic.clear()

    def write(self, body):
        with open(self.path, "w") as file:
            file.write(f"workers: 2\nname: alerts\nstate_dir: {self.folder}/state\nadmin: {{socket: off}}\nwatch: {self.watch}\n"
                       f"metrics: {{listener: 127.0.0.1:{self.metrics}}}\n{body}")

    def begin(self):
        self.body = self.body(self) if callable(self.body) else self.body
        self.write(self.body)
        self.start()

    def start(self):
        self.keel = Keel(self.path, self.stderr)
        wait_until("evenkeel", lambda: accepts(self.metrics) and accepts(self.front) or self.keel.process.poll() is not None, 60)
        if self.keel.process.poll() is not None:
            raise SystemExit(self.tail())

    def reload(self, body):
        self.write(body)
        self.keel.process.send_signal(signal.SIGHUP)

    def pid(self):
        return self.keel.process.pid

    def value(self, series):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        return next((float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(series)), None)

    def tail(self):
        return self.keel.text()[-2000:] if self.keel and self.stderr is None else ""

    def end(self):
        self.quiet()
        for each in [self.keel] + [fake.process for fake in self.fakes]:
            if each:
                each.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


class Keel(Process):
    def __init__(self, path, stderr):
        if stderr is None:
            super().__init__(program("evenkeel"), "--config", path)
            return
        self.process = subprocess.Popen([program("evenkeel"), "--config", path], stdout=subprocess.DEVNULL, stderr=stderr)
        Process.started.append(self)


class StandIn:
    """Serves series whose values are chosen, where evenkeel can't be made to."""

    def __init__(self, series):
        import http.server
        stand_in, self.values = self, dict.fromkeys(series, 0)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                text = "".join(f"{name} {value}\n" for name, value in stand_in.values.items()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.metrics = self.server.server_address[1]

    def begin(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def tail(self):
        return ""

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def certificate(folder, seconds):
    """A certificate that ends so many seconds from now, at a.pem, put there as renewals are: renamed."""
    new = os.path.join(folder, "new")
    os.makedirs(new, exist_ok=True)
    at = lambda moment: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(moment))
    with open(f"{new}/ca.cnf", "w") as file:
        file.write(f"[ca]\ndefault_ca=d\n[d]\ndatabase={new}/index\nserial={new}/serial\nnew_certs_dir={new}\ndefault_md=sha256\npolicy=p\n"
                   "x509_extensions=e\nunique_subject=no\n[p]\ncommonName=supplied\n[e]\nsubjectAltName=DNS:localhost\n")
    open(f"{new}/index", "w").close()
    with open(f"{new}/serial", "w") as file:
        file.write(f"{time.time_ns():020x}"[-16:] + "\n")
    run = lambda *words: subprocess.run(["openssl", *words], check=True, capture_output=True)
    run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost",
        "-keyout", f"{new}/key", "-out", f"{new}/csr")
    run("ca", "-batch", "-config", f"{new}/ca.cnf", "-selfsign", "-keyfile", f"{new}/key", "-in", f"{new}/csr", "-out", f"{new}/pem",
        "-notext", "-startdate", at(time.time() - 3600), "-enddate", at(time.time() + seconds))
    for name in ["key", "pem"]:
        os.rename(f"{new}/{name}", f"{folder}/a.{name}")
