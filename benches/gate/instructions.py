"""User instructions per request, by function: callgrind's files of two runs, one subtracted from the other."""

import re

# A cost line of a callgrind file begins with a place: absolute, relative, or the same as before.
PLACE = "0123456789+-*"
# `::h0123456789abcdef` differs from build to build, `'2` counts recursion.
NOISE = re.compile(r"(::h[0-9a-f]{16}\b)|('\d+$)|(\.llvm\.\d+)")
# Entropy is gathered when a process starts, for as long as chance has it: more or less by what hundreds of requests cost.
CHANCE = re.compile(r"^(jent_\w+|rol64|xoshiro128starstar|uint32rotl|ptr_to_le32)$")


def measure(lab, scenario, keep=None):
    """Instructions per request of each function, where all processes share one processor: see `lab.pin`."""
    profiles = [run(lab, scenario, requests, keep) for requests in scenario.instructions]
    (fewer, more), (before, after) = scenario.instructions, profiles
    grown = {name: (after.get(name, 0) - before.get(name, 0)) / (more - fewer) for name in before | after}
    return {name: cost for name, cost in grown.items() if abs(cost) >= 0.5 and not CHANCE.match(name)}


def run(lab, scenario, requests, keep):
    """The profile of one run."""
    file = (keep or lab.folder) / f"{scenario.name}.{requests}.callgrind"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={file}"]
    # Without lines the files are small; who keeps them wants to see the lines.
    command += [] if keep else ["--dump-line=no"]
    lab.run(scenario, requests, command)
    return read(file)


def read(file):
    """Instructions of each function itself, without those it calls, as callgrind wrote them."""
    names, costs, function, call = {}, {}, None, False
    with open(file, errors="replace") as lines:
        for line in lines:
            if line[0] in PLACE:
                # The line after `calls=` is what was spent in the called function.
                if not call:
                    costs[function] = costs.get(function, 0) + int(line.rsplit(None, 1)[1])
                call = False
            elif line.startswith(("fn=", "cfn=")):
                key, _, name = line.split("=", 1)[1].strip().partition(" ")
                if name:
                    names[key] = NOISE.sub("", name)
                if line[0] == "f":
                    function = names[key]
            elif line.startswith("calls="):
                call = True
    return costs
