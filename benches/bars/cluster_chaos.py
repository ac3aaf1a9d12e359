#!/usr/bin/env python3
"""What becomes of requests while things die: three members of etcd, three nodes, steady load on 30 workers with one slot each (`owner: soft`) and on a target with health checks.
Each request has a number that clients and backends count by. A case for each line, beside its bound; all of them, or those that are named. Without: nodes of two versions
(cluster_versions.py), webhooks and purges (tests/e2e/cluster_webhooks.rs, cluster_purge.rs), demand that jumps (cluster_skew.py). A full disk is etcd's quota: it takes nothing more, and says so; a member that
can't write at all ends itself, which is `kill_leader`. See README.md beside this file. Needs `etcd` (Debian's etcd-server); builds nothing."""

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
from cluster_lab import Lab, Node, Writes  # noqa: E402
from cluster_load import SLOTS, SOFT, Clients, overshoot  # noqa: E402
from lab import Client, Process, free_port, wait_until  # noqa: E402

CASES, BACK, RESUMED = {}, 10, 5
# What is older than a second counts for nothing, and each node says four times a second what it has.
AT_ONCE = 1.3


def case(function):
    CASES[function.__name__] = function
    return function


def bound(lab):
    return 1.3 * lab.lease + 1


def reached(lab, record, since):
    """How long after that each backend had its first request."""
    first = {}
    for begun, _, place, _ in record:
        if place <= SOFT and begun >= since:
            first[place] = min(first.get(place, begun), begun)
    lab.row("each backend has had a request after", max(first.values()) - since if len(first) == SOFT else None, AT_ONCE)


@case
def kill_node(lab):
    lab.begin()
    lab.steady()
    others = lab.others(lab.nodes[2])
    at = lab.clients.strike(lab.nodes[2])
    lab.clients.press(others, SOFT, 2)
    lab.adopted(others, at, bound(lab))
    lab.rest()
    reached(lab, lab.count(lost=1), at)


@case
def kill_node_and_leader(lab):
    lab.begin()
    lab.steady()
    others = lab.others(lab.nodes[2])
    at = lab.clients.strike(lab.nodes[2])
    time.sleep(0.6 * lab.lease)
    lab.etcd.kill(lab.etcd.leader())
    lab.adopted(others, at, 2 * lab.lease + 5)
    lab.rest()
    lab.count(lost=1)


@case
def freeze_node(lab):
    lab.begin()
    lab.steady()
    frozen = lab.nodes[2]
    at = lab.clients.strike(frozen, signal.SIGSTOP)
    lab.adopted(lab.others(frozen), at, bound(lab))
    time.sleep(max(0.0, at + 3 * lab.lease - time.monotonic()))
    frozen.signal(signal.SIGCONT)
    on = time.monotonic()
    lab.clients.back(frozen)
    lab.row("it is one of them again after", lab.come_together(lab.nodes, 30))
    begun = time.monotonic()
    wait_until("one opinion", lambda: all(node.owners() == lab.nodes[0].owners() for node in lab.nodes))
    lab.row("all agree who prefers what", time.monotonic() - begun)
    lab.rest()
    too_many(lab, lab.count(lost=1), at, on)


def too_many(lab, record, struck, since, until=float("inf"), longest=1.0):
    lab.row("most requests at once on a backend before", overshoot(record, lab.begun, struck)[0], unit="")
    most, when, span = overshoot(record, since, until)
    lab.row(f"most requests at once on a backend ({when - since:.2f} s later)", most, 2 * SLOTS, "")
    lab.row("more than it may have, the longest time", span, longest)


@case
def cut_node(lab):
    lab.begin(cut="c")
    lab.steady()
    away = lab.nodes[2]
    at = time.monotonic()
    lab.ways["c"].cut(True)
    wait_until("detached", lambda: away.standing() == "detached", lab.lease + 20)
    lab.row("it knows that it is detached after", time.monotonic() - at, lab.lease)
    lab.adopted(lab.others(away), at, bound(lab))
    time.sleep(max(2.0 * lab.lease, lab.begun + lab.args.seconds / 2 - time.monotonic()))
    until = time.monotonic()
    lab.ways["c"].cut(False)
    lab.row("it is one of them again after", lab.come_together(lab.nodes, 40), BACK)
    lab.routes_stay()
    lab.rest()
    # It goes by what it sees itself, and so do those who took over what it preferred: now and then, for as long as it is cut off.
    too_many(lab, lab.count(), at, at, until, None)


def leader_gone(lab, strike, heal):
    lab.begin()
    lab.steady()
    writes, leader = Writes(lab.nodes[0]), lab.etcd.leader()
    time.sleep(1)
    at = time.monotonic()
    strike(leader)
    time.sleep(max(3 * lab.lease, 12))
    lab.row("changes are possible again after", writes.resumed(at), RESUMED)
    lab.nothing_moved()
    heal(leader)
    lab.rest()
    lab.nothing_moved(", since it is back")
    lab.count()


@case
def kill_leader(lab):
    leader_gone(lab, lambda leader: lab.etcd.kill(leader), lambda leader: lab.etcd.begin(leader))


@case
def freeze_leader(lab):
    leader_gone(lab, lambda leader: lab.etcd.pause(leader, True), lambda leader: lab.etcd.pause(leader, False))


@case
def quorum_lost(lab):
    lab.begin()
    lab.steady()
    first, at = lab.etcd.leader(), time.monotonic()
    gone = [first, (first + 1) % 3]
    for number in gone:
        lab.etcd.kill(number)
    wait_until("detached", lambda: all(node.standing() == "detached" for node in lab.nodes), lab.lease + 20)
    lab.row("all know that they are detached after", time.monotonic() - at, lab.lease)
    statuses = set()
    while time.monotonic() - at < lab.args.outage:
        statuses |= {node.weigh(2) for node in lab.nodes}
        time.sleep(1)
    lab.line("changes meanwhile", str(sorted(statuses)), "503", statuses == {503})
    lab.nothing_moved()
    at = time.monotonic()
    for number in gone:
        lab.etcd.begin(number)
    lab.come_together(lab.nodes, 60)
    lab.row("all are members again after", time.monotonic() - at, BACK)
    heard(lab, at, BACK)
    time.sleep(2 * lab.lease)
    lab.nothing_moved(", since they are back")
    lab.rest()
    lab.count()


def heard(lab, since, limit):
    """A change by hand on the first node, until all have it; again while it is refused."""
    while lab.nodes[0].weigh(7) != 200 and time.monotonic() - since < limit + 20:
        time.sleep(0.02)
    wait_until("a change on all nodes", lambda: all(node.weight() == 7 for node in lab.nodes), 30)
    lab.row("a change is in force on all after", time.monotonic() - since, limit)


@case
def restart_alone(lab):
    lab.begin()
    lab.steady()
    for number in range(3):
        lab.etcd.kill(number)
    wait_until("detached", lambda: all(node.standing() == "detached" for node in lab.nodes), lab.lease + 20)
    again = lab.nodes[2]
    lab.clients.strike(again)
    os.unlink(again.socket)
    again.begin(is_waited=False)
    row_of_start(lab, again, ("soft", "api"), 2)
    wait_until("its socket", lambda: os.path.exists(again.socket))
    served = again.cluster().get("config", {}).get("revision")
    lab.line("revision that it serves", str(served or "its own file"), "1", served == 1)
    lab.clients.back(again)
    time.sleep(lab.lease)
    at = time.monotonic()
    for number in range(3):
        lab.etcd.begin(number)
    lab.come_together(lab.nodes, 60)
    lab.row("all are members again after", time.monotonic() - at, BACK)
    lab.rest()
    lab.count(lost=1)


def row_of_start(lab, node, targets, limit):
    """How long after its start a node has served each target, asked every other millisecond; gives what else it said."""
    wrong = []
    for target in targets:
        while time.monotonic() - node.begun < 30:
            try:
                client = Client(node.ports[target])
                status = client.request(path="/0")[0]
                client.close()
                if status == 200:
                    break
                wrong.append(status)
            except OSError:
                pass
            time.sleep(0.002)
    lab.row(f"{node.name} has served {' and '.join(targets)} after its start", time.monotonic() - node.begun, limit)
    lab.line("and said before", str(wrong), "nothing else", not wrong)


def store_lost(lab, kinds, word, lose, regain=None):
    """Something is wrong with what etcd has, or lets us do: routes stay, and it is told."""
    lab.steady()
    since = lab.said()
    lose()
    lab.told(kinds, word, since)
    time.sleep(2 * lab.lease)
    lab.routes_stay()
    at = time.monotonic()
    if regain:
        regain()
        lab.come_together(lab.nodes, 60)
        lab.row("all are members again after", time.monotonic() - at, BACK)
        heard(lab, at, BACK)
    else:
        lab.come_together(lab.nodes, 60)
        before = max(node.cluster()["config"]["revision"] for node in lab.nodes)
        status = lab.apply(lab.nodes[0], 1)
        wait_until("the next revision", lambda: lab.in_force(before + 1), 10)
        lab.line("the next config", str(status), "200", status == 200)
    lab.rest()
    lab.routes_stay()
    lab.count()


def refused(lab, wanted):
    status = lab.nodes[0].weigh(3)
    lab.line("a change by hand", str(status), str(wanted), status == wanted)


@case
def prefix_emptied(lab):
    lab.begin()
    store_lost(lab, "revision_lost", "has no config any more", lab.etcd.empty)


@case
def etcd_wiped(lab):
    lab.begin()
    store_lost(lab, "revision_lost", "has no config any more", lab.etcd.wipe)


@case
def wrong_rights(lab):
    lab.begin()
    ended = []

    def guard():
        ended.append(lab.etcd.guard())
        refused(lab, 503)

    store_lost(lab, "what it is not let do", "user name|permission", guard, lambda: ended[0]())


@case
def full_disk(lab):
    lab.begin(flags=("--quota-backend-bytes", str(16 << 20)))

    def fill():
        try:
            for number in range(100):
                lab.etcd.put(f"/else/{number}", "x" * 500_000)
        except OSError:
            pass
        refused(lab, 507)

    def empty():
        everything = lab.etcd.bytes("/else/"), lab.etcd.bytes("/else0")
        at = int(lab.etcd.ask("kv/deleterange", {"key": everything[0], "range_end": everything[1]})["header"]["revision"])
        lab.etcd.ask("kv/compaction", {"revision": str(at)})
        for number in range(3):
            lab.etcd.ask("maintenance/defragment", {}, number)
        for alarm in lab.etcd.ask("maintenance/alarm", {"action": "GET"}).get("alarms", []):
            lab.etcd.ask("maintenance/alarm", {**alarm, "action": "DEACTIVATE"})

    store_lost(lab, "what is full", "space", fill, empty)


@case
def compaction(lab):
    lab.begin(cut="c")
    lab.steady()
    away = lab.nodes[2]
    lab.ways["c"].cut(True)
    wait_until("detached", lambda: away.standing() == "detached", lab.lease + 20)
    time.sleep(lab.lease + 2)
    lab.apply(lab.nodes[0], 1)
    wait_until("revision 2", lambda: lab.in_force(2, lab.nodes[:2]))
    lab.nodes[0].weigh(9, "api1")
    lab.etcd.ask("kv/compaction", {"revision": str(lab.etcd.put("/else/x", "x"))})
    at = time.monotonic()
    lab.ways["c"].cut(False)
    wait_until("what has changed", lambda: lab.in_force(2) and away.weight("api1") == 9, 40)
    lab.row("it has what has changed after", time.monotonic() - at, 5)
    lab.come_together(lab.nodes, 40)
    lab.row("it is one of them again after", time.monotonic() - at, BACK)
    lab.routes_stay()
    lab.rest()
    lab.count()


@case
def change(lab):
    lab.begin("abcde")
    lab.steady()
    took = {"by hand": [], "config": []}
    for turn in range(20):
        node, at = lab.nodes[turn % len(lab.nodes)], time.monotonic()
        if node.weigh(turn + 2) != 200:
            lab.row(f"a change on {node.name}", None, 1)
        wait_until("the change", lambda: all(one.weight() == turn + 2 for one in lab.nodes))
        took["by hand"].append(time.monotonic() - at)
        at = time.monotonic()
        if lab.apply(node, turn) != 200:
            lab.row(f"a config on {node.name}", None, 1)
        wait_until("the config", lambda: lab.in_force(turn + 2))
        took["config"].append(time.monotonic() - at)
        time.sleep(0.3)
    for what, seen in took.items():
        lab.row(f"20 changes, {what}: in force on all five after", max(seen), 1)
        lab.row(f"20 changes, {what}: median", sorted(seen)[10])
    lab.rest()
    lab.count()


@case
def new_node(lab):
    lab.dead = free_port()
    lab.begin()
    lab.steady()
    for name in "defghij"[len(lab.nodes) - 3:][:5]:
        node = Node(name, lab, lab.etcd.ports).begin(is_waited=False)
        row_of_start(lab, node, ("api",), 0.2)
        clients = Clients([node], {"api": 200})
        time.sleep(1)
        clients.end()
        lab.row(f"what {name} failed at then", len(clients.failed), 0, f"of {clients.sent}")
        node.signal(signal.SIGTERM)
        node.process.process.wait(30)
    lab.rest()
    lab.count()


@case
def flapping(lab):
    """A backend that falls ill and a node that is killed, each half a lease long."""
    lab.begin()
    lab.steady()
    node, moves, seen, turn = lab.nodes[2], dict.fromkeys(lab.owners[0], 0), lab.nodes[0].owners(), 0
    while time.monotonic() - lab.begun < lab.args.seconds:
        turn, until = turn + 1, time.monotonic() + lab.lease / 2
        lab.works.tell(f"_sick/{turn % 2 * 7}")
        if turn % 2:
            lab.clients.strike(node)
            os.unlink(node.socket)
        else:
            node.begin()
            lab.clients.back(node)
        while time.monotonic() < until:
            now = lab.nodes[0].owners()
            for one in now:
                moves[one] += now[one] != seen[one]
            seen = now
            time.sleep(0.1)
    if turn % 2:
        node.begin()
    lab.works.tell("_sick/")
    lab.come_together(lab.nodes, 30)
    lab.row("most moves of one backend", max(moves.values()), lab.args.seconds / 10 + 1, "")
    lab.row("moves of all", sum(moves.values()), unit="")
    lab.row("times that the ill one was down", max(one.events("backend_down") for one in lab.nodes), unit="")
    lab.row("nodes that were taken for gone", sum(one.events("node_gone") - lab.gone[one] for one in lab.nodes[:2]), unit="")
    lab.count(lost=1)


@case
def upgrades(lab):
    """Another process in the place of a node, 20 times in turn: to the others none has ever left."""
    lab.begin()
    lab.steady()
    boots = lambda: sorted((one["name"], one["boot"]) for one in lab.nodes[0].cluster()["nodes"])  # noqa: E731
    before, took = boots(), []
    for turn in range(20):
        node, at = lab.nodes[turn % len(lab.nodes)], time.monotonic()
        lab.heirs.append(node.ask("POST", "/api/v1/upgrade", {})[1]["process"])
        took.append(time.monotonic() - at)
        wait_until("it answers", lambda: node.answering() == lab.heirs[-1])
        time.sleep(max(0.0, at + 3 - time.monotonic()))
    lab.row("an upgrade, the longest", max(took))
    lab.come_together(lab.nodes, 30)
    lab.line("what nodes are known by", "the same" if boots() == before else "another", "the same", boots() == before)
    lab.nothing_moved()
    lab.row("moves that nodes have written", sum(node.metric("evenkeel_cluster_owner_moves_total") for node in lab.nodes) - lab.moves, 0, "")
    lab.rest()
    lab.count()


def run(name, args):
    """A case in a folder of its own; how many bounds were not met."""
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(name, folder, args)
        try:
            CASES[name](lab)
        except (SystemExit, Exception) as error:  # noqa: BLE001
            lab.line(f"{type(error).__name__}: {str(error)[:100]}", "", "", False)
            if not isinstance(error, SystemExit):
                traceback.print_exc()
        finally:
            if lab.clients:
                lab.clients.over = True
            for heir in lab.heirs:
                try:
                    os.kill(heir, signal.SIGKILL)
                except OSError:
                    pass
            Process.end_all()
        if lab.bad:
            for node in lab.nodes:
                lines = [line for line in node.process.text().splitlines() if re.search("WARN|ERROR|warn|error|panicked", line)]
                print("".join(f"    {node.name}: {line[:240]}\n" for line in lines[-args.lines:]), end="", flush=True)
        return lab.bad


def main():
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("cases", nargs="*", help=", ".join(CASES))
    said.add_argument("--seconds", type=float, default=60, help="of steady load in each case")
    said.add_argument("--outage", type=float, default=300, help="for how many seconds etcd has no majority")
    said.add_argument("--lease", type=int, default=3)
    said.add_argument("--nodes", type=int, default=3, help="3 to 5 (`change` has five)")
    said.add_argument("--other", help="the program of every other node (cluster_versions.py)")
    said.add_argument("--lines", type=int, default=3, help="of each node's log, where a bound is not met")
    args = said.parse_args()
    unknown = [name for name in args.cases if name not in CASES]
    if unknown:
        raise SystemExit(f"no such case: {', '.join(unknown)}; there are: {', '.join(CASES)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    bad = {name: run(name, args) for name in args.cases or CASES}
    missed = {name: count for name, count in bad.items() if count}
    raise SystemExit(f"out of bounds: {json.dumps(missed)}" if missed else 0)


if __name__ == "__main__":
    try:
        main()
    finally:
        Process.end_all()
