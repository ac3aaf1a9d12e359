#!/usr/bin/env python3
"""What a scan costs those who ask for what is hot: their hit rate before it and while it goes on. 100,000 small objects once each, one for each
request for something hot; then a pass over large ones (1 to 4 MiB), 30 times what the cache may keep. Builds nothing; takes about 3 minutes.
`--hot 20000` tries it out."""

import argparse
import bisect
import itertools
import random
import sys
import threading

sys.dont_write_bytecode = True

from cache_lab import Cached, Child, Origin, Shared, Verdicts, Wire, crowd, ground, head  # noqa: E402

MIB = 1 << 20
MEMORY = 32 * MIB
# Hot ones, all together three times what the cache may keep: some are hotter than others.
KEYS, HOT = 24_000, 4_096
PROCESSES, CLIENTS = 2, 4
BYTES = memoryview(bytes(4 * MIB))


async def answer(path, _, __, writer):
    length = int(path.rsplit("/", 1)[1])
    writer.write(head(length))
    writer.write(BYTES[:length])


def client(port, seed, count, scanned, told):
    """Asks so many times for what is hot, by Zipf's law, and for each of `scanned` once, evenly between."""
    chance = random.Random(seed)
    weights = list(itertools.accumulate(1 / rank for rank in range(1, KEYS + 1)))
    lock = threading.Lock()
    # What has been asked for: hot, hits of those, scanned, hits of those.
    numbers = [0, 0, 0, 0]

    def work(_):
        wire = Wire(port)
        while True:
            with lock:
                if numbers[0] >= count:
                    break
                numbers[0] += 1
                key = bisect.bisect(weights, chance.random() * weights[-1])
                due = scanned[numbers[2]:numbers[0] * len(scanned) // count]
                numbers[2] += len(due)
            is_hit = wire.get(f"/hot/{key}/{HOT}")[0]
            scans = sum(wire.get(path)[0] for path in due)
            with lock:
                numbers[1] += is_hit
                numbers[3] += scans
        wire.close()

    crowd(CLIENTS, work)
    for at, number in enumerate(numbers):
        told[at] = number


def phase(port, seed, count, scanned):
    """(hit rate of what is hot, requests for what is scanned, hits of those)."""
    told = [Shared(4) for _ in range(PROCESSES)]
    work = lambda at: client(port, 10 * seed + at, count // PROCESSES, scanned[at::PROCESSES], told[at])  # noqa: E731
    children = [Child(lambda at=at: work(at)) for at in range(PROCESSES)]
    if any([child.wait() for child in children]):
        raise SystemExit("a client has failed")
    hot, hits, scans, known = (sum(one[at] for one in told) for at in range(4))
    return hits / hot, scans, known


def run(name, scanned, hot, verdict):
    with ground() as folder:
        origin = Origin(answer)
        keel = Cached(folder, origin.port, store=f"{{memory: {MEMORY // MIB}MiB, object: 4MiB}}")
        phase(keel.front, 1, hot, [])
        before = phase(keel.front, 2, hot, [])[0]
        during, scans, known = phase(keel.front, 3, hot, scanned)
        after = phase(keel.front, 4, hot // 10, [])[0]
        loss = 1 - during / before
        verdict(f"cache scan, {name}", loss < 0.1 and scans == len(scanned),
                f"{100 * before:.1f} % hits of {hot} requests for what is hot before, {100 * during:.1f} % while {scans} others are asked for once each "
                f"({known} hits): {100 * loss:.1f} % less (bar: 10 %); {100 * after:.1f} % in the first {hot // 10} after it")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hot", type=int, default=100_000, help="requests for what is hot, in each phase")
    given = parser.parse_args()
    verdict = Verdicts()
    run("100,000 small ones", [f"/scan/{number}/{HOT}" for number in range(given.hot)], given.hot, verdict)
    chance = random.Random(5)
    large, total = [], 0
    while total < 30 * MEMORY:
        size = chance.randrange(MIB, 4 * MIB)
        large.append(f"/large/{len(large)}/{size}")
        total += size
    run("large ones", large, given.hot, verdict)
    verdict.end()


if __name__ == "__main__":
    main()
