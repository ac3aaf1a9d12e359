#!/usr/bin/env python3
"""100,000 requests at a split of 95 to 5, over connections of all workers: the canary's share is within 0.3 points. Then 2,000 clients by
cookie, asked again after the weights have moved to 90 and 10: whoever changes sides goes to the one that grew. Builds nothing."""

import sys

sys.dont_write_bytecode = True

from lab import Client, Process, together  # noqa: E402
from reload_lab import Fakes, Folder, Running  # noqa: E402

REQUESTS, CONNECTIONS, USERS = 100_000, 64, 2_000


def text(ports, weights, by):
    return f"""log_format: json
watch: off
listeners:
  front:
    bind: 127.0.0.1:0
    routes:
      - split: {{targets: {{stable: {weights[0]}, canary: {weights[1]}}}{by}}}
targets:
  stable: {{health_check: off, backends: [{{host: 127.0.0.1, port: {ports[0]}}}]}}
  canary: {{health_check: off, backends: [{{host: 127.0.0.1, port: {ports[1]}}}]}}
"""


def main():
    backends, folder, failed = Fakes(2), Folder(), []
    try:
        keel = Running(text(backends.ports, (95, 5), ""), folder)

        def ask(_):
            client = Client(keel.port("front"))
            statuses = [client.request()[0] for _ in range(REQUESTS // CONNECTIONS)]
            client.close()
            return sum(status != 200 for status in statuses)

        bad = sum(together(CONNECTIONS, ask))
        got = [Fakes.requests(port) for port in backends.ports]
        share = 100 * got[1] / sum(got)
        good = abs(share - 5) <= 0.3 and not bad
        print(f"{'ok  ' if good else 'FAIL'}  split: {got[1]} of {sum(got)} to the canary, {share:.2f} % (bar: 5 ± 0.3); {bad} failed", flush=True)
        failed += [] if good else ["split"]

        def sides():
            client = Client(keel.port("front"))
            bodies = [client.request(more=f"Cookie: user={user}\r\n")[2].split(b"\n")[0] for user in range(USERS)]
            client.close()
            return bodies

        said, _ = keel.reload(text(backends.ports, (95, 5), ", by: {cookie: user}"))
        before, again = sides(), sides()
        keel.reload(text(backends.ports, (90, 10), ", by: {cookie: user}"))
        after = sides()
        small = min(set(before), key=before.count)
        moved = [(was, now) for was, now in zip(before, after) if was != now]
        back = sum(was == small for was, _ in moved)
        good = before == again and back == 0 and 0.02 * USERS <= len(moved) <= 0.09 * USERS
        print(f"{'ok  ' if good else 'FAIL'}  split by cookie: of {USERS} clients {before.count(small)} at the canary, {len(moved)} change sides when it "
              f"goes from 5 to 10 (about {USERS // 20}), {back} of them away from it; {sum(a != b for a, b in zip(before, again))} without a change")
        failed += [] if good else ["cookie"]
    finally:
        Process.end_all()
        folder.end()
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
