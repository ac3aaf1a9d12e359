"""The machine: what has to be installed, which cores are used, what is written beside the figures."""

import os
import platform
import re
import shutil
import subprocess

from process import Failure

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILT = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release")
# Debian's packages, by the file that shows that they are there.
PACKAGES = {
    "haproxy": "/usr/sbin/haproxy",
    "nginx": "/usr/sbin/nginx",
    "libnginx-mod-stream": "/usr/lib/nginx/modules/ngx_stream_module.so",
    "wrk": "/usr/bin/wrk",
    "varnish": "/usr/sbin/varnishd",
    "nghttp2-client": "/usr/bin/h2load",
    "openssl": "/usr/bin/openssl",
}
# Debian starts the services that it installs, unless this says no (see invoke-rc.d(8)).
POLICY = "/usr/sbin/policy-rc.d"


def install():
    """Installs what is missing, as root; otherwise says what to install."""
    missing = [package for package, file in PACKAGES.items() if not os.path.exists(file)]
    if not missing:
        return
    if os.getuid() != 0 or not shutil.which("apt-get"):
        raise Failure(f"missing: {' '.join(missing)} (Debian: sudo apt-get install {' '.join(missing)})")
    print(f"installing {' '.join(missing)}", flush=True)
    ours = not os.path.exists(POLICY)
    if ours:
        with open(POLICY, "w") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(POLICY, 0o755)
    try:
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-q"], env=env, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing], env=env, check=True,
                       stdout=subprocess.DEVNULL)
    except subprocess.CalledProcessError as cause:
        raise Failure(f"apt-get could not install {' '.join(missing)}: {cause}") from None
    finally:
        if ours:
            os.remove(POLICY)


def bombardier():
    found = shutil.which("bombardier") or os.path.expanduser("~/go/bin/bombardier")
    if not os.path.exists(found):
        raise Failure("no bombardier: run benches/bars/install-bombardier")
    return found


def built(name):
    found = os.path.join(BUILT, name)
    if not os.path.exists(found):
        raise Failure(f"no {found}: run cargo build --release --workspace")
    return found


def cores():
    """(those of the proxy, those of the load and the backends, those of a proxy with two threads)."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        raise Failure("one core is not enough: the proxy has one to itself")
    return {mine[1]}, {mine[0], *mine[2:]}, {mine[0], mine[1]}


def said(*args):
    try:
        made = subprocess.run(args, capture_output=True, text=True, timeout=20)
        return (made.stdout + made.stderr).strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def version(kind, program):
    """The version of a peer or tool in one word, so far as it says one."""
    text = said(program, {"haproxy": "-v", "nginx": "-v", "wrk": "-v", "varnish": "-V"}.get(kind, "--version"))
    if kind == "bombardier":
        return bombardier_version(program)
    if kind == "envoy":
        found = re.search(r"/(\d+\.\d+\.\d+)/\w+/RELEASE", text)
    else:
        found = re.search(r"(\d+\.\d+[^\s,]*)", text)
    return found.group(1) if found else "unknown"


def bombardier_version(program):
    """Built by Go from a module it does not know its version; Go has written it into the file."""
    with open(program, "rb") as file:
        found = re.search(rb"codesenberg/bombardier\tv(\d[\w.]*)", file.read())
    return found.group(1).decode() if found else "unknown"


def describe(proxies):
    """What a reader needs to know before comparing figures with figures from elsewhere."""
    with open("/proc/cpuinfo") as lines:
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {
        "machine": f"{model}, {os.cpu_count()} cores, Linux {platform.release()}",
        "proxies": {proxy.name: f"{version(proxy.kind, proxy.program)}" for proxy in proxies},
        "load": {"wrk": version("wrk", "wrk"), "h2load": version("h2load", "h2load"),
                 "bombardier": version("bombardier", bombardier())},
        "openssl": said("openssl", "version").split()[1],
    }


def issue(folder):
    """An authority and a certificate for localhost (ECDSA P-256); gives (authority, certificate, key, both in one)."""
    def path(name):
        return os.path.join(folder, name)

    def openssl(*args):
        made = subprocess.run(["openssl", *args], capture_output=True, text=True)
        if made.returncode != 0:
            raise Failure(f"openssl {args[0]}: {made.stderr.strip()}")

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=peers", "-keyout", path("ca.key"), "-out", path("ca.pem"))
    openssl("req", *key, "-subj", "/CN=localhost", "-keyout", path("server.key"), "-out", path("server.csr"))
    with open(path("names"), "w") as file:
        file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", path("server.csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-CAcreateserial",
            "-days", "2", "-extfile", path("names"), "-out", path("server.pem"))
    with open(path("both.pem"), "w") as both:
        for name in ["server.pem", "server.key"]:
            with open(path(name)) as part:
                both.write(part.read())
    return path("ca.pem"), path("server.pem"), path("server.key"), path("both.pem")
