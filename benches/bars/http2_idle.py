#!/usr/bin/env python3
"""What a connection of HTTP/2 over TLS costs in memory while it does nothing: each of many has had one answer, all at different times, and is held.
`--connections N`. The bound is 10 KiB each."""

import argparse
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import http2_lab as h2  # noqa: E402
from http2_client import Connection, trust  # noqa: E402
from lab import Backend, Keel, Process, program  # noqa: E402

BOUND = 10.0
GET = h2.request(b"/")


def answered(one):
    """Asks once and waits for the answer."""
    stream = one.request(GET)
    end = time.monotonic() + 20
    while not stream.is_over():
        one.write()
        one.read()
        if one.closed or time.monotonic() > end:
            raise SystemExit("a connection got no answer")
    one.write()
    return stream.status == 200


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--connections", type=int, default=1000)
    count = options.parse_args().connections
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program("rig"), "certificate", folder], check=True)
        cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        backend = Backend(1)
        keel = Keel(config=lambda port: f"workers: 1\ntargets:\n  web:\n    protocol: https\n    listener: {port}\n"
                    f"    tls: {{cert_file: {cert}, cert_key: {key}}}\n    health_check: off\n    limits: {{connections_per_client: off}}\n"
                    f"    backends: [{{host: 127.0.0.1, port: {backend.port}}}]\n", descriptors=4 * count + 1000)
        context = trust(cert)
        # What the first hundred need of the process, all others find there.
        held = [Connection(keel.port, context) for _ in range(100)]
        assert all(answered(one) for one in held)
        time.sleep(3)
        before = keel.rss_kib()
        for _ in range(count):
            held.append(Connection(keel.port, context))
            assert answered(held[-1])
        time.sleep(3)
        each = (keel.rss_kib() - before) / count
        Process.end_all()
    print(f"{'ok ' if each <= BOUND else 'NO '} {count} idle connections of HTTP/2 over TLS: {each:.2f} KiB each (bound {BOUND:.0f})")
    return 0 if each <= BOUND else 1


if __name__ == "__main__":
    os.sched_setaffinity(0, {1})
    sys.exit(main())
