"""Verdicts and how they are told."""

import collections
import re

import kept

# What an instruction count may grow by before someone has to look.
MARGIN = 1.05
# What may vary with who runs when, and by how much per request.
SHARED = {"epoll_wait": 0.1, "futex": 0.1, "wake": 0.1, "accept_empty": 0.1, "ppoll": 0.1, "epoll_ctl": 0.02, "all": 0.2}
# The same where streams share a connection, and so what is read and sent there. How many of them are at the backend at once is as chance
# has it, and each has a connection there: the run that needs some more of them opens them once. When memory of streams that have ended is
# given back (madvise) is a matter of time.
SHARED_OF = {
    "h2": SHARED
    | dict.fromkeys(("recv", "send"), 0.05)
    | dict.fromkeys(("socket", "connect", "setsockopt", "getsockopt", "close", "epoll_ctl", "madvise"), 0.05)
}

HEADER = f"{'scenario':<12} {'figure':<14} {'now':>9} {'kept':>9} {'budget':>9}  verdict"
ADVICE = "If it is worth it, 'benches/budgets --bless' keeps the new figures: say in the commit what they buy."


class Row:
    """One figure with its verdict."""

    def __init__(self, scenario, name, value, kept, budget):
        self.scenario, self.name, self.value, self.kept, self.budget = scenario, name, value, kept, budget
        self.verdict, self.failed = self.judge()

    def judge(self):
        if self.budget is not None and self.value > self.budget:
            return f"over the budget by {self.value - self.budget:.4g}", True
        if self.kept is None:
            return "ok, none kept", False
        change = f"{self.value - self.kept:+.4g}"
        if self.name == "instructions":
            limit = self.kept * MARGIN
            change = f"{(self.value / self.kept - 1) * 100:+.1f} %"
        elif self.name in (shared := SHARED_OF.get(self.scenario, SHARED)):
            limit = self.kept + shared[self.name]
        elif self.value == self.kept:
            return "ok", False
        else:
            return f"not what is kept: {change}", True
        return (f"grown: {change}", True) if self.value > limit else (f"ok, {change}", False)

    def reason(self):
        return f"{self.name} {self.value:g} per request: {self.verdict}"

    def __str__(self):
        def cell(value):
            return "-" if value is None else f"{value:,}" if self.name == "instructions" else f"{value:.2f}"

        cells = [f"{cell(value):>9}" for value in (self.value, self.kept, self.budget)]
        return f"{self.scenario:<12} {self.name:<14} {' '.join(cells)}  {'FAIL ' if self.failed else ''}{self.verdict}"


def rows(scenario, measured, figures):
    """Rows for what was measured. A call that is kept and was not seen counts as 0."""
    if not measured:
        return []
    kept_figures, budget = figures.kept(scenario), figures.budget(scenario)
    measured = dict(measured)
    calls = [name for name in measured if name not in ("instructions", "all")]
    if calls:
        measured["all"] = round(sum(measured[name] for name in calls), 2)
        for name in kept_figures:
            if name != "instructions":
                measured.setdefault(name, 0.0)
    known = bool(kept_figures)

    def row(name, value):
        # Where other calls are kept, a new one is one too many.
        was = kept_figures.get(name, 0.0 if known and name != "instructions" else None)
        return Row(scenario, name, value, was, budget.get(name))

    order = ("instructions", "all", "recv", "send")
    names = sorted(measured, key=lambda name: (order.index(name) if name in order else len(order), name))
    return [row(name, measured[name]) for name in names]


def explain(profile, before, calls_only):
    """Where more is spent than what is kept; when there is less in all, where it is spent.

    A new system call shows in the functions around it, whatever became of the others.
    """
    grown = {name: cost - before.get(name, 0) for name, cost in profile.items()}
    grown = {name: more for name, more in grown.items() if more >= kept.LEAST}
    less = sum(profile.values()) <= sum(before.values())
    if not before or not grown or (less and not calls_only):
        return top(profile, 30)
    lines = [f"    {more:+9.0f}  {name}" for name, more in sorted(grown.items(), key=kept.order)[:30]]
    shrunk = sum(max(0, cost - profile.get(name, 0)) for name, cost in before.items())
    lines.append(f"    {-shrunk:+9.0f}  functions that got cheaper")
    return "  where it grew, in instructions per request:\n" + "\n".join(lines)


def top(profile, count):
    """The costliest functions themselves, and sums by where they belong."""
    places = collections.Counter()
    for name, cost in profile.items():
        places[place(name)] += cost
    lines = ["  where it is spent, in instructions per request:"]
    lines += [f"    {cost:9.0f}  {name}" for name, cost in sorted(places.items(), key=kept.order)[:12]]
    lines += ["  by function, without what it calls:"]
    lines += [f"    {cost:9.0f}  {name}" for name, cost in sorted(profile.items(), key=kept.order)[:count]]
    return "\n".join(lines)


def place(name):
    """The crate, for our own code the module; what is not Rust is one place."""
    path = re.sub(r"^[<&\s]*(mut )?", "", name).split(" as ")[0].split("::")
    if len(path) == 1:
        return "not Rust"
    return "::".join(path[:3] if path[1] == "proxy" else path[:2]) if path[0] == "evenkeel" else path[0]
