"""System calls per request of the worker: strace's lines of two runs, one subtracted from the other."""

import collections
import pathlib
import re
import subprocess

from lab import Failure

# Different names for the same: a change from one to the other is not a change of what is paid.
GROUPS = {
    "recv": ("recvfrom", "recvmsg", "read", "readv"),
    "send": ("sendto", "sendmsg", "write", "writev"),
    "epoll_wait": ("epoll_wait", "epoll_pwait", "epoll_pwait2"),
    "accept": ("accept4", "accept"),
}
GROUP_OF = {call: group for group, calls in GROUPS.items() for call in calls}
# A worker wakes itself, or is woken, by eight bytes to an eventfd: how often depends on who runs when.
WAKE = re.compile(r'write\(\d+, "\\1\\0\\0\\0\\0\\0\\0\\0", 8\)')


def check():
    """Whether strace may trace here at all."""
    tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        raise Failure(
            f"strace can't trace here: {tried.stderr.strip()}\n"
            "System calls can only be counted where ptrace is permitted: in a container, start it with "
            "--cap-add=SYS_PTRACE; on a machine, look at /proc/sys/kernel/yama/ptrace_scope (3 forbids it)"
        )


def measure(lab, scenario):
    """System calls per request, by name, where all processes share one processor: see `lab.pin`."""
    counts = [run(lab, scenario, requests) for requests in scenario.calls]
    (fewer, more), (before, after) = scenario.calls, counts
    each = {name: (after[name] - before[name]) / (more - fewer) for name in before | after}
    return {name: round(cost, 2) for name, cost in sorted(each.items()) if abs(cost) >= 0.005}


def run(lab, scenario, requests):
    """Calls of one run."""
    traces = lab.folder / f"{scenario.name}.{requests}.strace"
    for old in lab.folder.glob(traces.name + ".*"):
        old.unlink()
    lab.run(scenario, requests, ["strace", "-ff", "-qq", "-s", "8", "-o", traces], children)
    return count(lab.folder.glob(traces.name + ".*"))


def children(strace):
    """What strace started."""
    found = pathlib.Path(f"/proc/{strace.pid}/task/{strace.pid}/children").read_text().split()
    if not found:
        raise Failure("strace has no child to count")
    return [int(pid) for pid in found]


def count(files):
    """Calls of the threads that accept, by group."""
    total = collections.Counter()
    for file in files:
        calls = collections.Counter()
        for line in file.read_text(errors="replace").splitlines():
            name = line.partition("(")[0]
            if not name.isidentifier():
                continue
            group = "wake" if WAKE.match(line) else GROUP_OF.get(name, name)
            # The accept loop ends by finding nobody, once for all that came together.
            calls["accept_empty" if group == "accept" and "EAGAIN" in line else group] += 1
        if calls["accept"]:
            total += calls
    if not total:
        raise Failure("strace saw no thread that accepts connections")
    return total
