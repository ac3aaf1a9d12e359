#!/usr/bin/env python3
"""Ten times more content than the cache may keep, as fast as it goes for 60 s each: resident memory stays at the bound, a tenth and 20 MB.
Bodies of 500 B to 4 MiB (log-uniform), small ones alone and large ones alone, asked for by Zipf's law. Builds nothing; takes about 7 minutes.
`--seconds 10 --memory 64` tries it out."""

import argparse
import bisect
import itertools
import math
import random
import sys
import threading
import time

sys.dont_write_bytecode = True

from cache_lab import Cached, Child, Origin, Shared, Verdicts, Wire, crowd, ground, head  # noqa: E402

MIB = 1 << 20
SMALLEST, LARGEST = 500, 4 * MIB
MIXES = {"mixed": (SMALLEST, LARGEST), "small": (SMALLEST, 16 << 10), "large": (64 << 10, LARGEST)}
# Of each of two processes.
CLIENTS = 12
BYTES = memoryview(bytes(LARGEST))


def size(key, mix):
    """The same for each key, whoever asks: log-uniform."""
    least, most = MIXES[mix]
    at = random.Random(key).random()
    return int(least * math.exp(at * math.log(most / least)))


def keys(mix, content):
    """So many that all together are `content` bytes."""
    least, most = MIXES[mix]
    mean = (most - least) / math.log(most / least)
    return int(content / mean)


async def answer(path, _, __, writer):
    length = int(path.rsplit("/", 1)[1])
    writer.write(head(length))
    writer.write(BYTES[:length])


def client(port, seed, mix, count, until, told):
    """Asks by Zipf's law (exponent 0.8) until it is time."""
    chance = random.Random(seed)
    weights = list(itertools.accumulate(1 / rank ** 0.8 for rank in range(1, count + 1)))
    lock = threading.Lock()

    def work(_):
        wire = Wire(port)
        while time.monotonic() < until:
            with lock:
                key = bisect.bisect(weights, chance.random() * weights[-1])
            is_hit, length, _ = wire.get(f"/{key}/{size(key, mix)}")
            with lock:
                told.add(0)
                told.add(1, is_hit)
                told.add(2, length)
        wire.close()

    crowd(CLIENTS, work)


def run(memory, mix, seconds, verdict):
    with ground() as folder:
        origin = Origin(answer)
        keel = Cached(folder, origin.port, store=f"{{memory: {memory}MiB, object: 4MiB}}")
        count = keys(mix, 10 * memory * MIB)
        rest = keel.status("VmRSS")
        told = [Shared(3), Shared(3)]
        until = time.monotonic() + seconds
        children = [Child(lambda at=at: client(keel.front, at, mix, count, until, told[at])) for at in range(2)]
        seen = []
        while time.monotonic() < until:
            time.sleep(0.1)
            seen.append(keel.status("VmRSS"))
        failed = sum(child.wait() != 0 for child in children)
        peak = max(keel.status("VmHWM"), *seen)
        time.sleep(1)
        after = keel.status("VmRSS")
        asked, hits, length = (sum(one[at] for one in told) for at in range(3))
        bar = memory * MIB * 1.1 + 20e6
        steady = sorted(seen[len(seen) // 2:])[len(seen) // 4]
        verdict(f"cache memory, {memory} MiB, {mix}", peak * 1024 <= bar and not failed,
                f"resident at most {peak / 1024:.1f} MiB (bar: {bar / MIB:.1f}), median of the second half {steady / 1024:.1f}, a second after "
                f"{after / 1024:.1f}, before {rest / 1024:.1f}; {count} keys, {asked} requests, {100 * hits / max(asked, 1):.0f} % hits, "
                f"{length / MIB:.0f} MiB to clients")
        purge = keel.purge(all=True)
        time.sleep(1)
        verdict(f"cache memory, {memory} MiB, {mix}", None, f"after a purge of all ({purge:.1f} ms) {keel.status('VmRSS') / 1024:.1f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--memory", type=int, nargs="*", default=[64, 256], help="in MiB")
    parser.add_argument("--mix", nargs="*", default=list(MIXES), choices=list(MIXES))
    given = parser.parse_args()
    verdict = Verdicts()
    for memory in given.memory:
        for mix in given.mix:
            run(memory, mix, given.seconds, verdict)
    verdict.end()


if __name__ == "__main__":
    main()
