#!/usr/bin/env python3
"""How evenly long-lived connections lie on the workers: at once after they came, and after most of one worker's have left.

Each worker is a thread with an event loop of its own, so the kernel's table of whose event loop watches which socket
tells where a connection is. See README.md beside this file.
"""

import os
import re
import resource
import sys

sys.dont_write_bytecode = True
from lab import Backend, Client, Keel, Process, wait_until  # noqa: E402


def loops(pid):
    """The sockets that each event loop of a process watches, as the kernel lists them."""
    found = []
    folder = f"/proc/{pid}/fdinfo"
    for name in os.listdir(folder):
        try:
            with open(f"{folder}/{name}") as info:
                watched = re.findall(r"^tfd:\s+(\d+)", info.read(), re.M)
        except OSError:
            continue
        if watched:
            found.append(watched)
    return found


def ports(pid, listener):
    """Client port by descriptor of the connections that a process has accepted."""
    by_inode = {}
    with open("/proc/net/tcp") as table:
        for line in list(table)[1:]:
            fields = line.split()
            local, far = fields[1], fields[2]
            if int(local.split(":")[1], 16) == listener and fields[3] == "01":
                by_inode[fields[9]] = int(far.split(":")[1], 16)
    result = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            port = by_inode.get(target[8:-1])
            if port:
                result[name] = port
    return result


def spread(keel, workers):
    """The client ports on each worker."""
    pid = keel.process.pid
    clients = ports(pid, keel.port)
    # One event loop may have several descriptors.
    found = {frozenset(clients[one] for one in watched if one in clients) for watched in loops(pid)}
    found = sorted(found - {frozenset()}, key=len)
    return [frozenset()] * (workers - len(found)) + found


def show(what, sets):
    counts = [len(each) for each in sets]
    share = sum(counts) / len(counts)
    print(f"  {what}: {counts}, the fullest has {max(counts) / share:.2f} of its share", flush=True)
    return max(counts) / share


def connect(keel, count):
    clients = [Client(keel.port) for _ in range(count)]
    for client in clients:
        client.request()
    return clients


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    backend = Backend(1)
    for workers in (2, 4):
        for count in (64, 512, 5000):
            print(f"{workers} workers, {count} connections", flush=True)
            keel = Keel([backend.port], top=f"workers: {workers}")
            # Every worker has begun to accept.
            for client in connect(keel, 64):
                client.close()
            wait_until("they are gone", lambda: not any(spread(keel, workers)))
            clients = connect(keel, count)
            sets = spread(keel, workers)
            show("as they came", sets)
            # All leave but those of one worker, and as many come again.
            stay = sets[-1]
            left = [client for client in clients if client.socket.getsockname()[1] not in stay]
            kept = [client for client in clients if client.socket.getsockname()[1] in stay]
            for client in left:
                client.close()
            wait_until("they are gone", lambda: sum(map(len, spread(keel, workers))) == len(kept))
            clients = kept + connect(keel, len(left))
            show("after all but one worker's have come anew", spread(keel, workers))
            for client in clients:
                client.close()
            keel.end()
    Process.end_all()


if __name__ == "__main__":
    main()
