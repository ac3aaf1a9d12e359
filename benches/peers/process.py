"""Programs under measurement: started on chosen cores, weighed by the kernel, always ended by us."""

import os
import random
import resource
import signal
import socket
import subprocess
import time

# Below the range from which the kernel takes ports for connections: a port from there could be taken
# again between the look and the use, and sockets of ours could not be told from those of the load.
PORTS = range(12000, 32000)
given = set()


def free_port():
    while True:
        port = random.choice(PORTS)
        if port in given:
            continue
        with socket.socket() as one:
            try:
                one.bind(("0.0.0.0", port))
            except OSError:
                continue
        given.add(port)
        return port


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def wait_until(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"not in time: {what}")
        time.sleep(0.005)


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def raise_limits():
    """Thousands of connections need as many descriptors; children inherit what we have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Failure(Exception):
    """A run that cannot go on, said in one line."""


class Unheard(Failure):
    """A load that had nothing to tell: the machine hardly ran it."""


class Program:
    """A started program and the processes that it has made."""

    running = []

    def __init__(self, args, cores, log):
        self.log = log
        with open(log, "ab") as file:
            # A session of its own: Ctrl-C reaches this script alone, which then ends everything in order.
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
                                            preexec_fn=lambda: os.sched_setaffinity(0, cores))
        Program.running.append(self)

    def alive(self):
        return self.process.poll() is None

    def text(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def family(self):
        """The process and those below it (nginx: a master and its worker)."""
        found, left = [], [self.process.pid]
        while left:
            pid = left.pop()
            found.append(pid)
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/children") as children:
                        left += map(int, children.read().split())
            except OSError:
                pass
        return found

    def cpu_ns(self):
        """Nanoseconds on a core so far, of all threads, ended ones too: the processes' own CPU clocks, which
        have no ticks. (The clock of another process has this number: clock_getcpuclockid(3).)"""
        return sum(time.clock_gettime_ns(~pid << 3 | 2) for pid in self.family())

    def settle(self):
        """Waits until it rests: what the load has left may still have to be closed."""
        before = self.cpu_ns()
        for _ in range(100):
            time.sleep(0.03)
            now = self.cpu_ns()
            if now - before < 1_000_000:
                return
            before = now

    def memory_kib(self, field):
        total = 0
        for pid in self.family():
            with open(f"/proc/{pid}/{'smaps_rollup' if field == 'Rss' else 'status'}") as lines:
                total += next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))
        return total

    def end(self):
        if self.alive():
            family = self.family()
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                for pid in family:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                self.process.wait()
        if self in Program.running:
            Program.running.remove(self)

    @staticmethod
    def end_all():
        for each in list(Program.running):
            each.end()


def run(args, cores, seconds=120, may_fail=False):
    """Runs a program to its end and gives what it printed; ended when it takes too long or we are."""
    process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    try:
        out, errors = process.communicate(timeout=seconds)
    except BaseException as cause:
        process.kill()
        process.wait()
        if isinstance(cause, subprocess.TimeoutExpired):
            raise Failure(f"took more than {seconds} s: {' '.join(args)}") from None
        raise
    if process.returncode != 0 and not (may_fail and out):
        raise Failure(f"{' '.join(args)} ended with {process.returncode}: {(errors or out).strip()[-500:]}")
    return out
