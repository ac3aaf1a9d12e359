"""Why each alert fires: a cause is there after the first step of its function and gone after the second; both steps say what they did."""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import subprocess
import threading
import time

from alert_lab import Bed, StandIn, certificate
from lab import accepts, wait_until

CAUSES = []
CHECKED = "health_check: {interval: 200ms, timeout: 200ms, fall: 2, rise: 1}"
DESCRIPTORS = resource.RLIMIT_NOFILE


class Cause:
    def __init__(self, alerts, bed, acts, is_real):
        self.alerts, self.bed, self.acts, self.is_real = alerts, bed, acts, is_real


def cause(*alerts, bed, is_real=True):
    def keep(acts):
        CAUSES.append(Cause(alerts, bed, acts, is_real))
        return acts

    return keep


def web(fakes=2, more="health_check: off", top="", **named):
    """A bed with one HTTP target; `more` has its keys."""

    def body(bed):
        rows = "".join(f"      - {bed.fake().row()}\n" for _ in range(fakes))
        return (f"{top}\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:{bed.front}\n"
                + "".join(f"    {line}\n" for line in more.splitlines()) + f"    backends:\n{rows}")

    return lambda: Bed(body, **named)


@cause("EvenkeelGone", bed=web())
def gone(bed):
    bed.keel.end(signal.SIGKILL)
    yield "the process is killed"
    bed.start()
    yield "started again"


@cause("EvenkeelNotReady", bed=web(top="shutdown_delay: 5m"))
def not_ready(bed):
    bed.keel.process.send_signal(signal.SIGTERM)
    yield "SIGTERM, with a shutdown_delay"
    bed.keel.end(signal.SIGKILL)
    bed.start()
    yield "another process in its place"


@cause("EvenkeelTargetDown", "EvenkeelProbesFail", bed=web(more=CHECKED))
def target_down(bed):
    for fake in bed.fakes:
        fake.kill()
    yield "both backends are killed"
    for fake in bed.fakes:
        fake.start()
    yield "both started again"


@cause("EvenkeelTargetHalfDown", bed=web(more=CHECKED))
def half_down(bed):
    bed.fakes[0].kill()
    yield "one of two backends is killed"
    bed.fakes[0].start()
    yield "started again"


@cause("EvenkeelErrors", bed=web(more="health_check: off\noutlier: off"))
def errors(bed):
    bed.ask(clients=4)
    bed.fakes[0].behave("status=500")
    yield "one of two backends answers 500 to 200 requests/s"
    bed.fakes[0].behave("reset=1")
    yield "it answers 200 again"


@cause("EvenkeelBackendFails", "EvenkeelRetries", bed=web(more="health_check: off\noutlier: off\nbreaker: off"))
def backend_fails(bed):
    bed.ask(clients=4)
    bed.fakes[0].behave("fault=reset-unanswered")
    yield "one of two backends resets each request, retries cover for it"
    bed.fakes[0].behave("reset=1")
    yield "it answers again"


@cause("EvenkeelBreakerOpens", bed=web(more="health_check: off\noutlier: off"))
def breaker(bed):
    bed.ask(clients=4)
    bed.fakes[0].behave("fault=reset-unanswered")
    yield "one of two backends resets each request, until its breaker opens"
    bed.fakes[0].behave("reset=1")
    yield "it answers again"


def crowd():
    """A target of 26 backends, of which one process has twelve."""

    def body(bed):
        many = bed.fake("--count", "12", "--spread-addresses", address="127.0.1.1")
        rows = "".join(f"      - {{host: 127.0.1.{number}, port: {many.port}}}\n" for number in range(1, 13))
        rows += "".join(f"      - {fake.row()}\n" for fake in [bed.fake() for _ in range(2)])
        return (f"targets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:{bed.front}\n    health_check: off\n"
                f"    outlier: {{max_ejected: 100%}}\n    backends:\n{rows}")

    return Bed(body)


@cause("EvenkeelEjections", bed=crowd)
def ejections(bed):
    bed.ask(clients=4)
    bed.fakes[0].kill()
    yield "12 of 14 backends refuse connections under 200 requests/s"
    bed.fakes[0].start()
    yield "they are started again"


@cause("EvenkeelQueueFull", "EvenkeelQueues",
       bed=web(fakes=1, more="health_check: off\nmax_in_flight: 1\nqueue: {size: 4}"))
def queue(bed):
    bed.fakes[0].behave("latency=200")
    bed.ask(clients=12, pause=0.05)
    yield "12 clients, a backend with max_in_flight: 1 that takes 200 ms, and a queue of 4"
    bed.quiet()
    bed.fakes[0].behave("reset=1")
    bed.ask(clients=1, pause=0.1)
    yield "one client, and the backend answers at once"


@cause("EvenkeelSlowByItself", bed=web(fakes=1, more="health_check: off\nmax_in_flight: 1\nqueue: {size: 20, timeout: 10s}"))
def waiting(bed):
    bed.fakes[0].behave("latency=100")
    bed.ask(clients=12, pause=0.05)
    yield "12 clients, a backend with max_in_flight: 1 that takes 100 ms, and a queue in which all of them have room"
    bed.quiet()
    bed.fakes[0].behave("reset=1")
    bed.ask(clients=1, pause=0.1)
    yield "one client, and the backend answers at once"


@cause("EvenkeelWorkerLags", bed=web())
def lags(bed):
    is_over = threading.Event()

    def stop_and_go():
        while not is_over.wait(0.1):
            os.kill(bed.pid(), signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(bed.pid(), signal.SIGCONT)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    yield "the process gets no processor for 300 ms of each 400 ms (SIGSTOP, SIGCONT)"
    is_over.set()
    thread.join()
    yield "it gets one again"


@cause("EvenkeelConnectionsNearLimit", "EvenkeelConnectionsRefused", bed=web(top="max_connections: 20"))
def connections(bed):
    held = []

    def hold():
        for _ in range(40):
            one = socket.create_connection(("127.0.0.1", bed.front), 5)
            # Half of a head, so that it is no idle connection.
            one.sendall(b"GET / HTTP/1.1\r\n")
            held.append(one)

    is_over = threading.Event()

    def again():
        while not is_over.wait(0.5):
            while held:
                held.pop().close()
            hold()

    hold()
    thread = threading.Thread(target=again)
    thread.start()
    yield "40 clients again and again, max_connections: 20"
    is_over.set()
    thread.join()
    while held:
        held.pop().close()
    yield "they have left"


def open_descriptors(bed):
    return len(os.listdir(f"/proc/{bed.pid()}/fd"))


@cause("EvenkeelDescriptorsNearLimit", bed=web())
def descriptors(bed):
    before = resource.prlimit(bed.pid(), DESCRIPTORS)
    resource.prlimit(bed.pid(), DESCRIPTORS, (open_descriptors(bed) + 1, before[1]))
    yield "prlimit leaves it one descriptor more than it has"
    resource.prlimit(bed.pid(), DESCRIPTORS, before)
    yield "it may have as many as before"


@cause("EvenkeelAcceptFails", bed=web())
def accepting(bed):
    before = resource.prlimit(bed.pid(), DESCRIPTORS)
    resource.prlimit(bed.pid(), DESCRIPTORS, (10, before[1]))
    bed.ask(clients=4)
    yield "prlimit leaves it fewer descriptors than it has, and clients come"
    resource.prlimit(bed.pid(), DESCRIPTORS, before)
    yield "it may have as many as before"


def shown():
    def body(bed):
        certificate(bed.folder, 90 * 86400)
        return (f"listeners:\n  front:\n    bind: 127.0.0.1:{bed.front}\n    protocol: https\n"
                f"    tls: {{certificates: [{{cert_file: {bed.folder}/a.pem, cert_key: {bed.folder}/a.key}}]}}\n"
                f"    routes: [{{target: web}}]\ntargets:\n  web: {{health_check: off, backends: [{bed.fake().row()}]}}\n")

    return Bed(body, watch="on")


@cause("EvenkeelCertificateExpires", "EvenkeelCertificateExpired", bed=shown)
def expires(bed):
    certificate(bed.folder, 30)
    yield "a certificate that ends after 30 s is put in place of one for 90 days"
    certificate(bed.folder, 90 * 86400)
    yield "one for 90 days is put in its place"


@cause("EvenkeelReloadRefused", bed=web())
def refused(bed):
    bed.reload(bed.body + "no_such_key: 1\n")
    yield "a config with a key that does not exist, SIGHUP"
    bed.reload(bed.body)
    yield "the right one, SIGHUP"


class Frozen:
    """A thread that a debugger has stopped. The calls are of one thread, as ptrace wants it."""

    ATTACH, DETACH, ALL = 16, 17, 0x40000000

    def __init__(self, thread):
        self.thread, self.c = thread, ctypes.CDLL(None, use_errno=True)
        self.call(self.ATTACH)
        os.waitpid(thread, self.ALL)

    def call(self, what):
        if self.c.ptrace(what, self.thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def go_on(self):
        self.call(self.DETACH)


@cause("EvenkeelSnapshotsPileUp", bed=web(top="# 0"))
def snapshots(bed):
    tasks = f"/proc/{bed.pid()}/task"
    name = lambda task: open(f"{tasks}/{task}/comm").read().strip()
    worker = next(int(task) for task in os.listdir(tasks) if name(task).removeprefix("evenkeel-").isdigit())
    frozen = Frozen(worker)
    try:
        for number in range(1, 5):
            bed.reload(bed.body.replace("# 0", f"logging: {'debug' if number % 2 else 'info'}"))
            time.sleep(1)
        yield "one worker's thread is stopped (ptrace), and four configs come"
    finally:
        frozen.go_on()
    yield "it goes on"


def logged():
    def body(bed):
        os.symlink("/dev/full", f"{bed.folder}/access.log")
        return (f"access_log: {{path: {bed.folder}/access.log}}\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:{bed.front}\n"
                f"    health_check: off\n    backends: [{bed.fake().row()}]\n")

    return Bed(body)


@cause("EvenkeelAccessLogDrops", bed=logged)
def log_drops(bed):
    # Some 4 MiB wait before anything is lost.
    bed.ask(paths=["/" + "x" * 3500], clients=8, pause=0)
    yield "the access log is on a disk without room (/dev/full), under load"
    os.unlink(f"{bed.folder}/access.log")
    bed.keel.process.send_signal(signal.SIGUSR1)
    wait_until("the log is written", lambda: os.path.exists(f"{bed.folder}/access.log") and os.path.getsize(f"{bed.folder}/access.log") > 0)
    yield "a file with room in its place, SIGUSR1"


READERS = {}


def unread():
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    bed = web(fakes=1, more="health_check: off\nbreaker: off\noutlier: off\nretries: off", top="logging: debug")()
    bed.stderr = writer
    READERS[bed] = (reader, writer)
    return bed


@cause("EvenkeelEventsLost", bed=unread)
def events_lost(bed):
    reader, writer = READERS.pop(bed)
    # Each request is an event: some 4,000 wait before any is lost.
    bed.fakes[0].kill()
    bed.ask(clients=8, pause=0)
    yield "nobody reads standard error, at level debug, and the backend refuses connections under load"
    bed.quiet()
    os.close(writer)
    threading.Thread(target=lambda: [None for _ in iter(lambda: os.read(reader, 65536), b"")], daemon=True).start()
    yield "it is read again, and the load has ended"


FLAPPING = 2500


def hooked():
    def body(bed):
        fake = bed.fake("--count", str(FLAPPING), "--spread-addresses", address="127.1.0.1")
        rows = "".join(f"      - {{host: 127.1.{number // 256}.{number % 256}, port: {fake.port}}}\n" for number in range(1, FLAPPING + 1))
        return (f"webhooks: [{{url: 'http://127.0.0.1:9/hook', events: [backend_down, backend_up]}}]\ntargets:\n  web:\n    protocol: http\n"
                f"    listener: 127.0.0.1:{bed.front}\n    health_check: {{interval: 500ms, timeout: 1s, fall: 1, rise: 1}}\n    backends:\n{rows}")

    return Bed(body)


@cause("EvenkeelWebhookDrops", bed=hooked)
def hook_drops(bed):
    up = lambda: bed.value('evenkeel_target_backends{target="web",state="up"}')
    wait_until("all are up", lambda: up() == FLAPPING, 60)
    for flap in range(6):
        (bed.fakes[0].start if flap % 2 else bed.fakes[0].kill)()
        wait_until("all were told", lambda: up() == (FLAPPING if flap % 2 else 0), 60)
    yield f"the receiver is gone, and {FLAPPING} backends go and come until more than 10,000 messages wait"
    yield "they have come to rest"


@cause("EvenkeelRateLimitCrowded",
       bed=web(fakes=1, top="rate_limits: {keys: {rate: 1/h, burst: 1, by: {header: X-Key}}}", more="health_check: off\nrate_limit: [keys]"))
def crowded(bed):
    is_over = threading.Event()

    def strangers(kind):
        number = 0
        while not is_over.is_set():
            with socket.create_connection(("127.0.0.1", bed.front), 20) as connection:
                # Each key twice: whoever was refused keeps its place.
                keys = [f"{kind}-{number + one // 2}" for one in range(200)]
                number += 100
                connection.sendall("".join(f"GET / HTTP/1.1\r\nHost: bar\r\nX-Key: {key}\r\n\r\n" for key in keys).encode())
                got = 0
                while got < 200:
                    piece = connection.recv(262_144)
                    if not piece:
                        break
                    got += piece.count(b"HTTP/1.1 ")

    threads = [threading.Thread(target=strangers, args=(kind,)) for kind in range(3)]
    for thread in threads:
        thread.start()
    yield "ten thousands of keys, each of which is refused, for a table of 65,536"
    is_over.set()
    for thread in threads:
        thread.join()
    yield "they have left"


@cause("EvenkeelPanics", bed=lambda: StandIn(["evenkeel_panics_total"]), is_real=False)
def panics(stand_in):
    stand_in.values["evenkeel_panics_total"] += 1
    yield "an exporter in evenkeel's place counts a panic"
    yield "it counts no other"
