"""What the bars share: the programs under test, a raw client, and what the kernel knows of a process."""

import os
import re
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILT = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release")


def program(name):
    return os.path.join(BUILT, name)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_until(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"not in time: {what}")
        time.sleep(0.005)


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


class Process:
    """A program of ours, ended when the bar ends."""

    started = []

    def __init__(self, *args, descriptors=None):
        # Appended to, so that reading it moves nobody's place.
        self.log = tempfile.TemporaryFile("a+b")
        limit = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))) if descriptors else None
        self.process = subprocess.Popen(args, stdout=self.log, stderr=self.log, preexec_fn=limit)
        Process.started.append(self)

    def text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def status(self, field):
        with open(f"/proc/{self.process.pid}/status") as lines:
            return int(re.search(rf"{field}:\s+(\d+)", lines.read()).group(1))

    def rss_kib(self):
        return self.status("VmRSS")

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as line:
            fields = line.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu_exact(self):
        """Like cpu_seconds, but in nanoseconds of the scheduler instead of ticks of its clock."""
        return sum(self.cpu_by_thread().values())

    def cpu_by_thread(self):
        """The same for each thread: its name and number, and seconds."""
        spent = {}
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            folder = f"/proc/{self.process.pid}/task/{task}"
            with open(f"{folder}/schedstat") as line, open(f"{folder}/comm") as name:
                spent[name.read().strip(), task] = int(line.read().split()[0]) / 1e9
        return spent

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(60)

    @staticmethod
    def end_all():
        for each in Process.started:
            if each.process.poll() is None:
                each.process.kill()
                each.process.wait()
        Process.started.clear()


class Backend(Process):
    def __init__(self, number, *more, port=None):
        self.port = port or free_port()
        super().__init__(os.path.join(BUILT, "fake_backend"), "--id", f"fake-{number}", "--protocol", "http",
                         "--port", str(self.port), *more)
        wait_until("the backend", lambda: accepts(self.port))

    def behave(self, query):
        """As `POST /_fake` has it: `status=503`, `reset=1`."""
        urllib.request.urlopen(f"http://127.0.0.1:{self.port}/_fake?{query}", data=b"", timeout=5).close()


class Keel(Process):
    """evenkeel in front of backends, each a port here or a host with its port; `more` goes into the target, `top` above it.

    Or with a config of another shape, which `config` makes for the port.
    """

    def __init__(self, ports=(), more="", top="", health="health_check: off", descriptors=None, config=None):
        self.port = free_port()
        places = (port if isinstance(port, tuple) else ("127.0.0.1", port) for port in ports)
        lines = "".join(f"      - {{host: {host}, port: {port}}}\n" for host, port in places)
        self.config = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        self.config.write(config(self.port) if config else f"{top}\ntargets:\n  web:\n    protocol: http\n    listener: {self.port}\n"
                          f"    {health}\n{more}    backends:\n{lines}")
        self.config.flush()
        super().__init__(os.path.join(BUILT, "evenkeel"), "--config", self.config.name, descriptors=descriptors)
        wait_until("evenkeel", lambda: accepts(self.port) or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise SystemExit(self.text())


class Client:
    """One raw HTTP/1.1 connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.held = b""

    def request(self, method="GET", path="/", body=b"", more=""):
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\nHost: bar\r\n{length}{more}\r\n".encode() + body)
        return self.answer()

    def answer(self):
        """(status, head, body); status 0: the connection ended first."""
        while b"\r\n\r\n" not in self.held:
            piece = self.socket.recv(65536)
            if not piece:
                return 0, self.held, b""
            self.held += piece
        head, _, self.held = self.held.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)content-length: *(\d+)", head)
        length = int(found.group(1)) if found else 0
        while len(self.held) < length:
            piece = self.socket.recv(65536)
            if not piece:
                return 0, head, self.held
            self.held += piece
        body, self.held = self.held[:length], self.held[length:]
        return int(head[9:12]), head, body

    def close(self):
        self.socket.close()


def together(count, work):
    """Runs work(number) in so many threads and gives what each returned."""
    results = [None] * count

    def run(number):
        results[number] = work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
