"""UDP: what a datagram costs beside a pump that looks at nothing and beside nginx, and what is lost.

    cargo build --release && python3 benches/bars/datagrams.py [cost] [queries] [moves] [storm]

`cost`     processor time for each exchange (a datagram there, and one back), interleaved in one run: evenkeel, a pump with the same sockets, and
           nginx's `stream` where it is installed; for 64 lasting flows, and for one question on each flow
`queries`  20,000 questions a second for dnsmasq: what is lost behind evenkeel, and without it
`moves`    a backend is killed, and one is drained, under load: what each flow loses
`storm`    10,000 flows at the bound, and 200,000 forged senders, in a network namespace of its own (needs root)
"""

import argparse
import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from lab import Process, program, wait_until

RIG = program("rig")
FAILED = []


def check(what, holds):
    print(f"  {'ok' if holds else 'FAILED'}: {what}", flush=True)
    if not holds:
        FAILED.append(what)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Echo(Process):
    def __init__(self):
        super().__init__(RIG, "datagrams", "--serve", "127.0.0.1:0")
        wait_until("the echo", lambda: "\n" in self.text())
        self.port = int(self.text().split(":")[1])


class Pump(Process):
    def __init__(self, port):
        super().__init__(RIG, "datagrams", "--pump", "127.0.0.1:0", "--connect", f"127.0.0.1:{port}")
        wait_until("the pump", lambda: "\n" in self.text())
        self.port = int(self.text().split(":")[1])


class Keel(Process):
    def __init__(self, ports, more="", top=""):
        self.folder = tempfile.mkdtemp(prefix="keel-")
        self.port = free_port()
        backends = "".join(f"      - {{name: b{n}, host: 127.0.0.1, port: {port}}}\n" for n, port in enumerate(ports))
        config = os.path.join(self.folder, "evenkeel.yaml")
        with open(config, "w") as out:
            out.write(f"workers: 1\n{top}targets:\n  game:\n    protocol: udp\n    listener: 127.0.0.1:{self.port}\n{more}    backends:\n{backends}")
        environment = f"XDG_RUNTIME_DIR={self.folder}", f"XDG_STATE_HOME={self.folder}/state"
        super().__init__("env", *environment, program("evenkeel"), "--config", config)
        wait_until("evenkeel", lambda: "listening" in self.text())

    def command(self, *words):
        environment = dict(os.environ, XDG_RUNTIME_DIR=self.folder, XDG_STATE_HOME=f"{self.folder}/state")
        config = os.path.join(self.folder, "evenkeel.yaml")
        return subprocess.run([program("evenkeel"), *words, "--config", config], env=environment, capture_output=True, text=True, check=False)


class Nginx(Process):
    def __init__(self, port, once):
        self.folder = tempfile.mkdtemp(prefix="nginx-")
        self.port = free_port()
        module = next((path for path in ("/usr/lib/nginx/modules/ngx_stream_module.so",) if os.path.exists(path)), None)
        load = f"load_module {module};\n" if module else ""
        # One answer ends a session of one question, as its manual has it for DNS; evenkeel has it as `limits.replies`.
        ends = "proxy_responses 1;" if once else ""
        config = os.path.join(self.folder, "nginx.conf")
        with open(config, "w") as out:
            out.write(f"{load}daemon off; master_process off; worker_processes 1; pid {self.folder}/pid; error_log {self.folder}/error.log;\n"
                      f"events {{ worker_connections 16384; }}\nstream {{ server {{ listen 127.0.0.1:{self.port} udp; "
                      f"proxy_pass 127.0.0.1:{port}; proxy_timeout 30s; {ends} }} }}\n")
        super().__init__(shutil.which("nginx"), "-c", config, "-e", f"{self.folder}/error.log", descriptors=min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        time.sleep(0.3)


def load(port, *more, during=None):
    """Runs a load; gives what it says, and what `during` gives of the time in which it is measured."""
    process = subprocess.Popen([RIG, "datagrams", "--connect", f"127.0.0.1:{port}", *map(str, more)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "start\n"
    before = during() if during else 0
    assert process.stdout.readline() == "stop\n"
    after = during() if during else 0
    said = json.loads(process.stdout.readline())
    process.wait(60)
    return said, after - before


def cost(rounds=7):
    for name, more in [("64 lasting flows", ["--flows", 64]), ("one question on each flow", ["--flows", 64, "--once"])]:
        once = "--once" in more
        echo = Echo()
        made = {"pump": lambda: Pump(echo.port), "evenkeel": lambda: Keel([echo.port], more="    limits: {replies: 1}\n" if once else "")}
        if shutil.which("nginx"):
            made["nginx"] = lambda: Nginx(echo.port, once)
        spent = {who: [] for who in made}
        for turn in range(rounds):
            order = list(made) if turn % 2 == 0 else list(made)[::-1]
            for who in order:
                proxy = made[who]()
                said, seconds = load(proxy.port, *more, "--seconds", 1.5, during=proxy.cpu_exact)
                proxy.end(signal.SIGKILL)
                if said["lost"]:
                    print(f"  {who}: {said['lost']} lost")
                spent[who].append(seconds / max(said["exchanges"], 1) * 1e9)
        print(f"{name}: nanoseconds of a processor for each exchange, the middle of {rounds}")
        middle = {who: statistics.median(times) for who, times in spent.items()}
        for who, times in spent.items():
            ratios = [ours / theirs for ours, theirs in zip(spent["evenkeel"], times)]
            print(f"  {who:9} {middle[who]:7.0f}   ({min(times):.0f} to {max(times):.0f})   evenkeel / {who}: {statistics.median(ratios):.2f}")
        ratio = lambda who: statistics.median(ours / theirs for ours, theirs in zip(spent["evenkeel"], spent[who]))
        check(f"at most 1.15 times the pump: {ratio('pump'):.2f}", ratio("pump") <= 1.15)
        if "nginx" in spent:
            check(f"at most 0.95 times nginx: {ratio('nginx'):.2f}", ratio("nginx") <= 0.95)
        Process.end_all()


def queries(rate=20_000, seconds=5):
    dnsmasq = shutil.which("dnsmasq") or "/usr/sbin/dnsmasq"
    port = free_port()
    server = Process(dnsmasq, "--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", f"--port={port}",
                     "--listen-address=127.0.0.1", "--bind-interfaces", "--address=/a.example/192.0.2.1", "--log-facility=-",
                     "--user=root", "--pid-file=", "--cache-size=0")
    time.sleep(0.3)
    keel = Keel([port], more="    health_check: {dns: a.example, interval: 1s}\n")
    for name, more in [("64 lasting flows", []), ("each question on a flow of its own", ["--once"])]:
        for who, at in [("without evenkeel", port), ("behind evenkeel", keel.port)]:
            said, _ = load(at, "--flows", 256, "--rate", rate, "--dns", "a.example", "--seconds", seconds, "--patience", 2000, *more)
            told = said["exchanges"] / said["seconds"]
            print(f"{name}, {who}: {told:.0f} answers a second, {said['lost']} lost, {said['late']} not sent in time, p99 {said['p99_us']:.0f} µs")
            if who == "behind evenkeel":
                check("none is lost", said["lost"] == 0)
    server.end(signal.SIGKILL)
    Process.end_all()


def moves(flows=64, rate=4_000):
    for name in ["killed", "drained"]:
        echoes = [Echo(), Echo()]
        keel = Keel([echo.port for echo in echoes])
        happened = []

        def act():
            time.sleep(1.5)
            if name == "killed":
                echoes[0].end(signal.SIGKILL)
            else:
                said = keel.command("drain", "game/b0")
                assert said.returncode == 0, said.stderr + said.stdout
            happened.append(name)

        threading.Thread(target=act).start()
        said, _ = load(keel.port, "--flows", flows, "--rate", rate, "--seconds", 4, "--patience", 500)
        assert happened
        print(f"one of two backends is {name} under {flows} flows: {said['exchanges']} answered, {said['lost']} lost")
        check("at most one of each flow is lost" if name == "killed" else "none is lost", said["lost"] <= (flows // 2 if name == "killed" else 0))
        Process.end_all()


def storm():
    if os.environ.get("EVENKEEL_STORM") != "1":
        done = subprocess.run(["unshare", "-n", sys.executable, os.path.abspath(__file__), "storm"],
                              env=dict(os.environ, EVENKEEL_STORM="1"), check=False)
        check("the storm, in a network namespace of its own", done.returncode == 0)
        return
    for words in ["link set lo up", "route add local 10.0.0.0/8 dev lo"]:
        subprocess.run(["ip", *words.split()], check=True)
    for name in ["all", "lo"]:
        for key in ["rp_filter", "route_localnet"]:
            with open(f"/proc/sys/net/ipv4/conf/{name}/{key}", "w") as out:
                out.write("0" if key == "rp_filter" else "1")
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as out:
        out.write("1024 65000")
    flows = 10_000
    echo = Echo()
    begin = lambda: Keel([echo.port], more=f"    limits: {{connections: {flows}}}\n", top="max_connections: 40000\n")
    keel = begin()
    memory = lambda: Process.rss_kib(keel)
    runs = {"calm": [], "storm": []}
    for name in ["calm", "storm"] * 3:
        process = subprocess.Popen([RIG, "datagrams", "--connect", f"127.0.0.1:{keel.port}", "--flows", str(flows), "--rate", "5000", "--warm", "6",
                                    "--seconds", "8", "--patience", "2000"], stdout=subprocess.PIPE, text=True)
        # By now each flow has had three turns: it is proven.
        assert process.stdout.readline() == "start\n"
        forged = None
        if name.startswith("storm"):
            forged = subprocess.run([RIG, "datagrams", "--connect", f"127.0.0.1:{keel.port}", "--forge", "200000", "--rate", "26000",
                                     "--seconds", "7.9"], capture_output=True, text=True, check=True)
        assert process.stdout.readline() == "stop\n"
        said = json.loads(process.stdout.readline())
        process.wait(60)
        sent = [json.loads(forged.stdout)["forged"]] if forged else []
        print(f"{name}: {said['exchanges']} answered, {said['lost']} lost, p99 {said['p99_us']:.0f} µs, {sent[0] if sent else 0} forged, "
              f"{memory()} KiB resident", flush=True)
        runs[name].append((said["lost"], said["p99_us"], memory()))
        # Those flows are over: nobody keeps the place of the next.
        keel.end(signal.SIGKILL)
        keel = begin()
    lost, calm, stormy = sum(run[0] for run in runs["storm"]), *([run[1] for run in runs[name]] for name in ["calm", "storm"])
    check(f"nothing is lost of flows that were answered: {lost}", lost == 0)
    ratio = statistics.median(stormy) / statistics.median(calm)
    check(f"p99 is at most twice that of the same run without the storm, in the middle: {ratio:.2f}", ratio <= 2)
    before, after = (statistics.median(run[2] for run in runs[name]) for name in ["calm", "storm"])
    check(f"memory stays: {before} and {after} KiB", after <= before * 1.1 + 2048)
    Process.end_all()
    if FAILED:
        raise SystemExit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    bars = {"cost": cost, "queries": queries, "moves": moves, "storm": storm}
    parser.add_argument("bars", nargs="*", choices=[*bars, []], default=list(bars))
    for name in parser.parse_args().bars:
        bars[name]()
    if FAILED:
        raise SystemExit(f"{len(FAILED)} failed")


if __name__ == "__main__":
    try:
        main()
    finally:
        Process.end_all()
