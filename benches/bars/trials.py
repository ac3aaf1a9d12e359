#!/usr/bin/env python3
"""Configs that are valid and wrong, put on trial under 300 requests a second: who is taken back, and how soon.

Each case has an evenkeel of its own, under load from five seconds or more before the change until it is over."""

import argparse
import asyncio
import copy
import json
import os
import ssl
import subprocess
import sys
import time

import lab
from reload_lab import Fakes, Folder, Running

# From the first failure that a client sees to the rollback. Half a second where more than half fail.
FAST, SLOW = 0.5, 5
# Requests a second, by target. `other` is never touched.
RATES = {"web": 110, "shop": 60, "mail": 60, "checked": 40, "other": 30}
# How long a request may take for its client.
PATIENCE = 2


def certificates(folder):
    """An authority, certificates of it for shop.test (two) and elsewhere.test, and one for shop.test that vouches for itself."""
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=folder.path)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj", "/CN=bar",
            "-addext", "keyUsage=critical,keyCertSign")
    for name, host in (("shop", "shop.test"), ("renewed", "shop.test"), ("elsewhere", "elsewhere.test")):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={host}")
        with open(folder.file("names"), "w") as names:
            names.write(f"subjectAltName=DNS:{host}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
                "-extfile", "names", "-out", f"{name}.pem")
    openssl("req", "-x509", *key, "-keyout", "stranger.key", "-out", "stranger.pem", "-days", "30", "-subj", "/CN=shop.test",
            "-addext", "subjectAltName=DNS:shop.test")


class World:
    """Backends that behave and some that don't, and the config that all cases begin with."""

    def __init__(self, folder):
        self.folder = folder
        certificates(folder)
        # So that something is always under way.
        self.good = Fakes(4, "--latency", "60").ports
        self.other = Fakes(1).ports[0]
        self.failing = Fakes(1, "--status", "500").ports[0]
        self.hanging = Fakes(1, "--fault", "hang").ports[0]
        self.echo = Fakes(2, "--protocol", "tcp", "--tcp", "echo").ports
        self.resetting = Fakes(1, "--fault", "reset-on-accept").ports[0]
        self.dead = lab.free_port()
        self.ports = {name: lab.free_port() for name in RATES}
        self.context = ssl.create_default_context(cafile=folder.file("ca.pem"))

    def tls(self, name):
        return {"cert_file": self.folder.file(f"{name}.pem"), "cert_key": self.folder.file(f"{name}.key")}

    def config(self):
        http = {"protocol": "http", "health_check": "off", "backends": at(*self.good[:2])}
        targets = {
            "web": http,
            "shop": {**http, "protocol": "https", "tls": self.tls("shop")},
            "mail": {"protocol": "tcp", "health_check": "off", "backends": at(*self.echo)},
            "checked": {**http, "health_check": {"interval": "500ms", "path": "/health"}},
            "other": {**http, "backends": at(self.other)},
        }
        for name, target in targets.items():
            target["listener"] = self.ports[name]
        return copy.deepcopy({"log_format": "json", "watch": "off", "state_dir": self.folder.file("state"),
                              "admin": {"socket": self.folder.file("admin.sock")}, "targets": targets})


def at(*ports, **more):
    return [{"host": "127.0.0.1", "port": port, **more} for port in ports]


def wrong(world):
    """Name, target, what it is held to (seconds from the first failure; None: it ends at its time), and its change."""
    def put(**keys):
        return lambda target: target.update(keys)

    return [
        ("backends at a port where nobody listens", "web", FAST, put(backends=at(world.dead))),
        ("backends at a host that is not theirs", "web", FAST, put(backends=[{"host": "127.77.0.1", "port": world.good[0]}])),
        ("a name that has no address", "web", FAST, put(backends=[{"host": "nobody.invalid", "port": world.good[0]}])),
        ("weight 0 for all but one that fails", "web", FAST, put(backends=at(*world.good[:2], weight=0) + at(world.failing))),
        ("a check whose path is not there", "checked", FAST, put(health_check={"interval": "500ms", "path": "/status/404"})),
        ("backends that are not there, so that those before stand in for a while", "checked", FAST, put(backends=at(world.dead))),
        ("TLS to backends that speak none", "web", FAST, put(upstream_tls={"insecure": True})),
        ("TLS for clients that speak none", "web", FAST, put(protocol="https", tls=world.tls("shop"))),
        ("no TLS for clients that speak it", "shop", FAST, lambda target: (target.update(protocol="http"), target.pop("tls"))),
        ("a certificate of nobody's", "shop", FAST, put(tls=world.tls("stranger"))),
        ("a certificate for another name", "shop", FAST, put(tls=world.tls("elsewhere"))),
        ("clients have to show a certificate", "shop", FAST, put(tls={**world.tls("shop"), "client_ca": world.folder.file("ca.pem")})),
        ("one connection at a time", "web", SLOW, put(limits={"connections": 1})),
        ("an answer within 5 ms, which takes 60", "web", FAST, put(timeouts={"first_byte": "5ms"})),
        ("a backend at a port where nobody listens", "mail", FAST, put(backends=at(world.dead))),
        ("a backend that resets", "mail", FAST, put(backends=at(world.resetting))),
        ("TLS for TCP clients that speak none", "mail", FAST, put(tls=world.tls("shop"))),
        ("one of four backends fails and is not left out", "web", SLOW,
         put(outlier="off", backends=at(*world.good[:3], world.failing))),
        # Two of the seven that are under way at any time.
        ("one request at a time for each backend", "web", FAST, put(max_in_flight=1, queue="off")),
        ("a backend that never answers", "web", SLOW, put(backends=at(world.hanging))),
        ("bodies of 1 KB: 413", "web", None, put(limits={"body": "1KB"})),
        ("heads of 1 KB: 431", "web", None, put(limits={"head_size": "1KiB"})),
        ("clients look for it at another port", "web", None, put(listener=lab.free_port())),
        ("one of two backends is not there: the other one serves", "web", None, put(backends=at(world.good[0], world.dead))),
        ("one of four backends fails and is left out", "web", None, put(backends=at(*world.good[:3], world.failing))),
    ]


def good(world):
    def put(**keys):
        return lambda target: target.update(keys)

    return [
        ("one backend more", "web", put(backends=at(*world.good[:3]))),
        ("other backends altogether", "checked", put(backends=at(*world.good[2:]))),
        ("weights and another algorithm", "web", put(balance="least_connections", backends=at(*world.good[:2], weight=3))),
        ("a renewed certificate", "shop", put(tls=world.tls("renewed"))),
        ("limits and timeouts", "mail", put(limits={"connections": 5000}, timeouts={"connect": "1s"})),
    ]


class Load:
    """Clients that come when it is time, whoever still waits. Those of web and checked keep connections, but every other one of web."""

    def __init__(self, world):
        self.world, self.ends, self.kept, self.tasks = world, [], {name: [] for name in RATES}, set()
        self.stopped = False

    async def run(self):
        await asyncio.gather(*(self.come(name, rate) for name, rate in RATES.items()))

    async def come(self, name, rate):
        begun, number = time.monotonic(), 0
        while not self.stopped:
            task = asyncio.create_task(self.one(name, number))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            number += 1
            await asyncio.sleep(max(0, begun + number / rate - time.monotonic()))

    async def one(self, name, number):
        try:
            outcome = await asyncio.wait_for(self.ask(name, number), PATIENCE)
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, ValueError):
            outcome = "failed"
        self.ends.append((time.monotonic(), name, outcome))

    async def ask(self, name, number):
        is_kept = name == "checked" or name == "web" and number % 2
        pool = self.kept[name]
        reader, writer = pool.pop() if is_kept and pool else await self.connect(name)
        is_done = False
        try:
            if name == "mail":
                writer.write(b"x" * 64)
                outcome = "ok" if await reader.readexactly(64) == b"x" * 64 else "failed"
            else:
                outcome = await self.http(reader, writer, name, number)
                is_done = is_kept and outcome == "ok"
        finally:
            if is_done:
                pool.append((reader, writer))
            else:
                writer.close()
        return outcome

    async def connect(self, name):
        context = self.world.context if name == "shop" else None
        host = "shop.test" if context else None
        return await asyncio.open_connection("127.0.0.1", self.world.ports[name], ssl=context, server_hostname=host)

    @staticmethod
    async def http(reader, writer, name, number):
        body = b"b" * 2000 if number % 4 == 0 else b""
        more = f"X-More: {'m' * 2000}\r\n" if number % 5 == 0 else ""
        method, length = ("POST", f"Content-Length: {len(body)}\r\n") if body else ("GET", "")
        writer.write(f"{method} / HTTP/1.1\r\nHost: {name}\r\n{more}{length}\r\n".encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
        await reader.readexactly(int(length or 0))
        status = int(head[9:12])
        return "ok" if status < 400 else "refused" if status < 500 else "failed"

    def bad(self, since, name=None):
        return [at for at, of, outcome in self.ends if at >= since and outcome != "ok" and name in (None, of)]

    async def stop(self):
        self.stopped = True
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=PATIENCE + 1)


async def ask(path, method, where, body=b""):
    """Status and body of an answer of the admin API."""
    reader, writer = await asyncio.open_unix_connection(path)
    head = f"{method} {where} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    kind = "Content-Type: application/yaml\r\n" if body else ""
    writer.write(f"{head}{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.read()
    writer.close()
    return int(answer[9:12]), answer.partition(b"\r\n\r\n")[2].decode()


class Case:
    def __init__(self, world, target, change):
        self.world, self.target = world, target
        self.before, self.after = world.config(), world.config()
        change(self.after["targets"][target])
        self.text = json.dumps(self.after, indent=1)
        self.keel = Running(json.dumps(self.before, indent=1), world.folder)
        self.socket = self.before["admin"]["socket"]

    async def rolled_back(self, since, seconds):
        """When the config was taken back and why; None: it was not, in this time."""
        while time.monotonic() < since + seconds:
            said = self.keel.said("rolled back")
            if said:
                return time.monotonic(), said[0]["fields"]["reason"]
            await asyncio.sleep(0.005)
        return None

    async def apply(self, window):
        status, body = await ask(self.socket, "POST", f"/api/v1/config/apply?confirm={window}", self.text.encode())
        if status != 200:
            raise SystemExit(f"not applied, {status}: {body}")

    async def is_confirmed(self):
        status, body = await ask(self.socket, "POST", "/api/v1/config/confirm")
        await asyncio.sleep(1)
        with open(self.keel.config) as file:
            return status == 200 and file.read() == self.text and not self.keel.said("rolled back")

    async def run(self, known, judge):
        load = Load(self.world)
        running = asyncio.create_task(load.run())
        try:
            await asyncio.sleep(known)
            return await judge(load)
        finally:
            await load.stop()
            await running
            self.keel.end()


async def run_wrong(world, options, name, target, within, change):
    case = Case(world, target, change)

    async def judge(load):
        before = len(load.bad(0))
        begun = time.monotonic()
        await case.apply(options.window)
        ended = await case.rolled_back(begun, options.window + 3)
        await asyncio.sleep(0.2)
        bad = load.bad(begun, target)
        first = bad[0] if bad else None
        if ended is None:
            return False, f"{before} before", "it was not taken back"
        at, why = ended
        took = at - first if first and within is not None else at - begun
        shown = f"{took:5.2f}s, {len(bad):4} failed"
        in_time = "not confirmed in time" in why
        is_right = in_time if within is None else not in_time and took <= within
        return is_right and not before and len(load.bad(begun)) == len(bad), shown, why

    return await case.run(options.known, judge)


async def run_good(world, options, name, target, change, is_other_failing):
    case = Case(world, target, change)

    async def judge(load):
        if is_other_failing:
            behave(world.other, "status=500")
        begun = time.monotonic()
        await case.apply(options.window)
        ended = await case.rolled_back(begun, options.window - 1)
        if ended is not None:
            return False, f"{ended[0] - begun:5.2f}s", ended[1]
        is_kept = await case.is_confirmed()
        bad, others = load.bad(begun, target), load.bad(begun, "other")
        shown = f"{len(bad):4} failed, {len(others)} of the untouched"
        return is_kept and not bad and bool(others) == is_other_failing, shown, "confirmed" if is_kept else "it is not confirmed"

    try:
        return await case.run(options.known, judge)
    finally:
        behave(world.other, "reset=1")


def behave(port, how):
    client = lab.Client(port)
    client.request("POST", f"/_fake?{how}")
    client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="words: only cases with one of them in their name")
    parser.add_argument("--window", type=int, default=8, help="seconds that a config is on trial")
    parser.add_argument("--known", type=float, default=12, help="seconds under load before that")
    options = parser.parse_args()
    folder = Folder()
    failures, count = 0, 0

    def tell(kind, name, outcome):
        nonlocal failures, count
        is_right, shown, why = outcome
        failures, count = failures + (not is_right), count + 1
        print(f"{'ok  ' if is_right else 'FAIL'} {kind:12} {name:70} {shown:32} {why}", flush=True)

    def is_wanted(name):
        return not options.only or any(word in name for word in options.only)

    try:
        world = World(folder)
        for name, target, within, change in wrong(world):
            name = f"{target}: {name}"
            if is_wanted(name):
                kind = "at its time" if within is None else f"within {within}s"
                tell(kind, name, asyncio.run(run_wrong(world, options, name, target, within, change)))
        for is_other_failing in (False, True):
            for name, target, change in good(world):
                name = f"{target}: {name}" + (", while another target fails" if is_other_failing else "")
                if is_wanted(name):
                    tell("stays", name, asyncio.run(run_good(world, options, name, target, change, is_other_failing)))
    finally:
        lab.Process.end_all()
        folder.end()
    print(f"{count - failures} of {count} as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
