"""The generators of load, and what they say of a run in one form."""

import json
import os
import re
import subprocess
import threading
from dataclasses import dataclass

from machine import bombardier
from process import Failure, Unheard, run


@dataclass
class Seen:
    """What the load saw. `units` is what the proxy's CPU is divided by: requests, exchanges, handshakes or GiB."""

    units: float
    seconds: float
    errors: int
    p50: float = 0.0
    p99: float = 0.0
    spent: float = 0.0  # the proxy's CPU ns, from loads that know when the measured time begins


TIMES = {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7}


def micros(text):
    found = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    return float(found.group(1)) * TIMES[found.group(2)]


def wrk(url, cores, seconds, connections, script=None):
    """The cheapest of them: most of the load's core is left to the backends."""
    more = ["-s", str(script)] if script else []
    printed = run(["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "10s", "--latency", *more, url],
                  cores)
    requests, took = re.search(r"(\d+) requests in ([\d.]+\w+),", printed).groups()
    errors = sum(map(int, re.findall(r"Non-2xx or 3xx responses: (\d+)", printed)))
    for line in re.findall(r"Socket errors: (.*)", printed):
        errors += sum(map(int, re.findall(r"\d+", line)))
    part = dict(re.findall(r"^\s+(50|99)%\s+([\d.]+\w+)$", printed, re.M))
    if int(requests) == 0 or len(part) < 2:
        raise Unheard(f"wrk had nothing to tell: {printed}")
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


def streams(url, cores, seconds, connections, streams):
    """h2load over HTTP/2: so many streams at once on each connection."""
    times = f"/tmp/h2load-{os.getpid()}.times"
    if os.path.exists(times):
        os.remove(times)
    printed = run(["h2load", f"-c{connections}", f"-m{streams}", "-t1", f"-D{max(1, round(seconds))}", "--warm-up-time=0",
                   "-w20", "-W24", f"--log-file={times}", url], cores)
    if "Application protocol: h2" not in printed:
        raise Failure(f"this is not HTTP/2: {printed[-500:]}")
    found = re.search(r"requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", printed)
    good = int(re.search(r"status codes: (\d+) 2xx", printed).group(1))
    took = re.search(r"finished in ([\d.]+\w+),", printed).group(1)
    with open(times) as lines:
        parts = sorted(int(line.split("\t")[2]) for line in lines)
    os.remove(times)
    # Of those that are on their way at the end the status may be known and not the rest.
    errors = int(found.group(2)) + max(0, int(found.group(1)) - good)
    return Seen(good, micros(took) / 1e6, errors, parts[len(parts) // 2], parts[len(parts) * 99 // 100])


def window(program, args, cores, log, seconds):
    """Runs one of rig's loads that says `start` and `stop`: what comes before and after, connects and closes of
    thousands of connections, is in nobody's bill. Gives what it printed last, and the proxy's CPU between the two."""
    with open(log, "ab") as errors:
        process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                                   start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    alarm = threading.Timer(seconds + 60, process.kill)
    alarm.start()
    try:
        marks = {}
        for line in process.stdout:
            marks[line.strip()] = program.cpu_ns()
            last = line
    finally:
        alarm.cancel()
        process.kill()
        process.wait()
    if "stop" not in marks:
        with open(log) as errors:
            raise Failure(f"{' '.join(args)}: {errors.read().strip()[-500:] or 'ended early, or not at all'}")
    return json.loads(last), marks["stop"] - marks["start"]


def pingpong(rig, side, cores, log, seconds, connections, *more):
    args = [rig, "pingpong", "--connect", f"127.0.0.1:{side.port}", "--connections", str(connections), "--seconds", str(seconds),
            *more]
    told, spent = window(side.program, args, cores, log, seconds)
    return Seen(told["exchanges"], told["seconds"], told["errors"], told["p50_us"], told["p99_us"], spent)


def bulk(rig, side, cores, log, seconds):
    args = [rig, "bulk", "--connect", f"127.0.0.1:{side.port}", "--seconds", str(seconds)]
    told, spent = window(side.program, args, cores, log, seconds)
    return Seen((told["down_bytes"] + told["up_bytes"]) / 2**30, told["seconds"], told["errors"], spent=spent)


def handshakes(rig, side, cores, authority, seconds, length, *more):
    """One TLS connection after the other on 16 places, with one request each."""
    def drive(count):
        # It fails when a request has failed, and has counted it.
        return json.loads(run([rig, "drive", f"127.0.0.1:{side.port}", "--connections", "16", "--requests", str(count), "--close",
                               "--tls", authority, "--body", str(length), *more], cores, may_fail=True))

    # The count that takes as long as was asked for: it is exact, the time need not be.
    if not hasattr(side, "pace"):
        told = drive(800)
        side.pace = told["requests"] / told["seconds"]
    before = side.program.cpu_ns()
    told = drive(max(160, int(side.pace * seconds)))
    resumed = told["resumed"]
    if ("--resume" in more) != (resumed > 0.9 * told["requests"]):
        raise Failure(f"{side.name} resumed {resumed} of {told['requests']} sessions")
    # Ends of connections are still on their way.
    side.program.settle()
    good = told["requests"] - told["errors"]
    return Seen(good, told["seconds"], told["errors"], told["p50_us"], told["p99_us"], side.program.cpu_ns() - before)
