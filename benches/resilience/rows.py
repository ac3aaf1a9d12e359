"""Rows that `rig clients` loads: one backend that fails fast, all that say 503, one that refuses, one that stalls."""

import math

from stand import Row, free_port, load, share, statuses

ALGORITHMS = ["round_robin", "least_connections", "least_busy", "random", "power_of_two", "peak_ewma", "ring_hash", "maglev", "first"]
NOT_INSTALLED = "not installed"


def absent(row, stand, *cells):
    """A line for each peer that can't be shown."""
    for name in ["nginx", "haproxy"]:
        if name not in stand.peers:
            row.lines.append([name, *cells, NOT_INSTALLED])


def one_500(stand, options):
    """One of three backends answers 500 in 1 ms, the others 200 in 10 ms; no probes. Error share from 2 s on"""
    backends = stand.backends("fake", ["--status", "500", "--latency", "1"], ["--latency", "10"], ["--latency", "10"])
    targets = {}
    for name in ALGORITHMS:
        key = ["hash_key: path"] if name in ["ring_hash", "maglev"] else []
        targets[name] = ([f"balance: {name}", "health_check: off", *key], backends)
    ours = stand.evenkeel(targets)
    nginx = stand.nginx({"nginx_least_conn": (["least_conn;"], [], "", backends), "nginx_round_robin": ([], [], "", backends)})
    haproxy = stand.haproxy({"haproxy_leastconn": (["balance leastconn"], backends),
                             "haproxy_roundrobin": (["balance roundrobin"], backends)})
    told = load(ours | nginx | haproxy, options.seconds, options.rate, after=2, paths=1000)
    row = Row(["proxy, algorithm", "requests", "errors", "error share", "at most", ""])
    for name, figures in told.items():
        errors, requests = figures["errors"], figures["requests"]
        cells = [str(requests), str(errors), share(errors, requests)]
        if name in ours:
            fine = row.want(requests and errors <= 0.03 * requests, f"{name}: {cells[2]} errors")
            row.lines.append([f"evenkeel {name}", *cells, "3 %", fine])
        else:
            row.lines.append([name.replace("_", " ", 1), *cells, "–", "–"])
    absent(row, stand, "–", "–", "–", "–")
    return row


def all_503(stand, options):
    """All three backends answer 503: attempts that they saw ÷ requests"""
    own = {name: stand.backends(name, *[["--status", "503", "--latency", "1"]] * 3) for name in
           ["evenkeel", "haproxy", "nginx", "nginx_max_fails_0"]}
    ports = stand.evenkeel({"evenkeel": (["health_check: off"], own["evenkeel"])})
    ports |= stand.haproxy({"haproxy": (["retries 3", "retry-on all-retryable-errors", "option redispatch"], own["haproxy"])})
    again = ["proxy_next_upstream error timeout http_503;", "proxy_next_upstream_tries 3;"]
    ports |= stand.nginx({"nginx": ([], again, "", own["nginx"]),
                          "nginx_max_fails_0": ([], again, " max_fails=0", own["nginx_max_fails_0"])})
    told = load(ports, min(options.seconds, 10), 300)
    row = Row(["proxy", "requests", "attempts", "attempts ÷ requests", "at most", "answers", ""])
    settings = {"evenkeel": "", "haproxy": " retries 3, all-retryable-errors, redispatch", "nginx": " http_503, tries 3",
                "nginx_max_fails_0": " http_503, tries 3, max_fails=0"}
    for name, figures in told.items():
        attempts = sum(backend.stat("requests") for backend in own[name])
        ratio = attempts / max(figures["requests"], 1)
        fine = "–"
        if name == "evenkeel":
            # Three retries may be on loan, see docs/resilience.md.
            held = figures["requests"] and attempts <= 1.2 * figures["requests"] + 3
            fine = row.want(held, f"{ratio:.2f} attempts for each request")
        row.lines.append([name.split("_")[0] + settings[name], str(figures["requests"]), str(attempts), f"{ratio:.2f}",
                          "1.2" if name == "evenkeel" else "–", statuses(figures), fine])
    absent(row, stand, "–", "–", "–", "–", "–")
    return row


def refusing(stand, options):
    """One of two backends refuses connections; no probes, round robin. Errors that clients saw"""
    backends = [*stand.backends("fake", ["--latency", "5"]), free_port()]
    ports = stand.evenkeel({"evenkeel": (["health_check: off"], backends)})
    ports |= stand.nginx({"nginx": ([], [], "", backends)})
    ports |= stand.haproxy({"haproxy": ([], backends), "haproxy_redispatch": (["option redispatch"], backends)})
    told = load(ports, min(options.seconds, 10), 300)
    row = Row(["proxy", "requests", "errors", "p99", "slowest", "at most", ""])
    for name, figures in told.items():
        fine = row.want(figures["requests"] and not figures["errors"], f"{figures['errors']} errors: {statuses(figures)}") \
            if name == "evenkeel" else "–"
        row.lines.append([name.replace("_", " "), str(figures["requests"]), str(figures["errors"]), f"{figures['p99_us'] / 1000:.1f} ms",
                          f"{figures['max_us'] / 1000:.0f} ms", "0" if name == "evenkeel" else "–", fine])
    absent(row, stand, "–", "–", "–", "–", "–")
    return row


def hedging(stand, options):
    """Five backends of 20 ms ± 5 %; one stalls for 1 s on 5 % of its requests"""
    # The deviation of a Weibull distribution of this shape is 5 % of its mean, scale × Γ(1 + 1 ÷ shape).
    shape = 24.9
    quick = ["--latency-shape", str(shape), "--latency-scale", str(20 / math.gamma(1 + 1 / shape))]
    stalling = [*quick, "--stall", "1000", "--stall-share", "5"]
    own = {name: stand.backends(name, stalling, *[quick] * 4) for name in ["off", "on"]}
    ports = stand.evenkeel({name: (["health_check: off", f"hedging: {name}"], own[name]) for name in own})
    told = load(ports, min(options.seconds, 20), 250)
    row = Row(["hedging", "requests", "errors", "p50", "p99", "p99.5", "slowest", "hedges ÷ requests", ""])
    for name, figures in told.items():
        requests = figures["requests"]
        extra = sum(backend.stat("requests") for backend in own[name]) - requests
        p99_5 = figures["p99_5_us"] / 1000
        fine = "–"
        if name == "on":
            held = p99_5 < 60 and extra <= 0.05 * requests and not figures["errors"]
            fine = row.want(requests and held, f"p99.5 {p99_5:.0f} ms, hedges {share(extra, requests)}, {figures['errors']} errors")
        times = [f"{figures[key] / 1000:.1f} ms" for key in ["p50_us", "p99_us", "p99_5_us", "max_us"]]
        row.lines.append([name, str(requests), str(figures["errors"]), *times, share(extra, requests), fine])
    row.notes.append("bar with hedging on: p99.5 below 60 ms, hedges at most 5 % of the requests")
    return row
