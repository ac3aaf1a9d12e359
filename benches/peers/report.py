"""Rows: from cells to medians, quartiles, ratios and a verdict; as a table and as JSON."""

import json
import statistics
from dataclasses import asdict, dataclass, field

OURS = "evenkeel"
# A median that falls short of its budget by less than this is noise.
TOLERANCE = 0.97


@dataclass
class Cell:
    """One proxy in one round."""

    cost: float  # CPU µs of the proxy for each unit; KiB where memory is measured
    rate: float = 0.0  # units each second
    p50: float = 0.0  # µs
    p99: float = 0.0
    errors: int = 0


@dataclass
class Row:
    """One scenario. `budgets` are the least ratios by peer, or `most` is the most that our own value may be."""

    name: str
    text: str
    unit: str = "µs"
    cells: dict = field(default_factory=dict)  # proxy: cells of the rounds
    memory: dict = field(default_factory=dict)  # proxy: KiB, the peak of resident memory
    budgets: dict = field(default_factory=dict)
    most: float = 0.0
    # Cells hold a cost, of which less is better; a row may show this ÷ the cost (GiB for each CPU second).
    inverse: float = 0.0
    notes: list = field(default_factory=list)

    def value(self, proxy):
        return statistics.median(self.show(cell.cost) for cell in self.cells[proxy])

    def show(self, cost):
        return self.inverse / cost if self.inverse else cost

    def ratio(self, peer):
        """(q1, median, q3) of the peer's cost ÷ ours, each taken inside a round."""
        pairs = zip(self.cells[peer], self.cells[OURS])
        return quartiles([peer.cost / ours.cost for peer, ours in pairs if ours.cost > 0])

    def peers(self):
        return [name for name in self.cells if name != OURS]

    def errors(self):
        return sum(cell.errors for cell in self.cells.get(OURS, []))

    def failures(self):
        """What keeps this row from passing; None where nothing is asked."""
        found, asked = [], bool(self.most)
        if self.most and self.value(OURS) > self.most:
            found.append(f"{self.value(OURS):.3g} is above {self.most:g}")
        for peer, budget in self.budgets.items():
            if peer in self.cells and budget:
                asked = True
                if self.ratio(peer)[1] / budget < TOLERANCE:
                    found.append(f"{peer} {self.ratio(peer)[1]:.2f} of {budget:.2f}")
        if self.errors():
            found.append(f"{self.errors()} errors")
        return found if asked or found else None

    def verdict(self):
        found = self.failures()
        return "–" if found is None else "ok" if not found else "SHORT"


def quartiles(values):
    if len(values) < 2:
        return (values[0],) * 3
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def median(cells, what):
    return statistics.median(getattr(cell, what) for cell in cells)


def table(head, lines):
    """Left-aligned first column, the others to the right; reads as it stands and as Markdown."""
    widths = [max(len(line[at]) for line in [head, *lines]) for at in range(len(head))]

    def form(line):
        cells = [text.ljust(width) if at == 0 else text.rjust(width) for at, (text, width) in enumerate(zip(line, widths))]
        return f"| {' | '.join(cells)} |"

    rule = "|".join(["-" * (widths[0] + 2)] + ["-" * (width + 1) + ":" for width in widths[1:]])
    return "\n".join([form(head), f"|{rule}|", *map(form, lines)])


def heading(about):
    """The machine, and the versions of all that took part."""
    versions = [f"{name} {version}" for group in ["proxies", "load"] for name, version in about[group].items()]
    return f"{about['machine']}\n{', '.join(versions)}, OpenSSL {about['openssl']}"


def groups(rows):
    """The rows in which everybody forwards, and those in which caches answer: other peers, other columns."""
    hits = [row for row in rows if {"varnish", "floor"} & row.cells.keys()]
    return [group for group in [[row for row in rows if row not in hits], hits] if group]


def summary(rows):
    """The figure of each row beside the peers', the ratios, what they should be, and whether they are."""
    names = [OURS] + list(dict.fromkeys(peer for row in rows for peer in row.peers()))
    head = ["row", "unit", *names]
    for peer in names[1:]:
        head += [f"{peer} ÷ ours", "budget"]
    bounded = any(row.most for row in rows)
    head += ["at most"] * bounded + ["verdict"]
    lines = []
    for row in rows:
        line = [row.name, row.unit] + [number(row.value(name)) if name in row.cells else "–" for name in names]
        for peer in names[1:]:
            if peer in row.cells:
                low, middle, high = row.ratio(peer)
                line += [f"{middle:.2f} [{low:.2f}..{high:.2f}]", f"{row.budgets[peer]:.2f}" if row.budgets.get(peer) else "–"]
            else:
                line += ["–", "–"]
        if bounded:
            line.append(f"{row.most:g}" if row.most else "–")
        lines.append(line + [row.verdict()])
    return table(head, lines)


def details(rows):
    """What else was seen: rates, latencies, errors, memory."""
    lines = []
    for row in rows:
        for name, cells in row.cells.items():
            rate, p50, p99 = (median(cells, what) for what in ["rate", "p50", "p99"])
            if rate or p50 or row.memory.get(name):
                lines.append([row.name, name, number(rate) if rate else "–", number(p50) if p50 else "–",
                              number(p99) if p99 else "–", str(sum(cell.errors for cell in cells)),
                              f"{row.memory[name] / 1024:.1f}" if row.memory.get(name) else "–"])
    return table(["row", "proxy", "units/s", "p50 µs", "p99 µs", "errors", "peak RSS MiB"], lines)


def save(path, about, rows):
    """Everything, cell by cell, for other programs and for `read`."""
    out = []
    for row in rows:
        ratios = {peer: dict(zip(["q1", "median", "q3"], row.ratio(peer))) for peer in row.peers()}
        values = {name: row.value(name) for name in row.cells}
        out.append({**asdict(row), "verdict": row.verdict(), "short": row.failures() or [], "values": values, "ratios": ratios})
    with open(path, "w") as file:
        json.dump({**about, "rows": out}, file, indent=1, ensure_ascii=False)
        file.write("\n")


def read(paths):
    """(what was said about the runs, their rows in the order of the files): a row that is in several is the last one's."""
    abouts, rows = [], {}
    for path in paths:
        with open(path) as file:
            about = json.load(file)
        for row in about.pop("rows"):
            known = {name: row[name] for name in Row.__dataclass_fields__}
            known["cells"] = {name: [Cell(**cell) for cell in cells] for name, cells in row["cells"].items()}
            rows[row["name"]] = Row(**known)
        abouts.append(about)
    return abouts, list(rows.values())
