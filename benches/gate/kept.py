"""The figures that are kept: benches/budgets.toml, and a profile for each scenario beside this file."""

import pathlib
import tomllib

PROFILES = pathlib.Path(__file__).parent / "profiles"
# Functions cheaper than this are not kept, and no growth below it is named.
LEAST = 20

HEADER = """\
# What a request may cost, held by benches/budgets (docs/testing.md says how). `budget` is decided by people; `kept`
# and gate/profiles are what was measured last, on the machine named here, and are written by `benches/budgets --bless`.
#
# instructions  user instructions of the whole process; more than the budget, or 5 % more than what is kept, fails
# recv, send    whatever the call is called; these and all others not named below must be exactly as kept
# epoll_wait    and futex, wake (a thread woken through an eventfd), accept_empty and ppoll (looks for further clients):
#               shared by requests that come together, so they may vary by 0.1
# epoll_ctl     a client whose bytes come after it is waited for: by 0.02
#               h2: recv, send, what opens a connection to a backend, and madvise are shared as well, and vary by 0.05
# all           the sum
"""


class Figures:
    """What is decided and what is kept."""

    def __init__(self, file, text, machine):
        self.file, self.machine = file, machine
        self.tables = tomllib.loads(text)
        self.kept_on = self.tables.pop("machine", machine)

    def budget(self, scenario):
        return self.tables.get(scenario, {}).get("budget", {})

    def kept(self, scenario):
        """Empty on another kind of machine: its instructions are others."""
        if self.machine != self.kept_on:
            return {}
        return self.tables.get(scenario, {}).get("kept", {})

    def profile(self, scenario):
        file = PROFILES / f"{scenario}.txt"
        if not file.exists():
            return {}
        lines = (line.split(None, 1) for line in file.read_text().splitlines())
        return {name: int(cost) for cost, name in lines}

    def bless(self, scenario, rows, profile):
        """Keeps what was measured; what was not measured this time stays."""
        self.kept_on = self.machine
        kept = self.tables.setdefault(scenario, {}).setdefault("kept", {})
        if any(row.name != "instructions" for row in rows):
            self.tables[scenario]["kept"] = {name: kept[name] for name in kept if name == "instructions"}
        self.tables[scenario]["kept"] |= {row.name: row.value for row in rows if row.value}
        if profile:
            PROFILES.mkdir(exist_ok=True)
            lines = [f"{round(cost):6} {name}" for name, cost in sorted(profile.items(), key=order) if cost >= LEAST]
            (PROFILES / f"{scenario}.txt").write_text("\n".join(lines) + "\n")

    def write(self):
        text = HEADER + f'machine = "{self.kept_on}"\n'
        for scenario, tables in self.tables.items():
            for name in ("budget", "kept"):
                if values := tables.get(name):
                    text += f"\n[{scenario}.{name}]\n"
                    text += "".join(f"{key} = {value}\n" for key, value in values.items())
        self.file.write_text(text)


def order(item):
    """Costliest first; equal ones by name, so that a file changes only where a figure does."""
    return (-round(item[1]), item[0])


def read(file, machine):
    return Figures(file, file.read_text(), machine)
