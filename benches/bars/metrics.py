#!/usr/bin/env python3
"""Metrics: what promtool says of a scrape and of the rules, that each alert fires and ends, a real Prometheus, many backends, and
strangers. See README.md beside this file. Needs Debian's `prometheus`; builds nothing."""

import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
from lab import ROOT, Backend, Client, Keel, Process, accepts, free_port, program, wait_until  # noqa: E402

RULES = os.path.join(ROOT, "docs", "observability", "alerts.yaml")
FAILED = []

# For each alert: series while all is well, while it is not, and well again, each for `span` minutes. `a+bxn` is promtool's: from a on b more
# each minute. Of counters the third goes on from where they are.
MINUTES = 90
I = 'instance="lb1",job="evenkeel"'


def flat(well, ill):
    return f"{well}x{MINUTES} {ill}x{MINUTES} {well}x{MINUTES * 2}"


def counter(well, ill):
    """A counter that grows by so much each minute."""
    one = well * MINUTES
    two = one + well + ill * MINUTES
    return f"0+{well}x{MINUTES} {one + well}+{ill}x{MINUTES} {two + well}+{well}x{MINUTES * 2}"


ALERTS = {
    "EvenkeelGone": [(f"up{{{I}}}", flat("1+0", "0+0"))],
    "EvenkeelNotReady": [(f"evenkeel_ready{{{I}}}", flat("1+0", "0+0"))],
    "EvenkeelTargetDown": [
        (f'evenkeel_target_backends{{{I},target="web",state="up"}}', flat("3+0", "0+0")),
        (f'evenkeel_target_backends{{{I},target="web",state="down"}}', flat("0+0", "3+0")),
    ],
    "EvenkeelTargetHalfDown": [
        (f'evenkeel_target_backends{{{I},target="web",state="up"}}', flat("4+0", "2+0")),
        (f'evenkeel_target_backends{{{I},target="web",state="down"}}', flat("0+0", "2+0")),
    ],
    "EvenkeelErrors": [
        (f'evenkeel_requests_total{{{I},listener="web",route="/",class="2xx"}}', counter(100, 100)),
        (f'evenkeel_requests_total{{{I},listener="web",route="/",class="5xx"}}', counter(1, 20)),
    ],
    "EvenkeelBackendFails": [
        (f'evenkeel_upstream_attempts_total{{{I},target="web",backend="b"}}', counter(100, 100)),
        (f'evenkeel_upstream_failures_total{{{I},target="web",backend="b"}}', counter(1, 50)),
    ],
    "EvenkeelBreakerOpens": [(f'evenkeel_breaker_opened_total{{{I},target="web"}}', counter(0, 1))],
    "EvenkeelEjections": [(f'evenkeel_ejections_total{{{I},target="web"}}', counter(0, 5))],
    "EvenkeelProbesFail": [
        (f'evenkeel_probes_total{{{I},target="web",result="good"}}', counter(30, 1)),
        (f'evenkeel_probes_total{{{I},target="web",result="bad"}}', counter(0, 29)),
    ],
    "EvenkeelQueueFull": [(f'evenkeel_errors_total{{{I},target="web",cause="queue_full"}}', counter(0, 5))],
    "EvenkeelQueues": [(f'evenkeel_queue_length{{{I},target="web"}}', flat("0+0", "7+0"))],
    "EvenkeelRetries": [
        (f'evenkeel_upstream_attempts_total{{{I},target="web",backend="b"}}', counter(100, 100)),
        (f'evenkeel_retries_total{{{I},target="web"}}', counter(1, 30)),
    ],
    "EvenkeelSlowByItself": [
        (f'evenkeel_target_own_seconds_bucket{{{I},target="web",le="0.25"}}', counter(100, 10)),
        (f'evenkeel_target_own_seconds_bucket{{{I},target="web",le="2.5"}}', counter(100, 100)),
        (f'evenkeel_target_own_seconds_bucket{{{I},target="web",le="+Inf"}}', counter(100, 100)),
    ],
    "EvenkeelWorkerLags": [
        (f'evenkeel_worker_lag_seconds_bucket{{{I},worker="0",le="0.005"}}', counter(240, 10)),
        (f'evenkeel_worker_lag_seconds_bucket{{{I},worker="0",le="0.1"}}', counter(240, 240)),
        (f'evenkeel_worker_lag_seconds_bucket{{{I},worker="0",le="+Inf"}}', counter(240, 240)),
    ],
    "EvenkeelConnectionsNearLimit": [
        (f"evenkeel_connections{{{I}}}", flat("10+0", "95+0")),
        (f"evenkeel_connections_limit{{{I}}}", flat("100+0", "100+0")),
    ],
    "EvenkeelConnectionsRefused": [(f"evenkeel_connections_refused_total{{{I}}}", counter(0, 5))],
    "EvenkeelDescriptorsNearLimit": [
        (f"process_open_fds{{{I}}}", flat("10+0", "95+0")),
        (f"process_max_fds{{{I}}}", flat("100+0", "100+0")),
    ],
    "EvenkeelAcceptFails": [(f"evenkeel_accept_errors_total{{{I}}}", counter(0, 5))],
    # promtool's clock begins at 0.
    "EvenkeelCertificateExpires": [
        (f'evenkeel_certificate_expires_timestamp_seconds{{{I},listener="web",certificate="a.pem"}}',
         flat("9000000+0", "900000+0")),
        (f'evenkeel_certificate_begins_timestamp_seconds{{{I},listener="web",certificate="a.pem"}}',
         flat("0+0", "-9000000+0")),
    ],
    "EvenkeelRenewalOverdue": [
        (f'evenkeel_certificate_renewal_overdue{{{I},listener="web",certificate="a.pem"}}', flat("0+0", "1+0")),
    ],
    "EvenkeelCertificateExpired": [
        (f'evenkeel_certificate_expires_timestamp_seconds{{{I},listener="web",certificate="a.pem"}}',
         flat("9000000+0", "50000+0")),
        (f'evenkeel_certificate_begins_timestamp_seconds{{{I},listener="web",certificate="a.pem"}}',
         flat("0+0", "-9000000+0")),
    ],
    "EvenkeelReloadRefused": [(f"evenkeel_config_last_reload_successful{{{I}}}", flat("1+0", "0+0"))],
    "EvenkeelSnapshotsPileUp": [(f"evenkeel_snapshots{{{I}}}", flat("1+0", "4+0"))],
    "EvenkeelAccessLogDrops": [(f"evenkeel_access_log_dropped_total{{{I}}}", counter(0, 5))],
    "EvenkeelEventsLost": [(f"evenkeel_events_lost_total{{{I}}}", counter(0, 5))],
    "EvenkeelWebhookDrops": [(f'evenkeel_webhook_dropped_total{{{I},webhook="1",url="https://h/…"}}', counter(0, 5))],
    "EvenkeelRateLimitCrowded": [(f'evenkeel_rate_limit_crowded_total{{{I},limit="api"}}', counter(0, 5))],
    "EvenkeelPanics": [(f"evenkeel_panics_total{{{I}}}", counter(0, 1))],
}


def verdict(name, good, text):
    print(f"{'ok  ' if good else 'FAIL'}  {name}: {text}", flush=True)
    if not good:
        FAILED.append(name)


def promtool(*words, given=None):
    done = subprocess.run(["promtool", *words], input=given, capture_output=True, text=True)
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def rules():
    good, said = promtool("check", "rules", RULES)
    verdict("rules", good, said.splitlines()[-1] if said else "")
    with open(RULES) as file:
        known = set(re.findall(r"- alert: (\w+)", file.read()))
    verdict("alerts that are tried", known == set(ALERTS), f"{len(ALERTS)} of {len(known)} {sorted(known ^ set(ALERTS))}")
    # Firing in the middle of the time of trouble and not before it or long after it; which labels it has is read from what promtool says.
    for name, series in ALERTS.items():
        written = "".join(f"      - series: '{one}'\n        values: '{values}'\n" for one, values in series)
        expr = f"count(ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}})"
        at = [(MINUTES - 5, 0), (MINUTES + 80, 1), (MINUTES * 3 + 60, 0)]
        tests = "".join(
            f"      - expr: '{expr}'\n        eval_time: {minute}m\n"
            + ("        exp_samples: [{value: 1}]\n" if firing else "        exp_samples: []\n")
            for minute, firing in at)
        text = (f"rule_files: [{RULES}]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n{written}"
                f"    promql_expr_test:\n{tests}")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            good, said = promtool("test", "rules", file.name)
        verdict(f"{name} fires and ends", good, "yes" if good else said[-600:])


def get(port, path="/metrics", accept=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


def everything(folder, metrics, door, backends, spare):
    """A config with everything that has metrics of its own."""
    pem = os.path.join(folder, "a.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", f"{pem}.key", "-out", pem],
                   check=True, capture_output=True)
    front, secure, raw = free_port(), free_port(), free_port()
    text = f"""
workers: 2
metrics: {{listener: 127.0.0.1:{metrics}}}
admin: {{listener: {door}}}
webhooks: [{{url: "http://127.0.0.1:9/x"}}]
access_lists: {{bad: {{deny: 192.0.2.0/24}}}}
rate_limits: {{api: {{rate: 100000/s}}}}
listeners:
  front:
    bind: 127.0.0.1:{front}
    access: [bad]
    routes:
      - {{name: shop, match: {{path_prefix: /shop}}, target: web, cache: on, compress: on, rate_limit: [api], mirror: {{target: shadow}}}}
      - {{name: old, match: {{path: /old}}, redirect: {{to: /shop}}}}
      - {{name: split, match: {{path_prefix: /split}}, split: {{targets: {{web: 1, shadow: 1}}}}}}
  secure:
    bind: 127.0.0.1:{secure}
    protocol: https
    tls: {{certificates: [{{cert_file: {pem}, cert_key: {pem}.key}}]}}
    routes: [{{target: web}}]
targets:
  web:
    health_check: {{interval: 100ms}}
    max_in_flight: 100
    backends: [{{host: 127.0.0.1, port: {backends[0].port}}}, {{host: 127.0.0.1, port: {backends[1].port}}}]
  shadow: {{health_check: off, backends: [{{host: 127.0.0.1, port: {backends[0].port}}}]}}
  gone: {{health_check: {{interval: 100ms, timeout: 100ms, fall: 1}}, backends: [{{host: 127.0.0.1, port: {spare}}}]}}
  raw: {{protocol: tcp, listener: {raw}, health_check: off, backends: [{{host: 127.0.0.1, port: {backends[0].port}}}]}}
"""
    path = os.path.join(folder, "evenkeel.yaml")
    with open(path, "w") as file:
        file.write(text)
    return path, front, secure, raw


class Serving(Process):
    def __init__(self, path, port):
        super().__init__(program("evenkeel"), "--config", path)
        wait_until("evenkeel", lambda: accepts(port) or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise SystemExit(self.text())


def scraped():
    folder = tempfile.mkdtemp()
    backends, spare = [Backend(1), Backend(2)], free_port()
    metrics, door = free_port(), free_port()
    path, front, secure, raw = everything(folder, metrics, door, backends, spare)
    Serving(path, front)
    for wanted in ["/shop/a", "/shop/a", "/old", "/split/x", "/nothing", "/status/500"]:
        client = Client(front)
        client.request(path=wanted)
        client.close()
    Client(raw).request()
    subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{secure}"], input=b"", capture_output=True)
    wait_until("the target without backends is down", lambda: 'evenkeel_target_backends{target="gone",state="down"} 1' in get(metrics))
    for where, port in [("metrics.listener", metrics), ("admin.listener", door)]:
        good, said = promtool("check", "metrics", given=get(port))
        verdict(f"promtool check metrics, {where}", good and not said, said or f"{len(get(port).splitlines())} lines, clean")
    prometheus(folder, metrics, spare)
    shutil.rmtree(folder)


def prometheus(folder, metrics, spare):
    """A real one, whose alert about the target without backends fires and ends."""
    port, rules = free_port(), os.path.join(folder, "alerts.yaml")
    with open(RULES) as file:
        # As they are, but for the patience.
        text = re.sub(r"for: \w+", "for: 0s", file.read())
    with open(rules, "w") as file:
        file.write(text)
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w") as file:
        file.write(f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{rules}]\nscrape_configs:\n"
                   f"  - job_name: evenkeel\n    static_configs: [{{targets: ['127.0.0.1:{metrics}']}}]\n")
    server = Process("prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                     f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn")

    def is_ready():
        try:
            return bool(get(port, "/-/ready"))
        except OSError:
            return False

    wait_until("prometheus", is_ready, 60)

    def ask(query):
        answer = json.loads(get(port, "/api/v1/query?query=" + urllib.request.quote(query)))
        return [(one["metric"], float(one["value"][1])) for one in answer["data"]["result"]]

    wait_until("it scrapes", lambda: ask('up{job="evenkeel"}') and ask('up{job="evenkeel"}')[0][1] == 1)
    # Of its own text, and of its samples.
    samples = ask('scrape_samples_scraped{job="evenkeel"}')[0][1]
    verdict("a real Prometheus scrapes it", samples > 300, f"{samples:.0f} samples")
    firing = lambda: [one[0]["target"] for one in ask('ALERTS{alertname="EvenkeelTargetDown",alertstate="firing"}')]
    wait_until("the alert fires", lambda: firing() == ["gone"], 60)
    back = Backend(3, port=spare)
    wait_until("the alert ends", lambda: firing() == [], 60)
    verdict("EvenkeelTargetDown, in a real Prometheus", True, "fired for the target without backends, ended when one came")
    for each in [back, server]:
        each.end()


def many():
    """10,000 backends, 4 workers: each backend has answered each worker, and the recorder is full of failures."""
    metrics = free_port()
    fake = Backend(1, "--address", "0.0.0.0", "--close", "1")
    backends = [(f"127.1.{number // 250}.{number % 250 + 1}", fake.port) for number in range(10_000)]
    keel = Keel(backends, top=f"workers: 4\nmetrics: {{listener: 127.0.0.1:{metrics}}}", more="    retries: off\n    outlier: off\n")

    def ask(total):
        words = ["--connections", "64", "--requests", str(total), "--body", "17"]
        subprocess.run([program("rig"), "drive", f"127.0.0.1:{keel.port}", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    idle = keel.rss_kib()
    ask(160_000)
    asked = keel.rss_kib()
    fake.behave("status=503")
    ask(160_000)
    fake.behave("reset=1")
    full, touched = keel.rss_kib(), get(metrics).count('evenkeel_upstream_attempts_total{target="web",backend="')
    verdict("memory of 10,000 backends", full * 1024 <= 150e6 and touched == 10_000,
            f"{idle / 1024:.0f} MiB before the first request, {asked / 1024:.0f} after 160,000, {full / 1024:.0f} after as many failures; "
            f"{touched} backends counted")
    rounds, before = 10, keel.cpu_by_thread()
    lengths = [len(get(metrics)) for _ in range(rounds)]
    after = keel.cpu_by_thread()
    spent = {thread: (time - before.get(thread, 0)) / rounds for thread, time in after.items()}
    workers = [time for (name, _), time in spent.items() if name.removeprefix("evenkeel-").isdigit()]
    verdict("a scrape of 10,000 backends", sum(spent.values()) <= 0.1,
            f"{sum(spent.values()) * 1e3:.1f} ms of CPU, {max(lengths) / 2**20:.1f} MiB, {keel.rss_kib() / 1024:.0f} MiB resident")
    verdict("no worker stalls in it", len(workers) == 4 and max(workers) <= 0.005,
            f"all turns of a worker's loop during one scrape take {max(workers) * 1e3:.2f} ms of its CPU at most")
    keel.end()


def strangers(count=1_000_000):
    """Hosts, paths and methods that nobody has heard of."""
    metrics = free_port()
    keel = Keel([Backend(1).port], top=f"metrics: {{listener: 127.0.0.1:{metrics}}}")
    names = lambda: {line.rsplit(" ", 1)[0] for line in get(metrics).splitlines()}

    def ask(total):
        """On pipelined connections, as fast as it goes."""
        chance, left = random.Random(total), total
        while left > 0:
            batch = min(left, 200)
            left -= batch
            lines = "".join(
                f"M{chance.getrandbits(32):x} /{chance.getrandbits(64):x}?q={chance.getrandbits(32)} HTTP/1.1\r\n"
                f"Host: h{chance.getrandbits(48):x}.example\r\ntraceparent: 00-{chance.getrandbits(128):032x}-{chance.getrandbits(64):016x}-01\r\n\r\n"
                for _ in range(batch))
            with socket.create_connection(("127.0.0.1", keel.port), 20) as connection:
                writer = threading.Thread(target=connection.sendall, args=(lines.encode(),))
                writer.start()
                got = 0
                while got < batch:
                    piece = connection.recv(262_144)
                    if not piece:
                        break
                    got += piece.count(b"HTTP/1.1 ")
                writer.join()

    ask(20_000)
    before, rss = names(), keel.rss_kib()
    ask(count)
    after, grown = names(), keel.rss_kib() - rss
    size = len(get(metrics))
    verdict("strangers add no series", before == after, f"{len(after)} lines, {size / 1024:.0f} KiB after {count} of them {sorted(after ^ before)[:3]}")
    verdict("strangers take no memory", grown <= 10_000 and size <= 2**20, f"{grown} KiB more")
    keel.end()


BARS = {"rules": rules, "scraped": scraped, "many": many, "strangers": strangers}

if __name__ == "__main__":
    if not shutil.which("promtool"):
        raise SystemExit("promtool is not installed: apt-get install prometheus")
    try:
        for name in sys.argv[1:] or BARS:
            BARS[name]()
    finally:
        Process.end_all()
    sys.exit(1 if FAILED else 0)
