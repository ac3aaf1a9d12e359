#!/usr/bin/env python3
"""Each alert of docs/observability fires in a real Prometheus when its cause is there, and ends when that is taken away. See README.md
beside this file; the causes are in alert_causes.py. Needs Debian's `prometheus` and openssl; builds nothing."""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
import lab  # noqa: E402
from lab import ROOT, Process, free_port, wait_until  # noqa: E402

RULES = os.path.join(ROOT, "docs", "observability", "alerts.yaml")
# How many times shorter all times of the rules are: a minute is a second.
SHORTER = 60
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def shortened(text):
    """The rules with each `for:` and each window of a range divided by SHORTER, and nothing else changed."""

    def shorter(found):
        milliseconds = round(int(found[2]) * UNITS[found[3]] * 1000 / SHORTER)
        return f"{found[1]}{milliseconds}ms{found[4]}"

    text = re.sub(r"(\n +for: )(\d+)(ms|s|m|h|d)(\n)", shorter, text)
    return re.sub(r"(\[)(\d+)(ms|s|m|h|d)(\])", shorter, text)


class Prometheus:
    """One of our own, which is told from a file whom to scrape."""

    def __init__(self, folder):
        self.port, self.folder = free_port(), folder
        self.instances, self.latch = set(), threading.Lock()
        rules, config = os.path.join(folder, "alerts.yaml"), os.path.join(folder, "prometheus.yml")
        with open(RULES) as file, open(rules, "w") as short:
            short.write(shortened(file.read()))
        with open(config, "w") as file:
            file.write(f"global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\nrule_files: [{rules}]\n"
                       f"scrape_configs:\n  - job_name: evenkeel\n    file_sd_configs:\n"
                       f"      - {{files: ['{folder}/instances.json'], refresh_interval: 1s}}\n")
        self.tell()
        self.process = Process("prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                               f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn")
        wait_until("prometheus", self.is_ready, 60)

    def tell(self):
        path = os.path.join(self.folder, "instances.json")
        with open(path + ".new", "w") as file:
            json.dump([{"targets": sorted(self.instances)}], file)
        os.rename(path + ".new", path)

    def scrapes(self, port, does=True):
        with self.latch:
            (self.instances.add if does else self.instances.discard)(f"127.0.0.1:{port}")
            self.tell()

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
            return answer.read()

    def is_ready(self):
        try:
            return bool(self.get("/-/ready"))
        except OSError:
            return False

    def alerts(self, port):
        """(name, pending or firing) of an instance."""
        said = json.loads(self.get("/api/v1/alerts"))["data"]["alerts"]
        return {(one["labels"]["alertname"], one["state"]) for one in said if one["labels"]["instance"] == f"127.0.0.1:{port}"}

    def samples(self, port):
        query = urllib.parse.quote(f'scrape_samples_scraped{{instance="127.0.0.1:{port}"}}')
        said = json.loads(self.get(f"/api/v1/query?query={query}"))["data"]["result"]
        return int(said[0]["value"][1]) if said else 0


class Table:
    """What is printed, one line for each alert."""

    def __init__(self):
        self.latch, self.failed, self.shown = threading.Lock(), [], set()

    def line(self, good, name, text):
        with self.latch:
            print(f"{'ok  ' if good else 'FAIL'}  {name}: {text}", flush=True)
            if not good:
                self.failed.append(name)
            self.shown.add(name)


def tried(cause, prometheus, table, patience):
    """Provokes one cause, and waits for its alerts to fire and to end."""
    bed = None
    try:
        bed, is_real = cause.bed(), cause.is_real
        bed.begin()
        prometheus.scrapes(bed.metrics)
        wait_until("it is scraped", lambda: prometheus.samples(bed.metrics) > 0, 30)
        # Two evaluations: at rest nothing is wrong.
        time.sleep(2.5)
        early = {name for name, _ in prometheus.alerts(bed.metrics)} & set(cause.alerts)
        if early:
            raise SystemExit(f"it is there before its cause: {sorted(early)}")
        acts = cause.acts(bed)
        began = time.monotonic()
        what = next(acts)
        fired, seen, end = {}, set(), time.monotonic() + patience
        while len(fired) < len(cause.alerts) and time.monotonic() < end:
            now = {name for name, state in prometheus.alerts(bed.metrics) if state == "firing"}
            seen |= now
            for name in now & set(cause.alerts):
                fired.setdefault(name, time.monotonic() - began)
            time.sleep(0.2)
        ended, began = {}, time.monotonic()
        how = next(acts)
        end = time.monotonic() + patience
        while len(ended) < len(cause.alerts) and time.monotonic() < end:
            there = {name for name, _ in prometheus.alerts(bed.metrics)}
            for name in set(cause.alerts) - there:
                ended.setdefault(name, time.monotonic() - began)
            time.sleep(0.2)
        for _ in acts:
            pass
        beside = sorted(seen - set(cause.alerts))
        for name in cause.alerts:
            text = f"{'real' if is_real else 'STAND-IN'}; {what}"
            text += f" -> fires after {fired[name]:.0f} s" if name in fired else " -> does NOT fire"
            text += f"; {how} -> gone after {ended[name]:.0f} s" if name in ended else f"; {how} -> does NOT end"
            if beside:
                text += f" (beside it: {', '.join(beside)})"
            table.line(name in fired and name in ended, name, text)
    except BaseException as error:  # noqa: BLE001 - a thread tells what has happened, and the others go on
        for name in cause.alerts:
            table.line(False, name, f"{error!r}" + (f"\n{bed.tail()}" if bed else ""))
        traceback.print_exc()
    finally:
        if bed:
            prometheus.scrapes(bed.metrics, False)
            bed.end()


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("causes", nargs="*", help="words of the names of alerts; all by default")
    words.add_argument("--build", default="release", help="which build of evenkeel and fake_backend: release or debug")
    words.add_argument("--together", type=int, default=3, help="how many causes are tried at a time")
    words.add_argument("--patience", type=float, default=120, help="seconds until an alert must have fired, or ended")
    asked = words.parse_args()
    lab.BUILT = os.path.join(os.path.dirname(lab.BUILT), asked.build)
    from alert_causes import CAUSES  # after it is known what is run

    with open(RULES) as file:
        text = file.read()
    known = re.findall(r"- alert: (\w+)", text)
    tries = [cause for cause in CAUSES if not asked.causes or any(word in name for word in asked.causes for name in cause.alerts)]
    folder, table = tempfile.mkdtemp(prefix="evenkeel-alerts-"), Table()
    try:
        prometheus, waiting = Prometheus(folder), list(tries)
        print(f"      all `for:` and all windows of ranges are {SHORTER} times shorter, a scrape and an evaluation each second", flush=True)

        def work():
            while waiting:
                tried(waiting.pop(0), prometheus, table, asked.patience)

        threads = [threading.Thread(target=work) for _ in range(asked.together)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not asked.causes:
            table.line(table.shown == set(known), "all of the file", f"{len(table.shown)} of {len(known)} {sorted(table.shown ^ set(known))}")
    finally:
        Process.end_all()
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if table.failed else 0)


if __name__ == "__main__":
    main()
