"""What cluster_chaos.py counts with: backends that know each request by its number, clients that come by themselves, and how long workers are busy at a time.

`cluster_load.py backend PORT` and `cluster_load.py turns PID...` are processes of their own."""

import asyncio
import collections
import itertools
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
from lab import Process, accepts, free_port, wait_until  # noqa: E402

SOFT, API, SLOTS, HOLDS, GIVEN_UP = 30, 3, 1, {"soft": 0.05, "api": 0.005}, 10
RATES, API_FIRST = {"soft": 300, "api": 100}, 101


class Works(Process):
    """All backends: each has an address of its own. It keeps from when to when each had which request."""

    def __init__(self):
        self.port = free_port()
        super().__init__(sys.executable, __file__, "backend", str(self.port))
        wait_until("the backends", lambda: accepts(self.port))

    def tell(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=60) as answer:
            return json.loads(answer.read())

    def record(self):
        """(from, to, which backend, number of the request) of each."""
        return self.tell("_record")


class Clients(threading.Thread):
    """Requests that come by themselves, in turn to all nodes, each with a number, on connections that are kept.

    Of nodes that were struck (killed, frozen): what was sent before that and not answered yet may be lost with them; whoever is turned away by a dead one goes to another one.
    """

    numbers = itertools.count(1)

    def __init__(self, nodes, rates=RATES):
        super().__init__(daemon=True)
        self.rates, self.open, self.struck, self.down, self.kept = rates, list(nodes), {}, set(), collections.defaultdict(list)
        self.sent = self.elsewhere = self.under_way = 0
        self.good, self.failed, self.lost, self.slowest, self.over, self.presses = set(), [], [], 0.0, False, []
        self.start()

    def run(self):
        asyncio.run(self.all())

    async def all(self):
        await asyncio.gather(*(self.steady(target, rate) for target, rate in self.rates.items()))
        end = time.monotonic() + GIVEN_UP + 1
        while self.under_way and time.monotonic() < end:
            await asyncio.sleep(0.01)

    async def steady(self, target, rate):
        due, turn = time.monotonic(), 0
        while not self.over:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if self.open:
                self.ask_of(self.open[turn % len(self.open)], target)
            due, turn = due + 1 / rate, turn + 1
            while self.presses:
                node, count, until = self.presses.pop()
                for _ in range(count):
                    asyncio.ensure_future(self.pressing(node, until))

    async def pressing(self, node, until):
        while time.monotonic() < until:
            await self.ask_of(node, "soft")

    def ask_of(self, node, target):
        self.sent, self.under_way = self.sent + 1, self.under_way + 1
        return asyncio.ensure_future(self.one(node, target, next(Clients.numbers)))

    async def one(self, node, target, number):
        begun = time.monotonic()
        for _ in range(20):
            sent, is_down = time.monotonic(), node in self.down
            try:
                said = await asyncio.wait_for(self.exchange(node, target, number), GIVEN_UP)
            except asyncio.TimeoutError:
                said = "no answer"
            except OSError as error:
                said = f"refused: {error}" if isinstance(error, ConnectionRefusedError) else f"cut: {error}"
            except asyncio.IncompleteReadError as error:
                said = f"cut after {len(error.partial)} bytes"
            struck, is_down = self.struck.get(node, 0.0), is_down or node in self.down
            if said != 200 and is_down and (sent >= struck and said != "no answer" or str(said).startswith("refused")) and self.open:
                node, self.elsewhere = self.open[number % len(self.open)], self.elsewhere + 1
                continue
            break
        self.under_way -= 1
        self.slowest = max(self.slowest, time.monotonic() - begun if node not in self.struck else 0)
        if said == 200:
            self.good.add(number)
        else:
            told = self.lost if sent <= struck + 0.02 else self.failed
            told.append((round(sent, 3), node.name, target, number, said))

    async def exchange(self, node, target, number):
        idle = self.kept[node, target]
        while idle and (idle[-1][0].at_eof() or idle[-1][1].is_closing()):
            idle.pop()[1].close()
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", node.ports[target])
        try:
            writer.write(f"GET /{number} HTTP/1.1\r\nHost: bar\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            status, found = int(head[9:12]), re.search(rb"(?i)content-length: *(\d+)", head)
            body = await reader.readexactly(int(found.group(1)) if found else 0)
        except BaseException:
            writer.transport.abort()
            raise
        if re.search(rb"(?i)\r\nconnection: *close\r\n", head):
            writer.close()
        else:
            idle.append((reader, writer))
        if status == 200 and body != str(number).encode():
            return f"the answer to another request: {body[:80]}"
        return status if status == 200 else f"{status} {body[:160].decode(errors='replace')}"

    def strike(self, node, how=signal.SIGKILL):
        """Kills or freezes a node; its clients go to the others."""
        self.struck[node] = time.monotonic()
        self.down.add(node)
        for target in self.rates:
            self.kept[node, target] = []
        node.signal(how)
        if node in self.open:
            self.open.remove(node)
        return self.struck[node]

    def back(self, node):
        self.down.discard(node)
        self.open.append(node)

    def press(self, nodes, count, seconds):
        """So many more clients of each of these, who ask again and again."""
        self.presses.extend((node, count, time.monotonic() + seconds) for node in nodes)

    def end(self):
        self.over = True
        self.join()


class Turns(Process):
    """How much of its processor time a worker takes between two sleeps."""

    def __init__(self, nodes):
        super().__init__(sys.executable, __file__, "turns", *(str(node.process.process.pid) for node in nodes))
        wait_until("a look at the workers", self.text)

    def most(self):
        """At least so much and at most so much at once, in milliseconds."""
        self.end(signal.SIGTERM)
        return tuple(json.loads(self.text().splitlines()[-1]))


def overshoot(record, since=0.0, until=float("inf")):
    """The most requests that a backend had at once, when that was, and the longest time for which one had more than it may."""
    changes = collections.defaultdict(list)
    for begun, ended, place, _ in record:
        if place <= SOFT:
            changes[place] += [(begun, 1), (ended, -1)]
    most, when, longest = 0, 0.0, 0.0
    for all_of_it in changes.values():
        now, above = 0, None
        for at, change in sorted(all_of_it):
            now += change
            if since <= at <= until and now > most:
                most, when = now, at
            if now > SLOTS and above is None:
                above = at
            elif now <= SLOTS and above is not None:
                longest, above = max(longest, min(at, until) - max(above, since)), None
    return most, when, longest


class Backend(asyncio.Protocol):
    """Answers each request with its number, a while later."""

    record, sick = [], set()

    def connection_made(self, transport):
        self.transport, self.held = transport, b""
        self.place = int(transport.get_extra_info("sockname")[0].split(".")[3])
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data):
        self.held += data
        while b"\r\n\r\n" in self.held:
            head, _, self.held = self.held.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()[1:]
            if path == "health":
                self.say("503 Sick" if self.place in Backend.sick else "200 OK", "")
            elif path == "_record":
                self.say("200 OK", json.dumps(Backend.record))
            elif path.startswith("_sick/"):
                Backend.sick = {int(place) for place in path[6:].split(",") if place}
                self.say("200 OK", "1")
            else:
                hold = HOLDS["soft" if self.place <= SOFT else "api"]
                asyncio.get_event_loop().call_later(hold, self.done, time.monotonic(), int(path))

    def done(self, begun, number):
        Backend.record.append((begun, time.monotonic(), self.place, number))
        self.say("200 OK", str(number))

    def say(self, status, body):
        self.transport.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


async def backend(port):
    server = await asyncio.get_running_loop().create_server(Backend, "0.0.0.0", port, backlog=1000)
    await server.serve_forever()


def turns(pids):
    """Looks at the workers again and again: between two looks with the same number of sleeps there was none."""
    told = [0.0, 0.0]
    signal.signal(signal.SIGTERM, lambda *_: print(json.dumps(told), flush=True) or os._exit(0))
    tasks = [folder for pid in pids for task in os.listdir(f"/proc/{pid}/task") for folder in [f"/proc/{pid}/task/{task}"]
             if re.match(r"evenkeel-\d+$", open(f"{folder}/comm").read().strip())]
    seen = {folder: (0.0, 0.0, 0.0, -1) for folder in tasks}
    least = most = 0.0
    print("[]", flush=True)
    while True:
        for folder, (before, first, latest, number) in seen.items():
            try:
                spent = int(open(f"{folder}/schedstat").read().split()[0]) / 1e6
                sleeps = int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", open(f"{folder}/status").read()).group(1))
            except (OSError, IndexError, AttributeError):
                continue
            # What had been spent when it was last seen before this sleep, when it was first seen after it, and at the latest look.
            if number != sleeps:
                most = most if number == -1 or before == 0.0 else max(most, spent - before)
                seen[folder] = latest, spent, spent, sleeps
            else:
                least = max(least, spent - first)
                seen[folder] = before, first, spent, sleeps
        told[:] = least, most
        time.sleep(0.004)


if __name__ == "__main__":
    if sys.argv[1] == "backend":
        asyncio.run(backend(int(sys.argv[2])))
    else:
        turns([int(pid) for pid in sys.argv[2:]])
