#!/usr/bin/env python3
"""Nodes of this version and of the next one side by side: what the later one has said in a row beside what this one knows is still there after this one has written over that row, and
all cases of cluster_chaos.py hold with every other node of the next version. That one is a build of the same sources which writes schema 2 and one more field into each row:

    RUSTFLAGS='--cfg evenkeel_next' cargo build --release --target-dir target/next

Its program is the first argument; what is behind it goes to cluster_chaos.py (`--seconds`, cases). See README.md beside this file. Needs `etcd` (Debian's etcd-server); builds nothing."""

import base64
import json
import os
import signal
import sys
import tempfile
import threading
import time
import types

sys.dont_write_bytecode = True
import cluster_chaos  # noqa: E402
from cluster_lab import PREFIX, Lab  # noqa: E402
from lab import Process, wait_until  # noqa: E402


class Rows(threading.Thread):
    """What becomes of each row that no lease takes away: which had the next version's field, were written again, and have it still or no more."""

    def __init__(self, members):
        super().__init__(daemon=True)
        self.members, self.known, self.kept, self.lost, self.is_over = members, {}, {}, [], False
        self.start()

    def run(self):
        question = {"key": self.members.bytes(PREFIX + "/"), "range_end": self.members.bytes(PREFIX + "0")}
        while not self.is_over:
            for row in self.members.ask("kv/range", question).get("kvs", []):
                self.look(row)
            time.sleep(0.02)

    def look(self, row):
        name, changed = base64.b64decode(row["key"]).decode()[len(PREFIX) + 1:], row["mod_revision"]
        if int(row.get("lease", 0)):
            return
        try:
            has_field = "of_the_next_version" in json.loads(base64.b64decode(row["value"]))
        except ValueError:
            return
        before = self.known.get(name)
        if before and before[0] != changed and before[1]:
            kind = name.rsplit("/", 1)[0] if name.count("/") > 1 else name
            if has_field:
                self.kept[kind] = self.kept.get(kind, 0) + 1
            else:
                self.lost.append(name)
        self.known[name] = changed, has_field


def done(answer, *wanted):
    if answer[0] not in (wanted or (200, 201)):
        raise SystemExit(f"{answer[0]}: {answer[1]}")


def change(lab):
    """What both have a hand in, first the later version and then this one."""
    old, later = lab.nodes[0], lab.nodes[1]
    for turn in range(3):
        for node in (later, old):
            everywhere = lambda what: wait_until("it is known", lambda: all(map(what, lab.nodes)), 20)  # noqa: E731
            weight = 2 * turn + 2 + (node is old)
            done((node.weigh(weight), ""))
            everywhere(lambda one: one.weight() == weight)
            place = 1 + 2 * turn + (node is old)
            done(node.ask("POST", f"/api/v1/targets/soft/backends/soft{place}/owner", {"node": "c"}))
            everywhere(lambda one: one.owners()[f"soft{place}"] == "c")
            done(node.ask("POST", "/api/v1/access/blocked/entries", {"network": f"192.0.2.{place}", "for": 600}))
            done(node.ask("POST", "/api/v1/cache/purge", {"url": f"http://bar.example/{place}"}))
            before = max(one.cluster()["config"]["revision"] for one in lab.nodes)
            done((lab.apply(node, place), ""))
            everywhere(lambda one: one.cluster()["config"]["revision"] > before)
        # Whoever probes it says so in a row: once it is the one and once the other.
        lab.works.tell("_sick/7")
        time.sleep(3)
        lab.works.tell("_sick/")
        time.sleep(3)
    for node in (later, old):
        done(node.ask("POST", "/api/v1/cluster/nodes/c/drain"))
        done(node.ask("DELETE", "/api/v1/cluster/nodes/c/drain"))


def fields(args):
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab("fields", folder, args)
        lab.begin()
        rows = Rows(lab.etcd)
        lab.steady()
        change(lab)
        rows.is_over = True
        rows.join()
        standings = [node.standing() for node in lab.nodes]
        lab.line("how they stand", ", ".join(standings), "member", set(standings) == {"member"})
        lab.line("rows written over, and the field is there", " ".join(f"{kind} {count}" for kind, count in sorted(rows.kept.items())), "some", bool(rows.kept))
        lab.row("rows that have lost the field", len(rows.lost), 0, "")
        for name in rows.lost[:9]:
            print(f"    {name}")
        lab.count()
        Process.end_all()
        return lab.bad


def main():
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        raise SystemExit(__doc__)
    other = os.path.abspath(sys.argv[1])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    bad = fields(types.SimpleNamespace(seconds=20, outage=30, lease=3, nodes=3, lines=9, other=other))
    sys.argv[1:2] = ["--other", other]
    try:
        cluster_chaos.main()
    finally:
        if bad:
            raise SystemExit("out of bounds: fields")


if __name__ == "__main__":
    try:
        main()
    finally:
        Process.end_all()
