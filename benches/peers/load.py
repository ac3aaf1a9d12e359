"""The generators of load, and what they say of a run in one form."""

import json
import os
import re
from dataclasses import dataclass

from machine import bombardier
from process import Failure, run


@dataclass
class Seen:
    """What the load saw. `units` is what the proxy's CPU is divided by: requests, exchanges, handshakes or GiB."""

    units: float
    seconds: float
    errors: int
    p50: float = 0.0
    p99: float = 0.0


TIMES = {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7}


def micros(text):
    found = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    return float(found.group(1)) * TIMES[found.group(2)]


def wrk(url, cores, seconds, connections, script=None):
    """The cheapest of them: most of the load's core is left to the backends."""
    more = ["-s", script] if script else []
    printed = run(["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "10s", "--latency", *more, url],
                  cores)
    requests, took = re.search(r"(\d+) requests in ([\d.]+\w+),", printed).groups()
    errors = sum(map(int, re.findall(r"Non-2xx or 3xx responses: (\d+)", printed)))
    for line in re.findall(r"Socket errors: (.*)", printed):
        errors += sum(map(int, re.findall(r"\d+", line)))
    part = dict(re.findall(r"^\s+(50|99)%\s+([\d.]+\w+)$", printed, re.M))
    if int(requests) == 0:
        raise Failure(f"wrk had no answer: {printed}")
    return Seen(int(requests), micros(took) / 1e6, errors, micros(part["50"]), micros(part["99"]))


def bombard(url, cores, connections, seconds=None, requests=None, headers=()):
    """bombardier, with the client and the line of gruglb's README."""
    size = ["-n", str(requests)] if requests else ["-d", f"{seconds}s"]
    headers = [part for header in headers for part in ("-H", header)]
    printed = run([bombardier(), "-c", str(connections), *size, "--fasthttp", "-t", "10s", "--latencies", "--print", "result",
                   "--format", "json", *headers, url], cores, 300)
    result = json.loads(printed)["result"]
    good = result["req2xx"]
    bad = sum(result[name] for name in ["req1xx", "req3xx", "req4xx", "req5xx", "others"])
    part = result["latency"]["percentiles"]
    return Seen(good, result["timeTakenSeconds"], bad, part["50"], part["99"])


def upload(url, cores, seconds, connections, body):
    """h2load over HTTP/1.1: it sends a body from a file, and knows how long each request took."""
    times = f"{body}.times"
    if os.path.exists(times):
        os.remove(times)
    printed = run(["h2load", "--h1", f"-c{connections}", "-t1", f"-D{max(1, round(seconds))}", "--warm-up-time=0", "-d", body,
                   f"--log-file={times}", url], cores)
    found = re.search(r"requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", printed)
    good = int(re.search(r"status codes: (\d+) 2xx", printed).group(1))
    took = re.search(r"finished in ([\d.]+\w+),", printed).group(1)
    with open(times) as lines:
        parts = sorted(int(line.split("\t")[2]) for line in lines)
    errors = int(found.group(2)) + int(found.group(1)) - good
    return Seen(good, micros(took) / 1e6, errors, parts[len(parts) // 2], parts[len(parts) * 99 // 100])
